/*
 * Cuts off so many of the outermost values, whatever their size. Asymmetric ranges lose half of them at
 * each end, or all at the one end that data of one sign has; symmetric ranges go by |x|.
 */
#include "calibrate/range.h"

#include <math.h>

/* How far from zero to cut for `cut` values to lie beyond, on one side of zero or on both. */
static double reach(const struct observer *o, bool up, bool down, double cut)
{
	double beyond = 0;
	int k;

	for (k = OBSERVER_SIDE - 1; k >= 0; k--) {
		double n = 0;

		if (up)
			n += (double)o->bins[OBSERVER_SIDE + k];
		if (down)
			n += (double)o->bins[OBSERVER_SIDE - 1 - k];
		/* inside a bin the values are taken to be spread evenly */
		if (n > 0 && beyond + n > cut)
			return (k + 1 - (cut - beyond) / n) * observer_width(o);
		beyond += n;
	}
	return 0; /* all that is left are zeros */
}

static enum fettle_status find(const struct observer *o, const struct range_options *opt, struct range *out,
			       struct err *err)
{
	double p = opt->parameter, cut = (double)o->count * (100 - p) / 100;
	double lo, hi;

	if (!(p > 0 && p <= 100))
		return fail(err, FETTLE_INVALID,
			    "cannot calibrate tensor %s: percentile %g, must be above 0 and at most 100",
			    o->name, p);
	if (opt->scheme == SCHEME_SYM) {
		hi = reach(o, true, true, cut);
		lo = -hi;
	} else {
		if (o->min < 0 && o->max > 0)
			cut /= 2;
		hi = reach(o, true, false, cut);
		lo = -reach(o, false, true, cut);
	}
	/* a bin's edge may lie beyond the last value in it */
	*out = (struct range){ (float)fmax(lo, o->min), (float)fmin(hi, o->max) };
	/* nearly all zeros: a range of nothing would lose what else there is */
	if (out->min >= 0 && out->max <= 0)
		*out = (struct range){ o->min, o->max };
	return FETTLE_OK;
}

const struct range_method range_percentile = {
	.name = "percentile",
	.summary = "the range that holds the given share of the values",
	.documented = "Percentile",
	.family = "CalibrationMethod",
	.tried = 3,
	.parameter = { "percentile", 50, 100, 99.99 },
	.find = find,
};
