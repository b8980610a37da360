/* The contract of sampler.h: every sampler of the list on every space. */
#include "unit/unit.h"

#include "base/mem.h"
#include "base/rng.h"
#include "optuna/functions.h"
#include "sampler/sampler.h"

enum {
	PARAMS_MAX = 500,
	ASKS = 40, /* in spaces that are too large to be handed out whole */
};

static const struct space {
	const char *why;
	size_t n;
	unsigned options[4]; /* repeated */
	size_t size;         /* 0: too large to hand out whole */
} spaces[] = {
	{ "a single point", 1, { 1, 1, 1, 1 }, 1 },
	{ "one parameter", 1, { 20, 20, 20, 20 }, 20 },
	{ "nothing but single options", 30, { 1, 1, 1, 1 }, 1 },
	{ "two options", 1, { 2, 2, 2, 2 }, 2 },
	{ "a square", 2, { 3, 3, 3, 3 }, 9 },
	{ "different numbers of options", 4, { 7, 1, 5, 3 }, 105 },
	{ "the model gets going before the end", 5, { 3, 3, 3, 3 }, 243 },
	{ "more than the models list", 20, { 2, 2, 2, 2 }, 0 },
	{ "no index of 63 bits", 60, { 4, 4, 4, 4 }, 0 },
	{ "the largest index", 62, { 2, 2, 2, 2 }, 0 },
	{ "astronomical", 500, { 20, 20, 20, 20 }, 0 },
};

static struct sampler *start(const char *name, const struct space *sp, uint64_t seed, bool maximize)
{
	struct sampler_param params[PARAMS_MAX];
	struct sampler_options opt = {
		.params = params, .n_params = sp->n, .seed = seed, .maximize = { maximize }
	};
	struct sampler *s = NULL;
	struct err err = ERR_INIT;
	size_t i;

	for (i = 0; i < sp->n; i++)
		params[i] =
			(struct sampler_param){ .kind = SAMPLER_CATEGORICAL, .options = sp->options[i % 4] };
	assert_ok(sampler_new(&s, name, &opt, &err), err);
	return s;
}

static double cost_of(const unsigned *x, size_t n)
{
	return (double)separable(x, n);
}

/* the tests here know options only */
static enum fettle_status ask_options(struct sampler *s, unsigned *point, size_t n, struct err *err)
{
	double x[PARAMS_MAX];
	enum fettle_status st = sampler_ask(s, x, err);
	size_t i;

	for (i = 0; !st && i < n; i++)
		point[i] = (unsigned)x[i];
	return st;
}

/* asks, and fails when the point is not of the space or is already among the n before it */
static void ask_new(struct sampler *s, const struct space *sp, unsigned *asked, size_t n)
{
	unsigned *point = asked + n * sp->n;
	struct err err = ERR_INIT;
	size_t i;

	assert_ok(ask_options(s, point, sp->n, &err), err);
	for (i = 0; i < sp->n; i++)
		assert_true(point[i] < sp->options[i % 4]);
	for (i = 0; i < n; i++)
		if (!memcmp(asked + i * sp->n, point, sp->n * sizeof(*point)))
			fail_msg("%s: ask %zu repeats %zu", sp->why, n, i);
}

static void tell(struct sampler *s, const struct space *sp, const unsigned *point, double value)
{
	struct err err = ERR_INIT;
	double x[PARAMS_MAX];
	size_t i;

	for (i = 0; i < sp->n; i++)
		x[i] = point[i];
	assert_ok(sampler_tell(s, x, &(struct sampler_result){ .values = { value } }, &err), err);
}

static void assert_spent(struct sampler *s, const struct space *sp)
{
	unsigned point[PARAMS_MAX];
	struct err err = ERR_INIT;
	int again;

	for (again = 0; again < 2; again++)
		if (ask_options(s, point, sp->n, &err) != FETTLE_STOP)
			fail_msg("%s: asks on after all %zu", sp->why, sp->size);
}

static unsigned *room(const struct space *sp)
{
	return xcalloc((sp->size ? sp->size : 2 * ASKS) * sp->n, sizeof(unsigned));
}

