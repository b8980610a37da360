#include "strategy/stages.h"

static enum fettle_status auto_traverse(struct search *s)
{
	enum fettle_status st;
	bool only, blocks = space_has_blocks(search_space(s), &only);

	if (blocks && only)
		return basic_traverse(s);
	search_want(s, WANT_VERDICT);
	st = fettle_search(s, stage_leave(s, LEAVE_AFTER_FETTLE));
	if (!st && blocks)
		st = stage_weight_only(s);
	if (st)
		return st;
	return basic_traverse(s);
}

const struct strategy strategy_auto = {
	.name = "auto",
	.summary = "the default plan, what is faster or more accurate by fettle, then basic",
	.replays = true,
	.traverse = auto_traverse,
};
