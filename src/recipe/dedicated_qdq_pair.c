/* Its pass is in quantize/emit.c. */
#include "recipe/recipe.h"

const struct recipe recipe_dedicated_qdq_pair = {
	.name = "dedicated_qdq_pair",
	.summary = "every reader of a value gets a separate Q/DQ pair",
	RECIPE_SWITCH(dedicated_qdq_pair),
	.pairs_only = true,
};
