#include "unit/unit.h"

#include "base/mem.h"
#include "base/rng.h"
#include "tune/search.h"

/* Three ops with two quantized options and fp32 each. The accuracy of a plan is looked up by its digits. */
enum { N_OPS = 3, N_PLANS = 27 };

static const struct param_option options[] = { { .mode = OPTION_STATIC },
					       { .mode = OPTION_STATIC, .setting = 1, .part = { 1, 0 } },
					       { .mode = OPTION_FP32, .alike = 2 } };

struct bench {
	struct param ops[N_OPS];
	struct space space;
	double accuracy[N_PLANS], objective[N_PLANS];
	double clock;
	size_t n_runs, n_measured;
	size_t against; /* the number of the trial that the last plan was measured against; 0: fp32 */
	size_t recorded[N_PLANS], n_recorded;
	size_t history[N_PLANS]; /* the number that a plan's trial had in an earlier session; 0: none */
	struct search *s;
};

static size_t digits(const struct plan *p)
{
	return p->choice[0] * 9u + p->choice[1] * 3u + p->choice[2];
}

static enum fettle_status bench_run(void *self, struct trial *out, struct err *err)
{
	struct bench *b = self;

	(void)err;
	b->n_runs++;
	b->clock += 1;
	out->score.accuracy = b->accuracy[digits(&out->plan)];
	return FETTLE_OK;
}

static enum fettle_status bench_measure(void *self, struct trial *t, const struct trial *against,
					double *value, struct err *err)
{
	struct bench *b = self;

	(void)err;
	b->against = against ? against->number : 0;
	b->n_measured++;
	*value = b->objective[digits(&t->plan)];
	return FETTLE_OK;
}

static enum fettle_status bench_rank(void *self, const struct plan *p, enum rank by, int batches,
				     struct op_order *out, struct err *err)
{
	static const double scores[N_OPS] = { 1, NAN, 2 };
	size_t i;

	(void)self, (void)p, (void)by, (void)err;
	assert_int_equal(batches, 5);
	*out = (struct op_order){ xcalloc(N_OPS, sizeof(size_t)), xcalloc(N_OPS, sizeof(double)), N_OPS };
	for (i = 0; i < N_OPS; i++) {
		out->op[i] = i;
		out->score[i] = scores[i];
	}
	return FETTLE_OK;
}

static void bench_record(void *self, const struct trial *t)
{
	struct bench *b = self;

	b->recorded[b->n_recorded++] = digits(&t->plan);
}

static bool bench_known(void *self, const struct plan *p, struct trial *out)
{
	const struct bench *b = self;

	out->number = b->history[digits(p)];
	out->score.accuracy = b->accuracy[digits(p)];
	out->score.objective = b->objective[digits(p)];
	return out->number > 0;
}

static double bench_now(void *self)
{
	return ((struct bench *)self)->clock;
}

static const struct search_backend backend = { .run = bench_run,
					       .objective = bench_measure,
					       .rank = bench_rank,
					       .record = bench_record,
					       .known = bench_known,
					       .now = bench_now };

static void bench_init(struct bench *b)
{
	size_t i;

	*b = (struct bench){ .space = { .v = b->ops, .n = N_OPS, .n_ops = N_OPS } };
	for (i = 0; i < N_OPS; i++)
		b->ops[i] = (struct param){ .kind = PARAM_OP,
					    .n_options = 3,
					    .fallback = 2,
					    .apply = NO_OPTION,
					    .options = options };
}

static enum fettle_status bench_start(struct bench *b, struct search_config c, struct err *err)
{
	c.space = &b->space;
	c.backend = &backend;
	c.self = b;
	c.options.confidence_batches = 5;
	return search_new(&b->s, &c, err);
}

static enum fettle_status try_digits(struct bench *b, size_t n, struct score *score)
{
	uint16_t choice[N_OPS] = { (uint8_t)(n / 9), (uint8_t)(n / 3 % 3), (uint8_t)(n % 3) };

	return search_try(b->s, &(struct plan){ choice, N_OPS }, score);
}

static void criterion(void **state)
{
	static const struct {
		const char *why;
		bool higher, relative;
		double baseline, tolerance, accuracy, loss;
		bool met;
	} rows[] = {
		{ "relative, exactly at the tolerance", true, true, 0.8, 0.01, 0.792, 0.01, true },
		{ "relative, just beyond", true, true, 0.8, 0.01, 0.7919, 0.010125, false },
		{ "absolute, exactly at the tolerance", true, false, 0.8, 0.01, 0.79, 0.01, true },
		{ "absolute, just beyond", true, false, 0.8, 0.01, 0.7899, 0.0101, false },
		{ "a gain is a negative loss", true, true, 0.8, 0.01, 0.88, -0.1, true },
		{ "lower is better", false, true, 2, 0.01, 2.02, 0.01, true },
		{ "lower is better, too high", false, true, 2, 0.01, 2.03, 0.015, false },
		{ "a negative baseline, relative to its size", true, true, -2, 0.01, -2.02, 0.01, true },
		{ "a negative baseline, worse", true, true, -2, 0.01, -2.1, 0.05, false },
		{ "absolute at a baseline of 0", true, false, 0, 0.01, -0.01, 0.01, true },
		{ "no tolerance, no loss", true, true, 0.8, 0, 0.8, 0, true },
		{ "NaN never passes", true, true, 0.8, 1e9, NAN, NAN, false },
	};
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_LEN(rows); i++) {
		struct err err = ERR_INIT;
		struct score score;
		struct bench b;

		bench_init(&b);
		b.accuracy[0] = rows[i].accuracy;
		assert_ok(bench_start(&b,
				      (struct search_config){ .higher_is_better = rows[i].higher,
							      .relative = rows[i].relative,
							      .baseline = rows[i].baseline,
							      .tolerance = rows[i].tolerance },
				      &err),
			  err);
		try_digits(&b, 0, &score);
		if (score.met != rows[i].met || score.failed != isnan(rows[i].accuracy) ||
		    fabs(score.loss - rows[i].loss) > 1e-9 || isnan(score.loss) != isnan(rows[i].loss) ||
		    b.n_measured != rows[i].met)
			fail_msg("%s: loss %g, met %d", rows[i].why, score.loss, score.met);
		search_free(b.s);
	}
}

