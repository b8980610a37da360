/*
 * Proof that int8 really runs: for each op type, a small model is quantized, and the graph that a default
 * session builds from it must contain the integer kernel. The quantized model must also compute nearly
 * the same, and the files must pass python3-onnx's checker.
 */
#include "unit/quantize.h"

static struct runtime *rt;
static char dir[] = "/tmp/fettle-test.XXXXXX";
static int n_files;

struct setting {
	enum approach approach;
	enum quant_format format;
	enum dtype act, weight;
	enum scheme act_scheme;
	bool per_tensor;
};

/* Quantizes, checks closeness, saves for the checker; gives the graph the runtime makes of it. */
static struct model *run_case(int opset, const char *inputs, const char *body, const char *outputs,
			      const struct setting *set, const char *on, const char *off, double min_db,
			      const char *why)
{
	struct subject *s = NULL;
	struct seen r = { .n = 0 };
	struct model *q = NULL, *graph = NULL;
	struct qplan plan = QPLAN_INIT;
	struct qplan_defaults d;
	struct err err = ERR_INIT;
	const char **values;
	char path[128];
	double db;
	size_t n, i;

	snprintf(path, sizeof(path), "%s/%d.fp32.onnx", dir, n_files);
	build_model(path, opset, inputs, body, outputs);
	assert_ok(subject_open(&s, rt, path, &err), err);
	d = qplan_defaults(&s->cpu);
	d.approach = set->approach;
	d.format = set->format;
	if (set->act)
		d.act.dtype = set->act;
	d.act.scheme = set->act_scheme;
	if (set->weight)
		d.weight.dtype = set->weight;
	d.weight.per_channel = !set->per_tensor;
	if (set->weight == DT_U8)
		d.weight.scheme = SCHEME_ASYM;
	qplan_default(&plan, &s->ops, &s->g, &d);
	for (i = 0; i < s->ops.n; i++) {
		if (on && strcmp(s->m->nodes.v[i]->op, on) == 0) {
			if (!s->ops.v[i].modes)
				fail_msg("%s: %s", why, s->ops.v[i].why);
			plan.ops[i].mode = s->ops.v[i].modes & MODE_STATIC ? OP_STATIC : OP_DYNAMIC;
		}
		if (off && strcmp(s->ops.v[i].name, off) == 0)
			plan.ops[i].mode = OP_FP32;
	}
	n = quantizer_values(&s->g, &s->ops, &plan, &values);
	observe(&r, rt, s, values, n);
	assert_ok(quantize_by(s, &plan, seen_range, NULL, &r, &q, &err), err);
	snprintf(path, sizeof(path), "%s/%d.int8.onnx", dir, n_files++);
	assert_ok(model_save(q, path, &err), err);
	db = compare(rt, s->m, q);
	assert_ok(optimised_graph(&graph, rt, q, &(struct session_options){ .threads = 1 }, &err), err);
	if (db < min_db)
		fail_msg("%s: %.1f dB, need %.1f; ops:%s", why, db, min_db, describe(graph));
	model_free(q);
	qplan_release(&plan);
	subject_free(s);
	seen_release(&r);
	free(values);
	return graph;
}

