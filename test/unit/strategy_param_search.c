/* The order in which a parameter search tries settings, on a model that is only a formula. */
#include "unit/unit.h"

#include <math.h>

#include "base/mem.h"
#include "strategy/param_search.h"
#include "tune/search.h"

#define LIST(...)                                                                                            \
	{                                                                                                    \
		(const double[]){ __VA_ARGS__ }, sizeof((const double[]){ __VA_ARGS__ }) / sizeof(double)    \
	}

enum { N_OPS = 12 };

static const struct param_option options[] = { { .mode = OPTION_STATIC },
					       { .mode = OPTION_WIDE, .setting = 1, .alike = 1 },
					       { .mode = OPTION_FP32, .setting = 2, .alike = 2 } };

/* a run: what was tried, in order */
struct fake {
	struct param params[N_OPS + SETTINGS];
	struct space space;
	struct settings_list list;
	struct param_search p;
	double tolerance;
	size_t enough, max_trials;
	uint64_t seed;
	VEC(struct settings) tried;
	enum search_stop why;
	size_t fewest; /* ops that were not int8 in a plan that met the target; in the best where none has */
	struct score best;
};

static struct space *make_space(struct fake *f)
{
	size_t i;

	for (i = 0; i < N_OPS; i++)
		f->params[i] = (struct param){ .kind = PARAM_OP,
					       .n_options = 3,
					       .fallback = 2,
					       .options = options,
					       .compute = true,
					       .gain = 0.1 };
	f->space = (struct space){ .v = f->params, .n = N_OPS, .n_ops = N_OPS };
	space_add_settings(&f->space);
	f->p.space = &f->space;
	return &f->space;
}

/* Ops 3 and 7 lose most; sixteen bits take away most of that, fp32 all. Percentiles and smoothing help, and fine-tuning
 * most at 300 iterations. */
static double loss_of(const struct plan *p, const struct space *space)
{
	struct settings s = plan_settings(p, space);
	double loss = 0;
	size_t i;

	for (i = 0; i < N_OPS; i++) {
		double cost = i == 3 ? 0.4 : i == 7 ? 0.2 : 0.001;

		loss += cost * (p->choice[i] == OPTION_AS_SET ? 1 : p->choice[i] == OPTION_16_BITS ? 0.1 : 0);
	}
	if (s.v[SET_METHOD] == RANGE_PERCENTILE)
		loss -= 0.05 + (100 - s.v[SET_PERCENTILE]) * 0.01;
	if (settings_on(&s, SET_SQ))
		loss -= 0.02;
	if (settings_on(&s, SET_FAST_FT))
		loss -= isnan(s.v[SET_ITERATIONS]) ? 0.01 : 0.1 - 0.02 * fabs(log(s.v[SET_ITERATIONS] / 300));
	return loss + 0.5;
}

static enum fettle_status fake_run(void *self, struct trial *t, struct err *err)
{
	struct fake *f = self;

	(void)err;
	VEC_PUSH(&f->tried, plan_settings(&t->plan, &f->space));
	t->score.accuracy = 1 - loss_of(&t->plan, &f->space);
	return FETTLE_OK;
}

static enum fettle_status fake_objective(void *self, struct trial *t, const struct trial *against,
					 double *value, struct err *err)
{
	(void)self;
	(void)t;
	(void)against;
	(void)err;
	*value = 0;
	return FETTLE_OK;
}

static enum fettle_status fake_rank(void *self, const struct plan *p, enum rank by, int batches,
				    struct op_order *out, struct err *err)
{
	size_t i;

	(void)self;
	(void)p;
	(void)by;
	(void)batches;
	(void)err;
	out->op = xcalloc(N_OPS, sizeof(*out->op));
	out->score = xcalloc(N_OPS, sizeof(*out->score));
	for (i = 0; i < N_OPS; i++) {
		out->op[i] = i;
		out->score[i] = i == 3 ? 2 : i == 7 ? 1 : 0.1;
	}
	out->n = N_OPS;
	return FETTLE_OK;
}

static const struct search_backend backend = { .run = fake_run,
					       .objective = fake_objective,
					       .rank = fake_rank };

static size_t changed(const struct plan *p)
{
	size_t i, n = 0;

	for (i = 0; i < N_OPS; i++)
		n += p->choice[i] != OPTION_AS_SET;
	return n;
}

