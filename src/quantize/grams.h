/*
 * What matrices are applied to, seen in one sweep over the calibration samples: the mean of x x' and of |x| over all rows, for
 * every value at once. The algorithms of blockwise/ need no more.
 */
#ifndef QUANTIZE_GRAMS_H
#define QUANTIZE_GRAMS_H

#include "blockwise/blockwise.h"
#include "calibrate/calibrate.h"

/* A value that a matrix op reads. */
struct gram_input {
	const char *value;
	int64_t inputs;
	bool turned; /* a row of x is a column of the value */
};
static inline size_t gram_bytes(const struct gram_input *i)
{
	return (size_t)(i->inputs * i->inputs + i->inputs) * sizeof(float);
}

struct grams;
enum fettle_status grams_observe(struct grams **out, const struct calibrate_on *on,
				 const struct gram_input *want, size_t n, const struct calibrate_options *o,
				 struct err *err);
void grams_free(struct grams *g);
/* The same by hand: what each value is, batch by batch (n rows, the first `valid` of which count); others are ignored. */
enum fettle_status grams_new(struct grams **out, const struct gram_input *want, size_t n, struct err *err);
enum fettle_status grams_add(struct grams *g, const char *value, const struct tensor *t, size_t n,
			     size_t valid, struct err *err);
void grams_finish(struct grams *g); /* before grams_find() */
/* NULL: not observed. It is part of the sweep. */
const struct block_seen *grams_find(const struct grams *g, const struct gram_input *i);

#endif
