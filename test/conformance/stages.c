/* Spaces with a needle: only some plans pass, and only a certain stage can find them. */
#include "unit/unit.h"

#include "conformance/run.h"
#include "strategy/stages.h"

static const struct recipe_for_world haystack = { "haystack",      .n_ops = 12,  .settings = 6,
						  .dynamic = true, .n_types = 3, .n_recipes = 4,
						  .n_blocks = 3,   .n_sizes = 3 };

/* ---- needles ---- */

/* Is every op at the setting that its type is to have? */
static bool types_at(const struct world *w, const struct plan *p, const unsigned wanted[3])
{
	size_t i;

	for (i = 0; i < w->space.n_ops; i++)
		if (p->choice[i] != wanted[w->space.v[i].type_id])
			return false;
	return true;
}

static bool second_static(const struct world *w, const struct plan *p)
{
	return types_at(w, p, (const unsigned[]){ 1, 1, 1 });
}

static bool mixed_static(const struct world *w, const struct plan *p)
{
	return types_at(w, p, (const unsigned[]){ 0, 2, 1 });
}

static bool dynamic(const struct world *w, const struct plan *p)
{
	return types_at(w, p, (const unsigned[]){ 5, 5, 5 });
}

static bool all_recipes(const struct world *w, const struct plan *p)
{
	size_t i;

	for (i = w->space.n_ops; i < w->space.n; i++)
		if (w->space.v[i].apply != NO_OPTION && p->choice[i] != w->space.v[i].apply)
			return false;
	return true;
}

/* One recipe but not the others, whichever the user has left free. */
static bool one_recipe(const struct world *w, const struct plan *p)
{
	size_t i, last = 0, n = 0;

	for (i = w->space.n_ops; i < w->space.n; i++) {
		if (w->space.v[i].kind != PARAM_RECIPE || w->space.v[i].apply == NO_OPTION)
			continue;
		last = i;
		n += p->choice[i];
	}
	return n == 1 && p->choice[last] == 1;
}

static bool third_size(const struct world *w, const struct plan *p)
{
	return p->choice[w->space.n - 1] == 2;
}

static bool block_1(const struct world *w, const struct plan *p)
{
	size_t i;

	for (i = 0; i < w->space.n_ops; i++)
		if (in_fp32(w, p, i) != (w->space.v[i].block == 1))
			return false;
	return true;
}

static bool op_7(const struct world *w, const struct plan *p)
{
	return in_fp32(w, p, 7) && plan_n_quantized(p, &w->space) == w->space.n_ops - 1;
}

/* Recipes are not tried before ops were scored, though they would do. */
static bool all_recipes_or_op_7(const struct world *w, const struct plan *p)
{
	return all_recipes(w, p) || op_7(w, p);
}

/* Only what is least likely: one particular op in int8, all else in fp32. */
static bool all_but_op_7(const struct world *w, const struct plan *p)
{
	return !in_fp32(w, p, 7) && plan_n_quantized(p, &w->space) == 1;
}

static bool type_1(const struct world *w, const struct plan *p)
{
	size_t i;

	for (i = 0; i < w->space.n_ops; i++)
		if (in_fp32(w, p, i) == (w->space.v[i].type_id == 1))
			return false;
	return true;
}

/* The costly recipe, whatever else. */
static bool costly_recipe(const struct world *w, const struct plan *p)
{
	return p->choice[w->r->n_ops + w->r->n_recipes - 1] == 1;
}

static bool op_7_in_16_bits(const struct world *w, const struct plan *p)
{
	return in_16_bits(w, p, 7);
}

/* Found by its stage, and never tried before that. */
static void costly_recipes_and_16_bits_come_late(void **state)
{
	static const struct recipe_for_world late = { "late",       .n_ops = 12,    .settings = 6,
						      .n_types = 3, .n_recipes = 3, .costly = true,
						      .wide = true };
	static const struct {
		const char *strategy, *stage;
		bool (*needle)(const struct world *w, const struct plan *p);
	} rows[] = {
		{ "basic", "recipes", costly_recipe },     { "mse", "recipes", costly_recipe },
		{ "fettle", "fine-tuned", costly_recipe }, { "auto", "fine-tuned", costly_recipe },
		{ "basic", "16 bits", op_7_in_16_bits },   { "mse_v2", "16 bits", op_7_in_16_bits },
		{ "hawq_v2", "16 bits", op_7_in_16_bits }, { "fettle", "16 bits", op_7_in_16_bits },
	};
	size_t i, k;

	(void)state;
	for (i = 0; i < ARRAY_LEN(rows); i++) {
		struct world w;
		struct outcome o;

		world_init(&w, &late, 2);
		w.needle = rows[i].needle;
		o = run(&w, strategy_find(rows[i].strategy), 300);
		for (k = 0; k < w.log.n && !rows[i].needle(&w, &w.log.v[k].plan);)
			k++;
		if (!o.best_score.met || k == w.log.n || strcmp(w.log.v[k].stage, rows[i].stage) != 0)
			fail_msg("%s: row %zu, %s after %zu trials, the first of stage %s, not %s", here, i,
				 search_stop_name(o.why), o.n_trials, k < w.log.n ? w.log.v[k].stage : "none",
				 rows[i].stage);
		plan_release(&o.best_plan);
		world_release(&w);
	}
}

/* Where the target is met, accuracy is not worth minutes. */
static void costly_recipes_are_for_those_who_need_them(void **state)
{
	static const struct recipe_for_world easy = { "easy",       .n_ops = 12,    .settings = 3,
						      .n_types = 3, .n_recipes = 3, .costly = true };
	const struct strategy *strategy;
	size_t i, k;

	(void)state;
	for (i = 0; (strategy = strategy_at(i)); i++) {
		struct world w;
		struct outcome o;

		world_init(&w, &easy, 2);
		w.timeout = 1e6; /* so it continues */
		o = run(&w, strategy, 200);
		assert_true(o.best_score.met);
		for (k = 0; k < w.log.n; k++)
			assert_false(costly_recipe(&w, &w.log.v[k].plan));
		plan_release(&o.best_plan);
		world_release(&w);
	}
}

