#include "unit/unit.h"

#include <float.h>

#include "base/mem.h"
#include "base/rng.h"
#include "calibrate/observer.h"

enum kind {
	NORMAL,
	LAPLACE,
	UNIFORM,
	RELU,
	OUTLIERS,
	TINY,
	HUGE_ONES,
	DENORMAL,
	ZEROS,
	NEGATIVE,
	MIXED,
	KINDS
};

static float draw(struct rng *r, enum kind kind)
{
	double g = rng_normal(r), u = rng_unit(r) - 0.5;

	switch (kind) {
	case NORMAL:
		return (float)g;
	case LAPLACE:
		return (float)copysign(log(1 - 2 * fabs(u)), u);
	case UNIFORM:
		return (float)u;
	case RELU:
		return g > 0 ? (float)g : rng_below(r, 2) ? 0.f : -0.f;
	case OUTLIERS:
		return (float)(rng_below(r, 500) ? g : 700 * g);
	case TINY:
		return (float)(g * 1e-30);
	case HUGE_ONES:
		return (float)(g * 1e30);
	case DENORMAL:
		return (float)(g * 1e-42);
	case NEGATIVE:
		return g < 0 ? (float)g : rng_below(r, 2) ? 0.f : -0.f;
	case MIXED: /* every octave there is, and exact powers of two, which are bin edges */
		return ldexpf(rng_below(r, 2) ? (float)u : 0.5f, (int)rng_below(r, 276) - 147);
	default:
		return 0;
	}
}

/* what the observer must say, the slow way: all values at once, two passes */
static void check_histogram(const struct observer *o, const float *x, size_t n)
{
	static uint64_t bins[OBSERVER_BINS];
	uint64_t zeros = 0;
	double top = 0, r = ldexp(1, OBSERVER_EXPONENT_MIN), sum = 0, size = 0, squares = 0;
	float min = x[0], max = x[0];
	size_t i;

	memset(bins, 0, sizeof(bins));
	for (i = 0; i < n; i++)
		top = fmax(top, fabs((double)x[i]));
	while (r <= top)
		r *= 2;
	for (i = 0; i < n; i++) {
		double k = floor(fabs((double)x[i]) / (r / OBSERVER_SIDE));

		min = x[i] < min ? x[i] : min;
		max = x[i] > max ? x[i] : max;
		sum += x[i];
		size += fabs((double)x[i]);
		squares += (double)x[i] * x[i];
		if (x[i] == 0)
			zeros++;
		else
			bins[x[i] > 0 ? OBSERVER_SIDE + (int)k : OBSERVER_SIDE - 1 - (int)k]++;
	}
	assert_true(ldexp(1, o->exponent) == r);
	assert_true(observer_width(o) == r / OBSERVER_SIDE);
	assert_int_equal(o->count, n);
	assert_int_equal(o->zeros, zeros);
	assert_memory_equal(o->bins, bins, sizeof(bins));
	assert_true(o->min == min && o->max == max);
	assert_false(signbit(o->min) && o->min == 0);
	assert_false(signbit(o->max) && o->max == 0);
	assert_true(fabs(o->sum - sum) <= 3e-7 * size);
	assert_true(fabs(o->squares - squares) <= 5e-7 * squares);
}

static void every_value_is_in_its_bin(void **state)
{
	static const size_t sizes[] = { 1,   2,   15,   16,   17,   31,   33,    127,
					128, 129, 1000, 1023, 1024, 1025, 20000, 70001 };
	struct observer_scratch *s = observer_scratch_new();
	struct observer *o = xmalloc(sizeof(*o));
	float *x = xmalloc(70001 * sizeof(*x));
	struct err err = ERR_INIT;
	struct rng r;
	size_t i, k;
	int kind;

	(void)state;
	rng_seed(&r, 1);
	for (kind = 0; kind < KINDS; kind++)
		for (i = 0; i < ARRAY_LEN(sizes); i++) {
			for (k = 0; k < sizes[i]; k++)
				x[k] = draw(&r, (enum kind)kind);
			observer_init(o, &(struct observer_options){ .name = "t" });
			assert_ok(observer_add(o, s, x, 1, sizes[i], &err), err);
			check_histogram(o, x, sizes[i]);
			observer_release(o);
		}
	free(x);
	free(o);
	observer_scratch_free(s);
}

