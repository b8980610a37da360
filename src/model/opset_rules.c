/*
 * Every op that changed between opsets 7 and 13: what a node of the version before must become to compute the same.
 * test/unit/model_opset.c checks the table against ONNX's own record of its operators, and each conversion in the
 * runtime, bit for bit.
 */
#include "model/opset_rules.h"

#include <math.h>
#include <string.h>

static void put_input(struct raise *r, struct node *n, size_t i, const char *name)
{
	const char **in;
	size_t k, count = i < n->n_in ? n->n_in : i + 1;

	in = arena_alloc(&r->m->arena, count * sizeof(*in));
	for (k = 0; k < count; k++)
		in[k] = k < n->n_in ? n->in[k] : "";
	in[i] = name;
	n->in = in;
	n->n_in = count;
}

static void put_ints(struct raise *r, struct node *n, size_t i, const char *what, const int64_t *v,
		     size_t count)
{
	struct tensor t = { DT_S64, 1, { (int64_t)count }, (void *)(uintptr_t)v };

	put_input(r, n, i, raise_constant(r, n, what, &t));
}

static void put_scalar(struct raise *r, struct node *n, size_t i, const char *what, enum dtype dtype, float v)
{
	double room = 0;
	struct tensor t = { .dtype = dtype, .data = &room };

	tensor_set(&t, 0, v);
	put_input(r, n, i, raise_constant(r, n, what, &t));
}

/* a list of integers, if the node has it, becomes input i */
static void ints_to_input(struct raise *r, struct node *n, const char *attr, size_t i)
{
	size_t count;
	const int64_t *v = node_ints(n, attr, &count);

	if (!v && !node_has_attr(n, attr))
		return;
	put_ints(r, n, i, attr, v, count);
	node_drop_attr(n, attr);
}

static const char *batch_normalization_9(struct raise *r, struct node *n)
{
	(void)r;
	if (node_int(n, "spatial", 1) != 1)
		return "spatial=0, a mean for each element of a channel, is no longer possible";
	node_drop_attr(n, "spatial");
	return NULL;
}

static const char *upsample_9(struct raise *r, struct node *n)
{
	size_t count;
	const float *v = node_floats(n, "scales", &count);
	struct tensor t = { DT_F32, 1, { (int64_t)count }, (void *)(uintptr_t)v };

	put_input(r, n, 1, raise_constant(r, n, "scales", &t));
	node_drop_attr(n, "scales");
	return NULL;
}

/*
 * Until opset 9 the mask is of the data's type, then it is boolean; from 12 on it is all true, no longer all false. One
 * that nothing reads goes.
 */
static const char *dropout_10(struct raise *r, struct node *n)
{
	if (n->n_out > 1 && *n->out[1] && raise_reads(r, n->out[1]))
		return "its mask is read, whose type and meaning change";
	n->n_out = 1;
	return NULL;
}

static const char *dropout_12(struct raise *r, struct node *n)
{
	if (node_has_attr(n, "ratio"))
		put_scalar(r, n, 1, "ratio", DT_F32, node_float(n, "ratio", 0.5f));
	node_drop_attr(n, "ratio");
	return dropout_10(r, n);
}

static const char *slice_10(struct raise *r, struct node *n)
{
	ints_to_input(r, n, "starts", 1);
	ints_to_input(r, n, "ends", 2);
	ints_to_input(r, n, "axes", 3);
	return NULL;
}

static const char *top_k_10(struct raise *r, struct node *n)
{
	const int64_t k = node_int(n, "k", 0);

	put_ints(r, n, 1, "k", &k, 1);
	node_drop_attr(n, "k");
	return NULL;
}

/* Resize as Upsample was; `nearest` is how it rounds coordinates. roi is for another mode, but must be there. */
static void as_resize_11(struct raise *r, struct node *n, const char *nearest)
{
	struct tensor roi = { DT_F32, 1, { 0 }, NULL };

	put_input(r, n, 2, n->in[1]);
	put_input(r, n, 1, raise_constant(r, n, "roi", &roi));
	node_set_str(r->m, n, "coordinate_transformation_mode", "asymmetric");
	node_set_str(r->m, n, "nearest_mode", nearest);
}

static const char *upsample_10(struct raise *r, struct node *n)
{
	n->op = "Resize";
	/* an Upsample never shrinks, a Resize may: the difference is lost at opset 10 but matters at 11 */
	if (r->to > 10)
		as_resize_11(r, n, "floor");
	return NULL;
}

