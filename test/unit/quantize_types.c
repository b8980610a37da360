/* Sixteen bits and power-of-two scales throughout: every pair and every weight of the model that is made, and how close
 * it stays to fp32. */
#include "unit/quantize.h"

#include <math.h>

#include "quantize/weights.h"

static struct runtime *rt;
static char path[] = "/tmp/fettle-types.XXXXXX";
#define EXAMPLE "examples/fashion_plain.onnx" /* whose first bias is too large for the finest scales */

static const char body[] = "w1 = 8x4x3x3; b1 = 8; a = Conv(x, w1, b1) pads=1,1,1,1; r = Relu(a); "
			   "m = MaxPool(r) kernel_shape=2,2; w2 = 8x8x3x3; c = Conv(m, w2); k = 8x1x1; "
			   "d = Add(c, k); f = Flatten(d); v = 4232x10; y = Gemm(f, v)";

/* the scales of the model's Q and DQ; in biases too, whose scale is the product of two others */
static void check_scales(struct model *m, const char *why)
{
	struct err err = ERR_INIT;
	size_t i, k, n = 0;

	for (i = 0; i < m->nodes.n; i++) {
		const struct node *node = m->nodes.v[i];
		struct init *scale;

		if (strcmp(node->op, "QuantizeLinear") != 0 && strcmp(node->op, "DequantizeLinear") != 0)
			continue;
		scale = model_init(m, node->in[1]);
		assert_non_null(scale);
		assert_ok(model_weight(m, scale, &err), err);
		for (k = 0; k < (size_t)tensor_count(&scale->t); k++, n++) {
			double x = log2(tensor_get(&scale->t, k));

			if (x != rint(x))
				fail_msg("%s: scale %.9g of %s is no power of two", why,
					 tensor_get(&scale->t, k), node->in[0]);
		}
	}
	assert_true(n > 10);
}

/* quantizes a model with one setting for all; gives the signal to noise ratio in dB */
static double make(const char *model, const struct qplan_defaults *d, bool pow2, const char *why)
{
	struct subject *s = NULL;
	struct seen seen = { .n = 0 };
	struct qplan plan = QPLAN_INIT;
	struct model *q = NULL;
	const char **values;
	struct err err = ERR_INIT;
	double db;
	size_t n;

	assert_ok(subject_open(&s, rt, model, &err), err);
	qplan_default(&plan, &s->ops, &s->g, d);
	n = quantizer_values(&s->g, &s->ops, &plan, &values);
	observe(&seen, rt, s, values, n);
	free(values);
	assert_ok(quantize_by(s, &plan, seen_range, NULL, &seen, &q, &err), err);
	assert_true(plan.ops[0].mode == OP_STATIC);
	if (pow2)
		check_scales(q, why);
	db = compare(rt, s->m, q);
	model_free(q);
	qplan_release(&plan);
	seen_release(&seen);
	subject_free(s);
	return db;
}

static struct qplan_defaults defaults(enum dtype act, enum dtype weight, enum scheme scheme,
				      enum range_algorithm algorithm)
{
	const struct cpu here = cpu_detect();
	struct qplan_defaults d = qplan_defaults(&here);

	d.act.dtype = act;
	d.weight.dtype = weight;
	d.act.scheme = d.weight.scheme = scheme;
	d.act.algorithm = algorithm;
	if (qsetting_is_pow2(&d.act))
		d.weight.algorithm = algorithm;
	return d;
}

static void all_types(void **state)
{
	static const enum dtype types[] = { DT_U8, DT_S8, DT_U16, DT_S16 };
	size_t a, w, s;

	(void)state;
	for (a = 0; a < 4; a++)
		for (w = 0; w < 4; w++)
			for (s = 0; s < 2; s++) {
				struct qplan_defaults d = defaults(
					types[a], types[w], s ? SCHEME_SYM : SCHEME_ASYM, RANGE_MINMAX);
				double db = make(path, &d, false, "types");
				/* some 6 dB per bit, less for what maxima leave unused */
				double want = a >= 2 && w >= 2 ? 70 : 25;

				if (!(db > want))
					fail_msg("activations %s, weights %s, %s: %g dB, want %g",
						 dtype_name(types[a]), dtype_name(types[w]),
						 s ? "sym" : "asym", db, want);
			}
}

