/* What each command but tune and search does with its request. */
#ifndef CONFIG_COMMANDS_H
#define CONFIG_COMMANDS_H

#include "config/run.h"
#include "tune/diff.h"
#include "tune/inspect.h"
#include "tune/sensitivity.h"

enum fettle_status request_quantize(struct context *cx, const struct call_options *o,
				    struct fettle_quantized *out);
enum fettle_status request_eval(struct context *cx, const struct call_options *o, struct fettle_score *out);
enum fettle_status request_bench(struct context *cx, const struct call_options *o, const char *const *models,
				 size_t n, struct fettle_timing *out);
enum fettle_status request_footprint(struct context *cx, const struct call_options *o, size_t *bytes);
/* free() the rows */
enum fettle_status request_profile(struct context *cx, const struct call_options *o,
				   struct fettle_profile_row **rows, size_t *n);
enum fettle_status request_inspect(struct context *cx, const struct call_options *o, struct inspection *out);
/* run_release() the run, also after a failure; free() the rows */
enum fettle_status request_sensitivity(struct run *u, struct context *cx, const struct call_options *o,
				       struct accuracy *baseline, struct op_sensitivity **rows, size_t *n);
/* diff_release() it, also after a failure */
enum fettle_status request_diff(struct context *cx, const struct call_options *o, const char *a,
				const char *b, struct diff *out);
enum fettle_status request_recover(struct context *cx, const struct call_options *o, size_t trial);
/* The whole configuration as YAML; free() it. */
enum fettle_status request_config(struct context *cx, const struct call_options *o, char **text);

#endif