#define FOR_EACH_SAMPLER(name)                                                                               \
	for (size_t s_ = 0; s_ < sampler_count(); s_++)                                                      \
		for (const char *name = sampler_name(s_); name; name = NULL)
#define FOR_EACH_SPACE(sp) for (const struct space *sp = spaces; sp < spaces + ARRAY_LEN(spaces); sp++)

/* as distinct points are asked until the space is spent, each is asked exactly once */
static void hands_out_each_point_once(void **state)
{
	(void)state;
	FOR_EACH_SAMPLER(name)
	{
		FOR_EACH_SPACE(sp)
		{
			struct sampler *s = start(name, sp, 1, false);
			unsigned *asked = room(sp);
			size_t i, n = sp->size ? sp->size : ASKS;

			assert_true(sampler_space_size(s) >= n);
			for (i = 0; i < n; i++) {
				ask_new(s, sp, asked, i);
				tell(s, sp, asked + i * sp->n, cost_of(asked + i * sp->n, sp->n));
			}
			if (sp->size)
				assert_spent(s, sp);
			free(asked);
			sampler_free(s);
		}
	}
}

static void needs_no_tell(void **state)
{
	(void)state;
	FOR_EACH_SAMPLER(name)
	{
		FOR_EACH_SPACE(sp)
		{
			struct sampler *s = start(name, sp, 1, false);
			unsigned *asked = room(sp);
			size_t i;

			for (i = 0; i < (sp->size ? sp->size : ASKS); i++)
				ask_new(s, sp, asked, i);
			if (sp->size)
				assert_spent(s, sp);
			free(asked);
			sampler_free(s);
		}
	}
}

/* the value that trial i gets under the various ways to fail */
static double failing(int how, const unsigned *x, size_t n, size_t i)
{
	switch (how) {
	case 0:
		return NAN;
	case 1:
		return i % 3 ? cost_of(x, n) : NAN;
	case 2:
		return i % 3 ? cost_of(x, n) : i % 2 ? INFINITY : -INFINITY;
	case 3: /* nothing to learn */
		return 7;
	default: /* squares overflow */
		return i % 2 ? 1e308 : -1e308;
	}
}

static void survives_failures(void **state)
{
	int how;

	(void)state;
	FOR_EACH_SAMPLER(name)
	{
		FOR_EACH_SPACE(sp)
		{
			for (how = 0; how < 5; how++) {
				struct sampler *s = start(name, sp, 1, how % 2);
				unsigned *asked = room(sp);
				size_t i;

				for (i = 0; i < (sp->size ? sp->size : ASKS); i++) {
					ask_new(s, sp, asked, i);
					tell(s, sp, asked + i * sp->n,
					     failing(how, asked + i * sp->n, sp->n, i));
				}
				if (sp->size)
					assert_spent(s, sp);
				free(asked);
				sampler_free(s);
			}
		}
	}
}

/*
 * A run in batches. The tells of a batch come in the order of the asks or against it; costs are to be
 * minimised or their negatives maximised: neither may matter.
 */
static void run(const char *name, const struct space *sp, uint64_t seed, size_t batch, bool backwards,
		bool maximize, unsigned *asked)
{
	struct sampler *s = start(name, sp, seed, maximize);
	size_t i, k, n = sp->size ? sp->size : ASKS;

	for (i = 0; i < n; i += batch) {
		size_t m = n - i < batch ? n - i : batch;

		for (k = 0; k < m; k++)
			ask_new(s, sp, asked, i + k);
		for (k = 0; k < m; k++) {
			const unsigned *x = asked + (i + (backwards ? m - 1 - k : k)) * sp->n;

			tell(s, sp, x, maximize ? -cost_of(x, sp->n) : cost_of(x, sp->n));
		}
	}
	sampler_free(s);
}

