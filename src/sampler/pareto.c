#include "sampler/pareto.h"

#include <math.h>
#include <stdlib.h>

struct place {
	size_t number;
	size_t front;
	double crowding; /* the distance to the neighbours on both sides, INFINITY at an end */
	double key;      /* of the sort at hand */
};

static bool dominates(const struct trials *t, size_t a, size_t b)
{
	const double *ra = trials_result(t, a), *rb = trials_result(t, b);
	double va = t->list.v[a].violation, vb = t->list.v[b].violation;
	bool better = false;
	size_t i;

	if (va > 0 || vb > 0)
		return va < vb;
	for (i = 0; i < t->n_objectives; i++) {
		if (ra[i] > rb[i])
			return false;
		better |= ra[i] < rb[i];
	}
	return better;
}

/* Fronts one after the other: `above` counts those not yet in a front that dominate a trial. */
static void find_fronts(const struct trials *t, struct place *places, size_t n)
{
	size_t *above = xcalloc(n, sizeof(*above)), front, left = n, i, k;
	bool *done = xcalloc(n, sizeof(*done)), *now = xcalloc(n, sizeof(*now));

	for (i = 0; i < n; i++)
		for (k = 0; k < n; k++)
			above[i] += dominates(t, places[k].number, places[i].number);
	for (front = 0; left; front++) {
		for (i = 0; i < n; i++)
			now[i] = !done[i] && !above[i];
		for (i = 0; i < n; i++) {
			if (!now[i])
				continue;
			places[i].front = front;
			done[i] = true;
			left--;
			for (k = 0; k < n; k++)
				above[k] -= !done[k] && !now[k] &&
					    dominates(t, places[i].number, places[k].number);
		}
	}
	free(now);
	free(done);
	free(above);
}

static int compare_numbers(const struct place *a, const struct place *b)
{
	return a->number < b->number ? -1 : a->number > b->number;
}

static int compare_keys(const void *pa, const void *pb)
{
	const struct place *a = pa, *b = pb;

	if (a->front != b->front)
		return a->front < b->front ? -1 : 1;
	return a->key < b->key ? -1 : a->key > b->key ? 1 : compare_numbers(a, b);
}

static int compare_places(const void *pa, const void *pb)
{
	const struct place *a = pa, *b = pb;

	if (a->front != b->front)
		return a->front < b->front ? -1 : 1;
	return a->crowding > b->crowding ? -1 : a->crowding < b->crowding ? 1 : compare_numbers(a, b);
}

/* Adds what one objective, by which the places are sorted, makes of the distances in a front. */
static void add_crowding(struct place *front, size_t n)
{
	double range = front[n - 1].key - front[0].key;
	size_t i;

	front[0].crowding = front[n - 1].crowding = INFINITY;
	for (i = 1; i + 1 < n && range > 0; i++)
		front[i].crowding += (front[i + 1].key - front[i - 1].key) / range;
}

void pareto_sort(const struct trials *t, size_t *numbers, size_t n)
{
	struct place *places = xcalloc(n + 1, sizeof(*places));
	size_t objective, i, k;

	for (i = 0; i < n; i++)
		places[i].number = numbers[i];
	find_fronts(t, places, n);
	for (objective = 0; objective < t->n_objectives; objective++) {
		for (i = 0; i < n; i++)
			places[i].key = trials_result(t, places[i].number)[objective];
		qsort(places, n, sizeof(*places), compare_keys);
		for (i = 0; i < n; i = k) {
			for (k = i + 1; k < n && places[k].front == places[i].front; k++)
				;
			add_crowding(places + i, k - i);
		}
	}
	qsort(places, n, sizeof(*places), compare_places);
	for (i = 0; i < n; i++)
		numbers[i] = places[i].number;
	free(places);
}
