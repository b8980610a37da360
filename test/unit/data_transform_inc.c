/* The transforms that INC has beside the basic ones, against their definitions pixel by pixel. */
#include "unit/transforms.h"

#include "base/mem.h"
#include "unit/data_files.h"

static struct transform make(const char *name, enum transform_dialect dialect)
{
	struct transform t;
	struct err err = ERR_INIT;

	assert_ok(transform_init(&t, name, &err), err);
	t.dialect = dialect;
	return t;
}

#define WORD(t, key, text) set(t, key, NULL, 0, text)

static void apply(const struct transform *t, const struct tensor *src, struct buffer *dst)
{
	struct err err = ERR_INIT;

	assert_ok(transform_check(t, &err), err);
	assert_ok(transform_apply(t, src, dst, &err), err);
}

/* Bilinear interpolation of the part [top, top + h) x [left, left + w), resized to oh x ow. */
struct part {
	int64_t top, left, h, w;
};
static double bilinear(const struct tensor *t, struct part p, int64_t oy, int64_t ox, int64_t oh, int64_t ow,
		       int64_t c)
{
	double y = ((double)oy + 0.5) * (double)p.h / (double)oh - 0.5, sum = 0;
	double x = ((double)ox + 0.5) * (double)p.w / (double)ow - 0.5;
	int64_t i, k, ny, nx;

	for (i = (int64_t)floor(y); i <= (int64_t)floor(y) + 1; i++)
		for (k = (int64_t)floor(x); k <= (int64_t)floor(x) + 1; k++) {
			ny = i < 0 ? 0 : i >= p.h ? p.h - 1 : i;
			nx = k < 0 ? 0 : k >= p.w ? p.w - 1 : k;
			sum += (1 - fabs(y - (double)i)) * (1 - fabs(x - (double)k)) *
			       pixel(t, p.top + ny, p.left + nx, c);
		}
	return sum;
}

/* What of an input pixel an output pixel covers. */
static double overlap(int64_t in, int64_t out, int64_t size, int64_t out_size)
{
	double scale = (double)size / (double)out_size, low = fmax((double)in, (double)out * scale),
	       high = fmin((double)in + 1, (double)(out + 1) * scale);

	return high > low ? (high - low) / scale : 0;
}

static void area_weighs_by_overlap(void **state)
{
	static const struct {
		const char *proves;
		int64_t h, w, height, width, out_h, out_w;
	} rows[] = {
		{ "landscape: the height counts", 61, 97, 28, 28, 32, 50 },
		{ "portrait: the width counts", 97, 61, 28, 28, 50, 32 },
		{ "whole factors", 64, 64, 28, 28, 32, 32 },
		{ "87.5 % is rounded down", 300, 300, 30, 30, 34, 34 },
	};
	struct buffer out = { .cap = 0 };
	struct rng r;
	size_t i;

	(void)state;
	rng_seed(&r, 1);
	for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct tensor image = random_image(&r, i % 2 ? DT_F32 : DT_U8, rows[i].h, rows[i].w, 3);
		struct transform t = make("ResizeWithAspectRatio", DIALECT_ONNXRT);
		int64_t y, x, c, k, m;

		SET(&t, "height", (double)rows[i].height);
		SET(&t, "width", (double)rows[i].width);
		apply(&t, &image, &out);
		assert_int_equal(out.t.dims[0], rows[i].out_h);
		assert_int_equal(out.t.dims[1], rows[i].out_w);
		assert_int_equal(out.t.dtype, image.dtype);
		for (y = 0; y < rows[i].out_h; y += 7)
			for (x = 0; x < rows[i].out_w; x++)
				for (c = 0; c < 3; c++) {
					double want = 0;

					for (k = 0; k < rows[i].h; k++)
						for (m = 0; m < rows[i].w; m++)
							want += overlap(k, y, rows[i].h, rows[i].out_h) *
								overlap(m, x, rows[i].w, rows[i].out_w) *
								pixel(&image, k, m, c);
					assert_true(fabs(pixel(&out.t, y, x, c) - want) <
						    (image.dtype == DT_U8 ? 0.501 : 1e-3));
				}
		free(image.data);
	}
	buffer_release(&out);
}

