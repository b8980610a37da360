/*
 * Histograms as TensorBoard shows them: at most HISTOGRAM_BUCKETS of equal width, which is a power of two, with borders at
 * multiples of it. So histograms of one thing before and after quantization have the same borders, or nearly.
 */
#ifndef TENSORBOARD_HISTOGRAM_H
#define TENSORBOARD_HISTOGRAM_H

#include "calibrate/observer.h"
#include "tensor/quant.h"

enum { HISTOGRAM_BUCKETS = 64 };

struct histogram {
	double min, max, num, sum, squares;
	double width;
	double first; /* the number of the first bucket: that from first * width on */
	size_t n;
	double limit[HISTOGRAM_BUCKETS], count[HISTOGRAM_BUCKETS]; /* limit: the upper border */
};

/* Of n finite numbers; n > 0. */
void histogram_of_floats(struct histogram *h, const float *x, size_t n);
/* Of all that an observer has seen, which must be something. */
void histogram_of_seen(struct histogram *h, const struct observer *o);
/* The same after QuantizeLinear and DequantizeLinear, to the precision of the observer's bins: a 2048th of the largest. */
void histogram_of_quantized(struct histogram *h, const struct observer *o, struct qparams q, enum dtype t);

#endif
