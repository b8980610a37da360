#include "unit/transforms.h"

#include "base/mem.h"
#include "unit/data_files.h"

enum interpolation { INTERPOLATE_BILINEAR, INTERPOLATE_NEAREST, INTERPOLATE_BICUBIC };

static struct transform make(const char *name)
{
	struct transform t;
	struct err err = ERR_INIT;

	assert_ok(transform_init(&t, name, &err), err);
	return t;
}

/* The definition, pixel by pixel, in double. */
static double weight(enum interpolation how, double d)
{
	const double a = -0.75;

	d = fabs(d);
	if (how == INTERPOLATE_BILINEAR)
		return d < 1 ? 1 - d : 0;
	if (d <= 1)
		return (a + 2) * d * d * d - (a + 3) * d * d + 1;
	return d < 2 ? a * d * d * d - 5 * a * d * d + 8 * a * d - 4 * a : 0;
}

static double naive(const struct tensor *t, enum interpolation how, int64_t oy, int64_t ox, int64_t c,
		    int64_t oh, int64_t ow)
{
	double y = ((double)oy + 0.5) * (double)t->dims[0] / (double)oh - 0.5;
	double x = ((double)ox + 0.5) * (double)t->dims[1] / (double)ow - 0.5, sum = 0;
	int64_t i, j, y0 = (int64_t)floor(y), x0 = (int64_t)floor(x);

	if (how == INTERPOLATE_NEAREST)
		return pixel(t, oy * t->dims[0] / oh, ox * t->dims[1] / ow, c);
	for (i = y0 - 1; i <= y0 + 2; i++)
		for (j = x0 - 1; j <= x0 + 2; j++)
			sum += weight(how, y - (double)i) * weight(how, x - (double)j) * pixel(t, i, j, c);
	return sum;
}

static void resize_matches_its_definition(void **state)
{
	static const char *const names[] = { "bilinear", "nearest", "bicubic" };
	struct buffer out = { .cap = 0 };
	struct err err = ERR_INIT;
	struct rng r;
	int round;

	(void)state;
	rng_seed(&r, 3);
	for (round = 0; round < 120; round++) {
		enum interpolation how = (enum interpolation)(round % 3);
		enum dtype dtype = round & 1 ? DT_U8 : DT_F32;
		struct tensor in =
			random_image(&r, dtype, 1 + (int64_t)rng_below(&r, 20),
				     1 + (int64_t)rng_below(&r, 20), 1 + (int64_t)rng_below(&r, 3));
		int64_t h = 1 + (int64_t)rng_below(&r, 30), w = 1 + (int64_t)rng_below(&r, 30), y, x, c;
		struct transform t = make("Resize");
		size_t i = 0;

		SET(&t, "size", (double)h, (double)w);
		assert_ok(transform_set(&t, "interpolation", NULL, 0, names[how], &err), err);
		assert_ok(transform_apply(&t, &in, &out, &err), err);
		assert_int_equal(out.t.dtype, dtype);
		for (y = 0; y < h; y++) {
			for (x = 0; x < w; x++) {
				for (c = 0; c < in.dims[2]; c++, i++) {
					double want = naive(&in, how, y, x, c, h, w);

					if (dtype == DT_U8)
						want = fmin(fmax(want, 0), 255);
					if (fabs(tensor_get(&out.t, i) - want) >
					    (dtype == DT_U8 ? 0.5001 : 1e-3))
						fail_msg("%s %lld,%lld: %g, want %g", names[how],
							 (long long)y, (long long)x, tensor_get(&out.t, i),
							 want);
				}
			}
		}
		tensor_free(&in);
	}
	buffer_release(&out);
}

