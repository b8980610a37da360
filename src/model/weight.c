/* The bytes of constants: raw, in typed fields, or in files beside the model. */
#include "model/internal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/str.h"

static const char *ext_entry(const Onnx__TensorProto *p, const char *key)
{
	size_t i;

	for (i = 0; i < p->n_external_data; i++)
		if (p->external_data[i]->key && strcmp(p->external_data[i]->key, key) == 0)
			return p->external_data[i]->value;
	return NULL;
}

/* a location is relative to the model's folder and may not leave it */
static bool location_ok(const char *s)
{
	const char *p;

	if (!*s || *s == '/')
		return false;
	for (p = s; p; p = strchr(p, '/')) {
		p += *p == '/';
		if (strcmp(p, "..") == 0 || str_starts(p, "../"))
			return false;
	}
	return true;
}

static enum fettle_status ext_open(struct model *m, const char *location, struct bytes *out, struct err *err)
{
	struct ext_file *f;
	enum fettle_status st;
	char *path;
	size_t i;

	for (i = 0; i < m->files.n; i++)
		if (strcmp(m->files.v[i]->location, location) == 0) {
			*out = m->files.v[i]->bytes;
			return FETTLE_OK;
		}
	f = xcalloc(1, sizeof(*f));
	path = path_beside(m->path ? m->path : "", location);
	st = file_map(path, &f->bytes, err);
	free(path);
	if (st) {
		free(f);
		return st;
	}
	f->location = xstrdup(location);
	VEC_PUSH(&m->files, f);
	*out = f->bytes;
	return FETTLE_OK;
}

static bool parse_size(const char *s, size_t *out)
{
	char *end;

	if (!s || *s < '0' || *s > '9')
		return false;
	*out = strtoull(s, &end, 10);
	return *end == '\0';
}

/* Where the entries of a constant say that its bytes are. SIZE_MAX: no length is given. */
static enum fettle_status ext_place(const Onnx__TensorProto *p, const char **location, size_t *offset,
				    size_t *length, struct err *err)
{
	const char *offset_text = ext_entry(p, "offset"), *length_text = ext_entry(p, "length");

	*location = ext_entry(p, "location");
	*offset = 0;
	*length = SIZE_MAX;
	if (!*location || !location_ok(*location))
		return fail(err, FETTLE_INVALID,
			    "constant '%s' is in external file '%s', need a path inside the model's folder",
			    p->name ? p->name : "", *location ? *location : "");
	if ((offset_text && !parse_size(offset_text, offset)) ||
	    (length_text && !parse_size(length_text, length)))
		return fail(err, FETTLE_INVALID, "constant '%s': external offset or length is no number",
			    p->name ? p->name : "");
	return FETTLE_OK;
}

/* *want is the size that the type and shape need, or SIZE_MAX to be told what the entry says */
static enum fettle_status ext_data(struct model *m, const Onnx__TensorProto *p, size_t *want,
				   const void **out, struct err *err)
{
	const char *location, *name = p->name ? p->name : "";
	size_t offset, length;
	bool has_length;
	struct bytes file;
	enum fettle_status st = ext_place(p, &location, &offset, &length, err);

	if (st)
		return st;
	has_length = length != SIZE_MAX;
	length = has_length ? length : *want;
	if (!*want && !length)
		return FETTLE_OK; /* the file may be empty, or not there at all */
	st = ext_open(m, location, &file, err);
	if (st)
		return st;
	if (*want == SIZE_MAX)
		*want = length != SIZE_MAX ? length : offset <= file.n ? file.n - offset : 0;
	if ((has_length && length != *want) || offset > file.n || *want > file.n - offset)
		return fail(err, FETTLE_INVALID,
			    "constant '%s' needs %zu bytes at %zu of %s, which has %zu (entry says %zu)",
			    name, *want, offset, location, file.n, length);
	*out = file.p + offset;
	return FETTLE_OK;
}

