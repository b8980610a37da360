#include "base/rng.h"

#include <math.h>

static uint64_t rotl(uint64_t x, int k)
{
	return x << k | x >> (64 - k);
}

void rng_seed(struct rng *r, uint64_t seed)
{
	int i;

	for (i = 0; i < 4; i++) { /* splitmix64 spreads any seed, 0 included */
		uint64_t z = seed += 0x9e3779b97f4a7c15u;

		z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
		z = (z ^ z >> 27) * 0x94d049bb133111ebu;
		r->s[i] = z ^ z >> 31;
	}
}

uint64_t rng_next(struct rng *r)
{
	uint64_t *s = r->s, out = rotl(s[1] * 5, 7) * 9, t = s[1] << 17;

	s[2] ^= s[0];
	s[3] ^= s[1];
	s[1] ^= s[2];
	s[0] ^= s[3];
	s[2] ^= t;
	s[3] = rotl(s[3], 45);
	return out;
}

uint64_t rng_below(struct rng *r, uint64_t n)
{
	uint64_t limit = UINT64_MAX - UINT64_MAX % n, x;

	do
		x = rng_next(r);
	while (x >= limit);
	return x % n;
}

double rng_unit(struct rng *r)
{
	return (double)(rng_next(r) >> 11) * 0x1p-53;
}

double rng_normal(struct rng *r)
{
	double u = 1 - rng_unit(r), v = rng_unit(r);

	return sqrt(-2 * log(u)) * cos(2 * 3.14159265358979323846 * v);
}

void rng_shuffle(struct rng *r, size_t *v, size_t n)
{
	for (; n > 1; n--) {
		size_t j = rng_below(r, n), t = v[n - 1];

		v[n - 1] = v[j];
		v[j] = t;
	}
}
