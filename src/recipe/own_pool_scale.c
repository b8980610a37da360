#include "recipe/recipe.h"

static bool own_range(const struct recipes *r, const struct node *n)
{
	(void)r;
	return node_is(n, "MaxPool");
}

const struct recipe recipe_own_pool_scale = {
	.name = "scale_propagation_max_pooling",
	.summary = "MaxPool's output shares its input's scale",
	RECIPE_USUAL(own_pool_scale),
	.own_range = own_range,
};
