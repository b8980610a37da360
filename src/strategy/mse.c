#include "strategy/stages.h"

static enum fettle_status mse_traverse(struct search *s)
{
	struct plan base = PLAN_INIT;
	struct op_order order = OP_ORDER_INIT;
	enum fettle_status st;

	st = stage_default(s);
	if (st)
		goto out;
	st = stage_all_recipes(s);
	if (st)
		goto out;
	st = stage_op_types(s);
	if (st)
		goto out;
	st = stage_recipes(s);
	if (st || fallback_base(s, &base))
		goto out;
	st = fallback_order(s, &base, RANK_OUTPUT_MSE, &order);
	if (st)
		goto out;
	st = stage_accumulated(s, &base, &order);
out:
	op_order_release(&order);
	plan_release(&base);
	return st;
}

const struct strategy strategy_mse = {
	.name = "mse",
	.summary = "falls back the ops whose outputs quantization disturbs most",
	.traverse = mse_traverse,
};
