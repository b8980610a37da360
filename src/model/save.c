/* struct model -> bytes: a file, or a session's input. */
#include "model/internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum {
	SPLIT_MIN = 1024, /* smaller constants stay in the model file: shape inference reads them */
	EXT_ALIGN = 64,
};

static Onnx__NodeProto *node_proto(struct arena *a, const struct node *n)
{
	Onnx__NodeProto *p = arena_alloc(a, sizeof(*p));

	if (n->proto)
		*p = *(const Onnx__NodeProto *)n->proto;
	else
		onnx__node_proto__init(p);
	p->op_type = (char *)(uintptr_t)n->op;
	if (!n->proto || strcmp(n->domain, p->domain ? p->domain : "") != 0)
		if (!p->domain || strcmp(p->domain, "ai.onnx") != 0 || *n->domain)
			p->domain = *n->domain ? (char *)(uintptr_t)n->domain : NULL;
	p->name = *n->name ? (char *)(uintptr_t)n->name : p->name;
	p->n_input = n->n_in;
	p->input = (char **)(uintptr_t)n->in;
	p->n_output = n->n_out;
	p->output = (char **)(uintptr_t)n->out;
	p->n_attribute = n->n_attrs;
	p->attribute = (Onnx__AttributeProto **)n->attrs;
	return p;
}

/* a TensorProto with w's name, type and shape and no data yet */
static Onnx__TensorProto *bare_tensor(struct arena *a, const struct init *w)
{
	Onnx__TensorProto *p = arena_alloc(a, sizeof(*p));

	if (w->proto) {
		*p = *(const Onnx__TensorProto *)w->proto;
		p->n_float_data = p->n_int32_data = p->n_int64_data = 0;
		p->n_double_data = p->n_uint64_data = p->n_string_data = 0;
		p->has_raw_data = 0;
		p->n_external_data = 0;
		p->has_data_location = 0;
		p->data_location = ONNX__TENSOR_PROTO__DATA_LOCATION__DEFAULT;
		return p;
	}
	onnx__tensor_proto__init(p);
	p->name = (char *)(uintptr_t)w->name;
	p->has_data_type = 1;
	p->data_type = w->t.dtype;
	p->n_dims = (size_t)w->t.rank;
	p->dims = dup_array(a, w->t.dims, p->n_dims, sizeof(*p->dims));
	return p;
}

static void add_entry(struct arena *a, Onnx__TensorProto *p, const char *key, char *value)
{
	Onnx__StringStringEntryProto *e = arena_alloc(a, sizeof(*e));

	onnx__string_string_entry_proto__init(e);
	e->key = (char *)(uintptr_t)key;
	e->value = value;
	p->external_data[p->n_external_data++] = e;
}

static Onnx__TensorProto *external_tensor(struct arena *a, const struct init *w, const char *location,
					  size_t offset)
{
	Onnx__TensorProto *p = bare_tensor(a, w);

	p->external_data = arena_alloc(a, 3 * sizeof(*p->external_data));
	p->has_data_location = 1;
	p->data_location = ONNX__TENSOR_PROTO__DATA_LOCATION__EXTERNAL;
	add_entry(a, p, "location", arena_strdup(a, location));
	add_entry(a, p, "offset", arena_strfmt(a, "%zu", offset));
	add_entry(a, p, "length", arena_strfmt(a, "%zu", tensor_bytes(&w->t)));
	return p;
}

static bool is_external(const struct init *w)
{
	const Onnx__TensorProto *p = w->proto;

	return p && p->data_location == ONNX__TENSOR_PROTO__DATA_LOCATION__EXTERNAL;
}

static Onnx__TensorProto *inline_tensor(struct arena *a, const struct init *w)
{
	Onnx__TensorProto *p;

	if (w->proto && !is_external(w))
		return w->proto; /* as it came, typed fields and all */
	p = bare_tensor(a, w);
	p->has_raw_data = 1;
	p->raw_data.data = w->t.data;
	p->raw_data.len = tensor_bytes(&w->t);
	return p;
}

