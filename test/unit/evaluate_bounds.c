/*
 * What an evaluation may conclude before its end: for random samples and every metric, the bounds after each batch
 * hold what the whole comes to; and the value is the same, to the bit, in whatever order samples are visited.
 */
#include "unit/unit.h"

#include "base/mem.h"
#include "base/rng.h"
#include "data/feed.h"
#include "evaluate/evaluate.h"
#include "fettle.h"

enum { N_MAX = 24, COLUMNS_MAX = 6, TOKENS_MAX = 3, ROW_MAX = COLUMNS_MAX * TOKENS_MAX, ROUNDS = 400 };

/* Which labels a metric wants: class numbers, or numbers like the outputs. */
enum labels { CLASSES, TWO_CLASSES, ONE_SCORE, TOKENS, NUMBERS, NO_LABELS };

static const struct kind {
	const char *metric;
	enum labels labels;
	bool certain_end; /* without samples to come, both bounds are the value */
} kinds[] = {
	{ "top1", CLASSES, true },
	{ "top1", TOKENS, true },
	{ "top5", CLASSES, true },
	{ "topk:3", CLASSES, true },
	{ "topk:2", TOKENS, true },
	{ "agreement", NO_LABELS, true },
	{ "f1", CLASSES, true },
	{ "f1", TOKENS, true },
	{ "f1", ONE_SCORE, true },
	{ "f1:micro", CLASSES, true },
	{ "f1:micro", TOKENS, true },
	{ "f1:binary", TWO_CLASSES, true },
	{ "f1:binary", ONE_SCORE, true },
	{ "auc", TWO_CLASSES, false },
	{ "auc", ONE_SCORE, false },
	{ "mse", NUMBERS, false },
	{ "mse", NO_LABELS, false },
	{ "mae", NUMBERS, false },
	{ "rmse", NUMBERS, false },
	{ "l1", NUMBERS, true },
	{ "l1", NO_LABELS, true },
	{ "l2", NUMBERS, true },
	{ "cosine", NUMBERS, true },
	{ "cosine", NO_LABELS, true },
	{ "miou", CLASSES, true },
	{ "miou", TOKENS, true },
	{ "mcc", CLASSES, false },
	{ "r2", NUMBERS, false },
	{ "pearson", NUMBERS, false },
	{ "sqnr", NUMBERS, false },
	{ "psnr", NUMBERS, false },
	{ "ssim", NUMBERS, true },
	{ "spearman", NUMBERS, false },
	{ "mse:reference", NO_LABELS, false },
	{ "perplexity", TOKENS, true },
	{ "cross_entropy", CLASSES, true },
	{ "cross_entropy", TOKENS, true },
	{ "kl", NO_LABELS, true },
	{ "kl", TOKENS, true },
	{ "loss", NUMBERS, false },
	{ "bleu", TOKENS, false },
	{ "wer:blank=1", TOKENS, false },
	{ "cer", TOKENS, false },
	{ "exact_match", TOKENS, true },
};

/* A data set and what a model says to it. */
struct sheet {
	enum labels kind;
	size_t n;
	int rank;
	int64_t dims[2]; /* of one sample's output */
	size_t row;
	float out[N_MAX][ROW_MAX], ref[N_MAX][ROW_MAX], numbers[N_MAX][ROW_MAX];
	int64_t classes[N_MAX][TOKENS_MAX];
};

static float some_number(struct rng *r, bool odd)
{
	double u = rng_unit(r);

	if (odd && u < 0.02)
		return NAN;
	if (odd && u < 0.03)
		return rng_below(r, 2) ? INFINITY : -INFINITY;
	if (u < 0.4) /* ties */
		return (float)rng_below(r, 3);
	return (float)rng_normal(r);
}

