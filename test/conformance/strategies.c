/* Every strategy on every synthetic space: what the contract in strategy/strategy.h promises. */
#include "unit/unit.h"

#include "conformance/run.h"

static const struct recipe_for_world worlds[] = {
	{ "a single plan", .n_ops = 1, .settings = 1, .fixed = 1, .op_loss = 1 },
	{ "a single plan that passes", .n_ops = 1, .settings = 1, .fixed = 1 },
	{ "one op", .n_ops = 1, .settings = 1, .op_loss = 1 },
	{ "one op, 20 options", .n_ops = 1, .settings = 20, .op_loss = 0.012 },
	{ "two ops, a pair", .n_ops = 2, .settings = 2, .n_pairs = 1 },
	{ "three ops, nothing passes", .n_ops = 3, .settings = 3, .always = 0.5 },
	{ "everything passes", .n_ops = 20, .settings = 3, .n_types = 3, .n_recipes = 4, .n_sizes = 2 },
	{ "only fp32 passes", .n_ops = 12, .settings = 2, .n_types = 3, .always = 0.3, .n_recipes = 3 },
	{ "nothing passes, no fallback", .n_ops = 8, .settings = 4, .fixed = 1, .always = 0.3 },
	{ "additive", .n_ops = 25, .settings = 1, .n_types = 4, .op_loss = 0.05 },
	{ "a pair", .n_ops = 25, .settings = 1, .n_types = 4, .op_loss = 0.008, .n_pairs = 1 },
	{ "pairs and blocks", .n_ops = 60, .settings = 2, .n_types = 5, .n_blocks = 6, .op_loss = 0.012,
	  .n_pairs = 2, .n_recipes = 5, .slow = 3 },
	{ "static and dynamic", .n_ops = 30, .settings = 8, .dynamic = true, .n_types = 6, .op_loss = 0.02,
	  .n_pairs = 1, .n_sizes = 3 },
	{ "not monotone", .n_ops = 30, .settings = 2, .n_types = 4, .op_loss = 0.03, .wobble = 0.01 },
	{ "failing trials", .n_ops = 20, .settings = 3, .n_types = 4, .op_loss = 0.03, .n_pairs = 1,
	  .fail_rate = 0.3 },
	{ "every trial fails", .n_ops = 5, .settings = 2, .fail_rate = 1 },
	{ "some may not fall back", .n_ops = 30, .settings = 1, .n_types = 4, .op_loss = 0.02, .fixed = 4,
	  .n_pairs = 1 },
	{ "options that come to the same", .n_ops = 4, .settings = 4, .n_types = 2, .n_recipes = 4,
	  .op_loss = 0.05, .setting_loss = 0.02, .twins = true },
	{ "fast together", .n_ops = 30, .settings = 2, .n_types = 4, .op_loss = 0.03, .couples = true },
	{ "next to nothing passes", .n_ops = 24, .settings = 1, .n_types = 3, .op_loss = 0.4 },
	{ "lower is better, absolute", .n_ops = 15, .settings = 2, .n_types = 3, .op_loss = 0.03,
	  .lower_is_better = true, .absolute = true },
	{ "weight-only", .n_ops = 40, .settings = 15, .n_types = 2, .op_loss = 0.02, .blocks = true },
	{ "weight-only, one algorithm", .n_ops = 30, .settings = 5, .op_loss = 0.2, .blocks = true,
	  .fixed = 7 },
	{ "weight-only and int8, by time", .n_ops = 30, .settings = 10, .op_loss = 0.02, .blocks = true,
	  .int8 = true, .by_time = true },
	{ "weight-only, nothing passes", .n_ops = 10, .settings = 10, .always = 0.3, .blocks = true },
	{ "500 ops, 20 options", .n_ops = 500, .settings = 20, .n_types = 10, .n_blocks = 12, .op_loss = 0.05,
	  .n_pairs = 3, .n_recipes = 10, .n_sizes = 3 },
};