static const struct row {
	const char *why, *inputs, *body, *on, *want; /* the integer op that must be there */
	size_t count;
	const char *never; /* and one that must not */
	double db;
} rows[] = {
#define X "x:?x4x8x8"
#define C1 "w1 = 8x4x3x3; b1 = 8; a = Conv(x, w1, b1) pads=1,1,1,1; "
#define G1 C1 "f = Flatten(a); v = 512x16; b = 16; g = Gemm(f, v, b); v2 = 16x4; "
#define C2 "w2 = 4x8x3x3; y = Conv(t, w2) pads=1,1,1,1"
	{ "Conv", X, C1 "w2 = 4x8x3x3; y = Conv(a, w2)", NULL, "QLinearConv", 2, "Conv", 30 },
	{ "Conv and Relu", X, C1 "t = Relu(a); " C2, NULL, "QLinearConv", 2, "Relu", 30 },
	{ "Conv and Relu6", X, C1 "lo = 0.0; hi = 6.0; t = Clip(a, lo, hi); " C2, NULL, "QLinearConv", 2,
	  "Clip", 30 },
	{ "Clip that cuts more than the range", X, C1 "lo = 0.0; hi = 0.5; t = Clip(a, lo, hi); " C2, NULL,
	  "QLinearConv", 2, "Clip", 30 },
	{ "depthwise Conv", X, "w1 = 4x1x3x3; a = Conv(x, w1) group=4; w2 = 8x4x1x1; y = Conv(a, w2)", NULL,
	  "QLinearConv", 2, "Conv", 30 },
	{ "1-d Conv", "x:?x4x16", "w1 = 8x4x3; a = Conv(x, w1); w2 = 8x8x3; y = Conv(a, w2)", NULL,
	  "QLinearConv", 2, "Conv", 30 },
	{ "ConvTranspose computes in floats", X,
	  "w1 = 4x8x2x2; b1 = 8; y = ConvTranspose(x, w1, b1) strides=2,2", "ConvTranspose", "ConvTranspose",
	  1, NULL, 30 },
	{ "ConvTranspose in groups", X, "w1 = 4x3x2x2; y = ConvTranspose(x, w1) strides=2,2 group=2",
	  "ConvTranspose", "ConvTranspose", 1, NULL, 28 },
	{ "Gemm", "x:?x16", "w = 16x8; b = 8; y = Gemm(x, w, b)", NULL, "QGemm", 1, "Gemm", 30 },
	{ "Gemm transposed", "x:?x16", "w = 8x16; b = 8; y = Gemm(x, w, b) transB=1", NULL, "QGemm", 1,
	  "Gemm", 30 },
	{ "Gemm without bias", "x:?x16", "w = 8x16; y = Gemm(x, w) transB=1", NULL, "QGemm", 1, "Gemm", 30 },
	{ "Gemm, Relu, Gemm", "x:?x16",
	  "w = 16x8; b = 8; a = Gemm(x, w, b); t = Relu(a); v = 8x8; c = 8; y = Gemm(t, v, c)", NULL, "QGemm",
	  2, "Relu", 28 },
	{ "MatMul to float", "x:?x6x16", "w = 16x8; y = MatMul(x, w)", NULL, "MatMulIntegerToFloat", 1,
	  "MatMul", 30 },
	{ "MatMul to MatMul", "x:?x6x16", "w = 16x8; a = MatMul(x, w); v = 8x8; y = MatMul(a, v)", NULL,
	  "QLinearMatMul", 1, "MatMul", 28 },
	{ "activation x activation", "x:?x6x16,z:?x16x5", "y = MatMul(x, z)", NULL, "MatMulIntegerToFloat", 1,
	  "MatMul", 30 },
	{ "Add of two Convs", X, C1 "w3 = 8x4x1x1; c = Conv(x, w3); t = Add(a, c); " C2, NULL, "QLinearAdd",
	  1, "Add", 28 },
	{ "Add and Relu", X, C1 "w3 = 8x4x1x1; c = Conv(x, w3); s = Add(a, c); t = Relu(s); " C2, NULL,
	  "QLinearAdd", 1, "Relu", 28 },
	{ "Add of a constant", X, C1 "p = MaxPool(a) kernel_shape=2,2; k = 1x8x1x1; t = Add(p, k); " C2,
	  "Add", "QLinearAdd", 1, "Add", 28 },
	{ "Mul", X, C1 "w3 = 8x4x1x1; c = Conv(x, w3); t = Mul(a, c); " C2, "Mul", "QLinearMul", 1, "Mul",
	  25 },
	{ "Concat", X,
	  C1 "w3 = 8x4x3x3; c = Conv(x, w3) pads=1,1,1,1; d = Concat(a, c) axis=1; w4 = 4x16x1x1; y = "
	     "Conv(d, w4)",
	  NULL, "QLinearConcat", 1, "Concat", 28 },
	{ "AveragePool", X, C1 "t = AveragePool(a) kernel_shape=2,2 strides=2,2; " C2, NULL,
	  "QLinearAveragePool", 1, "AveragePool", 25 },
	{ "GlobalAveragePool", X, C1 "p = GlobalAveragePool(a); w2 = 4x8x1x1; y = Conv(p, w2)", NULL,
	  "QLinearGlobalAveragePool", 1, "GlobalAveragePool", 20 },
	{ "LeakyRelu", X, C1 "t = LeakyRelu(a) alpha=0.1; " C2, NULL, "QLinearLeakyRelu", 1, "LeakyRelu",
	  28 },
	{ "Sigmoid", X, C1 "t = Sigmoid(a); " C2, "Sigmoid", "QLinearSigmoid", 1, "Sigmoid", 28 },
	{ "Softmax", "x:?x6x16",
	  "w = 16x8; a = MatMul(x, w); t = Softmax(a) axis=-1; v = 8x8; y = MatMul(t, v)", "Softmax",
	  "QLinearSoftmax", 1, "Softmax", 20 },
	/* ops that only move data must not leave the integers: one Q at the input, one DQ at the output */
	{ "Reshape", X, C1 "k = [0,8,4,16]; t = Reshape(a, k); " C2, NULL, "DequantizeLinear", 1, "Conv",
	  28 },
	{ "Transpose", X, C1 "t = Transpose(a) perm=0,1,3,2; " C2, NULL, "DequantizeLinear", 1, "Conv", 28 },
	{ "MaxPool", X, C1 "t = MaxPool(a) kernel_shape=2,2 strides=2,2; " C2, NULL, "DequantizeLinear", 1,
	  "Conv", 28 },
	{ "Relu and MaxPool", X, C1 "r = Relu(a); t = MaxPool(r) kernel_shape=2,2 strides=2,2; " C2, NULL,
	  "DequantizeLinear", 1, "Relu", 28 },
	{ "Squeeze and Unsqueeze", "x:?x4x8x1",
	  "w1 = 8x4x3x1; a = Conv(x, w1); k = [3]; s = Squeeze(a, k); t = Unsqueeze(s, k); w2 = 4x8x3x1; y = "
	  "Conv(t, w2)",
	  NULL, "DequantizeLinear", 1, "Conv", 28 },
	{ "Flatten", X, C1 "t = Flatten(a); v = 512x4; y = Gemm(t, v)", NULL, "DequantizeLinear", 0, "Gemm",
	  28 },
	{ "Slice", X, C1 "s = [0]; e = [4]; k = [2]; t = Slice(a, s, e, k); " C2, NULL, "DequantizeLinear", 1,
	  "Conv", 28 },
	{ "Split", X,
	  C1 "t, u = Split(a) axis=2; w2 = 4x8x1x1; p = Conv(t, w2); q = Conv(u, w2); y = Add(p, q)", NULL,
	  "DequantizeLinear", 1, "Conv", 28 },
	{ "Resize", X, C1 "k = 4; e = [2,8,16,16]; t = Resize(a, _, _, e) mode=nearest; " C2, NULL,
	  "DequantizeLinear", 1, "Conv", 28 },
	{ "Pad", X, C1 "k = [0,0,1,1,0,0,1,1]; t = Pad(a, k); " C2, NULL, "DequantizeLinear", 1, "Conv", 28 },
	{ "DepthToSpace", X, C1 "t = DepthToSpace(a) blocksize=2; w2 = 4x2x3x3; y = Conv(t, w2)", NULL,
	  "DequantizeLinear", 1, "Conv", 28 },
	{ "Expand", "x:1x4x8x1", "w1 = 8x4x1x1; a = Conv(x, w1); k = [1,8,8,4]; t = Expand(a, k); " C2, NULL,
	  "DequantizeLinear", 1, "Conv", 28 },
	{ "Tile", X, C1 "k = [1,1,1,2]; t = Tile(a, k); " C2, NULL, "DequantizeLinear", 1, "Conv", 28 },
	{ "embedding table", "ids:#?x5", "w = 32x16; e = Gather(w, ids); v = 16x8; y = MatMul(e, v)", NULL,
	  "Gather", 1, "MatMul", 25 },
};

