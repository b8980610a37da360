/* How much each op costs when it alone is quantized, and why. */
#ifndef TUNE_SENSITIVITY_H
#define TUNE_SENSITIVITY_H

#include "tune/lab.h"

struct op_sensitivity {
	size_t op;             /* parameter of the space */
	double sqnr;           /* of the op's own output, in dB; higher is better */
	double model_sqnr;     /* of the model's output, when only this op is quantized */
	double weight_share;   /* of the error, the rest is the activations' */
	double clipping_share; /* of the activations' error, the rest is rounding */
	double metric;         /* when only this op is quantized; NaN where it was not measured */
	double without_sqnr; /* of the model's output, when all others are quantized; NaN where it was not measured */
};
/* What to measure beside the errors of each op alone, of the worst: an evaluation per op; a session per op. */
struct sensitivity_wanted {
	bool metric, without;
};
enum { SENSITIVITY_WORST = 25 }; /* ops: the time does not grow with the others */

/* One row for each op of the space that the default plan quantizes, worst first. free() the array. */
enum fettle_status sensitivity(struct lab *l, const struct sensitivity_wanted *w, struct op_sensitivity **out,
			       size_t *n, struct err *err);
/* The SQNR of the model's output with all of them quantized. */
enum fettle_status sensitivity_of_all(struct lab *l, double *sqnr, struct err *err);

#endif
