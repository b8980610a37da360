#include "quantize/blocks.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/map.h"
#include "base/scratch.h"
#include "ops/rules.h"

struct block_store {
	struct scratch tmp; /* of what was spilled */
	FILE *spill;
	struct arena arena;
	struct map place; /* key -> index in v */
	VEC(struct block_packed *) v;
};

struct block_store *block_store_new(void)
{
	return xcalloc(1, sizeof(struct block_store));
}

void block_store_free(struct block_store *s)
{
	if (!s)
		return;
	if (s->spill)
		fclose(s->spill);
	scratch_release(&s->tmp);
	map_release(&s->place);
	VEC_RELEASE(&s->v);
	arena_release(&s->arena);
	free(s);
}

const struct block_packed *block_store_find(const struct block_store *s, const char *key)
{
	size_t i = map_get(&s->place, key);

	return i == MAP_NONE ? NULL : s->v.v[i];
}

bool block_needs_data(const struct block_setting *s)
{
	return block_methods[s->algorithm]->needs != 0;
}

size_t block_input(const struct node *n)
{
	return node_is(n, "Gather") ? 0 : 1;
}

bool block_turned(const struct node *n)
{
	return node_is(n, "Gather") || op_weight_turned(n);
}

char *block_key(const struct node *n, const struct block_setting *s)
{
	return xstrfmt("%s\t%s\t%s_%d_%lld_%s", n->in[block_input(n)], block_turned(n) ? "turned" : "",
		       block_methods[s->algorithm]->name, s->format.bits, (long long)s->format.block,
		       s->format.symmetric ? "sym" : "asym");
}

static void add(struct block_store *s, const char *key, struct block_packed *p)
{
	map_set(&s->place, arena_strdup(&s->arena, key), s->v.n);
	VEC_PUSH(&s->v, p);
}

/* [rows, columns] the other way round, in squares that the caches hold */
static void turn(const float *x, int64_t rows, int64_t columns, float *out)
{
	enum { SIDE = 64 };
	int64_t r, c, i, k;

	for (r = 0; r < rows; r += SIDE)
		for (c = 0; c < columns; c += SIDE)
			for (i = r; i < rows && i < r + SIDE; i++)
				for (k = c; k < columns && k < c + SIDE; k++)
					out[k * rows + i] = x[i * columns + k];
}

enum fettle_status block_rows(const struct tensor *t, bool turned, const float **rows, float **own,
			      struct err *err)
{
	enum fettle_status st = FETTLE_OK;

	*own = NULL;
	if (!turned)
		st = mem_try(own, (size_t)tensor_count(t), sizeof(**own), "a weight, transposed", err);
	if (*own)
		turn(t->data, t->dims[0], t->dims[1], *own);
	*rows = turned ? t->data : *own;
	return st;
}

bool block_tied(struct model *m, const struct node *table, const struct node *n)
{
	struct init *a = model_init(m, table->in[0]), *b = model_init(m, n->in[1]);
	const bool turned = op_weight_turned(n);
	const float *x, *y;
	int64_t r, c;

	if (a == b)
		return turned;
	if (turned || a->t.dims[0] != b->t.dims[1] || a->t.dims[1] != b->t.dims[0] ||
	    model_weight(m, a, NULL) || model_weight(m, b, NULL))
		return false;
	x = a->t.data;
	y = b->t.data;
	for (r = 0; r < a->t.dims[0]; r++)
		for (c = 0; c < a->t.dims[1]; c++)
			if (memcmp(&x[r * a->t.dims[1] + c], &y[c * a->t.dims[0] + r], sizeof(*x)) != 0)
				return false;
	return true;
}

struct block_packed block_packed_shape(const struct block_format *f, int64_t n, int64_t k)
{
	const int64_t blocks = block_count(f, k);

	return (struct block_packed){
		.format = *f,
		.outputs = n,
		.inputs = k,
		.codes = { .dtype = DT_U8, .rank = 3, .dims = { n, blocks, f->block * f->bits / 8 } },
		.scales = { .dtype = DT_F32, .rank = 2, .dims = { n, blocks } },
		.zeros = { .dtype = DT_U8, .rank = 2, .dims = { n, (blocks * f->bits + 7) / 8 } },
	};
}

