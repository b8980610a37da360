#include "finetune/finetune.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "finetune/block.h"
#include "finetune/method.h"

/* what gram may have, however small the cache */
static const size_t least_memory = (size_t)64 << 20;

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

enum fettle_status tell_progress(const struct finetune_source *s, size_t node, struct err *err)
{
	if (s->progress && !s->progress(s->self, node, s->s->m->nodes.n))
		return fail(err, FETTLE_STOP, "fine-tuning was stopped");
	return FETTLE_OK;
}

enum fettle_status fit_shift(struct work *w, struct err *err)
{
	const size_t outputs = layer_outputs(w->l);
	struct residuals r = { .sum = xcalloc(outputs, sizeof(double)) };
	enum fettle_status st = FETTLE_OK;
	size_t o;

	memset(w->l->shift, 0, outputs * sizeof(double));
	if (w->o->update_bias && w->l->takes_shift) {
		st = capture_residuals(w->c, w->m, 0, w->c->split.n_train, &r, err);
		for (o = 0; o < outputs && !st; o++)
			w->l->shift[o] = -r.sum[o] / r.count;
	}
	free(r.sum);
	return st;
}

/* a matrix has many rows per sample */
static size_t units_per_sample(const struct capture *c)
{
	size_t n =
		c->v[0].n / (c->split.samples < c->split.per_batch ? c->split.samples : c->split.per_batch);

	return n ? n : 1;
}

static enum fettle_status solve(struct work *w, struct err *err)
{
	struct learner f;
	enum fettle_status st;

	if (w->o->algorithm == FINETUNE_GRAM)
		return gram(w, err);
	f = learner_open(w);
	st = train(w, &f, err);
	f.close(f.self);
	return st ? st : fit_shift(w, err);
}

/* the layer, tuned; r->kept says whether it had better stay as it was */
static enum fettle_status tune_layer(struct work *w, struct finetune_op *r, struct err *err)
{
	const struct split *p = &w->c->split;
	double start, captured, primitives;
	enum fettle_status st;

	st = work_error(w, p->held, p->n, &r->before, err);
	if (!st)
		st = work_error(w, 0, p->n_train, &r->train_before, err);
	start = cpu_now();
	captured = w->c->seconds;
	primitives = w->m->seconds;
	if (!st)
		st = solve(w, err);
	r->capture_s = w->c->seconds;
	r->solve_s = cpu_now() - start - (w->c->seconds - captured);
	r->primitives_s = w->m->seconds - primitives;
	if (!st)
		st = work_error(w, p->held, p->n, &r->after, err);
	if (!st)
		st = work_error(w, 0, p->n_train, &r->train_after, err);
	r->kept = !st && ((w->o->selective_update && !(r->after < r->before)) || !layer_biases_fit(w->l));
	return st;
}

/*
 * Images can be passed where they lie, one by one. That saves copying them together and keeps them in the cache
 * between passes, but it costs adding up the gradients: little, where these are few.
 */
static bool one_by_one(const struct work *w)
{
	return !w->l->is_matrix && w->o->drop_ratio >= 1 &&
	       layer_x_size(w->l) + layer_y_size(w->l) >= 4 * layer_weights(w->l);
}

/* what a layer is looked at with */
static enum fettle_status work_open(struct work *w, const struct finetune_source *s, size_t node,
				    struct model *quantized, const char *input, const struct aside *aside,
				    struct err *err)
{
	const struct capture_of of = { s->s->m->nodes.v[node], quantized, input, aside, w->o };
	enum fettle_status st = capture_open(w->c, s, w->l, &of, err);
	const bool learns = w->o->algorithm != FINETUNE_GRAM; /* or else passes only look */
	size_t units;

	if (st)
		return st;
	w->run = units_per_sample(w->c);
	units = learns ? w->run * w->o->batch_size : w->c->v[0].n;
	w->passes = learns && one_by_one(w) ? units : 1;
	return math_new(&w->m, w->l, units / w->passes, err);
}

enum fettle_status quantize_rounded(const struct finetune_source *s, const struct qplan *plan,
				    const struct rounding *r, struct trace *traces, struct model **out,
				    struct err *err)
{
	const struct knowledge k = { .values = s->values, .rounding = r };

	return quantize_traced(s->s->z, &k, plan, traces, out, err);
}

