#include "tune/lab.h"

#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/fingerprint.h"
#include "base/str.h"
#include "finetune/finetune.h"
#include "quantize/variant.h"
#include "space/plan_json.h"

/* a calibration of the model or a variant, and the ranges asked of it that the history does not have yet */
struct lab_ranges {
	int64_t asked;     /* samples, as plans say */
	char *key;         /* of the variant */
	struct qplan plan; /* of the base: the first that asked for it */
	struct variant *v;
	struct quantizer *z;
	struct calibration *c;          /* NULL without calibration data, or until it is asked for */
	const struct calibration *base; /* for a variant: of the base; NULL until it is asked for */
	struct arena arena;
	struct map seen;
	VEC(struct history_range) fresh;
	size_t samples;
	struct lab *lab;
	struct map rounded;               /* fingerprint of a plan with finetune -> its place in roundings */
	VEC(struct rounding *) roundings; /* models made from them share their bytes */
	struct channel_means *means; /* of all values that recipes may ask for; taken when one first does */
};

char *range_key(const struct qsetting *s, const char *variant)
{
	return xstrfmt("%s %s %s %.10g%s%s", dtype_name(s->dtype), s->scheme == SCHEME_SYM ? "sym" : "asym",
		       range_methods[s->algorithm]->name,
		       s->algorithm == RANGE_PERCENTILE       ? s->percentile
		       : s->algorithm == RANGE_MOVING_AVERAGE ? s->averaging
							      : 0,
		       *variant ? " " : "", variant);
}

char *rewrite_key(const char *variant, size_t samples)
{
	return xstrfmt("rewrite\t%s\t%zu", variant, samples);
}

/* the first of those that the feed was opened with, which may be shuffled */
static enum fettle_status use_first(struct lab *l, size_t n, struct err *err)
{
	return feed_set_order(l->calib, l->calib_order, n, err);
}

/* before the feed is cut down to fewer */
static void keep_order(struct lab *l)
{
	size_t i;

	if (l->calib_order)
		return;
	l->calib_total = feed_samples(l->calib);
	l->calib_order = arena_alloc(&l->names, (l->calib_total + 1) * sizeof(*l->calib_order));
	for (i = 0; i < l->calib_total; i++)
		l->calib_order[i] = feed_sample(l->calib, i);
}

static struct calibrate_options calibrate_options(struct lab *l)
{
	struct calibrate_options o = { .threads = l->o.threads, .progress = lab_go_on, .self = l };

	memcpy(o.averaging, l->o.averaging, sizeof(o.averaging));
	return o;
}

/* one pass over the first samples */
static enum fettle_status calibrate_all(struct lab_ranges *r, struct err *err)
{
	struct lab *l = r->lab;
	const struct calibrate_options o = calibrate_options(l);
	struct qplan mapped = QPLAN_INIT;
	double start = clock_now();
	enum fettle_status st;

	variant_plan(r->v, &r->plan, &mapped);
	st = use_first(l, r->samples, err);
	if (!st)
		st = subject_calibrate(r->v->s, l->rt, &mapped, l->calib, &o, &r->c, err);
	qplan_release(&mapped);
	l->times.calibrate += clock_now() - start;
	return st;
}

/* of the model as it is, over the same samples */
static enum fettle_status calibrate_base(struct lab_ranges *r, struct err *err)
{
	struct quantizer *z = NULL;
	struct qplan plain = r->plan; /* whose recipes leave the model as it is */
	enum fettle_status st;
	size_t i;

	plain.recipes = (struct recipes){ 0 };
	st = lab_quantizer(r->lab, r->asked, &plain, &z, err);
	for (i = 0; i < r->lab->n_ranges && !st; i++)
		if (r->lab->ranges[i]->z == z)
			r->base = r->lab->ranges[i]->c;
	return st;
}

/* what a range is taken from, when one is first asked for */
static enum fettle_status calibrate_for(struct lab_ranges *r, const char *value, enum range_algorithm a,
					struct err *err)
{
	if (variant_needs_own(r->v, value, a))
		return r->c ? FETTLE_OK : calibrate_all(r, err);
	return r->base ? FETTLE_OK : calibrate_base(r, err);
}

