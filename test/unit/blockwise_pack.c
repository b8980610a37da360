/* The layout of MatMulNBits: against a loop over bits, and against what the runtime computes from it. */
#include "unit/unit.h"

#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "blockwise/blockwise.h"
#include "ops/rules.h"
#include "runtime/session.h"
#include "unit/proto.h"

static struct runtime *rt;

static int start(void **state)
{
	struct err err = ERR_INIT;

	(void)state;
	return runtime_new(&rt, &err) ? -1 : 0;
}

static int stop(void **state)
{
	(void)state;
	runtime_free(rt);
	return 0;
}

static const int bits_list[] = { 2, 4, 8 };
static const int64_t block_list[] = { 16, 32, 64, 128, 256 };
static const int64_t k_list[] = { 256, 512 + 16, 300,
				  7 }; /* whole blocks, an odd number of them, part of one, less than one */

static struct block_weight random_weight(struct rng *r, const struct block_format *f, int64_t n, int64_t k)
{
	struct block_weight q = BLOCK_WEIGHT_INIT;
	struct err err = ERR_INIT;
	const int64_t blocks = block_count(f, k);
	int64_t i;

	assert_ok(block_weight_init(&q, f, n, k, &err), err);
	for (i = 0; i < n * k; i++)
		q.codes[i] = (uint8_t)rng_below(r, 1u << f->bits);
	for (i = 0; i < n * blocks; i++) {
		q.scales[i] = (float)(0.1 * rng_normal(r));
		q.zeros[i] =
			f->symmetric ? (uint8_t)(1u << (f->bits - 1)) : (uint8_t)rng_below(r, 1u << f->bits);
	}
	return q;
}

static int bit(const uint8_t *bytes, int64_t i)
{
	return bytes[i / 8] >> i % 8 & 1;
}

static void check_packed(const struct block_weight *q, const uint8_t *codes, const uint8_t *zeros)
{
	const struct block_format *f = &q->format;
	const int64_t blocks = block_count(f, q->k), row_bits = blocks * f->block * f->bits,
		      zero_bits = (blocks * f->bits + 7) / 8 * 8;
	int64_t row, i;
	int b;

	for (row = 0; row < q->n; row++) {
		for (i = 0; i < blocks * f->block; i++)
			for (b = 0; b < f->bits; b++)
				assert_int_equal(bit(codes, row * row_bits + i * f->bits + b),
						 i < q->k ? q->codes[row * q->k + i] >> b & 1 : 0);
		for (i = 0; i < zero_bits; i++)
			assert_int_equal(bit(zeros, row * zero_bits + i),
					 i / f->bits < blocks
						 ? q->zeros[row * blocks + i / f->bits] >> i % f->bits & 1
						 : 0);
	}
}

static void packs_and_unpacks(void **state)
{
	struct rng r;
	size_t b, s, k;

	(void)state;
	rng_seed(&r, 1);
	for (b = 0; b < ARRAY_LEN(bits_list); b++)
		for (s = 0; s < ARRAY_LEN(block_list); s++)
			for (k = 0; k < ARRAY_LEN(k_list); k++) {
				const struct block_format f = { bits_list[b], block_list[s], false };
				struct block_weight q = random_weight(&r, &f, 3, k_list[k]),
						    back = BLOCK_WEIGHT_INIT;
				const size_t nc = block_packed_codes(&f, 3, q.k),
					     nz = block_packed_zeros(&f, 3, q.k),
					     blocks = (size_t)block_count(&f, q.k);
				uint8_t *codes = xmalloc(nc), *zeros = xmalloc(nz);
				struct err err = ERR_INIT;
				size_t i;

				block_pack_codes(&q, codes);
				block_pack_zeros(&q, zeros);
				check_packed(&q, codes, zeros);
				assert_ok(block_weight_init(&back, &f, 3, q.k, &err), err);
				block_unpack(codes, zeros, &back);
				assert_memory_equal(back.codes, q.codes, 3 * (size_t)q.k);
				assert_memory_equal(back.zeros, q.zeros, 3 * blocks);
				block_unpack(codes, NULL, &back);
				for (i = 0; i < 3 * blocks; i++)
					assert_int_equal(back.zeros[i], 1 << (f.bits - 1));
				block_weight_release(&q);
				block_weight_release(&back);
				free(codes);
				free(zeros);
			}
}

/* y = MatMulNBits(x, q) */
static struct session *session_of(const struct block_weight *q, int64_t level, struct model **m)
{
	const struct block_format *f = &q->format;
	const int64_t blocks = block_count(f, q->k);
	const size_t nc = block_packed_codes(f, q->n, q->k), nz = block_packed_zeros(f, q->n, q->k);
	uint8_t *codes = xmalloc(nc), *zeros = xmalloc(nz);
	struct session_options so = { .threads = 1 };
	struct err err = ERR_INIT;
	struct session *s = NULL;
	Onnx__NodeProto *node;
	struct build b;

