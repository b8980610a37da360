/* Means of channels over a feed: of inputs and inner values, along several axes, without what pads a batch. */
#include "unit/unit.h"
#include "unit/build.h"
#include "unit/data_files.h"
#include "unit/place.h"

#include "calibrate/means.h"

static struct feed *open_feed(struct model *m, const char *data, size_t batch, struct dataset **set)
{
	struct input_spec spec = { .name = "x", .dtype = DT_F32, .rank = 3, .dims = { -1, 2, 3 } };
	struct feed_options fo = { .batch = batch };
	struct feed *feed = NULL;
	struct err err = ERR_INIT;

	spec.dims[0] = m->inputs[0].type.dims[0];
	assert_ok(dataset_open(set, data, NULL, &err), err);
	assert_ok(feed_open(&feed, *set, &spec, 1, &fo, &err), err);
	return feed;
}

/* against a loop over all there is: z[i] = i + 10, in [7, 2, 3] */
static void check_extremes(struct model *m, struct feed *feed)
{
	static const struct channel_axis want[] = { { "z", 1, 2, 0 }, { "z", -1, 3, 4 }, { "f", 1, 6, 0 } };
	static const size_t inner[] = { 3, 1, 1 };
	struct channel_means *c = NULL;
	struct channel_extremes x;
	struct err err = ERR_INIT;
	size_t w, k, i;

	assert_ok(calibrate_extremes(&c, &(struct calibrate_on){ rt, m, feed }, want, ARRAY_LEN(want),
				     &(struct calibrate_options){ .threads = 1 }, &err),
		  err);
	for (w = 0; w < ARRAY_LEN(want); w++) {
		assert_ok(channel_extremes_get(c, want[w].value, want[w].axis, want[w].channels, &x, &err),
			  err);
		assert_int_equal(x.samples, 7);
		assert_int_equal(x.count, 42 / want[w].channels);
		for (k = 0; k < want[w].channels; k++) {
			double min = 1e9, max = -1e9, power = 0;

			for (i = 0; i < 42; i++)
				if (i / inner[w] % want[w].channels == k) {
					min = fmin(min, (double)i + 10);
					max = fmax(max, (double)i + 10);
					power += ((double)i + 10) * ((double)i + 10) / (double)x.count;
				}
			assert_true(x.min[k] == min && x.max[k] == max);
			assert_true(fabs(x.power[k] - power) < 1e-4 * power);
		}
		assert_int_equal(x.n_rows, want[w].rows);
		for (i = 0; i < x.n_rows; i++) { /* z counts on within a row, and rows begin at 10 + 3 n */
			const float *row = x.rows + i * want[w].channels;

			assert_true(row[0] >= 10 && row[0] < 52 && fmod(row[0] - 10, 3) == 0);
			assert_true(row[1] == row[0] + 1 && row[2] == row[0] + 2);
			for (k = 0; k < i; k++)
				assert_true(x.rows[k * want[w].channels] != row[0]);
		}
	}
	channel_means_free(c);
}

/* x[i] counts up from 0 in [n, 2, 3]; z = x + 10 */
static void check_means(const struct channel_means *c)
{
	struct err err = ERR_INIT;
	double got[6];
	size_t k;

	/* sample i begins at 6 i, on average at 18 */
	assert_ok(channel_means_get(c, "x", 1, 2, got, &err), err);
	for (k = 0; k < 2; k++)
		assert_true(fabs(got[k] - (18 + 3.0 * (double)k + 1)) < 1e-9);
	assert_ok(channel_means_get(c, "z", 1, 2, got, &err), err);
	for (k = 0; k < 2; k++)
		assert_true(fabs(got[k] - (28 + 3.0 * (double)k + 1)) < 1e-9);
	assert_ok(channel_means_get(c, "z", -1, 3, got, &err), err);
	for (k = 0; k < 3; k++)
		assert_true(fabs(got[k] - (28 + (double)k + 1.5)) < 1e-9);
	assert_ok(channel_means_get(c, "f", -1, 6, got, &err), err);
	for (k = 0; k < 6; k++)
		assert_true(fabs(got[k] - (28 + (double)k)) < 1e-9);
}

