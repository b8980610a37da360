/* Attributes of nodes. */
#include "model/internal.h"

#include <stdlib.h>
#include <string.h>

static Onnx__AttributeProto *attr(const struct node *n, const char *name)
{
	size_t i;

	for (i = 0; i < n->n_attrs; i++) {
		Onnx__AttributeProto *a = n->attrs[i];

		if (a->name && strcmp(a->name, name) == 0)
			return a;
	}
	return NULL;
}

bool node_has_attr(const struct node *n, const char *name)
{
	return attr(n, name) != NULL;
}

int64_t node_int(const struct node *n, const char *name, int64_t otherwise)
{
	const Onnx__AttributeProto *a = attr(n, name);

	return a && a->has_i ? a->i : otherwise;
}

float node_float(const struct node *n, const char *name, float otherwise)
{
	const Onnx__AttributeProto *a = attr(n, name);

	return a && a->has_f ? a->f : otherwise;
}

const char *node_str(const struct node *n, const char *name)
{
	Onnx__AttributeProto *a = attr(n, name);

	if (!a || !a->has_s)
		return NULL;
	return a->s.data ? (const char *)a->s.data : ""; /* the decoder ends it with a NUL */
}

const int64_t *node_ints(const struct node *n, const char *name, size_t *count)
{
	const Onnx__AttributeProto *a = attr(n, name);

	*count = a ? a->n_ints : 0;
	return a ? a->ints : NULL;
}

const float *node_floats(const struct node *n, const char *name, size_t *count)
{
	const Onnx__AttributeProto *a = attr(n, name);

	*count = a ? a->n_floats : 0;
	return a ? a->floats : NULL;
}

bool node_has_subgraph(const struct node *n)
{
	size_t i;

	for (i = 0; i < n->n_attrs; i++) {
		const Onnx__AttributeProto *a = n->attrs[i];

		if (a->g || a->n_graphs)
			return true;
	}
	return false;
}

static size_t count_in(const Onnx__GraphProto *g, const char *op)
{
	size_t n = 0, i, k;

	for (i = 0; i < g->n_node; i++) {
		const Onnx__NodeProto *p = g->node[i];

		n += p->op_type && strcmp(p->op_type, op) == 0;
		for (k = 0; k < p->n_attribute; k++)
			n += p->attribute[k]->g ? count_in(p->attribute[k]->g, op) : 0;
	}
	return n;
}

size_t node_count_inside(const struct node *n, const char *op)
{
	size_t count = 0, i;

	for (i = 0; i < n->n_attrs; i++) {
		const Onnx__AttributeProto *a = n->attrs[i];

		count += a->g ? count_in(a->g, op) : 0;
	}
	return count;
}

static void put_attr(struct model *m, struct node *n, Onnx__AttributeProto *a)
{
	void **grown;

	node_drop_attr(n, a->name);
	grown = arena_alloc(&m->arena, (n->n_attrs + 1) * sizeof(*grown));
	if (n->n_attrs)
		memcpy(grown, n->attrs, n->n_attrs * sizeof(*grown));
	grown[n->n_attrs++] = a;
	n->attrs = grown;
}

static Onnx__AttributeProto *new_attr(struct model *m, const char *name,
				      Onnx__AttributeProto__AttributeType type)
{
	Onnx__AttributeProto *a = arena_alloc(&m->arena, sizeof(*a));

	onnx__attribute_proto__init(a);
	a->name = arena_strdup(&m->arena, name);
	a->has_type = 1;
	a->type = type;
	return a;
}

void node_set_int(struct model *m, struct node *n, const char *name, int64_t v)
{
	Onnx__AttributeProto *a = new_attr(m, name, ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INT);

	a->has_i = 1;
	a->i = v;
	put_attr(m, n, a);
}

void node_set_ints(struct model *m, struct node *n, const char *name, const int64_t *v, size_t count)
{
	Onnx__AttributeProto *a = new_attr(m, name, ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INTS);

	a->n_ints = count;
	a->ints = arena_alloc(&m->arena, count * sizeof(*v));
	memcpy(a->ints, v, count * sizeof(*v));
	put_attr(m, n, a);
}

void node_set_float(struct model *m, struct node *n, const char *name, float v)
{
	Onnx__AttributeProto *a = new_attr(m, name, ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__FLOAT);

	a->has_f = 1;
	a->f = v;
	put_attr(m, n, a);
}

void node_set_str(struct model *m, struct node *n, const char *name, const char *v)
{
	Onnx__AttributeProto *a = new_attr(m, name, ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__STRING);

	a->has_s = 1;
	a->s.data = (uint8_t *)arena_strdup(&m->arena, v);
	a->s.len = strlen(v);
	put_attr(m, n, a);
}

void node_copy_attr(struct model *m, struct node *to, const struct node *from, const char *name)
{
	Onnx__AttributeProto *a = attr(from, name);

	if (a)
		put_attr(m, to, a);
}

void node_drop_attr(struct node *n, const char *name)
{
	size_t i, kept = 0;

	for (i = 0; i < n->n_attrs; i++) {
		Onnx__AttributeProto *a = n->attrs[i];

		if (!a->name || strcmp(a->name, name) != 0)
			n->attrs[kept++] = a;
	}
	n->n_attrs = kept;
}
