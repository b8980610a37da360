/*
 * Which values of a model carry the same channels, so that one factor per channel can be put into what makes
 * them and taken out of what reads them, without the model's function changing.
 *
 * A value has its channels along an axis. Relu, pooling, Reshape, Add and the like pass them on, so that all
 * those values must be scaled alike: they are one class. A class begins where a Conv, Gemm, MatMul, a
 * normalisation or a Mul with a constant makes its channels (the factor goes into their constants), and ends
 * where such an op reads them (its constant takes the inverse). If anything else reads them, or they are an
 * output of the model, the class is pinned: it cannot be scaled.
 */
#ifndef QUANTIZE_CHANNELS_H
#define QUANTIZE_CHANNELS_H

#include "quantize/subject.h"

#define NO_CLASS SIZE_MAX

/* Position k along the axis belongs to channel k / repeat (a Flatten repeats each channel for every pixel). */
struct lane {
	size_t class; /* NO_CLASS: not known to have channels */
	int axis;
	size_t repeat;
};

/* What an op has to do with a class. */
enum part_role {
	PART_MAKES, /* its constants take the factor */
	PART_READS, /* its constants take the inverse */
	PART_ADDS,  /* adds a constant, which takes the factor */
	PART_CLIPS, /* a Clip from 0 to a bound: scalable only as a Relu, i.e. where the bound is never reached */
};
struct part {
	enum part_role role;
	size_t node, value; /* the value read; or made, by one that makes or clips */
	size_t class;
	float bound; /* of a Clip */
};

struct channels {
	struct subject *s;
	struct lane *lanes; /* per value of the graph index */
	size_t *parent;     /* class -> the class it was merged into, or itself */
	size_t *size;       /* number of channels */
	bool *pinned;
	size_t n;
	VEC(struct part) parts;
};

void channels_find(struct channels *c, struct subject *s);
void channels_release(struct channels *c);
size_t channels_class(const struct channels *c,
		      size_t value); /* the merged one; NO_CLASS when there is none */
size_t channels_root(const struct channels *c, size_t class);

/* Does the op multiply with a constant matrix or kernel? */
bool is_linear(const struct model *m, const struct node *n);
/* Can what is known of a model's structure make a difference: is there a class that equalise() might scale, a
 * MatMul or Gemm that smooth() might? */
bool can_equalise(struct subject *s);
bool can_smooth(const struct subject *s);

#endif
