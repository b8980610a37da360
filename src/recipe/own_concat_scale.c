/* Its pass is quantize/concat.c. */
#include "recipe/recipe.h"

const struct recipe recipe_own_concat_scale = {
	.name = "scale_propagation_concat",
	.summary = "Concat's inputs share its output's scale",
	RECIPE_USUAL(own_concat_scale),
	.tuned = true,
};
