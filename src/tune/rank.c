/* Scores of ops that cost no trial: a few batches each. */
#include "tune/compare.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "tune/modes.h"
#include "tune/pieces.h"

enum {
	MSE_BATCHES = 4,
};

void op_order_add(struct op_order *o, size_t op, double score)
{
	o->op = xrealloc(o->op, o->n + 1, sizeof(*o->op));
	o->score = xrealloc(o->score, o->n + 1, sizeof(*o->score));
	o->op[o->n] = op;
	o->score[o->n++] = score;
}

/* nsr[op]: noise to signal at each op's output in the quantized model; NaN for those that are not quantized */
static enum fettle_status output_errors(struct lab *l, const struct plan *p, double *nsr, struct err *err)
{
	const struct space *space = &l->t->space;
	const char **fp32 = xcalloc(space->n_ops, sizeof(*fp32)),
		   **quantized = xcalloc(space->n_ops, sizeof(*quantized));
	size_t *op = xcalloc(space->n_ops, sizeof(*op)), n = 0, i;
	struct reference ref = { .per_batch = 0 };
	struct comparison c = { &ref, xcalloc(space->n_ops, sizeof(double)),
				xcalloc(space->n_ops, sizeof(double)) };
	struct graph_index g;
	struct model *m;
	enum fettle_status st;

	st = lab_model(l, p, WEIGHTS_NEAREST, &m, err);
	if (st)
		goto out;
	graph_index_init(&g, m);
	for (i = 0; i < space->n_ops; i++) {
		const struct node *node = l->s->m->nodes.v[l->t->node[i]];
		size_t v = quantized_output(&l->s->g, node->out[0]);

		nsr[i] = NAN;
		if (!plan_is_quantized(p, space, i))
			continue;
		fp32[n] = l->s->g.names[v];
		quantized[n] = name_in(&g, fp32[n]);
		if (!quantized[n])
			continue;
		op[n++] = i;
	}
	graph_index_release(&g);
	if (n)
		st = expose_and_run(l, &(struct exposed){ l->s->m, fp32, n }, MSE_BATCHES, keep_outputs, &ref,
				    err);
	if (n && !st)
		st = expose_and_run(l, &(struct exposed){ m, quantized, n }, MSE_BATCHES, compare_outputs, &c,
				    err);
	for (i = 0; i < n && !st; i++)
		nsr[op[i]] = c.signal[i] > 0 ? c.noise[i] / c.signal[i] : c.noise[i];
out:
	reference_release(&ref);
	free(fp32);
	free(quantized);
	free(op);
	free(c.noise);
	free(c.signal);
	return st;
}

static enum fettle_status rank_outputs(struct lab *l, const struct plan *p, struct op_order *out,
				       struct err *err)
{
	double *nsr = xcalloc(l->t->space.n_ops, sizeof(*nsr));
	enum fettle_status st = output_errors(l, p, nsr, err);
	size_t i;

	for (i = 0; i < l->t->space.n_ops && !st; i++)
		if (!isnan(nsr[i]))
			op_order_add(out, i, nsr[i]);
	free(nsr);
	return st;
}

/*
 * What an op adds to the error that reaches it: the noise at its output above the worst at its inputs. All ops at once, for
 * the price of two sessions.
 */
static enum fettle_status added_errors(struct lab *l, const struct plan *p, double *added, struct err *err)
{
	const struct graph_index *g = &l->s->g;
	const struct model *m = l->s->m;
	double *at = xcalloc(g->n, sizeof(*at)), *nsr = xcalloc(l->t->space.n_ops, sizeof(*nsr));
	size_t *param = xcalloc(m->nodes.n, sizeof(*param)), i, k;
	enum fettle_status st = output_errors(l, p, nsr, err);

	for (i = 0; i < l->t->space.n_ops; i++)
		param[l->t->node[i]] = i + 1;
	for (i = 0; i < m->nodes.n && !st; i++) {
		const struct node *n = m->nodes.v[i];
		double in = 0, here;

		for (k = 0; k < n->n_in; k++)
			if (*n->in[k])
				in = fmax(in, at[graph_value(g, n->in[k])]);
		here = in;
		if (param[i] && !isnan(nsr[param[i] - 1])) {
			here = nsr[param[i] - 1];
			added[param[i] - 1] = fmax(here - in, 0);
		}
		for (k = 0; k < n->n_out; k++)
			if (*n->out[k])
				at[graph_value(g, n->out[k])] = here;
	}
	free(at);
	free(nsr);
	free(param);
	return st;
}

/* Ops that can change by what they add to the error, where nothing better is to be had. */
static enum fettle_status rank_added(struct lab *l, const struct plan *p, bool back, struct op_order *out,
				     struct err *err)
{
	const struct space *space = &l->t->space;
	double *added = xcalloc(space->n_ops, sizeof(*added));
	struct plan whole = PLAN_INIT;
	enum fettle_status st;
	size_t i;

	plan_copy(&whole, p);
	if (back)
		put_back_all(l, &whole);
	st = added_errors(l, &whole, added, err);
	for (i = 0; i < space->n_ops && !st; i++)
		if (back ? whole.choice[i] != p->choice[i] : plan_can_fall_back(p, space, i))
			op_order_add(out, i, added[i]);
	plan_release(&whole);
	free(added);
	return st;
}

