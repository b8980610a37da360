#include "data/image.h"

#include <string.h>

enum fettle_status image_decode(struct bytes file, int channels, struct buffer *out, struct err *err)
{
	if (jpeg_is(file))
		return jpeg_decode(file, channels, out, err);
	if (png_is(file))
		return png_decode(file, channels, out, err);
	return fail(err, FETTLE_INVALID, "neither JPEG nor PNG, need one of these");
}

enum fettle_status image_read(const char *path, int channels, struct buffer *out, struct err *err)
{
	struct bytes file = BYTES_INIT;
	enum fettle_status st = file_map(path, &file, err);

	if (!st) {
		st = image_decode(file, channels, out, err);
		if (st)
			fail_prefix(err, st, "cannot read %s", path);
	}
	bytes_release(&file);
	return st;
}

enum fettle_status image_shape(uint64_t height, uint64_t width, int channels, struct buffer *out,
			       struct err *err)
{
	const int64_t dims[] = { (int64_t)height, (int64_t)width, channels };

	/* both are below 2^31 in either format */
	if (!height || !width || height * width > IMAGE_PIXELS_MAX)
		return fail(err, FETTLE_INVALID, "%llu x %llu pixels, need 1 to %d",
			    (unsigned long long)width, (unsigned long long)height, IMAGE_PIXELS_MAX);
	return buffer_shape(out, DT_U8, 3, dims, "an image", err);
}

static unsigned char luma(const unsigned char *rgb)
{
	return (unsigned char)((299 * rgb[0] + 587 * rgb[1] + 114 * rgb[2] + 500) / 1000);
}

void image_put(unsigned char *dst, int channels, const unsigned char *src, int components, size_t n)
{
	size_t i;

	if (channels == components) {
		memcpy(dst, src, n * (size_t)channels);
	} else if (channels == 3) {
		for (i = 0; i < n; i++, dst += 3)
			memset(dst, src[i], 3);
	} else {
		for (i = 0; i < n; i++, src += 3)
			dst[i] = luma(src);
	}
}
