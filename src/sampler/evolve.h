/*
 * The distribution of CMA-ES (Hansen 2016, "The CMA evolution strategy: a tutorial"): a normal distribution whose mean,
 * step and covariance follow the better half of what was drawn from it and avoid the worse.
 */
#ifndef SAMPLER_EVOLVE_H
#define SAMPLER_EVOLVE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/rng.h"

struct evolve {
	size_t n, lambda, mu;
	double *mean, sigma;
	double *covariance, *axes,
		*widths;             /* axes' columns are eigenvectors, widths the roots of their values */
	double *path_sigma, *path_c; /* evolution paths */
	double *weights;             /* [lambda] */
	double mu_eff, c_sigma, c_c, c_1, c_mu, damping, chi;
	size_t generation;
	bool broken; /* the covariance has degenerated */
	double *scratch;
};

void evolve_init(struct evolve *e, size_t n, size_t lambda, const double *mean, double sigma);
void evolve_release(struct evolve *e);

void evolve_draw(const struct evolve *e, struct rng *rng, double *x);

/* ranked[lambda]: what was drawn, the best first. Afterwards no deviation is below floors[n]. */
void evolve_update(struct evolve *e, const double *const *ranked, const double *floors);

double evolve_deviation(const struct evolve *e, size_t i); /* of one variable */

#endif
