/* Its pass is quantize/by_parts.c. */
#include "recipe/recipe.h"

const struct recipe recipe_true_sequential = {
	.name = "true_sequential",
	.summary = "gptq, awq and gram go by what ops read once those before them are quantized",
	RECIPE_SWITCH(true_sequential),
	.needs_data = true,
	.changes_numbers = true,
	.newer = true,
};
