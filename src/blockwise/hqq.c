/*
 * Half-quadratic quantization (Badri and Shaji 2023): the error in the norm of p = 0.7, in which a few large errors
 * count for less than in squares. An auxiliary error e takes what shrinkage leaves of x - q; scale and zero point are
 * then least squares for x - e; in turns, with e held closer each time. The zero point is rounded to an integer in each
 * turn, and the best turn by the norm is kept.
 */
#include "blockwise/grid.h"

#include <float.h>
#include <math.h>

enum { MAX_BLOCK = 256, TURNS = 20 };

static const float P = 0.7f;

/* in units of the block's largest weight */
static double norm(const float *x, int64_t n, const uint8_t *codes, struct grid g, float unit)
{
	double sum = 0;
	int64_t i;

	for (i = 0; i < n; i++)
		sum += (double)powf(fabsf((float)(codes[i] - g.zero) * g.scale - x[i]) / unit, P);
	return sum;
}

/* what the auxiliary errors are, given codes: shrinkage for the norm of p (in units of the largest weight) */
static float shrink(float off, float beta)
{
	const float size = fabsf(off), left = size - powf(size, P - 1) / beta;

	return size > 0 && left > 0 ? copysignf(left, off) : 0;
}

static bool step(const float *x, int64_t n, const struct block_format *f, const uint8_t *codes, float unit,
		 float beta, struct grid *g)
{
	float target[MAX_BLOCK];
	double zero = 0, xl = 0, ll = 0;
	int64_t i;

	for (i = 0; i < n; i++) {
		const float off = (x[i] - (float)(codes[i] - g->zero) * g->scale) / unit;

		target[i] = x[i] - unit * shrink(off, beta);
		zero += codes[i] - (double)(target[i] / g->scale);
	}
	if (!f->symmetric)
		g->zero = (int)fmin(fmax(rint(zero / (double)n), 0), grid_top(f));
	for (i = 0; i < n; i++) {
		const double l = codes[i] - g->zero;

		xl += (double)target[i] * l;
		ll += l * l;
	}
	if (!(ll > 0) || !(fabs(xl / ll) >= (double)FLT_MIN && fabs(xl / ll) <= (double)FLT_MAX))
		return false;
	g->scale = (float)(xl / ll);
	return true;
}

static struct grid fit(const float *x, int64_t n, const struct block_format *f, uint8_t *codes)
{
	float least, most, unit, beta = 10;
	struct grid best, g;
	double error, e;
	int turn;

	grid_range(x, n, &least, &most);
	best = g = grid_of_range(least, most, f);
	grid_codes(g, grid_top(f), x, n, codes);
	unit = fmaxf(-least, most);
	if (unit < FLT_MIN)
		return best;
	error = norm(x, n, codes, g, unit);
	for (turn = 0; turn < TURNS; turn++, beta *= 1.01f) {
		if (!step(x, n, f, codes, unit, beta, &g))
			break;
		grid_codes(g, grid_top(f), x, n, codes);
		e = norm(x, n, codes, g, unit);
		if (e < error) {
			error = e;
			best = g;
		}
	}
	grid_codes(best, grid_top(f), x, n, codes);
	return best;
}

const struct block_method block_hqq = {
	.name = "hqq",
	.summary = "scale and zero point by half-quadratic splitting, which tolerates outliers",
	.fit = fit,
};
