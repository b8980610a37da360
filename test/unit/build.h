/*
 * Small models for tests, written as text:
 *
 *	build_model(path, 13, "x:1x3x8x8",
 *		"w = 4x3x3x3; y = Conv(x, w) pads=1,1,1,1; z = Relu(y)", "z");
 *
 * A name followed by a shape is a weight with random values; "k = [1,2,3]" an int64 constant,
 * "k = [1.0,2.0]" a float one; "k = 6.0" a float scalar. A shape's "?" is an open dimension. Attributes: "k=1", "k=0.5", "k=1," (a list), "k=1.0,2.0", "k=word".
 */
#ifndef BUILD_H
#define BUILD_H

#include "base/mem.h"
#include "base/rng.h"
#include "model/model.h"
#include "onnx.pb-c.h"

struct build {
	struct arena a;
	Onnx__ModelProto m;
	Onnx__GraphProto g;
	struct rng rng;
};

static inline void *build_grow(struct arena *a, void *old, size_t n, size_t size)
{
	char *p = arena_alloc(a, (n + 1) * size);

	if (n)
		memcpy(p, old, n * size);
	return p;
}

static inline char *build_trim(char *s)
{
	char *end;

	s += strspn(s, " \t\n");
	for (end = s + strlen(s); end > s && strchr(" \t\n", end[-1]);)
		*--end = '\0';
	return s;
}

static inline Onnx__ValueInfoProto *build_value(struct build *b, const char *name, const char *shape,
						int dtype)
{
	Onnx__ValueInfoProto *v = arena_alloc(&b->a, sizeof(*v));
	Onnx__TypeProto *t = arena_alloc(&b->a, sizeof(*t));
	Onnx__TypeProto__Tensor *tt = arena_alloc(&b->a, sizeof(*tt));
	Onnx__TensorShapeProto *s = arena_alloc(&b->a, sizeof(*s));

	onnx__value_info_proto__init(v);
	onnx__type_proto__init(t);
	onnx__type_proto__tensor__init(tt);
	onnx__tensor_shape_proto__init(s);
	v->name = arena_strdup(&b->a, name);
	v->type = t;
	t->value_case = ONNX__TYPE_PROTO__VALUE_TENSOR_TYPE;
	t->tensor_type = tt;
	tt->has_elem_type = 1;
	tt->elem_type = dtype;
	while (shape && *shape) {
		Onnx__TensorShapeProto__Dimension *d = arena_alloc(&b->a, sizeof(*d));

		onnx__tensor_shape_proto__dimension__init(d);
		if (*shape == '?') {
			d->value_case = ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_PARAM;
			d->dim_param = "n";
			shape++;
		} else {
			d->value_case = ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_VALUE;
			d->dim_value = strtoll(shape, (char **)(uintptr_t)&shape, 10);
		}
		s->dim = build_grow(&b->a, s->dim, s->n_dim, sizeof(*s->dim));
		s->dim[s->n_dim++] = d;
		tt->shape = s;
		shape += *shape == 'x';
	}
	return v;
}

static inline void build_constant(struct build *b, char *name, char *text)
{
	Onnx__TensorProto *t = arena_alloc(&b->a, sizeof(*t));
	size_t count = 1, i;

	onnx__tensor_proto__init(t);
	t->name = arena_strdup(&b->a, name);
	t->has_data_type = 1;
	t->dims = arena_alloc(&b->a, 16 * sizeof(*t->dims));
	if (*text == '[' && strchr(text, '.')) {
		t->data_type = DT_F32;
		t->float_data = arena_alloc(&b->a, 64 * sizeof(*t->float_data));
		for (text++; *text && *text != ']'; text += *text == ',')
			t->float_data[t->n_float_data++] = strtof(text, &text);
		t->n_dims = 1;
		t->dims[0] = (int64_t)t->n_float_data;
	} else if (*text == '[') {
		t->data_type = DT_S64;
		t->int64_data = arena_alloc(&b->a, 64 * sizeof(*t->int64_data));
		for (text++; *text && *text != ']'; text += *text == ',')
			t->int64_data[t->n_int64_data++] = strtoll(text, &text, 10);
		t->n_dims = 1;
		t->dims[0] = (int64_t)t->n_int64_data;
	} else if (strchr(text, '.')) {
		t->data_type = DT_F32;
		t->float_data = arena_alloc(&b->a, sizeof(float));
		t->float_data[t->n_float_data++] = strtof(text, NULL);
	} else {
		while (*text) {
			t->dims[t->n_dims] = strtoll(text, &text, 10);
			count *= (size_t)t->dims[t->n_dims++];
			text += *text == 'x';
		}
		t->data_type = DT_F32;
		t->has_raw_data = 1;
		t->raw_data.len = count * sizeof(float);
		t->raw_data.data = arena_alloc(&b->a, t->raw_data.len);
		for (i = 0; i < count; i++)
			((float *)t->raw_data.data)[i] = (float)(0.3 * rng_normal(&b->rng));
	}
	b->g.initializer = build_grow(&b->a, b->g.initializer, b->g.n_initializer, sizeof(*b->g.initializer));
	b->g.initializer[b->g.n_initializer++] = t;
}