/* typed fields hold small types one per int32: narrow them */
static enum fettle_status typed_data(struct model *m, const Onnx__TensorProto *p, struct tensor *t,
				     size_t count, struct err *err)
{
	const size_t size = dtype_size(t->dtype);
	size_t have, i;

	switch (t->dtype) {
	case DT_F32:
		have = p->n_float_data;
		t->data = p->float_data;
		break;
	case DT_F64:
		have = p->n_double_data;
		t->data = p->double_data;
		break;
	case DT_S64:
		have = p->n_int64_data;
		t->data = p->int64_data;
		break;
	case DT_U64:
		have = p->n_uint64_data;
		t->data = p->uint64_data;
		break;
	case DT_U32:
		have = p->n_uint64_data;
		break;
	default:
		have = p->n_int32_data;
		if (t->dtype == DT_S32)
			t->data = p->int32_data;
	}
	if (have != count) {
		t->data = NULL;
		return fail(err, FETTLE_INVALID, "constant '%s' has %zu values, its shape needs %zu",
			    p->name ? p->name : "", have, count);
	}
	if (t->data || !count) {
		t->data = t->data ? t->data : arena_alloc(&m->arena, 1);
		return FETTLE_OK;
	}
	t->data = arena_try(&m->arena, count * size);
	if (!t->data)
		return fail(err, FETTLE_SYSTEM, "constant '%s': not enough memory", p->name ? p->name : "");
	for (i = 0; i < count; i++) {
		if (t->dtype == DT_U32)
			((uint32_t *)t->data)[i] = (uint32_t)p->uint64_data[i];
		else if (size == 1)
			((uint8_t *)t->data)[i] = (uint8_t)p->int32_data[i];
		else
			((uint16_t *)t->data)[i] = (uint16_t)p->int32_data[i];
	}
	return FETTLE_OK;
}

static bool is_external(const Onnx__TensorProto *p)
{
	return p->data_location == ONNX__TENSOR_PROTO__DATA_LOCATION__EXTERNAL;
}

bool init_is_outside(const struct init *w)
{
	return w->proto && is_external(w->proto) && !w->t.data && dtype_size(w->t.dtype);
}

bool init_is_lost(const struct init *w)
{
	const Onnx__TensorProto *p = w->proto;
	const char *location;
	size_t offset, length;

	return p && is_external(p) && !ext_place(p, &location, &offset, &length, NULL) &&
	       strstr(location, "_ORT_MEM_ADDR_");
}

static enum fettle_status cannot_read(const char *path, struct err *err)
{
	return fail(err, FETTLE_SYSTEM, "cannot read %s: %s", path, strerror(errno));
}

/* r->n bytes, where p says that they are */
static enum fettle_status open_outside(struct weight_reader *r, const struct model *m,
				       const Onnx__TensorProto *p, struct err *err)
{
	const char *location;
	size_t length;
	struct stat sb;
	char *path;
	enum fettle_status st = ext_place(p, &location, &r->start, &length, err);

	if (st)
		return st;
	path = path_beside(m->path ? m->path : "", location);
	r->fd = open(path, O_RDONLY | O_CLOEXEC);
	if (r->fd < 0 || fstat(r->fd, &sb) != 0)
		st = cannot_read(path, err);
	else if ((length != SIZE_MAX && length != r->n) || r->start > (size_t)sb.st_size ||
		 r->n > (size_t)sb.st_size - r->start)
		st = fail(err, FETTLE_INVALID, "constant '%s' needs %zu bytes at %zu of %s, which has %lld",
			  r->name, r->n, r->start, location, (long long)sb.st_size);
	free(path);
	if (st)
		weight_close(r);
	return st;
}

enum fettle_status weight_open(struct weight_reader *r, const struct model *m, const struct init *w,
			       struct err *err)
{
	*r = (struct weight_reader){
		.fd = -1, .bytes = w->t.data, .n = tensor_bytes(&w->t), .name = w->name
	};
	if (r->bytes)
		return FETTLE_OK;
	if (!init_is_outside(w))
		return fail(err, FETTLE_INVALID, "cannot read constant '%s': it has no bytes", w->name);
	return open_outside(r, m, w->proto, err);
}

