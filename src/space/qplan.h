/* A plan as the quantizer carries it out: a choice for every op of a prepared model. */
#ifndef SPACE_QPLAN_H
#define SPACE_QPLAN_H

#include "base/fingerprint.h"
#include "blockwise/blockwise.h"
#include "calibrate/range.h"
#include "recipe/recipe.h"

enum op_mode { OP_FP32, OP_STATIC, OP_DYNAMIC, OP_WEIGHT };

/* How a tensor is quantized. */
struct qsetting {
	enum dtype dtype;
	enum scheme scheme;
	bool per_channel; /* weights only */
	bool narrow;      /* weights only: reduce_range, one bit less */
	enum range_algorithm algorithm;
	double parameter; /* the algorithm's; 0: it has none */
};
/* Another algorithm, with its parameter as by default. */
void qsetting_use(struct qsetting *s, enum range_algorithm a);

/* How a weight-only op keeps its weight. */
struct block_setting {
	struct block_format format;
	enum block_algorithm algorithm;
	int level; /* MatMulNBits's accuracy_level: 0 or 1 computes in floats, 4 in int8 */
};
bool block_setting_equal(const struct block_setting *a, const struct block_setting *b);
/* FETTLE_INVALID if there is no such format or level, or if the runtime would unpack the weight at each call. */
enum fettle_status block_setting_check(const struct block_setting *s, struct err *err);
/* Can this op's weight have it? A table's rows are whole blocks, and nothing is seen of what it reads. */
bool block_setting_fits(const struct block_setting *s, const struct op *op);

struct op_choice {
	enum op_mode mode;
	struct qsetting act, weight;
	struct block_setting blocks; /* of OP_WEIGHT, instead of the two */
	/* With the recipe finetune: it was static, like this, while weights were rounded, and fell back afterwards. */
	bool fell_back;
	struct qsetting act_before, weight_before;
};
struct op_choice op_choice(enum op_mode mode, const struct qsetting *act, const struct qsetting *weight);
/* Puts what it can in 16 bits; false: nothing. */
bool op_choice_widen(struct op_choice *c, const struct op_rule *r);
void op_choice_fell_back(struct op_choice *c, const struct op_choice *before);

enum quant_format {
	FORMAT_QDQ,
	FORMAT_QOPERATOR,
	FORMAT_QDQ_WEIGHTS, /* as QDQ, and weight-only MatMul and Gemm as pairs too, not as MatMulNBits */
	FORMATS
};
enum { QDQ_WEIGHTS_OPSET = 21 }; /* which that needs */
enum approach {
	APPROACH_STATIC,
	APPROACH_DYNAMIC,
	APPROACH_AUTO,   /* both */
	APPROACH_WEIGHT, /* weights in few bits, nothing else */
	APPROACH_ALL,    /* any of these */
};
enum reduce_range {
	REDUCE_AUTO,
	REDUCE_ON,
	REDUCE_OFF
}; /* auto: 7-bit weights where all bits would saturate */

struct qplan {
	size_t n; /* one choice per node, as in struct op_list */
	struct op_choice *ops;
	enum quant_format format;
	struct recipes recipes;
	/* with the recipe finetune: the hash of the plan that its weights are rounded for, plan_root(); "": none */
	char root[FINGERPRINT_LEN];
};
#define QPLAN_INIT                                                                                           \
	{                                                                                                    \
		.n = 0                                                                                       \
	}

/* What a default plan is made from: one setting for all ops. */
struct qplan_defaults {
	enum approach approach;
	enum quant_format format;
	struct qsetting act, weight;
	struct block_setting blocks;
	enum reduce_range reduce_range; /* decides on weight.narrow of each op */
	struct cpu cpu;
	bool elsewhere; /* its overflows cannot be measured here: weights that overflow are not on offer */
};
/* u8 asymmetric min-max activations, s8 symmetric per-channel weights, in 7 bits where the CPU saturates; weight-only: 4 bits in
 * asymmetric blocks of 32, rounded to nearest, computed in int8 */
struct qplan_defaults qplan_defaults(const struct cpu *cpu);
/* Gives the weight 7 bits or all, as the defaults want it for this op and these types. */
void op_choice_reduce(struct op_choice *c, const struct op *op, const struct qplan_defaults *d);

/* As much as makes sense in int8: compute ops, and the ops between them where that keeps data in integers. */
void qplan_default(struct qplan *p, const struct op_list *ops, const struct graph_index *g,
		   const struct qplan_defaults *d);
void qplan_release(struct qplan *p);
struct qplan qplan_copy(const struct qplan *p); /* qplan_release() it */
/* Before anything fell back: what its weights are rounded for. qplan_release() it. */
struct qplan qplan_before(const struct qplan *p);
bool qsetting_equal(const struct qsetting *a, const struct qsetting *b);
/* How many of its ops overflow on this CPU, because their int8 weights have all 8 bits. */
size_t qplan_saturating(const struct qplan *p, const struct op_list *ops, const struct cpu *cpu);
/* The constants of the moving averages that its activations ask for; as for an observer. */
void qplan_averages(const struct qplan *p, double out[OBSERVER_AVERAGES]);
/* Is its scale a power of two? */
bool qsetting_is_pow2(const struct qsetting *s);

#endif
