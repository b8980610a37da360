#include "tune/lab.h"

#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/str.h"

/* a calibration, and the ranges asked of it that the history does not have yet */
struct lab_ranges {
	struct calibration *c;
	struct arena arena;
	struct map seen;
	VEC(struct history_range) fresh;
	size_t samples;
	struct lab *lab;
	struct channel_means *means; /* of all values that recipes may ask for; taken when one first does */
};

char *range_key(const struct qsetting *s)
{
	return xstrfmt("%s %s %s %.10g", dtype_name(s->dtype), s->scheme == SCHEME_SYM ? "sym" : "asym",
		       range_methods[s->algorithm]->name,
		       s->algorithm == RANGE_PERCENTILE       ? s->percentile
		       : s->algorithm == RANGE_MOVING_AVERAGE ? s->averaging
							      : 0);
}

static enum fettle_status get_range(void *self, const char *value, const struct qsetting *s,
				    struct range *out, struct err *err)
{
	struct lab_ranges *r = self;
	const struct observer *o = calibration_find(r->c, value);
	struct range_options ro = { s->algorithm, s->percentile, s->averaging, s->dtype, s->scheme };
	enum fettle_status st;
	char *key, *both;

	if (!o)
		return fail(err, FETTLE_INVALID, "cannot quantize value '%s': it was not calibrated", value);
	st = range_compute(o, &ro, out, err);
	if (st)
		return st;
	key = range_key(s);
	both = arena_strfmt(&r->arena, "%s\t%s", value, key);
	if (map_get(&r->seen, both) == MAP_NONE) {
		map_set(&r->seen, both, 1);
		VEC_PUSH(&r->fresh, ((struct history_range){ arena_strdup(&r->arena, value),
							     arena_strdup(&r->arena, key), r->samples,
							     out->min, out->max }));
	}
	free(key);
	return FETTLE_OK;
}

static enum fettle_status use_first(struct feed *feed, size_t n, struct err *err)
{
	size_t *order = xcalloc(n, sizeof(*order)), i;
	enum fettle_status st;

	for (i = 0; i < n; i++)
		order[i] = i;
	st = feed_set_order(feed, order, n, err);
	free(order);
	return st;
}

static enum fettle_status sweep_means(struct lab_ranges *r, struct err *err)
{
	struct lab *l = r->lab;
	struct calibrate_options o = { .threads = l->o.threads, .progress = lab_go_on, .self = l };
	struct channel_axis *axes = NULL;
	size_t n = quantizer_means(&l->s->g, &l->s->ops, NULL, &axes);
	double start = clock_now();
	enum fettle_status st;

	st = use_first(l->calib, r->samples, err);
	if (!st)
		st = calibrate_means(&r->means, l->rt, l->s->m, axes, n, l->calib, &o, err);
	free(axes);
	l->times.calibrate += clock_now() - start;
	return st;
}

char *mean_key(const char *value, int axis, size_t samples)
{
	return xstrfmt("mean\t%s\t%d\t%zu", value, axis, samples);
}

static void keep_means(struct lab_ranges *r, const char *value, int axis, size_t n, const double *means)
{
	char *key = mean_key(value, axis, r->samples);
	struct str text = STR_INIT;
	size_t i;

	for (i = 0; i < n; i++)
		str_addf(&text, "%a ", means[i]);
	if (r->lab->history)
		history_set_meta(r->lab->history, key, text.s ? text.s : "", NULL);
	str_release(&text);
	free(key);
}

static enum fettle_status get_means(void *self, const char *value, int axis, size_t channels, double *out,
				    struct err *err)
{
	struct lab_ranges *r = self;
	enum fettle_status st = FETTLE_OK;
	char *key;

	if (!r->means)
		st = sweep_means(r, err);
	if (!st)
		st = channel_means_get(r->means, value, axis, channels, out, err);
	if (st)
		return st;
	key = mean_key(value, axis, r->samples);
	if (map_get(&r->seen, key) == MAP_NONE) {
		map_set(&r->seen, arena_strdup(&r->arena, key), 1);
		keep_means(r, value, axis, channels, out);
	}
	free(key);
	return FETTLE_OK;
}

