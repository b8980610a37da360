/*
 * Timing on machines that are simulated, clock and all: what is declared, and what is chosen by it, under noise as
 * machines have it. The noise is a fixed sequence of random numbers, so the counts are the same everywhere.
 */
#include "unit/unit.h"

#include "base/rng.h"
#include "evaluate/turns.h"

enum { TIMES = 300 };

enum noise {
	QUIET = 0,
	HEAVY = 1, /* every tenth run is disturbed on the CPU itself: by up to many times, with a heavy tail */
	DRIFT = 2, /* the machine becomes half as fast on the way */
	BUSY = 4, /* another process wants the same core: every 4 ms of running it takes a few, with a heavy tail */
	COLD = 8,   /* the first run after another contender's takes longer */
	WAITS = 16, /* the thread waits for others: its CPU time says nothing */
	/* For 60 of 300 ms another machine shares the core: the first takes 1.2 times as long then, the second 1.6. */
	NEIGHBOUR = 32,
	SETTLES = 64 /* the first two runs of each take longer: the second most */
};

struct machine {
	struct rng r;
	int noise;
	double seconds[2]; /* of an undisturbed run of each */
	double clock, slice;
	double neighbour;         /* when it comes or leaves; negative: comes */
	size_t last, runs, of[2]; /* of: each */
};

/* Pareto: 1 and more; the mean is infinite */
static double heavy_tail(struct rng *r)
{
	return 1 / (1 - rng_unit(r));
}

static enum fettle_status run(void *self, size_t which, struct run_time *out, struct err *err)
{
	struct machine *m = self;
	double cpu = m->seconds[which] * exp(0.01 * rng_normal(&m->r)), elapsed;

	(void)err;
	if (m->noise & HEAVY && rng_unit(&m->r) < 0.1)
		cpu *= fmin(1 + 0.05 * heavy_tail(&m->r), 100);
	if (m->noise & DRIFT)
		cpu *= 1 + fmin(m->clock / 2, 1);
	if (m->noise & COLD && m->last != which)
		cpu *= which ? 1.1 : 1.8;
	if (m->noise & SETTLES && m->of[which] < 2)
		cpu *= m->of[which] ? 3 : 1.5;
	m->of[which]++;
	if (m->noise & NEIGHBOUR && m->clock > fabs(m->neighbour))
		m->neighbour =
			m->neighbour < 0 ? m->clock + 0.06 : -(m->clock - 0.24 * log(1 - rng_unit(&m->r)));
	if (m->noise & NEIGHBOUR && m->neighbour > 0)
		cpu *= which ? 1.6 : 1.2;
	elapsed = cpu;
	for (m->slice -= cpu; m->noise & BUSY && m->slice < 0; m->slice += 0.004)
		elapsed += fmin(0.002 * heavy_tail(&m->r), 0.5);
	m->clock += elapsed;
	m->last = which;
	m->runs++;
	*out = (struct run_time){ .elapsed = elapsed,
				  .cpu = m->noise & WAITS ? 0.1 * cpu * rng_unit(&m->r) : cpu,
				  .waited = m->noise & WAITS };
	return FETTLE_OK;
}

static double now(void *self)
{
	return ((struct machine *)self)->clock;
}

static struct race_ratio time_both(struct machine *m, double seconds)
{
	struct err err = ERR_INIT;
	struct latency out[2];

	m->clock = m->slice = 0;
	m->runs = 0;
	assert_ok(turns_take(&(struct turns){ .n = 2,
					      .run = run,
					      .now = now,
					      .self = m,
					      .seconds = seconds,
					      .equal = LATENCY_EQUAL },
			     out, &err),
		  err);
	assert_int_equal(out[0].speedup.value, 1);
	return out[1].speedup;
}

static const struct {
	const char *name;
	int noise;
	double unit; /* seconds of a run */
} machines[] = {
	{ "quiet", QUIET, 2e-4 },
	{ "heavy tails", HEAVY, 2e-4 },
	{ "drift", DRIFT, 2e-4 },
	{ "one core busy", BUSY, 2e-4 },
	{ "one core busy, long runs", BUSY | HEAVY, 0.015 },
	{ "cold caches", COLD, 2e-4 },
	{ "all of it", HEAVY | DRIFT | BUSY | COLD, 1e-3 },
	{ "threads that wait for others", HEAVY | DRIFT | WAITS, 2e-4 },
};

