/* Editing a model: new nodes, new constants, imports. */
#include "model/internal.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

enum { IR_FREE_CONSTANTS = 4 }; /* the IR version from which constants need not be inputs too */

bool node_is(const struct node *n, const char *op)
{
	return !*n->domain && strcmp(n->op, op) == 0;
}

bool model_gone(const struct model *m, const char *name)
{
	size_t i;

	for (i = 0; i < m->gone.n; i++)
		if (strcmp(m->gone.v[i], name) == 0)
			return true;
	return false;
}

struct init *model_init(const struct model *m, const char *name)
{
	size_t i = map_get(&m->init_index, name);

	return i == MAP_NONE ? NULL : m->inits.v[i];
}

struct init *model_add_init(struct model *m, const char *name, const struct tensor *t)
{
	struct init *w = arena_alloc(&m->arena, sizeof(*w));

	w->name = name;
	w->t = *t;
	map_set(&m->init_index, name, m->inits.n);
	VEC_PUSH(&m->inits, w);
	return w;
}

static bool name_taken(const struct model *m, const char *name)
{
	for (; m; m = m->base)
		if (map_get(&m->names, name) != MAP_NONE)
			return true;
	return false;
}

const char *model_fresh(struct model *m, const char *base)
{
	const char *name = arena_strdup(&m->arena, base);

	while (!*name || name_taken(m, name))
		name = arena_strfmt(&m->arena, "%s_%u", base, ++m->fresh);
	map_set(&m->names, name, 1);
	return name;
}

struct node *model_new_node(struct model *m, const char *op, const char *domain, const char *name,
			    size_t n_in, size_t n_out)
{
	struct node *n = arena_alloc(&m->arena, sizeof(*n));
	size_t i;

	n->op = op;
	n->domain = domain;
	n->name = model_fresh(m, name);
	n->in = arena_alloc(&m->arena, n_in * sizeof(*n->in));
	n->out = arena_alloc(&m->arena, n_out * sizeof(*n->out));
	n->n_in = n_in;
	n->n_out = n_out;
	for (i = 0; i < n_in; i++)
		n->in[i] = "";
	for (i = 0; i < n_out; i++)
		n->out[i] = "";
	return n;
}

void model_set_nodes(struct model *m, struct node *const *nodes, size_t n)
{
	size_t i;

	m->nodes.n = 0;
	for (i = 0; i < n; i++)
		VEC_PUSH(&m->nodes, nodes[i]);
}

void *derive_proto(struct model *m, const void *proto)
{
	Onnx__ModelProto *p = dup_array(&m->arena, proto, 1, sizeof(*p));

	p->opset_import = dup_array(&m->arena, p->opset_import, p->n_opset_import, sizeof(*p->opset_import));
	return p;
}

static bool same_domain(const char *a, const char *b)
{
	a = a && strcmp(a, "ai.onnx") != 0 ? a : "";
	return strcmp(a, b) == 0;
}

int model_domain_version(const struct model *m, const char *domain)
{
	const Onnx__ModelProto *p = m->proto;
	size_t i;

	for (i = 0; i < p->n_opset_import; i++)
		if (same_domain(p->opset_import[i]->domain, domain)) {
			int64_t v = p->opset_import[i]->version;

			return v > INT_MAX ? INT_MAX : v < 0 ? 0 : (int)v;
		}
	return 0;
}

void model_need_domain(struct model *m, const char *domain, int version)
{
	Onnx__ModelProto *p = m->proto;
	Onnx__OperatorSetIdProto *id;
	Onnx__OperatorSetIdProto **grown;

	if (model_domain_version(m, domain))
		return;
	id = arena_alloc(&m->arena, sizeof(*id));
	onnx__operator_set_id_proto__init(id);
	id->domain = arena_strdup(&m->arena, domain);
	id->has_version = 1;
	id->version = version;
	grown = arena_alloc(&m->arena, (p->n_opset_import + 1) * sizeof(*grown));
	if (p->n_opset_import)
		memcpy(grown, p->opset_import, p->n_opset_import * sizeof(*grown));
	grown[p->n_opset_import++] = id;
	p->opset_import = grown;
}

void model_need_ir(struct model *m, int version)
{
	Onnx__ModelProto *p = m->proto;

	p->has_ir_version = 1;
	if (p->ir_version < version)
		p->ir_version = version;
}

