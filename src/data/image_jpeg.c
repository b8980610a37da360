#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <jpeglib.h>
#include <jerror.h>

#include "base/mem.h"
#include "data/image.h"

/* a progressive image may draw the same pixels again and again; no camera needs this many scans */
enum { SCANS_MAX = 100 };

struct decoder {
	struct jpeg_decompress_struct j;
	struct jpeg_error_mgr errors;
	struct jpeg_progress_mgr progress;
	jmp_buf back;
	char why[JMSG_LENGTH_MAX];
	unsigned char *row;
};

bool jpeg_is(struct bytes file)
{
	return file.n >= 3 && memcmp(file.p, "\xff\xd8\xff", 3) == 0;
}

/* libjpeg's own handlers would print and exit. */
static _Noreturn void give_up(j_common_ptr j)
{
	struct decoder *d = j->client_data;

	j->err->format_message(j, d->why);
	longjmp(d->back, 1);
}

/* Warnings pass, but for those that mean that pixels are missing. */
static void on_message(j_common_ptr j, int level)
{
	int code = j->err->msg_code;

	if (level < 0 && (code == JWRN_JPEG_EOF || code == JWRN_HIT_MARKER || code == JWRN_HUFF_BAD_CODE))
		give_up(j);
}

static void on_progress(j_common_ptr j)
{
	struct decoder *d = j->client_data;

	if (d->j.input_scan_number > SCANS_MAX) {
		snprintf(d->why, sizeof(d->why), "more than %d scans", SCANS_MAX);
		longjmp(d->back, 1);
	}
}

/* Print shops' CMYK; Adobe stores it inverted, and practically all files are Adobe's. */
static void cmyk_to_rgb(unsigned char *row, size_t n, bool inverted)
{
	const unsigned char *from = row;
	size_t i;
	int k;

	for (i = 0; i < n; i++, from += 4) {
		unsigned black = inverted ? from[3] : 255u - from[3];

		for (k = 0; k < 3; k++) {
			unsigned ink = inverted ? from[k] : 255u - from[k];

			*row++ = (unsigned char)((ink * black + 127) / 255);
		}
	}
}

static J_COLOR_SPACE output_space(const struct jpeg_decompress_struct *j)
{
	if (j->jpeg_color_space == JCS_CMYK || j->jpeg_color_space == JCS_YCCK)
		return JCS_CMYK;
	return j->jpeg_color_space == JCS_GRAYSCALE ? JCS_GRAYSCALE : JCS_RGB;
}

static void read_rows(struct decoder *d, int channels, struct buffer *out)
{
	int components = d->j.output_components;
	size_t width = d->j.output_width;
	unsigned char *to = out->t.data;

	while (d->j.output_scanline < d->j.output_height) {
		if (jpeg_read_scanlines(&d->j, &d->row, 1) != 1)
			continue;
		if (components == 4)
			cmyk_to_rgb(d->row, width, d->j.saw_Adobe_marker);
		image_put(to, channels, d->row, components == 1 ? 1 : 3, width);
		to += width * (size_t)channels;
	}
}

/* Everything that libjpeg may jump out of. */
static enum fettle_status decode(struct decoder *d, struct bytes file, int channels, struct buffer *out,
				 struct err *err)
{
	enum fettle_status st;

	if (setjmp(d->back))
		return fail(err, FETTLE_INVALID, "damaged JPEG: %s", d->why);
	jpeg_create_decompress(&d->j);
	d->j.client_data = d;
	d->j.progress = &d->progress;
	d->progress.progress_monitor = on_progress;
	jpeg_mem_src(&d->j, file.p, file.n);
	jpeg_read_header(&d->j, TRUE);
	d->j.out_color_space = output_space(&d->j);
	st = image_shape(d->j.image_height, d->j.image_width, channels, out, err);
	if (st)
		return st;
	jpeg_start_decompress(&d->j);
	st = mem_try(&d->row, d->j.output_width, (size_t)d->j.output_components, "an image row", err);
	if (st)
		return st;
	read_rows(d, channels, out);
	return FETTLE_OK;
}

enum fettle_status jpeg_decode(struct bytes file, int channels, struct buffer *out, struct err *err)
{
	struct decoder *d = xcalloc(1, sizeof(*d)); /* not on the stack, where longjmp() may forget it */
	enum fettle_status st;

	d->j.err = jpeg_std_error(&d->errors);
	d->j.client_data = d; /* jpeg_create_decompress() keeps these two */
	d->errors.error_exit = give_up;
	d->errors.emit_message = on_message;
	st = decode(d, file, channels, out, err);
	jpeg_destroy_decompress(&d->j);
	free(d->row);
	free(d);
	return st;
}
