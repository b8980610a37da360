#include "unit/unit.h"

#include "unit/data_files.h"

static void put_image(const char *dir, const char *name, struct str b)
{
	free(put_file(dir, name, &b));
}

static void classes_and_files_are_in_byte_order(void **state)
{
	char *dir = temp_tree();
	struct dataset *d = NULL;
	struct batch b = BATCH_INIT;
	struct err err = ERR_INIT;
	size_t i;

	(void)state;
	put_image(dir, "b/2.png", png_of(9, 7, PNG_COLOR_TYPE_RGB, 8, false));
	put_image(dir, "b/10.JPG", jpeg_of(8, 7, 3, false));
	put_image(dir, "a/z.jpeg", jpeg_of(6, 7, 3, false));
	put_image(dir, "C/.hidden", jpeg_of(1, 1, 3, false));
	put_image(dir, "C/one.png", png_of(5, 7, PNG_COLOR_TYPE_RGB, 8, false));
	put_image(dir, "README", jpeg_of(1, 1, 3, false));
	assert_ok(dataset_open(&d, dir, NULL, &err), err);
	assert_int_equal(d->n, 4);
	assert_int_equal(d->fields[0].sample.dims[0], -1);
	assert_int_equal(d->fields[0].sample.dims[2], 3);
	for (i = 0; i < 4; i++) { /* C/one, a/z, b/10, b/2: widths 5, 6, 8, 9 */
		static const int label[] = { 0, 1, 2, 2 }, width[] = { 5, 6, 8, 9 };

		assert_ok(dataset_read(d, &i, 1, &b, &err), err);
		assert_int_equal(*(int64_t *)b.fields[1].t.data, label[i]);
		assert_int_equal(b.fields[0].t.rank, 4);
		assert_int_equal(b.fields[0].t.dims[1], 7);
		assert_int_equal(b.fields[0].t.dims[2], width[i]);
	}
	assert_fails(dataset_read(d, (size_t[]){ 0, 1 }, 2, &b, &err), FETTLE_INVALID, err,
		     "shapes [7,5,3] and [7,6,3], need one shape");
	batch_release(&b);
	dataset_free(d);
	remove_tree(dir);
}

static void put_text(const char *dir, const char *name, const char *text)
{
	struct str s = STR_INIT;

	str_addf(&s, "%s", text);
	free(put_file(dir, name, &s));
}

static void imagenet_raw_follows_its_list(void **state)
{
	char *dir = temp_tree(), *list = xstrfmt("%s/other.txt", dir);
	struct dataset_param param = { "image_list", list };
	struct dataset_options opt = { .kind = "ImagenetRaw", .label_shift = 2 };
	struct dataset *d = NULL;
	struct batch b = BATCH_INIT;
	struct err err = ERR_INIT;
	static const int width[] = { 9, 6, 8 }, label[] = { 7, 0, -3 };
	size_t i;

	(void)state;
	put_image(dir, "b two.png", png_of(9, 7, PNG_COLOR_TYPE_RGB, 8, false));
	put_image(dir, "x/10.JPG", jpeg_of(8, 7, 3, false));
	put_image(dir, "a.jpeg", jpeg_of(6, 7, 3, false));
	assert_fails(dataset_open(&d, dir, &opt, &err), FETTLE_INVALID, err, "val.txt");
	put_text(dir, "val_map.txt", "b two.png 7\n  a.jpeg\t0 \r\n\ngone.png 3\nx/10.JPG -3");
	opt.label_shift = 0;
	assert_ok(dataset_open(&d, dir, &opt, &err), err);
	assert_int_equal(d->n, 3);
	assert_non_null(strstr(d->note, "1 of the 4 images"));
	for (i = 0; i < 3; i++) {
		assert_ok(dataset_read(d, &i, 1, &b, &err), err);
		assert_int_equal(b.fields[0].t.dims[2], width[i]);
		assert_int_equal(*(int64_t *)b.fields[1].t.data, label[i]);
	}
	dataset_free(d);
	/* another list, and labels less 2 */
	put_text(dir, "other.txt", "a.jpeg 1\n");
	opt.label_shift = 2;
	opt.params = &param;
	opt.n_params = 1;
	assert_ok(dataset_open(&d, dir, &opt, &err), err);
	i = 0;
	assert_ok(dataset_read(d, &i, 1, &b, &err), err);
	assert_int_equal(*(int64_t *)b.fields[1].t.data, -1);
	assert_null(d->note);
	dataset_free(d);
	put_text(dir, "other.txt", "a.jpeg 1\nb two.png\n");
	assert_fails(dataset_open(&d, dir, &opt, &err), FETTLE_INVALID, err,
		     "other.txt: line 2, need an image's name");
	put_text(dir, "other.txt", "a.jpeg 1x\n");
	assert_fails(dataset_open(&d, dir, &opt, &err), FETTLE_INVALID, err, "other.txt: line 1");
	put_text(dir, "other.txt", "c.jpeg 1\n");
	assert_fails(dataset_open(&d, dir, &opt, &err), FETTLE_INVALID, err, "none of the 1 images");
	batch_release(&b);
	free(list);
	remove_tree(dir);
}