static void shapes_are_known_beforehand(void **state)
{
	static const struct {
		const char *why, *name;
		double size[2];
		size_t n;
		int64_t in[3], want[3];
	} rows[] = {
		{ "the shorter side is resized", "Resize", { 256 }, 1, { 500, 375, 3 }, { 341, 256, 3 } },
		{ "also when it is the height", "Resize", { 256 }, 1, { 375, 500, 3 }, { 256, 341, 3 } },
		{ "a square stays one", "Resize", { 8 }, 1, { 5, 5, 1 }, { 8, 8, 1 } },
		{ "both sides given", "Resize", { 10, 20 }, 2, { 500, 375, 3 }, { 10, 20, 3 } },
		{ "unknown stays unknown", "Resize", { 256 }, 1, { -1, -1, 3 }, { -1, -1, 3 } },
		{ "unknown becomes known", "Resize", { 10, 20 }, 2, { -1, -1, 3 }, { 10, 20, 3 } },
		{ "crop", "CenterCrop", { 224 }, 1, { 256, 341, 3 }, { 224, 224, 3 } },
		{ "crop of unknown", "CenterCrop", { 4, 6 }, 2, { -1, -1, 3 }, { 4, 6, 3 } },
		{ "channels first", "Transpose", { 0 }, 0, { 4, 5, 3 }, { 3, 4, 5 } },
	};
	size_t i;
	int k;

	(void)state;
	for (i = 0; i < ARRAY_LEN(rows); i++) {
		struct transform t = make(rows[i].name);
		struct tensor shape = { .dtype = DT_U8, .rank = 3 };
		struct err err = ERR_INIT;

		if (rows[i].n)
			set(&t, "size", rows[i].size, rows[i].n, NULL);
		memcpy(shape.dims, rows[i].in, sizeof(rows[i].in));
		assert_ok(transform_shape(&t, &shape, &err), err);
		for (k = 0; k < 3; k++)
			if (shape.dims[k] != rows[i].want[k])
				fail_msg("%s: dimension %d is %lld", rows[i].why, k,
					 (long long)shape.dims[k]);
	}
}

static void crop_takes_the_middle(void **state)
{
	uint8_t in[5 * 6], want[] = { 8, 9, 14, 15, 20, 21 };
	struct tensor src = { .dtype = DT_U8, .rank = 2, .dims = { 5, 6 }, .data = in };
	struct transform t = make("CenterCrop");
	struct buffer out = { .cap = 0 };
	struct err err = ERR_INIT;
	int i;

	(void)state;
	for (i = 0; i < 30; i++)
		in[i] = (uint8_t)i;
	SET(&t, "size", 3, 2);
	assert_ok(transform_apply(&t, &src, &out, &err), err);
	assert_int_equal(out.t.rank, 2);
	assert_memory_equal(out.t.data, want, sizeof(want));
	buffer_release(&out);
}

static void normalize_finds_the_channels(void **state)
{
	float in[12], *got;
	struct tensor last = { .dtype = DT_F32, .rank = 2, .dims = { 6, 2 }, .data = in };
	struct tensor first = { .dtype = DT_F32, .rank = 2, .dims = { 2, 6 }, .data = in };
	struct transform t = make("Normalize");
	struct buffer out = { .cap = 0 };
	struct err err = ERR_INIT;
	int i;

	(void)state;
	for (i = 0; i < 12; i++)
		in[i] = (float)i;
	SET(&t, "mean", 1, 2);
	SET(&t, "std", 0.5, 4);
	assert_ok(transform_check(&t, &err), err);
	assert_ok(transform_apply(&t, &last, &out, &err), err);
	got = out.t.data;
	for (i = 0; i < 12; i++)
		assert_true(got[i] == (i % 2 ? ((float)i - 2) / 4 : ((float)i - 1) / 0.5f));
	assert_ok(transform_apply(&t, &first, &out, &err), err);
	got = out.t.data;
	for (i = 0; i < 12; i++)
		assert_true(got[i] == (i >= 6 ? ((float)i - 2) / 4 : ((float)i - 1) / 0.5f));
	t = make("Normalize"); /* one number for all */
	SET(&t, "mean", 10);
	SET(&t, "std", 2);
	assert_ok(transform_apply(&t, &first, &out, &err), err);
	got = out.t.data;
	for (i = 0; i < 12; i++)
		assert_true(got[i] == ((float)i - 10) / 2);
	buffer_release(&out);
}

