#include "blockwise/factor.h"

#include <lapacke.h>
#include <stdlib.h>

#include "base/mem.h"

float factor_damping(const float *gram, int64_t k)
{
	double sum = 0;
	int64_t i;

	for (i = 0; i < k; i++)
		sum += (double)gram[i * k + i];
	return sum > 0 ? (float)(0.01 * sum / (double)k) : 1;
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
static bool decompose(struct factor *f, const float *gram, float damping)
{
	const int64_t k = f->k;
	int64_t i, j;

	for (i = 0; i < k; i++) {
		const float *row = gram + f->input[i] * k;

		for (j = i; j < k; j++)
			f->r[i * k + j] = row[f->input[j]];
		f->r[i * k + i] += damping;
	}
	return !LAPACKE_spotrf_work(LAPACK_COL_MAJOR, 'L', (lapack_int)k, f->r, (lapack_int)k);
}

enum fettle_status factor_init(struct factor *out, const float *gram, int64_t k, const struct block_format *f,
			       struct err *err)
{
	enum { TRIES = 8 };
	struct factor x = { .k = k, .blocks = block_count(f, k) };
	float damping = factor_damping(gram, k);
	enum fettle_status st;
	int i;

	st = mem_try(&x.r, (size_t)(k * k), sizeof(float), "the factor of a gram matrix", err);
	if (st)
		return st;
	x.input = xcalloc((size_t)k, sizeof(*x.input));
	x.block = xcalloc((size_t)x.blocks, sizeof(*x.block));
	x.first = xcalloc((size_t)x.blocks + 1, sizeof(*x.first));
	find_order(&x, gram, f->block);
	for (i = 0; i < TRIES && !decompose(&x, gram, damping); i++)
		damping *= 10;
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
