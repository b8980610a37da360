/*
 * Streaming statistics of one float32 tensor over all calibration samples: one pass, constant memory.
 *
 *	struct observer_scratch *scratch = observer_scratch_new();	one per thread, for all observers
 *	observer_init(&o, &(struct observer_options){ .name = "conv1_out" });
 *	for each batch
 *		observer_add(&o, scratch, x, samples, per_sample, err);
 *	range_compute(&o, …);						calibrate/range.h
 *	observer_release(&o);
 *
 * How samples are cut into batches changes no bit of the result. Neither does their order, but for what
 * depends on it by nature: the moving averages, and the last bits of the sums. What several observers have seen, each of
 * some samples, can be joined.
 */
#ifndef CALIBRATE_OBSERVER_H
#define CALIBRATE_OBSERVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/mem.h"

enum {
	OBSERVER_SIDE = 2048, /* bins on each side of zero */
	OBSERVER_BINS = 2 * OBSERVER_SIDE,
	OBSERVER_LANES = 16, /* zeros are counted in as many places, see observer.c */
	OBSERVER_AVERAGES = 4,
	OBSERVER_EXPONENT_MIN = -115, /* so that the bin width and its inverse are normal floats */
};

struct observer_options {
	const char *name;                    /* of the tensor, for messages; borrowed */
	double averaging[OBSERVER_AVERAGES]; /* constants, up to the first 0; none: 0.01 */
	size_t channels;                     /* 0: no maxima per channel are kept */
	size_t inner;                        /* value i of a sample is of channel (i / inner) % channels */
	bool keep_samples;                   /* one by one, so that it can be joined to another */
};

struct observed_sample {
	float min, max;
	double sum, squares;
};

/*
 * The histogram spans (-R, R) with R = 2^exponent, the smallest power of two above every |x|, and
 * bins that are R / 2048 wide and symmetric about zero: bins[2048 + k] counts the x > 0 and
 * bins[2047 - k] the x < 0 with k = floor(|x| / width). Exact zeros are in no bin but in `zeros`: they
 * are exact at any scale, and half of all values after a Relu. So the sum of the bins is count - zeros.
 */
struct observer {
	const char *name;
	uint64_t samples, count, zeros;
	float min, max;      /* exact, never -0; 0 while count is 0 */
	double sum, squares; /* of x and x * x; to about 1e-7 of the sum of |x| and x * x */
	int exponent;
	unsigned n_averages;
	struct {
		double constant, min, max; /* of each sample's extremes: avg += constant * (new - avg) */
	} average[OBSERVER_AVERAGES];
	size_t channels, inner;
	float *channel_max; /* largest |x| of each channel, or NULL */
	bool keep_samples;
	VEC(struct observed_sample) kept;
	uint64_t bins[OBSERVER_BINS + OBSERVER_LANES]; /* the last are scratch, 0 between calls */
};

struct observer_scratch;
struct observer_scratch *observer_scratch_new(void);
void observer_scratch_free(struct observer_scratch *s);

void observer_init(struct observer *o, const struct observer_options *opt);
void observer_release(struct observer *o);

/*
 * Takes in `samples` samples of `per_sample` values each, one after the other in x. FETTLE_INVALID when a
 * value is not finite; the observer has then seen some of the values and is good for nothing but release.
 */
enum fettle_status observer_add(struct observer *o, struct observer_scratch *s, const float *x,
				size_t samples, size_t per_sample, struct err *err);

/* `to` has seen what `more` has, too, after its own samples; but for channel maxima. `more` has kept its samples. */
void observer_join(struct observer *to, const struct observer *more);

double observer_width(const struct observer *o); /* of a bin */

#endif
