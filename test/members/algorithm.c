/* A share of everything seen. */
#include "calibrate/range.h"

static enum fettle_status find(const struct observer *o, const struct range_options *opt, struct range *out,
			       struct err *err)
{
	(void)err;
	*out = (struct range){ (float)(o->min * opt->parameter), (float)(o->max * opt->parameter) };
	return FETTLE_OK;
}

const struct range_method range_dummy = {
	.name = "dummy",
	.summary = "a share of the smallest and the largest value seen",
	.parameter = { "share", 0.1, 1, 0.9 },
	.find = find,
};
