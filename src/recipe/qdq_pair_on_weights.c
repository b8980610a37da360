/* Its pass is in quantize/emit_weights.c. */
#include "recipe/recipe.h"

const struct recipe recipe_qdq_pair_on_weights = {
	.name = "add_qdq_pair_to_weight",
	.summary = "weights stay float, with a Q/DQ pair",
	RECIPE_SWITCH(qdq_pair_on_weights),
	.pairs_only = true,
};