/* Any bytes are a list that opens, or an error. */
static void damaged_lists_are_errors(void **state)
{
	static const char bytes[] = "a.jpg 1\n\t -9\r\0x";
	char *dir = temp_tree();
	const struct dataset_options opt = { .kind = "ImagenetRaw" };
	struct rng r;
	int i, k, opened = 0;

	(void)state;
	rng_seed(&r, 7);
	put_image(dir, "a.jpg", jpeg_of(4, 4, 3, false));
	for (i = 0; i < 2000; i++) {
		struct dataset *d = NULL;
		struct str s = STR_INIT;
		struct err err = ERR_INIT;
		int n = (int)rng_below(&r, 24);

		for (k = 0; k < n; k++) {
			if (rng_below(&r, 3) == 0)
				str_addf(&s, "a.jpg 1\n");
			str_add(&s, &bytes[rng_below(&r, sizeof(bytes))], 1);
		}
		free(put_file(dir, "val.txt", &s));
		opened += !dataset_open(&d, dir, &opt, &err);
		dataset_free(d);
	}
	assert_true(opened > 10);
	remove_tree(dir);
}

static double luma_at(int y, int x)
{
	return 0.299 * pixel_at(y, x, 0) + 0.587 * pixel_at(y, x, 1) + 0.114 * pixel_at(y, x, 2);
}

static void check_picture(const char *why, const struct tensor *t, bool colour, int channels,
			  double tolerance)
{
	const unsigned char *p = t->data;
	int y, x, c;

	assert_int_equal(t->dims[1], 11);
	assert_int_equal(t->dims[2], 13);
	assert_int_equal(t->dims[3], channels);
	for (y = 0; y < 11; y++) {
		for (x = 0; x < 13; x++) {
			for (c = 0; c < channels; c++, p++) {
				double want = channels == 3 ? pixel_at(y, x, colour ? c : 0)
					      : colour      ? luma_at(y, x)
							    : pixel_at(y, x, 0);

				if (fabs(*p - want) > tolerance)
					fail_msg("%s: pixel %d,%d,%d is %d, want %g", why, y, x, c, *p, want);
			}
		}
	}
}

static void every_format_shows_the_same_picture(void **state)
{
	const struct {
		const char *why;
		struct str bytes;
		bool colour;
		double tolerance;
	} rows[] = {
		{ "RGB PNG", png_of(13, 11, PNG_COLOR_TYPE_RGB, 8, false), true, 0.5 },
		{ "interlaced PNG", png_of(13, 11, PNG_COLOR_TYPE_RGB, 8, true), true, 0.5 },
		{ "16-bit PNG", png_of(13, 11, PNG_COLOR_TYPE_RGB, 16, false), true, 0.5 },
		{ "alpha is dropped", png_of(13, 11, PNG_COLOR_TYPE_RGB_ALPHA, 8, false), true, 0.5 },
		{ "grey PNG", png_of(13, 11, PNG_COLOR_TYPE_GRAY, 8, false), false, 0.5 },
		{ "grey 16-bit PNG", png_of(13, 11, PNG_COLOR_TYPE_GRAY, 16, true), false, 0.5 },
		{ "grey with alpha", png_of(13, 11, PNG_COLOR_TYPE_GRAY_ALPHA, 8, false), false, 0.5 },
		{ "JPEG", jpeg_of(13, 11, 3, false), true, 6 },
		{ "progressive JPEG", jpeg_of(13, 11, 3, true), true, 6 },
		{ "palette PNG", png_of(13, 11, PNG_COLOR_TYPE_PALETTE, 8, false), true, 0.5 },
		{ "CMYK JPEG", jpeg_of(13, 11, 4, false), true, 6 },
		{ "grey JPEG", jpeg_of(13, 11, 1, false), false, 6 },
	};
	char *dir = temp_tree();
	size_t i, zero = 0;
	int channels;

	(void)state;
	for (i = 0; i < ARRAY_LEN(rows); i++) {
		struct str b = rows[i].bytes;
		char *path = put_file(dir, "c/image.png", &b); /* the name's ending does not matter */

		for (channels = 1; channels <= 3; channels += 2) {
			struct dataset_options opt = { .channels = channels };
			struct dataset *d = NULL;
			struct batch batch = BATCH_INIT;
			struct err err = ERR_INIT;

			assert_ok(dataset_open(&d, dir, &opt, &err), err);
			assert_ok(dataset_read(d, &zero, 1, &batch, &err), err);
			check_picture(rows[i].why, &batch.fields[0].t, rows[i].colour, channels,
				      rows[i].tolerance);
			batch_release(&batch);
			dataset_free(d);
		}
		free(path);
	}
	remove_tree(dir);
}

