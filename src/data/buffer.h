/* A tensor that owns its memory and keeps it from one use to the next. */
#ifndef DATA_BUFFER_H
#define DATA_BUFFER_H

#include "tensor/tensor.h"

struct buffer {
	struct tensor t; /* t.data belongs to the buffer */
	size_t cap;      /* bytes that t.data has room for */
};

/*
 * Gives b this type and shape. The contents are undefined afterwards; memory grows, never shrinks.
 * dims may point into b itself.
 */
enum fettle_status buffer_shape(struct buffer *b, enum dtype dtype, int rank, const int64_t *dims,
				const char *what, struct err *err);
/* Each has the other's memory, and keeps its own type and shape: of as many bytes as the other's. */
void buffer_swap_data(struct buffer *a, struct buffer *b);
void buffer_release(struct buffer *b);

#endif