/* by rows[].why, which names the op */
static bool lacks_kernel(const char *type)
{
	const struct op_rule *r = op_rule_find(&(struct node){ .op = type, .domain = "" });

	return r && runtime_minor() < r->runtime;
}

static void every_op_runs_in_integers(void **state)
{
	struct setting set = { 0 };
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_LEN(rows); i++) {
		const struct row *r = &rows[i];
		struct model *m;

		if (lacks_kernel(r->why))
			continue;
		m = run_case(13, r->inputs, r->body, "y", &set, r->on, NULL, r->db, r->why);

		if (count_ops(m, r->want) != r->count)
			fail_msg("%s: %zu %s, want %zu; ops:%s", r->why, count_ops(m, r->want), r->want,
				 r->count, describe(m));
		if (r->never && count_ops(m, r->never))
			fail_msg("%s: %s is still there; ops:%s", r->why, r->never, describe(m));
		model_free(m);
	}
}

/* the same in the other format, and in every numeric form: valid and close */
static void every_setting_is_close(void **state)
{
	static const struct setting sets[] = {
		{ .format = FORMAT_QOPERATOR },
		{ .act = DT_S8 },
		{ .act = DT_S8, .act_scheme = SCHEME_SYM },
		{ .act = DT_S8, .act_scheme = SCHEME_SYM, .format = FORMAT_QOPERATOR },
		{ .act_scheme = SCHEME_SYM },
		{ .weight = DT_U8 },
		{ .weight = DT_U8, .per_tensor = true },
		{ .per_tensor = true },
		{ .act = DT_U16 },
		{ .act = DT_S16, .weight = DT_S16, .act_scheme = SCHEME_SYM },
		{ .approach = APPROACH_DYNAMIC },
		{ .approach = APPROACH_AUTO },
	};
	size_t i, k;

	(void)state;
	for (k = 0; k < ARRAY_LEN(sets); k++)
		for (i = 0; i < ARRAY_LEN(rows); i++)
			model_free(run_case(13, rows[i].inputs, rows[i].body, "y", &sets[k],
					    sets[k].approach ? NULL : rows[i].on, NULL, rows[i].db - 6,
					    rows[i].why));
}