/* Resize 10 rounds coordinates down where it enlarges, and up where it shrinks. */
static const char *resize_11(struct raise *r, struct node *n)
{
	struct init *scales = model_init(r->m, n->in[1]);
	const char *mode = node_str(n, "mode");
	bool shrinks = false, enlarges = false;
	size_t i;

	if (node_has_attr(n, "coordinate_transformation_mode"))
		return NULL; /* upsample_10() has done it */
	if (mode && strcmp(mode, "nearest") != 0) {
		as_resize_11(r, n, "floor"); /* which has no effect */
		return NULL;
	}
	if (!scales || model_weight(r->m, scales, NULL))
		return "its scales are computed, so it may shrink one axis and enlarge another";
	for (i = 0; i < (size_t)tensor_count(&scales->t); i++) {
		shrinks |= tensor_get(&scales->t, i) < 1;
		enlarges |= tensor_get(&scales->t, i) > 1;
	}
	if (shrinks && enlarges)
		return "it shrinks one axis and enlarges another, which then takes two";
	as_resize_11(r, n, shrinks ? "ceil" : "floor");
	return NULL;
}

/* bias + scale x, in the range where rounding once (fused) and twice is the same */
static const char *image_scaler_10(struct raise *r, struct node *n)
{
	const float scale = node_float(n, "scale", 1);
	size_t count, i;
	const float *bias = node_floats(n, "bias", &count);
	struct tensor t = { DT_F32, 4, { 1, (int64_t)count, 1, 1 }, (void *)(uintptr_t)bias };
	struct node *mul;

	for (i = 0; i < count; i++)
		if (bias[i] != 0 && scale != 1)
			return "its product and sum may be rounded once or twice";
	if (scale != 1) {
		mul = model_new_node(r->m, "Mul", "", *n->name ? n->name : n->out[0], 1, 1);
		mul->in[0] = n->in[0];
		put_scalar(r, mul, 1, "scale", DT_F32, scale);
		mul->out[0] = model_fresh(r->m, mul->name);
		VEC_PUSH(&r->nodes, mul);
		put_input(r, n, 0, mul->out[0]);
	}
	n->op = "Add";
	put_input(r, n, 1, raise_constant(r, n, "bias", &t));
	node_drop_attr(n, "bias");
	node_drop_attr(n, "scale");
	return NULL;
}

static const char *clip_11(struct raise *r, struct node *n)
{
	static const char *const limits[] = { "min", "max" };
	enum dtype dtype = raise_type(r, n->in[0]).dtype;
	size_t i;

	if (dtype == DT_NONE) /* inside a subgraph: the runtime has a kernel for this type only */
		dtype = DT_F32;
	for (i = 0; i < 2; i++) {
		if (node_has_attr(n, limits[i]))
			put_scalar(r, n, i + 1, limits[i], dtype, node_float(n, limits[i], 0));
		node_drop_attr(n, limits[i]);
	}
	return NULL;
}

static const char *pad_11(struct raise *r, struct node *n)
{
	const float value = node_float(n, "value", 0);
	const enum dtype dtype = raise_type(r, n->in[0]).dtype;

	ints_to_input(r, n, "pads", 1);
	node_drop_attr(n, "value");
	if (value == 0 && !signbit(value)) /* the default */
		return NULL;
	if (dtype != DT_F32 && dtype != DT_F64 && dtype != DT_F16)
		return "it pads with a value, and the type of its input is not known";
	put_scalar(r, n, 2, "value", dtype, value);
	return NULL;
}

static const char *scatter_11(struct raise *r, struct node *n)
{
	(void)r;
	n->op = "ScatterElements";
	return NULL;
}

/* Until opset 12 all axes from `axis` on are one; from 13 on it is that axis alone. */
static const char *softmax_13(struct raise *r, struct node *n)
{
	const int64_t axis = node_int(n, "axis", 1);
	const int rank = raise_type(r, n->in[0]).rank;
	struct node *flat, *shape, *back;

	node_set_int(r->m, n, "axis", -1);
	if (axis == -1 || (rank > 0 && axis == rank - 1))
		return NULL;
	flat = model_new_node(r->m, "Flatten", "", "softmax_flat", 1, 1);
	shape = model_new_node(r->m, "Shape", "", "softmax_shape", 1, 1);
	back = model_new_node(r->m, "Reshape", "", "softmax_back", 2, 1);
	flat->in[0] = shape->in[0] = n->in[0];
	flat->out[0] = model_fresh(r->m, flat->name);
	shape->out[0] = model_fresh(r->m, shape->name);
	node_set_int(r->m, flat, "axis", axis);
	back->in[1] = shape->out[0];
	back->out[0] = n->out[0];
	put_input(r, n, 0, flat->out[0]);
	n->out[0] = back->in[0] = model_fresh(r->m, "softmax");
	VEC_PUSH(&r->nodes, flat);
	VEC_PUSH(&r->nodes, shape);
	r->after = back;
	return NULL;
}

