#include "ops/rules.h"

#include <string.h>

#include "base/str.h"

/*
 * From ONNX Runtime's QDQ selectors (core/optimizer/qdq_transformer), checked by test/unit/quantize_fusion.c
 * against the graph the runtime really builds. Element-wise ops that gain no speed, or that a single
 * outlier ruins (masks, softmax), are off by default; a plan can turn them on.
 *
 * Speed-ups are from `make bench` (fettle bench --profile, one thread, batch 8) on x86-64 with AVX-512 and VNNI, ONNX Runtime
 * 1.30: dense Conv 1.7 to 2.4 (cnn, resnet_v2, mobilenet), depthwise Conv 0.96 to 1.5, Gemm 2, MatMul 1.1 before its
 * QuantizeLinear (vit). ConvTranspose has no integer kernel.
 */
#define NONE .weight = -1, .bias = -1
#define BOTH MODE_INT
#define ANY (MODE_INT | MODE_WEIGHT)
const struct op_rule op_rules[] = {
	{ .type = "Conv",
	  .kind = OP_COMPUTE,
	  .modes = BOTH,
	  .activations = IN0,
	  .weight = 1,
	  .bias = 2,
	  .axis = 0,
	  .layout = LAYOUT_CONV,
	  .requantized = true,
	  .dynamic_slow = true,
	  .act_dtypes = T_ALL,
	  .weight_dtypes = T_ALL,
	  .needs_output = true,
	  .on = true,
	  .since = 10,
	  .qlinear = "QLinearConv",
	  .qlinear_domain = "",
	  .speedup = 2 },
	{ .type = "ConvTranspose",
	  .kind = OP_COMPUTE,
	  .modes = MODE_STATIC,
	  .activations = IN0,
	  .weight = 1,
	  .bias = 2,
	  .axis = 1,
	  .layout = LAYOUT_DECONV,
	  .requantized = true,
	  .act_dtypes = T_ALL,
	  .weight_dtypes = T_ALL,
	  .needs_output = true,
	  .speedup = 1 },
	{ .type = "Gemm",
	  .kind = OP_COMPUTE,
	  .modes = ANY,
	  .activations = IN0,
	  .weight = 1,
	  .bias = 2,
	  .axis = -1,
	  .layout = LAYOUT_MATRIX,
	  .weight_turned = "transB",
	  .input_turned = "transA",
	  .requantized = true,
	  .act_dtypes = T_ALL,
	  .weight_dtypes = T_ALL,
	  .on = true,
	  .needs_cut_output = true,
	  .qlinear = "QGemm",
	  .qlinear_domain = DOMAIN_MS,
	  .speedup = 2 },
	{ .type = "MatMul",
	  .kind = OP_COMPUTE,
	  .modes = ANY,
	  .activations = IN0 | IN1,
	  .weight = 1,
	  .bias = -1,
	  .axis = -1,
	  .layout = LAYOUT_MATRIX,
	  .channels_last = true,
	  .act_dtypes = T_ALL,
	  .weight_dtypes = T_ALL,
	  .on = true,
	  .since = 10,
	  .qlinear = "QLinearMatMul",
	  .qlinear_domain = "",
	  .speedup = 1.1 },
	{ .type = "LSTM",
	  .kind = OP_COMPUTE,
	  .modes = MODE_DYNAMIC,
	  .activations = IN0,
	  .weight = 1,
	  .bias = 3,
	  .axis = 1,
	  .layout = LAYOUT_RECURRENT,
	  .act_dtypes = T_8,
	  .weight_dtypes = T_8,
	  .on = true },

	{ .type = "Add",
	  .kind = OP_ELEMENT,
	  .modes = MODE_STATIC,
	  .activations = IN0 | IN1,
	  NONE,
	  .act_dtypes = T_ALL,
	  .needs_output = true,
	  .on = true,
	  .qlinear = "QLinearAdd",
	  .qlinear_domain = DOMAIN_MS },
	{ .type = "Mul",
	  .kind = OP_ELEMENT,
	  .modes = MODE_STATIC,
	  .activations = IN0 | IN1,
	  NONE,
	  .act_dtypes = T_ALL,
	  .needs_output = true,
	  .qlinear = "QLinearMul",
	  .qlinear_domain = DOMAIN_MS },
	{ .type = "Concat",
	  .kind = OP_ELEMENT,
	  .modes = MODE_STATIC,
	  .activations = IN_ALL,
	  NONE,
	  .act_dtypes = T_ALL,
	  .needs_output = true,
	  .on = true,
	  .qlinear = "QLinearConcat",
	  .qlinear_domain = DOMAIN_MS },
	{ .type = "AveragePool",
	  .kind = OP_ELEMENT,
	  .modes = MODE_STATIC,
	  .activations = IN0,
	  NONE,
	  .act_dtypes = T_ALL,
	  .needs_output = true,
	  .on = true,
	  .qlinear = "QLinearAveragePool",
	  .qlinear_domain = DOMAIN_MS },
	{ .type = "GlobalAveragePool",
	  .kind = OP_ELEMENT,
	  .modes = MODE_STATIC,
	  .activations = IN0,
	  NONE,
	  .act_dtypes = T_ALL,
	  .needs_output = true,
	  .on = true,
	  .qlinear = "QLinearGlobalAveragePool",
	  .qlinear_domain = DOMAIN_MS },
	{ .type = "LeakyRelu",
	  .kind = OP_ELEMENT,
	  .modes = MODE_STATIC,
	  .activations = IN0,
	  NONE,
	  .act_dtypes = T_ALL,
	  .needs_output = true,
	  .on = true,
	  .qlinear = "QLinearLeakyRelu",
	  .qlinear_domain = DOMAIN_MS },
	{ .type = "Sigmoid",
	  .kind = OP_ELEMENT,
	  .modes = MODE_STATIC,
	  .activations = IN0,
	  NONE,
	  .act_dtypes = T_ALL,
	  .needs_output = true,
	  .qlinear = "QLinearSigmoid",
	  .qlinear_domain = DOMAIN_MS },
	{ .type = "Softmax",
	  .kind = OP_ELEMENT,
	  .modes = MODE_STATIC,
	  .activations = IN0,
	  NONE,
	  .act_dtypes = T_ALL,
	  .needs_output = true,
	  .qlinear = "QLinearSoftmax",
	  .qlinear_domain = DOMAIN_MS },
	{ .type = "Where",
	  .kind = OP_ELEMENT,
	  .modes = MODE_STATIC,
	  .activations = IN1 | IN2,
	  NONE,
	  .act_dtypes = T_ALL,
	  .needs_output = true,
	  .qlinear = "QLinearWhere",
	  .qlinear_domain = DOMAIN_MS },

#define MOVE(name, opset)                                                                                    \
	{                                                                                                    \
		.type = name, .kind = OP_MOVE, .modes = MODE_STATIC, .activations = IN0, NONE,               \
		.act_dtypes = T_ALL, .since = opset, .on = true                                              \
	}
	MOVE("MaxPool", 12),
	MOVE("Reshape", 0),
	MOVE("Transpose", 0),
	MOVE("Squeeze", 0),
	MOVE("Unsqueeze", 0),
	MOVE("Flatten", 0),
	MOVE("Slice", 10),
	MOVE("Split", 0),
	MOVE("Resize", 11),
	MOVE("Pad", 11),
	{ .type = "DepthToSpace",
	  .kind = OP_MOVE,
	  .modes = MODE_STATIC,
	  .activations = IN0,
	  NONE,
	  .act_dtypes = T_ALL,
	  .runtime = 30,
	  .on = true },
	MOVE("Expand", 0),
	MOVE("Tile", 0),

	{ .type = "Gather",
	  .kind = OP_TABLE,
	  .modes = MODE_STATIC | MODE_WEIGHT,
	  .activations = 0,
	  .weight = 0,
	  .bias = -1,
	  .axis = 0,
	  .act_dtypes = T_8,
	  .weight_dtypes = T_8,
	  .on = true },
};
const size_t n_op_rules = sizeof(op_rules) / sizeof(op_rules[0]);

