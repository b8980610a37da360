/* Datasets in files of records, and those of small pictures; test/cli/datasets.sh reads what another program wrote. */
#include "unit/unit.h"

#include "unit/data_files.h"

static struct dataset *opened(const char *kind, const char *path, const struct dataset_param *param)
{
	const struct dataset_options opt = { .kind = kind, .params = param, .n_params = param ? 1 : 0 };
	struct dataset *d = NULL;
	struct err err = ERR_INIT;

	assert_ok(dataset_open(&d, path, &opt, &err), err);
	return d;
}

static void check_values(const struct dataset *d, size_t i, size_t field, const double *want, size_t n)
{
	struct batch b = BATCH_INIT;
	struct err err = ERR_INIT;
	size_t k;

	assert_ok(dataset_read(d, &i, 1, &b, &err), err);
	assert_int_equal(tensor_count(&b.fields[field].t), n);
	for (k = 0; k < n; k++)
		assert_true(fabs(tensor_get(&b.fields[field].t, k) - want[k]) < 1e-6);
	batch_release(&b);
}

static void objects_come_from_features(void **state)
{
	char *dir = temp_tree(), *path, *map = xstrfmt("%s/map", dir);
	struct dataset_param param = { "label_map", map };
	struct str file = STR_INIT, e = example_of(), names = STR_INIT;
	struct dataset *d;

	(void)state;
	put_tfrecord(&file, e.s, e.n);
	put_tfrecord(&file, e.s, e.n);
	path = put_file(dir, "coco.record", &file);
	d = opened("COCORecord", dir, NULL);
	assert_int_equal(d->n, 2);
	check_values(d, 1, 1, (double[]){ 3, 0, 0.25, 0.5, 0.75, 0, 6, 24, 7, 0.5, 0.5, 1, 1, 0, 6, 24 }, 16);
	dataset_free(d);
	/* a label map makes names count; the second object has none */
	str_addf(&names, "cat: 31\n");
	free(put_file(dir, "map", &names));
	{
		const struct dataset_options opt = { .kind = "COCORecord", .params = &param, .n_params = 1 };
		struct err err = ERR_INIT;

		assert_fails(
			dataset_open(&d, path, &opt, &err), FETTLE_INVALID, err,
			"record at byte 0: an object has neither image/object/class/label nor class/text");
	}
	str_release(&e);
	free(path);
	free(map);
	remove_tree(dir);
}

static void masks_are_labels(void **state)
{
	char *dir = temp_tree();
	struct str file = STR_INIT, features = STR_INIT, e = STR_INIT,
		   image = png_of(2, 2, PNG_COLOR_TYPE_RGB, 8, false),
		   mask = png_of(2, 2, PNG_COLOR_TYPE_GRAY, 8, false);
	struct batch b = BATCH_INIT;
	struct err err = ERR_INIT;
	struct dataset *d;
	size_t i = 0;

	(void)state;
	put_feature(&features, "image/encoded", 1, image.s, image.n);
	put_feature(&features, "image/segmentation/class/encoded", 1, mask.s, mask.n);
	put_message(&e, 1, &features);
	put_tfrecord(&file, e.s, e.n);
	free(put_file(dir, "val-00000-of-00001", &file));
	d = opened("VOCRecord", dir, NULL);
	assert_ok(dataset_read(d, &i, 1, &b, &err), err);
	assert_int_equal(b.fields[1].t.rank, 3);
	assert_int_equal(b.fields[1].t.dtype, DT_U8);
	batch_release(&b);
	dataset_free(d);
	str_release(&image);
	str_release(&mask);
	str_release(&e);
	remove_tree(dir);
}

static void parts_of_a_record_are_joined(void **state)
{
	char *dir = temp_tree();
	struct str file = recordio_of();
	char *path = put_file(dir, "a.rec", &file);
	struct dataset *d = opened("RecordIO", path, NULL);

	(void)state;
	assert_int_equal(d->n, 1);
	check_values(d, 0, 1, (double[]){ 5 }, 1);
	assert_int_equal(d->fields[0].sample.dims[2], 3);
	dataset_free(d);
	free(path);
	remove_tree(dir);
}