/* Where one is asked for, there is an interval, however little time there was. */
static void an_interval_needs_no_time(void **state)
{
	struct machine m = { .noise = BUSY | HEAVY, .seconds = { 4e-3, 2e-3 } };
	struct turns t = {
		.n = 2, .run = run, .now = now, .self = &m, .equal = LATENCY_EQUAL, .width = 0.02
	};
	struct err err = ERR_INIT;
	struct latency out[2];

	(void)state;
	rng_seed(&m.r, 1);
	assert_ok(turns_take(&t, out, &err), err);
	assert_true(out[1].speedup.low > 1.5 && out[1].speedup.high < 3);
	t.width = 0;
	assert_ok(turns_take(&t, out, &err), err);
	assert_true(out[1].speedup.low < 1.95 && out[1].speedup.high > 2.05); /* three rounds show little */
}

/* While nothing is certain it goes on, up to a limit of its own; what is certain ends when the time is up, wide or not. */
static void what_is_undecided_gets_more_time(void **state)
{
	struct machine m = { .noise = HEAVY | BUSY };
	struct turns t = { .n = 2,
			   .run = run,
			   .now = now,
			   .self = &m,
			   .seconds = 0.05,
			   .equal = LATENCY_EQUAL,
			   .width = 1e-4 };
	size_t i, k, decided[2] = { 0 };
	struct err err = ERR_INIT;
	struct latency out[2];

	(void)state;
	rng_seed(&m.r, 6);
	for (i = 0; i < TIMES; i++)
		for (k = 0; k < 2; k++) {
			m = (struct machine){ .r = m.r, .noise = m.noise, .seconds = { 4.06e-3, 4e-3 } };
			t.undecided = k ? 3 : 0;
			assert_ok(turns_take(&t, out, &err), err);
			decided[k] += out[1].speedup.low > 1;
			assert_true(m.runs < 3 / 4e-3 + 10);
		}
	if (decided[0] > TIMES / 2 || decided[1] < TIMES * 95 / 100)
		fail_msg("decided in %zu and %zu of %d", decided[0], decided[1], TIMES);
	m = (struct machine){ .r = m.r, .seconds = { 8e-3, 4e-3 } };
	assert_ok(turns_take(&t, out, &err), err);
	assert_true(m.clock < 0.3);
}

/* Identical ones are declared different in at most 2 %; found equal, or not decided, in the rest. */
static void identical_ones_are_not_declared_different(void **state)
{
	struct machine m = { .noise = 0 };
	size_t i, n, different;

	(void)state;
	rng_seed(&m.r, 1);
	for (i = 0; i < ARRAY_LEN(machines); i++) {
		m.noise = machines[i].noise & ~COLD; /* which treats the two differently */
		m.seconds[0] = m.seconds[1] = machines[i].unit;
		for (n = different = 0; n < TIMES; n++) {
			struct race_ratio r = time_both(&m, 2000 * machines[i].unit);

			different += r.low > 1 || r.high < 1;
		}
		if (different > TIMES * 2 / 100)
			fail_msg("%s: %zu of %d declared different", machines[i].name, different, TIMES);
	}
}

/* 3 % is found, whichever of the two is faster; the ratio is right within 2 % in nearly all. */
static void three_percent_are_found(void **state)
{
	struct machine m = { .noise = 0 };
	size_t i, n, k, found, wrong, off;

	(void)state;
	rng_seed(&m.r, 2);
	for (i = 0; i < ARRAY_LEN(machines); i++) {
		m.noise = machines[i].noise;
		for (n = found = wrong = off = 0; n < TIMES; n++) {
			struct race_ratio r;

			k = n % 2;
			m.seconds[k] = machines[i].unit;
			m.seconds[!k] = machines[i].unit * 1.03;
			r = time_both(&m, 2000 * machines[i].unit);
			found += k ? r.low > 1 : r.high < 1;
			wrong += k ? r.high < 1 : r.low > 1;
			off += fabs(log(r.value) - (k ? 1 : -1) * log(1.03)) > 0.02;
		}
		if (found < TIMES * 95 / 100 || wrong > TIMES / 100 || off > TIMES / 100)
			fail_msg("%s: %zu of %d found, %zu the wrong way, %zu off by more than 2 %%",
				 machines[i].name, found, TIMES, wrong, off);
	}
}

