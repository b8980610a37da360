/*
 * What models gave for evaluation samples when their plans ran ahead (search.h), a row of each output per sample. The trial of such a plan
 * takes from here what it would compute otherwise: it looks at the same samples in the same order, ends at the same one, and scores
 * the same. A model is known by what its outputs are computed from.
 */
#ifndef TUNE_FORERUN_H
#define TUNE_FORERUN_H

#include "evaluate/evaluate.h"
#include "tune/order.h"

struct forerun;
struct forerun *forerun_new(size_t budget); /* bytes */
void forerun_free(struct forerun *a);       /* NULL does nothing */
/* Outputs are too large to be kept, or have no row per sample: then there is no point in running ahead. */
bool forerun_is_useless(const struct forerun *a);

struct forerun_options {
	const struct order *order;
	struct network net;      /* of the model */
	const struct feed *feed; /* in the order in which samples will be asked for */
	bool any_batch;          /* what a sample gives does not depend on the others of its batch */
	bool create;             /* the plan runs ahead; otherwise it is asked for */
};
struct forerun_pass;
/* For one thread. *out is NULL when nothing is known of the model, and nothing is to be kept. */
void forerun_begin(struct forerun *a, uint64_t model, const struct forerun_options *o,
		   struct forerun_pass **out);
struct network forerun_network(struct forerun_pass *r);
void forerun_end(struct forerun_pass *r); /* NULL does nothing */

#endif
