/* The one identity of a plan: its canonical text and hash, in a space of a model's ops and in one of settings. */
#include "unit/unit.h"
#include "unit/build.h"

#include <unistd.h>

#include "base/rng.h"
#include "quantize/subject.h"
#include "space/json_text.h"
#include "space/plan_json.h"
#include "space/settings_tuning.h"

static struct runtime *rt;
static struct subject *s;
static char path[] = "/tmp/fettle-text.XXXXXX";

static const char body[] = "w1 = 8x4x3x3; b1 = 8; a = Conv(x, w1, b1) pads=1,1,1,1; r = Relu(a); m = "
			   "MaxPool(r) kernel_shape=2,2; "
			   "w2 = 8x8x3x3; c = Conv(m, w2); f = Flatten(c); v = 968x10; y = Gemm(f, v)";

enum kind { OF_OPS, OF_SETTINGS, KINDS };

static struct tuning *make(enum kind kind)
{
	static const int64_t samples[] = { 10, 20 };
	static const double alphas[] = { SMOOTH_AUTO, 0.5, 1. / 3 };
	const struct recipe_numbers numbers[RECIPES] = { [RECIPE_smooth_quant] = { alphas,
										   ARRAY_LEN(alphas) } };
	bool fixed[RECIPES] = { true };
	struct op_mask masks[16] = { { .named = false } };
	struct tuning_options o = { .defaults = qplan_defaults(cpu_find("avx2")),
				    .masks = masks,
				    .recipe_fixed = fixed,
				    .numbers = numbers,
				    .when_on = { .finetune = finetune_defaults(FINETUNE_ADAROUND) },
				    .mixed = true,
				    .samples = samples,
				    .n_samples = kind == OF_OPS ? 2 : 1 };

	assert_true(s->ops.n <= ARRAY_LEN(masks));
	if (kind == OF_SETTINGS) {
		masks[0].weight.granularity = MASK_PER_TENSOR;
		masks[0].act.dtype = T_U8 | T_S16 | MASK_FP32;
		o.recipes.keep_last = true;
	}
	return (kind == OF_OPS ? tuning_new : settings_tuning_new)(&s->ops, &s->g, &o);
}

static double random_value(enum setting which, struct rng *r)
{
	size_t n = setting_n_values(which);

	if (n)
		return setting_at(which, rng_below(r, n));
	if (setting_infos[which].type == SETTING_ALPHA && rng_below(r, 4) == 0)
		return SMOOTH_AUTO;
	return setting_infos[which].type == SETTING_INT ? (double)rng_below(r, 1000)
							: rng_unit(r) * pow(10, -(double)rng_below(r, 9));
}

static void random_plan(struct tuning *t, enum kind kind, struct rng *r, struct plan *out)
{
	struct settings v;
	struct err err = ERR_INIT;
	size_t i;

	plan_release(out);
	plan_init(out, &t->space);
	if (kind == OF_SETTINGS) {
		for (i = 0; i < SETTINGS; i++)
			v.v[i] = random_value((enum setting)i, r);
		v.v[SET_OPTIM_ALGORITHM] = (double)(FINETUNE_ADAROUND + rng_below(r, 3));
		settings_normalise(&v);
		assert_ok(settings_plan(&v, &t->space, out, &err), err);
		v = plan_settings(out, &t->space);
	}
	for (i = 0; i < (kind == OF_OPS ? out->n : t->space.n_ops); i++)
		out->choice[i] = (uint16_t)rng_below(r, t->space.v[i].n_options);
}

static void check_canonical(const char *text)
{
	json_t *j = json_loads(text, JSON_REJECT_DUPLICATES, NULL);
	struct str again = STR_INIT;

	assert_non_null(j);
	json_text(j, &again);
	assert_string_equal(again.s, text);
	str_release(&again);
	json_decref(j);
}