static const struct recipe_for_world realistic[] = {
	{ "cnn, 20 ops, a pair", .n_ops = 20, .settings = 1, .n_types = 4, .op_loss = 0.006, .n_pairs = 1 },
	{ "60 ops, a pair", .n_ops = 60, .settings = 1, .n_types = 5, .op_loss = 0.006, .n_pairs = 1 },
	{ "60 ops, two pairs, additive too", .n_ops = 60, .settings = 1, .n_types = 5, .op_loss = 0.012,
	  .n_pairs = 2 },
	{ "60 ops in blocks, recipes", .n_ops = 60, .settings = 1, .n_types = 6, .n_blocks = 6,
	  .op_loss = 0.009, .n_pairs = 1, .n_recipes = 8, .slow = 3 },
	{ "40 ops, a few settings", .n_ops = 40, .settings = 4, .dynamic = true, .n_types = 5,
	  .op_loss = 0.012, .n_pairs = 1, .n_recipes = 3 },
	{ "60 ops, five pairs, noisy", .n_ops = 60, .settings = 1, .n_types = 6, .op_loss = 0.006,
	  .n_pairs = 5, .wobble = 0.002 },
	{ "60 ops, two pairs, poor ranks", .n_ops = 60, .settings = 1, .n_types = 6, .op_loss = 0.009,
	  .n_pairs = 2, .rank_noise = 4 },
	{ "60 ops, five pairs, poor ranks", .n_ops = 60, .settings = 1, .n_types = 6, .op_loss = 0.009,
	  .n_pairs = 5, .rank_noise = 4 },
	{ "40 ops, not monotone", .n_ops = 40, .settings = 1, .n_types = 5, .op_loss = 0.02,
	  .wobble = 0.006 },
	{ "50 ops, additive", .n_ops = 50, .settings = 1, .n_types = 5, .op_loss = 0.02 },
};

static const char *const fallback_strategies[] = { "auto", "fettle", "conservative", "basic",
						   "mse",  "mse_v2", "hawq_v2" };

static bool falls_back(const struct strategy *strategy)
{
	size_t i;

	for (i = 0; i < ARRAY_LEN(fallback_strategies); i++)
		if (strcmp(strategy->name, fallback_strategies[i]) == 0)
			return true;
	return false;
}

/* ---- properties of a log ---- */

static void check_no_repeats(const struct world *w)
{
	size_t i, k;

	for (i = 0; i < w->log.n; i++)
		for (k = 0; k < i; k++)
			check(world_hash(w, &w->log.v[i].plan, 1) != world_hash(w, &w->log.v[k].plan, 1));
}

static void check_plans(const struct world *w)
{
	size_t i, k;

	for (i = 0; i < w->log.n; i++) {
		check(w->log.v[i].plan.n == w->space.n);
		for (k = 0; k < w->space.n; k++)
			check(w->log.v[i].plan.choice[k] < w->space.v[k].n_options);
		check(plan_n_quantized(&w->log.v[i].plan, &w->space) > 0);
		check(w->log.v[i].stage[0]);
	}
}

static void check_scores(struct world *w)
{
	size_t i;

	for (i = 0; i < w->log.n; i++) {
		const struct logged *l = &w->log.v[i];

		check(l->number == i + 1);
		check(l->score.failed == world_fails(w, &l->plan));
		check(l->score.met == world_meets(w, &l->plan));
		check(l->score.slight == world_is_slight(w, &l->plan));
		check(isnan(l->score.objective) == !l->score.met);
	}
}

/* Is the plan of trial a better than that of b? Written apart from the search, from what the world says. */
static bool is_better(struct world *w, const struct logged *a, const struct logged *b)
{
	bool met_a = world_meets(w, &a->plan), met_b = world_meets(w, &b->plan);
	double by_a, by_b;

	if (met_a != met_b)
		return met_a;
	by_a = met_a ? world_objective(w, &a->plan) : fmin(world_loss(w, &a->plan), 0.9);
	by_b = met_b ? world_objective(w, &b->plan) : fmin(world_loss(w, &b->plan), 0.9);
	return by_a < by_b - 1e-9;
}

static void check_best(struct world *w, const struct outcome *o)
{
	bool any = false;
	size_t i;

	for (i = 0; i < w->log.n; i++)
		any |= !world_fails(w, &w->log.v[i].plan);
	check(any == (o->best > 0));
	if (!any)
		return;
	check(plan_equal(&o->best_plan, &w->log.v[o->best - 1].plan, &w->space));
	for (i = 0; i < w->log.n; i++)
		check(world_fails(w, &w->log.v[i].plan) ||
		      !is_better(w, &w->log.v[i], &w->log.v[o->best - 1]));
}

