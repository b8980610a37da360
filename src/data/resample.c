/*
 * Resizing, one axis after the other: every output column (then row) is a weighted sum of a few input
 * ones. Coordinates are those of pixel centres: output i lies at (i + 0.5) * in / out - 0.5 of the
 * input, and positions beyond the edge take the edge's pixel. `area` weighs input pixels by how much of them
 * an output pixel covers, as OpenCV does; where one side grows, it interpolates between two instead.
 */
#include "data/resample.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "data/buffer.h"

/* What each position along one axis is made of: n input positions with their weights. */
struct taps {
	int n;
	int64_t *at;
	float *w;
};

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

/* TensorFlow's further kernels: how far they reach, and what they are at a distance. */
static double kernel_radius(enum interpolation how)
{
	return how == INTERPOLATE_LANCZOS3   ? 3
	       : how == INTERPOLATE_LANCZOS5 ? 5
	       : how == INTERPOLATE_GAUSSIAN ? 1.5
					     : 2;
}

static double kernel(enum interpolation how, double x)
{
	const double radius = kernel_radius(how), pi = acos(-1);

	x = fabs(x);
	if (x > radius)
		return 0;
	if (how == INTERPOLATE_GAUSSIAN) /* its standard deviation is a third of that */
		return exp(-x * x / (2 * (radius / 3) * (radius / 3)));
	if (how != INTERPOLATE_MITCHELL)
		return x <= 1e-3 ? 1 : radius * sin(pi * x) * sin(pi * x / radius) / (pi * pi * x * x);
	return x < 1 ? ((7.0 / 6 * x - 2) * x) * x + 8.0 / 9
		     : ((-7.0 / 18 * x + 2) * x - 10.0 / 3) * x + 16.0 / 9;
}

static int64_t clamp(int64_t x, int64_t n)
{
	return x < 0 ? 0 : x >= n ? n - 1 : x;
}

static void nearest_tap(const struct taps *t, int64_t i, int64_t in, int64_t out)
{
	t->at[i] = i * in / out;
	t->w[i] = 1;
}

static void linear_tap(const struct taps *t, int64_t i, int64_t in, int64_t base, double frac)
{
	t->at[2 * i] = clamp(base, in);
	t->at[2 * i + 1] = clamp(base + 1, in);
	t->w[2 * i] = (float)(1 - frac);
	t->w[2 * i + 1] = (float)frac;
}

static void cubic_tap(const struct taps *t, int64_t i, int64_t in, int64_t base, double frac)
{
	int k;

	for (k = 0; k < 4; k++) {
		t->at[4 * i + k] = clamp(base - 1 + k, in);
		t->w[4 * i + k] = (float)cubic(frac + 1 - k);
	}
}

/* where the image grows: an output pixel lies in one input pixel, or across two */
static void grown_tap(const struct taps *t, int64_t i, int64_t in, int64_t out)
{
	int64_t base = i * in / out;
	double frac = (double)(i + 1) - (double)((base + 1) * out) / (double)in;

	linear_tap(t, i, in, base, frac <= 0 ? 0 : frac - floor(frac));
}

static void area_tap(const struct taps *t, int64_t i, int64_t in, int64_t out)
{
	double first = (double)i * (double)in / (double)out, end = (double)(i + 1) * (double)in / (double)out;
	int64_t base = (int64_t)floor(first);
	int k;

	for (k = 0; k < t->n; k++) {
		double from = fmax(first, (double)(base + k)), to = fmin(end, (double)(base + k + 1));

		t->at[t->n * i + k] = clamp(base + k, in);
		t->w[t->n * i + k] = (float)(to > from ? (to - from) / (end - first) : 0);
	}
}

/* positions beyond the edge are left out, the others get their share */
static void kernel_tap(const struct taps *t, enum interpolation how, int64_t i, int64_t in, double x)
{
	const int64_t first = (int64_t)ceil(x - kernel_radius(how));
	double sum = 0;
	int k;

	for (k = 0; k < t->n; k++)
		if (first + k >= 0 && first + k < in)
			sum += kernel(how, x - (double)(first + k));
	for (k = 0; k < t->n; k++) {
		const bool inside = first + k >= 0 && first + k < in;

		t->at[t->n * i + k] = clamp(first + k, in);
		t->w[t->n * i + k] = inside ? (float)(kernel(how, x - (double)(first + k)) / sum) : 0;
	}
}

static int taps_needed(enum interpolation how, bool grows, int64_t in, int64_t out)
{
	switch (how) {
	case INTERPOLATE_NEAREST:
		return 1;
	case INTERPOLATE_BICUBIC:
		return 4;
	case INTERPOLATE_AREA:
		return grows ? 2 : (int)(in / out) + 2;
	case INTERPOLATE_BILINEAR:
		return 2;
	default:
		return 2 * (int)ceil(kernel_radius(how)) + 1;
	}
}

static enum fettle_status make_taps(enum interpolation how, bool grows, int64_t in, int64_t out,
				    struct taps *t, struct err *err)
{
	enum fettle_status st;
	int64_t i, base;
	double x;

	t->n = taps_needed(how, grows, in, out);
	st = mem_try(&t->at, (size_t)out, (size_t)t->n * sizeof(*t->at), "an image to resize", err);
	if (!st)
		st = mem_try(&t->w, (size_t)out, (size_t)t->n * sizeof(*t->w), "an image to resize", err);
	for (i = 0; i < out && !st; i++) {
		x = ((double)i + 0.5) * (double)in / (double)out - 0.5;
		base = (int64_t)floor(x);
		if (how == INTERPOLATE_NEAREST)
			nearest_tap(t, i, in, out);
		else if (how == INTERPOLATE_BILINEAR)
			linear_tap(t, i, in, base, x - (double)base);
		else if (how == INTERPOLATE_BICUBIC)
			cubic_tap(t, i, in, base, x - (double)base);
		else if (how != INTERPOLATE_AREA)
			kernel_tap(t, how, i, in, x);
		else if (grows)
			grown_tap(t, i, in, out);
		else
			area_tap(t, i, in, out);
	}
	return st;
}

