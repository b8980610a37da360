/* Commands by name with options in JSON: what other languages call. */
#include "unit/unit.h"

#include <jansson.h>

#include "api/options.h"
#include "unit/tree.h"

static struct fettle *f;

static json_t *call(const char *command, const char *in)
{
	char *text = NULL;
	json_t *j;

	if (fettle_call_json(f, command, in, &text))
		fail_msg("%s %s: %s", command, in, fettle_message(f));
	j = json_loads(text, 0, NULL);
	assert_non_null(j);
	free(text);
	return j;
}

static void bad_calls_are_refused(void **state)
{
	static const struct {
		const char *command, *in, *words;
	} rows[] = {
		{ "tunes", "{}", "there is no such command, did you mean 'tune'?" },
		{ NULL, "{}", "no such command" },
		{ "tune", "{\"tolerence\": 0.1}", "unknown option 'tolerence', did you mean 'tolerance'?" },
		{ "tune", "{\"evaluate\": \"f\"}", "option 'evaluate' is \"f\", need an address" },
		{ "tune", "{\"calib_data\": -3}", "option 'calib_data' is -3, need an address" },
		{ "tune", "{\"tolerance\": \"much\"}", "option 'tolerance' is \"much\", need a number" },
		{ "tune", "{\"max_trials\": 1.5}", "option 'max_trials' is 1.5, need a whole number" },
		{ "tune", "{\"max_trials\": -2}", "option 'max_trials' is -2" },
		{ "tune", "{\"samples\": -1}", "option 'samples' is -1, need a whole number, 0 or more" },
		{ "tune", "{\"threads\": 99999999999}", "option 'threads' is 99999999999" },
		{ "tune", "{\"no_early\": 1}", "option 'no_early' is 1, need true or false" },
		{ "tune", "{\"model\": [1]}", "option 'model' is [1], need a text" },
		{ "tune", "{\"recipes\": [1]}", "option 'recipes' is [1], need a list of texts" },
		{ "tune", "{\"settings\": []}", "option 'settings' is [], need an object" },
		{ "tune", "{\"tolerance\": -2e9}", "tolerance" },
		{ "tune", "{\"strategy\": \"bassic\"}", "need a model" },
		{ "tune", "{\"model\": \"m\",}", "line 1, column" },
		{ "tune", "{\"seed\": 1, \"seed\": 2}", "duplicate" },
		{ "tune", "[]", "need a JSON object" },
		{ "recipes", "{\"model\": \"m\"}", "unknown option 'model'" },
		{ "bench", "{}", "none is given" },
		{ "recover", "{}", "need a workspace" },
		{ "resume", "{}", "need a workspace" },
		{ "quantize", "{\"model\": \"no.onnx\", \"output\": \"o.onnx\"}", "no.onnx" },
	};
	char *text = (char *)"";
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_LEN(rows); i++) {
		if (!fettle_call_json(f, rows[i].command, rows[i].in, &text))
			fail_msg("%s %s was carried out", rows[i].command, rows[i].in);
		if (!strstr(fettle_message(f), rows[i].words))
			fail_msg("%s %s: no '%s' in '%s'", rows[i].command, rows[i].in, rows[i].words,
				 fettle_message(f));
		assert_null(text);
	}
}

static void lists_need_no_options(void **state)
{
	json_t *recipes = call("recipes", NULL), *cpus = call("cpus", "{}"),
	       *strategies = call("strategies", "{}");

	(void)state;
	assert_true(json_array_size(recipes) > 3 && json_array_size(cpus) > 1);
	assert_non_null(json_object_get(strategies, "mse_v2"));
	json_decref(recipes);
	json_decref(cpus);
	json_decref(strategies);
}

