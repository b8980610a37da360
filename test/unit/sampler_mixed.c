/* The contract of sampler.h on spaces with numbers and conditions, for every sampler of the list. */
#include "unit/unit.h"

#include <math.h>
#include <string.h>

#include "base/mem.h"
#include "sampler/sampler.h"

enum {
	PARAMS_MAX = 6,
	POINTS_MAX = 700,
	ASKS = 40, /* in spaces that have no end */
	LEVELS = 3,
};

#define WHEN(on, ...)                                                                                        \
	&(const struct sampler_condition)                                                                    \
	{                                                                                                    \
		on, (const unsigned[]){ __VA_ARGS__ }, ARRAY_LEN(((unsigned[]){ __VA_ARGS__ }))              \
	}

static const struct space {
	const char *why;
	size_t n;
	bool endless;
	struct sampler_param params[PARAMS_MAX];
} spaces[] = {
	{ "all kinds",
	  5,
	  true,
	  { { .kind = SAMPLER_FLOAT, .low = -2, .high = 3 },
	    { .kind = SAMPLER_FLOAT, .low = 1e-6, .high = 10, .log = true },
	    { .kind = SAMPLER_INTEGER, .low = -5, .high = 5 },
	    { .kind = SAMPLER_INTEGER, .low = 1, .high = 1000, .log = true },
	    { .kind = SAMPLER_CATEGORICAL, .options = 4 } } },
	{ "integers, also in steps and on a log scale",
	  3,
	  false,
	  { { .kind = SAMPLER_INTEGER, .low = 0, .high = 4 },
	    { .kind = SAMPLER_INTEGER, .low = -3, .high = 10, .step = 3 },
	    { .kind = SAMPLER_INTEGER, .low = 1, .high = 8, .log = true } } },
	{ "a float in steps",
	  2,
	  false,
	  { { .kind = SAMPLER_FLOAT, .low = 0, .high = 1, .step = 0.1 },
	    { .kind = SAMPLER_CATEGORICAL, .options = 2 } } },
	{ "a single number", 1, false, { { .kind = SAMPLER_FLOAT, .low = 0.3, .high = 0.3 } } },
	{ "conditions on conditions",
	  6,
	  false,
	  { { .kind = SAMPLER_CATEGORICAL, .options = 3 },
	    { .kind = SAMPLER_INTEGER, .low = 1, .high = 3, .when = WHEN(0, 1) },
	    { .kind = SAMPLER_CATEGORICAL, .options = 3, .when = WHEN(0, 1, 2) },
	    { .kind = SAMPLER_INTEGER, .low = 1, .high = 4, .log = true, .when = WHEN(2, 0, 2) },
	    { .kind = SAMPLER_CATEGORICAL, .options = 2 },
	    { .kind = SAMPLER_FLOAT, .low = -1, .high = 1, .step = 0.5, .when = WHEN(4, 1) } } },
	{ "a condition that never holds",
	  3,
	  false,
	  { { .kind = SAMPLER_CATEGORICAL, .options = 2 },
	    { .kind = SAMPLER_INTEGER, .low = 0, .high = 9 },
	    { .kind = SAMPLER_FLOAT,
	      .low = 0,
	      .high = 1,
	      .when = &(const struct sampler_condition){ 0, NULL, 0 } } } },
	{ "few points but for one branch that has no end",
	  3,
	  true,
	  { { .kind = SAMPLER_CATEGORICAL, .options = 3 },
	    { .kind = SAMPLER_FLOAT, .low = 0, .high = 1, .when = WHEN(0, 2) },
	    { .kind = SAMPLER_INTEGER, .low = 0, .high = 1, .when = WHEN(0, 0) } } },
	{ "an integer of the largest range",
	  2,
	  true,
	  { { .kind = SAMPLER_INTEGER, .low = 0, .high = 9007199254740991 },
	    { .kind = SAMPLER_INTEGER, .low = -4503599627370496, .high = 4503599627370495 } } },
};

#define FOR_EACH_SAMPLER(name)                                                                               \
	for (size_t s_ = 0; s_ < sampler_count(); s_++)                                                      \
		for (const char *name = sampler_name(s_); name; name = NULL)
