/* Sobol's sequence: the values of the unscrambled one, and the evenness that scrambling must leave. */
#include "unit/unit.h"

#include "base/mem.h"
#include "sampler/sobol.h"

/* computed with SciPy 1.10's stats.qmc.Sobol, which has the same direction numbers: some of the first 64 points */
static void unscrambled_is_as_published(void **state)
{
	static const size_t dimensions[] = { 0, 1, 2, 5, 20, 63, 99 };
	static const struct {
		size_t number;
		double x[7];
	} rows[] = {
		{ 1, { 0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5 } },
		{ 2, { 0.75, 0.25, 0.25, 0.75, 0.25, 0.75, 0.75 } },
		{ 3, { 0.25, 0.75, 0.75, 0.25, 0.75, 0.25, 0.25 } },
		{ 4, { 0.375, 0.375, 0.625, 0.125, 0.125, 0.125, 0.875 } },
		{ 37, { 0.921875, 0.640625, 0.578125, 0.296875, 0.953125, 0.828125, 0.171875 } },
		{ 63, { 0.015625, 0.796875, 0.359375, 0.140625, 0.234375, 0.734375, 0.078125 } },
	};
	double u[SOBOL_DIMENSIONS];
	struct sobol s;
	size_t i = 0, r, k;

	(void)state;
	sobol_init(&s, SOBOL_DIMENSIONS, 0, false);
	for (r = 0; r < ARRAY_LEN(rows); r++) {
		for (; i <= rows[r].number; i++)
			sobol_next(&s, u);
		for (k = 0; k < ARRAY_LEN(dimensions); k++)
			assert_true(fabs(u[dimensions[k]] - rows[r].x[k]) < 1e-9);
	}
	sobol_release(&s);
}

/* of the first 2^k points one lies in each of 2^k intervals, in every dimension and for every k */
static void every_dimension_is_even(void **state)
{
	enum { POINTS = 1024 };
	double *u = xcalloc(POINTS * SOBOL_DIMENSIONS, sizeof(*u));
	size_t seed, n, d, i;

	(void)state;
	for (seed = 0; seed < 3; seed++) {
		struct sobol s;

		sobol_init(&s, SOBOL_DIMENSIONS, seed, true);
		for (i = 0; i < POINTS; i++)
			sobol_next(&s, u + i * SOBOL_DIMENSIONS);
		for (n = 1; n <= POINTS; n *= 2)
			for (d = 0; d < SOBOL_DIMENSIONS; d++) {
				bool seen[POINTS] = { false };

				for (i = 0; i < n; i++) {
					size_t cell = (size_t)(u[i * SOBOL_DIMENSIONS + d] * (double)n);

					assert_false(seen[cell]);
					seen[cell] = true;
				}
			}
		sobol_release(&s);
	}
	free(u);
}

/* the first two dimensions are a (0, m, 2)-net: one point in every box of 2^-m, whatever its shape */
static void two_dimensions_are_a_net(void **state)
{
	enum { M = 8, POINTS = 1 << M };
	double u[POINTS][2];
	struct sobol s;
	unsigned wide;
	size_t i;

	(void)state;
	sobol_init(&s, 2, 7, true);
	for (i = 0; i < POINTS; i++)
		sobol_next(&s, u[i]);
	for (wide = 0; wide <= M; wide++) {
		bool seen[POINTS] = { false };

		for (i = 0; i < POINTS; i++) {
			size_t box = (size_t)(u[i][0] * (1 << wide)) << (M - wide) |
				     (size_t)(u[i][1] * (1 << (M - wide)));

			assert_false(seen[box]);
			seen[box] = true;
		}
	}
	sobol_release(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(unscrambled_is_as_published),
		cmocka_unit_test(every_dimension_is_even),
		cmocka_unit_test(two_dimensions_are_a_net),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
