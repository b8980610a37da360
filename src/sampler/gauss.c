#include "sampler/gauss.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* length in parts of the number of parameters; the longest make the process nearly a sum over parameters */
static const double lengths[] = { 1. / 32, 1. / 16, 1. / 8, 1. / 4, 1. / 2, 1, 2, 4 };
static const double noises[] = { 1e-6, 1e-4, 1e-3, 1e-2, 1e-1 }; /* in parts of the signal's variance */

#define VARIANCE_MIN 1e-12 /* in parts of the signal's: what rounding leaves of none */

enum {
	FULL_GRID = 64, /* up to as many points every fit looks at the whole grid: it is cheap */
};

static void measure_distances(struct gauss *g)
{
	size_t i, k;

	for (i = 0; i < g->n; i++)
		for (k = i; k < g->n; k++)
			g->distances[i * g->n + k] = (uint16_t)point_distance(
				g->points + i * g->params, g->points + k * g->params, g->params);
}

/*
 * In place, by rows of the upper triangle: the inner loop adds a multiple of one row to another, which the
 * compiler can do with vectors without changing the order of any sum.
 */
static bool cholesky(double *a, size_t n)
{
	size_t i, k, c;

	for (k = 0; k < n; k++) {
		double *row = a + k * n, pivot = row[k];

		if (!(pivot > 0))
			return false;
		pivot = sqrt(pivot);
		for (c = k; c < n; c++)
			row[c] /= pivot;
		for (i = k + 1; i < n; i++) {
			double *below = a + i * n, x = row[i];

			for (c = i; c < n; c++)
				below[c] -= x * row[c];
		}
	}
	return true;
}

/* Factors for one choice of hyperparameters; the logarithm of its marginal likelihood, up to a constant. */
static double try_choice(struct gauss *g, int length, int noise)
{
	double scale = -1 / (lengths[length] * (double)g->params), squares = 0, log_det = 0;
	size_t n = g->n, i, k;

	for (i = 0; i <= g->params; i++)
		g->covariance[i] = exp(scale * (double)i);
	for (i = 0; i < n; i++) {
		for (k = i; k < n; k++)
			g->factor[i * n + k] = g->covariance[g->distances[i * n + k]];
		g->factor[i * n + i] += noises[noise];
	}
	if (!cholesky(g->factor, n))
		return -INFINITY;
	memcpy(g->whitened, g->y, n * sizeof(double));
	for (i = 0; i < n; i++) {
		const double *row = g->factor + i * n;
		double z = g->whitened[i] /= row[i];

		for (k = i + 1; k < n; k++)
			g->whitened[k] -= z * row[k];
		squares += z * z;
		log_det += log(row[i]);
	}
	/* given the rest, the best variance of the signal is known */
	g->variance = fmax(squares / (double)n, VARIANCE_MIN);
	return -0.5 * (double)n * log(g->variance) - log_det;
}

static void choose(struct gauss *g)
{
	int n_lengths = ARRAY_LEN(lengths), n_noises = ARRAY_LEN(noises), l0 = 0, l1 = n_lengths - 1, k0 = 0,
	    k1 = n_noises - 1, length, noise, best_length = n_lengths / 2, best_noise = n_noises - 1,
	    tried_length = -1, tried_noise = -1;
	double best = -INFINITY;

	if (g->fitted && g->n > FULL_GRID) {
		l0 = g->length > 0 ? g->length - 1 : 0;
		l1 = g->length + 1 < n_lengths ? g->length + 1 : g->length;
		k0 = g->noise > 0 ? g->noise - 1 : 0;
		k1 = g->noise + 1 < n_noises ? g->noise + 1 : g->noise;
	}
	for (length = l0; length <= l1; length++)
		for (noise = k0; noise <= k1; noise++) {
			double likelihood;

			if (g->fitted && g->n > FULL_GRID && length != g->length && noise != g->noise)
				continue; /* a step along one axis at a time */
			likelihood = try_choice(g, length, noise);
			tried_length = length;
			tried_noise = noise;
			if (likelihood > best) {
				best = likelihood;
				best_length = length;
				best_noise = noise;
			}
		}
	if (tried_length != best_length || tried_noise != best_noise)
		try_choice(g, best_length, best_noise);
	g->length = best_length;
	g->noise = best_noise;
	g->fitted = true;
}

static void weigh(struct gauss *g)
{
	size_t n = g->n, i, k;

	for (i = n; i-- > 0;) {
		const double *row = g->factor + i * n;
		double sum = g->whitened[i];

		for (k = i + 1; k < n; k++)
			sum -= row[k] * g->weights[k];
		g->weights[i] = sum / row[i];
	}
}

void gauss_fit(struct gauss *g, const double *points, const double *y, size_t n, size_t params)
{
	g->points = points;
	g->y = y;
	g->n = n;
	g->params = params;
	g->distances = xrealloc(g->distances, n * n, sizeof(*g->distances));
	g->covariance = xrealloc(g->covariance, params + 1, sizeof(double));
	g->factor = xrealloc(g->factor, n * n, sizeof(double));
	g->whitened = xrealloc(g->whitened, n, sizeof(double));
	g->weights = xrealloc(g->weights, n, sizeof(double));
	measure_distances(g);
	choose(g);
	weigh(g);
}

double gauss_mean(const struct gauss *g, const uint16_t *distances)
{
	double sum = 0;
	size_t i;

	for (i = 0; i < g->n; i++)
		sum += g->weights[i] * g->covariance[distances[i]];
	return sum;
}

/* The variance given the nearest point alone: to know more only makes it smaller. */
double gauss_variance_bound(const struct gauss *g, const uint16_t *distances)
{
	uint16_t nearest = UINT16_MAX;
	double c;
	size_t i;

	for (i = 0; i < g->n; i++)
		nearest = distances[i] < nearest ? distances[i] : nearest;
	c = g->covariance[nearest];
	return g->variance * fmax(1 - c * c / (1 + noises[g->noise]), VARIANCE_MIN);
}

double gauss_variance(const struct gauss *g, const uint16_t *distances, double *scratch)
{
	size_t n = g->n, i, k;
	double squares = 0;

	for (i = 0; i < n; i++)
		scratch[i] = g->covariance[distances[i]];
	for (i = 0; i < n; i++) {
		const double *row = g->factor + i * n;
		double v = scratch[i] / row[i];

		squares += v * v;
		for (k = i + 1; k < n; k++)
			scratch[k] -= v * row[k];
	}
	return g->variance * fmax(1 - squares, VARIANCE_MIN);
}

void gauss_release(struct gauss *g)
{
	free(g->distances);
	free(g->covariance);
	free(g->factor);
	free(g->whitened);
	free(g->weights);
}