static void a_relative_loss_needs_a_baseline(void **state)
{
	struct err err = ERR_INIT;
	struct bench b;

	(void)state;
	bench_init(&b);
	assert_int_equal(bench_start(&b, (struct search_config){ .relative = true, .baseline = 0 }, &err),
			 FETTLE_INVALID);
	assert_non_null(strstr(err.msg, "absolute"));
	assert_int_equal(bench_start(&b, (struct search_config){ .baseline = NAN }, &err), FETTLE_INVALID);
	assert_int_equal(bench_start(&b, (struct search_config){ .baseline = 1, .tolerance = NAN }, &err),
			 FETTLE_INVALID);
	assert_null(b.s);
}

#define HIGHER(...)                                                                                          \
	((struct search_config){ .baseline = 1, .higher_is_better = true, .tolerance = 0.1, __VA_ARGS__ })

static void fp32_is_no_success(void **state)
{
	struct err err = ERR_INIT;
	struct score score;
	struct bench b;

	(void)state;
	bench_init(&b);
	b.accuracy[26] = 1;
	assert_ok(bench_start(&b, HIGHER(.max_trials = 9), &err), err);
	assert_int_equal(try_digits(&b, 26, &score), FETTLE_OK);
	assert_false(score.met);
	assert_true(score.loss == 0);
	assert_null(search_best_trial(b.s));
	try_digits(&b, 0, &score);
	assert_int_equal(search_best_trial(b.s)->number, 2); /* a loss of 1, but something in int8 */
	search_free(b.s);
}

static void the_best_is_kept(void **state)
{
	static const struct {
		const char *why;
		size_t plan[3];
		double accuracy[3], objective[3];
		size_t best, base;
	} rows[] = {
		{ "met goes before not met", { 0, 1, 2 }, { 0.5, 0.9, 0.6 }, { 0, 9, 0 }, 2, 2 },
		{ "then the objective decides", { 0, 1, 2 }, { 0.99, 0.91, 0.95 }, { 3, 1, 2 }, 2, 2 },
		{ "then accuracy", { 0, 1, 2 }, { 0.95, 0.99, 0.97 }, { 1, 1, 1 }, 2, 2 },
		{ "then the earlier", { 0, 1, 3 }, { 0.95, 0.95, 0.95 }, { 1, 1, 1 }, 1, 1 },
		{ "not met: the least loss", { 0, 1, 2 }, { 0.5, 0.4, 0.6 }, { 0, 0, 0 }, 3, 1 },
		{ "not met: however much it is", { 0, 1, 3 }, { 0.01, 0, 0.02 }, { 0, 0, 0 }, 3, 3 },
		{ "nothing is whole", { 2, 5, 8 }, { 0.5, 0.4, 0.6 }, { 0, 0, 0 }, 3, 3 },
		{ "not met: then more in int8", { 2, 0, 8 }, { 0.5, 0.5, 0.5 }, { 0, 0, 0 }, 2, 2 },
		{ "not met: then the earlier", { 0, 1, 3 }, { 0.5, 0.5, 0.5 }, { 0, 0, 0 }, 1, 1 },
		{ "failed ones are never best", { 0, 1, 2 }, { NAN, 0.1, NAN }, { 0, 0, 0 }, 2, 2 },
	};
	size_t i, k;

	(void)state;
	for (i = 0; i < ARRAY_LEN(rows); i++) {
		struct plan best = PLAN_INIT, base = PLAN_INIT;
		struct err err = ERR_INIT;
		struct score score;
		struct bench b;

		bench_init(&b);
		assert_ok(bench_start(&b, HIGHER(.timeout = 100), &err), err);
		for (k = 0; k < 3; k++) {
			b.accuracy[rows[i].plan[k]] = rows[i].accuracy[k];
			b.objective[rows[i].plan[k]] = rows[i].objective[k];
			assert_int_equal(try_digits(&b, rows[i].plan[k], &score), FETTLE_OK);
		}
		assert_true(search_best(b.s, &best, &score) && search_base(b.s, &base, &score));
		if (digits(&best) != rows[i].plan[rows[i].best - 1] ||
		    search_best_trial(b.s)->number != rows[i].best ||
		    digits(&base) != rows[i].plan[rows[i].base - 1])
			fail_msg("%s: best %zu, base %zu", rows[i].why, digits(&best), digits(&base));
		plan_release(&best);
		plan_release(&base);
		search_free(b.s);
	}
}

