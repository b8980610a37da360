/*
 * MNIST, Fashion-MNIST and CIFAR in the files that their authors publish: IDX files (perhaps in gzip), Keras's mnist.npz, and batches of
 * binary records or of Python's pickles. INC's `download: true` downloads nothing here; what is missing is named with the place where
 * it belongs.
 */
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "data/convert.h"
#include "data/gunzip.h"
#include "data/objects.h"
#include "data/pickle.h"

enum { INPUT = 0, LABEL = 1 };              /* the fields */
enum { MNIST_SIDE = 28, CIFAR_SIDE = 32 };  /* pixels */
enum { IMAGES_HEAD = 16, LABELS_HEAD = 8 }; /* bytes of IDX files */

enum { CIFAR_PIXELS = 3 * CIFAR_SIDE * CIFAR_SIDE, CIFAR_FILES = 8 };

/* One of CIFAR's files. */
struct part {
	const unsigned char *pixels;
	size_t stride, end; /* bytes from an image to the next; the number of the first image after it */
	unsigned char *labels;
};

struct pictures {
	VEC(struct bytes) files;
	struct dataset *arrays; /* mnist.npz; NULL: IDX files */
	size_t array[2];        /* its fields that are INPUT and LABEL */
	struct part parts[CIFAR_FILES];
	size_t n_parts;
	int64_t side, channels;
};

static bool wants_training(const struct dataset_options *opt)
{
	return strcasecmp(dataset_param(opt, "train", "false"), "true") == 0;
}

/* FOLDER/SUB/raw/NAME, FOLDER/SUB/NAME or FOLDER/NAME, also with .gz; free() it. NULL: there is none. */
static char *find_file(const struct dataset *d, const char *sub, const char *name)
{
	static const char *const ends[] = { "", ".gz" };
	size_t i, k;

	for (i = 0; i < 3; i++)
		for (k = 0; k < ARRAY_LEN(ends); k++) {
			char *path = xstrfmt("%s%s%s%s/%s%s", d->path, i < 2 ? "/" : "", i < 2 ? sub : "",
					     i ? "" : "/raw", name, ends[k]);

			if (access(path, F_OK) == 0 && !path_is_dir(path))
				return path;
			free(path);
		}
	return NULL;
}

static enum fettle_status open_file(struct dataset *d, const char *sub, const char *name, struct bytes *out,
				    struct err *err)
{
	struct pictures *m = d->state;
	char *path = find_file(d, sub, name);
	enum fettle_status st;

	if (!path)
		return fail(err, FETTLE_INVALID,
			    "cannot read data %s: no %s, need it there, as published (nothing is downloaded)",
			    d->path, name);
	st = file_map_inflated(path, out, err);
	free(path);
	if (!st)
		VEC_PUSH(&m->files, *out);
	return st;
}

static void add_fields(struct dataset *d)
{
	const struct pictures *m = d->state;

	dataset_add_field(d, "image", FIELD_INPUT, DT_U8, 3, (int64_t[]){ m->side, m->side, m->channels });
	dataset_add_field(d, "label", FIELD_LABEL, DT_S64, 0, NULL);
}

/* ---- IDX ---- */

static uint32_t be32(const unsigned char *p)
{
	return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | (uint32_t)p[3];
}

/* Keras's file: arrays x_test and y_test, x_train and y_train. */
static enum fettle_status npz_open(struct dataset *d, const char *path, bool train, struct err *err)
{
	const char *const wanted[] = { train ? "x_train" : "x_test", train ? "y_train" : "y_test" };
	const struct dataset_options opt = { .kind = "Npz", .wanted = wanted, .n_wanted = 2 };
	struct pictures *m = d->state;
	const struct field *x, *y;
	enum fettle_status st = dataset_open(&m->arrays, path, &opt, err);