/* As few ops in 16 bits as it takes, when the loss is theirs. */
static void few_ops_go_to_16_bits(void **state)
{
	static const struct recipe_for_world r = { "16 bits", .n_ops = 24, .settings = 1, .op_loss = 0.05,
						   .wide = true };
	size_t seed, i;

	(void)state;
	for (seed = 0; seed < 20; seed++) {
		size_t wide = 0, fp32 = 0;
		struct world w;
		struct outcome o;

		world_init(&w, &r, seed);
		o = run(&w, strategy_find("basic"), 100);
		assert_true(o.best_score.met);
		for (i = 0; i < r.n_ops; i++) {
			wide += in_16_bits(&w, &o.best_plan, i);
			fp32 += in_fp32(&w, &o.best_plan, i);
		}
		assert_int_equal(fp32, 0);
		assert_true(wide > 0 && wide < r.n_ops);
		plan_release(&o.best_plan);
		world_release(&w);
	}
}

static void each_stage_finds_what_it_is_for(void **state)
{
	static const struct {
		const char *strategy, *stage;
		bool (*needle)(const struct world *w, const struct plan *p);
		size_t limit;
	} rows[] = {
		{ "basic", "all recipes", all_recipes, 2 },
		{ "basic", "op types, static", second_static, 10 },
		{ "basic", "op types, static", mixed_static, 200 },
		{ "basic", "op types, dynamic", dynamic, 100 },
		{ "basic", "recipes", one_recipe, 200 },
		{ "basic", "samples", third_size, 200 },
		{ "basic", "blocks", block_1, 200 },
		{ "basic", "single ops", op_7, 300 },
		{ "mse", "all recipes", all_recipes, 2 },
		{ "mse", "op types, static", mixed_static, 200 },
		{ "mse", "recipes", one_recipe, 200 },
		{ "mse", "push", all_but_op_7, 200 },
		{ "mse_v2", "all recipes", all_recipes, 60 },
		{ "mse_v2", "fallback", all_recipes_or_op_7, 60 },
		{ "mse_v2", "op types, static", second_static, 10 },
		{ "mse_v2", "op types, dynamic", dynamic, 20 },
		{ "mse_v2", "fallback", all_but_op_7, 100 },
		{ "hawq_v2", "all recipes", all_recipes, 2 },
		{ "hawq_v2", "op types, dynamic", dynamic, 20 },
		{ "hawq_v2", "push", all_but_op_7, 100 },
		{ "conservative", "op type MatMul", type_1, 10 },
		{ "conservative", "push", all_but_op_7, 100 },
		{ "auto", "all recipes", all_recipes, 25 },
		{ "auto", "op types, static", mixed_static, 200 },
		{ "auto", "least error", one_recipe, 250 },
		{ "fettle", "least error", one_recipe, 2 },
		{ "fettle", "push", all_but_op_7, 100 },
	};
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_LEN(rows); i++) {
		struct world w;
		struct outcome o;

		world_init(&w, &haystack, 2);
		w.needle = rows[i].needle;
		o = run(&w, strategy_find(rows[i].strategy), rows[i].limit);
		if (!o.best_score.met || strcmp(w.log.v[o.best - 1].stage, rows[i].stage) != 0)
			fail_msg("%s: row %zu, %s after %zu trials, best of stage %s, not %s", here, i,
				 search_stop_name(o.why), o.n_trials, w.log.v[o.best - 1].stage,
				 rows[i].stage);
		plan_release(&o.best_plan);
		world_release(&w);
	}
}

/* A frugal search still meets the criterion, and spends few trials on quantizing more; others spend more on some of these. */
static void frugal_pushes_are_short(void **state)
{
	static const struct recipe_for_world r = { "lossy", .n_ops = 60, .settings = 2, .op_loss = 0.03 };
	size_t seed, i, longest[2] = { 0, 0 }, frugal;

	(void)state;
	for (seed = 0; seed < 10; seed++)
		for (frugal = 0; frugal < 2; frugal++) {
			struct world w;
			struct outcome o;
			size_t pushed = 0;

			world_init(&w, &r, seed);
			w.frugal = frugal;
			o = run(&w, strategy_find("fettle"), 300);
			check(o.best_score.met);
			for (i = 0; i < w.log.n; i++)
				pushed += strcmp(w.log.v[i].stage, "push") == 0;
			longest[frugal] = pushed > longest[frugal] ? pushed : longest[frugal];
			plan_release(&o.best_plan);
			world_release(&w);
		}
	assert_true(longest[1] <= 8);
	assert_true(longest[0] > 8);
}

static bool one_op(const struct world *w, const struct plan *p)
{
	return plan_n_quantized(p, &w->space) == 1;
}

/* Any one op passes, and no two do: if one of them has half of all that can be gained, it is the one, whichever was found first. */
static void a_large_op_replaces_a_small_one(void **state)
{
	static const struct recipe_for_world r = { "one large op", .n_ops = 24, .settings = 1,
						   .op_loss = 0.1 };
	size_t seed, i, large;

	(void)state;
	for (seed = 0; seed < 10; seed++) {
		struct world w;
		struct outcome o;

		world_init(&w, &r, seed);
		large = (5 * seed) % r.n_ops;
		for (i = 0; i < r.n_ops; i++)
			w.space.v[i].gain = 0.5 / (i == large ? 1 : (double)(r.n_ops - 1));
		w.needle = one_op;
		w.frugal = true;
		o = run(&w, strategy_find("fettle"), 300);
		check(o.best_score.met && plan_is_quantized(&o.best_plan, &w.space, large));
		plan_release(&o.best_plan);
		world_release(&w);
	}
}

/* A plan that loses one sample too many is tried with all corrections, though they are not seen to help; not one that loses more, nor
 * where samples are not right or wrong. */
