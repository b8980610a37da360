/*
 * Raising a model's opset: the table must cover ONNX's own record of its operators, every op of the table must compute
 * the same bits after its conversion, and python3-onnx's checker must accept the result.
 */
#include "unit/unit.h"

#include <unistd.h>

#include "base/file.h"
#include "model/opset.h"
#include "model/opset_rules.h"
#include "runtime/prepare.h"
#include "runtime/probe.h"
#include "unit/build.h"

#define PYTHON "/usr/bin/python3"

static struct runtime *rt;
static char dir[] = "/tmp/fettle-test.XXXXXX";
static struct arena keys;
static struct map covered; /* "op version" */
static int n_saved;

static int start(void **state)
{
	struct err err = ERR_INIT;

	(void)state;
	return runtime_new(&rt, &err) || !mkdtemp(dir) ? -1 : 0;
}

static int stop(void **state)
{
	char command[128];

	(void)state;
	runtime_free(rt);
	map_release(&covered);
	arena_release(&keys);
	snprintf(command, sizeof(command), "rm -rf %s", dir);
	return system(command);
}

static bool have_onnx(void)
{
	if (system(PYTHON " -c 'import onnx' 2>/dev/null") == 0)
		return true;
	print_message("SKIPPED: python3-onnx is not installed\n");
	return false;
}

/*
 * Every version of every op from 8 to 13, and whether it only adds: no attribute, type or output less, none that
 * becomes required, no other default, no input that was not there.
 */
static const char list_history[] = PYTHON
	" - <<'E'\n"
	"from onnx import defs\n"
	"ops = {}\n"
	"for s in defs.get_all_schemas_with_history():\n"
	"    if not s.domain: ops.setdefault(s.name, {})[s.since_version] = s\n"
	"def type_of(v): return v.type_str if hasattr(v, 'type_str') else v.typeStr # onnx 1.17, 1.12\n"
	"def types(s, v): return set(t for c in s.type_constraints if c.type_param_str == type_of(v)\n"
	"                             for t in c.allowed_type_strs) or {type_of(v)}\n"
	"def adds(a, b):\n"
	"    if b.deprecated or len(b.inputs) < len(a.inputs) or len(b.outputs) < len(a.outputs): return "
	"False\n"
	"    for k, x in a.attributes.items():\n"
	"        y = b.attributes.get(k)\n"
	"        if not y or y.type != x.type or str(y.default_value) != str(x.default_value): return False\n"
	"    if any(y.required and k not in a.attributes for k, y in b.attributes.items()): return False\n"
	"    if b.min_input > a.min_input: return False\n"
	"    return all(types(a, x) <= types(b, y) for x, y in\n"
	"               list(zip(a.inputs, b.inputs)) + list(zip(a.outputs, b.outputs)))\n"
	"for name, v in sorted(ops.items()):\n"
	"    for new in v:\n"
	"        old = [x for x in v if x < new]\n"
	"        if 8 <= new <= 13 and old: print(name, new, int(adds(v[max(old)], v[new])))\n"
	"E\n";

static void the_table_covers_onnx(void **state)
{
	char op[64];
	int version, adds;
	size_t n = 0;
	FILE *p;

	(void)state;
	if (!have_onnx())
		skip();
	p = popen(list_history, "r");
	assert_non_null(p);
	while (fscanf(p, "%63s %d %d", op, &version, &adds) == 3) {
		enum opset_change c = opset_change(op, version);

		if (c == OPSET_UNLISTED)
			fail_msg("%s changed in opset %d, and the table does not say how", op, version);
		if (c == OPSET_SAME && !adds)
			fail_msg("%s of opset %d is not what it was, but the table says so", op, version);
		n++;
	}
	assert_int_equal(pclose(p), 0);
	assert_true(n > 150);
}

