/*
 * A folder in $TMPDIR for files that live no longer than it does. Its owner holds a lock on it, which dies with the
 * process: making one also removes those that this user's dead processes left.
 */
#ifndef BASE_SCRATCH_H
#define BASE_SCRATCH_H

#include "base/err.h"

struct scratch {
	char *dir; /* NULL: there is none */
	int fd;
};

enum fettle_status scratch_new(struct scratch *s, struct err *err);
char *scratch_path(const struct scratch *s, const char *name); /* free() it */
/* Removes the folder and all that is in it. A zeroed struct is fine. */
void scratch_release(struct scratch *s);

#endif