static void a_repeated_plan_costs_nothing(void **state)
{
	struct err err = ERR_INIT;
	struct score score;
	struct bench b;
	size_t i;

	(void)state;
	bench_init(&b);
	for (i = 0; i < N_PLANS; i++)
		b.accuracy[i] = 0.01 * (double)i;
	assert_ok(bench_start(&b, HIGHER(.max_trials = N_PLANS), &err), err);
	for (i = 0; i < 2 * (N_PLANS - 1); i++) {
		assert_int_equal(try_digits(&b, i % (N_PLANS - 1), &score), FETTLE_OK);
		assert_true(score.accuracy == b.accuracy[i % (N_PLANS - 1)]);
	}
	assert_int_equal(b.n_runs, N_PLANS - 1);
	assert_int_equal(search_trials_left(b.s), 1);
	assert_int_equal(b.n_recorded, N_PLANS - 1);
	assert_int_equal(b.recorded[7], 7);
	search_free(b.s);
}

static void limits_end_it(void **state)
{
	struct err err = ERR_INIT;
	struct score score;
	struct bench b;

	(void)state;
	bench_init(&b);
	assert_ok(bench_start(&b, HIGHER(.max_trials = 2), &err), err);
	assert_int_equal(try_digits(&b, 0, &score), FETTLE_OK);
	assert_int_equal(try_digits(&b, 1, &score), FETTLE_STOP);
	assert_false(score.failed); /* the last one ran */
	assert_int_equal(try_digits(&b, 2, &score), FETTLE_STOP);
	assert_true(score.failed && isnan(score.accuracy)); /* this one did not */
	assert_int_equal(b.n_runs, 2);
	assert_int_equal(search_why(b.s), SEARCH_MAX_TRIALS);
	search_free(b.s);

	bench_init(&b);
	b.clock = 50; /* the time counts from here */
	assert_ok(bench_start(&b, HIGHER(.timeout = 1.5), &err), err);
	assert_int_equal(try_digits(&b, 0, &score), FETTLE_OK);
	assert_true(search_time_left(b.s) == 0.5);
	assert_int_equal(try_digits(&b, 1, &score), FETTLE_OK);
	assert_int_equal(try_digits(&b, 0, &score), FETTLE_STOP);
	assert_int_equal(search_why(b.s), SEARCH_TIMEOUT);
	search_free(b.s);
}

static void held_the_goal_does_not_end_it(void **state)
{
	struct err err = ERR_INIT;
	struct score score;
	struct bench b;

	(void)state;
	bench_init(&b);
	b.accuracy[1] = 1;
	assert_ok(bench_start(&b, HIGHER(.max_trials = 9), &err), err);
	search_hold(b.s);
	search_hold(b.s);
	assert_int_equal(try_digits(&b, 1, &score), FETTLE_OK);
	assert_int_equal(search_release(b.s), FETTLE_OK); /* still held */
	assert_int_equal(try_digits(&b, 2, &score), FETTLE_OK);
	assert_int_equal(search_release(b.s), FETTLE_STOP);
	assert_int_equal(search_why(b.s), SEARCH_ACCURACY_MET);
	assert_int_equal(try_digits(&b, 3, &score), FETTLE_STOP);
	assert_int_equal(b.n_runs, 2);
	search_free(b.s);

	bench_init(&b);
	assert_ok(bench_start(&b, HIGHER(.max_trials = 9), &err), err);
	search_hold(b.s);
	assert_int_equal(search_release(b.s), FETTLE_OK); /* nothing was met */
	search_free(b.s);
}

static void a_batch_answers_in_order(void **state)
{
	uint16_t choices[4][N_OPS] = { { 0, 0, 0 }, { 0, 0, 1 }, { 0, 0, 2 }, { 0, 1, 0 } };
	struct plan plans[4];
	struct score scores[4];
	struct err err = ERR_INIT;
	struct bench b;
	size_t i;

	(void)state;
	bench_init(&b);
	for (i = 0; i < 4; i++) {
		plans[i] = (struct plan){ choices[i], N_OPS };
		b.accuracy[i] = 0.1 * (double)(i + 1);
	}
	assert_ok(bench_start(&b, HIGHER(.max_trials = 3), &err), err);
	assert_int_equal(search_try_all(b.s, plans, 4, scores), FETTLE_STOP);
	for (i = 0; i < 3; i++)
		assert_true(scores[i].accuracy == b.accuracy[i]);
	assert_true(scores[3].failed);
	search_free(b.s);
}

static void ranks_come_sorted(void **state)
{
	struct op_order order = OP_ORDER_INIT;
	struct plan p = PLAN_INIT;
	struct err err = ERR_INIT;
	struct bench b;

	(void)state;
	bench_init(&b);
	plan_init(&p, &b.space);
	assert_ok(bench_start(&b, HIGHER(.max_trials = 3), &err), err);
	assert_int_equal(search_rank_ops(b.s, &p, RANK_IMPACT, &order), FETTLE_OK);
	assert_int_equal(order.n, 3);
	assert_int_equal(order.op[0], 2);
	assert_int_equal(order.op[1], 0);
	assert_int_equal(order.op[2], 1); /* of which nothing is known */
	assert_int_equal(search_n_trials(b.s), 0);
	op_order_release(&order);
	plan_release(&p);
	search_free(b.s);
}

static void stages_are_copied(void **state)
{
	struct err err = ERR_INIT;
	struct score score;
	struct bench b;
	char stage[] = "one";

	(void)state;
	bench_init(&b);
	assert_ok(bench_start(&b, HIGHER(.max_trials = 3), &err), err);
	search_stage(b.s, stage);
	try_digits(&b, 0, &score);
	strcpy(stage, "two");
	search_stage(b.s, stage);
	try_digits(&b, 1, &score);
	assert_string_equal(search_trial(b.s, 1)->stage, "one");
	assert_string_equal(search_trial(b.s, 2)->stage, "two");
	search_free(b.s);
}

/* ---- verdicts before the end ---- */