static void rescale_is_exact(void **state)
{
	uint8_t in[256];
	struct tensor src = { .dtype = DT_U8, .rank = 1, .dims = { 256 }, .data = in };
	struct transform t = make("Rescale");
	struct buffer out = { .cap = 0 };
	struct err err = ERR_INIT;
	int i;

	(void)state;
	for (i = 0; i < 256; i++)
		in[i] = (uint8_t)i;
	assert_ok(transform_apply(&t, &src, &out, &err), err);
	for (i = 0; i < 256; i++)
		assert_true(((float *)out.t.data)[i] == (float)i / 255.f);
	SET(&t, "scale", 2 / 255.0);
	SET(&t, "offset", -1);
	assert_ok(transform_apply(&t, &src, &out, &err), err);
	assert_true(((float *)out.t.data)[0] == -1.f);
	assert_true(fabsf(((float *)out.t.data)[255] - 1) < 1e-6f);
	buffer_release(&out);
}

static void transpose_moves_every_element(void **state)
{
	uint16_t in[24];
	struct tensor src = { .dtype = DT_U16, .rank = 3, .dims = { 2, 3, 4 }, .data = in };
	struct transform t = make("Transpose");
	struct buffer out = { .cap = 0 };
	struct err err = ERR_INIT;
	int i, j, k;

	(void)state;
	for (i = 0; i < 24; i++)
		in[i] = (uint16_t)i;
	assert_ok(transform_apply(&t, &src, &out, &err), err); /* [4, 2, 3] */
	for (i = 0; i < 4; i++)
		for (j = 0; j < 2; j++)
			for (k = 0; k < 3; k++)
				assert_int_equal(((uint16_t *)out.t.data)[(i * 2 + j) * 3 + k],
						 (j * 3 + k) * 4 + i);
	SET(&t, "perm", 1, 0, 2);
	assert_ok(transform_apply(&t, &src, &out, &err), err);
	assert_int_equal(out.t.dims[0], 3);
	assert_int_equal(((uint16_t *)out.t.data)[(2 * 2 + 1) * 4 + 3], (1 * 3 + 2) * 4 + 3);
	buffer_release(&out);
}

static void cast_saturates(void **state)
{
	float in[] = { -3.7f, 2.9f, 300 };
	uint8_t want[] = { 0, 2, 255 };
	struct tensor src = { .dtype = DT_F32, .rank = 1, .dims = { 3 }, .data = in };
	struct transform t = make("Cast");
	struct buffer out = { .cap = 0 };
	struct err err = ERR_INIT;

	(void)state;
	assert_ok(transform_set(&t, "dtype", NULL, 0, "uint8", &err), err);
	assert_ok(transform_apply(&t, &src, &out, &err), err);
	assert_memory_equal(out.t.data, want, sizeof(want));
	buffer_release(&out);
}

static void names_are_checked(void **state)
{
	static const struct {
		const char *name, *words;
	} rows[] = {
		{ "RandomErasing", "unknown, need Resize" },
		{ "Resise", "did you mean Resize?" },
		{ "centercrop", "did you mean CenterCrop?" },
		{ "ToBogus", "unknown, need Resize" },
		{ "", "unknown" },
	};
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_LEN(rows); i++) {
		struct transform t;
		struct err err = ERR_INIT;

		assert_fails(transform_init(&t, rows[i].name, &err), FETTLE_INVALID, err, rows[i].words);
	}
}

