/* Ops from some depth of the graph on stay in fp32. */
#include "recipe/recipe.h"

static void keep(const struct recipes *r, const struct op_list *ops, bool *in_fp32)
{
	size_t i;

	for (i = (size_t)(r->dummy_depth * (double)ops->n); i < ops->n; i++)
		if (ops->v[i].rule && ops->v[i].rule->kind != OP_MOVE)
			in_fp32[i] = true;
}

static const double tried[] = { 0.25, 0.75 };
static const struct recipe_number depth = {
	.map = "dummy_args",
	.key = "depth",
	.offset = offsetof(struct recipes, dummy_depth),
	.max = 1,
	.by_default = 0.5,
	.tried = tried,
	.n_tried = 2,
};

const struct recipe recipe_dummy = {
	.name = "dummy",
	.alias = "include_dummy",
	.summary = "the second half of the model stays in fp32",
	.values = "on (0.5), off, 0 to 1",
	RECIPE_SWITCH(dummy),
	.number = &depth,
	.off = "dummy is off",
	.tuned = true,
	.keeps_fp32 = true,
	.keep = keep,
	.why_kept = "recipe dummy",
};
