/* Round to nearest, within the part of each block's range that gives the least squared error. */
#include "blockwise/grid.h"

static struct grid fit(const float *x, int64_t n, const struct block_format *f, uint8_t *codes)
{
	const struct grid g = grid_clipped(x, n, f);

	grid_codes(g, grid_top(f), x, n, codes);
	return g;
}

const struct block_method block_rtn_clip = {
	.name = "rtn_clip",
	.summary = "round to nearest, with the clipping that gives the least squared error",
	.fit = fit,
};