void model_set_opset(struct model *m, int opset)
{
	static const int ir_versions[] = { [9] = 4, [10] = 5, [11] = 6, [12] = 7, [13] = 7 };
	Onnx__ModelProto *p = m->proto;
	const int ir = opset < (int)ARRAY_LEN(ir_versions) ? ir_versions[opset] : 0;
	size_t i;

	for (i = 0; i < p->n_opset_import; i++)
		if (same_domain(p->opset_import[i]->domain, "")) {
			/* a model derived from another shares its messages */
			p->opset_import[i] =
				dup_array(&m->arena, p->opset_import[i], 1, sizeof(**p->opset_import));
			p->opset_import[i]->version = opset;
		}
	model_need_ir(m, ir);
	m->opset = opset;
}

size_t model_fix_constants(struct model *m)
{
	Onnx__ModelProto *p = m->proto;
	Onnx__GraphProto *g = p->graph;
	const bool overridable = p->ir_version >= IR_FREE_CONSTANTS;
	size_t i, kept = 0, n = g->n_input;

	for (i = 0; i < n; i++)
		if (!g->input[i]->name || !model_init(m, g->input[i]->name))
			g->input[kept++] = g->input[i];
	g->n_input = kept;
	p->has_ir_version = 1;
	if (!overridable)
		p->ir_version = IR_FREE_CONSTANTS;
	return overridable ? n - kept : 0;
}

static void sweep_imports(struct model *m, const struct map *domains)
{
	Onnx__ModelProto *p = m->proto;
	size_t i, kept = 0;

	if (p->n_functions) /* their bodies use domains too */
		return;
	for (i = 0; i < p->n_opset_import; i++) {
		const char *d = p->opset_import[i]->domain;

		if (same_domain(d, "") || map_get(domains, d) != MAP_NONE)
			p->opset_import[kept++] = p->opset_import[i];
	}
	p->n_opset_import = kept;
}

void model_sweep(struct model *m)
{
	struct map used = MAP_INIT, domains = MAP_INIT;
	bool subgraphs = false;
	size_t i, j, kept = 0;

	for (i = 0; i < m->nodes.n; i++) {
		const struct node *n = m->nodes.v[i];

		map_set(&domains, n->domain, 1);
		subgraphs |= node_has_subgraph(n);
		for (j = 0; j < n->n_in; j++)
			map_set(&used, n->in[j], 1);
		for (j = 0; j < n->n_captured; j++)
			map_set(&used, n->captured[j], 1);
	}
	for (i = 0; i < m->n_outputs; i++)
		map_set(&used, m->outputs[i].name, 1);
	map_release(&m->init_index);
	for (i = 0; i < m->inits.n; i++) {
		struct init *w = m->inits.v[i];

		if (map_get(&used, w->name) == MAP_NONE)
			continue;
		map_set(&m->init_index, w->name, kept);
		m->inits.v[kept++] = w;
	}
	m->inits.n = kept;
	if (!subgraphs)
		sweep_imports(m, &domains);
	map_release(&used);
	map_release(&domains);
}

static void drop_repeats(Onnx__GraphProto *g)
{
	struct map seen = MAP_INIT;
	size_t i, j, k, kept = 0;

	for (i = 0; i < g->n_initializer; i++) {
		const char *name = g->initializer[i]->name;

		if (name && map_get(&seen, name) != MAP_NONE)
			continue;
		if (name)
			map_set(&seen, name, 1);
		g->initializer[kept++] = g->initializer[i];
	}
	g->n_initializer = kept;
	map_release(&seen);
	for (i = 0; i < g->n_node; i++)
		for (j = 0; j < g->node[i]->n_attribute; j++) {
			Onnx__AttributeProto *a = g->node[i]->attribute[j];

			if (a->g)
				drop_repeats(a->g);
			for (k = 0; k < a->n_graphs; k++)
				drop_repeats(a->graphs[k]);
		}
}

void model_drop_repeats(struct model *m)
{
	drop_repeats(((Onnx__ModelProto *)m->proto)->graph);
}

const struct value *model_value(const struct model *m, const char *name)
{
	size_t i;

	for (i = 0; i < m->n_inputs; i++)
		if (strcmp(m->inputs[i].name, name) == 0)
			return &m->inputs[i];
	for (i = 0; i < m->n_outputs; i++)
		if (strcmp(m->outputs[i].name, name) == 0)
			return &m->outputs[i];
	i = map_get(&m->value_index, name);
	if (i != MAP_NONE)
		return &m->values.v[i];
	return m->base ? model_value(m->base, name) : NULL;
}

