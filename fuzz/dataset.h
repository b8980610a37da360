/* What the fuzz targets of datasets share: bytes as a file that has a path, and reading the first samples. */
#ifndef FUZZ_DATASET_H
#define FUZZ_DATASET_H

#include "fuzz.h"

#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include "data/dataset.h"

enum { FUZZ_PATH = 64 };

/* Its descriptor, for close(). */
static inline int fuzz_file(const void *data, size_t n, char path[FUZZ_PATH])
{
	int fd = memfd_create("fuzz", 0);

	if (fd < 0 || write(fd, n ? data : "", n) != (ssize_t)n)
		abort();
	snprintf(path, FUZZ_PATH, "/proc/self/fd/%d", fd);
	return fd;
}

/* Every sample is read, or an error says why in one line. */
static inline void fuzz_read(const struct dataset *d, struct batch *b)
{
	struct err err = ERR_INIT;
	enum fettle_status st = FETTLE_OK;
	size_t i;

	for (i = 0; !st && i < d->n && i < 16; i++) {
		st = dataset_read(d, &i, 1, b, &err);
		check_message(st, &err);
	}
}

/* Opens it, and reads what the batch wants; or an error says why. */
static inline void fuzz_dataset(const char *path, const struct dataset_options *opt, struct batch *b)
{
	struct dataset *d = NULL;
	struct err err = ERR_INIT;
	enum fettle_status st = dataset_open(&d, path, opt, &err);

	check_message(st, &err);
	if (!st)
		fuzz_read(d, b);
	batch_release(b);
	dataset_free(d);
}

#endif