static void one_sample_is_chance(void **state)
{
	static const struct recipe_for_world r = { "corrections", .n_ops = 12, .settings = 2,
						   .n_recipes = 8 };
	static const struct {
		size_t samples;
		bool counts, alike;
	} rows[] = { { 1, true, true }, { 39, true, false }, { 1, false, false } };
	size_t k, i;

	(void)state;
	for (k = 0; k < ARRAY_LEN(rows); k++) {
		struct world w;
		struct outcome o;

		world_init(&w, &r, 2);
		w.needle = all_recipes;
		w.frugal = true;
		w.samples = rows[k].samples;
		w.counts = rows[k].counts;
		for (i = w.space.n_ops; i < w.space.n; i++)
			w.space.v[i].corrects = w.space.v[i].kind == PARAM_RECIPE;
		o = run(&w, strategy_find("auto"), 60);
		check(o.best_score.met);
		if ((strcmp(w.log.v[o.best - 1].stage, "alike") == 0) != rows[k].alike)
			fail_msg("row %zu: found in stage %s, trial %zu", k, w.log.v[o.best - 1].stage,
				 o.best);
		plan_release(&o.best_plan);
		world_release(&w);
	}
}

/* A plan that misses by little: as much falls back at once as its error says. */
static void near_misses_take_few_trials(void **state)
{
	static const struct recipe_for_world r = { "near miss", .n_ops = 20, .settings = 1,
						   .op_loss = 0.012 };
	size_t seed, i, near = 0, tried = 0;

	(void)state;
	for (seed = 0; seed < 40; seed++) {
		struct world w;
		struct outcome o;

		world_init(&w, &r, seed);
		w.frugal = true;
		o = run(&w, strategy_find("fettle"), 100);
		check(o.best_score.met);
		if (o.n_trials > 1 && w.log.v[0].score.loss < 0.02) {
			near++;
			for (i = 0; i < w.log.n; i++)
				tried += strcmp(w.log.v[i].stage, "predicted") == 0;
		}
		plan_release(&o.best_plan);
		world_release(&w);
	}
	assert_true(near > 30);
	if (tried > near * 5 / 4)
		fail_msg("%zu trials for %zu near misses", tried, near);
}

/* Where losses grow as errors do, no more falls back than it takes, even if little may be spent. */
static void known_losses_say_how_much_falls_back(void **state)
{
	static const struct recipe_for_world r = { "loses by error", .n_ops = 60, .settings = 1,
						   .op_loss = 0.025 };
	double lost[2] = { 0, 0 };
	size_t seed, known, tried = 0;

	(void)state;
	for (seed = 0; seed < 20; seed++)
		for (known = 0; known < 2; known++) {
			struct world w;
			struct outcome o;

			world_init(&w, &r, seed);
			w.frugal = w.bounded = true;
			w.samples = 64;
			w.trial_runs = 20;
			w.only_lose = known;
			o = run(&w, strategy_find("fettle"), 100);
			check(o.best_score.met);
			lost[known] += o.best_score.loss / TOLERANCE / 20;
			tried += known * o.n_trials;
			plan_release(&o.best_plan);
			world_release(&w);
		}
	if (lost[1] < 0.6 || tried > 20 * 4)
		fail_msg("%.2f of what may be lost is, %zu trials; %.2f if nothing is known", lost[1], tried,
			 lost[0]);
}

/* Where integers save next to nothing, a plan that meets the criterion and quantizes something is enough. */
static void little_is_spent_on_little(void **state)
{
	static const struct recipe_for_world r = { "lossy", .n_ops = 60, .settings = 2, .n_recipes = 3,
						   .op_loss = 0.03 };
	size_t seed, spent[2] = { 0, 0 }, nothing;

	(void)state;
	for (seed = 0; seed < 10; seed++)
		for (nothing = 0; nothing < 2; nothing++) {
			struct world w;
			struct outcome o;

			world_init(&w, &r, seed);
			w.frugal = true;
			w.gains_nothing = nothing;
			o = run(&w, strategy_find("auto"), 300);
			check(o.best_score.met && !o.best_score.slight);
			spent[nothing] += o.n_trials;
			plan_release(&o.best_plan);
			world_release(&w);
		}
	if (2 * spent[1] > spent[0])
		fail_msg("%zu trials where there is nothing to gain, %zu where there is", spent[1], spent[0]);
}

/* Each op but one loses more than may be lost. */
static void spoil_all_but_one(struct world *w)
{
	size_t i;

	for (i = 0; i < w->space.n_ops; i++)
		w->weight[i] = i == w->seed % w->space.n_ops ? 0 : 0.02 + 0.03 * w->weight[i];
}

/*
 * Where the user sets neither trials nor time, a search spends few passes, and says so; but what other searches meet it meets, too,
 * be it with a single op in integers. With a limit of trials, it spends them.
 */
static void a_bounded_search_ends_soon(void **state)
{
	static const struct recipe_for_world rows[] = {
		{ "next to nothing passes", .n_ops = 24, .settings = 4, .n_types = 3, .n_recipes = 6,
		  .op_loss = 0.4 },
		{ "little passes", .n_ops = 60, .settings = 4, .n_types = 3, .n_recipes = 6, .op_loss = 0.2 },
		{ "hard", .n_ops = 40, .settings = 2, .n_recipes = 3, .op_loss = 0.06, .wobble = 0.005 },
		{ "pairs", .n_ops = 40, .settings = 2, .n_recipes = 3, .op_loss = 0.02, .n_pairs = 3 },
		{ "only one op passes", .n_ops = 100, .settings = 2, .n_types = 3, .op_loss = 1 },
		{ "nothing passes", .n_ops = 250, .settings = 2, .n_recipes = 3, .always = 0.5 },
	};
	size_t i, seed, limited[ARRAY_LEN(rows)] = { 0 };

	(void)state;
	for (i = 0; i < ARRAY_LEN(rows); i++)
		for (seed = 0; seed < 20; seed++) {
			struct world w[2];
			struct outcome o[2];
			size_t k;

			for (k = 0; k < 2; k++) {
				world_init(&w[k], &rows[i], seed);
				if (strcmp(rows[i].name, "only one op passes") == 0)
					spoil_all_but_one(&w[k]);
				w[k].frugal = true;
				w[k].bounded = k;
				w[k].samples = 1000;
				o[k] = run(&w[k], strategy_find("auto"), k ? 0 : 100);
			}
			check(o[1].best_score.met == o[0].best_score.met);
			check(o[1].spent <= 15 && !o[0].limited);
			limited[i] += o[1].limited;
			for (k = 0; k < 2; k++) {
				plan_release(&o[k].best_plan);
				world_release(&w[k]);
			}
		}
	for (i = 0; i < ARRAY_LEN(rows); i++)
		if (!limited[i])
			fail_msg("%s: no search says that it was limited", rows[i].name);
}

