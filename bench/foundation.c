/*
 * What the foundation promises, measured in one run and printed as ratios:
 * calibration against plain inference, memory against the number of samples, quantizing against an
 * evaluation pass, weights per second, int8 against fp32. Usage: foundation MODEL CALIB EVAL SAMPLES
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tune/source.h"
#include "base/file.h"
#include "evaluate/evaluate.h"
#include "base/rng.h"
#include "quantize/weights.h"
#include "tune/learn.h"

static struct context cx;

static void must(enum fettle_status st)
{
	if (st) {
		fprintf(stderr, "bench: %s\n", cx.err.msg);
		exit(3);
	}
}

static void open_source(struct source *s, const char *path, struct session *session, size_t batch,
			size_t limit)
{
	struct data_ref d = { .what = "bench", .root = path };
	struct feed_options o = { .batch = batch, .limit = limit };

	must(source_open(s, &cx, &d, session, &o));
}

static double least(double a, double b)
{
	return a < b ? a : b;
}

/* one pass over a feed, in seconds */
static double pass(struct session *s, struct feed *feed)
{
	struct tensor *out = xcalloc(session_n_outputs(s), sizeof(*out));
	struct feed_batch b = FEED_BATCH_INIT;
	double start = clock_now();
	enum fettle_status st;

	feed_rewind(feed);
	while (!(st = feed_next(feed, &b, &cx.err)))
		must(session_run(s, b.inputs, out, &cx.err));
	if (st != FETTLE_STOP)
		must(st);
	feed_batch_release(&b);
	free(out);
	return clock_now() - start;
}

static double top1(struct session *s, struct feed *feed)
{
	struct metric *m = NULL;
	struct accuracy a;

	must(metric_new(&m, "top1", &cx.err));
	must(evaluate_accuracy(&(struct evaluation){ .net = network_of(s), .feed = feed, .metric = m }, &a,
			       &cx.err));
	metric_free(m);
	return a.value;
}

/* megabytes of float weights quantized per second, per channel, on matrices no cache holds */
static void weight_speed(struct runtime *rt)
{
	enum { N = 4096 };
	static const struct qsetting settings[] = {
		{ .dtype = DT_S8, .scheme = SCHEME_SYM, .per_channel = true },
		{ .dtype = DT_U8, .scheme = SCHEME_ASYM },
	};
	float *x = xmalloc(N * N * sizeof(*x));
	int8_t *q = xmalloc(N * N);
	struct rng r;
	size_t i, k;

	(void)rt;
	rng_seed(&r, 1);
	for (i = 0; i < N * N; i++)
		x[i] = (float)rng_unit(&r) - 0.5f;
	for (k = 0; k < 2; k++)
		for (i = 0; i < 2; i++) {
			struct tensor t = { .dtype = DT_F32, .rank = 2, .dims = { N, N }, .data = x };
			double best = INFINITY;
			int round;

			for (round = 0; round < 3; round++) {
				double start = clock_now();

				must(quantize_tensor(&t, &settings[k], (int)i, q, &cx.err));
				best = least(best, clock_now() - start);
			}
			printf("  weights, %s, channels along axis %zu: %.0f MB/s\n",
			       settings[k].per_channel ? "int8 per channel" : "uint8 per tensor", i,
			       N * N * 4 / best / 1e6);
		}
	free(x);
	free(q);
}

int main(int argc, char **argv)
{
	struct runtime *rt = NULL;
	struct subject *s = NULL;
	struct session *fp32 = NULL, *int8 = NULL;
	struct session_options so = { .threads = 1 };
	struct source calib = { NULL, NULL }, eval = { NULL, NULL };
	struct calibration *c = NULL;
	struct learner *learner;
	struct knowledge known;
	struct qplan plan = QPLAN_INIT;
	struct qplan_defaults d;
	struct model *q = NULL;
	const char **values;
	double plain = INFINITY, observed = INFINITY, t32 = INFINITY, t8 = INFINITY, quantizing, start, acc32,
	       acc8;
	size_t n, i, k;

	must(runtime_new(&rt, &cx.err));
	if (argc == 2 && strcmp(argv[1], "--weights") == 0) {
		weight_speed(rt);
		return 0;
	}
	if (argc < 5)
		return fprintf(stderr, "usage: foundation MODEL CALIB EVAL SAMPLES | --weights\n"), 2;
	must(subject_open(&s, rt, argv[1], &cx.err));
	must(session_new(&fp32, rt, s->m, &so, &cx.err));
	open_source(&calib, argv[2], fp32, CALIB_BATCH, strtoull(argv[4], NULL, 10));
	open_source(&eval, argv[3], fp32, DEFAULT_BATCH, 1000);
	n = quantizer_values(&s->g, &s->ops, NULL, &values);
	for (i = 0; i < 5; i++) { /* in turns, the best of each */
		struct range_options ro = RANGE_OPTIONS_INIT;

		plain = least(plain, pass(fp32, calib.feed));
		calibration_free(c);
		c = NULL;
		start = clock_now();
		must(calibrate(&c, &(struct calibrate_on){ rt, s->m, calib.feed }, values, n,
			       &(struct calibrate_options){ .threads = 1 }, &cx.err));
		for (k = 0; k < n; k++)
			for (ro.algorithm = 0; ro.algorithm < RANGE_ALGORITHMS; ro.algorithm++) {
				struct range r;

				ro.parameter = range_methods[ro.algorithm]->parameter.by_default;
				must(range_compute(calibration_find(c, values[k]), &ro, &r, &cx.err));
			}
		observed = least(observed, clock_now() - start);
	}
	d = qplan_defaults(&s->cpu);
	qplan_default(&plan, &s->ops, &s->g, &d);
	learner = learner_new(&(struct learn_source){ .rt = rt, .s = s, .calib = calib.feed, .threads = 1 });
	must(learn(learner, 0, &plan, &known, &cx.err));
	start = clock_now();
	must(quantize(s->z, &known, &plan, &q, &cx.err));
	quantizing = clock_now() - start;
	must(session_new(&int8, rt, q, &so, &cx.err));
	acc32 = top1(fp32, eval.feed);
	acc8 = top1(int8, eval.feed);
	for (i = 0; i < 5; i++) {
		t32 = least(t32, pass(fp32, eval.feed));
		t8 = least(t8, pass(int8, eval.feed));
	}
	/* against a pass over 4,000 samples, the evaluation sets' usual size */
	printf("%-22s %6.2fx %7.4f %8.2fx %7.2f%% %7.2f%%\n", path_base(argv[1]), observed / plain,
	       quantizing / (t32 * 4000 / (double)feed_samples(eval.feed)), t32 / t8, 100 * acc32,
	       100 * acc8);
	session_free(int8);
	model_free(q);
	learner_free(learner);
	qplan_release(&plan);
	free(values);
	calibration_free(c);
	source_release(&calib);
	source_release(&eval);
	session_free(fp32);
	subject_free(s);
	runtime_free(rt);
	return 0;
}
