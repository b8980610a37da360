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

enum { LANES = 16 };

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

void grid_codes(struct grid g, int top, const float *restrict x, int64_t n, uint8_t *restrict codes)
{
	const float inverse = 1 / g.scale, shift = (float)g.zero + 0.5f, most = (float)top + 0.5f;
	int64_t i;

	for (i = 0; i < n; i++) {
		float v = x[i] * inverse + shift;

		v = v > 0 ? v : 0;
		v = v < most ? v : most;
		codes[i] = (uint8_t)(int32_t)v;
	}
}