/* runs m on made-up inputs, the same for every model; release() what it computes */
static void run_model(struct model *m, struct tensor *out, size_t *n)
{
	struct session_options so = { .threads = 1, .level = OPT_NONE };
	struct tensor in[8], results[8];
	struct session *s = NULL;
	struct err err = ERR_INIT;
	size_t i;

	assert_ok(session_new(&s, rt, m, &so, &err), err);
	assert_ok(fake_inputs(s, 2, 3, true, in, &err), err);
	assert_ok(session_run(s, in, results, &err), err);
	*n = session_n_outputs(s);
	for (i = 0; i < *n; i++) {
		out[i] = results[i];
		out[i].data = NULL;
		assert_ok(tensor_alloc(&out[i], "output", &err), err);
		memcpy(out[i].data, results[i].data, tensor_bytes(&out[i]));
	}
	for (i = 0; i < session_n_inputs(s); i++)
		tensor_free(&in[i]);
	session_free(s);
}

static void release(struct tensor *t, size_t n)
{
	while (n)
		tensor_free(&t[--n]);
}

/* what `raised` computes must be x, which a model of opset `from` computed */
static void assert_same(const struct tensor *x, size_t n, int from, struct model *raised, const char *what)
{
	struct tensor y[8];
	size_t k, i;

	run_model(raised, y, &k);
	assert_int_equal(n, k);
	for (i = 0; i < n; i++)
		if (x[i].dtype != y[i].dtype || !tensor_same_shape(&x[i], &y[i]) ||
		    memcmp(x[i].data, y[i].data, tensor_bytes(&x[i])) != 0)
			fail_msg("%s: opset %d gives other bits than opset %d", what, raised->opset, from);
	release(y, n);
}

static void save(struct model *m)
{
	struct err err = ERR_INIT;
	char path[128];

	snprintf(path, sizeof(path), "%s/%d.raised.onnx", dir, n_saved++);
	assert_ok(model_save(m, path, &err), err);
}

static void cover(const struct model *m, int version)
{
	size_t i;

	for (i = 0; i < m->nodes.n; i++)
		map_set(&covered, arena_strfmt(&keys, "%s %d", m->nodes.v[i]->op, version), 1);
}

static struct model *load(int opset, const char *inputs, const char *body)
{
	struct err err = ERR_INIT;
	struct model *m = NULL;
	char path[128];

	snprintf(path, sizeof(path), "%s/m.onnx", dir);
	build_model(path, opset, inputs, body, "y");
	assert_ok(model_load(&m, path, &err), err);
	return m;
}

/* raises a model from opset to opset, up to 13, and compares at each */
static void check_exact(int opset, const char *inputs, const char *body)
{
	struct opset_obstacle o;
	struct model *m = load(opset, inputs, body), *before = m;
	struct tensor x[8];
	size_t n;
	int to;

	run_model(m, x, &n);
	for (to = opset + 1; to <= OPSET_RAISE_MAX; to++) {
		struct model *raised = model_raise(m, to, &o);

		if (!raised)
			fail_msg("%s: %s '%s' has no conversion to opset %d: %s", body, o.op, o.name,
				 o.version, o.why);
		assert_int_equal(raised->opset, to);
		assert_same(x, n, opset, raised, body);
		cover(before, to);
		save(raised);
		if (before != m)
			model_free(before);
		before = raised;
	}
	release(x, n);
	if (before != m)
		model_free(before);
	model_free(m);
}