	if (st)
		return st;
	x = dataset_field(m->arrays, wanted[INPUT]);
	y = dataset_field(m->arrays, wanted[LABEL]);
	if (!x || x->sample.dtype != DT_U8 || x->sample.rank != 2 || x->sample.dims[0] != MNIST_SIDE ||
	    x->sample.dims[1] != MNIST_SIDE || !y || y->sample.rank || !dtype_is_integer(y->sample.dtype))
		return fail(err, FETTLE_INVALID,
			    "cannot read data %s: need %s, uint8 [N,%d,%d], and %s, whole numbers [N]", path,
			    wanted[INPUT], MNIST_SIDE, MNIST_SIDE, wanted[LABEL]);
	m->array[INPUT] = (size_t)(x - m->arrays->fields);
	m->array[LABEL] = (size_t)(y - m->arrays->fields);
	d->n = m->arrays->n;
	return FETTLE_OK;
}

static enum fettle_status idx_open(struct dataset *d, bool train, struct err *err)
{
	struct bytes images = BYTES_INIT, labels = BYTES_INIT;
	const size_t pixels = MNIST_SIDE * MNIST_SIDE;
	enum fettle_status st;

	st = open_file(d, d->kind->name, train ? "train-images-idx3-ubyte" : "t10k-images-idx3-ubyte",
		       &images, err);
	if (!st)
		st = open_file(d, d->kind->name, train ? "train-labels-idx1-ubyte" : "t10k-labels-idx1-ubyte",
			       &labels, err);
	if (st)
		return st;
	if (images.n < IMAGES_HEAD || be32(images.p) != 0x803 || be32(images.p + 8) != MNIST_SIDE ||
	    be32(images.p + 12) != MNIST_SIDE || labels.n < LABELS_HEAD || be32(labels.p) != 0x801)
		return fail(err, FETTLE_INVALID,
			    "cannot read data %s: no IDX files of %d x %d images and of their labels",
			    d->path, MNIST_SIDE, MNIST_SIDE);
	d->n = be32(images.p + 4);
	if (!d->n || d->n != be32(labels.p + 4) || images.n - IMAGES_HEAD != d->n * pixels ||
	    labels.n - LABELS_HEAD != d->n)
		return fail(
			err, FETTLE_INVALID,
			"cannot read data %s: %zu images in %zu bytes and %u labels in %zu, these do not fit",
			d->path, d->n, images.n, be32(labels.p + 4), labels.n);
	return FETTLE_OK;
}

static enum fettle_status mnist_open(struct dataset *d, const struct dataset_options *opt, struct err *err)
{
	struct pictures *m = d->state = xcalloc(1, sizeof(*m));
	char *npz = strcmp(d->kind->name, "MNIST") == 0 ? find_file(d, "MNIST", "mnist.npz") : NULL;
	enum fettle_status st =
		npz ? npz_open(d, npz, wants_training(opt), err) : idx_open(d, wants_training(opt), err);

	free(npz);
	m->side = MNIST_SIDE;
	m->channels = 1;
	if (!st)
		add_fields(d);
	return st;
}

static enum fettle_status npz_read(const struct pictures *m, size_t field, size_t i, struct buffer *out,
				   struct err *err)
{
	enum fettle_status st = m->arrays->kind->read(m->arrays, m->array[field], i, out, err);
	int64_t label;

	if (!st && field == INPUT) {
		out->t.rank = 3;
		out->t.dims[2] = 1;
	} else if (!st) {
		label = (int64_t)tensor_get(&out->t, 0);
		st = buffer_shape(out, DT_S64, 0, NULL, "a label", err);
		if (!st)
			*(int64_t *)out->t.data = label;
	}
	return st;
}

static enum fettle_status mnist_read(const struct dataset *d, size_t field, size_t i, struct buffer *out,
				     struct err *err)
{
	const size_t pixels = MNIST_SIDE * MNIST_SIDE;
	const struct pictures *m = d->state;
	enum fettle_status st;

