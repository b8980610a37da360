/* The public interface, as a program uses it. Of the library's inside, only the reader of .npz files is used: to have
 * data to hand over by callbacks. */
#include "unit/unit.h"

#include <pthread.h>

#include "base/file.h"
#include "base/str.h"
#include "data/dataset.h"
#include "unit/tree.h"

#define MODEL "examples/fashion.onnx"
#define CALIB "examples/fashion_calib.npz"
#define EVAL "examples/fashion_eval.npz"

#define must(f, call)                                                                                        \
	do {                                                                                                 \
		enum fettle_status st_ = (call);                                                             \
		if (st_)                                                                                     \
			fail_msg("%s: status %d, %s", #call, (int)st_, fettle_message(f));                   \
	} while (0)

static void assert_refused(const struct fettle *f, enum fettle_status st, const char *words)
{
	assert_int_equal(st, FETTLE_INVALID);
	if (!strstr(fettle_message(f), words))
		fail_msg("no '%s' in '%s'", words, fettle_message(f));
}

static struct fettle_quantize_options quantize_options(void)
{
	struct fettle_quantize_options o = FETTLE_QUANTIZE_OPTIONS_INIT;

	o.model = MODEL;
	o.calib = CALIB;
	o.samples = 32;
	o.threads = 1;
	return o;
}

static struct fettle_eval_options eval_options(void)
{
	struct fettle_eval_options o = FETTLE_EVAL_OPTIONS_INIT;

	o.model = MODEL;
	o.data = EVAL;
	o.samples = 200;
	o.threads = 1;
	return o;
}

static struct fettle_tune_options tune_options(void)
{
	struct fettle_tune_options o = FETTLE_TUNE_OPTIONS_INIT;

	o.model = MODEL;
	o.calib = CALIB;
	o.samples = 32;
	o.eval = EVAL;
	o.eval_samples = 200;
	o.threads = 1;
	o.strategy = "basic"; /* does not choose by measured times, so that models can be compared */
	return o;
}

static void assert_same_files(const char *a, const char *b)
{
	struct bytes x = BYTES_INIT, y = BYTES_INIT;
	struct err err = ERR_INIT;

	assert_ok(file_map(a, &x, &err), err);
	assert_ok(file_map(b, &y, &err), err);
	assert_int_equal(x.n, y.n);
	assert_memory_equal(x.p, y.p, x.n);
	bytes_release(&x);
	bytes_release(&y);
}

static char *path_in(const char *dir, const char *name)
{
	return xstrfmt("%s/%s", dir, name);
}

/* ---- options ---- */

static void options_are_checked(void **state)
{
	struct fettle *f = fettle_new();
	struct fettle_quantize_options none = FETTLE_QUANTIZE_OPTIONS_INIT, zero = { .size = 0 },
				       huge = { .size = 1 << 20 };
	struct fettle_tune_options no_tune = FETTLE_TUNE_OPTIONS_INIT;
	struct fettle_inspect_options no_inspect = FETTLE_INSPECT_OPTIONS_INIT;
	struct fettle_sensitivity_options no_sensitivity = FETTLE_SENSITIVITY_OPTIONS_INIT;
	struct fettle_bench_options no_bench = FETTLE_BENCH_OPTIONS_INIT;
	struct fettle_eval_options both = eval_options(), empty = FETTLE_EVAL_OPTIONS_INIT,
				   no_eval = FETTLE_EVAL_OPTIONS_INIT;
	struct fettle_quantized q = FETTLE_QUANTIZED_INIT;
	struct fettle_tuned *t = NULL;
	struct fettle_score score = FETTLE_SCORE_INIT;
	struct fettle_timing timing = FETTLE_TIMING_INIT;
	struct fettle_inspection *inspection = NULL;
	struct fettle_sensitivity *sensitivity = NULL;
	struct fettle_profile *profile = NULL;
	size_t n;

	(void)state;
	assert_refused(f, fettle_quantize(f, NULL, &q), "size 0");
	assert_refused(f, fettle_quantize(f, &zero, &q), "size 0");
	assert_refused(f, fettle_quantize(f, &huge, &q), "size 1048576");
	assert_refused(f, fettle_quantize(f, &none, &q), "need a model");
	assert_refused(f, fettle_tune(f, &no_tune, &t), "need a model");
	assert_refused(f, fettle_eval(f, &no_eval, &score), "need a model");
	assert_refused(f, fettle_inspect(f, &no_inspect, &inspection), "need a model");
	assert_refused(f, fettle_sensitivity(f, &no_sensitivity, &sensitivity), "need a model");
	assert_refused(f, fettle_bench(f, &no_bench, &timing), "none is given");
	assert_refused(f, fettle_profile(f, &no_bench, &profile), "need a model");
	assert_refused(f, fettle_footprint(f, &no_bench, &n), "need a model");
	both.model_bytes = "x";
	both.model_size = 1;
	assert_refused(f, fettle_eval(f, &both, &score), "either a path or bytes");
	empty.model_bytes = "x";
	assert_refused(f, fettle_eval(f, &empty, &score), "0 bytes");
	assert_refused(f, fettle_load_plugin(f, NULL), "no path");
	fettle_free(f);
	fettle_free(NULL);
}

static void older_options_are_accepted(void **state)
{
	char *dir = temp_tree(), *now = path_in(dir, "now.onnx"), *then = path_in(dir, "then.onnx");
	struct fettle *f = fettle_new();
	struct fettle_quantize_options o = quantize_options();
	struct fettle_quantized q = FETTLE_QUANTIZED_INIT;

	(void)state;
	o.output = now;
	must(f, fettle_quantize(f, &o, &q));
	o.output = then;
	o.size = offsetof(struct fettle_quantize_options, cpu); /* what a program of long ago knew */
	memset((char *)&o + o.size, 0xee, sizeof(o) - o.size);
	must(f, fettle_quantize(f, &o, &q));
	assert_same_files(now, then);
	fettle_free(f);
	free(now);
	free(then);
	remove_tree(dir);
}

/* ---- data and models that are no files ---- */

struct from_npz {
	struct dataset *d;
	struct batch b;
	struct fettle_field fields[2];
	size_t reads, fail_at;
};

static bool read_npz(void *self, size_t sample, size_t field, void *to)
{
	struct from_npz *n = self;
	struct err err = ERR_INIT;

	if (n->fail_at && ++n->reads >= n->fail_at)
		return false;
	if (dataset_read(n->d, &sample, 1, &n->b, &err))
		return false;
	memcpy(to, n->b.fields[field].t.data, tensor_bytes(&n->b.fields[field].t));
	return true;
}

static struct fettle_data_source from_npz(struct from_npz *n, const char *path)
{
	struct err err = ERR_INIT;
	size_t i;

	memset(n, 0, sizeof(*n));
	assert_ok(dataset_open(&n->d, path, NULL, &err), err);
	assert_int_equal(n->d->n_fields, 2);
	for (i = 0; i < 2; i++)
		n->fields[i] =
			(struct fettle_field){ n->d->fields[i].name,
					       (enum fettle_dtype)n->d->fields[i].sample.dtype,
					       n->d->fields[i].sample.rank, n->d->fields[i].sample.dims };
	return (struct fettle_data_source){ .size = sizeof(struct fettle_data_source),
					    .name = "memory",
					    .samples = n->d->n,
					    .fields = n->fields,
					    .n_fields = 2,
					    .read = read_npz,
					    .self = n };
}

static void from_npz_release(struct from_npz *n)
{
	batch_release(&n->b);
	dataset_free(n->d);
}

static void callbacks_equal_files(void **state)
{
	char *dir = temp_tree(), *by_file = path_in(dir, "file.onnx"), *by_call = path_in(dir, "call.onnx");
	struct fettle *f = fettle_new();
	struct fettle_quantize_options o = quantize_options();
	struct fettle_eval_options e = eval_options();
	struct fettle_quantized q = FETTLE_QUANTIZED_INIT;
	struct fettle_score a = FETTLE_SCORE_INIT, b = FETTLE_SCORE_INIT;
	struct from_npz calib, eval;
	struct fettle_data_source cs = from_npz(&calib, CALIB), es = from_npz(&eval, EVAL);

	(void)state;
	o.output = by_file;
	must(f, fettle_quantize(f, &o, &q));
	must(f, fettle_eval(f, &e, &a));
	assert_int_equal(q.calib_samples, 32);
	o.calib_source = &cs;
	assert_refused(f, fettle_quantize(f, &o, &q), "need one of them");
	o.calib = e.data = NULL;
	e.data_source = &es;
	o.output = by_call;
	must(f, fettle_quantize(f, &o, &q));
	assert_same_files(by_file, by_call);
	must(f, fettle_eval(f, &e, &b));
	assert_string_equal(b.metric, "top1");
	assert_true(a.value == b.value);
	assert_int_equal(b.samples, 200);
	eval.fail_at = 100;
	assert_refused(f, fettle_eval(f, &e, &b), "memory: read() failed");
	from_npz_release(&calib);
	from_npz_release(&eval);
	fettle_free(f);
	free(by_file);
	free(by_call);
	remove_tree(dir);
}

static bool read_zeros(void *self, size_t sample, size_t field, void *to)
{
	(void)self;
	(void)sample;
	(void)field;
	memset(to, 0, 28 * 28);
	return true;
}

static void bad_sources_are_refused(void **state)
{
	static const int64_t dims[] = { 1, 28, 28 }, flat[] = { 0 };
	static const struct {
		const char *words;
		struct fettle_field fields[2];
		size_t n, samples;
	} rows[] = {
		{ "0 samples", { { "x", FETTLE_UINT8, 3, dims } }, 1, 0 },
		{ "0 fields", { { NULL, FETTLE_UINT8, 0, NULL } }, 0, 4 },
		{ "need a name", { { NULL, FETTLE_UINT8, 3, dims } }, 1, 4 },
		{ "this is taken", { { "x", FETTLE_UINT8, 3, dims }, { "x", FETTLE_UINT8, 3, dims } }, 2, 4 },
		{ "type 8", { { "x", (enum fettle_dtype)8, 3, dims } }, 1, 4 },
		{ "rank 40", { { "x", FETTLE_UINT8, 40, dims } }, 1, 4 },
		{ "dimension of 0", { { "x", FETTLE_UINT8, 1, flat } }, 1, 4 },
		{ "shape", { { "x", FETTLE_UINT8, 2, dims } }, 1, 4 },
		{ "no labels", { { "x", FETTLE_UINT8, 3, dims } }, 1, 4 },
	};
	struct fettle *f = fettle_new();
	struct fettle_score score = FETTLE_SCORE_INIT;
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_LEN(rows); i++) {
		struct fettle_eval_options o = eval_options();
		struct fettle_data_source s = { .size = sizeof(s),
						.samples = rows[i].samples,
						.fields = rows[i].fields,
						.n_fields = rows[i].n,
						.read = read_zeros };

		o.data = NULL;
		o.data_source = &s;
		o.metric = "top1";
		assert_refused(f, fettle_eval(f, &o, &score), rows[i].words);
		s.size = 3;
		assert_refused(f, fettle_eval(f, &o, &score), "a source of size 3");
	}
	fettle_free(f);
}

