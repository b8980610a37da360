/* The extremes of a sample, averaged so that one odd sample does not decide (Jacob et al. 2018, 3.1). */
#include "calibrate/range.h"

static enum fettle_status find(const struct observer *o, const struct range_options *opt, struct range *out,
			       struct err *err)
{
	if (opt->average >= o->n_averages)
		return fail(err, FETTLE_INVALID,
			    "cannot calibrate tensor %s: moving average %u, must be below %u", o->name,
			    opt->average, o->n_averages);
	*out = (struct range){ (float)o->average[opt->average].min, (float)o->average[opt->average].max };
	return FETTLE_OK;
}

const struct range_method range_moving_average = {
	.name = "moving_average",
	.summary = "exponential moving averages of each sample's extremes",
	.aliases = { "moving_average_minmax", "ema" },
	.find = find,
};
