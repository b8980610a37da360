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
	double averaging;  /* with RANGE_MOVING_AVERAGE: its constant; 0: 0.01 */
};

struct op_choice {
	enum op_mode mode;
	struct qsetting act, weight;
	/* With the recipe finetune: it was static, like this, while weights were rounded, and fell back afterwards. */
	bool fell_back;
	struct qsetting act_before, weight_before;
};
struct op_choice op_choice(enum op_mode mode, const struct qsetting *act, const struct qsetting *weight);
/* Puts what it can in 16 bits; false: nothing. */
bool op_choice_widen(struct op_choice *c, const struct op_rule *r);
void op_choice_fell_back(struct op_choice *c, const struct op_choice *before);

enum quant_format { FORMAT_QDQ, FORMAT_QOPERATOR };
enum approach { APPROACH_STATIC, APPROACH_DYNAMIC, APPROACH_AUTO };
enum reduce_range {
	REDUCE_AUTO,
	REDUCE_ON,
	REDUCE_OFF
}; /* auto: 7-bit weights where all bits would saturate */

/* How weights are rounded: to the nearest, or so that each op's output on calibration data changes least. */
enum finetune_algorithm { FINETUNE_OFF, FINETUNE_ADAROUND, FINETUNE_ADAQUANT, FINETUNE_GRAM };
extern const char *const finetune_algorithms[]; /* "off", "adaround", "adaquant", "gram" */
enum { N_FINETUNE_ALGORITHMS = 4 };

/* What a rounding is judged by in the end: its op's output, or its block's. */
enum finetune_granularity { GRANULARITY_LAYER, GRANULARITY_BLOCK };
extern const char *const finetune_granularities[]; /* "layer", "block" */
enum { N_FINETUNE_GRANULARITIES = 2 };

/* The document's FastFinetune. What only SGD has is unused by gram. */
struct finetune {
	enum finetune_algorithm algorithm;     /* OptimAlgorithm */
	enum finetune_granularity granularity; /* Granularity, which is ours */
	size_t data_size;                      /* DataSize: samples; 0: all there are */
	size_t batch_size;                     /* BatchSize: samples per iteration */
	size_t iterations;                     /* NumIterations, per op */
	double learning_rate;  /* LearningRate, of Adam; rounding is learned in integer steps */
	uint64_t seed;         /* FixedSeed */
	bool early_stop;       /* EarlyStop: when the error on held-out samples has stopped falling */
	bool selective_update; /* SelectiveUpdate: an op whose error did not fall stays as it was */
	bool update_bias;      /* UpdateBias */
	double drop_ratio;     /* DropRatio: share of the input that is the quantized model's; 1: all */
	double reg_param;      /* RegParam, of adaround: weight of the regulariser */
	double beta_range[2];  /* BetaRange, of adaround: annealed from the first to the second */
	double warm_start;     /* WarmStart, of adaround: share of iterations without regulariser */
};
/* What an algorithm does unless told otherwise. */
struct finetune finetune_defaults(enum finetune_algorithm a);
#define SMOOTH_AUTO (-1.0) /* each layer has an alpha of its own */

enum { NO_OUTPUT_MAX = 64 };

/* Passes over the whole model. A zeroed struct is the default. */
struct recipes {
	bool keep_first; /* first_conv_or_matmul_quantization off: that op stays in fp32 */
	bool keep_last;  /* last_conv_or_matmul_quantization off */
	bool keep_ends;  /* pre_post_process_quantization off: nothing before the first or behind the last */
	bool own_pool_scale;      /* scale_propagation_max_pooling off: MaxPool's output gets its own range */
	bool own_concat_scale;    /* scale_propagation_concat off: inputs of Concat keep their own ranges */
	bool gemm_to_matmul;      /* quantized Gemm becomes MatMul and Add */
	bool dedicated_qdq_pair;  /* every reader gets a pair of its own */
	bool qdq_pair_on_weights; /* add_qdq_pair_to_weight: float weights with Q and DQ */
	bool fast_bias_correction;            /* biases take up the mean error of the quantized weights */
	bool weight_correction;               /* quantized weights keep each channel's mean and variance */
	struct finetune finetune;             /* include_fast_ft and FastFinetune */
	bool cle;                             /* channels of activations are equalised */
	bool smooth_quant;                    /* inputs of MatMul and Gemm are smoothed */
	double smooth_alpha;                  /* then: 0 to 1, or SMOOTH_AUTO */
	const char *no_output[NO_OUTPUT_MAX]; /* optypes_to_exclude_output_quant; names in op_rules[] */
	size_t n_no_output;
};

/* Adds a type to no_output, once, if any op of it can be quantized. */
void recipes_leave_output(struct recipes *r, const char *type);

struct qplan {
	size_t n; /* one choice per node, as in struct op_list */
	struct op_choice *ops;
	enum quant_format format;
	struct recipes recipes;
};
#define QPLAN_INIT                                                                                           \
	{                                                                                                    \
		0, NULL, FORMAT_QDQ,                                                                         \
		{                                                                                            \
			0                                                                                    \
		}                                                                                            \
	}

/* What a default plan is made from: one setting for all ops. */
struct qplan_defaults {
	enum approach approach;
	enum quant_format format;
	struct qsetting act, weight;
	enum reduce_range reduce_range; /* decides on weight.narrow of each op */
	struct cpu cpu;
	bool elsewhere; /* its overflows cannot be measured here: weights that overflow are not on offer */
};
/* u8 asymmetric min-max activations, s8 symmetric per-channel weights, in 7 bits where the CPU saturates */
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
