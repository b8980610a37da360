#include "data/zip.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <zlib.h>
#ifdef FETTLE_DEFLATE
#include <libdeflate.h>
#endif

enum {
	END_SIZE = 22,
	LOCATOR_SIZE = 20,
	END64_SIZE = 56,
	ENTRY_SIZE = 46,
	LOCAL_SIZE = 30,
	COMMENT_MAX = 65535,
	FLAG_ENCRYPTED = 1,
	METHOD_STORED = 0,
	METHOD_DEFLATED = 8,
	EXTRA_ZIP64 = 1,
	DEFLATE_RATIO_MAX = 1032, /* a 258-byte match costs at least two bits */
	PIECE = 1 << 18,          /* bytes inflated at a time */
	WINDOW = 4 << 20,         /* bytes of the file kept in memory at a time */
	WHOLE_MAX = 64 << 20,     /* what is packed into fewer is inflated in one go */
};

static uint64_t get(const unsigned char *p, int n)
{
	uint64_t v = 0;

	while (n--)
		v = v << 8 | p[n];
	return v;
}

static bool is_at(struct bytes f, size_t at, size_t size, const char *magic)
{
	return at <= f.n && f.n - at >= size && memcmp(f.p + at, magic, 4) == 0;
}

struct directory {
	uint64_t at, size, entries;
};

/* The end record is followed by a comment of the length it gives, and that ends the file. */
static enum fettle_status find_end(struct bytes f, size_t *out, struct err *err)
{
	size_t back;

	for (back = END_SIZE; back <= f.n && back <= END_SIZE + COMMENT_MAX; back++) {
		size_t at = f.n - back;

		if (is_at(f, at, END_SIZE, "PK\5\6") && get(f.p + at + 20, 2) == back - END_SIZE) {
			*out = at;
			return FETTLE_OK;
		}
	}
	return fail(err, FETTLE_INVALID, "no end of a zip archive, the file is truncated or not an archive");
}

static enum fettle_status find_directory(struct bytes f, struct directory *d, struct err *err)
{
	enum fettle_status st;
	size_t end = 0;

	st = find_end(f, &end, err);
	if (st)
		return st;
	*d = (struct directory){ get(f.p + end + 16, 4), get(f.p + end + 12, 4), get(f.p + end + 10, 2) };
	if (end >= LOCATOR_SIZE && is_at(f, end - LOCATOR_SIZE, LOCATOR_SIZE, "PK\6\7")) {
		uint64_t at = get(f.p + end - LOCATOR_SIZE + 8, 8);

		if (!is_at(f, at, END64_SIZE, "PK\6\6"))
			return fail(err, FETTLE_INVALID,
				    "the zip64 end record is not at byte %llu, where it should be",
				    (unsigned long long)at);
		*d = (struct directory){ get(f.p + at + 48, 8), get(f.p + at + 40, 8),
					 get(f.p + at + 32, 8) };
	}
	if (d->at > f.n || d->size > f.n - d->at)
		return fail(err, FETTLE_INVALID,
			    "directory of %llu bytes at byte %llu, the file has %zu: it is truncated",
			    (unsigned long long)d->size, (unsigned long long)d->at, f.n);
	return FETTLE_OK;
}

/* Sizes of 2^32-1 are to be had from the zip64 extra field, in the order they are missing in. */
static bool read_zip64(const unsigned char *extra, size_t n, uint64_t *size, uint64_t *packed, uint64_t *at)
{
	uint64_t *const values[] = { size, packed, at };
	size_t i;

	while (n >= 4 && get(extra, 2) != EXTRA_ZIP64) {
		size_t skip = 4 + get(extra + 2, 2);

		if (skip > n)
			return false;
		extra += skip;
		n -= skip;
	}
	if (n < 4 || get(extra + 2, 2) > n - 4)
		return *size != UINT32_MAX && *packed != UINT32_MAX && *at != UINT32_MAX;
	n = get(extra + 2, 2);
	extra += 4;
	for (i = 0; i < ARRAY_LEN(values); i++) {
		if (*values[i] != UINT32_MAX)
			continue;
		if (n < 8)
			return false;
		*values[i] = get(extra, 8);
		extra += 8;
		n -= 8;
	}
	return true;
}

static bool is_printable(const unsigned char *p, size_t n)
{
	size_t i;

	for (i = 0; i < n; i++)
		if (p[i] < ' ' || p[i] == 127)
			return false;
	return true;
}