/* The runtime's own op for a product with a weight [outputs, inputs], which prepare_outside() makes: weight-only or fp32. */
static const struct op_rule turned_matmul = { .type = "MatMul",
					      .kind = OP_COMPUTE,
					      .modes = MODE_WEIGHT,
					      .activations = IN0,
					      .weight = 1,
					      .bias = -1,
					      .axis = -1,
					      .layout = LAYOUT_MATRIX,
					      .weight_turned = "transB",
					      .channels_last = true,
					      .act_dtypes = T_ALL,
					      .weight_dtypes = T_ALL,
					      .on = true };

bool op_is_turned_matmul(const struct node *n)
{
	return strcmp(n->op, "FusedMatMul") == 0 && strcmp(n->domain, DOMAIN_MS) == 0 &&
	       node_int(n, "transB", 0) && !node_int(n, "transA", 0) && !node_int(n, "transBatchA", 0) &&
	       !node_int(n, "transBatchB", 0) && node_float(n, "alpha", 1) == 1;
}

const char *op_type(const struct node *n)
{
	return op_is_turned_matmul(n) ? turned_matmul.type : n->op;
}

const struct op_rule *op_rule_find(const struct node *n)
{
	size_t i;

	if (op_is_turned_matmul(n))
		return &turned_matmul;
	if (*n->domain)
		return NULL;
	for (i = 0; i < n_op_rules; i++)
		if (strcmp(op_rules[i].type, n->op) == 0)
			return &op_rules[i];
	return NULL;
}

