/*
 * Fine-tuning on a small network: every method lowers the error of what it tunes; its weights reach the model that
 * the runtime reads, bit for bit; the same seed gives the same weights; the cache changes no result and bounds
 * memory; an op that got no better stays as it was.
 */
#include "unit/finetune_bed.h"

#include <sys/resource.h>
#include <sys/wait.h>

#include "space/plan_json.h"

enum { SAMPLES = 96 };

static const char body[] = "w1 = 8x3x3x3; b1 = 8; c1 = Conv(x, w1, b1) pads=1,1,1,1; r1 = Relu(c1);"
			   "w2 = 8x1x3x3; c2 = Conv(r1, w2) group=8 pads=1,1,1,1; r2 = Relu(c2);"
			   "w3 = 12x8x3x3; c3 = Conv(r2, w3) strides=2,2; r3 = Relu(c3); f = Flatten(r3);"
			   "w4 = 108x16; g = MatMul(f, w4); b4 = 16; a = Add(g, b4); w5 = 10x16;"
			   "y = Gemm(a, w5) transB=1";

static struct finetune options(enum finetune_algorithm a)
{
	struct finetune o = finetune_defaults(a);

	o.batch_size = 16;
	o.iterations = 300;
	return o;
}

static void test_methods(void **state)
{
	static const enum finetune_algorithm all[] = { FINETUNE_ADAROUND, FINETUNE_ADAQUANT, FINETUNE_GRAM };
	struct bed b;
	size_t i, k;

	(void)state;
	bed_open(&b, SAMPLES, 8, body);
	for (i = 0; i < ARRAY_LEN(all); i++) {
		struct finetune_report report = { .ops = { NULL, 0, 0 } };
		struct finetune o = options(all[i]);
		struct rounding *r, *again;
		double before = 0, after = 0;
		size_t tuned = 0;

		r = tune(&b, &o, &report);
		again = tune(&b, &o, NULL);
		assert_int_equal(report.ops.n, 5);
		for (k = 0; k < report.ops.n; k++) {
			const struct finetune_op *op = &report.ops.v[k];

			assert_null(op->left);
			assert_true(op->before > 0 && op->before < 0.01);
			assert_true(op->kept || op->after < op->before);
			tuned += !op->kept;
			before += log(op->before);
			after += log(op->kept ? op->before : op->after);
		}
		if (tuned < 4 || after > before + 5 * log(0.97))
			fail_msg("%s: %zu ops got better, by %.3f on average", finetune_algorithms[all[i]],
				 tuned, exp((after - before) / 5));
		assert_int_equal(differences(r, again), 0);
		if (all[i] != FINETUNE_GRAM) {
			struct rounding *other;

			o.seed++;
			other = tune(&b, &o, NULL);
			o.selective_update = false;
			rounding_free(again);
			again = tune(&b, &o, NULL);
			o.seed++;
			rounding_free(other);
			other = tune(&b, &o, NULL);
			assert_true(differences(again, other) > 0);
			rounding_free(other);
		}
		rounding_free(r);
		rounding_free(again);
		VEC_RELEASE(&report.ops);
	}
	bed_close(&b);
}

/* what the runtime sees of a weight, without any optimisation */
static void read_value(struct bed *b, struct model *m, const char *name, struct tensor *out)
{
	struct session_options so = { .threads = 1, .level = OPT_NONE };
	struct model *d = model_derive(m);
	struct session *s = NULL;
	struct feed_batch batch = FEED_BATCH_INIT;
	struct tensor t;
	struct err err = ERR_INIT;

	model_set_outputs(d, &name, 1);
	assert_ok(session_new(&s, b->rt, d, &so, &err), err);
	assert_ok(feed_read(b->feed, 0, &batch, &err), err);
	assert_ok(session_run(s, batch.inputs, &t, &err), err);
	*out = t;
	assert_ok(tensor_alloc(out, "copy", &err), err);
	memcpy(out->data, t.data, tensor_bytes(&t));
	feed_batch_release(&batch);
	session_free(s);
	model_free(d);
}

/* each weight as the model's op reads it is the one that was decided; nodes are found by their outputs */
static void check_model(struct bed *b, struct model *m, const struct rounding *r, bool transposes)
{
	size_t i, k, j, checked = 0;

	for (i = 0; i < r->n; i++) {
		const struct node *old = b->s->m->nodes.v[i], *n = NULL;
		const struct rounded *o = r->v[i];
		struct tensor w;
		float *want;

		for (k = 0; o && k < m->nodes.n; k++)
			if (strcmp(m->nodes.v[k]->name, old->name) == 0)
				n = m->nodes.v[k];
		if (!o)
			continue;
		assert_non_null(n);
		read_value(b, m, n->in[1], &w);
		want = xcalloc((size_t)tensor_count(&w), sizeof(*want));
		qweight_floats(&o->w, want);
		for (k = 0; k < (size_t)tensor_count(&w); k++) {
			j = k;
			if (transposes && !tensor_same_shape(&w, &o->w.q))
				j = k % (size_t)w.dims[1] * (size_t)w.dims[0] + k / (size_t)w.dims[1];
			assert_true(memcmp((float *)w.data + k, want + j, sizeof(float)) == 0);
		}
		checked++;
		free(want);
		tensor_free(&w);
	}
	assert_true(checked >= 4);
}