static void auto_keeps_trials_for_basic(void **state)
{
	const struct recipe_for_world r = { "large haystack", .n_ops = 150, .settings = 2, .n_types = 3,
					    .n_recipes = 4 };
	struct world w;
	struct outcome o;

	(void)state;
	world_init(&w, &r, 2);
	w.needle = all_recipes;
	o = run(&w, strategy_find("auto"), 100); /* push alone could spend 150 */
	check(o.best_score.met);
	plan_release(&o.best_plan);
	world_release(&w);
}

/* ---- what fallback starts from ---- */

/* The most accurate of the trials before this one in which no op has fallen back. */
static const struct plan *most_accurate_whole(const struct world *w, size_t before)
{
	size_t i, best = SIZE_MAX;

	for (i = 0; i < before; i++)
		if (plan_is_whole(&w->log.v[i].plan, &w->space) &&
		    (best == SIZE_MAX ||
		     world_loss(w, &w->log.v[i].plan) < world_loss(w, &w->log.v[best].plan)))
			best = i;
	return best == SIZE_MAX ? NULL : &w->log.v[best].plan;
}

/* However much all of them lose, and though auto has tried single ops in int8, which lose less. */
static void fallback_starts_from_the_most_accurate_plan(void **state)
{
	static const struct recipe_for_world r = { "all are far off", .n_ops = 30,    .settings = 4,
						   .n_types = 3,      .op_loss = 0.3, .setting_loss = 0.3,
						   .n_recipes = 4,    .always = 0.2 };
	static const char *const names[] = { "basic", "auto" };
	size_t i, k, n, seed, seen = 0;

	(void)state;
	for (i = 0; i < ARRAY_LEN(names); i++)
		for (seed = 1; seed <= 5; seed++) {
			const struct plan *base;
			struct world w;
			struct outcome o;

			world_init(&w, &r, seed);
			o = run(&w, strategy_find(names[i]), 200);
			for (k = 0; k < w.log.n && strcmp(w.log.v[k].stage, "single ops") != 0;)
				k++;
			base = most_accurate_whole(&w, k);
			for (; k < w.log.n && strcmp(w.log.v[k].stage, "single ops") == 0; k++, seen++) {
				for (n = 0; n < w.space.n_ops; n++)
					check(w.log.v[k].plan.choice[n] == base->choice[n] ||
					      in_fp32(&w, &w.log.v[k].plan, n));
				check(plan_n_quantized(&w.log.v[k].plan, &w.space) == w.space.n_ops - 1);
			}
			plan_release(&o.best_plan);
			world_release(&w);
		}
	assert_true(seen > 0);
}

/* ---- restraint ---- */

static bool is_dynamic(const struct world *w, const struct plan *p)
{
	size_t i;

	for (i = 0; i < w->space.n_ops; i++)
		if (w->space.v[i].options[p->choice[i]].mode == OPTION_DYNAMIC)
			return true;
	return false;
}

static void dynamic_only_when_static_will_not_do(void **state)
{
	bool prefer;

	(void)state;
	for (prefer = true;; prefer = false) {
		bool any = false;
		struct world w;
		struct outcome o;
		size_t i;

		world_init(&w, &haystack, 2);
		w.needle = second_static;
		w.timeout = 1000; /* continues */
		w.space.prefer_static = prefer;
		o = run(&w, strategy_find("basic"), 300);
		for (i = 0; i < w.log.n; i++)
			any |= is_dynamic(&w, &w.log.v[i].plan);
		check(any == !prefer);
		plan_release(&o.best_plan);
		world_release(&w);
		if (!prefer)
			break;
	}
}

static size_t n_alone(const struct world *w, const struct plan *p)
{
	size_t i, n = 0;

	for (i = 0; i < w->space.n_ops; i++)
		n += is_alone(w, p, i);
	return n;
}

static size_t n_in_stage(const struct world *w, const char *stage)
{
	size_t i, n = 0;

	for (i = 0; i < w->log.n; i++)
		n += strcmp(w->log.v[i].stage, stage) == 0;
	return n;
}

/* Falling back for accuracy leaves ops in int8 that gain only together with one that fell back. */
static void ops_that_int8_makes_slower_fall_back_too(void **state)
{
	const struct recipe_for_world r = { "couples",    .n_ops = 24,      .settings = 1,
					    .n_types = 3, .op_loss = 0.035, .couples = true };
	size_t seed, dropped = 0, k;

	(void)state;
	for (seed = 1; seed <= 10; seed++) {
		double last = INFINITY;
		struct world w;
		struct outcome o;

		world_init(&w, &r, seed);
		o = run(&w, strategy_find("fettle"), 100);
		check(o.best && world_meets(&w, &o.best_plan));
		check(n_in_stage(&w, "faster") <= 1);
		for (k = 0; k < w.log.n; k++)
			if (strcmp(w.log.v[k].stage, "faster") == 0) {
				check(!n_alone(&w, &w.log.v[k].plan));
				check(world_objective(&w, &w.log.v[k].plan) < last);
				check(o.best == w.log.v[k].number);
				dropped++;
			} else if (world_meets(&w, &w.log.v[k].plan)) {
				last = fmin(last, world_objective(&w, &w.log.v[k].plan));
			}
		plan_release(&o.best_plan);
		world_release(&w);
	}
	assert_true(dropped >= 3);
}

