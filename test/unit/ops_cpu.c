/* The table of CPUs, and that its row for this one is true: what it says saturates, and nothing else, does. */
#include "unit/quantize.h"

#include <math.h>

static struct runtime *rt;
static char path[] = "/tmp/fettle-cpu.XXXXXX";

static void the_table_is_sound(void **state)
{
	struct cpu here = cpu_detect();
	size_t i, k;

	(void)state;
	for (i = 0; i < n_cpus; i++) {
		assert_ptr_equal(cpu_find(cpus[i].name), &cpus[i]);
		assert_true(*cpus[i].summary);
		for (k = 0; k < i; k++)
			assert_true(cpus[k].features != cpus[i].features);
	}
	assert_int_equal(cpus[0].features, 0); /* fits every CPU, so one row always does */
	assert_null(cpu_find("z80"));
	assert_non_null(cpu_find(here.name));
#if defined(__x86_64__)
	assert_true(cpu_find(here.name) >= cpu_find("sse") && cpu_find(here.name) < cpu_find("arm64"));
#elif defined(__aarch64__)
	assert_true(cpu_find(here.name) >= cpu_find("arm64"));
#endif
}

/*
 * Weights are all ones, so int8 ones are all 127, and inputs are mostly above zero point 128: two products do not fit in 16 bits.
 * What saturates is then wrong by far more than the last bit.
 */
#define ONES(shape) "r = " shape "; z = Sub(r, r); k = 1.0; w = Add(z, k); "
static const struct row {
	const char *why, *inputs, *body, *op;
	enum approach approach;
	enum dtype act, weight;
} rows[] = {
#define CONV "x:?x16x9x9", ONES("16x16x3x3") "y = Conv(x, w)", "Conv"
	{ "Conv", CONV, APPROACH_STATIC, DT_U8, DT_S8 },
	{ "Conv with s8 activations", CONV, APPROACH_STATIC, DT_S8, DT_S8 },
	{ "Conv with u8 weights", CONV, APPROACH_STATIC, DT_U8, DT_U8 },
	{ "Conv with 16-bit activations", CONV, APPROACH_STATIC, DT_U16, DT_S8 },
	{ "pointwise Conv", "x:?x16x9x9", ONES("16x16x1x1") "y = Conv(x, w)", "Conv", APPROACH_STATIC, DT_U8,
	  DT_S8 },
	{ "Conv in groups", "x:?x16x9x9", ONES("16x8x3x3") "y = Conv(x, w) group=2", "Conv", APPROACH_STATIC,
	  DT_U8, DT_S8 },
	{ "Conv of few channels", "x:?x3x9x9", ONES("8x3x3x3") "y = Conv(x, w)", "Conv", APPROACH_STATIC,
	  DT_U8, DT_S8 },
#define DEPTHWISE(c, k) "x:?x" c "x12x12", ONES(c "x1x" k) "y = Conv(x, w) group=" c, "Conv"
	{ "depthwise Conv", DEPTHWISE("16", "3x3"), APPROACH_STATIC, DT_U8, DT_S8 },
	{ "depthwise Conv 5x5", DEPTHWISE("32", "5x5"), APPROACH_STATIC, DT_U8, DT_S8 },
	{ "depthwise Conv 2x2", DEPTHWISE("16", "2x2"), APPROACH_STATIC, DT_U8, DT_S8 },
	{ "depthwise Conv of odd channels", DEPTHWISE("7", "3x3"), APPROACH_STATIC, DT_U8, DT_S8 },
	{ "1-d depthwise Conv", "x:?x16x12", ONES("16x1x3") "y = Conv(x, w) group=16", "Conv",
	  APPROACH_STATIC, DT_U8, DT_S8 },
	{ "3-d depthwise Conv", "x:?x16x5x5x5", ONES("16x1x3x3x3") "y = Conv(x, w) group=16", "Conv",
	  APPROACH_STATIC, DT_U8, DT_S8 },
	{ "depthwise Conv with s8 activations", DEPTHWISE("16", "3x3"), APPROACH_STATIC, DT_S8, DT_S8 },
	{ "Conv, two outputs of each input", "x:?x16x9x9", ONES("32x1x3x3") "y = Conv(x, w) group=16", "Conv",
	  APPROACH_STATIC, DT_U8, DT_S8 },
#define GEMM "x:?x64", ONES("64x16") "y = Gemm(x, w)", "Gemm"
	{ "Gemm", GEMM, APPROACH_STATIC, DT_U8, DT_S8 },
	{ "Gemm with u8 weights", GEMM, APPROACH_STATIC, DT_U8, DT_U8 },
#define MATMUL "x:?x8x64", ONES("64x16") "y = MatMul(x, w)", "MatMul"
	{ "MatMul", MATMUL, APPROACH_STATIC, DT_U8, DT_S8 },
	{ "MatMul with u8 weights", MATMUL, APPROACH_STATIC, DT_U8, DT_U8 },
	{ "dynamic MatMul", MATMUL, APPROACH_DYNAMIC, DT_U8, DT_S8 },
	{ "dynamic MatMul, 16 bits as set", MATMUL, APPROACH_DYNAMIC, DT_U16, DT_S8 },
	{ "Gather", "i:#?x4", "r = 16x8; z = Sub(r, r); k = 1.0; w = Add(z, k); y = Gather(w, i)", "Gather",
	  APPROACH_STATIC, DT_U8, DT_S8 },
};

