/* ONNX bytes -> struct model. */
#include "model/internal.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NESTING_MAX = 100, BLOWUP_MAX = 512, REST_AFTER = 16 << 20 };

/*
 * protobuf-c allocates a message's parts one by one: give it the arena, so that one call frees them
 * and edited and decoded parts can be mixed. A crafted file may repeat a field so that each repetition
 * copies all before it; no honest one needs BLOWUP_MAX times its size.
 */
struct pb_arena {
	struct arena *arena;
	size_t limit;
	const struct bytes
		*file; /* that is decoded, if it is one: what was copied need not stay in memory; or NULL */
	size_t rested; /* the arena's size when that was last said */
};

static void *pb_alloc(void *data, size_t size)
{
	struct pb_arena *pb = data;
	char *p = NULL;

	if (size < pb->limit && pb->arena->used <= pb->limit - size)
		p = arena_try(pb->arena, size + 1);
	if (pb->file && pb->arena->used - pb->rested > REST_AFTER) {
		bytes_rest(pb->file);
		pb->rested = pb->arena->used;
	}
	if (p)
		p[size] = '\0'; /* protobuf-c does not terminate `bytes`, and node_str() reads them as text */
	return p;
}

static void pb_free(void *data, void *p)
{
	(void)data;
	(void)p;
}

static bool varint(const uint8_t **p, const uint8_t *end, uint64_t *v)
{
	int shift;

	*v = 0;
	for (shift = 0; shift < 64 && *p < end; shift += 7) {
		uint8_t b = *(*p)++;

		*v |= (uint64_t)(b & 127) << shift;
		if (!(b & 128))
			return true;
	}
	return false;
}

/*
 * protobuf-c recurses as deep as the file nests and would let a crafted one exhaust the stack, so
 * the nesting is checked before. Returns the depth, or NESTING_MAX + 1 if deeper or malformed.
 */
static int nesting(const ProtobufCMessageDescriptor *d, const uint8_t *p, const uint8_t *end, int depth)
{
	int deepest = depth;

	while (p < end && depth <= NESTING_MAX) {
		const ProtobufCFieldDescriptor *f;
		uint64_t key, len;

		if (!varint(&p, end, &key) || !(key >> 3))
			return NESTING_MAX + 1;
		switch (key & 7) {
		case 0:
			if (!varint(&p, end, &len))
				return NESTING_MAX + 1;
			continue;
		case 1:
			len = 8;
			break;
		case 5:
			len = 4;
			break;
		case 2:
			if (!varint(&p, end, &len))
				return NESTING_MAX + 1;
			break;
		default:
			return NESTING_MAX + 1;
		}
		if (len > (uint64_t)(end - p))
			return NESTING_MAX + 1;
		f = key >> 3 <= UINT32_MAX ? protobuf_c_message_descriptor_get_field(d, (unsigned)(key >> 3))
					   : NULL;
		if ((key & 7) == 2 && f && f->type == PROTOBUF_C_TYPE_MESSAGE) {
			int sub = nesting(f->descriptor, p, p + len, depth + 1);

			if (sub > deepest)
				deepest = sub;
		}
		p += len;
	}
	return deepest;
}

void *dup_array(struct arena *a, const void *src, size_t n, size_t size)
{
	return n ? memcpy(arena_alloc(a, n * size), src, n * size) : NULL;
}

static const char *text(const char *s)
{
	return s ? s : "";
}

void model_use_name(struct model *m, const char *name)
{
	if (name && *name)
		map_set(&m->names, name, 1);
}

struct value read_value(Onnx__ValueInfoProto *v)
{
	struct value out = { .name = text(v->name), .proto = v };
	struct tensor *t = &out.type;
	const Onnx__TypeProto__Tensor *tt;
	size_t i;

	*t = (struct tensor)TENSOR_INIT;
	t->rank = -1;
	if (!v->type || v->type->value_case != ONNX__TYPE_PROTO__VALUE_TENSOR_TYPE || !v->type->tensor_type)
		return out;
	tt = v->type->tensor_type;
	t->dtype = (enum dtype)tt->elem_type;
	if (!tt->shape || tt->shape->n_dim > TENSOR_RANK_MAX)
		return out;
	t->rank = (int)tt->shape->n_dim;
	for (i = 0; i < tt->shape->n_dim; i++) {
		const Onnx__TensorShapeProto__Dimension *d = tt->shape->dim[i];

		t->dims[i] = d->value_case == ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_VALUE &&
					     d->dim_value >= 0
				     ? d->dim_value
				     : -1;
		if (!i && d->value_case == ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_PARAM)
			out.batch = d->dim_param;
	}
	return out;
}

