/*
 * Our own: begins with what gptq gives, and then goes over the blocks again. gptq rounds each block as if those after it
 * could take any value; now all others are integers. With them held, the error is a quadratic function of the block's
 * weights, whose minimum is the target that the block is rounded to, again with a choice of grids, and with scale and
 * zero point by least squares for its codes. A block only changes where the error of the outputs becomes less, so
 * that falls until nothing changes.
 */
#include "blockwise/babai.h"

#include <cblas.h>
#include <lapacke.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "blockwise/factor.h"
#include "tensor/blas.h"

enum { CHUNK = 128, MAX_SWEEPS = 3 };
static const float WORTH =
	0.9999f; /* what is less than this of the error is better by more than rounding errors */

struct sweep {
	const struct block_seen *seen;
	const struct block_weight *out; /* where gptq's result is */
	int64_t k, block, blocks, rows;
	float *damping; /* [k] */
	int64_t *order; /* [k]: inputs of each block, the smallest first */
	float *r; /* [blocks, block, block]: the factor of each block's part of the gram matrix, in that order */
	float *w, *q;        /* [k, PANEL] */
	float *e;            /* [k, PANEL]: q - w */
	float *f;            /* [CHUNK or MAX_BLOCK, PANEL]: the gram matrix times e, of a chunk */
	float *move;         /* [MAX_BLOCK, PANEL] */
	struct grids *grids; /* of each block */
	struct babai b;
};

static int64_t block_size(const struct sweep *s, int64_t b)
{
	const int64_t left = s->k - b * s->block;

	return left < s->block ? left : s->block;
}

/* inputs of a block in order of size, by insertion */
static void order_block(struct sweep *s, int64_t b)
{
	int64_t *order = s->order + b * s->block, i, j;

	for (i = 0; i < block_size(s, b); i++) {
		const int64_t at = b * s->block + i;

		for (j = i;
		     j > 0 && s->seen->gram[order[j - 1] * (s->k + 1)] > s->seen->gram[at * (s->k + 1)]; j--)
			order[j] = order[j - 1];
		order[j] = at;
	}
}

static bool factor_block(struct sweep *s, int64_t b)
{
	const int64_t n = block_size(s, b), *order = s->order + b * s->block;
	float *r = s->r + b * s->block * s->block;
	int64_t i, j;

	for (i = 0; i < n; i++) {
		for (j = i; j < n; j++)
			r[i * n + j] = s->seen->gram[order[i] * s->k + order[j]];
		r[i * (n + 1)] += s->damping[order[i]];
	}
	return !LAPACKE_spotrf_work(LAPACK_COL_MAJOR, 'L', (lapack_int)n, r, (lapack_int)n);
}

/* rows of gptq's result into a panel */
static void load(struct sweep *s, const float *w, int64_t row)
{
	const struct block_weight *q = s->out;
	int64_t i, r, b;

	memset(s->w, 0, (size_t)s->k * PANEL * sizeof(float));
	memset(s->q, 0, (size_t)s->k * PANEL * sizeof(float));
	for (b = 0; b < s->blocks; b++)
		for (r = 0; r < PANEL; r++) {
			const int64_t at = (row + r) * s->blocks + b;
			const bool there = r < s->rows;

			s->grids[b].scale[r] = there ? q->scales[at] : 1;
			s->grids[b].inverse[r] = 1 / s->grids[b].scale[r];
			s->grids[b].zero[r] = there ? (float)q->zeros[at] : 0;
		}
	for (i = 0; i < s->k; i++) {
		const struct grids *g = &s->grids[i / s->block];

		for (r = 0; r < s->rows; r++) {
			s->w[i * PANEL + r] = w[(row + r) * s->k + i];
			s->q[i * PANEL + r] =
				((float)q->codes[(row + r) * s->k + i] - g->zero[r]) * g->scale[r];
		}
	}
	for (i = 0; i < s->k * PANEL; i++)
		s->e[i] = s->q[i] - s->w[i];
}

static void store(const struct sweep *s, int64_t row, struct block_weight *q)
{
	int64_t i, r, b;

	for (r = 0; r < s->rows; r++) {
		for (b = 0; b < s->blocks; b++) {
			q->scales[(row + r) * s->blocks + b] = s->grids[b].scale[r];
			q->zeros[(row + r) * s->blocks + b] = (uint8_t)s->grids[b].zero[r];
		}
		for (i = 0; i < s->k; i++)
			q->codes[(row + r) * s->k + i] =
				babai_code(&s->grids[i / s->block], r, s->q[i * PANEL + r]);
	}
}

/* what the block should be, given the others: q - G^-1 f; and the error that q leaves beyond that */
static void find_target(struct sweep *s, int64_t b, int64_t chunk, struct grids *g)
{
	const int64_t n = block_size(s, b), *order = s->order + b * s->block;
	float *t = s->b.target;
	int64_t i, r;

	s->b.r = s->r + b * s->block * s->block;
	s->b.ld = s->b.n = n;
	for (i = 0; i < n; i++)
		memcpy(t + i * PANEL, s->f + (order[i] - chunk) * PANEL, PANEL * sizeof(float));
	cblas_strsm(CblasRowMajor, CblasLeft, CblasUpper, CblasTrans, CblasNonUnit, (int)n, PANEL, 1, s->b.r,
		    (int)n, t, PANEL);
	memset(g->error, 0, sizeof(g->error));
	for (i = 0; i < n; i++)
		for (r = 0; r < PANEL; r++)
			g->error[r] += t[i * PANEL + r] * t[i * PANEL + r];
	cblas_strsm(CblasRowMajor, CblasLeft, CblasUpper, CblasNoTrans, CblasNonUnit, (int)n, PANEL, -1,
		    s->b.r, (int)n, t, PANEL);
	for (i = 0; i < n; i++)
		for (r = 0; r < PANEL; r++)
			t[i * PANEL + r] += s->q[order[i] * PANEL + r];
}

