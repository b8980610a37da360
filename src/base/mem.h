/*
 * Memory. Small allocations abort through one handler when memory is gone (there is nothing useful
 * left to do); buffers whose size a file dictates use mem_try() and return a status.
 */
#ifndef BASE_MEM_H
#define BASE_MEM_H

#include <stddef.h>

#include "base/err.h"

void *xmalloc(size_t size);
void *xcalloc(size_t n, size_t size);
void *xrealloc(void *p, size_t n, size_t size); /* n elements of size bytes; checks the product */
char *xstrdup(const char *s);
char *xstrfmt(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* *out = n * size bytes, or FETTLE_SYSTEM naming `what`. 64-byte aligned; free() it. */
enum fettle_status mem_try(void *out, size_t n, size_t size, const char *what, struct err *err);

/* Gives free memory back to the system, for after a phase that needed much: free() only does at the heap's end. */
void mem_trim(void);

/* Bytes that this process may still use: what the system has available, within the limits of its control groups (as containers
 * have them) and of its address space. 0: not known. */
size_t mem_available(void);
size_t mem_available_in(const char *root); /* with proc and sys in another folder than "", for tests */

#define ARRAY_LEN(a) (sizeof(a) / sizeof((a)[0]))

/* A growable array is a pointer, `n` and `cap`; VEC_PUSH yields the new last element. */
#define VEC(type)                                                                                            \
	struct {                                                                                             \
		type *v;                                                                                     \
		size_t n, cap;                                                                               \
	}
#define VEC_GROW(vec)                                                                                        \
	((vec)->n == (vec)->cap ? ((vec)->cap = (vec)->cap ? (vec)->cap * 2 : 8,                             \
				   (vec)->v = xrealloc((vec)->v, (vec)->cap, sizeof(*(vec)->v)), 0)          \
				: 0)
#define VEC_PUSH(vec, x) (VEC_GROW(vec), (vec)->v[(vec)->n++] = (x))
#define VEC_RELEASE(vec) (free((vec)->v), (vec)->v = NULL, (vec)->n = (vec)->cap = 0)

/* An arena: everything allocated from it dies with it. Not thread-safe. */
struct arena {
	struct arena_block *head;
	size_t used; /* bytes handed out */
};
#define ARENA_INIT                                                                                           \
	{                                                                                                    \
		NULL, 0                                                                                      \
	}

void *arena_alloc(struct arena *a, size_t size); /* zeroed, 16-byte aligned; aborts when memory is gone */
void *arena_try(struct arena *a, size_t size);   /* not zeroed; NULL when memory is gone */
char *arena_strdup(struct arena *a, const char *s);
char *arena_strfmt(struct arena *a, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void arena_release(struct arena *a);

#endif
