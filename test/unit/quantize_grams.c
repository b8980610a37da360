/* What matrices are applied to, in one sweep, against a loop over all rows; without what pads a batch. */
#include "unit/unit.h"
#include "unit/build.h"
#include "unit/data_files.h"
#include "unit/place.h"

#include "base/file.h"
#include "quantize/blocks.h"
#include "quantize/grams.h"

/* x[i] counts up from 0 in [n, 2, 3]; z = x / 10 - 2; rows of z are what matrices would see */
static void check(const char *shape, size_t batch)
{
	enum { N = 7, K = 3 };
	static const struct gram_input want[] = { { "z", K, false },
						  { "f", 2 * K, false },
						  { "z", K, false } };
	struct input_spec spec = { .name = "x", .dtype = DT_F32, .rank = 3, .dims = { -1, 2, 3 } };
	struct feed_options fo = { .batch = batch };
	struct dataset *set = NULL;
	struct feed *feed = NULL;
	struct model *m = NULL;
	struct grams *g = NULL;
	struct str npz = sample_npz(N, false, false);
	struct err err = ERR_INIT;
	char *data = put_file(dir, "x.npz", &npz), *path = xstrfmt("%s/m.onnx", dir);
	size_t w, i, k, r;

	build_model(path, 13, shape,
		    "a = 0.1; b = -2.0; t = Mul(x, a); z = Add(t, b); f = Flatten(z); y = Relu(f)", "y");
	assert_ok(model_load(&m, path, &err), err);
	spec.dims[0] = m->inputs[0].type.dims[0];
	assert_ok(dataset_open(&set, data, NULL, &err), err);
	assert_ok(feed_open(&feed, set, &spec, 1, &fo, &err), err);
	assert_ok(grams_observe(&g, &(struct calibrate_on){ rt, m, feed }, want, ARRAY_LEN(want),
				&(struct calibrate_options){ .threads = 1 }, &err),
		  err);
	for (w = 0; w < 2; w++) {
		const size_t n = (size_t)want[w].inputs, rows = N * 6 / n;
		const struct block_seen *s = grams_find(g, &want[w]);

		assert_int_equal(s->rows, rows);
		for (i = 0; i < n; i++)
			for (k = 0; k < n; k++) {
				double sum = 0, abs = 0;

				for (r = 0; r < rows; r++) {
					const double a = (double)(r * n + i) / 10 - 2,
						     b = (double)(r * n + k) / 10 - 2;

					sum += a * b;
					abs += fabs(a);
				}
				assert_true(fabs(s->gram[i * n + k] - sum / (double)rows) < 1e-5);
				assert_true(fabs(s->mean_abs[i] - abs / (double)rows) < 1e-5);
			}
	}
	assert_null(grams_find(g, &(struct gram_input){ "y", 6, false }));
	grams_free(g);
	g = NULL;
	assert_int_equal(grams_observe(&g, &(struct calibrate_on){ rt, m, feed },
				       &(struct gram_input){ "z", 5, false }, 1,
				       &(struct calibrate_options){ .threads = 1 }, &err),
			 FETTLE_INVALID);
	assert_null(g);
	feed_free(feed);
	dataset_free(set);
	model_free(m);
	free(data);
	free(path);
}

static void sums_are_those_of_all_rows(void **state)
{
	(void)state;
	check("x:?x2x3", 3);
	check("x:?x2x3", 7);
	check("x:4x2x3", 4); /* the last batch is padded */
}

/* a file gives back what was put there, and nothing when it is damaged */
static void files_hold_weights(void **state)
{
	struct block_store *a = block_store_new(), *b;
	const struct block_setting how = { { 4, 16, false }, BLOCK_RTN, 4 };
	struct err err = ERR_INIT;
	struct model *m = NULL;
	char *model = xstrfmt("%s/w.onnx", dir), *path = xstrfmt("%s/weight", dir), *key;
	const struct block_packed *x, *y;
	struct bytes raw = BYTES_INIT;
	size_t n;

	(void)state;
	build_model(model, 13, "x:?x40", "w = 40x6; y = MatMul(x, w)", "y");
	assert_ok(model_load(&m, model, &err), err);
	key = block_key(m->nodes.v[0], &how);
	assert_ok(block_store_make(a, m, m->nodes.v[0], &how, NULL, &err), err);
	assert_ok(block_store_save(a, key, path, &err), err);
	b = block_store_new();
	assert_ok(block_store_load(b, key, path, &err), err);
	x = block_store_find(a, key);
	y = block_store_find(b, key);
	assert_memory_equal(x->codes.data, y->codes.data, tensor_bytes(&x->codes));
	assert_memory_equal(x->scales.data, y->scales.data, tensor_bytes(&x->scales));
	assert_memory_equal(x->zeros.data, y->zeros.data, tensor_bytes(&x->zeros));
	assert_int_equal(block_store_load(b, "another", path, &err), FETTLE_INVALID);
	assert_ok(file_map(path, &raw, &err), err);
	for (n = 0; n < raw.n; n++) {
		assert_ok(file_write(model, raw.p, n, &err), err);
		assert_int_not_equal(block_store_load(b, key, model, &err), FETTLE_OK);
	}
	bytes_release(&raw);
	block_store_free(a);
	block_store_free(b);
	model_free(m);
	free(key);
	free(path);
	free(model);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(sums_are_those_of_all_rows),
					    cmocka_unit_test(files_hold_weights) };

	return cmocka_run_group_tests(tests, place_open, place_close);
}