static void old_and_new_opsets_work(void **state)
{
	static const int opsets[] = { 10, 11, 12, 14, 17, 18, 19, 21 };
	struct setting set = { 0 }, wide = { .act = DT_U16 };
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_LEN(opsets); i++) {
		struct model *m =
			run_case(opsets[i], X, C1 "t = Relu(a); " C2, "y", &set, NULL, NULL, 30, "opset");

		assert_int_equal(count_ops(m, "QLinearConv"), 2);
		model_free(m);
		model_free(
			run_case(opsets[i], X, C1 "t = Relu(a); " C2, "y", &wide, NULL, NULL, 40, "16 bits"));
	}
}

/* before opset 10 there is no QLinearConv, before 12 no MaxPool on integers */
static void models_below_opset_10_are_raised(void **state)
{
	struct setting set = { 0 };
	int i;

	(void)state;
	for (i = 7; i < 10; i++) {
		struct model *m = run_case(i, X,
					   C1 "t = MaxPool(a) kernel_shape=2,2; u = Flatten(t); v = 392x4; b "
					      "= 4; y = Gemm(u, v, b)",
					   "y", &set, NULL, NULL, 30, "opset below 10");

		assert_int_equal(count_ops(m, "QLinearConv"), 1);
		assert_int_equal(count_ops(m, "QGemm"), 1);
		assert_int_equal(count_ops(m, "MaxPool") + count_ops(m, "NhwcMaxPool"), 1);
		assert_int_equal(count_ops(m, "DequantizeLinear"), 0); /* integers all the way */
		model_free(m);
	}
}