static const char *axes_13(struct raise *r, struct node *n)
{
	ints_to_input(r, n, "axes", 1);
	return NULL;
}

static const char *split_13(struct raise *r, struct node *n)
{
	ints_to_input(r, n, "split", 1);
	return NULL;
}

const struct opset_rule opset_rules[] = {
	{ 9, "BatchNormalization", batch_normalization_9, NULL },
	{ 9, "Upsample", upsample_9, NULL },
	{ 9, "Scan", NULL, "Scan 8 has a batch axis, and lengths of sequences" },
	{ 9, "MeanVarianceNormalization", NULL, "its experimental form has other attributes" },
	{ 10, "Dropout", dropout_10, NULL },
	{ 10, "Slice", slice_10, NULL },
	{ 10, "TopK", top_k_10, NULL },
	{ 10, "Upsample", upsample_10, NULL },
	{ 10, "ImageScaler", image_scaler_10, NULL },
	{ 10,
	  "ATen Affine ConstantFill Crop DynamicSlice GRUUnit GivenTensorFill ParametricSoftplus Scale "
	  "ScaledTanh",
	  NULL, "it was experimental, and then removed from ONNX" },
	{ 11, "Clip", clip_11, NULL },
	{ 11, "Pad", pad_11, NULL },
	{ 11, "Resize", resize_11, NULL },
	{ 11, "Scatter", scatter_11, NULL },
	{ 12, "Dropout", dropout_12, NULL },
	{ 13, "Hardmax LogSoftmax Softmax", softmax_13, NULL },
	{ 13, "ReduceSum Squeeze Unsqueeze", axes_13, NULL },
	{ 13, "Split", split_13, NULL },

	/* More types, more optional inputs, outputs and attributes, negative axes: what was valid stays as it is. */
	{ .version = 8, .ops = "Max MaxPool Mean Min Sum" },
	{ .version = 9, .ops = "Cast Constant Flatten Gemm Greater Less MatMul PRelu" },
	{ .version = 10, .ops = "AveragePool MaxPool" },
	{ .version = 11,
	  .ops = "ArgMax ArgMin AveragePool Compress Concat Constant Conv ConvTranspose DepthToSpace "
		 "Equal Flatten Gather Gemm Hardmax If LogSoftmax Loop LpPool MaxPool MaxUnpool "
		 "NonMaxSuppression OneHot ReduceL1 ReduceL2 ReduceLogSum ReduceLogSumExp ReduceMax "
		 "ReduceMean ReduceMin ReduceProd ReduceSum ReduceSumSquare Scan Slice Softmax Split "
		 "Squeeze TopK Unsqueeze" },
	{ .version = 12,
	  .ops = "ArgMax ArgMin Clip Constant GatherND Max MaxPool Min Pow ReduceMax ReduceMin" },
	{ .version = 13,
	  .ops = "Abs Add ArgMax ArgMin Cast Ceil Clip Concat Constant DepthToSpace DequantizeLinear Div "
		 "Dropout Equal Erf Exp Expand Flatten Floor Gather GatherElements GatherND Gemm Greater "
		 "Identity If IsNaN LRN Less Log Loop MatMul Max Mean MeanVarianceNormalization Min Mod "
		 "Mul Neg NegativeLogLikelihoodLoss NonZero Pad Pow QuantizeLinear Reciprocal ReduceL1 "
		 "ReduceL2 ReduceLogSum ReduceLogSumExp ReduceMax ReduceMean ReduceMin ReduceProd "
		 "ReduceSumSquare Relu Reshape Resize ScatterElements ScatterND Shape Sigmoid Sign Size "
		 "Slice SoftmaxCrossEntropyLoss SpaceToDepth Sqrt Sub Sum Tanh Tile Transpose" },
};
const size_t n_opset_rules = sizeof(opset_rules) / sizeof(opset_rules[0]);
