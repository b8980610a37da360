/*
 * Rounding weights with care (recipe finetune): op by op, in the order of the graph, integers are chosen that make
 * the op's output on calibration data come nearest to the fp32 op's, given its true input: that of the
 * quantized model, in which the ops before it are rounded already.
 *
 * adaround  Nagel et al., "Up or down? Adaptive rounding for post-training quantization", arXiv:2004.10568
 * adaquant  Hubara et al., "Improving post training neural quantization: layer-wise calibration and integer
 *           programming", arXiv:2006.10518 (weights, scale and bias; inputs keep their scale)
 * gram      our own: coordinate descent on the Gram matrix of the inputs; see gram.c
 *
 * With Granularity "block" the ops of a block then learn once more, all together, from the error of the block's
 * output (adaround and adaquant; gram has no gradient), and choose among all their roundings by that; see block.h.
 *
 * Left alone are ops that share their weight with another, a ConvTranspose that crops its output, and (by gram)
 * those whose Gram matrix is larger than both the cache and 64 MB.
 *
 * A layer's samples are kept under the cache's bytes. Where they do not fit, batches are run again: gram needs
 * one pass; adaround and adaquant learn on one window of batches after the other, in up to eight rounds. So do
 * blocks; what one iteration needs of a block comes on top, and is the same however many samples there are.
 */
#ifndef FINETUNE_FINETUNE_H
#define FINETUNE_FINETUNE_H

#include "quantize/subject.h"

struct finetune_source {
	struct runtime *rt;
	struct subject *s;
	const struct statistics *values; /* of s, all that the plan needs */
	const struct feed *feed;         /* calibration samples, read from its beginning */
	const bool *only;                /* per node: which ops to tune; NULL: all */
	int threads;
	size_t cache; /* bytes for inputs and outputs of an op; one batch is always kept. 0: a gigabyte */
	progress_fn progress; /* may be NULL; counts ops */
	void *self;
};

/* What became of one op. Errors are squared, relative to the fp32 output's squares, on samples held out. */
struct finetune_op {
	const char *name;
	size_t node;
	const char *left;     /* why it was left alone; NULL: it was not */
	double before, after; /* if it was not */
	bool kept;            /* it got no better, or a bias would not fit: its weights are the nearest */
	double capture_s, solve_s, primitives_s; /* CPU seconds; the last are oneDNN's of solve_s */
	double train_before, train_after;        /* the same errors on the samples learned from */
};

/*
 * What became of a block (Granularity: block). Errors are of its output, as above: with weights rounded to the
 * nearest, with those of its ops as they are one by one, as learned together, and with what it chose.
 */
struct finetune_block {
	const char *first, *last; /* ops */
	const char *left;         /* why its ops did not learn together; NULL: they did */
	double before, layered, joint, after;
	bool kept; /* it got no better: all its weights are the old ones */
};

struct finetune_report {
	VEC(struct finetune_op) ops;
	VEC(struct finetune_block) blocks;
};

/*
 * For the static ops of the plan; the same seed gives the same result. `report` may be NULL; its names live as
 * long as the subject.
 */
enum fettle_status finetune(const struct qplan *plan, const struct finetune_source *s, struct rounding **out,
			    struct finetune_report *report, struct err *err);

/*
 * The error of one op with the weights that a rounding has for it, on the feed's samples (all of them), while the
 * ops before it are rounded to the nearest: for comparing roundings of one op.
 */
enum fettle_status finetune_error(const struct qplan *plan, const struct finetune_source *s,
				  const struct rounding *r, size_t node, double *out, struct err *err);

/*
 * Fits what an op's bias gains to the levels that a rounding has for it, given all else in the rounding. Where the bias
 * then is too large for 32 bits the op is left to the nearest.
 */
enum fettle_status finetune_shift(const struct qplan *plan, const struct finetune_source *s,
				  struct rounding *r, size_t node, struct err *err);

/* The source's model under a plan, with the weights that a rounding (may be NULL) has by now. */
enum fettle_status quantize_rounded(const struct finetune_source *s, const struct qplan *plan,
				    const struct rounding *r, struct trace *traces, struct model **out,
				    struct err *err);

#endif
