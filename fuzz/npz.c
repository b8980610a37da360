/* Property: any bytes are either a dataset whose samples can all be read, or an error of one line. */
#include "dataset.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	struct dataset *d = NULL;
	struct batch b = BATCH_INIT;
	struct err err = ERR_INIT;
	enum fettle_status st;
	char path[FUZZ_PATH];
	int fd = fuzz_file(data, n, path);

	st = dataset_open(&d, path, NULL, &err);
	check_message(st, &err);
	if (!st)
		fuzz_read(d, &b);
	batch_release(&b);
	dataset_free(d);
	close(fd);
	return 0;
}
