/* The spaces of a parameter search: what is in them, what is left out, in which order, and what settings mean. */
#include "unit/unit.h"

#include <math.h>

#include "base/mem.h"
#include "base/rng.h"
#include "space/settings.h"

#define LIST(...)                                                                                            \
	{                                                                                                    \
		(const double[]){ __VA_ARGS__ }, sizeof((const double[]){ __VA_ARGS__ }) / sizeof(double)    \
	}

static struct settings_list expand(const struct settings_space *v, size_t n)
{
	struct settings_list l = SETTINGS_LIST_INIT;
	struct err err = ERR_INIT;

	assert_ok(settings_expand(&l, v, n, &err), err);
	return l;
}

/* the document's example, whose 491,520 combinations come to 38,400 */
static const struct settings_space documented = { .list = {
							  [SET_METHOD] = LIST(RANGE_MINMSE, RANGE_NONOVERFLOW,
									      RANGE_MINMAX, RANGE_KL,
									      RANGE_PERCENTILE),
							  [SET_ACT_TYPE] = LIST(DT_S8, DT_S16),
							  [SET_WEIGHT_TYPE] = LIST(DT_S8, DT_S16),
							  [SET_CLE] = LIST(1, 0),
							  [SET_AUTO_MP] = LIST(0, 1),
							  [SET_FAST_FT] = LIST(0, 1),
							  [SET_SQ] = LIST(0, 1),
							  [SET_ACT_SYMMETRIC] = LIST(1, 0),
							  [SET_WEIGHT_SYMMETRIC] = LIST(1, 0),
							  [SET_MOVING_AVERAGE] = LIST(1, 0),
							  [SET_AVERAGING] = LIST(0.01, 0.001),
							  [SET_PERCENTILE] = LIST(99.99, 99.999),
							  [SET_SMOOTH_ALPHA] = LIST(0.5, 0.6),
							  [SET_DATA_SIZE] = LIST(500, 1000),
							  [SET_ITERATIONS] = LIST(100, 1000),
							  [SET_OPTIM_ALGORITHM] =
								  LIST(FINETUNE_ADAROUND, FINETUNE_ADAQUANT),
							  [SET_LEARNING_RATE] = LIST(0.01, 0.001, 0.0001),
							  [SET_SEED] = LIST(42),
						  } };

static void the_documents_example(void **state)
{
	struct settings_list l = expand(&documented, 1);
	size_t i;

	(void)state;
	/* methods 1 + 1 + (1 + 2) + 1 + 2, types 2 x 2, cle and mixed precision 2 x 2, smoothing 1 + 2, symmetry 2 x 2,
	 * fine-tuning 1 + 2 x 2 x 2 x 3 */
	assert_int_equal(l.n, 8 * 4 * 4 * 3 * 4 * 25);
	for (i = 1; i < l.n; i++)
		assert_true(settings_cost(&l.v[i - 1]) <= settings_cost(&l.v[i]));
	assert_false(settings_on(&l.v[0], SET_FAST_FT) || settings_on(&l.v[0], SET_AUTO_MP));
	assert_true(settings_on(&l.v[l.n - 1], SET_FAST_FT) && settings_on(&l.v[l.n - 1], SET_AUTO_MP));
	settings_list_release(&l);
}

/* ---- against a list made the long way: every combination, in words of what it makes of a model ---- */

struct naive {
	double v[SETTINGS];
};

static int compare_naive(const void *a, const void *b)
{
	return memcmp(a, b, sizeof(struct naive));
}

/* what has no effect is put to one value, by hand */
static struct naive effect(const double *v)
{
	struct naive n;

	memcpy(n.v, v, sizeof(n.v));
	if (v[SET_METHOD] != RANGE_MINMAX)
		n.v[SET_MOVING_AVERAGE] = -1;
	if (v[SET_METHOD] != RANGE_MINMAX || v[SET_MOVING_AVERAGE] == 0)
		n.v[SET_AVERAGING] = -1;
	if (v[SET_METHOD] != RANGE_PERCENTILE)
		n.v[SET_PERCENTILE] = -1;
	if (v[SET_SQ] == 0)
		n.v[SET_SMOOTH_ALPHA] = -1;
	if (v[SET_FAST_FT] == 0)
		n.v[SET_OPTIM_ALGORITHM] = n.v[SET_GRANULARITY] = n.v[SET_DATA_SIZE] = n.v[SET_SELECTIVE] =
			-1;
	if (v[SET_FAST_FT] == 0 || v[SET_OPTIM_ALGORITHM] == FINETUNE_GRAM)
		n.v[SET_BATCH_SIZE] = n.v[SET_ITERATIONS] = n.v[SET_LEARNING_RATE] = n.v[SET_SEED] =
			n.v[SET_EARLY_STOP] = -1;
	return n;
}

