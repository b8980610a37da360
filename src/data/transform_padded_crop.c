/* Cuts out the square in the middle that leaves crop_padding around it once it is resized to `size`, as for EfficientNet. */
#include <string.h>

#include "data/resample.h"
#include "data/transform_kind.h"

struct padded {
	struct image_size size;
	int64_t padding;
};
TRANSFORM_FITS(struct padded);

static enum fettle_status padded_set(struct transform *t, const char *key,
				     const struct transform_value *value, struct err *err)
{
	struct padded *own = TRANSFORM_OWN(struct padded, t);
	enum fettle_status st;

	if (strcmp(key, "crop_padding") == 0)
		return transform_whole(value, 0, IMAGE_SIDE_MAX, &own->padding, err);
	st = image_size_set(&own->size, value, err);
	if (!st && own->size.v[0] != own->size.v[1])
		st = fail(err, FETTLE_INVALID, "%lld and %lld, need a square", (long long)own->size.v[0],
			  (long long)own->size.v[1]);
	return st;
}

static const char *padded_lacks(const struct transform *t)
{
	return TRANSFORM_READ(struct padded, t)->size.n ? NULL : "no size, need one";
}

static enum fettle_status padded_shape(const struct transform *t, struct tensor *shape, struct err *err)
{
	const struct padded *own = TRANSFORM_READ(struct padded, t);
	enum fettle_status st = transform_need_image(t, shape, err);
	int64_t h = shape->dims[0], w = shape->dims[1], less = h < w ? h : w;

	if (!st)
		st = image_check_sides(h, w, t->kind->name, err);
	if (st)
		return st;
	shape->dims[0] = less < 0 ? -1 : own->size.v[0] * less / (own->size.v[0] + own->padding);
	if (!shape->dims[0])
		return fail(err, FETTLE_INVALID,
			    "cannot apply PaddedCenterCrop: nothing is left of %lld x %lld", (long long)w,
			    (long long)h);
	shape->dims[1] = shape->dims[0];
	return FETTLE_OK;
}

static enum fettle_status padded_apply(const struct transform *t, const struct tensor *src,
				       struct buffer *dst, struct err *err)
{
	int64_t side = dst->t.dims[0], top = (src->dims[0] - side + 1) / 2,
		left = (src->dims[1] - side + 1) / 2;

	(void)t;
	(void)err;
	image_crop(src, top, left, &dst->t); /* INC rounds up */
	return FETTLE_OK;
}

const struct transform_kind transform_padded_crop = {
	.name = "PaddedCenterCrop",
	.summary = "the middle square of size / (size + crop_padding) of the shorter side",
	.keys = { "size", "crop_padding" },
	.set = padded_set,
	.lacks = padded_lacks,
	.shape = padded_shape,
	.apply = padded_apply,
};
