/*
 * The points of a space in random order, without listing them: a keyed permutation of the index, so that
 * the only state is how far it has come. A space too large for an index gives independent random points
 * instead, among which one of 2^63 or more hardly ever comes twice. So does one in which not all points are
 * equally likely (a log scale, a condition) as long as that brings unseen points; then the permutation follows.
 */
#ifndef SAMPLER_SHUFFLE_H
#define SAMPLER_SHUFFLE_H

#include "sampler/point.h"

enum {
	SHUFFLE_ROUNDS = 8,
	SHUFFLE_DRAWS = 32, /* before the permutation must help */
};

struct shuffle {
	const struct point_space *space;
	unsigned half; /* bits in half an index */
	uint64_t keys[SHUFFLE_ROUNDS];
	uint64_t next; /* place in the order */
	struct rng rng;
};

void shuffle_init(struct shuffle *s, const struct point_space *space, uint64_t seed);
bool shuffle_remembers(const struct shuffle *s); /* what has come: it is not needed in `seen` */
bool shuffle_passed(const struct shuffle *s, const double *point); /* and remembered */

/* The next that is not in the set; false when there is none. */
bool shuffle_next_unseen(struct shuffle *s, const struct point_set *seen, double *point);

#endif