static void random_space(struct rng *r, struct settings_space *s, double values[SETTINGS][3])
{
	static const double methods[] = { RANGE_MINMAX, RANGE_PERCENTILE, RANGE_KL, RANGE_MINMSE };
	static const double algorithms[] = { FINETUNE_ADAROUND, FINETUNE_ADAQUANT, FINETUNE_GRAM };
	int i, k;

	memset(s, 0, sizeof(*s));
	for (i = 0; i < SETTINGS; i++) {
		size_t n = rng_below(r, 3) ? 1 : 1 + rng_below(r, 3);

		if (setting_infos[i].type == SETTING_BOOL && n > 2)
			n = 2;
		for (k = 0; k < (int)n; k++)
			values[i][k] =
				i == SET_METHOD            ? methods[(rng_next(r) + (uint64_t)k) % 4]
				: i == SET_OPTIM_ALGORITHM ? algorithms[(rng_next(r) + (uint64_t)k) % 3]
				: setting_infos[i].type == SETTING_BOOL        ? (double)rng_below(r, 2)
				: setting_infos[i].type == SETTING_GRANULARITY ? (double)rng_below(r, 2)
				: setting_infos[i].type == SETTING_DTYPE       ? (double)(DT_U8 + k)
									 : 1 + k; /* may be there twice */
		s->list[i] = (struct setting_values){ values[i], n };
	}
}

static size_t count_naively(const struct settings_space *spaces, size_t n)
{
	VEC(struct naive) all = { 0 };
	size_t at[SETTINGS], s, i, distinct = 0;
	int k;

	for (s = 0; s < n; s++) {
		memset(at, 0, sizeof(at));
		do {
			double v[SETTINGS];

			for (k = 0; k < SETTINGS; k++)
				v[k] = spaces[s].list[k].v[at[k]];
			VEC_PUSH(&all, effect(v));
			for (k = 0; k < SETTINGS && ++at[k] == spaces[s].list[k].n; k++)
				at[k] = 0;
		} while (k < SETTINGS);
	}
	qsort(all.v, all.n, sizeof(*all.v), compare_naive);
	for (i = 0; i < all.n; i++)
		distinct += !i || compare_naive(&all.v[i - 1], &all.v[i]) != 0;
	VEC_RELEASE(&all);
	return distinct;
}

static void nothing_twice_and_nothing_missing(void **state)
{
	static double values[2][SETTINGS][3];
	struct settings_space spaces[2];
	struct rng r;
	int trial;
	size_t i, k, most = 0;

	(void)state;
	rng_seed(&r, 3);
	for (trial = 0; trial < 60; trial++) {
		struct settings_list l;
		double product = 1;

		for (i = 0; i < 2; i++) {
			double size = 1;

			random_space(&r, &spaces[i], values[i]);
			for (k = 0; k < SETTINGS; k++)
				size *= (double)spaces[i].list[k].n;
			product = fmax(product, size);
		}
		if (product > 20000)
			continue;
		l = expand(spaces, 2);
		assert_int_equal(l.n, count_naively(spaces, 2));
		most = l.n > most ? l.n : most;
		settings_list_release(&l);
	}
	assert_true(most > 100);
}

static void pairs_stay_together(void **state)
{
	static const double pairs[][2] = { { 100, 1e-4 }, { 200, 1e-5 }, { 400, 1e-5 } };
	struct settings_space s = { .list = { [SET_FAST_FT] = LIST(0, 1),
					      [SET_OPTIM_ALGORITHM] =
						      LIST(FINETUNE_ADAROUND, FINETUNE_GRAM) },
				    .pairs = pairs,
				    .n_pairs = 3 };
	struct settings_list l = expand(&s, 1);
	size_t i, seen = 0;

	(void)state;
	assert_int_equal(l.n, 1 + 3 + 1); /* none; three pairs; gram, which has neither */
	for (i = 0; i < l.n; i++)
		if (!isnan(l.v[i].v[SET_ITERATIONS])) {
			assert_true(l.v[i].v[SET_LEARNING_RATE] == pairs[seen][1] &&
				    l.v[i].v[SET_ITERATIONS] == pairs[seen][0]);
			seen++;
		}
	assert_int_equal(seen, 3);
	settings_list_release(&l);
}

static void too_many(void **state)
{
	static double many[400];
	struct settings_space s = { .list = { [SET_METHOD] = LIST(RANGE_PERCENTILE), [SET_SQ] = LIST(1) } };
	struct settings_list l = SETTINGS_LIST_INIT;
	struct err err = ERR_INIT;
	size_t i;

	(void)state;
	for (i = 0; i < 400; i++)
		many[i] = (double)i / 400;
	s.list[SET_PERCENTILE] = s.list[SET_SMOOTH_ALPHA] = (struct setting_values){ many, 400 };
	assert_int_equal(settings_expand(&l, &s, 1, &err), FETTLE_INVALID);
	assert_non_null(strstr(err.msg, "more than 100000 candidates"));
	settings_list_release(&l);
}

