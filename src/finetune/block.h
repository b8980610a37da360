/*
 * Block by block (Granularity: block): once its ops are rounded one by one, a block's ops choose again, among several
 * roundings each, by the output of the whole block in the quantized model: one op after the other takes what makes
 * the block's error least, given the others, until none changes its mind. Then they learn together by gradient
 * (block_train.c), from what they chose on; if what they learned is better they all take it, and choose once more. The error
 * on samples held out only falls in all of this. A block that holds an op without a gradient (tape.h) skips the learning.
 */
#ifndef FINETUNE_BLOCK_H
#define FINETUNE_BLOCK_H

#include "finetune/part.h"

/*
 * The graph in blocks: transformer blocks, and elsewhere what lies between values through which everything passes;
 * each with at least one op of `wanted` (per node), if there is any. Free the array.
 */
size_t block_list(const struct subject *s, const bool *wanted, struct block **out);

/*
 * What an op can choose from, beside rounding to the nearest. (The same levels with and without what the bias gains are
 * no choice: in a block's error a shifted mean is hardly seen, but all that comes after the block feels it.)
 */
enum offer {
	OFFER_TUNED, /* by the algorithm */
	OFFER_GRAM,  /* by gram, where another algorithm was asked for */
	OFFER_ASIDE, /* by gram, so that it makes up for the error of what is added after it, too */
	OFFER_JOINT, /* by the algorithm, together with the block's other ops */
	N_OFFERS
};
struct offers {
	struct rounding *v[N_OFFERS];
};
void offers_init(struct offers *o, size_t nodes);
void offers_release(struct offers *o);

/* What is added after an op, in the model and in the quantized one; false: nothing. */
bool find_aside(const struct subject *s, size_t node, const struct model *quantized, struct aside *out);

/* A block of a model that is being rounded. */
struct block_work {
	const struct qplan *plan;
	const struct block *b;
	struct part part;
	const struct offers *offers;
};
/* The error of the block's output. */
enum fettle_status block_error(struct block_work *w, const struct rounding *r, double *out, struct err *err);

/*
 * block_train.c: the ops that have an offer by the algorithm learn again, now all together, from the error of the
 * block's output; `now` has what is rounded by then. Makes the offers OFFER_JOINT, or says why not: *left is the
 * subject's. With EarlyStop what is best on samples held out is offered.
 */
enum fettle_status block_learn(struct block_work *w, const struct rounding *now, const char **left,
			       struct err *err);

/* The ops of a block, and the roundings that each may choose from. */
struct block_of {
	const struct qplan *plan;
	const struct block *b;
	const struct offers *offers;
};
/*
 * Starts from `r`, which has the ops rounded one by one, and changes those of the block there. `quantized` was made
 * with it.
 */
enum fettle_status block_choose(const struct finetune_source *s, const struct block_of *of,
				struct model *quantized, struct rounding *r, struct finetune_block *report,
				struct err *err);

#endif
