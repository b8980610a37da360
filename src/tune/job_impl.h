/* A job's insides: job.c, job_finish.c and the kinds of job. */
#ifndef TUNE_JOB_IMPL_H
#define TUNE_JOB_IMPL_H

#include "tune/job.h"

struct job {
	struct job_options o;
	struct history *history;
	struct search *search;
	struct accuracy baseline;
	struct job_result r;
	struct arena arena;
	bool board_failed; /* TensorBoard's files could not be written: that was said, and is not tried again */
};

/* The accuracy that is to be reached; NaN: none is. */
double job_target(const struct job *j);
/* Says why TensorBoard's files are not complete, once. A run does not end for that. */
void job_board_status(struct job *j, enum fettle_status st, const struct err *why);
void job_note(struct job *j, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void job_warn(struct job *j, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

#endif