static void verdicts(void **state)
{
	static const struct {
		const char *why;
		struct verdict v;
		double low, high;
		bool certain;
	} rows[] = {
		{ "nothing is known yet", { true, 0.9, NAN, NAN, false, 0 }, -INFINITY, INFINITY, false },
		{ "it cannot pass any more, and how badly is all the same",
		  { true, 0.9, NAN, NAN, false, 0 },
		  0,
		  0.89,
		  true },
		{ "it cannot pass, but may be the best that failed",
		  { true, 0.9, 0.5, NAN, false, 0 },
		  0,
		  0.89,
		  false },
		{ "it cannot even be that", { true, 0.9, 0.5, NAN, false, 0 }, 0, 0.49, true },
		{ "as good as the best that failed: then more in int8 wins",
		  { true, 0.9, 0.5, NAN, false, 0 },
		  0,
		  0.5,
		  false },
		{ "it passes whatever comes", { true, 0.9, 0.5, NAN, false, 0 }, 0.91, 1, true },
		{ "it passes, but by how much is asked", { true, 0.9, 0.5, NAN, true, 0 }, 0.91, 1, false },
		{ "it may still fall below", { true, 0.9, 0.5, NAN, false, 0 }, 0.89, 1, false },
		{ "exactly what is asked: sums are rounded",
		  { true, 0.9, NAN, NAN, false, 0 },
		  0.9,
		  1,
		  false },
		{ "exactly what is asked, from below", { true, 0.9, NAN, NAN, false, 0 }, 0, 0.9, false },
		{ "it may pass, but is worse than the best",
		  { true, 0.9, NAN, 0.95, true, 0 },
		  0.85,
		  0.94,
		  true },
		{ "it may be better than the best", { true, 0.9, NAN, 0.95, true, 0 }, 0.85, 0.96, false },
		{ "NaN stays NaN", { true, 0.9, 0.5, 0.95, true, 0 }, NAN, NAN, true },
		{ "an error that is too high already",
		  { false, 2, NAN, NAN, false, 0 },
		  2.1,
		  INFINITY,
		  true },
		{ "an error that is not", { false, 2, NAN, NAN, false, 0 }, 1.9, INFINITY, false },
		{ "an error that cannot come to be too high",
		  { false, 2, NAN, NAN, false, 0 },
		  0,
		  1.9,
		  true },
		{ "higher than the least error of those that failed",
		  { false, 2, 3, NAN, false, 0 },
		  3.1,
		  INFINITY,
		  true },
		{ "perhaps the least error of those that failed",
		  { false, 2, 3, NAN, false, 0 },
		  2.1,
		  9,
		  false },
	};
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_LEN(rows); i++)
		if (verdict_certain(&rows[i].v, rows[i].low, rows[i].high) != rows[i].certain)
			fail_msg("%s: %s", rows[i].why, rows[i].certain ? "not certain" : "certain");
}

/* What a value means: itself where it is wanted, else what it stands for. */
enum { OF_NO_USE = -1000, PASSES = 1000 };

static double meaning(const struct verdict *v, double x)
{
	double sign = v->higher_is_better ? 1 : -1;

	if (isnan(x) || (!isnan(v->tie) && sign * (x - v->tie) < 0))
		return OF_NO_USE;
	if (sign * (x - v->meet) >= 0)
		return v->exact_pass ? x : PASSES;
	return !isnan(v->beat) && sign * (x - v->beat) >= 0 ? x : OF_NO_USE;
}

/* Certain is only what means the same over all of the interval; and what does, by more than rounding, is certain. */
static void verdicts_by_brute_force(void **state)
{
	enum { STEPS = 24 };
	size_t round, k, counts[2] = { 0, 0 };
	struct rng r;

	(void)state;
	rng_seed(&r, 1);
	for (round = 0; round < 200000; round++) {
		/* multiples of 1/24, so that ends often fall on thresholds */
#define SOME ((double)rng_below(&r, STEPS + 1) / STEPS)
		struct verdict v = { rng_below(&r, 2) != 0, SOME, rng_below(&r, 2) ? SOME : NAN, NAN,
				     rng_below(&r, 2) != 0, 0 };
		double low = SOME, high = low + SOME * SOME;
		bool same = true, certain, clear = true;

		if (rng_below(&r, 3) == 0) { /* the best meets the criterion; then values of passes count */
			v.tie = v.higher_is_better ? fmax(v.meet, SOME) : fmin(v.meet, SOME);
			v.exact_pass = true;
			v.beat = NAN;
		}
		if (!isnan(v.beat)) /* what failed is worse than what is asked */
			v.beat = v.higher_is_better ? fmin(v.beat, v.meet) : fmax(v.beat, v.meet);
		for (k = 0; k <= 8 * STEPS; k++)
			same &= meaning(&v, low + (high - low) * (double)k / (8 * STEPS)) == meaning(&v, low);
		certain = verdict_certain(&v, low, high);
		counts[certain]++;
		if (certain && !same)
			fail_msg("certain of %g .. %g, but it is not all the same: meet %g, beat %g, tie %g",
				 low, high, v.meet, v.beat, v.tie);
		for (k = 0; k < 2; k++) {
			double end = k ? high : low;

			clear &= fabs(end - v.meet) > 1e-6 && !(fabs(end - v.beat) < 1e-6) &&
				 !(fabs(end - v.tie) < 1e-6);
		}
		if (same && clear && low < high && !certain)
			fail_msg("not certain of %g .. %g, though it is all the same: meet %g, beat %g, tie "
				 "%g",
				 low, high, v.meet, v.beat, v.tie);
	}
	assert_true(counts[0] > 1000 && counts[1] > 1000);
}

