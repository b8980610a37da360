/* Round to nearest, between the least and the greatest weight of each block. */
#include "blockwise/grid.h"

static enum fettle_status quantize(const float *w, const struct block_seen *seen, struct block_weight *out,
				   struct err *err)
{
	const struct block_format *f = &out->format;
	const int64_t blocks = block_count(f, out->k);
	int64_t row, b;

	(void)seen;
	(void)err;
	for (row = 0; row < out->n; row++)
		for (b = 0; b < blocks; b++) {
			const int64_t at = row * out->k + b * f->block, left = out->k - b * f->block;
			const int64_t n = left < f->block ? left : f->block;
			float least, most;
			struct grid g;

			grid_range(w + at, n, &least, &most);
			g = grid_of_range(least, most, f);
			grid_codes(g, grid_top(f), w + at, n, out->codes + at);
			out->scales[row * blocks + b] = g.scale;
			out->zeros[row * blocks + b] = (uint8_t)g.zero;
		}
	return FETTLE_OK;
}

const struct block_method block_rtn = {
	.name = "rtn",
	.summary = "round to nearest, between the extremes of each block",
	.quantize = quantize,
};