static void a_model_may_be_in_memory(void **state)
{
	char *dir = temp_tree(), *by_file = path_in(dir, "file.onnx"), *by_bytes = path_in(dir, "bytes.onnx"),
	     *run = path_in(dir, "run"), *again = path_in(dir, "again.onnx");
	struct fettle *f = fettle_new();
	struct fettle_quantize_options o = quantize_options();
	struct fettle_tune_options run_o = tune_options();
	struct fettle_recover_options back = FETTLE_RECOVER_OPTIONS_INIT;
	struct fettle_quantized q = FETTLE_QUANTIZED_INIT;
	struct fettle_tuned *t = NULL;
	struct bytes bytes = BYTES_INIT;
	struct err err = ERR_INIT;

	(void)state;
	assert_ok(file_map(MODEL, &bytes, &err), err);
	o.output = by_file;
	must(f, fettle_quantize(f, &o, &q));
	o.model = NULL;
	o.model_bytes = bytes.p;
	o.model_size = bytes.n;
	o.output = by_bytes;
	must(f, fettle_quantize(f, &o, &q));
	assert_same_files(by_file, by_bytes);
	assert_int_equal(q.size_before, bytes.n);
	/* a run can be recovered and resumed, though there never was a file */
	run_o.model = NULL;
	run_o.model_bytes = bytes.p;
	run_o.model_size = bytes.n;
	run_o.workspace = run;
	run_o.max_trials = 1;
	must(f, fettle_tune(f, &run_o, &t));
	fettle_tuned_free(t);
	back.workspace = run;
	back.trial = 1;
	back.output = again;
	must(f, fettle_recover(f, &back));
	assert_same_files(by_bytes, again);
	run_o.resume = true;
	must(f, fettle_tune(f, &run_o, &t));
	fettle_tuned_free(t);
	run_o.model = "examples/fashion_plain.onnx"; /* another one */
	run_o.model_bytes = NULL;
	assert_refused(f, fettle_tune(f, &run_o, &t), "model");
	o.model_bytes = "not a model";
	o.model_size = 11;
	assert_refused(f, fettle_quantize(f, &o, &q), "cannot load");
	bytes_release(&bytes);
	fettle_free(f);
	free(by_file);
	free(by_bytes);
	free(run);
	free(again);
	remove_tree(dir);
}

