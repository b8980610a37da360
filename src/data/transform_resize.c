/* Resizes an image. */
#include <string.h>

#include "base/str.h"
#include "data/resample.h"
#include "data/transform_kind.h"

struct resize {
	struct image_size size;
	enum interpolation interpolation;
};
TRANSFORM_FITS(struct resize);

static enum fettle_status resize_set(struct transform *t, const char *key,
				     const struct transform_value *value, struct err *err)
{
	if (strcmp(key, "size") == 0)
		return image_size_set(&TRANSFORM_OWN(struct resize, t)->size, value, err);
	return interpolation_set(&TRANSFORM_OWN(struct resize, t)->interpolation, value->text, err);
}

static const char *resize_lacks(const struct transform *t)
{
	return TRANSFORM_READ(struct resize, t)->size.n ? NULL : "no size, need one";
}

static enum fettle_status resize_shape(const struct transform *t, struct tensor *shape, struct err *err)
{
	const struct image_size *to = &TRANSFORM_READ(struct resize, t)->size;
	enum fettle_status st = transform_need_image(t, shape, err);

	if (!st)
		st = image_check_sides(shape->dims[0], shape->dims[1], "Resize", err);
	if (st)
		return st;
	if (to->n == 2 || t->dialect == DIALECT_ONNXRT || t->dialect == DIALECT_TENSORFLOW) {
		shape->dims[0] = to->v[0];
		shape->dims[1] = to->v[1];
		return FETTLE_OK;
	}
	return shorter_side(t, shape, to->v[0], err);
}

static enum fettle_status resize_apply(const struct transform *t, const struct tensor *src,
				       struct buffer *dst, struct err *err)
{
	const enum interpolation how = TRANSFORM_READ(struct resize, t)->interpolation;

	return t->dialect == DIALECT_PYTORCH ? image_resize_pillow(src, how, &dst->t, err)
					     : image_resize(src, how, &dst->t, err);
}

const struct transform_kind transform_resize = {
	.name = "Resize",
	.summary = "size: [height, width], or one number: a square for ONNX Runtime and TensorFlow, else the "
		   "shorter side; interpolation: bilinear, nearest, bicubic or area; for PyTorch as Pillow "
		   "does it, "
		   "else as OpenCV",
	.keys = { "size", "interpolation" },
	.set = resize_set,
	.lacks = resize_lacks,
	.shape = resize_shape,
	.apply = resize_apply,
};
