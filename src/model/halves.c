/* A model in float16 as one in float32. */
#include <stdlib.h>
#include <string.h>

#include "model/internal.h"

struct widening {
	struct model *m;
	struct map index; /* of values that are no more -> to */
	VEC(const char *) to;
	VEC(bool)
	through; /* parallel: `to` is what a Cast reads that is no more, and may itself be no more */
	VEC(struct node *) nodes;
};

static bool is_half(const struct model *m, const char *value)
{
	const struct value *v = model_value(m, value);

	return v && v->type.dtype == DT_F16;
}

/* What subgraphs read, and what passes through unseen, keeps its type. */
static bool can_widen(const struct model *m)
{
	size_t i, k;

	for (i = 0; i < m->nodes.n; i++)
		if (node_has_subgraph(m->nodes.v[i]))
			return false;
	for (i = 0; i < m->n_outputs; i++) {
		for (k = 0; k < m->n_inputs; k++)
			if (strcmp(m->outputs[i].name, m->inputs[k].name) == 0)
				return false;
		if (model_init(m, m->outputs[i].name))
			return false;
	}
	return true;
}

/* What it is called now. */
static const char *widened(const struct widening *w, const char *value)
{
	size_t i;

	while ((i = map_get(&w->index, value)) != MAP_NONE) {
		value = w->to.v[i];
		if (!w->through.v[i])
			break;
	}
	return value;
}

static void replace(struct widening *w, const char *value, const char *to, bool through)
{
	map_set(&w->index, value, w->to.n);
	VEC_PUSH(&w->to, to);
	VEC_PUSH(&w->through, through);
}

/* Values get other names: what the file declares of them is not true any more. */
static const char *rename_value(struct widening *w, const char *value)
{
	const char *to = model_fresh(w->m, value);

	replace(w, value, to, false);
	return to;
}

static void add_cast(struct widening *w, const char *from, const char *to, enum dtype type)
{
	struct node *n = model_new_node(w->m, "Cast", "", model_fresh(w->m, "Cast"), 1, 1);

	n->in[0] = from;
	n->out[0] = to;
	node_set_int(w->m, n, "to", type);
	VEC_PUSH(&w->nodes, n);
}

static void widen_value(struct widening *w, const char *value)
{
	add_cast(w, value, rename_value(w, value), DT_F32);
}

/* Is it a Cast that has nothing to do any more? */
static bool is_idle(const struct model *m, const struct node *n)
{
	const struct value *v = node_is(n, "Cast") ? model_value(m, n->in[0]) : NULL;
	const int64_t to = v ? node_int(n, "to", 0) : 0;

	return v && (v->type.dtype == DT_F16 || v->type.dtype == DT_F32) && (to == DT_F16 || to == DT_F32);
}

/* What it makes. */
static void widen_node(struct widening *w, struct node *n)
{
	const bool told = node_has_attr(n, "value") || node_has_attr(n, "dtype"); /* what it makes */
	size_t k;

	if (is_idle(w->m, n)) {
		replace(w, n->out[0], n->in[0], true);
		return;
	}
	VEC_PUSH(&w->nodes, n);
	for (k = 0; k < n->n_out; k++) {
		if (is_half(w->m, n->out[k]) && told)
			widen_value(w, n->out[k]);
		else if (is_half(w->m, n->out[k]))
			n->out[k] = rename_value(w, n->out[k]);
	}
	if (node_is(n, "Cast") && node_int(n, "to", 0) == DT_F16)
		node_set_int(w->m, n, "to", DT_F32);
}

/* The one that makes a value; NULL: none does, or it is an output. */
static const char **maker(const struct widening *w, const char *value)
{
	size_t i, k;

	for (i = 0; i < w->m->n_outputs; i++)
		if (strcmp(w->m->outputs[i].name, value) == 0)
			return NULL;
	for (i = 0; i < w->nodes.n; i++)
		for (k = 0; k < w->nodes.v[i]->n_out; k++)
			if (strcmp(w->nodes.v[i]->out[k], value) == 0)
				return &w->nodes.v[i]->out[k];
	return NULL;
}

/* Outputs keep their names and types. */
static void widen_outputs(struct widening *w)
{
	const char **made;
	size_t i, k;

	for (i = 0; i < w->m->n_outputs; i++) {
		const struct value *v = &w->m->outputs[i];
		const char *is = widened(w, v->name);

		if (strcmp(is, v->name) == 0)
			continue;
		made = v->type.dtype == DT_F16 ? NULL : maker(w, is);
		if (!made) {
			add_cast(w, is, v->name, v->type.dtype);
			continue;
		}
		*made = v->name;
		for (k = 0; k < w->to.n; k++)
			if (!w->through.v[k] && strcmp(w->to.v[k], is) == 0)
				w->to.v[k] = v->name;
		if (map_get(&w->index, is) == MAP_NONE)
			replace(w, is, v->name, false);
	}
}

/* What nodes read. Those that were added here read what is there. */
static void widen_readers(struct widening *w)
{
	size_t i, k;

	for (i = 0; i < w->nodes.n; i++)
		for (k = 0; k < w->nodes.v[i]->n_in; k++)
			if (w->nodes.v[i]->proto)
				w->nodes.v[i]->in[k] = widened(w, w->nodes.v[i]->in[k]);
}

struct model *model_widen(const struct model *m)
{
	struct widening w = { .index = MAP_INIT };
	size_t i;

	if (!can_widen(m))
		return NULL;
	w.m = model_derive(m);
	for (i = 0; i < m->inits.n; i++)
		if (m->inits.v[i]->t.dtype == DT_F16)
			widen_value(&w, m->inits.v[i]->name);
	for (i = 0; i < m->n_inputs; i++)
		if (m->inputs[i].type.dtype == DT_F16)
			widen_value(&w, m->inputs[i].name);
	for (i = 0; i < m->nodes.n; i++)
		widen_node(&w, w.m->nodes.v[i]);
	widen_outputs(&w);
	widen_readers(&w);
	model_set_nodes(w.m, w.nodes.v, w.nodes.n);
	VEC_RELEASE(&w.nodes);
	VEC_RELEASE(&w.to);
	VEC_RELEASE(&w.through);
	map_release(&w.index);
	return w.m;
}
