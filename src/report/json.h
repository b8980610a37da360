/* Results as JSON, once for the command and for fettle_call_json(). Each gives a new reference. */
#ifndef REPORT_JSON_H
#define REPORT_JSON_H

#include <jansson.h>

#include "tune/context.h"

/* The name of value i of a metric that joins several: "f1" of "0.7*top1,0.3*f1". */
const char *value_name(const char *metric, size_t i, char *buf, size_t n);
json_t *json_number(double x);        /* null unless finite */
json_t *json_names(const char *list); /* "a, b" as an array */
json_t *json_of_fp32(const struct context *cx);
/* Adds "metrics" where there are several; "fed", "scoring" and "warnings". */
void json_add_values(json_t *j, const char *metric, const struct fettle_values *values);
void json_add_remarks(json_t *j, const struct context *cx);

json_t *json_of_tuned(const struct context *cx, const struct fettle_tuned *t);
json_t *json_of_run(const struct fettle_run *r, bool pareto);
json_t *json_of_runs(const struct fettle_run *const *v, size_t n);

json_t *json_of_quantized(const struct context *cx, const struct fettle_quantized *q);
json_t *json_of_score(const struct context *cx, const struct fettle_score *s);
json_t *json_of_preview(const struct context *cx, const struct fettle_preview *p);
json_t *json_of_timings(const char *const *models, size_t n, const struct fettle_timing *t);
json_t *json_of_inspection(const struct context *cx, const struct fettle_inspection *x);
json_t *json_of_sensitivity(const struct context *cx, const struct fettle_sensitivity *s);
json_t *json_of_diff(const struct context *cx, const struct fettle_diff *d);
json_t *json_of_recipes(void);
json_t *json_of_cpus(void);
json_t *json_of_strategies(void);
/* As indented text; free() it. Drops the reference. */
char *report_text(json_t *j);

#endif
