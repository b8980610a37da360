/*
 * What is known of each op type, as data: how it can be quantized for ONNX Runtime's CPU provider.
 * The space reads its options here, the quantizer how to write them down.
 */
#ifndef OPS_RULES_H
#define OPS_RULES_H

#include <stdbool.h>

#include "model/index.h"
#include "model/shapes.h"
#include "ops/cpu.h"

enum op_kind {
	OP_COMPUTE, /* multiplies with weights or with another activation: what int8 is for */
	OP_ELEMENT, /* arithmetic on each element: int8 where its neighbours are */
	OP_MOVE,    /* only moves or selects values: output shares the input's scale and zero point */
	OP_TABLE,   /* looks rows up in a constant table */
};

/* bit sets */
enum { IN0 = 1, IN1 = 2, IN2 = 4, IN_ALL = 0xff };
enum {
	MODE_STATIC = 1,
	MODE_DYNAMIC = 2,
	MODE_WEIGHT = 4
}; /* the last: weights in 2 to 8 bits, floats elsewhere */
enum { MODE_INT = MODE_STATIC | MODE_DYNAMIC };
enum { T_U8 = 1, T_S8 = 2, T_U16 = 4, T_S16 = 8, T_8 = T_U8 | T_S8, T_ALL = 15 };

/* How the weight of a compute op lies. */
enum weight_layout {
	LAYOUT_NONE,
	LAYOUT_CONV,   /* [outputs, inputs per group, kernel...] */
	LAYOUT_DECONV, /* [inputs, outputs per group, kernel...] */
	LAYOUT_MATRIX, /* [inputs, outputs], or turned by an attribute */
	LAYOUT_RECURRENT,
};

struct op_rule {
	const char *type;
	enum op_kind kind;
	unsigned modes;
	unsigned activations; /* which inputs are activations */
	int weight, bias;     /* which input is the weight or bias; -1: none */
	int axis;             /* of the weight's output channels; -1: the last */
	enum weight_layout layout;
	const char *weight_turned, *input_turned; /* the attributes that say so; NULL: there is none */
	bool channels_last;                       /* in what it reads and writes; otherwise second */
	bool requantized; /* in fp32 after a DQ, the runtime's optimizer quantizes its weight all the same */
	bool dynamic_slow; /* dynamic, it quantizes its input anew each time and gains nothing: not by default */
	unsigned act_dtypes, weight_dtypes; /* T_* */
	int since;         /* opset from which the runtime's integer kernel applies; 0: any */
	int runtime;       /* 30: ONNX Runtime before 1.30 has no integer kernel for it; 0: all have */
	bool needs_output; /* fuses only when its output is quantized too ... */
	bool needs_cut_output; /* ... or when that is cut off by a Relu or Clip: the runtime looks for a Q after it */
	bool on;               /* quantized by default */
	double speedup;      /* of the integer kernel over the fp32 one, as measured; 0: not known */
	const char *qlinear; /* the op of the QOperator format, NULL: runs on integers as it is */
	const char *qlinear_domain;
};

#define DOMAIN_MS "com.microsoft"

/*
 * Of ONNX Runtime before this, as tried with 1.21: QLinearConv takes one zero point for all channels of its weight,
 * ConvInteger takes uint8 weights only.
 */
enum { OLD_CONV = 30 };

/*
 * MatMulNBits by version of the runtime, as tried with 1.21 and 1.30: 1.21 has 4 bits only. Which bits it has, as a set:
 * 1 << 4 for 4 bits. And the fewest inputs of a weight that blocks are worth it for.
 */
enum { OLD_NBITS = 30, NBITS_INPUTS_MIN = 16 };
unsigned runtime_weight_bits(const struct model *m);
/* The same for GatherBlockQuantized on bytes, which 1.21 does not have. */
unsigned runtime_table_bits(const struct model *m);

extern const struct op_rule op_rules[];
extern const size_t n_op_rules;

const struct op_rule *op_rule_find(const struct node *n); /* NULL: no integer kernel */
/* Is it com.microsoft's FusedMatMul with a weight [outputs, inputs], and nothing else that a MatMul has not? */
bool op_is_turned_matmul(const struct node *n);
const char *op_type(const struct node *n); /* as users call it: that is a MatMul, too */

