/* The order of NSGA-II against its definition, on random results. */
#include "unit/unit.h"

#include "sampler/pareto.h"

enum {
	N = 60,
};

static bool better(const struct trials *t, size_t a, size_t b) /* a dominates b */
{
	const double *x = trials_result(t, a), *y = trials_result(t, b), va = t->list.v[a].violation,
		     vb = t->list.v[b].violation;

	if (va > 0 || vb > 0)
		return va < vb;
	return x[0] <= y[0] && x[1] <= y[1] && (x[0] < y[0] || x[1] < y[1]);
}

/* the longest chain of trials of which each dominates the next, and the last is at hand: all grow until none does */
static void find_fronts(const struct trials *t, size_t *fronts)
{
	bool changed = true;
	size_t a, k;

	memset(fronts, 0, t->list.n * sizeof(*fronts));
	while (changed)
		for (changed = false, a = 0; a < t->list.n; a++)
			for (k = 0; k < t->list.n; k++)
				if (better(t, k, a) && fronts[a] < fronts[k] + 1) {
					fronts[a] = fronts[k] + 1;
					changed = true;
				}
}

static void fill(struct trials *t, struct rng *rng, size_t n)
{
	size_t i;

	for (i = 0; i < n; i++) {
		double x = (double)i;
		struct sampler_result r = {
			.values = { (double)rng_below(rng, 12), (double)rng_below(rng, 12) },
			.violations = { rng_below(rng, 5) ? 0 : (double)rng_below(rng, 3) }
		};

		trials_tell(t, &x, i % 17 == 5 ? NULL : &r);
	}
}

static void fronts_come_in_order(void **state)
{
	const struct sampler_param param = { .kind = SAMPLER_INTEGER, .low = 0, .high = N };
	const struct sampler_options opt = {
		.params = &param, .n_params = 1, .n_objectives = 2, .n_constraints = 1
	};
	struct point_space space;
	struct rng rng;
	int round;

	(void)state;
	point_space_init(&space, &param, 1, 0);
	rng_seed(&rng, 1);
	for (round = 0; round < 20; round++) {
		struct trials t;
		size_t numbers[N], fronts[N], seen[N] = { 0 }, i;

		trials_init(&t, &space, &opt);
		fill(&t, &rng, N);
		find_fronts(&t, fronts);
		for (i = 0; i < N; i++)
			numbers[i] = N - 1 - i;
		pareto_sort(&t, numbers, N);
		for (i = 0; i < N; i++) {
			assert_false(seen[numbers[i]]++);
			if (i)
				assert_true(fronts[numbers[i - 1]] <= fronts[numbers[i]]);
		}
		trials_release(&t);
	}
	point_space_release(&space);
}

/* on one front: the ends first, then by the sum of the gaps on both sides */
static void the_crowded_come_last(void **state)
{
	static const double front[][2] = { { 0, 10 }, { 1, 9 }, { 1.5, 8.5 }, { 2, 8 }, { 6, 4 }, { 10, 0 } };
	static const size_t expected[] = { 0, 5, 4, 3, 1, 2 };
	const struct sampler_param param = { .kind = SAMPLER_INTEGER, .low = 0, .high = N };
	const struct sampler_options opt = { .params = &param, .n_params = 1, .n_objectives = 2 };
	struct point_space space;
	struct trials t;
	size_t numbers[] = { 3, 1, 4, 0, 5, 2 }, i;

	(void)state;
	point_space_init(&space, &param, 1, 0);
	trials_init(&t, &space, &opt);
	for (i = 0; i < ARRAY_LEN(front); i++) {
		double x = (double)i;

		trials_tell(&t, &x, &(struct sampler_result){ .values = { front[i][0], front[i][1] } });
	}
	pareto_sort(&t, numbers, ARRAY_LEN(numbers));
	assert_memory_equal(numbers, expected, sizeof(expected));
	trials_release(&t);
	point_space_release(&space);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(fronts_come_in_order),
		cmocka_unit_test(the_crowded_come_last),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
