/*
 * A part of the graph, some nodes in a row, run by itself: its output in a quantized model, given its true
 * input, that of the quantized model up to there, against its output in fp32. Judged on samples held out; what
 * is captured is kept under the budget of bytes, the rest is run again each time.
 */
#ifndef FINETUNE_PART_H
#define FINETUNE_PART_H

#include "finetune/capture.h"

struct part {
	const struct finetune_source *source;
	size_t first, end;    /* nodes of the fp32 model */
	struct map reads;     /* the fp32 model's values that it takes from outside */
	const char **outputs; /* and those that it gives there */
	struct tensor
		*inputs; /* what it takes from the quantized model: types, -1 where batches may differ */
	size_t n_outputs, n_inputs;

	struct model *models[2]; /* up to its inputs, quantized; up to its outputs, fp32 */
	struct session *sessions[2];
	struct split split;
	struct part_batch {
		struct tensor *in, *out; /* NULL: not at hand */
		size_t rows, valid;
	} * v;
	size_t judged; /* the first batch that it is judged on; all from there on */
	struct feed_batch raw;
	size_t bytes;
};

/* Which part, and the samples it is judged on. */
struct part_of {
	size_t first, end; /* nodes of the base */
	const struct finetune *o;
	bool all; /* also on samples that are not held out */
};
/* Of the model as quantized so far, whose integers up to the part's inputs are final. */
enum fettle_status part_open(struct part *p, const struct finetune_source *s, const struct part_of *of,
			     struct model *quantized, struct err *err);
void part_close(struct part *p);

/* The part of another model of the same plan, in which at most weights in the part differ. */
struct part_session {
	struct model *m;
	struct session *s;
	const char **inputs;  /* its names of the part's inputs */
	const char **outputs; /* and of what others read of its outputs */
};
enum fettle_status part_session_open(struct part_session *out, const struct part *p, struct model *quantized,
				     struct err *err);
void part_session_close(struct part_session *s);
/* Its outputs for batch k, which must be at hand; valid until the next call. */
enum fettle_status part_run(const struct part *p, struct part_session *s, size_t k, struct tensor *out,
			    struct err *err);

/*
 * How many batches from `first` on, before `end`, fit at once (at least one); they then are at hand. Others may go:
 * part_refill() gets those back that it is judged on.
 */
enum fettle_status part_window(struct part *p, size_t first, size_t end, size_t *n, struct err *err);
enum fettle_status part_refill(struct part *p, struct err *err);
void part_empty(struct part *p); /* all batches go */

/* Its squared error relative to the fp32 outputs' squares, the mean of all outputs. */
enum fettle_status part_error(struct part *p, struct model *quantized, double *out, struct err *err);

/* What readers of a value of the fp32 model read in a quantized one: itself, or what was integers in between. */
const char *quantized_name(const struct graph_index *g, const char *value);

#endif
