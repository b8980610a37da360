/* Property: any bytes, as one of the files of MNIST and CIFAR, binary, pickled, in gzip or as .npz, are either a dataset whose samples can be
 * read, or an error of one line. The first byte says which. */
#include "dataset.h"

#include <ftw.h>
#include <sys/stat.h>

#include "data/gunzip.h"

enum { IMAGES_FD = 100, LABELS_FD, LABELS_MAX = 1 << 12 };

static const struct {
	const char *kind, *file;
} forms[] = {
	{ "CIFAR10", "pickle/test_batch" },
	{ "CIFAR100", "pickle/test" },
	{ "CIFAR10", "binary/test_batch.bin" },
	{ "CIFAR100", "binary/test.bin" },
	{ "MNIST", "idx/t10k-images-idx3-ubyte" },
	{ "MNIST", "npz/mnist.npz" },
	{ NULL, "gzip" },
};
enum { FORMS = sizeof(forms) / sizeof(forms[0]) };

static char path_of_all[] = "/tmp/fettle-fuzz-XXXXXX";

static int remove_one(const char *path, const struct stat *sb, int type, struct FTW *at)
{
	(void)sb;
	(void)type;
	(void)at;
	return remove(path);
}

static void remove_all(void)
{
	nftw(path_of_all, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

/* Folders in which every file is whatever the two descriptors are. */
static const char *folder(void)
{
	static const char *const subs[] = { "pickle", "binary", "idx", "npz" };
	static const char *path;
	char name[128];
	size_t i;

	if (path)
		return path;
	path = mkdtemp(path_of_all);
	if (!path || atexit(remove_all))
		abort();
	for (i = 0; i < sizeof(subs) / sizeof(subs[0]); i++) {
		snprintf(name, sizeof(name), "%s/%s", path, subs[i]);
		if (mkdir(name, 0700))
			abort();
	}
	for (i = 0; i < FORMS; i++) {
		snprintf(name, sizeof(name), "%s/%s", path, forms[i].file);
		if (symlink("/proc/self/fd/100", name))
			abort();
	}
	snprintf(name, sizeof(name), "%s/idx/t10k-labels-idx1-ubyte", path);
	if (symlink("/proc/self/fd/101", name))
		abort();
	return path;
}

static void put(int to, const void *data, size_t n)
{
	char path[FUZZ_PATH];
	int fd = fuzz_file(data, n, path);

	if (dup2(fd, to) != to)
		abort();
	close(fd);
}

/* as many labels as the head of the images says */
static void put_labels(const uint8_t *images, size_t n)
{
	static const uint8_t zeros[LABELS_MAX];
	uint8_t labels[8 + LABELS_MAX] = { 0, 0, 8, 1 };
	size_t count = n >= 8 ? (size_t)images[6] << 8 | images[7] : 0;

	count = count > LABELS_MAX ? LABELS_MAX : count;
	memcpy(labels + 8, zeros, count);
	labels[6] = (uint8_t)(count >> 8);
	labels[7] = (uint8_t)count;
	put(LABELS_FD, labels, 8 + count);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	const size_t form = n ? data[0] % FORMS : 0;
	struct dataset_options opt = { .kind = forms[form].kind };
	struct bytes unpacked = BYTES_INIT;
	struct batch b = BATCH_INIT;
	struct err err = ERR_INIT;
	enum fettle_status st;
	char path[128], *slash;

	if (!n)
		return 0;
	put(IMAGES_FD, data + 1, n - 1);
	put_labels(data + 1, n - 1);
	snprintf(path, sizeof(path), "%s/%s", folder(), forms[form].file);
	if (!opt.kind) {
		st = file_map_inflated(path, &unpacked, &err);
		check_message(st, &err);
		bytes_release(&unpacked);
		return 0;
	}
	slash = strrchr(path, '/');
	*slash = '\0';
	fuzz_dataset(path, &opt, &b);
	return 0;
}
