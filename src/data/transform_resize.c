/*
 * Resizing, one axis after the other: every output column (then row) is a weighted sum of a few input
 * ones. Coordinates are those of pixel centres: output i lies at (i + 0.5) * in / out - 0.5 of the
 * input, and positions beyond the edge take the edge's pixel.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "data/transform_kind.h"

enum { TAPS_MAX = 4 };
static const int64_t SIDE_MAX = 1 << 16;

struct tap {
	int n;
	int64_t at[TAPS_MAX];
	float w[TAPS_MAX];
};

enum interpolation { INTERPOLATE_BILINEAR, INTERPOLATE_NEAREST, INTERPOLATE_BICUBIC };

struct resize {
	struct image_size size;
	enum interpolation interpolation;
};
TRANSFORM_FITS(struct resize);

static enum fettle_status resize_set(struct transform *t, const char *key,
				     const struct transform_value *value, struct err *err)
{
	static const char *const names[] = {
		[INTERPOLATE_BILINEAR] = "bilinear",
		[INTERPOLATE_NEAREST] = "nearest",
		[INTERPOLATE_BICUBIC] = "bicubic",
	};
	size_t i;

	if (strcmp(key, "size") == 0)
		return image_size_set(&TRANSFORM_OWN(struct resize, t)->size, value, err);
	for (i = 0; value->text && i < ARRAY_LEN(names); i++) {
		if (strcmp(value->text, names[i]) == 0) {
			TRANSFORM_OWN(struct resize, t)->interpolation = (enum interpolation)i;
			return FETTLE_OK;
		}
	}
	return fail(err, FETTLE_INVALID, "%s, need bilinear, nearest or bicubic",
		    value->text ? value->text : "a number");
}

static const char *resize_lacks(const struct transform *t)
{
	return TRANSFORM_READ(struct resize, t)->size.n ? NULL : "no size, need one";
}

static enum fettle_status resize_shape(const struct transform *t, struct tensor *shape, struct err *err)
{
	enum fettle_status st = transform_need_image(t, shape, err);
	const struct image_size *to = &TRANSFORM_READ(struct resize, t)->size;
	int64_t h = shape->dims[0], w = shape->dims[1], size = to->v[0];

	if (st)
		return st;
	if (!h || !w || h > SIDE_MAX || w > SIDE_MAX)
		return fail(err, FETTLE_INVALID,
			    "cannot apply Resize: %lld x %lld pixels, need 1 to %lld a side", (long long)h,
			    (long long)w, (long long)SIDE_MAX);
	if (to->n == 2) {
		shape->dims[0] = to->v[0];
		shape->dims[1] = to->v[1];
	} else if (h < 0 || w < 0) {
		shape->dims[0] = shape->dims[1] = -1;
	} else {
		int64_t less = h < w ? h : w;

		shape->dims[0] = h == less ? size : size * h / less;
		shape->dims[1] = w == less ? size : size * w / less;
		if (shape->dims[0] > SIDE_MAX || shape->dims[1] > SIDE_MAX)
			return fail(err, FETTLE_INVALID,
				    "cannot apply Resize: %lld x %lld pixels would be %lld x %lld, at most "
				    "%lld a side",
				    (long long)h, (long long)w, (long long)shape->dims[0],
				    (long long)shape->dims[1], (long long)SIDE_MAX);
	}
	return FETTLE_OK;
}

/* Keys' cubic with a = -0.75, as OpenCV and PyTorch have it. */
static double cubic(double x)
{
	const double a = -0.75;

	x = fabs(x);
	if (x <= 1)
		return ((a + 2) * x - (a + 3)) * x * x + 1;
	if (x < 2)
		return ((a * x - 5 * a) * x + 8 * a) * x - 4 * a;
	return 0;
}

static int64_t clamp(int64_t x, int64_t n)
{
	return x < 0 ? 0 : x >= n ? n - 1 : x;
}

static struct tap tap_at(enum interpolation how, int64_t i, int64_t in, int64_t out)
{
	double x = ((double)i + 0.5) * (double)in / (double)out - 0.5;
	int64_t base = (int64_t)floor(x);
	double frac = x - (double)base;
	struct tap tap = { .n = 1 };
	int k;

