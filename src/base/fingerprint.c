#include "base/fingerprint.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/str.h"

/*
 * MurmurHash3_x64_128 (Austin Appleby, in the public domain). Each step is one-to-one in the block and in the
 * state, so that contents that differ within one block of 16 bytes never get the same hash.
 */
struct murmur {
	uint64_t h1, h2, n;
};

static uint64_t rotate(uint64_t x, int by)
{
	return x << by | x >> (64 - by);
}

static uint64_t scatter1(uint64_t k)
{
	return rotate(k * 0x87c37b91114253d5u, 31) * 0x4cf5ad432745937fu;
}

static uint64_t scatter2(uint64_t k)
{
	return rotate(k * 0x4cf5ad432745937fu, 33) * 0x87c37b91114253d5u;
}

static uint64_t finish(uint64_t h)
{
	h = (h ^ h >> 33) * 0xff51afd7ed558ccdu;
	h = (h ^ h >> 33) * 0xc4ceb9fe1a85ec53u;
	return h ^ h >> 33;
}

/* the same number on every host */
static uint64_t little_endian(const unsigned char *p)
{
	uint64_t x = 0;
	int i;

	for (i = 7; i >= 0; i--)
		x = x << 8 | p[i];
	return x;
}

/* n: a multiple of 16 */
static void murmur_blocks(struct murmur *m, const unsigned char *p, size_t n)
{
	uint64_t h1 = m->h1, h2 = m->h2;
	size_t i;

	for (i = 0; i < n; i += 16) {
		h1 = (rotate(h1 ^ scatter1(little_endian(p + i)), 27) + h2) * 5 + 0x52dce729;
		h2 = (rotate(h2 ^ scatter2(little_endian(p + i + 8)), 31) + h1) * 5 + 0x38495ab5;
	}
	*m = (struct murmur){ h1, h2, m->n + n };
}

/* the last n < 16 bytes, and the result */
static void murmur_end(struct murmur *m, const unsigned char *p, size_t n, char out[FINGERPRINT_LEN])
{
	unsigned char last[16] = { 0 };
	uint64_t h1, h2;

	if (n)
		memcpy(last, p, n);
	h1 = (m->h1 ^ scatter1(little_endian(last))) ^ (m->n + n);
	h2 = (m->h2 ^ scatter2(little_endian(last + 8))) ^ (m->n + n);
	h1 += h2;
	h2 += h1;
	h1 = finish(h1);
	h2 = finish(h2);
	h1 += h2;
	h2 += h1;
	snprintf(out, FINGERPRINT_LEN, "%016" PRIx64 "%016" PRIx64, h1, h2);
}

void fingerprint_bytes(const void *p, size_t n, char out[FINGERPRINT_LEN])
{
	struct murmur m = { 0, 0, 0 };

	murmur_blocks(&m, p, n & ~(size_t)15);
	murmur_end(&m, (const unsigned char *)p + (n & ~(size_t)15), n & 15, out);
}

/* Read, not mapped: a file that shrinks meanwhile must not end the process. */
static enum fettle_status of_file(int fd, const char *path, char out[FINGERPRINT_LEN], struct err *err)
{
	enum { CHUNK = 1 << 18 };
	unsigned char *buffer = xmalloc(CHUNK);
	struct murmur m = { 0, 0, 0 };
	enum fettle_status st = FETTLE_OK;
	size_t have = 0, whole;
	ssize_t got;

	for (;;) {
		got = read(fd, buffer + have, CHUNK - have);
		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			break;
		have += (size_t)got;
		whole = have & ~(size_t)15;
		murmur_blocks(&m, buffer, whole);
		have -= whole;
		memmove(buffer, buffer + whole, have);
	}
	if (got < 0)
		st = fail(err, FETTLE_SYSTEM, "cannot read %s: %s", path, strerror(errno));
	else
		murmur_end(&m, buffer, have, out);
	free(buffer);
	return st;
}

/* Bytes of a folder's files that are all read. */
#define FOLDER_WHOLE (1ull << 30)

/* Of a large folder: so much from the beginning, the middle and the end of each file. */
enum { PIECE = 4096 };

static enum fettle_status of_pieces(int fd, const char *path, off_t size, char out[FINGERPRINT_LEN],
				    struct err *err)
{
	const off_t at[] = { 0, size / 2, size > PIECE ? size - PIECE : 0 };
	unsigned char *buffer = xcalloc(3, PIECE);
	enum fettle_status st = FETTLE_OK;
	size_t i, have = 0;

