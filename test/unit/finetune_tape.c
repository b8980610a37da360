/*
 * A tape's values against ONNX Runtime's, op by op and for blocks of quantized models; its gradients against finite
 * differences of its values.
 */
#include "unit/finetune_bed.h"

#include <sys/stat.h>

#include "finetune/block.h"
#include "finetune/part.h"
#include "finetune/tape.h"

static struct rng rng;

/* A model from x to y; layers that make a, b, ... learn. */
struct graph {
	const char *why, *input, *text, *learns[3];
	int opset;
};

struct made {
	struct runtime *rt;
	struct model *m;
	struct tensor in;
	struct tape *t;
	char why[TAPE_WHY];
};

static void make(struct made *b, const struct graph *g)
{
	char *path = xstrfmt("%s/t.onnx", dir), *input = xstrfmt("x:%s", g->input);
	struct err err = ERR_INIT;
	size_t i, n = 0;

	*b = (struct made){ .m = NULL };
	build_model(path, g->opset ? g->opset : 17, input, g->text, "y");
	assert_ok(runtime_new(&b->rt, &err), err);
	assert_ok(model_load(&b->m, path, &err), err);
	b->in = b->m->inputs[0].type;
	assert_ok(tensor_alloc(&b->in, "input", &err), err);
	for (i = 0; i < (size_t)tensor_count(&b->in); i++)
		((float *)b->in.data)[i] = (float)rng_normal(&rng);
	while (n < 3 && g->learns[n])
		n++;
	assert_ok(tape_new(&b->t, &(struct tape_of){ b->rt, b->m, &b->in, g->learns, n }, b->why, &err), err);
	free(path);
	free(input);
}

static void made_release(struct made *b)
{
	tape_free(b->t);
	tensor_free(&b->in);
	model_free(b->m);
	runtime_free(b->rt);
}

/* the sum of outputs, each with a weight of its own */
static double objective(struct made *b, const float *weight)
{
	const struct tensor *y = tape_output(b->t, 0);
	struct err err = ERR_INIT;
	double sum = 0;
	size_t i;

	assert_ok(tape_forward(b->t, &err), err);
	for (i = 0; i < (size_t)tensor_count(y); i++)
		sum += (double)weight[i] * ((const float *)y->data)[i];
	return sum;
}

static void check_values(struct made *b, const char *why)
{
	const struct tensor *y = tape_output(b->t, 0);
	struct session *s = NULL;
	struct tensor want;
	struct err err = ERR_INIT;
	size_t i;

	assert_ok(session_new(&s, b->rt, b->m, &(struct session_options){ .threads = 1 }, &err), err);
	assert_ok(session_run(s, &b->in, &want, &err), err);
	assert_true(tensor_same_shape(y, &want));
	for (i = 0; i < (size_t)tensor_count(y); i++)
		if (fabs(tensor_get(y, i) - tensor_get(&want, i)) > 1e-4 * (1 + fabs(tensor_get(&want, i))))
			fail_msg("%s: value %zu is %g, need %g", why, i, tensor_get(y, i),
				 tensor_get(&want, i));
	session_free(s);
}

/* moves each of some numbers and looks; where both sides differ there is a kink, which has no gradient */
static void check_numbers(struct made *b, const char *why, const float *weight, float *x, const float *g,
			  size_t n)
{
	const float step = 2e-3f;
	const double here = objective(b, weight);
	size_t i, seen = 0, kinks = 0;

	for (i = 0; i<n; i += n> 40 ? 1 + n / 40 : 1, seen++) {
		const float was = x[i];
		double up, down, slope;

		x[i] = was + step;
		up = (objective(b, weight) - here) / (double)step;
		x[i] = was - step;
		down = (here - objective(b, weight)) / (double)step;
		x[i] = was;
		slope = (up + down) / 2;
		if (fabs(up - down) > 0.02 * (1 + fabs(slope)))
			kinks++;
		else if (fabs(slope - (double)g[i]) > 0.02 * (1 + fabs(slope)))
			fail_msg("%s: gradient %zu is %g, need %g", why, i, (double)g[i], slope);
	}
	if (2 * kinks > seen)
		fail_msg("%s: too many kinks to see anything", why);
}

