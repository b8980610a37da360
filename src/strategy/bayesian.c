/* Expected improvement (Jones, Schonlau and Welch 1998) under a Gaussian process over op-wise settings. */
#include "strategy/stages.h"

static enum fettle_status bayesian_traverse(struct search *s)
{
	return sampled(s, "gp", true);
}

const struct strategy strategy_bayesian = {
	.name = "bayesian",
	.summary = "op-wise settings by expected improvement under a Gaussian process; no fallback",
	.traverse = bayesian_traverse,
};
