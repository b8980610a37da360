/* The power of two that, as a scale, gives the least expected squared error. */
#include "calibrate/pow2.h"

#include <float.h>
#include <math.h>

#include "calibrate/loss.h"

enum {
	OCTAVES = 6, /* below the scale that clips nothing */
	ZEROS = 256, /* zero points tried per scale */
};

struct choice {
	struct qparams q;
	double cost;
};

static void consider(const struct loss *l, struct qparams q, const struct range_options *opt, double width,
		     struct choice *best)
{
	struct range r = pow2_range(q, opt);
	double cost = loss_of(l, r.min / width, r.max / width, q.scale / width);

	if (cost < best->cost)
		*best = (struct choice){ q, cost };
}

static enum fettle_status find(const struct observer *o, const struct range_options *opt, struct range *out,
			       struct err *err)
{
	struct qlimits lim = quant_limits(opt->dtype, opt->scheme, false);
	struct qparams q = quant_params_pow2(o->min, o->max, opt->dtype, opt->scheme, false);
	struct choice best = { q, INFINITY };
	double width = observer_width(o);
	struct loss *l;
	int octave, i;

	(void)err;
	*out = (struct range){ o->min, o->max };
	if (pow2_is_nothing(o, opt))
		return FETTLE_OK;
	l = loss_new(o);
	for (octave = 0; octave <= OCTAVES && q.scale >= FLT_MIN; octave++, q.scale /= 2) {
		consider(l, q, opt, width, &best);
		if (opt->scheme == SCHEME_SYM)
			continue;
		for (i = 0; i <= ZEROS; i++) {
			struct qparams at = { q.scale,
					      lim.lo + (int32_t)((int64_t)(lim.hi - lim.lo) * i / ZEROS) };

			consider(l, at, opt, width, &best);
		}
	}
	loss_free(l);
	*out = pow2_range(best.q, opt);
	return FETTLE_OK;
}

const struct range_method range_minmse = {
	.name = "minmse",
	.summary = "the power-of-two scale with the least expected squared error",
	.documented = "MinMSE",
	.family = "PowerOfTwoMethod",
	.power_of_two = true,
	.find = find,
};