static void dynamic_ops_run_in_integers(void **state)
{
	struct setting set = { .approach = APPROACH_DYNAMIC };
	struct model *m;

	(void)state;
	m = run_case(13, "x:?x6x16", "w = 16x8; y = MatMul(x, w)", "y", &set, NULL, NULL, 30,
		     "dynamic MatMul");
	assert_int_equal(count_ops(m, "DynamicQuantizeMatMul"), 1);
	model_free(m);
	m = run_case(13, "x:?x16", "w = 8x16; b = 8; y = Gemm(x, w, b) transB=1", "y", &set, NULL, NULL, 30,
		     "dynamic Gemm");
	assert_int_equal(count_ops(m, "DynamicQuantizeMatMul"), 1);
	model_free(m);
	m = run_case(13, "x:5x2x8", "w = 1x64x8; r = 1x64x16; b = 1x128; y = LSTM(x, w, r, b) hidden_size=16",
		     "y", &set, NULL, NULL, 25, "dynamic LSTM");
	assert_int_equal(count_ops(m, "DynamicQuantizeLSTM"), 1);
	model_free(m);
	m = run_case(13, "x:5x2x8",
		     "w = 2x64x8; r = 2x64x16; y = LSTM(x, w, r) hidden_size=16 direction=bidirectional", "y",
		     &set, NULL, NULL, 25, "dynamic bidirectional LSTM");
	assert_int_equal(count_ops(m, "DynamicQuantizeLSTM"), 1);
	model_free(m);
}

/* an op that is kept in fp32 between int8 ops really computes in fp32, in a default session */
static void fallback_really_falls_back(void **state)
{
	static const struct {
		const char *why, *body, *off, *op;
	} cases[] = {
		{ "Conv between Convs", C1 "w3 = 8x8x3x3; t = Conv(a, w3) pads=1,1,1,1; " C2, "Conv_1",
		  "Conv" },
		{ "Conv with bias and Relu",
		  C1 "r = Relu(a); w3 = 8x8x3x3; b3 = 8; s = Conv(r, w3, b3) pads=1,1,1,1; t = Relu(s); " C2,
		  "Conv_2", "Conv" },
		{ "Conv after a MaxPool",
		  C1 "r = MaxPool(a) kernel_shape=2,2; w3 = 8x8x3x3; b3 = 8; t = Conv(r, w3, b3) "
		     "pads=1,1,1,1; " C2,
		  "Conv_2", "Conv" },
		{ "Conv after a Reshape of one channel",
		  "w1 = 1x4x1x1; a = Conv(x, w1); w3 = 8x1x3x3; b3 = 8; t = Conv(a, w3, b3) "
		  "pads=1,1,1,1; " C2,
		  "Conv_1", "Conv" },
		{ "Gemm",
		  C1 "f = Flatten(a); v = 512x16; b = 16; g = Gemm(f, v, b); v2 = 16x4; y = Gemm(g, v2)",
		  "Gemm_2", "Gemm" },
		{ "Gemm after a Gemm and a Relu", G1 "t = Relu(g); y = Gemm(t, v2)", "Gemm_4", "Gemm" },
		{ "Gemm after a Gemm and a Clip",
		  G1 "lo = 0.0; hi = 6.0; t = Clip(g, lo, hi); y = Gemm(t, v2)", "Gemm_4", "Gemm" },
		{ "Gemm after a Gemm and a Tanh", G1 "t = Tanh(g); y = Gemm(t, v2)", "Gemm_4", "Gemm" },
		{ "ConvTranspose", C1 "w3 = 8x8x2x2; b3 = 8; t = ConvTranspose(a, w3, b3) strides=2,2; " C2,
		  "ConvTranspose_1", "ConvTranspose" },
		{ "MatMul",
		  "k = [0,4,64]; f = Reshape(x, k); v = 64x32; g = MatMul(f, v); v2 = 32x32; h = MatMul(g, "
		  "v2); v3 = 32x4; y = MatMul(h, v3)",
		  "MatMul_2", "MatMul" },
	};
	static const int opsets[] = { 11, 13, 21 };
	size_t i, k;

	(void)state;
	for (i = 0; i < ARRAY_LEN(cases); i++)
		for (k = 0; k < ARRAY_LEN(opsets); k++) {
			struct setting set = { 0 };
			struct model *m = run_case(opsets[k], X, cases[i].body, "y", &set, NULL, cases[i].off,
						   25, cases[i].why);
			size_t n = count_ops(m, cases[i].op) + count_ops(m, "FusedConv") +
				   count_ops(m, "FusedGemm");

			if (n != 1)
				fail_msg("%s, opset %d: %zu in fp32, want 1; ops:%s", cases[i].why, opsets[k],
					 n, describe(m));
			model_free(m);
		}
}

