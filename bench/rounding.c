/*
 * Weight rounding, layer by layer: error (relative, on other samples and on those learned from) and CPU time of
 * nearest, gram and adaround, each given the same inputs, and the share of adaround's time in oneDNN's primitives.
 * Usage: rounding MODEL CALIB EVAL [LAYERS [ITERATIONS]]; LAYERS are spread over the model, 0: all of them
 *
 * rounding MODEL CALIB EVAL blocks [ALGORITHM [ITERATIONS]]: each block's output with weights to the nearest, rounded
 * op by op, learned jointly, and as chosen of all those, given the same input, on the samples held out; then the
 * whole model's output, op by op and block by block throughout, on EVAL's samples.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tune/source.h"
#include "base/file.h"
#include "finetune/finetune.h"
#include "finetune/layer.h"
#include "finetune/part.h"
#include "tune/learn.h"

static struct context cx;

static void must(enum fettle_status st)
{
	if (st) {
		fprintf(stderr, "bench: %s\n", cx.err.msg);
		exit(3);
	}
}

static void open_source(struct source *s, const char *path, struct session *session, size_t limit)
{
	struct data_ref d = { .what = "bench", .root = path };
	struct feed_options o = { .batch = CALIB_BATCH, .limit = limit };

	must(source_open(s, &cx, &d, session, &o));
}

/* What there is to be compared. */
struct bench {
	struct runtime *rt;
	struct subject *s;
	struct knowledge known;
	struct qplan plan;
	struct source calib, eval;
	bool *only;
};

/* one op by one method; *error is on the evaluation samples */
static struct finetune_op tune(struct bench *b, size_t node, enum finetune_algorithm a, size_t iterations,
			       double *error)
{
	struct finetune_source src = { .rt = b->rt,
				       .s = b->s,
				       .values = b->known.values,
				       .feed = b->calib.feed,
				       .threads = 1,
				       .only = b->only };
	struct finetune_report report = { .ops = { NULL, 0, 0 } };
	struct rounding *r = NULL;
	struct finetune_op op;

	b->plan.recipes.finetune = finetune_defaults(a);
	b->plan.recipes.finetune.iterations = iterations;
	b->plan.recipes.finetune.selective_update = false;
	must(finetune(&b->plan, &src, &r, &report, &cx.err));
	op = report.ops.v[0];
	src.feed = b->eval.feed;
	must(finetune_error(&b->plan, &src, r, node, error, &cx.err));
	VEC_RELEASE(&report.ops);
	rounding_free(r);
	return op;
}

static void compare(struct bench *b, size_t layers, size_t iterations)
{
	const size_t n = b->s->ops.n;
	struct finetune_op sum_g = { 0 }, sum_a = { 0 };
	struct rounding *nothing = rounding_new(n);
	size_t i, seen = 0, possible = 0, worse = 0;
	const char *why;

	for (i = 0; i < n; i++)
		possible += b->plan.ops[i].mode == OP_STATIC && layer_possible(b->s, i, &why);
	printf("  %-34s %29s   %29s %8s %8s %7s\n", "op", "other samples: near gram ada",
	       "learned from: near gram ada", "gram s", "ada s", "oneDNN");
	for (i = 0; i < n; i++) {
		struct finetune_source src = {
			.rt = b->rt, .s = b->s, .values = b->known.values, .feed = b->eval.feed, .threads = 1
		};
		struct finetune_op g, a;
		double e[3];

		if (b->plan.ops[i].mode != OP_STATIC || !layer_possible(b->s, i, &why))
			continue;
		seen++;
		if (layers && (seen - 1) * layers / possible == seen * layers / possible)
			continue;
		must(finetune_error(&b->plan, &src, nothing, i, &e[0], &cx.err));
		b->only[i] = true;
		g = tune(b, i, FINETUNE_GRAM, iterations, &e[1]);
		a = tune(b, i, FINETUNE_ADAROUND, iterations, &e[2]);
		b->only[i] = false;
		worse += e[1] > e[2];
		sum_g.solve_s += g.solve_s;
		sum_a.solve_s += a.solve_s;
		sum_a.primitives_s += a.primitives_s;
		printf("  %-34s %.3e %.3e %.3e%c  %.3e %.3e %.3e %8.2f %8.2f %6.0f%%\n", g.name, e[0], e[1],
		       e[2], e[1] > e[2] ? '!' : ' ', g.train_before, g.train_after, a.train_after, g.solve_s,
		       a.solve_s, 100 * a.primitives_s / a.solve_s);
		fflush(stdout);
	}
	printf("  gram worse in %zu; CPU time %.1f s against %.1f s, 1/%.0f; oneDNN's share of adaround "
	       "%.0f%%\n",
	       worse, sum_g.solve_s, sum_a.solve_s, sum_a.solve_s / sum_g.solve_s,
	       100 * sum_a.primitives_s / sum_a.solve_s);
	rounding_free(nothing);
}

