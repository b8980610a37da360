#include "strategy/stages.h"

static enum fettle_status random_traverse(struct search *s)
{
	return sampled(s, "random", false);
}

const struct strategy strategy_random = {
	.name = "random",
	.summary = "every combination of op-wise settings in random order; no fallback",
	.replays = true,
	.traverse = random_traverse,
};
