#include "tune/examiner_impl.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/rng.h"
#include "tune/compare.h"
#include "tune/forerun.h"
#include "tune/cutcache.h"
#include "tune/seats.h"

/* Of what is kept: for references, and for what runs ahead; the rest is for activations. */
enum { REFERENCE_SHARE = 4, AHEAD_SHARE = 4 };

void order_free(struct order *o)
{
	if (!o)
		return;
	free(o->place);
	free(o->sample);
	free(o->baseline);
	free(o->weights);
	feed_free(o->feed);
	hard_free(o->hard);
	free(o);
}

static struct order *order_new(const struct feed *feed)
{
	struct order *o = xcalloc(1, sizeof(*o));
	size_t i, numbers = 0;

	o->n = feed_samples(feed);
	o->batch = feed_batch_size(feed);
	o->sample = xcalloc(o->n, sizeof(*o->sample));
	for (i = 0; i < o->n; i++) {
		o->sample[i] = feed_sample(feed, i);
		if (o->sample[i] >= numbers)
			numbers = o->sample[i] + 1;
	}
	o->place = xcalloc(numbers, sizeof(*o->place));
	for (i = 0; i < o->n; i++)
		o->place[o->sample[i]] = i;
	return o;
}

enum fettle_status order_visit(const struct order *o, struct feed *feed, const size_t *wanted, size_t n,
			       struct err *err)
{
	size_t *order = xcalloc(o->n + 1, sizeof(*order)), i;
	enum fettle_status st;

	n = seats_order(o->n, o->batch, wanted, n, order);
	for (i = 0; i < n; i++)
		order[i] = o->sample[order[i]];
	st = feed_set_order(feed, order, n, err);
	free(order);
	return st;
}

const size_t *order_places(const struct order *o, const struct feed_batch *b, size_t **scratch)
{
	size_t i;

	*scratch = xrealloc(*scratch, b->valid + 1, sizeof(**scratch));
	for (i = 0; i < b->valid; i++)
		(*scratch)[i] = o->place[b->index[i]];
	return *scratch;
}

/* ---- what the fp32 model said ---- */

/* A session serves one thread at a time. */
static enum fettle_status ask_fp32(struct recall *r, const struct feed_batch *b, struct tensor *out,
				   struct err *err)
{
	struct lab *l = r->l;
	struct session_options so = lab_trial_options(l);
	enum fettle_status st = FETTLE_OK;

	if (l->o.jobs < 2)
		return session_run_large(l->fp32, b->inputs, out, err);
	if (!r->fp32)
		st = session_open(&r->fp32, l->rt, l->o.model, &so, err);
	return st ? st : session_run_large(r->fp32, b->inputs, out, err);
}

static enum fettle_status recall_run(void *self, const struct feed_batch *b, struct tensor *out,
				     struct err *err)
{
	struct recall *r = self;
	struct lab *l = r->l;
	const size_t *place = order_places(l->examiner->order, b, &r->scratch);
	size_t i;

	if (!l->examiner->n_reference || !rows_have(&l->examiner->reference[0], place, b->valid))
		return ask_fp32(r, b, out, err);
	if (!r->rows)
		r->rows = xcalloc(l->examiner->n_reference, sizeof(*r->rows));
	for (i = 0; i < l->examiner->n_reference; i++) {
		rows_get(&l->examiner->reference[i], place, b->valid, b->n, &r->rows[i]);
		out[i] = r->rows[i].t;
	}
	return FETTLE_OK;
}

struct network recall_network(struct recall *r)
{
	return (struct network){ recall_run, r, session_n_outputs(r->l->fp32) };
}

void recall_release(struct recall *r)
{
	size_t i;

	for (i = 0; r->rows && i < r->l->examiner->n_reference; i++)
		buffer_release(&r->rows[i]);
	session_free(r->fp32);
	free(r->rows);
	free(r->scratch);
	r->fp32 = NULL;
	r->rows = NULL;
	r->scratch = NULL;
}

/* The fp32 session, whose outputs are kept on the way where a metric compares with them. */
struct recorder {
	struct lab *l;
	size_t *scratch;
	bool keep;
};

