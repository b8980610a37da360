#include "base/map.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

struct map_slot {
	const char *key;
	uint64_t hash;
	size_t value;
};

uint64_t hash_bytes(const void *p, size_t n, uint64_t seed)
{
	const unsigned char *c = p;
	uint64_t h = 0xcbf29ce484222325u ^ seed;
	size_t i;

	for (i = 0; i < n; i++)
		h = (h ^ c[i]) * 0x100000001b3u;
	h ^= h >> 32;
	h *= 0x9fb21c651e98df25u;
	return h ^ (h >> 28);
}

uint64_t hash_str(const char *s)
{
	return hash_bytes(s, strlen(s), 0);
}

/* the slot that holds key, or the free one where it belongs */
static struct map_slot *find(const struct map *m, const char *key, uint64_t h)
{
	size_t i = h & (m->cap - 1);

	while (m->slots[i].key && (m->slots[i].hash != h || strcmp(m->slots[i].key, key) != 0))
		i = (i + 1) & (m->cap - 1);
	return &m->slots[i];
}

size_t map_get(const struct map *m, const char *key)
{
	const struct map_slot *s;

	if (!m->n)
		return MAP_NONE;
	s = find(m, key, hash_str(key));
	return s->key ? s->value : MAP_NONE;
}

static void grow(struct map *m)
{
	struct map old = *m;
	size_t i;

	m->cap = old.cap ? old.cap * 2 : 32;
	m->slots = xcalloc(m->cap, sizeof(*m->slots));
	for (i = 0; i < old.cap; i++)
		if (old.slots[i].key)
			*find(m, old.slots[i].key, old.slots[i].hash) = old.slots[i];
	free(old.slots);
}

void map_set(struct map *m, const char *key, size_t value)
{
	uint64_t h = hash_str(key);
	struct map_slot *s;

	if (2 * m->n >= m->cap)
		grow(m);
	s = find(m, key, h);
	if (!s->key)
		m->n++;
	*s = (struct map_slot){ key, h, value };
}

void map_copy(struct map *to, const struct map *from)
{
	*to = *from;
	if (!from->cap)
		return;
	to->slots = xcalloc(from->cap, sizeof(*to->slots));
	memcpy(to->slots, from->slots, from->cap * sizeof(*to->slots));
}

void map_release(struct map *m)
{
	free(m->slots);
	*m = (struct map)MAP_INIT;
}
