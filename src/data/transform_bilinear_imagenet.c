/* INC's other preparation of ImageNet's images: a part of the middle, resized; pixels from -1 to 1. */
#include <string.h>

#include "data/resample.h"
#include "data/transform_kind.h"

enum { CHANNELS_MAX = 4 };

struct bilinear {
	int64_t height, width;
	double fraction, mean[CHANNELS_MAX], scale;
	size_t n_mean;
};
TRANSFORM_FITS(struct bilinear);

static void bilinear_init(struct transform *t)
{
	struct bilinear *own = TRANSFORM_OWN(struct bilinear, t);

	own->fraction = 0.875;
	own->scale = 1;
	own->n_mean = 1;
}

static enum fettle_status bilinear_set(struct transform *t, const char *key,
				       const struct transform_value *value, struct err *err)
{
	struct bilinear *own = TRANSFORM_OWN(struct bilinear, t);
	bool is_mean = strcmp(key, "mean_value") == 0;
	enum fettle_status st;

	if (strcmp(key, "height") == 0)
		return transform_whole(value, 1, IMAGE_SIDE_MAX, &own->height, err);
	if (strcmp(key, "width") == 0)
		return transform_whole(value, 1, IMAGE_SIDE_MAX, &own->width, err);
	st = transform_numbers(value, 1, is_mean ? CHANNELS_MAX : 1, err);
	if (st)
		return st;
	if (is_mean) {
		memcpy(own->mean, value->v, value->n * sizeof(*value->v));
		own->n_mean = value->n;
	} else if (strcmp(key, "scale") == 0) {
		own->scale = value->v[0];
	} else {
		own->fraction = value->v[0];
		if (!(own->fraction > 0 && own->fraction <= 1))
			return fail(err, FETTLE_INVALID, "%g, need more than 0 and at most 1", own->fraction);
	}
	return FETTLE_OK;
}

static const char *bilinear_lacks(const struct transform *t)
{
	const struct bilinear *own = TRANSFORM_READ(struct bilinear, t);

	return !own->height ? "no height, need one" : !own->width ? "no width, need one" : NULL;
}

static enum fettle_status bilinear_shape(const struct transform *t, struct tensor *shape, struct err *err)
{
	const struct bilinear *own = TRANSFORM_READ(struct bilinear, t);
	enum fettle_status st = transform_need_image(t, shape, err);
	int64_t channels = shape->rank == 3 ? shape->dims[2] : 1;

	if (!st)
		st = image_check_sides(shape->dims[0], shape->dims[1], t->kind->name, err);
	if (!st && own->n_mean > 1 && channels >= 0 && channels != (int64_t)own->n_mean)
		st = fail(err, FETTLE_INVALID,
			  "cannot apply BilinearImagenet: %lld channels, need %zu, for that many means were "
			  "given",
			  (long long)channels, own->n_mean);
	shape->dtype = DT_F32;
	shape->dims[0] = own->height;
	shape->dims[1] = own->width;
	return st;
}

static enum fettle_status bilinear_apply(const struct transform *t, const struct tensor *src,
					 struct buffer *dst, struct err *err)
{
	const struct bilinear *own = TRANSFORM_READ(struct bilinear, t);
	int64_t h = src->dims[0], w = src->dims[1], top, left;
	size_t n = (size_t)tensor_count(&dst->t), channels = src->rank == 3 ? (size_t)src->dims[2] : 1, i;
	float *to = dst->t.data;
	enum fettle_status st;

	top = (int64_t)(((double)h - (double)h * own->fraction) / 2);
	left = (int64_t)(((double)w - (double)w * own->fraction) / 2);
	st = image_crop_resize(src, top, left, h - 2 * top, w - 2 * left, INTERPOLATE_BILINEAR, false,
			       &dst->t, err);
	for (i = 0; i < n && !st; i++)
		to[i] = (float)(((to[i] / 255.0 - 0.5) * 2 - own->mean[own->n_mean == 1 ? 0 : i % channels]) *
				own->scale);
	return st;
}

const struct transform_kind transform_bilinear_imagenet = {
	.name = "BilinearImagenet",
	.summary = "the middle central_fraction (0.875) of both sides, resized to height and width; (2 x / "
		   "255 - 1 - mean_value) * scale, channels last",
	.keys = { "height", "width", "central_fraction", "mean_value", "scale" },
	.init = bilinear_init,
	.set = bilinear_set,
	.lacks = bilinear_lacks,
	.shape = bilinear_shape,
	.apply = bilinear_apply,
};
