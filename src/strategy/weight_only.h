/* Plans with all ops in one weight-only format: what the list of Intel Neural Compressor and mixed bits are made of. */
#ifndef STRATEGY_WEIGHT_ONLY_H
#define STRATEGY_WEIGHT_ONLY_H

#include "blockwise/blockwise.h"
#include "strategy/stages.h"

/* Of those that some op has in 4 bits, the algorithm that loses least. */
enum block_algorithm best_algorithm(const struct space *space);
/*
 * `from` with all ops in a format that have it: by that algorithm, or the best of those it has; tables only with `tables`. False:
 * none has that algorithm.
 */
bool blocks_everywhere(struct plan *out, const struct plan *from, const struct space *space,
		       const struct block_format *f, enum block_algorithm a, bool tables);

/* mixed_bits.c: the bits of each op by what they cost and win, as few as meet the criterion. */
enum fettle_status stage_mixed_bits(struct search *s);

#endif
