/*
 * Weight-only weights that data decides on, of a model that is larger than memory: the graph is run part by part, each over all
 * calibration samples. A part has one large weight, or a few small ones. What later parts read of it is kept; its weights go once
 * they are quantized, and the results go to a file (block_store_spill()).
 *
 * With the recipe true_sequential, on models of any size: what an op reads comes from a model in which the ops before it are
 * quantized. A part then ends before an op that reads what another op of the part has made, and is run again with its weights as
 * they have become: two passes over the samples, whatever the number of ops.
 */
#ifndef QUANTIZE_BY_PARTS_H
#define QUANTIZE_BY_PARTS_H

#include "quantize/blocks.h"
#include "quantize/subject.h"

struct parts {
	struct runtime *rt;
	struct subject *s; /* opened by subject_open_outside(): results are spilled; or not */
	const struct qplan *plan;
	const struct feed *feed;
	size_t bytes; /* of weights that a part has, unless one alone has more; 0: 128 MB */
	int threads;
	progress_fn progress; /* after each part, counted in nodes; may be NULL */
	void *self;
};
/* Does the plan have weights that data decides on? */
bool parts_needed(const struct qplan *plan);
enum fettle_status blocks_by_parts(struct block_store *out, const struct parts *p, struct err *err);

#endif