/* the error of the whole model's output on evaluation samples */
static double error_of(struct bench *b, const struct rounding *r)
{
	struct finetune_source src = {
		.rt = b->rt, .s = b->s, .values = b->known.values, .feed = b->eval.feed, .threads = 1
	};
	struct model *m = NULL;
	struct part p;
	double e;

	must(quantize_rounded(&src, &b->plan, r, NULL, &m, &cx.err));
	must(part_open(&p, &src, &(struct part_of){ 0, b->s->ops.n, &b->plan.recipes.finetune, true }, m,
		       &cx.err));
	must(part_error(&p, m, &e, &cx.err));
	part_close(&p);
	model_free(m);
	return e;
}

static void print_block(const struct finetune_block *b)
{
	printf("  %-34s %-34s %.3e %.3e %.3e %.3e%s %s\n", b->first, b->last, b->before, b->layered, b->joint,
	       b->after, b->kept ? " kept" : "", b->left ? b->left : "");
}

static void compare_blocks(struct bench *b, enum finetune_algorithm a, size_t iterations)
{
	struct finetune_source src = {
		.rt = b->rt, .s = b->s, .values = b->known.values, .feed = b->calib.feed, .threads = 1
	};
	double e[3], seconds[2];
	size_t i;
	int g;

	b->plan.recipes.finetune = finetune_defaults(a);
	b->plan.recipes.finetune.iterations = iterations;
	e[0] = error_of(b, NULL);
	for (g = 0; g < N_FINETUNE_GRANULARITIES; g++) {
		struct finetune_report report = { .ops = { NULL, 0, 0 } };
		struct rounding *r = NULL;

		b->plan.recipes.finetune.granularity = (enum finetune_granularity)g;
		seconds[g] = clock_now();
		must(finetune(&b->plan, &src, &r, &report, &cx.err));
		seconds[g] = clock_now() - seconds[g];
		for (i = 0; i < report.blocks.n; i++)
			print_block(&report.blocks.v[i]);
		e[1 + g] = error_of(b, r);
		VEC_RELEASE(&report.ops);
		VEC_RELEASE(&report.blocks);
		rounding_free(r);
	}
	printf("  whole model: nearest %.3e, op by op %.3e (%.1f s), block by block %.3e (%.1f s)\n", e[0],
	       e[1], seconds[0], e[2], seconds[1]);
}

static enum finetune_algorithm algorithm_of(const char *name)
{
	int a;

	for (a = FINETUNE_ADAROUND; a < N_FINETUNE_ALGORITHMS; a++)
		if (strcmp(finetune_algorithms[a], name) == 0)
			return (enum finetune_algorithm)a;
	fprintf(stderr, "bench: no algorithm '%s'\n", name);
	exit(2);
}

int main(int argc, char **argv)
{
	struct bench b = { .plan = QPLAN_INIT };
	struct session *fp32 = NULL;
	struct learner *learner;
	struct qplan_defaults d;
	size_t n;

	if (argc < 4)
		return fprintf(stderr, "usage: rounding MODEL CALIB EVAL [LAYERS [ITERATIONS]]\n"), 2;
	must(runtime_new(&b.rt, &cx.err));
	must(subject_open(&b.s, b.rt, argv[1], &cx.err));
	must(session_new(&fp32, b.rt, b.s->m, &(struct session_options){ .threads = 1 }, &cx.err));
	open_source(&b.calib, argv[2], fp32, 512);
	open_source(&b.eval, argv[3], fp32, 1000);
	d = qplan_defaults(&b.s->cpu);
	qplan_default(&b.plan, &b.s->ops, &b.s->g, &d);
	learner = learner_new(
		&(struct learn_source){ .rt = b.rt, .s = b.s, .calib = b.calib.feed, .threads = 1 });
	must(learn(learner, 0, &b.plan, &b.known, &cx.err));
	b.only = xcalloc(b.s->ops.n, sizeof(*b.only));
	if (argc > 4 && strcmp(argv[4], "blocks") == 0) {
		n = argc > 6 ? strtoull(argv[6], NULL, 10) : 1000;
		printf("%s, block by block, %s\n", path_base(argv[1]), argc > 5 ? argv[5] : "gram");
		compare_blocks(&b, argc > 5 ? algorithm_of(argv[5]) : FINETUNE_GRAM, n);
	} else {
		n = argc > 5 ? strtoull(argv[5], NULL, 10) : 10000;
		printf("%s, %zu iterations\n", path_base(argv[1]), n);
		compare(&b, argc > 4 ? strtoull(argv[4], NULL, 10) : 2, n);
	}
	free(b.only);
	learner_free(learner);
	qplan_release(&b.plan);
	source_release(&b.calib);
	source_release(&b.eval);
	session_free(fp32);
	subject_free(b.s);
	runtime_free(b.rt);
	return 0;
}
