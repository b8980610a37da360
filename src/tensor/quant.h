/* Scale and zero-point arithmetic: real = scale * (q - zero). */
#ifndef TENSOR_QUANT_H
#define TENSOR_QUANT_H

#include "tensor/tensor.h"

enum scheme { SCHEME_ASYM, SCHEME_SYM };

struct qparams {
	float scale;
	int32_t zero;
};

/* The integers a type offers: symmetric signed types give up the lowest one; `narrow` drops a bit
 * (7-bit weights for CPUs whose u8 x s8 products saturate). */
struct qlimits {
	int32_t lo, hi;
};
struct qlimits quant_limits(enum dtype t, enum scheme scheme, bool narrow);

/*
 * Parameters for the range [min, max], which must be finite. The range is widened to hold 0, and
 * the zero point is exact. Symmetric takes the wider side; for unsigned types its zero is mid-range.
 * An all-zero range gets scale 1.
 */
struct qparams quant_params(float min, float max, enum dtype t, enum scheme scheme, bool narrow);

/* The same, with the scale rounded up to a power of two. */
struct qparams quant_params_pow2(float min, float max, enum dtype t, enum scheme scheme, bool narrow);

int32_t quant_value(float x, struct qparams q, struct qlimits lim); /* round half to even, saturate */

/* n values; out has elements of type t (u8, s8, u16, s16 or s32) */
void quant_array(const float *x, size_t n, struct qparams q, struct qlimits lim, enum dtype t, void *out);

#endif