	switch (how) {
	case INTERPOLATE_NEAREST:
		tap.at[0] = i * in / out;
		tap.w[0] = 1;
		break;
	case INTERPOLATE_BILINEAR:
		tap.n = 2;
		for (k = 0; k < 2; k++) {
			tap.at[k] = clamp(base + k, in);
			tap.w[k] = (float)(k ? frac : 1 - frac);
		}
		break;
	case INTERPOLATE_BICUBIC:
		tap.n = 4;
		for (k = 0; k < 4; k++) {
			tap.at[k] = clamp(base - 1 + k, in);
			tap.w[k] = (float)cubic(frac + 1 - k);
		}
		break;
	}
	return tap;
}

static enum fettle_status make_taps(enum interpolation how, int64_t in, int64_t out, struct tap **taps,
				    struct err *err)
{
	enum fettle_status st = mem_try(taps, (size_t)out, sizeof(**taps), "an image to resize", err);
	int64_t i;

	for (i = 0; i < out && !st; i++)
		(*taps)[i] = tap_at(how, i, in, out);
	return st;
}

/* One input row of floats -> one row of the new width. */
static void squeeze_row(const float *src, float *dst, const struct tap *taps, int64_t w, int64_t c)
{
	int64_t x, k;
	int j;

	for (x = 0; x < w; x++, dst += c) {
		for (k = 0; k < c; k++) {
			float sum = 0;

			for (j = 0; j < taps[x].n; j++)
				sum += taps[x].w[j] * src[taps[x].at[j] * c + k];
			dst[k] = sum;
		}
	}
}

static void load_row(const struct tensor *src, int64_t y, int64_t n, float *row)
{
	int64_t i;

	if (src->dtype == DT_U8) {
		const uint8_t *p = (const uint8_t *)src->data + y * n;

		for (i = 0; i < n; i++)
			row[i] = p[i];
		return;
	}
	for (i = 0; i < n; i++)
		row[i] = (float)tensor_get(src, (size_t)(y * n + i));
}

static void store_row(struct tensor *dst, int64_t y, int64_t n, const float *row)
{
	bool whole =
		dst->dtype != DT_F32 && dst->dtype != DT_F64 && dst->dtype != DT_F16 && dst->dtype != DT_BF16;
	int64_t i;

	for (i = 0; i < n; i++)
		tensor_set(dst, (size_t)(y * n + i), whole ? rint((double)row[i]) : (double)row[i]);
}

static enum fettle_status resize_apply(const struct transform *t, const struct tensor *src,
				       struct buffer *dst, struct err *err)
{
	const enum interpolation how = TRANSFORM_READ(struct resize, t)->interpolation;
	int64_t h = src->dims[0], w = src->dims[1], c = src->rank == 3 ? src->dims[2] : 1;
	int64_t out_h = dst->t.dims[0], out_w = dst->t.dims[1], n = out_w * c, y, i;
	struct tap *across = NULL, *down = NULL;
	float *row = NULL, *squeezed = NULL;
	enum fettle_status st;
	int j;

	st = make_taps(how, w, out_w, &across, err);
	if (!st)
		st = make_taps(how, h, out_h, &down, err);
	if (!st)
		st = mem_try(&row, (size_t)(w > out_w ? w : out_w), (size_t)c * sizeof(*row), "an image row",
			     err);
	if (!st)
		st = mem_try(&squeezed, (size_t)h, (size_t)n * sizeof(*squeezed), "an image to resize", err);
	if (st)
		goto out;
	for (y = 0; y < h; y++) {
		load_row(src, y, w * c, row);
		squeeze_row(row, squeezed + y * n, across, out_w, c);
	}
	for (y = 0; y < out_h; y++) {
		memset(row, 0, (size_t)n * sizeof(*row));
		for (j = 0; j < down[y].n; j++)
			for (i = 0; i < n; i++)
				row[i] += down[y].w[j] * squeezed[down[y].at[j] * n + i];
		store_row(&dst->t, y, n, row);
	}
out:
	free(across);
	free(down);
	free(row);
	free(squeezed);
	return st;
}

const struct transform_kind transform_resize = {
	.name = "Resize",
	.keys = { "size", "interpolation" },
	.set = resize_set,
	.lacks = resize_lacks,
	.shape = resize_shape,
	.apply = resize_apply,
};
