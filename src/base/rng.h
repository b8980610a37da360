/* A small, fast random generator (xoshiro256**, Blackman and Vigna 2018) that gives the same
 * numbers on every machine. */
#ifndef BASE_RNG_H
#define BASE_RNG_H

#include <stddef.h>
#include <stdint.h>

struct rng {
	uint64_t s[4];
};

void rng_seed(struct rng *r, uint64_t seed);
uint64_t rng_next(struct rng *r);
uint64_t rng_below(struct rng *r, uint64_t n); /* 0 .. n-1, without bias; n > 0 */
double rng_unit(struct rng *r);                /* [0, 1) */
double rng_normal(struct rng *r);
void rng_shuffle(struct rng *r, size_t *v, size_t n);

#endif
