#include "unit/unit.h"

#include "unit/data_files.h"

static const float ramp[] = { 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11 };

static void put(const char *dir, const char *name, struct str b)
{
	free(put_file(dir, name, &b));
}

static void rows_of_all_sets_are_samples(void **state)
{
	char *dir = temp_tree();
	struct dataset *d = NULL;
	struct batch b = BATCH_INIT;
	struct err err = ERR_INIT;
	int64_t y[] = { 5, 6 };

	(void)state;
	put(dir, "test_data_set_10/input_0.pb", pb_of(DT_F32, DIMS(1, 3), ramp + 6, 12));
	put(dir, "test_data_set_10/output_0.pb", pb_of(DT_S64, DIMS(1), y + 1, 8));
	put(dir, "test_data_set_2/input_0.pb", pb_of(DT_F32, DIMS(2, 3), ramp, 24));
	put(dir, "test_data_set_2/output_0.pb", pb_of(DT_S64, DIMS(2), y, 16));
	assert_ok(dataset_open(&d, dir, NULL, &err), err);
	assert_int_equal(d->n, 3);
	assert_false(d->whole);
	assert_true(d->positional);
	assert_int_equal(d->fields[1].role, FIELD_OUTPUT);
	assert_int_equal(d->fields[0].sample.rank, 1);
	assert_ok(dataset_read(d, (size_t[]){ 2, 1 }, 2, &b, &err), err); /* 2 is before 10 */
	assert_true(((float *)b.fields[0].t.data)[0] == 6);
	assert_true(((float *)b.fields[0].t.data)[5] == 5);
	assert_int_equal(((int64_t *)b.fields[1].t.data)[0], 6);
	batch_release(&b);
	dataset_free(d);
	remove_tree(dir);
}

static void sets_without_common_rows_are_samples_themselves(void **state)
{
	char *dir = temp_tree(), *one;
	struct dataset *d = NULL;
	struct batch b = BATCH_INIT;
	struct err err = ERR_INIT;

	(void)state;
	put(dir, "test_data_set_0/input_0.pb", pb_of(DT_F32, DIMS(2, 3), ramp, 24));
	put(dir, "test_data_set_0/input_1.pb", pb_of(DT_F32, DIMS(3, 2), ramp, 24));
	put(dir, "test_data_set_1/input_0.pb", pb_of(DT_F32, DIMS(4, 3), ramp, 48));
	put(dir, "test_data_set_1/input_1.pb", pb_of(DT_F32, DIMS(3), ramp, 12));
	assert_ok(dataset_open(&d, dir, NULL, &err), err);
	assert_true(d->whole);
	assert_int_equal(d->n, 2);
	assert_int_equal(d->fields[0].sample.dims[0], -1);
	assert_int_equal(d->fields[0].sample.dims[1], 3);
	assert_int_equal(d->fields[1].sample.rank, -1);
	assert_ok(dataset_read(d, (size_t[]){ 1 }, 1, &b, &err), err);
	assert_int_equal(b.fields[0].t.rank, 2);
	assert_int_equal(b.fields[0].t.dims[0], 4);
	assert_true(((float *)b.fields[0].t.data)[11] == 11);
	assert_fails(dataset_read(d, (size_t[]){ 0, 1 }, 2, &b, &err), FETTLE_INVALID, err,
		     "a batch of 2 samples, need 1");
	batch_release(&b);
	dataset_free(d);
	d = NULL;

	one = xstrfmt("%s/test_data_set_0", dir); /* a set by itself */
	assert_ok(dataset_open(&d, one, NULL, &err), err);
	assert_int_equal(d->n, 1);
	dataset_free(d);
	free(one);
	remove_tree(dir);
}

static struct str bytes_of(const char *p, size_t n)
{
	struct str b = STR_INIT;

	str_add(&b, p, n);
	return b;
}
#define BYTES(s) bytes_of(s, sizeof(s) - 1)