/* A backend that looks at samples one by one and ends as soon as it may: what lab does, without a model. */
enum { SAMPLES = 40 };

struct early {
	struct bench b;
	bool right[N_PLANS][SAMPLES];
	size_t evaluated, n_completed;
};

static enum fettle_status early_run(void *self, struct trial *t, struct err *err)
{
	struct early *e = self;
	size_t plan = digits(&t->plan), i, hits = 0;

	(void)err;
	e->b.n_runs++;
	e->b.clock += 1e-3;
	for (i = 0; i < SAMPLES; i++) {
		double low = (double)hits / SAMPLES, high = low + (double)(SAMPLES - i) / SAMPLES;

		if (t->verdict && i && (double)i >= t->verdict->look * SAMPLES &&
		    verdict_certain(t->verdict, low, high)) {
			t->score.early = true;
			t->score.low = low;
			t->score.high = high;
			t->beyond = (double)((i - hits) * (SAMPLES - i)) / (double)(i * SAMPLES);
			return FETTLE_OK;
		}
		hits += e->right[plan][i];
		e->evaluated++;
	}
	t->score.accuracy = (double)hits / SAMPLES;
	return FETTLE_OK;
}

static const struct search_backend early_backend = { .run = early_run,
						     .objective = bench_measure,
						     .now = bench_now };

/* All plans, one by one; held in the middle if asked. */
static void early_go(struct early *e, struct search_config c, const size_t *plans, bool hold, enum want want)
{
	struct err err = ERR_INIT;
	struct score score;
	size_t i;

	e->b.clock = 0;
	e->b.n_runs = e->evaluated = 0;
	c.space = &e->b.space;
	c.backend = &early_backend;
	c.self = e;
	assert_ok(search_new(&e->b.s, &c, &err), err);
	search_want(e->b.s, want);
	for (i = 0; i < N_PLANS - 1; i++) {
		if (hold && i == 3)
			search_hold(e->b.s);
		if (hold && i == 12)
			search_release(e->b.s);
		if (try_digits(&e->b, plans[i], &score) == FETTLE_STOP)
			break;
	}
}

/* With early verdicts and without: the same trials, the same best once that is settled, the same end. */
static void early_verdicts_change_nothing(void **state)
{
	struct early *e = xcalloc(1, sizeof(*e));
	size_t plans[N_PLANS], round, i, k, saved = 0, skipped = 0, settled = 0;
	struct rng r;

	(void)state;
	rng_seed(&r, 2);
	for (round = 0; round < 3000; round++) {
		struct search_config c = HIGHER(.timeout = rng_below(&r, 2) ? 1000 : 0,
						.max_trials = rng_below(&r, 2) ? 20 : 0,
						.objective_equal = rng_below(&r, 2) ? 0.05 : 0);
		const double most = rng_below(&r, 3) ? 1 : 0.5; /* then nothing may meet it */
		bool hold = rng_below(&r, 2), by_noise = c.objective_equal > 0;
		const enum want want = rng_below(&r, 2) ? WANT_PASS : WANT_VERDICT;
		struct search *exact;
		const struct trial *a, *b;
		size_t evaluated;

		bench_init(&e->b);
		c.baseline = 0.9;
		c.counts = rng_below(&r, 3) > 0;
		c.only_lose = !c.counts;
		c.samples = rng_below(&r, 2) ? 4 : 4000; /* few, of which hardly one may be lost */
		c.tolerance = 0.1 * (double)(1 + rng_below(&r, 6));
		for (i = 0; i < N_OPS; i++)
			e->b.ops[i].gain = by_noise ? (double)rng_below(&r, 3) : 0;
		for (i = 0; i < N_PLANS; i++) {
			double share = most * rng_unit(&r);

			plans[i] = i;
			/* few values: ties; steps of more than the noise, so that what it hides does not matter */
			e->b.objective[i] = 1 + 0.2 * (double)rng_below(&r, 4);
			for (k = 0; k < SAMPLES; k++)
				e->right[i][k] = rng_unit(&r) < share;
		}
		rng_shuffle(&r, plans, N_PLANS - 1);
		c.no_early = true;
		early_go(e, c, plans, hold, want);
		exact = e->b.s;
		evaluated = e->evaluated;
		c.no_early = false;
		early_go(e, c, plans, hold, want);
		assert_true(e->evaluated <= evaluated);
		saved += evaluated - e->evaluated;
		skipped += search_n_trials(e->b.s) - e->b.n_runs;
		evaluated = e->evaluated;
		assert_int_equal(search_settle(e->b.s), FETTLE_OK);
		settled += e->evaluated > evaluated;
		assert_true((want == WANT_PASS && (c.samples == 4 || c.only_lose)) ||
			    e->evaluated == evaluated);
		assert_int_equal(search_n_trials(e->b.s), search_n_trials(exact));
		assert_int_equal(search_why(e->b.s), search_why(exact));
		for (i = 1; i <= search_n_trials(exact); i++) {
			const struct score *x = &search_trial(exact, i)->score,
					   *y = &search_trial(e->b.s, i)->score;

			assert_false(x->early);
			if (!isnan(y->low) && (x->accuracy < y->low - 1e-12 || x->accuracy > y->high + 1e-12))
				fail_msg("round %zu, trial %zu: %g, not within %g .. %g", round, i,
					 x->accuracy, y->low, y->high);
			if (y->met && !x->met)
				fail_msg("round %zu, trial %zu: met, but %g does not", round, i, x->accuracy);
		}
		a = search_best_trial(exact);
		b = search_best_trial(e->b.s);
		if (a->number != b->number)
			fail_msg("round %zu: best is trial %zu (%g, %g) instead of %zu (%g, %g)", round,
				 b->number, b->score.accuracy, b->score.objective, a->number,
				 a->score.accuracy, a->score.objective);
		if (b->score.early) {
			double accuracy = a->score.accuracy;

			search_set_best_accuracy(e->b.s, accuracy);
			assert_true(!b->score.early && b->score.accuracy == accuracy &&
				    b->score.met == a->score.met && b->score.low == accuracy &&
				    b->score.high == accuracy && b->score.loss == a->score.loss);
		}
		search_free(exact);
		search_free(e->b.s);
	}
	assert_true(saved > 0 && skipped > 0 && settled > 50);
	free(e);
}

