/* HAWQ-V2 (Dong et al. 2019, arXiv:1911.03852): the Hessian's trace by Hutchinson's estimator with Rademacher
 * vectors; v'Hv is the second difference of the loss along v, so no gradients are needed. */
#include "tune/compare.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "quantize/weights.h"
#include "tune/pieces.h"

enum { HUTCHINSON_VECTORS = 3 };

struct loss {
	double sum;
	const struct lab_options *o;
	size_t scores;               /* the output that the labels are of */
	const struct reference *ref; /* without labels: squared error against the fp32 outputs */
};

static const char *const losses[] = { "cross_entropy", "mse" };

const char *hawq_loss_find(const char *name)
{
	size_t i;

	for (i = 0; i < ARRAY_LEN(losses); i++)
		if (strcasecmp(name, losses[i]) == 0)
			return losses[i];
	return NULL;
}

static double cross_entropy(const struct tensor *logits, const struct tensor *labels, size_t valid)
{
	size_t classes = (size_t)logits->dims[logits->rank - 1], i, k;
	double sum = 0;

	for (i = 0; i < valid; i++) {
		const float *x = (const float *)logits->data + i * classes;
		double total = 0, label = tensor_get(labels, i);
		float top = x[0]; /* fmax() of float and double breaks gcc 12 on arm64 */

		for (k = 1; k < classes; k++)
			top = fmaxf(top, x[k]);
		for (k = 0; k < classes; k++)
			total += exp((double)x[k] - top);
		if (label >= 0 && label < (double)classes)
			sum += log(total) + top - x[(size_t)label];
	}
	return sum;
}

static void add_loss(void *self, size_t batch, const struct feed_batch *b, const struct tensor *out, size_t n)
{
	struct loss *loss = self;
	const bool squared = loss->o->hawq_loss && strcmp(loss->o->hawq_loss, "mse") == 0;
	size_t k, i;

	if (loss->o->own_loss) {
		loss->sum += loss->o->own_loss(loss->o->own_loss_self, out,
					       &loss->ref->v.v[batch * loss->ref->per_batch],
					       n < loss->ref->per_batch ? n : loss->ref->per_batch,
					       b->labels.data ? &b->labels : NULL, b->valid);
		return;
	}
	if (!squared && b->labels.data && out[loss->scores].rank == 2 && out[loss->scores].dtype == DT_F32 &&
	    tensor_count(&b->labels) == (int64_t)b->valid) {
		loss->sum += cross_entropy(&out[loss->scores], &b->labels, b->valid);
		return;
	}
	for (i = 0; i < n && i < loss->ref->per_batch; i++) {
		const struct tensor *ref = &loss->ref->v.v[batch * loss->ref->per_batch + i];

		for (k = 0; ref->data && k < (size_t)tensor_count(ref); k++) {
			double d = tensor_get(&out[i], k) - tensor_get(ref, k);

			loss->sum += d * d;
		}
	}
}

/* The fp32 model with every weight an input, so that one session serves all perturbations. */
struct probe {
	struct model *m;
	struct session *s;
	const float **weights; /* as they are, parallel to the session's last inputs */
	struct tensor *types;
	size_t n_data, n;
	size_t batches; /* that the loss is summed over */
	const struct reference *ref;
	double middle; /* the loss at the weights as they are */
};

static void probe_release(struct probe *p)
{
	session_free(p->s);
	model_free(p->m);
	free(p->weights);
	free(p->types);
}

static enum fettle_status probe_open(struct probe *p, struct lab *l, const char *const *names, size_t n,
				     struct err *err)
{
	struct session_options so = { .threads = l->o.threads };
	enum fettle_status st = FETTLE_OK;
	size_t i;

	p->m = model_derive(l->s->m);
	p->weights = xcalloc(n, sizeof(*p->weights));
	p->types = xcalloc(n, sizeof(*p->types));
	p->n_data = l->s->m->n_inputs;
	p->n = n;
	for (i = 0; i < n && !st; i++) {
		struct init *w = model_init(p->m, names[i]);

		st = model_weight(p->m, w, err);
		p->weights[i] = w->t.data;
		p->types[i] = w->t;
	}
	for (i = 0; i < n && !st; i++)
		model_init_to_input(p->m, names[i]);
	return st ? st : session_new(&p->s, l->rt, p->m, &so, err);
}