static void check_end(const struct world *w, const struct outcome *o, size_t max_trials)
{
	check(o->st == FETTLE_OK);
	check(o->n_trials == w->log.n && o->n_trials == w->n_runs);
	check(!max_trials || o->n_trials <= max_trials);
	check((o->why == SEARCH_MAX_TRIALS) <= (o->n_trials == max_trials));
	check((o->why == SEARCH_ACCURACY_MET) <= (o->best && o->best_score.met && !o->best_score.slight));
	check((o->why == SEARCH_EXHAUSTED) <=
	      !(o->best && o->best_score.met && !o->best_score.slight && w->timeout == 0));
	check(o->why == SEARCH_MAX_TRIALS || o->why == SEARCH_ACCURACY_MET || o->why == SEARCH_EXHAUSTED);
	check(o->why != SEARCH_EXHAUSTED || o->says_untried);
}

static void check_same_log(const struct world *a, size_t from, const struct world *b)
{
	size_t i;

	check(a->log.n - from == b->log.n);
	for (i = 0; i < b->log.n; i++) {
		check(plan_equal(&a->log.v[from + i].plan, &b->log.v[i].plan, &a->space));
		check(a->log.v[from + i].number == b->log.v[i].number);
		check(strcmp(a->log.v[from + i].stage, b->log.v[i].stage) == 0);
	}
}

/* every world with every strategy */
typedef void (*property)(const struct recipe_for_world *r, const struct strategy *strategy);

static void for_all(property holds)
{
	const struct strategy *strategy;
	size_t i, k;

	for (i = 0; i < ARRAY_LEN(worlds); i++)
		for (k = 0; (strategy = strategy_at(k)); k++)
			holds(&worlds[i], strategy);
}

/* ---- the properties ---- */

static void budget_holds(const struct recipe_for_world *r, const struct strategy *strategy)
{
	static const size_t limits[] = { 1, 2, 10, 100 };
	size_t i;

	for (i = 0; i < ARRAY_LEN(limits); i++) {
		struct world w;
		struct outcome o;

		world_init(&w, r, 7);
		o = run(&w, strategy, limits[i]);
		check_end(&w, &o, limits[i]);
		check_no_repeats(&w);
		check_plans(&w);
		check_scores(&w);
		check_best(&w, &o);
		check(w.n_runs > 0);
		plan_release(&o.best_plan);
		world_release(&w);
	}
}

static void ends_within_budget_and_returns_the_best(void **state)
{
	(void)state;
	for_all(budget_holds);
}

static void repeats_itself(const struct recipe_for_world *r, const struct strategy *strategy)
{
	struct world a, b;
	struct outcome first, second;

	world_init(&a, r, 11);
	world_init(&b, r, 11);
	first = run(&a, strategy, 50);
	second = run(&b, strategy, 50);
	check_same_log(&a, 0, &b);
	check(first.best == second.best && first.why == second.why);
	plan_release(&first.best_plan);
	plan_release(&second.best_plan);
	world_release(&a);
	world_release(&b);
}

static void same_seed_gives_the_same_sequence(void **state)
{
	(void)state;
	for_all(repeats_itself);
}

/* Early verdicts and trials side by side change what trials cost, not what comes of them. */
static void costs_less_for_the_same(const struct recipe_for_world *r, const struct strategy *strategy)
{
	const struct {
		bool no_early;
		size_t width;
	} ways[] = { { true, 1 }, { false, 1 }, { false, 3 } };
	struct world w[3];
	struct outcome o[3];
	size_t i, k;

	for (i = 0; i < 3; i++) {
		world_init(&w[i], r, 13);
		w[i].no_early = ways[i].no_early;
		w[i].width = ways[i].width;
		o[i] = run(&w[i], strategy, 60);
	}
	for (i = 1; i < 3; i++) {
		check(o[i].n_trials == o[0].n_trials && o[i].best == o[0].best && o[i].why == o[0].why);
		for (k = 0; k < w[0].log.n; k++) {
			const struct score *full = &w[0].log.v[k].score, *part = &w[i].log.v[k].score;

			check(plan_equal(&w[i].log.v[k].plan, &w[0].log.v[k].plan, &w[0].space));
			check(part->met == full->met && part->failed == full->failed);
			check(full->failed ||
			      (part->low <= full->accuracy + 1e-9 && full->accuracy <= part->high + 1e-9));
		}
	}
	for (i = 0; i < 3; i++) {
		plan_release(&o[i].best_plan);
		world_release(&w[i]);
	}
}

static void early_or_side_by_side_gives_the_same(void **state)
{
	(void)state;
	for_all(costs_less_for_the_same);
}

