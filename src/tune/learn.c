#include "tune/learn.h"

#include <stdlib.h>
#include <string.h>

#include "space/plan_json.h"
#include "tune/facts.h"

struct learner *learner_new(const struct learn_source *s)
{
	struct learner *l = xcalloc(1, sizeof(*l));
	size_t i;

	l->s = *s;
	if (!s->calib)
		return l;
	/* before the feed is cut down to fewer */
	l->total = feed_samples(s->calib);
	l->order = xcalloc(l->total + 1, sizeof(*l->order));
	for (i = 0; i < l->total; i++)
		l->order[i] = feed_sample(s->calib, i);
	return l;
}

static void facts_free(struct facts *f)
{
	size_t i;

	if (!f)
		return;
	for (i = 0; i < f->roundings.n; i++)
		rounding_free(f->roundings.v[i]);
	VEC_RELEASE(&f->roundings);
	map_release(&f->rounded);
	for (i = 0; i < f->sequences.n; i++)
		block_store_free(f->sequences.v[i].blocks);
	VEC_RELEASE(&f->sequences);
	block_store_free(f->blocks);
	grams_free(f->grams);
	channel_means_free(f->means);
	calibration_free(f->own);
	calibration_free(f->few);
	statistics_free(f->values);
	variant_free(f->v);
	VEC_RELEASE(&f->new_ranges);
	VEC_RELEASE(&f->new_means);
	arena_release(&f->arena);
	free(f->key);
	free(f);
}

void learner_free(struct learner *l)
{
	size_t i;

	if (!l)
		return;
	for (i = 0; i < l->facts.n; i++)
		facts_free(l->facts.v[i]);
	VEC_RELEASE(&l->facts);
	free(l->order);
	map_release(&l->stored_at);
	history_ranges_release(&l->stored);
	VEC_RELEASE(&l->expected);
	arena_release(&l->arena);
	free(l);
}

static bool has_source(const struct learner *l)
{
	return l->s.calib || l->s.history;
}

static enum fettle_status open_variant(struct learner *l, struct facts *f, const struct qplan *plan,
				       struct err *err)
{
	const struct qplan none = QPLAN_INIT;

	if (l->s.calib)
		return make_variant(l, f, plan, err);
	if (l->s.history)
		return read_variant(l, f, plan, err);
	if (plan_rewrites(plan) && !plan_scales_inputs(plan))
		return fail(err, FETTLE_INVALID, "cannot apply plan: %s needs calibration data", f->key);
	return variant_new(&f->v, NULL, l->s.s, &none, NULL, NULL, NULL, err);
}

struct facts *known_facts(const struct learner *l, int64_t samples, const char *key)
{
	size_t i;

	for (i = 0; i < l->facts.n; i++)
		if (l->facts.v[i]->asked == samples && strcmp(l->facts.v[i]->key, key) == 0)
			return l->facts.v[i];
	return NULL;
}

enum fettle_status find_facts(struct learner *l, int64_t samples, const struct qplan *plan,
			      struct facts **out, struct err *err)
{
	char *key = variant_key(l->s.s, plan);
	struct facts *f = known_facts(l, samples, key);
	enum fettle_status st;

	if (f) {
		*out = f;
		free(key);
		return FETTLE_OK;
	}
	f = xcalloc(1, sizeof(*f));
	f->asked = samples;
	f->key = key;
	f->values = statistics_new();
	st = open_variant(l, f, plan, err);
	if (st) {
		facts_free(f);
		return st;
	}
	VEC_PUSH(&l->facts, f);
	*out = f;
	return FETTLE_OK;
}

static enum fettle_status learn_ranges(struct learner *l, struct facts *f, const struct qplan *plan,
				       const struct qplan *mapped, const struct needs *needs, struct err *err)
{
	enum fettle_status st = l->s.calib ? calibrate_few(l, f, mapped, needs, err) : FETTLE_OK;
	size_t i;

	for (i = 0; i < needs->ranges.n && !st; i++) {
		const struct range_need *n = &needs->ranges.v[i];
		struct range r;

		if (statistics_range(f->values, n->value, &n->setting, &r))
			continue;
		st = l->s.calib ? observe_range(l, f, plan, mapped, n, &r, err)
				: read_range(l, f, n, &r, err);
		if (!st)
			statistics_set_range(f->values, n->value, &n->setting, r);
	}
	return st;
}

static enum fettle_status learn_means(struct learner *l, struct facts *f, const struct qplan *mapped,
				      const struct needs *needs, struct err *err)
{
	enum fettle_status st = FETTLE_OK;
	size_t i;

	for (i = 0; i < needs->means.n && !st; i++) {
		const struct channel_axis *a = &needs->means.v[i];
		double *means;

		if (statistics_means(f->values, a->value, a->axis, a->channels))
			continue;
		means = arena_alloc(&f->arena, (a->channels + 1) * sizeof(*means));
		st = l->s.calib ? observe_means(l, f, mapped, a, means, err)
				: read_means(l, f, a, means, err);
		if (!st)
			statistics_set_means(f->values, a->value, a->axis, means, a->channels);
	}
	return st;
}