enum fettle_status weight_read(const struct weight_reader *r, size_t at, void *to, size_t n, struct err *err)
{
	char *p = to;
	ssize_t got;

	if (r->bytes) {
		memcpy(to, r->bytes + at, n);
		return FETTLE_OK;
	}
	for (; n; n -= (size_t)got, p += got, at += (size_t)got) {
		got = pread(r->fd, p, n, (off_t)(r->start + at));
		if (got < 0 && errno == EINTR)
			got = 0;
		else if (got <= 0)
			return fail(err, FETTLE_SYSTEM, "cannot read constant '%s': %s", r->name,
				    got ? strerror(errno) : "the file has become shorter");
	}
	return FETTLE_OK;
}

void weight_close(struct weight_reader *r)
{
	if (r->fd >= 0)
		close(r->fd);
	r->fd = -1;
}

/* Small constants are read: to map a file of many gigabytes for them takes as much address space. */
static const void *read_small(struct model *m, const Onnx__TensorProto *p, size_t n)
{
	enum { SMALL = 1 << 16 };
	struct weight_reader r = { .fd = -1, .n = n, .name = p->name ? p->name : "" };
	void *to = n && n <= SMALL && !open_outside(&r, m, p, NULL) ? arena_alloc(&m->arena, n) : NULL;

	if (to && weight_read(&r, 0, to, n, NULL))
		to = NULL;
	weight_close(&r);
	return to;
}

static enum fettle_status fetch(struct model *m, const Onnx__TensorProto *p, struct tensor *t,
				struct err *err)
{
	int64_t count = tensor_count(t);
	size_t want = tensor_bytes(t);
	const void *data = NULL;
	enum fettle_status st;

	if (count < 0 || !dtype_size(t->dtype))
		return fail(err, FETTLE_UNSUPPORTED, "constant '%s' is of type %s (%d)",
			    p->name ? p->name : "", dtype_name(t->dtype), t->dtype);
	if (is_external(p)) {
		data = read_small(m, p, want);
		st = data ? FETTLE_OK : ext_data(m, p, &want, &data, err);
		if (st)
			return st;
	} else if (p->has_raw_data) {
		if (p->raw_data.len != want)
			return fail(err, FETTLE_INVALID, "constant '%s' has %zu bytes, its shape needs %zu",
				    p->name ? p->name : "", p->raw_data.len, want);
		data = p->raw_data.data;
	} else {
		return typed_data(m, p, t, (size_t)count, err);
	}
	if (!data || (uintptr_t)data % dtype_size(t->dtype)) { /* a file may put it anywhere */
		void *copy = arena_try(&m->arena, want + 1);

		if (!copy)
			return fail(err, FETTLE_SYSTEM, "constant '%s': not enough memory",
				    p->name ? p->name : "");
		data = want ? memcpy(copy, data, want) : copy;
	}
	t->data = (void *)(uintptr_t)data;
	return FETTLE_OK;
}

enum fettle_status model_weight(struct model *m, struct init *w, struct err *err)
{
	return w->t.data ? FETTLE_OK : fetch(m, w->proto, &w->t, err);
}

/* the bytes of a type that fettle does not know: as many as there are */
static enum fettle_status fetch_opaque(struct model *m, const Onnx__TensorProto *p, const void **out,
				       size_t *n, struct err *err)
{
	if (is_external(p)) {
		*n = SIZE_MAX;
		return ext_data(m, p, n, out, err);
	}
	*out = p->has_raw_data ? p->raw_data.data : NULL;
	*n = *out ? p->raw_data.len : 0;
	return FETTLE_OK;
}

