/*
 * Block by block: what is judged is what the whole quantized model computes, bit for bit; a block's error is never
 * above that of its ops rounded one by one, nor above rounding to the nearest; same seed, same weights; the cache
 * changes nothing.
 */
#include "unit/finetune_bed.h"

#include <sys/stat.h>

#include "finetune/block.h"
#include "finetune/part.h"

enum { SAMPLES = 100 }; /* the last batch is smaller */

/* two residual blocks, one with a convolution in its shortcut */
static const char residual[] =
	"w0 = 8x3x3x3; c0 = Conv(x, w0) pads=1,1,1,1; r0 = Relu(c0);"
	"w1 = 8x8x3x3; b1 = 8; c1 = Conv(r0, w1, b1) pads=1,1,1,1; r1 = Relu(c1); w2 = 8x8x3x3;"
	"c2 = Conv(r1, w2) pads=1,1,1,1; a1 = Add(c2, r0); r2 = Relu(a1);"
	"w3 = 16x8x3x3; c3 = Conv(r2, w3) pads=1,1,1,1 strides=2,2; r3 = Relu(c3); w4 = 16x16x3x3;"
	"c4 = Conv(r3, w4) pads=1,1,1,1; w5 = 16x8x1x1; c5 = Conv(r2, w5) strides=2,2; a2 = Add(c4, c5);"
	"r4 = Relu(a2); p = GlobalAveragePool(r4); f = Flatten(p); w6 = 16x10; y = MatMul(f, w6)";

static struct finetune options(enum finetune_algorithm a)
{
	struct finetune o = finetune_defaults(a);

	o.batch_size = 16;
	o.iterations = 100;
	o.granularity = GRANULARITY_BLOCK;
	return o;
}

/* the node that makes a value */
static int maker(const struct bed *b, const char *value)
{
	return b->s->g.producer[graph_value(&b->s->g, value)];
}

static void test_list(void **state)
{
	struct block *blocks;
	struct bed b;
	bool *wanted;
	size_t i, n;

	(void)state;
	bed_open(&b, 8, 8, residual);
	wanted = xcalloc(b.s->ops.n, sizeof(*wanted));
	for (i = 0; i < b.s->ops.n; i++)
		wanted[i] = b.s->ops.v[i].rule && b.s->ops.v[i].rule->weight == 1;
	n = block_list(b.s, wanted, &blocks);
	assert_int_equal(n, 4);
	assert_int_equal(blocks[0].first, 0);
	assert_int_equal(blocks[0].last, maker(&b, "r0"));
	assert_int_equal(blocks[1].last, maker(&b, "r2"));
	assert_int_equal(blocks[2].last, maker(&b, "f"));
	assert_int_equal(blocks[3].last, b.s->ops.n - 1);
	for (i = 1; i < n; i++)
		assert_int_equal(blocks[i].first, blocks[i - 1].last + 1);
	free(blocks);
	/* with nothing to tune it is all one */
	memset(wanted, 0, b.s->ops.n * sizeof(*wanted));
	n = block_list(b.s, wanted, &blocks);
	assert_int_equal(n, 1);
	free(blocks);
	free(wanted);
	bed_close(&b);
}

/* what a value is in the whole model, for the k-th batch */
static void run_whole(struct bed *b, struct model *m, const char *name, size_t k, struct tensor *out)
{
	struct model *d = model_derive(m);
	struct session *s = NULL;
	struct feed_batch batch = FEED_BATCH_INIT;
	struct tensor t;
	struct err err = ERR_INIT;

	model_set_outputs(d, &name, 1);
	assert_ok(session_new(&s, b->rt, d, &(struct session_options){ .threads = 1 }, &err), err);
	assert_ok(feed_read(b->feed, k, &batch, &err), err);
	assert_ok(session_run(s, batch.inputs, &t, &err), err);
	*out = t;
	assert_ok(tensor_alloc(out, "copy", &err), err);
	memcpy(out->data, t.data, tensor_bytes(&t));
	feed_batch_release(&batch);
	session_free(s);
	model_free(d);
}

