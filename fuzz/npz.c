/* Property: any bytes are either a dataset whose samples can all be read, or an error of one line. */
#include "fuzz.h"

#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include "data/dataset.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	struct dataset *d = NULL;
	struct batch b = BATCH_INIT;
	struct err err = ERR_INIT;
	enum fettle_status st;
	char path[64];
	int fd = memfd_create("fuzz", 0);
	size_t i;

	if (fd < 0 || write(fd, data, n) != (ssize_t)n)
		abort();
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	st = dataset_open(&d, path, NULL, &err);
	check_message(st, &err);
	for (i = 0; !st && i < d->n && i < 16; i++) {
		st = dataset_read(d, &i, 1, &b, &err);
		check_message(st, &err);
	}
	batch_release(&b);
	dataset_free(d);
	close(fd);
	return 0;
}
