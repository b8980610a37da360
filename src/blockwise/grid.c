#include "blockwise/grid.h"

#include <float.h>
#include <math.h>

/*
 * Symmetric: the end farther from 0 gets code 0, which the other side has no equal of; the scale is negative where that
 * is the upper end.
 */
struct grid grid_of_range(float least, float most, const struct block_format *f)
{
	const int top = grid_top(f), half = 1 << (f->bits - 1);
	struct grid g = { 1, half };
	float scale;

	if (f->symmetric)
		scale = (-least >= most ? least : most) / (float)-half;
	else
		scale = most / (float)top - least / (float)top;
	if (fabsf(scale) < FLT_MIN)
		return g;
	g.scale = scale;
	if (!f->symmetric)
		g.zero = (int)fminf(rintf(-least / scale), (float)top);
	return g;
}

enum { LANES = 16 }; /* that the compiler makes vectors of */

void grid_range(const float *x, int64_t n, float *least, float *most)
{
	float lo[LANES] = { 0 }, hi[LANES] = { 0 };
	int64_t i = 0;
	int j;

	for (; i + LANES <= n; i += LANES)
		for (j = 0; j < LANES; j++) {
			lo[j] = x[i + j] < lo[j] ? x[i + j] : lo[j];
			hi[j] = x[i + j] > hi[j] ? x[i + j] : hi[j];
		}
	for (j = 0; i < n; i++, j++) {
		lo[j] = x[i] < lo[j] ? x[i] : lo[j];
		hi[j] = x[i] > hi[j] ? x[i] : hi[j];
	}
	*least = lo[0];
	*most = hi[0];
	for (j = 1; j < LANES; j++) {
		*least = lo[j] < *least ? lo[j] : *least;
		*most = hi[j] > *most ? hi[j] : *most;
	}
}

/* x to the nearest code, for x / scale + zero + 0.5 */
static inline int32_t code_of(float v, float most)
{
	v = v > 0 ? v : 0;
	v = v < most ? v : most;
	return (int32_t)v;
}

void grid_codes(struct grid g, int top, const float *restrict x, int64_t n, uint8_t *restrict codes)
{
	const float inverse = 1 / g.scale, shift = (float)g.zero + 0.5f, most = (float)top + 0.5f;
	int64_t i;

	for (i = 0; i < n; i++)
		codes[i] = (uint8_t)code_of(x[i] * inverse + shift, most);
}

float grid_error(struct grid g, int top, const float *x, int64_t n)
{
	const float inverse = 1 / g.scale, shift = (float)g.zero + 0.5f, most = (float)top + 0.5f;
	float lanes[LANES] = { 0 }, sum = 0;
	int64_t i = 0;
	int j;

	for (; i + LANES <= n; i += LANES)
		for (j = 0; j < LANES; j++) {
			const int32_t code = code_of(x[i + j] * inverse + shift, most);
			const float off = (float)(code - g.zero) * g.scale - x[i + j];

			lanes[j] += off * off;
		}
	for (; i < n; i++) {
		const float off = (float)(code_of(x[i] * inverse + shift, most) - g.zero) * g.scale - x[i];

		sum += off * off;
	}
	for (j = 0; j < LANES; j++)
		sum += lanes[j];
	return sum;
}

/* Symmetric grids may be wider than the range, too: the end without a code of its own then has one. */
struct grid grid_clipped(const float *x, int64_t n, const struct block_format *f)
{
	enum { STEPS = 32 };
	const int top = grid_top(f);
	struct grid best, g;
	float least, most, error, e;
	int i;

	grid_range(x, n, &least, &most);
	best = grid_of_range(least, most, f);
	error = grid_error(best, top, x, n);
	if (error == 0)
		return best;
	for (i = 0; i < STEPS; i++) {
		const float widest = f->symmetric ? 1.2f : 1, part = widest * (1 - 0.02f * (float)i);

		g = grid_of_range(least * part, most * part, f);
		e = grid_error(g, top, x, n);
		if (e < error) {
			error = e;
			best = g;
		}
	}
	return best;
}

void grid_each_block(const float *w, struct block_weight *out, grid_fit fit)
{
	const struct block_format *f = &out->format;
	const int64_t blocks = block_count(f, out->k);
	int64_t row, b;

	for (row = 0; row < out->n; row++)
		for (b = 0; b < blocks; b++) {
			const int64_t at = row * out->k + b * f->block, left = out->k - b * f->block;
			const struct grid g =
				fit(w + at, left < f->block ? left : f->block, f, out->codes + at);

			out->scales[row * blocks + b] = g.scale;
			out->zeros[row * blocks + b] = (uint8_t)g.zero;
		}
}
