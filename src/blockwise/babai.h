/*
 * Rounding of a block with care: q on a grid so that (q - t)'G(q - t) is small, for a target t and G = R'R of the block's
 * inputs. From the last weight to the first, each is rounded to where it makes up best for those before it (Babai's
 * nearest plane). PANEL outputs are done side by side: arrays are [inputs, PANEL], and loops run over outputs.
 */
#ifndef BLOCKWISE_BABAI_H
#define BLOCKWISE_BABAI_H

#include "blockwise/grid.h"

enum { PANEL = 128, MAX_BLOCK = 256 };

/* a grid for each output, and the error that rounding to it left */
struct grids {
	float scale[PANEL], inverse[PANEL], zero[PANEL], error[PANEL];
};

static inline void grids_set(struct grids *g, int64_t row, struct grid x)
{
	g->scale[row] = x.scale;
	g->inverse[row] = 1 / x.scale;
	g->zero[row] = (float)x.zero;
}

static inline void grids_take(struct grids *to, const struct grids *from, int64_t row)
{
	to->scale[row] = from->scale[row];
	to->inverse[row] = from->inverse[row];
	to->zero[row] = from->zero[row];
	to->error[row] = from->error[row];
}

struct babai {
	const struct block_format *format;
	const float *r; /* [n, n] of rows `ld` long, upper triangle */
	int64_t n, ld;
	float *target;         /* [n, PANEL] */
	float *q;              /* [n, PANEL]: rounded */
	float *scratch, *kept; /* [n, PANEL] */
};

void babai_init(struct babai *b, const struct block_format *f); /* room for a block */
void babai_release(struct babai *b);

/* The target to these grids. */
void babai_round(struct babai *b, struct grids *g);
/*
 * The best grids out of those that hold some part of the target's range, and the one in *best where its error is less
 * (INFINITY: there is none). Then q is rounded to it.
 */
void babai_choose(struct babai *b, struct grids *best);
/*
 * From q, rounded to *best: scale and zero point by least squares for its codes, then codes for those, in turns. What
 * has the least error is kept.
 */
void babai_refine(struct babai *b, struct grids *best);
/* The code of a rounded weight. */
static inline uint8_t babai_code(const struct grids *g, int64_t row, float q)
{
	return (uint8_t)(q * g->inverse[row] + g->zero[row] + 0.5f);
}

#endif