#define FOR_EACH_SPACE(sp) for (const struct space *sp = spaces; sp < spaces + ARRAY_LEN(spaces); sp++)

static bool holds(const struct space *sp, const double *x, size_t i)
{
	const struct sampler_condition *when = sp->params[i].when;
	size_t k;

	if (!when)
		return true;
	if (!holds(sp, x, when->param))
		return false;
	for (k = 0; k < when->n_options; k++)
		if (x[when->param] == when->options[k])
			return true;
	return false;
}

/* the k-th value of a discrete parameter; false when there are not so many */
static bool value_number(const struct sampler_param *p, unsigned k, double *x)
{
	double step = p->step > 0 ? p->step : 1;

	*x = p->kind == SAMPLER_CATEGORICAL ? k : p->low + k * step;
	if (p->kind == SAMPLER_CATEGORICAL)
		return k < p->options;
	return *x <= p->high + 1e-9;
}

/* every point, by trying all values of one parameter after the other */
static size_t list_points(const struct space *sp, size_t i, double *x, double *out, size_t n)
{
	unsigned k;

	if (i == sp->n) {
		assert_true(n < POINTS_MAX);
		memcpy(out + n * sp->n, x, sp->n * sizeof(*x));
		return n + 1;
	}
	x[i] = NAN;
	if (!holds(sp, x, i))
		return list_points(sp, i + 1, x, out, n);
	for (k = 0; value_number(&sp->params[i], k, &x[i]); k++)
		n = list_points(sp, i + 1, x, out, n);
	return n;
}

static bool same(const struct space *sp, const double *a, const double *b)
{
	size_t i;

	for (i = 0; i < sp->n; i++) {
		double slack = sp->params[i].step > 0 ? 1e-12 : 0;

		if (isnan(a[i]) != isnan(b[i]) || fabs(a[i] - b[i]) > slack)
			return false;
	}
	return true;
}

static bool is_among(const struct space *sp, const double *points, size_t n, const double *x)
{
	size_t i;

	for (i = 0; i < n; i++)
		if (same(sp, points + i * sp->n, x))
			return true;
	return false;
}

static struct sampler *start(const char *name, const struct space *sp, uint64_t seed, bool maximize,
			     size_t n_constraints)
{
	struct sampler_options opt = { .params = sp->params,
				       .n_params = sp->n,
				       .seed = seed,
				       .maximize = { maximize },
				       .n_constraints = n_constraints,
				       .levels = LEVELS };
	struct sampler *s = NULL;
	struct err err = ERR_INIT;

	assert_ok(sampler_new(&s, name, &opt, &err), err);
	return s;
}

/* asks, and fails when the point is not of the space or is already among the n before it */
static void ask_new(struct sampler *s, const char *name, const struct space *sp, double *asked, size_t n)
{
	double *x = asked + n * sp->n;
	struct err err = ERR_INIT;
	size_t i;

	assert_ok(sampler_ask(s, x, &err), err);
	for (i = 0; i < sp->n; i++) {
		const struct sampler_param *p = &sp->params[i];
		double step = p->step > 0 ? p->step : 1;

		if (!holds(sp, x, i)) {
			assert_true(isnan(x[i]));
			continue;
		}
		if (p->kind == SAMPLER_CATEGORICAL)
			assert_true(x[i] >= 0 && x[i] < p->options && x[i] == floor(x[i]));
		else
			assert_true(x[i] >= p->low && x[i] <= p->high + 1e-12);
		if (p->kind == SAMPLER_INTEGER)
			assert_true(fmod(x[i] - p->low, step) == 0);
		else if (p->step > 0)
			assert_true(fabs((x[i] - p->low) / step - round((x[i] - p->low) / step)) < 1e-9);
	}
	if (is_among(sp, asked, n, x))
		fail_msg("%s, %s: ask %zu repeats", name, sp->why, n);
}

static void tell(struct sampler *s, const double *x, double value, double violation)
{
	struct err err = ERR_INIT;

	assert_ok(sampler_tell(s, x,
			       &(struct sampler_result){ .values = { value }, .violations = { violation } },
			       &err),
		  err);
}

