/* What was seen of an input with correlated channels, a few of them far larger than the others. */
#ifndef UNIT_BLOCKWISE_INPUT_H
#define UNIT_BLOCKWISE_INPUT_H

#include "base/mem.h"
#include "base/rng.h"
#include "blockwise/blockwise.h"

struct input {
	struct block_seen seen;
	float *gram, *mean_abs;
};

/* the same seed of `kind`, with other rows: held-out ones of the same input */
static inline void input_init(struct input *in, int64_t k, uint64_t kind, uint64_t seed, int64_t rows)
{
	enum { FACTORS = 8 };
	float *x = xcalloc((size_t)k, sizeof(*x)), *mix = xcalloc((size_t)k * FACTORS, sizeof(*mix));
	struct rng r;
	int64_t i, j, row;
	int f;

	in->gram = xcalloc((size_t)(k * k), sizeof(float));
	in->mean_abs = xcalloc((size_t)k, sizeof(float));
	rng_seed(&r, kind);
	for (i = 0; i < k * FACTORS; i++)
		mix[i] = (float)rng_normal(&r);
	rng_seed(&r, seed);
	for (row = 0; row < rows; row++) {
		double hidden[FACTORS];

		for (f = 0; f < FACTORS; f++)
			hidden[f] = rng_normal(&r);
		for (i = 0; i < k; i++) {
			double v = 2 * rng_normal(&r);

			for (f = 0; f < FACTORS; f++)
				v += hidden[f] * (double)mix[i * FACTORS + f];
			x[i] = (float)(v * (i % 37 == 5 ? 10 : 1));
			in->mean_abs[i] += fabsf(x[i]) / (float)rows;
		}
		for (i = 0; i < k; i++)
			for (j = 0; j < k; j++)
				in->gram[i * k + j] += x[i] * x[j] / (float)rows;
	}
	in->seen = (struct block_seen){ .gram = in->gram, .mean_abs = in->mean_abs, .rows = rows };
	free(x);
	free(mix);
}

static inline void input_release(struct input *in)
{
	free(in->gram);
	free(in->mean_abs);
}

static inline float *random_matrix(int64_t n, int64_t k, uint64_t seed)
{
	float *w = xcalloc((size_t)(n * k), sizeof(*w));
	struct rng r;
	int64_t i;

	rng_seed(&r, seed);
	for (i = 0; i < n * k; i++)
		w[i] = (float)(0.05 * rng_normal(&r));
	return w;
}

/* the mean squared error of the outputs that this gram matrix's rows have */
static inline double output_error(const struct block_weight *q, const float *w, const float *gram)
{
	float *off = xcalloc((size_t)(q->n * q->k), sizeof(*off));
	double sum = 0;
	int64_t row, i, j;

	block_dequantize(q, off);
	for (i = 0; i < q->n * q->k; i++)
		off[i] -= w[i];
	for (row = 0; row < q->n; row++)
		for (i = 0; i < q->k; i++)
			for (j = 0; j < q->k; j++)
				sum += (double)off[row * q->k + i] * gram[i * q->k + j] * off[row * q->k + j];
	free(off);
	return sum / (double)q->n;
}

#endif