#define X "x:2x3x4x4"
static const struct {
	int opset;
	const char *inputs, *body;
} cases[] = {
	/* converted */
	{ 7, X, "s = 3; b = 3; m = 3; n = 3; v = Abs(n); y = BatchNormalization(x, s, b, m, v) spatial=1" },
	{ 7, X, "y = Upsample(x) scales=1.0,1.0,2.0,3.0 mode=nearest" },
	{ 7, X, "y = Upsample(x) scales=1.0,1.0,1.7,2.4 mode=nearest" },
	{ 7, X, "y = Upsample(x) scales=1.0,1.0,2.0,2.0 mode=linear" },
	{ 7, X, "y = Upsample(x) scales=1.0,1.0,1.3,2.6 mode=linear" },
	{ 9, X ",k:#4",
	  "f = Cast(k) to=1; o = 1.0; s = Add(f, o); y = Upsample(x, s)" }, /* computed scales */
	{ 10, X, "s = [1.0,1.0,2.0,1.5]; y = Resize(x, s)" },
	{ 10, X, "s = [1.0,1.0,0.5,0.75]; y = Resize(x, s)" },
	{ 10, X, "s = [1.0,1.0,0.6,2.5]; y = Resize(x, s) mode=linear" },
	{ 7, X, "y = Dropout(x) ratio=0.3" },
	{ 7, X, "y,k = Dropout(x)" }, /* a mask that nothing reads */
	{ 7, X, "y = Slice(x) starts=1,0 ends=3,9223372036854775807 axes=2,3" },
	{ 7, X, "y = Slice(x) starts=0,-2 ends=2,-1" },
	{ 7, X, "y,i = TopK(x) k=2 axis=3" },
	{ 7, X, "y = ImageScaler(x) scale=0.0039 bias=0.0,0.0,0.0" },
	{ 7, X, "y = ImageScaler(x) bias=0.5,1.0,-2.25" },
	{ 7, X, "y = Clip(x) min=-0.5 max=0.75" },
	{ 7, X, "y = Clip(x) max=0.1" },
	{ 7, X, "y = Clip(x)" },
	{ 7, X, "y = Pad(x) pads=0,0,1,2,0,0,0,1" },
	{ 7, X, "y = Pad(x) pads=0,0,1,2,0,0,0,1 value=1.5" },
	{ 7, X, "y = Pad(x) pads=0,0,1,2,0,0,0,-1 mode=reflect" },
	{ 9, X ",k:#2x3x4x4", "u = 2x3x4x4; y = Scatter(x, k, u) axis=2" },
	{ 7, X, "y = Softmax(x)" },
	{ 7, X, "y = Softmax(x) axis=3" },
	{ 11, X, "y = Softmax(x) axis=-2" },
	{ 7, X, "y = LogSoftmax(x) axis=2" },
	{ 7, X, "y = Hardmax(x) axis=1" },
	{ 7, X, "y = ReduceSum(x) axes=1,2 keepdims=0" },
	{ 7, X, "y = ReduceSum(x)" },
	{ 7, "x:2x1x4", "y = Squeeze(x) axes=1," },
	{ 7, "x:2x1x4", "y = Squeeze(x)" },
	{ 7, X, "y = Unsqueeze(x) axes=0,2" },
	{ 7, X, "y,z = Split(x) axis=2 split=1,3" },
	{ 7, X, "y,z = Split(x) axis=2" },
	/* the same as before */
	{ 7, X, "w = 2x3x4x4; y = Max(x, w)" },
	{ 7, X, "w = 2x3x4x4; y = Min(x, w)" },
	{ 7, X, "w = 2x3x4x4; y = Mean(x, w)" },
	{ 7, X, "w = 2x3x4x4; y = Sum(x, w)" },
	{ 7, X, "w = 3x1x1; y = Add(x, w)" },
	{ 7, X, "w = 3x1x1; y = Sub(x, w)" },
	{ 7, X, "w = 3x1x1; y = Mul(x, w)" },
	{ 7, X, "w = 3x1x1; y = Div(x, w)" },
	{ 7, X, "a = Abs(x); w = 3x1x1; y = Pow(a, w)" },
	{ 7, X, "w = 3x1x1; y = PRelu(x, w)" },
	{ 7, X, "w = 3x1x1; a = Greater(x, w); y = Cast(a) to=1" },
	{ 7, X, "w = 3x1x1; a = Less(x, w); y = Cast(a) to=1" },
	{ 7, X, "i = Cast(x) to=6; a = Equal(i, i); y = Cast(a) to=1" },
	{ 10, X, "w = 3x1x1; i = Cast(x) to=6; j = [3]; k = Cast(j) to=6; a = Mod(i, k); y = Cast(a) to=1" },
	{ 7, X, "y = MaxPool(x) kernel_shape=2,2 strides=2,2" },
	{ 7, X, "y = MaxPool(x) kernel_shape=3,3 strides=2,2 auto_pad=SAME_UPPER" },
	{ 7, X, "y = AveragePool(x) kernel_shape=3,3 pads=1,1,1,1 count_include_pad=1" },
	{ 7, X, "y = LpPool(x) kernel_shape=2,2 p=3" },
	{ 9, X,
	  "a,i = MaxPool(x) kernel_shape=2,2 strides=2,2; y = MaxUnpool(a, i) kernel_shape=2,2 strides=2,2" },
	{ 7, X, "w = 5x3x3x3; b = 5; y = Conv(x, w, b) pads=1,1,1,1" },
	{ 7, X, "w = 3x5x3x3; b = 5; y = ConvTranspose(x, w, b) strides=2,2" },
	{ 7, "x:4x6", "w = 6x5; b = 5; y = Gemm(x, w, b) alpha=0.5" },
	{ 7, "x:4x6", "w = 6x5; y = MatMul(x, w)" },
	{ 7, X, "y = Flatten(x) axis=2" },
	{ 7, X, "y = Concat(x, x) axis=1" },
	{ 7, X, "i = [1,0]; y = Gather(x, i) axis=1" },
	{ 9, X, "b = [1,0,1]; c = Cast(b) to=9; y = Compress(x, c) axis=1" },
	{ 9, "i:#3", "d = [4]; w = 2; y = OneHot(i, d, w)" },
	{ 7, "x:2x8x3x3", "y = DepthToSpace(x) blocksize=2" },
	{ 7, X, "y = SpaceToDepth(x) blocksize=2" },
	{ 7, X, "y = Transpose(x) perm=0,3,1,2" },
	{ 7, X, "s = [2,48]; y = Reshape(x, s)" },
	{ 7, X, "r = [1,2,1,1]; y = Tile(x, r)" },
	{ 8, "x:3x1", "s = [2,3,4]; y = Expand(x, s)" },
	{ 7, X, "a = Shape(x); y = Cast(a) to=1" },
	{ 7, X, "a = Size(x); y = Cast(a) to=1" },
	{ 7, X, "y = LRN(x) size=3" },
	{ 9, X, "a = IsNaN(x); y = Cast(a) to=1" },
	{ 9, X, "a = NonZero(x); y = Cast(a) to=1" },
	{ 9, X, "y = MeanVarianceNormalization(x)" },
	{ 7, X, "a = ArgMax(x) axis=2; y = Cast(a) to=1" },
	{ 7, X, "a = ArgMin(x) axis=1 keepdims=0; y = Cast(a) to=1" },
	{ 10, X,
	  "s = 0.05; k = [3]; i = Cast(k) to=2; z = Squeeze(i) axes=0,; q = QuantizeLinear(x, s, z); "
	  "y = DequantizeLinear(q, s, z)" },
	{ 10, "b:1x6x4,s:1x1x6", "n = [3]; a = NonMaxSuppression(b, s, n); y = Cast(a) to=1" },
	{ 11, X ",k:#2x3x1x4", "y = GatherElements(x, k) axis=2" },
	{ 11, X ",k:#2x3", "y = GatherND(x, k)" },
	{ 11, X ",k:#2x3x1x4", "u = 2x3x1x4; y = ScatterElements(x, k, u) axis=2" },
	{ 11, X ",k:#1x1", "u = 1x3x4x4; y = ScatterND(x, k, u)" },
	{ 11, X, "r = 0; s = [1.0,1.0,2.0,2.0]; y = Resize(x, r, s)" },
};