static void fill(struct sheet *s, const struct kind *k, struct rng *r)
{
	bool odd = rng_below(r, 4) == 0;
	size_t columns, tokens = k->labels == TOKENS ? 1 + rng_below(r, TOKENS_MAX) : 1, i, j;

	columns = k->labels == ONE_SCORE     ? 1
		  : k->labels == TWO_CLASSES ? 2
					     : 5 + rng_below(r, COLUMNS_MAX - 4);
	*s = (struct sheet){ .kind = k->labels, .n = 2 + rng_below(r, N_MAX - 1), .row = columns * tokens };
	s->rank = k->labels == TOKENS ? 2 : 1;
	s->dims[0] = (int64_t)(k->labels == TOKENS ? tokens : columns);
	s->dims[1] = (int64_t)columns;
	for (i = 0; i < s->n; i++) {
		for (j = 0; j < s->row; j++) {
			s->out[i][j] = some_number(r, odd);
			s->ref[i][j] = some_number(r, odd);
			s->numbers[i][j] = some_number(r, false);
		}
		for (j = 0; j < tokens; j++)
			s->classes[i][j] = (int64_t)rng_below(r, columns == 1 ? 2 : columns);
		if (k->labels == TOKENS && tokens > 1 && rng_below(r, 3) == 0)
			s->classes[i][rng_below(r, tokens)] = -100;
	}
	if (strcmp(k->metric, "auc") == 0) /* wants both */
		for (i = 0; i < 2; i++)
			s->classes[i][0] = (int64_t)i;
}

/* Rows of the sheet, in any order, as tensors. They point into these arrays. */
struct slice {
	float out[N_MAX * ROW_MAX], ref[N_MAX * ROW_MAX], numbers[N_MAX * ROW_MAX];
	int64_t classes[N_MAX * TOKENS_MAX];
	struct tensor outputs, reference, labels;
};

static void slice_of(struct slice *p, const struct sheet *s, const size_t *index, size_t n)
{
	size_t tokens = s->kind == TOKENS ? (size_t)s->dims[0] : 1, i;

	for (i = 0; i < n; i++) {
		memcpy(p->out + i * s->row, s->out[index[i]], s->row * sizeof(float));
		memcpy(p->ref + i * s->row, s->ref[index[i]], s->row * sizeof(float));
		memcpy(p->numbers + i * s->row, s->numbers[index[i]], s->row * sizeof(float));
		memcpy(p->classes + i * tokens, s->classes[index[i]], tokens * sizeof(int64_t));
	}
	p->outputs = (struct tensor){ DT_F32, s->rank + 1, { (int64_t)n, s->dims[0], s->dims[1] }, p->out };
	p->reference = p->labels = p->outputs;
	p->reference.data = p->ref;
	p->labels.data = p->numbers;
	if (s->kind != NUMBERS)
		p->labels = (struct tensor){
			DT_S64, s->kind == TOKENS ? 2 : 1, { (int64_t)n, s->dims[0] }, p->classes
		};
}

static void add(struct metric *m, const struct sheet *s, const size_t *index, size_t n)
{
	struct slice *p = xcalloc(1, sizeof(*p));
	struct err err = ERR_INIT;

	slice_of(p, s, index, n);
	assert_ok(metric_add(m, &p->outputs, 1, s->kind == NO_LABELS ? NULL : &p->labels, &p->reference, n,
			     &err),
		  err);
	free(p);
}

static void in_order(size_t *index, size_t n)
{
	size_t i;

	for (i = 0; i < n; i++)
		index[i] = i;
}

static struct metric *make(const char *name)
{
	struct err err = ERR_INIT;
	struct metric *m = NULL;

	assert_ok(metric_new(&m, name, &err), err);
	return m;
}

static void check(const struct kind *k, const struct metric *m, size_t rest, double value)
{
	double low = 7, high = 7, slack = isfinite(value) ? 1e-12 * fmax(1, fabs(value)) : 0;
	bool holds;

	metric_bounds(m, rest, &low, &high);
	if (isnan(low) || isnan(high)) /* the value is NaN already */
		holds = isnan(low) && isnan(high) && isnan(value);
	else if (isnan(value)) /* it may become one: then the worst must be infinite */
		holds = metric_higher_is_better(m) ? low == -INFINITY : high == INFINITY;
	else
		holds = low <= value + slack && high >= value - slack;
	if (!holds)
		fail_msg("%s: %.17g is not within %.17g .. %.17g, %zu samples to come", k->metric, value, low,
			 high, rest);
	if (!rest && k->certain_end && !isnan(value) && !(fabs(high - low) <= slack || low == high))
		fail_msg("%s: no samples to come, but %.17g .. %.17g", k->metric, low, high);
}

