/*
 * A density on a mixed space: a mixture of one kernel per trial and the uniform prior, which weighs as much as one
 * recent trial. A kernel is a product over the parameters that are active in the point; where the trial lacks the
 * parameter, its factor is the prior's.
 */
#ifndef SAMPLER_PARZEN_H
#define SAMPLER_PARZEN_H

#include "sampler/trials.h"

struct parzen {
	const struct trials *trials;
	double prior_weight;
	size_t *numbers; /* of the trials, in order of age */
	size_t n;
	double *weights; /* of the kernels, then of the prior; they add up to 1 */
	double *log_weights;
	double *log_even,
		*log_agree; /* [params], options: of a kernel that has another, and what it adds to agree */
	double log_apart,
		log_prior; /* of the options that are always active: where none agrees, and of the prior */
	double *sigma;     /* [params], numbers: the kernels' width, in parts of the scale */
	double *centre,
		*log_cut; /* [n][params], numbers: on the scale; the log of what of a kernel is inside */
};

/* `numbers` becomes the density's; `weight` of the prior. */
void parzen_init(struct parzen *d, const struct trials *t, size_t *numbers, size_t n, double prior_weight);
void parzen_release(struct parzen *d);

double parzen_log(const struct parzen *d, const double *point); /* densities of numbers are on their scale */
/* From one kernel, or from one for each parameter. */
void parzen_draw(const struct parzen *d, struct rng *rng, bool mixed, double *point);

#endif