static void keeps_to_the_time(const struct recipe_for_world *r, const struct strategy *strategy)
{
	struct world w;
	struct outcome o;
	size_t i, n_met = 0;

	world_init(&w, r, 7);
	w.timeout = 12.5;
	o = run(&w, strategy, 1000);
	check(o.st == FETTLE_OK && w.n_runs <= 13); /* those that are only timed cost next to nothing */
	check(w.last_start < w.timeout);
	check(o.why == SEARCH_TIMEOUT || o.why == SEARCH_EXHAUSTED);
	check((o.why == SEARCH_TIMEOUT) == (w.clock >= w.timeout));
	check_best(&w, &o);
	for (i = 0; i < w.log.n; i++)
		n_met += w.log.v[i].score.met;
	check(o.why != SEARCH_TIMEOUT || w.log.n >= 9); /* it went on, whatever it met */
	check(w.n_measured >= n_met);
	plan_release(&o.best_plan);
	world_release(&w);
}

static void timeout_ends_it_and_nothing_else(void **state)
{
	(void)state;
	for_all(keeps_to_the_time);
}

static void obeys(const struct recipe_for_world *r, const struct strategy *strategy)
{
	struct world w, full;
	struct outcome o, all;

	world_init(&full, r, 7);
	all = run(&full, strategy, 40);
	world_init(&w, r, 7);
	w.cancel_after = 3;
	o = run(&w, strategy, 40);
	check(o.st == FETTLE_OK);
	check(o.n_trials == (all.n_trials < 3 ? all.n_trials : 3));
	check((o.why == SEARCH_INTERRUPTED) == (all.n_trials > 3) || all.n_trials == 3);
	check_best(&w, &o);
	plan_release(&o.best_plan);
	plan_release(&all.best_plan);
	world_release(&w);
	world_release(&full);
}

static void cancel_ends_it(void **state)
{
	(void)state;
	for_all(obeys);
}

static void goes_on(const struct recipe_for_world *r, const struct strategy *strategy, double timeout)
{
	struct world whole, rest;
	struct outcome all, resumed;
	size_t cut;

	world_init(&whole, r, 5);
	whole.timeout = timeout;
	all = run(&whole, strategy, 30);
	for (cut = 0; cut <= whole.log.n; cut += 1 + (r->n_ops > 100) * 9) {
		world_init(&rest, r, 5);
		rest.timeout = timeout;
		rest.history = &whole;
		rest.n_history = cut;
		resumed = run(&rest, strategy, 30);
		check_same_log(&whole, cut, &rest);
		check(resumed.n_trials == all.n_trials && resumed.best == all.best && resumed.why == all.why);
		check(!all.best || plan_equal(&resumed.best_plan, &all.best_plan, &whole.space));
		plan_release(&resumed.best_plan);
		world_release(&rest);
	}
	plan_release(&all.best_plan);
	world_release(&whole);
}

static void resumes(const struct recipe_for_world *r, const struct strategy *strategy)
{
	goes_on(r, strategy, 0);
	if (r->n_ops < 100)
		goes_on(r, strategy, 15.25);
}

static void resumed_from_any_trial_it_goes_on_the_same(void **state)
{
	(void)state;
	for_all(resumes);
}

/* ---- what fallback is for ---- */

/* No op in fp32 that the default quantizes can be quantized without failing. */
static void check_minimal(const struct world *w, const struct outcome *o)
{
	struct plan p = PLAN_INIT;
	size_t i;

	plan_copy(&p, &o->best_plan);
	for (i = 0; i < w->space.n_ops; i++) {
		uint16_t had = p.choice[i];

		if (!in_fp32(w, &p, i))
			continue;
		p.choice[i] = w->space.v[i].first;
		check(!world_meets(w, &p));
		p.choice[i] = had;
	}
	plan_release(&p);
}

static void fallback_finds_a_minimal_plan(void **state)
{
	size_t i, k;
	uint64_t seed;

	(void)state;
	for (i = 0; i < ARRAY_LEN(realistic); i++) {
		for (k = 0; k < ARRAY_LEN(fallback_strategies); k++) {
			size_t trials = 0, most = 0, quantized = 0;

			for (seed = 1; seed <= 20; seed++) {
				struct world w;
				struct outcome o;

				world_init(&w, &realistic[i], seed);
				o = run(&w, strategy_find(fallback_strategies[k]), 100);
				check(o.best && o.best_score.met);
				if (o.why == SEARCH_ACCURACY_MET && realistic[i].settings == 1)
					check_minimal(&w, &o);
				trials += o.n_trials;
				most = o.n_trials > most ? o.n_trials : most;
				quantized += plan_n_quantized(&o.best_plan, &w.space);
				plan_release(&o.best_plan);
				world_release(&w);
			}
			print_message("%-34s %-13s %5.1f trials (at most %zu), %4.1f ops in int8\n",
				      realistic[i].name, fallback_strategies[k], (double)trials / 20, most,
				      (double)quantized / 20);
		}
	}
}

