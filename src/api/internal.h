/* What the files of this folder share: the handle. */
#ifndef API_INTERNAL_H
#define API_INTERNAL_H

#include "api/options.h"
#include "base/scratch.h"
#include "base/sized.h"
#include "config/job.h"
#include "tune/context.h"

struct fettle {
	struct context cx;
	fettle_on_trial_fn on_trial;
	void *on_trial_self;
	void *model; /* of fettle_model_bytes(); NULL: it was not asked for */
	size_t model_size;
};

/* Forgets what the last call left to be asked for, its message too. */
void api_clear(struct fettle *f);

/* calls.c: options of `bench`, for a call that takes one model. */
enum fettle_status options_read_one_model(struct fettle *f, struct options *o,
					  const struct fettle_bench_options *in);

/* memory.c: lets a call that has no output path write to a temporary file; keeps a written model for
 * fettle_model_bytes(); ends what the first began. */
enum fettle_status memory_begin(struct fettle *f, struct call_options *o, struct scratch *s);
enum fettle_status memory_keep(struct fettle *f, const char *path);
void memory_release(struct call_options *o, struct scratch *s);

/* calls.c: a job, and its result. A model that is too large to be kept in memory stays where it was written. */
enum fettle_status api_run_job(struct fettle *f, const struct call_options *o, bool is_search, bool to_memory,
			       struct fettle_tuned **out);

/* tuned.c: a finished job as the caller gets it. */
struct fettle_tuned *tuned_new(const struct job_request *u);
void tuned_tell_trial(void *call, const struct job_progress *p); /* of a struct tune_call */
struct tune_call {
	struct fettle *f;
	struct job_request u;
};

#endif
