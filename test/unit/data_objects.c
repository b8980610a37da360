/* Datasets whose labels are objects. */
#include "unit/unit.h"

#include "unit/data_files.h"

static void put_text(const char *dir, const char *name, const char *text)
{
	struct str s = STR_INIT;

	str_addf(&s, "%s", text);
	free(put_file(dir, name, &s));
}

static void put_images(const char *dir)
{
	static const char *const names[] = { "a.jpg", "b.jpg", "c.jpg" };
	size_t i;

	for (i = 0; i < ARRAY_LEN(names); i++) {
		struct str image = jpeg_of(20 + (int)i, 10, 3, false);
		char *name = xstrfmt("val2017/%s", names[i]);

		free(put_file(dir, name, &image));
		free(name);
	}
}

#define IMAGES                                                                                               \
	"{\"images\": [{\"id\": 7, \"file_name\": \"b.jpg\", \"height\": 10, \"width\": 21},"                \
	" {\"id\": 3, \"file_name\": \"a.jpg\", \"height\": 10, \"width\": 20},"                             \
	" {\"id\": 4, \"file_name\": \"gone.jpg\", \"height\": 10, \"width\": 20},"                          \
	" {\"id\": 5, \"file_name\": \"c.jpg\", \"height\": 10, \"width\": 22}],"                            \
	" \"categories\": [{\"id\": 90, \"name\": \"tooth brush\"}, {\"id\": 1, \"name\": \"person\"}],"
static const char annotations[] = IMAGES
	" \"annotations\": ["
	" {\"image_id\": 3, \"category_id\": 90, \"bbox\": [2, 1, 10, 4], \"area\": 33.5, \"iscrowd\": 1},"
	" {\"image_id\": 7, \"category_id\": 1, \"bbox\": [0, 0, 21, 5]},"
	" {\"image_id\": 3, \"category_id\": 1, \"bbox\": [0, 0, 20, 10], \"area\": 200, \"iscrowd\": 0},"
	" {\"image_id\": 4, \"category_id\": 1, \"bbox\": [0, 0, 1, 1]}]}";
static const char file[] = "annotations/instances_val2017.json";

static void check_label(const struct dataset *d, size_t i, const double *want, size_t rows)
{
	struct batch b = BATCH_INIT;
	struct err err = ERR_INIT;
	size_t k;

	assert_ok(dataset_read(d, &i, 1, &b, &err), err);
	assert_int_equal(b.fields[1].t.dims[1], rows);
	assert_int_equal(b.fields[1].t.dims[2], 8);
	for (k = 0; k < 8 * rows; k++)
		assert_true(fabs(tensor_get(&b.fields[1].t, k) - want[k]) < 1e-12);
	batch_release(&b);
}

