/* Structs of fettle.h: each begins with its size, so that a caller may have been compiled with an older version. */
#ifndef BASE_SIZED_H
#define BASE_SIZED_H

#include "base/err.h"
#include "base/mem.h"

/* Fills a struct of the caller's, of this version or an older one, from the library's. */
void sized_give(void *out, const void *from, size_t size);
/* The other way round: what the caller's version has, over what `to` holds. */
void sized_take(void *to, const void *from, size_t size);
/* Likewise, over zeros; fails if the size cannot be. `what`: "a metric". */
enum fettle_status sized_read(void *to, size_t size, const void *from, const char *what, struct err *err);
/* A list of pointers to n structs of `size` bytes, which it writes into each: arrays could not grow. */
void *sized_list(struct arena *a, void *v, size_t n, size_t size);

#endif