/* What meets the criterion shows that profiles were wrong: what new ones say is tried, too; not where they take long. */
static void wrong_profiles_are_taken_again(void **state)
{
	const struct recipe_for_world r = { "disturbed", .n_ops = 10, .settings = 1 };
	int slow;

	(void)state;
	for (slow = 0; slow < 2; slow++) {
		struct world w;
		struct outcome o;

		world_init(&w, &r, 1);
		w.disturbed = true;
		w.samples = 100;
		w.trial_runs = slow ? 5 : 1;
		o = run(&w, strategy_find("fettle"), 100);
		check(o.best_score.met && o.n_trials == (slow ? 1 : 2));
		check(plan_n_quantized(&o.best_plan, &w.space) == (slow ? 5 : 10));
		plan_release(&o.best_plan);
		world_release(&w);
	}
}

/* What is faster in fp32 never is in int8, not even in the first trial. */
static void slow_ops_are_in_fp32_from_the_start(void **state)
{
	const struct recipe_for_world r = { "one has no partner in int8", .n_ops = 9, .settings = 1,
					    .couples = true };
	struct plan first = PLAN_INIT;
	struct world w;
	struct outcome o;

	(void)state;
	world_init(&w, &r, 1);
	w.space.v[3].first = w.space.v[3].fallback; /* as a user may say: so op 2 is alone */
	plan_init(&first, &w.space);
	assert_true(is_alone(&w, &first, 2));
	o = run(&w, strategy_find("fettle"), 100);
	check(o.n_trials == 1 && strcmp(w.log.v[0].stage, "fastest") == 0);
	check(in_fp32(&w, &o.best_plan, 2) && plan_n_quantized(&o.best_plan, &w.space) == 7);
	plan_release(&first);
	plan_release(&o.best_plan);
	world_release(&w);
}

/* Where a plan meets the criterion, and another after ops have fallen back, but int8 costs time: one op in int8 costs least. */
static void what_is_slower_gives_way_to_a_single_op(void **state)
{
	static const struct recipe_for_world worlds[] = {
		{ "all pass", .n_ops = 20, .settings = 1, .slower = true },
		{ "a few fall back", .n_ops = 20, .settings = 1, .op_loss = 0.03, .slower = true },
	};
	size_t i, seed;

	(void)state;
	for (i = 0; i < ARRAY_LEN(worlds); i++)
		for (seed = 0; seed < 10; seed++) {
			struct world w;
			struct outcome o;

			world_init(&w, &worlds[i], seed);
			w.weight[seed] = 0;
			o = run(&w, strategy_find("fettle"), 100);
			check(o.best_score.met && world_objective(&w, &o.best_plan) == FP32_MS + 0.5);
			check(plan_n_quantized(&o.best_plan, &w.space) == 1);
			check(!in_fp32(&w, &o.best_plan, seed));
			plan_release(&o.best_plan);
			world_release(&w);
		}
}

/* Where int8 costs time, the fastest plan has a single op in int8. If that fails, one that costs as little and loses less is tried. */
static void a_single_op_that_fails_gives_way_to_another(void **state)
{
	static const struct recipe_for_world r = { "one op ruins", .n_ops = 20, .settings = 1,
						   .slower = true };
	struct world w;
	struct outcome o;
	size_t seed, i;

	(void)state;
	for (seed = 0; seed < 10; seed++) {
		world_init(&w, &r, seed);
		w.gains_nothing = true;
		for (i = 0; i < w.space.n_ops; i++) {
			w.space.v[i].compute = true;
			w.weight[i] = i == seed || i % 3 ? 0.5 : 0;
		}
		o = run(&w, strategy_find("fettle"), 100);
		check(o.best_score.met && plan_n_quantized(&o.best_plan, &w.space) == 1);
		check(in_fp32(&w, &o.best_plan, seed) && o.n_trials <= 5);
		plan_release(&o.best_plan);
		world_release(&w);
	}
}

/* Ranges that fit every sample may lose less: then no op falls back. Where they do not, they are not taken. */
static void dynamic_is_taken_when_it_loses_less(void **state)
{
	static const struct recipe_for_world worlds[] = {
		{ "dynamic is better", .n_ops = 16, .settings = 4, .dynamic = true, .dynamic_loss = 0.02,
		  .n_types = 3, .op_loss = 0.2 },
		{ "dynamic is no better", .n_ops = 16, .settings = 4, .dynamic = true, .n_types = 3,
		  .op_loss = 0.2 },
	};
	size_t seed, which, i;

	(void)state;
	for (seed = 1; seed <= 5; seed++)
		for (which = 0; which < ARRAY_LEN(worlds); which++) {
			struct world w;
			struct outcome o;
			bool any = false;

			world_init(&w, &worlds[which], seed);
			o = run(&w, strategy_find("fettle"), 100);
			for (i = 0; i < w.log.n; i++)
				any |= is_dynamic(&w, &w.log.v[i].plan);
			check(any == !which);
			check(world_meets(&w, &o.best_plan));
			if (!which)
				check(plan_n_quantized(&o.best_plan, &w.space) == 16 && o.n_trials <= 3);
			plan_release(&o.best_plan);
			world_release(&w);
		}
}

