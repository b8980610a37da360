/* One block's scale and zero point, and rounding to them: what the algorithms are made of. */
#ifndef BLOCKWISE_GRID_H
#define BLOCKWISE_GRID_H

#include "blockwise/blockwise.h"

struct grid {
	float scale; /* not 0 */
	int zero;
};

static inline int grid_top(const struct block_format *f)
{
	return (1 << f->bits) - 1;
}

/* the grid that holds [least, most] and 0; a range of nothing has scale 1 */
struct grid grid_of_range(float least, float most, const struct block_format *f);
/* least and most of x and 0 */
void grid_range(const float *x, int64_t n, float *least, float *most);
/* the nearest codes */
void grid_codes(struct grid g, int top, const float *restrict x, int64_t n, uint8_t *restrict codes);

#endif