static void values_are_checked(void **state)
{
	const struct {
		const char *name, *key;
		double v[4];
		size_t n;
		const char *text, *words;
	} rows[] = {
		{ "Resize",
		  "sise",
		  { 1 },
		  1,
		  NULL,
		  "cannot set sise of Resize: no such key, did you mean size?" },
		{ "Resize", "size", { 0 }, 1, NULL, "cannot set size of Resize: 0, need a whole number" },
		{ "Resize", "size", { 1.5 }, 1, NULL, "1.5, need a whole number" },
		{ "Resize", "size", { 1e9 }, 1, NULL, "need a whole number from 1 to 32768" },
		{ "Resize", "size", { NAN }, 1, NULL, "need a finite number" },
		{ "Resize", "size", { 1, 2, 3 }, 3, NULL, "3 numbers, need 1 to 2" },
		{ "Resize", "size", { 0 }, 0, "big", "'big', need numbers" },
		{ "Resize",
		  "interpolation",
		  { 0 },
		  0,
		  "lanczos",
		  "lanczos, need bilinear, nearest, bicubic, area, lanczos3, lanczos5, gaussian or "
		  "mitchellcubic" },
		{ "Resize", "interpolation", { 2 }, 1, NULL, "a number, need bilinear" },
		{ "Normalize", "std", { 1, 0 }, 2, NULL, "0, need a positive number" },
		{ "Normalize", "mean", { 0 }, 0, NULL, "0 numbers, need 1 to 64" },
		{ "Rescale", "scale", { 1, 2 }, 2, NULL, "2 numbers, need 1" },
		{ "Transpose", "perm", { 0, 0, 1 }, 3, NULL, "0 in it, need each of 0 to 2 once" },
		{ "Transpose", "perm", { 0, 3, 1 }, 3, NULL, "3 in it" },
		{ "Transpose", "perm", { 0, -1, 1 }, 3, NULL, "-1 in it" },
		{ "Transpose", "perm", { 0, 0.5, 1 }, 3, NULL, "0.5 in it" },
		{ "Cast", "dtype", { 0 }, 0, "float33", "float33, need a numeric type" },
		{ "Cast", "dtype", { 0 }, 0, "string", "string, need a numeric type" },
		{ "Cast", "dtype", { 32 }, 1, NULL, "a number, need a numeric type" },
	};
	struct err err = ERR_INIT;
	struct transform t;
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_LEN(rows); i++) {
		t = make(rows[i].name);
		assert_fails(transform_set(&t, rows[i].key, rows[i].text ? NULL : rows[i].v, rows[i].n,
					   rows[i].text, &err),
			     FETTLE_INVALID, err, rows[i].words);
	}
	t = make("Resize");
	assert_fails(transform_check(&t, &err), FETTLE_INVALID, err, "no size, need one");
	t = make("Normalize");
	SET(&t, "mean", 1, 2, 3);
	assert_ok(transform_check(&t, &err), err); /* std is 1 */
	SET(&t, "std", 1, 2);
	assert_fails(transform_check(&t, &err), FETTLE_INVALID, err, "differ in length");
}

static void shapes_that_do_not_suit_are_refused(void **state)
{
	struct tensor flat = { .dtype = DT_U8, .rank = 1, .dims = { 5 } };
	struct tensor image = { .dtype = DT_U8, .rank = 3, .dims = { 4, 5, 6 } };
	struct tensor thin = { .dtype = DT_U8, .rank = 3, .dims = { 1, 60000, 3 } };
	struct tensor none = { .dtype = DT_U8, .rank = 3, .dims = { 0, 5, 3 } };
	struct transform t = make("Resize");
	struct err err = ERR_INIT;

	(void)state;
	SET(&t, "size", 256);
	assert_fails(transform_shape(&t, &flat, &err), FETTLE_INVALID, err, "shape [5], need [height,width");
	assert_fails(transform_shape(&t, &thin, &err), FETTLE_INVALID, err, "1 x 60000 pixels would be");
	assert_fails(transform_shape(&t, &none, &err), FETTLE_INVALID, err, "0 x 5 pixels, need 1");
	t = make("Transpose");
	assert_fails(transform_shape(&t, &flat, &err), FETTLE_INVALID, err, "shape [5], need 3 dimensions");
	t = make("Normalize");
	SET(&t, "mean", 1, 2, 3);
	SET(&t, "std", 1);
	assert_fails(transform_shape(&t, &image, &err), FETTLE_INVALID, err,
		     "shape [4,5,6], need 3 channels");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(resize_matches_its_definition),
		cmocka_unit_test(shapes_are_known_beforehand),
		cmocka_unit_test(crop_takes_the_middle),
		cmocka_unit_test(normalize_finds_the_channels),
		cmocka_unit_test(rescale_is_exact),
		cmocka_unit_test(transpose_moves_every_element),
		cmocka_unit_test(cast_saturates),
		cmocka_unit_test(names_are_checked),
		cmocka_unit_test(values_are_checked),
		cmocka_unit_test(shapes_that_do_not_suit_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
