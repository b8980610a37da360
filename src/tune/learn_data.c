/* Knowledge from the calibration samples. */
#include <string.h>
#include <stdlib.h>

#include "base/file.h"
#include "finetune/finetune.h"
#include "quantize/by_parts.h"
#include "tune/facts.h"

/* Plans that need at most one in so many of the values that plans may need are calibrated on these alone. */
enum { FEW = 2 };

static struct calibrate_options calibrate_options(const struct learner *l)
{
	struct calibrate_options o = { .threads = l->s.threads,
				       .progress = l->s.progress,
				       .self = l->s.self };

	memcpy(o.averaging, l->s.averaging, sizeof(o.averaging));
	return o;
}

static size_t n_samples(const struct learner *l, int64_t asked)
{
	return asked > 0 && (size_t)asked < l->total ? (size_t)asked : l->total;
}

enum fettle_status learner_use_samples(struct learner *l, int64_t samples, struct err *err)
{
	return feed_set_order(l->s.calib, l->order, n_samples(l, samples), err);
}

/* the samples that these facts are from */
static enum fettle_status use_samples(struct learner *l, const struct facts *f, struct err *err)
{
	return feed_set_order(l->s.calib, l->order, f->samples, err);
}

static void spent(struct learner *l, double since)
{
	if (l->s.seconds)
		*l->s.seconds += clock_now() - since;
}

enum fettle_status base_facts(struct learner *l, const struct facts *f, struct facts **out, struct err *err)
{
	const struct qplan none = QPLAN_INIT;

	return find_facts(l, f->asked, &none, out, err);
}

struct inputs_of {
	struct learner *l;
	const struct facts *f;
};

/* What a node of the model as it is reads, over the samples of these facts. */
static enum fettle_status see_base_input(void *self, size_t node, const struct block_seen **out,
					 struct err *err)
{
	const struct inputs_of *of = self;
	struct facts *base = NULL;
	enum fettle_status st = base_facts(of->l, of->f, &base, err);

	return st ? st : see_input(of->l, base, node, out, err);
}

enum fettle_status make_variant(struct learner *l, struct facts *f, const struct qplan *plan, struct err *err)
{
	const struct calibrate_options o = calibrate_options(l);
	struct inputs_of of = { l, f };
	const struct input_seen seen = { &of, see_base_input };
	const double start = clock_now(), before = l->s.seconds ? *l->s.seconds : 0;
	enum fettle_status st;

	f->samples = n_samples(l, f->asked);
	st = use_samples(l, f, err);
	if (!st)
		st = variant_new(&f->v, l->s.rt, l->s.s, plan, l->s.calib, &o, &seen, err);
	if (l->s.seconds)
		*l->s.seconds = before + clock_now() - start; /* a sweep of see_base_input() is part of it */
	return st;
}

/* Do means come with the calibration? Of the model as it is, if plans will need them. */
static bool with_means(const struct learner *l, const struct facts *f)
{
	return l->s.means && !*f->key;
}

/* of all values that recipes may need means of */
static struct channel_means *means_beside(const struct subject *s, const struct qplan *mapped,
					  const char *const *values, size_t n_values)
{
	struct channel_axis *axes = NULL;
	const size_t n = quantizer_means(&s->g, &s->ops, mapped, &axes);
	struct channel_means *means = channel_means_new(axes, n, values, n_values);

	free(axes);
	return means;
}

/* with others, where there are some */
static enum fettle_status calibrate_together(struct learner *l, struct facts *f, const struct qplan *mapped,
					     struct err *err)
{
	const char **values = NULL;
	const size_t n = quantizer_values(&f->v->s->g, &f->v->s->ops, mapped, &values);
	enum fettle_status st = l->s.calibrate(l->s.self, f->asked, values, n, &f->own, err);

	free(values);
	return st;
}

void learner_take(struct learner *l, int64_t samples, struct calibration *c)
{
	const struct qplan none = QPLAN_INIT;
	struct facts *f = NULL;

	if (!find_facts(l, samples, &none, &f, NULL) && !f->own)
		f->own = c;
	else
		calibration_free(c);
}

static enum fettle_status calibrate_with_means(struct learner *l, struct facts *f, const struct qplan *mapped,
					       struct calibrate_options o, struct err *err)
{
	struct subject *s = f->v->s;
	const char **values = NULL;
	const size_t n = quantizer_values(&s->g, &s->ops, mapped, &values);
	struct channel_means *means = means_beside(s, mapped, values, n);
	const struct calibrate_watch watch = channel_means_watch(means);
	enum fettle_status st;