static enum fettle_status get_range(void *self, const char *value, const struct qsetting *s,
				    struct range *out, struct err *err)
{
	struct lab_ranges *r = self;
	struct range_options ro = { s->algorithm, s->percentile, s->averaging, s->dtype, s->scheme };
	enum fettle_status st;
	char *key, *both;

	st = calibrate_for(r, value, s->algorithm, err);
	if (!st)
		st = variant_range(r->v, r->base, r->c, value, &ro, out, err);
	if (st)
		return st;
	key = range_key(s, r->key);
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

static enum fettle_status sweep_means(struct lab_ranges *r, struct err *err)
{
	struct lab *l = r->lab;
	const struct calibrate_options o = calibrate_options(l);
	struct channel_axis *axes = NULL;
	size_t n = quantizer_means(&r->v->s->g, &r->v->s->ops, NULL, &axes);
	double start = clock_now();
	enum fettle_status st;

	st = use_first(l, r->samples, err);
	if (!st)
		st = calibrate_means(&r->means, l->rt, r->v->s->m, axes, n, l->calib, &o, err);
	free(axes);
	l->times.calibrate += clock_now() - start;
	return st;
}

char *mean_key(const char *value, int axis, size_t samples, const char *variant)
{
	return xstrfmt("mean\t%s\t%d\t%zu%s%s", value, axis, samples, *variant ? "\t" : "", variant);
}

static void keep_means(struct lab_ranges *r, const char *value, int axis, size_t n, const double *means)
{
	char *key = mean_key(value, axis, r->samples, r->key);
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
	key = mean_key(value, axis, r->samples, r->key);
	if (map_get(&r->seen, key) == MAP_NONE) {
		map_set(&r->seen, arena_strdup(&r->arena, key), 1);
		keep_means(r, value, axis, channels, out);
	}
	free(key);
	return FETTLE_OK;
}

char *rounding_path(const char *workspace, const struct qplan *plan, const struct op_list *ops,
		    size_t samples)
{
	char *text = qplan_to_json(plan, ops, (int64_t)samples), name[FINGERPRINT_LEN], *path;

	fingerprint_bytes(text, strlen(text), name);
	path = xstrfmt("%s/rounding-%s", workspace ? workspace : "", name);
	free(text);
	return path;
}

static enum fettle_status tune_weights(struct lab_ranges *r, struct quantizer *z, const struct qplan *plan,
				       struct rounding **out, struct err *err)
{
	struct lab *l = r->lab;
	struct finetune_source s = { .rt = l->rt,
				     .s = r->v->s,
				     .feed = l->calib,
				     /* the same weights, however many trials run side by side */
				     .threads = l->o.rounding_threads ? l->o.rounding_threads : 1,
				     .cache = l->o.cache ? l->o.cache : 1,
				     .progress = lab_go_on,
				     .self = l };
	enum fettle_status st = use_first(l, r->samples, err);

	return st ? st : finetune(z, plan, &s, out, l->report, err);
}

/* once per plan; what a run before this one has left in the workspace is as good */
static enum fettle_status get_rounding(void *self, struct quantizer *z, const struct qplan *plan,
				       const struct rounding **out, struct err *err)
{
	struct lab_ranges *r = self;
	struct lab *l = r->lab;
	char *path = rounding_path(l->o.workspace, plan, &r->v->s->ops, r->samples);
	size_t known = map_get(&r->rounded, path);
	struct rounding *new = NULL;
	enum fettle_status st = FETTLE_OK;

	if (known == MAP_NONE) {
		if (!l->o.workspace || rounding_load(&new, path, r->v->s->ops.n, NULL)) {
			st = tune_weights(r, z, plan, &new, err);
			if (!st && l->o.workspace)
				st = rounding_save(new, path, err);
		}
		if (st) {
			rounding_free(new);
			goto out;
		}
		known = r->roundings.n;
		VEC_PUSH(&r->roundings, new);
		map_set(&r->rounded, arena_strdup(&r->arena, path), known);
	}
	*out = r->roundings.v[known];
out:
	free(path);
	return st;
}

static void ranges_free(struct lab_ranges *r)
{
	size_t i;

	if (!r)
		return;
	quantizer_free(r->z);
	for (i = 0; i < r->roundings.n; i++)
		rounding_free(r->roundings.v[i]);
	VEC_RELEASE(&r->roundings);
	map_release(&r->rounded);
	channel_means_free(r->means);
	calibration_free(r->c);
	variant_free(r->v);
	map_release(&r->seen);
	VEC_RELEASE(&r->fresh);
	arena_release(&r->arena);
	qplan_release(&r->plan);
	free(r->key);
	free(r);
}

/* the variant of the model; as it is, it is calibrated too */
static enum fettle_status make_variant(struct lab_ranges *r, const struct qplan *plan, struct err *err)
{
	struct lab *l = r->lab;
	const struct calibrate_options o = calibrate_options(l);
	double start = clock_now();
	enum fettle_status st;

