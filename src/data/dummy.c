/*
 * INC's made-up data: numbers between low and high, which follow from the sample's number alone. `dummy` has the number of samples as the
 * first dimension of each shape, `dummy_v2` and `sparse_dummy_v2` have as many samples as anyone wants. Arrays feed the model's inputs by
 * position.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/rng.h"
#include "base/str.h"
#include "data/convert.h"
#include "data/objects.h"

enum { MANY = 1000 }; /* samples of what has no number of its own */

struct made_field {
	double low, high, zeros; /* zeros: their share */
	bool none;               /* 0 is all there is */
	struct tensor sample;    /* before any transform */
};
struct made {
	VEC(struct made_field) fields;
};

/* ---- `[[1, 3], [1]]`, `[float32, int64]`, `128.` as the configuration has them ---- */

struct list {
	VEC(char *) items;
};

static void list_release(struct list *l)
{
	size_t i;

	for (i = 0; i < l->items.n; i++)
		free(l->items.v[i]);
	VEC_RELEASE(&l->items);
}

/* The items of a list in brackets, which may be lists themselves; of anything else, itself. */
static void split(const char *text, struct list *out)
{
	const char *start, *p;
	int depth = 0;
	size_t n;

	text += strspn(text, " \"'");
	if (*text != '[' && *text != '(') {
		n = strcspn(text, " \"'");
		if (n)
			VEC_PUSH(&out->items, xstrfmt("%.*s", (int)n, text));
		return;
	}
	for (p = start = text + 1; *p; p++) {
		bool last = (*p == ']' || *p == ')') && !depth;

		if (last || (*p == ',' && !depth)) {
			start += strspn(start, " \"'");
			for (n = p > start ? (size_t)(p - start) : 0; n && strchr(" \"'", start[n - 1]); n--)
				;
			if (n)
				VEC_PUSH(&out->items, xstrfmt("%.*s", (int)n, start));
			start = p + 1;
		}
		if (last)
			return;
		depth += *p == '[' || *p == '(' ? 1 : *p == ']' || *p == ')' ? -1 : 0;
	}
}

static enum fettle_status read_shape(const char *text, struct tensor *t, struct err *err)
{
	struct list l = { .items = { NULL, 0, 0 } };
	enum fettle_status st = FETTLE_OK;
	char *end;
	size_t i;

	split(text, &l);
	if (l.items.n > TENSOR_RANK_MAX)
		st = fail(err, FETTLE_INVALID, "shape %s, at most %d dimensions", text, TENSOR_RANK_MAX);
	t->rank = (int)l.items.n;
	for (i = 0; i < l.items.n && !st; i++) {
		t->dims[i] = strtoll(l.items.v[i], &end, 10);
		if (*end || t->dims[i] < 1)
			st = fail(err, FETTLE_INVALID, "shape %s, need whole numbers from 1", text);
	}
	if (!st && tensor_count(t) < 0)
		st = fail(err, FETTLE_INVALID, "shape %s is too big", text);
	list_release(&l);
	return st;
}

/* The k-th of a list of values, or the only one. */
static const char *item(const struct list *l, size_t k)
{
	return !l->items.n ? "" : l->items.v[l->items.n > 1 && k < l->items.n ? k : 0];
}

static enum fettle_status read_number(const struct list *l, size_t k, const char *key, double *out,
				      struct err *err)
{
	char *end;

	*out = strtod(item(l, k), &end);
	if (*end || end == item(l, k) || !isfinite(*out))
		return fail(err, FETTLE_INVALID, "%s '%s', need a number", key, item(l, k));
	return FETTLE_OK;
}

struct described {
	struct list shapes, dtypes, low, high, zeros;
};

static void described_release(struct described *w)
{
	list_release(&w->shapes);
	list_release(&w->dtypes);
	list_release(&w->low);
	list_release(&w->high);
	list_release(&w->zeros);
}

/* One shape `[1, 3]`, or several `[[1, 3], [1]]`. */
static void split_shapes(const char *text, struct list *out)
{
	struct list l = { .items = { NULL, 0, 0 } };

	split(text, &l);
	if (l.items.n && strchr("[(", l.items.v[0][0])) {
		*out = l;
		return;
	}
	VEC_PUSH(&out->items, xstrdup(text));
	list_release(&l);
}

/* `counted`: the first dimension is the number of samples */
static enum fettle_status add_field(struct dataset *d, const struct described *w, size_t k, bool label,
				    bool counted, struct err *err)
{
	struct made *m = d->state;
	struct made_field f = { .low = 0 };
	struct tensor t = { .dtype = dtype_parse(item(&w->dtypes, k)) };
	enum fettle_status st = read_shape(w->shapes.items.v[k], &t, err);
	char *name = label ? xstrdup("label") : xstrfmt("input_%zu", d->n_fields);

	if (!st && (t.dtype == DT_NONE || !dtype_size(t.dtype)))
		st = fail(err, FETTLE_INVALID, "dtype '%s', need one such as float32", item(&w->dtypes, k));
	if (!st)
		st = read_number(&w->low, k, "low", &f.low, err);
	if (!st)
		st = read_number(&w->high, k, "high", &f.high, err);
	if (!st)
		st = read_number(&w->zeros, k, "sparse_ratio", &f.zeros, err);
	if (!st && (f.low > f.high || f.zeros < 0 || f.zeros > 1))
		st = fail(err, FETTLE_INVALID,
			  "low %g, high %g, sparse_ratio %g: need low <= high and a share", f.low, f.high,
			  f.zeros);
	if (!st && counted && !t.rank)
		st = fail(err, FETTLE_INVALID, "shape %s, need the number of samples first",
			  w->shapes.items.v[k]);
	if (!st && counted && d->n_fields && d->n != (size_t)t.dims[0])
		st = fail(err, FETTLE_INVALID, "shape %s, the first one has %zu samples",
			  w->shapes.items.v[k], d->n);
	if (!st) {
		d->n = counted ? (size_t)t.dims[0] : MANY;
		dataset_add_field(d, name, label ? FIELD_LABEL : FIELD_INPUT, t.dtype, t.rank - counted,
				  t.dims + counted);
		f.sample = d->fields[d->n_fields - 1].sample;
		VEC_PUSH(&m->fields, f);
	}
	free(name);
	return st;
}

