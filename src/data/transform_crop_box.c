/* Cuts a given part out of an image: CropToBoundingBox, and CropResize, which resizes it. */
#include <string.h>

#include "data/resample.h"
#include "data/transform_kind.h"

struct box {
	int64_t top, left, height, width;
	struct image_size size; /* of CropResize */
	enum interpolation interpolation;
};
TRANSFORM_FITS(struct box);

static enum fettle_status box_set(struct transform *t, const char *key, const struct transform_value *value,
				  struct err *err)
{
	struct box *own = TRANSFORM_OWN(struct box, t);

	if (strcmp(key, "offset_height") == 0 || strcmp(key, "y") == 0)
		return transform_whole(value, 0, IMAGE_SIDE_MAX, &own->top, err);
	if (strcmp(key, "offset_width") == 0 || strcmp(key, "x") == 0)
		return transform_whole(value, 0, IMAGE_SIDE_MAX, &own->left, err);
	if (strcmp(key, "target_height") == 0 || strcmp(key, "height") == 0)
		return transform_whole(value, 1, IMAGE_SIDE_MAX, &own->height, err);
	if (strcmp(key, "target_width") == 0 || strcmp(key, "width") == 0)
		return transform_whole(value, 1, IMAGE_SIDE_MAX, &own->width, err);
	if (strcmp(key, "size") == 0)
		return image_size_set(&own->size, value, err);
	return interpolation_set(&own->interpolation, value->text, err);
}

static const char *box_lacks(const struct transform *t)
{
	const struct box *own = TRANSFORM_READ(struct box, t);

	return !own->height ? "no height, need one" : !own->width ? "no width, need one" : NULL;
}

static const char *crop_resize_lacks(const struct transform *t)
{
	return TRANSFORM_READ(struct box, t)->size.n ? box_lacks(t) : "no size, need one";
}

static enum fettle_status box_shape(const struct transform *t, struct tensor *shape, struct err *err)
{
	const struct box *own = TRANSFORM_READ(struct box, t);
	enum fettle_status st = transform_need_image(t, shape, err);
	int64_t h = shape->dims[0], w = shape->dims[1];

	if (st)
		return st;
	if ((h >= 0 && own->top + own->height > h) || (w >= 0 && own->left + own->width > w))
		return fail(err, FETTLE_INVALID,
			    "cannot apply %s: %lld x %lld pixels, need at least %lld x %lld", t->kind->name,
			    (long long)w, (long long)h, (long long)(own->left + own->width),
			    (long long)(own->top + own->height));
	shape->dims[0] = own->size.n == 2 ? own->size.v[0] : own->height;
	shape->dims[1] = own->size.n == 2 ? own->size.v[1] : own->width;
	if (own->size.n != 1)
		return FETTLE_OK;
	if (t->dialect == DIALECT_PYTORCH)
		return shorter_side(t, shape, own->size.v[0], err);
	shape->dims[0] = shape->dims[1] = own->size.v[0];
	return FETTLE_OK;
}

static enum fettle_status box_apply(const struct transform *t, const struct tensor *src, struct buffer *dst,
				    struct err *err)
{
	const struct box *own = TRANSFORM_READ(struct box, t);

	(void)err;
	image_crop(src, own->top, own->left, &dst->t);
	return FETTLE_OK;
}

static enum fettle_status crop_resize_apply(const struct transform *t, const struct tensor *src,
					    struct buffer *dst, struct err *err)
{
	const struct box *own = TRANSFORM_READ(struct box, t);

	return image_crop_resize(src, own->top, own->left, own->height, own->width, own->interpolation,
				 t->dialect == DIALECT_PYTORCH, &dst->t, err);
}

const struct transform_kind transform_crop_to_box = {
	.name = "CropToBoundingBox",
	.summary = "cuts out target_height x target_width from offset_height, offset_width on",
	.keys = { "offset_height", "offset_width", "target_height", "target_width" },
	.set = box_set,
	.lacks = box_lacks,
	.shape = box_shape,
	.apply = box_apply,
};

const struct transform_kind transform_crop_resize = {
	.name = "CropResize",
	.summary = "cuts out width x height from x, y on, then resizes to size: [height, width] by "
		   "interpolation",
	.keys = { "x", "y", "width", "height", "size", "interpolation" },
	.set = box_set,
	.lacks = crop_resize_lacks,
	.shape = box_shape,
	.apply = crop_resize_apply,
};
