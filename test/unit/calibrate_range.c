#include "unit/unit.h"

#include <float.h>

#include "base/mem.h"
#include "base/rng.h"
#include "calibrate/range.h"

enum { N = 30000 };
enum kind {
	NORMAL,
	LAPLACE,
	UNIFORM,
	RELU,
	OUTLIERS,
	SWISH,
	NEGATIVE,
	SPIKE,

	TINY,
	HUGE_ONES,
	KINDS
};
static const char *const kind_names[] = { "normal", "laplace",  "uniform", "relu", "outliers",
					  "swish",  "negative", "spike",   "tiny", "huge" };

static float draw(struct rng *r, enum kind kind)
{
	double g = rng_normal(r), u = rng_unit(r) - 0.5;

	switch (kind) {
	case NORMAL:
		return (float)(g + 0.3);
	case LAPLACE:
		return (float)copysign(log(1 - 2 * fabs(u)), u);
	case UNIFORM:
		return (float)(3 * u + 1);
	case RELU:
		return (float)fmax(g, 0);
	case OUTLIERS:
		return (float)(rng_below(r, 1000) ? g : 12 * g);
	case SWISH:
		return (float)(3 * g / (1 + exp(-3 * g)));
	case NEGATIVE:
		return (float)-fabs(g);
	case SPIKE: /* all but a few round to zero */
		return (float)(rng_below(r, 300) ? 1e-3 * g : g);
	case TINY:
		return (float)(g * 1e-30);
	default:
		return (float)(g * 1e30);
	}
}

/* one tensor's worth of data and its observer */
struct data {
	float x[N];
	size_t n;
	struct observer o;
};

static struct data *observe(const float *x, size_t n)
{
	struct data *d = xmalloc(sizeof(*d));
	struct observer_scratch *s = observer_scratch_new();
	struct err err = ERR_INIT;

	memcpy(d->x, x, n * sizeof(*x));
	d->n = n;
	observer_init(&d->o, &(struct observer_options){ .name = "t" });
	assert_ok(observer_add(&d->o, s, x, 1, n, &err), err);
	observer_scratch_free(s);
	return d;
}

static struct data *random_data(struct rng *r, enum kind kind)
{
	float *x = xmalloc(N * sizeof(*x));
	struct data *d;
	size_t i;

	for (i = 0; i < N; i++)
		x[i] = draw(r, kind);
	d = observe(x, N);
	free(x);
	return d;
}

static struct range compute(const struct data *d, enum range_algorithm a, enum dtype t, enum scheme scheme)
{
	struct range_options opt = RANGE_OPTIONS_INIT;
	struct err err = ERR_INIT;
	struct range r;

	opt.algorithm = a;
	opt.parameter = range_methods[a]->parameter.by_default;
	opt.dtype = t;
	opt.scheme = scheme;
	assert_ok(range_compute(&d->o, &opt, &r, &err), err);
	return r;
}

/* the mean squared error of really quantizing the data, relative to the data's largest value */
static double real_mse(const struct data *d, struct range r, enum dtype t, enum scheme scheme)
{
	struct qparams q = quant_params(r.min, r.max, t, scheme, false);
	struct qlimits lim = quant_limits(t, scheme, false);
	double sum = 0, top = fmax(-(double)d->o.min, d->o.max);
	size_t i;

	for (i = 0; i < d->n; i++) {
		double e = ((double)q.scale * (quant_value(d->x[i], q, lim) - q.zero) - d->x[i]) / top;

		sum += e * e;
	}
	return sum / (double)d->n;
}

static void minmax_is_all_there_is(void **state)
{
	struct rng r;
	int kind;

	(void)state;
	rng_seed(&r, 1);
	for (kind = 0; kind < KINDS; kind++) {
		struct data *d = random_data(&r, (enum kind)kind);
		struct range got = compute(d, RANGE_MINMAX, DT_U8, SCHEME_ASYM);
		float min = 0, max = 0;
		size_t i;

		for (i = 0; i < d->n; i++) {
			min = fminf(min, d->x[i]);
			max = fmaxf(max, d->x[i]);
		}
		assert_true(got.min == min && got.max == max);
		got = compute(d, RANGE_MOVING_AVERAGE, DT_U8, SCHEME_ASYM); /* of one sample: the same */
		assert_true(got.min == min && got.max == max);
		free(d);
	}
}

