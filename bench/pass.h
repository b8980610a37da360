/* One pass of a session over a feed. */
#ifndef BENCH_PASS_H
#define BENCH_PASS_H

#include "base/mem.h"
#include "bench.h"
#include "data/feed.h"
#include "runtime/session.h"

/* seconds of processor time */
static inline double bench_pass(struct session *s, const struct feed *feed, struct err *err)
{
	struct tensor *out = xcalloc(session_n_outputs(s), sizeof(*out));
	struct feed_batch b = FEED_BATCH_INIT;
	double start = cpu_now();
	size_t i;

	for (i = 0; i < feed_batches(feed); i++) {
		bench_must(feed_read(feed, i, &b, err), err);
		bench_must(session_run(s, b.inputs, out, err), err);
	}
	feed_batch_release(&b);
	free(out);
	return cpu_now() - start;
}

#endif
