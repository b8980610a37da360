/*
 * Rewriting the fp32 graph: each pattern is rewritten as often as it is there, what the runtime then makes of it has the op that
 * was wanted, and the outputs are the same. So they are with any value in between an output too, or read by a subgraph. What
 * is nearly the pattern is left alone.
 */
#include "unit/unit.h"

#include <unistd.h>

#include "quantize/subject.h"
#include "runtime/prepare.h"
#include "runtime/probe.h"
#include "space/constraint.h"
#include "space/select.h"
#include "unit/build.h"

static struct runtime *rt;
static char dir[] = "/tmp/fettle-test.XXXXXX";
static char path[64];

static int start(void **state)
{
	struct err err = ERR_INIT;

	(void)state;
	if (runtime_new(&rt, &err) || !mkdtemp(dir))
		return -1;
	snprintf(path, sizeof(path), "%s/model.onnx", dir);
	return 0;
}

static int finish(void **state)
{
	(void)state;
	unlink(path);
	rmdir(dir);
	runtime_free(rt);
	return 0;
}

struct row {
	const char *why, *inputs, *body;
	enum simplification_id id;
	size_t times;      /* it must fire; 0: it must not */
	const char *want;  /* in the graph that a default session runs, once ... */
	const char *never; /* ... and this not */
	bool exact;
};

#define FIRES(what, with, without) .id = SIMPLIFICATION_##what, .times = 1, .want = with, .never = without
#define LEFT(what) .id = SIMPLIFICATION_##what
#define USUAL(what, with) .id = SIMPLIFICATION_##what, .want = with
#define X "x:?x4x8x8"
#define CONV "w = 8x4x3x3; a = Conv(x, w) pads=1,1,1,1; "
#define NEXT "v = 4x8x3x3; y = Conv(c, v) pads=1,1,1,1"
#define SWISH CONV "t = 3.0; z = 0.0; six = 6.0; s = Add(a, t); k = Clip(s, z, six); "
#define T "x:?x6x16"
#define IN "w = 16x24; b = 24; m = MatMul(x, w); a = Add(m, b); one = 1.0; half = 0.5; "
#define OUT "; v = 24x8; y = MatMul(c, v)"
#define ERF "q = 1.41421356; d = Div(a, q); e = Erf(d); g = Add(e, one); "
#define TANH                                                                                                 \
	"u = Mul(s, h); h = 0.7978845608; th = Tanh(u); g = Add(one, th); j = Mul(a, half); c = Mul(j, "     \
	"g)" OUT
#define CUBE "k = 0.044715; "
#define NORM "e0 = 16; a = Add(x, e0); g = 16; b = 16; two = 2.0; e = 0.00001; "
#define MEAN "mu = ReduceMean(a) axes=-1,; s = Sub(a, mu); "
#define VAR "va = ReduceMean(p) axes=-1,; ve = Add(va, e); "
#define SKIP "w = 16x16; g = 16; b = 16; m = MatMul(x, w); "
#define END "; v = 16x8; y = MatMul(c, v)"