enum fettle_status finetune_error(const struct qplan *plan, const struct finetune_source *s,
				  const struct rounding *r, size_t node, double *out, struct err *err)
{
	const struct finetune o = finetune_defaults(FINETUNE_GRAM);
	struct trace *traces = xcalloc(s->s->m->nodes.n, sizeof(*traces));
	struct capture c = { .bytes = 0 };
	struct layer l = { .name = NULL };
	struct work w = { .c = &c, .l = &l, .o = &o };
	const struct rounded *own = r->v[node];
	struct model *m = NULL;
	int threads = math_threads(1);
	enum fettle_status st;

	st = quantize_rounded(s, plan, NULL, traces, &m, err);
	if (st)
		goto out;
	if (own)
		traces[node].w = &own->w;
	st = layer_open(&l, s->s, node, &traces[node], &plan->ops[node].weight, err);
	if (!st && own && own->shift)
		memcpy(l.shift, own->shift, own->n_shift * sizeof(double));
	if (!st)
		st = work_open(&w, s, node, m, traces[node].input, NULL, err);
	if (!st)
		st = work_error(&w, 0, c.split.n, out, err);
out:
	math_free(w.m);
	capture_close(&c);
	layer_release(&l);
	model_free(m);
	free(traces);
	math_threads(threads);
	return st;
}

enum fettle_status finetune_shift(const struct qplan *plan, const struct finetune_source *s,
				  struct rounding *r, size_t node, struct err *err)
{
	struct finetune o = plan->recipes.finetune;
	struct trace *traces = xcalloc(r->n, sizeof(*traces));
	struct capture c = { .bytes = 0 };
	struct layer l = { .name = NULL };
	struct work w = { .c = &c, .l = &l, .o = &o };
	struct model *m = NULL;
	enum fettle_status st;

	o.drop_ratio = 1;
	st = quantize_rounded(s, plan, r, traces, &m, err);
	if (!st)
		st = layer_open(&l, s->s, node, &traces[node], &plan->ops[node].weight, err);
	if (!st)
		st = work_open(&w, s, node, m, traces[node].input, NULL, err);
	if (!st)
		st = fit_shift(&w, err);
	if (!st && layer_biases_fit(&l))
		layer_store(&l, r, node);
	else if (!st)
		r->v[node] = NULL;
	math_free(w.m);
	capture_close(&c);
	layer_release(&l);
	model_free(m);
	free(traces);
	return st;
}

/* One run over a model. */
struct tuner {
	struct qplan plan;
	const struct finetune_source *s;
	struct model *m; /* quantized, as rounded so far */
	struct trace *traces;
	struct rounding *r;
	struct offers offers; /* of the block's ops; without blocks there are none */
	struct finetune_report *report;
};

static bool gram_fits(const struct tuner *t, const struct layer *l)
{
	return gram_bytes(l) <= least_memory || !t->s->cache || gram_bytes(l) <= t->s->cache;
}

static void offer(struct tuner *t, const struct layer *l, size_t node, enum offer as)
{
	if (layer_biases_fit(l))
		layer_store(l, t->offers.v[as], node);
}

/* gram's rounding, from the beginning */
static enum fettle_status offer_gram(struct tuner *t, struct work *w, size_t node, enum offer as,
				     struct err *err)
{
	enum fettle_status st;

	layer_reset(w->l);
	st = gram(w, err);
	if (!st)
		offer(t, w->l, node, as);
	return st;
}

/* what a tuned layer's op may choose from when its block is complete */
static enum fettle_status make_offers(struct tuner *t, struct work *w, size_t node, struct err *err)
{
	struct layer *l = w->l;
	struct finetune o = *w->o;
	struct capture c = { .bytes = 0 };
	struct work by_gram = { .c = w->c, .l = l, .m = w->m, .o = &o };
	struct aside aside;
	enum fettle_status st = FETTLE_OK;

	offer(t, l, node, OFFER_TUNED);
	if (!gram_fits(t, l))
		return st;
	if (o.algorithm != FINETUNE_GRAM)
		st = offer_gram(t, &by_gram, node, OFFER_GRAM, err);
	if (st || !find_aside(t->s->s, node, t->m, &aside))
		return st;
	capture_close(w->c); /* two would not fit the cache */
	o.algorithm = FINETUNE_GRAM;
	o.drop_ratio = 1;
	by_gram.c = &c;
	by_gram.m = NULL;
	st = work_open(&by_gram, t->s, node, t->m, t->traces[node].input, &aside, err);
	if (!st)
		st = offer_gram(t, &by_gram, node, OFFER_ASIDE, err);
	math_free(by_gram.m);
	capture_close(&c);
	return st;
}

static enum fettle_status tune_op(struct tuner *t, size_t node, struct finetune_op *r, struct err *err)
{
	const struct finetune *o = &t->plan.recipes.finetune;
	struct capture c = { .bytes = 0 };
	struct layer l = { .name = NULL };
	struct work w = { .c = &c, .l = &l, .o = o, .node = node, .seed = o->seed * 1000003 + node };
	enum fettle_status st;

