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
/* the sum of the squared differences that leaves */
float grid_error(struct grid g, int top, const float *x, int64_t n);
/* the grid of part of the range that makes this least; no part is better than all of it where x is on its grid */
struct grid grid_clipped(const float *x, int64_t n, const struct block_format *f);

/* FETTLE_INVALID where what the method needs of it is missing or not finite. */
enum fettle_status seen_check(const struct block_method *m, const struct block_seen *seen, int64_t k,
			      struct err *err);

/* Block by block: fit() chooses the grid of x [n], and the codes. */
typedef struct grid (*grid_fit)(const float *x, int64_t n, const struct block_format *f, uint8_t *codes);
void grid_each_block(const float *w, struct block_weight *out, grid_fit fit);

#endif