static double squares(const struct tensor *x, const struct tensor *y)
{
	double sum = 0;
	size_t i;

	for (i = 0; i < (size_t)tensor_count(x); i++) {
		double d = tensor_get(x, i) - (y ? tensor_get(y, i) : 0);

		sum += d * d;
	}
	return sum;
}

/* the nodes first to last, run on their own and as a part of the whole model; and their error, by a loop of our own */
static void check_part(struct bed *b, struct model *m, int first, int last)
{
	const struct finetune o = options(FINETUNE_GRAM);
	const char *fp32 = b->s->m->nodes.v[last]->out[0];
	struct part p;
	struct part_session s;
	struct err err = ERR_INIT;
	struct tensor out, whole, want;
	double e, sum = 0, signal = 0;
	size_t k;

	assert_ok(part_open(&p, &b->source, &(struct part_of){ (size_t)first, (size_t)last + 1, &o, false },
			    m, &err),
		  err);
	assert_int_equal(p.n_outputs, 1);
	assert_ok(part_session_open(&s, &p, m, &err), err);
	for (k = p.split.held; k < p.split.n; k++) {
		assert_ok(part_run(&p, &s, k, &out, &err), err);
		run_whole(b, m, s.outputs[0], k, &whole);
		run_whole(b, b->s->m, fp32, k, &want);
		assert_true(tensor_same_shape(&out, &whole));
		assert_memory_equal(out.data, whole.data, tensor_bytes(&out));
		sum += squares(&whole, &want);
		signal += squares(&want, NULL);
		tensor_free(&whole);
		tensor_free(&want);
	}
	assert_ok(part_error(&p, m, &e, &err), err);
	assert_float_equal(e, sum / signal, 1e-6 * e);
	part_session_close(&s);
	part_close(&p);
}

static void test_judged_is_emitted(void **state)
{
	struct finetune o = options(FINETUNE_GRAM);
	struct rounding *r;
	struct err err = ERR_INIT;
	struct model *m = NULL;
	struct bed b;

	(void)state;
	bed_open(&b, SAMPLES, 8, residual);
	r = tune(&b, &o, NULL);
	assert_ok(quantize_rounded(&b.source, &b.plan, r, NULL, &m, &err), err);
	check_part(&b, m, 0, maker(&b, "r0"));
	check_part(&b, m, maker(&b, "c1"), maker(&b, "r2"));
	check_part(&b, m, maker(&b, "r2") + 1, maker(&b, "f"));
	check_part(&b, m, 0, (int)b.s->ops.n - 1);
	model_free(m);
	rounding_free(r);
	bed_close(&b);
}

/* what every block promises; returns by how much blocks got better than op by op, as a factor */
static double check_blocks(const struct finetune_report *report)
{
	double gain = 0;
	size_t i;

	for (i = 0; i < report->blocks.n; i++) {
		const struct finetune_block *b = &report->blocks.v[i];

		assert_true(b->before > 0);
		assert_true(b->after <= b->layered);
		assert_true(b->left || (b->joint > 0 && b->after <= b->joint));
		assert_true(b->kept == !(b->after < b->before));
		gain += log(b->after / b->layered);
	}
	return exp(gain / (double)report->blocks.n);
}

