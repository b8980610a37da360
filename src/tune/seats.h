/*
 * A sample's seat is its place within the batch that it is in when samples are visited in their own order. Kernels may round a
 * row's last bit by where it lies in memory, and by how many rows there are: so whatever order samples are visited in, each keeps
 * its seat, and those of a last batch that is not full stay together. Then what a model gives for a sample is, to the bit, the
 * same in any order, and can be kept from one trial to the next.
 */
#ifndef TUNE_SEATS_H
#define TUNE_SEATS_H

#include <stddef.h>

/*
 * Of n places in batches of so many: those that are wanted, the first as early as possible, each in its seat. Where a seat has no
 * other left, the first batch's sample fills it; the last batch comes whole, at the end, when one of it is wanted. Fills
 * out[n] and returns how many; all n, each once, when all are wanted.
 */
size_t seats_order(size_t n, size_t batch, const size_t *wanted, size_t n_wanted, size_t *out);

#endif