static void conversions_are_exact(void **state)
{
	static const char *const unary[] = { "Abs", "Ceil",       "Exp",  "Floor",   "Identity", "Log",
					     "Neg", "Reciprocal", "Relu", "Sigmoid", "Sqrt",     "Tanh" };
	static const char *const reductions[] = { "L1",   "L2",  "LogSum", "LogSumExp", "Max",
						  "Mean", "Min", "Prod",   "SumSquare" };
	char body[64];
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_LEN(cases); i++)
		check_exact(cases[i].opset, cases[i].inputs, cases[i].body);
	for (i = 0; i < ARRAY_LEN(unary); i++) {
		snprintf(body, sizeof(body), "y = %s(x)", unary[i]);
		check_exact(7, X, body);
	}
	check_exact(9, X, "y = Erf(x)");
	check_exact(9, X, "y = Sign(x)");
	for (i = 0; i < ARRAY_LEN(reductions); i++) {
		snprintf(body, sizeof(body), "y = Reduce%s(x) axes=1,3", reductions[i]);
		check_exact(7, X, body);
	}
}

/* the branches of an If read x of the graph around them */
static struct model *load_if(int opset, const char *then_body, const char *else_body)
{
	const char *const bodies[] = { then_body, else_body }, *const names[] = { "then_branch",
										  "else_branch" };
	struct model *branch[2], *m = load(opset, X ",k:#1", "c = Cast(k) to=9; y = If(c)");
	struct node *n = m->nodes.v[1];
	struct packed bytes = PACKED_INIT;
	struct err err = ERR_INIT;
	struct model *out = NULL;
	size_t i;

