/*
 * A Gaussian process on points of a categorical space (Rasmussen and Williams 2006, chapters 2 and 5). The
 * covariance of two points is exp(-h / length), h being the number of parameters in which they differ:
 * a product of one kernel per parameter, for which all options are equally far apart.
 */
#ifndef SAMPLER_GAUSS_H
#define SAMPLER_GAUSS_H

#include "sampler/point.h"

struct gauss {
	size_t params, n;
	const double *points; /* n rows of params options; borrowed */
	const double *y;      /* borrowed; zero mean is assumed */
	uint16_t *distances;  /* n rows of n */
	double *covariance;   /* of h = 0 .. params */
	double *factor;       /* upper triangle U with U'U = covariance + noise */
	double *whitened;     /* U'^-1 y */
	double *weights;      /* (covariance + noise)^-1 y */
	double variance;      /* of the signal */
	int length, noise;    /* places in the grid of hyperparameters */
	bool fitted;          /* the places are those of an earlier fit */
};

/*
 * Fits to new data, by maximum marginal likelihood over a grid of hyperparameters; an earlier fit's choice
 * is where the search begins. points and y must stay where they are until the next fit.
 */
void gauss_fit(struct gauss *g, const double *points, const double *y, size_t n, size_t params);

/*
 * What is believed of a point that differs from point i of the fit in distances[i] parameters. The mean and a
 * bound that the variance does not exceed are cheap; the variance takes n^2 steps. scratch has n places.
 */
double gauss_mean(const struct gauss *g, const uint16_t *distances);
double gauss_variance_bound(const struct gauss *g, const uint16_t *distances);
double gauss_variance(const struct gauss *g, const uint16_t *distances, double *scratch);

void gauss_release(struct gauss *g);

#endif