static void check_gradients(struct made *b, const struct graph *g)
{
	const size_t n = (size_t)tensor_count(tape_output(b->t, 0));
	float *weight = xcalloc(n, sizeof(*weight));
	struct err err = ERR_INIT;
	double some = 0;
	size_t i, k;

	for (i = 0; i < n; i++)
		weight[i] = (float)rng_normal(&rng);
	objective(b, weight);
	memcpy(tape_output_gradient(b->t, 0), weight, n * sizeof(float));
	assert_ok(tape_backward(b->t, &err), err);
	for (k = 0; k < 3 && g->learns[k]; k++) {
		struct tape_layer *l = tape_layer(b->t, g->learns[k]);
		const size_t weights = layer_weights(&l->l), outputs = layer_outputs(&l->l);
		float *dw = xcalloc(weights, sizeof(*dw)), *db = xcalloc(outputs, sizeof(*db));

		memcpy(dw, l->math->dw, weights * sizeof(float));
		memcpy(db, l->math->db, outputs * sizeof(float));
		for (i = 0; i < weights; i++)
			some += fabs((double)dw[i]);
		check_numbers(b, g->why, weight, l->math->w, dw, weights);
		check_numbers(b, g->why, weight, l->shift, db, outputs);
		free(dw);
		free(db);
	}
	if (!(some > 1e-3))
		fail_msg("%s: no gradient to speak of", g->why);
	free(weight);
}

/* a is 2x6x4; y is made from it */
#define ROWS(why, text, opset)                                                                               \
	{                                                                                                    \
		why, "2x6x5", "w = 5x4; a = MatMul(x, w); " text, { "a" }, opset                             \
	}
/* a is 2x4x6x6 */
#define PICTURE(why, text, opset)                                                                            \
	{                                                                                                    \
		why, "2x3x6x6", "w = 4x3x3x3; a = Conv(x, w) pads=1,1,1,1; " text, { "a" }, opset            \
	}

