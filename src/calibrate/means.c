#include "calibrate/means.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"

struct channels {
	char *value;
	int axis;
	size_t n, output; /* which output of the session has the value */
	double *sum;      /* NULL: only the extremes are wanted */
	uint64_t count;   /* of values per channel */
	float *min, *max; /* NULL: only the sums are wanted */
	double *power;    /* with them: of x * x, the sum and then the mean */
	float *rows;      /* and of all rows a few; every one has the same chance */
	size_t room, n_rows;
	uint64_t rows_seen;
	struct rng rng;
};

struct channel_means {
	struct channels *v;
	size_t n, samples;
	const char **values; /* that a session is to have as outputs */
	size_t n_values;
};

/* the samples of a batch come first; what pads it does not count */
static size_t valid_part(const struct tensor *t, const struct feed_batch *b)
{
	const size_t rows = (size_t)t->dims[0];

	return b->n && rows % b->n == 0 ? rows / b->n * b->valid : rows;
}

static double sum_of(const float *x, size_t n)
{
	enum { LANES = 16 };
	double lane[LANES] = { 0 }, sum = 0;
	size_t i, k;

	for (i = 0; i + LANES <= n; i += LANES)
		for (k = 0; k < LANES; k++)
			lane[k] += x[i + k];
	for (; i < n; i++)
		sum += x[i];
	for (k = 0; k < LANES; k++)
		sum += lane[k];
	return sum;
}

static void add_sums(struct channels *c, const float *x, size_t outer, size_t inner)
{
	size_t o, k;

	for (o = 0; o < outer; o++)
		for (k = 0; k < c->n; k++, x += inner)
			c->sum[k] += inner == 1 ? *x : sum_of(x, inner);
}

/* each of n values, in a lane of its own: what the compiler vectorises */
static void widen(const float *restrict x, size_t n, float *restrict min, float *restrict max,
		  float *restrict power)
{
	size_t i;

	for (i = 0; i < n; i++) {
		min[i] = x[i] < min[i] ? x[i] : min[i];
		max[i] = x[i] > max[i] ? x[i] : max[i];
		power[i] += x[i] * x[i];
	}
}

static void add_columns(struct channels *c, const float *x, size_t outer)
{
	float *power = xcalloc(c->n, sizeof(*power));
	size_t o, k;

	for (o = 0; o < outer; o++)
		widen(x + o * c->n, c->n, c->min, c->max, power);
	for (k = 0; k < c->n; k++)
		c->power[k] += power[k];
	free(power);
}

static void add_rows(struct channels *c, const float *x, size_t outer, size_t inner)
{
	enum { LANES = 32 };
	float min[LANES], max[LANES], power[LANES];
	size_t o, k, i;

	for (o = 0; o < outer; o++)
		for (k = 0; k < c->n; k++, x += inner) {
			for (i = 0; i < LANES; i++) {
				min[i] = c->min[k];
				max[i] = c->max[k];
				power[i] = 0;
			}
			for (i = 0; i + LANES <= inner; i += LANES)
				widen(x + i, LANES, min, max, power);
			widen(x + i, inner - i, min, max, power);
			for (i = 0; i < LANES; i++) {
				c->min[k] = fminf(c->min[k], min[i]);
				c->max[k] = fmaxf(c->max[k], max[i]);
				c->power[k] += power[i];
			}
		}
}

static void keep_rows(struct channels *c, const float *x, size_t n)
{
	size_t i;

	for (i = 0; i < n; i++, x += c->n) {
		const uint64_t at =
			c->rows_seen < c->room ? c->rows_seen : rng_below(&c->rng, c->rows_seen + 1);

		c->rows_seen++;
		if (at >= c->room)
			continue;
		memcpy(c->rows + at * c->n, x, c->n * sizeof(*x));
		c->n_rows += c->n_rows < c->room;
	}
}

static enum fettle_status add(struct channels *c, const struct tensor *t, const struct feed_batch *b,
			      struct err *err)
{
	const int axis = c->axis < 0 ? t->rank - 1 : c->axis;
	size_t outer = 1, inner = 1;
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
	if (c->sum)
		add_sums(c, t->data, outer, inner);
	else if (inner == 1)
		add_columns(c, t->data, outer);
	else
		add_rows(c, t->data, outer, inner);
	if (c->room && inner == 1)
		keep_rows(c, t->data, outer);
	c->count += (uint64_t)outer * inner;
	return FETTLE_OK;
}

static enum fettle_status add_all(void *self, const struct tensor *out, const struct feed_batch *b,
				  struct err *err)
{
	struct channel_means *c = self;
	enum fettle_status st = FETTLE_OK;
	size_t i;

	for (i = 0; i < c->n && !st; i++)
		st = add(&c->v[i], &out[c->v[i].output], b, err);
	c->samples += b->valid;
	return st;
}

/* the same for one output: only what is kept of it is written to */
static enum fettle_status add_output(void *self, size_t output, const struct tensor *t,
				     const struct feed_batch *b, struct err *err)
{
	struct channel_means *c = self;
	enum fettle_status st = FETTLE_OK;
	size_t i;

	for (i = 0; i < c->n && !st; i++)
		if (c->v[i].output == output)
			st = add(&c->v[i], t, b, err);
	return st;
}

static enum fettle_status not_finite(const struct channels *c, size_t channel, struct err *err)
{
	return fail(err, FETTLE_INVALID, "cannot observe value '%s': channel %zu is not finite", c->value,
		    channel);
}

