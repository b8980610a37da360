#include "data/records.h"

#include <glob.h>
#include <stdlib.h>
#include <string.h>

#include "data/gunzip.h"

static const uint32_t RECORDIO_MAGIC = 0xced7230a;
enum { TF_HEAD = 12, TF_TAIL = 4, IO_HEAD = 8 };

/* Castagnoli's polynomial, reflected; eight bytes at a time (Kounavis and Berry 2005). */
static void make_tables(uint32_t t[8][256])
{
	uint32_t i, k, c;

	for (i = 0; i < 256; i++) {
		for (c = i, k = 0; k < 8; k++)
			c = c & 1 ? c >> 1 ^ 0x82f63b78 : c >> 1;
		t[0][i] = c;
	}
	for (k = 1; k < 8; k++)
		for (i = 0; i < 256; i++)
			t[k][i] = t[k - 1][i] >> 8 ^ t[0][t[k - 1][i] & 255];
}

static uint32_t le32(const unsigned char *p)
{
	return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

static uint64_t le64(const unsigned char *p)
{
	return le32(p) | (uint64_t)le32(p + 4) << 32;
}

/* as TFRecord masks it: a checksum of something that has checksums in it */
static uint32_t masked_crc(const struct records *r, const unsigned char *p, size_t n)
{
	const uint32_t(*t)[256] = r->crc;
	uint32_t c = 0xffffffff, d;

	for (; n >= 8; n -= 8, p += 8) {
		c ^= le32(p);
		d = le32(p + 4);
		c = t[7][c & 255] ^ t[6][c >> 8 & 255] ^ t[5][c >> 16 & 255] ^ t[4][c >> 24] ^ t[3][d & 255] ^
		    t[2][d >> 8 & 255] ^ t[1][d >> 16 & 255] ^ t[0][d >> 24];
	}
	for (; n; n--)
		c = c >> 8 ^ t[0][(c ^ *p++) & 255];
	c = ~c;
	return (c >> 15 | c << 17) + 0xa282ead8;
}

static enum fettle_status damaged(const struct record_file *f, size_t at, const char *why, struct err *err)
{
	return fail(err, FETTLE_INVALID, "cannot read %s: record at byte %zu: %s", f->path, at, why);
}

/* Its length is checked; *next is where the one after it begins. */
static enum fettle_status tf_record(const struct records *r, const struct record_file *f, size_t at,
				    struct bytes *data, size_t *next, struct err *err)
{
	const unsigned char *p = f->bytes.p + at;
	const size_t left = f->bytes.n - at;
	uint64_t n;

	if (left < TF_HEAD)
		return damaged(f, at, "the file ends within its head", err);
	n = le64(p);
	if (masked_crc(r, p, 8) != le32(p + 8))
		return damaged(f, at, "the checksum of its length is wrong", err);
	if (n > left - TF_HEAD || left - TF_HEAD - n < TF_TAIL)
		return damaged(f, at, "the file ends within its data", err);
	*data = (struct bytes){ p + TF_HEAD, (size_t)n };
	*next = at + TF_HEAD + (size_t)n + TF_TAIL;
	return FETTLE_OK;
}

/* One part of a record; *flag: 0 all of it, 1 the first, 2 one between, 3 the last. */
static enum fettle_status io_part(const struct record_file *f, size_t at, struct bytes *data, unsigned *flag,
				  size_t *next, struct err *err)
{
	const unsigned char *p = f->bytes.p + at;
	const size_t left = f->bytes.n - at;
	uint32_t word, n;

	if (left < IO_HEAD)
		return damaged(f, at, "the file ends within its head", err);
	if (le32(p) != RECORDIO_MAGIC)
		return damaged(f, at, "it does not begin with RecordIO's magic number", err);
	word = le32(p + 4);
	*flag = word >> 29;
	n = word & ((UINT32_C(1) << 29) - 1);
	if (n > left - IO_HEAD)
		return damaged(f, at, "the file ends within its data", err);
	if (*flag > 3)
		return damaged(f, at, "a part is of no kind that there is", err);
	*data = (struct bytes){ p + IO_HEAD, n };
	*next = at + IO_HEAD + n + (4 - n % 4) % 4; /* the last may lack the padding */
	return FETTLE_OK;
}

/* All parts; `parts` may be NULL when they are only to be skipped. */
static enum fettle_status io_record(const struct record_file *f, size_t at, struct bytes *data,
				    struct str *parts, size_t *next, struct err *err)
{
	const size_t start = at;
	enum fettle_status st;
	unsigned flag = 0;
	bool first = true;

	do {
		if (!first && at >= f->bytes.n)
			return damaged(f, start, "its last part is missing", err);
		st = io_part(f, at, data, &flag, next, err);
		if (st)
			return st;
		if ((flag == 0 || flag == 1) != first)
			return damaged(f, at,
				       first ? "its first part is missing" : "its last part is missing", err);
		at = *next;
		if (!flag || !parts) {
			first = false;
			continue;
		}
		if (first)
			parts->n = 0;
		else /* where it was cut, the data had the magic number */
			str_add(parts, (unsigned char[]){ 0x0a, 0x23, 0xd7, 0xce }, 4);
		str_add(parts, data->p, data->n);
		first = false;
	} while (flag == 1 || flag == 2);
	if (flag && parts)
		*data = (struct bytes){ (const unsigned char *)parts->s, parts->n };
	return FETTLE_OK;
}

struct places {
	VEC(size_t) at;
};

static enum fettle_status find_records(const struct records *r, const struct record_file *f,
				       struct places *out, struct err *err)
{
	enum fettle_status st = FETTLE_OK;
	struct bytes data;
	size_t at = 0, next;

	while (!st && at < f->bytes.n) {
		st = f->recordio ? io_record(f, at, &data, NULL, &next, err)
				 : tf_record(r, f, at, &data, &next, err);
		if (st)
			break;
		VEC_PUSH(&out->at, at);
		at = next;
	}
	return st;
}

static enum fettle_status add_file(struct records *r, const char *path, struct err *err)
{
	struct record_file f = { .path = NULL, .bytes = BYTES_INIT };
	enum fettle_status st = file_map_inflated(path, &f.bytes, err);

	if (st)
		return st;
	f.path = xstrdup(path);
	f.recordio = f.bytes.n >= 4 && le32(f.bytes.p) == RECORDIO_MAGIC;
	VEC_PUSH(&r->files, f);
	return FETTLE_OK;
}

static enum fettle_status add_files(struct records *r, const char *path, const char *pattern, struct err *err)
{
	char *all = path_is_dir(path) ? xstrfmt("%s/%s", path, pattern) : xstrdup(path);
	enum fettle_status st = FETTLE_OK;
	glob_t found = { .gl_pathc = 0 };
	size_t i;

	if (glob(all, GLOB_NOCHECK, NULL, &found) != 0)
		st = fail(err, FETTLE_INVALID, "cannot read data %s: it cannot be listed", all);
	for (i = 0; !st && i < found.gl_pathc; i++)
		if (!path_is_dir(found.gl_pathv[i]))
			st = add_file(r, found.gl_pathv[i], err);
	globfree(&found);
	free(all);
	return st;
}

enum fettle_status records_open(struct records *r, const char *path, const char *pattern, struct err *err)
{
	enum fettle_status st;
	struct places *of = NULL;
	size_t i, k, left;

	make_tables(r->crc);
	st = add_files(r, path, pattern, err);
	if (!st && !r->files.n)
		st = fail(err, FETTLE_INVALID, "cannot read data %s: no files %s in it", path, pattern);
	if (st)
		return st;
	of = xcalloc(r->files.n, sizeof(*of));
	for (i = 0; i < r->files.n && !st; i++)
		st = find_records(r, &r->files.v[i], &of[i], err);
	for (k = 0, left = 1; left && !st; k++) /* the k-th of each */
		for (i = left = 0; i < r->files.n; i++)
			if (k < of[i].at.n) {
				VEC_PUSH(&r->list, ((struct record){ i, of[i].at.v[k] }));
				left++;
			}
	for (i = 0; i < r->files.n; i++)
		VEC_RELEASE(&of[i].at);
	free(of);
	return st;
}

enum fettle_status records_get(const struct records *r, size_t i, bool check, struct bytes *out,
			       struct str *parts, struct err *err)
{
	const struct record *record = &r->list.v[i];
	const struct record_file *f = &r->files.v[record->file];
	enum fettle_status st;
	size_t next;

	if (f->recordio)
		return io_record(f, record->at, out, parts, &next, err);
	st = tf_record(r, f, record->at, out, &next, err);
	if (!st && check && masked_crc(r, out->p, out->n) != le32(out->p + out->n))
		st = damaged(f, record->at, "the checksum of its data is wrong", err);
	return st;
}

char *records_name(const struct records *r, size_t i)
{
	return xstrfmt("%s: record at byte %zu", r->files.v[r->list.v[i].file].path, r->list.v[i].at);
}

void records_release(struct records *r)
{
	size_t i;

	for (i = 0; i < r->files.n; i++) {
		free(r->files.v[i].path);
		bytes_release(&r->files.v[i].bytes);
	}
	VEC_RELEASE(&r->files);
	VEC_RELEASE(&r->list);
}
