/* Images [h, w, c] or [h, w] of any type to other sizes; for the transforms. */
#ifndef DATA_RESAMPLE_H
#define DATA_RESAMPLE_H

#include "base/err.h"
#include "tensor/tensor.h"

enum { IMAGE_SIDE_MAX = 1 << 16 };

enum interpolation {
	INTERPOLATE_BILINEAR,
	INTERPOLATE_NEAREST,
	INTERPOLATE_BICUBIC,
	INTERPOLATE_AREA,
	INTERPOLATE_LANCZOS3, /* these are TensorFlow's */
	INTERPOLATE_LANCZOS5,
	INTERPOLATE_GAUSSIAN,
	INTERPOLATE_MITCHELL,
};
/* By its name; text may be NULL. The message names neither transform nor key. */
enum fettle_status interpolation_set(enum interpolation *out, const char *text, struct err *err);

/* To the height and width of dst, which has memory and its own type; integers are rounded. */
enum fettle_status image_resize(const struct tensor *src, enum interpolation how, struct tensor *dst,
				struct err *err);
/* As Pillow does it, of uint8 pixels (others as above); bilinear, nearest and bicubic. */
enum fettle_status image_resize_pillow(const struct tensor *src, enum interpolation how, struct tensor *dst,
				       struct err *err);
/* The part of dst's height and width that starts there and lies inside src; both of one type. */
void image_crop(const struct tensor *src, int64_t top, int64_t left, struct tensor *dst);

/* Both: that part of src, resized to dst's height and width; as Pillow does it or as above. */
enum fettle_status image_crop_resize(const struct tensor *src, int64_t top, int64_t left, int64_t height,
				     int64_t width, enum interpolation how, bool pillow, struct tensor *dst,
				     struct err *err);

/* A side that is not known yet (-1) passes. `name` is the transform's. */
enum fettle_status image_check_sides(int64_t h, int64_t w, const char *name, struct err *err);

#endif
