/* No setting is ignored in silence: every key of the schema says which commands use it, and the others say that they do not. */
#include "unit/unit.h"

#include "base/str.h"
#include "config/schema.h"

static const char *const commands[] = { "tune",  "search",  "quantize",   "eval",
					"bench", "inspect", "sensitivity" };

static struct str notes; /* one per line */

static void keep_note(void *self, const char *text)
{
	(void)self;
	str_addf(&notes, "%s\n", text);
}

static const char *noted(const struct config *c, unsigned command, const char *strategy)
{
	str_release(&notes);
	config_unused(c, (enum config_command)command, strategy, keep_note, NULL);
	return notes.s ? notes.s : "";
}

/* a value that the key takes */
static const char *sample(const char *path, const struct key *k)
{
	static const char *const custom[][2] = {
		{ "dataset", "data.npz" },
		{ "transform", "{Cast: {dtype: float32}}" },
		{ "metric", "top1" },
		{ "LabelBalance", "2" },
		{ "alpha", "0.5" },
		{ "op_type_wise", "{Conv: {weight: {dtype: int8}}}" },
		{ "op_wise", "{conv: {weight: {dtype: int8}}}" },
		{ "search_evaluator", "l2" },
		{ "NumIterLR", "[[10, 0.1]]" },
		{ "SmoothAlpha", "[0.5]" },
	};
	const struct word *w;
	size_t i;

	for (i = 0; k->type == KEY_CUSTOM && i < ARRAY_LEN(custom); i++)
		if (strcmp(k->name, custom[i][0]) == 0)
			return custom[i][1];
	for (w = k->words; w && w->name; w++)
		if (!w->refused)
			return w->name;
	if (k->type == KEY_BOOL || k->type == KEY_BOOLS)
		return "true";
	if (k->type == KEY_PAIR)
		return "[2, 1]";
	if (k->type == KEY_TEXT || k->type == KEY_PATH || k->type == KEY_TEXTS)
		return "text";
	if (k->type == KEY_CUSTOM)
		fail_msg("%s: the test has no value for it", path);
	return k->max <= 1 && k->max > k->min ? "0.5" : k->min >= 50 ? "60" : "1";
}

static struct config *with(const char *path, const struct key *k)
{
	struct config *c = config_new();
	struct err err = ERR_INIT;

	if (strcmp(path, "tuning.multi_objectives.weight") == 0 ||
	    strcmp(path, "tuning.multi_objectives.higher_is_better") == 0)
		assert_ok(config_set(c, "tuning.multi_objectives.objective", "performance", "--first", &err),
			  err);
	assert_ok(config_set(c, path, sample(path, k), "--set", &err), err);
	return c;
}

/* Where a key is not used, the note names it, or the part of the configuration that it is in. */
static void check_key(void *self, const char *path, const struct key *k, unsigned used)
{
	const char *shown = strncmp(path, "auto_search.", 12) == 0 ? path + 12 : path;
	struct config *c = with(path, k);
	size_t i, *n = self;

	++*n;
	if (!used || used & ~(unsigned)CONFIG_COMMANDS)
		fail_msg("%s: the schema names no command that uses it", path);
	for (i = 0; i < ARRAY_LEN(commands); i++) {
		char *text = xstrfmt("no effect in %s: ", commands[i]);
		const char *said = strstr(noted(c, 1u << i, config_strategy(c)), text), *name;

		if (used & 1u << i) {
			if (said && strstr(said, "--set"))
				fail_msg("%s in %s: used, and said not to be: %s", path, commands[i], said);
		} else {
			name = said ? said + strlen(text) : "";
			if (!said || strncmp(name, shown, strcspn(name, " ")) != 0)
				fail_msg("%s in %s: not used, and not said: '%s'", path, commands[i],
					 notes.s);
		}
		free(text);
	}
	config_free(c);
}

static void every_key_is_used_or_said_not_to_be(void **state)
{
	struct config *c = config_new();
	size_t n = 0;

	(void)state;
	config_each(c, check_key, &n);
	assert_true(n > 100);
	config_free(c);
}

/* what a strategy does not read is said; strategies that are listed exist, or will */
static void check_strategy(void *self, const char *path, const struct key *k, unsigned used)
{
	struct config *c;

	(void)self;
	(void)used;
	if (!k->strategies)
		return;
	c = with(path, k);
	if (strcmp(k->strategies, "tpe") == 0)
		assert_string_equal(noted(c, CONFIG_TUNE, "tpe"), "");
	assert_non_null(strstr(noted(c, CONFIG_TUNE, "random"),
			       "has no effect: the strategy is random, and it belongs to"));
	config_free(c);
}

