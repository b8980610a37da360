#include "unit/unit.h"

#include "data/feed.h"
#include "unit/data_files.h"

/* One array of an npz, as a test writes it. */
struct given {
	const char *name, *descr, *shape;
	const void *data;
	size_t bytes;
};

static struct dataset *dataset_of(const char *dir, const struct given *g, size_t n)
{
	struct zip_out z = { .n = 0 };
	struct dataset *d = NULL;
	struct err err = ERR_INIT;
	struct str b;
	char *path;
	size_t i;

	for (i = 0; i < n; i++) {
		char *name = xstrfmt("%s.npy", g[i].name);

		zip_add(&z, name, npy_of(g[i].descr, false, g[i].shape, g[i].data, g[i].bytes), false);
		free(name);
	}
	b = zip_end(&z);
	path = put_file(dir, "d.npz", &b);
	assert_ok(dataset_open(&d, path, NULL, &err), err);
	free(path);
	return d;
}

static struct dataset *sample_dataset(const char *dir, size_t n)
{
	struct str b = sample_npz(n, false, false);
	char *path = put_file(dir, "d.npz", &b);
	struct dataset *d = NULL;
	struct err err = ERR_INIT;

	assert_ok(dataset_open(&d, path, NULL, &err), err);
	free(path);
	return d;
}

static const struct input_spec any_batch = { "image", DT_F32, 3, { -1, 2, 3 } };

static void check_rows(const struct feed_batch *b)
{
	size_t i, j;

	assert_int_equal(b->inputs[0].dims[0], b->n);
	assert_int_equal(b->labels.dims[0], b->valid);
	for (i = 0; i < b->n; i++) {
		size_t sample = b->index[i < b->valid ? i : b->valid - 1];

		for (j = 0; j < 6; j++)
			assert_true(tensor_get(&b->inputs[0], i * 6 + j) == (double)(sample * 6 + j));
		if (i < b->valid)
			assert_int_equal(((int64_t *)b->labels.data)[i], sample % 3);
	}
}

static void every_sample_comes_once(void **state)
{
	static const struct {
		const char *why;
		int64_t fixed;
		struct feed_options opt;
		size_t batches, samples, last_n, last_valid;
	} rows[] = {
		{ "one by one by default", -1, { 0 }, 10, 10, 1, 1 },
		{ "the last batch is smaller", -1, { .batch = 4 }, 3, 10, 2, 2 },
		{ "a batch bigger than the dataset", -1, { .batch = 1000 }, 1, 10, 10, 10 },
		{ "a limit", -1, { .batch = 4, .limit = 6 }, 2, 6, 2, 2 },
		{ "a limit beyond the end", -1, { .batch = 5, .limit = 600 }, 2, 10, 5, 5 },
		{ "no more than its bytes allow: six floats each",
		  -1,
		  { .batch = 4, .bytes = 71 },
		  5,
		  10,
		  2,
		  2 },
		{ "one sample, however large", -1, { .batch = 4, .bytes = 1 }, 10, 10, 1, 1 },
		{ "bytes that all fit into", -1, { .batch = 4, .bytes = 1 << 20 }, 3, 10, 2, 2 },
		{ "a fixed batch, whatever its bytes", 4, { .batch = 2, .bytes = 1 }, 3, 10, 4, 2 },
		{ "the model fixes the batch, the last is filled up", 4, { .batch = 2 }, 3, 10, 4, 2 },
		{ "a fixed batch bigger than the dataset", 16, { 0 }, 1, 10, 16, 10 },
		{ "shuffled", -1, { .batch = 3, .shuffle = true, .seed = 5 }, 4, 10, 1, 1 },
		{ "shuffled and limited", 2, { .limit = 3, .shuffle = true, .seed = 5 }, 2, 3, 2, 1 },
	};
	char *dir = temp_tree();
	struct dataset *d = sample_dataset(dir, 10);
	struct feed_batch b = FEED_BATCH_INIT;
	size_t i, j;

	(void)state;
	for (i = 0; i < ARRAY_LEN(rows); i++) {
		struct input_spec spec = any_batch;
		bool seen[10] = { false };
		struct feed *f = NULL;
		struct err err = ERR_INIT;
		enum fettle_status st;
		size_t samples = 0, batches = 0;

		spec.dims[0] = rows[i].fixed;
		assert_ok(feed_open(&f, d, &spec, 1, &rows[i].opt, &err), err);
		while (!(st = feed_next(f, &b, &err))) {
			check_rows(&b);
			for (j = 0; j < b.valid; j++) {
				assert_false(seen[b.index[j]]);
				seen[b.index[j]] = true;
			}
			samples += b.valid;
			batches++;
		}
		assert_int_equal(st, FETTLE_STOP);
		if (batches != rows[i].batches || samples != rows[i].samples || b.n != rows[i].last_n ||
		    b.valid != rows[i].last_valid)
			fail_msg("%s: %zu batches of %zu samples, the last %zu rows with %zu", rows[i].why,
				 batches, samples, b.n, b.valid);
		assert_int_equal(feed_batches(f), batches);
		assert_int_equal(feed_samples(f), samples);
		assert_int_equal(feed_next(f, &b, &err), FETTLE_STOP);
		feed_rewind(f);
		assert_ok(feed_next(f, &b, &err), err);
		feed_free(f);
	}
	feed_batch_release(&b);
	dataset_free(d);
	remove_tree(dir);
}

