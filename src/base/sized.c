#include "base/sized.h"

#include <assert.h>
#include <string.h>

void sized_give(void *out, const void *from, size_t size)
{
	size_t room;

	memcpy(&room, out, sizeof(room));
	if (room > size)
		room = size;
	if (room > sizeof(room))
		memcpy((char *)out + sizeof(room), (const char *)from + sizeof(room), room - sizeof(room));
}

void sized_take(void *to, const void *from, size_t size)
{
	size_t given;

	memcpy(&given, from, sizeof(given));
	assert(given >= sizeof(given)); /* set by the *_INIT of the caller's version */
	memcpy(to, from, given < size ? given : size);
}

void *sized_list(struct arena *a, void *v, size_t n, size_t size)
{
	const void **list = arena_alloc(a, (n + 1) * sizeof(*list));
	size_t i;

	for (i = 0; i < n; i++) {
		char *one = (char *)v + i * size;

		memcpy(one, &size, sizeof(size));
		list[i] = one;
	}
	return list;
}

enum fettle_status sized_read(void *to, size_t size, const void *from, const char *what, struct err *err)
{
	size_t given = 0;

	if (from)
		memcpy(&given, from, sizeof(given));
	memset(to, 0, size);
	if (given < sizeof(given) || given > size)
		return fail(err, FETTLE_INVALID,
			    "cannot read %s: size %zu, need that of this version's struct (%zu) or an older "
			    "one's",
			    what, given, size);
	memcpy(to, from, given);
	return FETTLE_OK;
}