enum fettle_status fetch_bytes(struct model *m, struct init *w, struct err *err)
{
	if (dtype_size(w->t.dtype))
		return model_weight(m, w, err);
	return w->opaque || !w->proto ? FETTLE_OK : fetch_opaque(m, w->proto, &w->opaque, &w->n_opaque, err);
}

const void *init_bytes(const struct init *w, size_t *n)
{
	*n = w->t.data ? tensor_bytes(&w->t) : w->n_opaque;
	return w->t.data ? w->t.data : w->opaque;
}

static enum fettle_status resolve_tensor(struct model *m, Onnx__TensorProto *p, struct err *err)
{
	const void *data = NULL;
	enum fettle_status st;
	size_t n;

	if (!p || !is_external(p))
		return FETTLE_OK;
	st = fetch_opaque(m, p, &data, &n, err);
	if (st)
		return st;
	p->has_raw_data = 1;
	p->raw_data.data = (void *)(uintptr_t)data;
	p->raw_data.len = data ? n : 0;
	p->n_external_data = 0;
	p->has_data_location = 0;
	p->data_location = ONNX__TENSOR_PROTO__DATA_LOCATION__DEFAULT;
	return FETTLE_OK;
}

static enum fettle_status resolve_sparse(struct model *m, Onnx__SparseTensorProto *p, struct err *err)
{
	enum fettle_status st = p ? resolve_tensor(m, p->values, err) : FETTLE_OK;

	return !p || st ? st : resolve_tensor(m, p->indices, err);
}

static enum fettle_status resolve_nodes(struct model *m, Onnx__NodeProto **nodes, size_t n, struct err *err);

/* all of a graph but its own constants when it is the main one */
static enum fettle_status resolve_graph(struct model *m, Onnx__GraphProto *g, bool inner, struct err *err)
{
	enum fettle_status st = FETTLE_OK;
	size_t i;

	if (!g)
		return FETTLE_OK;
	for (i = 0; i < g->n_initializer && inner && !st; i++)
		st = resolve_tensor(m, g->initializer[i], err);
	for (i = 0; i < g->n_sparse_initializer && !st; i++)
		st = resolve_sparse(m, g->sparse_initializer[i], err);
	return st ? st : resolve_nodes(m, g->node, g->n_node, err);
}

static enum fettle_status resolve_attribute(struct model *m, Onnx__AttributeProto *a, struct err *err)
{
	enum fettle_status st;
	size_t i;

	st = resolve_tensor(m, a->t, err);
	if (!st)
		st = resolve_sparse(m, a->sparse_tensor, err);
	if (!st)
		st = resolve_graph(m, a->g, true, err);
	for (i = 0; i < a->n_tensors && !st; i++)
		st = resolve_tensor(m, a->tensors[i], err);
	for (i = 0; i < a->n_sparse_tensors && !st; i++)
		st = resolve_sparse(m, a->sparse_tensors[i], err);
	for (i = 0; i < a->n_graphs && !st; i++)
		st = resolve_graph(m, a->graphs[i], true, err);
	return st;
}

static enum fettle_status resolve_nodes(struct model *m, Onnx__NodeProto **nodes, size_t n, struct err *err)
{
	enum fettle_status st = FETTLE_OK;
	size_t i, j;

	for (i = 0; i < n && !st; i++)
		for (j = 0; j < nodes[i]->n_attribute && !st; j++)
			st = resolve_attribute(m, nodes[i]->attribute[j], err);
	return st;
}

enum fettle_status resolve_external(struct model *m, Onnx__ModelProto *p, struct err *err)
{
	enum fettle_status st;
	size_t i;

	st = resolve_graph(m, p->graph, false, err);
	for (i = 0; i < p->n_functions && !st; i++)
		st = resolve_nodes(m, p->functions[i]->node, p->functions[i]->n_node, err);
	for (i = 0; i < p->n_training_info && !st; i++) {
		st = resolve_graph(m, p->training_info[i]->initialization, true, err);
		if (!st)
			st = resolve_graph(m, p->training_info[i]->algorithm, true, err);
	}
	return st;
}