static const struct graph graphs[] = {
	ROWS("Relu", "y = Relu(a)", 0),
	ROWS("LeakyRelu", "y = LeakyRelu(a) alpha=0.2", 0),
	ROWS("Clip", "l = -0.2; h = 0.3; y = Clip(a, l, h)", 0),
	ROWS("Clip with attributes", "y = Clip(a) min=-0.3 max=0.5", 10),
	ROWS("Sigmoid", "y = Sigmoid(a)", 0),
	ROWS("HardSigmoid", "y = HardSigmoid(a) alpha=0.3", 0),
	ROWS("HardSwish", "k = 4.0; s = Mul(a, k); y = HardSwish(s)", 0),
	ROWS("Tanh", "y = Tanh(a)", 0),
	ROWS("Erf", "y = Erf(a)", 0),
	ROWS("Gelu", "y = Gelu(a)", 20),
	ROWS("Sqrt", "k = 9.0; s = Add(a, k); y = Sqrt(s)", 0),
	ROWS("Exp", "y = Exp(a)", 0),
	ROWS("Reciprocal", "k = 9.0; s = Add(a, k); y = Reciprocal(s)", 0),
	ROWS("Neg", "y = Neg(a)", 0),
	ROWS("Pow", "k = 9.0; s = Add(a, k); e = 1.5; y = Pow(s, e)", 0),
	ROWS("Pow 2", "e = 2.0; y = Pow(a, e)", 0),
	ROWS("Add, broadcast", "k = 6x1; y = Add(k, a)", 0),
	ROWS("Sum, of two", "k = 6x1; y = Sum(k, a)", 0),
	ROWS("Sub, broadcast on both sides", "m = ReduceMean(a) axes=1,-1; y = Sub(m, a)", 13),
	ROWS("Mul with itself", "y = Mul(a, a)", 0),
	ROWS("Div", "k = 4; n = 9.0; d = Add(a, n); y = Div(k, d)", 0),
	ROWS("Div of what learns", "k = 9.0; d = Add(a, k); y = Div(a, d)", 0),
	ROWS("ReduceMean without its dimension", "y = ReduceMean(a) axes=1,2 keepdims=0", 13),
	ROWS("ReduceMean, axes as input", "k = [-1]; y = ReduceMean(a, k)", 18),
	ROWS("ReduceSum", "k = [1]; y = ReduceSum(a, k) keepdims=0", 0),
	ROWS("ReduceMean of all", "y = ReduceMean(a)", 13),
	ROWS("Softmax", "y = Softmax(a)", 0),
	ROWS("Softmax along another axis", "y = Softmax(a) axis=1", 0),
	ROWS("Softmax of old", "y = Softmax(a)", 11),
	ROWS("LayerNormalization", "s = 4; b = 4; y = LayerNormalization(a, s, b)", 0),
	ROWS("Transpose", "t = Transpose(a) perm=2,0,1; k = 4x2x6; y = Mul(t, k)", 0),
	ROWS("Reshape", "k = [3,-1,2]; t = Reshape(a, k); c = 3x8x2; y = Mul(t, c)", 0),
	ROWS("Reshape to what is computed",
	     "s = Shape(a); i = [1]; j = [0]; d = Gather(s, i); e = [-1]; k = Concat(d, e) axis=0;"
	     "t = Reshape(a, k); c = 6x8; y = Mul(t, c)",
	     0),
	ROWS("Flatten, Unsqueeze, Squeeze",
	     "f = Flatten(a); k = [0]; u = Unsqueeze(f, k); q = Squeeze(u, k); c = 2x24; y = Mul(q, c)", 0),
	ROWS("Slice", "f = [1]; t = [5]; d = [1]; s = Slice(a, f, t, d); c = 2x4x4; y = Mul(s, c)", 0),
	ROWS("Gather", "i = [3,0,3]; s = Gather(a, i) axis=1; c = 2x3x4; y = Mul(s, c)", 0),
	ROWS("Split", "k = [1,3]; p, q = Split(a, k) axis=2; y = Mul(p, q)", 0),
	ROWS("Concat", "c = 2x6x3; s = Tanh(a); k = Concat(a, c, s) axis=2; d = 2x6x11; y = Mul(k, d)", 0),
	PICTURE("Relu on pictures", "y = Relu(a)", 0),
	PICTURE("BatchNormalization",
		"s = 4; b = 4; m = 4; v = 4; q = Mul(v, v); y = BatchNormalization(a, s, b, m, q)", 0),
	PICTURE("MaxPool", "y = MaxPool(a) kernel_shape=3,3 strides=2,2 pads=1,1,1,1", 0),
	PICTURE("AveragePool", "y = AveragePool(a) kernel_shape=3,2 strides=2,1 pads=1,1,1,0", 0),
	PICTURE("AveragePool with its padding",
		"y = AveragePool(a) kernel_shape=3,3 pads=1,1,1,1 count_include_pad=1", 0),
	PICTURE("GlobalAveragePool", "y = GlobalAveragePool(a)", 0),
	{ "one dimension",
	  "2x3x9",
	  "w = 4x3x3; b = 4; a = Conv(x, w, b); p = MaxPool(a) kernel_shape=2, strides=2,; y = Tanh(p)",
	  { "a" },
	  0 },
	{ "Gemm after Gemm",
	  "5x6",
	  "w = 4x6; b = 4; a = Gemm(x, w, b) transB=1; r = Tanh(a); v = 4x3; b2 = 3; y = Gemm(r, v, b2)",
	  { "a", "y" },
	  0 },
	{ "a layer that does not learn on the way",
	  "5x6",
	  "w = 6x4; a = MatMul(x, w); v = 4x3; y = MatMul(a, v)",
	  { "a" },
	  0 },
	{ "attention",
	  "2x6x5",
	  "w = 5x4; a = MatMul(x, w); v = 5x4; b = MatMul(x, v); t = Transpose(b) perm=0,2,1; s = MatMul(a, "
	  "t);"
	  "p = Softmax(s); y = MatMul(p, a)",
	  { "a", "b" },
	  0 },
	{ "a constant on the left",
	  "2x6x5",
	  "w = 5x4; a = MatMul(x, w); l = 3x6; y = MatMul(l, a)",
	  { "a" },
	  0 },
	{ "a residual block: convolutions in groups, strides, a shortcut",
	  "2x4x7x7",
	  "w = 8x4x3x3; a = Conv(x, w) pads=1,1,1,1 strides=2,2; r = Sigmoid(a); v = 8x1x3x3;"
	  "b = Conv(r, v) group=8 pads=1,1,1,1; u = 8x4x1x1; c = Conv(x, u) strides=2,2; y = Add(b, c)",
	  { "a", "b", "c" },
	  0 },
};

