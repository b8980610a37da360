/* What the subgraphs of If, Loop and Scan read from outside themselves. */
#include "model/internal.h"

#include <string.h>

/* the names one subgraph defines; what encloses it may define others */
struct scope {
	struct map defined;
	const struct scope *outer;
};

struct capture {
	struct model *m;
	struct node *node;
	struct map seen;
	size_t cap;
};

static void define(struct capture *c, struct scope *s, const char *name)
{
	model_use_name(c->m, name);
	if (name && *name)
		map_set(&s->defined, name, 1);
}

static void define_all(struct capture *c, struct scope *s, const Onnx__GraphProto *g)
{
	size_t i, j;

	for (i = 0; i < g->n_input; i++)
		define(c, s, g->input[i]->name);
	for (i = 0; i < g->n_initializer; i++)
		define(c, s, g->initializer[i]->name);
	for (i = 0; i < g->n_sparse_initializer; i++)
		if (g->sparse_initializer[i]->values)
			define(c, s, g->sparse_initializer[i]->values->name);
	for (i = 0; i < g->n_node; i++) {
		model_use_name(c->m, g->node[i]->name);
		for (j = 0; j < g->node[i]->n_output; j++)
			define(c, s, g->node[i]->output[j]);
	}
}

static void read_name(struct capture *c, const struct scope *s, const char *name)
{
	if (!name || !*name || map_get(&c->seen, name) != MAP_NONE)
		return;
	for (; s; s = s->outer)
		if (map_get(&s->defined, name) != MAP_NONE)
			return;
	model_use_name(c->m, name);
	map_set(&c->seen, name, 1);
	if (c->node->n_captured == c->cap) {
		const char **grown = arena_alloc(&c->m->arena, 2 * (c->cap + 4) * sizeof(*grown));

		if (c->cap)
			memcpy(grown, c->node->captured, c->cap * sizeof(*grown));
		c->node->captured = grown;
		c->cap = 2 * (c->cap + 4);
	}
	c->node->captured[c->node->n_captured++] = name;
}

/* the depth of the recursion is that of the file's nesting, which the decoder has limited */
static void capture(struct capture *c, const Onnx__GraphProto *g, const struct scope *outer)
{
	struct scope s = { MAP_INIT, outer };
	size_t i, j, k;

	define_all(c, &s, g);
	for (i = 0; i < g->n_node; i++) {
		const Onnx__NodeProto *n = g->node[i];

		for (j = 0; j < n->n_input; j++)
			read_name(c, &s, n->input[j]);
		for (j = 0; j < n->n_attribute; j++) {
			if (n->attribute[j]->g)
				capture(c, n->attribute[j]->g, &s);
			for (k = 0; k < n->attribute[j]->n_graphs; k++)
				capture(c, n->attribute[j]->graphs[k], &s);
		}
	}
	for (i = 0; i < g->n_output; i++) /* a subgraph may return an outer value as it is */
		read_name(c, &s, g->output[i]->name);
	map_release(&s.defined);
}

void read_captured(struct model *m, struct node *n)
{
	struct capture c = { .m = m, .node = n };
	size_t i, k;

	for (i = 0; i < n->n_attrs; i++) {
		const Onnx__AttributeProto *a = n->attrs[i];

		if (a->g)
			capture(&c, a->g, NULL);
		for (k = 0; k < a->n_graphs; k++)
			capture(&c, a->graphs[k], NULL);
	}
	map_release(&c.seen);
}
