#include "recipe/recipe.h"

static void keep_last(const struct recipes *r, const struct op_list *ops, bool *in_fp32)
{
	size_t first, last;

	(void)r;
	if (compute_ends(ops, &first, &last))
		in_fp32[last] = true;
}

const struct recipe recipe_keep_last = {
	.name = "last_conv_or_matmul_quantization",
	.summary = "the last Conv or MatMul is quantized",
	RECIPE_USUAL(keep_last),
	.tuned = true,
	.keeps_fp32 = true,
	.keep = keep_last,
	.why_kept = "recipe last_conv_or_matmul_quantization=off",
};