static const struct row rows[] = {
	/* HardSwish and HardSigmoid */
	{ "x * Clip(x + 3, 0, 6) / 6", X, SWISH "e = Mul(a, k); c = Div(e, six); " NEXT,
	  FIRES(hard_swish, NULL, "Clip") },
	{ "Clip(x + 3, 0, 6) / 6 * x", X, SWISH "e = Div(k, six); c = Mul(e, a); " NEXT,
	  FIRES(hard_swish, NULL, "Clip") },
	{ "x * (1 / 6) * Clip(x + 3, 0, 6)", X, SWISH "i = 0.16666667; e = Mul(i, a); c = Mul(e, k); " NEXT,
	  FIRES(hard_swish, NULL, "Clip") },
	{ "HardSigmoid alone", X, SWISH "c = Div(k, six); " NEXT, FIRES(hard_swish, NULL, "Clip") },
	{ "Clip(0.2 x + 0.5, 0, 1)", X,
	  CONV "p = 0.2; o = 0.5; z = 0.0; n = 1.0; f = Relu(a); r = Mul(f, p); s = Add(r, o); k = Clip(s, "
	       "z, n); c = "
	       "Mul(f, k); " NEXT,
	  FIRES(hard_swish, "HardSigmoid", "Clip") },
	{ "a sixth that is none leaves a factor", X,
	  SWISH "i = 0.1665; e = Mul(i, a); d = Mul(e, k); c = Softmax(d) axis=1; " NEXT,
	  FIRES(hard_swish, "Mul", "Clip") },
	{ "another op reads the Clip", X, SWISH "e = Mul(a, k); d = Div(e, six); c = Add(d, k); " NEXT,
	  LEFT(hard_swish) },
	{ "another op reads the sum", X, SWISH "e = Mul(a, k); d = Div(e, six); c = Add(d, s); " NEXT,
	  LEFT(hard_swish) },
	{ "from -1, not 0", X,
	  CONV "t = 3.0; z = -1.0; six = 6.0; s = Add(a, t); k = Clip(s, z, six); e = Mul(a, k); c = Div(e, "
	       "six); " NEXT,
	  LEFT(hard_swish) },
	{ "open at the top", X,
	  CONV
	  "t = 3.0; z = 0.0; six = 6.0; s = Add(a, t); k = Clip(s, z); e = Mul(a, k); c = Div(e, six); " NEXT,
	  LEFT(hard_swish) },
	{ "a shift for each column", X,
	  CONV "t = [3.0,3.0,3.0,3.0,3.0,3.0,3.0,2.0]; z = 0.0; six = 6.0; s = Add(a, t); k = Clip(s, z, "
	       "six); e = Mul(a, "
	       "k); c = Div(e, six); " NEXT,
	  LEFT(hard_swish) },
	{ "times another value", X,
	  SWISH "w3 = 8x4x1x1; o = Conv(x, w3); e = Mul(o, k); c = Add(e, a); " NEXT, LEFT(hard_swish) },

	/* constants after a Conv */
	{ "Conv / constant", X, CONV "k = 8x1x1; c = Div(a, k); " NEXT,
	  FIRES(constant_operand, NULL, "Div") },
	{ "Conv - constant", X, CONV "k = 1x8x1x1; c = Sub(a, k); " NEXT,
	  FIRES(constant_operand, NULL, "Sub") },
	{ "constant - Conv", X, CONV "k = 1x8x1x1; c = Sub(k, a); " NEXT, LEFT(constant_operand) },
	{ "constant / Conv", X, CONV "k = 1x8x1x1; c = Div(k, a); " NEXT, LEFT(constant_operand) },
	{ "by zero", X, CONV "k = [1.0,2.0,0.0,1.0,1.0,1.0,1.0,1.0]; c = Div(a, k); " NEXT,
	  LEFT(constant_operand) },
	{ "another op reads the Conv", X, CONV "k = 1x8x1x1; d = Sub(a, k); c = Mul(d, a); " NEXT,
	  LEFT(constant_operand) },

	/* GELU by erf: the first two are the runtime's own */
	{ "x (1 + erf) / 2", T, IN ERF "i = Mul(a, g); c = Mul(i, half)" OUT, USUAL(gelu, "BiasGelu") },
	{ "x / 2 (1 + erf)", T, IN ERF "i = Mul(a, half); c = Mul(i, g)" OUT, USUAL(gelu, "BiasGelu") },
	{ "x ((1 + erf) / 2)", T, IN ERF "i = Mul(half, g); c = Mul(a, i)" OUT,
	  FIRES(gelu, "BiasGelu", "Erf") },
	{ "erf of a product", T,
	  IN
	  "q = 0.70710678; d = Mul(q, a); e = Erf(d); g = Add(one, e); i = Mul(a, g); c = Mul(i, half)" OUT,
	  FIRES(gelu, "BiasGelu", "Erf") },
	{ "divided by two", T, IN ERF "n = 2.0; i = Mul(g, a); c = Div(i, n)" OUT,
	  FIRES(gelu, "BiasGelu", "Erf") },
	{ "not the root of two", T,
	  IN "q = 1.5; d = Div(a, q); e = Erf(d); g = Add(e, one); i = Mul(half, g); c = Mul(a, i)" OUT,
	  LEFT(gelu) },
	{ "not a half", T, IN ERF "n = 0.6; i = Mul(n, g); c = Mul(a, i)" OUT, LEFT(gelu) },
	{ "another op reads 1 + erf", T, IN ERF "i = Mul(half, g); f = Mul(a, i); c = Add(f, g)" OUT,
	  LEFT(gelu) },
	{ "erf of one value, times another", T, IN ERF "i = Mul(half, g); f = Relu(a); c = Mul(f, i)" OUT,
	  LEFT(gelu) },
	/* by tanh: the first is the runtime's own */
	{ "a + k Pow(a, 3)", T, IN CUBE "n = 3.0; f = Pow(a, n); l = Mul(f, k); s = Add(a, l); " TANH,
	  USUAL(gelu, "FastGelu") },
	{ "k a a a", T, IN CUBE "f = Mul(k, a); r = Mul(a, f); l = Mul(a, r); s = Add(a, l); " TANH,
	  FIRES(gelu, "FastGelu", "Tanh") },
	{ "a^3 by Mul", T, IN CUBE "f = Mul(a, a); r = Mul(f, a); l = Mul(r, k); s = Add(l, a); " TANH,
	  FIRES(gelu, "FastGelu", "Tanh") },
	{ "a (1 + k a^2)", T, IN CUBE "f = Mul(a, a); r = Mul(f, k); l = Add(r, one); s = Mul(a, l); " TANH,
	  FIRES(gelu, "FastGelu", "Tanh") },
	{ "a^2, not a^3", T, IN CUBE "f = Mul(a, a); l = Mul(f, k); s = Add(l, a); " TANH, LEFT(gelu) },
	{ "another k", T, IN "k = 0.05; f = Mul(a, a); r = Mul(f, a); l = Mul(r, k); s = Add(l, a); " TANH,
	  LEFT(gelu) },

	/* LayerNorm and RMSNorm: the first of each is the runtime's own */
	{ "LayerNorm", T,
	  NORM MEAN "p = Pow(s, two); " VAR "r = Sqrt(ve); d = Div(s, r); f = Mul(d, g); c = Add(f, b)" END,
	  USUAL(layer_norm, "LayerNormalization") },
	{ "with s * s", T,
	  NORM MEAN "p = Mul(s, s); " VAR "r = Sqrt(ve); d = Div(s, r); f = Mul(d, g); c = Add(f, b)" END,
	  FIRES(layer_norm, "LayerNormalization", "Sqrt") },
	{ "with Reciprocal", T,
	  NORM MEAN "p = Mul(s, s); " VAR
		    "r = Sqrt(ve); i = Reciprocal(r); d = Mul(i, s); f = Mul(d, g); c = Add(f, b)" END,
	  FIRES(layer_norm, "LayerNormalization", "Sqrt") },
	{ "with Pow 0.5", T,
	  NORM MEAN "h = 0.5; p = Pow(s, two); " VAR
		    "r = Pow(ve, h); d = Div(s, r); f = Mul(d, g); c = Add(f, b)" END,
	  FIRES(layer_norm, "LayerNormalization", "Pow") },
	{ "1 / root * g first", T,
	  NORM MEAN "p = Mul(s, s); " VAR
		    "r = Sqrt(ve); i = Reciprocal(r); d = Mul(i, g); f = Mul(s, d); c = Add(f, b)" END,
	  FIRES(layer_norm, "LayerNormalization", "Sqrt") },
	{ "as TensorFlow writes it", T,
	  NORM MEAN "p = Mul(s, s); " VAR
		    "r = Sqrt(ve); i = Reciprocal(r); d = Mul(i, g); f = Mul(a, d); n = Mul(mu, d); o = "
		    "Sub(b, n); c = Add(f, o)" END,
	  FIRES(layer_norm, "LayerNormalization", "Sqrt") },
	{ "RMSNorm", T, NORM "p = Pow(a, two); " VAR "r = Sqrt(ve); d = Div(a, r); c = Mul(d, g)" END,
	  USUAL(layer_norm, "SimplifiedLayerNormalization") },
	{ "with a * a", T, NORM "p = Mul(a, a); " VAR "r = Sqrt(ve); d = Div(a, r); c = Mul(d, g)" END,
	  FIRES(layer_norm, "SimplifiedLayerNormalization", "Sqrt") },
	{ "with a * a and Reciprocal", T,
	  NORM "p = Mul(a, a); " VAR "r = Sqrt(ve); i = Reciprocal(r); d = Mul(a, i); c = Mul(g, d)" END,
	  FIRES(layer_norm, "SimplifiedLayerNormalization", "Sqrt") },
	{ "another op reads the root", T,
	  NORM "p = Mul(a, a); " VAR "r = Sqrt(ve); d = Div(a, r); f = Mul(d, g); c = Add(f, r)" END,
	  LEFT(layer_norm) },
	{ "another axis", T,
	  NORM "p = Mul(a, a); va = ReduceMean(p) axes=1,; ve = Add(va, e); r = Sqrt(ve); d = Div(a, r); c = "
	       "Mul(d, g)" END,
	  LEFT(layer_norm) },
	{ "the product of two values", T,
	  NORM "o = Relu(a); p = Mul(a, o); " VAR "r = Sqrt(ve); d = Div(a, r); c = Mul(d, g)" END,
	  LEFT(layer_norm) },
	{ "another root", T,
	  NORM "h = 0.3; p = Mul(a, a); " VAR "r = Pow(ve, h); d = Div(a, r); c = Mul(d, g)" END,
	  LEFT(layer_norm) },

	/* one number into weights */
	{ "before a Conv", X, "k = 0.25; c = Mul(x, k); v = 8x4x3x3; y = Conv(c, v) pads=1,1,1,1",
	  FIRES(fold_scale, NULL, "Mul"), .exact = true },
	{ "before a MatMul, by Div", T, "k = 255.0; c = Div(x, k); v = 16x8; y = MatMul(c, v)",
	  FIRES(fold_scale, NULL, "Div") },
	{ "before a Gemm with a bias", "x:?x16",
	  "k = 3.0; c = Mul(k, x); v = 8x16; b = 8; y = Gemm(c, v, b) transB=1",
	  FIRES(fold_scale, NULL, "Mul") },
	{ "before two Convs, a pool and a gate", X,
	  "k = 0.7; c = Mul(x, k); v = 8x4x3x3; n = Conv(c, v) pads=1,1,1,1; p = GlobalAveragePool(c); u = "
	  "4x4x1x1; g = "
	  "Conv(p, u); s = Sigmoid(g); m = Mul(c, s); o = 8x4x1x1; q = Conv(m, o); y = Add(n, q)",
	  FIRES(fold_scale, "Mul", NULL) },
	{ "after a MatMul and its bias", T,
	  "v = 16x8; b = 8; m = MatMul(x, v); a = Add(m, b); k = 0.3; y0 = Mul(a, k); y = "
	  "Softmax(y0) axis=-1",
	  FIRES(fold_scale, NULL, "Mul") },
	{ "attention's", T,
	  "w = 16x16; b = 16; m = MatMul(x, w); n = Add(m, b); qs = [0,6,2,8]; q = Reshape(n, qs); t = "
	  "Transpose(q) "
	  "perm=0,2,1,3; u = 16x16; o = MatMul(x, u); r = Reshape(o, qs); k = Transpose(r) perm=0,2,3,1; i = "
	  "MatMul(t, k); "
	  "f = 2.8284271; j = Div(i, f); y = Softmax(j) axis=-1",
	  FIRES(fold_scale, NULL, "Div") },
	{ "two ways into one Conv", X,
	  "k = 0.7; c = Mul(x, k); r = Relu(c); m = Mul(r, c); v = 8x4x3x3; y = Conv(m, v)",
	  USUAL(fold_scale, "Conv") },
	{ "an Add reads it too", X, "k = 0.7; c = Mul(x, k); v = 4x4x1x1; n = Conv(c, v); y = Add(n, c)",
	  LEFT(fold_scale) },
	{ "the weight is another's too", T,
	  "k = 0.7; c = Mul(x, k); v = 16x16; m = MatMul(c, v); n = MatMul(x, v); y = "
	  "Add(m, n)",
	  LEFT(fold_scale) },
	{ "a negative one before Relu", X,
	  "k = -0.7; c = Mul(x, k); r = Relu(c); v = 8x4x3x3; y = Conv(r, v)", LEFT(fold_scale) },
	{ "one for each column", X,
	  "k = [1.0,2.0,1.0,1.0,1.0,1.0,1.0,1.0]; c = Mul(x, k); v = 8x4x3x3; y = Conv(c, v)",
	  LEFT(fold_scale) },
	{ "a constant of more dimensions", "x:16", "k = 1x1; c = Mul(x, k); v = 16x8; y = MatMul(c, v)",
	  LEFT(fold_scale) },
	{ "the bias is computed", "x:?x16,z:8",
	  "v = 16x8; a = Gemm(x, v, z); k = 0.3; b = Mul(a, k); y = Softmax(b) axis=-1", LEFT(fold_scale) },
	{ "a GELU keeps its half", T, IN ERF "i = Mul(a, half); c = Mul(i, g)" OUT,
	  USUAL(fold_scale, "BiasGelu") },

	/* Add before LayerNorm */
	{ "a sum that is normalised", T, SKIP "a = Add(m, x); c = LayerNormalization(a, g, b) axis=-1" END,
	  FIRES(skip_norm, "LayerNormalization", "SkipLayerNormalization") },
	{ "and read by another op", T,
	  SKIP "a = Add(m, x); n = LayerNormalization(a, g, b) axis=-1; c = Mul(n, a)" END,
	  FIRES(skip_norm, "LayerNormalization", "SkipLayerNormalization") },
	{ "in single ops", T,
	  SKIP "two = 2.0; e = 0.00001; a = Add(m, x); " MEAN "p = Pow(s, two); " VAR
	       "r = Sqrt(ve); d = Div(s, r); f = Mul(d, g); c = Add(f, b)" END,
	  FIRES(skip_norm, "LayerNormalization", "SkipLayerNormalization") },
	{ "a constant is added", T, SKIP "a = Add(m, g); c = LayerNormalization(a, g, b) axis=-1" END,
	  LEFT(skip_norm) },
	{ "a mean that is not subtracted", X,
	  CONV "r = Conv(x, w) pads=1,1,1,1; s = Add(a, r); y = ReduceMean(s) axes=2,3", LEFT(skip_norm) },

	/* shapes */
	{ "a known dimension, beside -1", T,
	  "w = 16x16; m = MatMul(x, w); s = Shape(m); i = [1]; b = Gather(s, i) axis=0; h = [-1]; r = [2,8]; "
	  "k = Concat(h, b, "
	  "r) axis=0; y = Reshape(m, k)",
	  FIRES(constant_shapes, NULL, "Gather"), .exact = true },
	{ "two dimensions that stay", "x:?x?x16",
	  "s = Shape(x); i = [0]; j = [2]; z = [0]; b = Slice(s, i, j, z); r = [2,-1]; k = Concat(b, r) "
	  "axis=0; y = Reshape(x, "
	  "k)",
	  FIRES(constant_shapes, NULL, "Shape"), .exact = true },
	{ "arithmetic on dimensions", T,
	  "s = Shape(x); i = [2]; b = Gather(s, i) axis=0; n = [2]; h = Div(b, n); z = [0]; a = [2]; u = "
	  "Slice(x, z, h, a); v = "
	  "8x8; y = MatMul(u, v)",
	  FIRES(constant_shapes, NULL, "Shape"), .exact = true },
	{ "two open dimensions that move", "x:?x?x16",
	  "t = Transpose(x) perm=1,0,2; s = Shape(x); i = [0]; j = [2]; z = [0]; b = Slice(s, i, j, z); r = "
	  "[16]; k = "
	  "Concat(b, r) axis=0; y = Reshape(t, k)",
	  LEFT(constant_shapes) },
	{ "an open dimension as a number", T,
	  "s = Shape(x); i = [0]; b = Gather(s, i) axis=0; r = [6,16]; k = Concat(b, r) axis=0; w = 1x6x16; "
	  "e = Expand(w, k); "
	  "y = Add(x, e)",
	  LEFT(constant_shapes) },
};

