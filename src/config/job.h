/*
 * A job as a request describes it: tune, or a search of settings.
 *
 *	st = job_request_begin(&u, cx, &options, false);
 *	st = job_request_run(&u);			job_result(u.j) is then complete
 *	job_request_release(&u);			also after a failure
 */
#ifndef CONFIG_JOB_H
#define CONFIG_JOB_H

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
};

enum fettle_status job_request_begin(struct job_request *u, struct context *cx, const struct call_options *o,
				     bool is_search);
enum fettle_status job_request_run(struct job_request *u);
/* In place of running it: what it would do, and how long that may take. Nothing is written. */
enum fettle_status job_request_preview(struct job_request *u, struct preview *out);
void job_request_release(struct job_request *u);

/* search.c: reads the spaces of a search, and makes the job one. */
enum fettle_status job_request_search(struct job_request *u);
void settings_search_free(struct settings_search *s);

/* sigopt.c: the server that the strategy sigopt asks; service->free() it. */
enum fettle_status request_service(const struct config *c, struct service **out, struct err *err);

#endif