static void in_words(void **state)
{
	struct settings_space s = {
		.list = { [SET_METHOD] = LIST(RANGE_MINMAX, RANGE_PERCENTILE), [SET_ACT_TYPE] = LIST(DT_S16) }
	};
	struct settings_list l = expand(&s, 1);
	struct str text = STR_INIT;

	(void)state;
	assert_int_equal(l.n, 2);
	settings_text(&l.v[0], &l, &text);
	assert_string_equal(text.s, "calibrate_method: MinMax");
	str_release(&text);
	settings_text(&l.v[1], &l, &text);
	assert_string_equal(text.s, "calibrate_method: Percentile");
	str_release(&text);
	settings_text(&l.v[1], NULL, &text);
	assert_non_null(strstr(text.s, "activation_type: QInt16, weight_type: QInt8, include_cle: false"));
	str_release(&text);
	settings_list_release(&l);
}

static void words_for_what_is_no_number(void **state)
{
	const struct settings_space space = { .list = { [SET_SQ] = LIST(0, 1),
							[SET_SMOOTH_ALPHA] = LIST(SMOOTH_AUTO, 0.25),
							[SET_FAST_FT] = LIST(0, 1),
							[SET_GRANULARITY] = LIST(GRANULARITY_BLOCK,
										 GRANULARITY_LAYER) } };
	static const char *const words[] = {
		"the defaults",
		"include_sq: true, SmoothAlpha: auto",
		"include_sq: true, SmoothAlpha: 0.25",
		"include_fast_ft: true, Granularity: layer",
		"include_sq: true, include_fast_ft: true, SmoothAlpha: auto, Granularity: block",
		"include_sq: true, include_fast_ft: true, SmoothAlpha: 0.25, Granularity: layer",
	};
	struct settings_list l = expand(&space, 1);
	size_t i, k;

	(void)state;
	assert_int_equal(l.n, 3 * 3);
	for (k = 0; k < ARRAY_LEN(words); k++) {
		size_t found = 0;

		for (i = 0; i < l.n; i++) {
			struct str text = STR_INIT;

			settings_text(&l.v[i], &l, &text);
			found += strcmp(text.s, words[k]) == 0;
			str_release(&text);
		}
		if (found != 1)
			fail_msg("'%s' is there %zu times", words[k], found);
	}
	settings_list_release(&l);
}

static void what_they_mean(void **state)
{
	struct settings s = settings_default();
	struct qplan_defaults d = qplan_defaults(&(struct cpu){ .name = "test", .saturates = true });
	struct recipes r = { .keep_first = true };

	(void)state;
	settings_apply(&s, &d, &r);
	assert_true(d.act.dtype == DT_U8 && d.act.algorithm == RANGE_MINMAX);
	assert_true(r.keep_first && !r.cle && !r.smooth_quant && r.finetune.algorithm == FINETUNE_OFF);
	s.v[SET_MOVING_AVERAGE] = 1;
	s.v[SET_WEIGHT_TYPE] = DT_S16;
	s.v[SET_ACT_SYMMETRIC] = s.v[SET_CLE] = s.v[SET_SQ] = s.v[SET_FAST_FT] = 1;
	settings_normalise(&s);
	s.v[SET_AVERAGING] = 0.3;
	s.v[SET_ITERATIONS] = 77;
	settings_apply(&s, &d, &r);
	assert_true(d.act.algorithm == RANGE_MOVING_AVERAGE && d.act.parameter == 0.3 &&
		    d.act.scheme == SCHEME_SYM);
	assert_true(d.weight.dtype == DT_S16 && d.weight.algorithm == RANGE_MINMAX);
	assert_true(r.cle && r.smooth_quant && r.smooth_alpha == 0.5);
	assert_true(r.finetune.algorithm == FINETUNE_ADAROUND && r.finetune.iterations == 77 &&
		    r.finetune.granularity == GRANULARITY_LAYER);
	s.v[SET_SMOOTH_ALPHA] = SMOOTH_AUTO;
	s.v[SET_GRANULARITY] = GRANULARITY_BLOCK;
	settings_apply(&s, &d, &r);
	assert_true(r.smooth_alpha == SMOOTH_AUTO && r.finetune.granularity == GRANULARITY_BLOCK);
	assert_true(r.finetune.learning_rate == finetune_defaults(FINETUNE_ADAROUND).learning_rate);
	s.v[SET_METHOD] = RANGE_MINMSE; /* which is for weights too, and knows no moving average */
	settings_normalise(&s);
	settings_apply(&s, &d, &r);
	assert_true(d.act.algorithm == RANGE_MINMSE && d.weight.algorithm == RANGE_MINMSE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_documents_example),
		cmocka_unit_test(nothing_twice_and_nothing_missing),
		cmocka_unit_test(pairs_stay_together),
		cmocka_unit_test(too_many),
		cmocka_unit_test(in_words),
		cmocka_unit_test(words_for_what_is_no_number),
		cmocka_unit_test(what_they_mean),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