	o.watch = &watch;
	st = subject_calibrate(s, l->s.rt, mapped, l->s.calib, &o, &f->own, err);
	if (!st && !channel_means_finish(means, NULL)) {
		f->means = means; /* what is not finite fails only where a plan asks for it */
		means = NULL;
	}
	channel_means_free(means);
	free(values);
	return st;
}

/* one pass observes all values that any plan may need, and what this one needs beyond */
static enum fettle_status calibrate_facts(struct learner *l, struct facts *f, const struct qplan *mapped,
					  struct err *err)
{
	const struct calibrate_options o = calibrate_options(l);
	double start = clock_now();
	enum fettle_status st;

	if (f->own)
		return FETTLE_OK;
	st = use_samples(l, f, err);
	if (!st && l->s.calibrate && !*f->key)
		st = calibrate_together(l, f, mapped, err);
	else if (!st && with_means(l, f))
		st = calibrate_with_means(l, f, mapped, o, err);
	else if (!st)
		st = subject_calibrate(f->v->s, l->s.rt, mapped, l->s.calib, &o, &f->own, err);
	spent(l, start);
	return st;
}

enum fettle_status learner_expect(struct learner *l, int64_t samples, const struct qplan *plan,
				  struct err *err)
{
	struct needs needs = NEEDS_INIT;
	struct facts *f = NULL;
	enum fettle_status st = find_facts(l, samples, plan, &f, err);
	size_t i;

	if (!st && !*f->key)
		st = quantizer_needs(f->v->s->z, plan, &needs, err);
	for (i = 0; i < needs.ranges.n; i++)
		VEC_PUSH(&l->expected, arena_strdup(&l->arena, needs.ranges.v[i].value));
	needs_release(&needs);
	return st;
}

static void add_once(struct map *seen, const char *value, const char **out, size_t *n)
{
	if (map_get(seen, value) != MAP_NONE)
		return;
	map_set(seen, value, *n);
	out[(*n)++] = value;
}

/* The values that a plan needs, and those expected, each once. */
static size_t needed_values(const struct learner *l, const struct needs *needs, const char **out)
{
	struct map seen = MAP_INIT;
	size_t n = 0, i;

	for (i = 0; i < needs->ranges.n; i++)
		add_once(&seen, needs->ranges.v[i].value, out, &n);
	for (i = 0; i < l->expected.n; i++)
		add_once(&seen, l->expected.v[i], out, &n);
	map_release(&seen);
	return n;
}

enum fettle_status calibrate_few(struct learner *l, struct facts *f, const struct qplan *mapped,
				 const struct needs *needs, struct err *err)
{
	const struct subject *s = f->v->s;
	const struct calibrate_options o = calibrate_options(l);
	const double start = clock_now();
	const char **values, **all = NULL;
	enum fettle_status st = FETTLE_OK;
	size_t n;

	if (*f->key || f->own || f->few || l->s.calibrate || !needs->ranges.n || needs->means.n)
		return FETTLE_OK;
	values = xcalloc(needs->ranges.n + l->expected.n, sizeof(*values));
	n = needed_values(l, needs, values);
	if (n * FEW <= quantizer_values(&s->g, &s->ops, mapped, &all)) {
		st = use_samples(l, f, err);
		if (!st)
			st = calibrate(&f->few, &(struct calibrate_on){ l->s.rt, s->m, l->s.calib }, values,
				       n, &o, err);
		spent(l, start);
	}
	free(all);
	free(values);
	return st;
}

/* of the model as it is, over the same samples */
static enum fettle_status calibrate_base(struct learner *l, const struct facts *f, const struct qplan *plan,
					 const struct calibration **out, struct err *err)
{
	struct qplan plain = *plan;
	struct facts *base = NULL;
	enum fettle_status st;

	plain.recipes = (struct recipes){ 0 };
	st = base_facts(l, f, &base, err);
	if (!st)
		st = calibrate_facts(l, base, &plain, err);
	if (!st)
		*out = base->own;
	return st;
}

static void note_range(struct facts *f, const struct range_need *n, struct range r)
{
	char *key = range_key(&n->setting, f->key);

	VEC_PUSH(&f->new_ranges, ((struct history_range){ n->value, arena_strdup(&f->arena, key), f->samples,
							  r.min, r.max }));
	free(key);
}

