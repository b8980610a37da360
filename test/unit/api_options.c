/* Every option of every call arrives where the library looks for it, whatever the version of the caller. */
#include "unit/unit.h"

#include "api/internal.h"

static const struct options_type *const types[] = {
	&options_tune,  &options_search,      &options_resume,  &options_quantize, &options_eval,
	&options_bench, &options_sensitivity, &options_recover, &options_inspect,
};

static size_t width(const struct option_field *f)
{
	return f->kind == FIELD_INT                               ? sizeof(int)
	       : f->kind == FIELD_YES                             ? sizeof(bool)
	       : f->kind == FIELD_TEXTS || f->kind == FIELD_PAIRS ? 2 * sizeof(void *)
								  : sizeof(void *);
}

static const struct option_field *field_at(const struct options_type *t, size_t at)
{
	size_t i;

	for (i = 0; i < t->n; i++)
		if (t->fields[i].at == at)
			return &t->fields[i];
	return NULL;
}

/* A member without a row would be ignored in silence. */
static void every_member_has_a_row(void **state)
{
	size_t i, at, rows;

	(void)state;
	for (i = 0; i < ARRAY_LEN(types); i++) {
		const struct option_field *f, *last = NULL;

		for (at = sizeof(size_t), rows = 0; at < types[i]->size; at += f ? width(f) : 1) {
			f = field_at(types[i], at);
			rows += f != NULL;
			if (!f && at % sizeof(void *) == 0)
				fail_msg("%s: a member after '%s' has no row", types[i]->name,
					 last ? last->name : "size");
			last = f ? f : last;
		}
		assert_int_equal(rows, types[i]->n);
	}
}

static const char *setting(const struct options *o, const char *key)
{
	size_t i;

	for (i = o->o.n_settings; i-- > 0;)
		if (strcmp(o->o.settings[i].key, key) == 0)
			return o->o.settings[i].value;
	return NULL;
}

static void everyday_settings_are_typed(void **state)
{
	static const struct fettle_setting own[] = { { "tuning.objective", "modelsize", "test" } };
	struct fettle_tune_options in = FETTLE_TUNE_OPTIONS_INIT;
	struct err err = ERR_INIT;
	struct options o;

	(void)state;
	assert_ok(options_read(&o, &options_tune, &in, &err), err);
	assert_int_equal(o.o.n_settings, 0); /* so that the configuration decides */
	options_release(&o);
	in.tolerance = 0;
	in.max_trials = -1;
	in.timeout = 1.5;
	in.seed = UINT64_C(9007199254740993);
	in.strategy = "mse";
	in.objective = "performance";
	in.lower_is_better = true;
	in.settings = own;
	in.n_settings = 1;
	in.samples = 7;
	in.jobs = "auto";
	assert_ok(options_read(&o, &options_tune, &in, &err), err);
	assert_string_equal(setting(&o, "tuning.accuracy_criterion.tolerable_loss"), "0");
	assert_string_equal(setting(&o, "tuning.exit_policy.max_trials"), "0");
	assert_string_equal(setting(&o, "tuning.exit_policy.timeout"), "1.5");
	assert_string_equal(setting(&o, "tuning.random_seed"), "9007199254740993");
	assert_string_equal(setting(&o, "tuning.strategy"), "mse");
	assert_string_equal(setting(&o, "tuning.accuracy_criterion.higher_is_better"), "false");
	assert_string_equal(setting(&o, "tuning.objective"), "modelsize"); /* the list comes last */
	assert_int_equal(o.o.calib_samples, 7);
	assert_string_equal(o.o.jobs, "auto");
	options_release(&o);
}

static void older_structs_are_read(void **state)
{
	struct fettle_tune_options in = FETTLE_TUNE_OPTIONS_INIT;
	struct err err = ERR_INIT;
	struct options o;

	(void)state;
	memset((char *)&in + sizeof(in.size), 0xee, sizeof(in) - sizeof(in.size));
	in.size = offsetof(struct fettle_tune_options, output);
	in.model = "m.onnx";
	assert_ok(options_read(&o, &options_tune, &in, &err), err);
	assert_string_equal(o.o.model, "m.onnx");
	assert_true(!o.o.output && !o.o.n_settings); /* a tolerance that it did not know is not 0 */
	options_release(&o);
}

static void results_are_as_large_as_the_caller_knows(void **state)
{
	const struct fettle_timing ours = { .size = sizeof(ours), .latency_ms = 1, .p90_ms = 2, .runs = 3 };
	struct fettle_timing out;

	(void)state;
	memset(&out, 0xee, sizeof(out));
	out.size = offsetof(struct fettle_timing, p90_ms);
	sized_give(&out, &ours, sizeof(ours));
	assert_int_equal(out.size, offsetof(struct fettle_timing, p90_ms));
	assert_true(out.latency_ms == 1);
	assert_int_equal(*(unsigned char *)&out.p90_ms, 0xee);
	out.size = 4 * sizeof(out); /* of a later version than the library */
	sized_give(&out, &ours, sizeof(ours));
	assert_int_equal(out.runs, 3);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_member_has_a_row),
		cmocka_unit_test(everyday_settings_are_typed),
		cmocka_unit_test(older_structs_are_read),
		cmocka_unit_test(results_are_as_large_as_the_caller_knows),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
