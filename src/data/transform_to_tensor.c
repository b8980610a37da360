/* As PyTorch does it: channels first, and pixels (not floats) from 0 to 1. */
#include "data/transform_kind.h"

static enum fettle_status to_tensor_shape(const struct transform *t, struct tensor *shape, struct err *err)
{
	const struct tensor old = *shape;
	enum fettle_status st = transform_need_image(t, shape, err);

	if (st)
		return st;
	shape->dtype = DT_F32;
	shape->rank = 3;
	shape->dims[0] = old.rank == 3 ? old.dims[2] : 1;
	shape->dims[1] = old.dims[0];
	shape->dims[2] = old.dims[1];
	return FETTLE_OK;
}

static enum fettle_status to_tensor_apply(const struct transform *t, const struct tensor *src,
					  struct buffer *dst, struct err *err)
{
	size_t channels = (size_t)dst->t.dims[0], pixels = (size_t)(src->dims[0] * src->dims[1]), c, i;
	double scale = src->dtype == DT_U8 ? 255 : 1;
	float *to = dst->t.data;

	(void)t;
	(void)err;
	for (c = 0; c < channels; c++)
		for (i = 0; i < pixels; i++)
			to[c * pixels + i] = (float)(tensor_get(src, i * channels + c) / scale);
	return FETTLE_OK;
}

const struct transform_kind transform_to_tensor = {
	.name = "ToTensor",
	.summary = "channels first, pixels from 0 to 1",
	.shape = to_tensor_shape,
	.apply = to_tensor_apply,
};
