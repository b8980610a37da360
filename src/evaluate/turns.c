#include "evaluate/turns.h"

#include <math.h>
#include <stdlib.h>

enum { WARM_UP = 3, ROUNDS_MIN = 3, ROUNDS_MAX = 100000, TURN_RUNS_MAX = 8 };
/* Seconds: warming up takes no more runs than fit; turns have as many runs as fit, but two below, and one above. A run of 3 ms takes up
 * to a tenth longer on cold caches, and one of 7 ms a sixth: with single runs, ratios would go up and down with who came first. */
#define WARM_UP_ENOUGH 0.002
#define TURN_ENOUGH 0.003
#define LONG_RUN 0.05
/* Such runs are hardly disturbed: when they have taken so many times as long as they should, fewer rounds are enough. */
#define LONG_TURNS 4
/* A turn that takes so many times as long as the contender's shortest was disturbed: it has more runs, up to so many times as many. */
#define DISTURBED 1.1
enum { DISTURBED_RUNS = 4 };
/* So many quiet rounds are enough if they agree: their interval is at most so many times as wide as it should be. */
enum { ROUNDS_AGREE = 4 };
#define WIDTH_AGREE 3
/* Rounds on a machine that is not quiet are not enough until they have taken so many times as long as they should. */
#define PATIENCE 4

struct contender_times {
	VEC(double) own, elapsed; /* of every run */
	double turn, least;       /* of the last one, and the shortest */
	size_t more;              /* runs of disturbed turns beyond those that turns have */
	struct race race;         /* against the first */
};

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static double own_time(const struct run_time *t)
{
	return t->waited || !(t->cpu > 0) ? t->elapsed : fmin(t->cpu, t->elapsed);
}

static struct latency summarise(struct contender_times *c)
{
	size_t n = c->own.n;

	qsort(c->own.v, n, sizeof(*c->own.v), by_value);
	qsort(c->elapsed.v, n, sizeof(*c->elapsed.v), by_value);
	return (struct latency){
		.median = n % 2 ? c->own.v[n / 2] : (c->own.v[n / 2 - 1] + c->own.v[n / 2]) / 2,
		.least = c->own.v[0],
		.p90 = c->elapsed.v[(n * 9 + 9) / 10 - 1],
		.runs = n,
		.speedup = race_ratio(&c->race),
	};
}

/* Do turns have the fewest runs in any case? The first run of a turn warms up what has run before. */
static bool is_warm(const struct turns *t)
{
	return t->warm >= TURN_ENOUGH / 2;
}

/*
 * The runtime lays a model's memory out by what the first run takes, and asks the system for it in the second. Where a turn is a single
 * run, this one must not be it. *shortest: becomes that of its runs, if it was longer.
 */
static enum fettle_status warm_up(const struct turns *t, size_t which, double *shortest, struct err *err)
{
	double spent = 0;
	struct run_time time;
	enum fettle_status st;
	size_t i;

	for (i = 0; i < WARM_UP && (!i || spent < WARM_UP_ENOUGH || (i == 1 && spent > LONG_RUN)); i++) {
		st = t->run(t->self, which, &time, err);
		if (st)
			return st;
		spent += own_time(&time);
		*shortest = fmin(*shortest, own_time(&time));
	}
	return FETTLE_OK;
}

/* Of every contender alike: with fewer than another, one would be timed on colder caches. */
static size_t runs_in_turn(double shortest)
{
	const double fits = TURN_ENOUGH / shortest;

	return shortest > LONG_RUN ? 1 : fits < 2 ? 2 : fits < TURN_RUNS_MAX ? (size_t)fits : TURN_RUNS_MAX;
}

/* In all, disturbed turns at most double the runs: on a machine that is slower from now on, or a busy one, they show nothing. Long runs
 * are not repeated. */
static bool is_disturbed(const struct contender_times *c, size_t taken, size_t runs)
{
	return c->turn > DISTURBED * c->least && c->least <= LONG_RUN && taken < DISTURBED_RUNS * runs &&
	       2 * c->more < c->own.n;
}

static enum fettle_status take_turn(const struct turns *t, size_t which, size_t runs,
				    struct contender_times *c, struct err *err)
{
	struct run_time time;
	enum fettle_status st = FETTLE_OK;
	size_t i;

	c->turn = INFINITY;
	for (i = 0; (i < runs || is_disturbed(c, i, runs)) && !st; i++) {
		st = t->run(t->self, which, &time, err);
		if (st)
			break;
		VEC_PUSH(&c->own, own_time(&time));
		VEC_PUSH(&c->elapsed, time.elapsed);
		c->turn = fmin(c->turn, own_time(&time));
		c->more += i >= runs;
	}
	c->least = fmin(c->least, c->turn);
	return st;
}

static bool all_decided(const struct turns *t, const struct contender_times *c, double width)
{
	size_t i;

	for (i = 1; i < t->n; i++)
		if (!race_decided(&c[i].race, t->equal) || !race_is_within(&c[i].race, width))
			return false;
	return t->equal > 0;
}