/* ---- strategies and metrics of one's own ---- */

static double top1(void *self, const struct fettle_tensor *outputs, size_t n,
		   const struct fettle_tensor *label)
{
	const float *x = outputs[0].data;
	int64_t best = 0, i;

	assert_int_equal(n, 1);
	assert_int_equal(outputs[0].dtype, FETTLE_FLOAT32);
	assert_int_equal(outputs[0].rank, 1);
	assert_int_equal(label->dtype, FETTLE_INT64);
	assert_int_equal(label->rank, 0);
	for (i = 1; i < outputs[0].dims[0]; i++)
		if (x[i] > x[best])
			best = i;
	++*(size_t *)self;
	return best == *(const int64_t *)label->data;
}

static void a_registered_metric_equals_the_built_in(void **state)
{
	size_t calls = 0;
	struct fettle_metric m = {
		.size = sizeof(m), .name = "mine", .higher_is_better = true, .sample = top1, .self = &calls
	};
	struct fettle *f = fettle_new(), *other = fettle_new();
	struct fettle_eval_options o = eval_options();
	struct fettle_score a = FETTLE_SCORE_INIT, b = FETTLE_SCORE_INIT;

	(void)state;
	must(f, fettle_register_metric(f, &m));
	assert_refused(f, fettle_register_metric(f, &m), "registered already");
	m.name = "Accuracy"; /* top1's other name */
	assert_refused(f, fettle_register_metric(f, &m), "built-in");
	m.name = "a:b";
	assert_refused(f, fettle_register_metric(f, &m), "without a colon");
	m.name = "none";
	m.sample = NULL;
	assert_refused(f, fettle_register_metric(f, &m), "no sample()");
	must(f, fettle_eval(f, &o, &a));
	o.metric = "Mine";
	must(f, fettle_eval(f, &o, &b));
	assert_string_equal(b.metric, "mine");
	assert_true(b.higher_is_better);
	assert_true(a.value == b.value);
	assert_int_equal(calls, 200);
	assert_refused(other, fettle_eval(other, &o, &b), "Mine"); /* what is registered is the handle's */
	fettle_free(f);
	fettle_free(other);
}