/* OpenCV's rule: an output pixel that lies in one input pixel takes it as it is */
static void area_interpolates_where_it_grows(void **state)
{
	float pixels[] = { 10, 20, 40 };
	struct tensor image = { .dtype = DT_F32, .rank = 3, .dims = { 1, 3, 1 }, .data = pixels };
	static const float want[] = { 10, 10, 20, 20, 40, 40 };
	struct transform t = make("Resize", DIALECT_NONE);
	struct buffer out = { .cap = 0 };

	(void)state;
	SET(&t, "size", 2, 6);
	WORD(&t, "interpolation", "area");
	apply(&t, &image, &out);
	assert_memory_equal(out.t.data, want, sizeof(want));
	assert_memory_equal((float *)out.t.data + 6, want, sizeof(want));
	buffer_release(&out);
}

static void resize_crop_imagenet(void **state)
{
	static const double mean[] = { 0.485, 0.456, 0.406 }, std[] = { 0.229, 0.224, 0.225 };
	struct buffer out = { .cap = 0 };
	struct rng r;
	int i;

	(void)state;
	rng_seed(&r, 2);
	for (i = 0; i < 12; i++) {
		bool tf = i % 2, bgr = i % 3 == 0;
		int64_t h = 20 + (int64_t)rng_below(&r, 60), w = 20 + (int64_t)rng_below(&r, 60);
		int64_t less = h < w ? h : w, y, x, c, oh, ow;
		struct tensor image = random_image(&r, DT_U8, h, w, 3);
		struct transform t = make("ResizeCropImagenet", tf ? DIALECT_TENSORFLOW : DIALECT_ONNXRT);
		struct part all = { 0, 0, h, w };

		SET(&t, "height", 20);
		SET(&t, "width", 24);
		SET(&t, "resize_side", 32);
		SET(&t, "mean_value", mean[0], mean[1], mean[2]);
		WORD(&t, "subpixels", bgr ? "BGR" : "RGB");
		if (tf)
			SET(&t, "scale", 0.017);
		apply(&t, &image, &out);
		oh = tf ? (int64_t)rint((double)h * 32 / (double)less) : 32 * h / less;
		ow = tf ? (int64_t)rint((double)w * 32 / (double)less) : 32 * w / less;
		assert_int_equal(out.t.dims[0], tf ? 20 : 3);
		assert_int_equal(out.t.dims[1], tf ? 24 : 20);
		assert_int_equal(out.t.dims[2], tf ? 3 : 24);
		for (y = 0; y < 20; y++)
			for (x = 0; x < 24; x++)
				for (c = 0; c < 3; c++) {
					double pixel = bilinear(&image, all, y + (oh - 20) / 2,
								x + (ow - 24) / 2, oh, ow, bgr ? 2 - c : c);
					size_t to =
						(size_t)(tf ? (y * 24 + x) * 3 + c : (c * 20 + y) * 24 + x);
					double got = ((float *)out.t.data)[to];

					if (tf)
						assert_true(fabs(got - (pixel - mean[c]) * 0.017) < 1e-4);
					else /* pixels are rounded */
						assert_true(fabs(got - (pixel / 255 - mean[c]) / std[c]) <
							    0.501 / 255 / std[c]);
				}
		free(image.data);
	}
	buffer_release(&out);
}

static void bilinear_imagenet(void **state)
{
	struct buffer out = { .cap = 0 };
	struct rng r;
	int i;

	(void)state;
	rng_seed(&r, 3);
	for (i = 0; i < 8; i++) {
		int64_t h = 9 + (int64_t)rng_below(&r, 40), w = 9 + (int64_t)rng_below(&r, 40), y, x, c;
		struct tensor image = random_image(&r, DT_U8, h, w, 3);
		struct transform t = make("BilinearImagenet", DIALECT_ONNXRT);
		struct part middle = { h / 4, w / 4, h - 2 * (h / 4), w - 2 * (w / 4) };

		SET(&t, "height", 16);
		SET(&t, "width", 12);
		SET(&t, "central_fraction", 0.5);
		SET(&t, "mean_value", 0.1, 0.2, 0.3);
		SET(&t, "scale", 3);
		apply(&t, &image, &out);
		for (y = 0; y < 16; y++)
			for (x = 0; x < 12; x++)
				for (c = 0; c < 3; c++) {
					double want = bilinear(&image, middle, y, x, 16, 12, c) / 255;

					want = ((want - 0.5) * 2 - 0.1 * (double)(c + 1)) * 3;
					assert_true(fabs(pixel(&out.t, y, x, c) - want) < 1e-4);
				}
		free(image.data);
	}
	buffer_release(&out);
}

