/* Weights in blocks: what every algorithm must keep to, whatever it does. */
#include "unit/unit.h"

#include <float.h>

#include "unit/blockwise_input.h"

static const int bits_list[] = { 2, 4, 8 };

/* every algorithm, in every number of bits, with and without zero points */
#define FOR_ALL(a, b, symmetric)                                                                             \
	for (a = 0; a < BLOCK_ALGORITHMS; a++)                                                               \
		for (b = 0; b < ARRAY_LEN(bits_list); b++)                                                   \
			for (symmetric = 0; symmetric < 2; symmetric++)

/* a weight made of codes that use all of each block's grid comes back as it was, with part of a block at the end */
static void what_is_on_a_grid_stays(void **state)
{
	enum { N = 9, K = 32 * 3 + 20 };
	struct input in;
	size_t a, b;
	int symmetric;

	(void)state;
	input_init(&in, K, 1, 1, 500);
	FOR_ALL(a, b, symmetric)
	{
		const struct block_format f = { bits_list[b], 32, symmetric };
		const int top = (1 << f.bits) - 1, half = 1 << (f.bits - 1);
		struct block_weight q = BLOCK_WEIGHT_INIT;
		float w[N * K], back[N * K];
		struct err err = ERR_INIT;
		struct rng r;
		int64_t i;

		rng_seed(&r, 5);
		for (i = 0; i < N * K; i++) {
			const int64_t at = i % K % 32, block = i / K * 4 + i % K / 32;
			const int zero = symmetric ? half : (int)(block * 7 % (top + 1));
			const int code = at == 3 ? 0 : at == 7 ? top : (int)rng_below(&r, (uint64_t)top + 1);

			w[i] = (float)(code - zero) * (0.01f + 0.003f * (float)(block % 5));
		}
		assert_ok(block_quantize((enum block_algorithm)a, w, N, K, &in.seen, &f, &q, &err), err);
		block_dequantize(&q, back);
		for (i = 0; i < N * K; i++)
			if (fabsf(back[i] - w[i]) > 1e-5f)
				fail_msg("%s, %d bits: element %d is %g, not %g", block_methods[a]->name,
					 f.bits, (int)i, (double)back[i], (double)w[i]);
		block_weight_release(&q);
	}
	input_release(&in);
}

/* zeros have scale 1; tiny and huge weights give finite ones; codes and zero points fit their bits */
static void odd_blocks(void **state)
{
	enum { N = 4, K = 64 };
	static const float sizes[N] = { 0, 1e15f, FLT_MIN / 1024, 1 };
	struct input in;
	size_t a, b;
	int symmetric;

	(void)state;
	input_init(&in, K, 2, 2, 500);
	FOR_ALL(a, b, symmetric)
	{
		const struct block_format f = { bits_list[b], 32, symmetric };
		struct block_weight q = BLOCK_WEIGHT_INIT;
		struct err err = ERR_INIT;
		float w[N * K], back[N * K];
		struct rng r;
		int64_t i;

		rng_seed(&r, 6);
		for (i = 0; i < N * K; i++)
			w[i] = sizes[i / K] * (float)(2 * rng_unit(&r) - 1);
		assert_ok(block_quantize((enum block_algorithm)a, w, N, K, &in.seen, &f, &q, &err), err);
		block_dequantize(&q, back);
		for (i = 0; i < K; i++)
			assert_true(back[i] == 0);
		for (i = 0; i < N * 2; i++) {
			assert_true(isfinite(q.scales[i]) && q.scales[i] != 0);
			assert_true(i >= 2 || q.scales[i] == 1);
			assert_true(q.zeros[i] < 1 << f.bits);
			assert_true(!symmetric || q.zeros[i] == 1 << (f.bits - 1));
		}
		for (i = 0; i < N * K; i++)
			assert_true(q.codes[i] < 1 << f.bits && isfinite(back[i]));
		block_weight_release(&q);
	}
	input_release(&in);
}

static void same_arguments_same_result(void **state)
{
	enum { N = 40, K = 100 };
	float *w = random_matrix(N, K, 3);
	struct input in;
	size_t a, b;
	int symmetric;

	(void)state;
	input_init(&in, K, 3, 3, 500);
	FOR_ALL(a, b, symmetric)
	{
		const struct block_format f = { bits_list[b], 32, symmetric };
		struct block_weight p = BLOCK_WEIGHT_INIT, q = BLOCK_WEIGHT_INIT;
		struct err err = ERR_INIT;

		assert_ok(block_quantize((enum block_algorithm)a, w, N, K, &in.seen, &f, &p, &err), err);
		assert_ok(block_quantize((enum block_algorithm)a, w, N, K, &in.seen, &f, &q, &err), err);
		assert_memory_equal(p.codes, q.codes, N * K);
		assert_memory_equal(p.scales, q.scales, N * 4 * sizeof(float));
		assert_memory_equal(p.zeros, q.zeros, N * 4);
		block_weight_release(&p);
		block_weight_release(&q);
	}
	free(w);
	input_release(&in);
}

