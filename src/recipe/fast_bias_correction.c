/* Its pass is in quantize/correct.c. */
#include "recipe/recipe.h"

const struct recipe recipe_fast_bias_correction = {
	.name = "fast_bias_correction",
	.summary = "biases take up the mean error of the quantized weights",
	RECIPE_SWITCH(fast_bias_correction),
	.tuned = true,
	.changes_numbers = true,
};