/* from sums to means; a channel that is not finite would end up in a weight or bias */
static enum fettle_status finish(struct channels *c, struct err *err)
{
	size_t k;

	for (k = 0; k < c->n && c->sum; k++) {
		c->sum[k] = c->count ? c->sum[k] / (double)c->count : 0;
		if (!isfinite(c->sum[k]))
			return not_finite(c, k, err);
	}
	for (k = 0; k < c->n && c->min; k++) {
		if (c->min[k] > c->max[k]) /* nothing was seen */
			c->min[k] = c->max[k] = 0;
		c->power[k] = c->count ? c->power[k] / (double)c->count : 0;
		if (!isfinite(c->min[k]) || !isfinite(c->max[k]))
			return not_finite(c, k, err);
	}
	return FETTLE_OK;
}

static void channels_init(struct channels *c, const struct channel_axis *want, bool extremes)
{
	size_t k;

	c->value = xstrdup(want->value);
	c->axis = want->axis;
	c->n = want->channels;
	if (!extremes) {
		c->sum = xcalloc(c->n, sizeof(*c->sum));
		return;
	}
	c->min = xcalloc(c->n, sizeof(*c->min));
	c->max = xcalloc(c->n, sizeof(*c->max));
	c->power = xcalloc(c->n, sizeof(*c->power));
	c->room = want->rows;
	c->rows = xcalloc(c->room * c->n, sizeof(*c->rows));
	rng_seed(&c->rng, 1);
	for (k = 0; k < c->n; k++) {
		c->min[k] = INFINITY;
		c->max[k] = -INFINITY;
	}
}

static struct channel_means *means_new(const struct channel_axis *want, size_t n, bool extremes,
				       const char *const *values, size_t n_values)
{
	struct channel_means *c = xcalloc(1, sizeof(*c));
	struct map seen = MAP_INIT;
	size_t i;

	c->v = xcalloc(n + 1, sizeof(*c->v));
	c->n = n;
	c->values = xcalloc(n_values + n + 1, sizeof(*c->values));
	c->n_values = n_values;
	for (i = 0; i < n_values; i++) {
		c->values[i] = values[i];
		map_set(&seen, values[i], i);
	}
	for (i = 0; i < n; i++) {
		struct channels *v = &c->v[i];

		channels_init(v, &want[i], extremes);
		v->output = map_get(&seen, v->value);
		if (v->output != MAP_NONE)
			continue;
		v->output = c->n_values;
		map_set(&seen, v->value, c->n_values);
		c->values[c->n_values++] = v->value;
	}
	map_release(&seen);
	return c;
}

enum fettle_status channel_means_finish(struct channel_means *c, struct err *err)
{
	enum fettle_status st = FETTLE_OK;
	size_t i;

	for (i = 0; i < c->n && !st; i++)
		st = finish(&c->v[i], err);
	return st;
}

enum fettle_status channel_means_sweep(struct channel_means *c, const struct calibrate_on *on,
				       const struct calibrate_options *o, struct err *err)
{
	struct observed s = OBSERVED_INIT;
	enum fettle_status st = FETTLE_OK;

	if (c->n)
		st = observed_open(&s, on->rt, on->m, c->values, c->n_values, o->threads, err);
	if (c->n && !st)
		st = observed_run(&s, on->feed, o, add_all, c, err);
	observed_close(&s);
	return st ? st : channel_means_finish(c, err);
}

struct channel_means *channel_means_new(const struct channel_axis *want, size_t n, const char *const *values,
					size_t n_values)
{
	return means_new(want, n, false, values, n_values);
}

struct calibrate_watch channel_means_watch(struct channel_means *c)
{
	return (struct calibrate_watch){ c->values, c->n_values, add_output, c };
}

static enum fettle_status sweep(struct channel_means **out, struct channel_means *c,
				const struct calibrate_on *on, const struct calibrate_options *o,
				struct err *err)
{
	enum fettle_status st = channel_means_sweep(c, on, o, err);

	if (st)
		channel_means_free(c);
	else
		*out = c;
	return st;
}

enum fettle_status calibrate_means(struct channel_means **out, const struct calibrate_on *on,
				   const struct channel_axis *want, size_t n,
				   const struct calibrate_options *o, struct err *err)
{
	return sweep(out, means_new(want, n, false, NULL, 0), on, o, err);
}

enum fettle_status calibrate_extremes(struct channel_means **out, const struct calibrate_on *on,
				      const struct channel_axis *want, size_t n,
				      const struct calibrate_options *o, struct err *err)
{
	return sweep(out, means_new(want, n, true, NULL, 0), on, o, err);
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
		free(c->v[i].power);
		free(c->v[i].rows);
	}
	free(c->values);
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

	if (!v || !v->sum)
		return fail(err, FETTLE_INVALID, "cannot give the means of value '%s': it was not observed",
			    value);
	memcpy(out, v->sum, channels * sizeof(*out));
	return FETTLE_OK;
}

enum fettle_status channel_extremes_get(const struct channel_means *c, const char *value, int axis,
					size_t channels, struct channel_extremes *out, struct err *err)
{
	const struct channels *v = find(c, value, axis, channels);

	if (!v || !v->min)
		return fail(err, FETTLE_INVALID,
			    "cannot give the extremes of value '%s': it was not observed", value);
	*out = (struct channel_extremes){ .min = v->min,
					  .max = v->max,
					  .power = v->power,
					  .count = v->count,
					  .samples = c->samples,
					  .rows = v->rows,
					  .n_rows = v->n_rows };
	return FETTLE_OK;
}
