/*
 * A subject whose weights a recipe has rewritten (cle, smooth_quant): the same function in fp32, easier to quantize.
 * Values keep their names; what they hold is scaled.
 */
#ifndef QUANTIZE_VARIANT_H
#define QUANTIZE_VARIANT_H

#include "quantize/subject.h"

struct variant {
	struct subject *s; /* the base itself, if no recipe rewrites it */
	size_t *node;      /* the base's nodes -> places in s->m; NULL: as they are */
	size_t n_base;
	char *text;         /* all that variant_read() needs; "" for the base */
	struct map changed; /* what the rewriting changed: value -> place in ranges; of variant_new() only */
	VEC(struct range) ranges;
};

/* Do these recipes rewrite the model? */
bool recipes_rewrite(const struct recipes *r);
/* Names the variant that a plan of the base asks for: "" for the base, or such as "cle smooth_quant=0.5"; free() it. It
 * depends on the plan's recipes only; but alpha auto looks at how most of its matrix ops are quantized. */
char *variant_key(const struct subject *base, const struct qplan *p);

/* The base must outlive it. The feed is only read if there is something to rewrite. */
enum fettle_status variant_new(struct variant **out, struct runtime *rt, struct subject *base,
			       const struct qplan *p, struct feed *feed, const struct calibrate_options *o,
			       struct err *err);
/* The same again from its text, without data. */
enum fettle_status variant_read(struct variant **out, struct subject *base, const char *text,
				struct err *err);
void variant_free(struct variant *v);
/* Does a value of the variant hold something else than it does in the base? *out is then the smallest and the largest it
 * had on the feed, as far as that was seen when the base was looked at; else NAN. */
bool variant_changes(const struct variant *v, const char *value, struct range *out);
/*
 * The range of a value of the variant. Min-max has it from a calibration of the base: what the rewriting left alone is as it
 * was there, and the extremes of the rest are known. Other algorithms have it from a calibration of the variant itself,
 * `own`. So nobody need pay for both; and whichever is there, the answer is the same. Without a variant there is only `own`.
 */
bool variant_needs_own(const struct variant *v, const char *value, enum range_algorithm a);
enum fettle_status variant_range(const struct variant *v, const struct calibration *base,
				 const struct calibration *own, const char *value,
				 const struct range_options *o, struct range *out, struct err *err);

/* A plan of the base as one of the variant; qplan_release() it. */
void variant_plan(const struct variant *v, const struct qplan *p, struct qplan *out);

#endif
