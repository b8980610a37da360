#include "history/history.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "history/internal.h"

/* Says who holds the lock, as far as that is known. */
static enum fettle_status refuse_second_writer(int fd, const char *dir, struct err *err)
{
	char text[32] = "";
	long pid = 0;

	if (pread(fd, text, sizeof(text) - 1, 0) > 0)
		pid = strtol(text, NULL, 10);
	if (pid > 0)
		return fail(
			err, FETTLE_SYSTEM,
			"cannot write to workspace %s: process %ld is writing to it; wait for it or stop it",
			dir, pid);
	return fail(err, FETTLE_SYSTEM, "cannot write to workspace %s: another process is writing to it",
		    dir);
}

/*
 * A lock of the open file description: the kernel lets go of it when the process ends in whatever way, and it
 * holds against another handle of the same process too. It is on a file of its own because SQLite's locks on the
 * database would be lost when another descriptor of that were closed.
 */
static enum fettle_status lock_workspace(struct history *h, struct err *err)
{
	struct flock lock = { .l_type = F_WRLCK, .l_whence = SEEK_SET };
	char *path = xstrfmt("%s/history.lock", h->dir), pid[32];
	enum fettle_status st = FETTLE_OK;
	int n;

	h->lock = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
	if (h->lock < 0) {
		st = fail(err, FETTLE_SYSTEM, "cannot write to workspace %s: %s", h->dir, strerror(errno));
	} else if (fcntl(h->lock, F_OFD_SETLK, &lock) == 0) {
		/* only a courtesy: on a full disk the lock holds without it */
		n = snprintf(pid, sizeof(pid), "%ld\n", (long)getpid());
		if (ftruncate(h->lock, 0) != 0 || pwrite(h->lock, pid, (size_t)n, 0) != n)
			errno = 0;
	} else if (errno == EAGAIN || errno == EACCES) {
		st = refuse_second_writer(h->lock, h->dir, err);
	} else {
		st = fail(err, FETTLE_SYSTEM, "cannot lock %s: %s", path, strerror(errno));
	}
	free(path);
	return st;
}

bool history_is_written(const char *dir)
{
	struct flock lock = { .l_type = F_WRLCK, .l_whence = SEEK_SET };
	char *path = xstrfmt("%s/history.lock", dir);
	const int fd = open(path, O_RDONLY | O_CLOEXEC);
	bool held = false;

	if (fd >= 0) {
		held = fcntl(fd, F_OFD_GETLK, &lock) == 0 && lock.l_type != F_UNLCK;
		close(fd);
	}
	free(path);
	return held;
}

/*
 * Write-ahead logging lets others read meanwhile; where the file system cannot do it (no shared memory: network
 * folders), SQLite stays with its rollback journal, and readers may have to wait for a moment.
 */
static enum fettle_status set_up_writing(struct history *h, struct err *err)
{
	h->syncs = true;
	return db_exec(&h->db, "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL", err);
}

/*
 * What was handed to the kernel outlives the process, not a power loss. To sync every trial cost 0.13 ms on an idle
 * disk, 3.5 ms on a busy one, 0.04 ms without: nothing beside a trial of seconds, much beside those of a tiny
 * model. So a write is synced, and with it all before it, when the last one that was is a second old.
 */
enum fettle_status history_pace(struct history *h, struct err *err)
{
	const double now = clock_now();
	const bool sync = now - h->synced >= 1;
	enum fettle_status st = FETTLE_OK;

	if (sync)
		h->synced = now;
	if (sync != h->syncs)
		st = db_exec(&h->db, sync ? "PRAGMA synchronous = FULL" : "PRAGMA synchronous = NORMAL", err);
	h->syncs = sync;
	return st;
}

static struct history *history_new(const char *dir)
{
	struct history *h = xcalloc(1, sizeof(*h));

	h->dir = xstrdup(dir);
	h->lock = -1;
	return h;
}

void history_close(struct history *h)
{
	if (!h)
		return;
	db_close(&h->db);
	if (h->lock >= 0)
		close(h->lock); /* after the database: until then we are its writer */
	free(h->run_own);
	free(h->dir);
	free(h);
}

static enum fettle_status load_run(struct history *h, struct err *err)
{
	enum fettle_status st;
	sqlite3_stmt *s;
	bool found;

	st = db_prepare(&h->db, GET_RUN, &s, err);
	if (!st)
		st = db_get_one(&h->db, GET_RUN, &h->run, &h->run_own, &found, err);
	if (!st && !found)
		st = fail(err, FETTLE_INVALID, "cannot read %s: the database is damaged (no run)",
			  h->db.path);
	return st;
}

static enum fettle_status need_empty(struct db *db, const char *dir, struct err *err)
{
	enum history_kind kind;
	int64_t version;
	enum fettle_status st = history_kind(db, &kind, &version, err);

	if (!st && kind == HISTORY_OURS)
		st = fail(err, FETTLE_INVALID,
			  "cannot begin a run in %s: there is one already; resume it, or name another folder",
			  dir);
	if (!st && kind == HISTORY_FOREIGN)
		st = fail(err, FETTLE_INVALID, "cannot begin a run in %s: its history.db is not fettle's",
			  dir);
	return st;
}

enum fettle_status history_check_free(const char *dir, struct err *err)
{
	char *path = xstrfmt("%s/history.db", dir);
	struct db db = { 0 };
	enum fettle_status st = FETTLE_OK;

