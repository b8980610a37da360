/* Order of fallback after Dong et al., HAWQ-V2, arXiv:1911.03852: trace of the Hessian times squared weight error. */
#include "strategy/stages.h"

static enum fettle_status hawq_v2_traverse(struct search *s)
{
	enum fettle_status st;

	search_want(s, WANT_VERDICT);
	search_untried(s, UNTRIED_ALIKE);
	st = stage_default(s);
	if (!st)
		st = stage_all_recipes(s);
	if (!st)
		st = stage_settings_alike(s);
	if (st)
		return st;
	return stage_fall_back_by(s, RANK_HESSIAN);
}

const struct strategy strategy_hawq_v2 = {
	.name = "hawq_v2",
	.summary = "falls back the ops to whose weights the loss is most sensitive (Hessian trace)",
	.replays = true,
	.traverse = hawq_v2_traverse,
};
