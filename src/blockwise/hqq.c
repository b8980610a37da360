/*
 * Half-quadratic quantization (Badri and Shaji 2023): the error in the norm of p = 3/4, in which a few large errors
 * count for less than in squares. An auxiliary error e takes what shrinkage leaves of x - q; scale and zero point are
 * then least squares for x - e; in turns, with e held closer each time. The zero point is rounded to an integer in each
 * turn; it ends when the norm falls no more.
 */
#include "blockwise/grid.h"

#include <float.h>
#include <math.h>

enum { MAX_BLOCK = 256, TURNS = 20 };

/* x^p of x >= 0, for p = 3/4: by roots, which processors have */
static inline float power(float x)
{
	return sqrtf(x * sqrtf(x));
}

/* in units of the block's largest weight */
static float norm(const float *x, int64_t n, const uint8_t *codes, struct grid g, float unit)
{
	const float by = 1 / unit;
	float each[MAX_BLOCK], sum = 0;
	int64_t i;

	for (i = 0; i < n; i++)
		each[i] = power(fabsf((float)(codes[i] - g.zero) * g.scale - x[i]) * by);
	for (i = 0; i < n; i++)
		sum += each[i];
	return sum;
}

/* what the auxiliary error of a weight that is off by so much is: shrinkage for that norm */
static inline float shrink(float off, float beta)
{
	const float size = fabsf(off), left = size - 1 / (beta * sqrtf(sqrtf(size + FLT_MIN)));

	return left > 0 ? copysignf(left, off) : 0;
}

static bool step(const float *x, int64_t n, const struct block_format *f, const uint8_t *codes, float unit,
		 float beta, struct grid *g)
{
	const float by = 1 / unit, inverse = 1 / g->scale;
	float target[MAX_BLOCK], zero = 0, xl = 0, ll = 0;
	int64_t i;

	for (i = 0; i < n; i++) {
		const float off = (x[i] - (float)(codes[i] - g->zero) * g->scale) * by;

		target[i] = x[i] - unit * shrink(off, beta);
	}
	for (i = 0; i < n && !f->symmetric; i++)
		zero += (float)codes[i] - target[i] * inverse;
	if (!f->symmetric)
		g->zero = (int)fminf(fmaxf(rintf(zero / (float)n), 0), (float)grid_top(f));
	for (i = 0; i < n; i++) {
		const float l = (float)(codes[i] - g->zero);

		xl += target[i] * by * l;
		ll += l * l;
	}
	if (!(ll > 0) || !(fabsf(xl / ll * unit) >= FLT_MIN))
		return false;
	g->scale = xl / ll * unit;
	return true;
}

static struct grid fit(const float *x, int64_t n, const struct block_format *f, uint8_t *codes)
{
	float least, most, unit, beta = 10;
	struct grid best, g;
	float error, e;
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
		if (!(e < error))
			break;
		error = e;
		best = g;
	}
	grid_codes(best, grid_top(f), x, n, codes);
	return best;
}

const struct block_method block_hqq = {
	.name = "hqq",
	.summary = "scale and zero point by half-quadratic splitting, which tolerates outliers",
	.fit = fit,
};