/* the signal-to-noise ratio with these settings; `needs`: what the table says of the op */
static double measure(const struct row *r, bool narrow, bool *needs)
{
	struct subject *s = NULL;
	struct seen seen = { .n = 0 };
	struct qplan plan = QPLAN_INIT;
	struct qplan_defaults d;
	struct model *q = NULL;
	const char **values;
	struct err err = ERR_INIT;
	size_t n, i, at = 0;
	double db;

	build_model(path, 13, r->inputs, r->body, "y");
	assert_ok(subject_open(&s, rt, path, &err), err);
	d = qplan_defaults(&s->cpu);
	d.approach = r->approach;
	d.act.dtype = r->act;
	d.weight.dtype = r->weight;
	d.weight.scheme = r->weight == DT_U8 ? SCHEME_ASYM : SCHEME_SYM;
	qplan_default(&plan, &s->ops, &s->g, &d);
	for (i = 0; i < s->ops.n; i++)
		if (strcmp(s->m->nodes.v[i]->op, r->op) == 0)
			at = i;
	assert_true(plan.ops[at].mode != OP_FP32);
	*needs = plan.ops[at].weight.narrow;
	plan.ops[at].weight.narrow = narrow;
	n = quantizer_values(&s->g, &s->ops, &plan, &values);
	observe(&seen, rt, s, values, n);
	assert_ok(quantize_by(s, &plan, seen_range, NULL, &seen, &q, &err), err);
	db = compare(rt, s->m, q);
	model_free(q);
	qplan_release(&plan);
	seen_release(&seen);
	free(values);
	subject_free(s);
	return db;
}

static void what_saturates_here(void **state)
{
	const struct cpu here = cpu_detect();
	size_t i, wrong = 0;

	(void)state;
	for (i = 0; i < ARRAY_LEN(rows); i++) {
		bool needs, ignored;
		double all = measure(&rows[i], false, &needs), seven = measure(&rows[i], true, &ignored),
		       exact;

		printf("%s: %s %.1f dB with all bits, %.1f with 7, the table says %s\n", here.name,
		       rows[i].why, all, seven, needs ? "it saturates" : "it does not");
		runtime_exact(rt, true);
		exact = measure(&rows[i], false, &ignored);
		runtime_exact(rt, false);
		wrong += needs != (all < seven - 6) || seven < 30 || exact < seven - 1;
	}
	assert_int_equal(wrong, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_table_is_sound),
		cmocka_unit_test(what_saturates_here),
	};
	struct err err = ERR_INIT;
	int code;

	if (runtime_new(&rt, &err) || mkstemp(path) < 0)
		return 1;
	code = cmocka_run_group_tests(tests, NULL, NULL);
	unlink(path);
	runtime_free(rt);
	return code;
}
