#include "strategy/stages.h"

/* Something meets the criterion, if only by quantizing next to nothing, and no plan would be faster by much. */
static bool is_enough(struct search *s)
{
	struct score score = { .met = false };
	struct plan best = PLAN_INIT, first = PLAN_INIT;
	bool enough;

	plan_init(&first, search_space(s));
	enough = search_best(s, &best, &score) && score.met && !search_worth(s, &first, 1);
	plan_release(&first);
	plan_release(&best);
	return enough;
}

static enum fettle_status auto_traverse(struct search *s)
{
	enum fettle_status st;
	bool only, blocks = space_has_blocks(search_space(s), &only);

	if (blocks && only)
		return basic_traverse(s);
	search_want(s, WANT_VERDICT);
	if (blocks) /* int8 that meets the target is no reason not to look at fewer bits */
		search_hold(s);
	st = fettle_search(s, stage_leave(s, LEAVE_AFTER_FETTLE));
	if (!st && blocks)
		st = stage_weight_only(s);
	if (!st && blocks)
		st = search_release(s);
	if (st || is_enough(s))
		return st;
	st = search_bound(s);
	return st ? st : basic_traverse(s);
}

const struct strategy strategy_auto = {
	.name = "auto",
	.summary = "the default plan, what is faster or more accurate by fettle, then basic",
	.replays = true,
	.bounded = true,
	.traverse = auto_traverse,
};
