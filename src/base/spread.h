/* A loop whose turns do not depend on each other, on several threads. */
#ifndef BASE_SPREAD_H
#define BASE_SPREAD_H

#include <stddef.h>

enum { SPREAD_MAX = 4 }; /* threads; what is worth more of them is the runtime's work */

/* How many threads have a core each: of this process, and at most SPREAD_MAX. */
size_t spread_threads(void);
/*
 * Calls work(self, i, thread) once for each i below n, in no certain order, on so many threads: the caller's is number 0. Returns when
 * all have been called. Fewer threads do it if others cannot be started.
 */
typedef void (*spread_fn)(void *self, size_t i, size_t thread);
void spread(size_t n, size_t threads, spread_fn work, void *self);

#endif