	for (i = 0; i < ARRAY_LEN(at) && !st; i++) {
		ssize_t got = pread(fd, buffer + have, PIECE, at[i]);

		if (got < 0)
			st = fail(err, FETTLE_SYSTEM, "cannot read %s: %s", path, strerror(errno));
		else
			have += (size_t)got;
	}
	fingerprint_bytes(buffer, have, out);
	free(buffer);
	return st;
}

/* the folders we are in, from the top: a link back to one of them is not followed */
struct above {
	const struct above *up;
	dev_t dev;
	ino_t ino;
};

static bool is_above(const struct above *a, const struct stat *sb)
{
	for (; a; a = a->up)
		if (a->dev == sb->st_dev && a->ino == sb->st_ino)
			return true;
	return false;
}

static int by_name(const struct dirent **a, const struct dirent **b)
{
	return strcmp((*a)->d_name, (*b)->d_name);
}

struct listing {
	struct str text;
	unsigned long long bytes; /* of all files */
	bool sizes;               /* no contents yet: to see how much there is */
	bool pieces;
};

static enum fettle_status list_file(struct listing *l, const char *path, off_t size, struct err *err)
{
	char print[FINGERPRINT_LEN] = "";
	enum fettle_status st = FETTLE_OK;
	int fd;

	l->bytes += (unsigned long long)size;
	if (l->sizes)
		return FETTLE_OK;
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (fd < 0) { /* whoever needs it will say so */
		str_addf(&l->text, "%lld\n", (long long)size);
		return FETTLE_OK;
	}
	st = l->pieces ? of_pieces(fd, path, size, print, err) : of_file(fd, path, print, err);
	close(fd);
	str_addf(&l->text, "%lld %s\n", (long long)size, print);
	return st;
}

/* Adds a line for everything in `path`, in the order of the names, whatever the locale. */
static enum fettle_status list_folder(struct listing *l, const char *path, const char *relative,
				      const struct above *up, struct err *err)
{
	struct dirent **names = NULL;
	enum fettle_status st = FETTLE_OK;
	int n, i;

	n = scandir(path, &names, NULL, by_name);
	if (n < 0)
		return fail(err, FETTLE_SYSTEM, "cannot read folder %s: %s", path, strerror(errno));
	for (i = 0; i < n && !st; i++) {
		const char *name = names[i]->d_name;
		struct stat sb;
		char *full, *below;

		if (!strcmp(name, ".") || !strcmp(name, ".."))
			continue;
		full = xstrfmt("%s/%s", path, name);
		below = xstrfmt("%s/%s", relative, name);
		str_add(&l->text, below, strlen(below) + 1);
		if (stat(full, &sb) != 0)
			str_addf(&l->text, "dangling\n");
		else if (S_ISREG(sb.st_mode))
			st = list_file(l, full, sb.st_size, err);
		else if (!S_ISDIR(sb.st_mode))
			str_addf(&l->text, "no file\n");
		else if (!is_above(up, &sb))
			st = list_folder(l, full, below, &(struct above){ up, sb.st_dev, sb.st_ino }, err);
		free(full);
		free(below);
	}
	for (i = 0; i < n; i++)
		free(names[i]);
	free(names);
	return st;
}

static enum fettle_status of_folder(const char *path, const struct stat *sb, char out[FINGERPRINT_LEN],
				    struct err *err)
{
	const struct above top = { NULL, sb->st_dev, sb->st_ino };
	struct listing l = { .text = STR_INIT, .sizes = true };
	enum fettle_status st = list_folder(&l, path, "", &top, err);

	l.sizes = false;
	l.pieces = l.bytes > FOLDER_WHOLE;
	l.text.n = 0;
	st = st ? st : list_folder(&l, path, "", &top, err);
	fingerprint_bytes(l.text.s, l.text.n, out);
	str_release(&l.text);
	return st;
}

enum fettle_status fingerprint_file(const char *path, char out[FINGERPRINT_LEN], struct err *err)
{
	enum fettle_status st;
	struct stat sb;
	int fd;

	/* not to wait for someone to write to a pipe */
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (fd < 0)
		return fail(err, FETTLE_INVALID, "cannot read %s: %s", path, strerror(errno));
	if (fstat(fd, &sb) != 0) {
		st = fail(err, FETTLE_SYSTEM, "cannot read %s: %s", path, strerror(errno));
	} else if (S_ISREG(sb.st_mode)) {
		st = of_file(fd, path, out, err);
	} else if (S_ISDIR(sb.st_mode)) {
		st = of_folder(path, &sb, out, err);
	} else {
		st = fail(err, FETTLE_INVALID, "cannot read %s: neither a file nor a folder", path);
	}
	close(fd);
	return st;
}
