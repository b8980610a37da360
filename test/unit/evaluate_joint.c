/* Several metrics as one, against loops over all samples; and that early bounds hold. */
#include "unit/unit.h"

#include "base/mem.h"
#include "base/rng.h"
#include "evaluate/metric.h"

enum { SAMPLES = 60, CLASSES = 3, BATCH = 7 };

struct world {
	float out[SAMPLES * CLASSES], ref[SAMPLES * CLASSES];
	int64_t label[SAMPLES];
};

static void world_init(struct world *w, struct rng *r, double noise)
{
	size_t i;

	for (i = 0; i < SAMPLES; i++)
		w->label[i] = (int64_t)rng_below(r, CLASSES);
	for (i = 0; i < SAMPLES * CLASSES; i++) {
		w->ref[i] =
			(float)(rng_normal(r) + (w->label[i / CLASSES] == (int64_t)(i % CLASSES) ? 1 : 0));
		w->out[i] = w->ref[i] + (float)(noise * rng_normal(r));
	}
}

static int64_t highest(const float *row)
{
	int64_t k, best = 0;

	for (k = 1; k < CLASSES; k++)
		if (row[k] > row[best])
			best = k;
	return best;
}

/* top1, f1 (macro), mse against the reference: from their definitions */
static void naive(const struct world *w, double v[3])
{
	double tp[CLASSES] = { 0 }, fp[CLASSES] = { 0 }, fn[CLASSES] = { 0 }, hits = 0, error = 0, sum = 0;
	size_t i, classes = 0;

	for (i = 0; i < SAMPLES; i++) {
		int64_t said = highest(&w->out[i * CLASSES]), is = w->label[i];

		hits += said == is;
		tp[is] += said == is;
		fn[is] += said != is;
		fp[said] += said != is;
	}
	for (i = 0; i < SAMPLES * CLASSES; i++)
		error += ((double)w->out[i] - (double)w->ref[i]) * ((double)w->out[i] - (double)w->ref[i]);
	for (i = 0; i < CLASSES; i++)
		if (tp[i] + fp[i] + fn[i] > 0) {
			sum += 2 * tp[i] / (2 * tp[i] + fp[i] + fn[i]);
			classes++;
		}
	v[0] = hits / SAMPLES;
	v[1] = sum / (double)classes;
	v[2] = error / (SAMPLES * CLASSES);
}

static void add(struct metric *m, struct world *w, size_t from, size_t n)
{
	struct tensor out = {
		.dtype = DT_F32, .rank = 2, .dims = { (int64_t)n, CLASSES }, .data = w->out + from * CLASSES
	};
	struct tensor ref = out,
		      label = { .dtype = DT_S64, .rank = 1, .dims = { (int64_t)n }, .data = w->label + from };
	struct err err = ERR_INIT;

	ref.data = w->ref + from * CLASSES;
	assert_ok(metric_add(m, &out, 1, &label, &ref, n, &err), err);
}

/* The value over all samples; on the way, every bound must hold it. */
static double measure(struct metric *m, struct world *w)
{
	double low[SAMPLES], high[SAMPLES], value;
	struct err err = ERR_INIT;
	size_t i, n = 0;

	metric_reset(m);
	for (i = 0; i < SAMPLES; i += BATCH) {
		add(m, w, i, i + BATCH < SAMPLES ? BATCH : SAMPLES - i);
		metric_bounds(m, SAMPLES - metric_samples(m), &low[n], &high[n]);
		n++;
	}
	assert_ok(metric_value(m, &value, &err), err);
	for (i = 0; i < n; i++)
		if (!isnan(value))
			assert_true(low[i] <= value + 1e-12 && value <= high[i] + 1e-12);
	return value;
}

static double least(double a, double b, double c)
{
	return fmin(a, fmin(b, c));
}