	if (m->arrays)
		return npz_read(m, field, i, out, err);
	if (field == LABEL) {
		st = buffer_shape(out, DT_S64, 0, NULL, "a label", err);
		if (!st)
			*(int64_t *)out->t.data = m->files.v[1].p[LABELS_HEAD + i];
		return st;
	}
	st = buffer_shape(out, DT_U8, 3, (int64_t[]){ MNIST_SIDE, MNIST_SIDE, 1 }, "an image", err);
	if (!st)
		memcpy(out->t.data, m->files.v[0].p + IMAGES_HEAD + i * pixels, pixels);
	return st;
}

/* ---- CIFAR ---- */

/* Records of labels, of which the last is the finest, and of an image. */
static enum fettle_status add_records(struct dataset *d, const char *name, struct bytes file, size_t labels,
				      struct err *err)
{
	struct pictures *m = d->state;
	struct part *p = &m->parts[m->n_parts++];
	const size_t size = labels + CIFAR_PIXELS, n = file.n / size;
	size_t i;

	if (!n || file.n % size)
		return fail(err, FETTLE_INVALID, "cannot read data %s: %s has %zu bytes, need records of %zu",
			    d->path, name, file.n, size);
	*p = (struct part){ file.p + labels, size, d->n += n, xmalloc(n) };
	for (i = 0; i < n; i++)
		p->labels[i] = file.p[i * size + labels - 1];
	return FETTLE_OK;
}

/* A map with an array `data` and a list `labels` or `fine_labels`. */
static enum fettle_status add_pickle(struct dataset *d, const char *name, struct bytes file, struct err *err)
{
	struct pictures *m = d->state;
	struct part *p = &m->parts[m->n_parts++];
	struct arena arena = ARENA_INIT;
	const struct pickle *all = NULL, *labels = NULL;
	enum fettle_status st = pickle_parse(file, &arena, &all, err);
	struct bytes pixels = BYTES_INIT;
	int64_t n = 0, columns = 0;
	size_t i;

	if (st) {
		fail_prefix(err, st, "cannot read data %s: %s", d->path, name);
		goto out;
	}
	labels = pickle_find(all, "labels");
	labels = labels ? labels : pickle_find(all, "fine_labels");
	if (!pickle_array(pickle_find(all, "data"), &n, &columns, &pixels) || columns != CIFAR_PIXELS ||
	    !labels || labels->type != PICKLE_LIST || labels->n != (size_t)n) {
		st = fail(err, FETTLE_INVALID,
			  "cannot read data %s: %s, need an array data, uint8 [N,%d], and N labels", d->path,
			  name, CIFAR_PIXELS);
		goto out;
	}
	*p = (struct part){ pixels.p, CIFAR_PIXELS, d->n += (size_t)n, xmalloc((size_t)n) };
	for (i = 0; i < (size_t)n && !st; i++) {
		p->labels[i] = (unsigned char)labels->v[i]->number;
		if (labels->v[i]->type != PICKLE_INT || labels->v[i]->number != p->labels[i])
			st = fail(err, FETTLE_INVALID,
				  "cannot read data %s: %s, label %zu, need a number from 0 to 255", d->path,
				  name, i);
	}
out:
	arena_release(&arena);
	return st;
}

/* The binary files or else the pickles; those of the test set begin with "test". */
static enum fettle_status cifar_open_of(struct dataset *d, const struct dataset_options *opt,
					const char *const subs[2], const char *const *names, size_t labels,
					struct err *err)
{
	struct pictures *m = d->state = xcalloc(1, sizeof(*m));
	struct bytes file = BYTES_INIT;
	enum fettle_status st = FETTLE_OK;
	size_t i;