/* One input row of floats -> one row of the new width. */
static void squeeze_row(const float *src, float *dst, const struct taps *taps, int64_t w, int64_t c)
{
	int64_t x, k;
	int j;

	for (x = 0; x < w; x++, dst += c) {
		for (k = 0; k < c; k++) {
			float sum = 0;

			for (j = 0; j < taps->n; j++)
				sum += taps->w[x * taps->n + j] * src[taps->at[x * taps->n + j] * c + k];
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
	bool whole = !dtype_is_float(dst->dtype);
	int64_t i;

	for (i = 0; i < n; i++)
		tensor_set(dst, (size_t)(y * n + i), whole ? rint((double)row[i]) : (double)row[i]);
}

enum fettle_status image_resize(const struct tensor *src, enum interpolation how, struct tensor *dst,
				struct err *err)
{
	int64_t h = src->dims[0], w = src->dims[1], c = src->rank == 3 ? src->dims[2] : 1;
	int64_t out_h = dst->dims[0], out_w = dst->dims[1], n = out_w * c, y, i;
	bool grows = out_h > h || out_w > w;
	struct taps across = { .n = 0 }, down = { .n = 0 };
	float *row = NULL, *squeezed = NULL;
	enum fettle_status st;
	int j;

	st = make_taps(how, grows, w, out_w, &across, err);
	if (!st)
		st = make_taps(how, grows, h, out_h, &down, err);
	if (!st)
		st = mem_try(&row, (size_t)(w > out_w ? w : out_w), (size_t)c * sizeof(*row), "an image row",
			     err);
	if (!st)
		st = mem_try(&squeezed, (size_t)h, (size_t)n * sizeof(*squeezed), "an image to resize", err);
	if (st)
		goto out;
	for (y = 0; y < h; y++) {
		load_row(src, y, w * c, row);
		squeeze_row(row, squeezed + y * n, &across, out_w, c);
	}
	for (y = 0; y < out_h; y++) {
		memset(row, 0, (size_t)n * sizeof(*row));
		for (j = 0; j < down.n; j++)
			for (i = 0; i < n; i++)
				row[i] += down.w[y * down.n + j] * squeezed[down.at[y * down.n + j] * n + i];
		store_row(dst, y, n, row);
	}
out:
	free(across.at);
	free(across.w);
	free(down.at);
	free(down.w);
	free(row);
	free(squeezed);
	return st;
}

void image_crop(const struct tensor *src, int64_t top, int64_t left, struct tensor *dst)
{
	size_t pixel = dtype_size(src->dtype) * (size_t)(src->rank == 3 ? src->dims[2] : 1);
	size_t row = (size_t)dst->dims[1] * pixel;
	unsigned char *to = dst->data;
	int64_t y;

	for (y = 0; y < dst->dims[0]; y++, to += row)
		memcpy(to, (unsigned char *)src->data + (size_t)((top + y) * src->dims[1] + left) * pixel,
		       row);
}

enum fettle_status image_crop_resize(const struct tensor *src, int64_t top, int64_t left, int64_t height,
				     int64_t width, enum interpolation how, bool pillow, struct tensor *dst,
				     struct err *err)
{
	int64_t dims[TENSOR_RANK_MAX];
	struct buffer part = { .cap = 0 };
	enum fettle_status st;

	memcpy(dims, src->dims, sizeof(dims));
	dims[0] = height;
	dims[1] = width;
	st = buffer_shape(&part, src->dtype, src->rank, dims, "a part of an image", err);
	if (!st) {
		image_crop(src, top, left, &part.t);
		st = pillow ? image_resize_pillow(&part.t, how, dst, err)
			    : image_resize(&part.t, how, dst, err);
	}
	buffer_release(&part);
	return st;
}

enum fettle_status interpolation_set(enum interpolation *out, const char *text, struct err *err)
{
	static const char *const names[] = {
		[INTERPOLATE_BILINEAR] = "bilinear", [INTERPOLATE_NEAREST] = "nearest",
		[INTERPOLATE_BICUBIC] = "bicubic",   [INTERPOLATE_AREA] = "area",
		[INTERPOLATE_LANCZOS3] = "lanczos3", [INTERPOLATE_LANCZOS5] = "lanczos5",
		[INTERPOLATE_GAUSSIAN] = "gaussian", [INTERPOLATE_MITCHELL] = "mitchellcubic",
	};
	size_t i;

	for (i = 0; text && i < ARRAY_LEN(names); i++) {
		if (strcmp(text, names[i]) == 0) {
			*out = (enum interpolation)i;
			return FETTLE_OK;
		}
	}
	return fail(
		err, FETTLE_INVALID,
		"%s, need bilinear, nearest, bicubic, area, lanczos3, lanczos5, gaussian or mitchellcubic",
		text ? text : "a number");
}

enum fettle_status image_check_sides(int64_t h, int64_t w, const char *name, struct err *err)
{
	if (!h || !w || h > IMAGE_SIDE_MAX || w > IMAGE_SIDE_MAX)
		return fail(err, FETTLE_INVALID, "cannot apply %s: %lld x %lld pixels, need 1 to %d a side",
			    name, (long long)h, (long long)w, IMAGE_SIDE_MAX);
	return FETTLE_OK;
}
