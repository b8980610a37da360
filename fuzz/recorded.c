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
	struct dataset *d = NULL;
	struct batch b = BATCH_INIT;
	struct err err = ERR_INIT;
	struct str file = STR_INIT;
	enum fettle_status st;
	char path[FUZZ_PATH];
	int fd;

	if (n > 4 && data[0] == 0x0a && data[1] != 0x23) /* an Example: its checksums must not stop it */
		put_tfrecord(&file, data, n);
	else
		str_add(&file, data, n);
	fd = fuzz_file(file.s, file.n, path);
	st = dataset_open(&d, path, &opt, &err);
	check_message(st, &err);
	if (!st)
		fuzz_read(d, &b);
	batch_release(&b);
	dataset_free(d);
	str_release(&file);
	close(fd);
	return 0;
}