static Onnx__ValueInfoProto *typed_value(struct model *m, const struct value *like)
{
	const struct tensor *type = &like->type;
	Onnx__ValueInfoProto *v = arena_alloc(&m->arena, sizeof(*v));
	Onnx__TypeProto *t = arena_alloc(&m->arena, sizeof(*t));
	Onnx__TypeProto__Tensor *tt = arena_alloc(&m->arena, sizeof(*tt));
	Onnx__TensorShapeProto *shape = arena_alloc(&m->arena, sizeof(*shape));
	int i;

	onnx__value_info_proto__init(v);
	onnx__type_proto__init(t);
	onnx__type_proto__tensor__init(tt);
	onnx__tensor_shape_proto__init(shape);
	shape->n_dim = (size_t)type->rank;
	shape->dim = arena_alloc(&m->arena, shape->n_dim * sizeof(*shape->dim));
	for (i = 0; i < type->rank; i++) {
		Onnx__TensorShapeProto__Dimension *d = arena_alloc(&m->arena, sizeof(*d));

		onnx__tensor_shape_proto__dimension__init(d);
		if (type->dims[i] >= 0) { /* otherwise it may be anything */
			d->value_case = ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_VALUE;
			d->dim_value = type->dims[i];
		} else if (!i && like->batch) {
			d->value_case = ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_PARAM;
			d->dim_param = arena_strdup(&m->arena, like->batch);
		}
		shape->dim[i] = d;
	}
	tt->has_elem_type = 1;
	tt->elem_type = (int32_t)type->dtype;
	tt->shape = shape;
	t->value_case = ONNX__TYPE_PROTO__VALUE_TENSOR_TYPE;
	t->tensor_type = tt;
	v->name = arena_strdup(&m->arena, like->name);
	v->type = t;
	return v;
}

struct value typed_input(struct model *m, const struct value *like)
{
	Onnx__ValueInfoProto *proto = typed_value(m, like);
	struct value v = { .name = proto->name, .type = like->type, .proto = proto };

	v.type.data = NULL;
	return v;
}

void model_init_to_input(struct model *m, const char *name)
{
	struct value *grown = arena_alloc(&m->arena, (m->n_inputs + 1) * sizeof(*grown));
	struct init *w = model_init(m, name);
	size_t i, kept = 0;

	if (m->n_inputs)
		memcpy(grown, m->inputs, m->n_inputs * sizeof(*grown));
	grown[m->n_inputs] = typed_input(m, &(struct value){ .name = w->name, .type = w->t });
	m->inputs = grown;
	m->n_inputs++;
	map_release(&m->init_index);
	for (i = 0; i < m->inits.n; i++) {
		if (m->inits.v[i] == w)
			continue;
		map_set(&m->init_index, m->inits.v[i]->name, kept);
		m->inits.v[kept++] = m->inits.v[i];
	}
	m->inits.n = kept;
}

static Onnx__TensorProto *copy_outside(struct arena *a, const Onnx__TensorProto *from)
{
	Onnx__TensorProto *p = dup_array(a, from, 1, sizeof(*from));
	size_t i;

	p->name = arena_strdup(a, from->name);
	p->dims = dup_array(a, from->dims, from->n_dims, sizeof(*from->dims));
	p->external_data =
		dup_array(a, from->external_data, from->n_external_data, sizeof(*p->external_data));
	for (i = 0; i < p->n_external_data; i++) {
		Onnx__StringStringEntryProto *e = dup_array(a, from->external_data[i], 1, sizeof(*e));

		e->key = arena_strdup(a, e->key ? e->key : "");
		e->value = arena_strdup(a, e->value ? e->value : "");
		p->external_data[i] = e;
	}
	return p;
}

void model_input_to_init(struct model *m, const struct init *w)
{
	Onnx__TensorProto *p = copy_outside(&m->arena, w->proto);
	size_t i, kept = 0;

	for (i = 0; i < m->n_inputs; i++)
		if (strcmp(m->inputs[i].name, w->name) != 0)
			m->inputs[kept++] = m->inputs[i];
	m->n_inputs = kept;
	model_add_init(m, p->name, &w->t)->proto = p;
}

void model_declare(struct model *m, const struct value *v)
{
	map_set(&m->value_index, v->name, m->values.n);
	VEC_PUSH(&m->values, *v);
}

void model_set_outputs(struct model *m, const char *const *names, size_t n)
{
	struct value *out = arena_alloc(&m->arena, n * sizeof(*out));
	size_t i;

	for (i = 0; i < n; i++) {
		const struct value *known = model_value(m, names[i]);

		if (known)
			out[i] = *known;
		else
			out[i].type.rank = -1;
		if (!out[i].proto) {
			Onnx__ValueInfoProto *v = arena_alloc(&m->arena, sizeof(*v));

			onnx__value_info_proto__init(v);
			v->name = arena_strdup(&m->arena, names[i]);
			out[i].proto = v;
			out[i].name = v->name;
		}
	}
	m->outputs = out;
	m->n_outputs = n;
}
