#include "quantize/rounding.h"

#include <stdlib.h>
#include <string.h>

#include "base/file.h"

struct rounding *rounding_new(size_t n)
{
	struct rounding *r = xcalloc(1, sizeof(*r));

	r->n = n;
	r->v = arena_alloc(&r->arena, n * sizeof(*r->v));
	return r;
}

void rounding_free(struct rounding *r)
{
	if (!r)
		return;
	arena_release(&r->arena);
	free(r);
}

static void *copy(struct arena *a, const void *p, size_t n)
{
	return n ? memcpy(arena_alloc(a, n), p, n) : arena_alloc(a, 1);
}

void rounding_set(struct rounding *r, size_t node, const struct rounded *from)
{
	struct rounded *o = arena_alloc(&r->arena, sizeof(*o));

	*o = *from;
	o->w.q.data = copy(&r->arena, from->w.q.data, tensor_bytes(&from->w.q));
	o->w.scale.data = copy(&r->arena, from->w.scale.data, tensor_bytes(&from->w.scale));
	o->w.zero.data = copy(&r->arena, from->w.zero.data, tensor_bytes(&from->w.zero));
	o->shift = from->shift ? copy(&r->arena, from->shift, from->n_shift * sizeof(double)) : NULL;
	r->v[node] = o;
}

/* what stands before the bytes of one op */
struct entry {
	uint64_t node;
	int32_t dtype, rank, axis, is_symmetric;
	int64_t dims[TENSOR_RANK_MAX];
	uint64_t scales, shifts; /* shifts 0: none */
};
static const char magic[16] = "fettle rounding";

static void put(FILE *f, const void *p, size_t n)
{
	fwrite(p, 1, n, f); /* file_commit() sees what failed */
}

enum fettle_status rounding_save(const struct rounding *r, const char *path, struct err *err)
{
	struct file_out out = FILE_OUT_INIT;
	uint64_t n = r->n;
	enum fettle_status st;
	size_t i;

	st = file_create(&out, path, err);
	if (st)
		return st;
	put(out.f, magic, sizeof(magic));
	put(out.f, &n, sizeof(n));
	for (i = 0; i < r->n; i++) {
		const struct rounded *o = r->v[i];
		struct entry e = { .node = i };

		if (!o)
			continue;
		e.dtype = o->w.q.dtype;
		e.rank = o->w.q.rank;
		e.axis = o->w.axis;
		e.is_symmetric = o->w.is_symmetric;
		memcpy(e.dims, o->w.q.dims, sizeof(e.dims));
		e.scales = (uint64_t)tensor_count(&o->w.scale);
		e.shifts = o->shift ? o->n_shift : 0;
		put(out.f, &e, sizeof(e));
		put(out.f, o->w.q.data, tensor_bytes(&o->w.q));
		put(out.f, o->w.scale.data, tensor_bytes(&o->w.scale));
		put(out.f, o->w.zero.data, tensor_bytes(&o->w.zero));
		if (o->shift)
			put(out.f, o->shift, e.shifts * sizeof(*o->shift));
	}
	return file_commit(&out, err);
}

/* the next n bytes, or NULL when there are not so many */
static const void *take(struct bytes *left, size_t n)
{
	const void *p = left->p;

	if (n > left->n)
		return NULL;
	left->p += n;
	left->n -= n;
	return p;
}

static bool load_entry(struct rounding *r, struct bytes *left)
{
	struct entry e;
	struct rounded o = { .n_shift = 0 };
	const void *p = take(left, sizeof(e));

	if (!p)
		return false;
	memcpy(&e, p, sizeof(e));
	if (e.node >= r->n || e.rank < 0 || e.rank > TENSOR_RANK_MAX || e.axis >= e.rank ||
	    e.scales > left->n || e.shifts > left->n ||
	    (e.dtype != DT_S8 && e.dtype != DT_U8 && e.dtype != DT_S16 && e.dtype != DT_U16))
		return false;
	o.w.q = (struct tensor){ .dtype = (enum dtype)e.dtype, .rank = e.rank };
	memcpy(o.w.q.dims, e.dims, sizeof(e.dims));
	if (tensor_count(&o.w.q) < 0 || e.scales != (e.axis < 0 ? 1 : (uint64_t)e.dims[e.axis]))
		return false;
	o.w.axis = e.axis < 0 ? -1 : e.axis;
	o.w.is_symmetric = e.is_symmetric;
	o.w.scale = (struct tensor){ .dtype = DT_F32, .rank = e.axis >= 0, .dims = { (int64_t)e.scales } };
	o.w.zero = o.w.scale;
	o.w.zero.dtype = o.w.q.dtype;
	o.n_shift = e.shifts;
	o.w.q.data = (void *)(uintptr_t)take(left, tensor_bytes(&o.w.q));
	o.w.scale.data = (void *)(uintptr_t)take(left, tensor_bytes(&o.w.scale));
	o.w.zero.data = (void *)(uintptr_t)take(left, tensor_bytes(&o.w.zero));
	p = e.shifts ? take(left, e.shifts * sizeof(double)) : NULL;
	if (!o.w.q.data || !o.w.scale.data || !o.w.zero.data || (e.shifts && !p))
		return false;
	o.shift = p; /* not aligned; copied byte by byte */
	rounding_set(r, e.node, &o);
	return true;
}

enum fettle_status rounding_load(struct rounding **out, const char *path, size_t n, struct err *err)
{
	struct bytes raw = BYTES_INIT, left;
	struct rounding *r = NULL;
	const char *head;
	uint64_t found = 0;
	enum fettle_status st;

	st = file_map(path, &raw, err);
	if (st)
		return st;
	left = raw;
	head = take(&left, sizeof(magic) + sizeof(found));
	if (head)
		memcpy(&found, head + sizeof(magic), sizeof(found));
	if (!head || memcmp(head, magic, sizeof(magic)) != 0 || found != n) {
		st = fail(err, FETTLE_INVALID, "cannot read %s: it holds no rounding of %zu ops", path, n);
		goto out;
	}
	r = rounding_new(n);
	while (left.n && !st)
		if (!load_entry(r, &left))
			st = fail(err, FETTLE_INVALID, "cannot read %s: it is damaged", path);
	if (!st) {
		*out = r;
		r = NULL;
	}
out:
	rounding_free(r);
	bytes_release(&raw);
	return st;
}
