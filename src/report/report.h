/*
 * The report of a run, and of several side by side: JSON made from the workspace, then put into a page, or as tables of trials.
 *
 *	st = report_run(workspace, &run, err);		for each
 *	data = report_data(runs);
 *	text = report_html(data, &n);			or report_markdown(), report_csv()
 */
#ifndef REPORT_REPORT_H
#define REPORT_REPORT_H

#include <jansson.h>

#include "base/err.h"

/* What the workspace has of a run, be it in progress. A new reference. */
enum fettle_status report_run(const char *workspace, json_t **out, struct err *err);
/* Several of these, with what made them; takes over the reference. */
json_t *report_data(json_t *runs);

/* Each is to be freed with free(). The first has *n bytes. */
char *report_html(const json_t *data, size_t *n);
char *report_markdown(const json_t *data);
char *report_csv(const json_t *data); /* a row per trial */

/*
 * Puts the plans of a run's trials into one table each of ops, options and what else there is, for they are alike: "plans" of the
 * run, and a trial's "plan" is the numbers of its options, each `width` digits of base 64, in the order of the ops.
 */
void pack_plans(json_t *run);
/* The command that began a run, from the request that its history has; free() it. */
char *command_of_request(const char *request);

#endif