/* what the quantizer gets, from the plan and from its text */
static void check_same_model(const struct tuning *t, const struct plan *p, const char *text)
{
	struct qplan a = QPLAN_INIT, b = QPLAN_INIT;
	struct err err = ERR_INIT;
	int64_t samples = 0;
	char *want, *got;

	tuning_qplan(t, p, &a);
	assert_ok(qplan_from_json(&b, &samples, text, "test", &s->ops, &s->g, &err), err);
	assert_int_equal(samples, tuning_samples(t, p));
	want = qplan_to_json(&a, &s->ops, samples);
	got = qplan_to_json(&b, &s->ops, samples);
	assert_string_equal(got, want);
	assert_string_equal(b.root, a.root);
	free(want);
	free(got);
	qplan_release(&a);
	qplan_release(&b);
}

static void texts_read_back(void **state)
{
	struct rng r;
	int kind, round;

	(void)state;
	rng_seed(&r, 7);
	for (kind = 0; kind < KINDS; kind++) {
		struct tuning *t = make((enum kind)kind), *other = make((enum kind)kind);
		struct plan p = PLAN_INIT, q = PLAN_INIT;
		struct err err = ERR_INIT;

		for (round = 0; round < 200; round++) {
			char *text, *again, hash[FINGERPRINT_LEN], same[FINGERPRINT_LEN];

			random_plan(t, (enum kind)kind, &r, &p);
			text = plan_text(&p, &t->space);
			check_canonical(text);
			check_same_model(t, &p, text);
			/* another process numbers numbers in another order */
			assert_ok(plan_read(&q, &other->space, text, "test", &err), err);
			again = plan_text(&q, &other->space);
			assert_string_equal(again, text);
			plan_hash(&p, &t->space, hash);
			plan_text_hash(again, same);
			assert_string_equal(hash, same);
			free(text);
			free(again);
		}
		plan_release(&p);
		plan_release(&q);
		tuning_free(t);
		tuning_free(other);
	}
}

static void equal_plans_have_equal_hashes(void **state)
{
	size_t equal = 0, different = 0, i, k;
	struct rng r;
	int kind, round;

	(void)state;
	rng_seed(&r, 8);
	for (kind = 0; kind < KINDS; kind++) {
		struct tuning *t = make((enum kind)kind);
		struct plan p = PLAN_INIT, q = PLAN_INIT;

		for (round = 0; round < 400; round++) {
			char a[FINGERPRINT_LEN], b[FINGERPRINT_LEN];

			random_plan(t, (enum kind)kind, &r, &p);
			plan_copy(&q, &p);
			for (k = rng_below(&r, 3); k-- > 0;) {
				i = rng_below(&r, p.n);
				q.choice[i] = (uint16_t)rng_below(&r, t->space.v[i].n_options);
			}
			plan_hash(&p, &t->space, a);
			plan_hash(&q, &t->space, b);
			assert_int_equal(strcmp(a, b) == 0, plan_equal(&p, &q, &t->space));
			equal += !strcmp(a, b) && memcmp(p.choice, q.choice, p.n * sizeof(*p.choice));
			different += strcmp(a, b) != 0;
		}
		plan_release(&p);
		plan_release(&q);
		tuning_free(t);
	}
	assert_true(equal > 20 && different > 200); /* some differ only in what has no meaning */
}