static int by_value(const void *a, const void *b)
{
	float x = *(const float *)a, y = *(const float *)b;

	return (x > y) - (x < y);
}

/* one cut: between the sorted values on either side of the wanted rank, to within a bin */
static void check_cut(const float *sorted, size_t n, double cut, double got, double width)
{
	double rank = (double)n - cut;
	size_t below = (size_t)fmin(fmax(floor(rank) - 1, 0), (double)(n - 1)),
	       above = below + 1 < n ? below + 1 : below;

	assert_true(got >= sorted[below] - 1.001 * width);
	assert_true(got <= sorted[above] + 1.001 * width);
}

static void percentile_cuts_by_rank(void **state)
{
	static const double shares[] = { 90, 99, 99.9, 99.99, 99.999, 100 };
	struct err err = ERR_INIT;
	struct rng r;
	float *s = xmalloc(N * sizeof(*s));
	int kind;
	size_t i, k;

	(void)state;
	rng_seed(&r, 2);
	for (kind = 0; kind < KINDS; kind++) {
		struct data *d = random_data(&r, (enum kind)kind);

		for (k = 0; k < ARRAY_LEN(shares); k++) {
			struct range_options opt = RANGE_OPTIONS_INIT;
			double width = observer_width(&d->o), cut = N * (100 - shares[k]) / 100;
			bool two = d->o.min < 0 && d->o.max > 0;
			struct range got;

			opt.algorithm = RANGE_PERCENTILE;
			opt.parameter = shares[k];
			assert_ok(range_compute(&d->o, &opt, &got, &err), err);
			assert_true(got.min >= fminf(d->o.min, 0) && got.max <= fmaxf(d->o.max, 0));
			if (shares[k] == 100)
				assert_true(got.min == fminf(d->o.min, 0) && got.max == fmaxf(d->o.max, 0));
			for (i = 0; i < N; i++)
				s[i] = d->x[i];
			qsort(s, N, sizeof(*s), by_value);
			if (d->o.max > 0)
				check_cut(s, N, two ? cut / 2 : cut, got.max, width);
			for (i = 0; i < N; i++)
				s[i] = -d->x[i];
			qsort(s, N, sizeof(*s), by_value);
			if (d->o.min < 0)
				check_cut(s, N, two ? cut / 2 : cut, -got.min, width);

			opt.scheme = SCHEME_SYM;
			assert_ok(range_compute(&d->o, &opt, &got, &err), err);
			for (i = 0; i < N; i++)
				s[i] = fabsf(d->x[i]);
			qsort(s, N, sizeof(*s), by_value);
			check_cut(s, N, cut, fmaxf(-got.min, got.max), width);
		}
		free(d);
	}
	free(s);
}

static void percentile_keeps_the_few_among_zeros(void **state)
{
	static float x[N];
	struct data *d;
	struct range r;

	(void)state;
	x[5] = 2;
	d = observe(x, N);
	r = compute(d, RANGE_PERCENTILE, DT_U8, SCHEME_ASYM);
	assert_true(r.min == 0 && r.max == 2);
	free(d);
}

/* Migacz's description step by step, with vectors P and Q, for |x| clipped after n bins */
static double slow_divergence(const double *h, int n, int levels)
{
	static double p[OBSERVER_SIDE], q[OBSERVER_SIDE];
	double sp = 0, sq = 0, d = 0;
	int i, l, k;

	for (i = 0; i < n; i++)
		p[i] = h[i];
	for (i = n; i < OBSERVER_SIDE; i++)
		p[n - 1] += h[i];
	for (l = 0; l < levels; l++) {
		int from = l * n / levels, to = (l + 1) * n / levels, used = 0;
		double mass = 0;

		for (k = from; k < to; k++) {
			mass += h[k];
			used += p[k] > 0;
		}
		for (k = from; k < to; k++)
			q[k] = p[k] > 0 ? mass / used : 0;
	}
	for (i = 0; i < n; i++)
		sq += q[i];
	if (p[n - 1] > 0 && q[n - 1] <= 0)
		q[n - 1] = 1e-4 * sq;
	for (sq = 0, i = 0; i < n; i++) {
		sp += p[i];
		sq += q[i];
	}
	for (i = 0; i < n; i++)
		if (p[i] > 0)
			d += p[i] / sp * log(p[i] / sp / (q[i] / sq));
	return d;
}

