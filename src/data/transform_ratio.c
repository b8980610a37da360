/*
 * Detection models' resizing: larger until the shorter side has min_dim pixels, unless the longer one would have more than max_dim; then,
 * if asked for, a border makes it a square of max_dim, and moves the boxes of labels along.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "data/resample.h"
#include "data/transform_kind.h"

struct ratio {
	int64_t min_dim, max_dim; /* 0: none */
	bool padding;
	double fill;
};
TRANSFORM_FITS(struct ratio);

static void ratio_init(struct transform *t)
{
	struct ratio *own = TRANSFORM_OWN(struct ratio, t);

	own->min_dim = 800;
	own->max_dim = 1365;
}

static enum fettle_status ratio_set(struct transform *t, const char *key, const struct transform_value *value,
				    struct err *err)
{
	struct ratio *own = TRANSFORM_OWN(struct ratio, t);
	enum fettle_status st;

	if (strcmp(key, "padding") == 0)
		return transform_bool(value, &own->padding, err);
	if (strcmp(key, "constant_value") == 0) {
		st = transform_numbers(value, 1, 1, err);
		if (!st)
			own->fill = value->v[0];
		return st;
	}
	return transform_whole(value, 0, IMAGE_SIDE_MAX,
			       strcmp(key, "min_dim") == 0 ? &own->min_dim : &own->max_dim, err);
}

static const char *ratio_lacks(const struct transform *t)
{
	const struct ratio *own = TRANSFORM_READ(struct ratio, t);

	return own->padding && !own->max_dim ? "padding without max_dim, need one" : NULL;
}

/* The size before the border is added. Python rounds halves to even. */
static double resized(const struct ratio *own, int64_t h, int64_t w, int64_t size[2])
{
	double less = (double)(h < w ? h : w), more = (double)(h < w ? w : h), scale = 1;

	if (own->min_dim)
		scale = fmax(1, (double)own->min_dim / less);
	if (own->max_dim && rint(more * scale) > (double)own->max_dim)
		scale = (double)own->max_dim / more;
	size[0] = (int64_t)fmax(1, rint((double)h * scale));
	size[1] = (int64_t)fmax(1, rint((double)w * scale));
	return scale;
}

static enum fettle_status ratio_shape(const struct transform *t, struct tensor *shape, struct err *err)
{
	const struct ratio *own = TRANSFORM_READ(struct ratio, t);
	enum fettle_status st = transform_need_image(t, shape, err);

	if (!st)
		st = image_check_sides(shape->dims[0], shape->dims[1], t->kind->name, err);
	if (st)
		return st;
	if (own->padding)
		shape->dims[0] = shape->dims[1] = own->max_dim;
	else if (shape->dims[0] < 0 || shape->dims[1] < 0)
		shape->dims[0] = shape->dims[1] = -1;
	else
		resized(own, shape->dims[0], shape->dims[1], shape->dims);
	return image_check_sides(shape->dims[0], shape->dims[1], t->kind->name, err);
}

static enum fettle_status ratio_apply(const struct transform *t, const struct tensor *src, struct buffer *dst,
				      struct err *err)
{
	const struct ratio *own = TRANSFORM_READ(struct ratio, t);
	const size_t pixel = dtype_size(src->dtype) * (size_t)(src->rank == 3 ? src->dims[2] : 1);
	struct tensor part = *src;
	enum fettle_status st;
	size_t n, i;
	int64_t y, top, left;

	if (!own->padding)
		return image_resize(src, INTERPOLATE_BILINEAR, &dst->t, err);
	resized(own, src->dims[0], src->dims[1], part.dims);
	st = mem_try(&part.data, tensor_bytes(&part), 1, "a resized image", err);
	if (!st)
		st = image_resize(src, INTERPOLATE_BILINEAR, &part, err);
	n = (size_t)tensor_count(&dst->t);
	for (i = 0; i < n && !st; i++)
		tensor_set(&dst->t, i, own->fill);
	top = (own->max_dim - part.dims[0]) / 2;
	left = (own->max_dim - part.dims[1]) / 2;
	for (y = 0; y < part.dims[0] && !st; y++)
		memcpy((unsigned char *)dst->t.data + (size_t)((top + y) * own->max_dim + left) * pixel,
		       (unsigned char *)part.data + (size_t)(y * part.dims[1]) * pixel,
		       (size_t)part.dims[1] * pixel);
	free(part.data);
	return st;
}

static void ratio_boxes(const struct transform *t, const struct tensor *src, double box[4])
{
	const struct ratio *own = TRANSFORM_READ(struct ratio, t);
	int64_t size[2];
	double scale = resized(own, src->dims[0], src->dims[1], size);
	int i;

	for (i = 0; i < 4 && own->padding; i++)
		box[i] = (box[i] * (double)src->dims[i % 2] * scale +
			  (double)((own->max_dim - size[i % 2]) / 2)) /
			 (double)own->max_dim;
}

const struct transform_kind transform_ratio = {
	.name = "ResizeWithRatio",
	.summary = "larger until the shorter side has min_dim (800), the longer at most max_dim (1365); "
		   "padding: then a border of constant_value up to max_dim",
	.keys = { "min_dim", "max_dim", "padding", "constant_value" },
	.init = ratio_init,
	.set = ratio_set,
	.lacks = ratio_lacks,
	.shape = ratio_shape,
	.apply = ratio_apply,
	.boxes = ratio_boxes,
};
