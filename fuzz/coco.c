/* Property: any bytes are annotations of COCO's form, a label map, or an error of one line. */
#include "fuzz.h"

#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include "data/objects.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	struct dataset_param params[] = { { "anno_dir", NULL }, { "img_dir", "." } };
	const struct dataset_options opt = { .kind = "COCORaw", .params = params, .n_params = 2 };
	struct label_map names = { .arena = ARENA_INIT };
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
	params[0].value = path + 1; /* from the root */
	st = dataset_open(&d, "/", &opt,
			  &err); /* its images are whatever files there are: "proc/self/exe" is one */
	check_message(st, &err);
	b.want = 2; /* the labels */
	for (i = 0; !st && i < d->n && i < 16; i++) {
		st = dataset_read(d, &i, 1, &b, &err);
		check_message(st, &err);
	}
	st = label_map_read(&names, path, &err);
	check_message(st, &err);
	label_map_release(&names);
	batch_release(&b);
	dataset_free(d);
	close(fd);
	return 0;
}
