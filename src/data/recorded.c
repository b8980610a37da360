/*
 * Datasets in files of records (data/records.h): images with a class, with objects or with a mask, or named arrays of numbers. What the
 * features of the first record are called says which; INC's names for these datasets say which files of a folder are meant.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "data/example.h"
#include "data/image.h"
#include "data/objects.h"
#include "data/records.h"

enum form { FORM_IMAGE, FORM_MASK, FORM_CLASS, FORM_OBJECTS, FORM_NUMBERS, FORM_MXNET_LABEL };

struct recorded {
	struct records records;
	VEC(struct part {
		enum form form;
		char *feature; /* NULL: of RecordIO */
		size_t n;      /* values; of numbers and RecordIO's labels */
		enum feature_type type;
	})
	parts; /* parallel to the dataset's fields */
	struct objects objects;
	struct label_map names;
	int channels;
};

static const char IMAGE[] = "image/encoded", MASK[] = "image/segmentation/class/encoded",
		  CLASS[] = "image/class/label", BOXES[] = "image/object/bbox/xmin";

static enum fettle_status bad_record(const struct recorded *m, size_t i, const char *why, struct err *err)
{
	char *name = records_name(&m->records, i);

	fail(err, FETTLE_INVALID, "cannot read %s: %s", name, why);
	free(name);
	return FETTLE_INVALID;
}

static void add_part(struct recorded *m, enum form form, const char *feature, size_t n,
		     enum feature_type type)
{
	VEC_PUSH(&m->parts, ((struct part){ form, feature ? xstrdup(feature) : NULL, n, type }));
}

static enum fettle_status get_example(const struct recorded *m, size_t i, bool check, struct example *e,
				      struct err *err)
{
	struct bytes record;
	enum fettle_status st = records_get(&m->records, i, check, &record, NULL, err);

	if (!st && !example_read(e, record))
		st = bad_record(m, i, "it is no tf.train.Example", err);
	return st;
}

/* ---- objects ---- */

static enum fettle_status class_of(const struct recorded *m, const struct example *e, size_t k, double *class,
				   size_t i, struct err *err)
{
	const struct feature *numbers = example_find(e, "image/object/class/label"),
			     *texts = example_find(e, "image/object/class/text");
	enum fettle_status st = FETTLE_OK;
	struct bytes text;
	int64_t number = 0, *all;
	char *name;

	if (numbers && numbers->type == FEATURE_INTS && k < numbers->n && !(m->names.names.n && texts)) {
		all = xcalloc(numbers->n, sizeof(*all));
		feature_ints(numbers, all);
		*class = (double)all[k];
		free(all);
		return FETTLE_OK;
	}
	if (!texts || texts->type != FEATURE_BYTES || k >= texts->n)
		return bad_record(m, i, "an object has neither image/object/class/label nor class/text", err);
	text = feature_bytes(texts, k);
	name = xstrfmt("%.*s", (int)(text.n > 200 ? 200 : text.n), (const char *)text.p);
	if (m->names.names.n ? !label_map_find(&m->names, name, &number) : !(number = coco_class(name))) {
		char *why = xstrfmt("class '%s' is not in the label map", name);

		st = bad_record(m, i, why, err);
		free(why);
	}
	*class = (double)number;
	free(name);
	return st;
}

static double first_int(const struct example *e, const char *name)
{
	const struct feature *f = example_find(e, name);
	int64_t *v, first;

	if (!f || f->type != FEATURE_INTS)
		return 0;
	v = xcalloc(f->n, sizeof(*v));
	feature_ints(f, v);
	first = v[0];
	free(v);
	return (double)first;
}

static enum fettle_status add_objects(struct recorded *m, size_t i, const struct example *e, struct err *err)
{
	static const char *const sides[] = { "image/object/bbox/ymin", "image/object/bbox/xmin",
					     "image/object/bbox/ymax", "image/object/bbox/xmax" };
	const struct feature *f[4], *crowd = example_find(e, "image/object/is_crowd");
	double pixels = first_int(e, "image/height") * first_int(e, "image/width");
	const size_t n = example_find(e, sides[0]) ? example_find(e, sides[0])->n : 0;
	float *v = xcalloc(4 * n + 1, sizeof(*v));
	int64_t *crowds = xcalloc(n + 1, sizeof(*crowds));
	enum fettle_status st = FETTLE_OK;
	size_t k, s;

