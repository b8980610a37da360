/* Writes what the fuzzers of binary formats start from. usage: seeds FOLDER */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* which the tests' helpers have from cmocka */
#define assert_true(c) ((c) ? (void)0 : abort())
#define assert_null(p) assert_true(!(p))
#define assert_non_null(p) assert_true(p)
#define assert_int_equal(a, b) assert_true((a) == (b))
#define fail_msg(...) abort()

#include "quantize/rounding.h"
#include "unit/build.h"
#include "unit/data_files.h"

enum { WIDTH = 5, HEIGHT = 3 };

static void put(const char *folder, const char *name, struct str b)
{
	free(put_file(folder, name, &b));
}

static void put_images(const char *folder)
{
	static const int types[] = { PNG_COLOR_TYPE_GRAY, PNG_COLOR_TYPE_GRAY_ALPHA, PNG_COLOR_TYPE_RGB,
				     PNG_COLOR_TYPE_RGB_ALPHA, PNG_COLOR_TYPE_PALETTE };
	static const int components[] = { 1, 3, 4 };
	char name[64];
	size_t i;

	for (i = 0; i < ARRAY_LEN(types); i++) {
		snprintf(name, sizeof(name), "fuzz_image/%zu.png", i);
		put(folder, name, png_of(WIDTH, HEIGHT, types[i], 8, i % 2));
	}
	put(folder, "fuzz_image/16.png", png_of(WIDTH, HEIGHT, PNG_COLOR_TYPE_RGB, 16, false));
	for (i = 0; i < ARRAY_LEN(components); i++) {
		snprintf(name, sizeof(name), "fuzz_image/%zu.jpeg", i);
		put(folder, name, jpeg_of(WIDTH, HEIGHT, components[i], i % 2));
	}
}

static void put_arrays(const char *folder)
{
	static const float x[6] = { 0, 1, -1 };

	put(folder, "fuzz_npz/stored.npz", sample_npz(2, false, false));
	put(folder, "fuzz_npz/deflated.npz", sample_npz(2, true, false));
	put(folder, "fuzz_npz/zip64.npz", sample_npz(2, true, true));
	put(folder, "fuzz_npz/fortran.npy", npy_of("<f4", true, "(2, 3)", x, sizeof(x)));
	put(folder, "fuzz_testset/x.pb", pb_of(DT_F32, DIMS(2, 3), x, sizeof(x)));
}

static void put_records(const char *folder)
{
	struct str annotations = STR_INIT, names = STR_INIT, file = STR_INIT, e = example_of();
	struct str questions = STR_INIT, pieces = STR_INIT, pairs = STR_INIT;

	put_tfrecord(&file, e.s, e.n);
	put(folder, "fuzz_recorded/file.tfrecord", file);
	put(folder, "fuzz_recorded/example", e);
	put(folder, "fuzz_recorded/image.rec", recordio_of());
	str_addf(&annotations,
		 "{\"images\": [{\"id\": 1, \"file_name\": \"proc/self/exe\", \"height\": 4, \"width\": 6}],"
		 " \"categories\": [{\"id\": 2, \"name\": \"cat\"}], \"annotations\": [{\"image_id\": 1,"
		 " \"category_id\": 2, \"bbox\": [1, 2, 3, 4], \"area\": 5.5, \"iscrowd\": 0}]}");
	put(folder, "fuzz_coco/one.json", annotations);
	str_addf(&names, "# names\n'a cat': 1\ndog: 2\n");
	put(folder, "fuzz_coco/map.yaml", names);
	str_addf(
		&questions,
		"1{\"data\": [{\"paragraphs\": [{\"context\": \"the ab. b\", \"qas\": [{\"question\": \"a?\","
		" \"answers\": [{\"text\": \"ab\"}]}]}]}]}");
	put(folder, "fuzz_text/squad", questions);
	str_addf(&pieces, "0[UNK]\n[CLS]\n[SEP]\n[PAD]\na\n##b\n\xc3\xa9\n");
	put(folder, "fuzz_text/vocabulary", pieces);
	str_addf(&pairs,
		 "2{\"<s>\": 0, \"</s>\": 1, \"<unk>\": 2, \"a\": 3, \"ab\": 4, \"\xc4\xa0\xc3\x83\": 5}\x01"
		 "#version: 0.2\na b\n\xc4\xa0 \xc3\x83\n\x01 ab 'll \xc3\xa9  12\t!");
	put(folder, "fuzz_text/pairs", pairs);
}