/* What is clear is decided after few rounds, what is equal before the time is up. */
static void it_ends_when_it_is_certain(void **state)
{
	struct machine m = { .seconds = { 2e-4, 1e-4 } };
	size_t n, ended = 0;

	(void)state;
	rng_seed(&m.r, 3);
	for (n = 0; n < TIMES; n++) {
		m.noise = n % 2 ? HEAVY | BUSY : QUIET;
		assert_true(time_both(&m, 10).low > 1);
		assert_true(m.runs <= 2 * (3 + 8 * 21));
	}
	m.seconds[1] = 2e-4;
	m.noise = HEAVY;
	for (n = 0; n < TIMES; n++) {
		time_both(&m, 1);
		ended += m.clock < 1;
	}
	assert_true(ended > TIMES * 9 / 10);
}

/* Single runs would be on cold caches, or on warm ones, by who came first: the few rounds of a short timing would say little. */
static void cold_caches_do_not_count(void **state)
{
	static const double seconds[][2] = { { 0.004, 0.002 }, { 0.007, 0.006 }, { 0.02, 0.019 } };
	struct machine m = { .noise = COLD };
	struct err err = ERR_INIT;
	struct latency out[2];
	size_t i;

	(void)state;
	rng_seed(&m.r, 5);
	for (i = 0; i < ARRAY_LEN(seconds); i++) {
		const double is = seconds[i][0] / seconds[i][1];
		struct race_ratio r;

		memcpy(m.seconds, seconds[i], sizeof(m.seconds));
		m.clock = 0;
		assert_ok(turns_take(&(struct turns){ .n = 2,
						      .run = run,
						      .now = now,
						      .self = &m,
						      .equal = LATENCY_EQUAL,
						      .width = 0.02 },
				     out, &err),
			  err);
		r = out[1].speedup;
		assert_true(fabs(r.value / is - 1) < 0.02);
		assert_true(r.low > 0.95 * is && r.high < 1.05 * is);
	}
}

/* Long runs are not repeated: with little time, it is a few rounds in all. */
static void the_time_is_bounded(void **state)
{
	struct machine m = { .seconds = { 1, 1 } };

	(void)state;
	rng_seed(&m.r, 4);
	time_both(&m, 0);
	assert_true(m.runs <= 2 * (2 + 3));
	time_both(&m, 20);
	assert_true(m.clock < 26);
}

/* Three rounds of long runs are enough for an interval: those in which a model's memory is laid out are none of them. */
static void long_runs_have_settled(void **state)
{
	struct machine m = { .noise = SETTLES, .seconds = { 0.2, 0.1 } };
	struct turns t = { .n = 2, .run = run, .now = now, .self = &m, .seconds = 0.05, .width = 0.02 };
	struct err err = ERR_INIT;
	struct latency out[2];
	size_t n;

	(void)state;
	rng_seed(&m.r, 9);
	for (n = 0; n < TIMES; n++) {
		m.clock = m.slice = 0;
		m.runs = m.of[0] = m.of[1] = 0;
		assert_ok(turns_take(&t, out, &err), err);
		assert_true(m.runs <= 2 * (2 + 3));
		assert_true(fabs(out[1].speedup.value / 2 - 1) < 0.05);
		assert_true(out[1].speedup.low > 1.5);
	}
}

/* As a search compares: each plan with the best so far. Twice; what is chosen is equal within 2 %. */
static size_t choose(struct machine *m, const double *plans, size_t n)
{
	size_t best = 0, i;

	for (i = 1; i < n; i++) {
		m->seconds[0] = plans[best];
		m->seconds[1] = plans[i];
		if (time_both(m, 1000 * plans[0]).value > 1 + LATENCY_EQUAL)
			best = i;
	}
	return best;
}

static void two_runs_choose_alike(void **state)
{
	static const double relative[] = { 1, 1.05, 0.99, 1.2, 0.97, 0.985, 0.96, 0.965, 2 };
	struct machine m = { .noise = 0 };
	double plans[ARRAY_LEN(relative)];
	size_t i, k, n, apart;

	(void)state;
	rng_seed(&m.r, 5);
	for (i = 0; i < ARRAY_LEN(machines); i++) {
		m.noise = machines[i].noise & ~COLD;
		for (k = 0; k < ARRAY_LEN(relative); k++)
			plans[k] = machines[i].unit * relative[k];
		for (n = apart = 0; n < TIMES / 3; n++) {
			double a = plans[choose(&m, plans, ARRAY_LEN(plans))],
			       b = plans[choose(&m, plans, ARRAY_LEN(plans))];

			apart += fabs(log(a / b)) > 0.02;
		}
		if (apart > TIMES / 3 * 2 / 100)
			fail_msg("%s: %zu of %d pairs of runs chose plans that are more than 2 %% apart",
				 machines[i].name, apart, TIMES / 3);
	}
}

