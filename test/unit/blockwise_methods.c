/* What each algorithm is for: the error of a layer's output on rows it was not calibrated on. */
#include "unit/unit.h"

#include "unit/blockwise_input.h"

/* error against rtn's, at most; gptq and gram have seen the input */
static const struct {
	enum block_algorithm a;
	double mean, worst;
} bounds[] = {
	{ BLOCK_RTN, 1, 1 },       { BLOCK_RTN_CLIP, 1, 1.1 }, { BLOCK_K_QUANT, 1, 1.1 },
	{ BLOCK_HQQ, 1, 1.1 },     { BLOCK_GPTQ, 0.5, 0.7 },   { BLOCK_AWQ, 0.9, 1.05 },
	{ BLOCK_GRAM, 0.45, 0.7 },
};

static void less_error_on_other_rows(void **state)
{
	enum { N = 48, K = 200, ROWS = 1500 };
	static const struct block_format formats[] = {
		{ 2, 16, false }, { 2, 64, true },   { 4, 16, true }, { 4, 32, false },
		{ 4, 128, true }, { 4, 256, false }, { 8, 32, true }, { 8, 128, false },
	};
	float *w = random_matrix(N, K, 9);
	double mean[ARRAY_LEN(bounds)] = { 0 };
	struct err err = ERR_INIT;
	struct input seen, other;
	size_t f, i;

	(void)state;
	assert_int_equal(ARRAY_LEN(bounds), BLOCK_ALGORITHMS);
	input_init(&seen, K, 1, 2, ROWS);
	input_init(&other, K, 1, 3, ROWS);
	for (f = 0; f < ARRAY_LEN(formats); f++) {
		double rtn = 0;

		for (i = 0; i < ARRAY_LEN(bounds); i++) {
			struct block_weight q = BLOCK_WEIGHT_INIT;
			double e;

			assert_ok(block_quantize(bounds[i].a, w, N, K, &seen.seen, &formats[f], &q, &err),
				  err);
			e = output_error(&q, w, other.gram);
			rtn = bounds[i].a == BLOCK_RTN ? e : rtn;
			if (e > bounds[i].worst * rtn)
				fail_msg("%s, %d bits, block %d%s: error %g of rtn's",
					 block_methods[bounds[i].a]->name, formats[f].bits,
					 (int)formats[f].block, formats[f].symmetric ? ", sym" : "", e / rtn);
			mean[i] += log(e / rtn) / ARRAY_LEN(formats);
			block_weight_release(&q);
		}
	}
	for (i = 0; i < ARRAY_LEN(bounds); i++)
		if (exp(mean[i]) > bounds[i].mean * 1.0001)
			fail_msg("%s: mean error %g of rtn's", block_methods[bounds[i].a]->name,
				 exp(mean[i]));
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
 * GPTQ as the paper has it, in doubles: after each rounding the remaining weights move by -(error / Hinv[j][j]) Hinv[j],
 * and the input leaves the inverse. Inputs in order of size, whole blocks; min-max of what a block has become.
 */
static void paper(const float *w, int64_t n, int64_t k, const float *gram, const struct block_format *f,
		  struct block_weight *q)
{
	const int64_t blocks = block_count(f, k);
	double *inverse = xcalloc((size_t)(k * k), sizeof(double)),
	       *v = xcalloc((size_t)(n * k), sizeof(double)), *size = xcalloc((size_t)blocks, sizeof(double)),
	       mean = 0;
	bool *done = xcalloc((size_t)k, sizeof(bool)), *begun = xcalloc((size_t)blocks, sizeof(bool));
	int64_t i, j, step, row;

	for (i = 0; i < k; i++) {
		mean += (double)gram[i * (k + 1)] / (double)k;
		size[i / f->block] += (double)gram[i * (k + 1)];
	}
	for (i = 0; i < k * k; i++)
		inverse[i] = (double)gram[i] + (i % (k + 1) == 0 ? 0.01 * mean : 0);
	invert(inverse, k);
	for (i = 0; i < n * k; i++)
		v[i] = (double)w[i];
	for (step = 0; step < k; step++) {
		int64_t next = -1, b;

		for (i = 0; i < k; i++)
			if (!done[i] &&
			    (next < 0 || size[i / f->block] > size[next / f->block] ||
			     (i / f->block == next / f->block && gram[i * (k + 1)] > gram[next * (k + 1)])))
				next = i;
		b = next / f->block;
		for (row = 0; row < n; row++) {
			float *scale = &q->scales[row * blocks + b];
			uint8_t *zero = &q->zeros[row * blocks + b];
			double least = 0, most = 0, by;

			for (i = b * f->block; i < k && i < (b + 1) * f->block && !begun[b]; i++) {
				least = fmin(least, v[row * k + i]);
				most = fmax(most, v[row * k + i]);
			}
			if (!begun[b]) {
				*scale = (float)((most - least) / 15);
				*zero = (uint8_t)rint(-least / (double)*scale);
			}
			by = fmin(fmax(rint(v[row * k + next] / (double)*scale) + *zero, 0), 15);
			q->codes[row * k + next] = (uint8_t)by;
			by = ((by - *zero) * (double)*scale - v[row * k + next]) / inverse[next * (k + 1)];
			for (j = 0; j < k; j++)
				if (!done[j])
					v[row * k + j] += by * inverse[next * k + j];
		}
		begun[b] = done[next] = true;
		for (i = 0; i < k; i++)
			for (j = 0; j < k && i != next; j++)
				if (j != next)
					inverse[i * k + j] -= inverse[i * k + next] * inverse[next * k + j] /
							      inverse[next * (k + 1)];
	}
	free(inverse);
	free(v);
	free(size);
	free(done);
	free(begun);
}

/* ours do better than that, on the rows that were seen and on others, whether there are many or few */
static void better_than_the_paper(void **state)
{
	enum { N = 30, K = 120 };
	static const int64_t rows[] = { 60, 300, 3000 };
	const struct block_format f = { 4, 32, false };
	float *w = random_matrix(N, K, 11);
	struct err err = ERR_INIT;
	struct input other;
	size_t i;

	(void)state;
	input_init(&other, K, 4, 1, 3000);
	for (i = 0; i < ARRAY_LEN(rows); i++) {
		struct block_weight q[3] = { BLOCK_WEIGHT_INIT, BLOCK_WEIGHT_INIT, BLOCK_WEIGHT_INIT };
		double e[3];
		struct input in;
		int j;

		input_init(&in, K, 4, 5, rows[i]);
		assert_ok(block_weight_init(&q[0], &f, N, K, &err), err);
		paper(w, N, K, in.gram, &f, &q[0]);
		assert_ok(block_quantize(BLOCK_GPTQ, w, N, K, &in.seen, &f, &q[1], &err), err);
		assert_ok(block_quantize(BLOCK_GRAM, w, N, K, &in.seen, &f, &q[2], &err), err);
		for (j = 0; j < 3; j++)
			e[j] = output_error(&q[j], w, other.gram);
		if (!(e[1] < 0.95 * e[0]) || !(e[2] < e[1]))
			fail_msg("%d rows: the paper's error %g, gptq's %g, gram's %g", (int)rows[i], e[0],
				 e[1], e[2]);
		for (j = 0; j < 3; j++)
			block_weight_release(&q[j]);
		input_release(&in);
	}
	input_release(&other);
	free(w);
}

/* with few rows and no correlation there is nothing to be made of what was seen: no worse than rtn */
static void chance_is_not_fitted(void **state)
{
	enum { N = 40, K = 160 };
	static const int64_t rows[] = { 4, 40, 160, 1000 };
	const struct block_format f = { 4, 32, false };
	float *w = random_matrix(N, K, 12), *gram = xcalloc(K * K, sizeof(float));
	struct err err = ERR_INIT;
	struct rng r;
	size_t i;
	int64_t j;

	(void)state;
	rng_seed(&r, 8);
	for (i = 0; i < ARRAY_LEN(rows); i++) {
		const struct block_seen seen = { .gram = gram, .rows = rows[i] };
		struct block_weight q[3] = { BLOCK_WEIGHT_INIT, BLOCK_WEIGHT_INIT, BLOCK_WEIGHT_INIT };
		float *x = xcalloc((size_t)rows[i] * K, sizeof(float)),
		      *white = xcalloc(K * K, sizeof(float));
		double e[3];
		int64_t a, b;

		for (j = 0; j < rows[i] * K; j++)
			x[j] = (float)rng_normal(&r);
		memset(gram, 0, K * K * sizeof(float));
		for (j = 0; j < rows[i]; j++)
			for (a = 0; a < K; a++)
				for (b = 0; b < K; b++)
					gram[a * K + b] += x[j * K + a] * x[j * K + b] / (float)rows[i];
		for (a = 0; a < K; a++)
			white[a * (K + 1)] = 1;
		assert_ok(block_quantize(BLOCK_RTN, w, N, K, NULL, &f, &q[0], &err), err);
		assert_ok(block_quantize(BLOCK_GPTQ, w, N, K, &seen, &f, &q[1], &err), err);
		assert_ok(block_quantize(BLOCK_GRAM, w, N, K, &seen, &f, &q[2], &err), err);
		for (a = 0; a < 3; a++) {
			e[a] = output_error(&q[a], w, white);
			block_weight_release(&q[a]);
		}
		if (e[1] > 1.05 * e[0] || e[2] > 1.05 * e[0])
			fail_msg("%d rows: gptq's error is %g of rtn's, gram's %g", (int)rows[i], e[1] / e[0],
				 e[2] / e[0]);
		free(x);
		free(white);
	}
	free(gram);
	free(w);
}

/* a block's error in the outputs, by itself */
static double block_loss(const float *q, const float *w, const float *gram, int64_t k, int64_t first,
			 int64_t n)
{
	double sum = 0;
	int64_t i, j;

	for (i = first; i < first + n; i++)
		for (j = first; j < first + n; j++)
			sum += (double)(q[i] - w[i]) * (double)gram[i * k + j] * (double)(q[j] - w[j]);
	return sum;
}

/* awq's search for how much of its range each block keeps: no block does worse than with all of it, most do better */
static void awq_clips_where_it_helps(void **state)
{
	enum { N = 150, K = 90, BLOCK = 32 };
	float *w = random_matrix(N, K, 13), *a = xcalloc(N * K, sizeof(float)),
	      *b = xcalloc(N * K, sizeof(float));
	struct err err = ERR_INIT;
	struct input in;
	int symmetric;

	(void)state;
	input_init(&in, K, 6, 7, 1000);
	for (symmetric = 0; symmetric < 2; symmetric++) {
		const struct block_format f = { 4, BLOCK, symmetric };
		struct block_weight p = BLOCK_WEIGHT_INIT, q = BLOCK_WEIGHT_INIT;
		int64_t row, first, better = 0;

		assert_ok(block_quantize(BLOCK_RTN, w, N, K, NULL, &f, &p, &err), err);
		assert_ok(block_quantize(BLOCK_AWQ, w, N, K, &in.seen, &f, &q, &err), err);
		block_dequantize(&p, a);
		block_dequantize(&q, b);
		for (row = 0; row < N; row++)
			for (first = 0; first < K; first += BLOCK) {
				const int64_t n = K - first < BLOCK ? K - first : BLOCK;
				double rtn = block_loss(a + row * K, w + row * K, in.gram, K, first, n),
				       awq = block_loss(b + row * K, w + row * K, in.gram, K, first, n);

				assert_true(awq <= rtn * 1.001);
				better += awq < rtn * 0.9;
			}
		assert_true(better > N * 3 / 2);
		block_weight_release(&p);
		block_weight_release(&q);
	}
	input_release(&in);
	free(w);
	free(a);
	free(b);
}

/* the error on other rows of two weights that read one input, with what awq divides that by or without */
static double error_of(const struct block_reader *readers, int64_t k, const struct input *in,
		       const float *scales, enum block_algorithm a, const float *gram)
{
	const struct block_format f = { 4, 32, false };
	struct block_seen seen = in->seen;
	struct err err = ERR_INIT;
	double sum = 0;
	int j;

	seen.input_scales = scales;
	for (j = 0; j < 2; j++) {
		const int64_t n = readers[j].n;
		float *back = xcalloc((size_t)(n * k), sizeof(float));
		struct block_weight q = BLOCK_WEIGHT_INIT;
		int64_t i, row;

		assert_ok(block_quantize(a, readers[j].w, n, k, &seen, &f, &q, &err), err);
		block_dequantize(&q, back);
		for (i = 0; i < n * k && scales; i++)
			back[i] /= scales[i % k];
		for (row = 0; row < n; row++)
			sum += block_loss(back + row * k, readers[j].w + row * k, gram, k, 0, k);
		block_weight_release(&q);
		free(back);
	}
	return sum;
}

static void scaling_the_input_helps(void **state)
{
	enum { K = 160 };
	float *w[2] = { random_matrix(40, K, 14), random_matrix(70, K, 15) }, scales[K];
	const struct block_reader readers[2] = { { w[0], 40 }, { w[1], 70 } };
	const struct block_format f = { 4, 32, false };
	struct err err = ERR_INIT;
	struct input seen, other, bad;
	int64_t i;

	(void)state;
	input_init(&seen, K, 9, 1, 1000);
	input_init(&other, K, 9, 2, 1000);
	assert_ok(block_input_scales(readers, 2, K, &seen.seen, &f, scales, &err), err);
	for (i = 0; i < K; i++)
		assert_true(isfinite(scales[i]) && scales[i] > 0);
	assert_true(error_of(readers, K, &seen, scales, BLOCK_RTN, other.gram) <
		    0.9 * error_of(readers, K, &seen, NULL, BLOCK_RTN, other.gram));
	/* any method's result is for the divided input */
	assert_true(error_of(readers, K, &seen, scales, BLOCK_GPTQ, other.gram) <
		    0.5 * error_of(readers, K, &seen, NULL, BLOCK_RTN, other.gram));
	bad = seen;
	bad.seen.mean_abs = NULL;
	assert_int_equal(block_input_scales(readers, 2, K, &bad.seen, &f, scales, &err), FETTLE_INVALID);
	assert_non_null(strstr(err.msg, "needs calibration"));
	/* an input that was always 0 changes nothing */
	memset(seen.gram, 0, K * K * sizeof(float));
	memset(seen.mean_abs, 0, K * sizeof(float));
	assert_ok(block_input_scales(readers, 2, K, &seen.seen, &f, scales, &err), err);
	for (i = 0; i < K; i++)
		assert_true(isfinite(scales[i]) && scales[i] > 0);
	input_release(&seen);
	input_release(&other);
	free(w[0]);
	free(w[1]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(less_error_on_other_rows), cmocka_unit_test(better_than_the_paper),
		cmocka_unit_test(chance_is_not_fitted),     cmocka_unit_test(awq_clips_where_it_helps),
		cmocka_unit_test(scaling_the_input_helps),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
