#include "sampler/trials.h"

#include <math.h>
#include <stdlib.h>

void trials_init(struct trials *t, const struct point_space *space, uint64_t seed)
{
	*t = (struct trials){ .space = space };
	point_set_init(&t->points, space->n);
	shuffle_init(&t->order, space, seed);
}

void trials_release(struct trials *t)
{
	point_set_release(&t->points);
	VEC_RELEASE(&t->list);
}

static struct trial *trial_of(struct trials *t, const uint16_t *point)
{
	size_t number = point_set_add(&t->points, point);

	if (number == t->list.n)
		VEC_PUSH(&t->list, ((struct trial){ TRIAL_PENDING, 0 }));
	return &t->list.v[number];
}

void trials_ask(struct trials *t, const uint16_t *point)
{
	trial_of(t, point);
}

void trials_tell(struct trials *t, const uint16_t *point, double cost)
{
	struct trial *trial = trial_of(t, point);

	t->done -= trial->state == TRIAL_DONE;
	t->failed -= trial->state == TRIAL_FAILED;
	*trial = isnan(cost) ? (struct trial){ TRIAL_FAILED, 0 } : (struct trial){ TRIAL_DONE, cost };
	t->done += trial->state == TRIAL_DONE;
	t->failed += trial->state == TRIAL_FAILED;
}

bool trials_seen(const struct trials *t, const uint16_t *point)
{
	return point_set_find(&t->points, point) != POINT_NONE;
}

bool trials_ask_random(struct trials *t, uint16_t *point)
{
	if (!shuffle_next_unseen(&t->order, &t->points, point))
		return false;
	trials_ask(t, point);
	return true;
}

struct rank {
	double cost;
	size_t number;
};

static int compare_ranks(const void *pa, const void *pb)
{
	const struct rank *a = pa, *b = pb;

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
			ranks[n++] = (struct rank){ t->list.v[i].state == TRIAL_FAILED ? INFINITY
										       : t->list.v[i].cost,
						    i };
	qsort(ranks, n, sizeof(*ranks), compare_ranks);
	for (i = 0; i < n; i++)
		numbers[i] = ranks[i].number;
	free(ranks);
}
