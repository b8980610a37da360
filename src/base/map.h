/* A map from strings to numbers. Keys are borrowed: they must outlive the map. */
#ifndef BASE_MAP_H
#define BASE_MAP_H

#include <stddef.h>
#include <stdint.h>

struct map {
	struct map_slot *slots;
	size_t n, cap;
};
#define MAP_INIT                                                                                             \
	{                                                                                                    \
		NULL, 0, 0                                                                                   \
	}
#define MAP_NONE SIZE_MAX

size_t map_get(const struct map *m, const char *key); /* MAP_NONE when absent */
void map_set(struct map *m, const char *key, size_t value);
void map_copy(struct map *to, const struct map *from); /* `to` must be empty */
void map_release(struct map *m);

uint64_t hash_bytes(const void *p, size_t n, uint64_t seed); /* FNV-1a with a final mix */
uint64_t hash_str(const char *s);

#endif
