#include "blockwise/factor.h"

#include <lapacke.h>
#include <math.h>
#include <stdlib.h>

#include "base/mem.h"

/* what is added to the diagonal at least and at most, as a share of it; and the share of its mean that is added beside that */
static const double LEAST = 0.01, MOST = 1e3, FLOOR = 1e-4;

/* sum over all pairs of their squared correlation */
static double squared_correlations(const float *gram, int64_t k)
{
	float *inverse = xcalloc((size_t)k, sizeof(*inverse));
	double sum = 0;
	int64_t i, j;

	for (i = 0; i < k; i++)
		inverse[i] = gram[i * (k + 1)] > 0 ? 1 / sqrtf(gram[i * (k + 1)]) : 0;
	for (i = 0; i < k; i++) {
		float row = 0;

		for (j = 0; j < k; j++) {
			const float c = gram[i * k + j] * inverse[i] * inverse[j];

			row += c * c;
		}
		sum += (double)row;
	}
	free(inverse);
	return sum;
}

/*
 * Of what so few rows show of correlations, some is chance. How much of the matrix should give way to its diagonal is
 * the oracle approximating shrinkage of Chen et al. 2010 (arXiv:0907.4698), of the correlation matrix; as what is
 * added to the diagonal in proportion to it.
 */
static double shrinkage(const struct block_seen *seen, int64_t k)
{
	const double p = (double)k, squares = squared_correlations(seen->gram, k), rows = (double)seen->rows;
	const double share =
		((1 - 2 / p) * squares + p * p) / ((rows + 1 - 2 / p) * fmax(squares - p, 1e-6 * p));

	return share < 0.999 ? fmax(share / (1 - share), LEAST) : MOST;
}

void factor_damping(const struct block_seen *seen, int64_t k, float *out)
{
	const double share = seen->rows > 0 ? shrinkage(seen, k) : LEAST;
	double mean = 0;
	int64_t i;

	for (i = 0; i < k; i++)
		mean += (double)seen->gram[i * (k + 1)] / (double)k;
	for (i = 0; i < k; i++)
		out[i] = mean > 0 ? (float)(share * (double)seen->gram[i * (k + 1)] + FLOOR * mean) : 1;
}

struct by_size {
	double size;
	int64_t at;
};

static int smaller_first(const void *a, const void *b)
{
	const struct by_size *x = a, *y = b;

	if (x->size != y->size)
		return x->size < y->size ? -1 : 1;
	return x->at < y->at ? -1 : 1;
}

static void find_order(struct factor *out, const float *gram, int64_t block)
{
	struct by_size *blocks = xcalloc((size_t)out->blocks, sizeof(*blocks)),
		       *inputs = xcalloc((size_t)block, sizeof(*inputs));
	const int64_t k = out->k;
	int64_t b, i;

	for (b = 0; b < out->blocks; b++)
		blocks[b].at = b;
	for (i = 0; i < k; i++)
		blocks[i / block].size += (double)gram[i * k + i];
	qsort(blocks, (size_t)out->blocks, sizeof(*blocks), smaller_first);
	for (b = 0; b < out->blocks; b++) {
		const int64_t from = blocks[b].at * block, n = k - from < block ? k - from : block;

		out->block[b] = blocks[b].at;
		out->first[b + 1] = out->first[b] + n;
		for (i = 0; i < n; i++)
			inputs[i] = (struct by_size){ (double)gram[(from + i) * k + from + i], from + i };
		qsort(inputs, (size_t)n, sizeof(*inputs), smaller_first);
		for (i = 0; i < n; i++)
			out->input[out->first[b] + i] = inputs[i].at;
	}
	free(blocks);
	free(inputs);
}

/* false: with so little damping it is not positive, as far as floats can tell */
static bool decompose(struct factor *f, const float *gram, const float *damping, float times)
{
	const int64_t k = f->k;
	int64_t i, j;

	for (i = 0; i < k; i++) {
		const float *row = gram + f->input[i] * k;

		for (j = i; j < k; j++)
			f->r[i * k + j] = row[f->input[j]];
		f->r[i * k + i] += times * damping[f->input[i]];
	}
	return !LAPACKE_spotrf_work(LAPACK_COL_MAJOR, 'L', (lapack_int)k, f->r, (lapack_int)k);
}

enum fettle_status factor_init(struct factor *out, const struct block_seen *seen, int64_t k,
			       const struct block_format *f, struct err *err)
{
	enum { TRIES = 8 };
	struct factor x = { .k = k, .blocks = block_count(f, k) };
	float times = 1, *damping;
	enum fettle_status st;
	int i;

	st = mem_try(&x.r, (size_t)(k * k), sizeof(float), "the factor of a gram matrix", err);
	if (st)
		return st;
	x.input = xcalloc((size_t)k, sizeof(*x.input));
	x.block = xcalloc((size_t)x.blocks, sizeof(*x.block));
	x.first = xcalloc((size_t)x.blocks + 1, sizeof(*x.first));
	damping = xcalloc((size_t)k, sizeof(*damping));
	factor_damping(seen, k, damping);
	find_order(&x, seen->gram, f->block);
	for (i = 0; i < TRIES && !decompose(&x, seen->gram, damping, times); i++)
		times *= 10;
	free(damping);
	if (i == TRIES) {
		factor_release(&x);
		return fail(
			err, FETTLE_INVALID,
			"cannot quantize a weight by what its input was: the gram matrix is none, it must be "
			"positive semidefinite");
	}
	*out = x;
	return FETTLE_OK;
}

void factor_release(struct factor *f)
{
	free(f->input);
	free(f->block);
	free(f->first);
	free(f->r);
	*f = (struct factor){ .k = 0 };
}
