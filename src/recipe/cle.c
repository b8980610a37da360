/* Its pass is quantize/equalise.c. */
#include "recipe/recipe.h"

const struct recipe recipe_cle = {
	.name = "cle",
	.alias = "include_cle",
	.summary = "channels of activations are equalised across layers",
	RECIPE_SWITCH(cle),
	.tuned = true,
	.changes_numbers = true,
	.rewrites = true,
	.needs_data = true,
};
