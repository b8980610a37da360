/*
 * Structural similarity (Wang et al. 2004). An output whose last two dimensions are at least 7 long is taken as
 * images: windows of 7 x 7, all weighing the same, at every place they fit. Any other is one window. L, the range of
 * values, is that of b in the sample's output; variances are those of a sample, with n - 1.
 */
#include <math.h>
#include <stdlib.h>

#include "evaluate/metric_impl.h"

enum { WINDOW = 7 };

/* one sample of one output, as images */
struct planes {
	double *a, *b;
	size_t n, height, width;
};

static void read_all(const struct tensor *t, size_t at, size_t n, double *out)
{
	double v[METRIC_PIECE];
	size_t i, k, got;

	for (i = 0; i < n; i += got) {
		got = metric_read(t, at + i, n - i, v);
		for (k = 0; k < got; k++)
			out[i + k] = v[k];
	}
}

static double range_of(const struct planes *p)
{
	size_t n = p->n * p->height * p->width, i;
	double lo = INFINITY, hi = -INFINITY;

	for (i = 0; i < n; i++) {
		lo = fmin(lo, p->b[i]);
		hi = fmax(hi, p->b[i]);
	}
	return hi > lo ? hi - lo : 1;
}

/* of the window of h x w at `at`, in rows of `width` */
static double window_ssim(const struct planes *p, size_t at, size_t h, size_t w, double range)
{
	double n = (double)(h * w), a = 0, b = 0, aa = 0, bb = 0, ab = 0;
	double c1 = 0.01 * range * 0.01 * range, c2 = 0.03 * range * 0.03 * range;
	size_t y, x;

	for (y = 0; y < h; y++)
		for (x = 0; x < w; x++) {
			a += p->a[at + y * p->width + x];
			b += p->b[at + y * p->width + x];
		}
	a /= n;
	b /= n;
	for (y = 0; y < h; y++)
		for (x = 0; x < w; x++) {
			double da = p->a[at + y * p->width + x] - a, db = p->b[at + y * p->width + x] - b;

			aa += da * da;
			bb += db * db;
			ab += da * db;
		}
	if (n > 1) {
		aa /= n - 1;
		bb /= n - 1;
		ab /= n - 1;
	}
	return (2 * a * b + c1) * (2 * ab + c2) / ((a * a + b * b + c1) * (aa + bb + c2));
}

static void add_windows(const struct planes *p, double *sum, size_t *windows)
{
	bool images = p->height >= WINDOW && p->width >= WINDOW;
	size_t h = images ? WINDOW : p->height, w = images ? WINDOW : p->width, i, y, x;
	double range = range_of(p);

	for (i = 0; i < p->n; i++)
		for (y = 0; y + h <= p->height; y++)
			for (x = 0; x + w <= p->width; x++, ++*windows)
				*sum += window_ssim(p, (i * p->height + y) * p->width + x, h, w, range);
}

static double sample_ssim(const struct metric_batch *b, size_t row)
{
	bool labels = b->target == METRIC_LABELS;
	size_t n = labels ? 1 : b->n_outputs, i, windows = 0;
	double sum = 0;

	for (i = 0; i < n; i++) {
		const struct tensor *t = &b->outputs[i], *with = labels ? b->labels : &b->reference[i];
		size_t size = (size_t)tensor_count(t) / (size_t)t->dims[0];
		struct planes p = { xcalloc(size, sizeof(double)), xcalloc(size, sizeof(double)), 1, 1,
				    size };

		if (t->rank > 2 && t->dims[t->rank - 1] >= WINDOW && t->dims[t->rank - 2] >= WINDOW) {
			p.width = (size_t)t->dims[t->rank - 1];
			p.height = (size_t)t->dims[t->rank - 2];
			p.n = size / p.width / p.height;
		}
		read_all(t, row * size, size, p.a);
		read_all(with, row * size, size, p.b);
		if (size)
			add_windows(&p, &sum, &windows);
		free(p.a);
		free(p.b);
	}
	if (!windows)
		return 1;
	sum /= (double)windows;
	return sum > 1 ? 1 : sum < -1 ? -1 : sum; /* a NaN stays one */
}

static enum fettle_status ssim_scores(const struct metric *m, const struct metric_batch *b, double *scores,
				      struct err *err)
{
	enum fettle_status st = metric_check_pairs(m, b, err);
	size_t i;

	for (i = 0; !st && i < b->n_valid; i++)
		scores[i] = sample_ssim(b, i);
	return st;
}

const struct metric_type metric_type_ssim = {
	.name = "ssim",
	.summary = "mean over samples of the structural similarity",
	.needs = METRIC_EITHER,
	.higher_is_better = true,
	.is_mean = true,
	.score_min = -1,
	.score_max = 1,
	.scores = ssim_scores,
};
