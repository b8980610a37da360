/* Random crops and flips, as training does them; for calibration only. */
#include <math.h>
#include <string.h>

#include "data/resample.h"
#include "data/transform_kind.h"

struct random_crop {
	struct image_size size;
	double scale[2], ratio[2]; /* of RandomResizedCrop: the part's area, its width to its height */
	enum interpolation interpolation;
};
TRANSFORM_FITS(struct random_crop);

static bool always(const struct transform *t)
{
	(void)t;
	return true;
}

static void crop_init(struct transform *t)
{
	struct random_crop *own = TRANSFORM_OWN(struct random_crop, t);

	own->scale[0] = 0.08;
	own->scale[1] = 1;
	own->ratio[0] = 3 / 4.;
	own->ratio[1] = 4 / 3.;
}

static enum fettle_status crop_set(struct transform *t, const char *key, const struct transform_value *value,
				   struct err *err)
{
	struct random_crop *own = TRANSFORM_OWN(struct random_crop, t);
	double *pair = strcmp(key, "scale") == 0 ? own->scale : own->ratio;
	enum fettle_status st;

	if (strcmp(key, "size") == 0)
		return image_size_set(&own->size, value, err);
	if (strcmp(key, "interpolation") == 0)
		return interpolation_set(&own->interpolation, value->text, err);
	st = transform_numbers(value, 2, 2, err);
	if (st)
		return st;
	if (!(value->v[0] > 0 && value->v[0] <= value->v[1]))
		return fail(err, FETTLE_INVALID, "%g and %g, need two positive numbers, the lower first",
			    value->v[0], value->v[1]);
	memcpy(pair, value->v, 2 * sizeof(*pair));
	return FETTLE_OK;
}

static const char *crop_lacks(const struct transform *t)
{
	return TRANSFORM_READ(struct random_crop, t)->size.n ? NULL : "no size, need one";
}

static enum fettle_status crop_shape(const struct transform *t, struct tensor *shape, struct err *err)
{
	const int64_t *size = TRANSFORM_READ(struct random_crop, t)->size.v;
	enum fettle_status st = transform_need_image(t, shape, err);
	bool resizes = t->kind == &transform_random_resized_crop;

	if (!st)
		st = image_check_sides(shape->dims[0], shape->dims[1], t->kind->name, err);
	if (st)
		return st;
	if (!resizes && ((shape->dims[0] >= 0 && shape->dims[0] < size[0]) ||
			 (shape->dims[1] >= 0 && shape->dims[1] < size[1])))
		return fail(err, FETTLE_INVALID,
			    "cannot apply RandomCrop: %lld x %lld pixels, need at least %lld x %lld",
			    (long long)shape->dims[1], (long long)shape->dims[0], (long long)size[1],
			    (long long)size[0]);
	shape->dims[0] = size[0];
	shape->dims[1] = size[1];
	return FETTLE_OK;
}

static enum fettle_status crop_apply(const struct transform *t, const struct tensor *src, struct buffer *dst,
				     struct err *err)
{
	struct rng r = transform_rng(t, src);
	int64_t top = (int64_t)rng_below(&r, (uint64_t)(src->dims[0] - dst->t.dims[0]) + 1);
	int64_t left = (int64_t)rng_below(&r, (uint64_t)(src->dims[1] - dst->t.dims[1]) + 1);

	(void)err;
	image_crop(src, top, left, &dst->t);
	return FETTLE_OK;
}

static double between(struct rng *r, double low, double high)
{
	return low + rng_unit(r) * (high - low);
}

/* A part of the wanted area and shape that fits in; after ten failures the largest in the middle. */
static void choose_part(const struct random_crop *own, struct rng *r, int64_t h, int64_t w, int64_t part[4])
{
	double area = (double)h * (double)w, target, ratio = (double)w / (double)h;
	int i;

	for (i = 0; i < 10; i++) {
		target = between(r, own->scale[0], own->scale[1]) * area;
		ratio = exp(between(r, log(own->ratio[0]), log(own->ratio[1])));
		part[2] = (int64_t)rint(sqrt(target / ratio));
		part[3] = (int64_t)rint(sqrt(target * ratio));
		if (part[2] > 0 && part[3] > 0 && part[2] <= h && part[3] <= w) {
			part[0] = (int64_t)rng_below(r, (uint64_t)(h - part[2]) + 1);
			part[1] = (int64_t)rng_below(r, (uint64_t)(w - part[3]) + 1);
			return;
		}
	}
	ratio = fmin(fmax((double)w / (double)h, own->ratio[0]), own->ratio[1]);
	part[2] = (int64_t)fmin((double)h, fmax(1, rint((double)w / ratio)));
	part[3] = (int64_t)fmin((double)w, fmax(1, rint((double)h * ratio)));
	part[0] = (h - part[2]) / 2;
	part[1] = (w - part[3]) / 2;
}

static enum fettle_status resized_crop_apply(const struct transform *t, const struct tensor *src,
					     struct buffer *dst, struct err *err)
{
	const struct random_crop *own = TRANSFORM_READ(struct random_crop, t);
	struct rng r = transform_rng(t, src);
	int64_t part[4]; /* top, left, height, width */

	choose_part(own, &r, src->dims[0], src->dims[1], part);
	return image_crop_resize(src, part[0], part[1], part[2], part[3], own->interpolation,
				 t->dialect == DIALECT_PYTORCH, &dst->t, err);
}

static enum fettle_status flip_shape(const struct transform *t, struct tensor *shape, struct err *err)
{
	return transform_need_image(t, shape, err);
}

static enum fettle_status flip_apply(const struct transform *t, const struct tensor *src, struct buffer *dst,
				     struct err *err)
{
	size_t pixel = dtype_size(src->dtype) * (size_t)(src->rank == 3 ? src->dims[2] : 1);
	int64_t h = src->dims[0], w = src->dims[1], y, x;
	struct rng r = transform_rng(t, src);
	bool flip = rng_below(&r, 2), across = flip && t->kind == &transform_random_horizontal_flip,
	     down = flip && !across;
	const unsigned char *from = src->data;
	unsigned char *to = dst->t.data;

	(void)err;
	for (y = 0; y < h; y++)
		for (x = 0; x < w; x++, to += pixel)
			memcpy(to,
			       from + (size_t)((down ? h - 1 - y : y) * w + (across ? w - 1 - x : x)) * pixel,
			       pixel);
	return FETTLE_OK;
}

const struct transform_kind transform_random_crop = {
	.name = "RandomCrop",
	.summary = "a random part of the given size; for calibration only",
	.random = always,
	.keys = { "size" },
	.set = crop_set,
	.lacks = crop_lacks,
	.shape = crop_shape,
	.apply = crop_apply,
};

const struct transform_kind transform_random_resized_crop = {
	.name = "RandomResizedCrop",
	.summary = "a random part, of a scale and ratio between two bounds, resized to size; for calibration "
		   "only",
	.random = always,
	.keys = { "size", "scale", "ratio", "interpolation" },
	.init = crop_init,
	.set = crop_set,
	.lacks = crop_lacks,
	.shape = crop_shape,
	.apply = resized_crop_apply,
};

const struct transform_kind transform_random_horizontal_flip = {
	.name = "RandomHorizontalFlip",
	.summary = "left and right change places at random; for calibration only",
	.random = always,
	.shape = flip_shape,
	.apply = flip_apply,
};

const struct transform_kind transform_random_vertical_flip = {
	.name = "RandomVerticalFlip",
	.summary = "top and bottom change places at random; for calibration only",
	.random = always,
	.shape = flip_shape,
	.apply = flip_apply,
};
