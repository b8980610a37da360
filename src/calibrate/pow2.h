/* Ranges that make quant_params() come to a power of two for a scale. */
#ifndef CALIBRATE_POW2_H
#define CALIBRATE_POW2_H

#include "calibrate/range.h"

/* What was seen is zero as far as quantization goes: no scale above the smallest normal float fits it. */
bool pow2_is_nothing(const struct observer *o, const struct range_options *opt);

/* The range that the parameters span: quant_params() of it gives them back. */
struct range pow2_range(struct qparams q, const struct range_options *opt);

#endif