static void test_methods(void **state)
{
	static const enum finetune_algorithm all[] = { FINETUNE_GRAM, FINETUNE_ADAROUND, FINETUNE_ADAQUANT };
	struct bed b;
	size_t i;

	(void)state;
	bed_open(&b, SAMPLES, 8, residual);
	for (i = 0; i < ARRAY_LEN(all); i++) {
		struct finetune_report report = { .ops = { NULL, 0, 0 } };
		struct finetune o = options(all[i]);
		struct rounding *r = tune(&b, &o, &report), *again = tune(&b, &o, NULL), *layered;
		size_t k, changed = 0;
		double gain;

		assert_int_equal(report.blocks.n, 4);
		assert_int_equal(report.ops.n, 7);
		gain = check_blocks(&report);
		assert_true(gain < 0.999 || all[i] == FINETUNE_GRAM); /* for which see test_gram_gains() */
		assert_int_equal(differences(r, again), 0);
		o.granularity = GRANULARITY_LAYER;
		layered = tune(&b, &o, NULL);
		for (k = 0; k < r->n; k++)
			changed += !r->v[k] != !layered->v[k] ||
				   (r->v[k] && memcmp(r->v[k]->w.q.data, layered->v[k]->w.q.data,
						      tensor_bytes(&r->v[k]->w.q)) != 0);
		assert_true(changed > 0 || gain == 1);
		rounding_free(again);
		rounding_free(layered);
		if (all[i] == FINETUNE_GRAM) { /* which sees all samples whatever the cache */
			o.granularity = GRANULARITY_BLOCK;
			b.source.cache = 50000;
			again = tune(&b, &o, NULL);
			b.source.cache = 0;
			assert_int_equal(differences(r, again), 0);
			rounding_free(again);
		}
		rounding_free(r);
		VEC_RELEASE(&report.ops);
		VEC_RELEASE(&report.blocks);
	}
	bed_close(&b);
}

/*
 * Gram does not learn: blocks only choose between what ops have to offer, and in some plans op by op is best already. Not in
 * all of these, which are the same on every CPU.
 */
static void test_gram_gains(void **state)
{
	enum { PLANS = 4 };
	const struct finetune o = options(FINETUNE_GRAM);
	double gain = 0;
	struct bed b;
	size_t i, k;

	(void)state;
	bed_open(&b, SAMPLES, 8, residual);
	for (k = 0; k < PLANS; k++) {
		struct finetune_report report = { .ops = { NULL, 0, 0 } };

		for (i = 0; i < b.plan.n; i++) {
			b.plan.ops[i].weight.narrow = k % 2;
			b.plan.ops[i].weight.per_channel = k / 2;
		}
		rounding_free(tune(&b, &o, &report));
		gain += log(check_blocks(&report)) / PLANS;
		VEC_RELEASE(&report.ops);
		VEC_RELEASE(&report.blocks);
	}
	assert_true(exp(gain) < 0.999);
	bed_close(&b);
}

/*
 * Four branches whose weights, but for one that meets only zeros, are a step or two of the integers: each branch alone
 * can do no better than round them, but together their errors can make up for each other. The Relu stands between, so
 * no op sees what is added to it.
 */
#define BRANCH(n)                                                                                            \
	"big" n " = 8x1x1x1; s" n " = 8x2x1x1; t" n " = Mul(s" n ", k); w" n " = Concat(big" n ", t" n       \
	") axis=1;"                                                                                          \
	"c" n " = Conv(a, w" n "); g" n " = 8x1x1; b" n " = Mul(g" n ", k); d" n " = Add(c" n ", b" n        \
	"); r" n " = Relu(d" n ");"
static const char branches[] = "k = 0.02; zero = 1x1x1x1; o = 1x2x1x1; z = Sub(zero, zero); m = Concat(z, o) "
			       "axis=1; a = Mul(x, m);" BRANCH("0") BRANCH("1") BRANCH("2")
				       BRANCH("3") "e = Add(r0, r1); f = Add(r2, r3); y = Add(e, f)";