static void test_ops(void **state)
{
	struct made b;
	size_t i;

	(void)state;
	rng_seed(&rng, 11);
	for (i = 0; i < ARRAY_LEN(graphs); i++) {
		struct err err = ERR_INIT;

		make(&b, &graphs[i]);
		if (!b.t)
			fail_msg("%s: %s", graphs[i].why, b.why);
		assert_ok(tape_forward(b.t, &err), err);
		check_values(&b, graphs[i].why);
		check_gradients(&b, &graphs[i]);
		made_release(&b);
	}
}

/* a pair of Q and DQ, of unsigned integers from 0 on: the gradient passes where nothing is cut off, by a loop of our own */
static void test_straight_through(void **state)
{
	static const struct graph g = {
		NULL,
		"9x5",
		"w = 5x4; a = MatMul(x, w); s = 0.002; q = QuantizeLinear(a, s); y = DequantizeLinear(q, s)",
		{ "a" },
		0
	};
	struct made b;
	struct err err = ERR_INIT;
	const float *a, *x;
	float *out;
	size_t r, o, k, passed = 0;

	(void)state;
	rng_seed(&rng, 12);
	make(&b, &g);
	assert_non_null(b.t);
	assert_ok(tape_forward(b.t, &err), err);
	check_values(&b, "Q and DQ");
	a = tape_value(b.t, "a")->data;
	x = b.in.data;
	out = tape_output_gradient(b.t, 0);
	for (k = 0; k < 36; k++)
		out[k] = (float)rng_normal(&rng);
	assert_ok(tape_backward(b.t, &err), err);
	for (o = 0; o < 4; o++)
		for (k = 0; k < 5; k++) {
			double want = 0;

			for (r = 0; r < 9; r++)
				if (a[r * 4 + o] > -0.001f && a[r * 4 + o] < 0.511f) {
					want += (double)(out[r * 4 + o] * x[r * 5 + k]);
					passed += k == 0;
				}
			assert_float_equal(tape_layer(b.t, "a")->math->dw[o * 5 + k], want, 1e-4);
		}
	assert_true(passed > 5 && passed < 31);
	made_release(&b);
}

/* what has no gradient is named */
static void test_left(void **state)
{
	static const struct {
		struct graph g;
		const char *why;
	} left[] = {
		{ { NULL, "2x5", "w = 5x4; a = MatMul(x, w); y = Sign(a)", { "a" }, 0 },
		  "Sign has no gradient here" },
		{ { NULL, "2x5", "w = 5x4; a = MatMul(x, w); e = MatMul(x, w); y = Pow(a, e)", { "a" }, 0 },
		  "Pow has an exponent that is computed" },
		{ { NULL, "5x2", "w = 5x4; y = Gemm(x, w) transA=1", { "y" }, 0 },
		  "Gemm is transposed or multiplied" },
	};
	struct made b;
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_LEN(left); i++) {
		make(&b, &left[i].g);
		assert_null(b.t);
		assert_string_equal(b.why, left[i].why);
		made_release(&b);
	}
}

