/* Running models on a few batches and comparing their outputs: scores of ops are made from that. */
#ifndef TUNE_COMPARE_H
#define TUNE_COMPARE_H

#include "tune/lab.h"

/* Samples that ops and plans are scored on: a few of those to calibrate with. Asked for first before anything is calibrated,
 * which may leave fewer. NULL: there is no data. */
struct feed *scoring_feed(struct lab *l);

/* Runs a session on the first batches and hands each batch's outputs to `take`. */
typedef void (*take_fn)(void *self, size_t batch, const struct feed_batch *b, const struct tensor *out,
			size_t n);
enum fettle_status run_batches(struct lab *l, struct session *s, size_t batches, take_fn take, void *self,
			       struct err *err);
enum fettle_status run_feed(struct lab *l, struct session *s, struct feed *feed, size_t batches, take_fn take,
			    void *self, struct err *err);
/* The same for values inside a model. */
struct exposed {
	struct model *m;
	const char *const *names;
	size_t n;
};
enum fettle_status expose_and_run(struct lab *l, const struct exposed *e, size_t batches, take_fn take,
				  void *self, struct err *err);
/* Where a value of the fp32 graph is in the quantized one: the output of its DQ, if it has one. */
const char *name_in(const struct graph_index *quantized, const char *value);

/* keep_outputs() is a take_fn into a struct reference. */
void keep_outputs(void *reference, size_t batch, const struct feed_batch *b, const struct tensor *out,
		  size_t n);
void reference_release(struct reference *r);

/* Sums of squared differences and of squares, per output: compare_outputs() is a take_fn. */
struct comparison {
	const struct reference *r;
	double *noise, *signal;
};
void compare_outputs(void *comparison, size_t batch, const struct feed_batch *b, const struct tensor *out,
		     size_t n);

/* The squared error of the outputs that count, as a share of them. */
double comparison_error(const struct lab *l, const struct comparison *c);

/* hessian.c: average trace of the Hessian times squared weight error, per op (HAWQ-V2) */
enum fettle_status rank_hessian(struct lab *l, const struct plan *p, size_t batches, struct op_order *out,
				struct err *err);
/* impact.c: the error of the model's output when only this op is quantized, on at most so many batches. `back`: of ops in fp32
 * as they would go back to integers. FETTLE_UNSUPPORTED, FETTLE_BACKEND: not to be had for this model. */
enum fettle_status rank_impact(struct lab *l, const struct plan *p, bool back, size_t batches,
			       struct op_order *out, struct err *err);
void put_back_all(const struct lab *l, struct plan *p); /* quantizes every op that can be */
struct impact;
void impact_free(struct impact *m);
void op_order_add(struct op_order *o, size_t op, double score);

#endif