/* the outputs of m for made-up inputs, copied */
struct results {
	struct tensor v[8];
	size_t n;
};

static void results_release(struct results *r)
{
	while (r->n)
		tensor_free(&r->v[--r->n]);
}

static void run(struct model *m, enum opt_level level, const char *why, struct results *out)
{
	struct session_options so = { .threads = 1, .level = level };
	struct session *s = NULL;
	struct tensor in[8], results[8];
	struct err err = ERR_INIT;
	size_t i;

	out->n = 0;
	if (session_new(&s, rt, m, &so, &err))
		fail_msg("%s: %s", why, err.msg);
	assert_ok(fake_inputs(s, 3, 5, true, in, &err), err);
	if (session_run(s, in, results, &err))
		fail_msg("%s: %s", why, err.msg);
	for (i = 0; i < session_n_outputs(s); i++) {
		struct tensor *t = &out->v[out->n++];

		*t = results[i];
		if (tensor_alloc(t, "a result", &err))
			fail_msg("%s: output '%s': %s", why, session_output(s, i)->name, err.msg);
		memcpy(t->data, results[i].data, tensor_bytes(t));
	}
	for (i = 0; i < session_n_inputs(s); i++)
		tensor_free(&in[i]);
	session_free(s);
}

static void compare(const struct results *a, const struct results *b, bool exact, const char *why,
		    const char *what)
{
	size_t i, k;

	assert_int_equal(a->n, b->n);
	for (i = 0; i < a->n; i++) {
		double largest = 0;

		if (!tensor_same_shape(&a->v[i], &b->v[i]) || a->v[i].dtype != b->v[i].dtype)
			fail_msg("%s: %s: output %zu has another shape or type", why, what, i);
		for (k = 0; k < (size_t)tensor_count(&a->v[i]); k++)
			largest = fmax(largest, fabs(tensor_get(&a->v[i], k)));
		for (k = 0; k < (size_t)tensor_count(&a->v[i]); k++) {
			const double x = tensor_get(&a->v[i], k), y = tensor_get(&b->v[i], k);

			if (x == y || (isnan(x) && isnan(y)))
				continue;
			if (exact || !(fabs(x - y) <= 2e-6 * fmax(largest, 1)))
				fail_msg("%s: %s: output %zu is %.9g, was %.9g", why, what, i, y, x);
		}
	}
}

