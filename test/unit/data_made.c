/* What is made of a language model's inputs and labels where the data has none. */
#include "unit/unit.h"

#include "data/feed.h"
#include "unit/data_files.h"

static const int64_t ids[] = { 5, 6, 7, 8, /**/ 1, 2, 3, 4, /**/ 9, 9, 8, 8 },
		     mask[] = { 1, 1, 1, 1, /**/ 0, 1, 1, 1, /**/ 1, 1, 0, 0 },
		     marks[] = { 1, 2, -100, 4, 5, 6, 7, 8, 9, 1, 2, 3 };

static struct dataset *tokens(const char *dir, bool with_mask, bool with_labels, const char *name)
{
	struct zip_out z = { .n = 0 };
	struct dataset *d = NULL;
	struct err err = ERR_INIT;
	char *file = xstrfmt("%s.npy", name), *path;
	struct str b;

	zip_add(&z, file, npy_of("<i8", false, "(3, 4)", ids, sizeof(ids)), false);
	if (with_mask)
		zip_add(&z, "attention_mask.npy", npy_of("<i8", false, "(3, 4)", mask, sizeof(mask)), false);
	if (with_labels)
		zip_add(&z, "y.npy", npy_of("<i8", false, "(3, 4)", marks, sizeof(marks)), false);
	b = zip_end(&z);
	path = put_file(dir, "d.npz", &b);
	assert_ok(dataset_open(&d, path, NULL, &err), err);
	free(path);
	free(file);
	return d;
}

static const struct input_spec gpt[] = { { "input_ids", DT_S64, 2, { -1, -1 } },
					 { "attention_mask", DT_F32, 2, { -1, -1 } },
					 { "position_ids", DT_S64, 2, { -1, -1 } },
					 { "token_type_ids", DT_S32, 2, { -1, 4 } },
					 { "past_key_values.0.key", DT_F32, 4, { -1, 12, -1, 64 } },
					 { "past_0", DT_F16, 5, { 2, -1, 12, -1, 64 } } };

static void inputs_are_made(void **state)
{
	char *dir = temp_tree();
	struct dataset *d = tokens(dir, false, false, "x");
	struct feed_batch b = FEED_BATCH_INIT;
	struct feed *f = NULL, *twin;
	struct err err = ERR_INIT;
	size_t i;

	(void)state;
	assert_ok(feed_open(&f, d, gpt, ARRAY_LEN(gpt), &(struct feed_options){ .batch = 2 }, &err), err);
	assert_true(feed_field(f, 0) && !feed_field(f, 1) && feed_tokens(f) == 0 && !feed_has_labels(f));
	assert_int_equal(feed_made(f, 2), MADE_POSITIONS);
	assert_string_equal(made_text(feed_made(f, 5)), "an empty past");
	twin = feed_twin(f);
	feed_free(f);
	assert_ok(feed_next(twin, &b, &err), err);
	assert_ok(feed_next(twin, &b, &err), err); /* the last has one row */
	assert_null(b.labels.data);
	assert_int_equal(b.inputs[1].dtype, DT_F32);
	for (i = 0; i < 4; i++) {
		assert_true(tensor_get(&b.inputs[1], i) == 1);
		assert_true(tensor_get(&b.inputs[2], i) == (double)i);
		assert_true(tensor_get(&b.inputs[3], i) == 0);
	}
	assert_true(b.inputs[4].dims[0] == 1 && b.inputs[4].dims[1] == 12 && b.inputs[4].dims[2] == 0 &&
		    b.inputs[4].dims[3] == 64);
	assert_true(b.inputs[5].dims[0] == 2 && b.inputs[5].dims[1] == 1 && b.inputs[5].dims[3] == 0);
	feed_batch_release(&b);
	feed_free(twin);
	dataset_free(d);
	remove_tree(dir);
}

static void one_token_after_a_past(void **state)
{
	const struct made_size size = { .n = 2, .past = 3, .tokens = 1 };
	static const int64_t want[ARRAY_LEN(gpt)][5] = { { 0 },    { 2, 4 },         { 2, 1 },
							 { 2, 1 }, { 2, 12, 3, 64 }, { 2, 2, 12, 3, 64 } };
	struct buffer b = { .cap = 0 };
	struct err err = ERR_INIT;
	size_t i;

	(void)state;
	for (i = 1; i < ARRAY_LEN(gpt); i++) {
		struct input_spec spec = gpt[i];

		if (made_rule_of(&spec) == MADE_TYPES)
			spec.dims[1] = -1;
		assert_ok(made_fill(&b, made_rule_of(&spec), &spec, &size, NULL, &err), err);
		assert_memory_equal(b.t.dims, want[i], sizeof(int64_t) * (size_t)spec.rank);
		if (made_rule_of(&spec) == MADE_POSITIONS)
			assert_true(tensor_get(&b.t, 0) == 3 && tensor_get(&b.t, 1) == 3);
	}
	buffer_release(&b);
}

