/* What the benchmarks share. */
#ifndef BENCH_H
#define BENCH_H

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/err.h"

static inline void bench_must(enum fettle_status st, const struct err *err)
{
	if (st) {
		fprintf(stderr, "bench: %s\n", err->msg);
		exit(3);
	}
}

/* of this process: what others do on the machine does not count */
static inline double cpu_now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

#endif
