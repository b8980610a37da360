/* The report: its data cannot break the page, plans are packed without loss, and a large run stays small. */
#include "unit/unit.h"

#include "base/rng.h"
#include "report/page.h"
#include "report/report.h"
#include "unit/history_run.h"

enum { OPS = 500, TRIALS = 500, LIMIT = 2000000 };

/* every op in one of three options, chosen at random: what packs worst */
static char *random_plan(struct rng *r)
{
	static const char *const options[] = {
		"{\"mode\":\"fp32\"}",
		"{\"activation\":{\"algorithm\":\"minmax\",\"dtype\":\"uint8\",\"scheme\":\"asym\"},\"mode\":"
		"\"static\","
		"\"weight\":{\"algorithm\":\"minmax\",\"dtype\":\"int8\",\"granularity\":\"per_channel\","
		"\"reduce_range\":"
		"false,\"scheme\":\"sym\"}}",
		"{\"mode\":\"dynamic\",\"weight\":{\"algorithm\":\"minmax\",\"dtype\":\"int8\","
		"\"granularity\":"
		"\"per_channel\",\"reduce_range\":false,\"scheme\":\"sym\"}}",
	};
	struct str s = STR_INIT;
	size_t i;

	str_addf(&s, "{\"fettle_plan\":2,\"format\":\"qdq\",\"ops\":{");
	for (i = 0; i < OPS; i++)
		str_addf(&s, "%s\"/encoder/layer.%zu/attention/output/dense/MatMul\":%s", i ? "," : "", i,
			 options[rng_below(r, 3)]);
	str_addf(&s, "},\"recipes\":{\"cle\":%s},\"samples\":100}", rng_below(r, 2) ? "true" : "false");
	return s.s;
}

static json_t *run_of_many(const char *dir)
{
	struct run_info info = sample_run();
	struct history_baseline b = {
		.accuracy = 0.8, .latency = 0.01, .size_bytes = 4000000, .pass_seconds = 3, .samples = 1000
	};
	struct history *h = NULL;
	struct err err = ERR_INIT;
	json_t *run = NULL;
	struct rng r;
	size_t i;

	rng_seed(&r, 7);
	info.metric = "top1";
	assert_ok(history_create(&h, dir, &info, &err), err);
	assert_ok(history_set_baseline(h, &b, &err), err);
	for (i = 1; i <= TRIALS; i++) {
		char *plan = random_plan(&r);
		struct history_trial t = { .plan = plan,
					   .stage = "</script><!-- \" & \\ ",
					   .accuracy = 0.7 + 0.0002 * (double)i,
					   .accuracy_low = 0.7 + 0.0002 * (double)i,
					   .accuracy_high = 0.7 + 0.0002 * (double)i,
					   .met = i == TRIALS,
					   .latency = 0.01 / (double)i,
					   .size_bytes = 1000000 + i,
					   .samples = 1000,
					   .seconds = 2,
					   .finished = "2025-01-31T23:59:59Z",
					   .why = "" };

		assert_ok(history_add_trial(h, &t, NULL, &err), err);
		free(plan);
	}
	history_close(h);
	assert_ok(report_run(dir, &run, &err), err);
	return run;
}

static void large_run_is_small_and_safe(void **state)
{
	char *dir = temp_tree(), *html;
	json_t *run = run_of_many(dir), *data = report_data(json_pack("[o]", run)), *back;
	const char *from = "<script type=\"application/json\" id=\"data\">", *at, *end;
	struct json_error_t why;
	size_t n;

	(void)state;
	assert_int_equal(json_array_size(json_object_get(run, "trials")), TRIALS);
	html = report_html(data, &n);
	assert_int_equal(strlen(html), n);
	assert_true(n > report_page_size && n < LIMIT);
	/* the data ends where its element does, and reads back as it was */
	at = strstr(html, from);
	assert_non_null(at);
	at += strlen(from);
	end = strstr(at, "</script>");
	assert_non_null(end);
	back = json_loadb(at, (size_t)(end - at), 0, &why);
	assert_non_null(back);
	assert_true(memchr(at, '<', (size_t)(end - at)) == NULL);
	assert_string_equal(
		json_string_value(json_object_get(
			json_array_get(
				json_object_get(json_array_get(json_object_get(back, "runs"), 0), "trials"),
				3),
			"stage")),
		"</script><!-- \" & \\ ");
	json_decref(back);
	json_decref(data);
	free(html);
	remove_tree(dir);
}

