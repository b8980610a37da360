/* The tree-structured Parzen estimator of Bergstra et al. 2011 over op-wise settings. */
#include "strategy/stages.h"

static enum fettle_status tpe_traverse(struct search *s)
{
	return sampled(s, "tpe", true);
}

const struct strategy strategy_tpe = {
	.name = "tpe",
	.summary = "op-wise settings by a tree-structured Parzen estimator; no fallback",
	.traverse = tpe_traverse,
};
