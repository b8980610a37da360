/*
 * What ranking all ops costs, in evaluations of the fp32 model, and how its order agrees with that of models in which one op
 * at a time is quantized, run on all calibration samples. Usage: ranking MODEL CALIB EVAL [fast]; with `fast` the cost only.
 */
#include "pass.h"

#include <math.h>
#include <string.h>

#include "tune/source.h"
#include "tune/compare.h"

static struct context cx;
#define must(st) bench_must(st, &cx.err)

static void open_source(struct source *s, const char *path, struct session *session)
{
	struct data_ref d = { .what = "bench", .root = path };
	struct feed_options o = { .batch = 32 };

	must(source_open(s, &cx, &d, session, &o));
}

struct ranked {
	size_t op;
	double fast, exact;
	double fast_place, exact_place;
};

static int by_fast(const void *a, const void *b)
{
	const struct ranked *x = a, *y = b;

	return (x->fast < y->fast) - (x->fast > y->fast);
}

static int by_exact(const void *a, const void *b)
{
	const struct ranked *x = a, *y = b;

	return (x->exact < y->exact) - (x->exact > y->exact);
}

struct agreement {
	size_t common,
		first; /* of the ten worst, how many are among the first ten; of three, among the first five */
	double share;  /* error of the first ten, as a share of that of the ten worst */
	double correlation; /* Spearman's, of the places */
};

static struct agreement compare(struct ranked *v, size_t n)
{
	struct agreement a = { 0 };
	double sum = 0, found = 0, worst = 0;
	size_t i, top = n < 10 ? n : 10;

	qsort(v, n, sizeof(*v), by_fast);
	for (i = 0; i < n; i++)
		v[i].fast_place = (double)i;
	qsort(v, n, sizeof(*v), by_exact);
	for (i = 0; i < n; i++) {
		v[i].exact_place = (double)i;
		a.common += i < top && v[i].fast_place < (double)top;
		a.first += i < 3 && v[i].fast_place < 5;
		worst += i < top ? v[i].exact : 0;
		found += v[i].fast_place < (double)top ? v[i].exact : 0;
		sum += (v[i].fast_place - (double)i) * (v[i].fast_place - (double)i);
	}
	a.share = worst > 0 ? found / worst : 1;
	a.correlation = n > 1 ? 1 - 6 * sum / ((double)n * ((double)n * (double)n - 1)) : 1;
	return a;
}

static double exact_impacts(struct lab *l, const struct plan *p, struct ranked *v, size_t n)
{
	const struct space *space = &l->t->space;
	struct plan q = PLAN_INIT;
	double start = cpu_now();
	size_t i, k;

	for (i = 0; i < n; i++) {
		plan_copy(&q, p);
		for (k = 0; k < space->n_ops; k++)
			if (k != v[i].op && plan_can_fall_back(p, space, k))
				q.choice[k] = space->v[k].fallback;
		must(lab_estimate(l, &q, 1000, &v[i].exact, &cx.err));
	}
	plan_release(&q);
	return cpu_now() - start;
}

int main(int argc, char **argv)
{
	struct session_options so = { .threads = 1 };
	struct lab l = { .o = { .model = argv[1], .threads = 1, .seed = 1 }, .deadline = INFINITY };
	static const int64_t samples[] = { 100 };
	bool fixed[RECIPES];
	struct recipe_numbers numbers[RECIPES] = { { NULL, 0 } };
	struct tuning_options to = {
		.recipe_fixed = fixed, .numbers = numbers, .samples = samples, .n_samples = 1
	};
	struct source calib = { NULL, NULL }, eval = { NULL, NULL };
	struct plan p = PLAN_INIT;
	struct op_order order = OP_ORDER_INIT;
	struct ranked *v;
	double pass, again, cost, start;
	size_t i;

	if (argc < 4) {
		fprintf(stderr, "usage: ranking MODEL CALIB EVAL [fast]\n");
		return 2;
	}
	must(runtime_new(&l.rt, &cx.err));
	must(subject_open(&l.s, l.rt, argv[1], &cx.err));
	must(session_new(&l.fp32, l.rt, l.s->m, &so, &cx.err));
	open_source(&calib, argv[2], l.fp32);
	open_source(&eval, argv[3], l.fp32);
	l.calib = calib.feed;
	l.eval = eval.feed;
	memset(fixed, true, sizeof(fixed));
	to.masks = xcalloc(l.s->ops.n, sizeof(*to.masks));
	to.defaults = qplan_defaults(&l.s->cpu);
	l.t = tuning_new(&l.s->ops, &l.s->g, &to);
	plan_init(&p, &l.t->space);
	bench_pass(l.fp32, l.eval, &cx.err);
	start = cpu_now();
	must(lab_estimate(&l, &p, 1, &again, &cx.err)); /* calibrates */
	reference_release(&l.scored);
	l.scored = (struct reference)REFERENCE_INIT;
	pass = bench_pass(l.fp32, l.eval, &cx.err);
	start = cpu_now();
	must(lab_rank(&l, &p, RANK_IMPACT, 2, &order, &cx.err));
	cost = cpu_now() - start;
	again = bench_pass(l.fp32, l.eval, &cx.err);
	pass = (pass + again) / 2;
	start = cpu_now();
	printf("| %-44s | %3zu | %7.3f s | %6.2f |", argv[1], order.n, pass, cost / pass);
	fflush(stdout);
	feed_free(l.few);
	l.few = feed_twin(l.calib); /* all of them */
	if (argc < 5) {
		struct agreement a;

		v = xcalloc(order.n, sizeof(*v));
		for (i = 0; i < order.n; i++)
			v[i] = (struct ranked){ .op = order.op[i], .fast = order.score[i] };
		cost = exact_impacts(&l, &p, v, order.n);
		a = compare(v, order.n);
		printf(" %6.1f | %2zu of %2zu | %4.2f | %zu of 3 | %5.2f |", cost / pass, a.common,
		       order.n < 10 ? order.n : 10, a.share, a.first, a.correlation);
		if (getenv("ORDER"))
			for (i = 0; i < order.n && i < 30; i++)
				printf("\n%3zu %3.0f %.3e %.3e %s", i, v[i].fast_place, v[i].exact, v[i].fast,
				       l.s->m->nodes.v[l.t->node[v[i].op]]->name);
		free(v);
	}
	printf("\n");
	op_order_release(&order);
	plan_release(&p);
	lab_release(&l);
	source_release(&calib);
	source_release(&eval);
	tuning_free(l.t);
	subject_free(l.s);
	runtime_free(l.rt);
	return 0;
}
