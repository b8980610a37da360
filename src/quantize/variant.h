/*
 * A subject whose weights a recipe (cle, smooth_quant) or awq has rewritten: the same function in fp32, easier to quantize.
 * Values keep their names; what they hold is scaled.
 */
#ifndef QUANTIZE_VARIANT_H
#define QUANTIZE_VARIANT_H

#include "blockwise/blockwise.h"
#include "quantize/subject.h"

struct variant {
	struct subject *s; /* the base itself, if no recipe rewrites it */
	size_t *node;      /* the base's nodes -> places in s->m; NULL: as they are */
	size_t n_base;
	bool scaled;        /* by awq: channels were multiplied by factors, and nothing else was done */
	char *text;         /* all that variant_read() needs; "" for the base */
	struct map changed; /* what the rewriting changed: value -> place in ranges; of variant_new() only */
	VEC(struct range) ranges;
	VEC(const double *)
	factors; /* likewise: what each channel was multiplied by; NULL: it is not so simple */
};

/* Does the plan rewrite the model? By its recipes; or, where none of them does, because ops are weight-only by awq. */
bool plan_rewrites(const struct qplan *p);
/* Is it because of awq? */
bool plan_scales_inputs(const struct qplan *p);
/* Names the variant that a plan of the base asks for: "" for the base, or such as "cle smooth_quant=0.5"; free() it. It
 * depends on the plan's recipes only; but alpha auto and awq look at how most of its matrix ops are quantized. */
char *variant_key(const struct subject *base, const struct qplan *p);

/* What a matrix op of the base reads, for awq; it is valid until the next call. */
struct input_seen {
	void *self;
	enum fettle_status (*see)(void *self, size_t node, const struct block_seen **out, struct err *err);
};

/* The base must outlive it. The feed is only read if a recipe has something to rewrite, and `seen` only asked for awq. */
enum fettle_status variant_new(struct variant **out, struct runtime *rt, struct subject *base,
			       const struct qplan *p, struct feed *feed, const struct calibrate_options *o,
			       const struct input_seen *seen, struct err *err);
/* The same again from its text, without data. */
enum fettle_status variant_read(struct variant **out, struct subject *base, const char *text,
				struct err *err);
void variant_free(struct variant *v);
/* Does a value of the variant hold something else than it does in the base? *out is then the smallest and the largest it
 * had on the feed, as far as that was seen when the base was looked at; else NAN. */
bool variant_changes(const struct variant *v, const char *value, struct range *out);
/* What each channel of a value, which is along its last axis, was multiplied by; NULL: nothing, or by something else. */
const double *variant_factors(const struct variant *v, const char *value);
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
