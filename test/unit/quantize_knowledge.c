/* Knowledge is passed: quantize() reads it, lists what it needs of it, and refuses to go without. */
#include "unit/quantize.h"
#include "unit/place.h"

static const char body[] = "w0 = 8x4x3x3; a = Conv(x, w0); b = Relu(a); w1 = 4x8x3x3; y = Conv(b, w1)";

static struct subject *open_subject(struct qplan *plan)
{
	struct subject *s = NULL;
	struct qplan_defaults d;
	struct err err = ERR_INIT;
	char *path = xstrfmt("%s/m.onnx", dir);

	build_model(path, 13, "x:?x4x8x8", body, "y");
	assert_ok(subject_open(&s, rt, path, &err), err);
	free(path);
	d = qplan_defaults(&s->cpu);
	qplan_default(plan, &s->ops, &s->g, &d);
	return s;
}

static void a_range_is_kept_by_value_and_setting(void **state)
{
	const struct qsetting u8 = { .dtype = DT_U8 }, s8 = { .dtype = DT_S8, .scheme = SCHEME_SYM };
	struct statistics *s = statistics_new();
	struct range r = { 0, 0 };

	(void)state;
	statistics_set_range(s, "v", &u8, (struct range){ -1, 2 });
	assert_true(statistics_range(s, "v", &u8, &r));
	assert_true(r.min == -1 && r.max == 2);
	assert_false(statistics_range(s, "v", &s8, &r));
	assert_false(statistics_range(s, "w", &u8, &r));
	statistics_free(s);
}

static void means_are_kept_by_value_and_axis(void **state)
{
	struct statistics *s = statistics_new();
	const double *m;

	(void)state;
	statistics_set_means(s, "v", 1, (double[]){ 1, 2 }, 2);
	m = statistics_means(s, "v", 1, 2);
	assert_non_null(m);
	assert_true(m[0] == 1 && m[1] == 2);
	assert_null(statistics_means(s, "v", 1, 3));
	assert_null(statistics_means(s, "v", -1, 2));
	assert_null(statistics_means(s, "w", 1, 2));
	statistics_free(s);
}

/* With all that quantizer_needs() lists a plan can be carried out; with one range less it cannot, and the error names it. */
static void what_is_listed_is_needed_and_enough(void **state)
{
	struct qplan plan = QPLAN_INIT;
	struct subject *s = open_subject(&plan);
	struct needs needs = NEEDS_INIT;
	struct err err = ERR_INIT;
	size_t without, i;

	(void)state;
	assert_ok(quantizer_needs(s->z, &plan, &needs, &err), err);
	assert_int_equal(needs.ranges.n, 3); /* x, b and y */
	assert_int_equal(needs.means.n, 0);
	assert_false(needs.rounding);
	for (without = 0; without <= needs.ranges.n; without++) {
		struct statistics *values = statistics_new();
		struct model *q = NULL;
		enum fettle_status st;

		for (i = 0; i < needs.ranges.n; i++)
			if (i != without)
				statistics_set_range(values, needs.ranges.v[i].value,
						     &needs.ranges.v[i].setting, (struct range){ 0, 1 });
		st = quantize(s->z, &(struct knowledge){ .values = values }, &plan, &q, &err);
		assert_int_equal(st, without < needs.ranges.n ? FETTLE_INVALID : FETTLE_OK);
		if (st)
			assert_non_null(strstr(err.msg, needs.ranges.v[without].value));
		model_free(q);
		statistics_free(values);
	}
	needs_release(&needs);
	qplan_release(&plan);
	subject_free(s);
}

static void recipes_need_more(void **state)
{
	struct qplan plan = QPLAN_INIT;
	struct subject *s = open_subject(&plan);
	struct needs needs = NEEDS_INIT;
	struct err err = ERR_INIT;

	(void)state;
	plan.recipes.fast_bias_correction = true;
	plan.recipes.finetune = finetune_defaults(FINETUNE_GRAM);
	assert_ok(quantizer_needs(s->z, &plan, &needs, &err), err);
	assert_int_equal(needs.means.n, 2);
	assert_string_equal(needs.means.v[0].value, "x");
	assert_int_equal(needs.means.v[1].channels, 8);
	assert_true(needs.rounding);
	needs_release(&needs);
	qplan_release(&plan);
	subject_free(s);
}

static void static_ops_need_calibration(void **state)
{
	struct qplan plan = QPLAN_INIT;
	struct subject *s = open_subject(&plan);
	struct err err = ERR_INIT;
	struct model *q = NULL;

	(void)state;
	assert_int_equal(quantize(s->z, &(struct knowledge){ .values = NULL }, &plan, &q, &err),
			 FETTLE_INVALID);
	assert_non_null(strstr(err.msg, "needs calibration"));
	plan.n--;
	assert_int_equal(quantizer_needs(s->z, &plan, &(struct needs)NEEDS_INIT, &err), FETTLE_INVALID);
	plan.n++;
	qplan_release(&plan);
	subject_free(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_range_is_kept_by_value_and_setting),
		cmocka_unit_test(means_are_kept_by_value_and_axis),
		cmocka_unit_test(what_is_listed_is_needed_and_enough),
		cmocka_unit_test(recipes_need_more),
		cmocka_unit_test(static_ops_need_calibration),
	};

	return cmocka_run_group_tests(tests, place_open, place_close);
}