static void parts_are_cut_out(void **state)
{
	struct transform box = make("CropToBoundingBox", DIALECT_NONE),
			 resized = make("CropResize", DIALECT_NONE),
			 padded = make("PaddedCenterCrop", DIALECT_NONE);
	struct part part = { 3, 5, 10, 20 };
	struct buffer out = { .cap = 0 };
	struct tensor image;
	struct rng r;
	int64_t y, x, c;

	(void)state;
	rng_seed(&r, 4);
	image = random_image(&r, DT_U8, 31, 45, 3);
	SET(&box, "offset_height", 3);
	SET(&box, "offset_width", 5);
	SET(&box, "target_height", 10);
	SET(&box, "target_width", 20);
	apply(&box, &image, &out);
	for (y = 0; y < 10; y++)
		for (x = 0; x < 20; x++)
			for (c = 0; c < 3; c++)
				assert_true(pixel(&out.t, y, x, c) == pixel(&image, 3 + y, 5 + x, c));
	SET(&resized, "y", 3);
	SET(&resized, "x", 5);
	SET(&resized, "height", 10);
	SET(&resized, "width", 20);
	SET(&resized, "size", 8, 30);
	apply(&resized, &image, &out);
	for (y = 0; y < 8; y++)
		for (x = 0; x < 30; x++)
			assert_true(fabs(pixel(&out.t, y, x, 1) - bilinear(&image, part, y, x, 8, 30, 1)) <
				    0.501);
	SET(&padded, "size", 24);
	SET(&padded, "crop_padding", 8);
	apply(&padded, &image, &out); /* 31 * 24 / 32 = 23.25; (31 - 23 + 1) / 2 and (45 - 23 + 1) / 2 */
	assert_int_equal(out.t.dims[0], 23);
	assert_int_equal(out.t.dims[1], 23);
	for (y = 0; y < 23; y++)
		for (x = 0; x < 23; x++)
			assert_true(pixel(&out.t, y, x, 2) == pixel(&image, 4 + y, 11 + x, 2));
	buffer_release(&out);
	free(image.data);
}

static void channels_are_moved_and_made(void **state)
{
	struct transform to_tensor = make("ToTensor", DIALECT_NONE),
			 align = make("AlignImageChannel", DIALECT_NONE),
			 same = make("ToArray", DIALECT_NONE);
	struct buffer out = { .cap = 0 };
	struct tensor image, grey, rgba;
	struct rng r;
	int64_t y, x, c;

	(void)state;
	rng_seed(&r, 5);
	image = random_image(&r, DT_U8, 5, 7, 3);
	grey = random_image(&r, DT_U8, 5, 7, 1);
	rgba = random_image(&r, DT_F32, 5, 7, 4);
	apply(&to_tensor, &image, &out);
	for (c = 0; c < 3; c++)
		for (y = 0; y < 5; y++)
			for (x = 0; x < 7; x++)
				assert_true(((float *)out.t.data)[(c * 5 + y) * 7 + x] ==
					    (float)(pixel(&image, y, x, c) / 255));
	apply(&to_tensor, &rgba, &out); /* floats are not scaled */
	assert_int_equal(out.t.dims[0], 4);
	assert_true(((float *)out.t.data)[35 + 8] == (float)pixel(&rgba, 1, 1, 1));
	apply(&align, &grey, &out);
	assert_int_equal(out.t.dims[2], 3);
	assert_true(pixel(&out.t, 2, 3, 2) == pixel(&grey, 2, 3, 0));
	apply(&align, &rgba, &out);
	assert_int_equal(out.t.dims[2], 3);
	assert_true(pixel(&out.t, 2, 3, 2) == pixel(&rgba, 2, 3, 2));
	SET(&align, "dim", 1);
	apply(&align, &image, &out);
	assert_int_equal(out.t.dims[2], 1);
	assert_true(fabs(pixel(&out.t, 4, 6, 0) -
			 (0.299 * pixel(&image, 4, 6, 0) + 0.587 * pixel(&image, 4, 6, 1) +
			  0.114 * pixel(&image, 4, 6, 2))) < 0.501);
	apply(&same, &image, &out);
	assert_memory_equal(out.t.data, image.data, 5 * 7 * 3);
	buffer_release(&out);
	free(image.data);
	free(grey.data);
	free(rgba.data);
}

/* Where does the window lie in the image? -1: nowhere */
static int64_t find_window(const struct tensor *image, const struct tensor *window)
{
	int64_t top, left, y, x;

	for (top = 0; top + window->dims[0] <= image->dims[0]; top++)
		for (left = 0; left + window->dims[1] <= image->dims[1]; left++) {
			bool same = true;

			for (y = 0; y < window->dims[0] && same; y++)
				for (x = 0; x < window->dims[1] && same; x++)
					same = pixel(window, y, x, 0) == pixel(image, top + y, left + x, 0);
			if (same)
				return top * image->dims[1] + left;
		}
	return -1;
}