/* Where hardly a static op may stay, those that gain if they are dynamic are all of it. */
static void dynamic_ops_remain_where_static_ones_fall_back(void **state)
{
	static const struct recipe_for_world r = { "matrices",      .n_ops = 32,      .settings = 2,
						   .dynamic = true, .matrices = true, .dynamic_loss = 1e-4,
						   .op_loss = 4 };
	size_t seed, i;

	(void)state;
	for (seed = 1; seed <= 10; seed++) {
		struct world w;
		struct outcome o;

		world_init(&w, &r, seed);
		for (i = 0; i < r.n_ops; i++)
			w.weight[i] += 2 * TOLERANCE;
		w.frugal = w.bounded = true;
		w.samples = 64;
		w.trial_runs = 20;
		o = run(&w, strategy_find("fettle"), 100);
		check(o.best_score.met && plan_n_quantized(&o.best_plan, &w.space) == r.n_ops / 4);
		check(is_dynamic(&w, &o.best_plan));
		plan_release(&o.best_plan);
		world_release(&w);
	}
}

/* Two settings of each part that are good, for activations and for weights: found one after the other. */
static bool third_and_second(const struct world *w, const struct plan *p)
{
	size_t i;

	for (i = 0; i < w->space.n_ops; i++)
		if (p->choice[i] != 5) /* part 2 of activations, part 1 of weights */
			return false;
	return true;
}

static enum fettle_status parts_estimate(void *self, const struct plan *p, int batches, double *error,
					 struct err *err)
{
	const struct world *w = self;
	const struct param_option *o = &w->space.v[0].options[p->choice[0]];

	(void)batches;
	(void)err;
	((struct world *)self)->n_ranked++; /* counts estimates here */
	*error = (o->part[0] == 2 ? 0.01 : 1) + (o->part[1] == 1 ? 0.01 : 1);
	return FETTLE_OK;
}

static void settings_are_found_part_by_part(void **state)
{
	const struct recipe_for_world r = { "twelve settings", .n_ops = 4, .settings = 12 };
	struct search_backend backend = world_backend;
	struct search_config config;
	struct search *s = NULL;
	struct err err = ERR_INIT;
	struct score best;
	struct plan p = PLAN_INIT;
	struct world w;

	(void)state;
	world_init(&w, &r, 1);
	w.needle = third_and_second;
	config = world_config(&w, 10);
	backend.estimate = parts_estimate;
	config.backend = &backend;
	assert_ok(search_new(&s, &config, &err), err);
	assert_ok(search_run(s, strategy_find("fettle"), &err), err);
	assert_true(search_best(s, &p, &best) && best.met);
	assert_true(third_and_second(&w, &p));
	assert_int_equal(search_n_trials(s), 2);
	assert_true(w.n_ranked <= 1 + 6 + 2); /* not 12 */
	plan_release(&p);
	search_free(s);
	world_release(&w);
}

static void conservative_builds_on_the_types_it_kept(void **state)
{
	const struct recipe_for_world r = { "all passes", .n_ops = 30, .settings = 1, .n_types = 4 };
	const char *const stages[] = { "op type Conv", "op type MatMul", "op type Gemm", "op type Add" };
	struct world w;
	struct outcome o;
	size_t i;

	(void)state;
	world_init(&w, &r, 1);
	o = run(&w, strategy_find("conservative"), 100);
	check(o.n_trials == 4 && o.best == 4);
	check(plan_n_quantized(&o.best_plan, &w.space) == 30);
	for (i = 0; i < 4; i++)
		assert_string_equal(w.log.v[i].stage, stages[i]);
	plan_release(&o.best_plan);
	world_release(&w);
}

static void op_types_leave_half_of_the_trials(void **state)
{
	const struct recipe_for_world r = { "many types", .n_ops = 40,   .settings = 10, .dynamic = true,
					    .n_types = 8, .always = 0.5, .n_recipes = 9, .n_sizes = 3 };
	struct world w;
	struct outcome o;
	size_t i, n = 0;

	(void)state;
	world_init(&w, &r, 1);
	o = run(&w, strategy_find("basic"), 100);
	for (i = 0; i < w.log.n; i++)
		n += strncmp(w.log.v[i].stage, "op types", 8) == 0;
	check(n > 30 && n <= 50);
	check(o.n_trials > 60);
	plan_release(&o.best_plan);
	world_release(&w);
}

/* ---- effort: trials on average over 20 spaces, a few more than it takes now ---- */

static double mean_trials(const struct recipe_for_world *r, const char *strategy)
{
	double sum = 0;
	uint64_t seed;

	for (seed = 1; seed <= 20; seed++) {
		struct world w;
		struct outcome o;

		world_init(&w, r, seed);
		o = run(&w, strategy_find(strategy), 100);
		check(o.best_score.met);
		sum += (double)o.n_trials;
		plan_release(&o.best_plan);
		world_release(&w);
	}
	return sum / 20;
}

static void few_trials_are_enough(void **state)
{
	static const struct recipe_for_world pair = { "60 ops, a pair", .n_ops = 60,      .settings = 1,
						      .n_types = 5,     .op_loss = 0.006, .n_pairs = 1 };
	static const struct recipe_for_world pairs = { "60 ops, five pairs", .n_ops = 60,      .settings = 1,
						       .n_types = 5,         .op_loss = 0.006, .n_pairs = 5 };
	static const struct recipe_for_world poor = { "60 ops, five pairs, poor ranks",
						      .n_ops = 60,
						      .settings = 1,
						      .n_types = 5,
						      .op_loss = 0.006,
						      .n_pairs = 5,
						      .rank_noise = 8 };
	static const struct {
		const struct recipe_for_world *world;
		const char *strategy;
		double at_most;
	} rows[] = {
		{ &pair, "auto", 13 },   { &pair, "basic", 22 },   { &pair, "mse", 13 },
		{ &pair, "mse_v2", 18 }, { &pair, "hawq_v2", 15 }, { &pairs, "auto", 30 },
		{ &pairs, "basic", 40 }, { &pairs, "mse", 30 },    { &pairs, "mse_v2", 34 },
		{ &poor, "auto", 48 },   { &poor, "basic", 60 },   { &poor, "mse_v2", 54 },
	};
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_LEN(rows); i++) {
		double mean = mean_trials(rows[i].world, rows[i].strategy);

		print_message("%-32s %-8s %.1f trials\n", rows[i].world->name, rows[i].strategy, mean);
		if (mean > rows[i].at_most)
			fail_msg("%s on %s: %g trials, at most %g", rows[i].strategy, rows[i].world->name,
				 mean, rows[i].at_most);
	}
}

