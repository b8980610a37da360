#include "unit/unit.h"

#include "data/ahead.h"
#include "unit/data_files.h"

enum { IMAGES = 23 };

static const struct input_spec images = { "x", DT_U8, 4, { -1, -1, -1, 3 } };

/* Images that differ in size only between batches of one; one of them is damaged. */
static struct feed *open_images(const char *dir, size_t batch, size_t damaged, struct dataset **d)
{
	const struct dataset_options opt = { .kind = "ImageFolder" };
	struct err err = ERR_INIT;
	struct feed *f = NULL;
	size_t i;

	for (i = 0; i < IMAGES; i++) {
		struct str jpeg =
			jpeg_of(16 + (int)i % 3 * (batch == 1), 8 + (int)(batch == 1 ? i : 0), 3, i % 2);
		char *name = xstrfmt("%zu/%02zu.jpg", i % 4, i);

		if (i == damaged)
			jpeg.n = 40;
		free(put_file(dir, name, &jpeg));
		free(name);
	}
	assert_ok(dataset_open(d, dir, &opt, &err), err);
	assert_true(dataset_decodes(*d));
	assert_ok(feed_open(&f, *d, &images, 1,
			    &(struct feed_options){ .batch = batch, .shuffle = true, .seed = 3 }, &err),
		  err);
	return f;
}

static void check_same(const struct feed_batch *a, const struct feed_batch *b)
{
	assert_int_equal(a->n, b->n);
	assert_int_equal(a->valid, b->valid);
	assert_memory_equal(a->index, b->index, a->valid * sizeof(*a->index));
	assert_true(tensor_same_shape(&a->inputs[0], &b->inputs[0]));
	assert_memory_equal(a->inputs[0].data, b->inputs[0].data, tensor_bytes(&a->inputs[0]));
	assert_memory_equal(a->labels.data, b->labels.data, tensor_bytes(&a->labels));
}

/* The same batches in the same order, with the same error at the same place, as without it. */
static void as_without(void **state)
{
	static const size_t batches[] = { 1, 4, 7, IMAGES }, damages[] = { IMAGES, 0, 12, IMAGES - 1 };
	size_t i, j, k;

	(void)state;
	for (i = 0; i < ARRAY_LEN(batches); i++)
		for (j = 0; j < ARRAY_LEN(damages); j++) {
			char *tree = temp_tree();
			struct feed_batch want = FEED_BATCH_INIT, *got = NULL;
			struct err err = ERR_INIT, other = ERR_INIT;
			struct dataset *d = NULL;
			struct feed *f = open_images(tree, batches[i], damages[j], &d);
			struct ahead *a = ahead_new(f);
			enum fettle_status st = FETTLE_OK, st2 = FETTLE_OK;

			for (k = 0; k < feed_batches(f) && !st; k++) {
				st = feed_read(f, k, &want, &err);
				st2 = ahead_next(a, &got, &other);
				assert_int_equal(st, st2);
				if (!st)
					check_same(&want, got);
			}
			if (st)
				assert_string_equal(err.msg, other.msg);
			else
				assert_int_equal(ahead_next(a, &got, &other), FETTLE_STOP);
			assert_int_equal(st != 0, damages[j] < IMAGES);
			ahead_free(a);
			feed_batch_release(&want);
			feed_free(f);
			dataset_free(d);
			remove_tree(tree);
		}
}

/* Whoever stops early, at any batch, waits for one batch at most, and leaves nothing behind. */
static void stopped_early(void **state)
{
	char *tree = temp_tree();
	struct err err = ERR_INIT;
	struct feed_batch *got;
	struct dataset *d = NULL;
	struct feed *f = open_images(tree, 2, IMAGES, &d);
	size_t stop, k;

	(void)state;
	for (stop = 0; stop <= feed_batches(f); stop++) {
		struct ahead *a = ahead_new(f);

		for (k = 0; k < stop; k++)
			assert_ok(ahead_next(a, &got, &err), err);
		ahead_free(a);
	}
	ahead_free(NULL);
	feed_free(f);
	dataset_free(d);
	remove_tree(tree);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(as_without), cmocka_unit_test(stopped_early) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
