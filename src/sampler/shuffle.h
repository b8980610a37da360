/*
 * The points of a space in random order, without listing them: a keyed permutation of the index, so that
 * the only state is how far it has come. A space too large for an index gives independent random points
 * instead, among which one of 2^63 or more hardly ever comes twice.
 */
#ifndef SAMPLER_SHUFFLE_H
#define SAMPLER_SHUFFLE_H

#include "sampler/point.h"

enum {
	SHUFFLE_ROUNDS = 8,
};

struct shuffle {
	const struct point_space *space;
	unsigned half; /* bits in half an index */
	uint64_t keys[SHUFFLE_ROUNDS];
	uint64_t next; /* place in the order */
	struct rng rng;
};

void shuffle_init(struct shuffle *s, const struct point_space *space, uint64_t seed);
bool shuffle_next(struct shuffle *s, uint16_t *point); /* false when all have come; never without index */
bool shuffle_passed(const struct shuffle *s, const uint16_t *point); /* false without an index */

/* The next that is not in the set; false when there is none. */
bool shuffle_next_unseen(struct shuffle *s, const struct point_set *seen, uint16_t *point);

#endif
