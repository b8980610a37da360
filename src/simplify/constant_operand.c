/* The runtime folds a constant that a Conv's output is multiplied by, or that is added to it, into the Conv; but not one that
 * it is divided by, or that is subtracted from it. */
#include "simplify/match.h"

/* -c or 1 / c; NULL: it divides by zero */
static const char *turned(struct simplifying *s, const struct node *n, bool divides)
{
	const struct init *c = model_init(s->m, n->in[1]);
	struct tensor t = c->t;
	const size_t count = (size_t)tensor_count(&t);
	const char *name;
	size_t i;

	t.data = arena_alloc(&s->m->arena, tensor_bytes(&t) + 1);
	for (i = 0; i < count; i++) {
		const double x = tensor_get(&c->t, i);

		if (divides && x == 0)
			return NULL;
		tensor_set(&t, i, divides ? 1 / x : -x);
	}
	name = model_fresh(s->m, arena_strfmt(&s->m->arena, "%s_turned", c->name));
	model_add_init(s->m, name, &t);
	return name;
}

static bool apply(struct simplifying *s, struct node *n)
{
	const bool divides = node_is(n, "Div");
	const struct init *c;
	const char *constant;

	if ((!divides && !node_is(n, "Sub")) || n->n_in != 2)
		return false;
	c = model_init(s->m, n->in[1]);
	if (!c || c->t.dtype != DT_F32 || !c->t.data || !inner_is(s, n->in[0], "Conv"))
		return false;
	constant = turned(s, n, divides);
	if (!constant)
		return false;
	become(s, n, divides ? "Mul" : "Add", n->in[0], constant);
	return true;
}

const struct simplification simplification_constant_operand = {
	.name = "constant_operand",
	.summary = "Conv, then Div or Sub of a constant: Mul or Add, which the runtime folds into the Conv",
	.apply = apply,
};