static void test_joint(void **state)
{
	static const struct {
		enum finetune_algorithm a;
		double gain;
	} all[] = { { FINETUNE_ADAROUND, 0.85 }, { FINETUNE_ADAQUANT, 0.9 } };
	struct bed b;
	size_t i;

	(void)state;
	bed_open(&b, SAMPLES, 8, branches);
	for (i = 0; i < b.plan.n; i++)
		b.plan.ops[i].weight.narrow = false; /* on every CPU; such small weights do not saturate */
	for (i = 0; i < ARRAY_LEN(all); i++) {
		struct finetune_report report = { .ops = { NULL, 0, 0 } };
		struct finetune o = options(all[i].a);
		const struct finetune_block *at;
		struct rounding *r, *again;

		o.iterations = 400;
		o.learning_rate = 0.01;
		r = tune(&b, &o, &report);
		again = tune(&b, &o, NULL);
		assert_int_equal(differences(r, again), 0);
		assert_int_equal(report.blocks.n, 1);
		at = &report.blocks.v[0];
		assert_null(at->left);
		if (!(at->joint < all[i].gain * at->layered))
			fail_msg("algorithm %d: joint %g, layered %g, before %g, need a factor of %g",
				 (int)all[i].a, at->joint, at->layered, at->before, all[i].gain);
		check_blocks(&report);
		rounding_free(r);
		rounding_free(again);
		VEC_RELEASE(&report.ops);
		VEC_RELEASE(&report.blocks);
	}
	bed_close(&b);
}

/* counts down; then it is enough */
static bool count_down(void *left, size_t done, size_t total)
{
	assert_true(done < total);
	return --*(int *)left > 0;
}

/* learning asks while it learns, be it one op or a block */
static void test_stopped(void **state)
{
	const enum finetune_granularity all[] = { GRANULARITY_LAYER, GRANULARITY_BLOCK };
	struct bed b;
	size_t i;

	(void)state;
	bed_open(&b, SAMPLES, 8, residual);
	b.source.progress = count_down;
	for (i = 0; i < ARRAY_LEN(all); i++) {
		struct finetune o = options(FINETUNE_ADAROUND);
		struct rounding *r = NULL;
		struct err err = ERR_INIT;
		int left = 1 << 30, calls;

		o.granularity = all[i];
		o.iterations = 160;
		b.plan.recipes.finetune = o;
		b.source.self = &left;
		assert_ok(finetune(&b.plan, &b.source, &r, NULL, &err), err);
		rounding_free(r);
		calls = (1 << 30) - left;
		assert_true(calls >= (i ? 7 + 1 : 7) * 10); /* ops, and a block */
		left = calls - 3;
		assert_int_equal(finetune(&b.plan, &b.source, &r, NULL, &err), FETTLE_STOP);
		assert_int_equal(left, 0);
	}
	bed_close(&b);
}

/* what else prevents it, and what does not */
static void test_conditions(void **state)
{
	static const struct {
		const char *why, *input, *graph, *left;
		enum finetune_algorithm a;
		size_t cache;
		bool early_stop;
	} cases[] = {
		{ "an op without a gradient", "?x3x8x8", "w = 4x3x3x3; c = Conv(x, w); y = Softplus(c)",
		  "Softplus has no gradient here", FINETUNE_ADAROUND, 0, false },
		{ "gram", "?x3x8x8", "w = 4x3x3x3; c = Conv(x, w); y = Relu(c)", "gram has no gradient",
		  FINETUNE_GRAM, 0, false },
		{ "few batches fit the cache", "?x3x8x8", residual, NULL, FINETUNE_ADAROUND, 40000, false },
		{ "none does", "?x3x8x8", residual, NULL, FINETUNE_ADAQUANT, 1, false },
		{ "so many samples and no others", "8x3x8x8", residual, NULL, FINETUNE_ADAROUND, 0, false },
		{ "EarlyStop", "?x3x8x8", residual, NULL, FINETUNE_ADAQUANT, 0, true },
	};
	size_t i, k;

	(void)state;
	for (i = 0; i < ARRAY_LEN(cases); i++) {
		struct finetune_report report = { .ops = { NULL, 0, 0 } };
		struct finetune o = options(cases[i].a);
		char *path = xstrfmt("%s/m.onnx", dir), *data = make_data(SAMPLES, 8),
		     *in = xstrfmt("x:%s", cases[i].input);
		struct rounding *r;
		struct bed b;

		o.early_stop = cases[i].early_stop;
		build_model(path, 13, in, cases[i].graph, "y");
		bed_load(&b, path, data, 0);
		b.source.cache = cases[i].cache;
		r = tune(&b, &o, &report);
		for (k = 0; k < report.blocks.n; k++) {
			const char *left = report.blocks.v[k].left;

			if (!left != !cases[i].left || (left && strcmp(left, cases[i].left) != 0))
				fail_msg("%s: '%s', need '%s'", cases[i].why, left, cases[i].left);
		}
		check_blocks(&report);
		rounding_free(r);
		VEC_RELEASE(&report.ops);
		VEC_RELEASE(&report.blocks);
		bed_close(&b);
		free(path);
		free(data);
		free(in);
	}
}

