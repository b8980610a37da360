#include "data/objects.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"

void objects_end_image(struct objects *o)
{
	size_t n;

	VEC_PUSH(&o->end, o->all.n);
	n = objects_count(o, o->end.n - 1);
	if (n > o->most)
		o->most = n;
}

static size_t start_of(const struct objects *o, size_t image)
{
	return image ? o->end.v[image - 1] : 0;
}

size_t objects_count(const struct objects *o, size_t image)
{
	return o->end.v[image] - start_of(o, image);
}

void objects_add_field(const struct objects *o, struct dataset *d)
{
	dataset_add_field(d, "label", FIELD_LABEL, DT_F64, 2,
			  (int64_t[]){ (int64_t)(o->most ? o->most : 1), OBJECT_COLUMNS });
	d->objects = true;
}

enum fettle_status objects_label(const struct objects *o, size_t image, struct buffer *out, struct err *err)
{
	const size_t rows = o->most ? o->most : 1, n = objects_count(o, image);
	const struct object *from = o->all.v + start_of(o, image);
	enum fettle_status st;
	double *v;
	size_t i;

	st = buffer_shape(out, DT_F64, 2, (int64_t[]){ (int64_t)rows, OBJECT_COLUMNS }, "a label", err);
	if (st)
		return st;
	v = out->t.data;
	memset(v, 0, rows * sizeof(*from));
	if (n)
		memcpy(v, from, n * sizeof(*from));
	for (i = n; i < rows; i++) {
		v[i * OBJECT_COLUMNS + OBJECT_CLASS] = -1;
		v[i * OBJECT_COLUMNS + OBJECT_PIXELS] = n ? from->v[OBJECT_PIXELS] : 1;
	}
	return FETTLE_OK;
}

void objects_release(struct objects *o)
{
	VEC_RELEASE(&o->all);
	VEC_RELEASE(&o->end);
}

static enum fettle_status read_categories(struct label_map *m, const json_t *all, const char *path,
					  struct err *err)
{
	const json_t *category, *name, *id;
	size_t i;

	json_array_foreach(json_object_get(all, "categories"), i, category)
	{
		name = json_object_get(category, "name");
		id = json_object_get(category, "id");
		if (!json_is_string(name) || !json_is_integer(id))
			return fail(err, FETTLE_INVALID,
				    "cannot read %s: category %zu, need a name and an id", path, i);
		VEC_PUSH(&m->names, ((struct label_name){ arena_strdup(&m->arena, json_string_value(name)),
							  json_integer_value(id) }));
	}
	return m->names.n ? FETTLE_OK
			  : fail(err, FETTLE_INVALID, "cannot read %s: no categories, need some", path);
}

static char *trim(char *s)
{
	char *end = s + strlen(s);

	while (end > s && strchr(" \t\r'\"", end[-1]))
		*--end = '\0';
	return s + strspn(s, " \t'\"");
}

static enum fettle_status read_lines(struct label_map *m, char *text, const char *path, struct err *err)
{
	char *next = text, *line, *colon, *rest, *comment;
	size_t number = 0;
	int64_t id;

	while ((line = strsep(&next, "\n"))) {
		number++;
		comment = strstr(line, "#");
		if (comment)
			*comment = '\0';
		line = trim(line);
		colon = strrchr(line, ':');
		if (!*line)
			continue;
		id = colon ? strtoll(colon + 1, &rest, 10) : 0;
		if (!colon || rest == colon + 1 || *trim(rest))
			return fail(err, FETTLE_INVALID, "cannot read %s: line %zu, need NAME: NUMBER", path,
				    number);
		*colon = '\0';
		VEC_PUSH(&m->names, ((struct label_name){ arena_strdup(&m->arena, trim(line)), id }));
	}
	return m->names.n ? FETTLE_OK
			  : fail(err, FETTLE_INVALID, "cannot read %s: no names, need some", path);
}

enum fettle_status label_map_read(struct label_map *m, const char *path, struct err *err)
{
	struct bytes file = BYTES_INIT;
	enum fettle_status st = file_map(path, &file, err);
	json_t *all = NULL;
	json_error_t why;
	char *text = NULL;

	if (st)
		return st;
	if (file.n && file.p[0] == '{') {
		all = json_loadb((const char *)file.p, file.n, 0, &why);
		st = all ? read_categories(m, all, path, err)
			 : fail(err, FETTLE_INVALID, "cannot read %s: line %d: %s", path, why.line, why.text);
	} else {
		text = xcalloc(file.n + 1, 1);
		if (file.n)
			memcpy(text, file.p, file.n);
		st = read_lines(m, text, path, err);
	}
	json_decref(all);
	free(text);
	bytes_release(&file);
	return st;
}

bool label_map_find(const struct label_map *m, const char *name, int64_t *number)
{
	size_t i;

	for (i = 0; i < m->names.n; i++)
		if (strcmp(m->names.v[i].name, name) == 0) {
			*number = m->names.v[i].number;
			return true;
		}
	return false;
}

int64_t coco_class(const char *name)
{
	static const char *const names[] = { "person",
					     "bicycle",
					     "car",
					     "motorcycle",
					     "airplane",
					     "bus",
					     "train",
					     "truck",
					     "boat",
					     "traffic light",
					     "fire hydrant",
					     "",
					     "stop sign",
					     "parking meter",
					     "bench",
					     "bird",
					     "cat",
					     "dog",
					     "horse",
					     "sheep",
					     "cow",
					     "elephant",
					     "bear",
					     "zebra",
					     "giraffe",
					     "",
					     "backpack",
					     "umbrella",
					     "",
					     "",
					     "handbag",
					     "tie",
					     "suitcase",
					     "frisbee",
					     "skis",
					     "snowboard",
					     "sports ball",
					     "kite",
					     "baseball bat",
					     "baseball glove",
					     "skateboard",
					     "surfboard",
					     "tennis racket",
					     "bottle",
					     "",
					     "wine glass",
					     "cup",
					     "fork",
					     "knife",
					     "spoon",
					     "bowl",
					     "banana",
					     "apple",
					     "sandwich",
					     "orange",
					     "broccoli",
					     "carrot",
					     "hot dog",
					     "pizza",
					     "donut",
					     "cake",
					     "chair",
					     "couch",
					     "potted plant",
					     "bed",
					     "",
					     "dining table",
					     "",
					     "",
					     "toilet",
					     "",
					     "tv",
					     "laptop",
					     "mouse",
					     "remote",
					     "keyboard",
					     "cell phone",
					     "microwave",
					     "oven",
					     "toaster",
					     "sink",
					     "refrigerator",
					     "",
					     "book",
					     "clock",
					     "vase",
					     "scissors",
					     "teddy bear",
					     "hair drier",
					     "toothbrush" };
	size_t i;

	for (i = 0; i < ARRAY_LEN(names); i++)
		if (*names[i] && strcmp(names[i], name) == 0)
			return (int64_t)i + 1;
	return 0;
}

void label_map_release(struct label_map *m)
{
	VEC_RELEASE(&m->names);
	arena_release(&m->arena);
}

const char *dataset_param(const struct dataset_options *opt, const char *key, const char *otherwise)
{
	size_t i;

	for (i = 0; i < opt->n_params; i++)
		if (strcmp(opt->params[i].key, key) == 0)
			return opt->params[i].value;
	return otherwise;
}
