/*
 * GPTQ (Frantar et al. 2022, arXiv:2210.17323). One weight after the other is rounded, and those not yet rounded make up
 * for the error in the outputs: with the gram matrix G = R'R, the error (q - w)'G(q - w) is the sum of squares of
 * R (q - w), which from the last row up has one new weight in each. So no inverse is needed.
 *
 * When a block is reached, its weights have become what makes up best for all errors so far; its grid is that part
 * of their range (of several) with which rounding them in turn leaves the least error.
 *
 * Rows of the weight are done side by side, PANEL at a time: [inputs, rows], so that loops run over rows. What
 * earlier blocks have left is summed up for CHUNK inputs at once.
 */
#include "blockwise/grid.h"

#include <cblas.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "blockwise/factor.h"
#include "tensor/blas.h"

enum { PANEL = 128, CHUNK = 128, PARTS = 10, MAX_BLOCK = 256 };

/* A panel at work. */
struct panel {
	const struct factor *f;
	const struct block_format *format;
	int64_t rows;
	float *w, *e; /* [k, PANEL]: the weights; rounded minus these */
	float *carry; /* [CHUNK or MAX_BLOCK, PANEL]: sum of R e so far */
	float *target, *q,
		*at; /* [MAX_BLOCK, PANEL]: of a block: what its weights have become; rounded; the next to be */
};

/* grids of a block, for each row */
struct grids {
	float scale[PANEL], inverse[PANEL], zero[PANEL], error[PANEL];
};

/*
 * Rounds the target of the block at place b, and gets the error. Sums that vanish where a row's grid holds the
 * target.
 */
static void round_block(struct panel *p, int64_t b, struct grids *g)
{
	const int64_t first = p->f->first[b], n = p->f->first[b + 1] - first, k = p->f->k;
	const float top = (float)grid_top(p->format);
	int64_t i, j, r;

	memcpy(p->at, p->target, (size_t)n * PANEL * sizeof(float));
	memset(g->error, 0, sizeof(g->error));
	for (j = n - 1; j >= 0; j--) {
		const float *column = p->f->r + first * k + first + j, diagonal = column[j * k];
		const float *at = p->at + j * PANEL, *target = p->target + j * PANEL;
		float *q = p->q + j * PANEL, off[PANEL];

		for (r = 0; r < PANEL; r++) {
			float code = at[r] * g->inverse[r] + g->zero[r] + 0.5f, left;

			code = code > 0 ? code : 0;
			code = code < top + 0.5f ? code : top + 0.5f;
			q[r] = ((float)(int32_t)code - g->zero[r]) * g->scale[r];
			left = (q[r] - at[r]) * diagonal;
			g->error[r] += left * left;
			off[r] = q[r] - target[r];
		}
		for (i = 0; i < j; i++) {
			const float by = column[i * k] / p->f->r[(first + i) * (k + 1)];
			float *next = p->at + i * PANEL;

			for (r = 0; r < PANEL; r++)
				next[r] -= by * off[r];
		}
	}
}

static void set_grid(struct grids *g, int64_t row, struct grid x)
{
	g->scale[row] = x.scale;
	g->inverse[row] = 1 / x.scale;
	g->zero[row] = (float)x.zero;
}

/* the grid of each row with the least error, as far as parts of the target's range go; rounds to it */
static void choose_grids(struct panel *p, int64_t b, struct grids *best)
{
	const int64_t n = p->f->first[b + 1] - p->f->first[b];
	float least[PANEL], most[PANEL];
	struct grids g = { .scale = { 0 } };
	int64_t i, r;
	int part;

	memset(least, 0, sizeof(least));
	memset(most, 0, sizeof(most));
	for (i = 0; i < n; i++)
		for (r = 0; r < PANEL; r++) {
			const float x = p->target[i * PANEL + r];

			least[r] = x < least[r] ? x : least[r];
			most[r] = x > most[r] ? x : most[r];
		}
	for (part = 0; part < PARTS; part++) {
		const float share = p->format->symmetric ? 1.15f - 0.05f * (float)(part == 0   ? 3
										   : part == 3 ? 0
											       : part)
							 : 1 - 0.05f * (float)part;

		for (r = 0; r < PANEL; r++)
			set_grid(&g, r, grid_of_range(least[r] * share, most[r] * share, p->format));
		round_block(p, b, &g);
		for (r = 0; r < PANEL; r++)
			if (part == 0 || g.error[r] < best->error[r]) {
				best->scale[r] = g.scale[r];
				best->inverse[r] = g.inverse[r];
				best->zero[r] = g.zero[r];
				best->error[r] = g.error[r];
			}
	}
	round_block(p, b, best);
}

