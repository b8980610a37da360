#include "api/pareto.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tune/lab.h"

static const char *const names[] = { [OBJECTIVE_PERFORMANCE] = "performance",
				     [OBJECTIVE_MODELSIZE] = "modelsize",
				     [OBJECTIVE_FOOTPRINT] = "footprint",
				     [OBJECTIVE_ACCURACY] = "accuracy" };

char *pareto_objectives(const struct config *c, bool higher_is_better)
{
	const struct config_ints *list = &c->tuning.objectives;
	struct str out = STR_INIT;
	size_t i;

	/* what is gained is always weighed against what is lost */
	str_addf(&out, "accuracy%c", higher_is_better ? '+' : '-');
	if (!list->n)
		str_addf(&out, " %s-", names[c->tuning.objective]);
	for (i = 0; i < list->n; i++)
		if (list->v[i] != OBJECTIVE_ACCURACY)
			str_addf(&out, " %s%c", names[list->v[i]], config_higher_is_better(c, i) ? '+' : '-');
	return out.s;
}

/* NaN: not measured */
static double value_of(const struct fettle_trial *t, const char *objective)
{
	if (t->failed)
		return NAN;
	switch (*objective) {
	case 'a':
		return t->early ? NAN : t->accuracy;
	case 'p':
		return t->latency_ms;
	case 'm':
		return t->size_bytes ? (double)t->size_bytes : NAN;
	default:
		return t->footprint_bytes ? (double)t->footprint_bytes : NAN;
	}
}

static bool measured(const struct fettle_trial *t, const char *objectives)
{
	const char *p;

	for (p = objectives; *p; p += strcspn(p, " "), p += strspn(p, " "))
		if (isnan(value_of(t, p)))
			return false;
	return true;
}

/* no worse in any, better in one */
static bool dominates(const struct fettle_trial *a, const struct fettle_trial *b, const char *objectives)
{
	bool better = false;
	const char *p;

	for (p = objectives; *p; p += strcspn(p, " "), p += strspn(p, " ")) {
		bool higher = p[strcspn(p, "+-")] == '+';
		double gain = (higher ? 1 : -1) * (value_of(a, p) - value_of(b, p));

		if (gain < 0)
			return false;
		better |= gain > 0;
	}
	return better;
}

void pareto_mark(struct fettle_trial *v, size_t n, const char *objectives)
{
	size_t i, k;

	for (i = 0; i < n; i++) {
		v[i].pareto = measured(&v[i], objectives);
		for (k = 0; k < n && v[i].pareto; k++)
			v[i].pareto = !measured(&v[k], objectives) || !dominates(&v[k], &v[i], objectives);
	}
}

enum fettle_status pareto_mark_run(struct history *h, struct fettle_trial *v, size_t n, struct err *err)
{
	const char *otherwise =
		history_run(h)->higher_is_better ? "accuracy+ performance-" : "accuracy- performance-";
	char *objectives = NULL, *bytes = NULL;
	enum fettle_status st = history_meta(h, "objectives", &objectives, err);
	size_t i;

	for (i = 0; i < n && !st && objectives && strstr(objectives, "footprint"); i++) {
		char *key = footprint_key(v[i].number);

		st = history_meta(h, key, &bytes, err);
		if (bytes)
			v[i].footprint_bytes = (size_t)strtoull(bytes, NULL, 10);
		free(bytes);
		bytes = NULL;
		free(key);
	}
	if (!st)
		pareto_mark(v, n, objectives ? objectives : otherwise);
	free(objectives);
	return st;
}

enum fettle_status pareto_front(struct history *h, struct arena *a, const size_t **numbers, size_t *n,
				struct err *err)
{
	VEC(struct fettle_trial) v = { NULL, 0, 0 };
	struct history_trial t = { .number = 0 };
	enum fettle_status st;
	size_t last = 0, i, *out;

	while (!(st = history_next(h, last, &t, err)) && t.number) {
		VEC_PUSH(&v, ((struct fettle_trial){
				     .number = t.number,
				     .failed = t.failed,
				     .accuracy = t.accuracy,
				     .early = isnan(t.accuracy) || t.accuracy_low < t.accuracy_high,
				     .latency_ms = 1e3 * t.latency,
				     .size_bytes = t.size_bytes,
			     }));
		last = t.number;
	}
	history_trial_release(&t);
	if (!st)
		st = pareto_mark_run(h, v.v, v.n, err);
	*numbers = out = arena_alloc(a, (v.n + 1) * sizeof(*out));
	for (i = *n = 0; i < v.n; i++)
		if (v.v[i].pareto)
			out[(*n)++] = v.v[i].number;
	VEC_RELEASE(&v);
	return st;
}