static void bounds_hold(void **state)
{
	struct sheet *s = xcalloc(1, sizeof(*s));
	size_t index[N_MAX], i, round, at, step, informed;
	struct err err = ERR_INIT;
	struct rng r;

	(void)state;
	rng_seed(&r, 1);
	for (i = 0; i < ARRAY_LEN(kinds); i++) {
		const struct kind *k = &kinds[i];
		struct metric *all = make(k->metric), *m = metric_twin(all);

		assert_string_equal(metric_name(m), metric_name(all));
		assert_ptr_equal(metric_type(m), metric_type(all));
		for (round = 0, informed = 0; round < ROUNDS; round++) {
			double value, low, high;

			fill(s, k, &r);
			in_order(index, s->n);
			metric_reset(all);
			add(all, s, index, s->n);
			assert_ok(metric_value(all, &value, &err), err);
			rng_shuffle(&r, index, metric_any_order(m) ? s->n : 0);
			metric_reset(m);
			check(k, m, s->n, value);
			for (at = 0; at < s->n; at += step) {
				step = 1 + rng_below(&r, s->n - at < 4 ? s->n - at : 4);
				add(m, s, index + at, step);
				check(k, m, s->n - at - step, value);
				metric_bounds(m, s->n - at - step, &low, &high);
				informed += at + step < s->n && (low > 0 || isfinite(high));
			}
		}
		if ((k->certain_end || (metric_type(m)->bounds && !metric_higher_is_better(m))) &&
		    !informed) /* bounds that say nothing hold always */
			fail_msg("%s: never knows anything before the end", k->metric);
		metric_free(m);
		metric_free(all);
	}
	free(s);
}

/*
 * Once all that outputs are compared with is known: bounds hold all the same, end at the value, and what has erred enough is
 * known to fail before the end.
 */
static void whole_is_known(void **state)
{
	static const char *const names[] = {
		"mse", "mae", "rmse", "r2", "sqnr", "psnr", "kl", "cross_entropy"
	};
	struct sheet *s = xcalloc(1, sizeof(*s));
	size_t index[N_MAX], i, round, at, early;
	struct err err = ERR_INIT;
	struct rng r;

	(void)state;
	rng_seed(&r, 2);
	for (i = 0; i < ARRAY_LEN(names); i++) {
		const struct kind k = { names[i], i == 7 ? TOKENS : i % 2 ? NUMBERS : NO_LABELS, false };

		for (round = 0, early = 0; round < ROUNDS; round++) {
			struct metric *all = make(k.metric), *m;
			double value, low, high, tight;

			fill(s, &k, &r);
			in_order(index, s->n);
			add(all, s, index, s->n);
			assert_ok(metric_value(all, &value, &err), err);
			metric_keep_whole(all);
			m = metric_twin(all);
			for (at = 0; at < s->n; at++) {
				add(m, s, index + at, 1);
				check(&k, m, s->n - at - 1, value);
				metric_bounds(m, s->n - at - 1, &low, &high);
				tight = metric_higher_is_better(m) ? high : low;
				if (at + 1 == s->n && isfinite(value))
					assert_true(fabs(tight - value) <= 1e-5 * fmax(1, fabs(value)));
				/* a limit that the whole misses by far: was that certain after two thirds? */
				if (at == 2 * s->n / 3 && isfinite(value))
					early += metric_higher_is_better(m) ? high < value + 6
									    : low > value / 4;
			}
			metric_free(m);
			metric_free(all);
		}
		assert_true(early > ROUNDS / 4);
	}
	free(s);
}

