#include "base/file.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/mem.h"

enum fettle_status file_map(const char *path, struct bytes *out, struct err *err)
{
	enum fettle_status st = FETTLE_OK;
	struct stat sb;
	void *p;
	int fd;

	fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* a FIFO must not make us wait */
	if (fd < 0)
		return fail(err, FETTLE_INVALID, "cannot read %s: %s", path, strerror(errno));
	if (fstat(fd, &sb) < 0) {
		st = fail(err, FETTLE_SYSTEM, "cannot read %s: %s", path, strerror(errno));
		goto out;
	}
	if (!S_ISREG(sb.st_mode)) {
		st = fail(err, FETTLE_INVALID, "cannot read %s: %s, need a file", path,
			  S_ISDIR(sb.st_mode) ? "a folder" : "not a regular file");
		goto out;
	}
	if (!sb.st_size) {
		st = fail(err, FETTLE_INVALID, "cannot read %s: the file is empty", path);
		goto out;
	}
	p = mmap(NULL, (size_t)sb.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	if (p == MAP_FAILED) {
		st = fail(err, FETTLE_SYSTEM, "cannot read %s: %s", path, strerror(errno));
		goto out;
	}
	*out = (struct bytes){ p, (size_t)sb.st_size };
out:
	close(fd);
	return st;
}

void bytes_release(struct bytes *b)
{
	if (b->p)
		munmap((void *)(uintptr_t)b->p, b->n);
	*b = (struct bytes)BYTES_INIT;
}

void bytes_rest(const struct bytes *b)
{
	if (b->p)
		madvise((void *)(uintptr_t)b->p, b->n, MADV_DONTNEED);
}

/* Is it what file_create() calls its temporary file: BASE.PID.tmp? */
static bool is_temp_of(const char *name, const char *base)
{
	size_t n = strlen(base);

	if (strncmp(name, base, n) != 0 || name[n] != '.' || !isdigit((unsigned char)name[n + 1]))
		return false;
	for (n++; isdigit((unsigned char)name[n]);)
		n++;
	return strcmp(name + n, ".tmp") == 0;
}

/* Temporary files of `path` that this user's dead processes left: nobody has them locked any more. */
static void remove_dead(const char *path)
{
	char *folder = path_beside(path, ".");
	DIR *d = opendir(folder);
	struct dirent *e;
	struct stat sb;
	int fd;

	while (d && (e = readdir(d))) {
		if (!is_temp_of(e->d_name, path_base(path)))
			continue;
		fd = openat(dirfd(d), e->d_name, O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
		if (fd < 0)
			continue;
		if (fstat(fd, &sb) == 0 && S_ISREG(sb.st_mode) && sb.st_uid == geteuid() &&
		    flock(fd, LOCK_EX | LOCK_NB) == 0)
			unlinkat(dirfd(d), e->d_name, 0);
		close(fd);
	}
	if (d)
		closedir(d);
	free(folder);
}

/* An empty file, locked as long as it is open. The name may go to someone else until the lock is ours. */
static FILE *open_locked(const char *temp)
{
	struct stat here, there;
	int fd;

	for (;;) {
		fd = open(temp, O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
		if (fd < 0)
			return NULL;
		flock(fd, LOCK_EX); /* where there are no locks, nothing is removed */
		if (fstat(fd, &here) == 0 && stat(temp, &there) == 0 && here.st_dev == there.st_dev &&
		    here.st_ino == there.st_ino)
			break;
		close(fd);
	}
	if (ftruncate(fd, 0) == 0)
		return fdopen(fd, "wb");
	close(fd);
	return NULL;
}

enum fettle_status file_create(struct file_out *o, const char *path, struct err *err)
{
	enum fettle_status st;
	struct stat sb;

	/* a rename would put a file in the place of a device, or of a link */
	if (stat(path, &sb) == 0 && !S_ISREG(sb.st_mode))
		return fail(err, FETTLE_INVALID, "cannot write %s: %s, need a file", path,
			    S_ISDIR(sb.st_mode) ? "a folder" : "not a regular file");
	o->path = realpath(path, NULL); /* what a link points to, if there is anything */
	if (!o->path)
		o->path = xstrdup(path);
	o->temp = xstrfmt("%s.%ld.tmp", o->path, (long)getpid());
	remove_dead(o->path);
	o->f = open_locked(o->temp);
	if (o->f)
		return FETTLE_OK;
	st = errno == ENOSPC || errno == EIO ? FETTLE_SYSTEM : FETTLE_INVALID;
	fail(err, st, "cannot write %s: %s", path,
	     errno == ENOENT ? "the folder does not exist" : strerror(errno));
	file_abandon(o);
	return st;
}

void file_abandon(struct file_out *o)
{
	if (o->f) {
		fclose(o->f);
		unlink(o->temp);
	}
	free(o->path);
	free(o->temp);
	*o = (struct file_out)FILE_OUT_INIT;
}

enum fettle_status file_commit(struct file_out *o, struct err *err)
{
	FILE *f = o->f;
	int bad;

	if (!f)
		return FETTLE_OK;
	errno = 0;
	bad = ferror(f) != 0;
	/* an earlier write failed: its reason is long gone, but the same will happen again */
	if (bad && write(fileno(f), "", 1) == 1)
		errno = 0;
	bad = bad || fflush(f) != 0 || ferror(f) || fsync(fileno(f)) != 0;
	if (!bad && rename(o->temp, o->path) != 0)
		bad = 1;
	if (bad) {
		fail(err, FETTLE_SYSTEM, "cannot write %s: %s", o->path,
		     errno ? strerror(errno) : "write failed");
		file_abandon(o);
		return FETTLE_SYSTEM;
	}
	fclose(f);
	o->f = NULL;
	file_abandon(o);
	return FETTLE_OK;
}

bool path_same(const char *a, const char *b)
{
	struct stat x, y;

	return a && b && stat(a, &x) == 0 && stat(b, &y) == 0 && x.st_dev == y.st_dev && x.st_ino == y.st_ino;
}

char *path_beside(const char *path, const char *name)
{
	const char *slash = strrchr(path, '/');

	if (name[0] == '/' || !slash)
		return xstrdup(name);
	return xstrfmt("%.*s/%s", (int)(slash - path), path, name);
}

char *path_from(const char *folder, const char *path)
{
	return folder && path[0] != '/' ? xstrfmt("%s/%s", folder, path) : xstrdup(path);
}

char *path_absolute(const char *path)
{
	char *folder = getcwd(NULL, 0), *out = path_from(folder, path);

	free(folder);
	return out;
}

const char *path_base(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

bool path_is_dir(const char *path)
{
	struct stat sb;

	return stat(path, &sb) == 0 && S_ISDIR(sb.st_mode);
}

enum fettle_status dir_make(const char *path, struct err *err)
{
	char *part = xstrdup(path), *end = part;
	enum fettle_status st = FETTLE_OK;
	int made = 0, why = 0;

	/* a folder above that cannot be made may still be there: only what it all leads to counts */
	do {
		char c;

		end += strspn(end, "/");
		end += strcspn(end, "/");
		c = *end;
		*end = '\0';
		made = mkdir(part, 0777);
		why = errno;
		*end = c;
	} while (*end);
	if (made != 0 && !path_is_dir(path))
		st = fail(err, FETTLE_SYSTEM, "cannot make folder %s: %s", path,
			  why == EEXIST ? "a file has that name" : strerror(why));
	free(part);
	return st;
}

static double clock_of(clockid_t id)
{
	struct timespec ts;

	clock_gettime(id, &ts);
	return (double)ts.tv_sec + 1e-9 * (double)ts.tv_nsec;
}

double clock_now(void)
{
	return clock_of(CLOCK_MONOTONIC);
}

double clock_thread(void)
{
	return clock_of(CLOCK_THREAD_CPUTIME_ID);
}

long clock_waits(void)
{
	struct rusage u;

	getrusage(RUSAGE_THREAD, &u);
	return u.ru_nvcsw;
}

void clock_utc(char out[CLOCK_UTC_LEN])
{
	time_t now = time(NULL);
	struct tm tm;

	gmtime_r(&now, &tm);
	strftime(out, CLOCK_UTC_LEN, "%Y-%m-%dT%H:%M:%SZ", &tm);
}

enum fettle_status file_write(const char *path, const void *p, size_t n, struct err *err)
{
	struct file_out o = FILE_OUT_INIT;
	enum fettle_status st = file_create(&o, path, err);

	if (st)
		return st;
	fwrite(p, 1, n, o.f); /* file_commit() reports a failure */
	return file_commit(&o, err);
}
