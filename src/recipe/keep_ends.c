#include "recipe/recipe.h"

/* Moves stay: they only pass on what they are given. */
static void keep_ends(const struct recipes *r, const struct op_list *ops, bool *in_fp32)
{
	size_t first, last, i;

	(void)r;
	if (!compute_ends(ops, &first, &last))
		return;
	for (i = 0; i < ops->n; i++)
		if ((i < first || i > last) && ops->v[i].rule && ops->v[i].rule->kind != OP_MOVE)
			in_fp32[i] = true;
}

const struct recipe recipe_keep_ends = {
	.name = "pre_post_process_quantization",
	.summary = "what comes before the first and after the last is quantized",
	RECIPE_USUAL(keep_ends),
	.tuned = true,
	.keeps_fp32 = true,
	.keep = keep_ends,
	.why_kept = "recipe pre_post_process_quantization=off",
};