static void run(struct fake *f, const struct settings_space *spaces, size_t n)
{
	struct search_config c = { .baseline = 1,
				   .higher_is_better = true,
				   .tolerance = f->tolerance,
				   .enough = f->enough ? f->enough : SIZE_MAX,
				   .max_trials = f->max_trials,
				   .backend = &backend,
				   .self = f };
	struct search *s = NULL;
	struct err err = ERR_INIT;
	const struct trial *best;
	size_t i;

	c.space = make_space(f);
	assert_ok(settings_expand(&f->list, spaces, n, &err), err);
	f->p.spaces = spaces;
	f->p.n_spaces = n;
	f->p.list = &f->list;
	c.options = (struct strategy_options){ .seed = f->seed, .self = &f->p };
	assert_ok(search_new(&s, &c, &err), err);
	assert_ok(search_run(s, &strategy_param_search, &err), err);
	f->why = search_why(s);
	best = search_best_trial(s);
	f->best = best->score;
	f->fewest = changed(&best->plan);
	for (i = 1; i <= search_n_trials(s); i++)
		if (search_trial(s, i)->score.met && changed(&search_trial(s, i)->plan) < f->fewest)
			f->fewest = changed(&search_trial(s, i)->plan);
	assert_int_equal(search_n_trials(s), f->tried.n);
	search_free(s);
}

static void fake_release(struct fake *f)
{
	settings_list_release(&f->list);
	space_release(&f->space);
	VEC_RELEASE(&f->tried);
}

static const struct settings_space spaces[] = {
	{ .list = { [SET_METHOD] = LIST(RANGE_KL, RANGE_PERCENTILE, RANGE_MINMAX),
		    [SET_PERCENTILE] = LIST(99, 99.9),
		    [SET_SQ] = LIST(1, 0),
		    [SET_SMOOTH_ALPHA] = LIST(0.4, 0.6) } },
	{ .list = { [SET_METHOD] = LIST(RANGE_MINMAX),
		    [SET_FAST_FT] = LIST(0, 1),
		    [SET_ITERATIONS] = LIST(100, 300) } },
};
enum { N_SETTINGS = 4 * 3 + 2 }; /* the second space without fine-tuning is in the first */

static void all_differ(const struct fake *f)
{
	size_t i, k;

	for (i = 0; i < f->tried.n; i++)
		for (k = 0; k < i; k++)
			assert_false(settings_equal(&f->tried.v[i], &f->tried.v[k]));
}

static void grid_tries_all_cheap_ones_first(void **state)
{
	struct fake f = { .p.algorithm = "grid" };
	size_t i;

	(void)state;
	run(&f, spaces, 2);
	assert_int_equal(f.tried.n, N_SETTINGS);
	assert_int_equal(f.why, SEARCH_EXHAUSTED);
	for (i = 1; i < f.tried.n; i++)
		assert_true(settings_cost(&f.tried.v[i - 1]) <= settings_cost(&f.tried.v[i]));
	all_differ(&f);
	fake_release(&f);
}

static void random_tries_all_by_the_seed(void **state)
{
	struct fake a = { .p.algorithm = "random", .seed = 1 }, b = a, c = a;
	size_t i;
	bool same = true;

	(void)state;
	c.seed = 2;
	run(&a, spaces, 2);
	run(&b, spaces, 2);
	run(&c, spaces, 2);
	assert_int_equal(a.tried.n, N_SETTINGS);
	all_differ(&a);
	for (i = 0; i < a.tried.n; i++) {
		assert_true(settings_equal(&a.tried.v[i], &b.tried.v[i]));
		same &= settings_equal(&a.tried.v[i], &c.tried.v[i]);
	}
	assert_false(same);
	fake_release(&a);
	fake_release(&b);
	fake_release(&c);
}

/* how often is the cheap half of the settings in the first half of the trials? */
static void random_prefers_the_cheap(void **state)
{
	size_t early = 0, all = 0, i;
	uint64_t seed;

	(void)state;
	for (seed = 0; seed < 200; seed++) {
		struct fake f = { .p.algorithm = "random", .seed = seed };

		run(&f, spaces, 2);
		for (i = 0; i < f.tried.n; i++)
			if (settings_on(&f.tried.v[i], SET_FAST_FT)) {
				early += i < f.tried.n / 2;
				all++;
			}
		fake_release(&f);
	}
	assert_true(early < all / 5); /* half, if it did not care */
}

static void samplers_try_all_too(void **state)
{
	static const char *const names[] = { "tpe", "gp", "nsga2", "qmc", "cmaes" };
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_LEN(names); i++) {
		struct fake f = { .p.algorithm = names[i], .seed = 5 };

		run(&f, spaces, 2);
		if (f.tried.n != N_SETTINGS)
			fail_msg("%s: %zu settings, want %d", names[i], f.tried.n, N_SETTINGS);
		all_differ(&f);
		fake_release(&f);
	}
}

static void it_stops_when_told(void **state)
{
	struct fake f = { .p.algorithm = "grid", .tolerance = 1.1, .enough = 3 },
		    g = { .p.algorithm = "grid", .max_trials = 5 };

	(void)state;
	run(&f, spaces, 2);
	assert_true(f.tried.n >= 3 && f.best.met);
	assert_int_equal(f.why, SEARCH_ACCURACY_MET);
	run(&g, spaces, 2);
	assert_int_equal(g.tried.n, 5);
	assert_int_equal(g.why, SEARCH_MAX_TRIALS);
	fake_release(&f);
	fake_release(&g);
}

