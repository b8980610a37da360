/* Tries the default plan, and no other. */
#include "strategy/stages.h"

static enum fettle_status traverse(struct search *s)
{
	return stage_default(s);
}

const struct strategy strategy_dummy = {
	.name = "dummy",
	.summary = "the default plan, and no other",
	.traverse = traverse,
};
