#include "finetune/finetune.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "finetune/method.h"

/* what gram may have, however small the cache */
static const size_t least_memory = (size_t)64 << 20;

/* samples at a time for passes that only look */
enum { LOOK = 32 };

static double cpu_now(void)
{
	return (double)clock() / CLOCKS_PER_SEC;
}

enum fettle_status work_error(struct work *w, size_t first, size_t end, double *out, struct err *err)
{
	struct residuals r = { .sum = xcalloc(layer_outputs(w->l), sizeof(double)) };
	enum fettle_status st = capture_residuals(w->c, w->m, first, end, &r, err);

	*out = r.signal > 0 ? r.squares / r.signal : r.squares;
	free(r.sum);
	return st;
}

enum fettle_status fit_shift(struct work *w, struct err *err)
{
	const size_t outputs = layer_outputs(w->l);
	struct residuals r = { .sum = xcalloc(outputs, sizeof(double)) };
	enum fettle_status st = FETTLE_OK;
	size_t o;

	memset(w->l->shift, 0, outputs * sizeof(double));
	if (w->o->update_bias && w->l->takes_shift) {
		st = capture_residuals(w->c, w->m, 0, w->c->n_train, &r, err);
		for (o = 0; o < outputs && !st; o++)
			w->l->shift[o] = -r.sum[o] / r.count;
	}
	free(r.sum);
	return st;
}

/* a matrix has many rows per sample */
static size_t units_per_sample(const struct capture *c)
{
	size_t n = c->v[0].n / (c->samples < c->per_batch ? c->samples : c->per_batch);

	return n ? n : 1;
}

static enum fettle_status solve(struct work *w, struct err *err)
{
	enum fettle_status st;

	if (w->o->algorithm == FINETUNE_GRAM)
		return gram(w, err);
	st = w->o->algorithm == FINETUNE_ADAROUND ? adaround(w, err) : adaquant(w, err);
	return st ? st : fit_shift(w, err);
}

/* what the layer is, to go back to */
struct backup {
	float *level, *scale;
};

static void restore(struct layer *l, const struct backup *b)
{
	memcpy(l->level, b->level, layer_weights(l) * sizeof(float));
	memcpy(l->scale, b->scale, layer_outputs(l) * sizeof(float));
	memset(l->shift, 0, layer_outputs(l) * sizeof(double));
}

/* do the biases fit 32 bits? quantize() widens scales for that, but not those that were chosen here */
static bool biases_fit(const struct layer *l)
{
	size_t o;

	for (o = 0; o < layer_outputs(l); o++)
		if (!(fabs((double)l->bias[o] + l->shift[o]) <=
		      2.1e9 * (double)l->input.scale * (double)l->scale[o]))
			return false;
	return true;
}

/* the layer, tuned, unless it got no better */
static enum fettle_status tune_layer(struct work *w, struct finetune_op *r, struct err *err)
{
	struct layer *l = w->l;
	struct backup old = { xcalloc(layer_weights(l), sizeof(float)),
			      xcalloc(layer_outputs(l), sizeof(float)) };
	double start, captured, primitives;
	enum fettle_status st;

	memcpy(old.level, l->level, layer_weights(l) * sizeof(float));
	memcpy(old.scale, l->scale, layer_outputs(l) * sizeof(float));
	st = work_error(w, w->c->held, w->c->n, &r->before, err);
	if (!st)
		st = work_error(w, 0, w->c->n_train, &r->train_before, err);
	start = cpu_now();
	captured = w->c->seconds;
	primitives = w->m->seconds;
	if (!st)
		st = solve(w, err);
	r->capture_s = w->c->seconds;
	r->solve_s = cpu_now() - start - (w->c->seconds - captured);
	r->primitives_s = w->m->seconds - primitives;
	if (!st)
		st = work_error(w, w->c->held, w->c->n, &r->after, err);
	if (!st)
		st = work_error(w, 0, w->c->n_train, &r->train_after, err);
	r->kept = !st && ((w->o->selective_update && !(r->after < r->before)) || !biases_fit(l));
	if (r->kept)
		restore(l, &old);
	free(old.level);
	free(old.scale);
	return st;
}

/* what a layer is looked at with */
static enum fettle_status work_open(struct work *w, const struct finetune_source *s, size_t node,
				    struct model *quantized, const char *input, struct err *err)
{
	enum fettle_status st =
		capture_open(w->c, s, w->l, s->s->m->nodes.v[node], quantized, input, w->o, err);

	if (st)
		return st;
	w->run = units_per_sample(w->c);
	return math_new(&w->m, w->l, w->run * (w->o->algorithm == FINETUNE_GRAM ? LOOK : w->o->batch_size),
			err);
}