/* CIFAR keeps planes, and comes out as pixels; CIFAR-100's fine label is the second */
static void planes_become_pixels(void **state)
{
	char *dir = temp_tree();
	struct str ten = STR_INIT, hundred = STR_INIT;
	unsigned char image[3072];
	double want[3072];
	struct dataset *d;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(image); i++) {
		image[i] = (unsigned char)(i * 7 % 251);
		want[i % 1024 * 3 + i / 1024] = image[i];
	}
	str_add(&ten, "\3", 1);
	str_add(&ten, image, sizeof(image));
	str_add(&hundred, "\1\2", 2);
	str_add(&hundred, image, sizeof(image));
	free(put_file(dir, "cifar-10-batches-bin/test_batch.bin", &ten));
	free(put_file(dir, "test.bin", &hundred));
	d = opened("CIFAR10", dir, NULL);
	check_values(d, 0, 0, want, 3072);
	check_values(d, 0, 1, (double[]){ 3 }, 1);
	dataset_free(d);
	d = opened("CIFAR100", dir, NULL);
	check_values(d, 0, 0, want, 3072);
	check_values(d, 0, 1, (double[]){ 2 }, 1);
	dataset_free(d);
	str_add(&ten, "\3", 1);
	free(put_file(dir, "test.bin", &ten));
	{
		const struct dataset_options opt = { .kind = "CIFAR100" };
		struct err err = ERR_INIT;

		assert_fails(dataset_open(&d, dir, &opt, &err), FETTLE_INVALID, err,
			     "test.bin has 1 bytes, need records of 3074");
	}
	remove_tree(dir);
}

/* Whatever becomes of a file, it is read or refused; what is refused is named with its place. */
static void damage_is_named(void **state)
{
	char *dir = temp_tree();
	struct str e = example_of();
	struct rng r;
	int i, kind, opened_files = 0;

	(void)state;
	rng_seed(&r, 11);
	for (i = 0; i < 3000; i++) {
		struct dataset_options opt = { .kind = "TFRecordDataset" };
		struct str file = STR_INIT, inner = STR_INIT;
		struct dataset *d = NULL;
		struct batch b = BATCH_INIT;
		struct err err = ERR_INIT;
		enum fettle_status st;
		size_t k = 0;
		char *path;

		kind = i % 3; /* the Example itself, the frame around it, RecordIO */
		str_add(&inner, e.s, e.n);
		if (kind == 0)
			inner.s[rng_below(&r, inner.n)] ^= (char)(1 << rng_below(&r, 8));
		put_tfrecord(&file, inner.s, inner.n);
		if (kind == 2) {
			str_release(&file);
			file = recordio_of();
		}
		if (kind)
			file.s[rng_below(&r, file.n)] ^= (char)(1 << rng_below(&r, 8));
		if (rng_below(&r, 8) == 0)
			file.n = rng_below(&r, file.n) + 1;
		path = put_file(dir, "f", &file);
		st = dataset_open(&d, path, &opt, &err);
		if (!st)
			st = dataset_read(d, &k, 1, &b, &err);
		opened_files += !st;
		if (st && !strstr(err.msg, "record at byte "))
			fail_msg("no place: %s", err.msg);
		batch_release(&b);
		dataset_free(d);
		str_release(&inner);
		free(path);
	}
	assert_true(opened_files > 50 && opened_files < 2900);
	str_release(&e);
	remove_tree(dir);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(objects_come_from_features),
		cmocka_unit_test(masks_are_labels),
		cmocka_unit_test(parts_of_a_record_are_joined),
		cmocka_unit_test(planes_become_pixels),
		cmocka_unit_test(damage_is_named),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
