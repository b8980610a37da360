#include "sampler/shuffle.h"

void shuffle_init(struct shuffle *s, const struct point_space *space, uint64_t seed)
{
	int i;

	s->space = space;
	s->next = 0;
	s->half = 1;
	while (s->half < 32 && 1ull << (2 * s->half) < space->size)
		s->half++;
	rng_seed(&s->rng, seed);
	for (i = 0; i < SHUFFLE_ROUNDS; i++)
		s->keys[i] = rng_next(&s->rng);
}

static uint64_t round_value(const struct shuffle *s, int round, uint64_t half)
{
	uint64_t z = half + s->keys[round];

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
	z = (z ^ z >> 27) * 0x94d049bb133111ebu;
	return (z ^ z >> 31) & ((1ull << s->half) - 1);
}

/*
 * A Feistel network (Luby and Rackoff 1988) permutes 2 * half bits, at most four times the size of the
 * space; what falls outside is sent through again until it does not (cycle walking, Black and
 * Rogaway 2002), which leaves a permutation of the indexes.
 */
static uint64_t permute(const struct shuffle *s, uint64_t x)
{
	uint64_t mask = (1ull << s->half) - 1;

	do {
		uint64_t left = x >> s->half, right = x & mask;
		int i;

		for (i = 0; i < SHUFFLE_ROUNDS; i++) {
			uint64_t t = left ^ round_value(s, i, right);

			left = right;
			right = t;
		}
		x = left << s->half | right;
	} while (x >= s->space->size);
	return x;
}

static uint64_t unpermute(const struct shuffle *s, uint64_t x)
{
	uint64_t mask = (1ull << s->half) - 1;

	do {
		uint64_t left = x >> s->half, right = x & mask;
		int i;

		for (i = SHUFFLE_ROUNDS; i-- > 0;) {
			uint64_t t = right ^ round_value(s, i, left);

			right = left;
			left = t;
		}
		x = left << s->half | right;
	} while (x >= s->space->size);
	return x;
}

bool shuffle_remembers(const struct shuffle *s)
{
	return s->space->size && s->space->even;
}

bool shuffle_passed(const struct shuffle *s, const double *point)
{
	return shuffle_remembers(s) && unpermute(s, point_index(s->space, point)) < s->next;
}

bool shuffle_next_unseen(struct shuffle *s, const struct point_set *seen, double *point)
{
	int draws;

	for (draws = 0; !s->space->size || (!s->space->even && draws < SHUFFLE_DRAWS); draws++) {
		point_draw(s->space, &s->rng, point);
		if (point_set_find(seen, point) == POINT_NONE)
			return true;
	}
	while (s->next < s->space->size) {
		point_at(s->space, permute(s, s->next++), point);
		if (point_set_find(seen, point) == POINT_NONE)
			return true;
	}
	return false;
}
