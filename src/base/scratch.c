#include "base/scratch.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"

#define PREFIX "fettle."

static const char *temp_folder(void)
{
	const char *dir = getenv("TMPDIR");

	return dir && *dir ? dir : "/tmp";
}

static int open_folder(const char *path)
{
	return open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

/* all that is in it */
static void empty_folder(int fd)
{
	DIR *d = fdopendir(fcntl(fd, F_DUPFD_CLOEXEC, 0));
	struct dirent *e;

	while (d && (e = readdir(d))) {
		int inner;

		if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0 ||
		    unlinkat(fd, e->d_name, 0) == 0)
			continue;
		inner = openat(fd, e->d_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		if (inner < 0)
			continue;
		empty_folder(inner);
		close(inner);
		unlinkat(fd, e->d_name, AT_REMOVEDIR);
	}
	if (d)
		closedir(d);
}

/* what is in it, then itself; fd is of the folder and stays open */
static void remove_folder(const char *path, int fd)
{
	empty_folder(fd);
	rmdir(path);
}

static void remove_if_dead(const char *path)
{
	int fd = open_folder(path);
	struct stat sb;

	if (fd < 0)
		return;
	if (fstat(fd, &sb) == 0 && sb.st_uid == geteuid() && flock(fd, LOCK_EX | LOCK_NB) == 0)
		remove_folder(path, fd);
	close(fd);
}

static void remove_dead(const char *tmp)
{
	DIR *d = opendir(tmp);
	struct dirent *e;
	char *path;

	while (d && (e = readdir(d)))
		if (strncmp(e->d_name, PREFIX, strlen(PREFIX)) == 0 &&
		    strlen(e->d_name) == strlen(PREFIX "XXXXXX")) {
			path = xstrfmt("%s/%s", tmp, e->d_name);
			remove_if_dead(path);
			free(path);
		}
	if (d)
		closedir(d);
}

enum fettle_status scratch_new(struct scratch *s, struct err *err)
{
	const char *tmp = temp_folder();
	struct stat sb;
	bool made;

	remove_dead(tmp);
	for (;;) {
		s->dir = xstrfmt("%s/" PREFIX "XXXXXX", tmp);
		made = mkdtemp(s->dir);
		s->fd = made ? open_folder(s->dir) : -1;
		if (s->fd < 0 && made && errno == ENOENT) { /* another process took it for a dead one's */
			free(s->dir);
			continue;
		}
		if (s->fd < 0) {
			fail(err, FETTLE_SYSTEM, "cannot create %s: %s", s->dir, strerror(errno));
			free(s->dir);
			s->dir = NULL;
			return FETTLE_SYSTEM;
		}
		flock(s->fd, LOCK_EX); /* where there are no locks, nothing is removed */
		if (fstat(s->fd, &sb) < 0 || sb.st_nlink > 0)
			return FETTLE_OK;
		/* likewise, before it was locked */
		close(s->fd);
		free(s->dir);
	}
}

char *scratch_path(const struct scratch *s, const char *name)
{
	return xstrfmt("%s/%s", s->dir, name);
}

void scratch_release(struct scratch *s)
{
	if (!s->dir)
		return;
	remove_folder(s->dir, s->fd);
	close(s->fd);
	free(s->dir);
	s->dir = NULL;
}
