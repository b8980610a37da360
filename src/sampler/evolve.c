#include "sampler/evolve.h"

#include <lapacke.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

#define CONDITION_MAX 1e14

static void set_weights(struct evolve *e)
{
	double n = (double)e->n, half = log(((double)e->lambda + 1) / 2), sum = 0, squares = 0, below = 0,
	       below_squares = 0, mu_eff_below, limit;
	size_t i;

	for (i = 0; i < e->lambda; i++) {
		double w = e->weights[i] = half - log((double)i + 1);

		if (i < e->mu) {
			sum += w;
			squares += w * w;
		} else {
			below += w;
			below_squares += w * w;
		}
	}
	e->mu_eff = sum * sum / squares;
	e->c_c = (4 + e->mu_eff / n) / (n + 4 + 2 * e->mu_eff / n);
	e->c_sigma = (e->mu_eff + 2) / (n + e->mu_eff + 5);
	e->c_1 = 2 / ((n + 1.3) * (n + 1.3) + e->mu_eff);
	e->c_mu = fmin(1 - e->c_1,
		       2 * (0.25 + e->mu_eff - 2 + 1 / e->mu_eff) / ((n + 2) * (n + 2) + e->mu_eff));
	e->damping = 1 + 2 * fmax(0, sqrt((e->mu_eff - 1) / (n + 1)) - 1) + e->c_sigma;
	e->chi = sqrt(n) * (1 - 1 / (4 * n) + 1 / (21 * n * n));
	mu_eff_below = below_squares > 0 ? below * below / below_squares : 0;
	limit = fmin(1 + e->c_1 / e->c_mu,
		     fmin(1 + 2 * mu_eff_below / (e->mu_eff + 2), (1 - e->c_1 - e->c_mu) / (n * e->c_mu)));
	for (i = 0; i < e->lambda; i++)
		e->weights[i] = i < e->mu   ? e->weights[i] / sum
				: below < 0 ? -limit * e->weights[i] / below
					    : 0;
}

void evolve_init(struct evolve *e, size_t n, size_t lambda, const double *mean, double sigma)
{
	size_t i;

	*e = (struct evolve){ .n = n, .lambda = lambda, .mu = lambda / 2, .sigma = sigma };
	e->mean = xcalloc(n, sizeof(double));
	e->covariance = xcalloc(n * n, sizeof(double));
	e->axes = xcalloc(n * n, sizeof(double));
	e->widths = xcalloc(n, sizeof(double));
	e->path_sigma = xcalloc(n, sizeof(double));
	e->path_c = xcalloc(n, sizeof(double));
	e->weights = xcalloc(lambda, sizeof(double));
	e->scratch = xcalloc(n * (lambda + 2), sizeof(double));
	memcpy(e->mean, mean, n * sizeof(double));
	for (i = 0; i < n; i++)
		e->covariance[i * n + i] = e->axes[i * n + i] = e->widths[i] = 1;
	set_weights(e);
}

void evolve_release(struct evolve *e)
{
	free(e->mean);
	free(e->covariance);
	free(e->axes);
	free(e->widths);
	free(e->path_sigma);
	free(e->path_c);
	free(e->weights);
	free(e->scratch);
}

double evolve_deviation(const struct evolve *e, size_t i)
{
	return e->sigma * sqrt(e->covariance[i * e->n + i]);
}

void evolve_draw(const struct evolve *e, struct rng *rng, double *x)
{
	size_t n = e->n, i, k;

	memcpy(x, e->mean, n * sizeof(double));
	for (k = 0; k < n; k++) {
		double z = e->sigma * e->widths[k] * rng_normal(rng);

		for (i = 0; i < n; i++)
			x[i] += z * e->axes[i * n + k];
	}
}

/* C^-1/2 y, and its length */
static double whiten(const struct evolve *e, const double *y, double *out)
{
	size_t n = e->n, i, k;
	double square = 0;

	memset(out, 0, n * sizeof(double));
	for (k = 0; k < n; k++) {
		double z = 0;

		for (i = 0; i < n; i++)
			z += e->axes[i * n + k] * y[i];
		z /= e->widths[k];
		square += z * z;
		for (i = 0; i < n; i++)
			out[i] += z * e->axes[i * n + k];
	}
	return sqrt(square);
}