static void elements_come_in_every_encoding(void **state)
{
	const struct {
		const char *why;
		struct str bytes;
		enum dtype dtype;
		double want[2];
	} rows[] = {
		{ "packed floats", BYTES("\x0a\1\2\x10\1\x22\x08\0\0\x80?\0\0\0\xc0"), DT_F32, { 1, -2 } },
		{ "floats one by one",
		  BYTES("\x0a\1\2\x10\1\x25\0\0\x80?\x25\0\0\0\xc0"),
		  DT_F32,
		  { 1, -2 } },
		{ "packed int32",
		  BYTES("\x08\2\x10\6\x2a\x0b\5\xff\xff\xff\xff\xff\xff\xff\xff\xff\1"),
		  DT_S32,
		  { 5, -1 } },
		{ "int8 in int32",
		  BYTES("\x08\2\x10\3\x28\5\x28\xff\xff\xff\xff\xff\xff\xff\xff\xff\1"),
		  DT_S8,
		  { 5, -1 } },
		{ "halves as their bits",
		  BYTES("\x08\2\x10\x0a\x2a\5\x80\x78\x80\x80\3"),
		  DT_F16,
		  { 1, -2 } },
		{ "packed int64", BYTES("\x08\2\x10\7\x3a\3\x80\1\3"), DT_S64, { 128, 3 } },
		{ "uint64", BYTES("\x08\2\x10\x0d\x5a\3\x80\1\3"), DT_U64, { 128, 3 } },
		{ "doubles",
		  BYTES("\x08\2\x10\x0b\x52\x10\0\0\0\0\0\0\xf0?\0\0\0\0\0\0\0\xc0"),
		  DT_F64,
		  { 1, -2 } },
		{ "any true is 1", BYTES("\x08\2\x10\x09\x4a\2\0\7"), DT_BOOL, { 0, 1 } },
	};
	char *dir = temp_tree();
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_LEN(rows); i++) {
		struct dataset *d = NULL;
		struct batch b = BATCH_INIT;
		struct err err = ERR_INIT;

		put(dir, "input_0.pb", rows[i].bytes);
		if (dataset_open(&d, dir, NULL, &err))
			fail_msg("%s: %s", rows[i].why, err.msg);
		assert_ok(dataset_read(d, (size_t[]){ 0, 1 }, 2, &b, &err), err);
		assert_int_equal(b.fields[0].t.dtype, rows[i].dtype);
		if (tensor_get(&b.fields[0].t, 0) != rows[i].want[0] ||
		    tensor_get(&b.fields[0].t, 1) != rows[i].want[1])
			fail_msg("%s: %g %g", rows[i].why, tensor_get(&b.fields[0].t, 0),
				 tensor_get(&b.fields[0].t, 1));
		batch_release(&b);
		dataset_free(d);
	}
	remove_tree(dir);
}

static void errors_name_the_file(void **state)
{
	const struct {
		struct str bytes;
		enum fettle_status status;
		const char *words;
	} rows[] = {
		{ BYTES("\x08"), FETTLE_INVALID, "not a tensor in protobuf format" },
		{ BYTES("\x0f"), FETTLE_INVALID, "not a tensor in protobuf format" },
		{ BYTES("\x08\2\x10\1\x4a\x7f\1"), FETTLE_INVALID, "truncated" },
		{ BYTES("\x08\2\x10\1\x4a\3\1\2\3"), FETTLE_INVALID,
		  "shape [2] of float32 is 8 bytes, but 3 are there" },
		{ BYTES("\x08\2\x10\1"), FETTLE_INVALID, "0 elements, need 2" },
		{ BYTES("\x08\1\x10\7\x3a\2\1\1"), FETTLE_INVALID, "its elements do not fit its shape" },
		{ BYTES("\x08\2\x10\1\x25\0\0\0\0\x20\5"), FETTLE_INVALID, "do not fit" },
		{ BYTES("\x08\xff\xff\xff\xff\x0f\x10\7"), FETTLE_INVALID,
		  "4294967295 elements in a file of 8 bytes" },
		{ BYTES("\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\1\x10\7"), FETTLE_INVALID,
		  "more elements than can be" },
		{ BYTES("\x08\2\x10\x08\x32\1a\x32\1b"), FETTLE_UNSUPPORTED, "element type 8 (string)" },
		{ BYTES("\x08\2\x10\x63"), FETTLE_UNSUPPORTED, "element type 99" },
		{ BYTES("\x1a\2\x08\1"), FETTLE_UNSUPPORTED, "a sequence" },
		{ BYTES("\x08\2\x10\1\x70\1"), FETTLE_UNSUPPORTED, "in another file" },
		{ BYTES("\x0a\x0d\1\1\1\1\1\1\1\1\1\1\1\1\1"), FETTLE_UNSUPPORTED,
		  "more than 12 dimensions" },
		{ BYTES(""), FETTLE_INVALID, "the file is empty" },
	};
	char *dir = temp_tree();
	struct err err = ERR_INIT;
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_LEN(rows); i++) {
		put(dir, "test_data_set_0/input_0.pb", rows[i].bytes);
		assert_fails(read_all(dir, NULL, &err), rows[i].status, err, rows[i].words);
		assert_non_null(strstr(err.msg, "test_data_set_0/input_0.pb"));
	}
	put(dir, "test_data_set_0/input_0.pb", pb_of(DT_F32, DIMS(3), ramp, 12));
	put(dir, "test_data_set_0/input_2.pb", pb_of(DT_F32, DIMS(3), ramp, 12));
	assert_fails(read_all(dir, NULL, &err), FETTLE_INVALID, err, "input_1.pb: No such file");
	put(dir, "test_data_set_0/input_1.pb", pb_of(DT_F32, DIMS(3), ramp, 12));
	put(dir, "test_data_set_1/input_0.pb", pb_of(DT_F32, DIMS(3), ramp, 12));
	assert_fails(read_all(dir, NULL, &err), FETTLE_INVALID, err, "1 inputs and 0 outputs, but");
	put(dir, "test_data_set_1/input_1.pb", pb_of(DT_F32, DIMS(3), ramp, 12));
	put(dir, "test_data_set_1/input_2.pb", pb_of(DT_S32, DIMS(3), ramp, 12));
	assert_fails(read_all(dir, NULL, &err), FETTLE_INVALID, err, "input 2 is int32, but float32 in");
	put(dir, "test_data_set_2/nothing", BYTES(""));
	remove_tree(xstrfmt("%s/test_data_set_1", dir));
	assert_fails(read_all(dir, NULL, &err), FETTLE_INVALID, err, "test_data_set_2: 0 inputs");
	remove_tree(dir);
}

