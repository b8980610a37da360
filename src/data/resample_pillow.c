/*
 * Resizing as Pillow does it, to the bit: where an image shrinks, the filter is stretched so that every input pixel counts. Weights have
 * 22 bits, and what is between the two axes is rounded to pixels.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "data/resample.h"

enum { WEIGHT_BITS = 22 };

/* What each position along one axis is made of: n input positions from `first` on, with their weights. */
struct axis {
	int most;
	int64_t *first, *n;
	int32_t *w; /* `most` for each position */
};

static double filter(enum interpolation how, double x)
{
	x = fabs(x);
	if (how == INTERPOLATE_BILINEAR)
		return x < 1 ? 1 - x : 0;
	return x < 1 ? (1.5 * x - 2.5) * x * x + 1 : x < 2 ? ((-0.5 * x + 2.5) * x - 4) * x + 2 : 0;
}

static void fill_axis(struct axis *a, enum interpolation how, int64_t in, int64_t out, double *w)
{
	const double scale = (double)in / (double)out, stretch = scale < 1 ? 1 : scale,
		     reach = (how == INTERPOLATE_BILINEAR ? 1 : 2) * stretch;
	int64_t i, k;

	for (i = 0; i < out; i++) {
		const double centre = ((double)i + 0.5) * scale;
		const double from = centre - reach + 0.5, to = centre + reach + 0.5;
		double sum = 0;

		a->first[i] = from < 0 ? 0 : (int64_t)from;
		a->n[i] = (to > (double)in ? in : (int64_t)to) - a->first[i];
		for (k = 0; k < a->n[i]; k++)
			sum += w[k] = filter(how, ((double)(k + a->first[i]) - centre + 0.5) / stretch);
		for (k = 0; k < a->n[i]; k++)
			a->w[i * a->most + k] =
				(int32_t)(w[k] / sum * (1 << WEIGHT_BITS) + (w[k] / sum < 0 ? -0.5 : 0.5));
	}
}

static enum fettle_status make_axis(struct axis *a, enum interpolation how, int64_t in, int64_t out,
				    struct err *err)
{
	const double scale = (double)in / (double)out;
	enum fettle_status st;
	double *w = NULL;

	a->most = (int)ceil((how == INTERPOLATE_BILINEAR ? 1 : 2) * (scale < 1 ? 1 : scale)) * 2 + 1;
	st = mem_try(&a->first, (size_t)out, sizeof(*a->first), "an image to resize", err);
	if (!st)
		st = mem_try(&a->n, (size_t)out, sizeof(*a->n), "an image to resize", err);
	if (!st)
		st = mem_try(&a->w, (size_t)out, (size_t)a->most * sizeof(*a->w), "an image to resize", err);
	if (!st)
		st = mem_try(&w, (size_t)a->most, sizeof(*w), "an image to resize", err);
	if (!st)
		fill_axis(a, how, in, out, w);
	free(w);
	return st;
}

static void axis_release(struct axis *a)
{
	free(a->first);
	free(a->n);
	free(a->w);
}

static unsigned char clip(int64_t x)
{
	x >>= WEIGHT_BITS;
	return (unsigned char)(x < 0 ? 0 : x > 255 ? 255 : x);
}

/* Position i of an axis, for n values that lie side by side; input positions are `step` apart. */
static void weigh(const struct axis *a, int64_t i, const unsigned char *src, int64_t step, int64_t n,
		  unsigned char *dst)
{
	const int32_t *w = a->w + i * a->most;
	int64_t x, k;

	src += a->first[i] * step;
	for (x = 0; x < n; x++) {
		int64_t sum = (int64_t)1 << (WEIGHT_BITS - 1);

		for (k = 0; k < a->n[i]; k++)
			sum += (int64_t)w[k] * src[k * step + x];
		dst[x] = clip(sum);
	}
}

/* Positions are added up, as Pillow does it, so that their rounding is the same. */
static void take_nearest(const struct tensor *src, struct tensor *dst, int64_t c)
{
	const double down = (double)src->dims[0] / (double)dst->dims[0],
		     across = (double)src->dims[1] / (double)dst->dims[1];
	const unsigned char *from = src->data;
	unsigned char *to = dst->data;
	double sy = down / 2, sx;
	int64_t y, x;

	for (y = 0; y < dst->dims[0]; y++, sy += down)
		for (x = 0, sx = across / 2; x < dst->dims[1]; x++, sx += across, to += c) {
			const int64_t row = sy < (double)src->dims[0] ? (int64_t)sy : src->dims[0] - 1,
				      column = sx < (double)src->dims[1] ? (int64_t)sx : src->dims[1] - 1;

			memcpy(to, from + (row * src->dims[1] + column) * c, (size_t)c);
		}
}

enum fettle_status image_resize_pillow(const struct tensor *src, enum interpolation how, struct tensor *dst,
				       struct err *err)
{
	const int64_t h = src->dims[0], w = src->dims[1], c = src->rank == 3 ? src->dims[2] : 1;
	const int64_t out_h = dst->dims[0], out_w = dst->dims[1];
	struct axis across = { .most = 0 }, down = { .most = 0 };
	unsigned char *middle = NULL;
	enum fettle_status st;
	int64_t y, x;

	if (src->dtype != DT_U8 || dst->dtype != DT_U8 ||
	    (how != INTERPOLATE_BILINEAR && how != INTERPOLATE_BICUBIC && how != INTERPOLATE_NEAREST))
		return image_resize(src, how, dst, err);
	if (how == INTERPOLATE_NEAREST) {
		take_nearest(src, dst, c);
		return FETTLE_OK;
	}
	st = make_axis(&across, how, w, out_w, err);
	if (!st)
		st = make_axis(&down, how, h, out_h, err);
	if (!st)
		st = mem_try(&middle, (size_t)h, (size_t)(out_w * c), "an image to resize", err);
	for (y = 0; y < h && !st; y++)
		for (x = 0; x < out_w; x++)
			weigh(&across, x, (const unsigned char *)src->data + y * w * c, c, c,
			      middle + (y * out_w + x) * c);
	for (y = 0; y < out_h && !st; y++)
		weigh(&down, y, middle, out_w * c, out_w * c, (unsigned char *)dst->data + y * out_w * c);
	axis_release(&across);
	axis_release(&down);
	free(middle);
	return st;
}
