/* Cuts the middle out of an image. */
#include <math.h>

#include "data/resample.h"
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
	const double top = (double)(src->dims[0] - dst->t.dims[0]) / 2,
		     left = (double)(src->dims[1] - dst->t.dims[1]) / 2;
	const bool rounds = t->dialect == DIALECT_PYTORCH; /* half a pixel to the even side */

	(void)err;
	image_crop(src, (int64_t)(rounds ? rint(top) : top), (int64_t)(rounds ? rint(left) : left), &dst->t);
	return FETTLE_OK;
}

const struct transform_kind transform_center_crop = {
	.name = "CenterCrop",
	.summary = "the middle of the image; size: [height, width], or one number for both",
	.keys = { "size" },
	.set = crop_set,
	.lacks = crop_lacks,
	.shape = crop_shape,
	.apply = crop_apply,
};
