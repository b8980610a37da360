/*
 * Files of records: TensorFlow's TFRecord (a length, its checksum, the data, its checksum; perhaps in gzip) and MXNet's RecordIO (a magic
 * number, a length, the data; a long record in parts). The first bytes of a file say which it is. Of several files, records are taken in
 * turn, as tf.data's interleave does it.
 */
#ifndef DATA_RECORDS_H
#define DATA_RECORDS_H

#include "base/file.h"
#include "base/mem.h"
#include "base/str.h"

struct record_file {
	char *path;
	struct bytes bytes;
	bool recordio;
};
struct record {
	size_t file, at; /* `at`: where it begins in the (inflated) file */
};

struct records {
	VEC(struct record_file) files;
	VEC(struct record) list;
	uint32_t crc[8][256]; /* tables */
};

/* A file, a folder with files PATTERN (as for glob(3)), or a pattern itself. */
enum fettle_status records_open(struct records *r, const char *path, const char *pattern, struct err *err);
/* `out` is valid as long as `parts`, which holds it where it had to be put together. With `check`, its checksum must be right. */
enum fettle_status records_get(const struct records *r, size_t i, bool check, struct bytes *out,
			       struct str *parts, struct err *err);
char *records_name(const struct records *r, size_t i); /* "FILE: record at byte 17"; free() it */
void records_release(struct records *r);

#endif