static size_t take_order(const struct dataset *d, uint64_t seed, size_t *out)
{
	struct feed_options opt = { .batch = 100, .limit = 20, .shuffle = true, .seed = seed };
	struct feed_batch b = FEED_BATCH_INIT;
	struct feed *f = NULL;
	struct err err = ERR_INIT;
	size_t n;

	assert_ok(feed_open(&f, d, &any_batch, 1, &opt, &err), err);
	assert_ok(feed_read(f, 0, &b, &err), err);
	n = b.valid;
	memcpy(out, b.index, n * sizeof(*out));
	feed_batch_release(&b);
	feed_free(f);
	return n;
}

static void the_seed_decides(void **state)
{
	char *dir = temp_tree();
	struct dataset *d = sample_dataset(dir, 100);
	size_t a[20], b[20], c[20];

	(void)state;
	assert_int_equal(take_order(d, 1, a), 20);
	take_order(d, 1, b);
	take_order(d, 2, c);
	assert_memory_equal(a, b, sizeof(a));
	assert_memory_not_equal(a, c, sizeof(a));
	dataset_free(d);
	remove_tree(dir);
}

static void samples_are_visited_in_a_given_order(void **state)
{
	static const size_t order[] = { 7, 7, 0 };
	char *dir = temp_tree();
	struct dataset *d = sample_dataset(dir, 10);
	struct feed_batch b = FEED_BATCH_INIT;
	struct feed *f = NULL;
	struct err err = ERR_INIT;

	(void)state;
	assert_ok(feed_open(&f, d, &any_batch, 1, &(struct feed_options){ .batch = 2 }, &err), err);
	assert_ok(feed_next(f, &b, &err), err);
	assert_ok(feed_set_order(f, order, 3, &err), err);
	assert_int_equal(feed_samples(f), 3);
	assert_ok(feed_next(f, &b, &err), err);
	assert_int_equal(b.index[1], 7);
	check_rows(&b);
	assert_ok(feed_next(f, &b, &err), err);
	assert_int_equal(b.index[0], 0);
	assert_int_equal(feed_next(f, &b, &err), FETTLE_STOP);
	assert_fails(feed_set_order(f, (size_t[]){ 10 }, 1, &err), FETTLE_INVALID, err,
		     "number 10, there are 10");
	assert_fails(feed_set_order(f, NULL, 0, &err), FETTLE_INVALID, err, "none, need at least one");
	feed_batch_release(&b);
	feed_free(f);
	dataset_free(d);
	remove_tree(dir);
}

static const int64_t longs[] = { 1, 2, 3, 4 };