	for (i = 0; i < 2; i++) {
		Onnx__AttributeProto *a = arena_alloc(&m->arena, sizeof(*a));
		void **attrs = arena_alloc(&m->arena, 2 * sizeof(*attrs));

		branch[i] = load(opset, X, bodies[i]);
		onnx__attribute_proto__init(a);
		a->name = (char *)(uintptr_t)names[i];
		a->has_type = 1;
		a->type = ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__GRAPH;
		a->g = ((Onnx__ModelProto *)branch[i]->proto)->graph;
		a->g->n_input = 0;
		if (i)
			attrs[0] = n->attrs[0];
		attrs[i] = a;
		n->attrs = attrs;
		n->n_attrs = i + 1;
	}
	assert_ok(model_pack(m, SIZE_MAX, &bytes, &err), err);
	assert_ok(model_decode(&out, bytes.bytes, bytes.n, NULL, &err), err);
	packed_release(&bytes);
	model_free(branch[0]);
	model_free(branch[1]);
	model_free(m);
	return out;
}

static void subgraphs_are_raised(void **state)
{
	/* both use the name t; the second one's constants must not clash with the first one's */
	struct model *m = load_if(7, "t = Clip(x) min=-0.5 max=0.5; y = Slice(t) starts=1, ends=2, axes=1,",
				  "t = Slice(x) starts=1, ends=2, axes=1,; y = Clip(t) min=-0.25");
	struct model *raised;
	struct opset_obstacle o;
	struct tensor x[8];
	size_t n;
	int to;

	(void)state;
	run_model(m, x, &n);
	for (to = 8; to <= OPSET_RAISE_MAX; to++) {
		raised = model_raise(m, to, &o);
		assert_non_null(raised);
		assert_same(x, n, 7, raised, "If");
		save(raised);
		cover(m, to);
		assert_int_equal(raised->nodes.v[1]->n_captured, to < 10 ? 1 : to < 11 ? 7 : 10);
		model_free(raised);
	}
	release(x, n);
	model_free(m);
	/* what a branch computes has no declared type */
	m = load_if(7, "t = Exp(x); y = Pad(t) pads=0,0,1,1,0,0,1,1 value=1.0", "y = Abs(x)");
	assert_null(model_raise(m, 12, &o));
	assert_string_equal(o.op, "Pad");
	assert_int_equal(o.version, 11);
	model_free(m);
}

/* all of the table, but for what the runtime cannot run and what onnx_testdata.c has */
static void every_op_was_tried(void **state)
{
	static const char *const elsewhere[] = { "Constant", "Loop", "Scan", "NegativeLogLikelihoodLoss",
						 "SoftmaxCrossEntropyLoss" };
	char op[64], key[80];
	size_t i, k, missing = 0;

	(void)state;
	for (i = 0; i < n_opset_rules; i++) {
		const struct opset_rule *rule = &opset_rules[i];
		const char *p;
		int n;

		for (p = rule->why ? "" : rule->ops; sscanf(p, "%63s%n", op, &n) == 1; p += n) {
			snprintf(key, sizeof(key), "%s %d", op, rule->version);
			for (k = 0; k < ARRAY_LEN(elsewhere) && strcmp(elsewhere[k], op) != 0; k++)
				;
			if (k < ARRAY_LEN(elsewhere) || map_get(&covered, key) != MAP_NONE)
				continue;
			print_error("%s has no case\n", key);
			missing++;
		}
	}
	assert_int_equal(missing, 0);
}

