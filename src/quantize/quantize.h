/*
 * A plan in, a model out. One quantizer serves any number of plans for one prepared model: a weight is
 * quantized once per setting and shared by all the models made.
 */
#ifndef QUANTIZE_QUANTIZE_H
#define QUANTIZE_QUANTIZE_H

#include "calibrate/means.h"
#include "quantize/blocks.h"
#include "quantize/knowledge.h"

/* A prepared model, and its weights as quantized so far. All arguments must outlive it. */
struct quantizer;
struct quantizer *quantizer_new(struct model *prepared, const struct graph_index *g,
				const struct op_list *ops);
void quantizer_free(struct quantizer *q);

/*
 * Depends on its arguments alone, and fails when the knowledge lacks something that the plan needs. Where the knowledge
 * has a variant of the model, that is quantized. The model shares weights with the quantizer (or the variant's) and with
 * the rounding, which must outlive it.
 */
enum fettle_status quantize(struct quantizer *q, const struct knowledge *k, const struct qplan *plan,
			    struct model **out, struct err *err);

/* What a plan needs to be known. Names live in the quantizer's model; needs_release() it. */
struct range_need {
	const char *value;
	struct qsetting setting;
};
struct needs {
	VEC(struct range_need) ranges;
	VEC(struct channel_axis) means;
	VEC(size_t) blocks; /* nodes whose weight-only weights data must make */
	bool rounding;      /* that of qplan_before(), whose needs are those of this plan too */
};
#define NEEDS_INIT                                                                                           \
	{                                                                                                    \
		.rounding = false                                                                            \
	}
/* The plan is one of the quantizer's own model, not of what that is a variant of. */
enum fettle_status quantizer_needs(struct quantizer *q, const struct qplan *plan, struct needs *out,
				   struct err *err);
void needs_release(struct needs *n);

/* What became of an op with a constant weight. Names live in the model that was made. */
struct trace {
	const char *input; /* the integers it reads; NULL: this op is not static, or has no constant weight */
	struct qparams q;  /* of those */
	const struct qweight
		*w;       /* the weight, in the float one's layout; the quantizer's, or the rounding's */
	bool takes_shift; /* has a bias, or room for one */
	const struct node *node; /* it, in the model that was made */
};

/*
 * A plan of the quantizer's own model with just the rounding that the knowledge has, be it none, whether the plan asks for
 * finetune or not. `traces` has room for one per node, or is NULL.
 */
enum fettle_status quantize_traced(struct quantizer *q, const struct knowledge *k, const struct qplan *plan,
				   struct trace *traces, struct model **out, struct err *err);

/* Told what becomes of a model's parts. What is passed is valid during the call. */
struct quantize_watch {
	void *self;
	/* A value gets a pair; `observed` is the value that has the same numbers and was calibrated. */
	void (*value)(void *self, const char *value, const char *observed, struct qparams q, enum dtype t);
	/* the constant that is this input of an op */
	void (*weight)(void *self, const struct op *op, size_t input, const struct qweight *w);
	/* the weight of an op that is weight-only */
	void (*blocks)(void *self, const struct op *op, const struct block_packed *w);
};
/* As quantize(), but tells what it does and keeps nothing. */
enum fettle_status quantize_watched(struct quantizer *q, const struct knowledge *k, const struct qplan *plan,
				    const struct quantize_watch *watch, struct err *err);

/* The value that is quantized when an op makes `value`: after the fused Relu or Clip if there is one. */
size_t quantized_output(const struct graph_index *g, const char *value);

/* The values whose ranges any plan of the ops on offer needs, or this one (may be NULL); free() the array. */
size_t quantizer_values(const struct graph_index *g, const struct op_list *ops, const struct qplan *plan,
			const char ***out);

/* The same for the means that recipes may need. */
size_t quantizer_means(const struct graph_index *g, const struct op_list *ops, const struct qplan *plan,
		       struct channel_axis **out);

/* What a plan asks for: how many ops in which precision, and the share of multiply-adds in int8. Cheap, for comparing
 * plans; what the runtime makes of one is in quantize/precision.h. */
struct qplan_summary {
	size_t int8, int16, dynamic, weight,
		fp32; /* ops that can be quantized, by what the plan makes them */
	double int8_share;
	double low_share; /* of the multiply-adds, in 8 or 16 bits; of the ops where there are no multiply-adds */
};
struct qplan_summary qplan_summarise(const struct qplan *p, const struct op_list *ops);

#endif
