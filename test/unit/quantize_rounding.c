/* Rounded weights from files: whatever the bytes are, a message or a model, and little memory. */
#include "unit/finetune_bed.h"

/* weights so small that most of a file says what they are */
static const char body[] = "w1 = 4x3x1x1; b1 = 4; c = Conv(x, w1, b1); r = Relu(c); f = Flatten(r);"
			   "w2 = 5x16; b2 = 5; g = Gemm(f, w2, b2) transB=1; w3 = 5x6; m = MatMul(g, w3);"
			   "b3 = 6; y = Add(m, b3)";
enum { SIDE = 2, CONV = 0, RELU = 1, GEMM = 3 };

static struct rounding *made(struct bed *b)
{
	struct finetune o = finetune_defaults(FINETUNE_GRAM);

	bed_open(b, 16, SIDE, body);
	o.selective_update = false;
	return tune(b, &o, NULL);
}

/* is there a model of it? */
static bool carries(struct bed *b, const struct rounding *r)
{
	struct model *m = NULL;
	struct err err = ERR_INIT;
	enum fettle_status st = quantize_rounded(&b->source, &b->plan, r, NULL, &m, &err);

	assert_true(st == FETTLE_OK || (st == FETTLE_INVALID && err.msg[0]));
	model_free(m);
	return !st;
}

static void what_does_not_fit_is_refused(void **state)
{
	static const struct {
		const char *why;
		size_t from, to;
		int axis;
		size_t shifts; /* 0: none */
		bool fits;
	} rows[] = {
		{ "as it was", CONV, CONV, 0, 4, true },
		{ "without shifts", CONV, CONV, 0, 0, true },
		{ "along the inputs", CONV, CONV, 1, 4, false },
		{ "along the inputs", GEMM, GEMM, 1, 5, false },
		{ "too few shifts", CONV, CONV, 0, 3, false },
		{ "too many shifts", GEMM, GEMM, 0, 6, false },
		{ "another op's", CONV, GEMM, 0, 4, false },
		{ "an op's without weights", CONV, RELU, 0, 4, false },
	};
	const double shift[8] = { 0 };
	float scale[16];
	struct bed b;
	struct rounding *whole = made(&b);
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_LEN(scale); i++)
		scale[i] = 0.01f;
	for (i = 0; i < ARRAY_LEN(rows); i++) {
		struct rounding *r = rounding_new(whole->n);
		struct rounded o = *whole->v[rows[i].from];
		int8_t zero[16] = { 0 };

		o.w.axis = rows[i].axis;
		o.w.scale.dims[0] = o.w.zero.dims[0] = o.w.q.dims[o.w.axis];
		o.w.scale.data = scale;
		o.w.zero.data = zero;
		o.shift = rows[i].shifts ? shift : NULL;
		o.n_shift = rows[i].shifts;
		rounding_set(r, rows[i].to, &o);
		if (carries(&b, r) != rows[i].fits)
			fail_msg("%s: %s", rows[i].why, rows[i].fits ? "refused" : "not refused");
		rounding_free(r);
	}
	rounding_free(whole);
	bed_close(&b);
}

static void mutate(struct rng *rng, char *bytes, size_t n)
{
	static const int64_t odd[] = { 0,         1,         2,         3,         4,
				       5,         -1,        8,         256,       1 << 16,
				       INT32_MIN, INT32_MAX, INT64_MIN, INT64_MAX, INT64_MAX / 16 };
	size_t changes = 1 + rng_below(rng, 3);

	while (changes--) {
		size_t width = (size_t)1 << rng_below(rng, 4), at = rng_below(rng, n / width) * width;
		int64_t x = odd[rng_below(rng, ARRAY_LEN(odd))];

		memcpy(bytes + at, &x, width); /* of a little-endian machine; or else another value */
	}
}

static void damaged_files(void **state)
{
	enum { ROUNDS = 4000 };
	struct err err = ERR_INIT;
	struct bed b;
	struct rounding *r = made(&b), *loaded = NULL;
	char *path = xstrfmt("%s/rounding", dir), text[4096];
	size_t n, i, opened = 0, carried = 0;
	struct rng rng;
	FILE *f;

	(void)state;
	assert_ok(rounding_save(r, path, &err), err);
	f = fopen(path, "rb");
	n = fread(text, 1, sizeof(text), f);
	fclose(f);
	assert_in_range(n, 100, sizeof(text) - 1);
	rng_seed(&rng, 11);
	for (i = 0; i < ROUNDS; i++) {
		char bytes[sizeof(text)];
		enum fettle_status st;

		memcpy(bytes, text, n);
		mutate(&rng, bytes, n);
		f = fopen(path, "wb");
		fwrite(bytes, 1, rng_below(&rng, 8) ? n : rng_below(&rng, n), f);
		fclose(f);
		st = rounding_load(&loaded, path, r->n, &err);
		assert_true(st == FETTLE_OK || (st == FETTLE_INVALID && err.msg[0]));
		if (st)
			continue;
		opened++;
		carried += carries(&b, loaded);
		rounding_free(loaded);
	}
	/* all of it happens */
	assert_in_range(opened, ROUNDS / 10, ROUNDS - ROUNDS / 10);
	assert_in_range(carried, ROUNDS / 20, opened - 20);
	rounding_free(r);
	free(path);
	bed_close(&b);
}

/* a file of a few bytes that says it is for thousands of millions of ops */
static void no_memory_for_a_promise(void **state)
{
	const uint64_t many = UINT32_MAX;
	char *path = xstrfmt("%s/rounding", dir);
	struct rounding *r = rounding_new(3), *loaded = NULL;
	struct err err = ERR_INIT;
	FILE *f;

	(void)state;
	assert_ok(rounding_save(r, path, &err), err);
	assert_int_equal(rounding_load(&loaded, path, 4, &err), FETTLE_INVALID);
	assert_non_null(strstr(err.msg, "it holds no rounding of 4 ops"));
	f = fopen(path, "r+b");
	fseek(f, 16, SEEK_SET);
	fwrite(&many, sizeof(many), 1, f);
	fclose(f);
	assert_int_equal(rounding_load(&loaded, path, 3, &err), FETTLE_INVALID);
	rounding_free(r);
	free(path);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_does_not_fit_is_refused),
		cmocka_unit_test(damaged_files),
		cmocka_unit_test(no_memory_for_a_promise),
	};

	return cmocka_run_group_tests(tests, begin, end);
}