static void check_kl(const struct data *d, const char *name, enum dtype t, enum scheme scheme)
{
	double h[OBSERVER_SIDE] = { 0 }, width = observer_width(&d->o), least = INFINITY, every = INFINITY,
	       at = 0, mine;
	double top = fmax(-(double)d->o.min, d->o.max);
	struct range got = compute(d, RANGE_KL, t, scheme);
	double threshold = fmax(-(double)got.min, got.max), span;
	size_t i;
	int n, last, levels;

	for (i = 0; i < d->n; i++)
		if (d->x[i] != 0)
			h[(int)(fabs((double)d->x[i]) / width)]++;
	last = (int)(top / width) + 1;
	for (n = last; n >= 128; n--) {
		double v;

		span = fmin(fmax(d->o.max, 0), n * width) - fmax(fmin(d->o.min, 0), -n * width);
		levels = scheme == SCHEME_SYM ? 128 : (int)rint(256 * n * width / fmax(span, n * width));
		if (n < levels)
			break;
		v = slow_divergence(h, n, levels);
		every = fmin(every, v);
		if ((last - n) % 8 == 0 && v < least) {
			least = v;
			at = n * width;
		}
	}
	n = threshold >= top ? last : (int)rint(threshold / width);
	span = (double)got.max - got.min;
	levels = scheme == SCHEME_SYM ? 128 : (int)rint(256 * n * width / fmax(span, n * width));
	mine = slow_divergence(h, n, levels);
	if (mine > least * (1 + 1e-9) + 1e-12)
		fail_msg("%s: threshold %g has divergence %g, but %g has %g", name, threshold, mine, at,
			 least);
	assert_true(mine < 1.1 * every + 1e-6); /* looking at each eighth only costs little */
	assert_true(got.min == fmaxf(fminf(d->o.min, 0), (float)-threshold));
	assert_true(got.max == fminf(fmaxf(d->o.max, 0), (float)threshold));
}

static void kl_matches_the_description(void **state)
{
	struct rng r;
	int kind;

	(void)state;
	rng_seed(&r, 3);
	for (kind = 0; kind < KINDS; kind++) {
		struct data *d = random_data(&r, (enum kind)kind);
		struct range wide;

		check_kl(d, kind_names[kind], DT_U8, SCHEME_ASYM);
		check_kl(d, kind_names[kind], DT_S8, SCHEME_SYM);
		wide = compute(d, RANGE_KL, DT_S16, SCHEME_SYM);
		assert_true(wide.min == fminf(d->o.min, 0) && wide.max == fmaxf(d->o.max, 0));
		free(d);
	}
}

/* it is not min-max in disguise: outliers are clipped, a uniform distribution is not */
static void kl_clips_outliers_only(void **state)
{
	struct rng r;
	struct data *d;
	struct range got;

	(void)state;
	rng_seed(&r, 4);
	d = random_data(&r, OUTLIERS);
	got = compute(d, RANGE_KL, DT_S8, SCHEME_SYM);
	assert_true(got.max < 0.5f * fmaxf(-d->o.min, d->o.max));
	assert_true(got.max > 2);
	free(d);
	d = random_data(&r, UNIFORM);
	got = compute(d, RANGE_KL, DT_U8, SCHEME_ASYM);
	assert_true(got.max > 0.95f * d->o.max);
	free(d);
}