static void options_of_another_strategy_are_named(void **state)
{
	struct config *c = config_new();

	(void)state;
	config_each(c, check_strategy, NULL);
	config_free(c);
}

static void what_another_setting_rules_out_is_named(void **state)
{
	static const struct {
		const char *yaml;
		unsigned command;
		const char *note; /* NULL: none */
	} rows[] = {
		{ "quantization: {recipes: {smooth_quant_args: {alpha: 0.3}}}", CONFIG_QUANTIZE,
		  "smooth_quant_args.alpha has no effect: smooth_quant is off" },
		{ "quantization: {recipes: {smooth_quant_args: {alpha: 0.3}}}", CONFIG_TUNE, NULL },
		{ "quantization: {recipes: {smooth_quant: off, smooth_quant_args: {alpha: 0.3}}}",
		  CONFIG_TUNE, "smooth_quant_args.alpha has no effect: smooth_quant is off" },
		{ "quantization: {recipes: {FastFinetune: {DataSize: 9}}}", CONFIG_QUANTIZE,
		  "FastFinetune.DataSize has no effect: neither finetune nor include_fast_ft is on" },
		{ "quantization: {recipes: {include_fast_ft: true, FastFinetune: {DataSize: 9}}}",
		  CONFIG_QUANTIZE, NULL },
		{ "quantization: {recipes: {finetune: gram, FastFinetune: {NumIterations: 9}}}",
		  CONFIG_QUANTIZE, "FastFinetune.NumIterations has no effect: gram does not iterate" },
		{ "quantization: {recipes: {finetune: adaquant, FastFinetune: {NumIterations: 9}}}",
		  CONFIG_QUANTIZE, NULL },
		{ "quantization: {recipes: {finetune: adaquant, FastFinetune: {RegParam: 9}}}", CONFIG_TUNE,
		  "FastFinetune.RegParam has no effect: only adaround has it" },
		{ "quantization: {recipes: {finetune: adaround, FastFinetune: {RegParam: 9}}}", CONFIG_TUNE,
		  NULL },
		{ "quantization: {approach: dynamic, calibration: {sampling_size: 9}}", CONFIG_TUNE,
		  "calibration.sampling_size has no effect: nothing is calibrated, the approach is dynamic" },
		{ "tuning: {exit_policy: {performance_only: true}, accuracy_criterion: {relative: 0.1}}",
		  CONFIG_TUNE, "tolerable_loss has no effect: performance_only accepts any accuracy" },
		{ "search_tolerance: 0.1\ntuning: {accuracy_criterion: {relative: 0.1}}", CONFIG_SEARCH,
		  "tolerable_loss has no effect: search_tolerance overrides it" },
		{ "search_evaluator: l2\nevaluation: {accuracy: {metric: top1}}", CONFIG_SEARCH,
		  "accuracy.metric has no effect: search_evaluator overrides it" },
		{ "advanced_fastft_params: {n_trials: 3}", CONFIG_SEARCH,
		  "n_trials has no effect: advanced_fastft_search is off" },
		{ "advanced_fastft_search: true\nadvanced_fastft_params: {n_trials: 3}", CONFIG_SEARCH,
		  NULL },
		{ "search_stop_condition: {find_n_candidates: 3, find_best_candidate: 2}", CONFIG_SEARCH,
		  "find_n_candidates has no effect: two_stage_search, advanced_fastft_search and "
		  "find_best_candidate" },
		{ "tuning: {exit_policy: {timeout: 3}, strategy: {name: mse}, accuracy_criterion: {relative: "
		  "0.1}}",
		  CONFIG_SEARCH,
		  "c.yaml: no effect in search: tuning.strategy (line 1), tuning.exit_policy (line 1)\n" },
	};
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_LEN(rows); i++) {
		struct config *c = NULL;
		struct err err = ERR_INIT;
		const char *said;

		assert_ok(config_parse(&c, rows[i].yaml, "c.yaml", &err), err);
		said = noted(c, rows[i].command, config_strategy(c));
		if (rows[i].note ? !strstr(said, rows[i].note) : *said)
			fail_msg("%s: '%s'", rows[i].yaml, said);
		config_free(c);
	}
}

static int end(void **state)
{
	(void)state;
	str_release(&notes);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_key_is_used_or_said_not_to_be),
		cmocka_unit_test(options_of_another_strategy_are_named),
		cmocka_unit_test(what_another_setting_rules_out_is_named),
	};

	return cmocka_run_group_tests(tests, NULL, end);
}
