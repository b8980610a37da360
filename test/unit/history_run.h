/* Runs and trials for the tests of the history. */
#ifndef UNIT_HISTORY_RUN_H
#define UNIT_HISTORY_RUN_H

#include "base/file.h"
#include "base/rng.h"
#include "base/str.h"
#include "history/history.h"
#include "space/space.h"
#include "unit/tree.h"

static inline struct run_info sample_run(void)
{
	return (struct run_info){
		.model_path = "models/größe, 模型 \"x\".onnx",
		.model_fingerprint = "0123456789abcdef0123456789abcdef",
		.calib_fingerprint = "c",
		.eval_fingerprint = "e",
		.config_fingerprint = "f",
		.calib_path = "calib.npz",
		.eval_path = "eval.npz",
		.config = "tuning.strategy.name: basic\ntuning.gamma: 0.1\nkeep_fp32: a: b\n",
		.space = "s",
		.request = "{\"job\": \"tune\"}",
		.strategy = "basic",
		.seed = UINT64_MAX - 1,
		.fettle_version = "0.1.0",
		.runtime_version = "1.30.0",
		.cpu = "avx512-vnni",
		.started = "2025-01-31T23:59:59Z",
		.criterion = "relative",
		.tolerance = 0.01,
		.metric = "topk",
		.higher_is_better = true,
	};
}

/* Everything in it follows from its number, so that a reader can tell whether it is right. */
struct sample {
	struct history_trial t;
	char plan[200], stage[20], why[40];
};

static inline void sample_trial(struct sample *s, size_t number)
{
	snprintf(s->plan, sizeof(s->plan), "{\"op%zu\": \"int8\", \"pad\": \"%0*zu\"}", number,
		 (int)(number % 100), number);
	snprintf(s->stage, sizeof(s->stage), "stage %zu", number % 7);
	snprintf(s->why, sizeof(s->why), "because of %zu", number);
	s->t = (struct history_trial){
		.number = number,
		.plan = s->plan,
		.stage = s->stage,
		.failed = number % 5 == 0,
		.met = number % 3 == 0,
		.accuracy = 1.0 / (double)number,
		.loss = -0.1 * (double)number,
		.objective = number % 2 ? (double)NAN : (double)INFINITY,
		.latency = number % 2 ? -(double)INFINITY : 1e-300,
		.size_bytes = number << 33,
		.samples = number * 10,
		.quantize_s = 0.1,
		.session_s = 0.2,
		.evaluate_s = 0.3,
		.measure_s = (double)NAN,
		.seconds = 1e3 + (double)number,
		.finished = "2025-01-31T23:59:59Z",
		.why = s->why,
	};
}

/* How a history knows its plan. */
static inline const char *sample_hash(const struct sample *s)
{
	static char hash[FINGERPRINT_LEN];

	plan_text_hash(s->plan, hash);
	return hash;
}

#define assert_same_double(a, b) assert_true((isnan(a) && isnan(b)) || (a) == (b))

static inline void check_trial(const struct history_trial *a, size_t number)
{
	struct sample s;
	const struct history_trial *b = &s.t;

	sample_trial(&s, number);
	assert_int_equal(a->number, b->number);
	assert_string_equal(a->plan, b->plan);
	assert_string_equal(a->stage, b->stage);
	assert_int_equal(a->failed, b->failed);
	assert_int_equal(a->met, b->met);
	assert_same_double(a->accuracy, b->accuracy);
	assert_same_double(a->loss, b->loss);
	assert_same_double(a->objective, b->objective);
	assert_same_double(a->latency, b->latency);
	assert_int_equal(a->size_bytes, b->size_bytes);
	assert_int_equal(a->samples, b->samples);
	assert_same_double(a->quantize_s, b->quantize_s);
	assert_same_double(a->session_s, b->session_s);
	assert_same_double(a->evaluate_s, b->evaluate_s);
	assert_same_double(a->measure_s, b->measure_s);
	assert_same_double(a->seconds, b->seconds);
	assert_string_equal(a->finished, b->finished);
	assert_string_equal(a->why, b->why);
}

static inline struct history *new_run(const char *dir)
{
	struct run_info info = sample_run();
	struct err err = ERR_INIT;
	struct history *h = NULL;

	assert_ok(history_create(&h, dir, &info, &err), err);
	return h;
}

static inline struct history *open_run(const char *dir, bool read_only)
{
	struct err err = ERR_INIT;
	struct history *h = NULL;

	assert_ok(history_open(&h, dir, read_only, &err), err);
	return h;
}

static inline void add_trials(struct history *h, size_t from, size_t to)
{
	struct err err = ERR_INIT;
	struct sample s;
	size_t i, number;

	for (i = from; i <= to; i++) {
		sample_trial(&s, i);
		s.t.number = 0; /* the next */
		assert_ok(history_add_trial(h, &s.t, &number, &err), err);
		assert_int_equal(number, i);
	}
}

/* Reads all trials and checks each; how many there are. */
static inline size_t check_trials(struct history *h)
{
	struct history_trial t = { 0 };
	struct err err = ERR_INIT;
	size_t n = 0;

	for (;;) {
		assert_ok(history_next(h, n, &t, &err), err);
		if (!t.number)
			break;
		check_trial(&t, ++n);
	}
	history_trial_release(&t);
	return n;
}

#endif