	for (s = 0; s < 4 && !st; s++) {
		f[s] = example_find(e, sides[s]);
		if ((f[s] ? f[s]->n : 0) != n || (n && f[s]->type != FEATURE_FLOATS))
			st = bad_record(m, i, "its image/object/bbox features do not fit together", err);
		else if (n)
			feature_floats(f[s], v + s * n);
	}
	if (!st && crowd && crowd->type == FEATURE_INTS && crowd->n == n)
		feature_ints(crowd, crowds);
	for (k = 0; k < n && !st; k++) {
		struct object o = { .v = { [OBJECT_PIXELS] = pixels > 0 ? pixels : 1 } };

		for (s = 0; s < 4; s++)
			o.v[OBJECT_BOX + s] = (double)v[s * n + k];
		o.v[OBJECT_CROWD] = crowds[k] != 0;
		o.v[OBJECT_AREA] = (o.v[OBJECT_BOX + 2] - o.v[OBJECT_BOX]) *
				   (o.v[OBJECT_BOX + 3] - o.v[OBJECT_BOX + 1]) * o.v[OBJECT_PIXELS];
		st = class_of(m, e, k, &o.v[OBJECT_CLASS], i, err);
		VEC_PUSH(&m->objects.all, o);
	}
	objects_end_image(&m->objects);
	free(v);
	free(crowds);
	return st;
}

static enum fettle_status read_objects(struct recorded *m, struct err *err)
{
	struct example e = EXAMPLE_INIT;
	enum fettle_status st = FETTLE_OK;
	size_t i;

	for (i = 0; i < m->records.list.n && !st; i++) {
		st = get_example(m, i, false, &e, err);
		if (!st)
			st = add_objects(m, i, &e, err);
	}
	example_release(&e);
	return st;
}

/* ---- what is in the records ---- */

static enum fettle_status image_parts(struct recorded *m, struct dataset *d, const struct example *e,
				      struct err *err)
{
	enum fettle_status st;

	dataset_add_field(d, "image", FIELD_INPUT, DT_U8, 3, (int64_t[]){ -1, -1, m->channels });
	add_part(m, FORM_IMAGE, IMAGE, 0, FEATURE_BYTES);
	if (example_find(e, MASK)) {
		dataset_add_field(d, "label", FIELD_LABEL, DT_U8, 2, (int64_t[]){ -1, -1 });
		add_part(m, FORM_MASK, MASK, 0, FEATURE_BYTES);
	} else if (example_find(e, BOXES)) {
		st = read_objects(m, err);
		if (st)
			return st;
		objects_add_field(&m->objects, d);
		add_part(m, FORM_OBJECTS, BOXES, 0, FEATURE_FLOATS);
	} else if (example_find(e, CLASS)) {
		dataset_add_field(d, "label", FIELD_LABEL, DT_S64, 0, NULL);
		add_part(m, FORM_CLASS, CLASS, 1, FEATURE_INTS);
	}
	return FETTLE_OK;
}

/* Every feature of numbers is a field; one number is a scalar. */
static enum fettle_status number_parts(struct recorded *m, struct dataset *d, const struct example *e,
				       struct err *err)
{
	struct str ignored = STR_INIT;
	size_t i;

	for (i = 0; i < e->features.n; i++) {
		const struct feature *f = &e->features.v[i];
		char *name = xstrfmt("%.*s", (int)(f->name.end - f->name.p), (const char *)f->name.p);

		if (f->n && (f->type == FEATURE_FLOATS || f->type == FEATURE_INTS) &&
		    d->n_fields < DATASET_FIELDS_MAX) {
			dataset_add_field(d, name, FIELD_INPUT, f->type == FEATURE_INTS ? DT_S64 : DT_F32,
					  f->n > 1, (int64_t[]){ (int64_t)f->n });
			add_part(m, FORM_NUMBERS, name, f->n, f->type);
		} else {
			str_addf(&ignored, "%s%s", ignored.n ? ", " : "", name);
		}
		free(name);
	}
	d->ignored = ignored.s;
	dataset_find_labels(d);
	return d->n_fields ? FETTLE_OK : bad_record(m, 0, "it has no features of numbers", err);
}

/* MXNet's image header: a flag (how many labels follow, 0: the one in it), a label, two numbers */
enum { MXNET_HEAD = 24 };