static void a_flat_folder_has_no_labels(void **state)
{
	char *dir = temp_tree();
	struct dataset *d = NULL;
	struct err err = ERR_INIT;

	(void)state;
	put_image(dir, "1.png", png_of(2, 2, PNG_COLOR_TYPE_RGB, 8, false));
	put_image(dir, "2.png", png_of(2, 2, PNG_COLOR_TYPE_RGB, 8, false));
	assert_ok(dataset_open(&d, dir, NULL, &err), err);
	assert_int_equal(d->n, 2);
	assert_int_equal(d->n_fields, 1);
	assert_null(dataset_labels(d));
	dataset_free(d);
	remove_tree(dir);
}

static void odd_folders_are_refused(void **state)
{
	char *dir = temp_tree();
	struct err err = ERR_INIT;

	(void)state;
	assert_fails(read_all(dir, NULL, &err), FETTLE_INVALID, err, "no images, need class folders");
	put_image(dir, "a/1.png", png_of(2, 2, PNG_COLOR_TYPE_RGB, 8, false));
	put_image(dir, "a/1.webp", png_of(2, 2, PNG_COLOR_TYPE_RGB, 8, false));
	assert_fails(read_all(dir, NULL, &err), FETTLE_INVALID, err, "a/1.webp: not an image, need only");
	put_image(dir, "stray.png", png_of(2, 2, PNG_COLOR_TYPE_RGB, 8, false));
	remove_tree(xstrfmt("%s/a/1.webp", dir));
	assert_fails(read_all(dir, NULL, &err), FETTLE_INVALID, err,
		     "stray.png: an image beside class folders");
	remove_tree(dir);
}

static struct str cut(struct str b, size_t to)
{
	b.n = to;
	return b;
}

static struct str text(const char *s)
{
	struct str b = STR_INIT;

	str_addf(&b, "%s", s);
	return b;
}

static struct str huge_png(void)
{
	struct str b = png_of(2, 2, PNG_COLOR_TYPE_GRAY, 8, false);
	uint32_t crc;
	int i;

	b.s[17] = b.s[21] = 1; /* 65538 x 65538 */
	crc = (uint32_t)crc32(crc32(0, NULL, 0), (unsigned char *)b.s + 12, 17);
	for (i = 0; i < 4; i++)
		b.s[29 + i] = (char)(unsigned char)(crc >> (24 - 8 * i));
	return b;
}

static void damaged_images_are_named(void **state)
{
	const struct {
		struct str bytes;
		const char *words;
	} rows[] = {
		{ text("not a picture"), "neither JPEG nor PNG" },
		{ text("\xff\xd8\xff"), "damaged JPEG" },
		{ cut(jpeg_of(64, 64, 3, false), 700), "damaged JPEG" },
		{ cut(jpeg_of(64, 64, 3, true), 800), "damaged JPEG" },
		{ cut(jpeg_of(64, 64, 3, false), 100), "damaged JPEG" },
		{ cut(png_of(64, 64, PNG_COLOR_TYPE_RGB, 8, false), 100),
		  "damaged PNG: the file is truncated" },
		{ cut(png_of(64, 64, PNG_COLOR_TYPE_RGB, 8, false), 20),
		  "damaged PNG: the file is truncated" },
		{ huge_png(), "65538 x 65538 pixels" },
	};
	char *dir = temp_tree();
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_LEN(rows); i++) {
		struct str b = rows[i].bytes;
		char *path = put_file(dir, "c/bad.jpg", &b);
		struct err err = ERR_INIT;

		assert_fails(read_all(dir, NULL, &err), FETTLE_INVALID, err, rows[i].words);
		assert_non_null(strstr(err.msg, path));
		free(path);
	}
	remove_tree(dir);
}

