/*
 * The noise of an op, put into the fp32 model, gives what a model gives in which that op alone is quantized: for every op
 * of small networks, static and dynamic.
 */
#include "unit/unit.h"
#include "unit/build.h"
#include "unit/know.h"
#include "unit/place.h"

#include "base/rng.h"
#include "tune/own_noise.h"

enum { ROWS = 3, OPS_MAX = 32 };

static const struct {
	const char *body;
	enum op_mode mode;
	const char *inputs;
	size_t row; /* numbers of a sample */
} nets[] = {
	{ "w1 = 8x3x3x3; b1 = 8; c1 = Conv(x, w1, b1) pads=1,1,1,1; r1 = Relu(c1);"
	  "w2 = 8x8x3x3; c2 = Conv(r1, w2) pads=1,1,1,1; a1 = Add(r1, c2); r2 = Relu(a1);"
	  "w3 = 8x8x3x3; c3 = Conv(r2, w3) pads=1,1,1,1; w4 = 8x8x1x1; c4 = Conv(r2, w4); a2 = Add(c3, c4);"
	  "k = Concat(a2, r1) axis=1; w5 = 10x16x3x3; c5 = Conv(k, w5); g = GlobalAveragePool(c5); f = "
	  "Flatten(g);"
	  "w6 = 10x6; b6 = 6; y = Gemm(f, w6, b6)",
	  OP_STATIC, "x:?x3x8x8", 3 * 8 * 8 },
	{ "w1 = 12x16; m1 = MatMul(x, w1); r1 = Relu(m1); w2 = 16x16; m2 = MatMul(r1, w2); a = Add(m2, r1);"
	  "w3 = 16x5; y = MatMul(a, w3)",
	  OP_DYNAMIC, "x:?x12", 12 },
};

static enum fettle_status same_range(void *self, const char *value, const struct qsetting *s,
				     struct range *out, struct err *err)
{
	(void)self;

	(void)s;
	(void)err;
	*out = (struct range){ *value == 'r' ? 0 : -6, 6 }; /* Relu makes r1, r2, … */
	return FETTLE_OK;
}

struct run {
	struct session *s;
	struct tensor out[OPS_MAX];
};

static void run(struct run *r, struct model *m, const struct tensor *in)
{
	struct session_options so = { .threads = 1 };
	struct err err = ERR_INIT;

	assert_ok(session_new(&r->s, rt, m, &so, &err), err);
	assert_ok(session_run(r->s, in, r->out, &err), err);
}

static double distance(const struct tensor *a, const struct tensor *b)
{
	double sum = 0;
	size_t i;

	assert_int_equal(tensor_count(a), tensor_count(b));
	for (i = 0; i < (size_t)tensor_count(a); i++)
		sum += pow(tensor_get(a, i) - tensor_get(b, i), 2);
	return sum;
}

/* op k alone, in both ways */
static void check_op(struct subject *s, const struct qplan *plan, struct model *whole, const size_t *op,
		     size_t n, size_t k, const struct tensor *x, const struct tensor *noise,
		     const char **value)
{
	static const float zero;
	struct tensor in[1 + OPS_MAX];
	struct qplan one = qplan_copy(plan);
	struct model *m = NULL, *noisy = NULL;
	struct run want, got, fp32;
	struct err err = ERR_INIT;
	size_t i;
	int d;

	for (i = 0; i < n; i++)
		one.ops[op[i]].mode = i == k ? plan->ops[op[i]].mode : OP_FP32;
	assert_ok(quantize_by(s, &one, same_range, NULL, NULL, &m, &err), err);
	run(&want, m, x);
	run(&fp32, s->m, x);
	assert_ok(noisy_model(whole->base, value, noise, n, &noisy, &err), err);
	in[0] = *x;
	for (i = 0; i < n; i++) {
		in[1 + i] = noise[i];
		if (i == k)
			continue;
		in[1 + i].data = (void *)(uintptr_t)&zero;
		for (d = 0; d < noise[i].rank; d++)
			in[1 + i].dims[d] = 1;
	}
	run(&got, noisy, in);
	/* sums of floats in another order may round an output to the next integer, here and there */
	if (!(distance(want.out, got.out) <= 0.05 * distance(want.out, fp32.out)))
		fail_msg("op %s: %g off, of %g", s->m->nodes.v[op[k]]->name, distance(want.out, got.out),
			 distance(want.out, fp32.out));
	assert_true(distance(want.out, fp32.out) > 0);
	session_free(want.s);
	session_free(got.s);
	session_free(fp32.s);
	model_free(noisy);
	model_free(m);
	qplan_release(&one);
}

static void as_if_alone(void **state)
{
	struct qplan_defaults d = qplan_defaults(cpu_find("avx512-vnni"));
	struct err err = ERR_INIT;
	size_t net, i, n;
	struct rng r;

	(void)state;
	rng_seed(&r, 3);
	for (net = 0; net < ARRAY_LEN(nets); net++) {
		char *path = xstrfmt("%s/net%zu.onnx", dir, net);
		float *numbers = xcalloc(ROWS * nets[net].row, sizeof(*numbers));
		struct tensor x = { DT_F32, 2, { ROWS, 12 }, numbers };
		struct qplan plan = QPLAN_INIT;
		struct subject *s = NULL;
		struct model *whole = NULL, *alone = NULL;
		const char *value[OPS_MAX];
		size_t op[OPS_MAX];
		struct run noise;

		if (nets[net].mode == OP_STATIC)
			x = (struct tensor){ DT_F32, 4, { ROWS, 3, 8, 8 }, numbers };
		for (i = 0; i < ROWS * nets[net].row; i++)
			numbers[i] = (float)rng_normal(&r);
		build_model(path, 13, nets[net].inputs, nets[net].body, "y");
		assert_ok(subject_open(&s, rt, path, &err), err);
		d.approach = nets[net].mode == OP_STATIC ? APPROACH_STATIC : APPROACH_DYNAMIC;
		qplan_default(&plan, &s->ops, &s->g, &d);
		for (i = n = 0; i < s->ops.n; i++)
			if (s->ops.v[i].rule && s->ops.v[i].rule->kind == OP_COMPUTE &&
			    plan.ops[i].mode == nets[net].mode) {
				op[n] = i;
				value[n++] = s->m->nodes.v[i]->out[0];
			} else {
				plan.ops[i].mode = OP_FP32;
			}
		assert_true(n >= 2 && n < OPS_MAX);
		assert_ok(quantize_by(s, &plan, same_range, NULL, NULL, &whole, &err), err);
		assert_ok(noise_model(whole, value, n, &alone, &err), err);
		run(&noise, alone, &x);
		for (i = 0; i < n; i++)
			check_op(s, &plan, whole, op, n, i, &x, noise.out, value);
		session_free(noise.s);
		model_free(alone);
		model_free(whole);
		qplan_release(&plan);
		subject_free(s);
		free(numbers);
		free(path);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(as_if_alone) };

	return cmocka_run_group_tests(tests, place_open, place_close);
}