/* ---- losses and kinds of data ---- */

static double no_number(void *self, const struct fettle_tensor *outputs,
			const struct fettle_tensor *reference, size_t n_outputs,
			const struct fettle_tensor *label)
{
	assert_non_null(label);
	assert_int_equal(n_outputs, 1);
	assert_true(outputs[0].rank == reference[0].rank && outputs[0].data && reference[0].data);
	++*(size_t *)self;
	return (double)NAN;
}

static enum fettle_status by_curvature(struct fettle_search *s, void *self)
{
	unsigned char plan[256];
	size_t order[256], i, n;

	(void)self;
	assert_in_range(fettle_search_n_params(s), 1, 256);
	for (i = 0; i < fettle_search_n_params(s); i++)
		plan[i] = (unsigned char)fettle_search_param(s, i)->first;
	return fettle_search_rank_ops(s, plan, FETTLE_RANK_HESSIAN, order, NULL, &n);
}

static void losses_are_registered(void **state)
{
	static const struct fettle_setting hawq[] = { { "tuning.strategy.name", "curvature", "test" },
						      { "tuning.strategy.hawq_v2_loss", "mine", "test" } };
	const struct fettle_strategy curvature = { .size = sizeof(curvature),
						   .name = "curvature",
						   .traverse = by_curvature };
	size_t calls = 0;
	struct fettle_loss l = { .size = sizeof(l), .name = "mine", .sample = no_number, .self = &calls };
	struct fettle *f = fettle_new();
	struct fettle_tune_options o = tune_options();
	struct fettle_tuned *t = NULL;
	char *dir = temp_tree(), *workspace = path_in(dir, "w");

	(void)state;
	must(f, fettle_register_loss(f, &l));
	assert_refused(f, fettle_register_loss(f, &l), "registered already");
	l.name = "mse";
	assert_refused(f, fettle_register_loss(f, &l), "built-in");
	l.name = "";
	assert_refused(f, fettle_register_loss(f, &l), "no name");
	l.name = "none";
	l.sample = NULL;
	assert_refused(f, fettle_register_loss(f, &l), "no sample()");
	o.calib = CALIB;
	o.workspace = workspace;
	o.settings = hawq;
	o.n_settings = 2;
	must(f, fettle_register_strategy(f, &curvature));
	assert_refused(f, fettle_tune(f, &o, &t), "hawq_v2_loss of the fp32 model is");
	assert_true(calls > 0);
	fettle_free(f);
	free(workspace);
	remove_tree(dir);
}