/* rounding to nearest is never off by more than half a step of min-max (a whole one at the end that has no code) */
static void rtn_is_nearest(void **state)
{
	enum { N = 11, K = 90 };
	float *w = random_matrix(N, K, 4), back[N * K];
	struct err err = ERR_INIT;
	size_t b;
	int symmetric;

	(void)state;
	for (b = 0; b < ARRAY_LEN(bits_list); b++)
		for (symmetric = 0; symmetric < 2; symmetric++) {
			const struct block_format f = { bits_list[b], 16, symmetric };
			struct block_weight q = BLOCK_WEIGHT_INIT;
			int64_t i, j;

			assert_ok(block_quantize(BLOCK_RTN, w, N, K, NULL, &f, &q, &err), err);
			block_dequantize(&q, back);
			for (i = 0; i < N * K; i++) {
				const int64_t first = i - i % K % 16,
					      last = i % K / 16 == 5 ? first + 10 : first + 16;
				float least = 0, most = 0, step;

				for (j = first; j < last; j++) {
					least = fminf(least, w[j]);
					most = fmaxf(most, w[j]);
				}
				step = symmetric ? fmaxf(-least, most) / (float)(1 << (f.bits - 1))
						 : (most - least) / (float)((1 << f.bits) - 1);
				assert_true(fabsf(back[i] - w[i]) <=
					    step * (symmetric ? 1.0001f : 0.5001f * 2));
				assert_true(symmetric || fabsf(back[i] - w[i]) <= step * 0.5001f ||
					    fabsf(w[i]) > fmaxf(-least, most) - step);
			}
			block_weight_release(&q);
		}
	free(w);
}

static void what_is_wrong_is_said(void **state)
{
	enum { K = 32 };
	static const struct {
		const char *why;
		struct block_format f;
		float value;
		const char *word;
	} rows[] = {
		{ "bits", { 3, 32, false }, 0, "3 bits" },
		{ "a block that is no power of two", { 4, 48, false }, 0, "block size 48" },
		{ "a block below 16", { 4, 8, false }, 0, "block size 8" },
		{ "a block above 256", { 4, 512, false }, 0, "block size 512" },
		{ "NaN", { 4, 32, false }, NAN, "not finite" },
		{ "infinity", { 4, 32, true }, -INFINITY, "not finite" },
	};
	struct input in;
	size_t a, i;

	(void)state;
	input_init(&in, K, 7, 7, 500);
	for (a = 0; a < BLOCK_ALGORITHMS; a++) {
		struct block_weight q = BLOCK_WEIGHT_INIT;
		const struct block_format f = { 4, 32, false };
		struct err err = ERR_INIT;
		float w[K] = { 0 };

		for (i = 0; i < ARRAY_LEN(rows); i++) {
			w[5] = rows[i].value;
			if (block_quantize((enum block_algorithm)a, w, 1, K, &in.seen, &rows[i].f, &q,
					   &err) != FETTLE_INVALID ||
			    !strstr(err.msg, rows[i].word) || q.codes)
				fail_msg("%s: %s", rows[i].why, err.msg);
		}
		w[5] = 0;
		if (block_methods[a]->needs) {
			assert_int_equal(block_quantize((enum block_algorithm)a, w, 1, K, NULL, &f, &q, &err),
					 FETTLE_INVALID);
			assert_non_null(strstr(err.msg, "needs calibration"));
			in.gram[3] = in.mean_abs[3] = NAN;
			assert_int_equal(
				block_quantize((enum block_algorithm)a, w, 1, K, &in.seen, &f, &q, &err),
				FETTLE_INVALID);
			in.gram[3] = in.mean_abs[3] = 1;
		}
	}
	input_release(&in);
}

static void names(void **state)
{
	enum block_algorithm a;
	struct err err = ERR_INIT;

	(void)state;
	assert_ok(block_method_parse("RTN", &a, &err), err);
	assert_int_equal(a, BLOCK_RTN);
	assert_int_equal(block_method_parse("rtm", &a, &err), FETTLE_INVALID);
	assert_non_null(strstr(err.msg, "did you mean rtn"));
	assert_int_equal(block_method_parse("magic", &a, &err), FETTLE_INVALID);
	assert_non_null(strstr(err.msg, "must be one of rtn"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_on_a_grid_stays),    cmocka_unit_test(odd_blocks),
		cmocka_unit_test(same_arguments_same_result), cmocka_unit_test(rtn_is_nearest),
		cmocka_unit_test(what_is_wrong_is_said),      cmocka_unit_test(names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
