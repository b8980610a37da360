/*
 * Arrays in a .npz archive or a .npy file. Samples are read where they are stored; what is deflated is
 * inflated once, into memory or into an unlinked file. Files are mapped to look at them, but samples come
 * by pread(): pages of a mapping would pile up in our memory, and a file that is cut off while we run
 * would be a SIGBUS instead of an error.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/str.h"
#include "data/kind.h"
#include "data/npy.h"
#include "data/unpack.h"

struct array {
	struct npy header;
	const unsigned char *elements; /* of any alignment */
	int fd;                        /* where they are, too; -1: only in memory */
	off_t at;
};

struct npz {
	struct bytes file;
	int fd;
	struct unpacked u;
	struct array *arrays; /* parallel to the dataset's fields */
};

static bool npz_probe(const char *path)
{
	return !path_is_dir(path);
}

/* What makes an array usable as a field: a first dimension that counts samples, the same in all. */
static enum fettle_status check_array(const struct dataset *d, const struct npy *a, struct err *err)
{
	char shape[128];
	int i;

	tensor_shape_text(&a->shape, shape, sizeof(shape));
	if (!a->shape.rank)
		return fail(err, FETTLE_INVALID,
			    "a single number, need a first dimension that counts samples");
	for (i = 0; i < a->shape.rank; i++)
		if (!a->shape.dims[i])
			return fail(err, FETTLE_INVALID, "shape %s is empty, need at least one %s", shape,
				    i ? "element in a sample" : "sample");
	if (d->n && (uint64_t)a->shape.dims[0] != d->n)
		return fail(err, FETTLE_INVALID,
			    "%lld samples, but array '%s' has %zu: first dimensions must agree",
			    (long long)a->shape.dims[0], d->fields[0].name, d->n);
	return FETTLE_OK;
}

/* The array in the n bytes of `in` (whose file is fd) from byte `at`. */
static enum fettle_status add_array(struct dataset *d, const char *name, struct bytes in, int fd, size_t at,
				    size_t n, struct err *err)
{
	struct npz *z = d->state;
	struct array *a = &z->arrays[d->n_fields];
	const struct tensor *shape = &a->header.shape;
	enum fettle_status st;

	st = npy_parse((struct bytes){ in.p + at, n }, &a->header, err);
	if (!st)
		st = check_array(d, &a->header, err);
	if (st)
		return fail_prefix(err, st, "cannot read %s: array '%s'", d->path, name);
	if (dataset_field(d, name))
		return fail(err, FETTLE_INVALID, "cannot read %s: two arrays are called '%s'", d->path, name);
	a->elements = in.p + at + a->header.at;
	a->fd = fd;
	a->at = (off_t)(at + a->header.at);
	d->n = (size_t)shape->dims[0];
	dataset_add_field(d, name, FIELD_INPUT, shape->dtype, shape->rank - 1, shape->dims + 1);
	return FETTLE_OK;
}

/* "x" of "x.npy", or NULL; free() it */
static char *array_name(const struct zip_member *m)
{
	size_t n = strlen(m->name);

	return str_ends(m->name, ".npy") && n > 4 ? xstrfmt("%.*s", (int)(n - 4), m->name) : NULL;
}

/* Marks the member that holds the array of that name, if there is one. */
static bool want(const struct zip *zip, const char *array, bool *wanted)
{
	size_t i;

	for (i = 0; i < zip->members.n; i++) {
		char *name = array_name(&zip->members.v[i]);
		bool is = name && strcmp(name, array) == 0;

		free(name);
		wanted[i] = wanted[i] || is;
		if (is)
			return true;
	}
	return false;
}

/* Which members are wanted: where none feeds an input by its name, any of them may be the only one that does. */
static void choose_members(const struct dataset_options *opt, const struct zip *zip, bool *wanted)
{
	bool found = false;
	size_t i;

	for (i = 0; i < opt->n_wanted; i++)
		found = want(zip, opt->wanted[i], wanted) || found;
	if (opt->n_wanted == 1 && !found)
		found = want(zip, "x", wanted);
	for (i = 0; dataset_label_names[i] && !want(zip, dataset_label_names[i], wanted); i++)
		;
	for (i = 0; i < zip->members.n && !found; i++)
		wanted[i] = true;
}

static void ignore(struct dataset *d, const struct zip_member *m)
{
	char *name = array_name(m), *all;

	all = xstrfmt("%s%s%s", d->ignored ? d->ignored : "", d->ignored ? ", " : "", name ? name : m->name);
	free(d->ignored);
	free(name);
	d->ignored = all;
}

static enum fettle_status add_member(struct dataset *d, const struct zip_member *m, size_t inflated_at,
				     struct err *err)
{
	struct npz *z = d->state;
	enum fettle_status st;
	char *name = array_name(m);