static double cost_of(const double *x, size_t n)
{
	double total = 0;
	size_t i;

	for (i = 0; i < n; i++)
		total += isnan(x[i]) ? 0.1 : fabs(x[i] - 1.5) / (1 + (double)i);
	return total;
}

/* how many points: by listing, or as many as we ask for in spaces that do not end */
static size_t count_points(const char *name, const struct space *sp, bool *ends)
{
	double x[PARAMS_MAX], *all = xcalloc(POINTS_MAX * sp->n, sizeof(double));
	size_t n = ASKS;

	*ends = !sp->endless;
	if (*ends)
		n = list_points(sp, 0, x, all, 0);
	else if (!strcmp(name, "grid")) /* LEVELS of each float: the largest has 3 * 3 * 11 * 1000 * 4 */
		n = !strcmp(sp->why, "few points but for one branch that has no end") ? 6 : ASKS;
	free(all);
	return n;
}

static void assert_spent(struct sampler *s, const struct space *sp)
{
	double x[PARAMS_MAX];
	struct err err = ERR_INIT;

	if (sampler_ask(s, x, &err) != FETTLE_STOP || sampler_ask(s, x, &err) != FETTLE_STOP)
		fail_msg("%s: asks on after all", sp->why);
}

/* as all asked are distinct and of the space, as many as there are means all of them */
static void hands_out_each_point_once(void **state)
{
	int told;

	(void)state;
	FOR_EACH_SAMPLER(name)
	{
		FOR_EACH_SPACE(sp)
		{
			for (told = 0; told < 2; told++) {
				struct sampler *s = start(name, sp, 1, false, 0);
				double *asked = xcalloc(POINTS_MAX * sp->n, sizeof(*asked));
				bool ends;
				size_t i, n = count_points(name, sp, &ends);

				if (ends)
					assert_int_equal(sampler_space_size(s), n);
				else if (strcmp(name, "grid"))
					assert_true(sampler_space_size(s) == SIZE_MAX);
				for (i = 0; i < n; i++) {
					ask_new(s, name, sp, asked, i);
					if (told)
						tell(s, asked + i * sp->n, cost_of(asked + i * sp->n, sp->n),
						     0);
				}
				if (ends || n < ASKS)
					assert_spent(s, sp);
				free(asked);
				sampler_free(s);
			}
		}
	}
}

/* every second point is told before the first ask, with rubbish in what is inactive */
static void told_points_are_not_asked(void **state)
{
	(void)state;
	FOR_EACH_SAMPLER(name)
	{
		FOR_EACH_SPACE(sp)
		{
			struct sampler *s;
			double x[PARAMS_MAX], *all, *known;
			size_t i, k, n, n_known = 0;

			if (sp->endless)
				continue;
			s = start(name, sp, 1, false, 0);
			all = xcalloc(POINTS_MAX * sp->n, sizeof(*all));
			known = xcalloc(POINTS_MAX * sp->n, sizeof(*known));
			n = list_points(sp, 0, x, all, 0);
			for (i = 0; i < n; i += 2) {
				memcpy(known + n_known++ * sp->n, all + i * sp->n, sp->n * sizeof(*all));
				memcpy(x, all + i * sp->n, sp->n * sizeof(*all));
				for (k = 0; k < sp->n; k++)
					x[k] = isnan(x[k]) ? 1e9 : x[k];
				tell(s, x, cost_of(all + i * sp->n, sp->n), 0);
			}
			for (; n_known < n; n_known++) {
				ask_new(s, name, sp, known, n_known);
				if (n_known % 2) /* the others stay pending */
					tell(s, known + n_known * sp->n, 1, 0);
			}
			assert_spent(s, sp);
			free(all);
			free(known);
			sampler_free(s);
		}
	}
}

