/* Cuts the middle out of an image. */
#include <string.h>

#include "data/transform_kind.h"

TRANSFORM_FITS(struct image_size);

static enum fettle_status crop_set(struct transform *t, const char *key, const struct transform_value *value,
				   struct err *err)
{
	(void)key; /* there is only one */
	return image_size_set(TRANSFORM_OWN(struct image_size, t), value, err);
}

static const char *crop_lacks(const struct transform *t)
{
	return TRANSFORM_READ(struct image_size, t)->n ? NULL : "no size, need one";
}

static enum fettle_status crop_shape(const struct transform *t, struct tensor *shape, struct err *err)
{
	const int64_t *size = TRANSFORM_READ(struct image_size, t)->v;
	enum fettle_status st = transform_need_image(t, shape, err);
	int i;

	if (st)
		return st;
	for (i = 0; i < 2; i++)
		if (shape->dims[i] >= 0 && shape->dims[i] < size[i])
			return fail(err, FETTLE_INVALID,
				    "cannot apply CenterCrop: %s %lld is less than the %lld to be cut out, "
				    "put a Resize "
				    "before it",
				    i ? "width" : "height", (long long)shape->dims[i], (long long)size[i]);
	shape->dims[0] = size[0];
	shape->dims[1] = size[1];
	return FETTLE_OK;
}

static enum fettle_status crop_apply(const struct transform *t, const struct tensor *src, struct buffer *dst,
				     struct err *err)
{
	const int64_t *size = TRANSFORM_READ(struct image_size, t)->v;
	size_t pixel = dtype_size(src->dtype) * (size_t)(src->rank == 3 ? src->dims[2] : 1);
	size_t row = (size_t)size[1] * pixel;
	int64_t top = (src->dims[0] - size[0]) / 2, left = (src->dims[1] - size[1]) / 2, y;
	unsigned char *to = dst->t.data;

	(void)err;
	for (y = 0; y < size[0]; y++, to += row)
		memcpy(to, (unsigned char *)src->data + (size_t)((top + y) * src->dims[1] + left) * pixel,
		       row);
	return FETTLE_OK;
}

const struct transform_kind transform_center_crop = {
	.name = "CenterCrop",
	.keys = { "size" },
	.set = crop_set,
	.lacks = crop_lacks,
	.shape = crop_shape,
	.apply = crop_apply,
};
