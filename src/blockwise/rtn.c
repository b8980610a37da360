/* Round to nearest, between the least and the greatest weight of each block. */
#include "blockwise/grid.h"

static struct grid fit(const float *x, int64_t n, const struct block_format *f, uint8_t *codes)
{
	float least, most;
	struct grid g;

	grid_range(x, n, &least, &most);
	g = grid_of_range(least, most, f);
	grid_codes(g, grid_top(f), x, n, codes);
	return g;
}

const struct block_method block_rtn = {
	.name = "rtn",
	.summary = "round to nearest, between the extremes of each block",
	.fit = fit,
};
