/*
 * Races between two that are simulated: how often the verdict is wrong, and how soon it comes, under noise as machines
 * have it. The noise is a fixed sequence of random numbers, so the counts are the same everywhere.
 */
#include "unit/unit.h"

#include "base/rng.h"
#include "evaluate/race.h"

enum { RACES = 400, PAIRS_MAX = 3000 };

enum noise {
	QUIET = 0,
	OUTLIERS = 1, /* every tenth run takes up to ten times as long, for either */
	DRIFT = 2,    /* the machine slows down by half on the way */
	BURSTS = 4,   /* now and then both take three times as long, for some pairs */
};

struct machine {
	struct rng r;
	int noise;
	size_t n, burst;
};

static double take(struct machine *m, double seconds)
{
	seconds *= exp(0.03 * rng_normal(&m->r));
	if (m->noise & OUTLIERS && rng_unit(&m->r) < 0.1)
		seconds *= 1 + 9 * rng_unit(&m->r);
	if (m->noise & DRIFT)
		seconds *= 1 + 0.5 * (double)m->n / PAIRS_MAX;
	return m->burst ? 3 * seconds : seconds;
}

/* returns the pairs that it took */
static size_t run(struct race *race, struct machine *m, double ratio)
{
	race_init(race, 0.99);
	for (m->n = 0; m->n < PAIRS_MAX && !race_decided(race, 0.01); m->n++) {
		double a, b;

		if (m->noise & BURSTS)
			m->burst = m->burst ? m->burst - 1 : rng_unit(&m->r) < 0.02 ? 10 : 0;
		a = take(m, ratio);
		b = take(m, 1);
		race_add(race, a, b);
	}
	return m->n;
}

static void verdicts_hold(void **state)
{
	static const double ratios[] = { 0.5, 0.9, 0.97, 0.99, 1, 1.01, 1.03, 1.1, 2 };
	static const int noises[] = { QUIET, OUTLIERS, DRIFT, OUTLIERS | DRIFT | BURSTS };
	struct machine m = { .noise = 0 };
	size_t i, k, n, wrong, misses, pairs;
	struct race_ratio ratio;
	struct race race;

	(void)state;
	rng_seed(&m.r, 3);
	for (i = 0; i < ARRAY_LEN(noises); i++)
		for (k = 0; k < ARRAY_LEN(ratios); k++) {
			m.noise = noises[i];
			wrong = misses = pairs = 0;
			for (n = 0; n < RACES; n++) {
				pairs += run(&race, &m, ratios[k]);
				ratio = race_ratio(&race);
				misses += ratio.low > ratios[k] || ratio.high < ratios[k];
				wrong += (ratio.low > 1 && ratios[k] < 1) ||
					 (ratio.high < 1 && ratios[k] > 1) ||
					 (ratios[k] == 1 && (ratio.low > 1 || ratio.high < 1));
				race_release(&race);
			}
			/* 1 % may be wrong: of 400, more than 12 have a chance of one in 1,000 */
			if (wrong > 12 || misses > 12)
				fail_msg("ratio %g, noise %d: %zu of %d wrong, %zu intervals missed",
					 ratios[k], noises[i], wrong, RACES, misses);
			if (fabs(log(ratios[k])) > 0.09 && pairs > 40 * RACES)
				fail_msg("ratio %g, noise %d: %zu pairs each", ratios[k], noises[i],
					 pairs / RACES);
		}
}

/* Equal ones are known to be so within 1 % after a few hundred pairs. */
static void equals_are_found(void **state)
{
	struct machine m = { .noise = OUTLIERS };
	struct race_ratio ratio;
	size_t n, decided = 0;
	struct race race;

	(void)state;
	rng_seed(&m.r, 4);
	for (n = 0; n < RACES; n++) {
		decided += run(&race, &m, 1) < PAIRS_MAX;
		ratio = race_ratio(&race);
		assert_true(ratio.low < ratio.value && ratio.value < ratio.high);
		race_release(&race);
	}
	assert_true(decided > RACES * 9 / 10);
}

/* The ranks of the bounds: the chance that the median is outside, by counting all 2^n ways the pairs can fall. */
static void bounds_are_those_of_the_sign_test(void **state)
{
	struct race race;
	size_t i;

	(void)state;
	race_init(&race, 0.99);
	assert_false(race_decided(&race, 0.01));
	for (i = 0; i < 8; i++)
		race_add(&race, 2, 1);
	assert_false(race_decided(&race, 0.01)); /* too early to look */
	race_add(&race, 0.5, 1);
	/* 9 pairs, one the other way: the first look allows 0.00608, and 2 * (1 + 9) / 512 is 0.039 */
	assert_false(race_decided(&race, 0.01));
	race_release(&race);
	race_init(&race, 0.99);
	for (i = 0; i < 9; i++)
		race_add(&race, 2, 1);
	assert_true(race_decided(&race, 0.01)); /* 2 / 512 */
	assert_true(race_is_within(&race, 0.01) && race_is_within(&race, 0));
	assert_true(fabs(race_ratio(&race).value - 2) < 1e-12);
	race_release(&race);
}

/* Too few pairs for the sign test, of long runs: the ratio is outside the interval no more often than it says. */
static void intervals_of_few_hold(void **state)
{
	enum { MANY = 4000 };
	struct machine m = { .noise = QUIET };
	size_t n, i, k, outside;

	(void)state;
	rng_seed(&m.r, 11);
	for (n = RACE_FEW; n < RACE_FIRST_LOOK; n++) {
		for (i = outside = 0; i < MANY; i++) {
			struct race_ratio ratio;
			struct race race;

			race_init(&race, 0.99);
			for (k = 0; k < n; k++)
				race_add(&race, take(&m, 1.3), take(&m, 1));
			ratio = race_ratio(&race);
			outside += ratio.low > 1.3 || ratio.high < 1.3;
			race_release(&race);
		}
		assert_true(outside < MANY / 70); /* 40 are expected */
		assert_true(outside > 0);
	}
}

/* One of few pairs was disturbed: it does not count. */
static void an_outlier_among_few_does_not_count(void **state)
{
	static const double first[] = { 2.01, 5, 2, 1.99 };
	struct race_ratio ratio;
	struct race race;
	size_t i;

	(void)state;
	race_init(&race, 0.99);
	for (i = 0; i < ARRAY_LEN(first); i++)
		race_add(&race, first[i], 1);
	ratio = race_ratio(&race);
	assert_true(fabs(ratio.value - 2) < 0.01);
	assert_true(ratio.low > 1.9 && ratio.high < 2.1);
	race_release(&race);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(verdicts_hold),
		cmocka_unit_test(equals_are_found),
		cmocka_unit_test(bounds_are_those_of_the_sign_test),
		cmocka_unit_test(intervals_of_few_hold),
		cmocka_unit_test(an_outlier_among_few_does_not_count),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
