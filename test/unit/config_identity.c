/*
 * What a run is known by: the test walks the whole schema, gives every setting another value, and wants a resume to be
 * refused by name with both values, unless the setting is marked as incidental.
 */
#include "unit/unit.h"

#include <string.h>

#include "base/fingerprint.h"
#include "base/str.h"
#include "config/schema.h"
#include "history/history.h"
#include "unit/tree.h"

/* Other values for keys whose type does not say which there are; and what has to be set before. */
static const struct {
	const char *key, *value, *first_key, *first_value;
} others[] = {
	{ "model.framework", "pytorch", NULL, NULL }, /* others imply what decides */
	{ "quantization.calibration.dataloader.dataset", "{Npz: {size: 3}}", NULL, NULL },
	{ "evaluation.accuracy.dataloader.dataset", "{Npz: {size: 3}}", NULL, NULL },
	{ "quantization.calibration.dataloader.transform", "{Rescale: {}}", NULL, NULL },
	{ "evaluation.accuracy.dataloader.transform", "{Rescale: {}}", NULL, NULL },
	{ "evaluation.accuracy.metric", "f1", NULL, NULL },
	{ "quantization.recipes.smooth_quant_args.alpha", "0.5", NULL, NULL },
	{ "quantization.op_type_wise", "{Conv: {weight: {dtype: [fp32]}}}", NULL, NULL },
	{ "quantization.op_wise", "{a: {weight: {dtype: [fp32]}}}", NULL, NULL },
	{ "tuning.multi_objectives.weight", "[2]", "tuning.multi_objectives.objective", "[modelsize]" },
	{ "tuning.multi_objectives.higher_is_better", "[true]", "tuning.multi_objectives.objective",
	  "[modelsize]" },
	{ "auto_search.search_evaluator", "f1", NULL, NULL },
};

static size_t other_of(const char *key)
{
	size_t i;

	for (i = 0; i < ARRAY_LEN(others) && strcmp(others[i].key, key) != 0; i++)
		;
	return i;
}

/* A value that the setting does not have; "": there is none. */
static void another_value(const struct key *k, const void *field, struct str *out)
{
	const struct word *w;

	switch (k->type) {
	case KEY_BOOL:
		str_addf(out, "%s", *(const bool *)field ? "false" : "true");
		break;
	case KEY_INT:
		str_addf(out, "%d", *(const int *)field + 1);
		break;
	case KEY_INT64:
		str_addf(out, "%lld", (long long)*(const int64_t *)field + 1);
		break;
	case KEY_COUNT:
		str_addf(out, "%zu", *(const size_t *)field + 1);
		break;
	case KEY_PAIR:
		str_addf(out, "[7, 5]");
		break;
	case KEY_NUMBER:
		str_addf(out, "%.17g", *(const double *)field / 2 + 0.0625);
		break;
	case KEY_WORD:
		for (w = k->words; w->name && (w->refused || w->value == *(const int *)field); w++)
			;
		str_addf(out, "%s", w->name ? w->name : "");
		break;
	case KEY_WORDS:
	case KEY_ALLOWED:
		str_addf(out, "[%s]", k->words->name);
		break;
	case KEY_TEXT:
	case KEY_PATH:
		str_addf(out, "something");
		break;
	case KEY_TEXTS:
		str_addf(out, "[something]");
		break;
	case KEY_BOOLS:
		str_addf(out, "[true]");
		break;
	default:
		str_addf(out, "%s",
			 k->custom == &custom_pairs           ? "[[7, 0.25]]"
			 : k->custom == &custom_label_balance ? "3"
			 : k->max > k->min && k->max <= 1     ? "[0.25]"
							      : "[77]");
	}
}

static struct run_info run_of(const struct config *c, struct str *text, char print[FINGERPRINT_LEN])
{
	config_identity(c, text);
	fingerprint_bytes(text->s, text->n, print);
	return (struct run_info){ .config = text->s, .config_fingerprint = print };
}

struct walk {
	struct history *h; /* of a run with the defaults */
	size_t decide, incidental;
};

