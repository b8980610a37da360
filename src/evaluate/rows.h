/*
 * One value of a network for many samples, a row each: what was computed once is available again. Rows are written and
 * read by any number of threads, each row by one at a time.
 */
#ifndef EVALUATE_ROWS_H
#define EVALUATE_ROWS_H

#include "data/buffer.h"
#include "tensor/tensor.h"

struct rows {
	struct tensor row; /* type and shape of one sample, no data */
	size_t n, bytes;   /* samples; bytes of a row */
	unsigned char *data;
	bool *have;
	size_t n_have;
};

/* For n samples of what this batch of `rows_in` holds. false: it has no row per sample (or there is no memory). */
bool rows_init(struct rows *r, size_t n, const struct tensor *batch, size_t rows_in);
void rows_release(struct rows *r);
bool rows_have(const struct rows *r, const size_t *place, size_t n);
/* The first n rows of the batch; false when they are of another shape than before. */
bool rows_put(struct rows *r, const struct tensor *batch, const size_t *place, size_t n);
/* As a batch of `fill` rows, those after n repeating the last; the data belong to the buffer. */
void rows_get(const struct rows *r, const size_t *place, size_t n, size_t fill, struct buffer *out);

#endif
