/* Where integers gain nothing, the fastest model that is quantized at all: a single op is. */
#include <math.h>
#include <stdlib.h>

#include "tune/modes_impl.h"

/* Of ops that take up to this share of the fp32 model's time: if the price of one is wrong, it is wrong by little. */
#define SMALL_SHARE 0.02

static void all_in_fp32(const struct lab *l, const struct plan *from, struct plan *out)
{
	size_t i;

	plan_copy(out, from);
	for (i = 0; i < l->t->space.n_ops; i++)
		if (plan_can_fall_back(from, &l->t->space, i))
			out->choice[i] = l->t->space.v[i].fallback;
}

void price_alone(struct lab *l, const struct plan *from, double *seconds)
{
	const struct space *space = &l->t->space;
	const struct modes *m = l->modes;
	struct plan p = PLAN_INIT;
	double fp32;
	size_t i;

	all_in_fp32(l, from, &p);
	fp32 = mode_seconds(l, &p);
	for (i = 0; i < space->n_ops; i++) {
		const double takes = m->fp32.seconds[l->t->node[i]]; /* 0: the profile has it under no name */

		seconds[i] = INFINITY;
		if (!plan_can_fall_back(from, space, i) || !(takes > 0))
			continue;
		p.choice[i] = from->choice[i];
		seconds[i] = mode_seconds(l, &p) - fp32;
		p.choice[i] = space->v[i].fallback;
	}
	plan_release(&p);
}

double slight_plan(struct lab *l, const struct plan *from, struct plan *out)
{
	const struct space *space = &l->t->space;
	double *seconds = xcalloc(space->n_ops + 1, sizeof(*seconds)), least = INFINITY;
	size_t i, best = 0;

	price_alone(l, from, seconds);
	for (i = 0; i < space->n_ops; i++)
		if (space->v[i].compute && seconds[i] < least &&
		    l->modes->fp32.seconds[l->t->node[i]] <= SMALL_SHARE * l->modes->fp32.total) {
			least = seconds[i];
			best = i;
		}
	free(seconds);
	if (isfinite(least)) {
		all_in_fp32(l, from, out);
		out->choice[best] = from->choice[best];
	}
	return l->modes->fp32.total + fmax(least, 0);
}