/* ---- mse_v2 against its contract, one op per trial ---- */

static enum fettle_status one_by_one_fall_back(struct search *s, struct plan *p, bool *met)
{
	struct op_order order = OP_ORDER_INIT;
	enum fettle_status st = stage_try(s, p, met);

	while (!st && !*met && plan_n_quantized(p, search_space(s)) > 1) {
		op_order_release(&order);
		st = fallback_order(s, p, RANK_IMPACT, &order);
		if (st || !order.n)
			break;
		p->choice[order.op[0]] = search_space(s)->v[order.op[0]].fallback;
		st = stage_try(s, p, met);
	}
	op_order_release(&order);
	return st;
}

static enum fettle_status one_by_one_revert(struct search *s, struct plan *p, const struct plan *base)
{
	struct op_order order = OP_ORDER_INIT;
	enum fettle_status st = search_rank_ops(s, p, RANK_IMPACT_BACK, &order);
	bool met = true;
	size_t i;

	for (i = order.n; !st && met && i-- > 0;) {
		p->choice[order.op[i]] = base->choice[order.op[i]];
		st = stage_try(s, p, &met);
	}
	op_order_release(&order);
	return st;
}

static enum fettle_status one_by_one_traverse(struct search *s)
{
	struct plan base = PLAN_INIT, p = PLAN_INIT;
	enum fettle_status st;
	bool met = false;

	search_want(s, WANT_VERDICT);
	search_hold(s);
	plan_init(&base, search_space(s));
	plan_copy(&p, &base);
	st = one_by_one_fall_back(s, &p, &met);
	if (!st && met)
		st = one_by_one_revert(s, &p, &base);
	plan_release(&base);
	plan_release(&p);
	return st ? st : search_release(s);
}

/* Steps that double, and sets that are reverted at once, leave no fewer ops in int8. */
static void mse_v2_is_never_worse_than_one_by_one(void **state)
{
	static const struct strategy one_by_one = { .name = "one by one", .traverse = one_by_one_traverse };
	static const struct recipe_for_world rows[] = {
		{ "additive", .n_ops = 40, .settings = 1, .n_types = 4, .op_loss = 0.05 },
		{ "a pair", .n_ops = 40, .settings = 1, .n_types = 4, .op_loss = 0.008, .n_pairs = 1 },
		{ "five pairs", .n_ops = 60, .settings = 1, .n_types = 5, .op_loss = 0.02, .n_pairs = 5 },
		{ "five pairs, poor ranks", .n_ops = 60, .settings = 1, .n_types = 5, .op_loss = 0.009,
		  .n_pairs = 5, .rank_noise = 4 },
	};
	size_t i, seed;

	(void)state;
	for (i = 0; i < ARRAY_LEN(rows); i++) {
		size_t trials[2] = { 0, 0 }, ops[2] = { 0, 0 };

		for (seed = 1; seed <= 20; seed++) {
			struct world a, b;
			struct outcome x, y;

			world_init(&a, &rows[i], seed);
			world_init(&b, &rows[i], seed);
			x = run(&a, &one_by_one, 0);
			y = run(&b, strategy_find("mse_v2"), 0);
			check(y.best_score.met >= x.best_score.met);
			check(plan_n_quantized(&y.best_plan, &b.space) >=
			      plan_n_quantized(&x.best_plan, &a.space));
			trials[0] += x.n_trials;
			trials[1] += y.n_trials;
			ops[0] += plan_n_quantized(&x.best_plan, &a.space);
			ops[1] += plan_n_quantized(&y.best_plan, &b.space);
			plan_release(&x.best_plan);
			plan_release(&y.best_plan);
			world_release(&a);
			world_release(&b);
		}
		print_message("%-24s one by one %.1f trials, %.1f ops in int8; mse_v2 %.1f trials, %.1f\n",
			      rows[i].name, (double)trials[0] / 20, (double)ops[0] / 20,
			      (double)trials[1] / 20, (double)ops[1] / 20);
	}
}

/* What stages leave to others that do not need it is spent all the same. */
static void all_trials_are_used(void **state)
{
	static const struct recipe_for_world r = { "no fallback", .n_ops = 8,   .settings = 3,
						   .fixed = 1,    .n_types = 2, .always = 0.3 };
	static const char *const names[] = { "auto", "basic", "mse" };
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_LEN(names); i++) {
		struct world w;
		struct outcome o;

		world_init(&w, &r, 1);
		o = run(&w, strategy_find(names[i]), 8);
		if (o.n_trials != 8 || o.why != SEARCH_MAX_TRIALS)
			fail_msg("%s: %s after %zu trials", here, search_stop_name(o.why), o.n_trials);
		plan_release(&o.best_plan);
		world_release(&w);
	}
}

/* ---- single ops ---- */

/* Two ops are to blame, each for its share. */
static enum fettle_status blame_traverse(struct search *s)
{
	struct op_order order = OP_ORDER_INIT;
	struct plan base = PLAN_INIT;
	enum fettle_status st;
	size_t i;

	plan_init(&base, search_space(s));
	order = (struct op_order){ xcalloc(6, sizeof(size_t)), xcalloc(6, sizeof(double)), 6 };
	for (i = 0; i < 6; i++)
		order.op[i] = i;
	st = stage_single_ops(s, &base, &order);
	assert_int_equal(order.op[0], 4); /* wins back most */
	assert_int_equal(order.op[1], 2);
	assert_int_equal(order.op[2], 0); /* the rest stay as they were */
	assert_int_equal(order.op[3], 1);
	assert_int_equal(order.op[4], 3);
	assert_int_equal(order.op[5], 5);
	op_order_release(&order);
	plan_release(&base);
	return st;
}