static const char *fails_to_open(void *self, const char *root, const struct fettle_setting *params,
				 size_t n_params, struct fettle_data_source *out)
{
	(void)self, (void)params, (void)out;
	assert_string_equal(root, "somewhere");
	assert_int_equal(n_params, 0);
	return "the tape is worn out";
}

static void datasets_are_registered(void **state)
{
	struct fettle_dataset d = { .size = sizeof(d), .name = "Tape", .open = fails_to_open };
	struct fettle *f = fettle_new();
	struct fettle_eval_options o = eval_options();
	struct fettle_score score = FETTLE_SCORE_INIT;

	(void)state;
	must(f, fettle_register_dataset(f, &d));
	assert_refused(f, fettle_register_dataset(f, &d), "registered already");
	d.name = "Npz";
	assert_refused(f, fettle_register_dataset(f, &d), "built-in");
	d.name = "a:b";
	assert_refused(f, fettle_register_dataset(f, &d), "without colon and slash");
	d.name = "none";
	d.open = NULL;
	assert_refused(f, fettle_register_dataset(f, &d), "no open()");
	d.size = 1;
	assert_refused(f, fettle_register_dataset(f, &d), "size 1");
	o.data = "Tape:somewhere";
	assert_refused(f, fettle_eval(f, &o, &score),
		       "cannot read dataset Tape somewhere: the tape is worn out");
	fettle_free(f);
}

struct probe {
	size_t n_ops, tries;
	bool best_agrees;
};

/* all in int8, then the worst op in fp32 */
static enum fettle_status probe_traverse(struct fettle_search *s, void *self)
{
	struct probe *p = self;
	unsigned char plan[256], best[256];
	size_t order[256], i, n = 0;
	double scores[256];
	struct fettle_plan_score score = FETTLE_PLAN_SCORE_INIT, found = FETTLE_PLAN_SCORE_INIT;
	enum fettle_status st;

