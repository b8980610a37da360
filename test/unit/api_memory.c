/* Without files: data from arrays, models to memory, and reasons from functions that fail. */
#include "unit/unit.h"

#include "base/file.h"
#include "base/mem.h"
#include "data/dataset.h"
#include "unit/tree.h"

#define MODEL "examples/fashion_plain.onnx"
#define CALIB "examples/fashion_calib.npz"
#define EVAL "examples/fashion_eval.npz"

static struct fettle *f;
static char *dir;

#define must(call)                                                                                           \
	do {                                                                                                 \
		enum fettle_status st_ = (call);                                                             \
		if (st_)                                                                                     \
			fail_msg("%s: status %d, %s", #call, (int)st_, fettle_message(f));                   \
	} while (0)

static void assert_refused(enum fettle_status st, const char *words)
{
	assert_int_equal(st, FETTLE_INVALID);
	if (!strstr(fettle_message(f), words))
		fail_msg("no '%s' in '%s'", words, fettle_message(f));
}

/* the arrays of a .npz, each as one block of memory */
struct loaded {
	struct batch b;
	struct fettle_data *data;
};

static struct loaded load(const char *path, size_t n)
{
	struct loaded l = { .b = BATCH_INIT, .data = fettle_data_new() };
	size_t *all = xcalloc(n, sizeof(*all)), i;
	struct dataset *d = NULL;
	struct err err = ERR_INIT;

	assert_ok(dataset_open(&d, path, NULL, &err), err);
	for (i = 0; i < n; i++)
		all[i] = i;
	assert_ok(dataset_read(d, all, n, &l.b, &err), err);
	for (i = 0; i < d->n_fields; i++) {
		const struct tensor *t = &l.b.fields[i].t;

		must(fettle_data_add(f, l.data, d->fields[i].name, (enum fettle_dtype)t->dtype, t->rank,
				     t->dims, t->data));
	}
	dataset_free(d);
	free(all);
	return l;
}

static void loaded_release(struct loaded *l)
{
	fettle_data_free(l->data);
	batch_release(&l->b);
}

static void assert_is_file(const char *path)
{
	struct bytes b = BYTES_INIT;
	struct err err = ERR_INIT;
	const void *model;
	size_t n;

	model = fettle_model_bytes(f, &n);
	assert_non_null(model);
	assert_ok(file_map(path, &b, &err), err);
	assert_int_equal(n, b.n);
	assert_memory_equal(model, b.p, n);
	bytes_release(&b);
}

static void memory_in_memory_out(void **state)
{
	char *out = xstrfmt("%s/q.onnx", dir);
	struct fettle_quantize_options o = FETTLE_QUANTIZE_OPTIONS_INIT;
	struct fettle_eval_options e = FETTLE_EVAL_OPTIONS_INIT;
	struct fettle_quantized q = FETTLE_QUANTIZED_INIT;
	struct fettle_score a = FETTLE_SCORE_INIT, b = FETTLE_SCORE_INIT;
	struct loaded calib = load(CALIB, 32), eval = load(EVAL, 200);
	void *model;
	size_t n;

	(void)state;
	o.model = MODEL;
	o.calib = CALIB;
	o.samples = 32;
	o.threads = 1;
	o.output = out;
	must(fettle_quantize(f, &o, &q));
	assert_null(fettle_model_bytes(f, &n)); /* it was not asked for */
	assert_int_equal(n, 0);
	o.output = NULL;
	assert_refused(fettle_quantize(f, &o, &q), "need a model and an output path");
	o.calib_data = calib.data;
	o.to_memory = true;
	assert_refused(fettle_quantize(f, &o, &q), "need one of them");
	o.calib = NULL;
	must(fettle_quantize(f, &o, &q));
	assert_is_file(out);
	assert_null(q.output);
	o.output = out; /* both */
	must(fettle_quantize(f, &o, &q));
	assert_is_file(out);
	assert_string_equal(q.output, out);

	model = (void *)(uintptr_t)fettle_model_bytes(f, &n);
	e.model_bytes = memcpy(xmalloc(n), model, n); /* the next call ends it */
	model = (void *)(uintptr_t)e.model_bytes;
	e.model_size = n;
	e.data = EVAL;
	e.samples = 200;
	e.threads = 1;
	must(fettle_eval(f, &e, &a));
	assert_null(fettle_model_bytes(f, &n));
	e.data = NULL;
	e.arrays = eval.data;
	must(fettle_eval(f, &e, &b));
	assert_string_equal(b.metric, "top1");
	assert_true(a.value == b.value && b.samples == 200);
	free(model);
	loaded_release(&calib);
	loaded_release(&eval);
	free(out);
}

static void bad_arrays_are_refused(void **state)
{
	static const float x[12];
	const int64_t four[] = { 4, 3 }, three[] = { 3, 4 }, none[] = { 0, 3 };
	struct fettle_eval_options o = FETTLE_EVAL_OPTIONS_INIT;
	struct fettle_score score = FETTLE_SCORE_INIT;
	struct fettle_data *d = fettle_data_new();

	(void)state;
	o.model = MODEL;
	o.arrays = d;
	assert_refused(fettle_eval(f, &o, &score), "none was added");
	assert_refused(fettle_data_add(f, d, "x", FETTLE_FLOAT32, 0, NULL, x), "0 dimensions, need 1");
	assert_refused(fettle_data_add(f, d, "x", FETTLE_FLOAT32, 2, none, x), "a dimension of 0");
	assert_refused(fettle_data_add(f, d, "x", FETTLE_FLOAT32, 2, four, NULL), "need its values");
	assert_refused(fettle_data_add(f, d, NULL, FETTLE_FLOAT32, 2, four, x), "need a name");
	assert_refused(fettle_data_add(f, d, "x", (enum fettle_dtype)8, 2, four, x), "type 8");
	must(fettle_data_add(f, d, "x", FETTLE_FLOAT32, 2, four, x));
	assert_refused(fettle_data_add(f, d, "x", FETTLE_FLOAT32, 2, four, x), "one of that name");
	assert_refused(fettle_data_add(f, d, "z", FETTLE_FLOAT32, 2, three, x), "3 samples, need 4");
	fettle_data_free(d);
	fettle_data_free(NULL);
}

/* arrays are read by several trials at once, as files are */
static void a_run_gives_its_model(void **state)
{
	char *run = xstrfmt("%s/run", dir);
	struct fettle_tune_options o = FETTLE_TUNE_OPTIONS_INIT;
	struct fettle_recover_options back = FETTLE_RECOVER_OPTIONS_INIT;
	struct fettle_tuned *t = NULL;
	struct loaded calib = load(CALIB, 16), eval = load(EVAL, 100), other = load(EVAL, 99);
	const char *note;
	size_t i;

	(void)state;
	o.model = MODEL;
	o.calib_data = calib.data;
	o.eval_data = eval.data;
	o.workspace = run;
	o.max_trials = 2;
	o.jobs = "2";
	o.to_memory = true;
	must(fettle_tune(f, &o, &t));
	assert_is_file(t->output);
	for (i = 0; (note = fettle_note(f, i)); i++)
		assert_null(strstr(note, "one at a time"));
	back.workspace = run;
	back.trial = t->best->trial;
	back.to_memory = true;
	must(fettle_recover(f, &back));
	assert_is_file(t->output);
	fettle_tuned_free(t);
	o.resume = true; /* with other samples it would be another run */
	o.eval_data = other.data;
	assert_refused(fettle_tune(f, &o, &t), "evaluation data");
	o.eval_data = eval.data;
	must(fettle_tune(f, &o, &t));
	fettle_tuned_free(t);
	loaded_release(&other);
	loaded_release(&calib);
	loaded_release(&eval);
	free(run);
}

static bool read_nothing(void *self, size_t sample, size_t field, void *to)
{
	(void)self, (void)sample, (void)field, (void)to;
	fettle_callback_failed("the disk has gone");
	return false;
}

static double no_score(void *self, const char *model)
{
	(void)self, (void)model;
	fettle_callback_failed("the robot fell over");
	return NAN;
}

static double no_sample(void *self, const struct fettle_tensor *outputs, size_t n,
			const struct fettle_tensor *label)
{
	(void)self, (void)outputs, (void)n, (void)label;
	fettle_callback_failed("the label is torn");
	return NAN;
}

static void functions_say_why_they_failed(void **state)
{
	static const int64_t dims[] = { 1, 28, 28 };
	static const struct fettle_field field = { "x", FETTLE_FLOAT32, 3, dims };
	const struct fettle_data_source source = {
		.size = sizeof(source), .samples = 8, .fields = &field, .n_fields = 1, .read = read_nothing
	};
	const struct fettle_metric metric = { .size = sizeof(metric), .name = "torn", .sample = no_sample };
	char *run = xstrfmt("%s/failed", dir);
	struct fettle_eval_options o = FETTLE_EVAL_OPTIONS_INIT;
	struct fettle_tune_options tune = FETTLE_TUNE_OPTIONS_INIT;
	struct fettle_score score = FETTLE_SCORE_INIT;
	struct fettle_tuned *t = NULL;

	(void)state;
	o.model = MODEL;
	o.data_source = &source;
	assert_refused(fettle_eval(f, &o, &score), "read() failed at sample 0 of 'x': the disk has gone");
	must(fettle_register_metric(f, &metric));
	o.data_source = NULL;
	o.data = EVAL;
	o.samples = 10;
	o.metric = "torn";
	assert_refused(fettle_eval(f, &o, &score), "cannot compute metric 'torn': the label is torn");
	tune.model = MODEL;
	tune.calib = CALIB;
	tune.workspace = run;
	tune.evaluate = no_score;
	assert_refused(fettle_tune(f, &tune, &t), "the evaluator gave no number: the robot fell over");
	free(run);
}

static int start(void **state)
{
	(void)state;
	f = fettle_new();
	dir = temp_tree();
	return 0;
}

static int stop(void **state)
{
	(void)state;
	fettle_free(f);
	remove_tree(dir);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(memory_in_memory_out),
		cmocka_unit_test(bad_arrays_are_refused),
		cmocka_unit_test(a_run_gives_its_model),
		cmocka_unit_test(functions_say_why_they_failed),
	};

	return cmocka_run_group_tests(tests, start, stop);
}