/* A neighbour comes and goes: what is timed in a few rounds is what both take without it. */
static void a_neighbour_does_not_count(void **state)
{
	struct machine m = { .noise = NEIGHBOUR, .seconds = { 4e-3, 2e-3 }, .neighbour = -0.1 };
	struct turns t = {
		.n = 2, .run = run, .now = now, .self = &m, .seconds = 0.02, .warm = 4e-3, .least = 3.95e-3
	};
	struct err err = ERR_INIT;
	struct latency out[2];
	size_t n, off = 0;

	(void)state;
	rng_seed(&m.r, 7);
	for (n = 0; n < TIMES; n++) {
		const double start = m.clock;

		assert_ok(turns_take(&t, out, &err), err);
		off += fabs(out[1].speedup.value / 2 - 1) > 0.04;
		assert_true(m.clock - start < 8 * t.seconds);
	}
	if (off > TIMES * 2 / 100)
		fail_msg("%zu of %d are off by more than 4 %%", off, TIMES);
}

/* A few quiet rounds that agree are enough for an interval that holds; where nothing is clear there are more. */
static void rounds_that_agree_are_enough(void **state)
{
	static const struct {
		const char *name;
		int noise;
		double second; /* seconds of a run; the first takes 3e-3 */
		bool few;
	} rows[] = {
		{ "clearly faster", QUIET, 2.4e-3, true },
		{ "clearly slower", QUIET, 3.6e-3, true },
		{ "about equal", QUIET, 2.99e-3, false },
		{ "with a neighbour, now and then", NEIGHBOUR, 2.4e-3, true },
	};
	struct err err = ERR_INIT;
	struct latency out[2];
	size_t i, n, few, outside;

	(void)state;
	for (i = 0; i < ARRAY_LEN(rows); i++) {
		struct machine m = { .noise = rows[i].noise, .seconds = { 3e-3, rows[i].second } };
		const struct turns t = { .n = 2,
					 .run = run,
					 .now = now,
					 .self = &m,
					 .seconds = 0.04,
					 .undecided = 0.14,
					 .equal = LATENCY_EQUAL,
					 .width = 2 * LATENCY_EQUAL,
					 .warm = 3e-3,
					 .least = 2.95e-3 };

		rng_seed(&m.r, 10);
		for (n = few = outside = 0; n < 3 * TIMES; n++) {
			const double is = m.seconds[0] / m.seconds[1];

			assert_ok(turns_take(&t, out, &err), err);
			few += out[0].runs < 2 * RACE_FIRST_LOOK;
			outside += out[1].speedup.low > is || out[1].speedup.high < is;
		}
		if (outside > 3 * TIMES * 2 / 100 || (few > 3 * TIMES / 2) != rows[i].few)
			fail_msg("%s: %zu intervals of %d do not hold, %zu are of few rounds", rows[i].name,
				 outside, 3 * TIMES, few);
	}
}

/* Of what is much slower, a round without a neighbour is enough; the first of a timing may have one. */
static void what_is_slower_is_not_timed_for_long(void **state)
{
	struct machine m = { .seconds = { 4e-3, 8e-3 } };
	struct turns t = { .n = 2,
			   .run = run,
			   .now = now,
			   .self = &m,
			   .seconds = 0.1,
			   .slower = 1.4,
			   .warm = 4e-3,
			   .least = 3.95e-3 };
	struct err err = ERR_INIT;
	struct latency out[2];

	(void)state;
	rng_seed(&m.r, 8);
	assert_ok(turns_take(&t, out, &err), err);
	assert_int_equal(m.runs, 4); /* two in a turn */
	assert_true(fabs(out[1].speedup.value - 0.5) < 0.05);
	m.seconds[1] = 5e-3;
	assert_ok(turns_take(&t, out, &err), err);
	assert_true(m.runs > 4 + 2 * 2 * 3);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_interval_needs_no_time),
		cmocka_unit_test(what_is_undecided_gets_more_time),
		cmocka_unit_test(identical_ones_are_not_declared_different),
		cmocka_unit_test(three_percent_are_found),
		cmocka_unit_test(it_ends_when_it_is_certain),
		cmocka_unit_test(the_time_is_bounded),
		cmocka_unit_test(long_runs_have_settled),
		cmocka_unit_test(cold_caches_do_not_count),
		cmocka_unit_test(two_runs_choose_alike),
		cmocka_unit_test(a_neighbour_does_not_count),
		cmocka_unit_test(rounds_that_agree_are_enough),
		cmocka_unit_test(what_is_slower_is_not_timed_for_long),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
