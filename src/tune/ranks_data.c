/* Data that only rank 0 can read: the files are sent to the others, which keep them in a temporary folder. */
#include <errno.h>
#include <fcntl.h>
#include <fts.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/file.h"
#include "tune/ranks_impl.h"

enum { PIECE = 1 << 16 }; /* bytes of a message */

static void send_to_all(struct ranks *r, const struct str *m)
{
	int rank;

	for (rank = 1; rank < r->t->size; rank++)
		ranks_send(r, rank, m);
}

/* With its time, which is part of what a folder is known by. */
static enum fettle_status send_file(struct ranks *r, const FTSENT *e, const char *name, struct err *err)
{
	const struct timespec *changed = &e->fts_statp->st_mtim;
	struct str m = STR_INIT;
	struct bytes file = BYTES_INIT;
	enum fettle_status st = file_map(e->fts_path, &file, err);
	size_t at = 0;

	if (st)
		return st;
	do { /* an empty file is a message, too */
		const size_t n = file.n - at < PIECE ? file.n - at : PIECE;

		ranks_begin(&m, MESSAGE_DATA);
		wire_put_text(&m, name);
		wire_put_count(&m, (uint64_t)changed->tv_sec);
		wire_put_count(&m, (uint64_t)changed->tv_nsec);
		wire_put_count(&m, at);
		wire_put_bytes(&m, file.p + at, n);
		send_to_all(r, &m);
		at += n;
	} while (at < file.n);
	str_release(&m);
	bytes_release(&file);
	return FETTLE_OK;
}

static enum fettle_status send_tree(struct ranks *r, char *path, struct err *err)
{
	char *const roots[] = { path, NULL };
	FTS *tree = fts_open(roots, FTS_LOGICAL | FTS_NOCHDIR, NULL);
	const size_t above = (size_t)(path_base(path) - path);
	enum fettle_status st = FETTLE_OK;
	FTSENT *e;

	while (tree && !st && (e = fts_read(tree)))
		if (e->fts_info == FTS_F)
			st = send_file(r, e, e->fts_path + above, err);
	if (tree)
		fts_close(tree);
	return st;
}

/* The files of a folder. */
static enum fettle_status send_matching(struct ranks *r, const char *pattern, size_t *n, struct err *err)
{
	glob_t found = { .gl_pathc = 0 };
	const char *folder_end = path_base(pattern), *magic = strpbrk(pattern, "*?[");
	enum fettle_status st = FETTLE_OK;

	if (magic && magic >= folder_end && glob(pattern, 0, NULL, &found) == 0)
		for (*n = 0; *n < found.gl_pathc && !st; ++*n)
			st = send_tree(r, found.gl_pathv[*n], err);
	globfree(&found);
	return st;
}

enum fettle_status ranks_send_data(struct ranks *r, const char *path, struct err *err)
{
	char *real = realpath(path, NULL);
	struct str m = STR_INIT;
	size_t matching = 0;
	enum fettle_status st = real ? send_tree(r, real, err) : send_matching(r, path, &matching, err);

	ranks_begin(&m, MESSAGE_DATA_END);
	wire_put_text(&m, real ? path_base(real) : matching ? path_base(path) : "");
	send_to_all(r, &m);
	str_release(&m);
	free(real);
	return st; /* what is not there is reported by who opens it */
}

static enum fettle_status keep_piece(const char *folder, struct wire *w, struct err *err)
{
	const char *name = wire_text(w);
	const time_t seconds = (time_t)wire_count(w);
	const struct timespec changed = { seconds, (long)wire_count(w) };
	size_t at = (size_t)wire_count(w), n;
	const void *bytes = wire_bytes(w, &n);
	char *path = xstrfmt("%s/%s", folder, name),
	     *above = xstrfmt("%.*s", (int)(path_base(path) - path), path);
	enum fettle_status st = FETTLE_OK;
	FILE *f = NULL;
	bool written;

	if (w->bad || strstr(name, "../"))
		st = fail(err, FETTLE_SYSTEM, "cannot keep what rank 0 sent: '%s' is no name of a file",
			  name);
	if (!st && !at)
		st = dir_make(above, err);
	if (!st)
		f = fopen(path, at ? "abe" : "wbe");
	written = f && (!n || fwrite(bytes, 1, n, f) == n);
	if (f && fclose(f))
		written = false;
	if (written)
		utimensat(AT_FDCWD, path, (const struct timespec[]){ changed, changed }, 0);
	if (!st && !written)
		st = fail(err, FETTLE_SYSTEM, "cannot write %s: %s", path, strerror(errno));
	free(above);
	free(path);
	return st;
}

enum fettle_status ranks_receive_data(struct ranks *r, const char *folder, char **out, struct err *err)
{
	enum fettle_status st = FETTLE_OK;
	enum message is = MESSAGE_DATA;

	*out = NULL;
	while (!st && is != MESSAGE_DATA_END) {
		void *bytes = NULL;
		const char *name;
		struct wire w;

		st = ranks_next(r, &is, &w, &bytes, err);
		if (!st && is == MESSAGE_DATA)
			st = keep_piece(folder, &w, err);
		name = !st && is == MESSAGE_DATA_END ? wire_text(&w) : "";
		if (*name)
			*out = xstrfmt("%s/%s", folder, name);
		free(bytes);
	}
	return st;
}