/* a block that only got worse has its old weights again, unless SelectiveUpdate is off */
static void test_selective(void **state)
{
	struct finetune o = options(FINETUNE_ADAQUANT);
	struct finetune_block report;
	struct offers offers;
	struct rounding *r;
	struct err err = ERR_INIT;
	struct model *m = NULL;
	struct block all;
	struct bed b;
	size_t i, left;
	int selective;

	(void)state;
	bed_open(&b, 32, 8, residual);
	all = (struct block){ 0, (int)b.s->ops.n - 1 };
	o.iterations = 3;
	o.learning_rate = 100; /* leads nowhere */
	o.granularity = GRANULARITY_LAYER;
	for (selective = 0; selective < 2; selective++) {
		o.selective_update = false;
		r = tune(&b, &o, NULL);
		offers_init(&offers, r->n);
		for (i = 0; i < r->n; i++)
			if (r->v[i])
				rounding_set(offers.v[OFFER_TUNED], i, r->v[i]);
		assert_ok(quantize_rounded(&b.source, &b.plan, r, NULL, &m, &err), err);
		b.plan.recipes.finetune.selective_update = selective;
		report = (struct finetune_block){ .first = NULL };
		assert_ok(block_choose(&b.source, &(struct block_of){ &b.plan, &all, &offers }, m, r, &report,
				       &err),
			  err);
		assert_true(report.layered > report.before);
		assert_true(report.after <= report.layered);
		for (i = left = 0; i < r->n; i++)
			left += r->v[i] != NULL;
		assert_int_equal(report.kept, selective && report.after >= report.before);
		if (!selective)
			assert_int_equal(left, 7);
		else
			assert_true(left < 7 && (!report.kept || left == 0));
		model_free(m);
		offers_release(&offers);
		rounding_free(r);
	}
	bed_close(&b);
}

static void test_shared(void **state)
{
	const char *models = getenv("FETTLE_MODELS");
	struct finetune_report report = { .ops = { NULL, 0, 0 } };
	struct finetune o = options(FINETUNE_GRAM);
	struct rounding *r;
	struct bed b;
	struct stat at;
	char *path, *data;

	(void)state;
	models = models ? models : "../shared/models";
	path = xstrfmt("%s/resnet8.onnx", models);
	data = xstrfmt("%s/resnet8_calib.npz", models);
	if (stat(path, &at) != 0 || stat(data, &at) != 0) {
		print_message("SKIPPED: no %s and its samples, and FETTLE_MODELS is not set\n", path);
		free(path);
		free(data);
		skip();
	}
	bed_load(&b, path, data, 128);
	r = tune(&b, &o, &report);
	assert_true(report.blocks.n >= 4);
	assert_true(check_blocks(&report) < 1);
	rounding_free(r);
	VEC_RELEASE(&report.ops);
	VEC_RELEASE(&report.blocks);
	bed_close(&b);
	free(path);
	free(data);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_list),       cmocka_unit_test(test_judged_is_emitted),
		cmocka_unit_test(test_methods),    cmocka_unit_test(test_gram_gains),
		cmocka_unit_test(test_selective),  cmocka_unit_test(test_shared),
		cmocka_unit_test(test_joint),      cmocka_unit_test(test_stopped),
		cmocka_unit_test(test_conditions),
	};

	return cmocka_run_group_tests(tests, begin, end);
}
