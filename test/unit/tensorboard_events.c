#include "unit/unit.h"

#include "base/mem.h"
#include "base/rng.h"
#include "tensorboard/crc32c.h"
#include "tensorboard/histogram.h"
#include "tensorboard/message.h"

static void checks_are_those_of_the_standard(void **state)
{
	char zeros[32] = { 0 };

	(void)state;
	assert_int_equal(crc32c("123456789", 9), 0xe3069283); /* the check value in every catalogue of CRCs */
	assert_int_equal(crc32c(zeros, sizeof(zeros)), 0x8a9136aa); /* RFC 3720, B.4 */
	assert_int_equal(crc32c("", 0), 0);
	/* 0xe3069283 rotated right by 15 is 0x2507c60d */
	assert_int_equal(crc32c_masked("123456789", 9), 0xc78ab0e5u);
}

static void fields_are_as_protobuf_has_them(void **state)
{
	/* field 1 = 150 and a text in field 2: the examples of protobuf's documentation of its wire format */
	static const unsigned char bytes[] = { 0x08, 0x96, 0x01, 0x12, 0x07, 't',  'e',  's', 't', 'i',
					       'n',  'g',  0x19, 0,    0,    0,    0,    0,   0,   0xf0,
					       0x3f, 0x25, 0,    0,    0,    0x40, 0x2a, 0x00 };
	struct str m = STR_INIT, empty = STR_INIT;

	(void)state;
	message_int(&m, 1, 150);
	message_text(&m, 2, "testing");
	message_double(&m, 3, 1);
	message_float(&m, 4, 2);
	message_inner(&m, 5, &empty);
	assert_int_equal(m.n, sizeof(bytes));
	assert_memory_equal(m.s, bytes, sizeof(bytes));
	str_release(&m);
}

/* counts again, bucket by bucket */
static void check_buckets(const struct histogram *h, const float *x, size_t n, double moved)
{
	double off = 0, sum = 0;
	size_t i, k;

	assert_in_range(h->n, 1, HISTOGRAM_BUCKETS);
	for (k = 0; k < h->n; k++) {
		double from = k ? h->limit[k - 1] : -INFINITY, count = 0;

		for (i = 0; i < n; i++)
			count += x[i] >= from && x[i] < h->limit[k];
		off += fabs(count - h->count[k]) / 2;
		sum += h->count[k];
		assert_true(!k || h->limit[k] > h->limit[k - 1]);
	}
	assert_true(sum == h->num && sum == (double)n);
	assert_true(h->limit[h->n - 1] > h->max && h->limit[0] > h->min);
	if (off > moved * (double)n)
		fail_msg("%g of %zu numbers are in the wrong bucket", off, n);
}

static void buckets_hold_the_numbers(void **state)
{
	enum { N = 5000 };
	static const struct {
		double scale, shift;
	} kinds[] = { { 1, 0 }, { 1e-30, 0 }, { 1e30, 0 }, { 1, 100 }, { 0, 0 }, { 0, -7.3 }, { 1e-3, -5 } };
	struct rng r;
	float *x = xcalloc(N, sizeof(*x));
	size_t i, k;

	(void)state;
	rng_seed(&r, 7);
	for (k = 0; k < ARRAY_LEN(kinds); k++) {
		struct histogram h;
		double sum = 0, squares = 0;

		for (i = 0; i < N; i++) {
			x[i] = (float)(rng_normal(&r) * kinds[k].scale + kinds[k].shift);
			sum += x[i];
			squares += (double)x[i] * x[i];
		}
		histogram_of_floats(&h, x, N);
		check_buckets(&h, x, N, 0);
		assert_true(h.sum == sum && h.squares == squares);
	}
	free(x);
}

/* what an observer has seen, before and after quantization: compared with quantizing every number */
static void values_before_and_after(void **state)
{
	enum { N = 20000 };
	static const struct {
		enum dtype t;
		enum scheme scheme;
		double moved; /* of the numbers, by the width of the observer's bins */
	} kinds[] = { { DT_U8, SCHEME_ASYM, 0.1 },
		      { DT_S8, SCHEME_SYM, 0.1 },
		      { DT_U16, SCHEME_ASYM, 0.02 } };
	struct observer_scratch *scratch = observer_scratch_new();
	float *x = xcalloc(N, sizeof(*x)), *y = xcalloc(N, sizeof(*y));
	struct observer o;
	struct histogram h;
	struct err err = ERR_INIT;
	struct rng r;
	size_t i, k;

	(void)state;
	rng_seed(&r, 8);
	for (i = 0; i < N; i++)
		x[i] = i % 3 ? (float)rng_normal(&r) : 0;
	observer_init(&o, &(struct observer_options){ .name = "x" });
	assert_ok(observer_add(&o, scratch, x, 10, N / 10, &err), err);
	histogram_of_seen(&h, &o);
	check_buckets(&h, x, N, 0);
	assert_true(h.min == o.min && h.max == o.max);
	for (k = 0; k < ARRAY_LEN(kinds); k++) {
		/* a range that cuts something off */
		struct qparams q = quant_params(-2, 2.5, kinds[k].t, kinds[k].scheme, false);
		struct qlimits lim = quant_limits(kinds[k].t, SCHEME_ASYM, false);
		double sum = 0, size = 0, least = INFINITY, most = -INFINITY;

		for (i = 0; i < N; i++) {
			double is = (double)q.scale * (quant_value(x[i], q, lim) - q.zero);

			least = fmin(least, is);
			most = fmax(most, is);
			y[i] = (float)is;
			sum += y[i];
			size += fabs((double)y[i]);
		}
		histogram_of_quantized(&h, &o, q, kinds[k].t);
		check_buckets(&h, y, N, kinds[k].moved);
		assert_true(fabs(h.sum - sum) < 1e-3 * size);
		assert_true(h.min == least && h.max == most && h.max < o.max);
	}
	observer_release(&o);
	observer_scratch_free(scratch);
	free(x);
	free(y);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(checks_are_those_of_the_standard),
		cmocka_unit_test(fields_are_as_protobuf_has_them),
		cmocka_unit_test(buckets_hold_the_numbers),
		cmocka_unit_test(values_before_and_after),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