/* With a calibration, and by a sweep that has the same outputs: to the same bits. What is calibrated is so as without. */
static void check_beside(struct model *m, struct feed *feed, const struct channel_axis *want, size_t n)
{
	static const char *const values[] = { "y", "z" };
	const struct calibrate_on on = { rt, m, feed };
	struct calibrate_options o = { .threads = 1 };
	struct channel_means *beside = channel_means_new(want, n, values, 2),
			     *alone = channel_means_new(want, n, values, 2);
	const struct calibrate_watch watch = channel_means_watch(beside);
	struct calibration *with = NULL, *without = NULL;
	struct err err = ERR_INIT;
	double a[6], b[6];
	size_t i;

	assert_ok(calibrate(&without, &on, values, 2, &o, &err), err);
	assert_ok(channel_means_sweep(alone, &on, &o, &err), err);
	o.watch = &watch;
	assert_ok(calibrate(&with, &on, values, 2, &o, &err), err);
	assert_ok(channel_means_finish(beside, &err), err);
	check_means(beside);
	for (i = 0; i < n; i++) {
		assert_ok(channel_means_get(beside, want[i].value, want[i].axis, want[i].channels, a, &err),
			  err);
		assert_ok(channel_means_get(alone, want[i].value, want[i].axis, want[i].channels, b, &err),
			  err);
		assert_memory_equal(a, b, want[i].channels * sizeof(*a));
	}
	assert_null(calibration_find(with, "f"));
	for (i = 0; i < 2; i++) {
		const struct observer *x = calibration_find(with, values[i]),
				      *y = calibration_find(without, values[i]);

		assert_true(x->min == y->min && x->max == y->max && x->sum == y->sum && x->count == y->count);
		assert_memory_equal(x->bins, y->bins, sizeof(x->bins));
	}
	calibration_free(with);
	calibration_free(without);
	channel_means_free(alone);
	channel_means_free(beside);
}

static void check(const char *shape, size_t batch)
{
	enum { N = 7 };
	static const struct channel_axis want[] = {
		{ "x", 1, 2, 0 }, { "z", 1, 2, 0 }, { "z", -1, 3, 0 }, { "f", -1, 6, 0 }
	};
	struct calibrate_options o = { .threads = 1 };
	struct channel_means *c = NULL;
	struct dataset *set = NULL;
	struct model *m = NULL;
	struct feed *feed;
	struct str npz = sample_npz(N, false, false);
	struct err err = ERR_INIT;
	char *data = put_file(dir, "x.npz", &npz), *path = xstrfmt("%s/m.onnx", dir);
	struct channel_extremes x;
	double got[6];

	build_model(path, 13, shape, "t = 10.0; z = Add(x, t); f = Flatten(z); y = Relu(f)", "y");
	assert_ok(model_load(&m, path, &err), err);
	feed = open_feed(m, data, batch, &set);
	assert_ok(calibrate_means(&c, &(struct calibrate_on){ rt, m, feed }, want, ARRAY_LEN(want), &o, &err),
		  err);
	check_means(c);
	assert_int_equal(channel_means_get(c, "y", -1, 6, got, &err), FETTLE_INVALID);
	assert_int_equal(channel_means_get(c, "z", 1, 3, got, &err), FETTLE_INVALID);
	assert_int_equal(channel_extremes_get(c, "z", 1, 2, &x, &err),
			 FETTLE_INVALID); /* not in this sweep */
	channel_means_free(c);
	check_beside(m, feed, want, ARRAY_LEN(want));
	check_extremes(m, feed);
	c = NULL;
	assert_int_equal(calibrate_means(&c, &(struct calibrate_on){ rt, m, feed },
					 &(struct channel_axis){ "z", 1, 5, 0 }, 1, &o, &err),
			 FETTLE_INVALID);
	assert_null(c);
	assert_non_null(strstr(err.msg, "5 channels"));
	assert_ok(calibrate_means(&c, &(struct calibrate_on){ rt, m, feed }, NULL, 0, &o, &err), err);
	channel_means_free(c);
	feed_free(feed);
	dataset_free(set);
	model_free(m);
	free(path);
	free(data);
}

static void means_of_channels(void **state)
{
	(void)state;
	check("x:?x2x3", 1);
	check("x:?x2x3", 3);
	check("x:?x2x3", 100);
	check("x:4x2x3", 4); /* the second batch has one that only pads */
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(means_of_channels) };

	return cmocka_run_group_tests(tests, place_open, place_close);
}