/* ---- settings ---- */

static void a_small_space_is_tried_whole(void **state)
{
	static const struct recipe_for_world rows[] = {
		{ "27 plans", .n_ops = 3, .settings = 3, .always = 0.5 },
		{ "64 plans, 8 models", .n_ops = 3, .settings = 4, .always = 0.5, .twins = true },
	};
	static const size_t models[] = { 27, 8 };
	const struct strategy *strategy;
	size_t i, k;

	(void)state;
	for (k = 0; k < ARRAY_LEN(rows); k++)
		for (i = 0; (strategy = strategy_at(i)); i++) {
			struct world w;
			struct outcome o;

			if (falls_back(strategy))
				continue;
			world_init(&w, &rows[k], 3);
			o = run(&w, strategy, 0);
			check(o.n_trials == models[k]);
			check(o.why == SEARCH_EXHAUSTED);
			check_no_repeats(&w);
			plan_release(&o.best_plan);
			world_release(&w);
		}
}

static void without_a_limit_fallback_ends(void **state)
{
	size_t i, k;

	(void)state;
	for (i = 0; i < ARRAY_LEN(worlds); i++) {
		for (k = 0; k < ARRAY_LEN(fallback_strategies); k++) {
			struct world w;
			struct outcome o;

			world_init(&w, &worlds[i], 3);
			o = run(&w, strategy_find(fallback_strategies[k]), 0);
			check_end(&w, &o, 0);
			check_best(&w, &o);
			check(o.n_trials < 500 + 4 * w.space.n_ops);
			plan_release(&o.best_plan);
			world_release(&w);
		}
	}
}

/* ---- failures ---- */

static void breaks_off(const struct recipe_for_world *r, const struct strategy *strategy)
{
	static const enum fettle_status with[] = { FETTLE_STOP, FETTLE_BACKEND };
	size_t i, at;

	for (i = 0; i < ARRAY_LEN(with); i++) {
		for (at = 1; at <= 16; at *= 4) {
			struct world w;
			struct outcome o;

			world_init(&w, r, 7);
			w.fail_at = at;
			w.fail_with = with[i];
			o = run(&w, strategy, 30);
			if (w.n_runs >= at) {
				check(w.n_runs == at && o.n_trials == at - 1);
				check(o.st == (with[i] == FETTLE_STOP ? FETTLE_OK : with[i]));
				check(o.why == (with[i] == FETTLE_STOP ? SEARCH_INTERRUPTED : SEARCH_FAILED));
				check(with[i] == FETTLE_STOP || strstr(o.err.msg, "made to fail"));
			}
			check_best(&w, &o);
			plan_release(&o.best_plan);
			world_release(&w);
		}
	}
}

static void a_backend_that_gives_up_ends_it(void **state)
{
	(void)state;
	for_all(breaks_off);
}

/* ---- plug-ins with `next` ---- */

static void *count_new(struct search *s)
{
	(void)s;
	return xcalloc(1, sizeof(size_t));
}

static enum fettle_status count_next(struct search *s, void *state, struct plan *p)
{
	size_t *n = state;

	if (*n >= search_space(s)->n_ops)
		return FETTLE_STOP;
	p->choice[(*n)++] = 1;
	return FETTLE_OK;
}

static enum fettle_status stuck_next(struct search *s, void *state, struct plan *p)
{
	(void)s;
	(void)state;
	(void)p;
	return FETTLE_OK;
}

