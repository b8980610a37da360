#include "sampler/point.h"

#include <stdlib.h>
#include <string.h>

#include "base/map.h"

void point_space_measure(struct point_space *s)
{
	size_t i;

	s->size = 1;
	for (i = 0; i < s->n; i++) {
		if (s->size > (UINT64_MAX >> 1) / s->options[i]) {
			s->size = 0;
			return;
		}
		s->size *= s->options[i];
	}
}

uint64_t point_index(const struct point_space *s, const uint16_t *point)
{
	uint64_t index = 0;
	size_t i;

	for (i = 0; i < s->n; i++)
		index = index * s->options[i] + point[i];
	return index;
}

void point_at(const struct point_space *s, uint64_t index, uint16_t *point)
{
	size_t i;

	for (i = s->n; i-- > 0;) {
		point[i] = (uint16_t)(index % s->options[i]);
		index /= s->options[i];
	}
}

bool point_step(const struct point_space *s, uint16_t *point)
{
	size_t i;

	for (i = s->n; i-- > 0;) {
		if (point[i] + 1u < s->options[i]) {
			point[i]++;
			return true;
		}
		point[i] = 0;
	}
	return false;
}

int point_compare(const uint16_t *a, const uint16_t *b, size_t n)
{
	size_t i;

	for (i = 0; i < n; i++)
		if (a[i] != b[i])
			return a[i] < b[i] ? -1 : 1;
	return 0;
}

void point_draw(const struct point_space *s, struct rng *rng, uint16_t *point)
{
	size_t i;

	for (i = 0; i < s->n; i++)
		point[i] = (uint16_t)rng_below(rng, s->options[i]);
}

unsigned point_distance(const uint16_t *a, const uint16_t *b, size_t n)
{
	unsigned d = 0;
	size_t i;

	for (i = 0; i < n; i++)
		d += a[i] != b[i];
	return d;
}

void point_set_init(struct point_set *s, size_t width)
{
	memset(s, 0, sizeof(*s));
	s->width = width;
}

void point_set_release(struct point_set *s)
{
	VEC_RELEASE(&s->options);
	free(s->slots);
	s->slots = NULL;
	s->n = s->cap = 0;
}

const uint16_t *point_set_get(const struct point_set *s, size_t number)
{
	return s->options.v + number * s->width;
}

/* The slot that holds the point, or the empty one where it belongs. */
static uint32_t *slot_of(const struct point_set *s, const uint16_t *point)
{
	size_t bytes = s->width * sizeof(*point), i = hash_bytes(point, bytes, 0) & (s->cap - 1);

	while (s->slots[i] && memcmp(point_set_get(s, s->slots[i] - 1), point, bytes))
		i = (i + 1) & (s->cap - 1);
	return &s->slots[i];
}

size_t point_set_find(const struct point_set *s, const uint16_t *point)
{
	uint32_t *slot;

	if (!s->n)
		return POINT_NONE;
	slot = slot_of(s, point);
	return *slot ? *slot - 1 : POINT_NONE;
}

static void rehash(struct point_set *s)
{
	size_t i;

	free(s->slots);
	s->cap = s->cap ? s->cap * 2 : 64;
	s->slots = xcalloc(s->cap, sizeof(*s->slots));
	for (i = 0; i < s->n; i++)
		*slot_of(s, point_set_get(s, i)) = (uint32_t)i + 1;
}

size_t point_set_add(struct point_set *s, const uint16_t *point)
{
	uint32_t *slot;
	size_t i;

	if (s->n >= s->cap / 2)
		rehash(s);
	slot = slot_of(s, point);
	if (*slot)
		return *slot - 1;
	for (i = 0; i < s->width; i++)
		VEC_PUSH(&s->options, point[i]);
	*slot = (uint32_t)++s->n;
	return s->n - 1;
}
