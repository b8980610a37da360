/* The process against its textbook form: the covariance matrix written out, and solved by elimination. */
#include "unit/unit.h"

#include "base/mem.h"
#include "sampler/gauss.h"

enum {
	N = 30,
	PARAMS = 4,
};

static const unsigned with_options[] = { 1 };
static const struct sampler_condition when = { 0, with_options, 1 };
static const struct sampler_param
	mixed[PARAMS] = { { .kind = SAMPLER_CATEGORICAL, .options = 3 },
			  { .kind = SAMPLER_FLOAT, .low = -1, .high = 1 },
			  { .kind = SAMPLER_INTEGER, .low = 1, .high = 64, .log = true },
			  { .kind = SAMPLER_FLOAT, .low = 0, .high = 2, .when = &when } },
	options[PARAMS] = { { .kind = SAMPLER_CATEGORICAL, .options = 3 },
			    { .kind = SAMPLER_CATEGORICAL, .options = 3 },
			    { .kind = SAMPLER_CATEGORICAL, .options = 3 },
			    { .kind = SAMPLER_CATEGORICAL, .options = 3 } };

/* the hyperparameters are read off the fit; that they are good ones is another test's business */
static double covariance(const struct gauss *g, const struct point_space *space, const double *a,
			 const double *b)
{
	double square = 0, r;
	size_t i, number = 0, differ = 0;

	for (i = 0; i < PARAMS; i++) {
		const struct point_param *p = &space->params[i];
		bool one = isnan(a[i]) != isnan(b[i]), none = isnan(a[i]) && isnan(b[i]);

		if (p->kind == SAMPLER_CATEGORICAL) {
			differ += one || (!none && a[i] != b[i]);
			continue;
		}
		differ += one;
		if (!one && !none) {
			double apart = (param_unit(p, a[i]) - param_unit(p, b[i])) / gauss_length(g, number);

			square += apart * apart;
		}
		number++;
	}
	r = sqrt(square);
	return g->covariance[differ] * (1 + sqrt(5) * r + 5. / 3 * r * r) * exp(-sqrt(5) * r);
}

/* Gauss's elimination with pivots: solves a x = b in place */
static void solve(double a[N][N], double *b)
{
	size_t i, k, c;

	for (i = 0; i < N; i++) {
		size_t pivot = i;

		for (k = i + 1; k < N; k++)
			pivot = fabs(a[k][i]) > fabs(a[pivot][i]) ? k : pivot;
		for (c = 0; c < N; c++) {
			double t = a[i][c];

			a[i][c] = a[pivot][c];
			a[pivot][c] = t;
		}
		{
			double t = b[i];

			b[i] = b[pivot];
			b[pivot] = t;
		}
		for (k = i + 1; k < N; k++) {
			double f = a[k][i] / a[i][i];

			for (c = i; c < N; c++)
				a[k][c] -= f * a[i][c];
			b[k] -= f * b[i];
		}
	}
	for (i = N; i-- > 0;) {
		for (k = i + 1; k < N; k++)
			b[i] -= a[i][k] * b[k];
		b[i] /= a[i][i];
	}
}

static void fill_matrix(const struct gauss *g, const struct point_space *space, const double *points,
			double noise, double a[N][N])
{
	size_t i, k;

	for (i = 0; i < N; i++)
		for (k = 0; k < N; k++)
			a[i][k] = covariance(g, space, points + i * PARAMS, points + k * PARAMS) +
				  (i == k ? noise : 0);
}

static void check(const struct sampler_param *params)
{
	static const double noises[] = { 1e-8, 1e-6, 1e-4, 1e-3, 1e-2, 1e-1 };
	double points[N * PARAMS], y[N], a[N][N], weights[N];
	struct gauss g = { 0 };
	struct point_space space;
	struct rng rng;
	size_t i, k;

	point_space_init(&space, params, PARAMS, 0);
	rng_seed(&rng, 3);
	for (i = 0; i < N; i++) {
		point_draw(&space, &rng, points + i * PARAMS);
		y[i] = sin(points[i * PARAMS] + 2 * points[i * PARAMS + 1]) + 0.1 * rng_normal(&rng);
	}
	gauss_fit(&g, &space, points, y, N);
	fill_matrix(&g, &space, points, noises[g.noise], a);
	memcpy(weights, y, sizeof(weights));
	solve(a, weights);
	for (k = 0; k < 20; k++) {
		double x[PARAMS], place[PARAMS], c[N], known[N], solved[N], mean = 0, variance = 1;
		uint16_t differ[N];

		point_draw(&space, &rng, x);
		for (i = 0; i < N; i++) {
			known[i] = solved[i] = covariance(&g, &space, x, points + i * PARAMS);
			differ[i] = (uint16_t)gauss_differ(&space, x, points + i * PARAMS);
			mean += known[i] * weights[i];
		}
		fill_matrix(&g, &space, points, noises[g.noise], a);
		solve(a, solved);
		for (i = 0; i < N; i++)
			variance -= known[i] * solved[i];
		gauss_place(&g, x, place);
		gauss_covariances(&g, place, differ, c);
		assert_true(fabs(gauss_mean(&g, c) - mean) < 1e-6);
		assert_true(gauss_variance_bound(&g, c) >= g.variance * variance - 1e-9);
		assert_true(fabs(gauss_variance(&g, c) - g.variance * fmax(variance, 1e-12)) < 1e-6);
	}
	gauss_release(&g);
	point_space_release(&space);
}

static void agrees_with_the_textbook(void **state)
{
	(void)state;
	check(mixed);
	check(options);
}

/* of two numbers, the one that does not matter gets the longer length */
static void lengths_tell_what_matters(void **state)
{
	static const struct sampler_param params[] = { { .kind = SAMPLER_FLOAT, .low = 0, .high = 1 },
						       { .kind = SAMPLER_FLOAT, .low = 0, .high = 1 } };
	double points[2 * N], y[N];
	struct gauss g = { 0 };
	struct point_space space;
	struct rng rng;
	size_t i;

	(void)state;
	point_space_init(&space, params, 2, 0);
	rng_seed(&rng, 5);
	for (i = 0; i < N; i++) {
		point_draw(&space, &rng, points + 2 * i);
		y[i] = sin(12 * points[2 * i]) + 0.05 * points[2 * i + 1];
	}
	gauss_fit(&g, &space, points, y, N);
	assert_true(gauss_length(&g, 1) > 4 * gauss_length(&g, 0));
	gauss_release(&g);
	point_space_release(&space);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(agrees_with_the_textbook),
		cmocka_unit_test(lengths_tell_what_matters),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
