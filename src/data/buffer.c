#include "data/buffer.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

enum fettle_status buffer_shape(struct buffer *b, enum dtype dtype, int rank, const int64_t *dims,
				const char *what, struct err *err)
{
	struct tensor t = { .dtype = dtype, .rank = rank };
	char shape[128];
	size_t bytes;

	if (rank < 0 || rank > TENSOR_RANK_MAX)
		return fail(err, FETTLE_INVALID, "cannot hold %s: %d dimensions, at most %d are supported",
			    what, rank, TENSOR_RANK_MAX);
	if (rank)
		memmove(t.dims, dims, sizeof(t.dims[0]) * (size_t)rank);
	if (tensor_count(&t) < 0 || !dtype_size(dtype))
		return fail(err, FETTLE_INVALID, "cannot hold %s: shape %s of %s", what,
			    tensor_shape_text(&t, shape, sizeof(shape)), dtype_name(dtype));
	bytes = tensor_bytes(&t);
	t.data = b->t.data;
	if (!t.data || bytes > b->cap) {
		enum fettle_status st;

		buffer_release(b);
		st = mem_try(&t.data, bytes, 1, what, err);
		if (st)
			return st;
		b->cap = bytes;
	}
	b->t = t;
	return FETTLE_OK;
}

void buffer_swap_data(struct buffer *a, struct buffer *b)
{
	void *data = a->t.data;
	const size_t cap = a->cap;

	a->t.data = b->t.data;
	a->cap = b->cap;
	b->t.data = data;
	b->cap = cap;
}

void buffer_release(struct buffer *b)
{
	free(b->t.data);
	*b = (struct buffer){ .cap = 0 };
}
