/*
 * A part of a quantized model as a graph with gradients: what it computes for some samples, and how the error of its
 * outputs depends on the weights of its layers. Conv, Gemm and MatMul are oneDNN's passes (math.h), the rest loops.
 *
 * Quantizing activations is computed as the model does; its gradient is straight-through: 1 inside the range that the
 * integers have, 0 outside.
 */
#ifndef FINETUNE_TAPE_H
#define FINETUNE_TAPE_H

#include "finetune/math.h"
#include "runtime/session.h"

/* A Conv, Gemm or MatMul with a constant weight. Its weights, math->w, may be changed before each pass. */
struct tape_layer {
	struct layer l; /* layout and shape */
	struct layer_math *math;
	float *shift; /* added to each of its outputs */
	float *bias;  /* the model's */
	bool learns;  /* its gradients are wanted: math->dw and math->db */
};

struct tape;

/* A model that was cut to the part (model_cut()), which must outlive the tape, for as many samples as `in` has. */
struct tape_of {
	struct runtime *rt;
	struct model *m;
	const struct tensor *in;   /* one per input of the model */
	const char *const *learns; /* outputs of layers whose gradients are wanted */
	size_t n_learns;
};
/*
 * Where an op has no gradient here, *out stays NULL and `why` says so; else that is empty.
 */
enum { TAPE_WHY = 200 };
enum fettle_status tape_new(struct tape **out, const struct tape_of *of, char why[TAPE_WHY], struct err *err);
void tape_free(struct tape *t);

/* The layer that makes a value; NULL: none does. */
struct tape_layer *tape_layer(struct tape *t, const char *output);
/* Inputs to fill and outputs to read, in the model's order; float, whatever the model's type. */
const struct tensor *tape_input(const struct tape *t, size_t i);
const struct tensor *tape_output(const struct tape *t, size_t i);
float *tape_output_gradient(struct tape *t, size_t i); /* to fill; NULL: it depends on no layer that learns */
const struct tensor *tape_value(const struct tape *t, const char *name); /* any value, by name */

enum fettle_status tape_forward(struct tape *t, struct err *err);
/* After that: from the gradients of outputs to those of weights. */
enum fettle_status tape_backward(struct tape *t, struct err *err);

#endif