static void drop_reference(struct examiner *x)
{
	size_t i;

	for (i = 0; i < x->n_reference; i++)
		rows_release(&x->reference[i]);
	free(x->reference);
	x->reference = NULL;
	x->n_reference = 0;
}

void examiner_free(struct examiner *x)
{
	if (!x)
		return;
	drop_reference(x);
	examiner_forget_shown(x);
	VEC_RELEASE(&x->shown);
	cutcache_free(x->cuts);
	map_release(&x->node_macs);
	plan_release(&x->kept);
	free(x->kept_scores);
	order_free(x->order);
	free(x);
}

size_t examiner_samples(const struct examiner *x)
{
	return x->order->n;
}

bool examiner_has_weights(const struct examiner *x)
{
	return x && x->order->weights;
}

static bool start_reference(struct lab *l, const struct feed_batch *b, const struct tensor *out)
{
	size_t n = session_n_outputs(l->fp32), i, bytes = 0;

	for (i = 0; i < n; i++)
		bytes += tensor_bytes(&out[i]) / (b->n ? b->n : 1) * l->examiner->order->n;
	if (bytes > l->o.cache / REFERENCE_SHARE)
		return false;
	l->examiner->reference = xcalloc(n, sizeof(*l->examiner->reference));
	for (i = 0; i < n; i++, l->examiner->n_reference++)
		if (!rows_init(&l->examiner->reference[i], l->examiner->order->n, &out[i], b->n))
			return false;
	return true;
}

static enum fettle_status record_run(void *self, const struct feed_batch *b, struct tensor *out,
				     struct err *err)
{
	struct recorder *r = self;
	struct lab *l = r->l;
	enum fettle_status st = session_run_large(l->fp32, b->inputs, out, err);
	const size_t *place;
	size_t i;

	if (st || !r->keep || !metric_uses_reference(l->metric, out, b->labels.data ? &b->labels : NULL))
		return st;
	place = order_places(l->examiner->order, b, &r->scratch);
	r->keep = l->examiner->n_reference || start_reference(l, b, out);
	for (i = 0; i < l->examiner->n_reference && r->keep; i++)
		r->keep = rows_put(&l->examiner->reference[i], &out[i], place, b->valid);
	if (!r->keep)
		drop_reference(l->examiner);
	return FETTLE_OK;
}

/* ---- the order ---- */

/* Smaller margins than this share of their mean make no difference: a sample cannot lose more than all. */
#define LEAST_MARGIN 1e-3

/* See metric_type.margins. */
static double *weights_of(const struct metric_type *t, const double *margins, size_t n)
{
	double *weights, mean = 0;
	size_t i;

	if (!t->is_mean || t->bounded || !t->margins)
		return NULL;
	for (i = 0; i < n; i++)
		mean += margins[i] / (double)n;
	if (!(mean > 0) || isinf(mean))
		return NULL;
	weights = xcalloc(n, sizeof(*weights));
	for (i = 0; i < n; i++)
		weights[i] = 1 / (margins[i] + LEAST_MARGIN * mean);
	return weights;
}

/* Samples at random, or the hardest first, where the metric allows. */
static enum fettle_status make_order(struct lab *l, double *scores, const double *margins, struct err *err)
{
	struct order *o = l->examiner->order;
	const struct metric_type *type = metric_type(l->metric);
	struct rng rng;
	size_t *shuffled, i;
	enum fettle_status st;

	if (l->o.no_early || !metric_any_order(l->metric))
		return FETTLE_OK;
	o->feed = feed_twin(l->eval);
	o->weights = weights_of(type, margins, o->n);
	if (l->o.confidence > 0 && type->is_mean && type->bounded) {
		shuffled = xcalloc(o->n, sizeof(*shuffled));
		for (i = 0; i < o->n; i++)
			shuffled[i] = i;
		rng_seed(&rng, l->o.seed);
		rng_shuffle(&rng, shuffled, o->n);
		st = order_visit(o, o->feed, shuffled, o->n, err);
		free(shuffled);
		return st;
	}
	o->hard = hard_new(o->n, type->is_mean ? scores : NULL, margins, type->higher_is_better);
	return FETTLE_OK;
}

