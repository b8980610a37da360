/*
 * Activations that several plans have in common. A quantized network is cut at the integer tensors between its Q and DQ
 * nodes; two plans whose graphs are the same up to such a tensor get the same numbers there, bit for bit, so a trial can
 * start after it with what an earlier one has computed. Branches that rejoin count too: a cut is as many tensors as it
 * takes. (Cut at the float side of a pair, or where dynamic ranges depend on the whole batch, results would differ.)
 *
 *	cutcache_new(&c, budget);
 *	for each trial: cut_begin(&run, …); evaluate with cut_network(run); cut_end(run);
 *
 * What is kept stays within the budget: the tensors that save least, and have not been used for longest, go first.
 */
#ifndef TUNE_CUTCACHE_H
#define TUNE_CUTCACHE_H

#include "evaluate/evaluate.h"
#include "tune/order.h"

struct cutcache;
struct cut_run;

struct cutcache *cutcache_new(size_t budget, size_t samples);
void cutcache_free(struct cutcache *c);
size_t cutcache_peak(const struct cutcache *c); /* the most bytes that were kept at once */

struct cut_options {
	struct runtime *rt;
	const struct session_options *session;
	const struct order *order;
	double (*cost)(void *self, const struct node *n); /* of a node; in any unit */
	void *self;
};

/* For one model, with its graph's fingerprints, and one thread. *out is NULL when it has nothing in common with earlier
 * ones. */
void cut_begin(struct cutcache *c, struct model *m, const struct graph_index *g, const uint64_t *prints,
	       const struct cut_options *o, struct cut_run **out);
struct network cut_network(struct cut_run *r);
/* The share of the network's cost that was not run, times the samples it was not run for; and the time of sessions. */
double cut_end(struct cut_run *r, double *session_seconds);

#endif