static int opened, refused;

static int open_published(const char *path, const struct stat *sb, int kind, struct FTW *ftw)
{
	struct dataset *d = NULL;
	struct err err = ERR_INIT;
	enum fettle_status st;

	(void)sb;
	if (kind != FTW_D || !str_starts(path + ftw->base, "test_data_set_"))
		return 0;
	st = dataset_open(&d, path, NULL, &err);
	if (st && st != FETTLE_UNSUPPORTED && !strstr(err.msg, "0 inputs") && !strstr(err.msg, "no images"))
		print_message("%s\n", err.msg);
	*(st ? &refused : &opened) += 1;
	dataset_free(d);
	return 0;
}

/* ONNX's own node tests, from the package libonnx-testdata */
static void published_sets_open(void **state)
{
	static const char path[] = "/usr/share/libonnx-testdata/data/node";

	(void)state;
	if (access(path, R_OK) != 0) {
		print_message("SKIPPED: %s is not there\n", path);
		skip();
	}
	nftw(path, open_published, 16, FTW_PHYS);
	print_message("%d test sets opened, %d refused\n", opened, refused);
	assert_true(opened >
		    8 * refused); /* newer ones have more of sequences and of types that we do not read */
}

static void mutations_never_crash(void **state)
{
	char *dir = temp_tree();
	struct str good[] = {
		pb_of(DT_F32, DIMS(2, 3), ramp, 24),
		BYTES("\x0a\1\2\x10\1\x22\x08\0\0\x80?\0\0\0\xc0"),
		BYTES("\x08\2\x10\6\x2a\x0b\5\xff\xff\xff\xff\xff\xff\xff\xff\xff\1"),
	};
	struct rng r;
	size_t i;

	(void)state;
	rng_seed(&r, 13);
	for (i = 0; i < 3000; i++) {
		struct err err = ERR_INIT;

		put(dir, "input_0.pb", mutated(&good[i % 3], &r));
		read_all(dir, NULL, &err);
	}
	for (i = 0; i < ARRAY_LEN(good); i++)
		str_release(&good[i]);
	remove_tree(dir);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rows_of_all_sets_are_samples),
		cmocka_unit_test(sets_without_common_rows_are_samples_themselves),
		cmocka_unit_test(elements_come_in_every_encoding),
		cmocka_unit_test(errors_name_the_file),
		cmocka_unit_test(published_sets_open),
		cmocka_unit_test(mutations_never_crash),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
