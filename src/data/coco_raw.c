/*
 * COCO's images and annotation file (INC's COCORaw): root/img_dir has the images, root/anno_dir is the JSON file. Images that are not
 * there, or that have no objects, are left out, as INC does. COCONpy is the same with the images as prepared arrays,
 * root/npy_dir/IMAGE.npy; those without objects stay.
 */
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/map.h"
#include "data/image.h"
#include "data/npy.h"
#include "data/objects.h"

enum { INPUT = 0, LABEL = 1 }; /* the fields */

struct coco {
	struct arena arena;
	VEC(const char *) paths;
	struct objects objects;
	struct label_map names; /* empty: classes have the numbers of the annotation file */
	int channels;
	bool arrays; /* COCONpy */
	size_t missing, empty;
};

/* While the annotation file is read. */
struct reading {
	const char *path;
	json_t *all;
	VEC(struct note {
		int64_t image;
		size_t at; /* in annotations */
	})
	notes; /* by image, then in their order */
	struct err *err;
};

static enum fettle_status bad(const struct reading *r, const char *what, size_t i, const char *need)
{
	return fail(r->err, FETTLE_INVALID, "cannot read %s: %s %zu, need %s", r->path, what, i, need);
}

static int by_image(const void *x, const void *y)
{
	const struct note *a = x, *b = y;

	if (a->image != b->image)
		return a->image < b->image ? -1 : 1;
	return a->at < b->at ? -1 : a->at > b->at;
}

static enum fettle_status sort_annotations(struct reading *r)
{
	const json_t *a;
	size_t i;

	json_array_foreach(json_object_get(r->all, "annotations"), i, a)
	{
		if (!json_is_integer(json_object_get(a, "image_id")))
			return bad(r, "annotation", i, "an image_id");
		VEC_PUSH(&r->notes, ((struct note){ json_integer_value(json_object_get(a, "image_id")), i }));
	}
	if (r->notes.n)
		qsort(r->notes.v, r->notes.n, sizeof(*r->notes.v), by_image);
	return FETTLE_OK;
}

/* The number that a class's name has in the label map. */
static enum fettle_status map_class(const struct coco *m, const struct reading *r, int64_t *class, size_t at)
{
	const json_t *category;
	const char *name = NULL;
	size_t i;

	if (!m->names.names.n)
		return FETTLE_OK;
	json_array_foreach(json_object_get(r->all, "categories"), i,
			   category) if (json_integer_value(json_object_get(category, "id")) == *class) name =
		json_string_value(json_object_get(category, "name"));
	if (!name || !label_map_find(&m->names, name, class))
		return fail(r->err, FETTLE_INVALID,
			    "cannot read %s: annotation %zu is a '%s', the label map has no such name",
			    r->path, at, name ? name : "?");
	return FETTLE_OK;
}

static enum fettle_status add_object(struct coco *m, const struct reading *r, size_t at, double h, double w)
{
	const json_t *a = json_array_get(json_object_get(r->all, "annotations"), at),
		     *box = json_object_get(a, "bbox"), *area = json_object_get(a, "area");
	int64_t class = json_integer_value(json_object_get(a, "category_id"));
	struct object o = { { 0 } };
	enum fettle_status st;
	double v[4];
	size_t i;

	if (!json_is_integer(json_object_get(a, "category_id")))
		return bad(r, "annotation", at, "a category_id");
	if (json_is_array(box) && !json_array_size(box))
		return FETTLE_OK; /* it is nowhere */
	for (i = 0; i < 4; i++) {
		if (!json_is_number(json_array_get(box, i)))
			return bad(r, "annotation", at, "a bbox of four numbers");
		v[i] = json_number_value(json_array_get(box, i));
	}
	st = map_class(m, r, &class, at);
	o.v[OBJECT_CLASS] = (double)class;
	o.v[OBJECT_BOX] = v[1] / h;
	o.v[OBJECT_BOX + 1] = v[0] / w;
	o.v[OBJECT_BOX + 2] = (v[1] + v[3]) / h;
	o.v[OBJECT_BOX + 3] = (v[0] + v[2]) / w;
	o.v[OBJECT_CROWD] = json_number_value(json_object_get(a, "iscrowd")) != 0;
	o.v[OBJECT_AREA] = json_is_number(area) ? json_number_value(area) : v[2] * v[3];
	o.v[OBJECT_PIXELS] = h * w;
	VEC_PUSH(&m->objects.all, o);
	return st;
}

