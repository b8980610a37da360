/* Property: any bytes are annotations of COCO's form, a label map, or an error of one line. */
#include "dataset.h"

#include "data/objects.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	struct dataset_param params[] = { { "anno_dir", NULL }, { "img_dir", "." } };
	const struct dataset_options opt = { .kind = "COCORaw", .params = params, .n_params = 2 };
	struct label_map names = { .arena = ARENA_INIT };
	struct batch b = BATCH_INIT;
	struct err err = ERR_INIT;
	enum fettle_status st;
	char path[FUZZ_PATH];
	int fd = fuzz_file(data, n, path);

	params[0].value = path + 1;  /* from the root */
	b.want = 2;                  /* the labels */
	fuzz_dataset("/", &opt, &b); /* its images are whatever files there are: "proc/self/exe" is one */
	st = label_map_read(&names, path, &err);
	check_message(st, &err);
	label_map_release(&names);
	close(fd);
	return 0;
}
