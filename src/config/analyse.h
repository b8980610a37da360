#ifndef CONFIG_ANALYSE_H
#define CONFIG_ANALYSE_H

#include <jansson.h>

#include "config/options.h"
#include "tune/context.h"

/*
 * Adds to a run's JSON what its model and data show: see report/anatomy.h. What cannot be had is left out, and "missing" says
 * why. Fails only when it is told to stop.
 */
struct analysis_wanted {
	const char *workspace;
	const struct call_options *o; /* threads, and data that the run had from a program */
	bool sensitivity;
};
enum fettle_status request_analysis(struct context *cx, const struct analysis_wanted *w, json_t *run);

#endif