/* value_info of tensors that are gone would confuse a checker */
static void keep_value_info(struct arena *a, const struct model *m, Onnx__GraphProto *g)
{
	const Onnx__GraphProto *from = ((const Onnx__ModelProto *)m->proto)->graph;
	struct map made = MAP_INIT;
	size_t i, j;

	for (i = 0; i < m->nodes.n; i++)
		for (j = 0; j < m->nodes.v[i]->n_out; j++)
			map_set(&made, m->nodes.v[i]->out[j], 1);
	g->value_info = arena_alloc(a, from->n_value_info * sizeof(*g->value_info));
	g->n_value_info = 0;
	for (i = 0; i < from->n_value_info; i++)
		if (!from->value_info[i]->name || map_get(&made, from->value_info[i]->name) != MAP_NONE ||
		    model_init(m, from->value_info[i]->name))
			g->value_info[g->n_value_info++] = from->value_info[i];
	map_release(&made);
}

/* inputs as they were, less those that only declared the default of a constant that is gone */
static void keep_inputs(struct arena *a, const struct model *m, Onnx__GraphProto *g)
{
	const Onnx__GraphProto *from = ((const Onnx__ModelProto *)m->proto)->graph;
	size_t i, j, k;

	g->input = arena_alloc(a, (from->n_input + 1) * sizeof(*g->input));
	g->n_input = 0;
	for (i = j = 0; i < from->n_input; i++) {
		bool real = j < m->n_inputs && m->inputs[j].proto == from->input[i];

		j += real;
		if (real || (from->input[i]->name && model_init(m, from->input[i]->name)))
			g->input[g->n_input++] = from->input[i];
	}
	g->output = arena_alloc(a, m->n_outputs * sizeof(*g->output));
	g->n_output = m->n_outputs;
	for (k = 0; k < m->n_outputs; k++)
		g->output[k] = m->outputs[k].proto;
}

/* the model as protobuf, its initializers given */
static Onnx__ModelProto *to_proto(struct arena *a, const struct model *m, Onnx__TensorProto **inits)
{
	Onnx__ModelProto *p = arena_alloc(a, sizeof(*p));
	Onnx__GraphProto *g = arena_alloc(a, sizeof(*g));
	size_t i;

	*p = *(const Onnx__ModelProto *)m->proto;
	*g = *p->graph;
	p->graph = g;
	g->n_node = m->nodes.n;
	g->node = arena_alloc(a, g->n_node * sizeof(*g->node));
	for (i = 0; i < m->nodes.n; i++)
		g->node[i] = node_proto(a, m->nodes.v[i]);
	g->n_initializer = m->inits.n;
	g->initializer = inits;
	keep_value_info(a, m, g);
	keep_inputs(a, m, g);
	return p;
}

struct file_buffer {
	ProtobufCBuffer base;
	FILE *f;
};

static void append(ProtobufCBuffer *b, size_t n, const uint8_t *bytes)
{
	/* a short write leaves ferror() set, which file_commit() checks */
	if (fwrite(bytes, 1, n, ((struct file_buffer *)b)->f) != n)
		return;
}

static enum fettle_status fetch_all(struct model *m, size_t *total, struct err *err)
{
	enum fettle_status st;
	size_t i;

	*total = 0;
	for (i = 0; i < m->inits.n; i++) {
		struct init *w = m->inits.v[i];

		if (w->proto && !is_external(w) && !dtype_size(w->t.dtype))
			continue; /* strings and types we do not know stay as they are */
		st = model_weight(m, w, err);
		if (st)
			return st;
		*total += tensor_bytes(&w->t);
	}
	return FETTLE_OK;
}

enum fettle_status model_save(struct model *m, const char *path, struct err *err)
{
	return model_save_split(m, path, MODEL_INLINE_MAX, err);
}

