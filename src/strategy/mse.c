#include "strategy/stages.h"

static enum fettle_status all_stages(struct search *s)
{
	enum fettle_status st = stage_settings(s);

	return st ? st : stage_fall_back_by(s, RANK_OUTPUT_MSE);
}

static enum fettle_status mse_traverse(struct search *s)
{
	search_want(s, WANT_VERDICT);
	search_untried(s, UNTRIED_BY_TYPE);
	return stage_again(s, all_stages);
}

const struct strategy strategy_mse = {
	.name = "mse",
	.summary = "falls back the ops whose outputs quantization disturbs most",
	.replays = true,
	.traverse = mse_traverse,
};