/* settings that come to the same by a judge of the caller's */
static char *only_the_method(void *self, const struct plan *p)
{
	const struct fake *f = self;
	struct settings s = plan_settings(p, &f->space);
	char text[32];

	snprintf(text, sizeof(text), "%d", (int)s.v[SET_METHOD]);
	return xstrdup(text);
}

static void what_comes_to_the_same_is_tried_once(void **state)
{
	static const char *const names[] = { "grid", "random", "tpe" };
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_LEN(names); i++) {
		struct fake f = { .p = { .algorithm = names[i], .identity = only_the_method } };

		f.p.self = &f;
		run(&f, spaces, 2);
		assert_int_equal(f.tried.n, 3);
		fake_release(&f);
	}
}

static void two_stages(void **state)
{
	const struct settings_space s = {
		.list = { [SET_METHOD] = LIST(RANGE_KL, RANGE_PERCENTILE, RANGE_MINMAX),
			  [SET_PERCENTILE] = LIST(99, 99.9),
			  [SET_FAST_FT] = LIST(1),
			  [SET_OPTIM_ALGORITHM] = LIST(FINETUNE_ADAROUND, FINETUNE_GRAM),
			  [SET_ITERATIONS] = LIST(100, 300) }
	};
	struct fake f = { .p = { .algorithm = "grid", .two_stage = true } };
	size_t i;

	(void)state;
	run(&f, &s, 1);
	assert_true(param_search_has_stages(&f.list));
	assert_int_equal(f.list.n, 4 * 3);
	assert_int_equal(f.tried.n, 4 + 3);
	for (i = 0; i < f.tried.n; i++) {
		assert_int_equal(settings_on(&f.tried.v[i], SET_FAST_FT), i >= 4);
		if (i >= 4) /* of the best of the first stage */
			assert_true(f.tried.v[i].v[SET_METHOD] == RANGE_PERCENTILE &&
				    f.tried.v[i].v[SET_PERCENTILE] == 99);
	}
	fake_release(&f);
}

static void a_study_learns(void **state)
{
	const struct settings_space s = { .list = { [SET_FAST_FT] = LIST(1) } };
	struct fake a = { .p = { .algorithm = "grid",
				 .advanced = true,
				 .sampler = "tpe",
				 .n_trials = 40,
				 .iterations = { 10, 5000 },
				 .learning_rate = { 1e-5, 1e-2 } },
			  .seed = 3 },
		    b = a;
	double late = 0, early = 0;
	size_t i;

	(void)state;
	run(&a, &s, 1);
	run(&b, &s, 1);
	assert_int_equal(a.tried.n, 40);
	for (i = 0; i < 40; i++) {
		const double *v = a.tried.v[i].v;

		assert_true(v[SET_ITERATIONS] >= 10 && v[SET_ITERATIONS] <= 5000 &&
			    v[SET_ITERATIONS] == rint(v[SET_ITERATIONS]));
		assert_true(v[SET_LEARNING_RATE] >= 1e-5 && v[SET_LEARNING_RATE] <= 1e-2);
		assert_true(settings_equal(&a.tried.v[i], &b.tried.v[i]));
		*(i < 12 ? &early : &late) += fabs(log(v[SET_ITERATIONS] / 300)) / (i < 12 ? 12 : 28);
	}
	assert_true(late < early);
	fake_release(&a);
	fake_release(&b);
}

static void mixed_precision_changes_as_few_as_it_takes(void **state)
{
	const struct settings_space s = { .list = { [SET_AUTO_MP] = LIST(1) } };
	/* of 1.11 in all: both bad ones in sixteen bits leave 0.57; in fp32 0.51; all in fp32 0.5 */
	static const struct {
		double tolerance;
		size_t fewest, most_trials;
		bool met;
	} cases[] = { { 1.2, 0, 1, true },
		      { 0.8, 1, 7, true },
		      { 0.58, 2, 7, true },
		      { 0.515, 12, 12, true },
		      { 0.4, 12, 12, false } };
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_LEN(cases); i++) {
		struct fake f = { .p.algorithm = "grid", .tolerance = cases[i].tolerance };

		run(&f, &s, 1);
		if (f.best.met != cases[i].met || f.fewest > cases[i].fewest ||
		    f.tried.n > cases[i].most_trials)
			fail_msg("tolerance %g: met %d, %zu ops changed, %zu trials", cases[i].tolerance,
				 f.best.met, f.fewest, f.tried.n);
		fake_release(&f);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(grid_tries_all_cheap_ones_first),
		cmocka_unit_test(random_tries_all_by_the_seed),
		cmocka_unit_test(random_prefers_the_cheap),
		cmocka_unit_test(samplers_try_all_too),
		cmocka_unit_test(it_stops_when_told),
		cmocka_unit_test(what_comes_to_the_same_is_tried_once),
		cmocka_unit_test(two_stages),
		cmocka_unit_test(a_study_learns),
		cmocka_unit_test(mixed_precision_changes_as_few_as_it_takes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
