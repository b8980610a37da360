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
 *   Resize      size: [h, w], or one number for the shorter side (the other keeps the aspect, rounded
 *               down); interpolation: bilinear (default), nearest, bicubic. Sample positions are pixel
 *               centres, no antialiasing (as OpenCV does). Integers stay integers, rounded.
 *   CenterCrop  size: [h, w], or one number for both. Offsets are rounded down.
 *   Normalize   mean, std: one number or one per channel: (x - mean) / std, as float32
 *   Rescale     scale (default 1/255), offset (default 0): x * scale + offset, as float32
 *   Transpose   perm: default [2, 0, 1], from [h, w, c] to [c, h, w]
 *   Cast        dtype: any numeric type; to an integer, it cuts towards zero and saturates
 *
 * Resize and CenterCrop take [h, w, c] or [h, w]. Channels are the last dimension when its size fits,
 * else the first.
 */
#ifndef DATA_TRANSFORM_H
#define DATA_TRANSFORM_H

#include "data/buffer.h"

enum { TRANSFORM_OWN_MAX = 1152 };

struct transform {
	const struct transform_kind *kind;
	_Alignas(8) unsigned char own[TRANSFORM_OWN_MAX]; /* the kind's parameters: a struct of its file */
};

enum fettle_status transform_init(struct transform *t, const char *name, struct err *err);
/* The value of a key: n numbers, or a text (then values is NULL and n is 0). */
enum fettle_status transform_set(struct transform *t, const char *key, const double *values, size_t n,
				 const char *text, struct err *err);
enum fettle_status transform_check(const struct transform *t, struct err *err);
const char *transform_name(const struct transform *t);

/* What becomes of a sample's type and shape, in place; -1 is a dimension not known yet. */
enum fettle_status transform_shape(const struct transform *t, struct tensor *shape, struct err *err);
/* Thread-safe. src is not dst's tensor. */
enum fettle_status transform_apply(const struct transform *t, const struct tensor *src, struct buffer *dst,
				   struct err *err);

#endif
