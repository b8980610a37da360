/* What a run keeps of the options it was given. */
#include "unit/unit.h"

#include <string.h>

#include "config/resume.h"
#include "base/str.h"

/* A member of struct call_options without a row would be forgotten when a run is resumed. */
static void every_option_has_a_row(void **state)
{
	size_t end = 0, i;

	(void)state;
	for (i = 0; i < n_option_rows; i++) {
		const struct option_row *row = &option_rows[i];

		if (row->at < end || row->at - end >= sizeof(void *) ||
		    (row->at > end && row->size <= row->at - end))
			fail_msg("a member of struct call_options before '%s' has no row", row->name);
		end = row->at + row->size;
	}
	if (sizeof(struct call_options) - end >= sizeof(void *))
		fail_msg("the last members of struct call_options have no row");
}

/* Gives every option that is kept a value of its own. */
static void fill(struct call_options *o)
{
	static char texts[64][32];
	size_t i;

	for (i = 0; i < n_option_rows; i++) {
		void *field = (char *)o + option_rows[i].at;

		snprintf(texts[i], sizeof(texts[i]), "/value %zu", i);
		switch (option_rows[i].kind) {
		case OPTION_TEXT:
		case OPTION_PATH:
			*(const char **)field = texts[i];
			break;
		case OPTION_COUNT:
			*(size_t *)field = 1000 + i;
			break;
		case OPTION_SEED:
			*(uint64_t *)field = UINT64_MAX - i;
			break;
		case OPTION_INT:
			*(int *)field = 100 + (int)i;
			break;
		case OPTION_REAL:
			*(double *)field = 0.1 + (double)i;
			break;
		case OPTION_YES:
			*(bool *)field = true;
			break;
		default:
			break;
		}
	}
	o->config = NULL; /* would be read */
}

static void a_request_comes_back_as_it_was(void **state)
{
	static const struct fettle_setting settings[] = { { "a.b", "\"x\n", "--x" }, { "c", "2", "-c" } };
	static const char *const recipes[] = { "cle=off" };
	struct context cx = { .rt = NULL };
	struct request r = { .cx = &cx };
	struct run_request back;
	struct err err = ERR_INIT;
	char *text = NULL;
	size_t i;

	(void)state;
	fill(&r.o);
	r.o.settings = settings;
	r.o.n_settings = 2;
	r.o.recipes = recipes;
	r.o.n_recipes = 1;
	assert_ok(run_request_save(&r, "tune", &text, &err), err);
	assert_ok(run_request_load(&back, text, "w", &err), err);
	for (i = 0; i < n_option_rows; i++) {
		const struct option_row *row = &option_rows[i];
		const char *a = (const char *)&r.o + row->at, *b = (const char *)&back.o + row->at;
		bool is_text = row->kind == OPTION_TEXT || row->kind == OPTION_PATH;

		if (row->kind == OPTION_GONE || strcmp(row->name, "config") == 0)
			continue;
		if (is_text ? strcmp(*(const char *const *)a, *(const char *const *)b) != 0
			    : memcmp(a, b, row->size) != 0)
			fail_msg("%s came back as something else", row->name);
	}
	assert_int_equal(back.o.n_settings, 2);
	assert_string_equal(back.o.settings[0].value, settings[0].value);
	assert_int_equal(back.o.n_recipes, 1);
	assert_string_equal(back.o.recipes[0], "cle=off");
	assert_string_equal(back.job, "tune");
	run_request_release(&back);
	free(text);
}

static void what_is_no_request_is_refused(void **state)
{
	static const char *const texts[] = { "", "{", "[]", "{\"job\": 1}", "{\"job\": \"tune\"}", "null" };
	struct run_request r;
	struct err err = ERR_INIT;
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_LEN(texts); i++) {
		assert_int_equal(run_request_load(&r, texts[i], "w", &err), FETTLE_INVALID);
		assert_non_null(strstr(err.msg, "cannot resume w: "));
		run_request_release(&r);
	}
	/* what is damaged within is left out */
	assert_ok(run_request_load(&r,
				   "{\"job\": \"tune\", \"folder\": \"/\", \"options\": {\"model\": 3}, "
				   "\"settings\": [1, [\"a\"]], \"recipes\": [null], \"plugins\": {}}",
				   "w", &err),
		  err);
	assert_true(!r.o.model && !r.o.n_settings && !r.o.n_recipes && !r.plugins.n);
	run_request_release(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_option_has_a_row),
		cmocka_unit_test(a_request_comes_back_as_it_was),
		cmocka_unit_test(what_is_no_request_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
