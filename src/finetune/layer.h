/*
 * An op with a constant weight as rounding sees it: a convolution or a product of matrices in one layout, whatever
 * the model's. Values are [unit][plane][row][column][channel] (a unit is an image, or one row of a matrix), weights
 * [output][patch], where a patch is [kernel's plane][row][column][channel of the group]. A ConvTranspose is the
 * convolution it amounts to: of inputs spread out, with zeros between them, and with its kernel turned round.
 *
 * What the op computes is scale * level * input + shift, to come as near as can be to the fp32 op's output
 * without its bias. A level is an integer of the weight minus its zero point.
 */
#ifndef FINETUNE_LAYER_H
#define FINETUNE_LAYER_H

#include "quantize/subject.h"

enum { LAYER_DIMS = 3 }; /* planes, rows, columns; all sizes are 1 for a matrix */

struct layer {
	const char *name;
	bool is_matrix;
	size_t groups, outs, ins; /* outputs and inputs of each group */
	size_t patch;             /* weights of one output */
	size_t in[LAYER_DIMS], out[LAYER_DIMS], kernel[LAYER_DIMS], stride[LAYER_DIMS], dilation[LAYER_DIMS],
		pad[LAYER_DIMS], pad_end[LAYER_DIMS];
	size_t spread[LAYER_DIMS]; /* from one of the model's inputs to the next */
	struct qparams input;
	bool takes_shift;

	float *w;            /* fp32: outputs x patch */
	float *level;        /* likewise: the integers, as they are now */
	float *scale;        /* per output; */
	bool one_scale;      /* they are all the same one */
	float *least, *most; /* levels allowed, per output */
	float *bias;         /* of the fp32 op, per output */
	double *shift;       /* what the bias gains */
	struct arena arena;

	/* where weights lie in the model */
	size_t step_group, step_output, step_channel;
	bool turned; /* the kernel's last comes first */
	const struct qweight *start;
};

/* Can this op of a model be looked at so? If not, *why says why. */
bool layer_possible(const struct subject *s, size_t node, const char **why);
/*
 * The op as quantize_rounded() left it, with the setting of its weight. The shapes are filled in by
 * layer_shape(), from one input and output of it.
 */
enum fettle_status layer_open(struct layer *l, const struct subject *s, size_t node, const struct trace *t,
			      const struct qsetting *weight, struct err *err);
enum fettle_status layer_shape(struct layer *l, const struct node *n, const struct tensor *x,
			       const struct tensor *y, struct err *err);
/* Nothing but the layout, and as `w` a constant of the op's: for ops that are not rounded. Shaped as above. */
void layer_plain(struct layer *l, const struct node *n, const struct tensor *w);
void layer_release(struct layer *l);
/* Levels and scales as they were in the beginning, and no shifts. */
void layer_reset(struct layer *l);

static inline size_t layer_outputs(const struct layer *l)
{
	return l->groups * l->outs;
}
static inline size_t layer_weights(const struct layer *l)
{
	return layer_outputs(l) * l->patch;
}
static inline size_t layer_product(const size_t v[LAYER_DIMS])
{
	return v[0] * v[1] * v[2];
}
static inline size_t layer_positions(const struct layer *l) /* of one unit's output */
{
	return layer_product(l->out);
}
static inline size_t layer_x_size(const struct layer *l)
{
	return layer_product(l->in) * l->groups * l->ins;
}
static inline size_t layer_y_size(const struct layer *l)
{
	return layer_positions(l) * layer_outputs(l);
}

/* How many places the model has for inputs of a channel, and where each of them is in our layout; free the array. */
size_t layer_inputs(const struct layer *l, size_t **out);

/* Do the biases fit 32 bits? quantize() widens scales for that, but not those that were chosen here. */
bool layer_biases_fit(const struct layer *l);
/* Levels, scales and shifts as they are now, for quantize_rounded(). */
void layer_store(const struct layer *l, struct rounding *r, size_t node);

#endif
