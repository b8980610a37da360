/* Small ONNX models, made in a few lines: what a test needs of protobuf-c. Everything dies with the arena. */
#ifndef UNIT_PROTO_H
#define UNIT_PROTO_H

#include "base/mem.h"
#include "model/model.h"
#include "onnx.pb-c.h"

struct build {
	struct arena a;
	Onnx__ModelProto *m;
	Onnx__GraphProto *g;
};

#define BUILD_PUSH(b, list, count, x)                                                                        \
	((list) = build_grow((b), (list), (count)++, sizeof(*(list))), (list)[(count)-1] = (x))

static inline void *build_grow(struct build *b, void *v, size_t n, size_t size)
{
	void *grown;

	if (n & (n - 1))
		return v; /* room up to the next power of two */
	grown = arena_alloc(&b->a, (n ? 2 * n : 1) * size);
	return n ? memcpy(grown, v, n * size) : grown;
}

static inline void build_opset(struct build *b, const char *domain, int64_t version)
{
	Onnx__OperatorSetIdProto *id = arena_alloc(&b->a, sizeof(*id));

	onnx__operator_set_id_proto__init(id);
	id->domain = arena_strdup(&b->a, domain);
	id->has_version = 1;
	id->version = version;
	BUILD_PUSH(b, b->m->opset_import, b->m->n_opset_import, id);
}

static inline Onnx__GraphProto *build_graph(struct build *b, const char *name)
{
	Onnx__GraphProto *g = arena_alloc(&b->a, sizeof(*g));

	onnx__graph_proto__init(g);
	g->name = arena_strdup(&b->a, name);
	return g;
}

static inline void build_init(struct build *b, int64_t opset)
{
	memset(b, 0, sizeof(*b));
	b->m = arena_alloc(&b->a, sizeof(*b->m));
	onnx__model_proto__init(b->m);
	b->m->has_ir_version = 1;
	b->m->ir_version = 7;
	b->m->graph = b->g = build_graph(b, "g");
	build_opset(b, "", opset);
}

static inline void build_release(struct build *b)
{
	arena_release(&b->a);
}

/* a dimension of -1 is a symbolic one */
static inline Onnx__ValueInfoProto *build_value(struct build *b, const char *name, enum dtype t,
						const int64_t *dims, size_t rank)
{
	Onnx__ValueInfoProto *v = arena_alloc(&b->a, sizeof(*v));
	Onnx__TypeProto *type = arena_alloc(&b->a, sizeof(*type));
	Onnx__TypeProto__Tensor *tt = arena_alloc(&b->a, sizeof(*tt));
	size_t i;

	onnx__value_info_proto__init(v);
	onnx__type_proto__init(type);
	onnx__type_proto__tensor__init(tt);
	v->name = arena_strdup(&b->a, name);
	v->type = type;
	type->value_case = ONNX__TYPE_PROTO__VALUE_TENSOR_TYPE;
	type->tensor_type = tt;
	tt->has_elem_type = 1;
	tt->elem_type = (int32_t)t;
	tt->shape = arena_alloc(&b->a, sizeof(*tt->shape));
	onnx__tensor_shape_proto__init(tt->shape);
	for (i = 0; i < rank; i++) {
		Onnx__TensorShapeProto__Dimension *d = arena_alloc(&b->a, sizeof(*d));

		onnx__tensor_shape_proto__dimension__init(d);
		if (dims[i] >= 0) {
			d->value_case = ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_VALUE;
			d->dim_value = dims[i];
		} else {
			d->value_case = ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_PARAM;
			d->dim_param = arena_strdup(&b->a, "n");
		}
		BUILD_PUSH(b, tt->shape->dim, tt->shape->n_dim, d);
	}
	return v;
}

#define DIMS(...) (const int64_t[]){ __VA_ARGS__ }, sizeof((const int64_t[]){ __VA_ARGS__ }) / sizeof(int64_t)

static inline void build_input(struct build *b, const char *name, enum dtype t, const int64_t *dims,
			       size_t rank)
{
	BUILD_PUSH(b, b->g->input, b->g->n_input, build_value(b, name, t, dims, rank));
}

static inline void build_output(struct build *b, const char *name, enum dtype t, const int64_t *dims,
				size_t rank)
{
	BUILD_PUSH(b, b->g->output, b->g->n_output, build_value(b, name, t, dims, rank));
}

static inline Onnx__TensorProto *build_tensor(struct build *b, const char *name, enum dtype t,
					      const int64_t *dims, size_t rank, const void *raw, size_t n)
{
	Onnx__TensorProto *p = arena_alloc(&b->a, sizeof(*p));

	onnx__tensor_proto__init(p);
	p->name = arena_strdup(&b->a, name);
	p->has_data_type = 1;
	p->data_type = (int32_t)t;
	p->n_dims = rank;
	p->dims = rank ? memcpy(arena_alloc(&b->a, rank * sizeof(*dims)), dims, rank * sizeof(*dims)) : NULL;
	if (raw) {
		p->has_raw_data = 1;
		p->raw_data.len = n;
		p->raw_data.data = memcpy(arena_alloc(&b->a, n + 1), raw, n);
	}
	return p;
}

