/* What each algorithm is for: the error of a layer's output on rows it was not calibrated on. */
#include "unit/unit.h"

#include "unit/blockwise_input.h"

/* error against rtn's, at most; gptq and gram have seen the input */
static const struct {
	enum block_algorithm a;
	double mean, worst;
} most[] = {
	{ BLOCK_RTN, 1, 1 },   { BLOCK_RTN_CLIP, 1, 1.1 }, { BLOCK_K_QUANT, 1, 1.1 },
	{ BLOCK_HQQ, 1, 1.1 }, { BLOCK_GPTQ, 0.5, 0.7 },
};

static void less_error_on_other_rows(void **state)
{
	enum { N = 48, K = 200, ROWS = 1500 };
	static const struct block_format formats[] = {
		{ 2, 16, false }, { 2, 64, true },   { 4, 16, true }, { 4, 32, false },
		{ 4, 128, true }, { 4, 256, false }, { 8, 32, true }, { 8, 128, false },
	};
	float *w = random_matrix(N, K, 9);
	double mean[ARRAY_LEN(most)] = { 0 };
	struct err err = ERR_INIT;
	struct input seen, other;
	size_t f, i;

	(void)state;
	assert_int_equal(ARRAY_LEN(most), BLOCK_ALGORITHMS);
	input_init(&seen, K, 1, 2, ROWS);
	input_init(&other, K, 1, 3, ROWS);
	for (f = 0; f < ARRAY_LEN(formats); f++) {
		double rtn = 0;

		for (i = 0; i < ARRAY_LEN(most); i++) {
			struct block_weight q = BLOCK_WEIGHT_INIT;
			double e;

			assert_ok(block_quantize(most[i].a, w, N, K, &seen.seen, &formats[f], &q, &err), err);
			e = output_error(&q, w, other.gram);
			rtn = most[i].a == BLOCK_RTN ? e : rtn;
			if (e > most[i].worst * rtn)
				fail_msg("%s, %d bits, block %d%s: error %g of rtn's",
					 block_methods[most[i].a]->name, formats[f].bits,
					 (int)formats[f].block, formats[f].symmetric ? ", sym" : "", e / rtn);
			mean[i] += log(e / rtn) / ARRAY_LEN(formats);
			block_weight_release(&q);
		}
	}
	for (i = 0; i < ARRAY_LEN(most); i++)
		if (exp(mean[i]) > most[i].mean * 1.0001)
			fail_msg("%s: mean error %g of rtn's", block_methods[most[i].a]->name, exp(mean[i]));
	free(w);
	input_release(&seen);
	input_release(&other);
}

/* inverse of a symmetric positive matrix, by Gauss and Jordan */
static void invert(double *a, int64_t n)
{
	int64_t i, j, p;

	for (p = 0; p < n; p++) {
		const double by = 1 / a[p * n + p];

		a[p * n + p] = 1;
		for (j = 0; j < n; j++)
			a[p * n + j] *= by;
		for (i = 0; i < n; i++) {
			const double f = a[i * n + p];

			if (i == p)
				continue;
			a[i * n + p] = 0;
			for (j = 0; j < n; j++)
				a[i * n + j] -= f * a[p * n + j];
		}
	}
}

/*
 * As the paper has it, in doubles, with the scales that gptq chose: after each rounding the remaining weights move by
 * -(error / Hinv[j][j]) Hinv[j], and the input leaves the inverse. Inputs in order of size, whole blocks.
 */
static void gptq_by_the_paper(void **state)
{
	enum { N = 20, K = 72, BLOCK = 16, BLOCKS = 5 };
	const struct block_format f = { 4, BLOCK, false };
	float *w = random_matrix(N, K, 11);
	double *inverse = xcalloc(K * K, sizeof(double)), *v = xcalloc(N * K, sizeof(double)),
	       size[BLOCKS] = { 0 }, mean = 0;
	struct block_weight q = BLOCK_WEIGHT_INIT;
	bool done[K] = { false };
	struct err err = ERR_INIT;
	struct input in;
	int64_t i, j, step, row, wrong = 0;

	(void)state;
	input_init(&in, K, 4, 5, 300);
	assert_ok(block_quantize(BLOCK_GPTQ, w, N, K, &in.seen, &f, &q, &err), err);
	for (i = 0; i < K; i++) {
		mean += (double)in.gram[i * K + i] / K;
		size[i / BLOCK] += (double)in.gram[i * K + i];
	}
	for (i = 0; i < K * K; i++)
		inverse[i] = (double)in.gram[i] + (i % (K + 1) == 0 ? 0.01 * mean : 0);
	invert(inverse, K);
	for (i = 0; i < N * K; i++)
		v[i] = (double)w[i];
	for (step = 0; step < K; step++) {
		int64_t next = -1;

		for (i = 0; i < K; i++) {
			const bool sooner =
				next < 0 || size[i / BLOCK] > size[next / BLOCK] ||
				(i / BLOCK == next / BLOCK && in.gram[i * K + i] > in.gram[next * K + next]);

			if (!done[i] && sooner)
				next = i;
		}
		for (row = 0; row < N; row++) {
			const double scale = (double)q.scales[row * BLOCKS + next / BLOCK];
			const int zero = q.zeros[row * BLOCKS + next / BLOCK];
			const int code = (int)fmin(fmax(rint(v[row * K + next] / scale) + zero, 0), 15);
			const double by =
				((code - zero) * scale - v[row * K + next]) / inverse[next * K + next];

			wrong += code != q.codes[row * K + next];
			for (j = 0; j < K; j++)
				if (!done[j])
					v[row * K + j] += by * inverse[next * K + j];
		}
		done[next] = true;
		for (i = 0; i < K; i++)
			for (j = 0; j < K && i != next; j++)
				if (j != next)
					inverse[i * K + j] -= inverse[i * K + next] * inverse[next * K + j] /
							      inverse[next * K + next];
	}
	/* floats decide ties otherwise, and what follows in that row */
	if (wrong > N * K / 100)
		fail_msg("%d of %d codes differ", (int)wrong, N * K);
	block_weight_release(&q);
	input_release(&in);
	free(w);
	free(v);
	free(inverse);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(less_error_on_other_rows),
		cmocka_unit_test(gptq_by_the_paper),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
