/* The page of every key: each key of the schema is on it, says what it means, and takes its own example. */
#include "config/keys.h"

#include <stdlib.h>
#include <string.h>

#include "config/read.h"
#include "data/dataset.h"
#include "evaluate/metric.h"
#include "unit/unit.h"

static char *page;

static int make_page(void **state)
{
	(void)state;
	page = config_keys_text();
	return 0;
}

static int free_page(void **state)
{
	(void)state;
	free(page);
	return 0;
}

/* "**NAME** ..." after "## SECTION" and before the next */
static bool on_page(const char *section, const char *name)
{
	char *head = xstrfmt("## %s\n", *section ? section : "At the top"),
	     *entry = xstrfmt("\n**%s** (", name);
	const char *from = strstr(page, head), *next = from ? strstr(from + 1, "\n## ") : NULL,
		   *at = from ? strstr(from, entry) : NULL;
	const bool found = at && (!next || at < next);

	free(head);
	free(entry);
	return found;
}

struct walk {
	struct config *c;
	size_t n;
};

static void check_leaf(struct walk *w, const struct key *k, const char *path)
{
	struct err err = ERR_INIT;
	struct config *c = config_new();

	if (!k->help || !*k->help)
		fail_msg("%s: the schema does not say what it means (.help)", path);
	if (strstr(path, "multi_objectives.")) /* its lists are as long as that of the objectives */
		assert_int_equal(config_set(c, "tuning.multi_objectives.objective", "[accuracy, performance]",
					    "example", &err),
				 FETTLE_OK);
	if (k->example && config_set(c, path, k->example, "example", &err))
		fail_msg("%s: its example '%s' is not valid: %s", path, k->example, err.msg);
	if (!k->example && (k->type == KEY_CUSTOM || k->type == KEY_ALLOWED || k->type == KEY_TEXTS))
		fail_msg("%s: needs an example (.example)", path);
	config_free(c);
	w->n++;
}

static void walk(struct walk *w, const struct key *keys, const char *path, const struct key **seen)
{
	const struct key *k;
	size_t i;

	for (i = 0; seen[i]; i++)
		if (seen[i] == keys)
			return; /* the page refers to the first place */
	seen[i] = keys;
	for (k = keys; k->name; k++) {
		char *name = *path ? xstrfmt("%s.%s", path, k->name) : xstrdup(k->name);

		if (k->type == KEY_UNUSED || k->type == KEY_REFUSED) {
			assert_true(k->why && *k->why);
			assert_non_null(strstr(page, k->why));
		} else if (k->type == KEY_MAP && !k->alias) {
			assert_true(k->help && *k->help);
			walk(w, key_table(w->c, k), name, seen);
		} else if (k->type != KEY_MAP && !k->alias) {
			check_leaf(w, k, name);
			if (!on_page(path, k->name))
				fail_msg("%s is not on the page", name);
		} else if (!strstr(page, k->name)) {
			fail_msg("the other name %s is not on the page", name);
		}
		free(name);
	}
}

static void every_key_is_described(void **state)
{
	struct walk w = { .c = config_new() };
	const struct key *seen[64] = { NULL };

	(void)state;
	walk(&w, config_keys, "", seen);
	assert_true(w.n > 100);
	config_free(w.c);
}

static void every_member_is_described(void **state)
{
	const char *name, *summary;
	const char *const *keys;
	const struct metric_type *metric;
	size_t i;

	(void)state;
	for (i = 0; (name = dataset_kind_name(i, &summary, &keys)); i++)
		if (!summary || !strstr(page, name))
			fail_msg("the dataset %s has no summary", name);
	for (i = 0; (name = transform_kind_name(i, &summary, &keys)); i++)
		if (!summary || !strstr(page, name))
			fail_msg("the transform %s has no summary", name);
	for (i = 0; (metric = metric_type_at(i)); i++)
		if (!metric->summary || !strstr(page, metric->name))
			fail_msg("the metric %s has no summary", metric->name);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_key_is_described),
		cmocka_unit_test(every_member_is_described),
	};

	return cmocka_run_group_tests(tests, make_page, free_page);
}
