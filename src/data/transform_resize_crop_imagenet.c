/*
 * INC's preparation of ImageNet's images: the shorter side becomes resize_side, the middle is cut out, and pixels are scaled.
 * For ONNX Runtime pixels are divided by 255 and channels come first, for TensorFlow neither. INC passes height and width to OpenCV
 * in the wrong order for ONNX Runtime, which distorts images that are not square; here they keep their aspect.
 */
#include <math.h>
#include <string.h>

#include "data/resample.h"
#include "data/transform_kind.h"

enum { CHANNELS = 3 };

struct resize_crop {
	int64_t height, width, side;
	bool random_crop, random_flip, bgr, slice_crop, first;
	enum interpolation method;
	double mean[CHANNELS], std[CHANNELS], scale;
	bool has_std;
};
TRANSFORM_FITS(struct resize_crop);

static void resize_crop_init(struct transform *t)
{
	struct resize_crop *own = TRANSFORM_OWN(struct resize_crop, t);

	own->side = 256;
	own->scale = 1;
}

static enum fettle_status set_channels(const struct transform_value *value, double out[CHANNELS],
				       struct err *err)
{
	enum fettle_status st = transform_numbers(value, 1, CHANNELS, err);
	size_t i;

	if (!st && value->n == 2)
		st = fail(err, FETTLE_INVALID, "2 numbers, need 1 or %d", CHANNELS);
	for (i = 0; i < CHANNELS && !st; i++)
		out[i] = value->v[value->n == 1 ? 0 : i];
	return st;
}

static enum fettle_status set_std(struct resize_crop *own, const struct transform_value *value,
				  struct err *err)
{
	enum fettle_status st = set_channels(value, own->std, err);
	size_t i;

	own->has_std = true;
	for (i = 0; i < CHANNELS && !st; i++)
		if (!(own->std[i] > 0))
			st = fail(err, FETTLE_INVALID, "%g, need a positive number", own->std[i]);
	return st;
}

static enum fettle_status set_word(const struct transform_value *value, const char *no, const char *yes,
				   bool *out, struct err *err)
{
	if (!value->text || (strcmp(value->text, no) != 0 && strcmp(value->text, yes) != 0))
		return fail(err, FETTLE_INVALID, "%s, need %s or %s", value->text ? value->text : "a number",
			    no, yes);
	*out = strcmp(value->text, yes) == 0;
	return FETTLE_OK;
}

static enum fettle_status resize_crop_set(struct transform *t, const char *key,
					  const struct transform_value *value, struct err *err)
{
	struct resize_crop *own = TRANSFORM_OWN(struct resize_crop, t);
	enum fettle_status st;

	if (strcmp(key, "height") == 0)
		return transform_whole(value, 1, IMAGE_SIDE_MAX, &own->height, err);
	if (strcmp(key, "width") == 0)
		return transform_whole(value, 1, IMAGE_SIDE_MAX, &own->width, err);
	if (strcmp(key, "resize_side") == 0)
		return transform_whole(value, 1, IMAGE_SIDE_MAX, &own->side, err);
	if (strcmp(key, "random_crop") == 0)
		return transform_bool(value, &own->random_crop, err);
	if (strcmp(key, "slice_crop") == 0) /* how INC cuts the middle out, not what */
		return transform_bool(value, &own->slice_crop, err);
	if (strcmp(key, "random_flip_left_right") == 0)
		return transform_bool(value, &own->random_flip, err);
	if (strcmp(key, "resize_method") == 0)
		return interpolation_set(&own->method, value->text, err);
	if (strcmp(key, "subpixels") == 0)
		return set_word(value, "RGB", "BGR", &own->bgr, err);
	if (strcmp(key, "mean_value") == 0)
		return set_channels(value, own->mean, err);
	if (strcmp(key, "std_value") == 0)
		return set_std(own, value, err);
	if (strcmp(key, "scale") == 0) {
		st = transform_numbers(value, 1, 1, err);
		if (!st)
			own->scale = value->v[0];
		return st;
	}
	/* the images are read with their channels last, whatever the data had */
	return set_word(value, "channels_last", "channels_first", &own->first, err); /* data_format */
}

static const char *resize_crop_lacks(const struct transform *t)
{
	const struct resize_crop *own = TRANSFORM_READ(struct resize_crop, t);

	return !own->height ? "no height, need one" : !own->width ? "no width, need one" : NULL;
}

static bool resize_crop_random(const struct transform *t)
{
	const struct resize_crop *own = TRANSFORM_READ(struct resize_crop, t);

	return own->random_crop || own->random_flip;
}

static bool for_tensorflow(const struct transform *t)
{
	return t->dialect == DIALECT_TENSORFLOW;
}

/* The size before it is cropped. */
static enum fettle_status resized(const struct transform *t, struct tensor *shape, struct err *err)
{
	const struct resize_crop *own = TRANSFORM_READ(struct resize_crop, t);
	int64_t h = shape->dims[0], w = shape->dims[1];
	double scale = (double)own->side / (double)(h > w ? w : h);
	enum fettle_status st = shorter_side(t, shape, own->side, err);

