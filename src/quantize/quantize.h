/*
 * A plan in, a model out. One quantizer serves any number of plans for one prepared model: a weight is
 * quantized once per setting and shared by all the models made.
 */
#ifndef QUANTIZE_QUANTIZE_H
#define QUANTIZE_QUANTIZE_H

#include "calibrate/means.h"
#include "quantize/rounding.h"
#include "space/qplan.h"

/*
 * What is known of activations: minimum and maximum of a value under a setting; and, if there is `mean`, the
 * mean of each of its channels along an axis (-1: the last). Only recipes that correct biases call that, with
 * what quantizer_means() lists. Without it fast_bias_correction fails, and weight_correction keeps to variances.
 * `rounding` is asked for the weights of a plan with the recipe finetune; what it gives must outlive the models.
 */
struct quantizer;
struct range_source {
	enum fettle_status (*get)(void *self, const char *value, const struct qsetting *s, struct range *out,
				  struct err *err);
	enum fettle_status (*mean)(void *self, const char *value, int axis, size_t channels, double *means,
				   struct err *err);
	enum fettle_status (*rounding)(void *self, struct quantizer *q, const struct qplan *plan,
				       const struct rounding **out, struct err *err);
	void *self;
};

/* All arguments must outlive it. `ranges` may be NULL for plans that are all dynamic. */
struct quantizer *quantizer_new(struct model *prepared, const struct graph_index *g,
				const struct op_list *ops, const struct range_source *ranges);
void quantizer_free(struct quantizer *q);
struct variant;
void quantizer_map(struct quantizer *q, const struct variant *v); /* plans are of what v is a variant of */

/* The model shares weights with the quantizer, which must outlive it. */
enum fettle_status quantize(struct quantizer *q, const struct qplan *plan, struct model **out,
			    struct err *err);

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
 * The same, with these weights instead of what the recipe finetune would give; both may be NULL. `traces` has
 * room for one per node. The model shares the rounding's bytes.
 */
enum fettle_status quantize_rounded(struct quantizer *q, const struct qplan *plan, const struct rounding *r,
				    struct trace *traces, struct model **out, struct err *err);

/* The value that is quantized when an op makes `value`: behind the fused Relu or Clip if there is one. */
size_t quantized_output(const struct graph_index *g, const char *value);

/* The values whose ranges any plan of the ops on offer needs, or this one (may be NULL); free() the array. */
size_t quantizer_values(const struct graph_index *g, const struct op_list *ops, const struct qplan *plan,
			const char ***out);

/* The values whose means this plan's recipes need, or (NULL) those of any plan; free() the array. */
size_t quantizer_means(const struct graph_index *g, const struct op_list *ops, const struct qplan *plan,
		       struct channel_axis **out);

/* What a plan asks for: how many ops in which precision, and the share of multiply-adds in int8. Cheap, for comparing
 * plans; what the runtime makes of one is in quantize/precision.h. */
struct qplan_summary {
	size_t int8, int16, dynamic, fp32; /* ops that can be quantized, by what the plan makes them */
	double int8_share;
	double low_share; /* of the multiply-adds, in 8 or 16 bits; of the ops where there are no multiply-adds */
};
struct qplan_summary qplan_summarise(const struct qplan *p, const struct op_list *ops);

#endif