static void no_conversion_says_why(void **state)
{
	static const struct {
		int opset, to;
		const char *body, *op;
		int version;
	} rows[] = {
		{ 7, 10, "s = 3; b = 3; m = 3; v = 3; y = BatchNormalization(x, s, b, m, v) spatial=0",
		  "BatchNormalization", 9 },
		{ 7, 10, "y,k = Dropout(x); z = Add(y, k)", "Dropout", 10 },
		{ 10, 11, "s = [1.0,1.0,0.5,2.0]; y = Resize(x, s)", "Resize", 11 },
		{ 10, 11, "a = [1,1,2,2]; s = Cast(a) to=1; y = Resize(x, s)", "Resize", 11 },
		{ 7, 10, "y = ImageScaler(x) scale=0.3 bias=0.5,0.0,0.0", "ImageScaler", 10 },
		{ 7, 12, "y = Affine(x) alpha=2.0", "Affine", 10 },
		{ 8, 9, "y = Scan(x)", "Scan", 9 },
	};
	struct opset_obstacle o;
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_LEN(rows); i++) {
		struct model *m = load(rows[i].opset, X, rows[i].body);

		if (model_raise(m, rows[i].to, &o))
			fail_msg("%s was raised", rows[i].body);
		assert_string_equal(o.op, rows[i].op);
		assert_int_equal(o.version, rows[i].version);
		assert_non_null(o.why);
		model_free(m);
	}
}

/* prepares a model; what must be said of it is `note` (NULL: nothing) */
static struct model *prepared(const char *path, const char *note)
{
	struct err err = ERR_INIT;
	struct model *m = NULL;

	assert_ok(prepare(&m, rt, path, &err), err);
	if (!note != !m->notes[0] || (note && !strstr(m->notes[0], note)))
		fail_msg("the note is '%s', want '%s'", m->notes[0] ? m->notes[0] : "", note ? note : "");
	return m;
}

static void prepare_raises_as_far_as_needed(void **state)
{
	static const struct {
		int opset;
		const char *body;
		int to;
		const char *note;
	} rows[] = {
		{ 9, "w = 5x3x3x3; y = Conv(x, w)", 11, "raised from opset 9 to 11" },
		{ 7, "w = 5x3x3x3; a = Conv(x, w); y = MaxPool(a) kernel_shape=2,2", 12,
		  "raised from opset 7 to 12" },
		{ 10, "w = 5x3x3x3; a = Conv(x, w); y = MaxPool(a) kernel_shape=2,2", 10, NULL },
		{ 9, "y = MaxPool(x) kernel_shape=2,2", 9, NULL },
		{ 8, "w = 5x3x3x3; a = Conv(x, w); y = ImageScaler(a) scale=0.3 bias=0.5,1.0,1.0,1.0,1.0", 8,
		  "kept at opset 8, so that Conv cannot be quantized: ImageScaler 'ImageScaler_1' has no "
		  "exact conversion "
		  "to opset 10 (its product and sum may be rounded once or twice); export the model with "
		  "opset 11 or later" },
		{ 8, "w = 48x4; f = Flatten(x); b = 4; a = Gemm(f, w, b); y = Affine(a) alpha=0.3", 8,
		  "kept at opset 8, so that no op can be quantized dynamically: Affine" },
	};
	char path[128];
	size_t i;

	(void)state;
	snprintf(path, sizeof(path), "%s/m.onnx", dir);
	for (i = 0; i < ARRAY_LEN(rows); i++) {
		struct model *m;

		build_model(path, rows[i].opset, "x:2x3x4x4", rows[i].body, "y");
		m = prepared(path, rows[i].note);
		assert_int_equal(m->opset, rows[i].to);
		assert_int_equal(m->raised_from, rows[i].to != rows[i].opset ? rows[i].opset : 0);
		model_free(m);
	}
}

