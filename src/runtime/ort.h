/* What the files that call ONNX Runtime share. */
#ifndef RUNTIME_ORT_H
#define RUNTIME_ORT_H

#include <stdatomic.h>

#include <onnxruntime_c_api.h>

#include "runtime/session.h"

struct runtime {
	const OrtApi *api;
	OrtEnv *env;
	OrtMemoryInfo *cpu;
	atomic_llong busy;    /* nanoseconds that threads have spent in it */
	bool exact;           /* runtime_exact() */
	int threads, running; /* runtime_share() */
	int chosen;           /* runtime_threads(), once asked */
	/* of all runs, and of those of session_run_large(): what ends them ends them all */
	OrtRunOptions *run, *run_large;
	atomic_bool stopped; /* runtime_stop() */
};

/* ONNX Runtime's errors become ours here: "cannot WHAT: …". A model or data it refuses is bad input; the rest is its own
 * failure. */
enum fettle_status ort_fail(const OrtApi *api, OrtStatus *s, const char *what, struct err *err);
/* Within a function that has api, st, what, err and `out:`. */
#define TRY(call)                                                                                            \
	do {                                                                                                 \
		st = ort_fail(api, (call), what, err);                                                       \
		if (st)                                                                                      \
			goto out;                                                                            \
	} while (0)

void runtime_add_busy(struct runtime *rt, double since); /* the time from then to now */

#endif