static inline Onnx__TensorProto *build_weight(struct build *b, const char *name, enum dtype t,
					      const int64_t *dims, size_t rank, const void *raw, size_t n)
{
	Onnx__TensorProto *p = build_tensor(b, name, t, dims, rank, raw, n);

	BUILD_PUSH(b, b->g->initializer, b->g->n_initializer, p);
	return p;
}

/* says that p's data are at location; offset and length may be NULL */
static inline void build_external(struct build *b, Onnx__TensorProto *p, const char *location,
				  const char *offset, const char *length)
{
	const char *pairs[3][2] = { { "location", location }, { "offset", offset }, { "length", length } };
	size_t i;

	p->has_raw_data = 0;
	p->has_data_location = 1;
	p->data_location = ONNX__TENSOR_PROTO__DATA_LOCATION__EXTERNAL;
	for (i = 0; i < 3; i++) {
		Onnx__StringStringEntryProto *e = arena_alloc(&b->a, sizeof(*e));

		if (!pairs[i][1])
			continue;
		onnx__string_string_entry_proto__init(e);
		e->key = arena_strdup(&b->a, pairs[i][0]);
		e->value = arena_strdup(&b->a, pairs[i][1]);
		BUILD_PUSH(b, p->external_data, p->n_external_data, e);
	}
}

/* "a,,b" -> "a", "", "b"; "" -> none */
static inline char **build_names(struct build *b, const char *list, size_t *n)
{
	char **v = NULL, *s = arena_strdup(&b->a, list), *comma;

	*n = 0;
	while (s && *list) {
		comma = strchr(s, ',');
		if (comma)
			*comma = '\0';
		BUILD_PUSH(b, v, *n, s);
		s = comma ? comma + 1 : NULL;
	}
	return v;
}

/* adds a node; `in` and `out` are names with commas between */
static inline Onnx__NodeProto *build_node_in(struct build *b, Onnx__GraphProto *g, const char *op,
					     const char *in, const char *out)
{
	Onnx__NodeProto *n = arena_alloc(&b->a, sizeof(*n));

	onnx__node_proto__init(n);
	n->op_type = arena_strdup(&b->a, op);
	n->input = build_names(b, in, &n->n_input);
	n->output = build_names(b, out, &n->n_output);
	BUILD_PUSH(b, g->node, g->n_node, n);
	return n;
}

static inline Onnx__NodeProto *build_node(struct build *b, const char *op, const char *in, const char *out)
{
	return build_node_in(b, b->g, op, in, out);
}

static inline Onnx__AttributeProto *build_attr(struct build *b, Onnx__NodeProto *n, const char *name,
					       Onnx__AttributeProto__AttributeType type)
{
	Onnx__AttributeProto *a = arena_alloc(&b->a, sizeof(*a));

	onnx__attribute_proto__init(a);
	a->name = arena_strdup(&b->a, name);
	a->has_type = 1;
	a->type = type;
	BUILD_PUSH(b, n->attribute, n->n_attribute, a);
	return a;
}

static inline void build_attr_int(struct build *b, Onnx__NodeProto *n, const char *name, int64_t v)
{
	Onnx__AttributeProto *a = build_attr(b, n, name, ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INT);

	a->has_i = 1;
	a->i = v;
}

static inline void build_attr_graph(struct build *b, Onnx__NodeProto *n, const char *name,
				    Onnx__GraphProto *g)
{
	build_attr(b, n, name, ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__GRAPH)->g = g;
}

/* appends a field that no schema knows, with a payload of its own */
static inline void build_unknown(struct build *b, ProtobufCMessage *msg, unsigned tag, const char *payload)
{
	size_t n = strlen(payload);
	ProtobufCMessageUnknownField f = { .tag = tag, .wire_type = PROTOBUF_C_WIRE_TYPE_LENGTH_PREFIXED };
	uint8_t *data = arena_alloc(&b->a, n + 1);

	data[0] = (uint8_t)n; /* a length of one byte */
	memcpy(data + 1, payload, n);
	f.data = data;
	f.len = n + 1;
	BUILD_PUSH(b, msg->unknown_fields, msg->n_unknown_fields, f);
}

static inline uint8_t *build_pack(struct build *b, size_t *n)
{
	uint8_t *bytes = arena_alloc(&b->a, onnx__model_proto__get_packed_size(b->m) + 1);

	*n = onnx__model_proto__pack(b->m, bytes);
	return bytes;
}

static inline enum fettle_status build_decode(struct build *b, struct model **out, const char *path,
					      struct err *err)
{
	size_t n;
	const uint8_t *bytes = build_pack(b, &n);

	return model_decode(out, bytes, n, path, err);
}

#endif
