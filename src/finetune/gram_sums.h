/* What gram needs to know of all samples: sums over the positions of a layer, taken in one pass. */
#ifndef FINETUNE_GRAM_SUMS_H
#define FINETUNE_GRAM_SUMS_H

#include "finetune/method.h"

enum { GRAM_ROWS = 1024 }; /* positions at a time */

/* Sums over all positions, group after group. */
struct gram_sums {
	double *h;     /* patch x patch */
	double *c;     /* patch x outs */
	double *x, *y; /* patch; outs */
	double count;
};

/* Buffers for some positions at a time. */
struct gram_rows {
	float *x, *h, *c;
};

void gram_sums_init(struct gram_sums *s, const struct layer *l, struct arena *a);
/* Of the samples to learn from; every other batch goes to the second. */
enum fettle_status gram_sums_add(struct work *w, struct gram_sums sums[2], struct gram_rows *r,
				 struct err *err);
void gram_sums_merge(struct gram_sums s[2], const struct layer *l); /* adds the second to the first */

#endif