static void arrays_find_their_inputs(void **state)
{
	static const struct {
		const char *why;
		struct given arrays[3];
		struct input_spec specs[2];
		size_t n_arrays, n_specs;
		double first[2]; /* the first value of each input */
		bool labels;
		const char *words; /* NULL: it works */
	} rows[] = {
		{ "by name, in any order",
		  { { "b", "<i8", "(2,)", longs, 16 }, { "a", "<i8", "(2,)", longs + 2, 16 } },
		  { { "a", DT_S64, 1, { -1 } }, { "b", DT_S64, 1, { -1 } } },
		  2,
		  2,
		  { 3, 1 },
		  false,
		  NULL },
		{ "x feeds the only input, others are left alone",
		  { { "b", "<i8", "(2,)", longs, 16 }, { "x", "<i8", "(2,)", longs + 2, 16 } },
		  { { "data", DT_S64, 1, { -1 } } },
		  2,
		  1,
		  { 3 },
		  false,
		  NULL },
		{ "the only array feeds the only input",
		  { { "y", "<i8", "(2,)", longs, 16 }, { "foo", "<i8", "(2,)", longs + 2, 16 } },
		  { { "data", DT_S64, 1, { -1 } } },
		  2,
		  1,
		  { 3 },
		  true,
		  NULL },
		{ "an input called y takes the array y",
		  { { "x", "<i8", "(2,)", longs, 16 }, { "y", "<i8", "(2,)", longs + 2, 16 } },
		  { { "x", DT_S64, 1, { -1 } }, { "y", DT_S64, 1, { -1 } } },
		  2,
		  2,
		  { 1, 3 },
		  false,
		  NULL },
		{ "y is the label before labels",
		  { { "labels", "<i8", "(2,)", longs, 16 },
		    { "y", "<i8", "(2,)", longs, 16 },
		    { "x", "<i8", "(2,)", longs, 16 } },
		  { { "x", DT_S64, 1, { -1 } } },
		  3,
		  1,
		  { 1 },
		  true,
		  NULL },
		{ "a missing array",
		  { { "b", "<i8", "(2,)", longs, 16 }, { "y", "<i8", "(2,)", longs, 16 } },
		  { { "a", DT_S64, 1, { -1 } }, { "b", DT_S64, 1, { -1 } } },
		  2,
		  2,
		  { 0 },
		  false,
		  "cannot feed input 'a'" },
		{ "what there is, is listed",
		  { { "b", "<i8", "(2,)", longs, 16 }, { "c", "<i8", "(2,)", longs, 16 } },
		  { { "a", DT_S64, 1, { -1 } } },
		  2,
		  1,
		  { 0 },
		  false,
		  "no array of that name, there are: b, c" },
		{ "too few dimensions",
		  { { "x", "<i8", "(2,)", longs, 16 } },
		  { { "x", DT_S64, 2, { -1, 1 } } },
		  1,
		  1,
		  { 0 },
		  false,
		  "array 'x' has shape [-1], need [-1,1]" },
		{ "a dimension of the wrong size",
		  { { "x", "<i8", "(2, 2)", longs, 32 } },
		  { { "x", DT_S64, 2, { -1, 3 } } },
		  1,
		  1,
		  { 0 },
		  false,
		  "has shape [-1,2], need [-1,3]" },
		{ "inputs that fix different batches",
		  { { "a", "<i8", "(2,)", longs, 16 }, { "b", "<i8", "(2,)", longs, 16 } },
		  { { "a", DT_S64, 1, { 1 } }, { "b", DT_S64, 1, { 2 } } },
		  2,
		  2,
		  { 0 },
		  false,
		  "its first dimension is 2, need that of a batch, as in input a" },
	};
	char *dir = temp_tree();
	size_t i, j;

	(void)state;
	for (i = 0; i < ARRAY_LEN(rows); i++) {
		struct dataset *d = dataset_of(dir, rows[i].arrays, rows[i].n_arrays);
		struct feed_batch b = FEED_BATCH_INIT;
		struct feed *f = NULL;
		struct err err = ERR_INIT;
		enum fettle_status st = feed_open(&f, d, rows[i].specs, rows[i].n_specs, NULL, &err);

		if (rows[i].words && (!st || !strstr(err.msg, rows[i].words)))
			fail_msg("%s: status %d, %s", rows[i].why, (int)st, err.msg);
		if (!rows[i].words) {
			assert_ok(st, err);
			assert_ok(feed_next(f, &b, &err), err);
			for (j = 0; j < b.n_inputs; j++)
				if (tensor_get(&b.inputs[j], 0) != rows[i].first[j])
					fail_msg("%s: input %zu is %g", rows[i].why, j,
						 tensor_get(&b.inputs[j], 0));
			assert_int_equal(feed_has_labels(f), rows[i].labels);
			assert_int_equal(b.labels.data != NULL, rows[i].labels);
		}
		feed_batch_release(&b);
		feed_free(f);
		dataset_free(d);
	}
	remove_tree(dir);
}

