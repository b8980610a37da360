/* Arrays in a .npz archive or a .npy file. Stored arrays are used where they are in the mapped file. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/str.h"
#include "data/kind.h"
#include "data/npy.h"
#include "data/zip.h"

struct array {
	struct npy header;
	const unsigned char *elements; /* of any alignment */
};

struct npz {
	struct bytes file;
	struct bytes inflated; /* all deflated members, one after the other */
	struct array *arrays;  /* parallel to the dataset's fields */
};

static bool npz_probe(const char *path)
{
	return !path_is_dir(path);
}

/* An unlinked file whose blocks exist already: the disk may be full now, not when we write to a page. */
static enum fettle_status open_temp(size_t size, int *out, struct err *err)
{
	const char *dir = getenv("TMPDIR");
	char *path = xstrfmt("%s/fettle-XXXXXX", dir && *dir ? dir : "/tmp");
	int fd = mkostemp(path, O_CLOEXEC), problem;

	if (fd < 0) {
		problem = errno;
	} else {
		unlink(path);
		problem = posix_fallocate(fd, 0, (off_t)size);
		if (problem)
			close(fd);
	}
	if (problem)
		fail(err, FETTLE_SYSTEM, "%zu bytes do not fit into a temporary file in %s: %s (set TMPDIR)",
		     size, dir && *dir ? dir : "/tmp", strerror(problem));
	free(path);
	*out = fd;
	return problem ? FETTLE_SYSTEM : FETTLE_OK;
}

/* Room for what is deflated: anonymous memory when it is little, else a mapped file. */
static enum fettle_status map_room(struct npz *z, size_t size, size_t memory_max, struct err *err)
{
	int fd = -1, flags = MAP_PRIVATE | MAP_ANONYMOUS;
	enum fettle_status st;
	void *p;

	if (size > memory_max) {
		st = open_temp(size, &fd, err);
		if (st)
			return st;
		flags = MAP_SHARED;
	}
	p = mmap(NULL, size, PROT_READ | PROT_WRITE, flags, fd, 0);
	if (fd >= 0)
		close(fd);
	if (p == MAP_FAILED)
		return fail(err, FETTLE_SYSTEM, "%zu bytes to inflate it into cannot be had: %s", size,
			    strerror(errno));
	z->inflated = (struct bytes){ p, size };
	return FETTLE_OK;
}

static enum fettle_status inflate_all(struct npz *z, const struct zip *zip, size_t memory_max,
				      struct err *err)
{
	enum fettle_status st;
	size_t total = 0, i;

	for (i = 0; i < zip->members.n; i++)
		if (zip->members.v[i].deflated)
			total += zip->members.v[i].size; /* at most 1032 times the file: no overflow */
	if (!total)
		return FETTLE_OK;
	st = map_room(z, total, memory_max, err);
	for (i = 0, total = 0; i < zip->members.n && !st; i++) {
		if (!zip->members.v[i].deflated)
			continue;
		st = zip_inflate(&zip->members.v[i], z->file,
				 (unsigned char *)(uintptr_t)z->inflated.p + total, err);
		total += zip->members.v[i].size;
	}
	return st;
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

static enum fettle_status add_array(struct dataset *d, const char *name, struct bytes npy, struct err *err)
{
	struct npz *z = d->state;
	struct array *a = &z->arrays[d->n_fields];
	enum fettle_status st;

	st = npy_parse(npy, &a->header, err);
	if (!st)
		st = check_array(d, &a->header, err);
	if (st)
		return fail_prefix(err, st, "cannot read %s: array '%s'", d->path, name);
	if (dataset_field(d, name))
		return fail(err, FETTLE_INVALID, "cannot read %s: two arrays are called '%s'", d->path, name);
	a->elements = npy.p + a->header.at;
	d->n = (size_t)a->header.shape.dims[0];
	dataset_add_field(d, name, FIELD_INPUT, a->header.shape.dtype, a->header.shape.rank - 1,
			  a->header.shape.dims + 1);
	return FETTLE_OK;
}

static enum fettle_status add_member(struct dataset *d, const struct zip_member *m, const unsigned char *p,
				     struct err *err)
{
	enum fettle_status st;
	size_t n = strlen(m->name);
	char *name;

