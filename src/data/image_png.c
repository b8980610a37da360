#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <png.h>

#include "base/mem.h"
#include "data/image.h"

struct decoder {
	png_structp png;
	png_infop info;
	struct bytes left;
	char why[128];
	unsigned char *pixels; /* grey or RGB, whole: an interlaced image comes in several passes */
};

bool png_is(struct bytes file)
{
	return file.n >= 8 && png_sig_cmp((png_bytep)(uintptr_t)file.p, 0, 8) == 0;
}

static void on_error(png_structp png, png_const_charp message)
{
	struct decoder *d = png_get_error_ptr(png);

	snprintf(d->why, sizeof(d->why), "%s", message);
	png_longjmp(png, 1);
}

static void on_warning(png_structp png, png_const_charp message)
{
	(void)png;
	(void)message;
}

static void on_read(png_structp png, png_bytep to, size_t n)
{
	struct decoder *d = png_get_io_ptr(png);

	if (n > d->left.n)
		png_error(png, "the file is truncated");
	memcpy(to, d->left.p, n);
	d->left.p += n;
	d->left.n -= n;
}

/* Whatever the file holds, ask for 8 bits of grey or RGB. */
static void simplify(struct decoder *d)
{
	png_set_expand(d->png); /* palettes, fewer bits, transparency */
	png_set_scale_16(d->png);
	png_set_strip_alpha(d->png);
	png_set_interlace_handling(d->png);
	png_read_update_info(d->png, d->info);
}

static void read_pixels(struct decoder *d, size_t height, size_t row)
{
	int passes = png_set_interlace_handling(d->png);
	size_t y;

	while (passes--)
		for (y = 0; y < height; y++)
			png_read_row(d->png, d->pixels + y * row, NULL);
	png_read_end(d->png, NULL);
}

/* Everything that libpng may jump out of. */
static enum fettle_status decode(struct decoder *d, int channels, struct buffer *out, struct err *err)
{
	enum fettle_status st;
	size_t width, height, components;

	if (setjmp(png_jmpbuf(d->png)))
		return fail(err, FETTLE_INVALID, "damaged PNG: %s", d->why);
	png_set_read_fn(d->png, d, on_read);
	png_read_info(d->png, d->info);
	width = png_get_image_width(d->png, d->info);
	height = png_get_image_height(d->png, d->info);
	st = image_shape(height, width, channels, out, err);
	if (st)
		return st;
	simplify(d);
	components = png_get_channels(d->png, d->info);
	if (components != 1 && components != 3)
		png_error(d->png, "neither grey nor colour");
	st = mem_try(&d->pixels, width * height, components, "an image", err);
	if (st)
		return st;
	read_pixels(d, height, width * components);
	image_put(out->t.data, channels, d->pixels, (int)components, width * height);
	return FETTLE_OK;
}

enum fettle_status png_decode(struct bytes file, int channels, struct buffer *out, struct err *err)
{
	struct decoder *d = xcalloc(1, sizeof(*d)); /* not on the stack, where longjmp() may forget it */
	enum fettle_status st;

	d->left = file;
	d->png = png_create_read_struct(PNG_LIBPNG_VER_STRING, d, on_error, on_warning);
	d->info = d->png ? png_create_info_struct(d->png) : NULL;
	if (d->info)
		st = decode(d, channels, out, err);
	else
		st = fail(err, FETTLE_SYSTEM, "not enough memory to decode it");
	png_destroy_read_struct(&d->png, &d->info, NULL);
	free(d->pixels);
	free(d);
	return st;
}
