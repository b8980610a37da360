#include "base/mem.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#ifdef __GLIBC__
#include <malloc.h>
#endif

/* Under AddressSanitizer every allocation is a block of its own, so that it sees who writes or reads past one. */
#ifdef __has_feature
#if __has_feature(address_sanitizer)
#define __SANITIZE_ADDRESS__ 1 /* as gcc says it */
#endif
#endif
#ifdef __SANITIZE_ADDRESS__
enum { ARENA_BLOCK = 1, ROUND_UP = 1 };
#else
enum { ARENA_BLOCK = 64 << 10, ROUND_UP = 16 };
#endif
enum { ALIGN = 16, TRIM_MIN = 16 << 20 };

struct arena_block {
	struct arena_block *next;
	size_t used, size;
	_Alignas(ALIGN) unsigned char bytes[];
};

static void *or_abort(void *p)
{
	if (!p) {
		fputs("fettle: out of memory\n", stderr);
		abort();
	}
	return p;
}

void mem_trim(void)
{
#if defined(__GLIBC__) && __GLIBC_PREREQ(2, 33)
	if (mallinfo2().fordblks >= TRIM_MIN) /* less is sooner used again than given back and asked for */
		malloc_trim(0);
#endif
}

void *xmalloc(size_t size)
{
	return or_abort(malloc(size ? size : 1));
}

void *xcalloc(size_t n, size_t size)
{
	return or_abort(calloc(n ? n : 1, size ? size : 1));
}

void *xrealloc(void *p, size_t n, size_t size)
{
	size_t total;

	if (__builtin_mul_overflow(n, size, &total))
		or_abort(NULL);
	return or_abort(realloc(p, total ? total : 1));
}

char *xstrdup(const char *s)
{
	return or_abort(strdup(s));
}

static char *format(const char *fmt, va_list ap)
{
	char *s = NULL;

	if (vasprintf(&s, fmt, ap) < 0)
		or_abort(NULL);
	return s;
}

char *xstrfmt(const char *fmt, ...)
{
	va_list ap;
	char *s;

	va_start(ap, fmt);
	s = format(fmt, ap);
	va_end(ap);
	return s;
}

enum fettle_status mem_try(void *out, size_t n, size_t size, const char *what, struct err *err)
{
	size_t total;
	void *p = NULL;

	if (!__builtin_mul_overflow(n, size, &total) && total <= PTRDIFF_MAX)
		p = aligned_alloc(64, (total + 64) & ~(size_t)63);
	if (!p)
		return fail(err, FETTLE_SYSTEM, "cannot allocate %s: %zu x %zu bytes, not enough memory",
			    what, n, size);
	*(void **)out = p;
	return FETTLE_OK;
}

void *arena_try(struct arena *a, size_t size)
{
	struct arena_block *b = a->head;
	void *p;

	if (size > SIZE_MAX / 2)
		return NULL;
	size = (size + ROUND_UP - 1) & ~(size_t)(ROUND_UP - 1);
	if (!b || b->size - b->used < size) {
		size_t want = size > ARENA_BLOCK / 4 ? size : ARENA_BLOCK;
		struct arena_block *fresh = malloc(sizeof(*fresh) + want);

		if (!fresh)
			return NULL;
		fresh->used = 0;
		fresh->size = want;
		if (b && want == size) { /* a big one: keep filling the block we have */
			fresh->next = b->next;
			b->next = fresh;
		} else {
			fresh->next = b;
			a->head = fresh;
		}
		b = fresh;
	}
	p = b->bytes + b->used;
	b->used += size;
	a->used += size;
	return p;
}

void *arena_alloc(struct arena *a, size_t size)
{
	return memset(or_abort(arena_try(a, size ? size : 1)), 0, size);
}

char *arena_strdup(struct arena *a, const char *s)
{
	size_t n = strlen(s) + 1;

	return memcpy(arena_alloc(a, n), s, n);
}

char *arena_strfmt(struct arena *a, const char *fmt, ...)
{
	va_list ap;
	char *s, *copy;

	va_start(ap, fmt);
	s = format(fmt, ap);
	va_end(ap);
	copy = arena_strdup(a, s);
	free(s);
	return copy;
}

void arena_release(struct arena *a)
{
	struct arena_block *b = a->head, *next;

	for (; b; b = next) {
		next = b->next;
		free(b);
	}
	a->head = NULL;
	a->used = 0;
}