	st = layer_open(&l, t->s->s, node, &t->traces[node], &t->plan.ops[node].weight, err);
	if (!st && o->algorithm == FINETUNE_GRAM && !gram_fits(t, &l)) {
		r->left = "its Gram matrix does not fit the cache";
		layer_release(&l);
		return FETTLE_OK;
	}
	if (!st)
		st = work_open(&w, t->s, node, t->m, t->traces[node].input, NULL, err);
	if (!st)
		st = tune_layer(&w, r, err);
	if (!st && !r->kept)
		layer_store(&l, t->r, node);
	if (!st && o->granularity == GRANULARITY_BLOCK)
		st = make_offers(t, &w, node, err);
	math_free(w.m);
	capture_close(&c);
	layer_release(&l);
	return st;
}

/* the model with what is rounded by now */
static enum fettle_status quantize_again(struct tuner *t, struct err *err)
{
	model_free(t->m);
	t->m = NULL;
	return quantize_rounded(t->s, &t->plan, t->r, t->traces, &t->m, err);
}

/* which ops can be tuned, and are to be */
static bool *wanted_ops(const struct tuner *t)
{
	bool *wanted = xcalloc(t->r->n, sizeof(*wanted));
	const char *why;
	size_t i;

	for (i = 0; i < t->r->n; i++)
		wanted[i] =
			t->traces[i].w && (!t->s->only || t->s->only[i]) && layer_possible(t->s->s, i, &why);
	return wanted;
}

/* ops first to last, one by one */
static enum fettle_status tune_ops(struct tuner *t, const struct block *b, struct err *err)
{
	const struct finetune_source *s = t->s;
	enum fettle_status st = FETTLE_OK;
	size_t i;

	for (i = (size_t)b->first; i <= (size_t)b->last && !st; i++) {
		struct finetune_op op = { .name = s->s->ops.v[i].name, .node = i };

		st = tell_progress(s, i, err);
		if (st)
			break;
		if (!t->traces[i].w || (s->only && !s->only[i]))
			continue;
		if (layer_possible(s->s, i, &op.left)) {
			st = tune_op(t, i, &op, err);
			if (!st && t->r->v[i])
				st = quantize_again(t, err);
		}
		if (t->report && !st)
			VEC_PUSH(&t->report->ops, op);
	}
	return st;
}

static enum fettle_status tune_block(struct tuner *t, const struct block *b, const bool *wanted,
				     struct err *err)
{
	struct finetune_block report = { .first = NULL };
	enum fettle_status st;
	int i;

	offers_init(&t->offers, t->r->n);
	st = tune_ops(t, b, err);
	for (i = b->first; i <= b->last; i++)
		if (wanted[i]) {
			report.first = report.first ? report.first : t->s->s->ops.v[i].name;
			report.last = t->s->s->ops.v[i].name;
		}
	if (!st && report.first) {
		st = block_choose(t->s, &(struct block_of){ &t->plan, b, &t->offers }, t->m, t->r, &report,
				  err);
		if (!st)
			st = quantize_again(t, err);
		if (!st && t->report)
			VEC_PUSH(&t->report->blocks, report);
	}
	offers_release(&t->offers);
	return st;
}

static enum fettle_status tune_blocks(struct tuner *t, struct err *err)
{
	bool *wanted = wanted_ops(t);
	struct block *blocks;
	size_t i, n = block_list(t->s->s, wanted, &blocks);
	enum fettle_status st = FETTLE_OK;

	for (i = 0; i < n && !st; i++)
		st = tune_block(t, &blocks[i], wanted, err);
	free(blocks);
	free(wanted);
	return st;
}

/* blocks may have changed what their ops had */
static void report_kept(const struct rounding *r, struct finetune_report *report)
{
	size_t i;

	for (i = 0; report && i < report->ops.n; i++)
		report->ops.v[i].kept = !report->ops.v[i].left && !r->v[report->ops.v[i].node];
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

enum fettle_status finetune(const struct qplan *asked, const struct finetune_source *s, struct rounding **out,
			    struct finetune_report *report, struct err *err)
{
	const size_t n = s->s->m->nodes.n;
	struct tuner t = { .plan = *asked, .s = s, .report = report };
	size_t *batch = &t.plan.recipes.finetune.batch_size;
	int threads = math_threads(1);
	enum fettle_status st;

	t.r = rounding_new(n);
	t.traces = xcalloc(n, sizeof(*t.traces));
	t.plan.format = FORMAT_QDQ; /* the same integers, and values that can be looked at */
	if (*batch > feed_samples(s->feed))
		*batch = feed_samples(s->feed);
	st = check_options(&t.plan.recipes.finetune, err);
	if (!st)
		st = quantize_rounded(s, &t.plan, NULL, t.traces, &t.m, err);
	if (!st && t.plan.recipes.finetune.granularity == GRANULARITY_BLOCK)
		st = tune_blocks(&t, err);
	else if (!st)
		st = tune_ops(&t, &(struct block){ 0, (int)n - 1 }, err);
	math_threads(threads);
	model_free(t.m);
	free(t.traces);
	report_kept(t.r, report);
	if (st)
		rounding_free(t.r);
	else
		*out = t.r;
	return st;
}
