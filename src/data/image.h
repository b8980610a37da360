/* Decoding JPEG and PNG. */
#ifndef DATA_IMAGE_H
#define DATA_IMAGE_H

#include "base/file.h"
#include "data/buffer.h"

enum { IMAGE_PIXELS_MAX = 1 << 26 };

/*
 * Decodes the image that file holds (its first bytes say which format, not its name) into
 * uint8 [height, width, channels], channels being 1 or 3. Grey is spread over three channels and colour
 * becomes luma (Rec. 601) in one; 16 bits become 8; alpha is dropped; orientation tags are ignored.
 * What is truncated or damaged is an error. Messages do not name the file.
 */
enum fettle_status image_decode(struct bytes file, int channels, struct buffer *out, struct err *err);

/* The same of a file; messages name it. */
enum fettle_status image_read(const char *path, int channels, struct buffer *out, struct err *err);

/* One format's decoder, for image.c. */
bool jpeg_is(struct bytes file);
enum fettle_status jpeg_decode(struct bytes file, int channels, struct buffer *out, struct err *err);
bool png_is(struct bytes file);
enum fettle_status png_decode(struct bytes file, int channels, struct buffer *out, struct err *err);

/* Shapes out, or refuses so big an image. */
enum fettle_status image_shape(uint64_t height, uint64_t width, int channels, struct buffer *out,
			       struct err *err);
/* n pixels of 1 (grey) or 3 (RGB) bytes to pixels of `channels` bytes. */
void image_put(unsigned char *dst, int channels, const unsigned char *src, int components, size_t n);

#endif
