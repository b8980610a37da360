/*
 * The tuning space of a parameter search. Each op is as the settings say, or in sixteen bits, or in fp32; after the ops comes a
 * parameter per setting. The text of a plan says everything else that decides on the model, too:
 *
 *	{"approach":"static","constraints":{},"cpu":"avx2","fettle_plan":2,"format":"qdq","ops":{"/conv1/Conv":"as set",
 *	 "/conv2/Conv":"fp32"},"recipes":{…},"samples":100,"settings":{"calibrate_method":"MinMax",…}}
 */
#ifndef SPACE_SETTINGS_TUNING_H
#define SPACE_SETTINGS_TUNING_H

#include "space/settings.h"
#include "space/tuning.h"

enum { OPTION_AS_SET, OPTION_16_BITS, OPTION_BACK_TO_FP32 }; /* of an op */

/* What `o` has is copied; its recipes are in force but for those that are settings. */
struct tuning *settings_tuning_new(const struct op_list *ops, const struct graph_index *g,
				   const struct tuning_options *o);
/* In words, a plan is only what varies in this list, which outlives the tuning. */
void settings_tuning_vary(struct tuning *t, const struct settings_list *l);

/* Adds a parameter per setting to a space that has its ops, and room for SETTINGS more. */
void space_add_settings(struct space *s);
/* A plan of that space, which gets an option for every new number; and back. FETTLE_INVALID: too many numbers. */
enum fettle_status settings_plan(const struct settings *s, struct space *space, struct plan *out,
				 struct err *err);
struct settings plan_settings(const struct plan *p, const struct space *space);

#endif
