/* Writes the files that the data tests read: npy, npz, JPEG, PNG, TensorProto. */
#ifndef UNIT_DATA_FILES_H
#define UNIT_DATA_FILES_H

#include <jpeglib.h>
#include <png.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include "base/mem.h"
#include "base/rng.h"
#include "base/str.h"
#include "data/dataset.h"
#include "unit/tree.h"

/* Writes `b` as dir/name, making dir/ where name says so, and releases it; returns the path, to be freed. */
static inline char *put_file(const char *dir, const char *name, struct str *b)
{
	char *path = xstrfmt("%s/%s", dir, name), *slash;

	for (slash = path + strlen(dir) + 1; (slash = strchr(slash, '/')); slash++) {
		*slash = '\0';
		mkdir(path, 0700);
		*slash = '/';
	}
	write_bytes(path, b->s ? b->s : "", b->n);
	str_release(b);
	return path;
}

static inline void put_le(struct str *b, uint64_t v, int n)
{
	for (; n--; v >>= 8)
		str_add(b, &(unsigned char){ (unsigned char)v }, 1);
}

/* A version 1 npy with this dict, padded as numpy does. */
static inline struct str npy_raw(const char *dict, const void *data, size_t n)
{
	struct str b = STR_INIT;
	size_t len = strlen(dict), pad = 63 - (10 + len) % 64;

	str_add(&b, "\x93NUMPY\1\0", 8);
	put_le(&b, len + pad + 1, 2);
	str_addf(&b, "%s%*s\n", dict, (int)pad, "");
	str_add(&b, data, n);
	return b;
}

static inline struct str npy_of(const char *descr, bool fortran, const char *shape, const void *data,
				size_t n)
{
	char *dict = xstrfmt("{'descr': '%s', 'fortran_order': %s, 'shape': %s, }", descr,
			     fortran ? "True" : "False", shape);
	struct str b = npy_raw(dict, data, n);

	free(dict);
	return b;
}

struct zip_out {
	struct str body, directory;
	unsigned n;
	bool zip64;
};

static inline struct str deflated(const struct str *b)
{
	struct str out = STR_INIT;
	z_stream s = { .next_in = (unsigned char *)b->s, .avail_in = (uInt)b->n };
	size_t cap = b->n + b->n / 100 + 100;
	unsigned char *p = xmalloc(cap);

	assert_int_equal(deflateInit2(&s, 1, Z_DEFLATED, -15, 8, Z_DEFAULT_STRATEGY), Z_OK);
	s.next_out = p;
	s.avail_out = (uInt)cap;
	assert_int_equal(deflate(&s, Z_FINISH), Z_STREAM_END);
	deflateEnd(&s);
	str_add(&out, p, cap - s.avail_out);
	free(p);
	return out;
}

/* Adds a member and releases its content. */
static inline void zip_add(struct zip_out *z, const char *name, struct str content, bool deflate)
{
	uint32_t crc = (uint32_t)crc32(crc32(0, NULL, 0), (unsigned char *)content.s, (uInt)content.n);
	struct str packed = STR_INIT;
	size_t at = z->body.n;

	if (deflate)
		packed = deflated(&content);
	else
		str_add(&packed, content.s ? content.s : "", content.n);
	str_add(&z->body, "PK\3\4\x2d\0\0\0", 8);
	put_le(&z->body, deflate ? 8 : 0, 2);
	put_le(&z->body, 0, 4);
	put_le(&z->body, crc, 4);
	put_le(&z->body, packed.n, 4);
	put_le(&z->body, content.n, 4);
	put_le(&z->body, strlen(name), 2);
	put_le(&z->body, 0, 2);
	str_addf(&z->body, "%s", name);
	str_add(&z->body, packed.s, packed.n);

	str_add(&z->directory, "PK\1\2\x2d\0\x2d\0\0\0", 10);
	put_le(&z->directory, deflate ? 8 : 0, 2);
	put_le(&z->directory, 0, 4);
	put_le(&z->directory, crc, 4);
	put_le(&z->directory, z->zip64 ? UINT32_MAX : packed.n, 4);
	put_le(&z->directory, z->zip64 ? UINT32_MAX : content.n, 4);
	put_le(&z->directory, strlen(name), 2);
	put_le(&z->directory, z->zip64 ? 28 : 0, 2);
	put_le(&z->directory, 0, 10);
	put_le(&z->directory, z->zip64 ? UINT32_MAX : at, 4);
	str_addf(&z->directory, "%s", name);
	if (z->zip64) {
		put_le(&z->directory, 1, 2);
		put_le(&z->directory, 24, 2);
		put_le(&z->directory, content.n, 8);
		put_le(&z->directory, packed.n, 8);
		put_le(&z->directory, at, 8);
	}
	z->n++;
	str_release(&packed);
	str_release(&content);
}