static inline char **build_names(struct build *b, char *text, size_t *n)
{
	char **v = NULL, *save, *p;

	*n = 0;
	for (p = strtok_r(text, ",", &save); p; p = strtok_r(NULL, ",", &save)) {
		v = build_grow(&b->a, v, *n, sizeof(*v));
		p = build_trim(p);
		v[(*n)++] = arena_strdup(&b->a, strcmp(p, "_") == 0 ? "" : p);
	}
	return v;
}

static inline void build_attr(struct build *b, Onnx__NodeProto *n, char *text)
{
	Onnx__AttributeProto *a = arena_alloc(&b->a, sizeof(*a));
	char *eq = strchr(text, '='), *p;

	onnx__attribute_proto__init(a);
	*eq = '\0';
	p = eq + 1;
	a->name = arena_strdup(&b->a, text);
	a->has_type = 1;
	if (strchr(p, ',') && strchr(p, '.')) {
		a->type = ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__FLOATS;
		a->floats = arena_alloc(&b->a, 16 * sizeof(*a->floats));
		for (; *p; p += *p == ',')
			a->floats[a->n_floats++] = strtof(p, &p);
	} else if (strchr(p, ',')) {
		a->type = ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INTS;
		a->ints = arena_alloc(&b->a, 16 * sizeof(*a->ints));
		for (; *p; p += *p == ',')
			a->ints[a->n_ints++] = strtoll(p, &p, 10);
	} else if (*p >= 'A' && *p <= 'z') {
		a->type = ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__STRING;
		a->has_s = 1;
		a->s.data = (uint8_t *)arena_strdup(&b->a, p);
		a->s.len = strlen(p);
	} else if (strchr(p, '.')) {
		a->type = ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__FLOAT;
		a->has_f = 1;
		a->f = strtof(p, NULL);
	} else {
		a->type = ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INT;
		a->has_i = 1;
		a->i = strtoll(p, NULL, 10);
	}
	n->attribute = build_grow(&b->a, n->attribute, n->n_attribute, sizeof(*n->attribute));
	n->attribute[n->n_attribute++] = a;
}

/* "Conv(x, w) pads=1,1,1,1 group=2" */
static inline void build_node(struct build *b, char *outs, char *call)
{
	Onnx__NodeProto *n = arena_alloc(&b->a, sizeof(*n));
	char *open = strchr(call, '('), *close = strchr(call, ')'), *save, *p;

	onnx__node_proto__init(n);
	*open = *close = '\0';
	n->op_type = arena_strdup(&b->a, build_trim(call));
	n->input = build_names(b, open + 1, &n->n_input);
	n->output = build_names(b, outs, &n->n_output);
	n->name = arena_strfmt(&b->a, "%s_%zu", n->op_type, b->g.n_node);
	for (p = strtok_r(close + 1, " ", &save); p; p = strtok_r(NULL, " ", &save))
		build_attr(b, n, p);
	b->g.node = build_grow(&b->a, b->g.node, b->g.n_node, sizeof(*b->g.node));
	b->g.node[b->g.n_node++] = n;
}

static inline void build_model(const char *path, int opset, const char *inputs, const char *body,
			       const char *outputs)
{
	struct build b = { .a = ARENA_INIT };
	Onnx__OperatorSetIdProto id = ONNX__OPERATOR_SET_ID_PROTO__INIT, *ids = &id;
	char *text, *save, *p;
	uint8_t *bytes;
	size_t n;
	FILE *f;

	rng_seed(&b.rng, 7);
	onnx__model_proto__init(&b.m);
	onnx__graph_proto__init(&b.g);
	b.m.graph = &b.g;
	b.m.has_ir_version = 1;
	b.m.ir_version = 7;
	b.m.n_opset_import = 1;
	b.m.opset_import = &ids;
	id.domain = "";
	id.has_version = 1;
	id.version = opset;
	b.g.name = "g";
	b.g.input = arena_alloc(&b.a, 8 * sizeof(*b.g.input));
	b.g.output = arena_alloc(&b.a, 8 * sizeof(*b.g.output));
	text = arena_strdup(&b.a, inputs);
	for (p = strtok_r(text, ",", &save); p; p = strtok_r(NULL, ",", &save)) {
		char *colon = strchr(p, ':');
		bool ids64 = colon[1] == '#'; /* "ids:#?x5" is int64 */

		*colon = '\0';
		b.g.input[b.g.n_input++] =
			build_value(&b, build_trim(p), colon + 1 + ids64, ids64 ? DT_S64 : DT_F32);
	}
	text = arena_strdup(&b.a, body);
	for (p = strtok_r(text, ";", &save); p; p = strtok_r(NULL, ";", &save)) {
		char *eq = strchr(p, '='), *right;

		if (!eq)
			continue;
		*eq = '\0';
		right = build_trim(eq + 1);
		if (strchr(right, '('))
			build_node(&b, build_trim(p), right);
		else
			build_constant(&b, build_trim(p), right);
	}
	text = arena_strdup(&b.a, outputs);
	for (p = strtok_r(text, ",", &save); p; p = strtok_r(NULL, ",", &save))
		b.g.output[b.g.n_output++] = build_value(&b, build_trim(p), NULL, DT_F32);
	n = onnx__model_proto__get_packed_size(&b.m);
	bytes = xmalloc(n);
	onnx__model_proto__pack(&b.m, bytes);
	f = fopen(path, "wb");
	if (!f || fwrite(bytes, 1, n, f) != n || fclose(f) != 0)
		fail_msg("cannot write %s", path);
	free(bytes);
	arena_release(&b.a);
}

#endif