/* relative squared error of the model's outputs under a plan */
static enum fettle_status output_error(struct lab *l, const struct plan *p, const struct reference *ref,
				       size_t batches, double *out, struct err *err)
{
	struct comparison c = { ref, xcalloc(ref->per_batch, sizeof(double)),
				xcalloc(ref->per_batch, sizeof(double)) };
	struct session *s;
	enum fettle_status st;

	st = lab_session(l, p, WEIGHTS_NEAREST, &s, err);
	if (!st)
		st = run_batches(l, s, batches, compare_outputs, &c, err);
	*out = comparison_error(l, &c);
	free(c.noise);
	free(c.signal);
	return st;
}

enum fettle_status lab_estimate(void *self, const struct plan *p, int batches, double *error, struct err *err)
{
	struct lab *l = self;
	struct lab_times before = l->times;
	double start = clock_now();
	enum fettle_status st = FETTLE_OK;

	if (!l->scored.per_batch)
		st = run_batches(l, l->fp32, (size_t)batches, keep_outputs, &l->scored, err);
	if (!st)
		st = output_error(l, p, &l->scored, (size_t)batches, error, err);
	lab_count_as_rank(l, &before, start);
	return st;
}

/* ---- several: a piece is a plan ---- */

struct errors {
	struct lab *l;
	int batches;
	struct plan *plans;
	size_t n;
};

static void close_errors(void *self)
{
	struct errors *x = self;
	size_t i;

	for (i = 0; i < x->n; i++)
		plan_release(&x->plans[i]);
	free(x->plans);
	free(x);
}

static enum fettle_status open_errors(struct lab *l, struct wire *what, void **out, struct err *err)
{
	struct errors *x = xcalloc(1, sizeof(*x));
	enum fettle_status st = FETTLE_OK;
	size_t n;

	x->l = l;
	x->batches = (int)wire_count(what);
	for (n = (size_t)wire_count(what); x->n < n && !st && !what->bad;) {
		x->plans = xrealloc(x->plans, x->n + 1, sizeof(*x->plans));
		x->plans[x->n] = (struct plan)PLAN_INIT;
		st = plan_read(&x->plans[x->n++], &l->t->space, wire_text(what), "of rank 0", err);
	}
	if (!st && what->bad)
		st = fail(err, FETTLE_SYSTEM, "cannot read what rank 0 sent: it is not complete");
	if (st)
		close_errors(x);
	else
		*out = x;
	return st;
}

static enum fettle_status run_error(void *self, size_t i, struct str *answer, struct err *err)
{
	struct errors *x = self;
	double error = INFINITY;
	enum fettle_status st = i < x->n ? lab_estimate(x->l, &x->plans[i], x->batches, &error, err)
					 : fail(err, FETTLE_SYSTEM, "there is no plan %zu", i);

	if (st == FETTLE_UNSUPPORTED || st == FETTLE_BACKEND) { /* this plan cannot be had */
		error = INFINITY;
		st = FETTLE_OK;
	}
	wire_put_real(answer, error);
	return st;
}

const struct piece_work error_work = { open_errors, run_error, close_errors };

enum fettle_status lab_estimate_all(void *self, const struct plan *plans, size_t n, int batches,
				    double *errors, struct err *err)
{
	struct lab *l = self;
	size_t *list = xcalloc(n, sizeof(*list)), i;
	struct str what = STR_INIT;
	struct pieces pieces;
	enum fettle_status st;

	if (!l->ranks) {
		free(list);
		return FETTLE_UNSUPPORTED;
	}
	wire_put_count(&what, (uint64_t)batches);
	wire_put_count(&what, n);
	for (i = 0; i < n; i++) {
		char *text = plan_text(&plans[i], &l->t->space);

		wire_put_text(&what, text);
		free(text);
		list[i] = i;
	}
	pieces_begin(&pieces, l, PIECES_ERRORS, what);
	st = pieces_run(&pieces, list, n, take_score, errors, err);
	pieces_end(&pieces);
	free(list);
	return st;
}

enum fettle_status lab_rank(void *self, const struct plan *p, enum rank by, int batches, struct op_order *out,
			    struct err *err)
{
	struct lab *l = self;
	double start = clock_now();
	struct lab_times before = l->times;
	enum fettle_status st;
	size_t n = batches > 0 ? (size_t)batches : 2;

	lab_phase(l, "rank ops");
	switch (by) {
	case RANK_OUTPUT_MSE:
		st = rank_outputs(l, p, out, err);
		break;
	case RANK_IMPACT:
	case RANK_IMPACT_BACK:
		st = rank_impact(l, p, by == RANK_IMPACT_BACK, n, out, err);
		if (st == FETTLE_UNSUPPORTED || st == FETTLE_BACKEND)
			st = rank_added(l, p, by == RANK_IMPACT_BACK, out, err);
		if (!st && by == RANK_IMPACT)
			modes_keep_errors(l, p, out);
		break;
	case RANK_SECONDS:
		st = rank_seconds(l, p, out, err);
		break;
	case RANK_WORTH:
	case RANK_ALONE:
	case RANK_DYNAMIC:
		st = rank_by_prices(l, p, by, out, err);
		break;
	default:
		st = rank_hessian(l, p, n, out, err);
	}
	lab_count_as_rank(l, &before, start);
	lab_phase(l, LAB_TRIAL);
	return st;
}