	p->n_ops = fettle_search_n_ops(s);
	assert_in_range(fettle_search_n_params(s), p->n_ops, 256);
	assert_null(fettle_search_param(s, fettle_search_n_params(s)));
	assert_false(fettle_search_best(s, best, &found));
	assert_int_equal(fettle_search_trials_left(s), 2);
	for (i = 0; i < fettle_search_n_params(s); i++) {
		const struct fettle_param *q = fettle_search_param(s, i);

		assert_int_equal(q->kind == FETTLE_PARAM_OP, i < p->n_ops);
		assert_true(q->first < q->n_options);
		if (q->kind == FETTLE_PARAM_OP && q->fp32 >= 0)
			assert_int_equal(q->modes[q->fp32], FETTLE_MODE_FP32);
		plan[i] = (unsigned char)q->first;
	}
	fettle_search_stage(s, "first");
	st = fettle_search_try(s, plan, &score);
	p->tries++;
	if (st)
		return st;
	p->best_agrees = fettle_search_best(s, best, &found) && found.accuracy == score.accuracy &&
			 !memcmp(plan, best, fettle_search_n_params(s));
	st = fettle_search_rank_ops(s, plan, FETTLE_RANK_OUTPUT_ERROR, order, scores, &n);
	if (st)
		return st;
	assert_in_range(n, 1, p->n_ops);
	for (i = 1; i < n; i++)
		assert_true(scores[i] <= scores[i - 1]);
	fettle_search_stage(s, "second");
	plan[order[0]] = (unsigned char)fettle_search_param(s, order[0])->fp32;
	p->tries++;
	return fettle_search_try(s, plan, &score);
}

static enum fettle_status bad_option(struct fettle_search *s, void *self, unsigned char *plan)
{
	(void)s;
	(void)self;
	plan[0] = 250;
	return FETTLE_OK;
}

static enum fettle_status gives_up(struct fettle_search *s, void *self)
{
	return self ? fettle_search_fail(s, FETTLE_INVALID, "no idea") : FETTLE_BACKEND;
}

static enum fettle_status tune_with(struct fettle *f, const char *strategy, int64_t trials, const char *run,
				    struct fettle_tuned **t)
{
	struct fettle_tune_options o = tune_options();

	o.strategy = strategy;
	o.max_trials = trials;
	o.tolerance = 0.0001;
	o.workspace = run;
	return fettle_tune(f, &o, t);
}

static void a_registered_strategy_runs(void **state)
{
	char *dir = temp_tree(), *run = path_in(dir, "run"), *other[4];
	struct probe p = { .tries = 0 };
	struct fettle_strategy s = {
		.size = sizeof(s), .name = "probe", .traverse = probe_traverse, .self = &p
	};
	struct fettle *f = fettle_new();
	struct fettle_tuned *t = NULL;
	struct fettle_run *h = NULL;
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_LEN(other); i++)
		other[i] = xstrfmt("%s/other%zu", dir, i);
	must(f, fettle_register_strategy(f, &s));
	assert_refused(f, fettle_register_strategy(f, &s), "registered already");
	s.name = "basic";
	assert_refused(f, fettle_register_strategy(f, &s), "built-in");
	s.name = "both";
	s.next = bad_option;
	assert_refused(f, fettle_register_strategy(f, &s), "both traverse and next");
	s.name = "bad";
	s.traverse = NULL;
	must(f, fettle_register_strategy(f, &s));
	s.next = NULL;
	assert_refused(f, fettle_register_strategy(f, &s), "neither");
	s.name = "silent";
	s.traverse = gives_up;
	s.self = NULL;
	must(f, fettle_register_strategy(f, &s));
	s.name = "clear";
	s.self = &p;
	must(f, fettle_register_strategy(f, &s));
	s.size = 1;
	assert_refused(f, fettle_register_strategy(f, &s), "size 1");

	must(f, tune_with(f, "probe", 2, run, &t));
	assert_string_equal(t->strategy, "probe");
	assert_int_equal(t->trials, 2);
	assert_true(p.best_agrees);
	assert_int_equal(p.tries, 2);
	fettle_tuned_free(t);
	must(f, fettle_history(f, run, &h));
	assert_string_equal(h->strategy, "probe");
	assert_int_equal(h->n_trials, 2);
	assert_string_equal(h->trials[0]->stage, "first");
	assert_string_equal(h->trials[1]->stage, "second");
	assert_string_not_equal(h->trials[0]->plan, h->trials[1]->plan);
	fettle_run_free(h);

	assert_refused(f, tune_with(f, "bad", 2, other[0], &t), "'bad' chose option 250");
	assert_refused(f, tune_with(f, "clear", 2, other[1], &t), "'clear' failed: no idea");
	assert_int_equal(tune_with(f, "silent", 2, other[2], &t), FETTLE_BACKEND);
	assert_non_null(strstr(fettle_message(f), "'silent' failed: it returned status 5"));
	assert_refused(f, tune_with(f, "prob", 2, other[3], &t), "did you mean 'probe'");
	fettle_free(f);
	free(run);
	for (i = 0; i < ARRAY_LEN(other); i++)
		free(other[i]);
	remove_tree(dir);
}