/* takes what was rounded where it is better; how far weights moved is in s->move */
static size_t take(struct sweep *s, int64_t b, const struct grids *now, const struct grids *then)
{
	const int64_t n = s->b.n, *order = s->order + b * s->block;
	struct grids *g = &s->grids[b];
	size_t moved = 0;
	int64_t i, r;

	memset(s->move, 0, (size_t)n * PANEL * sizeof(float));
	for (r = 0; r < PANEL; r++) {
		if (!(now->error[r] < WORTH * then->error[r]))
			continue;
		moved++;
		grids_take(g, now, r);
		for (i = 0; i < n; i++) {
			const int64_t at = order[i] * PANEL + r;
			const float q = s->b.q[i * PANEL + r];

			s->move[(order[i] - b * s->block) * PANEL + r] = q - s->q[at];
			s->q[at] = q;
			s->e[at] = q - s->w[at];
		}
	}
	return moved;
}

/* a block, of a chunk of so many inputs; returns how many outputs changed */
static size_t do_block(struct sweep *s, int64_t b, int64_t chunk, int64_t chunk_size)
{
	const int64_t first = b * s->block, n = block_size(s, b), k = s->k;
	struct grids old = s->grids[b], best;
	size_t moved;
	int64_t i;

	find_target(s, b, chunk, &old);
	best = old;
	babai_round(&s->b, &best);
	babai_choose(&s->b, &best);
	babai_refine(&s->b, &best);
	moved = take(s, b, &best, &old);
	if (!moved)
		return 0;
	cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, (int)chunk_size, PANEL, (int)n, 1,
		    s->seen->gram + chunk * k + first, (int)k, s->move, PANEL, 1, s->f, PANEL);
	for (i = 0; i < n; i++)
		cblas_saxpy(PANEL, s->damping[first + i], s->move + i * PANEL, 1,
			    s->f + (first + i - chunk) * PANEL, 1);
	return moved;
}

static void do_panel(struct sweep *s)
{
	const int64_t step = s->block < CHUNK ? CHUNK : s->block, k = s->k;
	size_t moved = 1;
	int sweep;
	int64_t chunk, b;

	for (sweep = 0; sweep < MAX_SWEEPS && moved; sweep++)
		for (chunk = moved = 0; chunk < k; chunk += step) {
			const int64_t n = k - chunk < step ? k - chunk : step;

			for (b = 0; b < n * PANEL; b++)
				s->f[b] = s->damping[chunk + b / PANEL] * s->e[chunk * PANEL + b];
			cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, (int)n, PANEL, (int)k, 1,
				    s->seen->gram + chunk * k, (int)k, s->e, PANEL, 1, s->f, PANEL);
			for (b = chunk / s->block; b * s->block < chunk + n; b++)
				moved += do_block(s, b, chunk, n);
		}
}

static enum fettle_status quantize(const float *w, const struct block_seen *seen, struct block_weight *out,
				   struct err *err)
{
	struct sweep s = { .seen = seen,
			   .out = out,
			   .k = out->k,
			   .block = out->format.block,
			   .blocks = block_count(&out->format, out->k) };
	const size_t inputs = (size_t)out->k, row = PANEL * sizeof(float);
	enum fettle_status st;
	int64_t i;

	blas_single_begin();
	st = block_gptq.quantize(w, seen, out, err);
	if (!st)
		st = mem_try(&s.w, inputs, row, "the weights of some outputs", err);
	if (!st)
		st = mem_try(&s.q, inputs, row, "the rounded weights of some outputs", err);
	if (!st)
		st = mem_try(&s.e, inputs, row, "the errors of some weights", err);
	if (!st)
		st = mem_try(&s.r, (size_t)(s.blocks * s.block * s.block), sizeof(float),
			     "the factors of a gram matrix", err);
	if (st)
		goto out;
	s.f = xcalloc(MAX_BLOCK, row);
	s.move = xcalloc(MAX_BLOCK, row);
	s.damping = xcalloc(inputs, sizeof(*s.damping));
	factor_damping(seen, out->k, s.damping);
	s.order = xcalloc(inputs, sizeof(*s.order));
	s.grids = xcalloc((size_t)s.blocks, sizeof(*s.grids));
	babai_init(&s.b, &out->format);
	for (i = 0; i < s.blocks; i++) {
		order_block(&s, i);
		if (!factor_block(&s, i))
			goto out; /* gptq's result stays */
	}
	for (i = 0; i < out->n; i += PANEL) {
		s.rows = out->n - i < PANEL ? out->n - i : PANEL;
		load(&s, w, i);
		do_panel(&s);
		store(&s, i, out);
	}
out:
	blas_single_end();
	babai_release(&s.b);
	free(s.w);
	free(s.q);
	free(s.e);
	free(s.r);
	free(s.f);
	free(s.move);
	free(s.damping);
	free(s.order);
	free(s.grids);
	return st;
}

const struct block_method block_gram = {
	.name = "gram",
	.summary = "gptq, and then each block again given all others, until nothing helps",
	.needs = BLOCK_NEEDS_GRAM,
	.quantize = quantize,
};