static uint32_t le32(const unsigned char *p)
{
	return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

static enum fettle_status mxnet_head(const struct recorded *m, size_t i, struct bytes record, size_t *labels,
				     struct err *err)
{
	*labels = record.n >= MXNET_HEAD ? le32(record.p) : 0;
	if (record.n < MXNET_HEAD || *labels > (record.n - MXNET_HEAD) / 4)
		return bad_record(m, i, "it is too short for an image with its labels", err);
	return FETTLE_OK;
}

static enum fettle_status mxnet_parts(struct recorded *m, struct dataset *d, struct err *err)
{
	struct str parts = STR_INIT;
	struct bytes record;
	enum fettle_status st = records_get(&m->records, 0, false, &record, &parts, err);
	size_t n = 0;

	if (!st)
		st = mxnet_head(m, 0, record, &n, err);
	str_release(&parts);
	if (st)
		return st;
	dataset_add_field(d, "image", FIELD_INPUT, DT_U8, 3, (int64_t[]){ -1, -1, m->channels });
	add_part(m, FORM_IMAGE, NULL, 0, FEATURE_BYTES);
	dataset_add_field(d, "label", FIELD_LABEL, DT_F32, n > 1, (int64_t[]){ (int64_t)n });
	add_part(m, FORM_MXNET_LABEL, NULL, n, FEATURE_FLOATS);
	return FETTLE_OK;
}

static enum fettle_status open_records(struct dataset *d, const struct dataset_options *opt,
				       const char *pattern, struct err *err)
{
	const char *map = dataset_param(opt, "label_map", NULL);
	struct recorded *m = xcalloc(1, sizeof(*m));
	struct example e = EXAMPLE_INIT;
	enum fettle_status st;

	d->state = m;
	m->channels = opt->channels ? opt->channels : 3;
	st = map ? label_map_read(&m->names, map, err) : FETTLE_OK;
	if (!st)
		st = records_open(&m->records, d->path, pattern, err);
	if (st)
		return st;
	d->n = m->records.list.n;
	if (m->records.files.v[0].recordio)
		return mxnet_parts(m, d, err);
	st = get_example(m, 0, true, &e, err);
	if (!st)
		st = example_find(&e, IMAGE) ? image_parts(m, d, &e, err) : number_parts(m, d, &e, err);
	example_release(&e);
	return st;
}

/* ---- reading ---- */

static enum fettle_status read_image(const struct recorded *m, size_t i, struct bytes file, int channels,
				     struct buffer *out, struct err *err)
{
	enum fettle_status st = image_decode(file, channels, out, err);
	char *name;

	if (st) {
		name = records_name(&m->records, i);
		fail_prefix(err, st, "cannot read the image of %s", name);
		free(name);
	}
	return st;
}

static enum fettle_status read_mxnet(const struct recorded *m, const struct part *p, size_t i,
				     struct buffer *out, struct err *err)
{
	struct str parts = STR_INIT;
	struct bytes record;
	enum fettle_status st = records_get(&m->records, i, true, &record, &parts, err);
	const unsigned char *at;
	uint32_t bits;
	size_t n = 0, k;

	if (!st)
		st = mxnet_head(m, i, record, &n, err);
	if (!st && p->form == FORM_IMAGE) {
		record = (struct bytes){ record.p + MXNET_HEAD + 4 * n, record.n - MXNET_HEAD - 4 * n };
		st = read_image(m, i, record, m->channels, out, err);
	} else if (!st && n != p->n) {
		st = bad_record(m, i, "it has another number of labels than the first record", err);
	} else if (!st) {
		st = buffer_shape(out, DT_F32, n > 1, (int64_t[]){ (int64_t)n }, "labels", err);
		at = record.p + (n ? MXNET_HEAD : 4);
		for (k = 0; k < (n ? n : 1) && !st; k++) {
			bits = le32(at + 4 * k);
			memcpy((float *)out->t.data + k, &bits, sizeof(bits));
		}
	}
	str_release(&parts);
	return st;
}

static enum fettle_status read_feature(const struct recorded *m, const struct part *p,
				       const struct feature *f, size_t i, struct buffer *out, struct err *err)
{
	enum fettle_status st;

	switch (p->form) {
	case FORM_IMAGE:
		return read_image(m, i, feature_bytes(f, 0), m->channels, out, err);
	case FORM_MASK:
		st = read_image(m, i, feature_bytes(f, 0), 1, out, err);
		out->t.rank = 2;
		return st;
	default:
		st = buffer_shape(out, p->type == FEATURE_INTS ? DT_S64 : DT_F32, p->n > 1,
				  (int64_t[]){ (int64_t)p->n }, p->feature, err);
		if (!st && p->type == FEATURE_INTS)
			feature_ints(f, out->t.data);
		else if (!st)
			feature_floats(f, out->t.data);
		return st;
	}
}

static enum fettle_status recorded_read(const struct dataset *d, size_t field, size_t i, struct buffer *out,
					struct err *err)
{
	const struct recorded *m = d->state;
	const struct part *p = &m->parts.v[field];
	struct example e = EXAMPLE_INIT;
	const struct feature *f;
	enum fettle_status st;
	char *why;

	if (!p->feature)
		return read_mxnet(m, p, i, out, err);
	if (p->form == FORM_OBJECTS)
		return objects_label(&m->objects, i, out, err);
	st = get_example(m, i, p->form != FORM_CLASS, &e, err);
	f = st ? NULL : example_find(&e, p->feature);
	if (!st && (!f || f->type != p->type || (p->n && f->n != p->n))) {
		why = xstrfmt("feature '%s' has %zu values, the first record has %zu%s", p->feature,
			      f ? f->n : 0, p->n ? p->n : 1,
			      f && f->type != p->type ? " of another type" : "");
		st = bad_record(m, i, why, err);
		free(why);
	} else if (!st) {
		st = read_feature(m, p, f, i, out, err);
	}
	example_release(&e);
	return st;
}

static char *recorded_name(const struct dataset *d, size_t i)
{
	return records_name(&((const struct recorded *)d->state)->records, i);
}

static void recorded_close(struct dataset *d)
{
	struct recorded *m = d->state;
	size_t i;

	if (!m)
		return;
	for (i = 0; i < m->parts.n; i++)
		free(m->parts.v[i].feature);
	VEC_RELEASE(&m->parts);
	records_release(&m->records);
	objects_release(&m->objects);
	label_map_release(&m->names);
	free(m);
}

static const char *const keys[] = { "num_cores", "label_map", NULL };
static const char *const subset_keys[] = { "num_cores", "subset", NULL };
static const struct idle_key idle_keys[] = {
	{ "num_cores", "a thread reads ahead" },
	{ "label_file", "postprocess.transform.SquadV1 has the one that answers are scored by" },
	{ "model_name", "the records have the tokens" },
	{ "task", "the records have the tokens" },
	{ "model_type", "the records have the tokens" },
	{ NULL, NULL },
};
static const char *const bert_keys[] = {
	"label_file", "num_cores", "model_name", "task", "model_type", NULL
};

/* As INC has it: for TensorFlow TFRecord files SUBSET-*, for ONNX Runtime a folder SUBSET of class folders of images. */
static enum fettle_status subset_open(struct dataset *d, const struct dataset_options *opt, struct err *err)
{
	char *folder = xstrfmt("%s/%s", d->path, dataset_param(opt, "subset", "val")), *pattern;
	enum fettle_status st;

	if (path_is_dir(folder)) {
		free(d->path);
		d->path = folder;
		d->kind = &dataset_images; /* from here on it is one */
		return d->kind->open(d, opt, err);
	}
	free(folder);
	pattern = xstrfmt("%s-*", dataset_param(opt, "subset", "validation"));
	st = open_records(d, opt, pattern, err);
	free(pattern);
	return st;
}

#define OPEN(id, pattern)                                                                                    \
	static enum fettle_status id##_open(struct dataset *d, const struct dataset_options *opt,            \
					    struct err *err)                                                 \
	{                                                                                                    \
		return open_records(d, opt, pattern, err);                                                   \
	}
