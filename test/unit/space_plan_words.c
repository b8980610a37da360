#include "unit/unit.h"

#include <string.h>

#include "base/str.h"
#include "space/plan_json.h"

#define OP(mode) "{\"mode\":\"" mode "\",\"activation\":{\"dtype\":\"uint8\",\"algorithm\":\"minmax\"}}"
#define KL "{\"mode\":\"static\",\"activation\":{\"dtype\":\"uint8\",\"algorithm\":\"kl\"}}"

#define PERCENTILE                                                                                           \
	"{\"mode\":\"static\",\"activation\":{\"algorithm\":\"percentile\",\"percentile\":99.99,\"share\":"  \
	"0.5}}"

static void what_a_plan_changes(void **state)
{
	static const char before[] =
		"{\"samples\":100,\"recipes\":{\"cle\":false,\"finetune\":\"off\"},\"ops\":{"
		"\"a\":" OP("static") ",\"b\":" OP("static") ",\"c\":" OP("static") ",\"d\":" OP(
			"static") ",\"e\":" OP("fp32") "}}";
	static const struct {
		const char *why, *after, *want;
		size_t n;
	} rows[] = {
		{ "nothing", before, "", 0 },
		{ "ops that change alike are one item, of which three are named",
		  "{\"ops\":{\"a\":" OP("fp32") ",\"b\":" OP("fp32") ",\"c\":" OP("fp32") ",\"d\":" OP(
			  "fp32") "}}",
		  "a, b, c and 1 more in fp32", 4 },
		{ "back into integers", "{\"ops\":{\"e\":" OP("static") "}}", "e in integers", 1 },
		{ "a setting, and another op", "{\"ops\":{\"a\":" KL ",\"c\":" OP("dynamic") "}}",
		  "a: activation kl; c in integers, dynamic", 2 },
		{ "a number's name is said once", "{\"ops\":{\"a\":" PERCENTILE "}}",
		  "a: activation percentile 99.99 share 0.5", 1 },
		{ "recipes and samples",
		  "{\"samples\":50,\"recipes\":{\"cle\":true,\"finetune\":{\"algorithm\":\"gram\",\"x\":1}}}",
		  "cle on; finetune gram; 50 calibration samples", 3 },
		{ "what is no plan changes nothing", "{", "", 0 },
	};
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_LEN(rows); i++) {
		struct str text = STR_INIT;
		struct plan_words *was = plan_words_new(before), *is = plan_words_new(rows[i].after);
		size_t n = plan_changes(was, is, &text);

		assert_int_equal(plan_distance(was, was), 0);
		assert_true(n == 0 || plan_distance(was, is) > 0);
		plan_words_free(was);
		plan_words_free(is);

		if (n != rows[i].n || strcmp(text.s ? text.s : "", rows[i].want) != 0)
			fail_msg("%s: %zu: %s", rows[i].why, n, text.s ? text.s : "");
		str_release(&text);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(what_a_plan_changes) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