	if (!str_ends(m->name, ".npy") || n == 4)
		return fail(err, FETTLE_INVALID, "cannot read %s: member '%s' is not an array, need NAME.npy",
			    d->path, m->name);
	st = zip_verify(m, p, err);
	if (st)
		return fail_prefix(err, st, "cannot read %s", d->path);
	name = xstrfmt("%.*s", (int)(n - 4), m->name);
	st = add_array(d, name, (struct bytes){ p, m->size }, err);
	free(name);
	return st;
}

static enum fettle_status open_archive(struct dataset *d, struct err *err)
{
	struct npz *z = d->state;
	struct zip zip = ZIP_INIT;
	const unsigned char *inflated;
	enum fettle_status st;
	size_t i;

	st = zip_open(&zip, z->file, DATASET_FIELDS_MAX, err);
	if (!st)
		st = inflate_all(z, &zip, d->memory_max, err);
	if (st) {
		fail_prefix(err, st, "cannot read %s", d->path);
		goto out;
	}
	inflated = z->inflated.p;
	for (i = 0; i < zip.members.n && !st; i++) {
		const struct zip_member *m = &zip.members.v[i];

		st = add_member(d, m, m->deflated ? inflated : z->file.p + m->at, err);
		if (m->deflated)
			inflated += m->size;
	}
	if (!st && !d->n_fields)
		st = fail(err, FETTLE_INVALID, "cannot read %s: no arrays, need at least one", d->path);
out:
	zip_release(&zip);
	return st;
}

static void find_labels(struct dataset *d)
{
	static const char *const names[] = { "y", "label", "labels" };
	const struct field *f = NULL;
	size_t i;

	for (i = 0; i < ARRAY_LEN(names) && !f; i++)
		f = dataset_field(d, names[i]);
	if (f)
		d->fields[f - d->fields].role = FIELD_LABEL;
}

static enum fettle_status npz_open(struct dataset *d, struct err *err)
{
	struct npz *z = xcalloc(1, sizeof(*z));
	enum fettle_status st;

	d->state = z;
	z->arrays = xcalloc(DATASET_FIELDS_MAX, sizeof(*z->arrays));
	st = file_map(d->path, &z->file, err);
	if (st)
		return st;
	if (npy_is(z->file))
		return add_array(d, "x", z->file, err);
	if (z->file.n < 2 || memcmp(z->file.p, "PK", 2) != 0)
		return fail(err, FETTLE_INVALID,
			    "cannot read data %s: neither .npz nor .npy, need one of these or a folder",
			    d->path);
	st = open_archive(d, err);
	if (!st)
		find_labels(d);
	return st;
}

static enum fettle_status npz_read(const struct dataset *d, size_t field, size_t i, struct buffer *out,
				   struct err *err)
{
	const struct npz *z = d->state;
	const struct array *a = &z->arrays[field];
	const struct tensor *t = &a->header.shape;
	enum fettle_status st;

	st = buffer_shape(out, t->dtype, t->rank - 1, t->dims + 1, d->fields[field].name, err);
	if (!st)
		npy_read(&a->header, a->elements, i, out->t.data);
	return st;
}

static void npz_close(struct dataset *d)
{
	struct npz *z = d->state;

	if (!z)
		return;
	bytes_release(&z->file);
	bytes_release(&z->inflated);
	free(z->arrays);
	free(z);
}

const struct dataset_kind dataset_npz = {
	.name = "npz",
	.summary = "arrays of a .npz or .npy file",
	.probe = npz_probe,
	.open = npz_open,
	.read = npz_read,
	.close = npz_close,
};
