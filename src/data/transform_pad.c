/* A border around an image. */
#include <string.h>
#include <strings.h>

#include "data/resample.h"
#include "data/transform_kind.h"

enum pad_mode { PAD_CONSTANT, PAD_EDGE, PAD_REFLECT, PAD_SYMMETRIC };

struct pad {
	int64_t before[2], after[2]; /* rows, columns */
	double fill[4];
	size_t n_fill; /* one for all channels, or one each */
	enum pad_mode mode;
	bool given;
};
TRANSFORM_FITS(struct pad);

/* n for all sides; [columns, rows]; or [left, top, right, bottom] */
static enum fettle_status set_padding(struct pad *own, const struct transform_value *value, struct err *err)
{
	enum fettle_status st = transform_numbers(value, 1, 4, err);
	size_t i;

	if (!st && value->n == 3)
		st = fail(err, FETTLE_INVALID, "3 numbers, need 1, 2 or 4");
	for (i = 0; i < value->n && !st; i++)
		if (value->v[i] < 0 || value->v[i] > IMAGE_SIDE_MAX ||
		    value->v[i] != (double)(int64_t)value->v[i])
			st = fail(err, FETTLE_INVALID, "%g, need a whole number from 0 to %d", value->v[i],
				  IMAGE_SIDE_MAX);
	if (st)
		return st;
	own->before[1] = (int64_t)value->v[0];
	own->before[0] = (int64_t)value->v[value->n > 1];
	own->after[1] = (int64_t)value->v[value->n == 4 ? 2 : 0];
	own->after[0] = (int64_t)value->v[value->n == 4 ? 3 : value->n > 1];
	own->given = true;
	return FETTLE_OK;
}

static enum fettle_status pad_set(struct transform *t, const char *key, const struct transform_value *value,
				  struct err *err)
{
	static const char *const modes[] = { "constant", "edge", "reflect", "symmetric" };
	struct pad *own = TRANSFORM_OWN(struct pad, t);
	enum fettle_status st;
	size_t i;

	if (strcmp(key, "padding") == 0)
		return set_padding(own, value, err);
	if (strcmp(key, "fill") == 0) {
		st = transform_numbers(value, 1, 4, err);
		if (!st) {
			memcpy(own->fill, value->v, value->n * sizeof(*own->fill));
			own->n_fill = value->n;
		}
		return st;
	}
	for (i = 0; i < sizeof(modes) / sizeof(*modes); i++)
		if (value->text && strcasecmp(value->text, modes[i]) == 0) {
			own->mode = (enum pad_mode)i;
			return FETTLE_OK;
		}
	return fail(err, FETTLE_INVALID, "%s, need constant, edge, reflect or symmetric",
		    value->text ? value->text : "a number");
}

static const char *pad_lacks(const struct transform *t)
{
	return TRANSFORM_READ(struct pad, t)->given ? NULL : "no padding, need one";
}

static enum fettle_status pad_shape(const struct transform *t, struct tensor *shape, struct err *err)
{
	const struct pad *own = TRANSFORM_READ(struct pad, t);
	enum fettle_status st = transform_need_image(t, shape, err);
	int64_t channels = shape->rank == 3 ? shape->dims[2] : 1, most;
	int i;

	if (!st && own->n_fill > 1 && channels >= 0 && own->n_fill != (size_t)channels)
		st = fail(err, FETTLE_INVALID, "cannot apply Pad: fill has %zu numbers for %lld channels",
			  own->n_fill, (long long)channels);
	for (i = 0; i < 2 && !st; i++) {
		if (shape->dims[i] < 0)
			continue;
		most = shape->dims[i] - (own->mode == PAD_REFLECT);
		if (own->mode >= PAD_REFLECT && (own->before[i] > most || own->after[i] > most))
			st = fail(
				err, FETTLE_INVALID,
				"cannot apply Pad: a border of %lld mirrored from %lld pixels, need at least "
				"as many",
				(long long)(own->before[i] > own->after[i] ? own->before[i] : own->after[i]),
				(long long)shape->dims[i]);
		shape->dims[i] += own->before[i] + own->after[i];
	}
	return st ? st : image_check_sides(shape->dims[0], shape->dims[1], "Pad", err);
}

/* Which of n pixels stands at i, which may lie outside; -1: the filling. */
static int64_t source(int64_t i, int64_t n, enum pad_mode mode)
{
	if (i >= 0 && i < n)
		return i;
	switch (mode) {
	case PAD_CONSTANT:
		return -1;
	case PAD_EDGE:
		return i < 0 ? 0 : n - 1;
	case PAD_REFLECT:
		return i < 0 ? -i : 2 * (n - 1) - i;
	default:
		return i < 0 ? -i - 1 : 2 * n - 1 - i;
	}
}

static enum fettle_status pad_apply(const struct transform *t, const struct tensor *src, struct buffer *dst,
				    struct err *err)
{
	const struct pad *own = TRANSFORM_READ(struct pad, t);
	const size_t channels = src->rank == 3 ? (size_t)src->dims[2] : 1,
		     pixel = channels * dtype_size(src->dtype);
	const unsigned char *from = src->data;
	unsigned char *to = dst->t.data;
	size_t at = 0, c;
	int64_t y, x, sy, sx;

	(void)err;
	for (y = 0; y < dst->t.dims[0]; y++)
		for (x = 0; x < dst->t.dims[1]; x++, at += channels) {
			sy = source(y - own->before[0], src->dims[0], own->mode);
			sx = source(x - own->before[1], src->dims[1], own->mode);
			if (sy >= 0 && sx >= 0)
				memcpy(to + at / channels * pixel,
				       from + (size_t)(sy * src->dims[1] + sx) * pixel, pixel);
			else
				for (c = 0; c < channels; c++)
					tensor_set(&dst->t, at + c, own->fill[own->n_fill > 1 ? c : 0]);
		}
	return FETTLE_OK;
}

const struct transform_kind transform_pad = {
	.name = "Pad",
	.summary = "a border of padding: all sides, [columns, rows] or [left, top, right, bottom]; fill; "
		   "padding_mode: constant, edge, reflect or symmetric",
	.keys = { "padding", "fill", "padding_mode" },
	.set = pad_set,
	.lacks = pad_lacks,
	.shape = pad_shape,
	.apply = pad_apply,
};
