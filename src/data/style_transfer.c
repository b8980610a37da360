/*
 * INC's style_transfer: every image of one folder with every image of another, as two inputs. Both are resized as Pillow does it and
 * divided by 255 unless they are black. INC's crop_ratio crops nothing there either.
 */
#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "data/image.h"
#include "data/objects.h"
#include "data/resample.h"

enum { CONTENT, STYLE, FOLDERS };

struct styles {
	struct arena arena;
	struct list {
		VEC(const char *) paths; /* in the order of their names */
	} lists[FOLDERS];
	int64_t dims[3]; /* height, width, channels */
};

static int by_name(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static enum fettle_status list_images(struct styles *m, struct list *out, const char *folder, const char *end,
				      struct err *err)
{
	DIR *dir = opendir(folder);
	struct dirent *e;

	if (!dir)
		return fail(err, FETTLE_INVALID, "cannot read folder %s: %s", folder, strerror(errno));
	while ((e = readdir(dir)))
		if (e->d_name[0] != '.' && str_ends(e->d_name, end))
			VEC_PUSH(&out->paths, arena_strfmt(&m->arena, "%s/%s", folder, e->d_name));
	closedir(dir);
	if (!out->paths.n)
		return fail(err, FETTLE_INVALID, "cannot read folder %s: no images whose names end with %s",
			    folder, end);
	qsort(out->paths.v, out->paths.n, sizeof(*out->paths.v), by_name);
	return FETTLE_OK;
}

/* resize_shape: width and height, "256, 256" or "[256, 256]" */
static enum fettle_status read_shape(const char *text, int64_t dims[3], struct err *err)
{
	const char *p = text + strspn(text, "[ ");
	char *end;

	dims[1] = strtol(p, &end, 10);
	p = end + strspn(end, ", ");
	dims[0] = strtol(p, &end, 10);
	if (end == p || end[strspn(end, " ]")] || dims[0] < 1 || dims[1] < 1 || dims[0] > IMAGE_SIDE_MAX ||
	    dims[1] > IMAGE_SIDE_MAX)
		return fail(err, FETTLE_INVALID,
			    "cannot read style_transfer: resize_shape '%.80s', need two numbers such as "
			    "256, 256",
			    text);
	return FETTLE_OK;
}

static enum fettle_status styles_open(struct dataset *d, const struct dataset_options *opt, struct err *err)
{
	static const char *const keys[] = { "content_folder", "style_folder" };
	struct styles *m = d->state = xcalloc(1, sizeof(*m));
	const char *end = dataset_param(opt, "image_format", "jpg"), *folder;
	enum fettle_status st = read_shape(dataset_param(opt, "resize_shape", "256, 256"), m->dims, err);
	size_t i;

	for (i = 0; i < FOLDERS && !st; i++) {
		folder = dataset_param(opt, keys[i], NULL);
		st = folder ? list_images(m, &m->lists[i], folder, end, err)
			    : fail(err, FETTLE_INVALID, "cannot read style_transfer: no %s, need one",
				   keys[i]);
	}
	if (st)
		return st;
	m->dims[2] = opt->channels ? opt->channels : 3;
	d->n = m->lists[CONTENT].paths.n * m->lists[STYLE].paths.n;
	d->positional = true;
	dataset_add_field(d, "content", FIELD_INPUT, DT_F32, 3, m->dims);
	dataset_add_field(d, "style", FIELD_INPUT, DT_F32, 3, m->dims);
	return FETTLE_OK;
}

static enum fettle_status styles_read(const struct dataset *d, size_t field, size_t i, struct buffer *out,
				      struct err *err)
{
	const struct styles *m = d->state;
	const size_t n = m->lists[STYLE].paths.n;
	struct buffer image = { .cap = 0 }, small = { .cap = 0 };
	enum fettle_status st = image_read(m->lists[field].paths.v[field == STYLE ? i % n : i / n],
					   (int)m->dims[2], &image, err);
	const unsigned char *pixels;
	double most = 0;
	size_t k, all;

	if (!st)
		st = buffer_shape(&small, DT_U8, 3, m->dims, "a resized image", err);
	if (!st)
		st = image_resize_pillow(&image.t, INTERPOLATE_BICUBIC, &small.t, err);
	if (!st)
		st = buffer_shape(out, DT_F32, 3, m->dims, "an image", err);
	if (st)
		goto out;
	pixels = small.t.data;
	all = tensor_bytes(&small.t);
	for (k = 0; k < all; k++)
		most = pixels[k] > most ? pixels[k] : most;
	for (k = 0; k < all; k++)
		((float *)out->t.data)[k] = (float)(pixels[k] / (most > 1 ? 255. : 1.));
out:
	buffer_release(&image);
	buffer_release(&small);
	return st;
}

static char *styles_name(const struct dataset *d, size_t i)
{
	const struct styles *m = d->state;
	const size_t n = m->lists[STYLE].paths.n;

	return xstrfmt("%s with %s", m->lists[CONTENT].paths.v[i / n], m->lists[STYLE].paths.v[i % n]);
}

static void styles_close(struct dataset *d)
{
	struct styles *m = d->state;
	size_t i;

	if (!m)
		return;
	for (i = 0; i < FOLDERS; i++)
		VEC_RELEASE(&m->lists[i].paths);
	arena_release(&m->arena);
	free(m);
}

static const char *const styles_keys[] = { "content_folder", "style_folder", "crop_ratio",
					   "resize_shape",   "image_format", NULL };
static const struct idle_key styles_idle[] = { { "crop_ratio", "INC crops nothing either" }, { NULL, NULL } };

const struct dataset_kind dataset_style_transfer = {
	.name = "style_transfer",
	.summary = "every image of content_folder with every image of style_folder, as two inputs",
	.keys = styles_keys,
	.idle = styles_idle,
	.rootless = true,
	.decodes = true,
	.open = styles_open,
	.read = styles_read,
	.sample_name = styles_name,
	.close = styles_close,
};
