/*
 * What ran ahead is not run again, and the outputs are those of the network, for every sample: whatever the order of the samples
 * was then and is now, wherever it was broken off, and however little is kept. Each sample is always run in its seat, in a batch of
 * the same size (tune/seats.h).
 */
#include "unit/unit.h"
#include "unit/data_files.h"

#include "data/feed.h"
#include "tune/forerun.h"

enum { SAMPLES = 45, BATCH = 8, MODEL = 7 };

/* Two outputs made of each sample's six numbers; counts what it ran. */
struct net {
	float y[BATCH * 6], z[BATCH];
	size_t n_batches, smallest;
	size_t times[SAMPLES]; /* each sample ran */
	bool whole;            /* the second output has no row per sample */
	const struct order *order;
};

static enum fettle_status net_run(void *self, const struct feed_batch *b, struct tensor *out, struct err *err)
{
	struct net *n = self;
	size_t i, j;

	(void)err;
	n->n_batches++;
	n->smallest = b->n < n->smallest ? b->n : n->smallest;
	for (i = 0; i < b->n; i++) {
		n->z[i] = 0;
		for (j = 0; j < 6; j++) {
			n->y[i * 6 + j] = 1 / (1 + ((float *)b->inputs[0].data)[i * 6 + j]);
			n->z[i] += n->y[i * 6 + j];
		}
	}
	for (i = 0; i < b->valid; i++) {
		const size_t place = n->order->place[b->index[i]];

		n->times[b->index[i]]++;
		assert_int_equal(place % BATCH, i);
		assert_int_equal(b->n, place < SAMPLES / BATCH * BATCH ? BATCH : SAMPLES % BATCH);
	}
	out[0] = (struct tensor){ .dtype = DT_F32, .rank = 2, .dims = { (int64_t)b->n, 6 }, .data = n->y };
	out[1] = (struct tensor){
		.dtype = DT_F32, .rank = 1, .dims = { n->whole ? 1 : (int64_t)b->n }, .data = n->z
	};
	return FETTLE_OK;
}

struct bed {
	char *dir;
	struct dataset *set;
	struct feed *feed;
	struct order order;
	struct net net;
	struct rng rng;
};

static void bed_open(struct bed *b)
{
	static const struct input_spec spec = { "x", DT_F32, 3, { -1, 2, 3 } };
	struct str npz = sample_npz(SAMPLES, false, false);
	struct err err = ERR_INIT;
	char *path;
	size_t i;

	*b = (struct bed){ .dir = temp_tree(), .order = { .n = SAMPLES, .batch = BATCH } };
	path = put_file(b->dir, "d.npz", &npz);
	assert_ok(dataset_open(&b->set, path, NULL, &err), err);
	assert_ok(feed_open(&b->feed, b->set, &spec, 1, &(struct feed_options){ .batch = BATCH }, &err), err);
	b->order.place = xcalloc(SAMPLES, sizeof(*b->order.place));
	b->order.sample = xcalloc(SAMPLES, sizeof(*b->order.sample));
	for (i = 0; i < SAMPLES; i++)
		b->order.place[i] = b->order.sample[i] = SAMPLES - 1 - i;
	assert_ok(feed_set_order(b->feed, b->order.sample, SAMPLES, &err), err);
	rng_seed(&b->rng, 3);
	free(path);
}

static void bed_close(struct bed *b)
{
	free(b->order.place);
	free(b->order.sample);
	feed_free(b->feed);
	dataset_free(b->set);
	remove_tree(b->dir);
}

static void shuffle(struct bed *b)
{
	size_t place[SAMPLES], i;

	for (i = 0; i < SAMPLES; i++)
		place[i] = i;
	rng_shuffle(&b->rng, place, SAMPLES);
	assert_int_equal(order_visit(&b->order, b->feed, place, SAMPLES, NULL), FETTLE_OK);
}

static void check_outputs(const struct feed_batch *b, const struct tensor *out)
{
	size_t i, j;

	assert_int_equal(out[0].dims[0], b->n);
	for (i = 0; i < b->valid; i++) {
		float sum = 0;

		for (j = 0; j < 6; j++) {
			float y = 1 / (1 + (float)(b->index[i] * 6 + j));

			assert_true(((float *)out[0].data)[i * 6 + j] == y);
			sum += y;
		}
		assert_true(((float *)out[1].data)[i] == sum);
	}
}

