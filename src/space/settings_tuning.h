/*
 * The tuning space of a parameter search. Each op is as the settings say, or in sixteen bits, or in fp32; behind the ops
 * a plan holds the settings themselves, byte by byte, so that a plan alone tells all.
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

/* A plan of that space; and back. */
void settings_plan(const struct settings *s, const struct space *space, struct plan *out);
struct settings plan_settings(const struct plan *p, const struct space *space);

#endif
