#include "tensor/quant.h"

#include <float.h>
#include <math.h>

struct qlimits quant_limits(enum dtype t, enum scheme scheme, bool narrow)
{
	bool is_signed = t == DT_S8 || t == DT_S16 || t == DT_S32;
	int bits = (int)(8 * dtype_size(t)) - (narrow ? 1 : 0);
	int64_t half = (int64_t)1 << (bits - 1);

	if (!is_signed)
		return (struct qlimits){ 0, (int32_t)(2 * half - 1) };
	return (struct qlimits){ (int32_t)(scheme == SCHEME_SYM ? 1 - half : -half), (int32_t)(half - 1) };
}

static struct qparams from_scale(double scale, double min, struct qlimits lim, enum dtype t,
				 enum scheme scheme)
{
	struct qparams q = { (float)scale, 0 };
	double zero;

	if (scheme == SCHEME_SYM) {
		q.zero = t == DT_U8 || t == DT_U16 ? (lim.hi + 1) / 2 : 0;
		return q;
	}
	zero = rint(lim.lo - min / q.scale);
	q.zero = (int32_t)fmin(fmax(zero, lim.lo), lim.hi);
	return q;
}

static double raw_scale(float *min, float *max, struct qlimits lim, enum dtype t, enum scheme scheme)
{
	double scale;

	*min = fminf(*min, 0);
	*max = fmaxf(*max, 0);
	if (scheme == SCHEME_SYM) {
		int32_t zero = t == DT_U8 || t == DT_U16 ? (lim.hi + 1) / 2 : 0;

		scale = fmax(-(double)*min, *max) / (lim.hi - zero);
	} else {
		scale = ((double)*max - *min) / ((double)lim.hi - lim.lo);
	}
	/* a range so small that its scale would be no normal number is as good as zero */
	return scale < FLT_MIN ? 1 : fmin(scale, FLT_MAX);
}

struct qparams quant_params(float min, float max, enum dtype t, enum scheme scheme, bool narrow)
{
	struct qlimits lim = quant_limits(t, scheme, narrow);
	double scale = raw_scale(&min, &max, lim, t, scheme);

	return from_scale(scale, min, lim, t, scheme);
}

struct qparams quant_params_pow2(float min, float max, enum dtype t, enum scheme scheme, bool narrow)
{
	struct qlimits lim = quant_limits(t, scheme, narrow);
	double scale = raw_scale(&min, &max, lim, t, scheme);

	return from_scale(exp2(ceil(log2(scale))), min, lim, t, scheme);
}

int32_t quant_value(float x, struct qparams q, struct qlimits lim)
{
	float v = rintf(x / q.scale) + (float)q.zero;

	return (int32_t)fminf(fmaxf(v, (float)lim.lo), (float)lim.hi);
}

/* one loop per output type, so that the compiler vectorises each */
#define LOOP(type)                                                                                           \
	do {                                                                                                 \
		type *o = out;                                                                               \
		for (i = 0; i < n; i++) {                                                                    \
			float v = rintf(x[i] / q.scale) + zero;                                              \
			v = v < lo ? lo : v;                                                                 \
			v = v > hi ? hi : v;                                                                 \
			o[i] = (type)(int32_t)v;                                                             \
		}                                                                                            \
	} while (0)

void quant_array(const float *x, size_t n, struct qparams q, struct qlimits lim, enum dtype t, void *out)
{
	float zero = (float)q.zero, lo = (float)lim.lo, hi = (float)lim.hi;
	size_t i;

	switch (t) {
	case DT_U8:
		LOOP(uint8_t);
		break;
	case DT_S8:
		LOOP(int8_t);
		break;
	case DT_U16:
		LOOP(uint16_t);
		break;
	case DT_S16:
		LOOP(int16_t);
		break;
	default:
		/* hi as a float is 2^31, out of range for the cast: go through double */
		for (i = 0; i < n; i++) {
			double v = rint((double)x[i] / q.scale) + q.zero;

			((int32_t *)out)[i] = (int32_t)fmin(fmax(v, lim.lo), lim.hi);
		}
	}
}