/* adds samples in the given order, cut into random batches */
static void add_in_batches(struct observer *o, struct observer_scratch *s, const float *x, size_t per,
			   const size_t *order, size_t samples, struct rng *r)
{
	float *batch = xmalloc(samples * per * sizeof(*batch));
	struct err err = ERR_INIT;
	size_t i = 0, k, n;

	while (i < samples) {
		n = 1 + rng_below(r, samples - i);
		for (k = 0; k < n; k++)
			memcpy(batch + k * per, x + order[i + k] * per, per * sizeof(*x));
		assert_ok(observer_add(o, s, batch, n, per, &err), err);
		i += n;
	}
	free(batch);
}

static void batches_and_order_do_not_matter(void **state)
{
	enum { SAMPLES = 24, PER = 1500 };
	static const struct observer_options opt = {
		.name = "t", .averaging = { 0.01, 0.5 }, .channels = 3, .inner = 7
	};
	struct observer_scratch *s = observer_scratch_new();
	struct observer *a = xmalloc(sizeof(*a)), *b = xmalloc(sizeof(*b));
	float *x = xmalloc(SAMPLES * PER * sizeof(*x)), *kept;
	size_t order[SAMPLES], i, per;
	struct err err = ERR_INIT;
	struct rng r;
	int kind, turn;

	(void)state;
	rng_seed(&r, 2);
	for (kind = 0; kind < KINDS; kind++)
		for (turn = 0; turn < 6; turn++) {
			per = 1 + rng_below(&r, PER);
			for (i = 0; i < SAMPLES * per; i++)
				x[i] = draw(&r, (enum kind)kind) * ((float)(1 + i / per) / SAMPLES);
			for (i = 0; i < SAMPLES; i++)
				order[i] = i;
			observer_init(a, &opt);
			assert_ok(observer_add(a, s, x, SAMPLES, per, &err), err);
			check_histogram(a, x, SAMPLES * per);

			observer_init(b, &opt);
			add_in_batches(b, s, x, per, order, SAMPLES, &r);
			assert_memory_equal(a->channel_max, b->channel_max, 3 * sizeof(float));
			kept = b->channel_max;
			b->channel_max = a->channel_max;
			assert_memory_equal(a, b, sizeof(*a)); /* sums and averages too */
			b->channel_max = kept;
			observer_release(b);

			rng_shuffle(&r, order, SAMPLES);
			observer_init(b, &opt);
			add_in_batches(b, s, x, per, order, SAMPLES, &r);
			assert_memory_equal(a->bins, b->bins, sizeof(a->bins));
			assert_memory_equal(a->channel_max, b->channel_max, 3 * sizeof(float));
			assert_true(a->min == b->min && a->max == b->max && a->zeros == b->zeros);
			assert_int_equal(a->exponent, b->exponent);
			observer_release(a);
			observer_release(b);
		}
	free(x);
	free(a);
	free(b);
	observer_scratch_free(s);
}

static void parts_join_to_the_whole(void **state)
{
	enum { SAMPLES = 24, PER = 1500 };
	struct observer_options opt = { .name = "t", .averaging = { 0.01, 0.5 } };
	struct observer_scratch *s = observer_scratch_new();
	struct observer *a = xmalloc(sizeof(*a)), *b = xmalloc(sizeof(*b)), *part = xmalloc(sizeof(*part));
	float *x = xmalloc(SAMPLES * PER * sizeof(*x));
	size_t i, n, per;
	struct err err = ERR_INIT;
	struct rng r;
	int kind, turn;

	(void)state;
	rng_seed(&r, 3);
	for (kind = 0; kind < KINDS; kind++)
		for (turn = 0; turn < 6; turn++) {
			per = 1 + rng_below(&r, PER);
			for (i = 0; i < SAMPLES * per; i++)
				x[i] = draw(&r, (enum kind)kind) *
				       (turn % 2 ? (float)(1 + i / per) / SAMPLES
						 : (float)(SAMPLES - i / per) / SAMPLES);
			opt.keep_samples = false;
			observer_init(a, &opt);
			assert_ok(observer_add(a, s, x, SAMPLES, per, &err), err);
			observer_init(b, &opt);
			opt.keep_samples = true;
			for (i = 0; i < SAMPLES; i += n) {
				n = 1 + rng_below(&r, SAMPLES - i);
				observer_init(part, &opt);
				assert_ok(observer_add(part, s, x + i * per, n, per, &err), err);
				observer_join(b, part);
				observer_release(part);
			}
			/* of numbers with many octaves between them, the last bits of the sums may differ */
			assert_true(fabs(a->sum - b->sum) <= 1e-12 * fabs(a->sum) || kind >= TINY);
			assert_true(fabs(a->squares - b->squares) <= 1e-12 * a->squares || kind >= TINY);
			b->sum = a->sum;
			b->squares = a->squares;
			assert_memory_equal(a, b, sizeof(*a));
			observer_release(a);
			observer_release(b);
		}
	free(x);
	free(a);
	free(b);
	free(part);
	observer_scratch_free(s);
}