/* ops without a kernel for the types stay in QDQ, and the model loads */
static void all_types_in_qoperator_format(void **state)
{
	static const enum dtype types[] = { DT_U8, DT_S8, DT_U16, DT_S16 };
	size_t a, w;

	(void)state;
	for (a = 0; a < 4; a++)
		for (w = 0; w < 4; w++) {
			struct qplan_defaults d = defaults(types[a], types[w], SCHEME_ASYM, RANGE_MINMAX);

			d.weight.scheme = types[w] == DT_S8 || types[w] == DT_S16 ? SCHEME_SYM : SCHEME_ASYM;
			d.format = FORMAT_QOPERATOR;
			assert_true(make(path, &d, false, "types") > 25);
		}
}

static void large_biases(void **state)
{
	static const enum range_algorithm algorithms[] = { RANGE_MINMAX, RANGE_NONOVERFLOW, RANGE_MINMSE };
	static const enum dtype types[] = { DT_U8, DT_S8, DT_U16, DT_S16 };
	size_t i, k, s;

	(void)state;
	for (i = 0; i < ARRAY_LEN(algorithms); i++)
		for (k = 0; k < 4; k++)
			for (s = 0; s < 2; s++) {
				struct qplan_defaults d = defaults(
					types[k], types[k], s ? SCHEME_SYM : SCHEME_ASYM, algorithms[i]);

				assert_true(make(EXAMPLE, &d, i > 0, "large biases") > 5);
			}
}

static void powers_of_two(void **state)
{
	static const struct {
		const char *why;
		enum dtype act, weight;
		enum scheme scheme;
		enum range_algorithm algorithm;
		double db;
	} cases[] = {
		{ "nothing is clipped, symmetric", DT_S8, DT_S8, SCHEME_SYM, RANGE_NONOVERFLOW, 18 },
		{ "nothing is clipped, asymmetric", DT_U8, DT_U8, SCHEME_ASYM, RANGE_NONOVERFLOW, 18 },
		{ "least error, symmetric", DT_S8, DT_S8, SCHEME_SYM, RANGE_MINMSE, 18 },
		{ "least error, asymmetric", DT_U8, DT_U8, SCHEME_ASYM, RANGE_MINMSE, 18 },
		{ "sixteen bits", DT_S16, DT_S16, SCHEME_SYM, RANGE_NONOVERFLOW, 65 },
	};
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_LEN(cases); i++) {
		struct qplan_defaults d =
			defaults(cases[i].act, cases[i].weight, cases[i].scheme, cases[i].algorithm);
		double db = make(path, &d, true, cases[i].why);

		if (!(db > cases[i].db))
			fail_msg("%s: %g dB, want %g", cases[i].why, db, cases[i].db);
	}
}

/* the power of two with the least error is that of all powers of two, tried one by one */
static void least_error_of_weights(void **state)
{
	struct qsetting s = { .dtype = DT_S8, .scheme = SCHEME_SYM, .algorithm = RANGE_MINMSE };
	struct tensor t = { .dtype = DT_F32, .rank = 1, .dims = { 500 } };
	struct err err = ERR_INIT;
	float x[500];
	struct rng r;
	int trial, e;
	size_t i;

	(void)state;
	rng_seed(&r, 5);
	t.data = x;
	for (trial = 0; trial < 20; trial++) {
		double least = INFINITY, got, max = 0;

		for (i = 0; i < 500; i++) {
			x[i] = (float)(rng_normal(&r) * (i ? 1 : 3 + trial)); /* the first one far out */
			max = fmax(max, fabs(x[i]));
		}
		for (e = -8; e <= 0; e++) {
			double scale = ldexp(1, e), sum = 0;

			for (i = 0; i < 500; i++) {
				double q = fmin(fmax(rint(x[i] / scale), -127), 127);

				sum += (q * scale - x[i]) * (q * scale - x[i]);
			}
			if (scale / 2 * 127 < max) /* wider than it takes is never better */
				least = fmin(least, sum);
		}
		assert_ok(quantization_error(&t, &s, 0, &got, &err), err);
		assert_true(fabs(got - least) <= 1e-6 * least);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(all_types),
		cmocka_unit_test(all_types_in_qoperator_format),
		cmocka_unit_test(large_biases),
		cmocka_unit_test(powers_of_two),
		cmocka_unit_test(least_error_of_weights),
	};
	struct err err = ERR_INIT;
	int code;

	if (runtime_new(&rt, &err) || mkstemp(path) < 0)
		return 1;
	build_model(path, 13, "x:2x4x26x26", body, "y");
	code = cmocka_run_group_tests(tests, NULL, NULL);
	unlink(path);
	runtime_free(rt);
	return code;
}