static void same_seed_same_points(void **state)
{
	size_t batch;

	(void)state;
	FOR_EACH_SAMPLER(name)
	{
		FOR_EACH_SPACE(sp)
		{
			unsigned *a = room(sp), *b = room(sp);
			size_t bytes = (sp->size ? sp->size : ASKS) * sp->n * sizeof(*a);

			for (batch = 1; batch <= 6; batch += 5) {
				run(name, sp, 5, batch, false, false, a);
				run(name, sp, 5, batch, false, false, b);
				assert_memory_equal(a, b, bytes);
				run(name, sp, 5, batch, true, false, b);
				assert_memory_equal(a, b, bytes);
				run(name, sp, 5, batch, false, true, b);
				assert_memory_equal(a, b, bytes);
			}
			run(name, sp, 6, 1, false, false, a);
			run(name, sp, 7, 1, false, false, b);
			if (!strcmp(name, "grid") || sp->size == 1)
				assert_memory_equal(a, b, bytes);
			else if (sp->size != 2)
				assert_memory_not_equal(a, b, bytes);
			free(a);
			free(b);
		}
	}
}

/* the k-th point in order */
static void point_number(const struct space *sp, size_t k, unsigned *point)
{
	size_t i;

	for (i = sp->n; i-- > 0;) {
		point[i] = (unsigned)(k % sp->options[i % 4]);
		k /= sp->options[i % 4];
	}
}

static bool is_among(const struct space *sp, const unsigned *asked, size_t n, const unsigned *point)
{
	size_t i;

	for (i = 0; i < n; i++)
		if (!memcmp(asked + i * sp->n, point, sp->n * sizeof(*point)))
			return true;
	return false;
}

/* some are asked, then every second of the others is told, then the rest must come */
static void told_points_are_not_asked(void **state)
{
	(void)state;
	FOR_EACH_SAMPLER(name)
	{
		FOR_EACH_SPACE(sp)
		{
			struct sampler *s = start(name, sp, 1, false);
			unsigned *known = room(sp);
			size_t n, k;

			for (n = 0; n < sp->size / 4; n++)
				ask_new(s, sp, known, n);
			for (k = 0; k < sp->size; k += 2) {
				point_number(sp, k, known + n * sp->n);
				if (is_among(sp, known, n, known + n * sp->n))
					continue;
				tell(s, sp, known + n * sp->n, cost_of(known + n * sp->n, sp->n));
				n++;
			}
			for (; n < sp->size; n++) {
				ask_new(s, sp, known, n);
				if (n % 2) /* the others stay pending */
					tell(s, sp, known + n * sp->n, 1);
			}
			if (sp->size)
				assert_spent(s, sp);
			free(known);
			sampler_free(s);
		}
	}
}

/* the same where there is no end: told are the very points that would have come */
static void told_points_are_skipped(void **state)
{
	(void)state;
	FOR_EACH_SAMPLER(name)
	{
		FOR_EACH_SPACE(sp)
		{
			struct sampler *s, *twin;
			unsigned *known;
			size_t n, k;

			if (sp->size)
				continue;
			s = start(name, sp, 1, false);
			twin = start(name, sp, 1, false);
			known = room(sp);
			for (n = 0; n < 8; n++)
				ask_new(twin, sp, known, n);
			for (k = 0; k < 4; k++) { /* these four it has asked itself by now */
				unsigned point[PARAMS_MAX];
				struct err err = ERR_INIT;

				assert_ok(ask_options(s, point, sp->n, &err), err);
				assert_memory_equal(point, known + k * sp->n, sp->n * sizeof(*point));
			}
			for (k = 0; k < n; k++)
				tell(s, sp, known + k * sp->n, cost_of(known + k * sp->n, sp->n));
			for (; n < ASKS; n++) {
				ask_new(s, sp, known, n);
				tell(s, sp, known + n * sp->n, 1);
			}
			free(known);
			sampler_free(s);
			sampler_free(twin);
		}
	}
}

