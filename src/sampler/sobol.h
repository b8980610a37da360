/*
 * Sobol's sequence (1967) with the direction numbers of Joe and Kuo (2008), scrambled by random lower triangular
 * matrices and a random shift (Matoušek 1998): every start of it fills the unit cube evenly, and the seed decides how.
 */
#ifndef SAMPLER_SOBOL_H
#define SAMPLER_SOBOL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/rng.h"

enum {
	SOBOL_BITS = 32,
	SOBOL_DIMENSIONS = 100, /* beyond, coordinates are random */
};

struct sobol {
	size_t n;
	uint32_t (*directions)[SOBOL_BITS]; /* [n], scrambled */
	uint32_t *x;                        /* the next, as a fraction of 2^32 */
	uint32_t index;
	struct rng rng;
};

void sobol_init(struct sobol *s, size_t n, uint64_t seed, bool scramble); /* unscrambled it is for tests */
void sobol_release(struct sobol *s);
void sobol_next(struct sobol *s, double *u); /* within (0, 1) */

#endif