/* what the contenders have taken so far, other processes aside */
static double own_seconds(const struct turns *t, const struct contender_times *c)
{
	double sum = 0;
	size_t i, k;

	for (i = 0; i < t->n; i++)
		for (k = 0; k < c[i].own.n; k++)
			sum += c[i].own.v[k];
	return sum;
}

/* Is each clearly faster or slower than the first, by quiet rounds that hardly differ? */
static bool rounds_agree(const struct turns *t, const struct contender_times *c)
{
	size_t i;

	for (i = 1; i < t->n; i++) {
		const struct race_ratio r = race_ratio(&c[i].race);

		if (race_n_quiet(&c[i].race) < ROUNDS_AGREE ||
		    (r.low <= 1 + t->equal && r.high >= 1 / (1 + t->equal)) ||
		    r.high > (1 + WIDTH_AGREE * t->width) * r.low)
			return false;
	}
	return true;
}

/* Fewer rounds have to do where runs are long, or time is up. */
static size_t least_rounds(const struct turns *t, const struct contender_times *c, double elapsed)
{
	const bool is_long = elapsed > LONG_TURNS * t->seconds && c[0].least > LONG_RUN;

	if (!(t->width > 0))
		return is_long ? 2 : ROUNDS_MIN;
	return is_long || (t->undecided > 0 && own_seconds(t, c) >= t->undecided) ? RACE_FEW
										  : RACE_FIRST_LOOK;
}

/* Of few rounds, those of a quiet machine; of any, when that has taken too long. For an interval there are enough. */
static size_t rounds_taken(const struct turns *t, const struct contender_times *c, size_t rounds,
			   double elapsed)
{
	size_t i, n = rounds;

	for (i = 1; i < t->n && !(t->width > 0) && elapsed < PATIENCE * t->seconds; i++) {
		const size_t quiet = race_n_quiet(&c[i].race);

		n = quiet < n ? quiet : n;
	}
	return n;
}

static bool all_slower(const struct turns *t, const struct contender_times *c)
{
	size_t i;

	for (i = 1; i < t->n; i++)
		if (race_ratio(&c[i].race).value * t->slower > 1)
			return false;
	return true;
}

static bool is_over(const struct turns *t, const struct contender_times *c, size_t rounds, double elapsed)
{
	size_t taken;

	if (rounds == ROUNDS_MAX || all_decided(t, c, t->width))
		return true;
	if (elapsed < t->seconds && !(t->slower > 0 && rounds < ROUNDS_MIN))
		return false;
	taken = rounds_taken(t, c, rounds, elapsed);
	if (t->slower > 0 && taken && taken < ROUNDS_MIN && all_slower(t, c))
		return true;
	if (elapsed < t->seconds)
		return false;
	if (t->width > 0 && rounds_agree(t, c))
		return true;
	return taken >= least_rounds(t, c, elapsed) &&
	       (own_seconds(t, c) >= t->undecided || all_decided(t, c, 0));
}

static enum fettle_status take_round(const struct turns *t, size_t round, size_t runs,
				     struct contender_times *c, struct err *err)
{
	enum fettle_status st = FETTLE_OK;
	size_t i;

	for (i = 0; i < t->n && !st; i++) /* none always comes after the same neighbour */
		st = take_turn(t, (i + round) % t->n, runs, &c[(i + round) % t->n], err);
	for (i = 0; i < t->n && !st; i++)
		race_add(&c[i].race, c[0].turn, c[i].turn);
	return st;
}

enum fettle_status turns_take(const struct turns *t, struct latency *out, struct err *err)
{
	struct contender_times *c = xcalloc(t->n, sizeof(*c));
	double start = t->now(t->self), elapsed = 0, shortest = is_warm(t) ? t->warm : INFINITY;
	enum fettle_status st = FETTLE_OK;
	size_t i, round, runs;

	for (i = 0; i < t->n; i++) {
		race_init(&c[i].race, LATENCY_CONFIDENCE);
		c[i].least = INFINITY;
		if (t->least > 0)
			c[i].race.least.first = t->least;
	}
	for (i = 0; i < t->n && !is_warm(t) && !st; i++)
		st = warm_up(t, i, &shortest, err);
	runs = runs_in_turn(shortest);
	for (round = 0; !st && !is_over(t, c, round, elapsed); round++) {
		st = take_round(t, round, runs, c, err);
		elapsed = t->now(t->self) - start;
		if (!st && t->go_on && !t->go_on(t->self, elapsed))
			st = fail(err, FETTLE_STOP, "timing was stopped");
	}
	for (i = 0; i < t->n; i++) {
		if (!st)
			out[i] = summarise(&c[i]);
		VEC_RELEASE(&c[i].own);
		VEC_RELEASE(&c[i].elapsed);
		race_release(&c[i].race);
	}
	free(c);
	return st;
}
