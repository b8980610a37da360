/*
 * How much rounding disturbs what a few ops make of the channels they read, if channel i of those is scaled by s_i: the
 * squared error of each output in units of its power, averaged over the outputs, summed over the ops. With D the step of
 * the activation, D_o that of the weights of output o, output o has
 *
 *	( D^2 sum_i w_oi^2 / s_i^2  +  D_o^2 sum_i E[x_i^2] s_i^2 ) / sum_i w_oi^2 E[x_i^2]
 *
 * where D follows from the widest channel after scaling, and D_o from the largest |w_oi| / s_i. Added to the first term
 * is what data that was not seen has beyond the range: the more channels fill it, the more of them are cut off.
 */
#ifndef QUANTIZE_NOISE_H
#define QUANTIZE_NOISE_H

#include "quantize/rewrite.h"

/* What reads the channels. */
struct noise_reader {
	struct spread x;        /* of what it reads */
	size_t inputs, outputs; /* channels */
	float *largest,
		*energy;  /* [outputs][inputs]: max |w|, sum of w^2 over kernel positions; NULL: no weights */
	double *power;    /* of each output */
	double positions; /* of the kernel */
	bool passes;      /* no reader at all, but a sum or mean that the readers get to see */
};
struct noise {
	VEC(struct noise_reader) v;
	size_t n;       /* channels */
	double *weight; /* of the noise of each channel, by all readers */
	double levels;  /* of weights, on either side of 0 */
};

void noise_init(struct noise *l, const struct subject *s, size_t n);
void noise_release(struct noise *l);
/* An op of w->m that reads the channels: linear, or one that takes each for itself. What it reads spreads so (which
 * then belongs to l), and each channel is `repeat` of its inputs. */
enum fettle_status noise_add_op(struct noise *l, struct rewrite *w, size_t node, struct spread x,
				size_t repeat, struct err *err);
/* A value that is quantized for an op that passes channels on to the readers. Add those first. */
void noise_add_value(struct noise *l, struct spread x);
double noise_total(const struct noise *l, const double *s);
/* Where the noise would be least if steps did not depend on s: the fourth root of weight_i / E[x_i^2]; 0 for a channel
 * that never did anything, or that nothing makes use of. And how wide each channel is. */
void noise_ideal(const struct noise *l, double *s, double *width);

#endif