static void check_mse(const struct data *d, const char *name, enum dtype t, enum scheme scheme)
{
	enum { TRIES = 60 };
	struct range got = compute(d, RANGE_MSE, t, scheme), best = { 0, 0 }, r;
	double least = INFINITY, mine = real_mse(d, got, t, scheme), v;
	int i, k, lows = scheme == SCHEME_SYM || d->o.min >= 0 || d->o.max <= 0 ? 1 : TRIES;

	for (i = 1; i <= TRIES; i++)
		for (k = 1; k <= lows; k++) {
			r.max = d->o.max * (float)i / TRIES;
			r.min = d->o.min * (float)(lows == 1 ? i : k) / TRIES;
			v = real_mse(d, r, t, scheme);
			if (v < least) {
				least = v;
				best = r;
			}
		}
	if (mine > 1.04 * least)
		fail_msg("%s: [%g, %g] has error %g, but [%g, %g] has %g", name, (double)got.min,
			 (double)got.max, mine, (double)best.min, (double)best.max, least);
	assert_true(got.min >= fminf(d->o.min, 0) && got.max <= fmaxf(d->o.max, 0));
}

static void mse_is_the_least_there_is(void **state)
{
	struct rng r;
	int kind;

	(void)state;
	rng_seed(&r, 5);
	for (kind = 0; kind < KINDS; kind++) {
		struct data *d = random_data(&r, (enum kind)kind);

		d->n = 6000; /* the brute force is slow; the observer saw the rest of the same kind too */
		observer_release(&d->o);
		{
			struct data *few = observe(d->x, d->n);

			check_mse(few, kind_names[kind], DT_U8, SCHEME_ASYM);
			check_mse(few, kind_names[kind], DT_S8, SCHEME_SYM);
			free(few);
		}
		free(d);
	}
}

/* one value in a million is not worth half the levels; the other end must not pay for it */
static void mse_clips_either_end_alone(void **state)
{
	struct observer_scratch *s = observer_scratch_new();
	struct observer *o = xmalloc(sizeof(*o));
	struct range_options opt = RANGE_OPTIONS_INIT;
	float *x = xmalloc(N * sizeof(*x));
	struct err err = ERR_INIT;
	struct rng r;
	int i, sign;

	(void)state;
	opt.algorithm = RANGE_MSE;
	rng_seed(&r, 8);
	for (i = 0; i < N; i++)
		x[i] = (float)(2 * rng_unit(&r) - 1);
	for (sign = -1; sign <= 1; sign += 2) {
		float far = (float)(3 * sign);
		struct range got;

		observer_init(o, &(struct observer_options){ .name = "t" });
		for (i = 0; i < 40; i++)
			assert_ok(observer_add(o, s, x, 1, N, &err), err);
		assert_ok(observer_add(o, s, &far, 1, 1, &err), err);
		assert_ok(range_compute(o, &opt, &got, &err), err);
		assert_true(fabsf(got.min + 1) < (sign < 0 ? 0.5f : 0.02f));
		assert_true(fabsf(got.max - 1) < (sign > 0 ? 0.5f : 0.02f));
		observer_release(o);
	}
	free(x);
	free(o);
	observer_scratch_free(s);
}

static bool is_power_of_two(float x)
{
	int e;

	return frexpf(x, &e) == 0.5f;
}

static void powers_of_two_are_exact(void **state)
{
	static const enum dtype types[] = { DT_U8, DT_S8, DT_U16, DT_S16 };
	struct rng r;
	int kind, t, scheme, octave;

	(void)state;
	rng_seed(&r, 6);
	for (kind = 0; kind < KINDS; kind++) {
		struct data *d = random_data(&r, (enum kind)kind);

		for (t = 0; t < 4; t++)
			for (scheme = SCHEME_ASYM; scheme <= SCHEME_SYM; scheme++) {
				enum scheme sc = (enum scheme)scheme;
				struct range a = compute(d, RANGE_NONOVERFLOW, types[t], sc),
					     b = compute(d, RANGE_MINMSE, types[t], sc);
				struct qparams qa = quant_params(a.min, a.max, types[t], sc, false),
					       qb = quant_params(b.min, b.max, types[t], sc, false),
					       want = quant_params_pow2(d->o.min, d->o.max, types[t], sc,
									false);
				double least = INFINITY, mine = real_mse(d, b, types[t], sc);

				assert_true(qa.scale == want.scale && qa.zero == want.zero);
				assert_true(is_power_of_two(qb.scale));
				assert_true(qb.scale <= qa.scale && qb.scale >= qa.scale / 64);
				/* the best of the scales for the same relative position of zero */
				for (octave = 0; octave <= 6; octave++) {
					float f = ldexpf(1, -octave);
					struct range c = { a.min * f, a.max * f };

					least = fmin(least, real_mse(d, c, types[t], sc));
				}
				if (mine > 1.03 * least)
					fail_msg("%s, %s, scheme %d: scale %g has error %g, another %g",
						 kind_names[kind], dtype_name(types[t]), scheme,
						 (double)qb.scale, mine, least);
			}
		free(d);
	}
}

