/*
 * A Gaussian process on points of a mixed space (Rasmussen and Williams 2006, chapters 2, 4 and 5). The covariance
 * of two points is exp(-h / length), h being the number of categorical parameters in which they differ, times
 * Matérn's with nu = 5/2 on the distance of their numbers, each with a length of its own on its scale. A number
 * that only one of the two has makes them differ as an option would.
 */
#ifndef SAMPLER_GAUSS_H
#define SAMPLER_GAUSS_H

#include "sampler/point.h"

struct gauss {
	const struct point_space *space;
	size_t n, n_numbers,
		n_options;           /* points; parameters of both sorts, conditional numbers being of both */
	size_t *numbers;             /* which parameters they are */
	double *units;               /* n rows of n_numbers: on their scales, NAN where inactive */
	const double *y;             /* borrowed; zero mean is assumed */
	uint16_t *differ;            /* n rows of n: h */
	double *covariance;          /* of h = 0 .. n_options */
	double *factor;              /* upper triangle U with U'U = covariance + noise */
	double *whitened;            /* U'^-1 y */
	double *weights;             /* (covariance + noise)^-1 y */
	double variance;             /* of the signal */
	int length, noise, *lengths; /* places in the grids of hyperparameters; [n_numbers] */
	double *inverse;             /* [n_numbers]: of the lengths */
	size_t fitted;               /* to so many points when the hyperparameters were last chosen */
};

/*
 * Fits to new data, by maximum marginal likelihood over a grid of hyperparameters; an earlier fit's choice
 * is where the search begins. y must stay where it is until the next fit, points need not.
 */
void gauss_fit(struct gauss *g, const struct point_space *space, const double *points, const double *y,
	       size_t n);

/* How a point relates to those of the fit: numbers[n_numbers] on their scales, differ[n]. */
void gauss_place(const struct gauss *g, const double *point, double *numbers);
unsigned gauss_differ(const struct point_space *space, const double *a, const double *b);
void gauss_covariances(const struct gauss *g, const double *numbers, const uint16_t *differ, double *out);

/*
 * What is believed of a point, given its covariances. The mean and a bound that the variance does not exceed are
 * cheap; the variance takes n^2 steps and overwrites the covariances.
 */
double gauss_mean(const struct gauss *g, const double *covariances);
double gauss_variance_bound(const struct gauss *g, const double *covariances);
double gauss_variance(const struct gauss *g, double *covariances);

double gauss_length(const struct gauss *g, size_t number); /* of the kernel, in parts of the scale */

void gauss_release(struct gauss *g);

#endif
