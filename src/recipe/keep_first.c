#include "recipe/recipe.h"

bool compute_ends(const struct op_list *ops, size_t *first, size_t *last)
{
	size_t i, n = 0;

	*first = *last = 0;
	for (i = 0; i < ops->n; i++) { /* the order of the nodes is topological */
		if (!ops->v[i].rule || ops->v[i].rule->kind != OP_COMPUTE)
			continue;
		if (!n++)
			*first = i;
		*last = i;
	}
	return n;
}

static void keep_first(const struct recipes *r, const struct op_list *ops, bool *in_fp32)
{
	size_t first, last;

	(void)r;
	if (compute_ends(ops, &first, &last))
		in_fp32[first] = true;
}

const struct recipe recipe_keep_first = {
	.name = "first_conv_or_matmul_quantization",
	.summary = "the first Conv or MatMul is quantized",
	RECIPE_USUAL(keep_first),
	.tuned = true,
	.keeps_fp32 = true,
	.keep = keep_first,
	.why_kept = "recipe first_conv_or_matmul_quantization=off",
};
