/* A call that tries plans and ends with the best one's model: what fettle_tune() and fettle_auto_search() share. */
#ifndef API_TUNE_H
#define API_TUNE_H

#include "api/run.h"
#include "tune/job.h"

/* the result, with what it points to */
struct tuned {
	struct fettle_tuned pub;
	struct fettle_measure baseline, best;
	struct fettle_seconds seconds;
	struct fettle_saved saved;
	struct arena arena;
};

/* Lets the public part point to the others. */
struct fettle_tuned *tuned_publish(struct tuned *t);

struct tune_call {
	struct run run;
	struct job_options job; /* filled in from the request */
	struct source hold;
	char *output;
	struct tuned *out;
	struct arena arena; /* of what the job's options point to */
};

/* After request_begin(), with the kind of job and (of a search) its strategy: all of it, up to the result. Releases the call. */
enum fettle_status tune_call(struct tune_call *u, struct fettle_tuned **out);

struct settings_job;
void copy_candidates(struct tuned *out, const struct settings_job *s); /* search.c */

#endif