static void test_model(void **state)
{
	struct finetune o = options(FINETUNE_GRAM);
	struct rounding *r, *loaded = NULL;
	struct model *m = NULL;
	struct tensor y, again, nearest;
	struct err err = ERR_INIT;
	char *path = xstrfmt("%s/rounding", dir);
	struct knowledge k = { .values = NULL };
	struct bed b;

	(void)state;
	bed_open(&b, SAMPLES, 8, body);
	r = tune(&b, &o, NULL);
	k.values = b.values;
	/* no rounding is known, which a plan with finetune needs */
	assert_int_equal(quantize(b.s->z, &k, &b.plan, &m, &err), FETTLE_INVALID);
	assert_non_null(strstr(err.msg, "finetune"));
	k.rounding = r;
	assert_ok(quantize(b.s->z, &k, &b.plan, &m, &err), err);
	check_model(&b, m, r, false);
	read_value(&b, m, "y", &y);
	model_free(m);
	assert_ok(rounding_save(r, path, &err), err);
	assert_ok(rounding_load(&loaded, path, r->n, &err), err);
	assert_int_equal(differences(r, loaded), 0);
	k.rounding = loaded;
	assert_ok(quantize(b.s->z, &k, &b.plan, &m, &err), err);
	read_value(&b, m, "y", &again);
	assert_memory_equal(y.data, again.data, tensor_bytes(&y));
	model_free(m);
	b.plan.recipes.gemm_to_matmul = true;
	assert_ok(quantize(b.s->z, &k, &b.plan, &m, &err), err);
	check_model(&b, m, loaded, true);
	model_free(m);
	b.plan.recipes.gemm_to_matmul = false;
	assert_ok(quantize_rounded(&b.source, &b.plan, NULL, NULL, &m, &err), err);
	read_value(&b, m, "y", &nearest);
	assert_memory_not_equal(y.data, nearest.data, tensor_bytes(&y));
	model_free(m);
	/* of another model */
	loaded->n--;
	assert_int_equal(quantize(b.s->z, &k, &b.plan, &m, &err), FETTLE_INVALID);
	assert_int_equal(truncate(path, 200), 0);
	rounding_free(loaded);
	assert_int_equal(rounding_load(&loaded, path, r->n, &err), FETTLE_INVALID);
	tensor_free(&y);
	tensor_free(&again);
	tensor_free(&nearest);
	rounding_free(r);
	free(path);
	bed_close(&b);
}

static void test_selective(void **state)
{
	struct finetune o = options(FINETUNE_ADAQUANT);
	struct finetune_report report = { .ops = { NULL, 0, 0 } };
	struct rounding *r;
	struct bed b;
	size_t i;

	(void)state;
	bed_open(&b, SAMPLES, 8, body);
	o.iterations = 3;
	o.learning_rate = 100; /* leads nowhere */
	r = tune(&b, &o, &report);
	for (i = 0; i < report.ops.n; i++)
		assert_true(report.ops.v[i].kept);
	for (i = 0; i < r->n; i++)
		assert_null(r->v[i]);
	rounding_free(r);
	report.ops.n = 0;
	o.selective_update = false;
	r = tune(&b, &o, &report);
	for (i = 0; i < report.ops.n; i++)
		assert_false(report.ops.v[i].kept);
	assert_true(report.ops.v[0].after > report.ops.v[0].before); /* the others' inputs are spoilt */
	rounding_free(r);
	VEC_RELEASE(&report.ops);
	bed_close(&b);
}

/* DropRatio, EarlyStop, UpdateBias: what they must and must not do */
static void test_settings(void **state)
{
	struct finetune o = options(FINETUNE_ADAROUND);
	struct finetune_report report = { .ops = { NULL, 0, 0 } };
	struct rounding *r = NULL, *plain;
	struct err err = ERR_INIT;
	struct bed b;
	size_t i;

	(void)state;
	bed_open(&b, SAMPLES, 8, body);
	o.selective_update = false;
	plain = tune(&b, &o, NULL);
	o.drop_ratio = 0.5;
	r = tune(&b, &o, NULL);
	assert_true(differences(plain, r) > 0);
	rounding_free(r);
	o.drop_ratio = 1;
	o.update_bias = false;
	r = tune(&b, &o, &report);
	for (i = 0; i < r->n; i++)
		assert_true(!r->v[i] || !r->v[i]->shift);
	rounding_free(r);
	report.ops.n = 0;
	o.update_bias = o.early_stop = true;
	o.data_size = 20;
	o.iterations = 2000;
	r = tune(&b, &o, &report);
	for (i = 0; i < report.ops.n; i++)
		assert_true(report.ops.v[i].after < 2 * report.ops.v[i].before);
	rounding_free(r);
	rounding_free(plain);
	b.plan.recipes.finetune = options(FINETUNE_GRAM);
	b.plan.recipes.finetune.drop_ratio = 0.5;
	assert_int_equal(finetune(&b.plan, &b.source, &r, NULL, &err), FETTLE_INVALID);
	assert_non_null(strstr(err.msg, "DropRatio"));
	VEC_RELEASE(&report.ops);
	bed_close(&b);
}

