#include "data/unpack.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/str.h"
#include "data/dataset.h"

static const size_t MEMORY_MAX = (size_t)256 << 20;

static const char *temp_dir(void)
{
	const char *dir = getenv("TMPDIR");

	return dir && *dir ? dir : "/tmp";
}

static enum fettle_status no_room(size_t size, int problem, struct err *err)
{
	return fail(err, FETTLE_SYSTEM, "%zu bytes do not fit into a temporary file in %s: %s (set TMPDIR)",
		    size, temp_dir(), strerror(problem));
}

/* Room for what is deflated: memory when it is little, else a file, which has no name any more. */
static enum fettle_status make_room(struct unpacked *u, size_t size, size_t memory_max, struct err *err)
{
	enum fettle_status st = FETTLE_OK;
	char *path;
	void *p;

	if (size > memory_max) {
		path = xstrfmt("%s/fettle-XXXXXX", temp_dir());
		u->fd = mkostemp(path, O_CLOEXEC);
		if (u->fd < 0)
			st = no_room(size, errno, err);
		else
			unlink(path);
		free(path);
		return st;
	}
	p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (p == MAP_FAILED)
		return fail(err, FETTLE_SYSTEM, "%zu bytes to inflate it into cannot be had: %s", size,
			    strerror(errno));
	madvise(p, size,
		MADV_HUGEPAGE); /* where it may: a page fault for every 4 KB takes a tenth of the time */
	u->inflated = (struct bytes){ p, size };
	return FETTLE_OK;
}

/* The file that inflated bytes go to, and where in it the next ones do. */
struct sink {
	struct unpacked *u;
	struct bytes archive;
	size_t at, size;
};

static enum fettle_status put_into_file(void *arg, const unsigned char *p, size_t n, struct err *err)
{
	struct sink *sink = arg;

	while (n) {
		ssize_t wrote = pwrite(sink->u->fd, p, n, (off_t)sink->at);

		if (wrote < 0 && errno == EINTR)
			continue;
		if (wrote <= 0)
			return no_room(sink->size, wrote ? errno : ENOSPC, err);
		p += wrote;
		n -= (size_t)wrote;
		sink->at += (size_t)wrote;
	}
	return FETTLE_OK;
}

static enum fettle_status inflate_member(const struct zip_member *m, struct sink *sink, struct err *err)
{
	struct unpacked *u = sink->u;
	enum fettle_status st;

	if (u->fd >= 0)
		return zip_inflate(m, sink->archive, put_into_file, sink, err);
	st = zip_inflate_into(m, sink->archive, (unsigned char *)(uintptr_t)u->inflated.p + sink->at, err);
	sink->at += m->size;
	return st;
}

static size_t inflated_size(const struct zip *zip, bool *packed)
{
	size_t size = 0, i;

	*packed = false;
	for (i = 0; i < zip->members.n; i++)
		if (zip->members.v[i].deflated) {
			size += zip->members.v[i].size; /* at most 1032 times the file: no overflow */
			*packed = true;
		}
	return size;
}

/* Unpacks what is packed, and checks everything. */
static enum fettle_status unpack_members(struct unpacked *u, struct bytes archive, size_t memory_max,
					 struct err *err)
{
	bool packed;
	struct sink sink = { .u = u, .archive = archive, .size = inflated_size(&u->zip, &packed) };
	enum fettle_status st = FETTLE_OK;
	void *p;
	size_t i;

	if (sink.size)
		st = make_room(u, sink.size, memory_max, err);
	else if (packed) /* members that hold no byte have an address, too */
		st = make_room(u, 1, 1, err);
	for (i = 0; i < u->zip.members.n && !st; i++) {
		const struct zip_member *m = &u->zip.members.v[i];

		st = m->deflated ? inflate_member(m, &sink, err) : zip_verify(m, archive, err);
	}
	if (st || u->fd < 0)
		return st;
	p = mmap(NULL, sink.size, PROT_READ, MAP_SHARED, u->fd, 0);
	if (p == MAP_FAILED)
		return fail(err, FETTLE_SYSTEM, "%zu bytes cannot be mapped: %s", sink.size, strerror(errno));
	u->inflated = (struct bytes){ p, sink.size };
	return FETTLE_OK;
}

enum fettle_status unpack(struct unpacked *u, struct bytes archive, size_t memory_max, struct err *err)
{
	enum fettle_status st = zip_open(&u->zip, archive, DATASET_FIELDS_MAX, err);

	return st ? st : unpack_members(u, archive, memory_max ? memory_max : MEMORY_MAX, err);
}

void unpacked_release(struct unpacked *u)
{
	zip_release(&u->zip);
	bytes_release(&u->inflated);
	if (u->fd >= 0)
		close(u->fd);
	*u = (struct unpacked)UNPACKED_INIT;
}

/* ---- in a thread ---- */

struct unpacking {
	struct bytes archive;
	struct unpacked u;
	pthread_t thread;
	enum fettle_status st;
	struct err err;
};

static void *unpack_archive(void *self)
{
	struct unpacking *u = self;

	u->st = unpack_members(&u->u, u->archive, MEMORY_MAX, &u->err);
	return NULL;
}

/* Where something is wrong with it, whoever opens it says so. */
struct unpacking *unpacking_begin(const char *path)
{
	struct unpacking *u = xcalloc(1, sizeof(*u));
	bool packed = false;

	u->u = (struct unpacked)UNPACKED_INIT;
	if (!path_is_dir(path) && !file_map(path, &u->archive, &u->err) && u->archive.n > 2 &&
	    memcmp(u->archive.p, "PK", 2) == 0 &&
	    !zip_open(&u->u.zip, u->archive, DATASET_FIELDS_MAX, &u->err) &&
	    inflated_size(&u->u.zip, &packed) <= MEMORY_MAX && packed &&
	    pthread_create(&u->thread, NULL, unpack_archive, u) == 0)
		return u;
	unpacked_release(&u->u);
	bytes_release(&u->archive);
	free(u);
	return NULL;
}

enum fettle_status unpacking_end(struct unpacking *u, struct unpacked *out, struct err *err)
{
	enum fettle_status st;

	pthread_join(u->thread, NULL);
	st = u->st;
	if (st) {
		*err = u->err;
		unpacked_release(&u->u);
	} else {
		*out = u->u;
	}
	bytes_release(&u->archive);
	free(u);
	return st;
}

void unpacking_free(struct unpacking *u)
{
	struct unpacked unused = UNPACKED_INIT;
	struct err err;

	if (u && !unpacking_end(u, &unused, &err))
		unpacked_release(&unused);
}
