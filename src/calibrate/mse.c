/* Clips where the squared error of clipping and of rounding together is least. */
#include "calibrate/range.h"

#include <math.h>

#include "calibrate/loss.h"

enum {
	SHRINKS = 128, /* candidates that shrink both ends alike */
	ROUNDS = 8,    /* of improving one end, then the other; two or three do */
};

/* A range in units of the bin width, and its cost. */
struct choice {
	double lo, hi, cost;
};

static void consider(const struct loss *l, double lo, double hi, double steps, struct choice *best)
{
	double cost = loss_of(l, lo, hi, (hi - lo) / steps);

	if (cost < best->cost)
		*best = (struct choice){ lo, hi, cost };
}

static void find_asymmetric(const struct loss *l, double steps, struct choice *best)
{
	const double min = best->lo, max = best->hi;
	int i;

	for (i = SHRINKS; i > 0; i--)
		consider(l, min * i / SHRINKS, max * i / SHRINKS, steps, best);
	for (i = 0; i < ROUNDS; i++) {
		const struct choice was = *best;
		double end;

		for (end = floor(max); end > 0; end--)
			consider(l, was.lo, end, steps, best);
		for (end = ceil(min); end < 0; end++)
			consider(l, end, best->hi, steps, best);
		if (best->cost >= was.cost)
			return;
	}
}

static void find_symmetric(const struct loss *l, double steps, struct choice *best)
{
	double end;

	for (end = floor(best->hi); end > 0; end--)
		consider(l, -end, end, 2 * steps, best);
}

static enum fettle_status find(const struct observer *o, const struct range_options *opt, struct range *out,
			       struct err *err)
{
	double width = observer_width(o), steps = range_steps(opt);
	struct choice best = { fmin(o->min, 0) / width, fmax(o->max, 0) / width, INFINITY };
	struct loss *l;

	(void)err;
	*out = (struct range){ o->min, o->max };
	if (o->count == o->zeros)
		return FETTLE_OK;
	l = loss_new(o);
	if (opt->scheme == SCHEME_SYM) {
		best.hi = fmax(-best.lo, best.hi);
		consider(l, -best.hi, best.hi, 2 * steps, &best);
		find_symmetric(l, steps, &best);
	} else {
		consider(l, best.lo, best.hi, steps, &best);
		find_asymmetric(l, steps, &best);
	}
	loss_free(l);
	*out = (struct range){ (float)fmax(o->min, best.lo * width), (float)fmin(o->max, best.hi * width) };
	return FETTLE_OK;
}

const struct range_method range_mse = {
	.name = "mse",
	.summary = "the range with the least expected squared error",
	.aliases = { "l2" },
	.tried = 4,
	.for_weights = true,
	.find = find,
};