/* too large a space for the models to list, and five points left in it */
static void finds_the_last_points(void **state)
{
	static const struct space sp = { "nearly exhausted", 11, { 2, 2, 2, 2 }, 2048 };
	const size_t left[] = { 0, 77, 1024, 1500, 2047 };

	(void)state;
	FOR_EACH_SAMPLER(name)
	{
		struct sampler *s = start(name, &sp, 3, false);
		unsigned *asked = room(&sp);
		size_t i, k, n = 0;

		for (i = 0; i < sp.size; i++) {
			for (k = 0; k < ARRAY_LEN(left) && left[k] != i; k++)
				;
			if (k < ARRAY_LEN(left))
				continue;
			point_number(&sp, i, asked + n * sp.n);
			tell(s, &sp, asked + n * sp.n, cost_of(asked + n * sp.n, sp.n));
			n++;
		}
		for (; n < sp.size; n++) {
			ask_new(s, &sp, asked, n);
			tell(s, &sp, asked + n * sp.n, 0);
		}
		assert_spent(s, &sp);
		free(asked);
		sampler_free(s);
	}
}

static void random_and_grid_cover_a_million(void **state)
{
	static const struct space sp = { "a million", 20, { 2, 2, 2, 2 }, 1 << 20 };
	static const char *const names[] = { "random", "grid" };
	unsigned char *seen;
	size_t k, i, j;

	(void)state;
	for (k = 0; k < ARRAY_LEN(names); k++) {
		struct sampler *s = start(names[k], &sp, 9, false);
		struct err err = ERR_INIT;
		unsigned point[20];

		seen = xcalloc(sp.size, 1);
		for (i = 0; i < sp.size; i++) {
			size_t index = 0;

			assert_ok(ask_options(s, point, sp.n, &err), err);
			for (j = 0; j < sp.n; j++)
				index = index * 2 + point[j];
			assert_false(seen[index]);
			seen[index] = 1;
		}
		assert_spent(s, &sp);
		free(seen);
		sampler_free(s);
	}
}

static int compare_points(const void *a, const void *b, void *width)
{
	return memcmp(a, b, *(size_t *)width);
}

static void random_is_quick_in_large_spaces(void **state)
{
	enum { MANY = 10000 };
	size_t i, width;

	(void)state;
	FOR_EACH_SPACE(sp)
	{
		struct sampler *s;
		struct err err = ERR_INIT;
		unsigned *asked;

		if (sp->size)
			continue;
		s = start("random", sp, 1, false);
		asked = xcalloc(MANY * sp->n, sizeof(*asked));
		for (i = 0; i < MANY; i++) {
			assert_ok(ask_options(s, asked + i * sp->n, sp->n, &err), err);
			tell(s, sp, asked + i * sp->n, 0);
		}
		width = sp->n * sizeof(*asked);
		qsort_r(asked, MANY, width, compare_points, &width);
		for (i = 1; i < MANY; i++)
			assert_true(compare_points(asked + (i - 1) * sp->n, asked + i * sp->n, &width));
		free(asked);
		sampler_free(s);
	}
}

/* every point comes first, and last, for about as many seeds */
static void random_is_even(void **state)
{
	static const struct space sp = { "even", 2, { 3, 3, 3, 3 }, 9 };
	enum { SEEDS = 9000 };
	unsigned first[9] = { 0 }, last[9] = { 0 };
	uint64_t seed;
	size_t i;

	(void)state;
	for (seed = 0; seed < SEEDS; seed++) {
		struct sampler *s = start("random", &sp, seed, false);
		unsigned asked[18];

		for (i = 0; i < 9; i++)
			ask_new(s, &sp, asked, i);
		first[asked[0] * 3 + asked[1]]++;
		last[asked[16] * 3 + asked[17]]++;
		sampler_free(s);
	}
	for (i = 0; i < 9; i++) { /* five standard deviations */
		assert_in_range(first[i], 1000 - 150, 1000 + 150);
		assert_in_range(last[i], 1000 - 150, 1000 + 150);
	}
}

static void grid_counts(void **state)
{
	static const struct space sp = { "counts", 4, { 7, 1, 5, 3 }, 105 };
	struct sampler *s = start("grid", &sp, 1, false);
	unsigned point[4], expected[4];
	struct err err = ERR_INIT;
	size_t i;

	(void)state;
	for (i = 0; i < sp.size; i++) {
		assert_ok(ask_options(s, point, sp.n, &err), err);
		point_number(&sp, i, expected);
		assert_memory_equal(point, expected, sizeof(point));
	}
	sampler_free(s);
}