static void minmse_gives_up_outliers(void **state)
{
	struct rng r;
	struct data *d;
	struct range a, b;

	(void)state;
	rng_seed(&r, 7);
	d = random_data(&r, NORMAL);
	d->x[0] = 17; /* just above 127 / 8 */
	{
		struct data *far = observe(d->x, N);

		a = compute(far, RANGE_NONOVERFLOW, DT_S8, SCHEME_SYM);
		b = compute(far, RANGE_MINMSE, DT_S8, SCHEME_SYM);
		assert_true(b.max <= a.max / 2);
		assert_true(real_mse(far, b, DT_S8, SCHEME_SYM) < real_mse(far, a, DT_S8, SCHEME_SYM));
		free(far);
	}
	free(d);
}

/* every algorithm, type and scheme on data with nothing to choose from */
static void degenerate_tensors_have_ranges(void **state)
{
	static const struct {
		const char *why;
		float x[4];
		size_t n;
	} rows[] = {
		{ "zeros", { 0, 0, 0 }, 3 },
		{ "negative zero", { -0.f }, 1 },
		{ "one value", { 3 }, 1 },
		{ "one negative value", { -3 }, 1 },
		{ "constant", { 0.1f, 0.1f, 0.1f, 0.1f }, 4 },
		{ "two values", { 0, 1 }, 2 },
		{ "two values of either sign", { -1, 5 }, 2 },
		{ "the smallest there is", { FLT_TRUE_MIN, -FLT_TRUE_MIN }, 2 },
		{ "the largest there is", { FLT_MAX, -FLT_MAX }, 2 },
		{ "both", { FLT_MAX, FLT_TRUE_MIN }, 2 },
		{ "a power of two", { 1, -1 }, 2 },
	};
	static const enum dtype types[] = { DT_U8, DT_S8, DT_U16, DT_S16 };
	size_t i, t, k;
	int a, scheme;

	(void)state;
	for (i = 0; i < ARRAY_LEN(rows); i++) {
		struct data *d = observe(rows[i].x, rows[i].n);

		for (a = 0; a < RANGE_ALGORITHMS; a++)
			for (t = 0; t < ARRAY_LEN(types); t++)
				for (scheme = SCHEME_ASYM; scheme <= SCHEME_SYM; scheme++) {
					struct range r = compute(d, (enum range_algorithm)a, types[t],
								 (enum scheme)scheme);
					bool pow2 = a == RANGE_NONOVERFLOW || a == RANGE_MINMSE;

					if (!(isfinite(r.min) && isfinite(r.max) && r.min <= 0 && r.max >= 0))
						fail_msg("%s, %s: [%g, %g]", rows[i].why,
							 range_methods[a]->name, (double)r.min,
							 (double)r.max);
					/* each value counts for a quarter at least: none is clipped by much */
					for (k = 0; k < rows[i].n; k++)
						if (r.min * 1.01f > rows[i].x[k] ||
						    r.max * 1.01f < rows[i].x[k])
							fail_msg("%s, %s: %g is outside [%g, %g]",
								 rows[i].why, range_methods[a]->name,
								 (double)rows[i].x[k], (double)r.min,
								 (double)r.max);
					if (!pow2)
						assert_true(r.min >= fminf(d->o.min, 0) &&
							    r.max <= fmaxf(d->o.max, 0));
				}
		free(d);
	}
}

