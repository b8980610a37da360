/* cross_entropy, perplexity and kl against the plainest computation there is, in long double. */
#include "unit/unit.h"

#include "base/mem.h"
#include "base/rng.h"
#include "evaluate/metric.h"

enum { N = 7, T = 5, V = 700 }; /* more classes than metrics read in one piece */

static float out[N * T * V], ref[N * T * V];
static int64_t labels[N * T];

static struct tensor logits_of(float *data, size_t from, size_t n)
{
	return (struct tensor){ DT_F32, 3, { (int64_t)n, T, V }, data + from * T * V };
}

static void fill(struct rng *r, double size)
{
	size_t i;

	for (i = 0; i < N * T * V; i++) {
		ref[i] = (float)(size * rng_normal(r));
		out[i] = (float)(ref[i] + 0.1 * size * rng_normal(r));
	}
	for (i = 0; i < N * T; i++)
		labels[i] = i % 4 ? (int64_t)rng_below(r, V) : -100;
}

/* log of the sum of exp(row) */
static long double log_total(const float *row)
{
	long double sum = 0;
	size_t i;

	for (i = 0; i < V; i++)
		sum += expl((long double)row[i]); /* reaches to exp(11356) */
	return logl(sum);
}

static long double naive_entropy(void)
{
	long double sum = 0;
	size_t i, n = 0;

	for (i = 0; i < N * T; i++) {
		if (labels[i] == -100)
			continue;
		sum += log_total(out + i * V) - out[i * V + (size_t)labels[i]];
		n++;
	}
	return sum / n;
}

static long double naive_kl(bool masked)
{
	long double sum = 0;
	size_t i, k, n = 0;

	for (i = 0; i < N * T; i++) {
		long double p = log_total(ref + i * V), q = log_total(out + i * V);

		if (masked && labels[i] == -100)
			continue;
		n++;
		for (k = i * V; k < (i + 1) * V; k++)
			sum += expl(ref[k] - p) * (ref[k] - p - (out[k] - q));
	}
	return sum / n;
}

/* Fed in batches of `step`. */
static double measure(const char *name, size_t step, bool with_labels)
{
	struct err err = ERR_INIT;
	struct metric *m = NULL;
	double value = NAN;
	size_t at;

	assert_ok(metric_new(&m, name, &err), err);
	for (at = 0; at < N; at += step) {
		size_t n = N - at < step ? N - at : step;
		struct tensor a = logits_of(out, at, n), b = logits_of(ref, at, n),
			      y = { DT_S64, 2, { (int64_t)n, T }, labels + at * T };

		assert_ok(metric_add(m, &a, 1, with_labels ? &y : NULL, &b, n, &err), err);
	}
	assert_ok(metric_value(m, &value, &err), err);
	metric_free(m);
	return value;
}

static void close_to(const char *what, double got, long double want)
{
	if (!(fabsl(got - want) <= 1e-8L * (1 + fabsl(want))))
		fail_msg("%s: %.15g, want %.15Lg", what, got, want);
}

static void values_are_the_naive_ones(void **state)
{
	static const double sizes[] = { 0.5, 5,
					400 }; /* the last would overflow exp() of what is not shifted */
	struct rng r;
	size_t i, step;

	(void)state;
	rng_seed(&r, 1);
	for (i = 0; i < ARRAY_LEN(sizes); i++) {
		long double entropy, all, masked;

		fill(&r, sizes[i]);
		entropy = naive_entropy();
		all = naive_kl(false);
		masked = naive_kl(true);
		for (step = 1; step <= N; step += 3) {
			close_to("cross_entropy", measure("cross_entropy", step, true), entropy);
			if (entropy < 100)
				close_to("perplexity", measure("perplexity", step, true), expl(entropy));
			close_to("kl", measure("kl", step, false), all);
			close_to("kl, masked", measure("kl", step, true), masked);
		}
	}
}

static void what_is_known_by_heart(void **state)
{
	struct metric *m = NULL;
	struct err err = ERR_INIT;
	struct tensor a = logits_of(out, 0, N), y = { DT_S64, 2, { N, T }, labels };
	struct rng r;
	double low, high, value;
	size_t i;

	(void)state;
	rng_seed(&r, 2);
	fill(&r, 3);
	memcpy(ref, out, sizeof(ref));
	assert_true(measure("kl", 2, false) == 0);
	for (i = 0; i < N * T * V; i++)
		out[i] = 12.5f;
	close_to("one in V", measure("perplexity", 2, true), V);
	out[(1 * V) + labels[1]] = -INFINITY; /* impossible, and yet it happens */
	assert_true(measure("perplexity", 2, true) == INFINITY);
	out[V] = NAN;
	assert_true(isnan(measure("cross_entropy", 2, true)));
	assert_true(isnan(measure("kl", 2, false)));
	/* a token that does not count may be anything */
	for (i = 0; i < N * T * V; i++)
		out[i] = i < V ? NAN : 0;
	close_to("ignored", measure("cross_entropy", 1, true), logl(V));
	/* nothing counts */
	for (i = 0; i < N * T; i++)
		labels[i] = -100;
	assert_ok(metric_new(&m, "perplexity", &err), err);
	assert_ok(metric_add(m, &a, 1, &y, NULL, N, &err), err);
	metric_bounds(m, 0, &low, &high);
	assert_true(low == 1 && high == INFINITY);
	assert_int_equal(metric_value(m, &value, &err), FETTLE_INVALID);
	assert_non_null(strstr(err.msg, "no token that counts"));
	labels[3] = V;
	assert_int_equal(metric_add(m, &a, 1, &y, NULL, N, &err), FETTLE_INVALID);
	assert_non_null(strstr(err.msg, "need a class number below 700"));
	metric_free(m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(values_are_the_naive_ones),
		cmocka_unit_test(what_is_known_by_heart),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
