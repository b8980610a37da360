/* Recipes that only say which ops are quantized, or how far. */
#include "quantize/internal.h"

#include <stdlib.h>
#include <string.h>

/* Weights as old kernels take them: symmetric ones have one zero point for all channels. */
static void fit_old_conv(struct op_choice *c)
{
	if (c->mode == OP_DYNAMIC)
		c->weight.dtype = DT_U8;
	if (c->mode == OP_DYNAMIC || c->weight.per_channel)
		c->weight.scheme = SCHEME_SYM;
}

static void apply_keeps(struct qplan *p, const struct op_list *ops)
{
	bool *in_fp32 = xcalloc(ops->n, sizeof(*in_fp32));
	size_t i;

	for (i = 0; i < RECIPES; i++)
		if (recipe_list[i]->keep && recipe_applies(&p->recipes, recipe_list[i]))
			recipe_list[i]->keep(&p->recipes, ops, in_fp32);
	for (i = 0; i < p->n && i < ops->n; i++)
		if (in_fp32[i])
			p->ops[i].mode = OP_FP32;
	free(in_fp32);
}

struct qplan effective_plan(const struct qplan *asked, const struct op_list *ops)
{
	struct qplan p = qplan_copy(asked);
	size_t i;

	apply_keeps(&p, ops);
	for (i = 0; i < p.n && i < ops->n; i++)
		if (ops->v[i].old_conv)
			fit_old_conv(&p.ops[i]);
	for (i = 0; i < RECIPES; i++)
		if (p.format == FORMAT_QOPERATOR && recipe_list[i]->pairs_only)
			recipe_set(&p.recipes, recipe_list[i], false);
	return p;
}

const char *recipe_that_keeps(const struct recipes *r, const struct op_list *ops, size_t op)
{
	bool *in_fp32 = xcalloc(ops->n, sizeof(*in_fp32));
	const char *why = NULL;
	size_t i;

	for (i = 0; i < RECIPES && !why; i++) {
		if (!recipe_list[i]->keep || !recipe_applies(r, recipe_list[i]))
			continue;
		recipe_list[i]->keep(r, ops, in_fp32);
		if (in_fp32[op])
			why = recipe_list[i]->why_kept;
	}
	free(in_fp32);
	return why;
}

bool leaves_output(const struct recipes *r, const struct node *n)
{
	size_t i;

	for (i = 0; i < r->n_no_output; i++)
		if (node_is(n, r->no_output[i]))
			return true;
	return false;
}

bool has_own_range(const struct recipes *r, const struct node *n)
{
	size_t i;

	for (i = 0; i < RECIPES; i++)
		if (recipe_list[i]->own_range && recipe_applies(r, recipe_list[i]) &&
		    recipe_list[i]->own_range(r, n))
			return true;
	return leaves_output(r, n);
}
