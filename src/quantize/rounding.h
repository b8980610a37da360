/*
 * Weights rounded with care: for some ops of a plan, the integers to use instead of the nearest ones, and what
 * their biases gain. Made by finetune/, carried out by quantize_rounded(), kept in a file for recovery.
 */
#ifndef QUANTIZE_ROUNDING_H
#define QUANTIZE_ROUNDING_H

#include "quantize/weights.h"

struct rounded {
	struct qweight w;    /* in the float weight's layout */
	const double *shift; /* one per output; NULL: the bias stays */
	size_t n_shift;
};

struct rounding {
	struct arena arena;
	size_t n;           /* one per node, as in the plan */
	struct rounded **v; /* NULL: to the nearest */
};

struct rounding *rounding_new(size_t n);
void rounding_free(struct rounding *r);
/* Copies what it is given. */
void rounding_set(struct rounding *r, size_t node, const struct rounded *o);

/* The file is for this machine's byte order; what does not fit together, or is not for n nodes, is refused. */
enum fettle_status rounding_save(const struct rounding *r, const char *path, struct err *err);
enum fettle_status rounding_load(struct rounding **out, const char *path, size_t n, struct err *err);

#endif
