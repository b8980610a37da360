/* The job that searches settings (AMD's Automatic Search): a log of what is tried, and a list of candidates, best first. */
#ifndef TUNE_SETTINGS_JOB_H
#define TUNE_SETTINGS_JOB_H

#include <stdio.h>

#include "strategy/param_search.h"
#include "tune/job.h"

/* One of the settings that were found. */
struct candidate {
	size_t trial;
	bool met;
	double accuracy, loss, int8_share;
	const char *settings; /* "calibrate_method: MinMax, include_cle: true": what varies */
};

/* What job_options.kind_self points to. */
struct settings_job {
	const struct settings_list *list;
	struct param_search *search; /* the strategy's */
	size_t most;                 /* candidates that are listed; 0: all */
	const char *log_path;        /* NULL: auto_search.log in the workspace */
	FILE *log;
	/* the result: those that met the target, or else all; best first */
	struct candidate *candidates;
	size_t n_candidates;
	struct arena arena;
};

void settings_job_release(struct settings_job *s);

#endif
