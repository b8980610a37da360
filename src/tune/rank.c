/* Scores of ops that cost no trial: a few batches each. */
#include "tune/compare.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"

enum { MSE_BATCHES = 4 };

void op_order_add(struct op_order *o, size_t op, double score)
{
	o->op = xrealloc(o->op, o->n + 1, sizeof(*o->op));
	o->score = xrealloc(o->score, o->n + 1, sizeof(*o->score));
	o->op[o->n] = op;
	o->score[o->n++] = score;
}

static enum fettle_status rank_outputs(struct lab *l, const struct plan *p, struct op_order *out,
				       struct err *err)
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

	st = lab_model(l, p, &m, err);
	if (st)
		goto out;
	graph_index_init(&g, m);
	for (i = 0; i < space->n_ops; i++) {
		const struct node *node = l->s->m->nodes.v[l->t->node[i]];
		size_t v = quantized_output(&l->s->g, node->out[0]);

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
		st = expose_and_run(l, l->s->m, fp32, n, MSE_BATCHES, keep_outputs, &ref, err);
	if (n && !st)
		st = expose_and_run(l, m, quantized, n, MSE_BATCHES, compare_outputs, &c, err);
	for (i = 0; i < n && !st; i++)
		op_order_add(out, op[i], c.signal[i] > 0 ? c.noise[i] / c.signal[i] : c.noise[i]);
out:
	reference_release(&ref);
	free(fp32);
	free(quantized);
	free(op);
	free(c.noise);
	free(c.signal);
	return st;
}

/* relative squared error of the model's outputs under a plan */
static enum fettle_status output_error(struct lab *l, const struct plan *p, const struct reference *ref,
				       size_t batches, double *out, struct err *err)
{
	struct comparison c = { ref, xcalloc(ref->per_batch, sizeof(double)),
				xcalloc(ref->per_batch, sizeof(double)) };
	double noise = 0, signal = 0;
	struct session *s;
	enum fettle_status st;
	size_t i;

	st = lab_session(l, p, &s, err);
	if (!st)
		st = run_batches(l, s, batches, compare_outputs, &c, err);
	for (i = 0; i < ref->per_batch; i++) {
		noise += c.noise[i];
		signal += c.signal[i];
	}
	*out = signal > 0 ? noise / signal : noise;
	free(c.noise);
	free(c.signal);
	return st;
}

static enum fettle_status rank_impact(struct lab *l, const struct plan *p, bool back, size_t batches,
				      struct op_order *out, struct err *err)
{
	const struct space *space = &l->t->space;
	struct reference ref = { .per_batch = 0 };
	struct plan q = PLAN_INIT;
	double base = 0, error;
	enum fettle_status st;
	size_t i;

	st = run_batches(l, l->fp32, batches, keep_outputs, &ref, err);
	if (!st && plan_n_quantized(p, space))
		st = output_error(l, p, &ref, batches, &base, err);
	for (i = 0; i < space->n_ops && !st; i++) {
		const struct param *param = &space->v[i];
		bool quantized = plan_is_quantized(p, space, i);

		if (back ? quantized || param->n_options < 2 : !plan_can_fall_back(p, space, i))
			continue;
		plan_copy(&q, p);
		q.choice[i] = !back ? param->fallback : param->first != param->fallback ? param->first : 0;
		if (!back && plan_n_quantized(&q, space) == 0)
			error = 0; /* the fp32 model */
		else
			st = output_error(l, &q, &ref, batches, &error, err);
		if (st == FETTLE_UNSUPPORTED ||
		    st == FETTLE_BACKEND) { /* this one cannot be had: last in line */
			op_order_add(out, i, back ? INFINITY : -INFINITY);
			st = FETTLE_OK;
			continue;
		}
		op_order_add(out, i, back ? error - base : base - error);
	}
	plan_release(&q);
	reference_release(&ref);
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

	switch (by) {
	case RANK_OUTPUT_MSE:
		st = rank_outputs(l, p, out, err);
		break;
	case RANK_IMPACT:
	case RANK_IMPACT_BACK:
		st = rank_impact(l, p, by == RANK_IMPACT_BACK, n, out, err);
		break;
	default:
		st = rank_hessian(l, p, n, out, err);
	}
	l->times = before; /* scoring is its own phase, whatever it is made of */
	l->times.rank += clock_now() - start;
	return st;
}
