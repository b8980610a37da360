#include "unit/unit.h"

#include "base/mem.h"
#include "base/rng.h"
#include "tensor/quant.h"

static void params_follow_the_rules(void **state)
{
	static const struct {
		const char *why;
		float min, max;
		enum dtype t;
		enum scheme scheme;
		bool narrow;
		struct qparams want;
	} rows[] = {
		{ "symmetric takes the wider side", -2, 1, DT_S8, SCHEME_SYM, false, { 2 / 127.f, 0 } },
		{ "range is widened to hold zero", 1, 3, DT_U8, SCHEME_ASYM, false, { 3 / 255.f, 0 } },
		{ "also from below", -3, -1, DT_U8, SCHEME_ASYM, false, { 3 / 255.f, 255 } },
		{ "constant zero keeps scale 1", 0, 0, DT_U8, SCHEME_ASYM, false, { 1, 0 } },
		{ "constant zero, symmetric", 0, 0, DT_S8, SCHEME_SYM, false, { 1, 0 } },
		{ "a denormal range counts as zero", 0, 1e-40f, DT_U8, SCHEME_ASYM, false, { 1, 0 } },
		{ "signed zero point is at the bottom", 0, 255, DT_S8, SCHEME_ASYM, false, { 1, -128 } },
		{ "seven bits", -63, 1, DT_S8, SCHEME_SYM, true, { 1, 0 } },
		{ "unsigned symmetric is centred", -127, 1, DT_U8, SCHEME_SYM, false, { 1, 128 } },
		{ "sixteen bits", 0, 65535, DT_U16, SCHEME_ASYM, false, { 1, 0 } },
		{ "sixteen bits symmetric", -32767, 0, DT_S16, SCHEME_SYM, false, { 1, 0 } },
	};
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_LEN(rows); i++) {
		struct qparams q =
			quant_params(rows[i].min, rows[i].max, rows[i].t, rows[i].scheme, rows[i].narrow);

		if (q.scale != rows[i].want.scale || q.zero != rows[i].want.zero)
			fail_msg("%s: scale %g zero %d, want %g %d", rows[i].why, (double)q.scale, q.zero,
				 (double)rows[i].want.scale, rows[i].want.zero);
	}
}

static void powers_of_two_never_clip(void **state)
{
	struct rng r;
	int i, e;

	(void)state;
	rng_seed(&r, 1);
	for (i = 0; i < 1000; i++) {
		float m = (float)ldexp(rng_unit(&r) + 1e-3, (int)rng_below(&r, 20) - 10);
		struct qparams q = quant_params_pow2(-m, m, DT_S8, SCHEME_SYM, false);

		assert_true(frexpf(q.scale, &e) == 0.5f);
		assert_true(q.scale * 127 >= m * 0.999999f);
		assert_true(q.scale * 127 < 2.01f * m);
	}
}

/* what any quantizer must satisfy: zero is exact, inside the range the error is at most half a step */
static void every_type_is_close(void **state)
{
	static const enum dtype types[] = { DT_U8, DT_S8, DT_U16, DT_S16 };
	struct rng r;
	int i;

	(void)state;
	rng_seed(&r, 2);
	for (i = 0; i < 20000; i++) {
		enum dtype t = types[rng_below(&r, 4)];
		enum scheme scheme = rng_below(&r, 2) ? SCHEME_SYM : SCHEME_ASYM;
		bool narrow = rng_below(&r, 2);
		float a = (float)ldexp(rng_normal(&r), (int)rng_below(&r, 40) - 20),
		      b = (float)ldexp(rng_normal(&r), (int)rng_below(&r, 40) - 20);
		float min = a < b ? a : b, max = a < b ? b : a;
		struct qparams q = quant_params(min, max, t, scheme, narrow);
		struct qlimits lim = quant_limits(t, scheme, narrow);
		float x[3] = { 0, min + (float)rng_unit(&r) * (max - min), max }, step = q.scale;
		int32_t v[3];
		uint16_t wide[3];
		int k;

		for (k = 0; k < 3; k++) {
			v[k] = quant_value(x[k], q, lim);
			assert_in_range(v[k] - lim.lo, 0, lim.hi - lim.lo);
			/* the zero point's rounding may cost up to another half step at the ends */
			assert_true(fabsf((float)(v[k] - q.zero) * step - x[k]) <= 1.002f * step);
		}
		assert_int_equal(v[0], q.zero);
		quant_array(x, 3, q, lim, t, wide);
		for (k = 0; k < 3; k++) {
			struct tensor as = { .dtype = t, .rank = 1, .dims = { 3 }, .data = wide };

			assert_int_equal((int)tensor_get(&as, (size_t)k), v[k]);
		}
	}
}

static void halves_round_to_even(void **state)
{
	struct qparams q = { 1, 0 };
	struct qlimits lim = quant_limits(DT_S8, SCHEME_SYM, false);

	(void)state;
	assert_int_equal(quant_value(0.5f, q, lim), 0);
	assert_int_equal(quant_value(1.5f, q, lim), 2);
	assert_int_equal(quant_value(-2.5f, q, lim), -2);
	assert_int_equal(quant_value(1e30f, q, lim), 127);
	assert_int_equal(quant_value(-1e30f, q, lim), -127);
}

static void halves_survive_a_round_trip(void **state)
{
	uint16_t h, back;
	struct tensor t = { .dtype = DT_F16, .rank = 1, .dims = { 1 }, .data = &h };
	struct tensor u = { .dtype = DT_F16, .rank = 1, .dims = { 1 }, .data = &back };
	unsigned i;

	(void)state;
	for (i = 0; i < 65536; i++) {
		double x;

		h = (uint16_t)i;
		x = tensor_get(&t, 0);
		if (isnan(x))
			continue;
		tensor_set(&u, 0, x);
		assert_int_equal(back, h);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(params_follow_the_rules),     cmocka_unit_test(powers_of_two_never_clip),
		cmocka_unit_test(every_type_is_close),         cmocka_unit_test(halves_round_to_even),
		cmocka_unit_test(halves_survive_a_round_trip),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