static void test_json(void **state)
{
	struct qplan read;
	struct err err = ERR_INIT;
	int64_t samples;
	struct bed b;
	char *text, *again;

	(void)state;
	bed_open(&b, 8, 8, body);
	b.plan.recipes.finetune = options(FINETUNE_ADAQUANT);
	b.plan.recipes.finetune.data_size = 77;
	b.plan.recipes.finetune.beta_range[0] = 15;
	b.plan.recipes.finetune.early_stop = true;
	b.plan.recipes.finetune.granularity = GRANULARITY_BLOCK;
	text = qplan_to_json(&b.plan, &b.s->ops, 8);
	assert_ok(qplan_from_json(&read, &samples, text, "test", &b.s->ops, &b.s->g, &err), err);
	assert_int_equal(read.recipes.finetune.algorithm, FINETUNE_ADAQUANT);
	assert_int_equal(read.recipes.finetune.data_size, 77);
	assert_int_equal(read.recipes.finetune.granularity, GRANULARITY_BLOCK);
	again = qplan_to_json(&read, &b.s->ops, 8);
	assert_string_equal(text, again);
	qplan_release(&read);
	memcpy(strstr(text, "adaquant"), "adagrant", 8);
	assert_int_equal(qplan_from_json(&read, &samples, text, "test", &b.s->ops, &b.s->g, &err),
			 FETTLE_INVALID);
	assert_non_null(strstr(err.msg, "did you mean 'adaquant'"));
	free(text);
	free(again);
	bed_close(&b);
}

/* with a cache for few batches: gram's result is the same, adaround's as good */
static void test_cache(void **state)
{
	static const enum finetune_algorithm all[] = { FINETUNE_GRAM, FINETUNE_ADAROUND };
	struct bed b;
	size_t i, k;

	(void)state;
	bed_open(&b, SAMPLES, 8, body);
	for (i = 0; i < ARRAY_LEN(all); i++) {
		struct finetune_report report = { .ops = { NULL, 0, 0 } };
		struct finetune o = options(all[i]);
		struct rounding *r, *small;
		double before = 0, after = 0;

		b.source.cache = 0;
		r = tune(&b, &o, NULL);
		b.source.cache = 50000; /* two batches of the first op */
		small = tune(&b, &o, &report);
		if (all[i] == FINETUNE_GRAM)
			assert_int_equal(differences(r, small), 0);
		for (k = 0; k < report.ops.n; k++) {
			before += log(report.ops.v[k].before);
			after += log(report.ops.v[k].after);
		}
		assert_true(after < before);
		VEC_RELEASE(&report.ops);
		rounding_free(r);
		rounding_free(small);
	}
	bed_close(&b);
}

/* the most memory, in kilobytes, that a process of its own needs; 0: it failed */
static long peak(enum finetune_algorithm a, size_t data_size)
{
	int status = 0;
	struct rusage use;
	pid_t pid = fork();

	if (pid == 0) {
		struct finetune o = options(a);
		struct rounding *r;
		struct bed b;

		bed_open(&b, 512, 32,
			 "w1 = 16x3x3x3; c1 = Conv(x, w1) pads=1,1,1,1; r1 = Relu(c1); w2 = 8x16x1x1;"
			 "y = Conv(r1, w2)");
		b.source.cache = 2 << 20;
		o.iterations = 10;
		o.data_size = data_size;
		r = tune(&b, &o, NULL);
		rounding_free(r);
		bed_close(&b);
		_exit(0);
	}
	assert_true(wait4(pid, &status, 0, &use) == pid);
	return WIFEXITED(status) && WEXITSTATUS(status) == 0 ? use.ru_maxrss : 0;
}

static void test_memory(void **state)
{
	static const enum finetune_algorithm all[] = { FINETUNE_GRAM, FINETUNE_ADAROUND };
	size_t i;

	(void)state;
#ifdef __SANITIZE_ADDRESS__
	skip(); /* which keeps what is freed */
#endif
	for (i = 0; i < ARRAY_LEN(all); i++) {
		long few = peak(all[i], 32), many = peak(all[i], 512); /* 512 would need 48 MB */

		assert_true(few > 0 && many > 0);
		if (many > few + 10000)
			fail_msg("%s: %ld kB with 32 samples, %ld kB with 512", finetune_algorithms[all[i]],
				 few, many);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_memory),   cmocka_unit_test(test_methods),
		cmocka_unit_test(test_model),    cmocka_unit_test(test_selective),
		cmocka_unit_test(test_settings), cmocka_unit_test(test_json),
		cmocka_unit_test(test_cache),
	};

	return cmocka_run_group_tests(tests, begin, end);
}
