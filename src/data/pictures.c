/*
 * MNIST, Fashion-MNIST and CIFAR in the files that their authors publish: IDX files (perhaps in gzip) and batches of binary records. INC's
 * `download: true` downloads nothing here; what is missing is named with the place where it belongs.
 */
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "data/gunzip.h"
#include "data/objects.h"

enum { INPUT = 0, LABEL = 1 };              /* the fields */
enum { MNIST_SIDE = 28, CIFAR_SIDE = 32 };  /* pixels */
enum { IMAGES_HEAD = 16, LABELS_HEAD = 8 }; /* bytes of IDX files */

struct pictures {
	VEC(struct bytes) files;
	int64_t side, channels;
	size_t before, size; /* CIFAR: bytes of labels before an image, and of both */
	size_t *first;       /* of each file, and the number of all */
};

static bool wants_training(const struct dataset_options *opt)
{
	return strcasecmp(dataset_param(opt, "train", "false"), "true") == 0;
}

/* FOLDER/SUB/NAME or FOLDER/NAME, also with .gz */
static enum fettle_status open_file(struct dataset *d, const char *sub, const char *name, struct bytes *out,
				    struct err *err)
{
	static const char *const ends[] = { "", ".gz" };
	struct pictures *m = d->state;
	enum fettle_status st;
	bool found = false;
	size_t i, k;

	for (i = 0; i < 2 && !found; i++)
		for (k = 0; k < ARRAY_LEN(ends) && !found; k++) {
			char *path =
				xstrfmt("%s/%s%s%s%s", d->path, i ? "" : sub, i ? "" : "/", name, ends[k]);

			found = access(path, F_OK) == 0;
			st = found ? file_map_inflated(path, out, err) : FETTLE_OK;
			free(path);
			if (st)
				return st;
		}
	if (!found)
		return fail(err, FETTLE_INVALID,
			    "cannot read data %s: no %s, need it there, as published (nothing is downloaded)",
			    d->path, name);
	VEC_PUSH(&m->files, *out);
	return FETTLE_OK;
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

static enum fettle_status mnist_open(struct dataset *d, const struct dataset_options *opt, struct err *err)
{
	const bool train = wants_training(opt);
	struct pictures *m = xcalloc(1, sizeof(*m));
	struct bytes images = BYTES_INIT, labels = BYTES_INIT;
	const size_t pixels = MNIST_SIDE * MNIST_SIDE;
	char *sub = xstrfmt("%s/raw", d->kind->name);
	enum fettle_status st;

	d->state = m;
	st = open_file(d, sub, train ? "train-images-idx3-ubyte" : "t10k-images-idx3-ubyte", &images, err);
	if (!st)
		st = open_file(d, sub, train ? "train-labels-idx1-ubyte" : "t10k-labels-idx1-ubyte", &labels,
			       err);
	free(sub);
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
	m->side = MNIST_SIDE;
	m->channels = 1;
	add_fields(d);
	return FETTLE_OK;
}

static enum fettle_status mnist_read(const struct dataset *d, size_t field, size_t i, struct buffer *out,
				     struct err *err)
{
	const size_t pixels = MNIST_SIDE * MNIST_SIDE;
	const struct pictures *m = d->state;
	enum fettle_status st;

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

static enum fettle_status cifar_open_of(struct dataset *d, const struct dataset_options *opt, const char *sub,
					const char *const *names, size_t labels, struct err *err)
{
	struct pictures *m = d->state = xcalloc(1, sizeof(*m));
	struct bytes file = BYTES_INIT;
	enum fettle_status st = FETTLE_OK;
	size_t i;

	m->side = CIFAR_SIDE;
	m->channels = 3;
	m->before = labels;
	m->size = labels + 3 * CIFAR_SIDE * CIFAR_SIDE;
	m->first = xcalloc(8, sizeof(*m->first));
	for (i = 0; names[i] && !st; i++) {
		if ((strncmp(names[i], "test", 4) != 0) != wants_training(opt))
			continue;
		st = open_file(d, sub, names[i], &file, err);
		if (!st && (!file.n || file.n % m->size))
			st = fail(err, FETTLE_INVALID,
				  "cannot read data %s: %s has %zu bytes, need records of %zu", d->path,
				  names[i], file.n, m->size);
		if (!st)
			m->first[m->files.n] = d->n += file.n / m->size;
	}
	if (!st)
		add_fields(d);
	return st;
}

static enum fettle_status cifar10_open(struct dataset *d, const struct dataset_options *opt, struct err *err)
{
	static const char *const names[] = { "data_batch_1.bin",
					     "data_batch_2.bin",
					     "data_batch_3.bin",
					     "data_batch_4.bin",
					     "data_batch_5.bin",
					     "test_batch.bin",
					     NULL };

	return cifar_open_of(d, opt, "cifar-10-batches-bin", names, 1, err);
}

static enum fettle_status cifar100_open(struct dataset *d, const struct dataset_options *opt, struct err *err)
{
	static const char *const names[] = { "train.bin", "test.bin", NULL };

	return cifar_open_of(d, opt, "cifar-100-binary", names, 2, err);
}

/* planes become pixels; of CIFAR-100's two labels, the second is the finer one */
static enum fettle_status cifar_read(const struct dataset *d, size_t field, size_t i, struct buffer *out,
				     struct err *err)
{
	const size_t plane = CIFAR_SIDE * CIFAR_SIDE;
	const struct pictures *m = d->state;
	const unsigned char *p;
	unsigned char *to;
	enum fettle_status st;
	size_t file, k;

	for (file = 0; i >= m->first[file + 1]; file++)
		;
	p = m->files.v[file].p + (i - m->first[file]) * m->size;
	if (field == LABEL) {
		st = buffer_shape(out, DT_S64, 0, NULL, "a label", err);
		if (!st)
			*(int64_t *)out->t.data = p[m->before - 1];
		return st;
	}
	st = buffer_shape(out, DT_U8, 3, (int64_t[]){ CIFAR_SIDE, CIFAR_SIDE, 3 }, "an image", err);
	for (k = 0, to = out->t.data; k < plane && !st; k++, to += 3) {
		to[0] = p[m->before + k];
		to[1] = p[m->before + plane + k];
		to[2] = p[m->before + 2 * plane + k];
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
	free(m->first);
	free(m);
}

static const char *const keys[] = { "train", "download", NULL };
static const char *const idle_keys[] = { "download", NULL };

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
PICTURES(mnist, "MNIST", mnist, "MNIST's IDX files")
PICTURES(fashion_mnist, "FashionMNIST", mnist, "Fashion-MNIST's IDX files")
PICTURES(cifar10, "CIFAR10", cifar10, "CIFAR-10's binary batches")
PICTURES(cifar100, "CIFAR100", cifar100, "CIFAR-100's binary files")
