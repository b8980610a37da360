/* The test data that ONNX publishes beside a model: test_data_set_K/{input,output}_N.pb. */
#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/mem.h"
#include "base/str.h"
#include "data/kind.h"
#include "data/tensor_pb.h"

static const char PREFIX[] = "test_data_set_";
static const bool HOST_IS_LITTLE = __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__;

struct set {
	char *path;
	struct bytes *files; /* these two are parallel to the dataset's fields */
	struct tensor_pb *tensors;
	size_t n; /* tensors: the inputs, then the outputs */
	size_t n_inputs;
	size_t first; /* its first sample */
};

struct testset {
	VEC(struct set) sets;
};

/* How many entries of the folder start and end so. */
static size_t count_entries(const char *path, const char *prefix, const char *suffix)
{
	DIR *dir = opendir(path);
	struct dirent *e;
	size_t n = 0;

	if (!dir)
		return 0;
	while ((e = readdir(dir)))
		n += str_starts(e->d_name, prefix) && str_ends(e->d_name, suffix);
	closedir(dir);
	return n;
}

static bool testset_probe(const char *path)
{
	return path_is_dir(path) && (count_entries(path, PREFIX, "") || count_entries(path, "input_", ".pb"));
}

/* set_2 comes before set_10 */
static int by_number(const void *a, const void *b)
{
	return strverscmp(((const struct set *)a)->path, ((const struct set *)b)->path);
}

static enum fettle_status find_sets(const char *path, struct testset *s, struct err *err)
{
	struct dirent *e;
	DIR *dir;

	if (count_entries(path, "input_", ".pb")) { /* it is a set itself */
		VEC_PUSH(&s->sets, ((struct set){ .path = xstrdup(path) }));
		return FETTLE_OK;
	}
	dir = opendir(path);
	if (!dir)
		return fail(err, FETTLE_INVALID, "cannot read folder %s: %s", path, strerror(errno));
	while ((e = readdir(dir)))
		if (str_starts(e->d_name, PREFIX))
			VEC_PUSH(&s->sets, ((struct set){ .path = xstrfmt("%s/%s", path, e->d_name) }));
	closedir(dir);
	qsort(s->sets.v, s->sets.n, sizeof(*s->sets.v), by_number);
	return FETTLE_OK;
}

static enum fettle_status load_tensor(struct set *s, size_t i, struct err *err)
{
	bool in = i < s->n_inputs;
	char *path = xstrfmt("%s/%s_%zu.pb", s->path, in ? "input" : "output", in ? i : i - s->n_inputs);
	enum fettle_status st;

	st = file_map(path, &s->files[i], err);
	if (!st) {
		st = tensor_pb_parse(s->files[i], &s->tensors[i], err);
		if (st)
			fail_prefix(err, st, "cannot read %s", path);
	}
	free(path);
	return st;
}

static enum fettle_status load_set(struct set *s, struct err *err)
{
	enum fettle_status st = FETTLE_OK;
	size_t n_outputs, i;

	s->n_inputs = count_entries(s->path, "input_", ".pb");
	n_outputs = count_entries(s->path, "output_", ".pb");
	if (!s->n_inputs || s->n_inputs + n_outputs > DATASET_FIELDS_MAX)
		return fail(err, FETTLE_INVALID, "cannot read %s: %zu inputs and %zu outputs, need 1 to %d",
			    s->path, s->n_inputs, n_outputs, DATASET_FIELDS_MAX);
	s->n = s->n_inputs + n_outputs;
	s->files = xcalloc(s->n, sizeof(*s->files));
	s->tensors = xcalloc(s->n, sizeof(*s->tensors));
	for (i = 0; i < s->n && !st; i++)
		st = load_tensor(s, i, err);
	return st;
}

/* Sets that differ in number or type of their tensors are not one dataset. */
static enum fettle_status check_agree(const struct set *a, const struct set *b, struct err *err)
{
	size_t i;

	if (a->n_inputs != b->n_inputs || a->n != b->n)
		return fail(err, FETTLE_INVALID,
			    "cannot read %s: %zu inputs and %zu outputs, but %s has %zu and %zu", b->path,
			    b->n_inputs, b->n - b->n_inputs, a->path, a->n_inputs, a->n - a->n_inputs);
	for (i = 0; i < a->n; i++)
		if (a->tensors[i].shape.dtype != b->tensors[i].shape.dtype)
			return fail(err, FETTLE_INVALID, "cannot read %s: %s %zu is %s, but %s in %s",
				    b->path, i < a->n_inputs ? "input" : "output",
				    i < a->n_inputs ? i : i - a->n_inputs,
				    dtype_name(b->tensors[i].shape.dtype),
				    dtype_name(a->tensors[i].shape.dtype), a->path);
	return FETTLE_OK;
}