/* every metric of the list is among them */
static void none_is_left_out(void **state)
{
	size_t i, k;

	(void)state;
	for (i = 0; metric_type_at(i); i++) {
		const char *name = metric_type_at(i)->name;

		if (metric_type_at(i)->whole_answer && !metric_type_at(i)->bounds)
			continue; /* it has outputs of its own kind; test/cli compares these */
		for (k = 0; k < ARRAY_LEN(kinds); k++)
			if (strncmp(kinds[k].metric, name, strlen(name)) == 0)
				break;
		if (k == ARRAY_LEN(kinds))
			fail_msg("no test of %s", name);
	}
}

/* A twin remembers what its original is, and nothing of what it has seen. */
static void twins(void **state)
{
	static const float outputs[] = { 0, 1, 2, 3, /**/ 3, 2, 1, 0 };
	static const int64_t labels[] = { 1, 2 };
	struct tensor out = { DT_F32, 2, { 2, 4 }, (void *)(uintptr_t)outputs },
		      y = { DT_S64, 1, { 2 }, (void *)(uintptr_t)labels };
	struct metric *m = make("topk:3"), *twin;
	struct err err = ERR_INIT;
	double value;

	(void)state;
	assert_ok(metric_add(m, &out, 1, &y, NULL, 1, &err), err);
	twin = metric_twin(m);
	assert_string_equal(metric_name(twin), "topk:3");
	assert_int_equal(metric_samples(twin), 0);
	assert_ok(metric_add(twin, &out, 1, &y, NULL, 2, &err), err);
	assert_ok(metric_value(twin, &value, &err), err);
	assert_true(value == 1); /* class 1 is third of four, and class 2 too: top1 would have neither */
	assert_int_equal(metric_samples(m), 1);
	metric_free(twin);
	metric_free(m);
}

/* Naive: is the label among the k highest, and by how much? 0 when it is a tie. */
static int verdict(const float *row, size_t columns, size_t label, size_t k)
{
	size_t higher = 0, as_high = 0, j;

	if (isnan(row[label]))
		return -1;
	for (j = 0; j < columns; j++) {
		higher += row[j] > row[label];
		as_high += row[j] >= row[label];
	}
	return higher >= k ? -1 : as_high <= k ? 1 : 0;
}

static void margins_tell_right_from_wrong(void **state)
{
	static const struct kind marked[] = { { "top1", CLASSES, false },
					      { "topk:3", CLASSES, false },
					      { "f1", CLASSES, false } };
	struct sheet *s = xcalloc(1, sizeof(*s));
	struct slice *p = xcalloc(1, sizeof(*p));
	size_t index[N_MAX], i, j, round, counts[3] = { 0, 0, 0 };
	double margins[N_MAX];
	struct rng r;

	(void)state;
	rng_seed(&r, 2);
	for (i = 0; i < ARRAY_LEN(marked); i++) {
		struct metric *m = make(marked[i].metric);

		for (round = 0; round < ROUNDS; round++) {
			fill(s, &marked[i], &r);
			in_order(index, s->n);
			slice_of(p, s, index, s->n);
			metric_margins(m, &p->outputs, 1, &p->labels, NULL, s->n, margins);
			for (j = 0; j < s->n; j++) {
				int want =
					verdict(s->out[j], s->row, (size_t)s->classes[j][0], i == 1 ? 3 : 1);

				counts[want + 1]++;
				if (want > 0   ? !(margins[j] > 0)
				    : want < 0 ? !(margins[j] < 0)
					       : margins[j] < 0)
					fail_msg("%s: margin %g of a sample that is %s", marked[i].metric,
						 margins[j],
						 want > 0   ? "right"
						 : want < 0 ? "wrong"
							    : "a tie");
			}
		}
		metric_free(m);
	}
	assert_true(counts[0] && counts[1] && counts[2]);
	free(p);
	free(s);
}

