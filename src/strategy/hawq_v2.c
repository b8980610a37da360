/* Order of fallback after Dong et al., HAWQ-V2, arXiv:1911.03852: trace of the Hessian times squared weight error. */
#include "strategy/stages.h"

static enum fettle_status hawq_v2_traverse(struct search *s)
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
	st = stage_op_types_alike(s);
	if (st || fallback_base(s, &base))
		goto out;
	st = fallback_order(s, &base, RANK_HESSIAN, &order);
	if (st)
		goto out;
	st = stage_accumulated(s, &base, &order);
out:
	op_order_release(&order);
	plan_release(&base);
	return st;
}

const struct strategy strategy_hawq_v2 = {
	.name = "hawq_v2",
	.summary = "falls back the ops to whose weights the loss is most sensitive (Hessian trace)",
	.traverse = hawq_v2_traverse,
};