#define ADD(b, text) str_add(b, text, sizeof(text) - 1)
/* As Python 2 pickles a batch of one image. */
static void put_pickle(struct str *b, const unsigned char *pixels, size_t n)
{
	ADD(b, "\x80\x02}q\x01(U\x06labelsq\x02]q\x03(K\x07"
	       "eU\x04"
	       "dataq\x04"
	       "cnumpy.core.multiarray\n_reconstruct\nq\x05"
	       "cnumpy\nndarray\nq\x06K\0\x85q\x07U\x01"
	       "bq\x08\x87q\x09Rq\x0a"
	       "(K\x01K\x01M");
	put_le(b, n, 2);
	ADD(b, "\x86q\x0b"
	       "cnumpy\ndtype\nq\x0cU\x02u1q\x0dK\0K\x01\x87q\x0eRq\x0f(K\x03U\x01|"
	       "q\x10NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xff"
	       "K\0tq\x11"
	       "b\x89T");
	put_le(b, n, 4);
	str_add(b, pixels, n);
	ADD(b, "tq\x12"
	       "bu.");
}

/* With the byte that says which before them. */
static void put_pictures(const char *folder)
{
	static const unsigned char image[1 + 3 * 32 * 32] = { 3 };
	struct str pickle = STR_INIT, cifar = STR_INIT, mnist = STR_INIT, npz = STR_INIT, archive;
	struct zip_out z = { .zip64 = false };

	str_addf(&pickle, "%c", 0);
	put_pickle(&pickle, image + 1, sizeof(image) - 1);
	put(folder, "fuzz_pictures/pickle", pickle);
	str_addf(&cifar, "%c", 2);
	str_add(&cifar, image, sizeof(image));
	put(folder, "fuzz_pictures/cifar", cifar);
	str_addf(&mnist, "%c", 4);
	str_add(&mnist, "\0\0\x08\x03\0\0\0\x01\0\0\0\x1c\0\0\0\x1c", 16);
	str_add(&mnist, image, 28 * 28);
	put(folder, "fuzz_pictures/mnist", mnist);
	zip_add(&z, "x_test.npy", npy_of("|u1", false, "(1, 28, 28)", image, 28 * 28), true);
	zip_add(&z, "y_test.npy", npy_of("|u1", false, "(1,)", image, 1), true);
	archive = zip_end(&z);
	str_addf(&npz, "%c", 5);
	str_add(&npz, archive.s, archive.n);
	str_release(&archive);
	put(folder, "fuzz_pictures/npz", npz);
}

static void put_rounding(const char *folder)
{
	static int8_t q[4] = { 1, -2, 3, 4 }, zero[2];
	static float scale[2] = { 0.5f, 0.25f };
	static const double shift[2] = { 0.125, 0 };
	const struct rounded o = { .w = { .q = { DT_S8, 2, { 2, 2 }, q },
					  .scale = { DT_F32, 1, { 2 }, scale },
					  .zero = { DT_S8, 1, { 2 }, zero },
					  .is_symmetric = true },
				   .shift = shift,
				   .n_shift = 2 };
	struct rounding *r = rounding_new(4);
	char *path = xstrfmt("%s/fuzz_rounding/one", folder);
	struct err err = ERR_INIT;

	rounding_set(r, 1, &o);
	assert_true(rounding_save(r, path, &err) == FETTLE_OK);
	rounding_free(r);
	free(path);
}

static void put_model(const char *folder)
{
	char *path = xstrfmt("%s/fuzz_model/small.onnx", folder);

	build_model(path, 13, "x:?x4x8x8",
		    "w = 8x4x3x3; b = 8; a = Conv(x, w, b); r = Relu(a); m = MaxPool(r) kernel_shape=2,2;"
		    "f = Flatten(m); v = 72x10; y = Gemm(f, v)",
		    "y");
	free(path);
}

int main(int argc, char **argv)
{
	if (argc != 2) {
		fprintf(stderr, "usage: seeds FOLDER\n");
		return 2;
	}
	put_images(argv[1]);
	put_arrays(argv[1]);
	put_records(argv[1]);
	put_pictures(argv[1]);
	put_rounding(argv[1]);
	put_model(argv[1]);
	return 0;
}