enum fettle_status model_save_split(struct model *m, const char *path, size_t inline_max, struct err *err)
{
	static const char zeros[EXT_ALIGN];
	struct file_out main = FILE_OUT_INIT, data = FILE_OUT_INIT;
	struct file_buffer buf = { { append }, NULL };
	struct arena a = ARENA_INIT;
	Onnx__TensorProto **inits = arena_alloc(&a, m->inits.n * sizeof(*inits));
	char *data_path = arena_strfmt(&a, "%s.data", path);
	size_t total, offset = 0, i;
	enum fettle_status st;

	st = fetch_all(m, &total, err);
	if (!st)
		st = file_create(&main, path, err);
	if (!st && total > inline_max)
		st = file_create(&data, data_path, err);
	if (st)
		goto out;
	for (i = 0; i < m->inits.n; i++) {
		const struct init *w = m->inits.v[i];
		size_t n = w->t.data ? tensor_bytes(&w->t) : 0, pad = -offset % EXT_ALIGN;

		if (!data.f || n < SPLIT_MIN) {
			inits[i] = inline_tensor(&a, w);
			continue;
		}
		inits[i] = external_tensor(&a, w, path_base(data_path), offset + pad);
		if (fwrite(zeros, 1, pad, data.f) != pad || fwrite(w->t.data, 1, n, data.f) != n)
			break; /* file_commit() reports it */
		offset += pad + n;
	}
	if (data.f)
		st = file_commit(&data, err);
	if (st)
		goto out;
	buf.f = main.f;
	protobuf_c_message_pack_to_buffer(&to_proto(&a, m, inits)->base, &buf.base);
	st = file_commit(&main, err);
out:
	file_abandon(&data);
	file_abandon(&main);
	arena_release(&a);
	return st;
}

enum fettle_status model_pack(struct model *m, size_t split, struct packed *out, struct err *err)
{
	struct arena a = ARENA_INIT;
	Onnx__TensorProto **inits = arena_alloc(&a, m->inits.n * sizeof(*inits));
	Onnx__ModelProto *p;
	enum fettle_status st;
	size_t total, i;

	st = fetch_all(m, &total, err);
	if (st)
		goto out;
	out->weights = xcalloc(m->inits.n, sizeof(struct init *));
	for (i = 0; i < m->inits.n; i++) {
		const struct init *w = m->inits.v[i];

		if (w->t.data && tensor_bytes(&w->t) >= split) {
			inits[i] = external_tensor(&a, w, "fettle-memory", 0);
			out->weights[out->n_weights++] = w;
		} else {
			inits[i] = inline_tensor(&a, w);
		}
	}
	p = to_proto(&a, m, inits);
	out->n = onnx__model_proto__get_packed_size(p);
	st = mem_try(&out->bytes, out->n, 1, "the model's bytes", err);
	if (!st)
		onnx__model_proto__pack(p, out->bytes);
out:
	if (st)
		packed_release(out);
	arena_release(&a);
	return st;
}

void packed_release(struct packed *p)
{
	free(p->bytes);
	free(p->weights);
	*p = (struct packed)PACKED_INIT;
}

size_t model_file_size(const char *path)
{
	struct model *m = NULL;
	struct map seen = MAP_INIT;
	struct stat sb;
	size_t total, i, j;

	if (stat(path, &sb) != 0)
		return 0;
	total = (size_t)sb.st_size;
	if (model_load(&m, path, NULL))
		return total;
	for (i = 0; i < m->inits.n; i++) {
		const Onnx__TensorProto *p = m->inits.v[i]->proto;

		if (!is_external(m->inits.v[i]))
			continue;
		for (j = 0; j < p->n_external_data; j++) {
			const Onnx__StringStringEntryProto *e = p->external_data[j];
			char *file;

			if (!e->key || !e->value || strcmp(e->key, "location") != 0 ||
			    map_get(&seen, e->value) != MAP_NONE)
				continue;
			map_set(&seen, e->value, 1);
			file = path_beside(path, e->value);
			total += stat(file, &sb) == 0 ? (size_t)sb.st_size : 0;
			free(file);
		}
	}
	map_release(&seen);
	model_free(m);
	return total;
}
