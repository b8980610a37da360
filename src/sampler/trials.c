#include "sampler/trials.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

void trials_init(struct trials *t, const struct point_space *space, const struct sampler_options *opt)
{
	*t = (struct trials){ .space = space,
			      .n_objectives = opt->n_objectives ? opt->n_objectives : 1,
			      .n_constraints = opt->n_constraints };
	point_set_init(&t->points, space->n);
	shuffle_init(&t->order, space, opt->seed);
}

void trials_release(struct trials *t)
{
	point_set_release(&t->points);
	VEC_RELEASE(&t->list);
	VEC_RELEASE(&t->results);
}

static size_t number_of(struct trials *t, const double *point)
{
	size_t number = point_set_add(&t->points, point), i;

	if (number < t->list.n)
		return number;
	VEC_PUSH(&t->list, ((struct trial){ TRIAL_PENDING, 0, 0 }));
	for (i = 0; i < t->n_objectives + t->n_constraints; i++)
		VEC_PUSH(&t->results, 0);
	return number;
}

void trials_ask(struct trials *t, const double *point)
{
	number_of(t, point);
}

void trials_tell(struct trials *t, const double *point, const struct sampler_result *r)
{
	size_t number = number_of(t, point), i;
	struct trial *trial = &t->list.v[number];
	double *result = t->results.v + number * (t->n_objectives + t->n_constraints);

	t->done -= trial->state == TRIAL_DONE;
	t->failed -= trial->state == TRIAL_FAILED;
	*trial = (struct trial){ TRIAL_FAILED, INFINITY, INFINITY };
	if (r) {
		*trial = (struct trial){ TRIAL_DONE, r->values[0], 0 };
		memcpy(result, r->values, t->n_objectives * sizeof(*result));
		memcpy(result + t->n_objectives, r->violations, t->n_constraints * sizeof(*result));
		for (i = 0; i < t->n_constraints; i++)
			trial->violation += fmax(r->violations[i], 0);
	}
	t->done += trial->state == TRIAL_DONE;
	t->failed += trial->state == TRIAL_FAILED;
}

bool trials_seen(const struct trials *t, const double *point)
{
	return point_set_find(&t->points, point) != POINT_NONE;
}

bool trials_ask_random(struct trials *t, double *point)
{
	if (!shuffle_next_unseen(&t->order, &t->points, point))
		return false;
	trials_ask(t, point);
	return true;
}

struct rank {
	double violation, cost;
	size_t number;
};

static int compare_ranks(const void *pa, const void *pb)
{
	const struct rank *a = pa, *b = pb;

	if (a->violation != b->violation)
		return a->violation < b->violation ? -1 : 1;
	if (a->cost != b->cost)
		return a->cost < b->cost ? -1 : 1;
	return a->number < b->number ? -1 : a->number > b->number;
}

void trials_rank(const struct trials *t, size_t *numbers)
{
	struct rank *ranks = xcalloc(t->list.n + 1, sizeof(*ranks));
	size_t i, n = 0;

	for (i = 0; i < t->list.n; i++)
		if (t->list.v[i].state != TRIAL_PENDING)
			ranks[n++] = (struct rank){ t->list.v[i].violation, t->list.v[i].cost, i };
	qsort(ranks, n, sizeof(*ranks), compare_ranks);
	for (i = 0; i < n; i++)
		numbers[i] = ranks[i].number;
	free(ranks);
}