/* with weight `which` at `at`, the others as they are */
static enum fettle_status run_probe(struct lab *l, struct probe *p, size_t which, const float *at,
				    take_fn take, void *self, struct err *err)
{
	struct tensor *in = xcalloc(p->n_data + p->n, sizeof(*in));
	struct tensor *results = xcalloc(session_n_outputs(p->s), sizeof(*results));
	struct feed *feed = scoring_feed(l);
	struct feed_batch b = FEED_BATCH_INIT;
	enum fettle_status st = FETTLE_OK;
	size_t i, k;

	for (i = 0; i < p->batches && i < feed_batches(feed) && !st; i++) {
		st = lab_stopped(l) ? fail(err, FETTLE_STOP, "stopped") : feed_read(feed, i, &b, err);
		if (st)
			break;
		memcpy(in, b.inputs, p->n_data * sizeof(*in));
		for (k = 0; k < p->n; k++) {
			in[p->n_data + k] = p->types[k];
			in[p->n_data + k].data = (void *)(uintptr_t)(k == which ? at : p->weights[k]);
		}
		st = session_run(p->s, in, results, err);
		if (!st)
			take(self, i, &b, results, session_n_outputs(p->s));
	}
	feed_batch_release(&b);
	free(in);
	free(results);
	return st;
}

static enum fettle_status loss_at(struct lab *l, struct probe *p, size_t which, const float *at, double *out,
				  struct err *err)
{
	struct loss loss = { 0, &l->o, l->metric ? metric_first_output(l->metric) : 0, p->ref };
	enum fettle_status st = run_probe(l, p, which, at, add_loss, &loss, err);

	*out = loss.sum;
	return st;
}

/* average over the weight's elements of the diagonal of the Hessian */
static enum fettle_status average_trace(struct lab *l, struct probe *p, size_t which, double *out,
					struct err *err)
{
	size_t n = (size_t)tensor_count(&p->types[which]), i;
	const float *x = p->weights[which];
	float *moved[2] = { xmalloc(n * sizeof(float)), xmalloc(n * sizeof(float)) };
	double sum = 0, step = 0, loss[2] = { 0, 0 };
	enum fettle_status st = FETTLE_OK;
	struct rng rng;
	int k, side;

	rng_seed(&rng, which + 1); /* of its own: whoever works it out, and after whatever else */
	for (i = 0; i < n; i++)
		step += fabs((double)x[i]);
	step = step > 0 ? 1e-2 * step / (double)n : 1e-3; /* small, but far above rounding */
	for (k = 0; k < HUTCHINSON_VECTORS && !st; k++) {
		for (i = 0; i < n; i++) { /* a Rademacher vector */
			float v = rng_next(&rng) >> 63 ? (float)step : -(float)step;

			moved[0][i] = x[i] + v;
			moved[1][i] = x[i] - v;
		}
		for (side = 0; side < 2 && !st; side++)
			st = loss_at(l, p, which, moved[side], &loss[side], err);
		sum += (loss[0] - 2 * p->middle + loss[1]) / (step * step);
	}
	*out = sum / HUTCHINSON_VECTORS / (double)n;
	free(moved[0]);
	free(moved[1]);
	return st;
}

/* squared distance of the weight from its quantized self, under the op's setting in the plan */
static enum fettle_status weight_error(struct lab *l, const struct qplan *q, size_t node, double *out,
				       struct err *err)
{
	const struct op *op = &l->s->ops.v[node];
	const struct node *n = l->s->m->nodes.v[node];
	struct init *w = model_init(l->s->m, n->in[op->rule->weight]);
	enum fettle_status st;

	st = model_weight(l->s->m, w, err);
	if (!st)
		st = quantization_error(&w->t, &q->ops[node].weight, op_weight_axis(n), out, err);
	return st;
}