/* unpacked by the naive rule of the header, a plan is what it was */
static void plans_are_packed_without_loss(void **state)
{
	static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
	json_t *run = json_loads(
		       "{\"trials\": [{\"plan\": {\"ops\": {\"a\": {\"mode\": \"fp32\"}, \"b\": {\"mode\": "
		       "\"dynamic\"}}, \"samples\": 9}}, {\"plan\": {\"ops\": {\"b\": {\"mode\": \"fp32\"}}, "
		       "\"samples\": 9}}, {\"plan\": null}]}",
		       0, NULL),
	       *plans, *first, *second;
	static const struct {
		size_t trial, op;
		const char *want;
	} rows[] = { { 0, 0, "fp32" }, { 0, 1, "dynamic" }, { 1, 1, "fp32" } };
	size_t i, id;

	(void)state;
	pack_plans(run);
	plans = json_object_get(run, "plans");
	first = json_array_get(json_object_get(run, "trials"), 0);
	second = json_array_get(json_object_get(run, "trials"), 1);
	assert_int_equal(json_array_size(json_object_get(plans, "ops")), 2);
	for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const char *codes =
			json_string_value(json_object_get(rows[i].trial ? second : first, "plan"));

		id = 64 * (size_t)(strchr(digits, codes[2 * rows[i].op]) - digits) +
		     (size_t)(strchr(digits, codes[2 * rows[i].op + 1]) - digits);
		assert_string_equal(json_string_value(json_array_get(json_object_get(plans, "options"), id)),
				    rows[i].want);
	}
	assert_true(json_equal(json_object_get(first, "rest"), json_object_get(second, "rest")));
	assert_int_equal(json_integer_value(json_object_get(
				 json_array_get(json_object_get(plans, "rests"), 0), "samples")),
			 9);
	json_decref(run);
}

static void commands_are_quoted(void **state)
{
	static const struct {
		const char *request, *want, *why;
	} rows[] = {
		{ "{\"job\":\"tune\",\"options\":{\"model\":\"m.onnx\",\"keep_fp32\":\"Conv\",\"no_early\":"
		  "true}}",
		  "fettle tune m.onnx --keep-fp32 Conv --no-early", "names become flags" },
		{ "{\"job\":\"search\",\"options\":{\"model\":\"it's $HOME.onnx\"}}",
		  "fettle search 'it'\\''s $HOME.onnx'", "what a shell would read is quoted" },
		{ "{\"job\":\"tune\",\"options\":{\"model\":\"m\"},\"settings\":[[\"tuning.x\",\"0.1\",\"--"
		  "tolerance\"],[\"a.b\","
		  "\"2\",null]],\"recipes\":[\"cle=off\"]}",
		  "fettle tune m --tolerance 0.1 --recipe cle=off\n# with a.b: 2",
		  "settings with and without a flag" },
		{ "no JSON", "fettle tune MODEL", "an old history" },
	};
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		char *got = command_of_request(rows[i].request);

		if (strcmp(got, rows[i].want) != 0)
			fail_msg("%s: '%s', want '%s'", rows[i].why, got, rows[i].want);
		free(got);
	}
}

static void csv_and_markdown_are_escaped(void **state)
{
	json_t *data = json_loads(
		"{\"runs\": [{\"workspace\": \"a,b\", \"best\": 1, \"trials\": [{\"trial\": 1, \"stage\": "
		"\"x \\\"y\\\"\", \"changed\": \"a|b\", \"accuracy\": 0.5, \"met\": true}]}]}",
		0, NULL);
	char *csv = report_csv(data), *markdown = report_markdown(data);

	(void)state;
	assert_non_null(strstr(csv, "\r\n\"a,b\",1,\"x \"\"y\"\"\",0.5,"));
	assert_non_null(strstr(markdown, "a\\|b |\n"));
	free(csv);
	free(markdown);
	json_decref(data);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(large_run_is_small_and_safe),
		cmocka_unit_test(plans_are_packed_without_loss),
		cmocka_unit_test(commands_are_quoted),
		cmocka_unit_test(csv_and_markdown_are_escaped),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
