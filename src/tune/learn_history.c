/* Knowledge in the history: which names it has there, how it is written and how it is read. */
#include <stdlib.h>

#include "base/str.h"
#include "tune/facts.h"

char *range_key(const struct qsetting *s, const char *variant)
{
	char *setting = setting_key(s), *key = xstrfmt("%s%s%s", setting, *variant ? " " : "", variant);

	free(setting);
	return key;
}

static char *mean_key(const struct channel_axis *a, const struct facts *f)
{
	return xstrfmt("mean\t%s\t%d\t%zu%s%s", a->value, a->axis, f->samples, *f->key ? "\t" : "", f->key);
}

/* of what variant_read() wants, by the samples that plans ask for */
static char *rewrite_key(const struct facts *f, size_t samples)
{
	return xstrfmt("rewrite\t%s\t%zu", f->key, samples);
}

static void keep_rewriting(struct facts *f, struct history *h)
{
	char *key = rewrite_key(f, (size_t)f->asked);

	if (*f->key && !f->rewriting_kept)
		f->rewriting_kept = !history_set_meta(h, key, f->v->text, NULL);
	free(key);
}

static void keep_means(struct facts *f, struct history *h)
{
	size_t i, k;

	for (i = 0; i < f->new_means.n; i++) {
		const struct noted_means *m = &f->new_means.v[i];
		char *key = mean_key(&m->at, f);
		struct str text = STR_INIT;

		for (k = 0; k < m->at.channels; k++)
			str_addf(&text, "%a ", m->v[k]);
		history_set_meta(h, key, text.s ? text.s : "", NULL);
		str_release(&text);
		free(key);
	}
	f->new_means.n = 0;
}

void learner_keep(struct learner *l, struct history *h)
{
	size_t i;

	for (i = 0; i < l->facts.n; i++) {
		struct facts *f = l->facts.v[i];

		keep_rewriting(f, h);
		keep_means(f, h);
		if (f->new_ranges.n && !history_add_ranges(h, f->new_ranges.v, f->new_ranges.n, NULL))
			f->new_ranges.n = 0;
	}
}

/* ---- and back ---- */

static enum fettle_status load_stored(struct learner *l, struct err *err)
{
	enum fettle_status st;
	size_t i;

	if (l->stored_at.n)
		return FETTLE_OK;
	st = history_ranges(l->s.history, 0, &l->stored, err);
	for (i = 0; i < l->stored.n && !st; i++)
		map_set(&l->stored_at,
			arena_strfmt(&l->arena, "%s\t%s\t%zu", l->stored.v[i].value, l->stored.v[i].setting,
				     l->stored.v[i].samples),
			i);
	return st;
}

/* so many samples as a plan asks for; all there were, when there were not so many */
static size_t stored_samples(const struct learner *l, int64_t asked)
{
	size_t i, most = 0;

	for (i = 0; i < l->stored.n; i++)
		if (l->stored.v[i].samples <= (size_t)asked && l->stored.v[i].samples > most)
			most = l->stored.v[i].samples;
	return most;
}

enum fettle_status read_variant(struct learner *l, struct facts *f, const struct qplan *plan, struct err *err)
{
	char *key, *text = NULL;
	enum fettle_status st = load_stored(l, err);

	if (st)
		return st;
	f->samples = stored_samples(l, f->asked);
	if (!plan_rewrites(plan))
		return variant_new(&f->v, NULL, l->s.s, plan, NULL, NULL, NULL, err);
	key = rewrite_key(f, (size_t)f->asked);
	st = history_meta(l->s.history, key, &text, err);
	if (!st && !text) { /* version 0.1 wrote how many there were */
		free(key);
		key = rewrite_key(f, f->samples);
		st = history_meta(l->s.history, key, &text, err);
	}
	if (!st && !text)
		st = fail(err, FETTLE_INVALID, "cannot recover: the history does not say what %s did",
			  f->key);
	if (!st)
		st = variant_read(&f->v, l->s.s, text, err);
	free(key);
	free(text);
	return st;
}

enum fettle_status read_range(const struct learner *l, const struct facts *f, const struct range_need *n,
			      struct range *out, struct err *err)
{
	char *setting = range_key(&n->setting, f->key),
	     *key = xstrfmt("%s\t%s\t%zu", n->value, setting, f->samples);
	size_t i = map_get(&l->stored_at, key);

	free(setting);
	free(key);
	if (i == MAP_NONE)
		return fail(err, FETTLE_INVALID, "cannot recover: the history has no range for value '%s'",
			    n->value);
	*out = (struct range){ (float)l->stored.v[i].min, (float)l->stored.v[i].max };
	return FETTLE_OK;
}

enum fettle_status read_means(const struct learner *l, const struct facts *f, const struct channel_axis *a,
			      double *out, struct err *err)
{
	char *key = mean_key(a, f), *text = NULL, *p;
	enum fettle_status st;
	size_t i;

	st = history_meta(l->s.history, key, &text, err);
	p = text;
	for (i = 0; i < a->channels && !st; i++) {
		char *end = p;

		out[i] = p ? strtod(p, &end) : 0;
		if (end == p)
			st = fail(err, FETTLE_INVALID,
				  "cannot recover: the history has no means for value '%s'", a->value);
		p = end;
	}
	free(text);
	free(key);
	return st;
}
