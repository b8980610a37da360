/* struct model -> bytes: a file, or a session's input. */
#include "model/internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum {
	SPLIT_MIN = 1024, /* smaller constants stay in the model file: shape inference reads them */
	EXT_ALIGN = 64,
	MESSAGE_MAX = INT32_MAX, /* what protobuf's readers accept */
};

Onnx__NodeProto *node_proto(struct arena *a, const struct node *n)
{
	Onnx__NodeProto *p = arena_alloc(a, sizeof(*p));

	if (n->proto)
		*p = *(const Onnx__NodeProto *)n->proto;
	else
		onnx__node_proto__init(p);
	p->op_type = *n->op ? (char *)(uintptr_t)n->op : p->op_type;
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

/* how many bytes it has, in memory or not */
static size_t init_size(const struct init *w)
{
	size_t n;

	init_bytes(w, &n);
	return w->late.write || init_is_outside(w) ? tensor_bytes(&w->t) : n;
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
	add_entry(a, p, "length", arena_strfmt(a, "%zu", init_size(w)));
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
	p->raw_data.data = (void *)(uintptr_t)init_bytes(w, &p->raw_data.len);
	return p;
}

static void note_outputs(struct map *made, char *const *out, size_t n)
{
	size_t i;

	for (i = 0; i < n; i++)
		map_set(made, out[i], 1);
}

/* value_info of values that are gone would confuse a checker */
static void keep_value_info(struct arena *a, const struct model *m, Onnx__GraphProto *g)
{
	const Onnx__GraphProto *from = ((const Onnx__ModelProto *)m->proto)->graph;
	struct map before = MAP_INIT, now = MAP_INIT;
	size_t i;

	for (i = 0; i < from->n_node; i++)
		note_outputs(&before, from->node[i]->output, from->node[i]->n_output);
	for (i = 0; i < from->n_initializer; i++)
		map_set(&before, from->initializer[i]->name, 1);
	for (i = 0; i < g->n_node; i++)
		note_outputs(&now, g->node[i]->output, g->node[i]->n_output);
	g->value_info = arena_alloc(a, from->n_value_info * sizeof(*g->value_info));
	g->n_value_info = 0;
	for (i = 0; i < from->n_value_info; i++) {
		const char *name = from->value_info[i]->name;

		if (!name || map_get(&before, name) == MAP_NONE || map_get(&now, name) != MAP_NONE ||
		    model_init(m, name))
			g->value_info[g->n_value_info++] = from->value_info[i];
	}
	map_release(&before);
	map_release(&now);
}

/* inputs as they were, less those that only declared the default of a constant that is gone */
static void keep_inputs(struct arena *a, const struct model *m, Onnx__GraphProto *g)
{
	const Onnx__GraphProto *from = ((const Onnx__ModelProto *)m->proto)->graph;
	size_t i, j, k;

	g->input = arena_alloc(a, (from->n_input + m->n_inputs) * sizeof(*g->input));
	g->n_input = 0;
	for (i = j = 0; i < from->n_input; i++) {
		bool real = j < m->n_inputs && m->inputs[j].proto == from->input[i];

		j += real;
		if (real || (from->input[i]->name && model_init(m, from->input[i]->name)))
			g->input[g->n_input++] = from->input[i];
	}
	for (; j < m->n_inputs; j++) /* constants that became inputs */
		g->input[g->n_input++] = m->inputs[j].proto;
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
	if (n && fwrite(bytes, 1, n, ((struct file_buffer *)b)->f) != n) /* an empty constant has no bytes */
		return;
}

/* all bytes into reach; those that are outside and go to a file again (`copied`) can stay there */
static enum fettle_status fetch_all(struct model *m, bool copied, struct err *err)
{
	enum fettle_status st = FETTLE_OK;
	size_t i;

	for (i = 0; i < m->inits.n && !st; i++) {
		struct init *w = m->inits.v[i];

		if (!w->late.write && !(copied && init_is_outside(w) && tensor_bytes(&w->t) >= SPLIT_MIN))
			st = fetch_bytes(m, w, err);
	}
	return st;
}

static bool has_late(const struct model *m)
{
	size_t i;

	for (i = 0; i < m->inits.n; i++)
		if (m->inits.v[i]->late.write)
			return true;
	return false;
}

enum fettle_status model_save(struct model *m, const char *path, struct err *err)
{
	return model_save_split(m, path, MODEL_INLINE_MAX, err);
}

/* is it large enough for the file beside the model? Strings have no bytes. */
static bool splits(const struct init *w, size_t min)
{
	return w->late.write || (init_size(w) && init_size(w) >= min);
}

/* the model as one message, its large constants in the file `data` if there is one to be */
static Onnx__ModelProto *lay_out(struct arena *a, const struct model *m, const char *data)
{
	Onnx__TensorProto **inits = arena_alloc(a, m->inits.n * sizeof(*inits));
	size_t offset = 0, i, n;

	for (i = 0; i < m->inits.n; i++) {
		const struct init *w = m->inits.v[i];

		if (!data || !splits(w, SPLIT_MIN)) {
			inits[i] = inline_tensor(a, w);
			continue;
		}
		inits[i] = external_tensor(a, w, data, offset);
		n = init_size(w);
		offset += n + -n % EXT_ALIGN;
	}
	return to_proto(a, m, inits);
}

static enum fettle_status copy_outside(const struct model *m, const struct init *w, FILE *f, struct err *err)
{
	enum { PIECE = 1 << 20 };
	struct weight_reader r;
	enum fettle_status st = weight_open(&r, m, w, err);
	char *piece = xmalloc(PIECE);
	size_t at, n;

	for (at = 0; !st && at < r.n && !ferror(f); at += n) {
		n = r.n - at < PIECE ? r.n - at : PIECE;
		st = weight_read(&r, at, piece, n, err);
		if (!st)
			fwrite(piece, 1, n, f);
	}
	weight_close(&r);
	free(piece);
	return st;
}

/* the constants in the order and at the offsets of lay_out(). A failure to write leaves ferror() set. */
static enum fettle_status write_data(const struct model *m, FILE *f, struct err *err)
{
	static const char zeros[EXT_ALIGN];
	enum fettle_status st = FETTLE_OK;
	size_t i, n;

	for (i = 0; i < m->inits.n && !st && !ferror(f); i++) {
		const struct init *w = m->inits.v[i];
		const void *p = init_bytes(w, &n);

		if (!splits(w, SPLIT_MIN))
			continue;
		if (w->late.write)
			st = w->late.write(w->late.self, f, err);
		else if (p)
			fwrite(p, 1, n, f);
		else
			st = copy_outside(m, w, f, err);
		fwrite(zeros, 1, -init_size(w) % EXT_ALIGN, f);
	}
	return st;
}

static bool any_splits(const struct model *m)
{
	size_t i;

	for (i = 0; i < m->inits.n; i++)
		if (splits(m->inits.v[i], SPLIT_MIN))
			return true;
	return false;
}

enum fettle_status model_save_split(struct model *m, const char *path, size_t inline_max, struct err *err)
{
	struct file_out main = FILE_OUT_INIT, data = FILE_OUT_INIT;
	struct file_buffer buf = { { append }, NULL };
	struct arena a = ARENA_INIT;
	char *data_path = arena_strfmt(&a, "%s.data", path);
	Onnx__ModelProto *p;
	const bool late = has_late(m);
	enum fettle_status st;
	size_t n;

	st = fetch_all(m, late, err);
	if (st) {
		fail_prefix(err, st, "cannot save %s", path);
		goto out;
	}
	p = late ? NULL : lay_out(&a, m, NULL);
	n = late ? 0 : onnx__model_proto__get_packed_size(p);
	if (late || (n > inline_max && any_splits(m))) {
		p = lay_out(&a, m, path_base(data_path));
		n = onnx__model_proto__get_packed_size(p);
		st = file_create(&data, data_path, err);
	}
	if (!st && n > MESSAGE_MAX)
		st = fail(err, FETTLE_UNSUPPORTED,
			  "cannot save %s: %zu bytes besides its weights, 2 GB is the most", path, n);
	if (!st)
		st = file_create(&main, path, err);
	if (st)
		goto out;
	if (data.f)
		st = write_data(m, data.f, err);
	if (st) {
		fail_prefix(err, st, "cannot save %s", path);
		goto out;
	}
	buf.f = main.f;
	protobuf_c_message_pack_to_buffer(&p->base, &buf.base);
	if (fflush(main.f) == 0 && !ferror(main.f)) /* else its commit says why, and the data never appear */
		st = file_commit(&data, err);
	if (!st)
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
	size_t i;

	st = has_late(m) ? fail(err, FETTLE_UNSUPPORTED,
				"cannot run the model: some of its weights are only made when it is saved")
			 : fetch_all(m, false, err);
	if (st)
		goto out;
	out->weights = xcalloc(m->inits.n, sizeof(struct init *));
	for (i = 0; i < m->inits.n; i++) {
		const struct init *w = m->inits.v[i];

		if (splits(w, split)) {
			inits[i] = external_tensor(&a, w, "fettle-memory", 0);
			out->weights[out->n_weights++] = w;
		} else {
			inits[i] = inline_tensor(&a, w);
		}
	}
	p = to_proto(&a, m, inits);
	out->n = onnx__model_proto__get_packed_size(p);
	if (out->n > MESSAGE_MAX)
		st = fail(err, FETTLE_UNSUPPORTED,
			  "cannot pack the model: %zu bytes besides its weights, 2 GB is the most", out->n);
	else
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

static size_t size_beside(const char *path, const char *location, struct map *seen)
{
	struct stat sb;
	char *file;
	size_t n;

	if (map_get(seen, location) != MAP_NONE)
		return 0;
	map_set(seen, location, 1);
	file = path_beside(path, location);
	n = stat(file, &sb) == 0 ? (size_t)sb.st_size : 0;
	free(file);
	return n;
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
	for (i = 0; i < m->files.n; i++) /* what attributes and subgraphs refer to is open already */
		total += size_beside(path, m->files.v[i]->location, &seen);
	for (i = 0; i < m->inits.n; i++) {
		const Onnx__TensorProto *p = m->inits.v[i]->proto;

		for (j = 0; is_external(m->inits.v[i]) && j < p->n_external_data; j++) {
			const Onnx__StringStringEntryProto *e = p->external_data[j];

			if (e->key && e->value && strcmp(e->key, "location") == 0)
				total += size_beside(path, e->value, &seen);
		}
	}
	map_release(&seen);
	model_free(m);
	return total;
}