/* how far apart the tape and the runtime are in one block, relative to the values; and that few differ by much */
static void check_block(struct bed *b, struct model *m, const struct block *at)
{
	const struct finetune o = finetune_defaults(FINETUNE_ADAROUND);
	char why[TAPE_WHY];
	struct part p;
	struct part_session s;
	struct tape *t = NULL;
	struct tensor want, *in;
	struct err err = ERR_INIT;
	double far = 0, all = 0;
	size_t i, j;

	assert_ok(part_open(&p, &b->source,
			    &(struct part_of){ (size_t)at->first, (size_t)at->last + 1, &o, true }, m, &err),
		  err);
	assert_ok(part_session_open(&s, &p, m, &err), err);
	in = xcalloc(s.m->n_inputs + 1, sizeof(*in));
	for (i = 0; i < s.m->n_inputs; i++)
		for (j = 0; j < p.n_inputs; j++)
			if (strcmp(s.m->inputs[i].name, s.inputs[j]) == 0)
				in[i] = p.v[0].in[j];
	assert_ok(tape_new(&t, &(struct tape_of){ b->rt, s.m, in, NULL, 0 }, why, &err), err);
	if (!t)
		fail_msg("nodes %d to %d: %s", at->first, at->last, why);
	assert_ok(tape_forward(t, &err), err);
	assert_ok(part_run(&p, &s, 0, &want, &err), err);
	assert_true(tensor_same_shape(tape_output(t, 0), &want));
	for (i = 0; i < (size_t)tensor_count(&want); i++) {
		const double d = tensor_get(tape_output(t, 0), i) - tensor_get(&want, i);

		far += d * d;
		all += tensor_get(&want, i) * tensor_get(&want, i);
	}
	if (!(far < 1e-5 * all))
		fail_msg("nodes %d to %d: off by %g of %g", at->first, at->last, far, all);
	tape_free(t);
	free(in);
	part_session_close(&s);
	part_close(&p);
}

/* all blocks of a quantized model */
static void check_blocks(struct bed *b)
{
	struct block *blocks;
	bool *wanted = xcalloc(b->s->ops.n, sizeof(*wanted));
	struct model *m = NULL;
	struct err err = ERR_INIT;
	size_t i, n;

	for (i = 0; i < b->s->ops.n; i++)
		wanted[i] = b->s->ops.v[i].rule && b->s->ops.v[i].rule->weight == 1;
	n = block_list(b->s, wanted, &blocks);
	assert_ok(quantize_rounded(&b->source, &b->plan, NULL, NULL, &m, &err), err);
	for (i = 0; i < n; i++)
		check_block(b, m, &blocks[i]);
	model_free(m);
	free(blocks);
	free(wanted);
}

static void test_blocks(void **state)
{
	static const char *const models[] = { "cnn", "mobilenet", "resnet_v2", "vit" };
	const char *folder = getenv("FETTLE_MODELS") ? getenv("FETTLE_MODELS") : "../shared/models";
	struct stat at;
	struct bed b;
	size_t i, seen = 0;

	(void)state;
	for (i = 0; i < ARRAY_LEN(models); i++) {
		char *path = xstrfmt("%s/%s.onnx", folder, models[i]),
		     *data = xstrfmt("%s/cifar10_calib.npz", folder);

		if (stat(path, &at) == 0 && stat(data, &at) == 0) {
			bed_load(&b, path, data, 16);
			check_blocks(&b);
			bed_close(&b);
			seen++;
		}
		free(path);
		free(data);
	}
	if (!seen) {
		print_message("SKIPPED: no models in %s, and FETTLE_MODELS is not set\n", folder);
		skip();
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_ops),
					    cmocka_unit_test(test_straight_through),
					    cmocka_unit_test(test_left), cmocka_unit_test(test_blocks) };

	return cmocka_run_group_tests(tests, begin, end);
}