static const char *const models[] = { "tpe", "gp" };

/* half of the space fails, and must soon be left alone */
static void models_avoid_failures(void **state)
{
	static const struct space sp = { "half fails", 12, { 2, 2, 2, 2 }, 0 };
	size_t k, i;

	(void)state;
	for (k = 0; k < ARRAY_LEN(models); k++) {
		struct sampler *s = start(models[k], &sp, 2, false);
		unsigned *asked = room(&sp), failed = 0;

		for (i = 0; i < 2 * ASKS; i++) {
			const unsigned *x = asked + i * sp.n;

			ask_new(s, &sp, asked, i);
			failed += i >= ASKS && !x[3];
			tell(s, &sp, x, x[3] ? cost_of(x, sp.n) : NAN);
		}
		if (failed > ASKS / 4)
			fail_msg("%s: %u of %d in the half that fails", models[k], failed, ASKS);
		free(asked);
		sampler_free(s);
	}
}

static void last_value_holds(void **state)
{
	static const struct space sp = { "told twice", 8, { 3, 3, 3, 3 }, 0 };
	size_t k, i;

	(void)state;
	for (k = 0; k < ARRAY_LEN(models); k++) {
		struct sampler *once = start(models[k], &sp, 2, false),
			       *twice = start(models[k], &sp, 2, false);
		unsigned *a = room(&sp), *b = room(&sp);

		for (i = 0; i < ASKS; i++) {
			const unsigned *x = a + i * sp.n;

			ask_new(once, &sp, a, i);
			ask_new(twice, &sp, b, i);
			assert_memory_equal(x, b + i * sp.n, sp.n * sizeof(*x));
			tell(once, &sp, x, cost_of(x, sp.n));
			tell(twice, &sp, x, i % 2 ? NAN : -1e9);
			tell(twice, &sp, x, cost_of(x, sp.n));
		}
		free(a);
		free(b);
		sampler_free(once);
		sampler_free(twice);
	}
}

static int compare_values(const void *pa, const void *pb)
{
	uint64_t a = *(const uint64_t *)pa, b = *(const uint64_t *)pb;

	return a < b ? -1 : a > b;
}

static uint64_t median_best(const char *name, const struct function *f, size_t trials, size_t batch)
{
	enum { SEEDS = 9 };
	struct space sp = { f->name, f->params, { f->options, f->options, f->options, f->options }, 0 };
	uint64_t best[SEEDS];
	size_t seed, i, k;

	for (seed = 0; seed < SEEDS; seed++) {
		struct sampler *s = start(name, &sp, seed, false);
		unsigned *asked = xcalloc(trials * sp.n, sizeof(*asked));

		best[seed] = UINT64_MAX;
		for (i = 0; i < trials; i += batch) {
			for (k = i; k < i + batch; k++)
				ask_new(s, &sp, asked, k);
			for (k = i; k < i + batch; k++) {
				uint64_t value = f->value(asked + k * sp.n, sp.n);

				best[seed] = value < best[seed] ? value : best[seed];
				tell(s, &sp, asked + k * sp.n, (double)value);
			}
		}
		free(asked);
		sampler_free(s);
	}
	qsort(best, SEEDS, sizeof(*best), compare_values);
	return best[SEEDS / 2];
}