/* layout.c: what a node's rule says of its weight; LAYOUT_NONE if it has no rule. */
enum weight_layout op_layout(const struct node *n);
bool op_convolves(const struct node *n);     /* LAYOUT_CONV or LAYOUT_DECONV */
bool op_weight_turned(const struct node *n); /* a matrix: [outputs, inputs] */
bool op_input_turned(const struct node *n);
int op_weight_axis(const struct node *n);            /* of the output channels; -1: the last */
int op_channel_axis(const struct node *n, int rank); /* of a value of this rank that it reads or writes */
/* What an op does with the channels of its first input, if it is f with f(s x) = s f(x) for each of them and s > 0. */
enum op_channels {
	CHANNELS_LOST,        /* none of these */
	CHANNELS_KEPT,        /* they stay on their axis */
	CHANNELS_KEPT_SECOND, /* if that is the second: pools */
	CHANNELS_RESHAPED,
	CHANNELS_TURNED, /* by "perm" */
};
enum op_channels op_channels(const struct node *n);
/* Is it a Relu or Clip, which cuts values off? Then its bounds, as far as they are constants; infinite otherwise. */
bool op_cuts_off(const struct node *n);
void op_cut_bounds(struct model *m, const struct node *n, float *lo, float *hi);

/* Was the model prepared by a runtime that has no integer kernel for the op? */
bool runtime_lacks(const struct model *m, const struct op_rule *r);

/* An op of the model that a plan speaks about. */
struct op {
	const char *name; /* the node's, or made from its output where that is empty or not unique */
	int node;
	const struct op_rule *rule; /* NULL when it cannot be quantized */
	const char *why;            /* the reason; of one that can only be weight-only: why it has no int8 */
	unsigned modes;             /* MODE_* possible for this very node */
	int64_t inputs, outputs;    /* of a weight that can be weight-only; 0: it cannot */
	unsigned weight_bits;       /* then: runtime_weight_bits() */
	bool offered;               /* worth a plan's while: its inputs can be there in integers */
	bool subgraph;              /* an If, Loop or Scan */
	bool quantized;             /* an op of a model that is quantized already */
	bool old_conv;              /* a Conv under ONNX Runtime before OLD_CONV */
	bool depthwise; /* a Conv whose every output channel sees one input channel, and only it */
	double speedup; /* expected of int8; 1: none */
	double macs;    /* multiply-adds per sample; 0 where shapes are unknown or it has none */
	int block;      /* index of its transformer block, or -1 */
};

struct op_list {
	struct op *v;
	size_t n;          /* one per node of the model, in order */
	double total_macs; /* of all ops together */
	struct block *blocks;
	size_t n_blocks;
};

/* Looks at every node of a prepared model. With `shapes` (may be NULL) multiply-adds are counted exactly. */
void op_list_init(struct op_list *l, struct arena *arena, const struct model *m, const struct graph_index *g,
		  const struct shapes *shapes);
/* The multiply-adds of each op, where values have such shapes. */
void op_list_count(struct op_list *l, const struct model *m, const struct shapes *shapes);
void op_list_release(struct op_list *l);

/* QLinearConv and QLinearMatMul are of opset 10, DynamicQuantizeLinear is of 11. */
enum { OPSET_STATIC = 10, OPSET_DYNAMIC = 11 };
/* The lowest opset, not below OPSET_STATIC, that no op of m is too old for; 0 if it has nothing worth quantizing. */
int opset_needed(const struct model *m);
/* Lists the op types of m that need a later opset than this one. */
struct str;
void opset_losses(const struct model *m, int opset, struct str *out);

/* The Relu or Clip that the runtime fuses into the quantized op that makes `value`, or NULL. */
struct node *fused_activation(const struct graph_index *g, const char *value);
/* Does an op that makes this value run in integers only if the value is quantized, too? */
bool op_needs_output(const struct graph_index *g, const struct op_rule *r, const char *value);
/* The value it only rearranges (through Reshape, Transpose and the like), or itself. */
size_t rearranged_from(const struct graph_index *g, size_t value);
/* Is input j of the node an activation in the sense of its rule: not a constant, float? */
bool is_activation_input(const struct model *m, const struct op_rule *r, const struct node *n, size_t j);

/* Do the CPU's kernels overflow with activations and weights of all bits? Then weights need 7 bits, or u8. */
bool op_saturates(const struct cpu *cpu, const struct op *op, enum dtype act, enum dtype weight);

#endif