static inline struct str zip_end(struct zip_out *z)
{
	struct str b = z->body;
	size_t at = b.n, end;

	str_add(&b, z->directory.s ? z->directory.s : "", z->directory.n);
	end = b.n;
	if (z->zip64) {
		str_add(&b, "PK\6\6", 4);
		put_le(&b, 44, 8);
		put_le(&b, 0x2d002d, 4);
		put_le(&b, 0, 8);
		put_le(&b, z->n, 8);
		put_le(&b, z->n, 8);
		put_le(&b, z->directory.n, 8);
		put_le(&b, at, 8);
		str_add(&b, "PK\6\7\0\0\0\0", 8);
		put_le(&b, end, 8);
		put_le(&b, 1, 4);
	}
	str_add(&b, "PK\5\6\0\0\0\0", 8);
	put_le(&b, z->zip64 ? 0xffff : z->n, 2);
	put_le(&b, z->zip64 ? 0xffff : z->n, 2);
	put_le(&b, z->zip64 ? UINT32_MAX : z->directory.n, 4);
	put_le(&b, z->zip64 ? UINT32_MAX : at, 4);
	put_le(&b, 0, 2);
	str_release(&z->directory);
	*z = (struct zip_out){ .n = 0 };
	return b;
}

/* x: float32 [n, 2, 3] counting up from 0; y: int64 [n] with y[i] = i % 3 */
static inline struct str sample_npz(size_t n, bool deflate, bool zip64)
{
	struct zip_out z = { .zip64 = zip64 };
	float *x = xcalloc(n * 6, sizeof(*x));
	int64_t *y = xcalloc(n, sizeof(*y));
	char shape[64];
	size_t i;

	for (i = 0; i < n * 6; i++)
		x[i] = (float)i;
	for (i = 0; i < n; i++)
		y[i] = (int64_t)(i % 3);
	snprintf(shape, sizeof(shape), "(%zu, 2, 3)", n);
	zip_add(&z, "x.npy", npy_of("<f4", false, shape, x, n * 6 * sizeof(*x)), deflate);
	snprintf(shape, sizeof(shape), "(%zu,)", n);
	zip_add(&z, "y.npy", npy_of("<i8", false, shape, y, n * sizeof(*y)), deflate);
	free(x);
	free(y);
	return zip_end(&z);
}

/* What the pictures show: smooth, so that JPEG keeps it. */
static inline unsigned char pixel_at(int y, int x, int c)
{
	return (unsigned char)(40 + 2 * y + 3 * x + 25 * c);
}

/* Of 1 (grey), 3 (RGB) or 4 components: CMYK without black, inverted as Adobe does. */
static inline struct str jpeg_of(int w, int h, int comps, bool progressive)
{
	struct jpeg_compress_struct j;
	struct jpeg_error_mgr e;
	struct str b = STR_INIT;
	unsigned char *out = NULL, *row = xmalloc((size_t)w * 4);
	unsigned long n = 0;
	int x, c;

	j.err = jpeg_std_error(&e);
	jpeg_create_compress(&j);
	jpeg_mem_dest(&j, &out, &n);
	j.image_width = (JDIMENSION)w;
	j.image_height = (JDIMENSION)h;
	j.input_components = comps;
	j.in_color_space = comps == 4 ? JCS_CMYK : comps == 3 ? JCS_RGB : JCS_GRAYSCALE;
	jpeg_set_defaults(&j);
	jpeg_set_quality(&j, 95, TRUE);
	if (progressive)
		jpeg_simple_progression(&j);
	jpeg_start_compress(&j, TRUE);
	while (j.next_scanline < j.image_height) {
		for (x = 0; x < w; x++)
			for (c = 0; c < comps; c++)
				row[x * comps + c] = c == 3 ? 255 : pixel_at((int)j.next_scanline, x, c);
		jpeg_write_scanlines(&j, &row, 1);
	}
	jpeg_finish_compress(&j);
	jpeg_destroy_compress(&j);
	str_add(&b, out, n);
	free(out);
	free(row);
	return b;
}

static inline void png_append(png_structp png, png_bytep p, size_t n)
{
	str_add(png_get_io_ptr(png), p, n);
}