static void types_convert_only_without_loss(void **state)
{
	const struct {
		const char *descr;
		const void *data;
		size_t size;
		enum dtype to;
		double want;
		const char *words;
	} rows[] = {
		{ "<f8", (double[]){ 0, 0.1 }, 8, DT_F32, 0.1f, NULL },
		{ "<f8", (double[]){ 0, 1e300 }, 8, DT_F32, 0,
		  "has 1.0000000000000001e+300 in sample 1, which float32 cannot hold" },
		{ "|u1", (uint8_t[]){ 0, 200 }, 1, DT_F32, 200, NULL },
		{ "|b1", (uint8_t[]){ 0, 9 }, 1, DT_S64, 1, NULL },
		{ "<i4", (int32_t[]){ 0, -5 }, 4, DT_S64, -5, NULL },
		{ "<i8", (int64_t[]){ 0, -5 }, 8, DT_S32, -5, NULL },
		{ "<i8", (int64_t[]){ 0, INT64_C(1) << 31 }, 8, DT_S32, 0,
		  "has 2147483648 in sample 1, which int32 cannot hold" },
		{ "<u8", (uint64_t[]){ 0, UINT64_C(1) << 62 }, 8, DT_S64, 0x1p62, NULL },
		{ "<u8", (uint64_t[]){ 0, UINT64_C(1) << 63 }, 8, DT_S64, 0, "which int64 cannot hold" },
		{ "<i8", longs, 8, DT_F32, 0, "array 'x' is int64, need float32" },
		{ "<f4", longs, 4, DT_S64, 0, "array 'x' is float32, need int64" },
		{ "<f4", longs, 4, DT_F16, 0, "array 'x' is float32, need float16" },
		{ "|u1", longs, 1, DT_BOOL, 0, "array 'x' is uint8, need bool" },
	};
	char *dir = temp_tree();
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_LEN(rows); i++) {
		const struct given x = { "x", rows[i].descr, "(2,)", rows[i].data, 2 * rows[i].size };
		const struct input_spec spec = { "x", rows[i].to, 1, { -1 } };
		struct dataset *d = dataset_of(dir, &x, 1);
		struct feed_batch b = FEED_BATCH_INIT;
		struct feed *f = NULL;
		struct err err = ERR_INIT;
		enum fettle_status st =
			feed_open(&f, d, &spec, 1, &(struct feed_options){ .batch = 2 }, &err);

		if (!st)
			st = feed_next(f, &b, &err);
		if (rows[i].words) {
			assert_fails(st, FETTLE_INVALID, err, rows[i].words);
		} else {
			assert_ok(st, err);
			assert_int_equal(b.inputs[0].dtype, rows[i].to);
			assert_true(tensor_get(&b.inputs[0], 1) == rows[i].want);
		}
		feed_batch_release(&b);
		feed_free(f);
		dataset_free(d);
	}
	remove_tree(dir);
}

static void labels_are_delivered_as_they_are(void **state)
{
	const struct {
		const char *descr;
		const void *data;
		size_t size;
		enum dtype as;
		double want; /* of the second */
	} rows[] = {
		{ "<i4", (int32_t[]){ 0, -7 }, 4, DT_S64, -7 },
		{ "|u1", (uint8_t[]){ 0, 255 }, 1, DT_S64, 255 },
		{ "<u8", (uint64_t[]){ 0, UINT64_MAX }, 8, DT_S64, 0x1p63 }, /* saturates */
		{ "<f4", (float[]){ 0, 2.5f }, 4, DT_F64, 2.5 },
		{ "<f4", (float[]){ 0, NAN }, 4, DT_F64, NAN },
	};
	char *dir = temp_tree();
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_LEN(rows); i++) {
		const struct given g[] = { { "x", "<i8", "(2,)", longs, 16 },
					   { "label", rows[i].descr, "(2,)", rows[i].data,
					     2 * rows[i].size } };
		const struct input_spec spec = { "x", DT_S64, 1, { 3 } };
		struct dataset *d = dataset_of(dir, g, 2);
		struct feed_batch b = FEED_BATCH_INIT;
		struct feed *f = NULL;
		struct err err = ERR_INIT;
		double got;

		assert_ok(feed_open(&f, d, &spec, 1, NULL, &err), err);
		assert_ok(feed_next(f, &b, &err), err);
		assert_int_equal(b.labels.dtype, rows[i].as);
		assert_int_equal(b.labels.dims[0], 2); /* no padding */
		got = tensor_get(&b.labels, 1);
		assert_true(isnan(rows[i].want) ? isnan(got) : fabs(got - rows[i].want) <= 1024);
		feed_batch_release(&b);
		feed_free(f);
		dataset_free(d);
	}
	remove_tree(dir);
}

static void put(const char *dir, const char *name, struct str b)
{
	free(put_file(dir, name, &b));
}

