/* The smallest power of two that, as a scale, covers everything seen. */
#include "calibrate/pow2.h"

#include <float.h>
#include <math.h>

bool pow2_is_nothing(const struct observer *o, const struct range_options *opt)
{
	double lo = fmin(o->min, 0), hi = fmax(o->max, 0);
	double span = opt->scheme == SCHEME_SYM ? fmax(-lo, hi) : hi - lo;

	return span / range_steps(opt) < FLT_MIN;
}

struct range pow2_range(struct qparams q, const struct range_options *opt)
{
	struct qlimits lim = quant_limits(opt->dtype, opt->scheme, false);
	double lo = (double)q.scale * (lim.lo - q.zero), hi = (double)q.scale * (lim.hi - q.zero);

	if (opt->scheme == SCHEME_SYM)
		lo = -hi; /* unsigned types have one level more below */
	return (struct range){ (float)fmax(lo, -FLT_MAX), (float)fmin(hi, FLT_MAX) };
}

static enum fettle_status find(const struct observer *o, const struct range_options *opt, struct range *out,
			       struct err *err)
{
	(void)err;
	*out = (struct range){ o->min, o->max };
	if (!pow2_is_nothing(o, opt))
		*out = pow2_range(quant_params_pow2(o->min, o->max, opt->dtype, opt->scheme, false), opt);
	return FETTLE_OK;
}

const struct range_method range_nonoverflow = {
	.name = "nonoverflow",
	.summary = "the smallest power-of-two scale that clips nothing",
	.documented = "NonOverflow",
	.family = "PowerOfTwoMethod",
	.power_of_two = true,
	.find = find,
};
