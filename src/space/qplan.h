/* A plan as the quantizer carries it out: a choice for every op of a prepared model. */
#ifndef SPACE_QPLAN_H
#define SPACE_QPLAN_H

#include "calibrate/range.h"
#include "ops/rules.h"

enum op_mode { OP_FP32, OP_STATIC, OP_DYNAMIC };

/* How a tensor is quantized. */
struct qsetting {
	enum dtype dtype;
	enum scheme scheme;
	bool per_channel; /* weights only */
	bool narrow;      /* weights only: reduce_range, one bit less */
	enum range_algorithm algorithm;
	double percentile; /* with RANGE_PERCENTILE */
};

struct op_choice {
	enum op_mode mode;
	struct qsetting act, weight;
};

enum quant_format { FORMAT_QDQ, FORMAT_QOPERATOR };
enum approach { APPROACH_STATIC, APPROACH_DYNAMIC, APPROACH_AUTO };

struct qplan {
	size_t n; /* one choice per node, as in struct op_list */
	struct op_choice *ops;
	enum quant_format format;
};
#define QPLAN_INIT                                                                                           \
	{                                                                                                    \
		0, NULL, FORMAT_QDQ                                                                          \
	}

/* What a default plan is made from: one setting for all ops. */
struct qplan_defaults {
	enum approach approach;
	enum quant_format format;
	struct qsetting act, weight;
};
/* u8 asymmetric min-max activations, s8 symmetric per-channel weights, in 7 bits where the CPU saturates */
struct qplan_defaults qplan_defaults(const struct cpu *cpu);

/* As much as makes sense in int8: compute ops, and the ops between them where that keeps data in integers. */
void qplan_default(struct qplan *p, const struct op_list *ops, const struct graph_index *g,
		   const struct qplan_defaults *d);
void qplan_release(struct qplan *p);
bool qsetting_equal(const struct qsetting *a, const struct qsetting *b);

#endif