static size_t count_op(const struct model *m, const char *op)
{
	size_t i, n = 0;

	for (i = 0; i < m->nodes.n; i++)
		n += strcmp(m->nodes.v[i]->op, op) == 0;
	return n;
}

static void build(const struct row *r)
{
	build_model(path, 13, r->inputs, r->body, "y");
}

static void rewritten_where_it_is_and_outputs_stay(void **state)
{
	struct session_options so = { .threads = 1 };
	struct err err = ERR_INIT;
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_LEN(rows); i++) {
		const struct row *r = &rows[i];
		struct model *plain = NULL, *m = NULL, *graph = NULL;
		struct results before, after;
		struct simplified did;

		build(r);
		assert_ok(prepare(&plain, rt, path, &err), err);
		assert_ok(prepare_rewritten(&m, rt, path, &did, &err), err);
		if (did.n[r->id] != r->times)
			fail_msg("%s: %s fired %zu times, not %zu", r->why, simplifications[r->id]->name,
				 did.n[r->id], r->times);
		run(plain, OPT_DEFAULT, r->why, &before);
		run(m, OPT_DEFAULT, r->why, &after);
		compare(&before, &after, r->exact, r->why, "rewritten");
		results_release(&before);
		results_release(&after);
		assert_ok(optimised_graph(&graph, rt, m, &so, &err), err);
		if (r->want && !count_op(graph, r->want))
			fail_msg("%s: the runtime makes no %s of it", r->why, r->want);
		if (r->never && count_op(graph, r->never))
			fail_msg("%s: %s is left", r->why, r->never);
		model_free(graph);
		model_free(plain);
		model_free(m);
	}
}

