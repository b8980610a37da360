/* The promise of a confidence sequence, by simulation: at no time does it miss the truth more often than allowed. */
#include "unit/unit.h"

#include "base/mem.h"
#include "base/rng.h"
#include "evaluate/paired.h"

enum { POPULATIONS = 500, ALL = 1500 };

/* what a trial loses on a sample: mostly nothing, sometimes all, seldom a gain */
static double difference(struct rng *r, double worse, double better)
{
	double u = rng_unit(r);

	return u < worse ? 1 : u < worse + better ? -1 : 0;
}

struct run {
	bool missed;
	double width[3]; /* after a tenth, a half, and all of the samples */
};

static struct run sample_all(struct rng *r, double *population, size_t n, double range, double confidence)
{
	struct run out = { .missed = false };
	struct paired p;
	double mean = 0, low, high, last_low = -INFINITY, last_high = INFINITY;
	size_t *order = xcalloc(n, sizeof(*order)), i;

	for (i = 0; i < n; i++) {
		mean += population[i] / (double)n;
		order[i] = i;
	}
	rng_shuffle(r, order, n);
	paired_init(&p, n, range, confidence);
	paired_bounds(&p, &low, &high);
	assert_true(low == -range && high == range);
	for (i = 0; i < n; i++) {
		paired_add(&p, population[order[i]]);
		paired_bounds(&p, &low, &high);
		assert_true(low >= last_low && high <= last_high); /* it only narrows */
		last_low = low;
		last_high = high;
		out.missed |= mean < low - 1e-12 || mean > high + 1e-12;
		if (i + 1 == n / 10)
			out.width[0] = high - low;
		if (i + 1 == n / 2)
			out.width[1] = high - low;
	}
	out.width[2] = high - low;
	free(order);
	return out;
}

static void holds_at_all_times(void **state)
{
	static const struct {
		const char *why;
		double worse, better, confidence, range;
	} rows[] = {
		{ "rare losses", 0.01, 0.005, 0.95, 1 },
		{ "even odds", 0.3, 0.3, 0.95, 1 },
		{ "a bad plan", 0.5, 0.02, 0.9, 1 },
		{ "hardly any confidence asked for", 0.05, 0.05, 0.6, 1 },
		{ "no difference at all", 0, 0, 0.99, 1 },
		{ "scores of another size", 0.1, 0.05, 0.9, 20 },
	};
	double *population = xcalloc(ALL, sizeof(*population));
	size_t i, k, j;
	struct rng r;

	(void)state;
	rng_seed(&r, 6);
	for (i = 0; i < ARRAY_LEN(rows); i++) {
		size_t missed = 0, n = i % 2 ? ALL : ALL / 5;

		for (k = 0; k < POPULATIONS; k++) {
			struct run run;

			for (j = 0; j < n; j++)
				population[j] = rows[i].range * difference(&r, rows[i].worse, rows[i].better);
			run = sample_all(&r, population, n, rows[i].range, rows[i].confidence);
			missed += run.missed;
			assert_true(run.width[1] < run.width[0] && run.width[2] < run.width[1]);
		}
		if ((double)missed > (1 - rows[i].confidence) * POPULATIONS)
			fail_msg("%s: missed in %zu of %d, confidence %g", rows[i].why, missed, POPULATIONS,
				 rows[i].confidence);
	}
	free(population);
}

/* the fewer samples differ, the sooner it is sure: that is what pairing is for */
static void few_differences_narrow_it_soon(void **state)
{
	double *population = xcalloc(ALL, sizeof(*population));
	double width[2] = { 0, 0 };
	size_t i, j;
	struct rng r;

	(void)state;
	rng_seed(&r, 7);
	for (i = 0; i < 2; i++) {
		for (j = 0; j < ALL; j++)
			population[j] = i ? difference(&r, 0.5, 0.5) : difference(&r, 0.01, 0);
		width[i] = sample_all(&r, population, ALL, 1, 0.99).width[1];
	}
	if (!(width[0] < 0.06 && width[0] < width[1] / 4))
		fail_msg("half of %d samples leave %g, and %g when all differ", ALL, width[0], width[1]);
	free(population);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(holds_at_all_times),
		cmocka_unit_test(few_differences_narrow_it_soon),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
