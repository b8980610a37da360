/* Results as JSON, once for the command and for fettle_call_json(). Each gives a new reference. */
#ifndef API_JSON_H
#define API_JSON_H

#include <jansson.h>

#include "api/internal.h"

json_t *json_number(double x);        /* null unless finite */
json_t *json_names(const char *list); /* "a, b" as an array */
json_t *json_of_fp32(const struct fettle *f);
/* Adds "metrics" where there are several; "fed", "scoring" and "warnings". */
void json_add_values(json_t *j, const char *metric, const struct fettle_values *values);
void json_add_remarks(json_t *j, const struct fettle *f);

json_t *json_of_tuned(const struct fettle *f, const struct fettle_tuned *t);
json_t *json_of_run(const struct fettle_run *r, bool pareto);
json_t *json_of_runs(const struct fettle_run *const *v, size_t n);

json_t *json_of_quantized(const struct fettle *f, const struct fettle_quantized *q);
json_t *json_of_score(const struct fettle *f, const struct fettle_score *s);
json_t *json_of_timings(const char *const *models, size_t n, const struct fettle_timing *t);
json_t *json_of_inspection(const struct fettle *f, const struct fettle_inspection *x);
json_t *json_of_sensitivity(const struct fettle *f, const struct fettle_sensitivity *s);
json_t *json_of_recipes(void);
json_t *json_of_cpus(void);
json_t *json_of_strategies(void);

#endif