enum fettle_status block_packed_floats(const struct block_packed *w, const char *what, float **out,
				       struct err *err)
{
	struct block_weight q = BLOCK_WEIGHT_INIT;
	enum fettle_status st = block_weight_init(&q, &w->format, w->outputs, w->inputs, err);

	if (!st)
		st = mem_try(out, (size_t)(w->outputs * w->inputs), sizeof(**out), what, err);
	if (!st) {
		block_unpack(w->codes.data, w->zeros.data, &q);
		memcpy(q.scales, w->scales.data, tensor_bytes(&w->scales));
		block_dequantize(&q, *out);
	}
	block_weight_release(&q);
	return st;
}

/* with room for their data */
static struct block_packed *new_packed(struct arena *a, const struct block_format *f, int64_t n, int64_t k)
{
	struct block_packed *p = arena_alloc(a, sizeof(*p));

	*p = block_packed_shape(f, n, k);
	p->codes.data = arena_alloc(a, tensor_bytes(&p->codes));
	p->scales.data = arena_alloc(a, tensor_bytes(&p->scales));
	if (!f->symmetric)
		p->zeros.data = arena_alloc(a, tensor_bytes(&p->zeros));
	return p;
}

static void pack(struct block_store *s, const char *key, const struct block_weight *q)
{
	struct block_packed *p = new_packed(&s->arena, &q->format, q->n, q->k);

	block_pack_codes(q, p->codes.data);
	memcpy(p->scales.data, q->scales, tensor_bytes(&p->scales));
	if (p->zeros.data)
		block_pack_zeros(q, p->zeros.data);
	add(s, key, p);
}

enum fettle_status block_store_put(struct block_store *s, const char *key, const char *name,
				   const struct tensor *t, bool turned, const struct block_setting *how,
				   const struct block_seen *seen, struct err *err)
{
	struct block_weight q = BLOCK_WEIGHT_INIT;
	const float *rows = NULL;
	float *own = NULL;
	enum fettle_status st = block_rows(t, turned, &rows, &own, err);

	if (!st)
		st = block_quantize(how->algorithm, rows, t->dims[turned ? 0 : 1], t->dims[turned ? 1 : 0],
				    seen, &how->format, &q, err);
	if (!st)
		pack(s, key, &q);
	else
		fail_prefix(err, st, "cannot quantize weight '%s'", name);
	block_weight_release(&q);
	free(own);
	return st;
}

enum fettle_status block_store_make(struct block_store *s, struct model *m, const struct node *n,
				    const struct block_setting *how, const struct block_seen *seen,
				    struct err *err)
{
	struct init *w = model_init(m, n->in[block_input(n)]);
	char *key = block_key(n, how);
	enum fettle_status st = model_weight(m, w, err);

	if (!st)
		st = block_store_put(s, key, w->name, &w->t, block_turned(n), how, seen, err);
	free(key);
	return st;
}

/* ---- what was spilled ---- */

struct spilled {
	FILE *f;
	long at;
	size_t n;
};

static enum fettle_status cannot_spill(const char *verb, struct err *err)
{
	return fail(err, FETTLE_SYSTEM, "cannot %s quantized weights in the folder for temporary files: %s",
		    verb, strerror(errno));
}

static enum fettle_status copy_spilled(void *self, FILE *to, struct err *err)
{
	enum { PIECE = 1 << 16 };
	const struct spilled *s = self;
	size_t left = s->n, n;
	char piece[PIECE];

	if (fseek(s->f, s->at, SEEK_SET) != 0)
		return cannot_spill("find", err);
	for (; left; left -= n) {
		n = fread(piece, 1, left < PIECE ? left : PIECE, s->f);
		if (!n)
			return cannot_spill("read", err);
		fwrite(piece, 1, n, to);
	}
	return FETTLE_OK;
}

static struct late spill_tensor(struct block_store *s, struct tensor *t)
{
	struct spilled *at = arena_alloc(&s->arena, sizeof(*at));

	*at = (struct spilled){ s->spill, ftell(s->spill), t->data ? tensor_bytes(t) : 0 };
	if (at->n)
		fwrite(t->data, 1, at->n, s->spill);
	t->data = NULL;
	return (struct late){ copy_spilled, at };
}

static enum fettle_status open_spill(struct block_store *s, struct err *err)
{
	enum fettle_status st = scratch_new(&s->tmp, err);
	char *path;

