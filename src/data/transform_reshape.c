/* The same values in another shape. */
#include <string.h>

#include "data/transform_kind.h"

struct reshape {
	int64_t dims[TENSOR_RANK_MAX];
	int n;
};
TRANSFORM_FITS(struct reshape);

static enum fettle_status reshape_set(struct transform *t, const char *key,
				      const struct transform_value *value, struct err *err)
{
	struct reshape *own = TRANSFORM_OWN(struct reshape, t);
	enum fettle_status st = transform_numbers(value, 1, TENSOR_RANK_MAX, err);
	size_t i, open = 0;

	(void)key; /* there is only one */
	for (i = 0; i < value->n && !st; i++) {
		struct transform_value one = { value->v + i, 1, NULL };

		st = transform_whole(&one, -1, 1 << 30, &own->dims[i], err);
		open += !st && own->dims[i] < 0;
		if (!st && (!own->dims[i] || open > 1))
			st = fail(err, FETTLE_INVALID, "%s, need positive numbers, one of which may be -1",
				  open > 1 ? "several are -1" : "0");
	}
	own->n = st ? 0 : (int)value->n;
	return st;
}

static const char *reshape_lacks(const struct transform *t)
{
	return TRANSFORM_READ(struct reshape, t)->n ? NULL : "no shape, need one";
}

static enum fettle_status reshape_shape(const struct transform *t, struct tensor *shape, struct err *err)
{
	const struct reshape *own = TRANSFORM_READ(struct reshape, t);
	int64_t all = 1, known = 1;
	char text[128];
	int i, open = -1;

	for (i = 0; i < shape->rank; i++)
		all = shape->dims[i] < 0 || all < 0 ? -1 : all * shape->dims[i];
	for (i = 0; i < own->n; i++) {
		open = own->dims[i] < 0 ? i : open;
		if (own->dims[i] > 0 && __builtin_mul_overflow(known, own->dims[i], &known))
			known = 0;
	}
	if (!known || (all >= 0 && (open < 0 ? all != known : all % known)))
		return fail(err, FETTLE_INVALID, "cannot apply Reshape: %s does not have as many values",
			    tensor_shape_text(shape, text, sizeof(text)));
	shape->rank = own->n;
	memcpy(shape->dims, own->dims, sizeof(own->dims));
	if (open >= 0)
		shape->dims[open] = all < 0 ? -1 : all / known;
	return FETTLE_OK;
}

static enum fettle_status reshape_apply(const struct transform *t, const struct tensor *src,
					struct buffer *dst, struct err *err)
{
	(void)t;
	(void)err;
	memcpy(dst->t.data, src->data, tensor_bytes(src));
	return FETTLE_OK;
}

const struct transform_kind transform_reshape = {
	.name = "Reshape",
	.summary = "the same values in another shape: [...], in which one number may be -1",
	.keys = { "shape" },
	.set = reshape_set,
	.lacks = reshape_lacks,
	.shape = reshape_shape,
	.apply = reshape_apply,
};