/* One score a sample: the memory ends after the last, which is what a margin of class 1 must not read past. */
static void margins_of_one_score(void **state)
{
	float *scores = xmalloc(3 * sizeof(*scores));
	int64_t classes[3] = { 1, 0, 1 };
	struct tensor out = { DT_F32, 1, { 3 }, scores }, y = { DT_S64, 1, { 3 }, classes };
	struct metric *m = make("f1:binary"), *top = make("top1"), *mse = make("mse");
	double margins[3];

	(void)state;
	scores[0] = 0.75f;
	scores[1] = 0.75f;
	scores[2] = 0.25f;
	metric_margins(m, &out, 1, &y, NULL, 3, margins);
	assert_true(margins[0] == 0.25 && margins[1] == -0.25 && margins[2] == -0.25);
	metric_margins(top, &out, 1, &y, NULL, 3, margins); /* which takes no single scores */
	assert_true(isnan(margins[0]) && isnan(margins[2]));
	metric_margins(mse, &out, 1, &y, NULL, 3, margins);
	assert_true(isnan(margins[0]) && isnan(margins[2]));
	metric_free(m);
	metric_free(top);
	metric_free(mse);
	free(scores);
}

/* The squared length of all that a sample is compared with; long enough to be read in pieces. */
static void margins_of_cosine(void **state)
{
	enum { LONG = 5000 };
	float *big = xcalloc(2 * LONG, sizeof(*big)), small[2] = { 3, 0 };
	struct tensor out[] = { { DT_F32, 2, { 2, LONG }, big }, { DT_F32, 2, { 2, 1 }, small } };
	struct metric *m = make("cosine");
	double margins[2];
	size_t i;

	(void)state;
	for (i = 0; i < LONG; i++)
		big[i] = 2; /* of the first; the second is all zeros */
	metric_margins(m, out, 2, NULL, out, 2, margins);
	assert_true(margins[0] == 4.0 * LONG + 9 && margins[1] == 0);
	metric_free(m);
	free(big);
}

/* ---- through evaluate_accuracy(), with a network that needs no model ---- */

struct fake {
	const struct sheet *s;
	struct slice p;
	bool reference;
	size_t runs;
};

static enum fettle_status fake_run(void *self, const struct feed_batch *b, struct tensor *out,
				   struct err *err)
{
	struct fake *f = self;

	(void)err;
	slice_of(&f->p, f->s, b->index, b->valid);
	out[0] = f->reference ? f->p.reference : f->p.outputs;
	f->runs++;
	return FETTLE_OK;
}

static bool read_sample(void *self, size_t sample, size_t field, void *to)
{
	const struct sheet *s = self;

	if (field == 0)
		*(float *)to = 0;
	else if (s->kind == NUMBERS)
		memcpy(to, s->numbers[sample], s->row * sizeof(float));
	else
		memcpy(to, s->classes[sample],
		       (s->kind == TOKENS ? (size_t)s->dims[0] : 1) * sizeof(int64_t));
	return true;
}

struct stage {
	struct fettle_field fields[2];
	struct dataset *d;
	struct feed *feed;
	struct fake *net, *reference;
};

static void stage_open(struct stage *t, struct sheet *s, size_t batch)
{
	struct fettle_data_source source = { .size = sizeof(source),
					     .samples = s->n,
					     .fields = t->fields,
					     .n_fields = s->kind == NO_LABELS ? 1 : 2,
					     .read = read_sample,
					     .self = s };
	struct input_spec spec = { "x", DT_F32, 1, { -1 } };
	struct err err = ERR_INIT;

	*t = (struct stage){ .fields = { { "x", FETTLE_FLOAT32, 0, NULL },
					 { "y", FETTLE_INT64, s->kind == TOKENS, s->dims } },
			     .net = xcalloc(1, sizeof(*t->net)),
			     .reference = xcalloc(1, sizeof(*t->net)) };
	if (s->kind == NUMBERS)
		t->fields[1] = (struct fettle_field){ "y", FETTLE_FLOAT32, s->rank, s->dims };
	assert_ok(dataset_open_source(&t->d, &source, &(struct dataset_options){ .channels = 0 }, &err), err);
	assert_ok(feed_open(&t->feed, t->d, &spec, 1, &(struct feed_options){ .batch = batch }, &err), err);
	t->net->s = t->reference->s = s;
	t->reference->reference = true;
}

static void stage_close(struct stage *t)
{
	feed_free(t->feed);
	dataset_free(t->d);
	free(t->net);
	free(t->reference);
}