static void ranges_free(struct lab_ranges *r)
{
	if (!r)
		return;
	channel_means_free(r->means);
	calibration_free(r->c);
	map_release(&r->seen);
	VEC_RELEASE(&r->fresh);
	arena_release(&r->arena);
	free(r);
}

/* the first `samples` of the calibration data: one pass per size, when a plan first asks for it */
static enum fettle_status calibrate_size(struct lab *l, int64_t samples, struct lab_ranges **out,
					 struct err *err)
{
	struct calibrate_options o = { .threads = l->o.threads, .progress = lab_go_on, .self = l };
	struct lab_ranges *r = xcalloc(1, sizeof(*r));
	const char **values = NULL;
	size_t n, total = l->calib_total ? l->calib_total : feed_samples(l->calib);
	double start = clock_now();
	enum fettle_status st;

	memcpy(o.averaging, l->o.averaging, sizeof(o.averaging));
	l->calib_total = total; /* before the feed is cut down to fewer */
	if (samples > 0 && (size_t)samples < total)
		total = (size_t)samples;
	st = use_first(l->calib, total, err);
	n = quantizer_values(&l->s->g, &l->s->ops, NULL, &values);
	if (!st)
		st = calibrate(&r->c, l->rt, l->s->m, values, n, l->calib, &o, err);
	free(values);
	r->samples = total;
	r->lab = l;
	l->times.calibrate += clock_now() - start;
	if (st)
		ranges_free(r);
	else
		*out = r;
	return st;
}

enum fettle_status lab_quantizer(struct lab *l, const struct plan *p, struct quantizer **out, struct err *err)
{
	int64_t samples = tuning_samples(l->t, p);
	struct range_source source;
	enum fettle_status st;
	size_t i;

	for (i = 0; i < l->n_sizes; i++)
		if (l->sizes[i] == samples) {
			*out = l->quantizers[i];
			return FETTLE_OK;
		}
	l->sizes = xrealloc(l->sizes, l->n_sizes + 1, sizeof(*l->sizes));
	l->ranges = xrealloc(l->ranges, l->n_sizes + 1, sizeof(struct lab_ranges *));
	l->quantizers = xrealloc(l->quantizers, l->n_sizes + 1, sizeof(struct quantizer *));
	l->ranges[l->n_sizes] = NULL;
	if (l->calib) {
		st = calibrate_size(l, samples, &l->ranges[l->n_sizes], err);
		if (st)
			return st;
	}
	source = (struct range_source){ .get = get_range, .mean = get_means, .self = l->ranges[l->n_sizes] };
	l->sizes[l->n_sizes] = samples;
	l->quantizers[l->n_sizes] = quantizer_new(l->s->m, &l->s->g, &l->s->ops, l->calib ? &source : NULL);
	*out = l->quantizers[l->n_sizes++];
	return FETTLE_OK;
}

/* ranges first: a trial that is in the history can be recovered */
void lab_flush_ranges(struct lab *l)
{
	size_t i;

	for (i = 0; i < l->n_sizes; i++)
		if (l->ranges[i] && l->ranges[i]->fresh.n &&
		    !history_add_ranges(l->history, l->ranges[i]->fresh.v, l->ranges[i]->fresh.n, NULL))
			l->ranges[i]->fresh.n = 0;
}

const struct observer *lab_observer(const struct lab *l, const char *value)
{
	return l->n_sizes && l->ranges[0] ? calibration_find(l->ranges[0]->c, value) : NULL;
}

void lab_forget_ranges(struct lab *l)
{
	size_t i;

	for (i = 0; i < l->n_sizes; i++) {
		quantizer_free(l->quantizers[i]);
		ranges_free(l->ranges[i]);
	}
	free(l->quantizers);
	free(l->ranges);
	free(l->sizes);
	l->quantizers = NULL;
	l->ranges = NULL;
	l->sizes = NULL;
	l->n_sizes = 0;
}