/* Finds the member's bytes through its local header, whose name and extra field may differ in length. */
static enum fettle_status locate(struct zip_member *m, struct bytes f, uint64_t at, uint64_t packed,
				 uint64_t size, struct err *err)
{
	uint64_t start;

	if (!is_at(f, at, LOCAL_SIZE, "PK\3\4"))
		return fail(err, FETTLE_INVALID, "member '%s' is not at byte %llu, where it should be",
			    m->name, (unsigned long long)at);
	start = at + LOCAL_SIZE + get(f.p + at + 26, 2) + get(f.p + at + 28, 2);
	if (start > f.n || packed > f.n - start)
		return fail(err, FETTLE_INVALID,
			    "member '%s' has %llu bytes from byte %llu, the file has %zu: it is truncated",
			    m->name, (unsigned long long)packed, (unsigned long long)start, f.n);
	if (m->deflated ? size / DEFLATE_RATIO_MAX > packed : size != packed)
		return fail(err, FETTLE_INVALID, "member '%s' has %llu bytes for %llu, which cannot be",
			    m->name, (unsigned long long)packed, (unsigned long long)size);
	m->at = start;
	m->packed = packed;
	m->size = size;
	return FETTLE_OK;
}

/* One entry of the directory, at p with `left` bytes; says how many it took. */
static enum fettle_status read_entry(struct zip *z, struct bytes f, const unsigned char *p, size_t left,
				     size_t *took, struct err *err)
{
	struct zip_member m = { .name = NULL };
	size_t n_name, n_extra;
	uint64_t size, packed, at;
	unsigned method;

	if (left < ENTRY_SIZE || memcmp(p, "PK\1\2", 4) != 0)
		return fail(err, FETTLE_INVALID, "entry %zu of the directory is damaged", z->members.n);
	n_name = get(p + 28, 2);
	n_extra = get(p + 30, 2);
	*took = ENTRY_SIZE + n_name + n_extra + get(p + 32, 2);
	if (*took > left || !is_printable(p + ENTRY_SIZE, n_name))
		return fail(err, FETTLE_INVALID, "entry %zu of the directory is damaged", z->members.n);
	m.name = xstrfmt("%.*s", (int)n_name, (const char *)p + ENTRY_SIZE);
	VEC_PUSH(&z->members, m); /* so that it is released whatever happens */
	method = (unsigned)get(p + 10, 2);
	if (get(p + 8, 2) & FLAG_ENCRYPTED)
		return fail(err, FETTLE_UNSUPPORTED, "member '%s' is encrypted", m.name);
	if (method != METHOD_STORED && method != METHOD_DEFLATED)
		return fail(err, FETTLE_UNSUPPORTED,
			    "member '%s' has compression method %u, need stored or deflated", m.name, method);
	m.deflated = method == METHOD_DEFLATED;
	m.crc = (uint32_t)get(p + 16, 4);
	packed = get(p + 20, 4);
	size = get(p + 24, 4);
	at = get(p + 42, 4);
	if (!read_zip64(p + ENTRY_SIZE + n_name, n_extra, &size, &packed, &at))
		return fail(err, FETTLE_INVALID, "the zip64 sizes of member '%s' are damaged", m.name);
	if (locate(&m, f, at, packed, size, err))
		return FETTLE_INVALID;
	z->members.v[z->members.n - 1] = m;
	return FETTLE_OK;
}

enum fettle_status zip_open(struct zip *z, struct bytes file, size_t max, struct err *err)
{
	struct directory d;
	enum fettle_status st;
	const unsigned char *p;
	size_t left, took = 0;

	st = find_directory(file, &d, err);
	if (st)
		return st;
	if (d.entries > max)
		return fail(err, FETTLE_INVALID, "%llu members, at most %zu are supported",
			    (unsigned long long)d.entries, max);
	p = file.p + d.at;
	left = d.size;
	while (z->members.n < d.entries) {
		st = read_entry(z, file, p, left, &took, err);
		if (st)
			return st;
		p += took;
		left -= took;
	}
	return FETTLE_OK;
}

void zip_release(struct zip *z)
{
	size_t i;

	for (i = 0; i < z->members.n; i++)
		free(z->members.v[i].name);
	VEC_RELEASE(&z->members);
}

