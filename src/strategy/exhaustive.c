#include "strategy/stages.h"

static enum fettle_status exhaustive_traverse(struct search *s)
{
	return sampled(s, "grid", false);
}

const struct strategy strategy_exhaustive = {
	.name = "exhaustive",
	.summary = "every combination of op-wise settings in a fixed order; no fallback",
	.replays = true,
	.traverse = exhaustive_traverse,
};
