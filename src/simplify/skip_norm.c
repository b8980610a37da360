/*
 * The runtime fuses an Add of two values and the LayerNormalization of their sum into SkipLayerNormalization, which takes several
 * times as long as both on a CPU: its sums are not vectorised. It does not know Sum, which is the same here.
 */
#include "simplify/match.h"

#include <string.h>

/* as one op, or by its first: x - mean(x) */
static bool normalises(const struct simplifying *s, const struct node *n, const char *value)
{
	const struct node *mean;

	if (n->n_in < 2 || strcmp(n->in[0], value) != 0)
		return false;
	if (node_is(n, "LayerNormalization"))
		return true;
	mean = node_is(n, "Sub") ? graph_producer(&s->g, n->in[1]) : NULL;
	return mean && node_is(mean, "ReduceMean") && strcmp(mean->in[0], value) == 0;
}

static bool apply(struct simplifying *s, struct node *n)
{
	const size_t v = node_is(n, "Add") ? graph_value(&s->g, n->out[0]) : MAP_NONE;
	bool does = false;
	size_t u;

	if (v == MAP_NONE || !is_f32(s, n->out[0]) || model_init(s->m, n->in[0]) ||
	    model_init(s->m, n->in[1]))
		return false;
	for (u = s->g.first[v]; u < s->g.first[v + 1]; u++)
		does |= normalises(s, s->m->nodes.v[s->g.uses[u]], n->out[0]);
	if (does)
		become(s, n, "Sum", n->in[0], n->in[1]);
	return does;
}

const struct simplification simplification_skip_norm = {
	.name = "skip_norm",
	.summary = "Add of two values, then LayerNorm: Sum, because the runtime is slow at both in one op",
	.apply = apply,
};
