/* A folder of class folders of images; images are decoded when they are read. */
#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/file.h"
#include "base/mem.h"
#include "data/image.h"
#include "data/kind.h"

enum { INPUT = 0, LABEL = 1 }; /* the fields */

struct image_file {
	const char *name; /* in the arena; without its folder */
	size_t folder;
};

struct images {
	struct arena arena;
	VEC(const char *) folders; /* paths, in the order of their classes */
	VEC(struct image_file) files;
	int channels;
};

static bool images_probe(const char *path)
{
	return path_is_dir(path);
}

static int by_name(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* The names in a folder, in byte order; hidden ones are left out. */
struct names {
	VEC(const char *) list;
};

static enum fettle_status list_folder(const char *path, struct arena *arena, struct names *out,
				      struct err *err)
{
	DIR *dir = opendir(path);
	struct dirent *e;

	if (!dir)
		return fail(err, FETTLE_INVALID, "cannot read folder %s: %s", path, strerror(errno));
	while ((e = readdir(dir)))
		if (e->d_name[0] != '.')
			VEC_PUSH(&out->list, arena_strdup(arena, e->d_name));
	closedir(dir);
	if (out->list.n)
		qsort(out->list.v, out->list.n, sizeof(*out->list.v), by_name);
	return FETTLE_OK;
}

static bool is_image_name(const char *name)
{
	static const char *const endings[] = { ".jpg", ".jpeg", ".png" };
	const char *dot = strrchr(name, '.');
	size_t i;

	for (i = 0; dot && i < ARRAY_LEN(endings); i++)
		if (strcasecmp(dot, endings[i]) == 0)
			return true;
	return false;
}

/* All images of a folder; what is no image there would otherwise be missed without a word. */
static enum fettle_status add_folder(struct images *m, const char *path, struct err *err)
{
	struct names names = { .list = { NULL, 0, 0 } };
	enum fettle_status st;
	size_t i;

	st = list_folder(path, &m->arena, &names, err);
	for (i = 0; i < names.list.n && !st; i++) {
		struct image_file file = { names.list.v[i], m->folders.n };

		if (!is_image_name(file.name))
			st = fail(err, FETTLE_INVALID,
				  "cannot read %s/%s: not an image, need only .jpg, .jpeg and .png in a "
				  "class folder",
				  path, file.name);
		else
			VEC_PUSH(&m->files, file);
	}
	VEC_PUSH(&m->folders, path);
	VEC_RELEASE(&names.list);
	return st;
}

/* Says whether there are class folders at all. */
static enum fettle_status scan(struct images *m, const char *path, bool *classes, struct err *err)
{
	struct names names = { .list = { NULL, 0, 0 } };
	const char *stray = NULL;
	enum fettle_status st;
	size_t i;

	*classes = false;
	st = list_folder(path, &m->arena, &names, err);
	for (i = 0; i < names.list.n && !st; i++) {
		const char *sub = arena_strfmt(&m->arena, "%s/%s", path, names.list.v[i]);

		if (path_is_dir(sub)) {
			*classes = true;
			st = add_folder(m, sub, err);
		} else if (is_image_name(sub)) {
			stray = sub;
		}
	}
	if (!st && stray && *classes)
		st = fail(err, FETTLE_INVALID,
			  "cannot read %s: an image beside class folders, need it inside one", stray);
	else if (!st && stray)
		st = add_folder(m, path, err);
	VEC_RELEASE(&names.list);
	return st;
}

static enum fettle_status images_open(struct dataset *d, const struct dataset_options *opt, struct err *err)
{
	const int channels = opt->channels ? opt->channels : 3;
	const int64_t dims[] = { -1, -1, channels };
	struct images *m = xcalloc(1, sizeof(*m));
	enum fettle_status st;
	bool classes;

	d->state = m;
	m->channels = channels;
	st = scan(m, d->path, &classes, err);
	if (st)
		return st;
	if (!m->files.n)
		return fail(err, FETTLE_INVALID,
			    "cannot read data %s: no images, need class folders of .jpg or .png, or "
			    "test_data_set_* "
			    "folders",
			    d->path);
	d->n = m->files.n;
	dataset_add_field(d, "image", FIELD_INPUT, DT_U8, 3, dims);
	if (classes)
		dataset_add_field(d, "label", FIELD_LABEL, DT_S64, 0, NULL);
	return FETTLE_OK;
}

static char *images_sample_name(const struct dataset *d, size_t i)
{
	const struct images *m = d->state;
	const struct image_file *f = &m->files.v[i];

	return xstrfmt("%s/%s", m->folders.v[f->folder], f->name);
}

static enum fettle_status images_read(const struct dataset *d, size_t field, size_t i, struct buffer *out,
				      struct err *err)
{
	const struct images *m = d->state;
	enum fettle_status st;
	char *path;

	if (field == LABEL) {
		st = buffer_shape(out, DT_S64, 0, NULL, "a label", err);
		if (!st)
			*(int64_t *)out->t.data = (int64_t)m->files.v[i].folder;
		return st;
	}
	path = images_sample_name(d, i);
	st = image_read(path, m->channels, out, err);
	free(path);
	return st;
}

static void images_close(struct dataset *d)
{
	struct images *m = d->state;

	if (!m)
		return;
	VEC_RELEASE(&m->folders);
	VEC_RELEASE(&m->files);
	arena_release(&m->arena);
	free(m);
}

const struct dataset_kind dataset_images = {
	.name = "ImageFolder",
	.summary = "a folder of class folders of JPEG and PNG images",
	.probe = images_probe,
	.decodes = true,
	.open = images_open,
	.read = images_read,
	.sample_name = images_sample_name,
	.close = images_close,
};