/* Do all tensors of the set share a first dimension, and are its rows like those of `like`? */
static bool has_rows(const struct set *s, const struct set *like)
{
	size_t i;
	int k;

	for (i = 0; i < s->n; i++) {
		const struct tensor *t = &s->tensors[i].shape, *u = &like->tensors[i].shape;

		if (!t->rank || t->rank != u->rank || t->dims[0] < 1 ||
		    t->dims[0] != s->tensors[0].shape.dims[0])
			return false;
		for (k = 1; k < t->rank; k++)
			if (t->dims[k] != u->dims[k])
				return false;
	}
	return true;
}

/* The shape of tensor i in every set; what differs is unknown. */
static struct tensor common_shape(const struct testset *s, size_t i)
{
	struct tensor shape = s->sets.v[0].tensors[i].shape;
	size_t j;
	int k;

	for (j = 1; j < s->sets.n && shape.rank >= 0; j++) {
		const struct tensor *t = &s->sets.v[j].tensors[i].shape;

		if (t->rank != shape.rank)
			shape.rank = -1;
		for (k = 0; k < shape.rank; k++)
			if (t->dims[k] != shape.dims[k])
				shape.dims[k] = -1;
	}
	return shape;
}

static void add_fields(struct dataset *d, const struct testset *s)
{
	size_t n_inputs = s->sets.v[0].n_inputs, i;
	int lead = !d->whole;
	char name[32];

	for (i = 0; i < s->sets.v[0].n; i++) {
		struct tensor shape = common_shape(s, i);
		bool in = i < n_inputs;

		snprintf(name, sizeof(name), "%s_%zu", in ? "input" : "output", in ? i : i - n_inputs);
		dataset_add_field(d, name, in ? FIELD_INPUT : FIELD_OUTPUT, shape.dtype,
				  shape.rank < 0 ? -1 : shape.rank - lead, shape.dims + lead);
	}
}

static enum fettle_status testset_open(struct dataset *d, const struct dataset_options *opt, struct err *err)
{
	struct testset *s = xcalloc(1, sizeof(*s));
	enum fettle_status st;
	size_t i;

	(void)opt;
	d->state = s;
	d->positional = true;
	st = find_sets(d->path, s, err);
	for (i = 0; i < s->sets.n && !st; i++) {
		st = load_set(&s->sets.v[i], err);
		if (!st)
			st = check_agree(&s->sets.v[0], &s->sets.v[i], err);
	}
	if (st)
		return st;
	for (i = 0; i < s->sets.n; i++)
		d->whole |= !has_rows(&s->sets.v[i], &s->sets.v[0]);
	for (i = 0; i < s->sets.n; i++) {
		s->sets.v[i].first = d->n;
		d->n += d->whole ? 1 : (size_t)s->sets.v[i].tensors[0].shape.dims[0];
	}
	add_fields(d, s);
	return FETTLE_OK;
}

/* The set that sample i is in. */
static const struct set *set_of(const struct dataset *d, size_t i)
{
	const struct testset *s = d->state;
	size_t lo = 0, hi = s->sets.n;

	while (hi - lo > 1) {
		size_t mid = lo + (hi - lo) / 2;

		if (s->sets.v[mid].first <= i)
			lo = mid;
		else
			hi = mid;
	}
	return &s->sets.v[lo];
}

static enum fettle_status testset_read(const struct dataset *d, size_t field, size_t i, struct buffer *out,
				       struct err *err)
{
	const struct set *s = set_of(d, i);
	const struct tensor_pb *t = &s->tensors[field];
	int lead = !d->whole;
	enum fettle_status st;
	size_t n, size = dtype_size(t->shape.dtype);

	st = buffer_shape(out, t->shape.dtype, t->shape.rank - lead, t->shape.dims + lead,
			  d->fields[field].name, err);
	if (st)
		return st;
	n = (size_t)tensor_count(&out->t);
	if (n)
		memcpy(out->t.data, t->elements + (i - s->first) * n * size, n * size);
	if (!HOST_IS_LITTLE)
		swap_elements(out->t.data, n, size);
	return FETTLE_OK;
}

static char *testset_sample_name(const struct dataset *d, size_t i)
{
	const struct set *s = set_of(d, i);

	return d->whole ? xstrdup(s->path) : xstrfmt("%s: row %zu", s->path, i - s->first);
}

static void testset_close(struct dataset *d)
{
	struct testset *s = d->state;
	size_t i, j;

	if (!s)
		return;
	for (i = 0; i < s->sets.n; i++) {
		struct set *set = &s->sets.v[i];

		for (j = 0; j < set->n; j++) {
			tensor_pb_release(&set->tensors[j]);
			bytes_release(&set->files[j]);
		}
		free(set->tensors);
		free(set->files);
		free(set->path);
	}
	VEC_RELEASE(&s->sets);
	free(s);
}

const struct dataset_kind dataset_testset = {
	.name = "TestDataSet",
	.summary = "a folder of test_data_set_* folders as ONNX publishes them",
	.probe = testset_probe,
	.open = testset_open,
	.read = testset_read,
	.sample_name = testset_sample_name,
	.close = testset_close,
};