unsigned runtime_weight_bits(const struct model *m)
{
	return m->runtime && m->runtime < OLD_NBITS ? 1u << 4 : 1u << 2 | 1u << 4 | 1u << 8;
}

unsigned runtime_table_bits(const struct model *m)
{
	return m->runtime && m->runtime < OLD_NBITS ? 0 : 1u << 4 | 1u << 8;
}

bool runtime_lacks(const struct model *m, const struct op_rule *r)
{
	return m->runtime && m->runtime < r->runtime;
}

bool is_activation_input(const struct model *m, const struct op_rule *r, const struct node *n, size_t j)
{
	const struct value *v;

	if (!*n->in[j] || model_init(m, n->in[j]) || !(r->activations & (j < 8 ? 1u << j : IN_ALL & 0x80u)))
		return false;
	v = model_value(m, n->in[j]);
	return !v || v->type.dtype == DT_F32;
}

/* the min and max of a Clip, as attributes (opset < 11) or constants; false when they are computed */
static bool clip_is_constant(const struct model *m, const struct node *n)
{
	return (n->n_in < 2 || !*n->in[1] || model_init(m, n->in[1])) &&
	       (n->n_in < 3 || !*n->in[2] || model_init(m, n->in[2]));
}

struct node *fused_activation(const struct graph_index *g, const char *value)
{
	struct node *n = graph_only_user(g, value);

	if (!n || n->n_in < 1 || strcmp(n->in[0], value) != 0)
		return NULL;
	if (node_is(n, "Relu") || (node_is(n, "Clip") && clip_is_constant(g->m, n)))
		return n;
	return NULL;
}

bool op_needs_output(const struct graph_index *g, const struct op_rule *r, const char *value)
{
	return r->needs_output || (r->needs_cut_output && fused_activation(g, value));
}

size_t rearranged_from(const struct graph_index *g, size_t value)
{
	static const char *const same[] = { "Reshape",   "Transpose", "Squeeze",
					    "Unsqueeze", "Flatten",   "DepthToSpace" };
	const struct node *n;
	size_t i;

	while (g->producer[value] != NO_NODE) {
		n = g->m->nodes.v[g->producer[value]];
		for (i = 0; i < ARRAY_LEN(same) && !node_is(n, same[i]); i++)
			;
		if (i == ARRAY_LEN(same) || g->constant[graph_value(g, n->in[0])])
			break;
		value = graph_value(g, n->in[0]);
	}
	return value;
}

bool op_saturates(const struct cpu *cpu, const struct op *op, enum dtype act, enum dtype weight)
{
	return cpu->saturates && op->rule && op->rule->kind == OP_COMPUTE && !op->depthwise &&
	       weight == DT_S8 && dtype_size(act) == 1; /* the runtime turns s8 activations into u8 */
}