	if (st || h < 0 || w < 0)
		return st;
	if (for_tensorflow(t)) { /* which rounds */
		shape->dims[0] = (int64_t)rint((double)h * scale);
		shape->dims[1] = (int64_t)rint((double)w * scale);
	}
	if (shape->dims[0] < own->height || shape->dims[1] < own->width)
		return fail(err, FETTLE_INVALID,
			    "cannot apply ResizeCropImagenet: resize_side %lld makes it %lld x %lld pixels, "
			    "need at least the %lld x %lld to be cut out",
			    (long long)own->side, (long long)shape->dims[1], (long long)shape->dims[0],
			    (long long)own->width, (long long)own->height);
	return FETTLE_OK;
}

static enum fettle_status resize_crop_shape(const struct transform *t, struct tensor *shape, struct err *err)
{
	const struct resize_crop *own = TRANSFORM_READ(struct resize_crop, t);
	enum fettle_status st = transform_need_image(t, shape, err);
	struct tensor middle = *shape;
	char text[128];
	bool tf = for_tensorflow(t);

	if (st)
		return st;
	if (shape->rank != 3 || (shape->dims[2] >= 0 && shape->dims[2] != CHANNELS))
		return fail(err, FETTLE_INVALID,
			    "cannot apply ResizeCropImagenet: shape %s, need %d channels",
			    tensor_shape_text(shape, text, sizeof(text)), CHANNELS);
	st = image_check_sides(shape->dims[0], shape->dims[1], t->kind->name, err);
	if (!st)
		st = resized(t, &middle, err);
	shape->dtype = DT_F32;
	shape->dims[tf ? 0 : 1] = own->height;
	shape->dims[tf ? 1 : 2] = own->width;
	shape->dims[tf ? 2 : 0] = CHANNELS;
	return st;
}

static void put_pixels(const struct transform *t, const struct tensor *image, int64_t top, int64_t left,
		       bool flip, float *out)
{
	static const double imagenet_std[CHANNELS] = { 0.229, 0.224, 0.225 };
	const struct resize_crop *own = TRANSFORM_READ(struct resize_crop, t);
	int64_t y, x, c, from, to;
	bool tf = for_tensorflow(t);

	for (y = 0; y < own->height; y++)
		for (x = 0; x < own->width; x++)
			for (c = 0; c < CHANNELS; c++) {
				double std = own->has_std ? own->std[c] : tf ? 1 : imagenet_std[c], value;

				from = ((top + y) * image->dims[1] + left + (flip ? own->width - 1 - x : x)) *
					       CHANNELS +
				       (own->bgr ? CHANNELS - 1 - c : c);
				to = tf ? (y * own->width + x) * CHANNELS + c
					: (c * own->height + y) * own->width + x;
				value = tensor_get(image, (size_t)from) / (tf ? 1 : 255);
				out[to] = (float)((value - own->mean[c]) / std * own->scale);
			}
}

static enum fettle_status resize_crop_apply(const struct transform *t, const struct tensor *src,
					    struct buffer *dst, struct err *err)
{
	const struct resize_crop *own = TRANSFORM_READ(struct resize_crop, t);
	struct rng r = transform_rng(t, src);
	struct buffer middle = { .cap = 0 };
	struct tensor shape = *src;
	int64_t top, left;
	enum fettle_status st;
	bool flip;

	st = resized(t, &shape, err);
	if (!st)
		st = buffer_shape(&middle, for_tensorflow(t) ? DT_F32 : src->dtype, 3, shape.dims,
				  "a resized image", err);
	if (!st)
		st = image_resize(src, own->method, &middle.t, err);
	if (st)
		goto out;
	top = shape.dims[0] - own->height;
	left = shape.dims[1] - own->width;
	top = own->random_crop ? (int64_t)rng_below(&r, (uint64_t)top + 1) : top / 2;
	left = own->random_crop ? (int64_t)rng_below(&r, (uint64_t)left + 1) : left / 2;
	flip = own->random_flip && rng_below(&r, 2);
	put_pixels(t, &middle.t, top, left, flip, dst->t.data);
out:
	buffer_release(&middle);
	return st;
}

static const struct idle_key idle_keys[] = {
	{ "slice_crop", "it says how INC cuts the middle out, not what" },
	{ "data_format", "images are read with their channels last" },
	{ NULL, NULL },
};

const struct transform_kind transform_resize_crop_imagenet = {
	.name = "ResizeCropImagenet",
	.summary = "the shorter side to resize_side (256), then the middle height x width; (x / 255 - "
		   "mean_value) / std_value * scale, channels first; for TensorFlow (x - mean_value) * "
		   "scale, channels last",
	.keys = { "height", "width", "resize_side", "random_crop", "random_flip_left_right", "resize_method",
		  "subpixels", "mean_value", "std_value", "scale", "data_format", "slice_crop" },
	.idle = idle_keys,
	.random = resize_crop_random,
	.init = resize_crop_init,
	.set = resize_crop_set,
	.lacks = resize_crop_lacks,
	.shape = resize_crop_shape,
	.apply = resize_crop_apply,
};
