/* Its pass is in quantize/weights.c and correct.c. */
#include "recipe/recipe.h"

const struct recipe recipe_weight_correction = {
	.name = "weight_correction",
	.summary = "quantized weights keep each channel's mean and variance",
	RECIPE_SWITCH(weight_correction),
	.tuned = true,
	.changes_numbers = true,
};