/* Gives back the whole pages from `from` to `to`: they are the file's, and come again when touched. */
static void forget(struct bytes file, size_t from, size_t to)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);

	from = (from + page - 1) / page * page;
	to = to / page * page;
	if (from < to)
		madvise((void *)(uintptr_t)(file.p + from), to - from, MADV_DONTNEED);
}

static enum fettle_status check_crc(const struct zip_member *m, uint32_t crc, struct err *err)
{
	if (crc != m->crc)
		return fail(err, FETTLE_INVALID, "member '%s' has CRC %08x, need %08x: it is damaged",
			    m->name, crc, m->crc);
	return FETTLE_OK;
}

/* The stream's next piece of input; what went before is forgotten. */
static void refill(z_stream *s, const struct zip_member *m, struct bytes file, size_t *used)
{
	size_t n = m->packed - *used < WINDOW ? m->packed - *used : WINDOW;

	forget(file, m->at + (*used < WINDOW ? 0 : *used - WINDOW), m->at + *used);
	s->next_in = (unsigned char *)(uintptr_t)(file.p + m->at + *used);
	s->avail_in = (uInt)n;
	*used += n;
}

enum fettle_status zip_inflate(const struct zip_member *m, struct bytes file, zip_put put, void *arg,
			       struct err *err)
{
	unsigned char *out = xmalloc(PIECE);
	size_t used = 0, done = 0, n;
	uint32_t crc = 0;
	z_stream s = { .avail_in = 0 };
	enum fettle_status st = FETTLE_OK;
	int ret = Z_OK;

	if (inflateInit2(&s, -MAX_WBITS) != Z_OK) {
		st = fail(err, FETTLE_SYSTEM, "member '%s': not enough memory to inflate it", m->name);
		goto out;
	}
	while (ret == Z_OK && done <= m->size && !st) {
		if (!s.avail_in && used < m->packed)
			refill(&s, m, file, &used);
		s.next_out = out;
		s.avail_out = PIECE;
		ret = inflate(&s, Z_NO_FLUSH);
		n = PIECE - s.avail_out;
		done += n;
		crc = (uint32_t)crc32_z(crc, out, n);
		if (n && done <= m->size)
			st = put(arg, out, n, err);
	}
	inflateEnd(&s);
	forget(file, m->at, m->at + m->packed);
	if (!st && (ret != Z_STREAM_END || done != m->size))
		st = fail(err, FETTLE_INVALID, "member '%s' does not inflate to %zu bytes, it is damaged",
			  m->name, m->size);
	if (!st)
		st = check_crc(m, crc, err);
out:
	free(out);
	return st;
}

/* In one go by libdeflate, in half the time. */
static bool inflate_whole(const struct zip_member *m, struct bytes file, unsigned char *to, uint32_t *crc)
{
	bool done = false;
#ifdef FETTLE_DEFLATE
	struct libdeflate_decompressor *d = m->packed <= WHOLE_MAX ? libdeflate_alloc_decompressor() : NULL;

	if (!d)
		return false;
	done = libdeflate_deflate_decompress(d, file.p + m->at, m->packed, to, m->size, NULL) ==
	       LIBDEFLATE_SUCCESS;
	if (done)
		*crc = libdeflate_crc32(0, to, m->size);
	libdeflate_free_decompressor(d);
	forget(file, m->at, m->at + m->packed);
#else
	(void)m, (void)file, (void)to, (void)crc;
#endif
	return done;
}

static enum fettle_status put_at(void *arg, const unsigned char *p, size_t n, struct err *err)
{
	unsigned char **to = arg;

	(void)err;
	memcpy(*to, p, n);
	*to += n;
	return FETTLE_OK;
}

enum fettle_status zip_inflate_into(const struct zip_member *m, struct bytes file, unsigned char *to,
				    struct err *err)
{
	uint32_t crc;

	if (inflate_whole(m, file, to, &crc))
		return check_crc(m, crc, err);
	return zip_inflate(m, file, put_at, &to, err); /* which says what is wrong with it, too */
}

enum fettle_status zip_verify(const struct zip_member *m, struct bytes file, struct err *err)
{
	uint32_t crc = 0;
	size_t done, n;

	for (done = 0; done < m->size; done += n) {
		n = m->size - done < WINDOW ? m->size - done : WINDOW;
		crc = (uint32_t)crc32_z(crc, file.p + m->at + done, n);
		forget(file, m->at + done, m->at + done + n);
	}
	return check_crc(m, crc, err);
}