static void the_worst_counts(void **state)
{
	struct err err = ERR_INIT;
	struct metric *m = NULL, *twin;
	struct world fp32, int8;
	double base[3], v[3], parts[METRICS_MAX], want;
	struct rng r;
	int relative, k;

	(void)state;
	rng_seed(&r, 5);
	for (k = 0; k < 20; k++)
		for (relative = 0; relative < 2; relative++) {
			world_init(&fp32, &r, 0.05);
			world_init(&int8, &r, 0.1 * k + 0.01);
			naive(&fp32, base);
			naive(&int8, v);
			assert_ok(metric_new(&m, "TOP1, f1,mse", &err), err);
			assert_string_equal(metric_name(m), "top1,f1,mse");
			assert_int_equal(metric_n_parts(m), 3);
			assert_true(metric_higher_is_better(m));
			/* mse goes by the reference, for class numbers are no numbers of its shape */
			assert_true(isnan(measure(m, &fp32)));
			assert_ok(metric_values(m, parts, &err), err);
			assert_ok(metric_set_base(m, parts, relative, &err), err);
			assert_true(fabs(measure(m, &fp32) - 1) < 1e-15);
			twin = metric_twin(m);
			want = least(1 + (v[0] - base[0]) / (relative ? base[0] : 1),
				     1 + (v[1] - base[1]) / (relative ? base[1] : 1),
				     1 - (v[2] - base[2]) / (relative ? base[2] : 1));
			assert_true(fabs(measure(twin, &int8) - want) < 1e-9);
			assert_ok(metric_values(twin, parts, &err), err);
			assert_true(fabs(parts[0] - v[0]) < 1e-12 && fabs(parts[1] - v[1]) < 1e-12 &&
				    fabs(parts[2] - v[2]) < 1e-9);
			metric_free(twin);
			metric_free(m);
		}
}

static void weights(void **state)
{
	struct err err = ERR_INIT;
	struct metric *m = NULL;
	struct world w;
	double v[3];
	struct rng r;

	(void)state;
	rng_seed(&r, 6);
	world_init(&w, &r, 0.5);
	naive(&w, v);
	assert_ok(metric_new(&m, "3*top1,1*f1", &err), err);
	assert_string_equal(metric_name(m), "3*top1,1*f1");
	assert_true(fabs(measure(m, &w) - (3 * v[0] + v[1]) / 4) < 1e-12);
	metric_free(m);
	assert_ok(metric_new(&m, "0.5*mse,0.5*mae", &err), err);
	assert_false(metric_higher_is_better(m));
	metric_free(m);
	/* where lower is better, the negative counts */
	assert_ok(metric_new(&m, "2*top1,3*mse,1*f1", &err), err);
	assert_true(metric_higher_is_better(m));
	assert_true(fabs(measure(m, &w) - (2 * v[0] - 3 * v[2] + v[1]) / 6) < 1e-9);
	metric_free(m);
}

static void refused(const char *name, const char *why)
{
	struct err err = ERR_INIT;
	struct metric *m = NULL;

	assert_int_equal(metric_new(&m, name, &err), FETTLE_INVALID);
	if (!strstr(err.msg, why))
		fail_msg("%s: '%s', want '%s'", name, err.msg, why);
}

static void what_cannot_be_one(void **state)
{
	struct err err = ERR_INIT;
	struct metric *m = NULL;

	(void)state;
	refused("top1,", "unknown");
	refused("top1,f2", "did you mean 'f1'");
	refused("0.5*top1,f1", "some have a weight");
	refused("0*top1,1*f1", "weight '0', need a number above 0");
	refused("x*top1,1*f1", "weight 'x'");
	refused("top1,top1,top1,top1,top1,top1,top1,top1,top1", "more than 8");
	assert_ok(metric_new(&m, "top1,mse", &err), err);
	assert_int_equal(metric_set_base(m, (double[]){ 0.5, 0 }, true, &err), FETTLE_INVALID);
	assert_non_null(strstr(err.msg, "the baseline's mse is 0"));
	assert_ok(metric_set_base(m, (double[]){ 0.5, 0 }, false, &err), err);
	metric_free(m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_worst_counts),
		cmocka_unit_test(weights),
		cmocka_unit_test(what_cannot_be_one),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
