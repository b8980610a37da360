/*
 * GPTQ (Frantar et al. 2022, arXiv:2210.17323). One weight after the other is rounded, and those not yet rounded make up
 * for the error in the outputs: with the gram matrix G = R'R, the error (q - w)'G(q - w) is the sum of squares of
 * R (q - w), which from the last row up has one new weight in each. So no inverse is needed.
 *
 * When a block is reached, its weights have become what makes up best for all errors so far. Its grid is chosen by
 * rounding them in turn with several (babai.h), and fitted to their codes by least squares.
 *
 * PANEL outputs are done side by side. What the blocks done so far have left is summed up for CHUNK inputs at once.
 */
#include "blockwise/babai.h"

#include <cblas.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "blockwise/factor.h"
#include "tensor/blas.h"

enum { CHUNK = 128 };

/* A panel at work. */
struct panel {
	const struct factor *f;
	int64_t rows;
	float *w, *e; /* [k, PANEL]: the weights; rounded minus these */
	float *carry; /* [MAX_BLOCK, PANEL]: sum of R e so far, of a chunk */
	struct babai b;
};

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
				babai_code(g, r, p->b.q[i * PANEL + r]);
	}
}

/* the carry of the inputs from `chunk` to `to` += (or, with beta 0, =) R e of those from `begin` to `end` */
static void carry_over(struct panel *p, int64_t chunk, int64_t to, int64_t begin, int64_t end, float beta)
{
	const int k = (int)p->f->k;

	if (to > chunk)
		cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, (int)(to - chunk), PANEL,
			    (int)(end - begin), 1, p->f->r + chunk * k + begin, k, p->e + begin * PANEL,
			    PANEL, beta, p->carry, PANEL);
}

static void do_block(struct panel *p, int64_t b, int64_t chunk, int64_t row, struct block_weight *out)
{
	const int64_t first = p->f->first[b], n = p->f->first[b + 1] - first, k = p->f->k;
	float *target = p->b.target, *w = p->w + first * PANEL, *e = p->e + first * PANEL;
	struct grids g = { .scale = { 0 } };
	int64_t i;

	p->b.r = p->f->r + first * (k + 1);
	p->b.ld = k;
	p->b.n = n;
	memcpy(target, p->carry + (first - chunk) * PANEL, (size_t)n * PANEL * sizeof(float));
	cblas_strsm(CblasRowMajor, CblasLeft, CblasUpper, CblasNoTrans, CblasNonUnit, (int)n, PANEL, -1,
		    p->b.r, (int)k, target, PANEL);
	for (i = 0; i < n * PANEL; i++)
		target[i] += w[i];
	for (i = 0; i < PANEL; i++)
		g.error[i] = INFINITY;
	babai_choose(&p->b, &g);
	babai_refine(&p->b, &g);
	for (i = 0; i < n * PANEL; i++)
		e[i] = p->b.q[i] - w[i];
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
	struct panel p = { .f = &f };
	const size_t inputs = (size_t)out->k, row = PANEL * sizeof(float);
	enum fettle_status st;
	int64_t i;

	blas_single_begin();
	st = factor_init(&f, seen, out->k, &out->format, err);
	if (!st)
		st = mem_try(&p.w, inputs, row, "the weights of some outputs", err);
	if (!st)
		st = mem_try(&p.e, inputs, row, "the errors of some weights", err);
	if (st)
		goto out;
	p.carry = xcalloc(MAX_BLOCK, row);
	babai_init(&p.b, &out->format);
	for (i = 0; i < out->n; i += PANEL) {
		p.rows = out->n - i < PANEL ? out->n - i : PANEL;
		do_panel(&p, w, i, out);
	}
out:
	blas_single_end();
	factor_release(&f);
	babai_release(&p.b);
	free(p.w);
	free(p.e);
	free(p.carry);
	return st;
}

const struct block_method block_gptq = {
	.name = "gptq",
	.summary = "one weight after the other, the rest making up for its error in the outputs",
	.needs = BLOCK_NEEDS_GRAM,
	.quantize = quantize,
};
