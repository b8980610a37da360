/* Whatever the bytes are: a configuration or a message, in little time and memory. */
#include "unit.h"

#include "base/rng.h"
#include "config/config.h"
#include "config/yaml.h"

static const char sample[] =
	"version: 1.0\n"
	"model: {name: \"n\\u00e9t\", framework: onnxrt_qdq, outputs: 'a, b'}\n"
	"quantization:\n"
	"  approach: static\n"
	"  recipes: {smooth_quant: true, smooth_quant_args: {alpha: [0.5, 0.6]}}\n"
	"  calibration:\n"
	"    sampling_size: 1, 2\n"
	"    dataloader:\n"
	"      dataset: {ImageFolder: {root: x, other: [1, {a: b}]}}\n"
	"      transform: &t\n"
	"        Resize: {size: 16}\n"
	"        Normalize: {mean: [0.5, 0.25, 0.125], std: 2}\n"
	"  model_wise: {weight: &w {dtype: [int8, fp32], scheme: sym}}\n"
	"  op_wise: {'conv1': {weight: *w, activation: {algorithm: minmax, granularity: per_tensor}}}\n"
	"evaluation:\n"
	"  accuracy: {metric: {topk: 1}, dataloader: {transform: *t}}\n"
	"tuning:\n"
	"  strategy: {name: tpe, gamma: 0.2}\n"
	"  accuracy_criterion: {relative: 1%}\n"
	"  multi_objectives: {objective: [accuracy, performance], weight: [1, 2]}\n"
	"  exit_policy: {timeout: 5}\n"
	"  workspace: \"a\n"
	"    folded\"\n";

/* What loads prints, and what is printed loads. */
static bool try(const char *text)
{
	struct config *c = NULL, *again = NULL;
	struct err err = ERR_INIT;
	struct str printed = STR_INIT;
	bool ok = !config_parse(&c, text, "c.yaml", &err);

	if (!ok) {
		assert_null(c);
		assert_int_not_equal(err.msg[0], 0);
		return false;
	}
	config_print(c, &printed);
	if (config_parse(&again, printed.s, "c.yaml", &err))
		fail_msg("%s\nfrom\n%s\nprinted as\n%s", err.msg, text, printed.s);
	config_free(again);
	config_free(c);
	str_release(&printed);
	return true;
}

static void mutate(struct rng *r, char *text, size_t n)
{
	static const char salt[] = "{}[]:,&*!|>'\"%@`#-? \n\t~0159aezA\x80\xc3";
	size_t changes = 1 + (size_t)rng_below(r, 4);

	while (changes--) {
		size_t at = (size_t)rng_below(r, n), from = (size_t)rng_below(r, n), length;

		switch (rng_below(r, 4)) {
		case 0:
			text[at] = (char)(1 + rng_below(r, 255));
			break;
		case 1:
			text[at] = salt[rng_below(r, sizeof(salt) - 1)];
			break;
		case 2: /* copy a piece over another */
			length = (size_t)rng_below(r, 20);
			if (length > n - (at > from ? at : from))
				length = n - (at > from ? at : from);
			memmove(text + at, text + from, length);
			break;
		default: /* or a number by another */
			text[at] = (char)('0' + rng_below(r, 10));
			break;
		}
	}
}

static void test_mutations(void **state)
{
	enum { ROUNDS = 4000 };
	char text[sizeof(sample)];
	struct rng r;
	int i, ok = 0;

	(void)state;
	assert_true(try(sample));
	rng_seed(&r, 1);
	for (i = 0; i < ROUNDS; i++) {
		memcpy(text, sample, sizeof(text));
		mutate(&r, text, sizeof(text) - 1);
		if (rng_below(&r, 8) == 0)
			text[rng_below(&r, sizeof(text) - 1)] = '\0';
		ok += try(text);
	}
	/* both happen */
	assert_in_range(ok, 50, ROUNDS - 50);
}