	block_pack_codes(q, codes);
	block_pack_zeros(q, zeros);
	build_init(&b, 14);
	build_opset(&b, "com.microsoft", 1);
	build_input(&b, "x", DT_F32, DIMS(-1, q->k));
	build_output(&b, "y", DT_F32, DIMS(-1, q->n));
	build_weight(&b, "b", DT_U8, DIMS(q->n, blocks, f->block * f->bits / 8), codes, nc);
	build_weight(&b, "s", DT_F32, DIMS(q->n, blocks), q->scales, (size_t)(q->n * blocks) * sizeof(float));
	if (!f->symmetric)
		build_weight(&b, "z", DT_U8, DIMS(q->n, (int64_t)nz / q->n), zeros, nz);
	node = build_node(&b, "MatMulNBits", f->symmetric ? "x,b,s" : "x,b,s,z", "y");
	node->domain = arena_strdup(&b.a, "com.microsoft");
	build_attr_int(&b, node, "K", q->k);
	build_attr_int(&b, node, "N", q->n);
	build_attr_int(&b, node, "bits", f->bits);
	build_attr_int(&b, node, "block_size", f->block);
	build_attr_int(&b, node, "accuracy_level", level);
	assert_ok(build_decode(&b, m, NULL, &err), err);
	if (session_new(&s, rt, *m, &so, &err))
		fail_msg("%d bits in blocks of %d: %s", f->bits, (int)f->block, err.msg);
	build_release(&b);
	free(codes);
	free(zeros);
	return s;
}

/* the runtime's product, beside that of what block_dequantize() gives */
static void check_product(const struct block_weight *q, int64_t level, int64_t rows)
{
	float *x = xcalloc((size_t)(rows * q->k), sizeof(*x)),
	      *w = xcalloc((size_t)(q->n * q->k), sizeof(*w));
	struct tensor in = { DT_F32, 2, { rows, q->k }, x }, y;
	struct err err = ERR_INIT;
	double error = 0, power = 0;
	struct model *m = NULL;
	struct session *s = session_of(q, level, &m);
	int64_t r, o, i;
	struct rng rng;

	rng_seed(&rng, 3);
	for (i = 0; i < rows * q->k; i++)
		x[i] = (float)rng_normal(&rng);
	block_dequantize(q, w);
	assert_ok(session_run(s, &in, &y, &err), err);
	for (r = 0; r < rows; r++)
		for (o = 0; o < q->n; o++) {
			double sum = 0, off;

			for (i = 0; i < q->k; i++)
				sum += (double)x[r * q->k + i] * w[o * q->k + i];
			off = ((float *)y.data)[r * q->n + o] - sum;
			error += off * off;
			power += sum * sum;
		}
	/* level 4 rounds the input to 8 bits */
	if (sqrt(error / power) > (level == 4 ? 0.02 : 1e-5))
		fail_msg("%d bits in blocks of %d, %s, K = %d, level %d: off by %g", q->format.bits,
			 (int)q->format.block, q->format.symmetric ? "symmetric" : "asymmetric", (int)q->k,
			 (int)level, sqrt(error / power));
	session_free(s);
	model_free(m);
	free(x);
	free(w);
}

static void the_runtime_reads_it(void **state)
{
	static const int64_t levels[] = { 0, 1, 4 };
	struct rng r;
	size_t b, s, k, l;
	int symmetric;

	(void)state;
	rng_seed(&r, 2);
	for (b = 0; b < ARRAY_LEN(bits_list); b++) {
		if (bits_list[b] != 4 && atoi(strchr(runtime_version(), '.') + 1) < OLD_NBITS) {
			print_message("skipped: %d bits, which ONNX Runtime %s does not have\n", bits_list[b],
				      runtime_version());
			continue;
		}
		for (s = 0; s < ARRAY_LEN(block_list); s++)
			for (k = 0; k < ARRAY_LEN(k_list); k++)
				for (symmetric = 0; symmetric < 2; symmetric++) {
					const struct block_format f = { bits_list[b], block_list[s],
									symmetric };
					struct block_weight q = random_weight(&r, &f, 19, k_list[k]);

					for (l = 0; l < ARRAY_LEN(levels); l++) {
						check_product(&q, levels[l], 1);
						check_product(&q, levels[l], 5);
					}
					block_weight_release(&q);
				}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(packs_and_unpacks),
		cmocka_unit_test(the_runtime_reads_it),
	};

	return cmocka_run_group_tests(tests, start, stop);
}