	m->side = CIFAR_SIDE;
	m->channels = 3;
	for (i = 0; names[i] && !st; i++) {
		char *binary = xstrfmt("%s.bin", names[i]), *pickle;

		if ((strncmp(names[i], "test", 4) != 0) != wants_training(opt)) {
			free(binary);
			continue;
		}
		pickle = find_file(d, subs[1], names[i]);
		free(pickle);
		st = open_file(d, subs[pickle != NULL], pickle ? names[i] : binary, &file, err);
		if (!st)
			st = pickle ? add_pickle(d, names[i], file, err)
				    : add_records(d, binary, file, labels, err);
		free(binary);
	}
	if (!st)
		add_fields(d);
	return st;
}

static enum fettle_status cifar10_open(struct dataset *d, const struct dataset_options *opt, struct err *err)
{
	static const char *const names[] = { "data_batch_1",
					     "data_batch_2",
					     "data_batch_3",
					     "data_batch_4",
					     "data_batch_5",
					     "test_batch",
					     NULL };
	static const char *const subs[] = { "cifar-10-batches-bin", "cifar-10-batches-py" };

	return cifar_open_of(d, opt, subs, names, 1, err);
}

static enum fettle_status cifar100_open(struct dataset *d, const struct dataset_options *opt, struct err *err)
{
	static const char *const names[] = { "train", "test", NULL };
	static const char *const subs[] = { "cifar-100-binary", "cifar-100-python" };

	return cifar_open_of(d, opt, subs, names, 2, err);
}

/* planes become pixels */
static enum fettle_status cifar_read(const struct dataset *d, size_t field, size_t i, struct buffer *out,
				     struct err *err)
{
	const size_t plane = CIFAR_SIDE * CIFAR_SIDE;
	const struct pictures *m = d->state;
	const struct part *part = m->parts;
	const unsigned char *p;
	unsigned char *to;
	enum fettle_status st;
	size_t k;

	while (i >= part->end)
		part++;
	i -= part > m->parts ? part[-1].end : 0;
	if (field == LABEL) {
		st = buffer_shape(out, DT_S64, 0, NULL, "a label", err);
		if (!st)
			*(int64_t *)out->t.data = part->labels[i];
		return st;
	}
	p = part->pixels + i * part->stride;
	st = buffer_shape(out, DT_U8, 3, (int64_t[]){ CIFAR_SIDE, CIFAR_SIDE, 3 }, "an image", err);
	for (k = 0, to = out->t.data; k < plane && !st; k++, to += 3) {
		to[0] = p[k];
		to[1] = p[plane + k];
		to[2] = p[2 * plane + k];
	}
	return st;
}

static void pictures_close(struct dataset *d)
{
	struct pictures *m = d->state;
	size_t i;

	if (!m)
		return;
	for (i = 0; i < m->files.n; i++)
		bytes_release(&m->files.v[i]);
	VEC_RELEASE(&m->files);
	for (i = 0; i < m->n_parts; i++)
		free(m->parts[i].labels);
	dataset_free(m->arrays);
	free(m);
}

static const char *const keys[] = { "train", "download", NULL };
static const struct idle_key idle_keys[] = { { "download", "nothing is downloaded" }, { NULL, NULL } };

#define PICTURES(id, word, how, says)                                                                        \
	const struct dataset_kind dataset_##id = {                                                           \
		.name = (word),                                                                              \
		.summary = (says),                                                                           \
		.keys = keys,                                                                                \
		.idle = idle_keys,                                                                           \
		.open = how##_open,                                                                          \
		.read = how##_read,                                                                          \
		.close = pictures_close,                                                                     \
	};
#define cifar10_read cifar_read
#define cifar100_read cifar_read
PICTURES(mnist, "MNIST", mnist, "MNIST's IDX files, or mnist.npz")
PICTURES(fashion_mnist, "FashionMNIST", mnist, "Fashion-MNIST's IDX files")
PICTURES(cifar10, "CIFAR10", cifar10, "CIFAR-10's batches, binary or pickled")
PICTURES(cifar100, "CIFAR100", cifar100, "CIFAR-100's files, binary or pickled")