	keep_order(l);
	r->samples = r->asked > 0 && (size_t)r->asked < l->calib_total ? (size_t)r->asked : l->calib_total;
	st = use_first(l, r->samples, err);
	if (!st)
		st = variant_new(&r->v, l->rt, l->s, plan, l->calib, &o, err);
	l->times.calibrate += clock_now() - start;
	return st || *r->key ? st : calibrate_all(r, err);
}

static enum fettle_status ranges_new(struct lab *l, int64_t samples, const struct qplan *plan,
				     struct lab_ranges **out, struct err *err)
{
	struct lab_ranges *r = xcalloc(1, sizeof(*r));
	struct range_source source = {
		.get = get_range, .mean = get_means, .rounding = get_rounding, .self = r
	};
	enum fettle_status st;

	r->lab = l;
	r->asked = samples;
	r->plan = qplan_copy(plan);
	r->key = variant_key(l->s, plan);
	if (l->calib)
		st = make_variant(r, plan, err);
	else if (recipes_rewrite(&plan->recipes))
		st = fail(err, FETTLE_INVALID, "cannot apply plan: %s needs calibration data", r->key);
	else
		st = variant_new(&r->v, l->rt, l->s, plan, NULL, NULL, err);
	if (st) {
		ranges_free(r);
		return st;
	}
	r->z = variant_quantizer(r->v, l->calib ? &source : NULL);
	*out = r;
	return FETTLE_OK;
}

enum fettle_status lab_quantizer(struct lab *l, int64_t samples, const struct qplan *plan,
				 struct quantizer **out, struct err *err)
{
	char *key = variant_key(l->s, plan);
	struct lab_ranges *r = NULL;
	enum fettle_status st;
	size_t i;

	for (i = 0; i < l->n_ranges && !r; i++)
		if (l->ranges[i]->asked == samples && strcmp(l->ranges[i]->key, key) == 0)
			r = l->ranges[i];
	free(key);
	if (!r) {
		st = ranges_new(l, samples, plan, &r, err);
		if (st)
			return st;
		l->ranges = xrealloc(l->ranges, l->n_ranges + 1, sizeof(struct lab_ranges *));
		l->ranges[l->n_ranges++] = r;
	}
	*out = r->z;
	return FETTLE_OK;
}

/* before its trial: what was made of the model */
static void keep_rewrite(struct lab_ranges *r)
{
	char *key = rewrite_key(r->key, r->samples);

	if (*r->key && map_get(&r->seen, key) == MAP_NONE &&
	    !history_set_meta(r->lab->history, key, r->v->text, NULL))
		map_set(&r->seen, arena_strdup(&r->arena, key), 1);
	free(key);
}

/* ranges first: a trial that is in the history can be recovered */
void lab_flush_ranges(struct lab *l)
{
	size_t i;

	for (i = 0; i < l->n_ranges; i++) {
		struct lab_ranges *r = l->ranges[i];

		keep_rewrite(r);
		if (r->fresh.n && !history_add_ranges(l->history, r->fresh.v, r->fresh.n, NULL))
			r->fresh.n = 0;
	}
}

/* of the model as it is, or (when there is no such) as the first plan had it */
const struct observer *lab_observer(const struct lab *l, const char *value)
{
	const struct calibration *found = NULL;
	size_t i;

	for (i = 0; i < l->n_ranges; i++)
		if (l->ranges[i]->c && (!found || !*l->ranges[i]->key))
			found = l->ranges[i]->c;
	return found ? calibration_find(found, value) : NULL;
}

void lab_forget_ranges(struct lab *l)
{
	size_t i;

	for (i = 0; i < l->n_ranges; i++)
		ranges_free(l->ranges[i]);
	free(l->ranges);
	l->ranges = NULL;
	l->n_ranges = 0;
}
