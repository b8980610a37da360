#include "strategy/stages.h"

static enum fettle_status mse_traverse(struct search *s)
{
	enum fettle_status st;

	search_want(s, WANT_VERDICT);
	st = stage_settings(s);
	if (st)
		return st;
	return stage_fall_back_by(s, RANK_OUTPUT_MSE);
}

const struct strategy strategy_mse = {
	.name = "mse",
	.summary = "falls back the ops whose outputs quantization disturbs most",
	.traverse = mse_traverse,
};
