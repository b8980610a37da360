#include "tune/pareto.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tune/ledger.h"

static double value_of(const struct pareto_point *p, const char *objective)
{
	switch (*objective) {
	case 'a':
		return p->accuracy;
	case 'p':
		return p->latency;
	case 'm':
		return p->size;
	default:
		return p->footprint;
	}
}

static bool measured(const struct pareto_point *p, const char *objectives)
{
	const char *o;

	for (o = objectives; *o; o += strcspn(o, " "), o += strspn(o, " "))
		if (isnan(value_of(p, o)))
			return false;
	return true;
}

/* no worse in any, better in one */
static bool dominates(const struct pareto_point *a, const struct pareto_point *b, const char *objectives)
{
	bool better = false;
	const char *o;

	for (o = objectives; *o; o += strcspn(o, " "), o += strspn(o, " ")) {
		bool higher = o[strcspn(o, "+-")] == '+';
		double gain = (higher ? 1 : -1) * (value_of(a, o) - value_of(b, o));

		if (gain < 0)
			return false;
		better |= gain > 0;
	}
	return better;
}

static void mark(struct pareto_point *v, size_t n, const char *objectives)
{
	size_t i, k;

	for (i = 0; i < n; i++) {
		v[i].on_front = measured(&v[i], objectives);
		for (k = 0; k < n && v[i].on_front; k++)
			v[i].on_front = !measured(&v[k], objectives) || !dominates(&v[k], &v[i], objectives);
	}
}

static enum fettle_status read_footprint(struct history *h, struct pareto_point *p, struct err *err)
{
	char *key = footprint_key(p->number), *bytes = NULL;
	enum fettle_status st = history_meta(h, key, &bytes, err);

	if (bytes)
		p->footprint = strtod(bytes, NULL);
	free(bytes);
	free(key);
	return st;
}

static struct pareto_point point_of(const struct history_trial *t)
{
	const bool early = isnan(t->accuracy) || t->accuracy_low < t->accuracy_high;

	if (t->failed)
		return (struct pareto_point){ t->number, NAN, NAN, NAN, NAN, false };
	return (struct pareto_point){ .number = t->number,
				      .accuracy = early ? NAN : t->accuracy,
				      .latency = t->latency,
				      .size = t->size_bytes ? (double)t->size_bytes : NAN,
				      .footprint = NAN };
}

enum fettle_status pareto_points(struct history *h, struct pareto_point **out, size_t *n, struct err *err)
{
	const char *otherwise =
		history_run(h)->higher_is_better ? "accuracy+ performance-" : "accuracy- performance-";
	VEC(struct pareto_point) v = { NULL, 0, 0 };
	struct history_trial t = { .number = 0 };
	char *objectives = NULL;
	size_t last = 0, i;
	enum fettle_status st;

	while (!(st = history_next(h, last, &t, err)) && t.number) {
		VEC_PUSH(&v, point_of(&t));
		last = t.number;
	}
	history_trial_release(&t);
	if (!st)
		st = history_meta(h, "objectives", &objectives, err);
	for (i = 0; i < v.n && !st && objectives && strstr(objectives, "footprint"); i++)
		st = read_footprint(h, &v.v[i], err);
	if (!st)
		mark(v.v, v.n, objectives ? objectives : otherwise);
	free(objectives);
	*out = v.v;
	*n = v.n;
	return st;
}

enum fettle_status pareto_front(struct history *h, struct arena *a, const size_t **numbers, size_t *n,
				struct err *err)
{
	struct pareto_point *v = NULL;
	size_t all, i, *out;
	enum fettle_status st = pareto_points(h, &v, &all, err);

	*numbers = out = arena_alloc(a, (all + 1) * sizeof(*out));
	for (i = *n = 0; i < all; i++)
		if (v[i].on_front)
			out[(*n)++] = v[i].number;
	free(v);
	return st;
}