static void test_sets_feed_by_position(void **state)
{
	static const float ramp[] = { 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11 };
	const struct input_spec mul[] = { { "A", DT_F32, 2, { -1, 3 } }, { "B", DT_F32, 2, { 3, -1 } } };
	const struct input_spec fixed[] = { { "A", DT_F32, 2, { 2, 3 } }, { "B", DT_F32, 2, { 2, 2 } } };
	char *dir = temp_tree();
	struct dataset *d = NULL;
	struct feed_batch b = FEED_BATCH_INIT;
	struct feed *f = NULL;
	struct err err = ERR_INIT;

	(void)state;
	put(dir, "test_data_set_0/input_0.pb", pb_of(DT_F32, DIMS(2, 3), ramp, 24));
	put(dir, "test_data_set_0/input_1.pb", pb_of(DT_F32, DIMS(3, 2), ramp, 24));
	put(dir, "test_data_set_0/output_0.pb", pb_of(DT_F32, DIMS(2, 2), ramp, 16));
	put(dir, "test_data_set_1/input_0.pb", pb_of(DT_F32, DIMS(1, 3), ramp, 12));
	put(dir, "test_data_set_1/input_1.pb", pb_of(DT_F32, DIMS(3, 4), ramp, 48));
	put(dir, "test_data_set_1/output_0.pb", pb_of(DT_F32, DIMS(1, 4), ramp, 16));
	assert_ok(dataset_open(&d, dir, NULL, &err), err);
	assert_ok(feed_open(&f, d, mul, 2, &(struct feed_options){ .batch = 8 }, &err), err);
	assert_int_equal(feed_batches(f), 2);
	assert_ok(feed_next(f, &b, &err), err);
	assert_ok(feed_next(f, &b, &err), err);
	assert_int_equal(b.inputs[1].dims[1], 4);
	assert_int_equal(b.n_outputs, 1);
	assert_int_equal(b.outputs[0].dims[1], 4);
	feed_free(f);
	f = NULL;
	assert_fails(feed_open(&f, d, fixed, 2, NULL, &err), FETTLE_INVALID, err,
		     "array 'input_1' has shape [3,-1], need [2,2]");
	assert_fails(feed_open(&f, d, mul, 1, NULL, &err), FETTLE_INVALID, err, "2 inputs, need 1");
	dataset_free(d);
	d = NULL;

	/* rows: a set of two and a model that wants two at once */
	remove_tree(xstrfmt("%s/test_data_set_1", dir));
	put(dir, "test_data_set_0/input_1.pb", pb_of(DT_F32, DIMS(2, 2), ramp, 16));
	assert_ok(dataset_open(&d, dir, NULL, &err), err);
	assert_ok(feed_open(&f, d, fixed, 2, NULL, &err), err);
	assert_ok(feed_next(f, &b, &err), err);
	assert_memory_equal(b.inputs[0].data, ramp, 24);
	assert_memory_equal(b.outputs[0].data, ramp, 16);
	feed_batch_release(&b);
	feed_free(f);
	dataset_free(d);
	remove_tree(dir);
}

static void images_without_transforms_get_a_hint(void **state)
{
	const struct input_spec net = { "data", DT_F32, 4, { -1, 3, 8, 8 } },
				hwc = { "data", DT_F32, 4, { -1, -1, -1, 3 } };
	char *dir = temp_tree();
	struct dataset *d = NULL;
	struct feed_batch b = FEED_BATCH_INIT;
	struct feed *f = NULL;
	struct err err = ERR_INIT;

	(void)state;
	put(dir, "a/1.png", png_of(8, 8, PNG_COLOR_TYPE_RGB, 8, false));
	assert_ok(dataset_open(&d, dir, NULL, &err), err);
	assert_fails(feed_open(&f, d, &net, 1, NULL, &err), FETTLE_INVALID, err,
		     "add transforms such as Resize");
	assert_ok(feed_open(&f, d, &hwc, 1, NULL, &err), err);
	assert_ok(feed_next(f, &b, &err), err);
	assert_true(((float *)b.inputs[0].data)[0] == pixel_at(0, 0, 0));
	assert_int_equal(((int64_t *)b.labels.data)[0], 0);
	feed_batch_release(&b);
	feed_free(f);
	dataset_free(d);
	remove_tree(dir);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_sample_comes_once),
		cmocka_unit_test(the_seed_decides),
		cmocka_unit_test(samples_are_visited_in_a_given_order),
		cmocka_unit_test(arrays_find_their_inputs),
		cmocka_unit_test(types_convert_only_without_loss),
		cmocka_unit_test(labels_are_delivered_as_they_are),
		cmocka_unit_test(test_sets_feed_by_position),
		cmocka_unit_test(images_without_transforms_get_a_hint),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