	if (!name)
		return fail(err, FETTLE_INVALID, "cannot read %s: member '%s' is not an array, need NAME.npy",
			    d->path, m->name);
	if (m->deflated)
		st = add_array(d, name, z->u.inflated, z->u.fd, inflated_at, m->size, err);
	else
		st = add_array(d, name, z->file, z->fd, m->at, m->size, err);
	free(name);
	return st;
}

/* as somebody has begun to do already, or now */
static enum fettle_status unpack_file(struct npz *z, const struct dataset_options *opt, struct err *err)
{
	struct unpacking *begun = opt->begun ? *opt->begun : NULL;

	if (!begun)
		return unpack(&z->u, z->file, opt->memory_max, err);
	*opt->begun = NULL; /* now ours */
	return unpacking_end(begun, &z->u, err);
}

static enum fettle_status open_archive(struct dataset *d, const struct dataset_options *opt, struct err *err)
{
	struct npz *z = d->state;
	const struct zip *zip = &z->u.zip;
	bool wanted[DATASET_FIELDS_MAX] = { false };
	enum fettle_status st;
	size_t inflated = 0, i;

	st = unpack_file(z, opt, err);
	if (st)
		return fail_prefix(err, st, "cannot read %s", d->path);
	choose_members(opt, zip, wanted);
	for (i = 0; i < zip->members.n && !st; i++) {
		if (wanted[i])
			st = add_member(d, &zip->members.v[i], inflated, err);
		else
			ignore(d, &zip->members.v[i]);
		if (zip->members.v[i].deflated)
			inflated += zip->members.v[i].size;
	}
	if (!st && !d->n_fields)
		st = fail(err, FETTLE_INVALID, "cannot read %s: no arrays, need at least one", d->path);
	return st;
}

static enum fettle_status npz_open(struct dataset *d, const struct dataset_options *opt, struct err *err)
{
	struct npz *z = xcalloc(1, sizeof(*z));
	enum fettle_status st;

	d->state = z;
	z->fd = -1;
	z->u = (struct unpacked)UNPACKED_INIT;
	z->arrays = xcalloc(DATASET_FIELDS_MAX, sizeof(*z->arrays));
	st = file_map(d->path, &z->file, err);
	if (st)
		return st;
	z->fd = open(d->path, O_RDONLY | O_CLOEXEC);
	if (z->fd < 0)
		return fail(err, FETTLE_SYSTEM, "cannot read %s: %s", d->path, strerror(errno));
	if (npy_is(z->file))
		return add_array(d, "x", z->file, z->fd, 0, z->file.n, err);
	if (z->file.n < 2 || memcmp(z->file.p, "PK", 2) != 0)
		return fail(err, FETTLE_INVALID,
			    "cannot read data %s: neither .npz nor .npy, need one of these or a folder",
			    d->path);
	st = open_archive(d, opt, err);
	if (!st)
		dataset_find_labels(d);
	return st;
}

static enum fettle_status read_at(const struct dataset *d, int fd, unsigned char *to, size_t n, off_t at,
				  struct err *err)
{
	while (n) {
		ssize_t got = pread(fd, to, n, at);

		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			return fail(err, FETTLE_SYSTEM, "cannot read %s: %s", d->path,
				    got ? strerror(errno) : "it was cut off while it was in use");
		to += got;
		n -= (size_t)got;
		at += got;
	}
	return FETTLE_OK;
}

static enum fettle_status npz_read(const struct dataset *d, size_t field, size_t i, struct buffer *out,
				   struct err *err)
{
	const struct npz *z = d->state;
	const struct array *a = &z->arrays[field];
	const struct tensor *t = &a->header.shape;
	enum fettle_status st;
	size_t bytes;

	st = buffer_shape(out, t->dtype, t->rank - 1, t->dims + 1, d->fields[field].name, err);
	if (st)
		return st;
	if (a->fd < 0 || a->header.fortran) { /* the latter's samples are spread all over the file */
		npy_read(&a->header, a->elements, i, out->t.data);
		return FETTLE_OK;
	}
	bytes = tensor_bytes(&out->t);
	st = read_at(d, a->fd, out->t.data, bytes, a->at + (off_t)(i * bytes), err);
	if (!st && a->header.swap)
		swap_elements(out->t.data, (size_t)tensor_count(&out->t), dtype_size(t->dtype));
	return st;
}

static void npz_close(struct dataset *d)
{
	struct npz *z = d->state;

	if (!z)
		return;
	bytes_release(&z->file);
	unpacked_release(&z->u);
	if (z->fd >= 0)
		close(z->fd);
	free(z->arrays);
	free(z);
}

const struct dataset_kind dataset_npz = {
	.name = "Npz",
	.summary = "arrays of a .npz or .npy file",
	.probe = npz_probe,
	.open = npz_open,
	.read = npz_read,
	.close = npz_close,
};