/* where a range is taken from: a calibration of the variant, or of the base (see variant_range()) */
enum fettle_status observe_range(struct learner *l, struct facts *f, const struct qplan *plan,
				 const struct qplan *mapped, const struct range_need *n, struct range *out,
				 struct err *err)
{
	const struct qsetting *s = &n->setting;
	const struct range_options o = { s->algorithm, s->parameter, s->dtype, s->scheme };
	const struct calibration *base = NULL;
	const bool few = !f->own && f->few && calibration_find(f->few, n->value);
	enum fettle_status st = FETTLE_OK;

	if (!few && variant_needs_own(f->v, n->value, s->algorithm))
		st = calibrate_facts(l, f, mapped, err);
	else if (!few)
		st = calibrate_base(l, f, plan, &base, err);
	if (!st)
		st = variant_range(f->v, few ? f->few : base, few ? f->few : f->own, n->value, &o, out, err);
	if (!st)
		note_range(f, n, *out);
	return st;
}

/* Where the calibration was shared with others, it has none. */
static enum fettle_status sweep_means(struct learner *l, struct facts *f, const struct qplan *mapped,
				      struct err *err)
{
	const struct calibrate_options o = calibrate_options(l);
	const struct subject *s = f->v->s;
	struct channel_means *means;
	const char **values = NULL;
	enum fettle_status st = FETTLE_OK;
	double start;
	size_t n;

	if (with_means(l, f) && !l->s.calibrate)
		st = calibrate_facts(l, f, mapped, err); /* which takes them along */
	if (st || f->means)
		return st;
	start = clock_now();
	st = use_samples(l, f, err);
	n = st || !with_means(l, f) ? 0 : quantizer_values(&s->g, &s->ops, mapped, &values);
	means = means_beside(s, mapped, values, n);
	if (!st)
		st = channel_means_sweep(means, &(struct calibrate_on){ l->s.rt, s->m, l->s.calib }, &o, err);
	if (st)
		channel_means_free(means);
	else
		f->means = means;
	free(values);
	spent(l, start);
	return st;
}

enum fettle_status observe_means(struct learner *l, struct facts *f, const struct qplan *mapped,
				 const struct channel_axis *a, double *out, struct err *err)
{
	enum fettle_status st = sweep_means(l, f, mapped, err);

	if (!st)
		st = channel_means_get(f->means, a->value, a->axis, a->channels, out, err);
	if (!st)
		VEC_PUSH(&f->new_means, ((struct noted_means){ *a, out }));
	return st;
}

enum fettle_status observe_grams(struct learner *l, struct facts *f, const struct gram_input *want, size_t n,
				 struct err *err)
{
	const struct calibrate_options o = calibrate_options(l);
	double start = clock_now();
	enum fettle_status st = use_samples(l, f, err);

	if (!st)
		st = grams_observe(&f->grams, &(struct calibrate_on){ l->s.rt, f->v->s->m, l->s.calib }, want,
				   n, &o, err);
	spent(l, start);
	return st;
}

enum fettle_status observe_in_sequence(struct learner *l, struct facts *f, const struct qplan *mapped,
				       struct block_store *out, struct err *err)
{
	const struct parts p = { .rt = l->s.rt,
				 .s = f->v->s,
				 .plan = mapped,
				 .feed = l->s.calib,
				 .threads = l->s.threads,
				 .progress = l->s.progress,
				 .self = l->s.self };
	double start = clock_now();
	enum fettle_status st = use_samples(l, f, err);

	if (!st)
		st = blocks_by_parts(out, &p, err);
	spent(l, start);
	return st;
}

enum fettle_status make_rounding(struct learner *l, struct facts *f, const struct qplan *mapped,
				 struct rounding **out, struct err *err)
{
	const struct finetune_source s = { .rt = l->s.rt,
					   .s = f->v->s,
					   .values = f->values,
					   .feed = l->s.calib,
					   /* the same weights, however many trials run side by side */
					   .threads = l->s.rounding_threads ? l->s.rounding_threads : 1,
					   .cache = l->s.cache ? l->s.cache : 1,
					   .progress = l->s.progress,
					   .self = l->s.self };
	enum fettle_status st = use_samples(l, f, err);

	return st ? st : finetune(mapped, &s, out, l->s.report, err);
}
