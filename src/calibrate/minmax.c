/* Everything seen. */
#include "calibrate/range.h"

static enum fettle_status find(const struct observer *o, const struct range_options *opt, struct range *out,
			       struct err *err)
{
	(void)opt;
	(void)err;
	*out = (struct range){ o->min, o->max };
	return FETTLE_OK;
}

const struct range_method range_minmax = {
	.name = "minmax",
	.summary = "the smallest and the largest value seen",
	.documented = "MinMax",
	.family = "CalibrationMethod",
	.tried = 1,
	.for_weights = true,
	.find = find,
};
