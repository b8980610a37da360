#include "unit/unit.h"

#include "base/mem.h"
#include "tune/search.h"

/* Three ops with two quantized options and fp32 each. The accuracy of a plan is looked up by its digits. */
enum { N_OPS = 3, N_PLANS = 27 };

static const struct param_option options[] = { { OPTION_STATIC, 0 },
					       { OPTION_STATIC, 1 },
					       { OPTION_FP32, 0 } };

struct bench {
	struct param ops[N_OPS];
	struct space space;
	double accuracy[N_PLANS], objective[N_PLANS];
	double clock;
	size_t n_runs, n_measured;
	size_t recorded[N_PLANS], n_recorded;
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

static enum fettle_status bench_measure(void *self, struct trial *t, double *value, struct err *err)
{
	struct bench *b = self;

	(void)err;
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

static double bench_now(void *self)
{
	return ((struct bench *)self)->clock;
}

static const struct search_backend backend = { .run = bench_run,
					       .objective = bench_measure,
					       .rank = bench_rank,
					       .record = bench_record,
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
	uint8_t choice[N_OPS] = { (uint8_t)(n / 9), (uint8_t)(n / 3 % 3), (uint8_t)(n % 3) };

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
		size_t best, most_accurate;
	} rows[] = {
		{ "met goes before not met", { 0, 1, 2 }, { 0.5, 0.9, 0.6 }, { 0, 9, 0 }, 2, 2 },
		{ "then the objective decides", { 0, 1, 2 }, { 0.99, 0.91, 0.95 }, { 3, 1, 2 }, 2, 1 },
		{ "then accuracy", { 0, 1, 2 }, { 0.95, 0.99, 0.97 }, { 1, 1, 1 }, 2, 2 },
		{ "then the earlier", { 0, 1, 3 }, { 0.95, 0.95, 0.95 }, { 1, 1, 1 }, 1, 1 },
		{ "not met: the least loss", { 0, 1, 2 }, { 0.5, 0.4, 0.6 }, { 0, 0, 0 }, 3, 3 },
		{ "not met: then more in int8", { 2, 0, 8 }, { 0.5, 0.5, 0.5 }, { 0, 0, 0 }, 2, 2 },
		{ "not met: then the earlier", { 0, 1, 3 }, { 0.5, 0.5, 0.5 }, { 0, 0, 0 }, 1, 1 },
		{ "failed ones are never best", { 0, 1, 2 }, { NAN, 0.1, NAN }, { 0, 0, 0 }, 2, 2 },
	};
	size_t i, k;

	(void)state;
	for (i = 0; i < ARRAY_LEN(rows); i++) {
		struct plan best = PLAN_INIT, accurate = PLAN_INIT;
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
		assert_true(search_best(b.s, &best, &score) && search_most_accurate(b.s, &accurate, &score));
		if (digits(&best) != rows[i].plan[rows[i].best - 1] ||
		    search_best_trial(b.s)->number != rows[i].best ||
		    digits(&accurate) != rows[i].plan[rows[i].most_accurate - 1])
			fail_msg("%s: best %zu, most accurate %zu", rows[i].why, digits(&best),
				 digits(&accurate));
		plan_release(&best);
		plan_release(&accurate);
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
	uint8_t choices[4][N_OPS] = { { 0, 0, 0 }, { 0, 0, 1 }, { 0, 0, 2 }, { 0, 1, 0 } };
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(criterion),
		cmocka_unit_test(a_relative_loss_needs_a_baseline),
		cmocka_unit_test(fp32_is_no_success),
		cmocka_unit_test(the_best_is_kept),
		cmocka_unit_test(a_repeated_plan_costs_nothing),
		cmocka_unit_test(limits_end_it),
		cmocka_unit_test(held_the_goal_does_not_end_it),
		cmocka_unit_test(a_batch_answers_in_order),
		cmocka_unit_test(ranks_come_sorted),
		cmocka_unit_test(stages_are_copied),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
