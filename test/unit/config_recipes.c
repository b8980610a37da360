/* Each recipe has one row; the YAML, the plans, the search and the command take the same names and limits from it. */
#include "unit/unit.h"

#include <stdlib.h>
#include <string.h>

#include "config/schema.h"
#include "space/plan_json.h"

static enum fettle_status set(const char *key, const char *value)
{
	struct config *c = config_new();
	struct err err = ERR_INIT;
	enum fettle_status st = config_set(c, key, value, "--set", &err);

	config_free(c);
	return st;
}

static enum fettle_status read_plan(const char *recipes, struct recipes *out)
{
	char *text = xstrfmt("{\"fettle_plan\": 1, \"recipes\": %s, \"ops\": {}}", recipes);
	const struct op_list none = { .n = 0 };
	struct qplan p = QPLAN_INIT;
	struct err err = ERR_INIT;
	enum fettle_status st = qplan_from_json(&p, NULL, text, "p.json", &none, NULL, &err);

	if (!st)
		*out = p.recipes;
	qplan_release(&p);
	free(text);
	return st;
}

/* on, off and back, in the YAML and in a plan */
static void every_recipe_has_its_keys(void **state)
{
	const struct op_list none = { .n = 0 };
	size_t i;

	(void)state;
	for (i = 0; i < RECIPES; i++) {
		const struct recipe *r = recipe_list[i];
		char *key = xstrfmt("quantization.recipes.%s", r->name), *text;
		struct qplan p = QPLAN_INIT;
		struct recipes back;

		assert_ptr_equal(recipe_find(r->name), r);
		assert_true(*r->summary);
		assert_false(recipe_applies(&p.recipes, r));
		assert_int_equal(set(key, r->words ? r->words[1] : "true"), FETTLE_OK);
		assert_int_equal(set(key, "maybe"), FETTLE_INVALID);
		recipe_set(&p.recipes, r, !r->usual);
		assert_true(recipe_applies(&p.recipes, r));
		if (r->number)
			*recipe_number(&p.recipes, r) = r->number->max;
		text = qplan_to_json(&p, &none, 1);
		free(key);
		key = xstrfmt("%s", strstr(text, "\"recipes\":") + strlen("\"recipes\":"));
		*strstr(key, ",\"samples\"") = '\0';
		assert_int_equal(read_plan(key, &back), FETTLE_OK);
		assert_memory_equal(&back, &p.recipes, offsetof(struct recipes, no_output));
		free(text);
		free(key);
	}
}

/* in the YAML, in a space of the search and in a plan */
static void check(const struct recipe *r, const struct recipe_key *k, double x, bool valid)
{
	const bool pair = k->type == RECIPE_PAIR;
	char *value = xstrfmt(pair ? "[%.17g, %.17g]" : "%.17g", x, x),
	     *key = xstrfmt("quantization.recipes.%s.%s", r->map, k->name),
	     *list = xstrfmt("search_space.extra_options.%s.%s", r->map, k->name),
	     *plan = xstrfmt("{\"%s\": {\"%s\": \"%s\", \"%s\": %s}}", r->name, r->keys->name, r->words[1],
			     k->name, value);
	const enum fettle_status want = valid ? FETTLE_OK : FETTLE_INVALID;
	struct recipes out;

	if (set(key, value) != want || (k->searched && set(list, value) != want) ||
	    read_plan(plan, &out) != want)
		fail_msg("%s = %s: %s in the YAML, %s in a space, %s in a plan; want it %s", k->name, value,
			 set(key, value) ? "refused" : "taken", set(list, value) ? "refused" : "taken",
			 read_plan(plan, &out) ? "refused" : "taken", valid ? "taken" : "refused");
	free(value);
	free(key);
	free(list);
	free(plan);
}

static void limits_are_the_same_everywhere(void **state)
{
	const struct recipe_key *k;
	size_t i, n = 0;

	(void)state;
	for (i = 0; i < RECIPES; i++)
		for (k = recipe_list[i]->keys; k && k->name; k++) {
			const bool whole = k->type == RECIPE_COUNT || k->type == RECIPE_SEED;

			if (k->type == RECIPE_BOOL || k->type == RECIPE_WORD)
				continue;
			check(recipe_list[i], k, k->min, true);
			check(recipe_list[i], k, k->max, true);
			check(recipe_list[i], k, whole ? k->min - 1 : k->min - 1e-31,
			      !whole && k->min - 1e-31 == k->min);
			check(recipe_list[i], k, whole ? k->max + 2 : k->max * 1.01, false);
			n++;
		}
	assert_true(n >= 9);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_recipe_has_its_keys),
		cmocka_unit_test(limits_are_the_same_everywhere),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