static void decompose(struct evolve *e)
{
	size_t n = e->n, i;

	memcpy(e->axes, e->covariance, n * n * sizeof(double));
	e->broken =
		LAPACKE_dsyev(LAPACK_ROW_MAJOR, 'V', 'U', (lapack_int)n, e->axes, (lapack_int)n, e->widths) ||
		!(e->widths[0] > 0) || !(e->widths[n - 1] < CONDITION_MAX * e->widths[0]);
	for (i = 0; i < n; i++)
		e->widths[i] = sqrt(fmax(e->widths[i], 0));
}

static void raise_deviations(struct evolve *e, const double *floors)
{
	size_t n = e->n, i, k;

	for (i = 0; i < n; i++) {
		double factor = floors[i] / evolve_deviation(e, i);

		if (!(factor > 1))
			continue;
		for (k = 0; k < n; k++) {
			e->covariance[i * n + k] *= factor;
			e->covariance[k * n + i] *= factor;
		}
	}
}

/* The steps that led to those drawn, in parts of sigma. None is much longer than one that was really drawn. */
static void find_steps(const struct evolve *e, const double *const *ranked, double *steps, double *lengths)
{
	size_t n = e->n, r, i;
	double longest = sqrt((double)n) + 2;

	for (r = 0; r < e->lambda; r++) {
		double *y = steps + r * n;

		for (i = 0; i < n; i++)
			y[i] = (ranked[r][i] - e->mean[i]) / e->sigma;
		lengths[r] = whiten(e, y, e->scratch);
		for (i = 0; i < n && lengths[r] > longest; i++)
			y[i] *= longest / lengths[r];
		lengths[r] = fmin(lengths[r], longest);
	}
}

void evolve_update(struct evolve *e, const double *const *ranked, const double *floors)
{
	size_t n = e->n, r, i, k;
	double *steps = e->scratch + 2 * n, *step = e->scratch + n,
	       *lengths = xcalloc(e->lambda, sizeof(double)), norm = 0, total = 0, keep,
	       c_sigma = sqrt(e->c_sigma * (2 - e->c_sigma) * e->mu_eff),
	       c_c = sqrt(e->c_c * (2 - e->c_c) * e->mu_eff);
	bool stalled;

	find_steps(e, ranked, steps, lengths);
	memset(step, 0, n * sizeof(double));
	for (r = 0; r < e->mu; r++)
		for (i = 0; i < n; i++)
			step[i] += e->weights[r] * steps[r * n + i];
	whiten(e, step, e->scratch);
	e->generation++;
	for (i = 0; i < n; i++) {
		e->mean[i] += e->sigma * step[i];
		e->path_sigma[i] = (1 - e->c_sigma) * e->path_sigma[i] + c_sigma * e->scratch[i];
		norm += e->path_sigma[i] * e->path_sigma[i];
	}
	norm = sqrt(norm);
	stalled = norm / sqrt(1 - pow(1 - e->c_sigma, 2 * (double)e->generation)) >=
		  (1.4 + 2 / ((double)n + 1)) * e->chi;
	for (i = 0; i < n; i++)
		e->path_c[i] = (1 - e->c_c) * e->path_c[i] + (stalled ? 0 : c_c * step[i]);
	for (r = 0; r < e->lambda; r++) {
		total += e->weights[r];
		if (e->weights[r] < 0) /* so that the covariance stays positive */
			lengths[r] = e->weights[r] * (double)n / fmax(lengths[r] * lengths[r], 1e-12);
		else
			lengths[r] = e->weights[r];
	}
	keep = 1 - e->c_1 - e->c_mu * total + (stalled ? e->c_1 * e->c_c * (2 - e->c_c) : 0);
	for (i = 0; i < n; i++)
		for (k = 0; k < n; k++) {
			double c = keep * e->covariance[i * n + k] + e->c_1 * e->path_c[i] * e->path_c[k];

			for (r = 0; r < e->lambda; r++)
				c += e->c_mu * lengths[r] * steps[r * n + i] * steps[r * n + k];
			e->covariance[i * n + k] = c;
		}
	e->sigma *= exp(fmin(1, e->c_sigma / e->damping * (norm / e->chi - 1)));
	raise_deviations(e, floors);
	decompose(e);
	free(lengths);
}