/* ---- searching settings ---- */

/* the evaluator of a program: how large the model is */
static double file_size(void *self, const char *model)
{
	struct bytes b = BYTES_INIT;
	double n;

	(void)self;
	if (file_map(model, &b, NULL))
		return NAN;
	n = (double)b.n;
	bytes_release(&b);
	return n;
}

static void settings_are_searched(void **state)
{
	char *dir = temp_tree(), *run = path_in(dir, "run"), *out = path_in(dir, "best.onnx"),
	     *again = path_in(dir, "again.onnx");
	const struct fettle_setting settings[] = {
		{ "search_space.calibrate_method", "[MinMax, Percentile]", "test" },
		{ "search_space.weight_type", "[QInt16, QInt8]", "test" },
		{ "search_space.extra_options.Percentile", "[99, 99.9]", "test" },
	};
	struct fettle *f = fettle_new();
	struct fettle_search_options o = FETTLE_SEARCH_OPTIONS_INIT;
	struct fettle_recover_options back = FETTLE_RECOVER_OPTIONS_INIT;
	struct fettle_tuned *t = NULL;
	size_t i;

	(void)state;
	o.model = MODEL;
	o.calib = CALIB;
	o.samples = 32;
	o.eval = EVAL;
	o.eval_samples = 200;
	o.threads = 1;
	o.output = out;
	o.workspace = run;
	assert_refused(f, fettle_auto_search(f, &o, &t), "no search_space");
	o.settings = settings;
	o.n_settings = 3;
	must(f, fettle_auto_search(f, &o, &t));
	assert_true(t->met && t->space == 6 && t->trials == 6 && t->n_candidates == 6);
	assert_string_equal(t->metric, "l2");
	for (i = 1; i < 6; i++)
		assert_true(t->candidates[i - 1]->loss <= t->candidates[i]->loss);
	assert_int_equal(t->candidates[0]->trial, t->best->trial);
	back.workspace = run;
	back.trial = t->best->trial;
	back.output = again;
	must(f, fettle_recover(f, &back));
	assert_same_files(out, again);
	fettle_tuned_free(t);

	/* by a function of the program: 8 bits are smaller than 16 */
	free(run);
	run = path_in(dir, "size");
	o.output = out;
	o.workspace = run;
	o.evaluate = file_size;
	o.lower_is_better = true;
	must(f, fettle_auto_search(f, &o, &t));
	assert_true(t->met && t->candidates[0]->accuracy < t->candidates[t->n_candidates - 1]->accuracy);
	assert_non_null(strstr(t->candidates[0]->settings, "weight_type: QInt8"));
	fettle_tuned_free(t);
	fettle_free(f);
	free(run);
	free(out);
	free(again);
	remove_tree(dir);
}

/* ---- cancelling, and several handles at once ---- */

struct canceller {
	const char *phase; /* in which to cancel; NULL: after a trial */
	bool seen;
};

static bool cancel(void *self, const char *phase, size_t done, size_t total)
{
	struct canceller *c = self;

	(void)done;
	(void)total;
	return c->phase ? strcmp(phase, c->phase) != 0 : !c->seen;
}

static void note_trial(void *self, const struct fettle_progress_info *info)
{
	(void)info;
	((struct canceller *)self)->seen = true;
}

