#include "strategy/stages.h"

static enum fettle_status fall_back(struct search *s)
{
	struct plan base = PLAN_INIT;
	struct op_order order = OP_ORDER_INIT;
	enum fettle_status st;
	bool met = fallback_base(s, &base);

	st = fallback_order(s, &base, RANK_OUTPUT_MSE, &order);
	if (st)
		goto out;
	if (!met)
		st = stage_blocks(s, &base, &order);
	if (st)
		goto out;
	st = stage_single_ops(s, &base, &order);
	if (st || met)
		goto out;
	st = stage_accumulated(s, &base, &order);
out:
	op_order_release(&order);
	plan_release(&base);
	return st;
}

static enum fettle_status all_stages(struct search *s)
{
	enum fettle_status st = stage_settings(s);

	return st ? st : fall_back(s);
}

enum fettle_status basic_traverse(struct search *s)
{
	bool only;

	search_want(s, WANT_VERDICT);
	if (space_has_blocks(search_space(s), &only) && only) {
		search_untried(s, "formats that are predicted to lose more for their size");
		return stage_weight_only(s);
	}
	search_untried(s, UNTRIED_BY_TYPE);
	return stage_again(s, all_stages);
}

const struct strategy strategy_basic = {
	.name = "basic",
	.summary = "settings by op type, then recipes, then fallback by block, by op and accumulated",
	.replays = true,
	.traverse = basic_traverse,
};
