#include "strategy/stages.h"

/* The `n` ops whose fallback would help most, as measured under this plan; one op stays quantized. */
static enum fettle_status fall_back_worst(struct search *s, struct plan *p, size_t n, size_t *fell)
{
	const struct space *space = search_space(s);
	struct op_order order = OP_ORDER_INIT;
	size_t i, quantized = plan_n_quantized(p, space);
	enum fettle_status st;

	*fell = 0;
	st = fallback_order(s, p, RANK_IMPACT, &order);
	for (i = 0; !st && i < order.n && *fell < n && quantized - *fell > 1; i++, ++*fell)
		p->choice[order.op[i]] = space->v[order.op[i]].fallback;
	op_order_release(&order);
	return st;
}

/* One op, one more, then twice as many each time: what falls back in excess is requantized afterwards. */
static enum fettle_status fall_back_until_met(struct search *s, struct plan *p, bool *met)
{
	enum fettle_status st = FETTLE_OK;
	size_t fell = 1, total = 0;

	while (!st && !*met && fell) {
		st = fall_back_worst(s, p, total ? total : 1, &fell);
		total += fell;
		if (!st && fell)
			st = stage_try(s, p, met);
	}
	return st;
}

static enum fettle_status mse_v2_traverse(struct search *s)
{
	struct plan base = PLAN_INIT, p = PLAN_INIT;
	enum fettle_status st;
	bool met = false;

	search_want(s, WANT_VERDICT);
	st = stage_settings_alike(s);
	if (st || fallback_base(s, &base))
		goto out;
	search_stage(s, "fallback");
	search_hold(s);
	plan_copy(&p, &base);
	st = fall_back_until_met(s, &p, &met);
	if (!met)
		fall_back_all(&p, search_space(s));
	if (!st)
		st = push(s, &p, &base, 0);
	if (!st)
		st = search_release(s);
out:
	plan_release(&p);
	plan_release(&base);
	return st;
}

const struct strategy strategy_mse_v2 = {
	.name = "mse_v2",
	.summary = "falls back the worst op as measured again after each step, then reverts what it can",
	.traverse = mse_v2_traverse,
};
