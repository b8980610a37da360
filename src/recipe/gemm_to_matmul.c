/* Its pass is in quantize/emit_weights.c. */
#include "recipe/recipe.h"

const struct recipe recipe_gemm_to_matmul = {
	.name = "gemm_to_matmul",
	.summary = "Gemm becomes MatMul and Add",
	RECIPE_SWITCH(gemm_to_matmul),
};