/* rewrites the model so that its constants are inputs, too, as all were before IR version 4 */
static void list_constants(const char *path, int64_t ir)
{
	struct err err = ERR_INIT;
	struct model *m = NULL;
	Onnx__GraphProto *g;
	size_t i;

	assert_ok(model_load(&m, path, &err), err);
	((Onnx__ModelProto *)m->proto)->ir_version = ir;
	g = ((Onnx__ModelProto *)m->proto)->graph;
	for (i = 0; i < m->inits.n; i++) {
		Onnx__ValueInfoProto **grown = arena_alloc(&m->arena, (g->n_input + 1) * sizeof(*grown));
		struct value v = { .name = m->inits.v[i]->name, .type = m->inits.v[i]->t };

		memcpy(grown, g->input, g->n_input * sizeof(*grown));
		grown[g->n_input++] = typed_input(m, &v).proto;
		g->input = grown;
	}
	assert_ok(model_save(m, path, &err), err);
	model_free(m);
}

static void constants_are_no_inputs(void **state)
{
	static const char body[] =
		"w = 5x3x3x3; a = Conv(x, w); s = 5; b = 5; m = 5; v = [1.0,2.0,1.0,1.5,1.0]; "
		"c = BatchNormalization(a, s, b, m, v); y = Clip(c) min=0.0 max=6.0";
	int64_t ir;

	(void)state;
	for (ir = 3; ir <= 4; ir++) {
		struct model *m;
		char path[128];

		snprintf(path, sizeof(path), "%s/m.onnx", dir);
		build_model(path, 9, X, body, "y");
		list_constants(path, ir);
		m = prepared(path, "raised from opset 9 to 11");
		assert_int_equal(m->n_inputs, 1);
		assert_int_equal(m->nodes.n, 2);       /* BatchNormalization could be folded into Conv */
		assert_true(!m->notes[1] == (ir < 4)); /* before 4 nobody could override them */
		save(m); /* for the checker: constants that are no inputs need IR version 4 */
		model_free(m);
	}
}

static void the_checker_accepts_them(void **state)
{
	char command[2048];

	(void)state;
	if (!have_onnx())
		skip();
	snprintf(command, sizeof(command),
		 PYTHON
		 " - %s <<'E'\n"
		 "import glob, onnx, sys\n"
		 "def shapes(g): # the checker wants some\n"
		 "    for o in g.output:\n"
		 "        if not o.type.tensor_type.HasField('shape'): o.type.tensor_type.shape.dim.add()\n"
		 "    for n in g.node:\n"
		 "        for a in n.attribute:\n"
		 "            if a.HasField('g'): shapes(a.g)\n"
		 "files = glob.glob(sys.argv[1] + '/*.raised.onnx')\n"
		 "for f in files:\n"
		 "    m = onnx.load(f)\n"
		 "    if any(n.op_type == 'ImageScaler' for n in m.graph.node): continue\n"
		 "    if not any(n.op_type == 'MeanVarianceNormalization' for n in m.graph.node): # onnx "
		 "1.17 fails\n"
		 "        m = onnx.shape_inference.infer_shapes(m, check_type=True, strict_mode=True)\n"
		 "    shapes(m.graph)\n"
		 "    onnx.checker.check_model(m)\n"
		 "assert len(files) > 400, len(files)\n"
		 "E\n",
		 dir);
	assert_int_equal(system(command), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_table_covers_onnx),   cmocka_unit_test(conversions_are_exact),
		cmocka_unit_test(subgraphs_are_raised),    cmocka_unit_test(every_op_was_tried),
		cmocka_unit_test(no_conversion_says_why),  cmocka_unit_test(prepare_raises_as_far_as_needed),
		cmocka_unit_test(constants_are_no_inputs), cmocka_unit_test(the_checker_accepts_them),
	};

	return cmocka_run_group_tests(tests, start, stop);
}
