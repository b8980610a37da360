/* The error of every op of a plan when it alone is quantized, for little more than one run per op. */
#ifndef TUNE_OWN_ERRORS_H
#define TUNE_OWN_ERRORS_H

#include "tune/own_noise.h"

/* Squared errors as shares of what they are errors of, per op; all are own_errors_release()'s. */
struct own_errors {
	double *own;   /* of the op's output */
	double *model; /* of the model's output: the worst of those that count */
	double *weights,
		*activations; /* of the op's output, with the other side in 16 bits; static ops only */
	/* of use while they are found */
	struct lab *l;
	size_t n;
	const char **value;
	struct noises noise;
};

/* `op` are parameters of the space that q quantizes. FETTLE_UNSUPPORTED, FETTLE_BACKEND: not to be had for this model. */
enum fettle_status own_errors_find(struct own_errors *e, struct lab *l, const struct qplan *q,
				   const size_t *op, size_t n, struct err *err);
void own_errors_release(struct own_errors *e);

#endif