/* One command after the other, each with what the one before wrote; null is as if it were not there. */
static void commands_give_their_json(void **state)
{
	char *dir = temp_tree(), *in;
	json_t *j;

	(void)state;
	in = xstrfmt(
		"{\"model\": \"examples/fashion_plain.onnx\", \"calib\": \"examples/fashion_calib.npz\", "
		"\"samples\": 8, \"output\": \"%s/q.onnx\", \"threads\": 1, \"recipes\": [\"cle=off\"], "
		"\"keep_fp32\": null, \"settings\": {\"quantization.quant_format\": \"QDQ\"}}",
		dir);
	j = call("quantize", in);
	assert_int_equal(json_integer_value(json_object_get(j, "calib_samples")), 8);
	assert_non_null(strstr(json_string_value(json_object_get(j, "output")), "q.onnx"));
	json_decref(j);
	free(in);

	in = xstrfmt("{\"model\": \"%s/q.onnx\", \"data\": \"examples/fashion_eval.npz\", \"samples\": 100, "
		     "\"threads\": 1}",
		     dir);
	j = call("eval", in);
	assert_string_equal(json_string_value(json_object_get(j, "metric")), "top1");
	assert_int_equal(json_integer_value(json_object_get(j, "samples")), 100);
	json_decref(j);
	free(in);

	in = xstrfmt("{\"models\": [\"examples/fashion_plain.onnx\", \"%s/q.onnx\"], \"seconds\": 0.02}",
		     dir);
	j = call("bench", in);
	assert_int_equal(json_array_size(json_object_get(j, "models")), 2);
	json_decref(j);
	free(in);

	in = xstrfmt(
		"{\"model\": \"examples/fashion_plain.onnx\", \"calib\": \"examples/fashion_calib.npz\", "
		"\"eval\": \"examples/fashion_eval.npz\", \"samples\": 8, \"eval_samples\": 100, "
		"\"tolerance\": 0.5, \"max_trials\": 1, \"threads\": 1, \"workspace\": \"%s/run\"}",
		dir);
	j = call("tune", in);
	assert_true(json_is_true(json_object_get(j, "met")));
	assert_int_equal(json_integer_value(json_object_get(j, "trials")), 1);
	assert_true(fabs(json_real_value(json_object_get(j, "target")) -
			 0.5 * json_real_value(json_object_get(json_object_get(j, "baseline"), "accuracy"))) <
		    1e-9);
	json_decref(j);
	free(in);

	in = xstrfmt("{\"workspace\": \"%s/run\"}", dir);
	j = call("history", in);
	assert_int_equal(json_array_size(json_object_get(j, "trials")), 1);
	json_decref(j);
	free(in);

	in = xstrfmt("{\"workspace\": \"%s/run\", \"output\": \"%s/again.onnx\", \"trial\": 1}", dir, dir);
	j = call("recover", in);
	assert_int_equal(json_integer_value(json_object_get(j, "trial")), 1);
	json_decref(j);
	free(in);
	remove_tree(dir);
}

static void a_result_is_the_same_by_itself(void **state)
{
	struct fettle_inspect_options o = FETTLE_INSPECT_OPTIONS_INIT;
	struct fettle_inspection *x = NULL;
	char *by_name = NULL, *by_call;

	(void)state;
	o.model = "examples/fashion_plain.onnx";
	assert_int_equal(fettle_inspect(f, &o, &x), FETTLE_OK);
	by_call = fettle_inspection_json(f, x);
	fettle_inspection_free(x);
	assert_int_equal(
		fettle_call_json(f, "inspect", "{\"model\": \"examples/fashion_plain.onnx\"}", &by_name),
		FETTLE_OK);
	assert_string_equal(by_name, by_call);
	free(by_name);
	free(by_call);
}

static void several_metrics_have_names(void **state)
{
	char buf[32];

	(void)state;
	assert_string_equal(fettle_value_name("top1,f1", 1, buf, sizeof(buf)), "f1");
	assert_string_equal(fettle_value_name("0.7*top1,0.3*f1", 0, buf, sizeof(buf)), "top1");
}

static int start(void **state)
{
	(void)state;
	f = fettle_new();
	return 0;
}

static int stop(void **state)
{
	(void)state;
	fettle_free(f);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(bad_calls_are_refused),
		cmocka_unit_test(lists_need_no_options),
		cmocka_unit_test(commands_give_their_json),
		cmocka_unit_test(a_result_is_the_same_by_itself),
		cmocka_unit_test(several_metrics_have_names),
	};

	return cmocka_run_group_tests(tests, start, stop);
}