/* the ranges and means of a plan of the facts' own model */
static enum fettle_status learn_values(struct learner *l, struct facts *f, const struct qplan *plan,
				       const struct qplan *mapped, bool *rounding, struct err *err)
{
	struct needs needs = NEEDS_INIT;
	enum fettle_status st = quantizer_needs(f->v->s->z, mapped, &needs, err);

	/* without any source quantize() says which op it is that needs calibration */
	if (!st && has_source(l))
		st = learn_ranges(l, f, plan, mapped, &needs, err);
	if (!st && has_source(l))
		st = learn_means(l, f, mapped, &needs, err);
	if (!st && has_source(l))
		st = learn_blocks(l, f, mapped, &needs, err);
	*rounding = needs.rounding;
	needs_release(&needs);
	return st;
}

/* The file of the weights that finetune has made: for the plan's root; a plan of no space is its own. */
static char *rounding_path(const struct learner *l, const struct facts *f, const struct qplan *plan)
{
	char *text, hash[FINGERPRINT_LEN];

	if (!*plan->root) {
		text = qplan_to_json(plan, &f->v->s->ops, (int64_t)f->samples);
		plan_text_hash(text, hash);
		free(text);
	}
	return xstrfmt("%s/rounding-%s", l->s.workspace ? l->s.workspace : "",
		       *plan->root ? plan->root : hash);
}

/* once per plan; what a run before this one has left in the workspace is as good */
static enum fettle_status learn_rounding(struct learner *l, struct facts *f, const struct qplan *mapped,
					 const struct rounding **out, struct err *err)
{
	char *path = rounding_path(l, f, mapped);
	size_t known = map_get(&f->rounded, path);
	struct rounding *new = NULL;
	enum fettle_status st = FETTLE_OK;

	if (known != MAP_NONE)
		goto out;
	if (!l->s.calib) {
		st = rounding_load(&new, path, f->v->s->ops.n, err);
	} else if (!l->s.workspace || rounding_load(&new, path, f->v->s->ops.n, NULL)) {
		st = make_rounding(l, f, mapped, &new, err);
		if (!st && l->s.workspace)
			st = rounding_save(new, path, err);
	}
	if (st) {
		rounding_free(new);
		goto out;
	}
	known = f->roundings.n;
	VEC_PUSH(&f->roundings, new);
	map_set(&f->rounded, arena_strdup(&f->arena, path), known);
out:
	if (!st)
		*out = f->roundings.v[known];
	free(path);
	return st;
}

enum fettle_status learn(struct learner *l, int64_t samples, const struct qplan *plan, struct knowledge *out,
			 struct err *err)
{
	struct qplan mapped = QPLAN_INIT, before = QPLAN_INIT;
	struct facts *f = NULL;
	bool rounding = false, ignored;
	enum fettle_status st;

	*out = (struct knowledge){ .values = NULL };
	st = find_facts(l, samples, plan, &f, err);
	if (st)
		return st;
	if (plan->n != f->v->n_base)
		return fail(err, FETTLE_INVALID, "cannot apply plan: it is for %zu ops, the model has %zu",
			    plan->n, f->v->n_base);
	variant_plan(f->v, plan, &mapped);
	st = learn_values(l, f, plan, &mapped, &rounding, err);
	if (!st && rounding && has_source(l)) {
		before = qplan_before(&mapped);
		st = learn_values(l, f, plan, &before, &ignored, err);
		if (!st)
			st = learn_rounding(l, f, &before, &out->rounding, err);
	}
	out->variant = f->v;
	if (has_source(l)) {
		out->values = f->values;
		out->blocks = st ? NULL : known_blocks(f, &mapped);
	}
	qplan_release(&mapped);
	qplan_release(&before);
	return st;
}

/* of the model as it is, or (when there is no such) as the first plan had it */
const struct observer *learner_observer(const struct learner *l, const char *value)
{
	const struct calibration *found = NULL;
	size_t i;

	for (i = 0; i < l->facts.n; i++)
		if (l->facts.v[i]->own && (!found || !*l->facts.v[i]->key))
			found = l->facts.v[i]->own;
	return found ? calibration_find(found, value) : NULL;
}

const struct observer *learner_plan_observer(const struct learner *l, int64_t samples,
					     const struct qplan *plan, const char *value)
{
	char *key = variant_key(l->s.s, plan);
	const struct facts *f = known_facts(l, samples, key), *base = known_facts(l, samples, "");
	const struct calibration *c = f ? f->own : NULL;
	struct range ignored;

	if (f && !c && base && !variant_changes(f->v, value, &ignored))
		c = base->own;
	free(key);
	return c ? calibration_find(c, value) : NULL;
}