/* So many batches of the feed, through what is kept; false: there is nothing to go through. */
static bool visit(struct bed *b, struct forerun *a, bool create, bool any_batch, size_t batches)
{
	struct forerun_options o = { &b->order, { net_run, &b->net, 2 }, b->feed, any_batch, create };
	struct feed_batch batch = FEED_BATCH_INIT;
	struct forerun_pass *r;
	struct err err = ERR_INIT;
	struct tensor out[2];
	size_t k;

	b->net = (struct net){ .whole = b->net.whole, .smallest = SIZE_MAX, .order = &b->order };
	forerun_begin(a, MODEL, &o, &r);
	for (k = 0; r && k < batches; k++) {
		assert_ok(feed_read(b->feed, k, &batch, &err), err);
		assert_ok(forerun_network(r).run(forerun_network(r).self, &batch, out, &err), err);
		if (!b->net.whole)
			check_outputs(&batch, out);
	}
	feed_batch_release(&batch);
	forerun_end(r);
	return r != NULL;
}

static void what_ran_is_not_run_again(void **state)
{
	struct bed b;
	size_t round;

	(void)state;
	bed_open(&b);
	for (round = 0; round < 200; round++) {
		struct forerun *a = forerun_new(1 << 20);
		size_t all = feed_batches(b.feed), first = rng_below(&b.rng, all + 1),
		       then = rng_below(&b.rng, all + 1), i, ran[SAMPLES] = { 0 }, missing[BATCH] = { 0 },
		       most = 0;

		shuffle(&b);
		assert_true(visit(&b, a, true, true, first));
		assert_int_equal(b.net.n_batches, first);
		if (rng_below(&b.rng, 2)) /* it goes on ahead where it was broken off */
			assert_true(visit(&b, a, true, true, first));
		for (i = 0; i < first * BATCH && i < SAMPLES; i++)
			ran[feed_sample(b.feed, i)] = 1;
		shuffle(&b);
		for (i = 0; i < then * BATCH && i < SAMPLES; i++)
			missing[i % BATCH] += !ran[feed_sample(b.feed, i)];
		for (i = 0; i < BATCH; i++)
			most = missing[i] > most ? missing[i] : most;
		assert_true(visit(&b, a, false, true, then));
		/* as many as its fullest seat needs, one more where a batch was not known at all and ran as it is */
		assert_true(b.net.n_batches <= most + 1);
		assert_true(first < all || !b.net.n_batches);
		assert_false(visit(&b, a, false, true, then)); /* it was asked for: it is gone */
		forerun_free(a);
	}
	bed_close(&b);
}

static void where_batches_matter_they_stay_whole(void **state)
{
	struct forerun *a = forerun_new(1 << 20);
	struct bed b;
	size_t i;

	(void)state;
	bed_open(&b);
	assert_true(visit(&b, a, true, false, 3));
	assert_true(visit(&b, a, false, false, 5));
	assert_int_equal(b.net.n_batches, 2);
	for (i = 0; i < SAMPLES; i++)
		assert_int_equal(b.net.times[b.order.sample[i]], i / BATCH == 3 || i / BATCH == 4);
	forerun_free(a);
	bed_close(&b);
}

static void what_does_not_fit_is_not_kept(void **state)
{
	static const struct {
		const char *why;
		size_t budget;
		bool whole, useless;
	} rows[] = {
		{ "seven floats per sample fit", SAMPLES * 28, false, false },
		{ "one byte less", SAMPLES * 28 - 1, false, true },
		{ "no memory for it at all", 0, false, true },
		{ "an output without a row per sample", 1 << 20, true, true },
	};
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_LEN(rows); i++) {
		struct forerun *a = forerun_new(rows[i].budget);
		struct bed b;

		bed_open(&b);
		b.net.whole = rows[i].whole;
		visit(&b, a, true, true, 6);
		visit(&b, a, false, true, 6);
		if (forerun_is_useless(a) != rows[i].useless || (b.net.n_batches > 0) != rows[i].useless)
			fail_msg("%s: %zu batches ran again", rows[i].why, b.net.n_batches);
		forerun_free(a);
		bed_close(&b);
	}
	assert_true(forerun_is_useless(NULL));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_ran_is_not_run_again),
		cmocka_unit_test(where_batches_matter_they_stay_whole),
		cmocka_unit_test(what_does_not_fit_is_not_kept),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