	if (st)
		return st;
	path = scratch_path(&s->tmp, "weights");
	s->spill = fopen(path, "w+be");
	free(path);
	return s->spill ? FETTLE_OK : cannot_spill("write", err);
}

enum fettle_status block_store_spill(struct block_store *s, const char *key, const struct block_packed *p,
				     struct err *err)
{
	struct block_packed *own = arena_alloc(&s->arena, sizeof(*own));
	struct late *late = arena_alloc(&s->arena, 3 * sizeof(*late));
	enum fettle_status st = s->spill ? FETTLE_OK : open_spill(s, err);

	if (st)
		return st;
	if (fseek(s->spill, 0, SEEK_END) != 0)
		return cannot_spill("write", err);
	*own = *p;
	late[0] = spill_tensor(s, &own->codes);
	late[1] = spill_tensor(s, &own->scales);
	late[2] = spill_tensor(s, &own->zeros);
	own->spilled = late;
	if (fflush(s->spill) != 0 || ferror(s->spill))
		return cannot_spill("write", err);
	add(s, key, own);
	return FETTLE_OK;
}

/* ---- files ---- */

static const char magic[16] = "fettle blocks 1";

struct head {
	int64_t outputs, inputs, block;
	int32_t bits, symmetric;
	uint64_t key; /* the length of it, which follows */
};

enum fettle_status block_store_save(const struct block_store *s, const char *key, const char *path,
				    struct err *err)
{
	const struct block_packed *p = block_store_find(s, key);
	const struct head h = { p->outputs,     p->inputs,           p->format.block,
				p->format.bits, p->format.symmetric, strlen(key) };
	struct file_out out = FILE_OUT_INIT;
	enum fettle_status st = file_create(&out, path, err);

	if (st)
		return st;
	fwrite(magic, 1, sizeof(magic), out.f); /* file_commit() sees what failed */
	fwrite(&h, 1, sizeof(h), out.f);
	fwrite(key, 1, h.key, out.f);
	fwrite(p->codes.data, 1, tensor_bytes(&p->codes), out.f);
	fwrite(p->scales.data, 1, tensor_bytes(&p->scales), out.f);
	if (p->zeros.data)
		fwrite(p->zeros.data, 1, tensor_bytes(&p->zeros), out.f);
	return file_commit(&out, err);
}

/* the next n bytes into `to`; false when there are not so many */
static bool take(struct bytes *left, void *to, size_t n)
{
	if (n > left->n)
		return false;
	if (n)
		memcpy(to, left->p, n);
	left->p += n;
	left->n -= n;
	return true;
}

static bool read_packed(struct block_store *s, const char *key, struct bytes left)
{
	char found[sizeof(magic)];
	struct block_format f;
	struct block_packed *p;
	struct head h;

	if (!take(&left, found, sizeof(found)) || memcmp(found, magic, sizeof(magic)) != 0 ||
	    !take(&left, &h, sizeof(h)) || h.key != strlen(key) || left.n < h.key ||
	    memcmp(left.p, key, h.key) != 0)
		return false;
	left.p += h.key;
	left.n -= h.key;
	f = (struct block_format){ h.bits, h.block, h.symmetric != 0 };
	if (block_format_check(&f, NULL) || h.outputs < 1 || h.inputs < 1 || h.outputs > INT32_MAX ||
	    h.inputs > INT32_MAX || block_packed_codes(&f, h.outputs, h.inputs) > left.n)
		return false;
	p = new_packed(&s->arena, &f, h.outputs, h.inputs);
	if (!take(&left, p->codes.data, tensor_bytes(&p->codes)) ||
	    !take(&left, p->scales.data, tensor_bytes(&p->scales)) ||
	    (p->zeros.data && !take(&left, p->zeros.data, tensor_bytes(&p->zeros))) || left.n)
		return false;
	add(s, key, p);
	return true;
}

enum fettle_status block_store_load(struct block_store *s, const char *key, const char *path, struct err *err)
{
	struct bytes raw = BYTES_INIT;
	enum fettle_status st = file_map(path, &raw, err);

	if (!st && !read_packed(s, key, raw))
		st = fail(err, FETTLE_INVALID,
			  "cannot read %s: it does not hold the weight it is named after", path);
	bytes_release(&raw);
	return st;
}