static void guilty_ops_come_first(void **state)
{
	static const struct strategy blame = { .name = "blame", .traverse = blame_traverse };
	const struct recipe_for_world r = { "two to blame", .n_ops = 6, .settings = 1, .op_loss = 0.012 };
	struct world w;
	struct outcome o;
	size_t i;

	(void)state;
	world_init(&w, &r, 1);
	for (i = 0; i < 6; i++)
		w.weight[i] = i == 4 ? 0.4 : i == 2 ? 0.2 : 0.005;
	o = run(&w, &blame, 0);
	check(o.n_trials == 3); /* the plan itself, and without each of the two */
	plan_release(&o.best_plan);
	world_release(&w);
}

/* ---- samplers ---- */

static double mean_best_loss(const char *strategy)
{
	const struct recipe_for_world r = { "settings matter", .n_ops = 12, .settings = 4,
					    .setting_loss = 0.8, .always = 0.05 };
	double sum = 0;
	uint64_t seed;

	for (seed = 1; seed <= 10; seed++) {
		struct world w;
		struct outcome o;

		world_init(&w, &r, seed);
		o = run(&w, strategy_find(strategy), 80);
		sum += o.best_score.loss;
		plan_release(&o.best_plan);
		world_release(&w);
	}
	return sum / 10;
}

static void samplers_learn_from_what_they_are_told(void **state)
{
	double random = mean_best_loss("random"), tpe = mean_best_loss("tpe"),
	       gp = mean_best_loss("bayesian");

	(void)state;
	print_message("best loss after 80 trials: random %.3f, tpe %.3f, bayesian %.3f\n", random, tpe, gp);
	assert_true(tpe < 0.8 * random);
	assert_true(gp < 0.8 * random);
}

static void tpe_takes_its_options(void **state)
{
	static const struct strategy_options rows[] = {
		{ .seed = 1, .n_startup_trials = 3 },
		{ .seed = 1, .n_ei_candidates = 2 },
		{ .seed = 1, .gamma = 0.5 },
		{ .seed = 1, .prior_weight = 50 },
	};
	const struct recipe_for_world r = { "settings matter", .n_ops = 10, .settings = 4,
					    .setting_loss = 0.8, .always = 0.05 };
	struct world plain, w;
	struct outcome o;
	size_t i, k, same;

	(void)state;
	world_init(&plain, &r, 1);
	o = run(&plain, strategy_find("tpe"), 30);
	plan_release(&o.best_plan);
	for (i = 0; i < ARRAY_LEN(rows); i++) {
		world_init(&w, &r, 1);
		w.options_given = &rows[i];
		o = run(&w, strategy_find("tpe"), 30);
		for (same = 0, k = 0; k < 30; k++)
			same += plan_equal(&plain.log.v[k].plan, &w.log.v[k].plan, &w.space);
		if (same == 30)
			fail_msg("option %zu changes nothing", i);
		plan_release(&o.best_plan);
		world_release(&w);
	}
	world_release(&plain);
}

static void the_seed_matters_where_chance_does(void **state)
{
	static const struct {
		const char *strategy;
		bool matters;
	} rows[] = { { "random", true }, { "tpe", true }, { "bayesian", true }, { "exhaustive", false } };
	const struct recipe_for_world r = { "nothing passes", .n_ops = 10, .settings = 4, .always = 0.5 };
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_LEN(rows); i++) {
		struct world a, b;
		struct outcome one, other;

		world_init(&a, &r, 1);
		world_init(&b, &r, 2);
		one = run(&a, strategy_find(rows[i].strategy), 8);
		other = run(&b, strategy_find(rows[i].strategy), 8);
		check(plan_equal(&a.log.v[7].plan, &b.log.v[7].plan, &a.space) == !rows[i].matters);
		plan_release(&one.best_plan);
		plan_release(&other.best_plan);
		world_release(&a);
		world_release(&b);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_stage_finds_what_it_is_for),
		cmocka_unit_test(costly_recipes_and_16_bits_come_late),
		cmocka_unit_test(costly_recipes_are_for_those_who_need_them),
		cmocka_unit_test(few_ops_go_to_16_bits),
		cmocka_unit_test(frugal_pushes_are_short),
		cmocka_unit_test(a_large_op_replaces_a_small_one),
		cmocka_unit_test(a_bounded_search_ends_soon),
		cmocka_unit_test(one_sample_is_chance),
		cmocka_unit_test(near_misses_take_few_trials),
		cmocka_unit_test(known_losses_say_how_much_falls_back),
		cmocka_unit_test(little_is_spent_on_little),
		cmocka_unit_test(auto_keeps_trials_for_basic),
		cmocka_unit_test(fallback_starts_from_the_most_accurate_plan),
		cmocka_unit_test(dynamic_only_when_static_will_not_do),
		cmocka_unit_test(ops_that_int8_makes_slower_fall_back_too),
		cmocka_unit_test(wrong_profiles_are_taken_again),
		cmocka_unit_test(slow_ops_are_in_fp32_from_the_start),
		cmocka_unit_test(what_is_slower_gives_way_to_a_single_op),
		cmocka_unit_test(a_single_op_that_fails_gives_way_to_another),
		cmocka_unit_test(dynamic_is_taken_when_it_loses_less),
		cmocka_unit_test(dynamic_ops_remain_where_static_ones_fall_back),
		cmocka_unit_test(settings_are_found_part_by_part),
		cmocka_unit_test(conservative_builds_on_the_types_it_kept),
		cmocka_unit_test(op_types_leave_half_of_the_trials),
		cmocka_unit_test(few_trials_are_enough),
		cmocka_unit_test(mse_v2_is_never_worse_than_one_by_one),
		cmocka_unit_test(all_trials_are_used),
		cmocka_unit_test(guilty_ops_come_first),
		cmocka_unit_test(samplers_learn_from_what_they_are_told),
		cmocka_unit_test(tpe_takes_its_options),
		cmocka_unit_test(the_seed_matters_where_chance_does),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