static void start_cuts(struct lab *l)
{
	size_t i;

	if (l->o.jobs > 1 || l->ranks)
		l->forerun = forerun_new(l->o.cache / AHEAD_SHARE);
	l->examiner->cuts = cutcache_new(l->o.cache - l->o.cache / REFERENCE_SHARE -
						 (l->forerun ? l->o.cache / AHEAD_SHARE : 0),
					 l->examiner->order->n);
	for (i = 0; i < l->s->ops.n; i++)
		map_set(&l->examiner->node_macs, l->s->m->nodes.v[i]->name,
			(size_t)(l->s->ops.v[i].macs / 1e3));
}

/* Several metrics are compared with what the fp32 model has. */
static enum fettle_status set_base(struct lab *l, struct accuracy *out, struct err *err)
{
	enum fettle_status st = metric_set_base(l->metric, out->parts, l->o.relative, err);

	return st ? st : metric_value(l->metric, &out->value, err);
}

enum fettle_status lab_baseline(struct lab *l, struct accuracy *out, struct err *err)
{
	struct recorder r = { .l = l, .keep = true };
	struct evaluation e = { .metric = l->metric, .feed = l->eval, .progress = lab_go_on, .self = l };
	double start, *margins = NULL;
	enum fettle_status st;
	size_t i;

	scoring_feed(l);
	st = lab_open_fp32(l, err);
	l->baseline_size = model_file_size(l->o.model);
	if (st)
		return st;
	start = clock_now();
	if (has_evaluator(l)) {
		st = lab_evaluate_file(l, 0, l->o.model, lab_go_on, l, &out->value, err);
	} else {
		l->examiner = xcalloc(1, sizeof(*l->examiner));
		l->examiner->order = order_new(l->eval);
		e.net = (struct network){ record_run, &r, session_n_outputs(l->fp32) };
		e.reference = l->o.has_reference ? e.net : (struct network){ .run = NULL };
		e.place = l->examiner->order->place;
		e.n_scores = l->examiner->order->n;
		e.scores = l->examiner->order->baseline = xcalloc(e.n_scores, sizeof(*e.scores));
		e.margins = margins = xcalloc(e.n_scores, sizeof(*margins));
		for (i = 0; i < e.n_scores; i++)
			e.scores[i] = NAN;
		st = evaluate_accuracy(&e, out, err);
		l->samples_evaluated += out->samples;
		if (!st)
			metric_keep_whole(l->metric);
		if (!st && metric_n_parts(l->metric))
			st = set_base(l, out, err);
	}
	if (l->examiner && l->o.cache)
		start_cuts(l);
	l->times.evaluate += clock_now() - start;
	out->seconds = l->pass_seconds = clock_now() - start;
	if (!st && l->examiner)
		st = make_order(l, l->examiner->order->baseline, margins, err);
	free(margins);
	free(r.scratch);
	return st;
}

void examiner_set_levels(struct lab *l, const struct hard_notes *levels)
{
	struct examiner *x = l->examiner;
	size_t *place = xcalloc(x->order->n, sizeof(*place));

	x->levels = *levels;
	hard_order(x->order->hard, levels, place);
	order_visit(x->order, x->order->feed, place, x->order->n, NULL); /* the samples are the feed's own */
	free(place);
}

const struct hard_notes *examiner_levels(const struct examiner *x)
{
	return x && x->order->hard ? &x->levels : NULL;
}

size_t examiner_notes_bytes(const struct examiner *x, const struct hard_notes *n)
{
	return x && x->order->hard ? hard_notes_bytes(x->order->hard, n) : 0;
}

void lab_begin_group(void *lab)
{
	struct lab *l = lab;
	struct hard_notes levels;

	if (!l->examiner)
		return;
	examiner_forget_shown(l->examiner);
	if (!l->examiner->order->hard)
		return;
	hard_levels(l->examiner->order->hard, &levels);
	examiner_set_levels(l, &levels);
}
