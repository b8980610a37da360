/* Files: mapped for reading, written whole or not at all. */
#ifndef BASE_FILE_H
#define BASE_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "base/err.h"

/* A file mapped read-only. */
struct bytes {
	const unsigned char *p;
	size_t n;
};
#define BYTES_INIT                                                                                           \
	{                                                                                                    \
		NULL, 0                                                                                      \
	}

enum fettle_status file_map(const char *path, struct bytes *out, struct err *err);
void bytes_release(struct bytes *b);
void bytes_rest(
	const struct bytes *b); /* gives the memory back: what is read again comes from the file again */

/*
 * A file that appears under its name only when it is complete: written beside, synced, renamed.
 * file_commit() or file_abandon() ends it; either may be called on a zeroed struct.
 */
struct file_out {
	FILE *f;
	char *path, *temp;
};
#define FILE_OUT_INIT                                                                                        \
	{                                                                                                    \
		NULL, NULL, NULL                                                                             \
	}

enum fettle_status file_create(struct file_out *o, const char *path, struct err *err);
enum fettle_status file_write(const char *path, const void *p, size_t n,
			      struct err *err); /* all of it at once */
enum fettle_status file_commit(struct file_out *o, struct err *err);
void file_abandon(struct file_out *o);

/* "dir/of/path" + "/" + name; name alone when it is absolute or path has no folder. free() it. */
char *path_beside(const char *path, const char *name);
/* `path` as seen from `folder` (NULL: as it is), and from the current one. free() them. */
char *path_from(const char *folder, const char *path);
char *path_absolute(const char *path);
const char *path_base(const char *path); /* what follows the last slash */
bool path_is_dir(const char *path);
bool path_same(const char *a, const char *b);                   /* both exist and are one file */
enum fettle_status dir_make(const char *path, struct err *err); /* with the folders above it; it may exist */

double clock_now(void); /* seconds, monotonic */
/* Of this thread: seconds that it was on a CPU, and how often it gave one up by itself. */
double clock_thread(void);
long clock_waits(void);
enum { CLOCK_UTC_LEN = 32 };
void clock_utc(char out[CLOCK_UTC_LEN]); /* the time of day as 2025-01-31T23:59:59Z */

#endif