static void early_completed(void *self, const struct trial *t)
{
	struct early *e = self;

	assert_false(t->score.early);
	e->n_completed++;
}

/* A trial that ended early has bounds; once its value is wanted it has that, and is no second trial. */
static void a_value_is_exact_when_it_is_wanted_later(void **state)
{
	static const struct search_backend completes = {
		.run = early_run, .objective = bench_measure, .completed = early_completed, .now = bench_now
	};
	struct early *e = xcalloc(1, sizeof(*e));
	struct search_config c = HIGHER(.space = &e->b.space, .backend = &completes, .self = e);
	struct err err = ERR_INIT;
	struct score score;
	size_t i;

	(void)state;
	bench_init(&e->b);
	for (i = 0; i < SAMPLES; i++) {
		e->right[0][i] = i % 2;     /* 20 of 40 */
		e->right[1][i] = i % 4 > 2; /* 10, and after 20 of them at most 25 */
	}
	assert_ok(search_new(&e->b.s, &c, &err), err);
	search_want(e->b.s, WANT_VERDICT);
	assert_int_equal(try_digits(&e->b, 0, &score), FETTLE_OK);
	assert_true(!score.early && score.accuracy == 0.5);
	assert_int_equal(try_digits(&e->b, 1, &score), FETTLE_OK);
	assert_true(score.early && score.accuracy > 0.25);
	assert_int_equal(try_digits(&e->b, 1, &score), FETTLE_OK);
	assert_true(score.early && e->b.n_runs == 2 && !e->n_completed);
	search_want(e->b.s, WANT_VALUE);
	for (i = 0; i < 2; i++) { /* it runs once more, not each time */
		assert_int_equal(try_digits(&e->b, 1, &score), FETTLE_OK);
		assert_true(!score.early && score.accuracy == 0.25 && score.low == 0.25 &&
			    score.high == 0.25);
		assert_float_equal(score.loss, 0.75, 1e-12);
		assert_int_equal(e->b.n_runs, 3);
		assert_int_equal(e->n_completed, 1);
	}
	assert_int_equal(search_n_trials(e->b.s), 2);
	assert_int_equal(search_best_trial(e->b.s)->number, 1);
	assert_false(search_trial(e->b.s, 2)->score.early);
	search_free(e->b.s);
	free(e);
}

/* What fails is looked at on a quarter of the samples at least; on all where losses are spread over them, or some may be lost. */
static void what_fails_is_looked_at_in_part(void **state)
{
	struct early *e = xcalloc(1, sizeof(*e));
	struct search_config c = HIGHER(.space = &e->b.space, .backend = &early_backend, .self = e);
	struct err err = ERR_INIT;
	struct score score;
	int k;

	(void)state;
	bench_init(&e->b);
	for (k = 0; k < 3; k++) {
		const bool in_part = k == 2;

		c.counts = k > 0;
		c.samples = in_part ? SAMPLES / 2 : 100 * SAMPLES;
		e->evaluated = 0;
		assert_ok(search_new(&e->b.s, &c, &err), err);
		search_want(e->b.s, WANT_PASS);
		assert_int_equal(try_digits(&e->b, 0, &score), FETTLE_OK);
		assert_true(!score.met && score.early == in_part);
		assert_int_equal(e->evaluated, in_part ? SAMPLES / 4 : SAMPLES);
		assert_true(!in_part || (score.loss > 0.24 && score.loss < 0.26));
		search_free(e->b.s);
	}
	free(e);
}

/* Where samples can only lose, a trial ends when it is certain to fail, and is expected to lose more; the best of them is found out. */
static void what_can_only_lose_ends_soon(void **state)
{
	struct early *e = xcalloc(1, sizeof(*e));
	struct search_config c =
		HIGHER(.space = &e->b.space, .backend = &early_backend, .self = e, .samples = SAMPLES);
	struct err err = ERR_INIT;
	struct score score;
	size_t i;
	int k;

	(void)state;
	bench_init(&e->b);
	c.baseline = 1;
	c.tolerance = 0.2;
	for (i = 0; i < SAMPLES; i++) {
		e->right[0][i] = i % 5 > 2; /* loses 0.6: 0.2 of all after 14 */
		e->right[1][i] = i % 5 > 1;
	}
	for (k = 0; k < 2; k++) {
		c.only_lose = k;
		e->evaluated = 0;
		assert_ok(search_new(&e->b.s, &c, &err), err);
		search_want(e->b.s, WANT_PASS);
		assert_int_equal(try_digits(&e->b, 0, &score), FETTLE_OK);
		assert_true(!score.met && score.early == c.only_lose);
		assert_true(fabs(score.loss + score.beyond - 0.6) < 0.1);
		assert_true(!k || (score.loss < 0.25 && e->evaluated < SAMPLES / 2));
		assert_int_equal(try_digits(&e->b, 1, &score), FETTLE_OK);
		assert_true(!score.met && score.early == c.only_lose);
		assert_true(fabs(score.loss + score.beyond - 0.4) < 0.1);
		assert_int_equal(search_settle(e->b.s), FETTLE_OK);
		assert_int_equal(search_best_trial(e->b.s)->number, 2);
		assert_false(search_best_trial(e->b.s)->score.early);
		assert_true(fabs(search_best_trial(e->b.s)->score.loss - 0.4) < 1e-9);
		assert_true(search_best_trial(e->b.s)->score.beyond == 0);
		search_free(e->b.s);
	}
	free(e);
}