/* Values from flags, too. */
static void test_set_mutations(void **state)
{
	static const char *const keys[] = { "quantization.op_wise",
					    "quantization.recipes.smooth_quant_args",
					    "quantization.calibration.dataloader",
					    "evaluation.accuracy.metric",
					    "tuning",
					    "tuning.workspace.path",
					    "model.inputs" };
	static const char value[] = "{transform: {Resize: {size: 5}}, alpha: [0.5], topk: 1, strategy: a}";
	struct config *c = config_new();
	struct str printed = STR_INIT;
	struct rng r;
	int i;

	(void)state;
	rng_seed(&r, 2);
	for (i = 0; i < 3000; i++) {
		char text[sizeof(value)];
		struct err err = ERR_INIT;

		memcpy(text, value, sizeof(text));
		mutate(&r, text, sizeof(text) - 1);
		if (config_set(c, keys[rng_below(&r, sizeof(keys) / sizeof(keys[0]))], text, "--set", &err))
			assert_int_not_equal(err.msg[0], 0);
	}
	config_print(c, &printed);
	str_release(&printed);
	config_free(c);
}

/* A thousand million laughs: each line ten times the one before. */
static void test_alias_bomb(void **state)
{
	struct str yaml = STR_INIT;
	struct config *c = NULL;
	struct err err = ERR_INIT;
	int i, j;

	(void)state;
	str_addf(&yaml, "quantization: {calibration: {dataloader: {dataset: {Laughs: {\n");
	str_addf(&yaml, "a0: &a0 [ha, ha, ha, ha, ha, ha, ha, ha, ha, ha],\n");
	for (i = 1; i < 30; i++) {
		str_addf(&yaml, "a%d: &a%d [", i, i);
		for (j = 0; j < 10; j++)
			str_addf(&yaml, "*a%d,", i - 1);
		str_addf(&yaml, "],\n");
	}
	str_addf(&yaml, "}}}}}\n");
	assert_int_equal(config_parse(&c, yaml.s, "c.yaml", &err), FETTLE_INVALID);
	assert_string_equal(err.msg, "c.yaml:6:26: too large: more than 50000 nodes");
	str_release(&yaml);
}

static void test_limits(void **state)
{
	struct str yaml = STR_INIT;
	struct config *c = NULL;
	struct err err = ERR_INIT;
	int i;

	(void)state;
	/* deep */
	for (i = 0; i < 2000; i++)
		str_addf(&yaml, "[");
	assert_int_equal(config_parse(&c, yaml.s, "c.yaml", &err), FETTLE_INVALID);
	str_release(&yaml);
	str_addf(&yaml, "tuning:\n");
	for (i = 1; i < 100; i++)
		str_addf(&yaml, "%*sa:\n", i, "");
	assert_int_equal(config_parse(&c, yaml.s, "c.yaml", &err), FETTLE_INVALID);
	assert_non_null(strstr(err.msg, "too deep: more than 50 levels"));
	str_release(&yaml);
	/* wide */
	str_addf(&yaml, "model: {inputs: [");
	for (i = 0; i < 200000; i++)
		str_addf(&yaml, "a,");
	str_addf(&yaml, "]}\n");
	assert_int_equal(config_parse(&c, yaml.s, "c.yaml", &err), FETTLE_INVALID);
	assert_non_null(strstr(err.msg, "too large: more than 50000 nodes"));
	str_release(&yaml);
	/* long */
	for (i = 0; i < 20000; i++)
		str_addf(&yaml, "# %0100d\n", i);
	assert_int_equal(config_parse(&c, yaml.s, "c.yaml", &err), FETTLE_INVALID);
	assert_string_equal(err.msg,
			    "cannot read c.yaml: 2060000 bytes, a configuration has at most 1048576");
	str_release(&yaml);
	/* an alias inside its own anchor */
	assert_int_equal(config_parse(&c, "model: &a {name: *a}", "c.yaml", &err), FETTLE_INVALID);
	assert_string_equal(err.msg, "c.yaml:1:18: unknown alias '*a'");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_mutations),
		cmocka_unit_test(test_set_mutations),
		cmocka_unit_test(test_alias_bomb),
		cmocka_unit_test(test_limits),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