static size_t first_note(const struct reading *r, int64_t image)
{
	size_t low = 0, high = r->notes.n, middle;

	while (low < high) {
		middle = low + (high - low) / 2;
		if (r->notes.v[middle].image < image)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static enum fettle_status add_image(struct coco *m, const struct reading *r, size_t i, const char *folder)
{
	const json_t *image = json_array_get(json_object_get(r->all, "images"), i);
	const char *name = json_string_value(json_object_get(image, "file_name")), *path;
	const json_t *id = json_object_get(image, "id");
	double h = json_number_value(json_object_get(image, "height")),
	       w = json_number_value(json_object_get(image, "width"));
	const size_t before = m->objects.all.n;
	enum fettle_status st = FETTLE_OK;
	size_t k;

	if (!name || !json_is_integer(id) || !(h >= 1) || !(w >= 1))
		return bad(r, "image", i, "id, file_name, height and width");
	path = arena_strfmt(&m->arena, "%s/%s%s", folder, name, m->arrays ? ".npy" : "");
	if (access(path, F_OK) != 0) {
		m->missing++;
		return FETTLE_OK;
	}
	for (k = first_note(r, json_integer_value(id));
	     !st && k < r->notes.n && r->notes.v[k].image == json_integer_value(id); k++)
		st = add_object(m, r, r->notes.v[k].at, h, w);
	if (m->objects.all.n == before && !m->arrays) {
		m->empty++;
		return st;
	}
	VEC_PUSH(&m->paths, path);
	objects_end_image(&m->objects);
	return st;
}

static enum fettle_status read_annotations(struct coco *m, const char *path, const char *folder,
					   struct err *err)
{
	struct reading r = { .path = path, .err = err };
	struct bytes file = BYTES_INIT;
	json_error_t why;
	enum fettle_status st = file_map(path, &file, err);
	size_t i;

	if (st)
		return st;
	r.all = json_loadb((const char *)file.p, file.n, 0, &why);
	if (!r.all)
		st = fail(err, FETTLE_INVALID, "cannot read %s: line %d: %s", path, why.line, why.text);
	else if (!json_array_size(json_object_get(r.all, "images")))
		st = fail(err, FETTLE_INVALID, "cannot read %s: no images, need COCO's annotations", path);
	if (!st)
		st = sort_annotations(&r);
	for (i = 0; !st && i < json_array_size(json_object_get(r.all, "images")); i++)
		st = add_image(m, &r, i, folder);
	VEC_RELEASE(&r.notes);
	json_decref(r.all);
	bytes_release(&file);
	return st;
}

/* Reads an array and its header; what it refers to is in *file, to be released. */
static enum fettle_status open_array(const char *path, struct bytes *file, struct npy *out, struct err *err)
{
	enum fettle_status st = file_map(path, file, err);

	if (!st)
		st = npy_parse(*file, out, err);
	return st ? fail_prefix(err, st, "cannot read %s", path) : FETTLE_OK;
}

/* The field of the arrays: they have one type and rank; a dimension in which they differ is -1. */
static enum fettle_status add_arrays(struct coco *m, struct dataset *d, struct err *err)
{
	struct tensor all = TENSOR_INIT;
	enum fettle_status st = FETTLE_OK;
	size_t i;
	int k;

	for (i = 0; i < m->paths.n && !st; i++) {
		struct bytes file = BYTES_INIT;
		struct npy one;

		st = open_array(m->paths.v[i], &file, &one, err);
		bytes_release(&file);
		if (!st && !i)
			all = one.shape;
		if (!st && (one.shape.rank != all.rank || one.shape.dtype != all.dtype))
			st = fail(err, FETTLE_INVALID,
				  "cannot read %s: another type or rank than %s, need the same",
				  m->paths.v[i], m->paths.v[0]);
		for (k = 0; k < all.rank && !st; k++)
			if (one.shape.dims[k] != all.dims[k])
				all.dims[k] = -1;
	}
	if (!st)
		dataset_add_field(d, "image", FIELD_INPUT, all.dtype, all.rank, all.dims);
	return st;
}

static enum fettle_status read_array(const char *path, struct buffer *out, struct err *err)
{
	struct bytes file = BYTES_INIT;
	struct npy a;
	enum fettle_status st = open_array(path, &file, &a, err);
	size_t i, rows, bytes;

	if (!st)
		st = buffer_shape(out, a.shape.dtype, a.shape.rank, a.shape.dims, "an array", err);
	if (!st && a.shape.rank) {
		rows = (size_t)a.shape.dims[0];
		bytes = rows ? tensor_bytes(&out->t) / rows : 0;
		for (i = 0; i < rows; i++)
			npy_read(&a, file.p + a.at, i, (unsigned char *)out->t.data + i * bytes);
	} else if (!st) {
		st = fail(err, FETTLE_INVALID, "cannot read %s: one number, need an array", path);
	}
	bytes_release(&file);
	return st;
}

static enum fettle_status coco_open(struct dataset *d, const struct dataset_options *opt, struct err *err)
{
	const char *map = dataset_param(opt, "label_map", NULL);
	struct coco *m = xcalloc(1, sizeof(*m));
	char *annotations, *folder;
	enum fettle_status st;

	d->state = m;
	m->channels = opt->channels ? opt->channels : 3;
	m->arrays = d->kind == &dataset_coco_npy;
	st = map ? label_map_read(&m->names, map, err) : FETTLE_OK;
	if (st)
		return st;
	annotations = xstrfmt("%s/%s", d->path,
			      dataset_param(opt, "anno_dir", "annotations/instances_val2017.json"));
	folder = xstrfmt("%s/%s", d->path, dataset_param(opt, m->arrays ? "npy_dir" : "img_dir", "val2017"));
	st = read_annotations(m, annotations, folder, err);
	if (!st && !m->paths.n)
		st = fail(
			err, FETTLE_INVALID,
			"cannot read data %s: of the images of %s %zu are not in %s and %zu have no objects, "
			"none is left",
			d->path, annotations, m->missing, folder, m->empty);
	if (!st && m->missing)
		d->note = xstrfmt("%zu of the images of %s are not in %s and are left out", m->missing,
				  annotations, folder);
	free(annotations);
	free(folder);
	if (!st && m->arrays)
		st = add_arrays(m, d, err);
	else if (!st)
		dataset_add_field(d, "image", FIELD_INPUT, DT_U8, 3, (int64_t[]){ -1, -1, m->channels });
	if (st)
		return st;
	d->n = m->paths.n;
	objects_add_field(&m->objects, d);
	return FETTLE_OK;
}

static char *coco_sample_name(const struct dataset *d, size_t i)
{
	return xstrdup(((const struct coco *)d->state)->paths.v[i]);
}

static enum fettle_status coco_read(const struct dataset *d, size_t field, size_t i, struct buffer *out,
				    struct err *err)
{
	const struct coco *m = d->state;

	if (field == LABEL)
		return objects_label(&m->objects, i, out, err);
	return m->arrays ? read_array(m->paths.v[i], out, err)
			 : image_read(m->paths.v[i], m->channels, out, err);
}

static void coco_close(struct dataset *d)
{
	struct coco *m = d->state;

	if (!m)
		return;
	VEC_RELEASE(&m->paths);
	objects_release(&m->objects);
	label_map_release(&m->names);
	arena_release(&m->arena);
	free(m);
}

static const char *const coco_keys[] = { "img_dir", "anno_dir", "label_map", "num_cores", NULL };
static const char *const npy_keys[] = { "npy_dir", "anno_dir", "label_map", "num_cores", NULL };
static const struct idle_key coco_idle[] = { { "num_cores", "a thread reads ahead" }, { NULL, NULL } };

#define COCO(id, word, takes, says)                                                                          \
	const struct dataset_kind dataset_##id = {                                                           \
		.name = (word),                                                                              \
		.summary = (says),                                                                           \
		.keys = (takes),                                                                             \
		.idle = coco_idle,                                                                           \
		.decodes = true,                                                                             \
		.open = coco_open,                                                                           \
		.read = coco_read,                                                                           \
		.sample_name = coco_sample_name,                                                             \
		.close = coco_close,                                                                         \
	};
COCO(coco_raw, "COCORaw", coco_keys, "COCO's images and their annotation file")
COCO(coco_npy, "COCONpy", npy_keys, "COCO's images as prepared arrays, IMAGE.npy, and their annotation file")