/* A parameter has a meaning where that which it depends on has both a meaning and the option. */
static void what_has_no_meaning_is_left_out(void **state)
{
	static const char *const bools[] = { "false", "true" }, *const words[] = { "\"a \\\"b\\\"\"", "1.5" };
	struct param v[] = {
		{ .kind = PARAM_SETTING, .name = "z", .names = bools, .n_options = 2 },
		{ .kind = PARAM_SETTING, .name = "b", .names = bools, .n_options = 2, .when_options = 2 },
		{ .kind = PARAM_RECIPE,
		  .name = "a",
		  .names = words,
		  .n_options = 2,
		  .when = 1,
		  .when_options = 1 },
	};
	struct space_fixed fixed[] = { { "", "x", "1" }, { "recipes", "\n", "[]" } };
	struct space space = { .v = v, .n = 3, .fixed = { fixed, 2, 2 } };
	static const struct {
		uint16_t choice[3];
		const char *text, *hash;
	} rows[] = {
		{ { 0, 1, 1 },
		  "{\"recipes\":{\"\\u000a\":[]},\"settings\":{\"z\":false},\"x\":1}",
		  "de58c2ce32961b867d6d4a77aec98006" },
		{ { 0, 0, 0 },
		  "{\"recipes\":{\"\\u000a\":[]},\"settings\":{\"z\":false},\"x\":1}",
		  "de58c2ce32961b867d6d4a77aec98006" },
		{ { 1, 1, 0 },
		  "{\"recipes\":{\"\\u000a\":[]},\"settings\":{\"b\":true,\"z\":true},\"x\":1}",
		  "96751005cc12759d22f8f2b9296b1c8e" },
		{ { 1, 0, 0 },
		  "{\"recipes\":{\"\\u000a\":[],\"a\":\"a \\\"b\\\"\"},\"settings\":{\"b\":false,\"z\":true},"
		  "\"x\":1}",
		  "8ecbdcac64dfc89ef4d1168d6e774eba" },
	};
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_LEN(rows); i++) {
		struct plan p = { (uint16_t *)(uintptr_t)rows[i].choice, 3 };
		char *text = plan_text(&p, &space), hash[FINGERPRINT_LEN];

		plan_hash(&p, &space, hash);
		assert_string_equal(text, rows[i].text);
		assert_string_equal(hash, rows[i].hash);
		check_canonical(text);
		free(text);
	}
}

static void a_plan_of_another_space_is_refused(void **state)
{
	static const struct {
		const char *from, *to, *words;
	} rows[] = {
		{ "\"calibrate_method\":\"MinMax\"", "\"calibrate_method\":\"MinMix\"", "is no option" },
		{ "\"include_cle\":false", "\"include_cle\":0", "is no option" },
		{ "\"include_sq\":false,", "", "'include_sq' is not there" },
		{ "\"include_sq\":false", "\"include_sq\":false,\"x\":1", "do not fit" },
		{ "\"cpu\":\"avx2\"", "\"cpu\":\"avx512-vnni\"", "do not fit" },
		{ "{", "", "line 1" },
	};
	struct tuning *t = make(OF_SETTINGS);
	struct plan p = PLAN_INIT, q = PLAN_INIT;
	char *text;
	size_t i;

	(void)state;
	plan_init(&p, &t->space);
	text = plan_text(&p, &t->space);
	for (i = 0; i < ARRAY_LEN(rows); i++) {
		const char *at = strstr(text, rows[i].from);
		struct err err = ERR_INIT;
		char *changed;

		assert_non_null(at);
		changed = xstrfmt("%.*s%s%s", (int)(at - text), text, rows[i].to, at + strlen(rows[i].from));
		assert_int_equal(plan_read(&q, &t->space, changed, "p.json", &err), FETTLE_INVALID);
		if (!strstr(err.msg, rows[i].words) || !strstr(err.msg, "cannot read plan p.json"))
			fail_msg("'%s', want '%s'", err.msg, rows[i].words);
		free(changed);
	}
	free(text);
	plan_release(&p);
	tuning_free(t);
}

/* Plans with a root say what their ops were like before; a plan that was tried later has the root of the first. */
static void what_weights_are_rounded_for(void **state)
{
	struct tuning *t = make(OF_OPS);
	struct plan p = PLAN_INIT, fallen = PLAN_INIT;
	struct qplan q = QPLAN_INIT;
	char root[FINGERPRINT_LEN], *text;
	struct rng r;
	size_t i, k, said = 0;

	(void)state;
	rng_seed(&r, 9);
	for (k = 0; k < 50; k++) {
		random_plan(t, OF_OPS, &r, &p);
		for (i = t->space.n_ops; strcmp(t->space.v[i].name, "finetune") != 0; i++)
			;
		p.choice[i] = t->space.v[i].apply;
		space_remember(&t->space, &p);
		plan_copy(&fallen, plan_root(&p, &t->space));
		plan_hash(&fallen, &t->space, root);
		for (i = 0; i < t->space.n_ops; i++)
			if (rng_below(&r, 2))
				fallen.choice[i] = t->space.v[i].fallback;
		if (plan_root(&fallen, &t->space) != plan_root(&p, &t->space))
			continue; /* an earlier one is its root, too */
		text = plan_text(&fallen, &t->space);
		said += strstr(text, "\"before\":{") != NULL;
		check_same_model(t, &fallen, text);
		tuning_qplan(t, &fallen, &q);
		assert_string_equal(q.root, root);
		qplan_release(&q);
		free(text);
	}
	assert_true(said > 10);
	plan_release(&p);
	plan_release(&fallen);
	tuning_free(t);
}