static void run(const char *name, const struct space *sp, uint64_t seed, size_t batch, bool backwards,
		bool maximize, double *asked, size_t n)
{
	struct sampler *s = start(name, sp, seed, maximize, 1);
	size_t i, k;

	for (i = 0; i < n; i += batch) {
		size_t m = n - i < batch ? n - i : batch;

		for (k = 0; k < m; k++)
			ask_new(s, name, sp, asked, i + k);
		for (k = 0; k < m; k++) {
			const double *x = asked + (i + (backwards ? m - 1 - k : k)) * sp->n;
			double cost = cost_of(x, sp->n);

			tell(s, x, maximize ? -cost : cost, cost - 3);
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
			bool ends;
			size_t n = count_points(name, sp, &ends), bytes;
			double *a = xcalloc(POINTS_MAX * sp->n, sizeof(*a)),
			       *b = xcalloc(POINTS_MAX * sp->n, sizeof(*b));

			n = n < 2 * ASKS ? n : 2 * ASKS;
			bytes = n * sp->n * sizeof(double);
			for (batch = 1; batch <= 6; batch += 5) {
				run(name, sp, 5, batch, false, false, a, n);
				run(name, sp, 5, batch, true, false, b, n);
				assert_memory_equal(a, b, bytes);
				run(name, sp, 5, batch, false, true, b, n);
				assert_memory_equal(a, b, bytes);
			}
			run(name, sp, 6, 1, false, false, b, n);
			if (n > 2 && strcmp(name, "grid") != 0)
				assert_memory_not_equal(a, b, bytes);
			free(a);
			free(b);
		}
	}
}

static void survives_bad_results(void **state)
{
	static const double values[][2] = {
		{ NAN, 0 }, { 1, INFINITY }, { 1e308, -1e308 }, { -1e308, 1e308 }, { 7, 7 }
	};
	size_t k, i;

	(void)state;
	FOR_EACH_SAMPLER(name)
	{
		FOR_EACH_SPACE(sp)
		{
			for (k = 0; k <= ARRAY_LEN(values); k++) {
				struct sampler *s = start(name, sp, 1, false, 1);
				double *asked = xcalloc(POINTS_MAX * sp->n, sizeof(*asked));
				bool ends;
				size_t n = count_points(name, sp, &ends);

				for (i = 0; i < n && i < ASKS; i++) {
					const double *result =
						values[k < ARRAY_LEN(values) ? k : i % ARRAY_LEN(values)];

					ask_new(s, name, sp, asked, i);
					tell(s, asked + i * sp->n, result[0], result[1]);
				}
				free(asked);
				sampler_free(s);
			}
		}
	}
}

/* half of the options fail, a corner of the numbers is feasible: who learns must come to be there */
static void learners_go_where_it_is_feasible(void **state)
{
	static const char *const learners[] = { "tpe", "gp", "cmaes", "nsga2" };
	static const struct space sp = { "a corner",
					 3,
					 true,
					 { { .kind = SAMPLER_FLOAT, .low = 0, .high = 1 },
					   { .kind = SAMPLER_INTEGER, .low = 1, .high = 100, .log = true },
					   { .kind = SAMPLER_CATEGORICAL, .options = 4 } } };
	size_t k, i;

	(void)state;
	for (k = 0; k < ARRAY_LEN(learners); k++) {
		struct sampler *s = start(learners[k], &sp, 3, false, 1);
		double *asked = xcalloc(200 * sp.n, sizeof(*asked)), best = INFINITY;
		unsigned feasible = 0;

		for (i = 0; i < 200; i++) {
			const double *x = asked + i * sp.n;
			double violation;

			ask_new(s, learners[k], &sp, asked, i);
			violation = fmax(0.7 - x[0], log(20 / x[1]) / 5);      /* a tenth of the numbers */
			feasible += i >= 100 && violation <= 0.02 && x[2] < 2; /* the best is at the edge */
			if (violation <= 0 && x[2] < 2)
				best = fmin(best, x[0] + x[1] / 100);
			tell(s, x, x[2] < 2 ? x[0] + x[1] / 100 : NAN, violation);
		}
		print_message("%s: %u of the last 100 are nearly feasible, the best of all has %.3f\n",
			      learners[k], feasible, best);
		assert_true(feasible >= 30); /* by chance 6 */
		assert_true(best < 0.95);    /* at best 0.9 */
		free(asked);
		sampler_free(s);
	}
}