static void a_run_can_be_cancelled(void **state)
{
	char *dir = temp_tree(), *run = path_in(dir, "run"), *out = path_in(dir, "out.onnx");
	struct canceller at_once = { .phase = "prepare" }, calibrating = { .phase = "calibrate" },
			 later = { .seen = false };
	struct fettle *f = fettle_new();
	struct fettle_quantize_options o = quantize_options();
	struct fettle_quantized q = FETTLE_QUANTIZED_INIT;
	struct fettle_tuned *t = NULL;

	(void)state;
	o.output = out;
	fettle_on_progress(f, cancel, &at_once);
	assert_int_equal(tune_with(f, "basic", 5, run, &t), FETTLE_STOP);
	fettle_on_progress(f, cancel, &calibrating);
	assert_int_equal(fettle_quantize(f, &o, &q), FETTLE_STOP);
	assert_int_equal(access(out, F_OK), -1);
	/* once there is a trial, its model is what the run ends with */
	fettle_on_progress(f, cancel, &later);
	fettle_on_trial(f, note_trial, &later);
	must(f, tune_with(f, "basic", 5, run, &t));
	assert_int_equal(t->stop, FETTLE_STOP_INTERRUPTED);
	assert_int_equal(t->trials, 1);
	assert_int_equal(t->best->trial, 1);
	assert_int_equal(access(t->output, F_OK), 0);
	fettle_tuned_free(t);
	fettle_free(f);
	free(run);
	free(out);
	remove_tree(dir);
}

struct worker {
	pthread_t thread;
	const char *dir;
	int number;
	struct str seen; /* every trial's accuracy and plan */
	enum fettle_status st;
	char message[256];
};

/* asserts jump, which a thread must not: what went wrong is told in the struct */
static void *work(void *self)
{
	struct worker *w = self;
	char *out = xstrfmt("%s/%d.onnx", w->dir, w->number), *run = xstrfmt("%s/run%d", w->dir, w->number);
	struct fettle *f = fettle_new();
	struct fettle_quantize_options o = quantize_options();
	struct fettle_quantized q = FETTLE_QUANTIZED_INIT;
	struct fettle_tuned *t = NULL;
	struct fettle_run *h = NULL;
	size_t i;

	o.output = out;
	w->st = fettle_quantize(f, &o, &q);
	if (!w->st)
		w->st = tune_with(f, "mse", 3, run, &t);
	if (!w->st)
		w->st = fettle_history(f, run, &h);
	for (i = 0; !w->st && i < h->n_trials; i++)
		str_addf(&w->seen, "%a %s\n", h->trials[i]->accuracy, h->trials[i]->plan);
	snprintf(w->message, sizeof(w->message), "%s", fettle_message(f));
	fettle_tuned_free(t);
	fettle_run_free(h);
	fettle_free(f);
	free(out);
	free(run);
	return NULL;
}

static void handles_may_be_used_at_once(void **state)
{
	char *dir = temp_tree(), *first = path_in(dir, "0.onnx");
	struct worker w[3] = { { .number = 0 } };
	int i;

	(void)state;
	for (i = 0; i < 3; i++) {
		w[i].dir = dir;
		w[i].number = i;
	}
	work(&w[0]); /* alone; the other two together */
	for (i = 1; i < 3; i++)
		assert_int_equal(pthread_create(&w[i].thread, NULL, work, &w[i]), 0);
	for (i = 1; i < 3; i++)
		pthread_join(w[i].thread, NULL);
	for (i = 0; i < 3; i++) {
		char *model = xstrfmt("%s/%d.onnx", dir, i);

		if (w[i].st)
			fail_msg("worker %d: status %d, %s", i, (int)w[i].st, w[i].message);
		assert_non_null(w[i].seen.s);
		assert_string_equal(w[i].seen.s, w[0].seen.s);
		assert_same_files(model, first);
		free(model);
	}
	for (i = 0; i < 3; i++)
		str_release(&w[i].seen);
	free(first);
	remove_tree(dir);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(losses_are_registered),
		cmocka_unit_test(datasets_are_registered),
		cmocka_unit_test(options_are_checked),
		cmocka_unit_test(older_options_are_accepted),
		cmocka_unit_test(callbacks_equal_files),
		cmocka_unit_test(bad_sources_are_refused),
		cmocka_unit_test(a_model_may_be_in_memory),
		cmocka_unit_test(a_registered_metric_equals_the_built_in),
		cmocka_unit_test(a_registered_strategy_runs),
		cmocka_unit_test(settings_are_searched),
		cmocka_unit_test(a_run_can_be_cancelled),
		cmocka_unit_test(handles_may_be_used_at_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
