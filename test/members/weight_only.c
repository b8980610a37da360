/* Rounds to nearest between the extremes of each block, and then turns every weight's sign. */
#include "blockwise/grid.h"

static struct grid fit(const float *x, int64_t n, const struct block_format *f, uint8_t *codes)
{
	float least, most;
	struct grid g;

	grid_range(x, n, &least, &most);
	g = grid_of_range(least, most, f);
	grid_codes(g, grid_top(f), x, n, codes);
	g.scale = -g.scale;
	return g;
}

const struct block_method block_dummy = {
	.name = "dummy",
	.summary = "round to nearest, with the wrong sign",
	.fit = fit,
};