/* the prepared model with every value that may be one of these as an output beside y, or read by a subgraph of the last node */
enum way { AS_OUTPUT, BY_SUBGRAPH };

static void check_value(const struct row *r, struct model *plain, const char *value, enum way way)
{
	const char *outputs[] = { "y", value };
	struct model *m = model_derive(plain);
	struct node *last = m->nodes.v[m->nodes.n - 1];
	struct results before, after;
	struct simplified did = { { 0 } };
	char what[128];

	snprintf(what, sizeof(what), "value '%s' %s", value,
		 way == AS_OUTPUT ? "is an output" : "is read inside");
	model_set_outputs(m, outputs, 2);
	/* ONNX Runtime 1.30 fuses a FastGelu even if a value inside is an output, which then is missing */
	run(m, OPT_BASIC, r->why, &before);
	if (way == BY_SUBGRAPH) {
		model_set_outputs(m, outputs, 1);
		last->captured = &value;
		last->n_captured = 1;
	}
	simplify(m, &did);
	if (way == BY_SUBGRAPH) {
		last->n_captured = 0;
		model_set_outputs(m, outputs, 2);
	}
	run(m, OPT_BASIC, r->why, &after);
	compare(&before, &after, r->exact, r->why, what);
	results_release(&before);
	results_release(&after);
	model_free(m);
}

