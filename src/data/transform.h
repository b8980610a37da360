/*
 * Transforms: what is done to every sample before a model sees it. They are made by name and filled
 * key by key, so that a configuration reader needs to know none of them:
 *
 *	st = transform_init(&t, "Resize", err);
 *	st = transform_set(&t, "size", (double[]){ 256 }, 1, NULL, err);
 *	st = transform_set(&t, "interpolation", NULL, 0, "bicubic", err);
 *	st = transform_check(&t, err);		all that is required was given
 *
 * A struct transform is a plain value: copied by assignment, with nothing to release.
 *
 * The summary of each kind says what it does; 'fettle inspect --keys' lists them. Sample positions of Resize are pixel centres,
 * without antialiasing (as OpenCV does); integers stay integers, rounded. Offsets of CenterCrop are rounded down. ResizeCropImagenet
 * also takes resize_method, subpixels (RGB or BGR), random_crop and random_flip_left_right, and std_value is ImageNet's by default.
 *
 * Those of images take [h, w, c] or [h, w]. Channels of Normalize are the last dimension when its size fits,
 * else the first.
 */
#ifndef DATA_TRANSFORM_H
#define DATA_TRANSFORM_H

#include "data/buffer.h"

enum { TRANSFORM_OWN_MAX = 1152, TRANSFORM_KEYS_MAX = 12 };

/* Whose transforms they are: where frameworks differ, INC gives a name the meaning that it has in the framework. */
enum transform_dialect { DIALECT_NONE, DIALECT_ONNXRT, DIALECT_TENSORFLOW, DIALECT_PYTORCH };

struct transform {
	const struct transform_kind *kind;
	enum transform_dialect dialect;
	uint64_t seed;                                    /* of those that are random */
	_Alignas(8) unsigned char own[TRANSFORM_OWN_MAX]; /* the kind's parameters: a struct of its file */
};

/* A key that another program needs: it is no mistake, and a note says why it does nothing. Lists end without a key. */
struct idle_key {
	const char *key, *why;
};
const char *idle_key_why(const struct idle_key *keys, const char *key); /* NULL: it is none of them */

enum fettle_status transform_init(struct transform *t, const char *name, struct err *err);
/* The value of a key: n numbers, or a text (then values is NULL and n is 0). */
enum fettle_status transform_set(struct transform *t, const char *key, const double *values, size_t n,
				 const char *text, struct err *err);
enum fettle_status transform_check(const struct transform *t, struct err *err);
const char *transform_name(const struct transform *t);
/* The i-th kind: its name, what it does and its keys, which end with NULL unless they are TRANSFORM_KEYS_MAX. NULL past the end. */
const char *transform_kind_name(size_t i, const char **summary, const char *const **keys);
/* Why a key does nothing; NULL: it does something. */
const char *transform_idle(const struct transform *t, const char *key);
bool transform_is_random(const struct transform *t); /* good for calibration, not for scores */

bool transform_moves_boxes(const struct transform *t);
/* The box of an object in an image of this shape, in place. */
void transform_box(const struct transform *t, const struct tensor *shape, double box[4]);

/* What becomes of a sample's type and shape, in place; -1 is a dimension not known yet. */
enum fettle_status transform_shape(const struct transform *t, struct tensor *shape, struct err *err);
/* Thread-safe. src is not dst's tensor. */
enum fettle_status transform_apply(const struct transform *t, const struct tensor *src, struct buffer *dst,
				   struct err *err);

#endif
