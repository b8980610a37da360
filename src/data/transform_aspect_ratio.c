/* MLPerf's resizing: so large that height and width are `scale` percent of it, which a CenterCrop then cuts out. */
#include <string.h>

#include "data/resample.h"
#include "data/transform_kind.h"

struct aspect {
	int64_t height, width;
	double scale;
	enum interpolation interpolation;
};
TRANSFORM_FITS(struct aspect);

static void aspect_init(struct transform *t)
{
	struct aspect *own = TRANSFORM_OWN(struct aspect, t);

	own->scale = 87.5;
	own->interpolation = INTERPOLATE_AREA;
}

static enum fettle_status aspect_set(struct transform *t, const char *key,
				     const struct transform_value *value, struct err *err)
{
	struct aspect *own = TRANSFORM_OWN(struct aspect, t);
	enum fettle_status st;

	if (strcmp(key, "height") == 0)
		return transform_whole(value, 1, IMAGE_SIDE_MAX, &own->height, err);
	if (strcmp(key, "width") == 0)
		return transform_whole(value, 1, IMAGE_SIDE_MAX, &own->width, err);
	if (strcmp(key, "inter_pol") == 0)
		return interpolation_set(&own->interpolation, value->text, err);
	st = transform_numbers(value, 1, 1, err);
	if (!st && !(value->v[0] >= 1 && value->v[0] <= 100))
		st = fail(err, FETTLE_INVALID, "%g, need 1 to 100 percent", value->v[0]);
	if (!st)
		own->scale = value->v[0];
	return st;
}

static const char *aspect_lacks(const struct transform *t)
{
	const struct aspect *own = TRANSFORM_READ(struct aspect, t);

	return !own->height ? "no height, need one" : !own->width ? "no width, need one" : NULL;
}

static enum fettle_status aspect_shape(const struct transform *t, struct tensor *shape, struct err *err)
{
	const struct aspect *own = TRANSFORM_READ(struct aspect, t);
	enum fettle_status st = transform_need_image(t, shape, err);
	int64_t h = shape->dims[0], w = shape->dims[1],
		new_h = (int64_t)(100. * (double)own->height / own->scale),
		new_w = (int64_t)(100. * (double)own->width / own->scale);

	if (!st)
		st = image_check_sides(h, w, t->kind->name, err);
	if (st)
		return st;
	if (h < 0 || w < 0) {
		shape->dims[0] = shape->dims[1] = -1;
		return FETTLE_OK;
	}
	shape->dims[0] = h > w ? new_h * h / w : new_h;
	shape->dims[1] = h > w ? new_w : new_w * w / h;
	return image_check_sides(shape->dims[0], shape->dims[1], t->kind->name, err);
}

static enum fettle_status aspect_apply(const struct transform *t, const struct tensor *src,
				       struct buffer *dst, struct err *err)
{
	return image_resize(src, TRANSFORM_READ(struct aspect, t)->interpolation, &dst->t, err);
}

const struct transform_kind transform_aspect_ratio = {
	.name = "ResizeWithAspectRatio",
	.summary = "resizes so that height and width are scale (87.5) percent of the image; inter_pol: area "
		   "by default",
	.keys = { "height", "width", "scale", "inter_pol" },
	.init = aspect_init,
	.set = aspect_set,
	.lacks = aspect_lacks,
	.shape = aspect_shape,
	.apply = aspect_apply,
};
