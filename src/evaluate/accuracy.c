#include "evaluate/evaluate.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "data/ahead.h"
#include "evaluate/paired.h"

static enum fettle_status run_session(void *self, const struct feed_batch *b, struct tensor *out,
				      struct err *err)
{
	return session_run_large(self, b->inputs, out, err);
}

struct network network_of(struct session *s)
{
	return s ? (struct network){ run_session, s, session_n_outputs(s) } : (struct network){ .run = NULL };
}

/* What of a batch the metric wants to see. */
struct answers {
	struct tensor *out, *want;
	const struct tensor *labels, *reference;
	size_t n;
};

/* What one sample gives is its row, whatever the shape: a model for one sample at a time may have no dimension for samples. */
static void make_rows(const struct feed_batch *b, struct tensor *t, size_t n)
{
	size_t i;

	for (i = 0; i < n && b->n == 1; i++)
		tensor_as_row(&t[i]);
}

static enum fettle_status answer(const struct evaluation *e, const struct feed_batch *b, struct answers *a,
				 double *seconds, struct err *err)
{
	enum fettle_status st;
	double start = clock_now();

	st = e->net.run(e->net.self, b, a->out, err);
	*seconds += clock_now() - start;
	a->n = e->net.n_outputs;
	a->labels = b->labels.data ? &b->labels : NULL;
	a->reference = NULL;
	if (st)
		return st;
	make_rows(b, a->out, a->n);
	if (!a->labels && b->n_outputs) { /* a test set's published outputs */
		a->n = a->n < b->n_outputs ? a->n : b->n_outputs;
		memcpy(a->want, b->outputs, a->n * sizeof(*a->want));
		make_rows(b, a->want, a->n);
		a->reference = a->want;
		return FETTLE_OK;
	}
	if (!metric_uses_reference(e->metric, a->out, a->labels))
		return FETTLE_OK;
	if (!e->reference.run)
		return fail(err, FETTLE_INVALID,
			    "cannot compute %s: the data has no labels for it, need a reference model to "
			    "compare with",
			    metric_name(e->metric));
	if (e->reference.self == e->net.self) {
		a->reference =
			a->out; /* against itself: a second run would overwrite the first one's outputs */
		return FETTLE_OK;
	}
	a->reference = a->want;
	st = e->reference.run(e->reference.self, b, a->want, err);
	if (!st)
		make_rows(b, a->want, e->reference.n_outputs);
	return st;
}

static size_t place_of(const struct evaluation *e, const struct feed_batch *b, size_t at, size_t i)
{
	return e->place ? e->place[b->index[i]] : at + i;
}

/* of the batch that the metric was given last */
static void keep_scores(const struct evaluation *e, const struct answers *a, const struct feed_batch *b,
			size_t at, double *row)
{
	const double *scores = e->scores ? metric_last_scores(e->metric) : NULL;
	size_t i;

	for (i = 0; scores && i < b->valid; i++) {
		e->scores[place_of(e, b, at, i)] = scores[i];
		if (e->paired)
			paired_add(e->paired, e->baseline[place_of(e, b, at, i)] - scores[i]);
	}
	if (e->margins) {
		metric_margins(e->metric, a->out, a->n, a->labels, a->reference, b->valid, row);
		for (i = 0; i < b->valid; i++)
			e->margins[place_of(e, b, at, i)] = row[i];
	}
}

/* in the samples' own order; NaN as long as one is missing */
static double mean_of(const double *scores, size_t n)
{
	double sum = 0;
	size_t i;

	for (i = 0; i < n; i++)
		sum += scores[i];
	return sum / (double)n;
}

/* What the value can still be: for certain, or, where that is allowed, with some confidence. */
static void bounds(const struct evaluation *e, size_t rest, double baseline, struct accuracy *out)
{
	double low, high;

	metric_bounds(e->metric, rest, &out->low, &out->high);
	if (!e->paired || !rest)
		return;
	paired_bounds(e->paired, &low, &high);
	out->low = fmax(out->low, baseline - high);
	out->high = fmin(out->high, baseline - low);
}

static enum fettle_status finish(const struct evaluation *e, struct accuracy *out, struct err *err)
{
	enum fettle_status st = metric_value(e->metric, &out->value, err);

	if (!st)
		st = metric_values(e->metric, out->parts, err);

	if (!st && e->scores && metric_type(e->metric)->is_mean)
		out->value = mean_of(e->scores, e->n_scores);
	out->low = out->high = out->value;
	return st;
}

enum fettle_status evaluate_accuracy(const struct evaluation *e, struct accuracy *out, struct err *err)
{
	struct tensor *results = xcalloc(e->net.n_outputs, sizeof(*results)),
		      *want = xcalloc(e->net.n_outputs + 1, sizeof(*want));
	struct answers a = { .out = results, .want = want };
	struct ahead *ahead = NULL;
	struct feed_batch *b = NULL;
	enum fettle_status st = FETTLE_OK;
	size_t k, total = feed_samples(e->feed);
	double *row = NULL, baseline = e->paired ? mean_of(e->baseline, e->n_scores) : NAN;

	*out = (struct accuracy){ .value = NAN, .low = -INFINITY, .high = INFINITY };
	for (k = 0; k < METRICS_MAX; k++)
		out->parts[k] = NAN;
	metric_reset(e->metric);
	if (e->reference.run && e->reference.n_outputs != e->net.n_outputs) {
		st = fail(err, FETTLE_INVALID,
			  "cannot compare models: %zu outputs against %zu of the reference", e->net.n_outputs,
			  e->reference.n_outputs);
		goto out;
	}
	ahead = ahead_new(e->feed);
	for (k = 0; k < feed_batches(e->feed); k++) {
		st = ahead_next(ahead, &b, err);
		if (!st)
			st = answer(e, b, &a, &out->seconds, err);
		if (!st)
			st = metric_add(e->metric, a.out, a.n, a.labels, a.reference, b->valid, err);
		if (st)
			goto out;
		row = xrealloc(row, b->n + 1, sizeof(*row));
		keep_scores(e, &a, b, out->samples, row);
		out->samples += b->valid;
		if (e->progress && !e->progress(e->self, out->samples, total)) {
			st = fail(err, FETTLE_STOP, "evaluation was stopped");
			goto out;
		}
		bounds(e, total - out->samples, baseline, out);
		if (e->certain && out->samples >= e->least && out->samples < total &&
		    e->certain(e->judge, out->low, out->high))
			goto out;
	}
	st = finish(e, out, err);
out:
	ahead_free(ahead);
	free(results);
	free(want);
	free(row);
	return st;
}

void share_interval(double p, size_t n, double *low, double *high)
{
	double z = 1.959964, nn = (double)n, middle = (p + z * z / (2 * nn)) / (1 + z * z / nn);
	double half = z / (1 + z * z / nn) * sqrt(p * (1 - p) / nn + z * z / (4 * nn * nn));

	*low = middle - half;
	*high = middle + half;
}