/* codes, scales and zero points of a block, to where they belong */
static void keep_block(const struct panel *p, int64_t b, const struct grids *g, int64_t row,
		       struct block_weight *out)
{
	const int64_t first = p->f->first[b], n = p->f->first[b + 1] - first;
	int64_t i, r;

	for (r = 0; r < p->rows; r++) {
		out->scales[(row + r) * p->f->blocks + p->f->block[b]] = g->scale[r];
		out->zeros[(row + r) * p->f->blocks + p->f->block[b]] = (uint8_t)g->zero[r];
		for (i = 0; i < n; i++)
			out->codes[(row + r) * p->f->k + p->f->input[first + i]] =
				(uint8_t)(p->q[i * PANEL + r] * g->inverse[r] + g->zero[r] + 0.5f);
	}
}

/* carry[inputs from, to) += R[.., begin to end) e[begin to end) */
static void carry_over(struct panel *p, int64_t chunk, int64_t to, int64_t begin, int64_t end, float beta)
{
	const int k = (int)p->f->k;

	if (to > chunk && (end > begin || beta == 0))
		cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, (int)(to - chunk), PANEL,
			    (int)(end - begin), 1, p->f->r + chunk * k + begin, k, p->e + begin * PANEL,
			    PANEL, beta, p->carry, PANEL);
}

static void do_block(struct panel *p, int64_t b, int64_t chunk, int64_t row, struct block_weight *out)
{
	const int64_t first = p->f->first[b], n = p->f->first[b + 1] - first, k = p->f->k;
	struct grids g = { .scale = { 0 } };
	int64_t i;

	memcpy(p->target, p->carry + (first - chunk) * PANEL, (size_t)n * PANEL * sizeof(float));
	cblas_strsm(CblasRowMajor, CblasLeft, CblasUpper, CblasNoTrans, CblasNonUnit, (int)n, PANEL, -1,
		    p->f->r + first * (k + 1), (int)k, p->target, PANEL);
	for (i = 0; i < n * PANEL; i++)
		p->target[i] += p->w[first * PANEL + i];
	choose_grids(p, b, &g);
	for (i = 0; i < n * PANEL; i++)
		p->e[first * PANEL + i] = p->q[i] - p->w[first * PANEL + i];
	keep_block(p, b, &g, row, out);
	carry_over(p, chunk, first, first, first + n, 1);
}

static void do_panel(struct panel *p, const float *w, int64_t row, struct block_weight *out)
{
	const int64_t k = p->f->k;
	int64_t i, r, b, from;

	memset(p->w, 0, (size_t)k * PANEL * sizeof(float));
	for (i = 0; i < k; i++)
		for (r = 0; r < p->rows; r++)
			p->w[i * PANEL + r] = w[(row + r) * k + p->f->input[i]];
	for (b = p->f->blocks; b > 0;) {
		const int64_t end = p->f->first[b];

		for (from = b - 1; from > 0 && end - p->f->first[from - 1] <= CHUNK;)
			from--;
		carry_over(p, p->f->first[from], end, end, k, 0);
		while (b > from)
			do_block(p, --b, p->f->first[from], row, out);
	}
}

static enum fettle_status quantize(const float *w, const struct block_seen *seen, struct block_weight *out,
				   struct err *err)
{
	struct factor f = { .k = 0 };
	struct panel p = { .f = &f, .format = &out->format };
	const size_t inputs = (size_t)out->k, row = PANEL * sizeof(float);
	enum fettle_status st;
	int64_t i;

	blas_single_begin();
	st = factor_init(&f, seen->gram, out->k, &out->format, err);
	if (!st)
		st = mem_try(&p.w, inputs, row, "the weights of some outputs", err);
	if (!st)
		st = mem_try(&p.e, inputs, row, "the errors of some weights", err);
	if (st)
		goto out;
	p.carry = xcalloc(MAX_BLOCK, row);
	p.target = xcalloc(MAX_BLOCK, row);
	p.q = xcalloc(MAX_BLOCK, row);
	p.at = xcalloc(MAX_BLOCK, row);
	for (i = 0; i < out->n; i += PANEL) {
		p.rows = out->n - i < PANEL ? out->n - i : PANEL;
		do_panel(&p, w, i, out);
	}
out:
	blas_single_end();
	factor_release(&f);
	free(p.w);
	free(p.e);
	free(p.carry);
	free(p.target);
	free(p.q);
	free(p.at);
	return st;
}

const struct block_method block_gptq = {
	.name = "gptq",
	.summary = "one weight after the other, the rest making up for its error in the outputs",
	.needs = BLOCK_NEEDS_GRAM,
	.quantize = quantize,
};
