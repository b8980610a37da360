/* Any number of workers gives the same answer: every strategy on random worlds, with 1 to 64 of them. */
#include "unit/unit.h"

#include "conformance/run.h"

static const size_t widths[] = { 1, 2, 3, 4, 7, 16, 64 };

enum { WORLDS = 5, TRIALS = 30, WORKERS_MAX = 64 };

static struct recipe_for_world random_recipe(struct rng *rng)
{
	struct recipe_for_world r = { .name = "a random world", .settings = 1 + (unsigned)rng_below(rng, 6) };
	double much = exp(-5 + 3 * rng_unit(rng)); /* 0.007 .. 0.13: some pass as they are */

	r.n_ops = 2 + rng_below(rng, 40);
	r.dynamic = rng_below(rng, 3) == 0;
	r.n_types = 1 + rng_below(rng, 5);
	r.n_recipes = rng_below(rng, 6);
	r.n_blocks = rng_below(rng, 2) ? (int)(1 + r.n_ops / 8) : 0;
	r.n_sizes = (unsigned)rng_below(rng, 3);
	r.op_loss = much;
	r.n_pairs = r.n_ops > 6 ? rng_below(rng, 3) : 0;
	r.rank_noise = rng_below(rng, 2) ? 2 : 0;
	r.wobble = rng_below(rng, 3) == 0 ? much / 4 : 0;
	r.fail_rate = rng_below(rng, 4) == 0 ? 0.2 : 0;
	r.setting_loss = rng_below(rng, 2) ? much / 2 : 0;
	r.slow = (unsigned)rng_below(rng, 4);
	r.couples = rng_below(rng, 4) == 0;
	r.wide = rng_below(rng, 4) == 0;
	r.twins = rng_below(rng, 4) == 0 && r.n_recipes;
	r.blocks = rng_below(rng, 6) == 0;
	r.lower_is_better = rng_below(rng, 2);
	r.absolute = rng_below(rng, 2);
	r.by_time = r.blocks && rng_below(rng, 2);
	return r;
}

static bool same_number(double a, double b)
{
	return a == b || (isnan(a) && isnan(b));
}

static void check_same_score(const struct score *a, const struct score *b)
{
	check(a->failed == b->failed && a->met == b->met && a->slight == b->slight && a->early == b->early);
	check(same_number(a->accuracy, b->accuracy) && same_number(a->loss, b->loss));
	check(same_number(a->objective, b->objective) && same_number(a->low, b->low) &&
	      same_number(a->high, b->high));
}

static void check_same_answer(const struct world *a, const struct outcome *x, const struct world *b,
			      const struct outcome *y)
{
	size_t i;

	check(x->st == y->st && x->why == y->why && x->n_trials == y->n_trials && x->best == y->best);
	check(x->says_untried == y->says_untried && a->log.n == b->log.n);
	check(!x->best || plan_equal(&x->best_plan, &y->best_plan, &a->space));
	for (i = 0; i < a->log.n; i++) {
		check(plan_equal(&a->log.v[i].plan, &b->log.v[i].plan, &a->space));
		check(a->log.v[i].number == b->log.v[i].number);
		check(strcmp(a->log.v[i].stage, b->log.v[i].stage) == 0);
		check_same_score(&a->log.v[i].score, &b->log.v[i].score);
	}
}

/* What runs ahead is no trial that was, and none that has run ahead to its end before. */
static void ahead_is_new(struct world *w, const struct trial *t, enum fettle_status st)
{
	struct logged l = { .number = 0 };
	size_t i;

	for (i = 0; i < w->log.n; i++)
		check(!plan_equal(&w->log.v[i].plan, &t->plan, &w->space));
	for (i = 0; i < w->ended.n; i++)
		check(!plan_equal(&w->ended.v[i].plan, &t->plan, &w->space));
	if (st == FETTLE_STOP)
		return;
	plan_copy(&l.plan, &t->plan);
	VEC_PUSH(&w->ended, l);
}

static void answers_are_the_same(const struct recipe_for_world *r, const struct strategy *strategy,
				 uint64_t seed, size_t *n_ahead)
{
	struct world w[ARRAY_LEN(widths)];
	struct outcome o[ARRAY_LEN(widths)];
	size_t i;

	for (i = 0; i < ARRAY_LEN(widths); i++) {
		world_init(&w[i], r, seed);
		w[i].width = widths[i];
		w[i].frugal = seed % 2;
		w[i].samples = seed % 7 ? 0 : 100;
		w[i].bounded = seed % 3 == 0 && w[i].frugal && strategy->bounded;
		w[i].timeout =
			seed % 4 < 2 ? 0 : 1e9; /* which goes on after the first that meets the target */
		w[i].on_ahead = ahead_is_new;
		o[i] = run(&w[i], strategy, seed % 5 ? TRIALS : 2 * TRIALS);
		snprintf(here + strlen(here), sizeof(here) - strlen(here), ", seed %zu, %zu workers",
			 (size_t)seed, widths[i]);
		check_same_answer(&w[0], &o[0], &w[i], &o[i]);
		*n_ahead += w[i].n_ahead;
	}
	check(!w[0].n_ahead);
	for (i = 0; i < ARRAY_LEN(widths); i++) {
		plan_release(&o[i].best_plan);
		world_release(&w[i]);
	}
}

static void any_number_of_workers_gives_the_same(void **state)
{
	const struct strategy *strategy;
	struct rng rng;
	size_t i, k;

	(void)state;
	for (k = 0; (strategy = strategy_at(k)); k++) {
		size_t n_ahead = 0;

		rng_seed(&rng, 5);
		for (i = 0; i < WORLDS; i++) {
			struct recipe_for_world r = random_recipe(&rng);

			answers_are_the_same(&r, strategy, i, &n_ahead);
		}
		if (strategy->replays != (n_ahead > 0))
			fail_msg("%s: %zu plans ran ahead", strategy->name, n_ahead);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(any_number_of_workers_gives_the_same),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
