/*
 * A plan's text form: JSON that names every op on offer and what becomes of it. The same plan always gives the
 * same text, whose hash names the plan; it can be applied to the model again, by hand or by a program.
 *
 *	{"fettle_plan": 1, "format": "qdq", "samples": 100,
 *	 "recipes": {"weight_correction": true, …},
 *	 "ops": {"/conv1/Conv": {"mode": "static", "activation": {…}, "weight": {…}}, "/conv2/Conv": {"mode": "fp32"}}}
 */
#ifndef SPACE_PLAN_JSON_H
#define SPACE_PLAN_JSON_H

#include "space/tuning.h"

char *qplan_to_json(const struct qplan *p, const struct op_list *ops, int64_t samples); /* free() it */
/* Ops that the text does not name stay in fp32 (moves stay as they are); one that the model does not have, or
 * cannot have that way, is an error. `where` names the text in messages. */
enum fettle_status qplan_from_json(struct qplan *out, int64_t *samples, const char *text, const char *where,
				   const struct op_list *ops, struct err *err);

/* Adds what the second plan has that the first has not, in words: "/fc/Gemm in fp32; cle on". In how many things. */
size_t plan_changes(const char *before, const char *after, struct str *out);

#endif