static int compare_doubles(const void *pa, const void *pb)
{
	double a = *(const double *)pa, b = *(const double *)pb;

	return a < b ? -1 : a > b;
}

/* on a log scale equal ratios are equally likely; every option is, however much depends on it */
static void random_draws_are_even(void **state)
{
	static const char *const names[] = { "random", "qmc" };
	enum { MANY = 2000 };
	size_t k, i;

	(void)state;
	for (k = 0; k < ARRAY_LEN(names); k++) {
		struct sampler *s = start(names[k], &spaces[0], 4, false, 0),
			       *c = start(names[k], &spaces[6], 4, false, 0);
		double *rates = xcalloc(MANY, sizeof(*rates)), x[PARAMS_MAX];
		unsigned small = 0, endless = 0;
		struct err err = ERR_INIT;

		for (i = 0; i < MANY; i++) {
			assert_ok(sampler_ask(s, x, &err), err);
			rates[i] = x[1];
			small += x[3] <= 31; /* half of the scale of 1 to 1000: 0.5 to 1000.5 */
			if (i >= 3)
				continue;
			assert_ok(sampler_ask(c, x, &err), err);
			endless += x[0] == 2;
		}
		qsort(rates, MANY, sizeof(*rates), compare_doubles);
		assert_true(rates[MANY / 2] > 1.8e-3 && rates[MANY / 2] < 5.6e-3); /* sqrt(1e-5) = 3.2e-3 */
		assert_in_range(small, MANY * 0.5, MANY * 0.6); /* log(63) / log(2001) = 0.545 */
		assert_true(endless <= 3);
		free(rates);
		sampler_free(s);
		sampler_free(c);
	}
}

static void grid_gives_floats_levels(void **state)
{
	static const double expected[][2] = { { 0, 0.001 }, { 0, 0.1 }, { 0, 10 },
					      { 1, 0.001 }, { 1, 0.1 }, { 1, 10 },
					      { 2, 0.001 }, { 2, 0.1 }, { 2, 10 } };
	static const struct space sp = {
		"two floats",
		2,
		true,
		{ { .kind = SAMPLER_FLOAT, .low = 0, .high = 2 },
		  { .kind = SAMPLER_FLOAT, .low = 0.001, .high = 10, .log = true } }
	};
	struct sampler *s = start("GridSampler", &sp, 1, false, 0);
	struct err err = ERR_INIT;
	double x[2];
	size_t i;

	(void)state;
	tell(s, (const double[]){ 1, 0.1 }, 1, 0);
	tell(s, (const double[]){ 1.01, 0.1 }, 1, 0); /* not on the grid */
	for (i = 0; i < ARRAY_LEN(expected); i++) {
		if (i == 4)
			continue; /* was told */
		assert_ok(sampler_ask(s, x, &err), err);
		assert_true(fabs(x[0] - expected[i][0]) < 1e-9 && fabs(x[1] - expected[i][1]) < 1e-9);
	}
	assert_spent(s, &sp);
	sampler_free(s);
}

static void aliases_are_found(void **state)
{
	static const char *const rows[][2] = {
		{ "TPESampler", "tpe" },
		{ "tpesampler", "tpe" },
		{ "gps", "gp" },
		{ "GPS", "gp" },
		{ "GPSampler", "gp" },
		{ "GPSSampler", "gp" },
		{ "RandomSampler", "random" },
		{ "GRIDSAMPLER", "grid" },
		{ "CmaEsSampler", "cmaes" },
		{ "NSGAIISampler", "nsga2" },
		{ "QMCSampler", "qmc" },
		{ "Tpe", "tpe" },
	};
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_LEN(rows); i++) { /* the same first points, on which no two samplers agree */
		double a[2 * ASKS * PARAMS_MAX], b[2 * ASKS * PARAMS_MAX];

		run(rows[i][0], &spaces[1], 1, 1, false, false, a, ASKS);
		run(rows[i][1], &spaces[1], 1, 1, false, false, b, ASKS);
		assert_memory_equal(a, b, ASKS * spaces[1].n * sizeof(*a));
	}
}