struct node *read_node(struct model *m, Onnx__NodeProto *p)
{
	struct node *n = arena_alloc(&m->arena, sizeof(*n));
	size_t i;

	n->op = text(p->op_type);
	n->domain = p->domain && strcmp(p->domain, "ai.onnx") != 0 ? p->domain : "";
	n->name = text(p->name);
	n->in = dup_array(&m->arena, p->input, p->n_input, sizeof(*n->in));
	n->out = dup_array(&m->arena, p->output, p->n_output, sizeof(*n->out));
	n->attrs = dup_array(&m->arena, p->attribute, p->n_attribute, sizeof(*n->attrs));
	n->n_in = p->n_input;
	n->n_out = p->n_output;
	n->n_attrs = p->n_attribute;
	n->proto = p;
	model_use_name(m, n->name);
	for (i = 0; i < n->n_in; i++)
		model_use_name(m, n->in[i]);
	for (i = 0; i < n->n_out; i++)
		model_use_name(m, n->out[i]);
	read_captured(m, n);
	return n;
}

static enum fettle_status read_init(struct model *m, Onnx__TensorProto *p, struct err *err)
{
	struct init *w = arena_alloc(&m->arena, sizeof(*w));
	size_t i;

	w->name = text(p->name);
	w->proto = p;
	w->t.dtype = (enum dtype)p->data_type;
	if (p->n_dims > TENSOR_RANK_MAX)
		return fail(err, FETTLE_UNSUPPORTED, "constant '%s' has %zu dimensions, %d is the most",
			    w->name, p->n_dims, TENSOR_RANK_MAX);
	w->t.rank = (int)p->n_dims;
	for (i = 0; i < p->n_dims; i++)
		w->t.dims[i] = p->dims[i];
	if (tensor_count(&w->t) < 0)
		return fail(err, FETTLE_INVALID, "constant '%s' has an impossible shape", w->name);
	if (!*w->name)
		return fail(err, FETTLE_INVALID, "constant %zu has no name", m->inits.n);
	if (map_get(&m->init_index, w->name) != MAP_NONE)
		return fail(err, FETTLE_INVALID, "two constants are named '%s'", w->name);
	model_use_name(m, w->name);
	map_set(&m->init_index, w->name, m->inits.n);
	VEC_PUSH(&m->inits, w);
	return FETTLE_OK;
}

static struct value *read_values(struct model *m, Onnx__ValueInfoProto **p, size_t n, bool skip_inits,
				 size_t *count)
{
	struct value *v = arena_alloc(&m->arena, n * sizeof(*v));
	size_t i;

	*count = 0;
	for (i = 0; i < n; i++) {
		const char *name = text(p[i]->name);

		model_use_name(m, name);
		if (skip_inits && map_get(&m->init_index, name) != MAP_NONE)
			continue;
		v[(*count)++] = read_value(p[i]);
	}
	return v;
}

static enum fettle_status read_opset(struct model *m, const Onnx__ModelProto *p, struct err *err)
{
	int64_t version = 1; /* of files older than IR version 3, which import nothing */
	bool imports = !p->n_opset_import;
	size_t i;

	for (i = 0; i < p->n_opset_import; i++) {
		const char *domain = text(p->opset_import[i]->domain);

		if (*domain && strcmp(domain, "ai.onnx") != 0)
			continue;
		imports = true;
		version = p->opset_import[i]->version;
	}
	if (!imports)
		return FETTLE_OK; /* only ops of other domains */
	if (version < MODEL_OPSET_MIN)
		return fail(err, FETTLE_UNSUPPORTED, "opset %lld, need %d or later", (long long)version,
			    MODEL_OPSET_MIN);
	m->opset = version > INT_MAX ? INT_MAX : (int)version;
	return FETTLE_OK;
}

static enum fettle_status read_model(struct model *m, Onnx__ModelProto *p, struct err *err)
{
	Onnx__GraphProto *g = p->graph;
	enum fettle_status st;
	size_t i;

	if (!g)
		return fail(err, FETTLE_INVALID, "the file has no graph, so it is no ONNX model");
	st = read_opset(m, p, err);
	if (st)
		return st;
	for (i = 0; i < g->n_initializer; i++) {
		st = read_init(m, g->initializer[i], err);
		if (st)
			return st;
	}
	for (i = 0; i < g->n_node; i++)
		VEC_PUSH(&m->nodes, read_node(m, g->node[i]));
	m->inputs = read_values(m, g->input, g->n_input, true, &m->n_inputs);
	m->outputs = read_values(m, g->output, g->n_output, false, &m->n_outputs);
	for (i = 0; i < g->n_value_info; i++) {
		struct value v = read_value(g->value_info[i]);

		model_use_name(m, v.name);
		model_declare(m, &v);
	}
	for (i = 0; i < g->n_sparse_initializer; i++) {
		const Onnx__TensorProto *values = g->sparse_initializer[i]->values;

		if (values && values->name) {
			model_use_name(m, values->name);
			map_set(&m->sparse, values->name, 1);
		}
	}
	return resolve_external(m, p, err);
}

