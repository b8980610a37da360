#include "model/opset_rules.h"

#include <stdlib.h>
#include <string.h>

static bool lists(const char *ops, const char *op)
{
	size_t n = strlen(op);

	while (*ops) {
		size_t word = strcspn(ops, " ");

		if (word == n && memcmp(ops, op, n) == 0)
			return true;
		ops += word;
		ops += *ops == ' ';
	}
	return false;
}

const struct opset_rule *opset_rule_find(const char *op, int version)
{
	size_t i;

	for (i = 0; i < n_opset_rules; i++)
		if (opset_rules[i].version == version && lists(opset_rules[i].ops, op))
			return &opset_rules[i];
	return NULL;
}

enum opset_change opset_change(const char *op, int version)
{
	const struct opset_rule *rule = opset_rule_find(op, version);

	return !rule ? OPSET_UNLISTED : rule->why ? OPSET_NONE : rule->convert ? OPSET_CONVERTED : OPSET_SAME;
}

static Onnx__ValueInfoProto *find_value(Onnx__ValueInfoProto **v, size_t n, const char *name)
{
	size_t i;

	for (i = 0; i < n; i++)
		if (v[i]->name && strcmp(v[i]->name, name) == 0)
			return v[i];
	return NULL;
}

struct tensor raise_type(const struct raise *r, const char *name)
{
	struct tensor unknown = { .dtype = DT_NONE, .rank = -1 };
	Onnx__ValueInfoProto *found;
	const struct value *v;
	const struct init *w;

	for (; r->graph; r = r->outer) {
		const Onnx__GraphProto *g = r->graph;

		found = find_value(g->input, g->n_input, name);
		found = found ? found : find_value(g->output, g->n_output, name);
		found = found ? found : find_value(g->value_info, g->n_value_info, name);
		if (found)
			return read_value(found).type;
	}
	w = model_init(r->m, name);
	v = w ? NULL : model_value(r->m, name);
	return w ? w->t : v ? v->type : unknown;
}

static bool among(const char *const *names, size_t n, const char *name)
{
	size_t i;

	for (i = 0; i < n; i++)
		if (strcmp(names[i], name) == 0)
			return true;
	return false;
}

bool raise_reads(const struct raise *r, const char *name)
{
	size_t i;

	for (i = 0; i < r->n_all; i++)
		if (among(r->all[i]->in, r->all[i]->n_in, name) ||
		    among(r->all[i]->captured, r->all[i]->n_captured, name))
			return true;
	for (i = 0; !r->graph && i < r->m->n_outputs; i++)
		if (strcmp(r->m->outputs[i].name, name) == 0)
			return true;
	return r->graph && find_value(r->graph->output, r->graph->n_output, name);
}

const char *raise_constant(struct raise *r, const struct node *n, const char *what, const struct tensor *t)
{
	struct arena *a = &r->m->arena;
	const char *base = *n->name ? n->name : n->n_out ? n->out[0] : n->op;
	const char *name = model_fresh(r->m, arena_strfmt(a, "%s_%s", base, what));
	struct tensor own = *t;

	own.data = arena_alloc(a, tensor_bytes(t) + 1); /* a constant may be empty, but it has an address */
	if (tensor_bytes(t))
		memcpy(own.data, t->data, tensor_bytes(t));
	model_add_init(r->m, name, &own);
	return name;
}

static const char *raise_nodes(struct raise *r, int from, struct opset_obstacle *o);

/* a copy of g, raised; NULL: *o says why not */
static Onnx__GraphProto *raise_subgraph(struct raise *outer, const Onnx__GraphProto *g, int from,
					struct opset_obstacle *o)
{
	struct raise r = { .m = outer->m, .to = outer->to, .graph = g, .outer = outer };
	Onnx__GraphProto *copy = dup_array(&r.m->arena, g, 1, sizeof(*g));
	const char *why;
	size_t i;

	for (i = 0; i < g->n_node; i++)
		VEC_PUSH(&r.nodes, read_node(r.m, g->node[i]));
	why = raise_nodes(&r, from, o);
	copy->n_node = r.nodes.n;
	copy->node = arena_alloc(&r.m->arena, r.nodes.n * sizeof(*copy->node));
	for (i = 0; i < r.nodes.n; i++)
		copy->node[i] = node_proto(&r.m->arena, r.nodes.v[i]);
	VEC_RELEASE(&r.nodes);
	return why ? NULL : copy;
}

/* Replaces n's subgraphs by raised copies: m shares the old ones with the model that it was derived from. */
static const char *raise_attributes(struct raise *r, struct node *n, int from, struct opset_obstacle *o)
{
	struct arena *a = &r->m->arena;
	size_t i, k;

	for (i = 0; i < n->n_attrs; i++) {
		Onnx__AttributeProto *attr = n->attrs[i];

		if (!attr->g && !attr->n_graphs)
			continue;
		n->attrs[i] = attr = dup_array(a, attr, 1, sizeof(*attr));
		attr->graphs = dup_array(a, attr->graphs, attr->n_graphs, sizeof(*attr->graphs));
		if (attr->g && !(attr->g = raise_subgraph(r, attr->g, from, o)))
			return o->why;
		for (k = 0; k < attr->n_graphs; k++)
			if (!(attr->graphs[k] = raise_subgraph(r, attr->graphs[k], from, o)))
				return o->why;
	}
	n->captured = NULL;
	n->n_captured = 0;
	read_captured(r->m, n);
	return NULL;
}

static const char *raise_node(struct raise *r, struct node *n, int version, struct opset_obstacle *o)
{
	const struct opset_rule *rule = *n->domain ? NULL : opset_rule_find(n->op, version);
	struct opset_obstacle here = { n->op, *n->name ? n->name : n->n_out ? n->out[0] : "", version, NULL };

	r->after = NULL;
	if (rule)
		here.why = rule->convert ? rule->convert(r, n) : rule->why;
	if (here.why) {
		*o = here;
		return here.why;
	}
	VEC_PUSH(&r->nodes, n);
	if (r->after)
		VEC_PUSH(&r->nodes, r->after);
	return NULL;
}

/* Converts r->nodes, one version after the other. Returns NULL, or why not. */
static const char *raise_nodes(struct raise *r, int from, struct opset_obstacle *o)
{
	const char *why = NULL;
	size_t i;
	int version;

	for (i = 0; i < r->nodes.n && !why; i++)
		why = raise_attributes(r, r->nodes.v[i], from, o);
	for (version = from + 1; version <= r->to && !why; version++) {
		r->all = r->nodes.v;
		r->n_all = r->nodes.n;
		r->nodes.v = NULL;
		r->nodes.n = r->nodes.cap = 0;
		for (i = 0; i < r->n_all && !why; i++)
			why = raise_node(r, r->all[i], version, o);
		free(r->all);
	}
	return why;
}

struct model *model_raise(const struct model *m, int to, struct opset_obstacle *obstacle)
{
	struct raise r = { .m = model_derive(m), .to = to };
	size_t i;

	for (i = 0; i < r.m->nodes.n; i++)
		VEC_PUSH(&r.nodes, r.m->nodes.v[i]);
	if (raise_nodes(&r, m->opset, obstacle)) {
		model_free(r.m);
		r.m = NULL;
	} else {
		model_set_nodes(r.m, r.nodes.v, r.nodes.n);
		model_set_opset(r.m, to);
	}
	VEC_RELEASE(&r.nodes);
	return r.m;
}
