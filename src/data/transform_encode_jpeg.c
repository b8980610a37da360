/* What becomes of an image that is stored as JPEG and read again. Models here take pixels, so both are done at once. */
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <jpeglib.h>

#include "base/mem.h"
#include "data/image.h"
#include "data/transform_kind.h"

struct encode_jpeg {
	int64_t quality;
	bool full; /* colours have the resolution of the brightness */
};
TRANSFORM_FITS(struct encode_jpeg);

struct encoder {
	struct jpeg_compress_struct j;
	struct jpeg_error_mgr errors;
	jmp_buf back;
	char why[JMSG_LENGTH_MAX];
	unsigned char *file;
	unsigned long n;
};

static void jpeg_init(struct transform *t)
{
	TRANSFORM_OWN(struct encode_jpeg, t)->quality = 95;
}

static enum fettle_status jpeg_set(struct transform *t, const char *key, const struct transform_value *value,
				   struct err *err)
{
	struct encode_jpeg *own = TRANSFORM_OWN(struct encode_jpeg, t);
	bool down = true;
	enum fettle_status st;

	if (strcmp(key, "quality") == 0)
		return transform_whole(value, 1, 100, &own->quality, err);
	st = transform_bool(value, &down, err); /* chroma_downsampling */
	own->full = !down;
	return st;
}

static enum fettle_status jpeg_shape(const struct transform *t, struct tensor *shape, struct err *err)
{
	enum fettle_status st = transform_need_image(t, shape, err);
	char text[128];

	if (!st && (shape->dtype != DT_U8 || shape->rank != 3 ||
		    (shape->dims[2] >= 0 && shape->dims[2] != 1 && shape->dims[2] != 3)))
		st = fail(err, FETTLE_INVALID,
			  "cannot apply EncodeJpeg: %s %s, need uint8 [h,w,1] or [h,w,3]",
			  dtype_name(shape->dtype), tensor_shape_text(shape, text, sizeof(text)));
	return st;
}

static _Noreturn void give_up(j_common_ptr j)
{
	struct encoder *e = j->client_data;

	j->err->format_message(j, e->why);
	longjmp(e->back, 1);
}

static enum fettle_status encode(struct encoder *e, const struct encode_jpeg *own, const struct tensor *src,
				 struct err *err)
{
	const int64_t channels = src->dims[2];
	unsigned char *row;

	if (setjmp(e->back))
		return fail(err, FETTLE_INVALID, "cannot apply EncodeJpeg: %s", e->why);
	jpeg_create_compress(&e->j);
	e->j.client_data = e;
	jpeg_mem_dest(&e->j, &e->file, &e->n);
	e->j.image_width = (JDIMENSION)src->dims[1];
	e->j.image_height = (JDIMENSION)src->dims[0];
	e->j.input_components = (int)channels;
	e->j.in_color_space = channels == 3 ? JCS_RGB : JCS_GRAYSCALE;
	jpeg_set_defaults(&e->j);
	jpeg_set_quality(&e->j, (int)own->quality, TRUE);
	if (own->full && channels == 3)
		e->j.comp_info[0].h_samp_factor = e->j.comp_info[0].v_samp_factor = 1;
	jpeg_start_compress(&e->j, TRUE);
	while (e->j.next_scanline < e->j.image_height) {
		row = (unsigned char *)src->data + (int64_t)e->j.next_scanline * src->dims[1] * channels;
		jpeg_write_scanlines(&e->j, &row, 1);
	}
	jpeg_finish_compress(&e->j);
	return FETTLE_OK;
}

static enum fettle_status jpeg_apply(const struct transform *t, const struct tensor *src, struct buffer *dst,
				     struct err *err)
{
	struct encoder *e = xcalloc(1, sizeof(*e)); /* not on the stack, where longjmp() may forget it */
	enum fettle_status st;

	e->j.err = jpeg_std_error(&e->errors);
	e->j.client_data = e;
	e->errors.error_exit = give_up;
	st = encode(e, TRANSFORM_READ(struct encode_jpeg, t), src, err);
	if (!st)
		st = image_decode((struct bytes){ e->file, e->n }, (int)src->dims[2], dst, err);
	jpeg_destroy_compress(&e->j);
	free(e->file);
	free(e);
	return st;
}

const struct transform_kind transform_encode_jpeg = {
	.name = "EncodeJpeg",
	.summary =
		"what is left of an image after JPEG of that quality (95), with chroma_downsampling (true)",
	.keys = { "quality", "chroma_downsampling" },
	.init = jpeg_init,
	.set = jpeg_set,
	.shape = jpeg_shape,
	.apply = jpeg_apply,
};
