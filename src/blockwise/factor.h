/*
 * What gptq needs of the gram matrix: damped, in the order in which weights are rounded, as R'R. Blocks stay whole, so
 * that codes stay beside the scale they belong to; the block whose inputs are largest is last, and in a block the
 * largest input. Rounding goes from the last to the first, because those not yet rounded can make up for the error.
 */
#ifndef BLOCKWISE_FACTOR_H
#define BLOCKWISE_FACTOR_H

#include "blockwise/blockwise.h"

struct factor {
	int64_t k, blocks;
	int64_t *input; /* [k]: the input at each place */
	int64_t *block; /* [blocks]: the block at each place */
	int64_t *first; /* [blocks + 1]: the place of its first input */
	float *r;       /* [k, k], upper triangle */
};

/* What to add to the diagonal, so that nothing is made of what few rows show by chance. */
void factor_damping(const struct block_seen *seen, int64_t k, float *out /* [k] */);
/* Between blas_single_begin() and blas_single_end(). */
enum fettle_status factor_init(struct factor *out, const struct block_seen *seen, int64_t k,
			       const struct block_format *f, struct err *err);
void factor_release(struct factor *f);

#endif
