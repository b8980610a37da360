/* Mixed precision: the ops that disturb the output most go to 16 bits, and then to fp32, as few as it takes. */
#include "strategy/stages.h"

/* Puts the first k ops of the order to a mode, and tries that. */
static enum fettle_status try_first(struct search *s, const struct plan *from, const struct op_order *order,
				    size_t k, enum option_mode mode, struct plan *plan, struct score *score)
{
	const struct space *space = search_space(s);
	size_t i;

	plan_copy(plan, from);
	for (i = 0; i < k; i++) {
		unsigned option = param_option_in(&space->v[order->op[i]], mode);

		if (option != NO_OPTION)
			plan->choice[order->op[i]] = (uint16_t)option;
	}
	return search_try(s, plan, score);
}

/*
 * The fewest ops, the most sensitive first, that reach the target in this mode; all of them if none does. The plan is left
 * there.
 */
static enum fettle_status bisect(struct search *s, struct plan *plan, const struct op_order *order,
				 enum option_mode mode, struct score *score)
{
	struct plan from = PLAN_INIT, now = PLAN_INIT;
	/* were all of them in fp32, it would be no quantized model */
	size_t low = 0, high = mode == OPTION_FP32 ? order->n - 1 : order->n;
	struct score here;
	enum fettle_status st;

	plan_copy(&from, plan);
	st = try_first(s, &from, order, high, mode, plan, score);
	while (!st && score->met && high - low > 1) {
		size_t middle = low + (high - low) / 2;

		st = try_first(s, &from, order, middle, mode, &now, &here);
		if (!here.met) {
			low = middle;
			continue;
		}
		high = middle;
		*score = here;
		plan_copy(plan, &now);
	}
	plan_release(&from);
	plan_release(&now);
	return st;
}

/* The plan with as few ops in 16 bits, or then in fp32, as it takes; the plan and the score become those. */
static enum fettle_status mix(struct search *s, struct plan *plan, bool then_fp32, struct score *score)
{
	struct op_order order = OP_ORDER_INIT;
	struct plan base = PLAN_INIT;
	enum fettle_status st, end;

	plan_copy(&base, plan);
	search_hold(s); /* until the fewest are found */
	st = search_try(s, plan, score);
	if (!st && !score->met && !score->failed) {
		st = search_rank_ops(s, plan, RANK_IMPACT, &order);
		if (!st && order.n)
			st = bisect(s, plan, &order, OPTION_WIDE, score);
		if (!st && order.n && then_fp32 && !score->met)
			st = bisect(s, plan, &order, OPTION_FP32, score);
		if (!st && score->met)
			st = push(s, plan, &base, 0);
		if (!st)
			st = search_try(s, plan, score); /* known */
	}
	end = search_release(s);
	op_order_release(&order);
	plan_release(&base);
	return st ? st : end;
}

enum fettle_status mixed_precision(struct search *s, const struct plan *start, struct score *score)
{
	struct plan plan = PLAN_INIT;
	enum fettle_status st;

	plan_copy(&plan, start);
	st = mix(s, &plan, true, score);
	plan_release(&plan);
	return st;
}

enum fettle_status stage_mixed(struct search *s)
{
	const struct space *space = search_space(s);
	struct plan base = PLAN_INIT;
	enum fettle_status st = FETTLE_OK;
	struct score score;
	size_t i;

	for (i = 0; i < space->n_ops && param_option_in(&space->v[i], OPTION_WIDE) == NO_OPTION;)
		i++;
	if (i < space->n_ops && !fallback_base(s, &base)) {
		search_stage(s, "16 bits");
		st = mix(s, &base, false, &score);
	}
	plan_release(&base);
	return st;
}