/* What is no faster than what there is already is not evaluated; unless every trial is to be. */
static void slow_plans_are_not_evaluated(void **state)
{
	static const struct {
		const char *why;
		enum want want;
		bool no_early, held;
		double noise, gain, objective;
		size_t runs;
	} rows[] = {
		{ "slower, with less in int8", WANT_VERDICT, false, false, 0.05, 1, 1.2, 1 },
		{ "as fast, with less in int8", WANT_VERDICT, false, false, 0.05, 1, 1, 1 },
		{ "faster", WANT_VERDICT, false, false, 0.05, 1, 0.8, 2 },
		{ "larger, where there is no noise", WANT_VERDICT, false, false, 0, 0, 1.2, 1 },
		{ "as large: the more accurate wins", WANT_VERDICT, false, false, 0, 0, 1, 2 },
		{ "slower, but its value is wanted", WANT_VALUE, false, false, 0.05, 1, 1.2, 2 },
		{ "slower, but all are to be evaluated", WANT_VERDICT, true, false, 0.05, 1, 1.2, 2 },
		{ "slower, but the search is held", WANT_VERDICT, false, true, 0.05, 1, 1.2, 2 },
		{ "held, but only what is faster is wanted", WANT_FASTER, false, true, 0.05, 1, 1.2, 1 },
		{ "held, only what is faster is wanted, and it is", WANT_FASTER, false, true, 0.05, 1, 0.8,
		  2 },
	};
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_LEN(rows); i++) {
		struct err err = ERR_INIT;
		struct score score;
		struct bench b;

		bench_init(&b);
		b.ops[2].gain = rows[i].gain;
		b.accuracy[0] = b.accuracy[2] = 1; /* 2: the last op in fp32 */
		b.objective[0] = 1;
		b.objective[2] = rows[i].objective;
		assert_ok(bench_start(&b,
				      HIGHER(.timeout = 100, .objective_equal = rows[i].noise,
					     .no_early = rows[i].no_early),
				      &err),
			  err);
		search_want(b.s, rows[i].want);
		if (rows[i].held)
			search_hold(b.s);
		assert_int_equal(try_digits(&b, 0, &score), FETTLE_OK);
		assert_int_equal(try_digits(&b, 2, &score), FETTLE_OK);
		if (b.n_runs != rows[i].runs)
			fail_msg("%s: %zu evaluations, want %zu", rows[i].why, b.n_runs, rows[i].runs);
		if (rows[i].runs == 1) {
			assert_true(score.early && !score.failed && !score.met && isnan(score.accuracy));
			assert_non_null(strstr(search_trial(b.s, 2)->why, "no faster than trial 1"));
			assert_int_equal(search_best_trial(b.s)->number, 1);
		}
		search_free(b.s);
	}
}

static double bench_share(void *self, const struct plan *p)
{
	(void)self;
	return p->choice[2] == 2 ? SLIGHT_SHARE / 2 : 1; /* those with the last op in fp32 */
}

/* Plans that meet the target: which is the best, and what each was measured against. */
static void what_gains_nothing_wins_last(void **state)
{
	static const struct {
		const char *why;
		double objective[3]; /* of two plans, and of one that quantizes next to nothing */
		size_t best, against;
	} rows[] = {
		{ "the faster", { 0.8, 0.7, 0.75 }, 2, 2 },
		{ "not by less than 1 %: then the more accurate", { 0.8, 0.795, 0.9 }, 1, 1 },
		{ "the faster, though it quantizes next to nothing", { 0.8, 0.7, 0.6 }, 3, 2 },
		{ "slower than fp32, and nothing else is there", { 1.3, 1.4, 1.5 }, 1, 1 },
		{ "next to nothing rather than slower than fp32", { 1.3, 1.4, 1 }, 3, 1 },
		{ "next to nothing is no better, if it is slower, too", { 1.3, 1.4, 1.35 }, 1, 1 },
		{ "faster than fp32 rather than as fast, if only next to nothing is",
		  { 1.005, 1.4, 0.9 },
		  3,
		  1 },
	};
	static const struct search_backend with_shares = {
		.run = bench_run, .objective = bench_measure, .share = bench_share, .now = bench_now
	};
	size_t i, k;

	(void)state;
	for (i = 0; i < ARRAY_LEN(rows); i++) {
		struct search_config c = HIGHER(.timeout = 100, .objective_equal = 0.01, .fp32_objective = 1);
		struct err err = ERR_INIT;
		struct score score;
		struct bench b;

		bench_init(&b);
		c.space = &b.space;
		c.backend = &with_shares;
		c.self = &b;
		assert_ok(search_new(&b.s, &c, &err), err);
		for (k = 0; k < 3; k++) {
			b.accuracy[k] = 1 - 0.001 * (double)k;
			b.objective[k] = rows[i].objective[k];
			assert_int_equal(try_digits(&b, k, &score), FETTLE_OK);
			assert_true(score.met);
			assert_true(score.slight == (k == 2));
			if (k < 2)
				assert_int_equal(b.against, k); /* the first against fp32 */
		}
		if (search_best_trial(b.s)->number != rows[i].best || b.against != rows[i].against)
			fail_msg("%s: the best is trial %zu, the last was measured against %zu", rows[i].why,
				 search_best_trial(b.s)->number, b.against);
		search_free(b.s);
	}
}

