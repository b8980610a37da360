/*
 * What all weight-only algorithms together take of the calibration data: how often it is swept over, and the CPU time of that
 * (the sums of x x' included) in passes of the fp32 model over the same data; their own arithmetic beside it.
 * Usage: passes MODEL CALIB
 */
#include "pass.h"

#include <string.h>

#include "tune/learn.h"
#include "tune/source.h"

static struct context cx;
#define must(st) bench_must(st, &cx.err)

/* Counts what is swept over, and its time: from the first batch that is done on, times all of them. */
struct sweeps {
	size_t samples;
	double since, seconds;
};

static bool count(void *self, size_t done, size_t total)
{
	struct sweeps *s = self;
	const double now = cpu_now();

	(void)total;
	if (done <= CALIB_BATCH)
		s->samples += done;
	else {
		s->samples += CALIB_BATCH;
		s->seconds += now - s->since;
	}
	s->since = now;
	return true;
}

int main(int argc, char **argv)
{
	const struct data_ref data = { .what = "bench", .root = argc > 2 ? argv[2] : NULL };
	struct sweeps sweeps = { 0 };
	struct source calib = SOURCE_INIT;
	struct session *fp32 = NULL;
	struct subject *s = NULL;
	struct learner *l;
	double one, all, start;
	int a;

	if (argc != 3)
		return fprintf(stderr, "usage: passes MODEL CALIB\n"), 2;
	must(runtime_new(&cx.rt, &cx.err));
	must(subject_open(&s, cx.rt, argv[1], &cx.err));
	must(session_new(&fp32, cx.rt, s->m, &(struct session_options){ .threads = 1 }, &cx.err));
	must(source_open(&calib, &cx, &data, fp32, &(struct feed_options){ .batch = CALIB_BATCH }));
	bench_pass(fp32, calib.feed, &cx.err); /* warm */
	one = bench_pass(fp32, calib.feed, &cx.err);
	l = learner_new(&(struct learn_source){
		.rt = cx.rt, .s = s, .calib = calib.feed, .threads = 1, .progress = count, .self = &sweeps });
	start = cpu_now();
	for (a = 0; a < BLOCK_ALGORITHMS; a++) {
		struct qplan_defaults d = qplan_defaults(&s->cpu);
		struct qplan p = QPLAN_INIT;
		struct knowledge known;
		struct model *q = NULL;
		double begin = cpu_now();

		d.approach = APPROACH_WEIGHT;
		d.blocks.algorithm = (enum block_algorithm)a;
		qplan_default(&p, &s->ops, &s->g, &d);
		must(learn(l, 0, &p, &known, &cx.err));
		must(quantize(s->z, &known, &p, &q, &cx.err));
		printf("  %-9s %5.2f s of CPU\n", block_methods[a]->name, cpu_now() - begin);
		model_free(q);
		qplan_release(&p);
	}
	all = cpu_now() - start;
	/* the first batch of a sweep is not timed: its session is made before it */
	sweeps.seconds *= (double)feed_batches(calib.feed) / ((double)feed_batches(calib.feed) - 1);
	printf("all: %zu samples, %.2f times the calibration set; sweeps %.2f s = %.2f fp32 passes of %.2f s "
	       "(goal 3), "
	       "arithmetic %.2f s\n",
	       sweeps.samples, (double)sweeps.samples / (double)feed_samples(calib.feed), sweeps.seconds,
	       sweeps.seconds / one, one, all - sweeps.seconds);
	learner_free(l);
	source_release(&calib);
	session_free(fp32);
	subject_free(s);
	runtime_free(cx.rt);
	return 0;
}
