/* Reorders dimensions. */
#include <string.h>

#include "data/transform_kind.h"

struct transpose {
	int perm[TENSOR_RANK_MAX], n;
};

static void transpose_init(struct transform *t)
{
	static const int to_channels_first[] = { 2, 0, 1 };
	struct transpose *own = TRANSFORM_OWN(struct transpose, t);

	memcpy(own->perm, to_channels_first, sizeof(to_channels_first));
	own->n = 3;
}

static enum fettle_status transpose_set(struct transform *t, const char *key,
					const struct transform_value *value, struct err *err)
{
	struct transpose *own = TRANSFORM_OWN(struct transpose, t);
	enum fettle_status st = transform_numbers(value, 1, TENSOR_RANK_MAX, err);
	unsigned seen = 0;
	size_t i;

	(void)key; /* there is only one */
	if (st)
		return st;
	for (i = 0; i < value->n; i++) {
		double x = value->v[i];

		if (!(x >= 0 && x < (double)value->n) || x != (int)x || seen & 1u << (int)x)
			return fail(err, FETTLE_INVALID, "%g in it, need each of 0 to %zu once", x,
				    value->n - 1);
		seen |= 1u << (int)x;
		own->perm[i] = (int)x;
	}
	own->n = (int)value->n;
	return FETTLE_OK;
}

static enum fettle_status transpose_shape(const struct transform *t, struct tensor *shape, struct err *err)
{
	const struct transpose *own = TRANSFORM_READ(struct transpose, t);
	struct tensor old = *shape;
	char text[128];
	int i;

	if (shape->rank != own->n)
		return fail(err, FETTLE_INVALID,
			    "cannot apply Transpose: shape %s, need %d dimensions as in perm",
			    tensor_shape_text(shape, text, sizeof(text)), own->n);
	for (i = 0; i < own->n; i++)
		shape->dims[i] = old.dims[own->perm[i]];
	return FETTLE_OK;
}

/* `n` elements that lie `stride` elements apart. */
#define GATHER(type)                                                                                         \
	for (i = 0; i < n; i++)                                                                              \
	((type *)to)[i] = ((const type *)from)[i * stride]
static void gather(const void *from, size_t stride, void *to, size_t n, size_t size)
{
	size_t i;

	switch (size) {
	case 1:
		GATHER(uint8_t);
		break;
	case 2:
		GATHER(uint16_t);
		break;
	case 4:
		GATHER(uint32_t);
		break;
	default:
		GATHER(uint64_t);
		break;
	}
}

static enum fettle_status transpose_apply(const struct transform *t, const struct tensor *src,
					  struct buffer *dst, struct err *err)
{
	const struct transpose *own = TRANSFORM_READ(struct transpose, t);
	size_t size = dtype_size(src->dtype), stride[TENSOR_RANK_MAX], at[TENSOR_RANK_MAX] = { 0 };
	size_t all = (size_t)tensor_count(src), from = 0, step = 1, row;
	unsigned char *to = dst->t.data;
	int i, last = own->n - 1;

	(void)err;
	for (i = src->rank - 1; i >= 0; i--) {
		stride[i] = step;
		step *= (size_t)src->dims[i];
	}
	row = (size_t)dst->t.dims[last];
	for (; all; all -= row) { /* a row of the result at a time */
		gather((const unsigned char *)src->data + from * size, stride[own->perm[last]], to, row,
		       size);
		to += row * size;
		for (i = last - 1; i >= 0; i--) {
			from += stride[own->perm[i]];
			if (++at[i] < (size_t)dst->t.dims[i])
				break;
			from -= stride[own->perm[i]] * at[i];
			at[i] = 0;
		}
	}
	return FETTLE_OK;
}

const struct transform_kind transform_transpose = {
	.name = "Transpose",
	.summary = "reorders dimensions; perm: [2, 0, 1] puts channels first",
	.keys = { "perm" },
	.init = transpose_init,
	.set = transpose_set,
	.shape = transpose_shape,
	.apply = transpose_apply,
};
