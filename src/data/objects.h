/*
 * Labels of detection datasets: the objects of each image. A label is float64 [objects, OBJECT_COLUMNS], as long as the image with most
 * objects needs; rows that are not needed have class -1. Boxes are parts of the image, as Neural Compressor has them.
 */
#ifndef DATA_OBJECTS_H
#define DATA_OBJECTS_H

#include "base/mem.h"
#include "data/kind.h"

enum {
	OBJECT_CLASS,
	OBJECT_BOX, /* ymin, xmin, ymax, xmax, from 0 to 1 */
	OBJECT_CROWD = 5,
	OBJECT_AREA,   /* in pixels */
	OBJECT_PIXELS, /* of the whole image */
	OBJECT_COLUMNS,
};

struct object {
	double v[OBJECT_COLUMNS];
};

struct objects {
	VEC(struct object) all; /* image by image */
	VEC(size_t) end;        /* of each image */
	size_t most;            /* in an image */
};

/* Push an image's objects to `all`, then call this. */
void objects_end_image(struct objects *o);
size_t objects_count(const struct objects *o, size_t image);
/* The field for labels like these; after the last image. */
void objects_add_field(const struct objects *o, struct dataset *d);
enum fettle_status objects_label(const struct objects *o, size_t image, struct buffer *out, struct err *err);
void objects_release(struct objects *o);

/*
 * Numbers of classes by their names: lines "NAME: NUMBER", as Neural Compressor's label maps have them, or the categories of a COCO
 * annotation file.
 */
struct label_map {
	struct arena arena;
	VEC(struct label_name {
		const char *name;
		int64_t number;
	})
	names;
};
enum fettle_status label_map_read(struct label_map *m, const char *path, struct err *err);
bool label_map_find(const struct label_map *m, const char *name, int64_t *number);
/* COCO's number of a class, where no label map says another; 0: it has none of that name. */
int64_t coco_class(const char *name);
void label_map_release(struct label_map *m);

/* The value of a parameter of the dataset, or `otherwise`. */
const char *dataset_param(const struct dataset_options *opt, const char *key, const char *otherwise);

#endif