static void random_ones_follow_the_seed(void **state)
{
	struct transform crop = make("RandomCrop", DIALECT_NONE),
			 flip = make("RandomHorizontalFlip", DIALECT_NONE),
			 resized = make("RandomResizedCrop", DIALECT_NONE);
	struct buffer out = { .cap = 0 }, again = { .cap = 0 };
	int64_t where, first = -2, x;
	int flipped = 0, moved = 0, other = 0, i;
	struct tensor image;
	struct rng r;

	(void)state;
	rng_seed(&r, 6);
	image = random_image(&r, DT_U8, 30, 40, 3);
	SET(&crop, "size", 8, 9);
	SET(&resized, "size", 12);
	assert_true(transform_is_random(&crop) && transform_is_random(&flip));
	for (i = 0; i < 40; i++) {
		crop.seed = flip.seed = resized.seed = (uint64_t)i;
		apply(&crop, &image, &out);
		where = find_window(&image, &out.t);
		assert_true(where >= 0);
		moved += first != -2 && where != first;
		first = where;
		apply(&flip, &image, &out);
		flipped += pixel(&out.t, 3, 0, 0) != pixel(&image, 3, 0, 0);
		for (x = 0; x < 40; x++)
			assert_true(pixel(&out.t, 3, x, 0) == pixel(&image, 3, x, 0) ||
				    pixel(&out.t, 3, x, 0) == pixel(&image, 3, 39 - x, 0));
		apply(&resized, &image, &out);
		apply(&resized, &image, &again);
		assert_int_equal(out.t.dims[0], 12);
		assert_memory_equal(out.t.data, again.t.data, 12 * 12 * 3);
		resized.seed += 1000;
		apply(&resized, &image, &again);
		other += memcmp(out.t.data, again.t.data, 12 * 12 * 3) != 0;
	}
	assert_true(moved > 30 && other > 35);
	assert_true(flipped > 8 && flipped < 32);
	buffer_release(&out);
	buffer_release(&again);
	free(image.data);
}

static void resize_is_as_the_framework_has_it(void **state)
{
	static const struct {
		enum transform_dialect dialect;
		int64_t h, w;
	} rows[] = { { DIALECT_NONE, 10, 15 },
		     { DIALECT_PYTORCH, 10, 15 },
		     { DIALECT_ONNXRT, 10, 10 },
		     { DIALECT_TENSORFLOW, 10, 10 } };
	struct err err = ERR_INIT;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct tensor shape = { .dtype = DT_U8, .rank = 3, .dims = { 20, 30, 3 } };
		struct transform t = make("Resize", rows[i].dialect);

		SET(&t, "size", 10);
		assert_ok(transform_shape(&t, &shape, &err), err);
		assert_int_equal(shape.dims[0], rows[i].h);
		assert_int_equal(shape.dims[1], rows[i].w);
	}
}

static void what_does_not_fit_is_refused(void **state)
{
	static const struct {
		const char *name, *key;
		double value;
		int64_t h, w, c;
		enum dtype dtype;
		const char *want;
	} rows[] = {
		{ "ResizeCropImagenet", "resize_side", 8, 20, 20, 3, DT_U8,
		  "resize_side 8 makes it 8 x 8 pixels, need at least the 10 x 10" },
		{ "ResizeCropImagenet", NULL, 0, 20, 20, 1, DT_U8, "need 3 channels" },
		{ "CropToBoundingBox", NULL, 0, 9, 20, 3, DT_U8, "20 x 9 pixels, need at least 10 x 10" },
		{ "RandomCrop", "size", 30, 20, 40, 3, DT_U8, "40 x 20 pixels, need at least 30 x 30" },
		{ "AlignImageChannel", "dim", 4, 20, 20, 3, DT_U8, "3 channels to 4" },
		{ "ToPILImage", NULL, 0, 20, 20, 3, DT_F32, "float32, need uint8 pixels" },
		{ "BilinearImagenet", NULL, 0, 0, 20, 3, DT_U8, "0 x 20 pixels" },
	};
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct tensor shape = { .dtype = rows[i].dtype,
					.rank = 3,
					.dims = { rows[i].h, rows[i].w, rows[i].c } };
		struct transform t = make(rows[i].name, DIALECT_ONNXRT);
		struct err err = ERR_INIT;

		if (strstr(rows[i].name, "Imagenet")) {
			SET(&t, "height", 10);
			SET(&t, "width", 10);
		}
		if (strcmp(rows[i].name, "CropToBoundingBox") == 0) {
			SET(&t, "target_height", 10);
			SET(&t, "target_width", 10);
		}
		if (rows[i].key)
			SET(&t, rows[i].key, rows[i].value);
		assert_fails(transform_shape(&t, &shape, &err), FETTLE_INVALID, err, rows[i].want);
	}
}