	if (access(path, F_OK) == 0) {
		st = db_open(&db, path, DB_READ, history_queries, err);
		st = st ? st : need_empty(&db, dir, err);
		db_close(&db);
	} else if (access(dir, F_OK) == 0 && !path_is_dir(dir)) {
		st = fail(err, FETTLE_SYSTEM, "cannot make folder %s: a file has that name", dir);
	}
	free(path);
	return st;
}

/* All or nothing: who is killed here leaves an empty database, which counts as none. */
static enum fettle_status begin_run(struct history *h, const struct run_info *info, struct err *err)
{
	enum fettle_status st = need_empty(&h->db, h->dir, err);

	if (st)
		return st;
	st = set_up_writing(h, err);
	if (st)
		return st;
	st = db_exec(&h->db, "BEGIN IMMEDIATE", err);
	if (st)
		return st;
	st = history_make_tables(&h->db, err);
	if (!st)
		st = db_put(&h->db, PUT_RUN, info, err);
	if (!st)
		st = db_exec(&h->db, "COMMIT", err);
	if (st)
		db_exec(&h->db, "ROLLBACK", NULL);
	return st;
}

enum fettle_status history_create(struct history **out, const char *dir, const struct run_info *info,
				  struct err *err)
{
	struct history *h = history_new(dir);
	char *path = xstrfmt("%s/history.db", dir);
	enum fettle_status st;

	st = dir_make(dir, err);
	if (st)
		goto out;
	st = lock_workspace(h, err);
	if (st)
		goto out;
	st = db_open(&h->db, path, DB_CREATE, history_queries, err);
	if (st)
		goto out;
	st = begin_run(h, info, err);
	if (st)
		goto out;
	st = load_run(h, err);
	if (st)
		goto out;
	*out = h;
	h = NULL; /* now the caller's */
out:
	history_close(h);
	free(path);
	return st;
}

/* Through a connection of its own, for this one may only read. */
static enum fettle_status upgrade(const char *path, int64_t version, struct err *err)
{
	struct db db = { 0 };
	enum fettle_status st = db_open(&db, path, DB_WRITE, history_queries, err);

	if (!st)
		st = history_upgrade(&db, version, err);
	db_close(&db);
	return st;
}

/* Is it a history that we can read? */
static enum fettle_status check_kind(struct history *h, struct err *err)
{
	enum history_kind kind;
	enum fettle_status st;
	int64_t version;

	st = history_kind(&h->db, &kind, &version, err);
	if (st)
		return st;
	if (kind == HISTORY_EMPTY)
		return fail(err, FETTLE_INVALID, "cannot open workspace %s: no run was begun in it", h->dir);
	if (kind == HISTORY_FOREIGN)
		return fail(err, FETTLE_INVALID, "cannot open %s: not a fettle history", h->db.path);
	if (version > HISTORY_VERSION)
		return fail(
			err, FETTLE_UNSUPPORTED,
			"cannot open %s: version %lld, a newer fettle wrote it; this one reads version %d",
			h->db.path, (long long)version, HISTORY_VERSION);
	if (version < 1)
		return fail(err, FETTLE_INVALID, "cannot open %s: the database is damaged (version %lld)",
			    h->db.path, (long long)version);
	return version == HISTORY_VERSION ? FETTLE_OK : upgrade(h->db.path, version, err);
}

/* Before hours of work are added to it. */
static enum fettle_status check_integrity(struct db *db, struct err *err)
{
	enum fettle_status st;
	char *verdict = NULL;

	st = db_text(db, "PRAGMA integrity_check(1)", &verdict, err);
	if (!st && strcmp(verdict, "ok") != 0)
		st = fail(err, FETTLE_INVALID, "cannot open %s: the database is damaged (%.200s)", db->path,
			  verdict);
	free(verdict);
	return st;
}

enum fettle_status history_open(struct history **out, const char *dir, bool read_only, struct err *err)
{
	struct history *h = history_new(dir);
	char *path = xstrfmt("%s/history.db", dir);
	enum fettle_status st;

	if (access(path, F_OK) != 0) {
		st = fail(err, FETTLE_INVALID, "cannot open workspace %s: %s", dir,
			  !path_is_dir(dir) ? "no such folder" : "there is no history.db in it");
		goto out;
	}
	if (!read_only)
		st = lock_workspace(h, err);
	else
		st = FETTLE_OK;
	if (st)
		goto out;
	st = db_open(&h->db, path, read_only ? DB_READ : DB_WRITE, history_queries, err);
	if (st)
		goto out;
	st = check_kind(h, err);
	if (st)
		goto out;
	if (!read_only) {
		st = check_integrity(&h->db, err);
		if (st)
			goto out;
		st = set_up_writing(h, err);
		if (st)
			goto out;
	}
	st = load_run(h, err);
	if (st)
		goto out;
	*out = h;
	h = NULL; /* now the caller's */
out:
	history_close(h);
	free(path);
	return st;
}

bool history_exists(const char *dir)
{
	char *path = xstrfmt("%s/history.db", dir);
	enum history_kind kind = HISTORY_EMPTY;
	struct db db = { 0 };
	bool readable = true;
	int64_t version;

	if (access(path, F_OK) == 0)
		readable = !db_open(&db, path, DB_READ, history_queries, NULL) &&
			   !history_kind(&db, &kind, &version, NULL);
	db_close(&db);
	free(path);
	return !readable || kind != HISTORY_EMPTY;
}

const struct run_info *history_run(const struct history *h)
{
	return &h->run;
}