static void mutations_never_crash(void **state)
{
	char *dir = temp_tree();
	struct str good[] = {
		jpeg_of(33, 17, 3, false),
		jpeg_of(33, 17, 3, true),
		png_of(33, 17, PNG_COLOR_TYPE_RGB_ALPHA, 8, true),
		png_of(33, 17, PNG_COLOR_TYPE_GRAY, 16, false),
	};
	struct rng r;
	size_t i;

	(void)state;
	rng_seed(&r, 11);
	for (i = 0; i < 2000; i++) {
		struct str bad = mutated(&good[i % 4], &r);
		char *path = put_file(dir, "c/m.jpg", &bad);
		struct err err = ERR_INIT;

		read_all(dir, &(struct dataset_options){ .channels = i & 8 ? 1 : 3 }, &err);
		free(path);
	}
	for (i = 0; i < ARRAY_LEN(good); i++)
		str_release(&good[i]);
	remove_tree(dir);
}

/* resized, cropped, scaled and turned: what a network is usually fed with */
static void transforms_fix_the_shape(void **state)
{
	char *dir = temp_tree();
	struct transform t[4];
	struct dataset_options opt = { .transforms = t, .n_transforms = 4 };
	struct dataset *d = NULL;
	struct batch b = BATCH_INIT;
	struct err err = ERR_INIT;

	(void)state;
	put_image(dir, "a/1.png", png_of(20, 30, PNG_COLOR_TYPE_RGB, 8, false));
	put_image(dir, "a/2.png", png_of(40, 25, PNG_COLOR_TYPE_RGB, 8, false));
	assert_ok(transform_init(&t[0], "Resize", &err), err);
	assert_ok(transform_set(&t[0], "size", (double[]){ 16 }, 1, NULL, &err), err);
	assert_ok(transform_init(&t[1], "CenterCrop", &err), err);
	assert_ok(transform_set(&t[1], "size", (double[]){ 14, 12 }, 2, NULL, &err), err);
	assert_ok(transform_init(&t[2], "Rescale", &err), err);
	assert_ok(transform_init(&t[3], "Transpose", &err), err);
	assert_ok(dataset_open(&d, dir, &opt, &err), err);
	assert_int_equal(d->fields[0].sample.dtype, DT_F32);
	assert_int_equal(d->fields[0].sample.dims[0], 3);
	assert_int_equal(d->fields[0].sample.dims[1], 14);
	assert_ok(dataset_read(d, (size_t[]){ 0, 1 }, 2, &b, &err), err);
	assert_int_equal(b.fields[0].t.dims[0], 2);
	assert_int_equal(b.fields[0].t.dims[1], 3);
	assert_int_equal(b.fields[0].t.dims[3], 12);
	batch_release(&b);
	dataset_free(d);
	d = NULL;

	opt.transforms = &t[1]; /* without Resize, the second is too big a crop for some */
	opt.n_transforms = 1;
	put_image(dir, "a/3.png", png_of(5, 5, PNG_COLOR_TYPE_RGB, 8, false));
	assert_fails(read_all(dir, &opt, &err), FETTLE_INVALID, err,
		     "a/3.png: cannot apply CenterCrop: height 5 is less than the 14");
	remove_tree(dir);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(classes_and_files_are_in_byte_order),
		cmocka_unit_test(imagenet_raw_follows_its_list),
		cmocka_unit_test(damaged_lists_are_errors),
		cmocka_unit_test(every_format_shows_the_same_picture),
		cmocka_unit_test(a_flat_folder_has_no_labels),
		cmocka_unit_test(odd_folders_are_refused),
		cmocka_unit_test(damaged_images_are_named),
		cmocka_unit_test(mutations_never_crash),
		cmocka_unit_test(transforms_fix_the_shape),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