/* The last channel of an alpha type is 7, which must not show; 16-bit values repeat their byte. */
static inline struct str png_of(int w, int h, int type, int depth, bool interlaced)
{
	png_structp png = png_create_write_struct(PNG_LIBPNG_VER_STRING, NULL, NULL, NULL);
	png_infop info = png_create_info_struct(png);
	struct str b = STR_INIT;
	int comps = type == PNG_COLOR_TYPE_RGB          ? 3
		    : type == PNG_COLOR_TYPE_RGB_ALPHA  ? 4
		    : type == PNG_COLOR_TYPE_GRAY_ALPHA ? 2
							: 1;
	size_t size = (size_t)depth / 8, row = (size_t)(w * comps) * size;
	unsigned char *all = xmalloc(row * (size_t)h), *p = all;
	png_color palette[256];
	png_bytep *rows = xcalloc((size_t)h, sizeof(*rows));
	int y, x, c;

	for (y = 0; y < h; y++) {
		rows[y] = all + (size_t)y * row;
		for (x = 0; x < w; x++)
			for (c = 0; c < comps; c++, p += size)
				memset(p, !(comps & 1) && c == comps - 1 ? 7 : pixel_at(y, x, c), size);
	}
	png_set_write_fn(png, &b, png_append, NULL);
	png_set_IHDR(png, info, (png_uint_32)w, (png_uint_32)h, depth, type,
		     interlaced ? PNG_INTERLACE_ADAM7 : PNG_INTERLACE_NONE, PNG_COMPRESSION_TYPE_DEFAULT,
		     PNG_FILTER_TYPE_DEFAULT);
	for (c = 0; type == PNG_COLOR_TYPE_PALETTE && c < w * h; c++) { /* every pixel has its own */
		y = c / w;
		x = c % w;
		palette[c] = (png_color){ pixel_at(y, x, 0), pixel_at(y, x, 1), pixel_at(y, x, 2) };
		all[c] = (unsigned char)c;
	}
	if (type == PNG_COLOR_TYPE_PALETTE)
		png_set_PLTE(png, info, palette, w * h);
	png_write_info(png, info);
	png_write_image(png, rows);
	png_write_end(png, NULL);
	png_destroy_write_struct(&png, &info);
	free(rows);
	free(all);
	return b;
}

/* A TensorProto with raw data; dims end with -1. */
static inline struct str pb_of(enum dtype t, const int *dims, const void *raw, size_t n)
{
	struct str b = STR_INIT;

	assert_true(n < 16384);
	for (; *dims >= 0; dims++) {
		assert_true(*dims < 128);
		put_le(&b, 0x08, 1);
		put_le(&b, (uint64_t)*dims, 1);
	}
	put_le(&b, 0x10, 1);
	put_le(&b, (uint64_t)t, 1);
	put_le(&b, 0x4a, 1);
	put_le(&b, (n & 127) | 128, 1);
	put_le(&b, n >> 7, 1);
	str_add(&b, raw, n);
	return b;
}
#define DIMS(...)                                                                                            \
	(const int[])                                                                                        \
	{                                                                                                    \
		__VA_ARGS__, -1                                                                              \
	}

/* Damages a copy of b: some bytes changed, and perhaps the end cut off. */
static inline struct str mutated(const struct str *b, struct rng *r)
{
	struct str out = STR_INIT;
	size_t times = 1 + rng_below(r, 6), at;

	str_add(&out, b->s, b->n);
	while (times--) {
		at = rng_below(r, out.n);
		switch (rng_below(r, 3)) {
		case 0:
			out.s[at] = (char)(unsigned char)rng_below(r, 256);
			break;
		case 1:
			out.s[at] ^= (char)(1 << rng_below(r, 7));
			break;
		default:
			out.s[at] = (char)(rng_below(r, 2) ? 0xff : 0);
		}
	}
	if (rng_below(r, 8) == 0)
		out.n = rng_below(r, out.n) + 1;
	return out;
}

/* Opens and reads everything once; whatever happens, it must not crash, and an error is one line. */
static inline enum fettle_status read_all(const char *path, const struct dataset_options *opt,
					  struct err *err)
{
	struct dataset *d = NULL;
	struct batch b = BATCH_INIT;
	enum fettle_status st = dataset_open(&d, path, opt, err);
	size_t i;

	for (i = 0; !st && i < d->n && i < 50; i++)
		st = dataset_read(d, &i, 1, &b, err);
	if (st) {
		assert_true(err->msg[0] != '\0');
		assert_null(strchr(err->msg, '\n'));
	}
	batch_release(&b);
	dataset_free(d);
	return st;
}

/* A failure of this status whose message has these words in it. */
#define assert_fails(call, status, err, words)                                                               \
	do {                                                                                                 \
		enum fettle_status got_ = (call);                                                            \
		if (got_ != (status) || !strstr((err).msg, words))                                           \
			fail_msg("%s: status %d and '%s', want %d and '%s'", #call, (int)got_, (err).msg,    \
				 (int)(status), words);                                                      \
	} while (0)