/* A run had trials 1 to 3; with a larger limit the strategy asks for others after the first. */
static void a_history_is_continued_with_a_larger_limit(void **state)
{
	static const size_t plans[] = { 0, 4, 5, 1, 6 };
	struct err err = ERR_INIT;
	struct score score;
	struct bench b;
	size_t i;

	(void)state;
	bench_init(&b);
	b.history[0] = 1;
	b.history[1] = 2;
	b.history[2] = 3;
	for (i = 0; i < N_PLANS; i++)
		b.objective[i] = 5;
	b.accuracy[2] = 1; /* it met the target, and is not asked for again */
	assert_ok(bench_start(&b, HIGHER(.timeout = 100, .max_trials = 5, .recorded = 3), &err), err);
	for (i = 0; i < ARRAY_LEN(plans); i++) {
		enum fettle_status st = try_digits(&b, plans[i], &score);

		assert_int_equal(st, i < 4 ? FETTLE_OK : FETTLE_STOP); /* 3 were there, 2 are new */
	}
	assert_int_equal(search_why(b.s), SEARCH_MAX_TRIALS);
	assert_int_equal(b.n_runs, 2);
	assert_int_equal(search_n_trials(b.s), 4);
	assert_int_equal(search_trial(b.s, 1)->number, 1);
	assert_int_equal(search_trial(b.s, 2)->number, 4); /* no number is given twice */
	assert_int_equal(search_trial(b.s, 3)->number, 5);
	assert_int_equal(search_trial(b.s, 4)->number, 2);
	assert_false(search_best_trial(b.s)->score.met);
	for (i = 0; i < 3; i++) {
		uint16_t choice[N_OPS] = { 0, 0, (uint8_t)i };

		search_adopt(b.s, &(struct plan){ choice, N_OPS });
	}
	assert_int_equal(search_n_trials(b.s), 5);
	assert_int_equal(search_best_trial(b.s)->number, 3);
	assert_true(search_best_trial(b.s)->score.met);
	search_free(b.s);
}

/* With a weight of its own, the accuracy decides too: the best is the one that a plain loop over all finds. */
static void the_weight_of_accuracy_counts(void **state)
{
	static const double weights[] = { 0, 0.1, 1, 20 };
	struct rng rng;
	size_t round, chosen[ARRAY_LEN(weights)], differ = 0;

	(void)state;
	rng_seed(&rng, 11);
	for (round = 0; round < 40; round++) {
		double accuracy[N_PLANS], objective[N_PLANS];
		size_t i, k;

		for (i = 0; i < N_PLANS; i++) {
			accuracy[i] = 0.5 + 0.5 * rng_unit(&rng);
			objective[i] = 0.2 + rng_unit(&rng);
		}
		for (k = 0; k < ARRAY_LEN(weights); k++) {
			struct search_config c = { .baseline = 0.8,
						   .higher_is_better = true,
						   .tolerance = 0.2,
						   .timeout = 1e6,
						   .accuracy_weight = weights[k] };
			double least = INFINITY;
			struct bench b;
			struct err err = ERR_INIT;
			struct score score;

			bench_init(&b);
			memcpy(b.accuracy, accuracy, sizeof(accuracy));
			memcpy(b.objective, objective, sizeof(objective));
			assert_ok(bench_start(&b, c, &err), err);
			chosen[k] = N_PLANS;
			for (i = 0; i < N_PLANS; i++) {
				double sum = objective[i] + weights[k] * (1 + (0.8 - accuracy[i]) / 0.8);

				assert_int_equal(try_digits(&b, i, &score), FETTLE_OK);
				if (i == N_PLANS - 1 || accuracy[i] < 0.6 ||
				    sum >= least) /* the last is fp32 */
					continue;
				least = sum;
				chosen[k] = i;
			}
			assert_int_equal(digits(&search_best_trial(b.s)->plan), chosen[k]);
			search_free(b.s);
		}
		differ += chosen[0] != chosen[3];
	}
	assert_true(differ > 20);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_history_is_continued_with_a_larger_limit),
		cmocka_unit_test(criterion),
		cmocka_unit_test(the_weight_of_accuracy_counts),
		cmocka_unit_test(a_relative_loss_needs_a_baseline),
		cmocka_unit_test(fp32_is_no_success),
		cmocka_unit_test(the_best_is_kept),
		cmocka_unit_test(a_repeated_plan_costs_nothing),
		cmocka_unit_test(limits_end_it),
		cmocka_unit_test(held_the_goal_does_not_end_it),
		cmocka_unit_test(a_batch_answers_in_order),
		cmocka_unit_test(ranks_come_sorted),
		cmocka_unit_test(stages_are_copied),
		cmocka_unit_test(verdicts),
		cmocka_unit_test(verdicts_by_brute_force),
		cmocka_unit_test(early_verdicts_change_nothing),
		cmocka_unit_test(a_value_is_exact_when_it_is_wanted_later),
		cmocka_unit_test(what_fails_is_looked_at_in_part),
		cmocka_unit_test(what_can_only_lose_ends_soon),
		cmocka_unit_test(slow_plans_are_not_evaluated),
		cmocka_unit_test(what_gains_nothing_wins_last),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