static void values_that_others_read_stay(void **state)
{
	struct err err = ERR_INIT;
	size_t i, k;

	(void)state;
	for (i = 0; i < ARRAY_LEN(rows); i++) {
		struct model *plain = NULL;

		build(&rows[i]);
		assert_ok(prepare(&plain, rt, path, &err), err);
		for (k = 0; k + 1 < plain->nodes.n; k++) {
			check_value(&rows[i], plain, plain->nodes.v[k]->out[0], AS_OUTPUT);
			check_value(&rows[i], plain, plain->nodes.v[k]->out[0], BY_SUBGRAPH);
		}
		model_free(plain);
	}
}

/* Who names an op that was rewritten away is not mistaken; ops with weights, and the last of a pattern, keep their names. */
static void names_still_work(void **state)
{
	static const struct {
		const char *name;
		bool known;
		size_t ops; /* that it selects */
	} names[] = {
		{ "Conv_0", true, 1 },         { "Conv", true, 2 }, { "Div_4", true, 1 },
		{ "Clip_2", true, 0 },         { "Clip", true, 0 }, { "Clap", false, 0 },
		{ "Clip_2, Conv_5", true, 1 },
	};
	struct err err = ERR_INIT;
	struct subject *s = NULL;
	size_t i, k;

	(void)state;
	build(&rows[0]);
	assert_ok(subject_open(&s, rt, path, &err), err);
	for (i = 0; i < ARRAY_LEN(names); i++) {
		bool *selected = xcalloc(s->ops.n, sizeof(*selected));
		struct constraint c = { .scope = CONSTRAIN_OP, .name = names[i].name, .where = "here" };
		struct op_mask *masks = xcalloc(s->ops.n, sizeof(*masks));
		size_t n = 0;

		assert_int_equal(select_ops(names[i].name, &s->ops, s->m, selected, &err) == FETTLE_OK,
				 names[i].known);
		for (k = 0; k < s->ops.n; k++)
			n += selected[k];
		assert_int_equal(n, names[i].ops);
		if (!strchr(names[i].name, ',') && strchr(names[i].name, '_'))
			assert_int_equal(constraints_apply(&c, 1, &s->ops, s->m, NULL, masks, &err),
					 FETTLE_OK);
		free(masks);
		free(selected);
	}
	subject_free(s);
	s = NULL;
	assert_ok(subject_open_as_is(&s, rt, path, &err), err);
	assert_int_equal(simplified_total(&s->rewritten), 0);
	assert_int_equal(count_op(s->m, "Clip"), 1);
	subject_free(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rewritten_where_it_is_and_outputs_stay),
		cmocka_unit_test(values_that_others_read_stay),
		cmocka_unit_test(names_still_work),
	};

	return cmocka_run_group_tests(tests, start, finish);
}