/* the ops that have a constant weight, and those weights, each once */
static size_t list_weights(const struct lab *l, const struct plan *p, size_t *op, size_t *weight,
			   const char **names)
{
	const struct space *space = &l->t->space;
	struct map seen = MAP_INIT;
	size_t i, n = 0, n_names = 0;

	for (i = 0; i < space->n_ops; i++) {
		size_t node = l->t->node[i], known;
		const struct op_rule *r = l->s->ops.v[node].rule;
		const struct node *nd = l->s->m->nodes.v[node];

		if (!plan_can_fall_back(p, space, i) || r->weight < 0 || r->kind != OP_COMPUTE ||
		    (int)nd->n_in <= r->weight || !model_init(l->s->m, nd->in[r->weight]))
			continue;
		known = map_get(&seen, nd->in[r->weight]);
		if (known == MAP_NONE) {
			known = n_names;
			names[n_names] = nd->in[r->weight];
			map_set(&seen, names[n_names], n_names);
			n_names++;
		}
		op[n] = i;
		weight[n++] = known;
	}
	names[n_names] = NULL;
	map_release(&seen);
	return n;
}

/* ---- a piece is an op ---- */

struct traces {
	struct lab *l;
	struct plan plan;
	struct qplan q;
	size_t *op, *weight, n;
	const char **names;
	struct reference ref;
	struct probe probe;
};

static void list_ops(struct traces *t)
{
	const size_t most = t->l->t->space.n_ops + 1;

	t->op = xcalloc(most, sizeof(*t->op));
	t->weight = xcalloc(most, sizeof(*t->weight));
	t->names = xcalloc(most, sizeof(*t->names));
	t->n = list_weights(t->l, &t->plan, t->op, t->weight, t->names);
}

static void close_traces(void *self)
{
	struct traces *t = self;

	probe_release(&t->probe);
	qplan_release(&t->q);
	plan_release(&t->plan);
	reference_release(&t->ref);
	free(t->op);
	free(t->weight);
	free(t->names);
	free(t);
}

static enum fettle_status probe_weights(struct traces *t, struct err *err)
{
	struct probe *p = &t->probe;
	size_t n = 0;
	enum fettle_status st;

	list_ops(t);
	while (t->names[n])
		n++;
	st = probe_open(p, t->l, t->names, n, err);
	if (!st)
		st = run_probe(t->l, p, SIZE_MAX, NULL, keep_outputs, &t->ref, err);
	if (!st)
		st = loss_at(t->l, p, SIZE_MAX, NULL, &p->middle, err);
	if (!st && !isfinite(p->middle))
		st = fail(err, FETTLE_INVALID, "cannot rank ops: hawq_v2_loss of the fp32 model is %g",
			  p->middle);
	return st;
}

static enum fettle_status open_traces(struct lab *l, struct wire *what, void **out, struct err *err)
{
	struct traces *t = xcalloc(1, sizeof(*t));
	enum fettle_status st;

	t->l = l;
	t->probe.ref = &t->ref;
	st = plan_read(&t->plan, &l->t->space, wire_text(what), "of rank 0", err);
	t->probe.batches = (size_t)wire_count(what);
	if (!st) {
		tuning_qplan(l->t, &t->plan, &t->q);
		st = probe_weights(t, err);
	}
	if (st)
		close_traces(t);
	else
		*out = t;
	return st;
}

static enum fettle_status run_trace(void *self, size_t i, struct str *answer, struct err *err)
{
	struct traces *t = self;
	double trace = 0, error = 0;
	enum fettle_status st = weight_error(t->l, &t->q, t->l->t->node[t->op[i]], &error, err);

	if (!st)
		st = average_trace(t->l, &t->probe, t->weight[i], &trace, err);
	wire_put_real(answer, fmax(trace, 0) * error);
	return st;
}

const struct piece_work trace_work = { open_traces, run_trace, close_traces };

enum fettle_status rank_hessian(struct lab *l, const struct plan *p, size_t batches, struct op_order *out,
				struct err *err)
{
	struct traces t = { .l = l, .plan = *p };
	struct pieces pieces;
	size_t *list, i;
	double *score;
	enum fettle_status st;

	list_ops(&t);
	list = xcalloc(t.n + 1, sizeof(*list));
	score = xcalloc(t.n + 1, sizeof(*score));
	for (i = 0; i < t.n; i++)
		list[i] = i;
	pieces_begin(&pieces, l, PIECES_TRACES, what_of_plan(l, p, batches));
	st = pieces_run(&pieces, list, t.n, take_score, score, err);
	pieces_end(&pieces);
	for (i = 0; i < t.n && !st; i++)
		op_order_add(out, t.op[i], score[i]);
	free(list);
	free(score);
	free(t.op);
	free(t.weight);
	free(t.names);
	return st;
}
