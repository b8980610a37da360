/*
 * Falls back the op that disturbs the model's output most, then the next, until the criterion holds; then reverts. Which op is next is found one at a time, but only 1, 2, 4, 8, … fallen-back ops are tried, and when so many suffice, a
 * bisection finds the fewest. Where accuracy grows along that sequence, this gives the plan that trying every step would. Reverting
 * follows the order of the scores, several ops at a time as long as that works, and does not end with the first that fails: what
 * it requantizes includes all that one op at a time would. So the result is never worse for the trials that are saved.
 */
#include "base/mem.h"
#include "strategy/stages.h"

enum { SCORED_SINGLY = 64 };

/*
 * Appends the op whose fallback would help most under this plan, and falls it back; one op stays quantized. Beyond so many, scores
 * change little from op to op, and are taken for a few at a time.
 */
static enum fettle_status fall_back_worst(struct search *s, struct plan *p, struct op_order *sequence)
{
	const struct space *space = search_space(s);
	struct op_order order = OP_ORDER_INIT;
	enum fettle_status st;
	size_t i, n = 1 + sequence->n / SCORED_SINGLY;

	st = fallback_order(s, p, RANK_IMPACT, &order);
	for (i = 0; !st && i < order.n && i < n && plan_n_quantized(p, space) > 1; i++) {
		sequence->op[sequence->n++] = order.op[i];
		p->choice[order.op[i]] = space->v[order.op[i]].fallback;
	}
	op_order_release(&order);
	return st;
}

/* The sequence grows to n ops, or to as many as can fall back. */
static enum fettle_status extend(struct search *s, struct plan *p, struct op_order *sequence, size_t n)
{
	enum fettle_status st = FETTLE_OK;
	size_t before;

	do {
		before = sequence->n;
		if (before < n)
			st = fall_back_worst(s, p, sequence);
	} while (!st && sequence->n > before);
	return st;
}

/* p becomes the plan with the fewest that suffice; if none do, with all of them. */
static enum fettle_status fall_back_until_met(struct search *s, const struct plan *base, struct plan *p,
					      bool *met)
{
	const struct space *space = search_space(s);
	struct op_order sequence = { xcalloc(space->n_ops, sizeof(size_t)), NULL, 0 };
	struct plan middle = PLAN_INIT;
	enum fettle_status st = FETTLE_OK;
	size_t low = 0, n = 1;
	bool more = true, will_do;

	plan_copy(p, base);
	for (; !st && more && !*met; n = 2 * sequence.n) {
		low = sequence.n;
		st = extend(s, p, &sequence, n);
		more = sequence.n > low;
		if (!st && more)
			st = stage_try(s, p, met);
	}
	for (n = sequence.n; !st && *met && n - low > 1;) {
		size_t k = low + (n - low) / 2;

		fall_back_first(&middle, base, space, &sequence, k);
		st = stage_try(s, &middle, &will_do);
		*(will_do ? &n : &low) = k;
	}
	fall_back_first(p, base, space, &sequence, n);
	plan_release(&middle);
	op_order_release(&sequence);
	return st;
}

static enum fettle_status fall_back_and_revert(struct search *s, const struct plan *base)
{
	struct plan p = PLAN_INIT;
	enum fettle_status st;
	bool met = false;

	search_stage(s, "fallback");
	search_hold(s);
	st = fall_back_until_met(s, base, &p, &met);
	if (!st && met)
		st = revert(s, &p, base);
	if (!st && !met) {
		fall_back_all(&p, search_space(s));
		st = push(s, &p, base, 0);
	}
	plan_release(&p);
	return st ? st : search_release(s);
}

/* Recipes come after fallback: who asks for this strategy wants ops scored. */
static enum fettle_status mse_v2_traverse(struct search *s)
{
	struct plan base = PLAN_INIT, again = PLAN_INIT;
	enum fettle_status st;

	search_want(s, WANT_VERDICT);
	search_untried(s, UNTRIED_ALIKE);
	st = stage_settings_alike(s);
	if (st || fallback_base(s, &base))
		goto out;
	st = fall_back_and_revert(s, &base);
	if (!st)
		st = stage_all_recipes(s);
	if (st || fallback_base(s, &again) || plan_equal(&again, &base, search_space(s)))
		goto out;
	st = fall_back_and_revert(s, &again);
out:
	plan_release(&base);
	plan_release(&again);
	return st;
}

const struct strategy strategy_mse_v2 = {
	.name = "mse_v2",
	.summary = "falls back the op that disturbs the output most, then the next, then reverts what it can",
	.replays = true,
	.traverse = mse_v2_traverse,
};
