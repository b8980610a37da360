/*
 * What is deflated in an archive, inflated: into memory when it is little, else into an unlinked file. That takes longer than opening
 * most models, so it can be begun in a thread of its own:
 *
 *	struct unpacking *u = unpacking_begin(path);	as soon as the path is known
 *	...						anything else
 *	st = unpacking_end(u, &unpacked, err);		or unpacking_free(u), if it is not wanted after all
 */
#ifndef DATA_UNPACK_H
#define DATA_UNPACK_H

#include "data/zip.h"

struct unpacked {
	struct zip zip;
	struct bytes inflated; /* all deflated members, one after the other */
	int fd;                /* of the file they are in; -1: they are in memory */
};
#define UNPACKED_INIT                                                                                        \
	{                                                                                                    \
		.fd = -1                                                                                     \
	}

/* Everything is checked, stored members too. In memory up to so many bytes; 0: 256 MB. Messages do not name the archive. */
enum fettle_status unpack(struct unpacked *u, struct bytes archive, size_t memory_max, struct err *err);
void unpacked_release(struct unpacked *u);

struct unpacking;
/* NULL: the file is no archive, or so large that it is better done when it is needed. */
struct unpacking *unpacking_begin(const char *path);
/* Waits until it is done. Frees it. */
enum fettle_status unpacking_end(struct unpacking *u, struct unpacked *out, struct err *err);
void unpacking_free(struct unpacking *u); /* NULL does nothing */

#endif