enum fettle_status finetune_error(struct quantizer *q, const struct qplan *plan,
				  const struct finetune_source *s, const struct rounding *r, size_t node,
				  double *out, struct err *err)
{
	const struct finetune o = finetune_defaults(FINETUNE_GRAM);
	struct trace *traces = xcalloc(s->s->m->nodes.n, sizeof(*traces));
	struct capture c = { .n = 0 };
	struct layer l = { .name = NULL };
	struct work w = { .c = &c, .l = &l, .o = &o };
	const struct rounded *own = r->v[node];
	struct model *m = NULL;
	enum fettle_status st;

	st = quantize_rounded(q, plan, NULL, traces, &m, err);
	if (st)
		goto out;
	if (own)
		traces[node].w = &own->w;
	st = layer_open(&l, s->s, node, &traces[node], &plan->ops[node].weight, err);
	if (!st && own && own->shift)
		memcpy(l.shift, own->shift, own->n_shift * sizeof(double));
	if (!st)
		st = work_open(&w, s, node, m, traces[node].input, err);
	if (!st)
		st = work_error(&w, 0, c.n, out, err);
out:
	math_free(w.m);
	capture_close(&c);
	layer_release(&l);
	model_free(m);
	free(traces);
	return st;
}

static enum fettle_status tune_op(const struct finetune_source *s, const struct qplan *plan, size_t node,
				  struct model *quantized, const struct trace *t, struct rounding *out,
				  struct finetune_op *r, struct err *err)
{
	const struct finetune *o = &plan->recipes.finetune;
	struct capture c = { .n = 0 };
	struct layer l = { .name = NULL };
	struct work w = { .c = &c, .l = &l, .o = o, .seed = o->seed * 1000003 + node };
	enum fettle_status st;

	st = layer_open(&l, s->s, node, t, &plan->ops[node].weight, err);
	if (!st && o->algorithm == FINETUNE_GRAM && gram_bytes(&l) > least_memory &&
	    gram_bytes(&l) > s->cache && s->cache) {
		r->left = "its Gram matrix does not fit the cache";
		layer_release(&l);
		return FETTLE_OK;
	}
	if (!st)
		st = work_open(&w, s, node, quantized, t->input, err);
	if (!st)
		st = tune_layer(&w, r, err);
	if (!st && !r->kept)
		layer_store(&l, out, node);
	math_free(w.m);
	capture_close(&c);
	layer_release(&l);
	return st;
}

static enum fettle_status check_options(const struct finetune *o, struct err *err)
{
	if (o->algorithm == FINETUNE_GRAM && o->drop_ratio < 1)
		return fail(err, FETTLE_INVALID,
			    "cannot fine-tune: DropRatio %g, but gram takes the quantized inputs only (1)",
			    o->drop_ratio);
	if (o->algorithm == FINETUNE_ADAROUND && !(o->beta_range[0] > 0 && o->beta_range[1] > 0))
		return fail(err, FETTLE_INVALID, "cannot fine-tune: BetaRange, need two numbers over 0");
	if (o->algorithm != FINETUNE_GRAM && (!o->batch_size || !o->iterations || !(o->learning_rate > 0)))
		return fail(err, FETTLE_INVALID,
			    "cannot fine-tune: BatchSize %zu, NumIterations %zu, LearningRate %g, need more "
			    "than 0",
			    o->batch_size, o->iterations, o->learning_rate);
	return FETTLE_OK;
}

enum fettle_status finetune(struct quantizer *q, const struct qplan *asked, const struct finetune_source *s,
			    struct rounding **out, struct finetune_report *report, struct err *err)
{
	const size_t n = s->s->m->nodes.n;
	struct rounding *r = rounding_new(n);
	struct trace *traces = xcalloc(n, sizeof(*traces));
	struct qplan plan = *asked;
	struct model *m = NULL;
	int threads = math_threads(1);
	enum fettle_status st;
	size_t i;

	plan.format = FORMAT_QDQ; /* the same integers, and values that can be looked at */
	st = check_options(&plan.recipes.finetune, err);
	if (!st)
		st = quantize_rounded(q, &plan, NULL, traces, &m, err);
	for (i = 0; i < n && !st; i++) {
		struct finetune_op op = { .name = s->s->ops.v[i].name };

		if (s->progress && !s->progress(s->self, i, n)) {
			st = fail(err, FETTLE_STOP, "fine-tuning was stopped");
			break;
		}
		if (!traces[i].w || (s->only && !s->only[i]))
			continue;
		if (layer_possible(s->s, i, &op.left)) {
			st = tune_op(s, &plan, i, m, &traces[i], r, &op, err);
			if (!st && r->v[i]) {
				model_free(m);
				m = NULL;
				st = quantize_rounded(q, &plan, r, traces, &m, err);
			}
		}
		if (report && !st)
			VEC_PUSH(&report->ops, op);
	}
	math_threads(threads);
	model_free(m);
	free(traces);
	if (st)
		rounding_free(r);
	else
		*out = r;
	return st;
}