/* ---- records ---- */

/* CRC-32C, bit by bit, as TFRecord masks it */
static inline uint32_t masked_crc_of(const void *data, size_t n)
{
	const unsigned char *p = data;
	uint32_t c = 0xffffffff;
	int k;

	for (; n--; p++)
		for (c ^= *p, k = 0; k < 8; k++)
			c = c >> 1 ^ (c & 1 ? 0x82f63b78 : 0);
	c = ~c;
	return (c >> 15 | c << 17) + 0xa282ead8;
}

static inline void put_tfrecord(struct str *b, const void *data, size_t n)
{
	const size_t at = b->n;

	put_le(b, n, 8);
	put_le(b, masked_crc_of(b->s + at, 8), 4);
	str_add(b, data, n);
	put_le(b, masked_crc_of(data, n), 4);
}

static inline void put_varint(struct str *b, uint64_t v)
{
	for (; v > 127; v >>= 7)
		put_le(b, (v & 127) | 128, 1);
	put_le(b, v, 1);
}

/* field `number` with these bytes, which are released */
static inline void put_message(struct str *b, unsigned number, struct str *inner)
{
	put_varint(b, number << 3 | 2);
	put_varint(b, inner->n);
	str_add(b, inner->s ? inner->s : "", inner->n);
	str_release(inner);
}

/* A feature of tf.train.Example: type 1 are bytes (n of them), 2 floats, 3 integers. */
static inline void put_feature(struct str *features, const char *name, unsigned type, const void *values,
			       size_t n)
{
	struct str entry = STR_INIT, key = STR_INIT, value = STR_INIT, list = STR_INIT, packed = STR_INIT;
	size_t i;

	str_addf(&key, "%s", name);
	if (type == 1)
		str_add(&packed, values, n);
	for (i = 0; i < n && type == 2; i++)
		str_add(&packed, (const float *)values + i, 4);
	for (i = 0; i < n && type == 3; i++)
		put_varint(&packed, (uint64_t)((const int64_t *)values)[i]);
	put_message(&list, 1, &packed);
	put_message(&value, type, &list);
	put_message(&entry, 1, &key);
	put_message(&entry, 2, &value);
	put_message(features, 1, &entry);
}

/* An image with two objects. */
static inline struct str example_of(void)
{
	struct str features = STR_INIT, out = STR_INIT, image = png_of(6, 4, PNG_COLOR_TYPE_RGB, 8, false);

	put_feature(&features, "image/encoded", 1, image.s, image.n);
	put_feature(&features, "image/height", 3, (int64_t[]){ 4 }, 1);
	put_feature(&features, "image/width", 3, (int64_t[]){ 6 }, 1);
	put_feature(&features, "image/object/bbox/ymin", 2, (float[]){ 0, 0.5f }, 2);
	put_feature(&features, "image/object/bbox/xmin", 2, (float[]){ 0.25f, 0.5f }, 2);
	put_feature(&features, "image/object/bbox/ymax", 2, (float[]){ 0.5f, 1 }, 2);
	put_feature(&features, "image/object/bbox/xmax", 2, (float[]){ 0.75f, 1 }, 2);
	put_feature(&features, "image/object/class/label", 3, (int64_t[]){ 3, 7 }, 2);
	put_feature(&features, "image/object/class/text", 1, "cat", 3);
	put_message(&out, 1, &features);
	str_release(&image);
	return out;
}

/* One record of MXNet's RecordIO: an image with a label; in two parts. */
static inline struct str recordio_of(void)
{
	struct str out = STR_INIT, record = STR_INIT, image = png_of(6, 4, PNG_COLOR_TYPE_RGB, 8, false);
	size_t cut;

	put_le(&record, 0, 4);
	str_add(&record, (float[]){ 5 }, 4);
	put_le(&record, 1, 8);
	put_le(&record, 0, 8);
	str_add(&record, image.s, image.n);
	put_le(&record, 0xced7230a, 4);
	put_le(&record, 77, 1);
	cut = record.n - 5;
	put_le(&out, 0xced7230a, 4);
	put_le(&out, UINT32_C(1) << 29 | (uint32_t)cut, 4);
	str_add(&out, record.s, cut);
	put_le(&out, 0, (int)(3 - (cut + 3) % 4));
	put_le(&out, 0xced7230a, 4);
	put_le(&out, UINT32_C(3) << 29 | 1, 4);
	put_le(&out, 77, 4);
	str_release(&record);
	str_release(&image);
	return out;
}

#endif
