/* Batches are handed on in their order, and their outputs stay as they are while the next batch runs. */
#include "unit/unit.h"
#include "unit/build.h"
#include "unit/data_files.h"
#include "unit/place.h"

#include <unistd.h>

#include "base/spread.h"
#include "calibrate/calibrate.h"

enum { N = 11, FAILS_AT = 3 };

struct taken {
	size_t n, batches, fails_at;
	bool stop;
};

/* sample i has x[k] = 6 i + k, z = x + 10 and y = Relu(-z), which is 0 */
static enum fettle_status take(void *self, const struct tensor *out, const struct feed_batch *b,
			       struct err *err)
{
	struct taken *t = self;
	size_t i, k;

	usleep(2000); /* the next batch has run by then */
	if (++t->batches == t->fails_at)
		return fail(err, FETTLE_INVALID, "batch %zu", t->batches);
	for (i = 0; i < b->valid; i++, t->n++) {
		assert_int_equal(b->index[i], t->n);
		for (k = 0; k < 6; k++) {
			assert_true(tensor_get(&out[0], i * 6 + k) == (double)(t->n * 6 + k + 10));
			assert_true(tensor_get(&out[1], i * 6 + k) == 0);
		}
	}
	return FETTLE_OK;
}

static bool go_on(void *self, size_t done, size_t total)
{
	const struct taken *t = self;

	assert_int_equal(total, N);
	return !t->stop || done < FAILS_AT;
}

static enum fettle_status run(size_t batch, int threads, struct taken *t, struct err *err)
{
	static const char *const values[] = { "z", "y" };
	const struct input_spec spec = { .name = "x", .dtype = DT_F32, .rank = 3, .dims = { -1, 2, 3 } };
	const struct calibrate_options opt = { .threads = threads, .progress = go_on, .self = t };
	struct str npz = sample_npz(N, false, false);
	char *data = put_file(dir, "x.npz", &npz), *path = xstrfmt("%s/m.onnx", dir);
	struct observed o = OBSERVED_INIT;
	struct dataset *set = NULL;
	struct feed *feed = NULL;
	struct model *m = NULL;
	enum fettle_status st;

	build_model(path, 13, "x:?x2x3", "t = 10.0; z = Add(x, t); n = Neg(z); y = Relu(n)", "y");
	assert_ok(model_load(&m, path, err), *err);
	assert_ok(dataset_open(&set, data, NULL, err), *err);
	assert_ok(feed_open(&feed, set, &spec, 1, &(struct feed_options){ .batch = batch }, err), *err);
	assert_ok(observed_open(&o, rt, m, values, 2, threads, err), *err);
	st = observed_run(&o, feed, &opt, take, t, err);
	assert_int_equal(o.beside, threads == 1 && spread_threads() > 1);
	observed_close(&o);
	feed_free(feed);
	dataset_free(set);
	model_free(m);
	free(path);
	free(data);
	return st;
}

static void every_batch_comes_as_it_was(void **state)
{
	static const size_t batches[] = { 1, 3, N, 100 };
	size_t i;
	int threads;

	(void)state;
	for (i = 0; i < ARRAY_LEN(batches); i++)
		for (threads = 1; threads <= 2; threads++) {
			struct taken t = { .n = 0 };
			struct err err = ERR_INIT;

			assert_ok(run(batches[i], threads, &t, &err), err);
			assert_int_equal(t.n, N);
		}
}

static void the_first_failure_ends_it(void **state)
{
	int threads;

	(void)state;
	for (threads = 1; threads <= 2; threads++) {
		struct taken t = { .fails_at = FAILS_AT }, stopped = { .stop = true },
			     last = { .fails_at = N };
		struct err err = ERR_INIT;

		assert_fails(run(1, threads, &t, &err), FETTLE_INVALID, err, "batch 3");
		assert_int_equal(t.batches, FAILS_AT);
		assert_int_equal(run(1, threads, &stopped, &err), FETTLE_STOP);
		assert_int_equal(stopped.batches, FAILS_AT);
		assert_fails(run(1, threads, &last, &err), FETTLE_INVALID, err, "batch 11");
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(every_batch_comes_as_it_was),
					    cmocka_unit_test(the_first_failure_ends_it) };

	return cmocka_run_group_tests(tests, place_open, place_close);
}
