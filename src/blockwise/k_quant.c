/*
 * As llama.cpp's k-quants choose scale and minimum: codes for several step sizes around min-max; for each, scale and
 * minimum by weighted least squares, where large weights count more. Here the minimum must be a whole number of
 * steps, so that least squares is solved again for the scale with the zero point rounded, and codes and scale are then
 * fitted in turn.
 */
#include "blockwise/grid.h"

#include <float.h>
#include <math.h>

enum { MAX_BLOCK = 256, STEPS = 20, TURNS = 4 };

struct sums {
	double w, l, ll, x, xl;
};

static struct sums sums_of(const float *x, const float *weight, int64_t n, const uint8_t *codes, int zero)
{
	struct sums s = { 0 };
	int64_t i;

	for (i = 0; i < n; i++) {
		const double w = (double)weight[i], l = codes[i] - zero, wl = w * l, v = (double)x[i];

		s.w += w;
		s.l += wl;
		s.ll += wl * l;
		s.x += w * v;
		s.xl += wl * v;
	}
	return s;
}

static bool usable(double scale)
{
	return fabs(scale) >= (double)FLT_MIN && fabs(scale) <= (double)FLT_MAX;
}

/* the zero point by least squares for scale and minimum; then what is nearest to it as an integer */
static int best_zero(const struct sums *s, int top, int otherwise)
{
	const double d = s->w * s->ll - s->l * s->l;
	const double scale = (s->w * s->xl - s->x * s->l) / d, least = (s->ll * s->x - s->l * s->xl) / d;

	if (!(d > 0) || !usable(scale) || !isfinite(least / scale))
		return otherwise;
	return (int)fmin(fmax(rint(-least / scale), 0), top);
}

static double weighted_error(const float *x, const float *weight, int64_t n, const uint8_t *codes,
			     struct grid g)
{
	double sum = 0;
	int64_t i;

	for (i = 0; i < n; i++) {
		const double off = (double)((float)(codes[i] - g.zero) * g.scale - x[i]);

		sum += (double)weight[i] * off * off;
	}
	return sum;
}

/* from a grid: its codes, the scale (and zero point) they want, their codes, until that is as often as it pays */
static double refine(const float *x, const float *weight, int64_t n, const struct block_format *f,
		     struct grid *g, uint8_t *codes)
{
	double least = INFINITY;
	struct grid next = *g;
	int turn;

	for (turn = 0; turn <= TURNS; turn++) {
		struct sums s;
		double error;

		grid_codes(next, grid_top(f), x, n, codes);
		error = weighted_error(x, weight, n, codes, next);
		if (!(error < least))
			break;
		least = error;
		*g = next;
		if (!f->symmetric) {
			s = sums_of(x, weight, n, codes, 0);
			next.zero = best_zero(&s, grid_top(f), next.zero);
		}
		s = sums_of(x, weight, n, codes, next.zero);
		if (!(s.ll > 0) || !usable(s.xl / s.ll))
			break;
		next.scale = (float)(s.xl / s.ll);
	}
	return least;
}

static struct grid fit(const float *x, int64_t n, const struct block_format *f, uint8_t *codes)
{
	float least, most, weight[MAX_BLOCK], rms = 0;
	struct grid best, g;
	double error, e;
	int64_t i;
	int step;

	grid_range(x, n, &least, &most);
	best = grid_of_range(least, most, f);
	if (least != most) {
		for (i = 0; i < n; i++)
			rms += (x[i] / (most - least)) * (x[i] / (most - least));
		rms = sqrtf(rms / (float)n);
		for (i = 0; i < n; i++)
			weight[i] = rms + fabsf(x[i] / (most - least));
		error = refine(x, weight, n, f, &best, codes);
		for (step = 0; step < STEPS && error > 0; step++) {
			const float widest = f->symmetric ? 1.2f : 1.05f,
				    part = widest * (1 - 0.02f * (float)step);

			g = grid_of_range(least * part, most * part, f);
			e = refine(x, weight, n, f, &g, codes);
			if (e < error) {
				error = e;
				best = g;
			}
		}
	}
	grid_codes(best, grid_top(f), x, n, codes);
	return best;
}

const struct block_method block_k_quant = {
	.name = "k_quant",
	.summary = "scale and zero point by least squares in which large weights count more",
	.fit = fit,
};
