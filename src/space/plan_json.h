/*
 * What the options of a tuning space are called, and what else the text of a plan says; and a text as the quantizer carries it
 * out. plan_text() puts it together:
 *
 *	{"fettle_plan":2,"format":"qdq","ops":{"/conv1/Conv":{"activation":{…},"mode":"static","weight":{…}},
 *	 "/conv2/Conv":{"mode":"fp32"}},"recipes":{"cle":false,…},"samples":100}
 *
 * with "before", where weights are rounded: what ops were like before they fell back. It can be applied to the model again, by
 * hand or by a program.
 */
#ifndef SPACE_PLAN_JSON_H
#define SPACE_PLAN_JSON_H

#include "space/tuning.h"

enum { PLAN_VERSION = 2 };

/* As JSON; they live in the arena. */
const char *op_choice_text(struct arena *a, const struct op *op, const struct op_choice *c);
const char *recipe_text(struct arena *a, const struct recipes *r, const struct recipe *i);

/* Of a plan in full: what no parameter of the space decides becomes part of the text of its plans. */
void space_fix_format(struct space *s, enum quant_format format);
void space_fix_samples(struct space *s, int64_t samples);
/* but for recipes that settings decide on, by their places in recipe_list; NULL: none */
void space_fix_recipes(struct space *s, const struct recipes *r, const bool *decided);
void space_fix_ops(struct space *s, const struct qplan *p, const struct op_list *ops);
/* For settings_tuning_new(), where these decide on each op. */
void space_fix_defaults(struct space *s, const struct qplan_defaults *d);
void space_fix_masks(struct space *s, const struct op_mask *masks, const struct op_list *ops);

/* The text of a plan in full, whatever space it came from. */
char *qplan_to_json(const struct qplan *p, const struct op_list *ops, int64_t samples); /* free() it */
/* Ops that the text does not name stay in fp32 (moves stay as they are); one that the model does not have, or
 * cannot have that way, is an error. `where` names the text in messages. */
enum fettle_status qplan_from_json(struct qplan *out, int64_t *samples, const char *text, const char *where,
				   const struct op_list *ops, const struct graph_index *g, struct err *err);

/* A text as older versions wrote it, as plan_text() does now; free() it. NULL: it is none. */
char *plan_text_update(const char *text, struct err *err);

/* The text of a plan, read once to be compared with many others. NULL is a plan of nothing. */
struct plan_words;
struct plan_words *plan_words_new(const char *text);
void plan_words_free(struct plan_words *p);
/* In how many ops and other things two plans differ: cheap, to find the one that is most like another. */
size_t plan_distance(const struct plan_words *a, const struct plan_words *b);
/* Adds what the second plan has that the first has not, in words: "/fc/Gemm in fp32; cle on". In how many things. */
size_t plan_changes(const struct plan_words *before, const struct plan_words *after, struct str *out);

/* An option of a parameter, which is JSON, in words: "fp32", "static, activation minmax uint8 asym", "on"; free() it. */
char *option_words(const char *json);

#endif
