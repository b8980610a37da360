#include "calibrate/means.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

struct channels {
	char *value;
	int axis;
	size_t n, output; /* which output of the session has the value */
	double *sum;
	float *min, *max;
	uint64_t count; /* of values per channel */
};

struct channel_means {
	struct channels *v;
	size_t n;
};

/* the samples of a batch come first; what pads it does not count */
static size_t valid_part(const struct tensor *t, const struct feed_batch *b)
{
	const size_t rows = (size_t)t->dims[0];

	return b->n && rows % b->n == 0 ? rows / b->n * b->valid : rows;
}

/* one value of each channel */
static void add_columns(struct channels *c, const float *x)
{
	size_t k;

	for (k = 0; k < c->n; k++) {
		c->sum[k] += x[k];
		c->min[k] = x[k] < c->min[k] ? x[k] : c->min[k];
		c->max[k] = x[k] > c->max[k] ? x[k] : c->max[k];
	}
}

static enum fettle_status add(struct channels *c, const struct tensor *t, const struct feed_batch *b,
			      struct err *err)
{
	const int axis = c->axis < 0 ? t->rank - 1 : c->axis;
	const float *x = t->data;
	size_t outer = 1, inner = 1, o, i, k;
	int d;

	if (t->dtype != DT_F32 || axis < 0 || axis >= t->rank || (size_t)t->dims[axis] != c->n)
		return fail(err, FETTLE_INVALID,
			    "cannot average value '%s': axis %d, need float32 and %zu channels there",
			    c->value, c->axis, c->n);
	for (d = 0; d < t->rank; d++)
		if (d < axis)
			outer *= d ? (size_t)t->dims[d] : valid_part(t, b);
		else if (d > axis)
			inner *= (size_t)t->dims[d];
	for (o = 0; o < outer; o++) {
		if (inner == 1) {
			add_columns(c, x);
			x += c->n;
			continue;
		}
		for (k = 0; k < c->n; k++, x += inner) {
			float lo = c->min[k], hi = c->max[k];
			double sum = 0;

			for (i = 0; i < inner; i++) {
				sum += x[i];
				lo = x[i] < lo ? x[i] : lo;
				hi = x[i] > hi ? x[i] : hi;
			}
			c->sum[k] += sum;
			c->min[k] = lo;
			c->max[k] = hi;
		}
	}
	c->count += (uint64_t)outer * inner;
	return FETTLE_OK;
}

static enum fettle_status run_all(struct channel_means *c, struct session *s, struct feed *feed,
				  const struct calibrate_options *o, struct err *err)
{
	struct tensor *out = xcalloc(session_n_outputs(s), sizeof(*out));
	struct feed_batch b = FEED_BATCH_INIT;
	size_t i, done = 0;
	enum fettle_status st;

	feed_rewind(feed);
	while (!(st = feed_next(feed, &b, err))) {
		st = session_run(s, b.inputs, out, err);
		for (i = 0; i < c->n && !st; i++)
			st = add(&c->v[i], &out[c->v[i].output], &b, err);
		if (st)
			break;
		done += b.valid;
		if (o->progress && !o->progress(o->self, done, feed_samples(feed))) {
			st = fail(err, FETTLE_STOP, "calibration was stopped");
			goto out;
		}
	}
	if (st == FETTLE_STOP)
		st = FETTLE_OK; /* the end of the samples */
out:
	feed_batch_release(&b);
	free(out);
	return st;
}

/* from sums to means; a channel that is not finite would end up in a bias */
static enum fettle_status divide(struct channel_means *c, struct err *err)
{
	size_t i, k;

	for (i = 0; i < c->n; i++)
		for (k = 0; k < c->v[i].n; k++) {
			double *x = &c->v[i].sum[k];

			*x = c->v[i].count ? *x / (double)c->v[i].count : 0;
			if (!c->v[i].count)
				c->v[i].min[k] = c->v[i].max[k] = 0;
			if (!isfinite(*x))
				return fail(err, FETTLE_INVALID,
					    "cannot average value '%s': channel %zu is not finite",
					    c->v[i].value, k);
		}
	return FETTLE_OK;
}

enum fettle_status calibrate_means(struct channel_means **out, struct runtime *rt, struct model *m,
				   const struct channel_axis *want, size_t n, struct feed *feed,
				   const struct calibrate_options *o, struct err *err)
{
	struct channel_means *c = xcalloc(1, sizeof(*c));
	const char **values = xcalloc(n, sizeof(*values));
	struct map seen = MAP_INIT;
	struct observed s = OBSERVED_INIT;
	enum fettle_status st = FETTLE_OK;
	size_t i, k, n_values = 0;

	c->v = xcalloc(n, sizeof(*c->v));
	c->n = n;
	for (i = 0; i < n; i++) {
		struct channels *v = &c->v[i];

		v->value = xstrdup(want[i].value);
		v->axis = want[i].axis;
		v->n = want[i].channels;
		v->sum = xcalloc(v->n, sizeof(*v->sum));
		v->min = xcalloc(v->n, sizeof(*v->min));
		v->max = xcalloc(v->n, sizeof(*v->max));
		for (k = 0; k < v->n; k++) {
			v->min[k] = INFINITY;
			v->max[k] = -INFINITY;
		}
		v->output = map_get(&seen, v->value);
		if (v->output != MAP_NONE)
			continue;
		v->output = n_values;
		map_set(&seen, v->value, n_values);
		values[n_values++] = v->value;
	}
	if (n)
		st = observed_open(&s, rt, m, values, n_values, o->threads, err);
	if (n && !st)
		st = run_all(c, s.session, feed, o, err);
	if (!st)
		st = divide(c, err);
	observed_close(&s);
	map_release(&seen);
	free(values);
	if (st)
		channel_means_free(c);
	else
		*out = c;
	return st;
}

void channel_means_free(struct channel_means *c)
{
	size_t i;

	if (!c)
		return;
	for (i = 0; i < c->n; i++) {
		free(c->v[i].value);
		free(c->v[i].sum);
		free(c->v[i].min);
		free(c->v[i].max);
	}
	free(c->v);
	free(c);
}

static const struct channels *find(const struct channel_means *c, const char *value, int axis,
				   size_t channels)
{
	size_t i;

	for (i = 0; i < c->n; i++)
		if (strcmp(c->v[i].value, value) == 0 && c->v[i].axis == axis && c->v[i].n == channels)
			return &c->v[i];
	return NULL;
}

enum fettle_status channel_means_get(const struct channel_means *c, const char *value, int axis,
				     size_t channels, double *out, struct err *err)
{
	const struct channels *v = find(c, value, axis, channels);

	if (!v)
		return fail(err, FETTLE_INVALID, "cannot give the means of value '%s': it was not observed",
			    value);
	memcpy(out, v->sum, channels * sizeof(*out));
	return FETTLE_OK;
}

enum fettle_status channel_extremes_get(const struct channel_means *c, const char *value, int axis,
					size_t channels, float *min, float *max, struct err *err)
{
	const struct channels *v = find(c, value, axis, channels);

	if (!v)
		return fail(err, FETTLE_INVALID,
			    "cannot give the extremes of value '%s': it was not observed", value);
	memcpy(min, v->min, channels * sizeof(*min));
	memcpy(max, v->max, channels * sizeof(*max));
	return FETTLE_OK;
}
