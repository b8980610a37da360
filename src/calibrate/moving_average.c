/* The extremes of a sample, averaged so that one odd sample does not decide (Jacob et al. 2018, 3.1). */
#include "calibrate/range.h"

static enum fettle_status find(const struct observer *o, const struct range_options *opt, struct range *out,
			       struct err *err)
{
	unsigned i;

	for (i = 0; i < o->n_averages; i++)
		if (!opt->parameter || o->average[i].constant == opt->parameter) {
			*out = (struct range){ (float)o->average[i].min, (float)o->average[i].max };
			return FETTLE_OK;
		}
	return fail(err, FETTLE_INVALID,
		    "cannot calibrate tensor %s: moving average with constant %g, which was not observed",
		    o->name, opt->parameter);
}

const struct range_method range_moving_average = {
	.name = "moving_average",
	.summary = "exponential moving averages of each sample's extremes",
	.aliases = { "moving_average_minmax", "ema" },
	.by_switch = true,
	.parameter = { "averaging", 0, 1, 0 }, /* 0: the first constant that the observers keep */
	.find = find,
};
