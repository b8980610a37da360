/* Property: any bytes are either a dataset whose samples can all be read, or an error of one line. */
#include "dataset.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	struct batch b = BATCH_INIT;
	char path[FUZZ_PATH];
	int fd = fuzz_file(data, n, path);

	fuzz_dataset(path, NULL, &b);
	close(fd);
	return 0;
}
