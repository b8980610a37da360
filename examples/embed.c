/*
 * fettle inside a program: quantize a model, then tune it with an evaluator of our own, tell how it goes, and stop
 * when asked to. It uses fettle.h only.
 *
 *	cc -o embed embed.c $(pkg-config --cflags --libs fettle)
 *	./embed fashion.onnx fashion_calib.npz fashion_eval.npz /tmp/out [TRIALS]
 *
 * Ctrl-C ends the search, as do TRIALS trials; either way the best model so far is in OUT/tuned.onnx.
 */
#include <fettle.h>

#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

static volatile sig_atomic_t interrupted;

static void on_interrupt(int sig)
{
	(void)sig;
	interrupted = 1;
}

struct job {
	const char *eval;         /* data */
	struct fettle *evaluator; /* a handle of its own: the other one is busy while we are called */
	size_t trials, max_trials;
};

/* Called often, in all phases. Returning false cancels. */
static bool on_progress(void *self, const char *phase, size_t done, size_t total)
{
	const struct job *job = self;

	(void)phase;
	(void)done;
	(void)total;
	return !interrupted && !(job->max_trials && job->trials >= job->max_trials);
}

static void on_trial(void *self, const struct fettle_progress_info *info)
{
	struct job *job = self;

	job->trials++;
	printf("trial %zu, %s: %.4f, %s %.4f\n", info->trial->number, info->trial->stage,
	       info->trial->accuracy, info->trial->met ? "meets" : "misses", info->target);
}

/* Any number that says how good the model in this file is; NaN fails the trial. */
static double evaluate(void *self, const char *model)
{
	struct job *job = self;
	struct fettle_eval_options o = FETTLE_EVAL_OPTIONS_INIT;
	struct fettle_score score = FETTLE_SCORE_INIT;

	o.model = model;
	o.data = job->eval;
	o.samples = 500;
	return fettle_eval(job->evaluator, &o, &score) ? NAN : score.value;
}

static int failed(const struct fettle *f)
{
	fprintf(stderr, "embed: %s\n", fettle_message(f));
	return 1;
}

static int quantize(struct fettle *f, const char *model, const char *calib, const char *output)
{
	struct fettle_quantize_options o = FETTLE_QUANTIZE_OPTIONS_INIT;
	struct fettle_quantized q = FETTLE_QUANTIZED_INIT;

	o.model = model;
	o.calib = calib;
	o.output = output;
	if (fettle_quantize(f, &o, &q))
		return failed(f);
	printf("quantized: %zu ops in int8, %zu in fp32, %zu to %zu bytes\n", q.ops_int8, q.ops_fp32,
	       q.size_before, q.size_after);
	return 0;
}

static int tune(struct fettle *f, struct job *job, const char *model, const char *calib, const char *output,
		const char *workspace)
{
	struct fettle_tune_options o = FETTLE_TUNE_OPTIONS_INIT;
	struct fettle_tuned *t = NULL;

	o.model = model;
	o.calib = calib;
	o.output = output;
	o.workspace = workspace;
	o.evaluate = evaluate;
	o.evaluate_self = job;
	o.tolerance = 0.01;
	o.max_trials = 50;
	fettle_on_progress(f, on_progress, job);
	fettle_on_trial(f, on_trial, job);
	if (fettle_tune(f, &o, &t))
		return failed(f);
	printf("%s after %zu trials: %s, fp32 %.4f, best %.4f with %zu ops in fp32\n",
	       fettle_stop_word(t->stop), t->trials, t->met ? "target met" : "target not met",
	       t->baseline->accuracy, t->best->accuracy, t->best->ops_fp32);
	fettle_tuned_free(t);
	return 0;
}

int main(int argc, char **argv)
{
	char quantized[4096], tuned[4096], workspace[4096];
	struct job job = { .eval = argc > 3 ? argv[3] : NULL };
	struct fettle *f;
	int code;

	if (argc < 5 || argc > 6) {
		fprintf(stderr, "usage: embed MODEL CALIB EVAL OUT_FOLDER [TRIALS]\n");
		return 2;
	}
	snprintf(quantized, sizeof(quantized), "%s/int8.onnx", argv[4]);
	snprintf(tuned, sizeof(tuned), "%s/tuned.onnx", argv[4]);
	snprintf(workspace, sizeof(workspace), "%s/run", argv[4]);
	job.max_trials = argc > 5 ? strtoul(argv[5], NULL, 10) : 0;
	signal(SIGINT, on_interrupt);

	f = fettle_new();
	job.evaluator = fettle_new();
	code = quantize(f, argv[1], argv[2], quantized);
	if (!code)
		code = tune(f, &job, argv[1], argv[2], tuned, workspace);
	fettle_free(job.evaluator);
	fettle_free(f);
	return code;
}