static void names_are_forgiving(void **state)
{
	static const struct {
		const char *name;
		enum range_algorithm want;
	} rows[] = {
		{ "minmax", RANGE_MINMAX },
		{ "MinMax", RANGE_MINMAX },
		{ "min_max", RANGE_MINMAX },
		{ "CalibrationMethod.Entropy", RANGE_KL },
		{ "entropy", RANGE_KL },
		{ "KL", RANGE_KL },
		{ "moving-average", RANGE_MOVING_AVERAGE },
		{ "Percentile", RANGE_PERCENTILE },
		{ "mse", RANGE_MSE },
		{ "PowerOfTwoMethod.NonOverflow", RANGE_NONOVERFLOW },
		{ "powerOfTwoMethod.MinMSE", RANGE_MINMSE },
		{ "minmse", RANGE_MINMSE },
	};
	enum range_algorithm a;
	struct err err = ERR_INIT;
	size_t i;
	int k;

	(void)state;
	for (i = 0; i < ARRAY_LEN(rows); i++) {
		assert_ok(range_parse(rows[i].name, &a, &err), err);
		assert_int_equal(a, rows[i].want);
	}
	for (k = 0; k < RANGE_ALGORITHMS; k++) {
		assert_ok(range_parse(range_methods[k]->name, &a, &err), err);
		assert_int_equal(a, k);
		assert_true(strlen(range_methods[k]->summary) > 10);
	}
	assert_int_equal(range_parse("percentle", &a, &err), FETTLE_INVALID);
	assert_non_null(strstr(err.msg, "did you mean percentile"));
	assert_int_equal(range_parse("", &a, &err), FETTLE_INVALID);
	assert_int_equal(range_parse("minmaxx_of_everything", &a, &err), FETTLE_INVALID);
	assert_non_null(strstr(err.msg, "nonoverflow minmse"));
}

static void bad_options_are_named(void **state)
{
	static const float x[] = { 1, 2 };
	struct data *d = observe(x, 2);
	struct observer *none = xmalloc(sizeof(*none));
	struct range_options opt = RANGE_OPTIONS_INIT;
	struct err err = ERR_INIT;
	struct range r;

	(void)state;
	observer_init(none, &(struct observer_options){ .name = "unseen" });
	assert_int_equal(range_compute(none, &opt, &r, &err), FETTLE_INVALID);
	assert_string_equal(err.msg, "cannot calibrate tensor unseen: no samples, need at least one");
	opt.algorithm = RANGE_PERCENTILE;
	opt.parameter = 0;
	assert_int_equal(range_compute(&d->o, &opt, &r, &err), FETTLE_INVALID);
	opt.parameter = 100.5;
	assert_int_equal(range_compute(&d->o, &opt, &r, &err), FETTLE_INVALID);
	opt.parameter = NAN;
	assert_int_equal(range_compute(&d->o, &opt, &r, &err), FETTLE_INVALID);
	opt = (struct range_options)RANGE_OPTIONS_INIT;
	opt.algorithm = RANGE_MOVING_AVERAGE;
	opt.parameter = 0.5;
	assert_int_equal(range_compute(&d->o, &opt, &r, &err), FETTLE_INVALID);
	opt.parameter = 0;
	opt.dtype = DT_F32;
	assert_int_equal(range_compute(&d->o, &opt, &r, &err), FETTLE_INVALID);
	free(none);
	free(d);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(minmax_is_all_there_is),
		cmocka_unit_test(percentile_cuts_by_rank),
		cmocka_unit_test(percentile_keeps_the_few_among_zeros),
		cmocka_unit_test(kl_matches_the_description),
		cmocka_unit_test(kl_clips_outliers_only),
		cmocka_unit_test(mse_is_the_least_there_is),
		cmocka_unit_test(mse_clips_either_end_alone),
		cmocka_unit_test(powers_of_two_are_exact),
		cmocka_unit_test(minmse_gives_up_outliers),
		cmocka_unit_test(degenerate_tensors_have_ranges),
		cmocka_unit_test(names_are_forgiving),
		cmocka_unit_test(bad_options_are_named),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
