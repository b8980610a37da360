/*
 * Weight-only weights that are made while the model is saved, from a weight that lies in a file: a band of outputs is read,
 * quantized and written, then the next. Only for algorithms that need no data, which look at each output alone. A model of any
 * size so needs the memory of one band.
 */
#ifndef QUANTIZE_LATE_BLOCKS_H
#define QUANTIZE_LATE_BLOCKS_H

#include "quantize/blocks.h"

struct late_blocks {
	const struct model *m; /* whose path says where the file is */
	const struct init *w;
	bool turned; /* it is [outputs, inputs] */
	struct block_setting how;
	struct block_packed
		out; /* shapes; scales and zeros have data between the writing of codes and of the last of them */
};

bool late_blocks_can(const struct init *w, const struct block_setting *s);
struct late_blocks *late_blocks_new(const struct model *m, const struct node *n,
				    const struct block_setting *s);
void late_blocks_free(struct late_blocks *l);
/* What writes codes, scales and zeros. They must be saved in this order. */
struct late late_codes(struct late_blocks *l);
struct late late_scales(struct late_blocks *l);
struct late late_zeros(struct late_blocks *l);

#endif