static void bounds_double_many_octaves(void **state)
{
	static const float x[] = { 0, 1e-30f, -1e-30f, 1e-45f, 1, -1, 1e30f, -1e30f, FLT_MAX, -FLT_MAX };
	struct observer_scratch *s = observer_scratch_new();
	struct observer *o = xmalloc(sizeof(*o));
	struct err err = ERR_INIT;
	size_t i;

	(void)state;
	observer_init(o, &(struct observer_options){ .name = "t" });
	for (i = 0; i < ARRAY_LEN(x); i++) {
		assert_ok(observer_add(o, s, x + i, 1, 1, &err), err);
		check_histogram(o, x, i + 1);
	}
	assert_int_equal(o->exponent, 128);
	observer_release(o);
	free(o);
	observer_scratch_free(s);
}

/* the counters of the ways have sixteen bits: one bin of one way must not wrap round */
static void one_bin_takes_them_all(void **state)
{
	enum { N = 300000 };
	static const size_t per[] = { 1, 2, 5, 129, 1025, N };
	struct observer_scratch *s = observer_scratch_new();
	struct observer *o = xmalloc(sizeof(*o));
	float *x = xmalloc(N * sizeof(*x));
	struct err err = ERR_INIT;
	size_t i, k;

	(void)state;
	for (i = 0; i < N; i++)
		x[i] = 3;
	for (k = 0; k < ARRAY_LEN(per); k++) {
		observer_init(o, &(struct observer_options){ .name = "t" });
		assert_ok(observer_add(o, s, x, N / per[k], per[k], &err), err);
		assert_int_equal(o->bins[OBSERVER_SIDE + OBSERVER_SIDE * 3 / 4], N / per[k] * per[k]);
		observer_release(o);
	}
	free(x);
	free(o);
	observer_scratch_free(s);
}

static void averages_follow_the_samples(void **state)
{
	static const float x[] = { -1, 1, -3, 2, 0, 9 };
	struct observer_scratch *s = observer_scratch_new();
	struct observer *o = xmalloc(sizeof(*o));
	struct err err = ERR_INIT;

	(void)state;
	observer_init(o, &(struct observer_options){ .averaging = { 0.5, 0.25 } });
	assert_ok(observer_add(o, s, x, 3, 2, &err), err);
	assert_int_equal(o->n_averages, 2);
	assert_true(o->average[0].min == -1 && o->average[0].max == 5.25);
	assert_true(o->average[1].min == -1.125 && o->average[1].max == 3.1875);
	assert_int_equal(o->samples, 3);
	observer_release(o);

	observer_init(o, &(struct observer_options){ .name = "t" });
	assert_int_equal(o->n_averages, 1);
	assert_true(o->average[0].constant == 0.01);
	assert_ok(observer_add(o, s, x, 2, 2, &err), err);
	assert_true(fabs(o->average[0].max - 1.01) < 1e-12);
	observer_release(o);
	free(o);
	observer_scratch_free(s);
}

