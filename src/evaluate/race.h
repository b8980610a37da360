/*
 * How much faster one of two is than the other, from timings taken in pairs, one right after the other. Whatever disturbs
 * the machine disturbs both of a pair, or makes an outlier: the interval is one of the median ratio and follows from the
 * ranks of the ratios alone, so outliers do not count. It is looked at after 9, 14, 21, … pairs, and each look spends a
 * part of the allowed error, so stopping at any look is as good as having planned to.
 *
 * A neighbour on the same physical core slows integers down more than floats, for 20 to 200 ms at a time: then the ratio is
 * another one. Pairs count in which neither took much longer than it does in the quickest quarter of all, and the less
 * disturbed half in any case.
 */
#ifndef EVALUATE_RACE_H
#define EVALUATE_RACE_H

#include <stdbool.h>

#include "base/mem.h"

enum {
	RACE_FEW = 3
}; /* the least that gives an interval if the ratios are taken to vary as a normal distribution does */
enum { RACE_FIRST_LOOK = 9 }; /* the least that gives an interval: all one way by chance once in 256 */

/* Seconds that each took. */
struct race_pair {
	double first, second;
};

struct race {
	double error; /* 1 - confidence */
	VEC(struct race_pair) v;
	struct race_pair least; /* the shortest that each ever took */
	size_t look, next;      /* how often it was looked at; at how many pairs it is next */
	double low, high;       /* of the logarithm, by the last look; infinite before the first */
};

void race_init(struct race *r, double confidence);
void race_add(struct race *r, double first, double second); /* seconds that each took */
void race_release(struct race *r);

/* first/second, of all pairs: above 1, the second is faster. */
struct race_ratio {
	double value, low, high;
};
struct race_ratio race_ratio(const struct race *r);

/* Pairs in which neither took much longer than its shortest, which may be known from before: see `least`. */
size_t race_n_quiet(const struct race *r);
/* Is it certain that one is faster, or that they differ by less than `equal` (0.01: 1 %)? */
bool race_decided(const struct race *r, double equal);
/* Is the interval, by the last look, at most so wide (0.02: from 1.49 to 1.51)? Of 0, any is. */
bool race_is_within(const struct race *r, double width);

#endif
