/* What a transform provides; seen only by transform.c and the transforms. One file each, with a struct of its parameters, and a
 * line in transform_list.h. */
#ifndef DATA_TRANSFORM_KIND_H
#define DATA_TRANSFORM_KIND_H

#include "base/rng.h"
#include "data/transform.h"

/* of a struct transform with parameters of this type; all bits are zero before init() */
#define TRANSFORM_OWN(type, t) ((type *)(void *)(t)->own)
#define TRANSFORM_READ(type, t) ((const type *)(const void *)(t)->own)
#define TRANSFORM_FITS(type) _Static_assert(sizeof(type) <= TRANSFORM_OWN_MAX, "parameters do not fit")

/* A value as the configuration gave it: numbers or a text. */
struct transform_value {
	const double *v;
	size_t n;
	const char *text; /* NULL: numbers */
};

struct transform_kind {
	const char *name;
	const char *summary; /* what it does, with its keys and their defaults */
	/* Optional: with these parameters, does it draw random numbers (from transform_rng() only)? */
	bool (*random)(const struct transform *t);
	const char *keys[TRANSFORM_KEYS_MAX]; /* ends with NULL unless full */
	const struct idle_key *idle;          /* those of the keys that do nothing; NULL: none */
	void (*init)(struct transform *t);    /* optional: defaults other than zero */
	/* May be NULL without keys. */
	/* key is one of keys; messages do not name the transform or the key */
	enum fettle_status (*set)(struct transform *t, const char *key, const struct transform_value *value,
				  struct err *err);
	const char *(*lacks)(const struct transform *t); /* optional: what is required but was not given */
	enum fettle_status (*shape)(const struct transform *t, struct tensor *shape, struct err *err);
	enum fettle_status (*apply)(const struct transform *t, const struct tensor *src, struct buffer *dst,
				    struct err *err);
	/* Optional: where a box (ymin, xmin, ymax, xmax, as parts of the image) of an image of this shape goes. */
	void (*boxes)(const struct transform *t, const struct tensor *src, double box[4]);
};

#define TRANSFORM(id) extern const struct transform_kind transform_##id;
#include "data/transform_list.h"
#undef TRANSFORM

/* A value that must be between min and max numbers. */
enum fettle_status transform_numbers(const struct transform_value *value, size_t min, size_t max,
				     struct err *err);
/* `size`: one or two whole numbers of pixels. */
struct image_size {
	int64_t v[2]; /* height, width */
	int n;        /* how many were given; 0: none yet */
};
enum fettle_status image_size_set(struct image_size *size, const struct transform_value *value,
				  struct err *err);
/* One whole number; `true` or `false`. */
enum fettle_status transform_whole(const struct transform_value *value, int64_t min, int64_t max,
				   int64_t *out, struct err *err);
enum fettle_status transform_bool(const struct transform_value *value, bool *out, struct err *err);
/* The size of an image whose shorter side becomes `side`, the other keeping the aspect, rounded down. */
enum fettle_status shorter_side(const struct transform *t, struct tensor *shape, int64_t side,
				struct err *err);
/* Random numbers for one sample: they follow from the run's seed and the sample's contents, so that a sample is always
 * treated alike, in whatever order samples are read. */
struct rng transform_rng(const struct transform *t, const struct tensor *src);
/* Is it [h, w, c] or [h, w]? */
enum fettle_status transform_need_image(const struct transform *t, const struct tensor *shape,
					struct err *err);

#endif
