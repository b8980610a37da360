/*
 * INC's ImagenetRaw: a folder of images and a text file with a line `NAME LABEL` for each, by default val_map.txt or val.txt in the folder.
 * Lines whose image is not there are left out, as INC does, for a part of the images with the list of all is common; a note counts them.
 */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/mem.h"
#include "base/str.h"
#include "data/image.h"
#include "data/kind.h"

enum { INPUT = 0, LABEL = 1 }; /* the fields */

struct raw {
	struct arena arena;
	VEC(struct raw_image {
		const char *path;
		int64_t label;
	})
	images;
	size_t missing;
	int channels;
};

static char *list_path(const struct dataset *d, const struct dataset_options *opt)
{
	char *path;
	size_t i;

	for (i = 0; i < opt->n_params; i++)
		if (strcmp(opt->params[i].key, "image_list") == 0)
			return xstrdup(opt->params[i].value);
	path = xstrfmt("%s/val_map.txt", d->path);
	if (access(path, F_OK) == 0)
		return path;
	free(path);
	return xstrfmt("%s/val.txt", d->path);
}

/* "n01/a b.JPEG 17": the label is the last word, and names may have blanks */
static enum fettle_status add_line(struct dataset *d, char *line, const char *list, size_t number,
				   struct err *err)
{
	struct raw *m = d->state;
	struct raw_image image;
	char *end = line + strlen(line), *label, *rest;

	while (end > line && isspace((unsigned char)end[-1]))
		*--end = '\0';
	for (label = end; label > line && !isspace((unsigned char)label[-1]); label--)
		;
	if (!*label)
		return FETTLE_OK; /* an empty line */
	image.label = strtoll(label, &rest, 10);
	for (end = label; end > line && isspace((unsigned char)end[-1]);)
		*--end = '\0';
	line += strspn(line, " \t");
	if (*rest || rest == label || end <= line)
		return fail(err, FETTLE_INVALID,
			    "cannot read %s: line %zu, need an image's name and its class number", list,
			    number);
	image.path = arena_strfmt(&m->arena, "%s/%s", d->path, line);
	if (access(image.path, F_OK) == 0)
		VEC_PUSH(&m->images, image);
	else
		m->missing++;
	return FETTLE_OK;
}

static enum fettle_status read_list(struct dataset *d, const char *list, struct err *err)
{
	struct bytes file = BYTES_INIT;
	char *text = NULL, *next, *line;
	enum fettle_status st;
	size_t number = 0;

	st = file_map(list, &file, err);
	if (st)
		goto out;
	text = xcalloc(file.n + 1, 1);
	if (file.n)
		memcpy(text, file.p, file.n);
	if (strlen(text) != file.n) {
		st = fail(err, FETTLE_INVALID, "cannot read %s: a NUL in it, need lines of text", list);
		goto out;
	}
	for (next = text; !st && (line = strsep(&next, "\n"));)
		st = add_line(d, line, list, ++number, err);
out:
	free(text);
	bytes_release(&file);
	return st;
}

static enum fettle_status raw_open(struct dataset *d, const struct dataset_options *opt, struct err *err)
{
	struct raw *m = xcalloc(1, sizeof(*m));
	int64_t dims[] = { -1, -1, 3 };
	char *list = list_path(d, opt);
	enum fettle_status st;

	d->state = m;
	m->channels = opt->channels ? opt->channels : 3;
	dims[2] = m->channels;
	st = read_list(d, list, err);
	if (!st && !m->images.n)
		st = fail(err, FETTLE_INVALID, "cannot read data %s: none of the %zu images of %s is there",
			  d->path, m->missing, list);
	if (!st && m->missing)
		d->note = xstrfmt("%zu of the %zu images of %s are not in %s and are left out", m->missing,
				  m->missing + m->images.n, list, d->path);
	free(list);
	if (st)
		return st;
	d->n = m->images.n;
	dataset_add_field(d, "image", FIELD_INPUT, DT_U8, 3, dims);
	dataset_add_field(d, "label", FIELD_LABEL, DT_S64, 0, NULL);
	return FETTLE_OK;
}

static char *raw_sample_name(const struct dataset *d, size_t i)
{
	return xstrdup(((const struct raw *)d->state)->images.v[i].path);
}

static enum fettle_status raw_read(const struct dataset *d, size_t field, size_t i, struct buffer *out,
				   struct err *err)
{
	const struct raw *m = d->state;
	enum fettle_status st;

	if (field == INPUT)
		return image_read(m->images.v[i].path, m->channels, out, err);
	st = buffer_shape(out, DT_S64, 0, NULL, "a label", err);
	if (!st)
		*(int64_t *)out->t.data = m->images.v[i].label;
	return st;
}

static void raw_close(struct dataset *d)
{
	struct raw *m = d->state;

	if (!m)
		return;
	VEC_RELEASE(&m->images);
	arena_release(&m->arena);
	free(m);
}

static const char *const raw_keys[] = { "image_list", NULL };

const struct dataset_kind dataset_imagenet_raw = {
	.name = "ImagenetRaw",
	.summary = "a folder of images with a list of their names and labels",
	.keys = raw_keys,
	.decodes = true,
	.open = raw_open,
	.read = raw_read,
	.sample_name = raw_sample_name,
	.close = raw_close,
};
