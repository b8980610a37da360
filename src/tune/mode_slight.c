/* Where integers gain nothing, the fastest model that is quantized at all: a single op is. */
#include <math.h>

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

double slight_plan(struct lab *l, const struct plan *from, struct plan *out)
{
	const struct space *space = &l->t->space;
	const struct modes *m = l->modes;
	struct plan p = PLAN_INIT;
	double fp32, best = INFINITY, price;
	size_t i;

	all_in_fp32(l, from, &p);
	fp32 = mode_seconds(l, &p);
	for (i = 0; i < space->n_ops; i++) {
		const double takes = m->fp32.seconds[l->t->node[i]]; /* 0: the profile has it under no name */

		if (!space->v[i].compute || !plan_can_fall_back(from, space, i) || !(takes > 0) ||
		    takes > SMALL_SHARE * m->fp32.total)
			continue;
		p.choice[i] = from->choice[i];
		price = mode_seconds(l, &p) - fp32;
		if (price < best) {
			plan_copy(out, &p);
			best = price;
		}
		p.choice[i] = space->v[i].fallback;
	}
	plan_release(&p);
	return m->fp32.total + fmax(best, 0);
}