static void coco_raw_reads_images_and_objects(void **state)
{
	char *dir = temp_tree(), *map = xstrfmt("%s/map.yaml", dir);
	struct dataset_param param = { "label_map", map };
	struct dataset_options opt = { .kind = "cocoraw" };
	struct dataset *d = NULL;
	struct err err = ERR_INIT;

	(void)state;
	put_images(dir);
	assert_fails(dataset_open(&d, dir, &opt, &err), FETTLE_INVALID, err, "instances_val2017.json");
	put_text(dir, file, annotations);
	assert_ok(dataset_open(&d, dir, &opt, &err), err);
	assert_int_equal(d->n, 2); /* in the file's order; gone.jpg and c.jpg are left out */
	assert_non_null(strstr(d->note, "1 of the images"));
	check_label(d, 0, (double[]){ 1, 0, 0, 0.5, 1, 0, 105, 210, -1, 0, 0, 0, 0, 0, 0, 210 }, 2);
	check_label(d, 1, (double[]){ 90, 0.1, 0.1, 0.5, 0.6, 1, 33.5, 200, 1, 0, 0, 1, 1, 0, 200, 200 }, 2);
	dataset_free(d);

	/* classes by name, less one; only images with two objects */
	put_text(dir, "map.yaml", "# names\n'tooth brush': 12\nperson: 5 # me\n\n");
	opt.params = &param;
	opt.n_params = 1;
	opt.label_shift = 1;
	opt.objects = 2;
	assert_ok(dataset_open(&d, dir, &opt, &err), err);
	assert_int_equal(d->n, 1);
	check_label(d, 0, (double[]){ 11, 0.1, 0.1, 0.5, 0.6, 1, 33.5, 200, 4, 0, 0, 1, 1, 0, 200, 200 }, 2);
	dataset_free(d);
	opt.objects = 3;
	assert_fails(dataset_open(&d, dir, &opt, &err), FETTLE_INVALID, err,
		     "none of 2 images has 3 objects");
	put_text(dir, "map.yaml", "person: 5\n");
	assert_fails(dataset_open(&d, dir, &opt, &err), FETTLE_INVALID, err,
		     "annotation 0 is a 'tooth brush', the label map has no such name");
	put_text(dir, "map.yaml", "person: 5\nperson\n");
	assert_fails(dataset_open(&d, dir, &opt, &err), FETTLE_INVALID, err, "line 2, need NAME: NUMBER");
	opt.kind = "ImageFolder";
	opt.n_params = 0;
	{
		char *folder = xstrfmt("%s/val2017", dir);

		assert_fails(dataset_open(&d, folder, &opt, &err), FETTLE_INVALID, err,
			     "LabelBalance, need images");
		free(folder);
	}
	free(map);
	remove_tree(dir);
}

static void wrong_annotations_are_errors(void **state)
{
	static const struct {
		const char *text, *message;
	} rows[] = {
		{ "{", "line 1: " },
		{ "[]", "no images" },
		{ "{\"images\": [{}]}", "image 0, need id, file_name, height and width" },
		{ "{\"images\": [{\"id\": 1, \"file_name\": \"a.jpg\", \"height\": 0, \"width\": 3}]}",
		  "image 0" },
		{ IMAGES "\"annotations\": [{\"category_id\": 1}]}", "annotation 0, need an image_id" },
		{ IMAGES "\"annotations\": [{\"image_id\": 3, \"bbox\": [1, 2, 3, 4]}]}",
		  "annotation 0, need a category_id" },
		{ IMAGES "\"annotations\": [{\"image_id\": 3, \"category_id\": 1, \"bbox\": [1, 2, 3]}]}",
		  "annotation 0, need a bbox of four numbers" },
		{ IMAGES "\"annotations\": []}", "1 are not in " },
	};
	const struct dataset_options opt = { .kind = "COCORaw" };
	char *dir = temp_tree();
	size_t i;

	(void)state;
	put_images(dir);
	for (i = 0; i < ARRAY_LEN(rows); i++) {
		struct dataset *d = NULL;
		struct err err = ERR_INIT;

		put_text(dir, file, rows[i].text);
		assert_fails(dataset_open(&d, dir, &opt, &err), FETTLE_INVALID, err, rows[i].message);
	}
	remove_tree(dir);
}

/* Whatever happens to the file, it opens or is an error. */
static void damaged_annotations_are_errors(void **state)
{
	const struct dataset_options opt = { .kind = "COCORaw" };
	char *dir = temp_tree();
	struct rng r;
	int i, opened = 0;

	(void)state;
	put_images(dir);
	rng_seed(&r, 3);
	for (i = 0; i < 600; i++) {
		struct dataset *d = NULL;
		struct err err = ERR_INIT;
		char *text = xstrdup(annotations);

		text[rng_below(&r, sizeof(annotations) - 1)] = "0-\"}x"[rng_below(&r, 5)];
		put_text(dir, file, text);
		if (!dataset_open(&d, dir, &opt, &err))
			opened++;
		dataset_free(d);
		free(text);
	}
	assert_true(opened > 20 && opened < 580);
	remove_tree(dir);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(coco_raw_reads_images_and_objects),
		cmocka_unit_test(wrong_annotations_are_errors),
		cmocka_unit_test(damaged_annotations_are_errors),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
