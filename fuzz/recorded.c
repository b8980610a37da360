/* Property: any bytes, as a file of records or framed as one TFRecord, are either a dataset whose samples can be read, or an error of one line. */
#include "dataset.h"

#define assert_true(c) ((c) ? (void)0 : abort())
#define assert_null(p) assert_true(!(p))
#define assert_non_null(p) assert_true(p)
#define assert_int_equal(a, b) assert_true((a) == (b))
#define fail_msg(...) abort()

#include "unit/data_files.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	const struct dataset_options opt = { .kind = "TFRecordDataset" };
	struct batch b = BATCH_INIT;
	struct str file = STR_INIT;
	char path[FUZZ_PATH];
	int fd;

	if (n > 4 && data[0] == 0x0a && data[1] != 0x23) /* an Example: its checksums must not stop it */
		put_tfrecord(&file, data, n);
	else
		str_add(&file, data, n);
	fd = fuzz_file(file.s, file.n, path);
	fuzz_dataset(path, &opt, &b);
	str_release(&file);
	close(fd);
	return 0;
}
