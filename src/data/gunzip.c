#include "data/gunzip.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <zlib.h>

#include "base/mem.h"

enum { PIECE = 1 << 18 };

static enum fettle_status write_all(int fd, const unsigned char *p, size_t n, struct err *err)
{
	ssize_t wrote;

	for (; n; n -= (size_t)wrote, p += wrote) {
		wrote = write(fd, p, n);
		if (wrote < 0 && errno == EINTR)
			wrote = 0;
		if (wrote < 0)
			return fail(err, FETTLE_SYSTEM, "a temporary file cannot be written: %s (set TMPDIR)",
				    strerror(errno));
	}
	return FETTLE_OK;
}

/* All members of the file, one after the other. */
static enum fettle_status inflate_into(int fd, struct bytes file, size_t *size, struct err *err)
{
	unsigned char *out = xmalloc(PIECE);
	z_stream s = { .next_in = (unsigned char *)(uintptr_t)file.p };
	size_t left = file.n, n;
	enum fettle_status st = FETTLE_OK;
	int ret = Z_OK;

	if (inflateInit2(&s, MAX_WBITS + 16) != Z_OK) {
		free(out);
		return fail(err, FETTLE_SYSTEM, "not enough memory to inflate it");
	}
	*size = 0;
	while (!st && (ret == Z_OK || (ret == Z_STREAM_END && (left || s.avail_in)))) {
		if (ret == Z_STREAM_END)
			inflateReset(&s);
		if (!s.avail_in) {
			s.avail_in = left < PIECE ? (uInt)left : PIECE;
			left -= s.avail_in;
		}
		s.next_out = out;
		s.avail_out = PIECE;
		ret = inflate(&s, Z_NO_FLUSH);
		n = PIECE - s.avail_out;
		*size += n;
		st = write_all(fd, out, n, err);
	}
	if (!st && ret != Z_STREAM_END)
		st = fail(err, FETTLE_INVALID, "it does not inflate: %s near byte %zu",
			  ret == Z_BUF_ERROR ? "it ends too early" : "it is damaged",
			  (size_t)(s.next_in - file.p));
	inflateEnd(&s);
	free(out);
	return st;
}

static enum fettle_status map_inflated(struct bytes file, struct bytes *out, struct err *err)
{
	const char *dir = getenv("TMPDIR");
	char *path = xstrfmt("%s/fettle-XXXXXX", dir && *dir ? dir : "/tmp");
	enum fettle_status st = FETTLE_OK;
	size_t size = 0;
	void *p;
	int fd = mkostemp(path, O_CLOEXEC);

	if (fd < 0) {
		st = fail(err, FETTLE_SYSTEM, "%s: %s (set TMPDIR)", path, strerror(errno));
		goto out;
	}
	unlink(path);
	st = inflate_into(fd, file, &size, err);
	if (st || !size) {
		st = st ? st : fail(err, FETTLE_INVALID, "nothing is in it");
		goto out;
	}
	p = mmap(NULL, size, PROT_READ, MAP_PRIVATE, fd, 0);
	if (p == MAP_FAILED)
		st = fail(err, FETTLE_SYSTEM, "%s", strerror(errno));
	else
		*out = (struct bytes){ p, size };
out:
	if (fd >= 0)
		close(fd);
	free(path);
	return st;
}

enum fettle_status file_map_inflated(const char *path, struct bytes *out, struct err *err)
{
	struct bytes file = BYTES_INIT;
	enum fettle_status st = file_map(path, &file, err);

	if (st)
		return st;
	if (file.n < 2 || file.p[0] != 0x1f || file.p[1] != 0x8b) {
		*out = file;
		return FETTLE_OK;
	}
	st = map_inflated(file, out, err);
	bytes_release(&file);
	return st ? fail_prefix(err, st, "cannot read %s", path) : FETTLE_OK;
}
