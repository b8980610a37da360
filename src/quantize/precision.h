/*
 * What each op of a quantized model is really computed in, by the graph that a default session makes of it: a plan
 * asks for integers, and the runtime has a kernel for them or not. And why the others stay in fp32.
 */
#ifndef QUANTIZE_PRECISION_H
#define QUANTIZE_PRECISION_H

#include "quantize/subject.h"

enum precision {
	PRECISION_NONE, /* does not count: moves data, is part of another op, has no multiply-adds */
	PRECISION_INT8,
	PRECISION_DYNAMIC,
	PRECISION_WEIGHT, /* weight-only */
	PRECISION_INT16,  /* what it reads and makes is rounded to 16 bits; the runtime computes in floats */
	PRECISION_FP32,
};

/* Why an op stays in fp32. */
enum fp32_reason { FP32_NO_KERNEL, FP32_NO_GAIN, FP32_USER, FP32_SEARCH, FP32_RECIPE, FP32_NOT_FUSED };
extern const char *const fp32_reasons[]; /* "no_kernel", "no_gain", … */

struct op_precision {
	enum precision is;
	enum fp32_reason reason; /* these of PRECISION_FP32 only */
	const char *why;         /* in words; lives as long as the op list */
};

struct precisions {
	struct op_precision *v; /* per op of the base */
	size_t n;
	size_t int8, int16, dynamic, weight, fp32; /* how many of each */
	double int8_share; /* of the multiply-adds, computed in int8: weight-only ones too, with accuracy_level 4 */
	double weight_share; /* of the multiply-adds, weight-only */
};
#define PRECISIONS_INIT                                                                                      \
	{                                                                                                    \
		.n = 0                                                                                       \
	}

/* Where a plan comes from: what is fp32 in the first that has it so is by that one's reason. All are of the base. */
struct plan_origin {
	const struct qplan *by_default; /* without what the user says */
	const struct qplan *allowed;    /* with that */
	const struct qplan *plan;       /* what the search, or nobody, has made of that */
};

/* A copy of a quantized model (or of the base) in which the names of nodes say which op of the base they are, or are part of. */
struct model *marked_model(const struct model *q, const struct op_list *ops);
/* The ops that the name of a runtime's node tells, one after the other: *at starts as the name. false: no more. */
bool next_mark(const char **at, size_t *op);
/* Which ops of the base the runtime computes in integers in this quantized model; as many as ops->n. */
enum fettle_status integer_ops(const struct model *quantized, struct runtime *rt, const struct op_list *ops,
			       bool *out, struct err *err);
/* Ranges for a plan without data, when only what the runtime makes of it is of interest. */
enum fettle_status made_up_ranges(struct statistics *out, struct subject *s, const struct qplan *plan,
				  struct err *err);
void precisions_init(struct precisions *p, const struct plan_origin *o, const struct op_list *ops,
		     const bool *integer);
/* The same for a quantized model, by what a default session makes of it. `approach` decides what is quantized by default. */
struct precisions_wanted {
	enum approach approach;
	const struct qplan *allowed; /* before a search changed it */
	const struct qplan *plan;
	const struct model *quantized; /* made by that plan */
};
enum fettle_status precisions_of(struct precisions *out, struct runtime *rt, const struct subject *s,
				 const struct precisions_wanted *w, struct err *err);
void precisions_release(struct precisions *p);

#endif