static void refuses_what_is_wrong(void **state)
{
	const struct {
		struct sampler_param p[2];
		size_t n_objectives, n_constraints;
		const char *msg;
	} rows[] = {
		{ { { .kind = SAMPLER_FLOAT, .low = 1, .high = 0 } }, 1, 0, "from 1 to 0" },
		{ { { .kind = SAMPLER_FLOAT, .low = 0, .high = INFINITY } }, 1, 0, "finite bounds" },
		{ { { .kind = SAMPLER_FLOAT, .low = -1e308, .high = 1e308 } }, 1, 0, "difference is finite" },
		{ { { .kind = SAMPLER_FLOAT, .low = 0, .high = 1, .log = true } }, 1, 0, "bounds above 0" },
		{ { { .kind = SAMPLER_FLOAT, .low = 1, .high = 2, .log = true, .step = 0.1 } },
		  1,
		  0,
		  "none on a log" },
		{ { { .kind = SAMPLER_INTEGER, .low = 0.5, .high = 2 } }, 1, 0, "needs integers" },
		{ { { .kind = SAMPLER_INTEGER, .low = 0, .high = 2e16 } }, 1, 0, "within 2^53" },
		{ { { .kind = SAMPLER_FLOAT, .low = 0, .high = 1, .step = 1e-300 } },
		  1,
		  0,
		  "fewer than 2^53" },
		{ { { .kind = SAMPLER_FLOAT, .high = 1, .when = WHEN(0, 0) } },
		  1,
		  0,
		  "an earlier categorical one" },
		{ { { .kind = SAMPLER_CATEGORICAL, .options = 2 },
		    { .kind = SAMPLER_FLOAT, .high = 1, .when = WHEN(0, 2) } },
		  1,
		  0,
		  "option 2 of 0, which has 2" },
		{ { { .kind = SAMPLER_FLOAT, .high = 1 } }, 2, 0, "2 objectives, it takes 1" },
		{ { { .kind = SAMPLER_FLOAT, .high = 1 } }, 1, 9, "9 constraints" },
	};
	static const double wrong[][2] = { { 3, 0 }, { 0.5, 0 }, { 1, 2.5 }, { 1, 11 }, { NAN, 1 } };
	static const struct space sp = { "two",
					 2,
					 false,
					 { { .kind = SAMPLER_CATEGORICAL, .options = 3 },
					   { .kind = SAMPLER_INTEGER, .low = 0, .high = 10 } } };
	struct sampler *s = NULL;
	struct err err = ERR_INIT;
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_LEN(rows); i++) {
		struct sampler_options opt = { .params = rows[i].p,
					       .n_params = rows[i].p[1].kind || rows[i].p[1].high > 0 ? 2 : 1,
					       .n_objectives = rows[i].n_objectives,
					       .n_constraints = rows[i].n_constraints };

		assert_int_equal(sampler_new(&s, "tpe", &opt, &err), FETTLE_INVALID);
		assert_null(s);
		if (!strstr(err.msg, rows[i].msg))
			fail_msg("%s, expected %s", err.msg, rows[i].msg);
	}
	FOR_EACH_SAMPLER(name)
	{
		s = start(name, &sp, 1, false, 0);
		for (i = 0; i < ARRAY_LEN(wrong); i++)
			assert_int_equal(
				sampler_tell(s, wrong[i], &(struct sampler_result){ .values = { 0 } }, &err),
				FETTLE_INVALID);
		sampler_free(s);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(hands_out_each_point_once),
		cmocka_unit_test(told_points_are_not_asked),
		cmocka_unit_test(same_seed_same_points),
		cmocka_unit_test(survives_bad_results),
		cmocka_unit_test(learners_go_where_it_is_feasible),
		cmocka_unit_test(random_draws_are_even),
		cmocka_unit_test(grid_gives_floats_levels),
		cmocka_unit_test(aliases_are_found),
		cmocka_unit_test(refuses_what_is_wrong),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
