/*
 * A prepared model's constants being rewritten by recipes that scale channels (equalise.c, smooth.c), the
 * function unchanged. What is done is noted down as text, so that it can be done again without data.
 */
#ifndef QUANTIZE_REWRITE_H
#define QUANTIZE_REWRITE_H

#include "base/str.h"
#include "blockwise/blockwise.h"
#include "quantize/channels.h"

struct rewrite {
	struct subject *base;
	struct channels c;
	struct model *m;            /* being made; its nodes are the base's, in order, until rewrite_end() */
	bool *quantized;            /* per value: might be, by some plan */
	struct channel_means *seen; /* extremes of channels in the base */
	double **factor;            /* per class: what has been put in so far; NULL: nothing */
	double **shift;             /* per value: what has then been taken out of it; NULL: nothing */
	struct map owned;           /* constants that are m's own */
	VEC(struct insertion) insertions;
	struct str text;
};

/* A Mul to come in front of these readers of a value. */
struct insertion {
	size_t value;
	struct tensor scale;
	const char *made; /* what the Mul makes, from rewrite_end() on */
};

void rewrite_begin(struct rewrite *w, struct subject *base);
/* Looks at the calibration data: all that equalise() and smooth(), as far as these recipes want them, will ask of it. */
enum fettle_status rewrite_observe(struct rewrite *w, const struct recipes *r, struct runtime *rt,
				   struct feed *feed, const struct calibrate_options *o, struct err *err);
void rewrite_release(struct rewrite *w);

/* Positions along a value's axis: channels of its class, times how often each is repeated. */
static inline size_t rewrite_length(const struct rewrite *w, size_t value)
{
	return w->c.size[channels_class(&w->c, value)] * w->c.lanes[value].repeat;
}

/* observe.c: what was seen of each channel of a class in one of its values, as things are now. */
struct spread {
	double *min, *max, *power; /* power: the mean square */
	double count, samples;     /* values of each channel, in so many samples */
};
enum fettle_status rewrite_spread(struct rewrite *w, size_t value, struct spread *out, struct err *err);
/* The same for all that a matrix op reads, whether or not it is of a class. */
enum fettle_status rewrite_input_spread(struct rewrite *w, size_t node, size_t repeat, struct spread *out,
					struct err *err);
void spread_release(struct spread *s); /* not after a failure */
/* The smallest and the largest of a value as things are now, or (not NULL) of what an insertion makes of it; with 0. NAN if
 * that value was not observed. */
struct range rewrite_range(struct rewrite *w, size_t value, const struct insertion *in);
/* Some rows of what a matrix op reads, as things are now, [*n][inputs]; none, but for smooth_quant with alpha auto. free()
 * them. */
enum fettle_status rewrite_rows(struct rewrite *w, size_t node, float **out, size_t *n, struct err *err);
/* Multiplies a class's channels by these factors; w->c.size[class] of them. */
enum fettle_status rewrite_fold(struct rewrite *w, size_t class, const double *factors, struct err *err);
/* Only the half of it: what reads the class is divided elsewhere. */
enum fettle_status rewrite_fold_into_makers(struct rewrite *w, size_t class, const double *factors,
					    struct err *err);
/* The same for what the MatMul and Gemm that read a value see, by a Mul in front of them. */
enum fettle_status rewrite_insert(struct rewrite *w, size_t value, const double *factors, size_t n,
				  struct err *err);
/* Takes what a Relu always lets pass (shift, one per channel) out of its input, and into the readers' biases.
 * Not every value is a Relu's input whose readers have biases that can take it up. */
bool rewrite_can_shift(const struct rewrite *w, size_t value);
enum fettle_status rewrite_shift(struct rewrite *w, size_t value, const double *shift, struct err *err);
/* Does all that a text says. */
enum fettle_status rewrite_read(struct rewrite *w, const char *text, struct err *err);
/* Puts the insertions in. node[i] becomes the place of the base's node i. */
void rewrite_end(struct rewrite *w, size_t *node);

/* Is it a MatMul or Gemm with a constant matrix, which smooth() is for? */
bool is_matrix_op(const struct model *m, const struct node *n);
/* A linear op's weight as it is now: floats in the layout of layout_of(). */
enum fettle_status rewrite_weight(struct rewrite *w, size_t node, const struct tensor **out, struct err *err);

/* equalise.c: recipe cle. smooth.c: recipe smooth_quant, alpha in 0..1 or SMOOTH_AUTO: the best if matrix ops are
 * quantized so. */
enum fettle_status equalise(struct rewrite *w, struct err *err);
enum fettle_status smooth(struct rewrite *w, double alpha, const struct op_choice *q, struct err *err);
/* scale_inputs.c: for awq in this format. `seen` tells what matrix ops read; it may say so of one op at a time. */
struct input_seen;
enum fettle_status scale_inputs(struct rewrite *w, const struct block_format *f,
				const struct input_seen *seen, struct err *err);
/* Is the class free, with matrix ops for all linear ops that read it, so that factors can be chosen for those? */
bool smooth_can_fold(const struct rewrite *w, size_t class);

#endif