/* "… PATH is VALUE, was VALUE…" */
static bool names_both(const char *message, const char *path)
{
	const char *at = strstr(message, path);

	return at && strstr(at, " is ") && strstr(at, ", was ");
}

static void check_key(struct walk *w, const struct key *k, const char *path, const void *field)
{
	struct str value = STR_INIT, text = STR_INIT;
	struct config *c = config_new();
	struct err err = ERR_INIT;
	char print[FINGERPRINT_LEN];
	size_t i = other_of(path);
	struct run_info now;
	enum fettle_status st;

	if (i < ARRAY_LEN(others)) {
		str_addf(&value, "%s", others[i].value);
		if (others[i].first_key)
			assert_ok(config_set(c, others[i].first_key, others[i].first_value, "--first", &err),
				  err);
	} else {
		another_value(k, field, &value);
	}
	if (*value.s) {
		assert_ok(config_set(c, path, value.s, "--flag", &err), err);
		now = run_of(c, &text, print);
		st = history_check_same(w->h, &now, &err);
		if (k->incidental ? st != FETTLE_OK : st != FETTLE_INVALID || !names_both(err.msg, path))
			fail_msg("%s = %s: status %d, '%s'", path, value.s, (int)st, err.msg);
		w->decide += !k->incidental;
		w->incidental += k->incidental;
	}
	str_release(&value);
	str_release(&text);
	config_free(c);
}

static void walk(struct walk *w, const struct config *c, const struct key *keys, const char *path,
		 const char *base)
{
	const struct key *k;

	for (k = keys; k->name; k++) {
		char *name = xstrfmt("%s%s%s", path, *path ? "." : "", k->name);

		if (k->type == KEY_MAP && !k->alias)
			walk(w, c, key_table(c, k), name, base + k->offset);
		else if (!k->alias && k->type != KEY_UNUSED && k->type != KEY_REFUSED)
			check_key(w, k, name, base + k->offset);
		free(name);
	}
}

static void every_setting_decides_or_says_that_it_does_not(void **state)
{
	struct config *c = config_new();
	struct str text = STR_INIT;
	char print[FINGERPRINT_LEN], *dir = temp_tree();
	struct run_info info = run_of(c, &text, print);
	struct err err = ERR_INIT;
	struct walk w = { NULL, 0, 0 };

	(void)state;
	assert_ok(history_create(&w.h, dir, &info, &err), err);
	walk(&w, c, config_keys, "", (const char *)c);
	print_message("%zu settings decide, %zu do not\n", w.decide, w.incidental);
	assert_true(w.decide > 100 && w.incidental > 10);
	history_close(w.h);
	str_release(&text);
	config_free(c);
	remove_tree(dir);
}

/* To fix a recipe at its default is not to leave it to the search; to repeat another default changes nothing. */
static void a_default_that_is_set(void **state)
{
	static const struct {
		const char *key, *value;
		bool same;
	} rows[] = {
		{ "quantization.recipes.cle", "false", false },
		{ "quantization.recipes.FastFinetune.LearningRate", "0.1", false },
		{ "tuning.random_seed", "9527", true },
		{ "tuning.accuracy_criterion.tolerable_loss", "0.01", true },
		{ "quantization.calibration.dataloader.dataset", "elsewhere/data.npz", true },
		{ "tuning.exit_policy.max_trials", "7", true },
	};
	struct str defaults = STR_INIT;
	struct config *c = config_new();
	struct err err = ERR_INIT;
	size_t i;

	(void)state;
	config_identity(c, &defaults);
	config_free(c);
	for (i = 0; i < ARRAY_LEN(rows); i++) {
		struct str now = STR_INIT;

		c = config_new();
		assert_ok(config_set(c, rows[i].key, rows[i].value, "--flag", &err), err);
		config_identity(c, &now);
		if ((strcmp(now.s, defaults.s) == 0) != rows[i].same)
			fail_msg("%s = %s: %s", rows[i].key, rows[i].value, now.s);
		str_release(&now);
		config_free(c);
	}
	str_release(&defaults);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_setting_decides_or_says_that_it_does_not),
		cmocka_unit_test(a_default_that_is_set),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