OPEN(shards, "*-*-of-*")
OPEN(val, "val-*")
OPEN(any, "*rec*")

#define RECORDED(id, word, how, takes, says)                                                                 \
	const struct dataset_kind dataset_##id = {                                                           \
		.name = (word),                                                                              \
		.summary = (says),                                                                           \
		.keys = (takes),                                                                             \
		.idle = idle_keys,                                                                           \
		.finds_path = true,                                                                          \
		.decodes = true,                                                                             \
		.open = how##_open,                                                                          \
		.read = recorded_read,                                                                       \
		.sample_name = recorded_name,                                                                \
		.close = recorded_close,                                                                     \
	};
RECORDED(image_record, "ImageRecord", shards, keys,
	 "TFRecord files of images with classes, or MXNet's RecordIO")
RECORDED(imagenet, "Imagenet", subset, subset_keys,
	 "TFRecord files of ImageNet, SUBSET-*, or a folder SUBSET of class folders")
RECORDED(coco_record, "COCORecord", any, keys, "TFRecord files of images with objects")
RECORDED(voc_record, "VOCRecord", val, keys, "TFRecord files of images with masks, val-*")
RECORDED(tf_record, "TFRecordDataset", any, keys, "TFRecord files of images or of arrays of numbers")
RECORDED(bert, "bert", any, bert_keys, "TFRecord files of tokens, such as BERT's eval.tf_record")
RECORDED(mzbert, "mzbert", any, bert_keys, "the same, as the model zoo names it")
RECORDED(record_io, "RecordIO", any, keys, "MXNet's RecordIO files of images with labels")