static struct evaluation evaluation_of(struct stage *t, struct metric *m)
{
	return (struct evaluation){ .net = { fake_run, t->net, 1 },
				    .reference = { fake_run, t->reference, 1 },
				    .feed = t->feed,
				    .metric = m };
}

static bool same_bits(double a, double b)
{
	return memcmp(&a, &b, sizeof(a)) == 0 || (isnan(a) && isnan(b));
}

static void any_order_gives_the_same_bits(void **state)
{
	struct sheet *s = xcalloc(1, sizeof(*s));
	size_t place[N_MAX], order[N_MAX], i, j, round;
	double scores[N_MAX];
	struct err err = ERR_INIT;
	struct rng r;

	(void)state;
	rng_seed(&r, 3);
	for (i = 0; i < ARRAY_LEN(kinds); i++) {
		struct metric *m = make(kinds[i].metric);

		for (round = 0; metric_any_order(m) && round < 20; round++) {
			struct accuracy plain, other;
			struct evaluation e;
			struct stage t;

			fill(s, &kinds[i], &r);
			stage_open(&t, s, 1 + rng_below(&r, 5));
			e = evaluation_of(&t, m);
			assert_ok(evaluate_accuracy(&e, &plain, &err), err);
			in_order(place, s->n);
			in_order(order, s->n);
			rng_shuffle(&r, order, s->n);
			assert_ok(feed_set_order(t.feed, order, s->n, &err), err);
			for (j = 0; j < s->n; j++)
				scores[j] = NAN;
			e.place = place;
			e.scores = scores;
			e.n_scores = s->n;
			assert_ok(evaluate_accuracy(&e, &other, &err), err);
			if (!same_bits(plain.value, other.value) || !same_bits(other.low, other.value) ||
			    !same_bits(other.high, other.value))
				fail_msg("%s: %.17g, in another order %.17g", kinds[i].metric, plain.value,
					 other.value);
			assert_int_equal(other.samples, s->n);
			stage_close(&t);
		}
		metric_free(m);
	}
	free(s);
}

/* Ends as soon as it is told to, and only what it has seen is in the scores. */
static bool enough(void *judge, double low, double high)
{
	assert_true(low <= high);
	return --*(int *)judge == 0;
}

static void ends_when_told(void **state)
{
	struct kind top1 = { "top1", CLASSES, true };
	struct sheet *s = xcalloc(1, sizeof(*s));
	struct metric *m = make("top1");
	struct evaluation e;
	struct accuracy a, whole;
	struct stage t;
	size_t place[N_MAX], j, seen = 0;
	double scores[N_MAX];
	struct err err = ERR_INIT;
	struct rng r;
	int batches = 2;

	(void)state;
	rng_seed(&r, 4);
	do
		fill(s, &top1, &r);
	while (s->n < 10);
	stage_open(&t, s, 3);
	e = evaluation_of(&t, m);
	assert_ok(evaluate_accuracy(&e, &whole, &err), err);
	in_order(place, s->n);
	for (j = 0; j < s->n; j++)
		scores[j] = NAN;
	t.net->runs = 0;
	e.place = place;
	e.scores = scores;
	e.n_scores = s->n;
	e.certain = enough;
	e.judge = &batches;
	assert_ok(evaluate_accuracy(&e, &a, &err), err);
	assert_int_equal(t.net->runs, 2);
	assert_int_equal(a.samples, 6);
	assert_true(isnan(a.value) && a.low <= whole.value && whole.value <= a.high && a.low < a.high);
	for (j = 0; j < s->n; j++)
		seen += !isnan(scores[j]);
	assert_int_equal(seen, 6);
	stage_close(&t);
	metric_free(m);
	free(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(bounds_hold),
		cmocka_unit_test(whole_is_known),
		cmocka_unit_test(none_is_left_out),
		cmocka_unit_test(twins),
		cmocka_unit_test(margins_tell_right_from_wrong),
		cmocka_unit_test(margins_of_one_score),
		cmocka_unit_test(margins_of_cosine),
		cmocka_unit_test(any_order_gives_the_same_bits),
		cmocka_unit_test(ends_when_told),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
