/* Gives an image so many channels: grey is spread over them, colour becomes grey (Rec. 601), alpha is dropped. */
#include <math.h>

#include "data/transform_kind.h"

static void align_init(struct transform *t)
{
	*TRANSFORM_OWN(int64_t, t) = 3;
}

static enum fettle_status align_set(struct transform *t, const char *key, const struct transform_value *value,
				    struct err *err)
{
	(void)key; /* there is only one */
	return transform_whole(value, 1, 4, TRANSFORM_OWN(int64_t, t), err);
}

static enum fettle_status align_shape(const struct transform *t, struct tensor *shape, struct err *err)
{
	enum fettle_status st = transform_need_image(t, shape, err);
	int64_t to = *TRANSFORM_READ(int64_t, t), from = shape->rank == 3 ? shape->dims[2] : 1;

	if (st)
		return st;
	if (from >= 0 && from != to && from != 1 && !(from == 4 && to == 3) && !(from == 3 && to == 1))
		return fail(err, FETTLE_INVALID,
			    "cannot apply AlignImageChannel: %lld channels to %lld, need 1 to any, 3 to 1 or "
			    "4 to 3",
			    (long long)from, (long long)to);
	shape->rank = 3;
	shape->dims[2] = to;
	return FETTLE_OK;
}

static enum fettle_status align_apply(const struct transform *t, const struct tensor *src, struct buffer *dst,
				      struct err *err)
{
	size_t from = src->rank == 3 ? (size_t)src->dims[2] : 1, to = (size_t)dst->t.dims[2], i, c;
	size_t n = (size_t)(src->dims[0] * src->dims[1]);
	bool whole = src->dtype == DT_U8;

	(void)t;
	(void)err;
	for (i = 0; i < n; i++) {
		double grey = from == 3 && to == 1
				      ? 0.299 * tensor_get(src, 3 * i) + 0.587 * tensor_get(src, 3 * i + 1) +
						0.114 * tensor_get(src, 3 * i + 2)
				      : 0;

		for (c = 0; c < to; c++) {
			double x = from == 3 && to == 1 ? whole ? rint(grey) : grey
							: tensor_get(src, i * from + (from == 1 ? 0 : c));

			tensor_set(&dst->t, i * to + c, x);
		}
	}
	return FETTLE_OK;
}

const struct transform_kind transform_align_channel = {
	.name = "AlignImageChannel",
	.summary = "gives an image dim (3) channels: grey is spread, colour becomes grey, alpha is dropped",
	.keys = { "dim" },
	.init = align_init,
	.set = align_set,
	.shape = align_shape,
	.apply = align_apply,
};