static enum fettle_status open_made(struct dataset *d, const struct dataset_options *opt,
				    const char *shape_key, const char *zeros, bool counted, struct err *err)
{
	const char *shape = dataset_param(opt, shape_key, NULL),
		   *label = dataset_param(opt, "label_shape", NULL);
	struct described w = { .shapes = { { NULL, 0, 0 } } };
	enum fettle_status st = FETTLE_OK;
	size_t k;

	d->state = xcalloc(1, sizeof(struct made));
	d->positional = true;
	if (!shape)
		return fail(err, FETTLE_INVALID, "cannot make data %s: no %s, need one", d->kind->name,
			    shape_key);
	split_shapes(shape, &w.shapes);
	split(dataset_param(opt, "dtype", "float32"), &w.dtypes);
	split(dataset_param(opt, "low", counted ? "-128" : "0"), &w.low);
	split(dataset_param(opt, "high", counted ? "127" : "1"), &w.high);
	split(zeros, &w.zeros);
	for (k = 0; k < w.shapes.items.n && !st && k + 1 < DATASET_FIELDS_MAX; k++)
		st = add_field(d, &w, k, false, counted, err);
	if (!st && label && strcmp(label, "null") != 0) {
		VEC_PUSH(&w.shapes.items, xstrdup(label));
		st = add_field(d, &w, w.shapes.items.n - 1, true, false, err);
	} else if (!st && counted && strcasecmp(dataset_param(opt, "label", "true"), "false") != 0) {
		dataset_add_field(d, "label", FIELD_LABEL, DT_S64, 0, NULL);
		VEC_PUSH(&((struct made *)d->state)->fields,
			 ((struct made_field){ .none = true, .sample = { .dtype = DT_S64 } }));
	}
	described_release(&w);
	return st ? fail_prefix(err, st, "cannot make data %s", d->kind->name) : FETTLE_OK;
}

static enum fettle_status dummy_open(struct dataset *d, const struct dataset_options *opt, struct err *err)
{
	return open_made(d, opt, "shape", "0", true, err);
}

static enum fettle_status dummy_v2_open(struct dataset *d, const struct dataset_options *opt, struct err *err)
{
	return open_made(d, opt, "input_shape", "0", false, err);
}

static enum fettle_status sparse_open(struct dataset *d, const struct dataset_options *opt, struct err *err)
{
	return open_made(d, opt, "dense_shape", dataset_param(opt, "sparse_ratio", "0.5"), false, err);
}

static enum fettle_status made_read(const struct dataset *d, size_t field, size_t i, struct buffer *out,
				    struct err *err)
{
	const struct made_field *f = &((const struct made *)d->state)->fields.v[field];
	const struct tensor *t = &f->sample;
	enum fettle_status st = buffer_shape(out, t->dtype, t->rank, t->dims, "a sample", err);
	struct rng r;
	size_t n, k;

	if (st)
		return st;
	rng_seed(&r, ((uint64_t)field << 48) + i + 1);
	n = (size_t)tensor_count(&out->t);
	for (k = 0; k < n; k++) {
		double x = f->low + (f->high - f->low) * rng_unit(&r);

		if (f->none || (f->zeros > 0 && rng_unit(&r) < f->zeros))
			x = 0;
		tensor_set(&out->t, k, dtype_is_integer(t->dtype) ? floor(x) : x);
	}
	return FETTLE_OK;
}

static void made_close(struct dataset *d)
{
	struct made *m = d->state;

	if (!m)
		return;
	VEC_RELEASE(&m->fields);
	free(m);
}

static const char *const dummy_keys[] = { "shape", "low", "high", "dtype", "label", NULL };
static const char *const v2_keys[] = { "input_shape", "label_shape", "low", "high", "dtype", NULL };
static const char *const sparse_keys[] = { "dense_shape", "label_shape", "sparse_ratio", "low", "high",
					   "dtype",       NULL };

#define MADE(id, word, takes, says)                                                                          \
	const struct dataset_kind dataset_##id = {                                                           \
		.name = (word),                                                                              \
		.summary = (says),                                                                           \
		.keys = (takes),                                                                             \
		.rootless = true,                                                                            \
		.open = id##_open,                                                                           \
		.read = made_read,                                                                           \
		.close = made_close,                                                                         \
	};
MADE(dummy, "dummy", dummy_keys, "random numbers; the first dimension of a shape is the number of samples")
MADE(dummy_v2, "dummy_v2", v2_keys, "random numbers")
MADE(sparse, "sparse_dummy_v2", sparse_keys, "random numbers among zeros")
