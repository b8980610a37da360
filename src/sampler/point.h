/* Points of a space of categorical parameters, and sets of them. A point is an array of option numbers. */
#ifndef SAMPLER_POINT_H
#define SAMPLER_POINT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/mem.h"
#include "base/rng.h"

struct point_space {
	size_t n;          /* parameters */
	uint32_t *options; /* of each */
	uint64_t size;     /* number of points, 0 when they are 2^63 or more: too many for an index */
};

void point_space_measure(struct point_space *s); /* computes the size */

/* Points in order, the last parameter changing fastest; index and point only where size is not 0. */
uint64_t point_index(const struct point_space *s, const uint16_t *point);
void point_at(const struct point_space *s, uint64_t index, uint16_t *point);
bool point_step(const struct point_space *s, uint16_t *point); /* false when it was the last */
int point_compare(const uint16_t *a, const uint16_t *b, size_t n);

void point_draw(const struct point_space *s, struct rng *rng, uint16_t *point);
unsigned point_distance(const uint16_t *a, const uint16_t *b, size_t n); /* Hamming's */

/* A set that numbers its points in the order they came. */
struct point_set {
	size_t width; /* options per point */
	size_t n;
	VEC(uint16_t) options;
	uint32_t *slots; /* hash table of number + 1; 0 is empty */
	size_t cap;
};
#define POINT_NONE SIZE_MAX

void point_set_init(struct point_set *s, size_t width);
size_t point_set_find(const struct point_set *s, const uint16_t *point); /* POINT_NONE when absent */
size_t point_set_add(struct point_set *s, const uint16_t *point);        /* its number, new or not */
const uint16_t *point_set_get(const struct point_set *s, size_t number); /* until the next is added */
void point_set_release(struct point_set *s);

#endif