static void numbers_are_exact_and_short(void **state)
{
	static const struct {
		double x;
		const char *text;
	} rows[] = { { 0.1, "0.1" },       { 1. / 3, "0.3333333333333333" },
		     { 1e-300, "1e-300" }, { 5e-324, "4.94065645841247e-324" },
		     { 100, "100" },       { 0.1 + 0.2, "0.30000000000000004" } };
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_LEN(rows); i++) {
		struct str text = STR_INIT;

		setting_name(SET_LEARNING_RATE, rows[i].x, &text);
		assert_string_equal(text.s, rows[i].text);
		assert_true(setting_value(SET_LEARNING_RATE, text.s) == rows[i].x);
		str_release(&text);
	}
	assert_true(isnan(setting_value(SET_LEARNING_RATE, "0.10"))); /* a second name for it */
	assert_true(isnan(setting_value(SET_METHOD, "\"Max\"")));
}

/* Ranges, percentiles and sample counts change numbers, not kernels. */
static void plans_that_run_the_same_kernels(void **state)
{
	struct tuning *t = make(OF_OPS);
	struct plan p = PLAN_INIT, a = PLAN_INIT, b = PLAN_INIT;
	struct rng r;
	size_t i, round, same = 0;

	(void)state;
	rng_seed(&r, 10);
	for (round = 0; round < 500; round++) {
		struct qplan x = QPLAN_INIT, y = QPLAN_INIT;

		random_plan(t, OF_OPS, &r, &p);
		plan_alike(&p, &t->space, &a);
		plan_alike(&a, &t->space, &b);
		assert_true(plan_equal(&a, &b, &t->space)); /* it stands for itself */
		same += plan_equal(&p, &a, &t->space);
		tuning_qplan(t, &p, &x);
		tuning_qplan(t, &a, &y);
		assert_memory_equal(&x.recipes, &y.recipes, offsetof(struct recipes, no_output));
		for (i = 0; i < x.n; i++)
			assert_true(x.ops[i].mode == y.ops[i].mode &&
				    (x.ops[i].mode == OP_FP32 ||
				     (x.ops[i].act.dtype == y.ops[i].act.dtype &&
				      x.ops[i].weight.per_channel == y.ops[i].weight.per_channel)));
		qplan_release(&x);
		qplan_release(&y);
	}
	assert_true(same < 100);
	plan_release(&p);
	plan_release(&a);
	plan_release(&b);
	tuning_free(t);
}

static int begin(void **state)
{
	struct err err = ERR_INIT;
	int fd = mkstemp(path);

	(void)state;
	if (fd < 0 || close(fd) != 0 || runtime_new(&rt, &err))
		return 1;
	build_model(path, 13, "x:?x4x14x14", body, "y");
	return subject_open(&s, rt, path, &err) != FETTLE_OK;
}

static int end(void **state)
{
	(void)state;
	subject_free(s);
	runtime_free(rt);
	return unlink(path);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(texts_read_back),
		cmocka_unit_test(equal_plans_have_equal_hashes),
		cmocka_unit_test(what_has_no_meaning_is_left_out),
		cmocka_unit_test(a_plan_of_another_space_is_refused),
		cmocka_unit_test(what_weights_are_rounded_for),
		cmocka_unit_test(numbers_are_exact_and_short),
		cmocka_unit_test(plans_that_run_the_same_kernels),
	};

	return cmocka_run_group_tests(tests, begin, end);
}
