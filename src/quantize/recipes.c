/* Recipes that only say which ops are quantized, or how far. */
#include "quantize/internal.h"

#include <stdlib.h>
#include <string.h>

static bool is_compute(const struct op *op)
{
	return op->rule && op->rule->kind == OP_COMPUTE;
}

/* Order is that of the nodes, which is topological. Moves stay: they only pass on what they are given. */
static void keep_fp32(struct qplan *p, const struct op_list *ops)
{
	const struct recipes *r = &p->recipes;
	size_t first = 0, last = ops->n, i;

	while (first < ops->n && !is_compute(&ops->v[first]))
		first++;
	if (first == ops->n)
		return; /* no beginning and no end of anything */
	while (!is_compute(&ops->v[--last]))
		;
	if (r->keep_first)
		p->ops[first].mode = OP_FP32;
	if (r->keep_last)
		p->ops[last].mode = OP_FP32;
	for (i = 0; i < ops->n && r->keep_ends; i++)
		if ((i < first || i > last) && ops->v[i].rule && ops->v[i].rule->kind != OP_MOVE)
			p->ops[i].mode = OP_FP32;
}

/* Weights as old kernels take them: symmetric ones have one zero point for all channels. */
static void fit_old_conv(struct op_choice *c)
{
	if (c->mode == OP_DYNAMIC)
		c->weight.dtype = DT_U8;
	if (c->mode == OP_DYNAMIC || c->weight.per_channel)
		c->weight.scheme = SCHEME_SYM;
}

struct qplan effective_plan(const struct qplan *asked, const struct op_list *ops)
{
	struct qplan p = qplan_copy(asked);
	size_t i;

	keep_fp32(&p, ops);
	for (i = 0; i < p.n && i < ops->n; i++)
		if (ops->v[i].old_conv)
			fit_old_conv(&p.ops[i]);
	if (p.format == FORMAT_QOPERATOR) /* which has no pairs to speak of */
		p.recipes.dedicated_qdq_pair = p.recipes.qdq_pair_on_weights = false;
	return p;
}

bool leaves_output(const struct recipes *r, const struct node *n)
{
	size_t i;

	for (i = 0; i < r->n_no_output; i++)
		if (node_is(n, r->no_output[i]))
			return true;
	return false;
}
