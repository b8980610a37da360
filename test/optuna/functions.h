/*
 * Test functions on categorical spaces, to be minimised. functions.py has the same in Python: all is integer
 * arithmetic on hashed tables, so that both sides agree to the last bit.
 */
#ifndef OPTUNA_FUNCTIONS_H
#define OPTUNA_FUNCTIONS_H

#include <stddef.h>
#include <stdint.h>

static inline uint64_t mix(uint64_t z) /* splitmix64's finaliser */
{
	z += 0x9e3779b97f4a7c15u;
	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
	z = (z ^ z >> 27) * 0x94d049bb133111ebu;
	return z ^ z >> 31;
}

/* a number of 16 bits that looks random */
static inline uint64_t table(uint64_t f, uint64_t i, uint64_t a, uint64_t b)
{
	return mix(mix(mix(mix(f) + i) + a) + b) >> 48;
}

static inline uint64_t separable(const unsigned *x, size_t n)
{
	uint64_t total = 0;
	size_t i;

	for (i = 0; i < n; i++)
		total += table(1, i, x[i], 0);
	return total;
}

static inline uint64_t pairwise(const unsigned *x, size_t n)
{
	uint64_t total = 0;
	size_t i;

	for (i = 0; i < n; i++)
		total += table(2, i, x[i], 0) + table(3, i, x[i], x[(i + 1) % n]) +
			 table(4, i, x[i], x[(i + 5) % n]);
	return total;
}

/* traps of three: every step towards the hidden optimum costs, but the last (Goldberg 1987) */
static inline uint64_t deceptive(const unsigned *x, size_t n)
{
	uint64_t total = 0;
	size_t i, block;

	for (block = 0; block < n; block += 3) {
		unsigned hits = 0;

		for (i = block; i < block + 3; i++)
			hits += x[i] == table(5, i, 0, 0) % 3;
		total += hits == 3 ? 0 : 1 + hits;
	}
	return total;
}

/* the first eight matter, three of them at a time; between the steps all is flat */
static inline uint64_t plateau(const unsigned *x, size_t n)
{
	uint64_t misses = 0;
	size_t i;

	for (i = 0; i < 8 && i < n; i++)
		misses += x[i] != table(6, i, 0, 0) % 4;
	return (misses + 2) / 3 * 100 + (x[8] != 1);
}

/* ops as fp32, dynamic or static: time to save, losses with a long tail, a limit on their sum */
static inline uint64_t threshold(const unsigned *x, size_t n)
{
	static const uint64_t time_of[] = { 4, 2, 1 };
	uint64_t loss = 0, time = 0, limit = 90000;
	size_t i;

	for (i = 0; i < n; i++) {
		uint64_t sensitive = table(7, i, 0, 0), weight = 64 + table(8, i, 0, 0) % 1024;

		if (x[i])
			loss += (sensitive * sensitive >> 16) * sensitive >> (x[i] == 1 ? 18 : 16);
		time += weight * time_of[x[i]];
	}
	return loss <= limit ? time : time + (loss - limit);
}

/* many parameters, of which a few matter most */
static inline uint64_t decaying(const unsigned *x, size_t n)
{
	uint64_t total = 0;
	size_t i;

	for (i = 0; i < n; i++)
		total += table(9, i, x[i], 0) / (1 + i * 7 % n);
	return total;
}

struct function {
	const char *name;
	uint64_t (*value)(const unsigned *x, size_t n);
	size_t params;
	unsigned options;
};

enum {
	FUNCTION_PARAMS_MAX = 40,
};

static const struct function functions[] = {
	{ "separable", separable, 20, 5 }, { "pairwise", pairwise, 12, 4 },
	{ "deceptive", deceptive, 15, 3 }, { "plateau", plateau, 12, 4 },
	{ "threshold", threshold, 40, 3 }, { "decaying", decaying, 40, 8 },
	{ "small", pairwise, 5, 4 },
};

#endif
