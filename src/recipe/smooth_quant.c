/* Its pass is quantize/smooth.c. */
#include "recipe/recipe.h"

static const double tried[] = { SMOOTH_AUTO, 0.5 };
static const struct recipe_unused unused[] = {
	{ "folding", "scales are always folded where the graph allows it" },
	{ "auto_alpha_args", "the search chooses its own steps" },
	{ NULL, NULL },
};
static const struct recipe_number alpha = {
	.map = "smooth_quant_args",
	.key = "alpha",
	.summary = "how much of the width moves into weights: 0 is nothing, 1 all, auto as suits each layer",
	.offset = offsetof(struct recipes, smooth_alpha),
	.max = 1,
	.by_default = 0.5,
	.word = "auto",
	.word_value = SMOOTH_AUTO,
	.tried = tried,
	.n_tried = ARRAY_LEN(tried),
	.unused = unused,
};

const struct recipe recipe_smooth_quant = {
	.name = "smooth_quant",
	.alias = "include_sq",
	.summary = "outliers in what MatMul and Gemm read move into their weights",
	.values = "on (0.5), off, 0 to 1, auto",
	RECIPE_SWITCH(smooth_quant),
	.number = &alpha,
	.off = "smooth_quant is off",
	.tuned = true,
	.changes_numbers = true,
	.rewrites = true,
	.matrix_only = true,
	.needs_data = true,
};
