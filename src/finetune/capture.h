/*
 * What a layer is to be judged by: its true inputs, from the quantized model as made so far, and what the fp32 op
 * gives (without its bias). Kept batch by batch under a budget of bytes; what does not fit is
 * computed again when it is asked for, so memory does not grow with the number of samples.
 */
#ifndef FINETUNE_CAPTURE_H
#define FINETUNE_CAPTURE_H

#include "finetune/finetune.h"
#include "finetune/layer.h"

/* How samples are divided: batches to learn from come first, those from `held` on are held out. */
struct split {
	size_t n, n_train, held; /* batches */
	size_t samples, per_batch;
};
/* Reads the feed's first batch into raw. */
enum fettle_status capture_split(const struct finetune_source *s, const struct finetune *o,
				 struct feed_batch *raw, struct split *out, struct err *err);
/* A session for nothing but these values of m, in this order. */
enum fettle_status capture_session(const struct finetune_source *s, struct model *m, const char *const *names,
				   size_t n, struct model **model, struct session **out, struct err *err);
size_t capture_budget(const struct finetune_source *s); /* bytes */

/* The units of one batch, in the layer's layout. */
struct units {
	size_t n;
	float *x, *y;
	float *fp32; /* the fp32 model's input; only with a drop_ratio below 1 */
};

struct capture {
	const struct finetune_source *source;
	struct layer *l;
	const struct node *node; /* of the fp32 model */
	bool wants_fp32, has_aside;
	struct model *models[2]; /* quantized, fp32: no more of them than makes the values */
	struct session *sessions[2];
	struct feed_batch raw;
	struct units *v; /* per batch; x NULL: not at hand */
	struct split split;
	size_t *order, n_order; /* batches at hand, oldest first */
	size_t bytes;
	double seconds; /* spent capturing */
};

/*
 * A value that is added to the layer's output, such as what skips a block, by its names in both models. With it the
 * layer is to make up for that one's error, too.
 */
struct aside {
	const char *fp32, *quantized;
};

/* What is captured. */
struct capture_of {
	const struct node *node;
	struct model *quantized;   /* as made so far */
	const char *input;         /* the value of it that the op reads */
	const struct aside *aside; /* may be NULL */
	const struct finetune *o;
};
/* Also gives the layer its shape. */
enum fettle_status capture_open(struct capture *c, const struct finetune_source *s, struct layer *l,
				const struct capture_of *of, struct err *err);
void capture_close(struct capture *c);

/* Batch k; valid until another one is asked for. */
enum fettle_status capture_get(struct capture *c, size_t k, const struct units **out, struct err *err);
/* How many batches from `first` on, before `end`, fit at once (at least one); they then are at hand. */
enum fettle_status capture_window(struct capture *c, size_t first, size_t end, size_t *n, struct err *err);

/*
 * Residuals of the layer as it is over batches first..end-1: sums per output, and of their squares, those of
 * the targets' squares, and how many there are of each output.
 */
struct residuals {
	double *sum; /* one per output, the caller's */
	double squares, signal, count;
};
struct layer_math;
enum fettle_status capture_residuals(struct capture *c, struct layer_math *m, size_t first, size_t end,
				     struct residuals *out, struct err *err);

#endif