/* Single changes against what Pillow 9.4 makes of the same pixels; hue in its 8 bits, so with more play. */
static void jitter_is_pillows(void **state)
{
	static unsigned char pixels[] = { 250, 10, 128, 3, 200, 90, 77, 77, 77, 15, 30, 220 };
	static const struct {
		const char *key;
		double factor;
		int play;
		unsigned char want[12];
	} rows[] = {
		{ "brightness", 0.6, 1, { 150, 6, 76, 1, 120, 54, 46, 46, 46, 9, 18, 132 } },
		{ "contrast", 1.5, 1, { 255, 0, 148, 0, 255, 91, 72, 72, 72, 0, 1, 255 } },
		{ "saturation", 0.3, 1, { 141, 69, 104, 91, 150, 117, 77, 77, 77, 37, 41, 98 } },
		{ "hue", 0.25, 9, { 250, 242, 11, 3, 22, 200, 77, 77, 77, 220, 16, 141 } },
	};
	const struct tensor src = { DT_U8, 3, { 2, 2, 3 }, pixels };
	struct buffer dst = { .cap = 0 };
	size_t i, k;

	(void)state;
	for (i = 0; i < ARRAY_LEN(rows); i++) {
		struct transform t = make("ColorJitter", DIALECT_ONNXRT);

		SET(&t, rows[i].key, rows[i].factor, rows[i].factor);
		assert_true(transform_is_random(&t));
		apply(&t, &src, &dst);
		for (k = 0; k < 12; k++)
			if (abs((int)tensor_get(&dst.t, k) - rows[i].want[k]) > rows[i].play)
				fail_msg("%s %zu: %g, want %d", rows[i].key, k, tensor_get(&dst.t, k),
					 rows[i].want[k]);
	}
	buffer_release(&dst);
}

/* The border of ResizeWithRatio moves boxes: a box's pixels are where the box says. */
static void boxes_move_with_the_image(void **state)
{
	struct transform t = make("ResizeWithRatio", DIALECT_ONNXRT);
	struct tensor src = { DT_U8, 3, { 10, 40, 1 }, xcalloc(400, 1) };
	struct buffer dst = { .cap = 0 };
	double box[4] = { 0.2, 0.25, 0.8, 0.5 };
	int64_t y, x, inside = 0;

	(void)state;
	for (y = 2; y < 8; y++)
		for (x = 10; x < 20; x++)
			tensor_set(&src, (size_t)(y * 40 + x), 200);
	SET(&t, "min_dim", 20);
	SET(&t, "max_dim", 81);
	WORD(&t, "padding", "true");
	assert_true(transform_moves_boxes(&t));
	apply(&t, &src, &dst);
	transform_box(&t, &src, box);
	for (y = 0; y < 81; y++)
		for (x = 0; x < 81; x++) {
			bool in = y + 0.5 > box[0] * 81 && y + 0.5 < box[2] * 81 && x + 0.5 > box[1] * 81 &&
				  x + 0.5 < box[3] * 81;

			inside += in;
			assert_true((tensor_get(&dst.t, (size_t)(y * 81 + x)) > 100) == in);
		}
	assert_int_equal(inside, 4 * 60);
	free(src.data);
	buffer_release(&dst);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(area_weighs_by_overlap),
		cmocka_unit_test(area_interpolates_where_it_grows),
		cmocka_unit_test(resize_crop_imagenet),
		cmocka_unit_test(bilinear_imagenet),
		cmocka_unit_test(parts_are_cut_out),
		cmocka_unit_test(channels_are_moved_and_made),
		cmocka_unit_test(random_ones_follow_the_seed),
		cmocka_unit_test(resize_is_as_the_framework_has_it),
		cmocka_unit_test(what_does_not_fit_is_refused),
		cmocka_unit_test(jitter_is_pillows),
		cmocka_unit_test(boxes_move_with_the_image),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
