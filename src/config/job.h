/*
 * A job as a request describes it: tune, or a search of settings.
 *
 *	st = job_request_begin(&u, cx, &options, false);
 *	st = job_request_run(&u);			job_result(u.j) is then complete
 *	st = job_request_end(&u, st);			also after a failure
 *	job_request_release(&u);			likewise
 */
#ifndef CONFIG_JOB_H
#define CONFIG_JOB_H

#include "base/scratch.h"
#include "config/run.h"
#include "tune/job.h"
#include "tune/preview.h"

struct job_request {
	struct run run;
	struct job_options job;         /* filled in from the request, but for who is told of trials */
	struct settings_search *search; /* of a search; else NULL */
	struct source hold;
	struct service *service; /* of the strategy sigopt; else NULL */
	char *output;
	struct arena arena; /* of what the job's options point to */
	struct job *j;
	struct ranks *ranks;    /* NULL: this process is the only one */
	struct scratch scratch; /* on another rank than 0: instead of a workspace */
	const char *
		settings; /* there: what config_identity() said before files got other paths; NULL: none did */
};

enum fettle_status job_request_begin(struct job_request *u, struct context *cx, const struct call_options *o,
				     bool is_search);
enum fettle_status job_request_run(struct job_request *u);
bool job_request_serves(const struct job_request *u); /* it is not rank 0, and has no result */
/* Ends the other ranks with the status that the call has; theirs is rank 0's. */
enum fettle_status job_request_end(struct job_request *u, enum fettle_status st);
/* In place of running it: what it would do, and how long that may take. Nothing is written. */
enum fettle_status job_request_preview(struct job_request *u, struct preview *out);
void job_request_release(struct job_request *u);

/* broadcast.c: sends data to the other ranks, or receives it there, where that is asked for. */
enum fettle_status job_request_broadcast(struct job_request *u);

/* search.c: reads the spaces of a search, and makes the job one. */
enum fettle_status job_request_search(struct job_request *u);
void settings_search_free(struct settings_search *s);

/* sigopt.c: the server that the strategy sigopt asks; service->free() it. */
enum fettle_status request_service(const struct config *c, struct service **out, struct err *err);

#endif
