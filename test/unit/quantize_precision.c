/* What the runtime makes of each op, and the reason of each that stays in fp32. */
#include "unit/unit.h"

#include "quantize/precision.h"
#include "unit/build.h"
#include "unit/place.h"

static const char mixed[] =
	"w0 = 8x3x3x3; a = Conv(x, w0) pads=1,1,1,1; b = Relu(a); w1 = 8x8x1x1; c = Conv(b, w1); "
	"d = Add(b, c); t = Tanh(d); m = Mul(d, t); g = GlobalAveragePool(m); f = Flatten(g); "
	"w2 = 8x4; y = Gemm(f, w2)";

struct bed {
	struct subject *s;
	struct qplan plan;
	struct model *q;
	bool integer[16];
};

static void open_bed(struct bed *b, const char *body)
{
	struct err err = ERR_INIT;
	struct statistics *ranges = statistics_new();
	struct qplan_defaults d;
	char *path = xstrfmt("%s/m.onnx", dir);

	build_model(path, 13, "x:1x3x6x6", body, "y");
	assert_ok(subject_open(&b->s, rt, path, &err), err);
	free(path);
	d = qplan_defaults(&b->s->cpu);
	qplan_default(&b->plan, &b->s->ops, &b->s->g, &d);
	assert_ok(made_up_ranges(ranges, b->s, &b->plan, &err), err);
	assert_ok(quantize(b->s->z, &(struct knowledge){ .values = ranges }, &b->plan, &b->q, &err), err);
	assert_ok(integer_ops(b->q, rt, &b->s->ops, b->integer, &err), err);
	model_free(b->q);
	statistics_free(ranges);
}

static void close_bed(struct bed *b)
{
	qplan_release(&b->plan);
	subject_free(b->s);
}

static size_t op_of(const struct bed *b, const char *type, size_t nth)
{
	size_t i;

	for (i = 0; i < b->s->ops.n; i++)
		if (node_is(b->s->m->nodes.v[i], type) && !nth--)
			return i;
	fail_msg("no %s", type);
	return 0;
}

static void all_of_them_are_found(void **state)
{
	struct bed b = { .plan = QPLAN_INIT };
	struct precisions p;

	(void)state;
	open_bed(&b, mixed);
	precisions_init(&p, &(struct plan_origin){ &b.plan, &b.plan, &b.plan }, &b.s->ops, b.integer);
	assert_int_equal(p.v[op_of(&b, "Conv", 0)].is, PRECISION_INT8);
	assert_int_equal(p.v[op_of(&b, "Conv", 1)].is, PRECISION_INT8);
	assert_int_equal(p.v[op_of(&b, "Add", 0)].is, PRECISION_INT8);
	assert_int_equal(p.v[op_of(&b, "Gemm", 0)].is, PRECISION_INT8);
	assert_int_equal(p.v[op_of(&b, "Flatten", 0)].is, PRECISION_NONE);
	assert_int_equal(p.v[op_of(&b, "Tanh", 0)].is, PRECISION_NONE);
	assert_int_equal(p.v[op_of(&b, "Mul", 0)].reason, FP32_NO_GAIN);
	assert_int_equal(p.int8, 4);
	assert_int_equal(p.fp32, 2); /* Mul and GlobalAveragePool */
	assert_true(p.int8_share > 0.999 && p.int8_share < 1.001);
	precisions_release(&p);
	close_bed(&b);
}

static void every_reason(void **state)
{
	struct bed b = { .plan = QPLAN_INIT };
	struct qplan allowed, plan;
	struct precisions p;
	size_t user, search, recipe, lost;

	(void)state;
	open_bed(&b, mixed);
	user = op_of(&b, "Add", 0);
	search = op_of(&b, "Conv", 1);
	recipe = op_of(&b, "Gemm", 0);
	lost = op_of(&b, "Conv", 0);
	allowed = qplan_copy(&b.plan);
	allowed.ops[user].mode = OP_FP32;
	plan = qplan_copy(&allowed);
	plan.ops[search].mode = OP_FP32;
	plan.recipes.keep_last = true;
	memset(b.integer, 0, sizeof(b.integer));
	precisions_init(&p, &(struct plan_origin){ &b.plan, &allowed, &plan }, &b.s->ops, b.integer);
	assert_int_equal(p.v[user].reason, FP32_USER);
	assert_int_equal(p.v[search].reason, FP32_SEARCH);
	assert_int_equal(p.v[recipe].reason, FP32_RECIPE);
	assert_non_null(strstr(p.v[recipe].why, "last_conv_or_matmul"));
	assert_int_equal(p.v[lost].reason, FP32_NOT_FUSED);
	assert_int_equal(p.fp32, 6);
	assert_true(p.int8_share == 0);
	precisions_release(&p);

	/* without a kernel, but with multiply-adds */
	b.s->ops.v[lost].rule = NULL;
	b.s->ops.v[lost].why = "because";
	precisions_init(&p, &(struct plan_origin){ &b.plan, &allowed, &plan }, &b.s->ops, b.integer);
	assert_int_equal(p.v[lost].reason, FP32_NO_KERNEL);
	assert_string_equal(p.v[lost].why, "because");
	precisions_release(&p);
	qplan_release(&allowed);
	qplan_release(&plan);
	close_bed(&b);
}

/* ONNX Runtime has none for ConvTranspose, whatever the approach */
static void a_type_without_a_kernel(void **state)
{
	struct bed b = { .plan = QPLAN_INIT };
	struct precisions p;
	size_t i;

	(void)state;
	open_bed(&b, "w0 = 8x3x3x3; a = Conv(x, w0); w1 = 8x4x2x2; y = ConvTranspose(a, w1) strides=2,2");
	i = op_of(&b, "ConvTranspose", 0);
	precisions_init(&p, &(struct plan_origin){ &b.plan, &b.plan, &b.plan }, &b.s->ops, b.integer);
	assert_int_equal(p.v[i].is, PRECISION_FP32);
	assert_int_equal(p.v[i].reason, FP32_NO_KERNEL);
	assert_string_equal(p.v[i].why, "the runtime has no integer kernel for it");
	precisions_release(&p);
	close_bed(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(all_of_them_are_found),
		cmocka_unit_test(every_reason),
		cmocka_unit_test(a_type_without_a_kernel),
	};

	return cmocka_run_group_tests(tests, place_open, place_close);
}
