/* The inside of the examiner, for order.c and examine.c only. */
#ifndef TUNE_EXAMINER_IMPL_H
#define TUNE_EXAMINER_IMPL_H

#include "tune/examiner.h"

/* What a trial of this group showed, until it is learnt from. */
struct kept_shown {
	size_t number;
	struct shown shown;
	double *scores; /* of the samples, by place; NULL: it ran elsewhere */
};

struct examiner {
	struct order *order; /* of the evaluation samples */
	struct rows
		*reference; /* the fp32 model's outputs, [n_reference]; none when the metric does without */
	size_t n_reference;
	struct cutcache *cuts; /* NULL: activations are not kept */
	struct map node_macs;  /* name of a node -> its multiply-adds in thousands */
	struct plan kept;      /* the last one that met the criterion, and what its samples scored */
	double *kept_scores;
	struct hard_notes levels; /* what the order in use was made from */
	VEC(struct kept_shown) shown;
};

void examiner_forget_shown(struct examiner *x);

#endif