static enum fettle_status decode(struct model **out, const struct bytes *from, bool mapped, const char *path,
				 struct err *err)
{
	struct model *m = xcalloc(1, sizeof(*m));
	struct pb_arena pb = { &m->arena, ((size_t)1 << 20) + BLOWUP_MAX * from->n, mapped ? from : NULL, 0 };
	ProtobufCAllocator alloc = { pb_alloc, pb_free, &pb };
	enum fettle_status st = FETTLE_OK;

	m->path = path ? xstrdup(path) : NULL;
	if (nesting(&onnx__model_proto__descriptor, from->p, from->p + from->n, 0) <= NESTING_MAX)
		m->proto = onnx__model_proto__unpack(&alloc, from->n, from->p);
	if (!m->proto)
		st = fail(err, FETTLE_INVALID,
			  "not an ONNX model (its protobuf is damaged, cut short or nested too deep)");
	else
		st = read_model(m, m->proto, err);
	if (st) {
		model_free(m);
		return fail_prefix(err, st, "cannot load %s", path ? path : "model");
	}
	*out = m;
	return FETTLE_OK;
}

enum fettle_status model_decode(struct model **out, const void *bytes, size_t n, const char *path,
				struct err *err)
{
	return decode(out, &(struct bytes){ bytes, n }, false, path, err);
}

enum fettle_status model_load(struct model **out, const char *path, struct err *err)
{
	struct bytes raw = BYTES_INIT;
	enum fettle_status st;

	st = file_map(path, &raw, err);
	if (st)
		return st;
	if (raw.n > INT32_MAX)
		st = fail(err, FETTLE_INVALID,
			  "cannot load %s: %zu bytes, an ONNX file holds at most 2 GB (larger weights go "
			  "into external data)",
			  path, raw.n);
	else
		st = decode(out, &raw, true, path, err);
	bytes_release(&raw);
	return st;
}

void model_free(struct model *m)
{
	size_t i;

	if (!m)
		return;
	for (i = 0; i < m->files.n; i++) {
		bytes_release(&m->files.v[i]->bytes);
		free(m->files.v[i]->location);
		free(m->files.v[i]);
	}
	VEC_RELEASE(&m->files);
	VEC_RELEASE(&m->gone);
	VEC_RELEASE(&m->nodes);
	VEC_RELEASE(&m->inits);
	VEC_RELEASE(&m->values);
	map_release(&m->names);
	map_release(&m->value_index);
	map_release(&m->init_index);
	map_release(&m->sparse);
	free(m->path);
	arena_release(&m->arena);
	free(m);
}

void model_rest(const struct model *m)
{
	size_t i;

	for (; m; m = m->base)
		for (i = 0; i < m->files.n; i++)
			bytes_rest(&m->files.v[i]->bytes);
}

struct model *model_derive(const struct model *b)
{
	struct model *m = xcalloc(1, sizeof(*m));
	size_t i;

	m->base = b;
	m->proto = b->proto;
	m->opset = b->opset;
	m->runtime = b->runtime;
	m->fresh = b->fresh;
	m->path = b->path ? xstrdup(b->path) : NULL;
	m->inputs = dup_array(&m->arena, b->inputs, b->n_inputs, sizeof(*m->inputs));
	m->outputs = dup_array(&m->arena, b->outputs, b->n_outputs, sizeof(*m->outputs));
	m->n_inputs = b->n_inputs;
	m->n_outputs = b->n_outputs;
	for (i = 0; i < b->nodes.n; i++) {
		struct node *n = dup_array(&m->arena, b->nodes.v[i], 1, sizeof(*n));

		n->in = dup_array(&m->arena, n->in, n->n_in, sizeof(*n->in));
		n->out = dup_array(&m->arena, n->out, n->n_out, sizeof(*n->out));
		n->attrs = dup_array(&m->arena, n->attrs, n->n_attrs, sizeof(*n->attrs));
		VEC_PUSH(&m->nodes, n);
	}
	for (i = 0; i < b->inits.n; i++)
		VEC_PUSH(&m->inits,
			 (struct init *)dup_array(&m->arena, b->inits.v[i], 1, sizeof(struct init)));
	map_copy(&m->init_index, &b->init_index);
	map_copy(&m->sparse, &b->sparse);
	m->proto = derive_proto(m, b->proto);
	return m;
}