/* a bias that would overflow 32 bits widens the weight's scale instead */
static void large_bias_fits(void **state)
{
	struct setting set = { 0 };
	struct model *m;

	(void)state;
	m = run_case(13, X, "s = 0.0000001; v = Mul(x, s); w1 = 8x4x1x1; b1 = 8; y = Conv(v, w1, b1)", "y",
		     &set, NULL, NULL, 30, "large bias");
	assert_int_equal(count_ops(m, "QLinearConv"), 1);
	model_free(m);
}

static void graph_outputs_keep_their_names(void **state)
{
	struct setting qdq = { 0 }, qop = { .format = FORMAT_QOPERATOR };

	(void)state;
	/* `a` is an output and read by a quantized op; so is the Relu's */
	model_free(
		run_case(13, X, C1 "t = Relu(a); " C2, "y,a", &qdq, NULL, NULL, 28, "intermediate output"));
	model_free(run_case(13, X, C1 "t = Relu(a); " C2, "y,t", &qdq, NULL, NULL, 28, "fused output"));
	model_free(run_case(13, X, C1 "t = Relu(a); " C2, "y,a,t", &qop, NULL, NULL, 28, "all outputs"));
}

static void checker_accepts_all(void **state)
{
	char command[1024];

	(void)state;
	if (system("/usr/bin/python3 -c 'import onnx' 2>/dev/null") != 0) {
		print_message("SKIPPED: python3-onnx is not installed\n");
		skip();
	}
	/* python3-onnx 1.12 knows opsets up to 17 */
	snprintf(command, sizeof(command),
		 "/usr/bin/python3 - %s <<'E'\n"
		 "import glob, onnx, sys\n"
		 "n = 0\n"
		 "for f in sorted(glob.glob(sys.argv[1] + '/*.int8.onnx')):\n"
		 "    m = onnx.load(f)\n"
		 "    if max(i.version for i in m.opset_import if not i.domain) > 17: continue\n"
		 "    onnx.checker.check_model(m, full_check=True)\n"
		 "    onnx.shape_inference.infer_shapes(m, check_type=True, strict_mode=True)\n"
		 "    n += 1\n"
		 "print('onnx.checker accepts', n, 'models')\n"
		 "assert n > 400\n"
		 "E\n",
		 dir);
	assert_int_equal(system(command), 0);
}

static int begin(void **state)
{
	struct err err = ERR_INIT;

	(void)state;
	return !mkdtemp(dir) || runtime_new(&rt, &err) != FETTLE_OK;
}

static int end(void **state)
{
	char command[256];

	(void)state;
	snprintf(command, sizeof(command), "rm -rf %s", dir);
	runtime_free(rt);
	return getenv("KEEP") ? 0 : system(command);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_op_runs_in_integers),
		cmocka_unit_test(every_setting_is_close),
		cmocka_unit_test(old_and_new_opsets_work),
		cmocka_unit_test(models_below_opset_10_are_raised),
		cmocka_unit_test(dynamic_ops_run_in_integers),
		cmocka_unit_test(fallback_really_falls_back),
		cmocka_unit_test(large_bias_fits),
		cmocka_unit_test(graph_outputs_keep_their_names),
		cmocka_unit_test(checker_accepts_all),
	};

	return cmocka_run_group_tests(tests, begin, end);
}