static void no_rule_no_input(void **state)
{
	static const struct {
		const char *why;
		struct input_spec odd;
		const char *words;
	} rows[] = {
		{ "no known name",
		  { "cache", DT_F32, 4, { -1, 12, -1, 64 } },
		  "cannot feed input 'cache' from" },
		{ "a past whose shape says too little",
		  { "past_key", DT_F32, 4, { -1, -1, -1, 64 } },
		  "cannot feed input 'past_key' from" },
		{ "a past of fixed length",
		  { "past_key", DT_F32, 4, { 1, 12, 8, 64 } },
		  "cannot feed input" },
		{ "positions of three dimensions",
		  { "position_ids", DT_S64, 3, { 3, -1, -1 } },
		  "cannot feed input 'position_ids'" },
		{ "a mask that would be too short",
		  { "attention_mask", DT_S64, 2, { -1, 16 } },
		  "cannot make input 'attention_mask' (ones), which the data lacks: it would be [3,4], need "
		  "[-1,16]" },
	};
	char *dir = temp_tree();
	struct dataset *d = tokens(dir, false, false, "input_ids");
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_LEN(rows); i++) {
		const struct input_spec specs[] = { gpt[0], rows[i].odd };
		struct feed_batch b = FEED_BATCH_INIT;
		struct feed *f = NULL;
		struct err err = ERR_INIT;
		enum fettle_status st =
			feed_open(&f, d, specs, 2, &(struct feed_options){ .batch = 3 }, &err);

		if (!st)
			st = feed_next(f, &b, &err);
		if (st != FETTLE_INVALID || !strstr(err.msg, rows[i].words))
			fail_msg("%s: '%s'", rows[i].why, err.msg);
		feed_batch_release(&b);
		feed_free(f);
	}
	dataset_free(d);
	remove_tree(dir);
}

static void labels_are_the_next_tokens(void **state)
{
	static const struct {
		const char *why;
		bool mask, labels;
		int64_t want[12], positions[12];
	} rows[] = {
		{ "shifted by one",
		  false,
		  false,
		  { 6, 7, 8, -100, 2, 3, 4, -100, 9, 8, 8, -100 },
		  { 0, 1, 2, 3, 0, 1, 2, 3, 0, 1, 2, 3 } },
		{ "neither from nor to what is masked",
		  true,
		  false,
		  { 6, 7, 8, -100, -100, 3, 4, -100, 9, -100, -100, -100 },
		  { 0, 1, 2, 3, 0, 0, 1, 2, 0, 1, 1, 1 } },
		{ "given ones stay where they are",
		  false,
		  true,
		  { 1, 2, -100, 4, 5, 6, 7, 8, 9, 1, 2, 3 },
		  { 0, 1, 2, 3, 0, 1, 2, 3, 0, 1, 2, 3 } },
		{ "given ones, masked",
		  true,
		  true,
		  { 1, 2, -100, 4, -100, 6, 7, 8, 9, 1, -100, -100 },
		  { 0, 1, 2, 3, 0, 0, 1, 2, 0, 1, 1, 1 } },
	};
	char *dir = temp_tree();
	size_t i, k;

	(void)state;
	for (i = 0; i < ARRAY_LEN(rows); i++) {
		const struct input_spec specs[] = { gpt[0],
						    { "attention_mask", DT_S64, 2, { -1, -1 } },
						    gpt[2] };
		struct dataset *d = tokens(dir, rows[i].mask, rows[i].labels, "input_ids");
		struct feed_batch b = FEED_BATCH_INIT;
		struct feed *f = NULL;
		struct err err = ERR_INIT;

		assert_ok(feed_open(&f, d, specs, 3, &(struct feed_options){ .batch = 3 }, &err), err);
		assert_ok(feed_label_tokens(f, &err), err);
		assert_true(feed_has_labels(f));
		assert_ok(feed_next(f, &b, &err), err);
		for (k = 0; k < 12; k++)
			if (tensor_get(&b.labels, k) != (double)rows[i].want[k] ||
			    tensor_get(&b.inputs[2], k) != (double)rows[i].positions[k])
				fail_msg("%s: label %zu is %g, position %g", rows[i].why, k,
					 tensor_get(&b.labels, k), tensor_get(&b.inputs[2], k));
		feed_batch_release(&b);
		feed_free(f);
		dataset_free(d);
	}
	remove_tree(dir);
}

static void images_have_no_next_token(void **state)
{
	static const struct input_spec image = { "image", DT_F32, 3, { -1, 2, 3 } };
	static const float pixels[12] = { 0 };
	struct zip_out z = { .n = 0 };
	char *dir = temp_tree(), *path;
	struct dataset *d = NULL;
	struct feed *f = NULL;
	struct err err = ERR_INIT;
	struct str b;

	(void)state;
	zip_add(&z, "image.npy", npy_of("<f4", false, "(2, 2, 3)", pixels, sizeof(pixels)), false);
	b = zip_end(&z);
	path = put_file(dir, "d.npz", &b);
	assert_ok(dataset_open(&d, path, NULL, &err), err);
	assert_ok(feed_open(&f, d, &image, 1, NULL, &err), err);
	assert_fails(feed_label_tokens(f, &err), FETTLE_INVALID, err, "no input takes whole numbers [N,T]");
	feed_free(f);
	dataset_free(d);
	free(path);
	remove_tree(dir);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(inputs_are_made),           cmocka_unit_test(one_token_after_a_past),
		cmocka_unit_test(no_rule_no_input),          cmocka_unit_test(labels_are_the_next_tokens),
		cmocka_unit_test(images_have_no_next_token),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