static void next_is_driven_to_its_end(void **state)
{
	static const struct strategy count = {
		.name = "count", .next = count_next, .state_new = count_new, .state_free = free
	};
	static const struct strategy stuck = { .name = "stuck", .next = stuck_next };
	const struct recipe_for_world r = { "ten ops", .n_ops = 10, .settings = 2, .always = 0.5 };
	const struct {
		const struct strategy *strategy;
		size_t limit, n;
		enum search_stop why;
	} rows[] = {
		{ &count, 0, 10, SEARCH_EXHAUSTED },
		{ &count, 4, 4, SEARCH_MAX_TRIALS },
		{ &stuck, 5, 1, SEARCH_EXHAUSTED },
	};
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_LEN(rows); i++) {
		struct world w;
		struct outcome o;

		world_init(&w, &r, 1);
		o = run(&w, rows[i].strategy, rows[i].limit);
		check(o.n_trials == rows[i].n && o.why == rows[i].why);
		plan_release(&o.best_plan);
		world_release(&w);
	}
}

/* the objective of the best plan of all that meet the criterion */
static double least_of_all(const struct world *w)
{
	struct plan p = PLAN_INIT;
	double least = INFINITY;
	size_t i;

	plan_init(&p, &w->space);
	for (i = 0; i < p.n; i++)
		p.choice[i] = 0;
	do {
		if (world_meets(w, &p))
			least = fmin(least, world_objective(w, &p));
		for (i = 0; i < p.n && ++p.choice[i] == w->space.v[i].n_options; i++)
			p.choice[i] = 0;
	} while (i < p.n);
	plan_release(&p);
	return least;
}

/* What ops lose adds up, so that the best mixture of bits is nearly found by steps in the order of what they win for their cost. */
static void check_mixed_bits(const struct recipe_for_world *r)
{
	double most = 0, sum = 0;
	uint64_t seed;

	for (seed = 1; seed <= 12; seed++) {
		struct world w;
		struct outcome o;
		double share;

		world_init(&w, r, seed);
		o = run(&w, strategy_find("auto"), 0);
		check(o.best && o.best_score.met && world_meets(&w, &o.best_plan));
		check(o.n_trials < 40);
		share = world_objective(&w, &o.best_plan) / least_of_all(&w);
		most = fmax(most, share);
		sum += share / 12;
		plan_release(&o.best_plan);
		world_release(&w);
	}
	if (most > 1.15 || sum > 1.05)
		fail_msg("%s: %.2f times the least at worst, %.3f on average", r->name, most, sum);
}

static void mixed_bits_are_nearly_the_smallest(void **state)
{
	(void)state;
	check_mixed_bits(&(struct recipe_for_world){ "bits for each op, by size", .n_ops = 6, .settings = 5,
						     .op_loss = 0.004, .rank_noise = 1e-6, .blocks = true,
						     .by_size = true });
}

static void mixed_bits_are_nearly_the_fastest(void **state)
{
	(void)state;
	check_mixed_bits(&(struct recipe_for_world){ "bits for each op, by time", .n_ops = 6, .settings = 5,
						     .op_loss = 0.004, .rank_noise = 1e-6, .blocks = true,
						     .by_time = true });
	check_mixed_bits(&(struct recipe_for_world){ "bits or int8 for each op, by time", .n_ops = 6,
						     .settings = 5, .op_loss = 0.004, .rank_noise = 1e-6,
						     .blocks = true, .by_time = true, .int8 = true });
}

static void the_registry_finds_each_by_name(void **state)
{
	const struct strategy *strategy;
	size_t i;

	(void)state;
	for (i = 0; (strategy = strategy_at(i)); i++) {
		assert_ptr_equal(strategy_find(strategy->name), strategy);
		assert_true(strategy->summary[0]);
		assert_true(!strategy->traverse != !strategy->next);
	}
	assert_int_equal(i, 12);
	assert_null(strategy_find("basi"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_registry_finds_each_by_name),
		cmocka_unit_test(ends_within_budget_and_returns_the_best),
		cmocka_unit_test(same_seed_gives_the_same_sequence),
		cmocka_unit_test(early_or_side_by_side_gives_the_same),
		cmocka_unit_test(timeout_ends_it_and_nothing_else),
		cmocka_unit_test(cancel_ends_it),
		cmocka_unit_test(resumed_from_any_trial_it_goes_on_the_same),
		cmocka_unit_test(fallback_finds_a_minimal_plan),
		cmocka_unit_test(a_small_space_is_tried_whole),
		cmocka_unit_test(mixed_bits_are_nearly_the_smallest),
		cmocka_unit_test(mixed_bits_are_nearly_the_fastest),
		cmocka_unit_test(without_a_limit_fallback_ends),
		cmocka_unit_test(a_backend_that_gives_up_ends_it),
		cmocka_unit_test(next_is_driven_to_its_end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