/* test/optuna/compare.py is the real comparison; the limits are Optuna's medians from there */
static void models_are_as_good_as_optuna(void **state)
{
	static const struct {
		const char *sampler, *function;
		size_t trials, batch;
		uint64_t limit;
	} rows[] = {
		{ "tpe", "separable", 200, 1, 331262 }, { "tpe", "pairwise", 200, 1, 749627 },
		{ "tpe", "deceptive", 200, 1, 4 },      { "tpe", "plateau", 200, 1, 100 },
		{ "tpe", "threshold", 200, 1, 56267 },  { "tpe", "decaying", 200, 1, 69726 },
		{ "tpe", "small", 200, 1, 334718 },     { "gp", "separable", 60, 1, 331262 },
		{ "gp", "pairwise", 60, 1, 749627 },    { "gp", "deceptive", 60, 1, 4 },
		{ "gp", "plateau", 60, 1, 100 },        { "gp", "threshold", 60, 1, 69563 },
		{ "gp", "decaying", 60, 1, 86028 },     { "gp", "small", 60, 1, 334718 },
		{ "tpe", "separable", 200, 8, 331262 }, /* in batches, with points pending */
		{ "gp", "separable", 64, 8, 331262 },
	};
	size_t i, k;

	(void)state;
	for (i = 0; i < ARRAY_LEN(rows); i++)
		for (k = 0; k < ARRAY_LEN(functions); k++) {
			uint64_t best;

			if (strcmp(functions[k].name, rows[i].function))
				continue;
			best = median_best(rows[i].sampler, &functions[k], rows[i].trials, rows[i].batch);
			if (best > rows[i].limit)
				fail_msg("%s on %s, %zu at a time: %llu, limit %llu", rows[i].sampler,
					 rows[i].function, rows[i].batch, (unsigned long long)best,
					 (unsigned long long)rows[i].limit);
		}
}

static void refuses_what_is_wrong(void **state)
{
	static const struct sampler_param good[] = { { .kind = SAMPLER_CATEGORICAL, .options = 2 } },
					  none[] = { { .kind = SAMPLER_CATEGORICAL, .options = 0 } },
					  many[] = { { .kind = SAMPLER_CATEGORICAL,
						       .options = SAMPLER_OPTIONS_MAX + 1 } },
					  odd[] = { { .kind = (enum sampler_kind)99, .options = 2 } };
	static const struct {
		const char *name;
		const struct sampler_param *params;
		size_t n;
		const char *msg;
	} rows[] = {
		{ "tpee", good, 1, "the nearest is tpe" },
		{ "tpe", good, 0, "0 parameters" },
		{ "tpe", good, 65536, "65536 parameters, need 1 to 65535" },
		{ "tpe", none, 1, "parameter 0 has 0 options, need 1 to 65536" },
		{ "tpe", many, 1, "parameter 0 has 65537 options" },
		{ "tpe", odd, 1, "unknown kind 99" },
	};
	struct sampler_options opt = { .params = good, .n_params = 1 };
	struct sampler *s = NULL;
	struct err err = ERR_INIT;
	double point = 2;
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_LEN(rows); i++) {
		struct sampler_options bad = { .params = rows[i].params, .n_params = rows[i].n };

		assert_int_equal(sampler_new(&s, rows[i].name, &bad, &err), FETTLE_INVALID);
		assert_null(s);
		assert_non_null(strstr(err.msg, rows[i].msg));
	}
	FOR_EACH_SAMPLER(name)
	{
		assert_ok(sampler_new(&s, name, &opt, &err), err);
		assert_int_equal(sampler_tell(s, &point, &(struct sampler_result){ .values = { 0 } }, &err),
				 FETTLE_INVALID);
		assert_non_null(strstr(err.msg, "option 2 of parameter 0, which has 2"));
		sampler_free(s);
	}
	sampler_free(NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(hands_out_each_point_once),
		cmocka_unit_test(needs_no_tell),
		cmocka_unit_test(survives_failures),
		cmocka_unit_test(same_seed_same_points),
		cmocka_unit_test(told_points_are_not_asked),
		cmocka_unit_test(told_points_are_skipped),
		cmocka_unit_test(finds_the_last_points),
		cmocka_unit_test(random_and_grid_cover_a_million),
		cmocka_unit_test(random_is_quick_in_large_spaces),
		cmocka_unit_test(random_is_even),
		cmocka_unit_test(grid_counts),
		cmocka_unit_test(models_avoid_failures),
		cmocka_unit_test(last_value_holds),
		cmocka_unit_test(models_are_as_good_as_optuna),
		cmocka_unit_test(refuses_what_is_wrong),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
