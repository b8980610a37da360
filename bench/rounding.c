/*
 * Weight rounding, layer by layer: error (relative, on held-out samples) and CPU time of nearest, gram and
 * adaround, each given the same inputs, and the share of adaround's time in oneDNN's primitives.
 * Usage: rounding MODEL CALIB [LAYERS [ITERATIONS [SAMPLES]]]; LAYERS are spread over the model, 0: all of them
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/request.h"
#include "base/file.h"
#include "finetune/layer.h"
#include "finetune/finetune.h"

static struct err err;

static void must(enum fettle_status st)
{
	if (st) {
		fprintf(stderr, "bench: %s\n", err.msg);
		exit(3);
	}
}

static void open_source(struct source *s, const char *path, struct session *session, size_t limit)
{
	struct config_dataloader d = { .dataset = { .root = path } };
	struct feed_options o = { .batch = CALIB_BATCH, .limit = limit };

	must(request_source(s, &(struct request){ .threads = 1 }, &d, "bench", session, &o, &err));
}

static struct finetune_op tune(struct quantizer *z, struct qplan *plan, const struct finetune_source *s,
			       enum finetune_algorithm a, size_t iterations)
{
	struct finetune_report report = { .ops = { NULL, 0, 0 } };
	struct rounding *r = NULL;
	struct finetune_op op = { .left = "not static" };

	plan->recipes.finetune = finetune_defaults(a);
	plan->recipes.finetune.iterations = iterations;
	plan->recipes.finetune.selective_update = false;
	must(finetune(z, plan, s, &r, &report, &err));
	if (report.ops.n)
		op = report.ops.v[0];
	VEC_RELEASE(&report.ops);
	rounding_free(r);
	return op;
}

int main(int argc, char **argv)
{
	struct runtime *rt = NULL;
	struct subject *s = NULL;
	struct session *fp32 = NULL;
	struct source calib = { NULL, NULL };
	struct activations known = { NULL, NULL };
	struct range_source ranges;
	struct quantizer *z;
	struct qplan plan = QPLAN_INIT;
	struct qplan_defaults d;
	struct finetune_op sum_g = { 0 }, sum_a = { 0 };
	const char **values, *why;
	size_t n, i, seen = 0, possible = 0, layers, iterations, worse = 0;
	bool *only;

	if (argc < 3)
		return fprintf(stderr, "usage: rounding MODEL CALIB [LAYERS [ITERATIONS [SAMPLES]]]\n"), 2;
	layers = argc > 3 ? strtoull(argv[3], NULL, 10) : 2;
	iterations = argc > 4 ? strtoull(argv[4], NULL, 10) : 10000;
	must(runtime_new(&rt, &err));
	must(subject_open(&s, rt, argv[1], &err));
	must(session_new(&fp32, rt, s->m, &(struct session_options){ .threads = 1 }, &err));
	open_source(&calib, argv[2], fp32, argc > 5 ? strtoull(argv[5], NULL, 10) : 256);
	n = quantizer_values(&s->g, &s->ops, NULL, &values);
	must(calibrate(&known.c, rt, s->m, values, n, calib.feed, &(struct calibrate_options){ .threads = 1 },
		       &err));
	d = qplan_defaults(&s->cpu);
	qplan_default(&plan, &s->ops, &s->g, &d);
	ranges = activations_source(&known);
	z = quantizer_new(s->m, &s->g, &s->ops, &ranges);
	only = xcalloc(s->ops.n, sizeof(*only));
	for (i = 0; i < s->ops.n; i++)
		possible += plan.ops[i].mode == OP_STATIC && layer_possible(s, i, &why);
	printf("%s, %zu iterations\n  %-34s %22s %22s %8s %8s %7s\n", path_base(argv[1]), iterations, "op",
	       "held out: near gram ada", "seen: near gram ada", "gram s", "ada s", "oneDNN");
	for (i = 0; i < s->ops.n; i++) {
		struct finetune_source src = {
			.rt = rt, .s = s, .feed = calib.feed, .threads = 1, .only = only
		};
		struct finetune_op g, a;

		if (plan.ops[i].mode != OP_STATIC || !layer_possible(s, i, &why))
			continue;
		seen++;
		if (layers && (seen - 1) * layers / possible == seen * layers / possible)
			continue;
		only[i] = true;
		g = tune(z, &plan, &src, FINETUNE_GRAM, iterations);
		a = tune(z, &plan, &src, FINETUNE_ADAROUND, iterations);
		only[i] = false;
		if (g.left)
			continue;
		worse += g.after > a.after;
		sum_g.solve_s += g.solve_s;
		sum_a.solve_s += a.solve_s;
		sum_a.primitives_s += a.primitives_s;
		printf("  %-34s %.3e %.3e %.3e %.3e %.3e %.3e %8.2f %8.2f %6.0f%%\n", g.name, g.before,
		       g.after, a.after, g.train_before, g.train_after, a.train_after, g.solve_s, a.solve_s,
		       100 * a.primitives_s / a.solve_s);
		fflush(stdout);
	}
	printf("  gram worse in %zu; CPU time %.1f s against %.1f s, 1/%.0f; oneDNN's share of adaround "
	       "%.0f%%\n",
	       worse, sum_g.solve_s, sum_a.solve_s, sum_a.solve_s / sum_g.solve_s,
	       100 * sum_a.primitives_s / sum_a.solve_s);
	free(only);
	free(values);
	quantizer_free(z);
	qplan_release(&plan);
	activations_release(&known);
	source_release(&calib);
	session_free(fp32);
	subject_free(s);
	runtime_free(rt);
	return worse > 0;
}