static void channels_have_their_own_maxima(void **state)
{
	static const struct {
		const char *why;
		size_t channels, inner, per;
	} rows[] = {
		{ "NCHW", 5, 49, 5 * 49 },
		{ "NCHW, a large plane", 3, 3000, 9000 },
		{ "channels last", 64, 1, 640 },
		{ "one channel", 1, 1, 77 },
		{ "a short row at the end", 7, 1, 50 },
		{ "a short plane at the end", 4, 9, 50 },
		{ "fewer values than channels", 9, 3, 10 },
	};
	struct observer_scratch *s = observer_scratch_new();
	struct observer *o = xmalloc(sizeof(*o));
	float *x = xmalloc(4 * 9000 * sizeof(*x)), want[64];
	struct err err = ERR_INIT;
	struct rng r;
	size_t i, k, c;

	(void)state;
	rng_seed(&r, 3);
	for (k = 0; k < ARRAY_LEN(rows); k++) {
		memset(want, 0, sizeof(want));
		for (i = 0; i < 4 * rows[k].per; i++) {
			c = i % rows[k].per / rows[k].inner % rows[k].channels;
			x[i] = draw(&r, OUTLIERS);
			want[c] = fmaxf(want[c], fabsf(x[i]));
		}
		observer_init(o, &(struct observer_options){ .channels = rows[k].channels,
							     .inner = rows[k].inner });
		assert_ok(observer_add(o, s, x, 4, rows[k].per, &err), err);
		for (c = 0; c < rows[k].channels; c++)
			if (o->channel_max[c] != want[c])
				fail_msg("%s: channel %zu has %g, want %g", rows[k].why, c,
					 (double)o->channel_max[c], (double)want[c]);
		observer_release(o);
	}
	free(x);
	free(o);
	observer_scratch_free(s);
}

static void values_must_be_finite(void **state)
{
	static const struct {
		float x;
		const char *say;
	} rows[] = { { NAN, "NaN" }, { INFINITY, "Inf" }, { -INFINITY, "-Inf" } };
	enum { N = 40000 };
	struct observer_scratch *s = observer_scratch_new();
	struct observer *o = xmalloc(sizeof(*o));
	float *x = xcalloc(N, sizeof(*x));
	static const size_t at[] = { 0, 7, 8, 33, 1023, 1024, 20000, N - 1 };
	char want[128];
	size_t i, k;

	(void)state;
	for (i = 0; i < ARRAY_LEN(rows); i++)
		for (k = 0; k < ARRAY_LEN(at); k++) {
			struct err err = ERR_INIT;

			x[at[k]] = rows[i].x;
			observer_init(o, &(struct observer_options){ .name = "relu_3" });
			assert_int_equal(observer_add(o, s, x, 1, N, &err), FETTLE_INVALID);
			snprintf(want, sizeof(want),
				 "cannot calibrate tensor relu_3: %s, values must be finite", rows[i].say);
			assert_string_equal(err.msg, want);
			observer_release(o);

			/* the scratch is as good as new */
			x[at[k]] = 1;
			observer_init(o, &(struct observer_options){ .name = "next" });
			assert_ok(observer_add(o, s, x, 1, N, &err), err);
			check_histogram(o, x, N);
			observer_release(o);
			x[at[k]] = 0;
		}
	free(x);
	free(o);
	observer_scratch_free(s);
}

static void nothing_is_no_sample(void **state)
{
	struct observer_scratch *s = observer_scratch_new();
	struct observer *o = xmalloc(sizeof(*o));
	struct err err = ERR_INIT;

	(void)state;
	assert_true(sizeof(*o) <= 40 * 1024);
	observer_init(o, &(struct observer_options){ .name = "t" });
	assert_ok(observer_add(o, s, NULL, 0, 10, &err), err);
	assert_ok(observer_add(o, s, NULL, 10, 0, &err), err);
	assert_int_equal(o->samples, 0);
	observer_release(o);
	free(o);
	observer_scratch_free(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_value_is_in_its_bin),
		cmocka_unit_test(batches_and_order_do_not_matter),
		cmocka_unit_test(parts_join_to_the_whole),
		cmocka_unit_test(bounds_double_many_octaves),
		cmocka_unit_test(one_bin_takes_them_all),
		cmocka_unit_test(averages_follow_the_samples),
		cmocka_unit_test(channels_have_their_own_maxima),
		cmocka_unit_test(values_must_be_finite),
		cmocka_unit_test(nothing_is_no_sample),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
