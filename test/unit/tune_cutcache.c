/*
 * The promise of the cut cache: whatever earlier trials have left in it, a trial's outputs are, for every sample and to
 * the bit, those of a session on the whole model. Checked on chains of random plans that differ in a few ops, with
 * samples in random orders, evaluations that end early, budgets that are too small, and several threads.
 */
#include "unit/unit.h"
#include "unit/build.h"
#include "unit/data_files.h"
#include "unit/know.h"
#include "unit/place.h"

#include <dirent.h>
#include <pthread.h>

#include "calibrate/calibrate.h"
#include "quantize/subject.h"
#include "tune/cutcache.h"

enum { SAMPLES = 27, BATCH = 8, OUTPUTS_MAX = 4, SHARED_PLANS = 8 };

struct bed {
	struct subject *s;
	struct dataset *set;
	struct feed *feed;
	struct calibration *c;
	struct qplan plan; /* the default one */
	struct order order;
	struct map macs;
	struct session_options so;
};

static enum fettle_status find_range(void *self, const char *value, const struct qsetting *s,
				     struct range *out, struct err *err)
{
	struct range_options o = { s->algorithm, s->parameter, s->dtype, s->scheme };

	const struct observer *seen = calibration_find(self, value);

	if (!seen)
		return fail(err, FETTLE_INVALID, "no range of %s", value);
	return range_compute(seen, &o, out, err);
}

static double cost_of(void *self, const struct node *n)
{
	const struct bed *b = self;
	size_t macs = map_get(&b->macs, n->name);

	return 1 + (macs == MAP_NONE ? 0 : (double)macs);
}

static void bed_open(struct bed *b, const char *model, const char *data)
{
	struct session *fp32 = NULL;
	struct input_spec specs[4];
	struct qplan_defaults d;
	struct err err = ERR_INIT;
	size_t i;

	*b = (struct bed){ .plan = QPLAN_INIT, .so = { .threads = 1 } };
	assert_ok(subject_open(&b->s, rt, model, &err), err);
	assert_ok(dataset_open(&b->set, data, NULL, &err), err);
	assert_ok(session_new(&fp32, rt, b->s->m, &b->so, &err), err);
	assert_true(session_n_inputs(fp32) <= ARRAY_LEN(specs));
	session_specs(fp32, specs);
	assert_ok(feed_open(&b->feed, b->set, specs, session_n_inputs(fp32),
			    &(struct feed_options){ .batch = BATCH, .limit = SAMPLES }, &err),
		  err);
	session_free(fp32);
	assert_ok(subject_calibrate(b->s, rt, NULL, b->feed, &(struct calibrate_options){ .threads = 1 },
				    &b->c, &err),
		  err);
	d = qplan_defaults(&b->s->cpu);
	qplan_default(&b->plan, &b->s->ops, &b->s->g, &d);
	b->order.n = feed_samples(b->feed);
	b->order.batch = BATCH;
	b->order.sample = xcalloc(b->order.n, sizeof(*b->order.sample));
	b->order.place = xcalloc(b->order.n, sizeof(*b->order.place));
	for (i = 0; i < b->order.n; i++)
		b->order.place[i] = b->order.sample[i] = i;
	for (i = 0; i < b->s->ops.n; i++)
		map_set(&b->macs, b->s->m->nodes.v[i]->name, (size_t)(b->s->ops.v[i].macs / 1e3));
}

static void bed_close(struct bed *b)
{
	map_release(&b->macs);
	free(b->order.place);
	free(b->order.sample);
	qplan_release(&b->plan);
	calibration_free(b->c);
	feed_free(b->feed);
	dataset_free(b->set);
	subject_free(b->s);
}

/* ---- the outputs of a network, sample by sample ---- */

struct answers {
	unsigned char *row[OUTPUTS_MAX];
	size_t bytes[OUTPUTS_MAX];
	bool have[SAMPLES];
};

static void answers_release(struct answers *a)
{
	size_t i;

	for (i = 0; i < OUTPUTS_MAX; i++)
		free(a->row[i]);
}

static enum fettle_status ask(struct network net, const struct feed *feed, size_t batches, struct answers *a,
			      struct err *err)
{
	struct feed_batch b = FEED_BATCH_INIT;
	struct tensor out[OUTPUTS_MAX];
	enum fettle_status st = FETTLE_OK;
	size_t k, i, j;

	*a = (struct answers){ .have = { false } };
	assert_true(net.n_outputs <= OUTPUTS_MAX);
	for (k = 0; k < batches && !st; k++) {
		st = feed_read(feed, k, &b, err);
		if (!st)
			st = net.run(net.self, &b, out, err);
		for (i = 0; i < net.n_outputs && !st; i++) {
			a->bytes[i] = tensor_bytes(&out[i]) / b.n;
			if (!a->row[i])
				a->row[i] = xcalloc(SAMPLES, a->bytes[i]);
			for (j = 0; j < b.valid; j++)
				memcpy(a->row[i] + b.index[j] * a->bytes[i],
				       (char *)out[i].data + j * a->bytes[i], a->bytes[i]);
		}
		for (j = 0; j < b.valid && !st; j++)
			a->have[b.index[j]] = true;
	}
	feed_batch_release(&b);
	return st;
}

/* the first sample that both have and that differs; SAMPLES: none */
static size_t differs(const struct answers *a, const struct answers *b)
{
	size_t i, j;

	for (j = 0; j < SAMPLES; j++)
		for (i = 0; i < OUTPUTS_MAX && a->have[j] && b->have[j]; i++)
			if (a->bytes[i] != b->bytes[i] ||
			    (a->bytes[i] && memcmp(a->row[i] + j * a->bytes[i], b->row[i] + j * b->bytes[i],
						   a->bytes[i]) != 0))
				return j;
	return SAMPLES;
}

/* ---- plans ---- */

/* Some of the ops that can be quantized change: to fp32 and back, or to other settings. */
static void mutate(struct qplan *p, const struct bed *b, struct rng *r, size_t changes)
{
	size_t tries;

	for (tries = 0; changes && tries < 200; tries++) {
		size_t i = rng_below(r, b->s->ops.n);
		struct op_choice *c = &p->ops[i];

		if (!(b->s->ops.v[i].modes & MODE_STATIC) || !b->s->ops.v[i].offered)
			continue;
		if (c->mode == OP_STATIC && rng_below(r, 3) == 0)
			c->weight.per_channel = !c->weight.per_channel;
		else if (c->mode == OP_STATIC && rng_below(r, 4) == 0)
			c->act.algorithm = c->act.algorithm == RANGE_MINMAX ? RANGE_MSE : RANGE_MINMAX;
		else
			c->mode = c->mode == OP_STATIC ? OP_FP32 : OP_STATIC;
		changes--;
	}
}

static struct model *model_of(struct bed *b, const struct qplan *p)
{
	struct model *m = NULL;
	struct err err = ERR_INIT;

	assert_ok(quantize_by(b->s, p, find_range, NULL, b->c, &m, &err), err);
	return m;
}

static void cold_answers(struct bed *b, struct model *m, const struct feed *feed, struct answers *a)
{
	struct session *s = NULL;
	struct err err = ERR_INIT;

	assert_ok(session_new(&s, rt, m, &b->so, &err), err);
	assert_ok(ask(network_of(s), feed, feed_batches(feed), a, &err), err);
	session_free(s);
}

/* Gives the share of a pass that was not run. */
static enum fettle_status cut_answers(struct bed *b, struct cutcache *c, struct model *m,
				      const struct feed *feed, size_t batches, struct answers *a,
				      double *saved, struct err *err)
{
	struct cut_options o = { rt, &b->so, &b->order, cost_of, b };
	struct cut_run *run = NULL;
	struct session *whole = NULL;
	struct graph_index g;
	uint64_t *prints;
	double seconds = 0;
	enum fettle_status st = FETTLE_OK;

	*saved = 0;
	graph_index_init(&g, m);
	prints = xcalloc(g.n, sizeof(*prints));
	graph_fingerprints(&g, prints);
	cut_begin(c, m, &g, prints, &o, &run);
	free(prints);
	graph_index_release(&g);
	if (!run)
		st = session_new(&whole, rt, m, &b->so, err);
	if (!st)
		st = ask(run ? cut_network(run) : network_of(whole), feed, batches, a, err);
	if (run)
		*saved = cut_end(run, &seconds) / (double)b->order.n;
	session_free(whole);
	return st;
}

/* each sample in its seat: some of the runtime's float kernels give the last bit of a row by its place in the batch */
static void shuffle_feed(const struct bed *b, struct feed *feed, struct rng *r)
{
	size_t order[SAMPLES], i;
	struct err err = ERR_INIT;

	for (i = 0; i < b->order.n; i++)
		order[i] = i;
	rng_shuffle(r, order, b->order.n);
	assert_ok(order_visit(&b->order, feed, order, b->order.n, &err), err);
}

/* A chain of plans on one cache; gives what was saved in all, in passes. The cold run sees samples in their own order. */
static double chain(struct bed *b, const char *what, size_t budget, size_t plans, struct rng *r)
{
	struct cutcache *c = cutcache_new(budget, b->order.n);
	struct feed *feed = feed_twin(b->feed);
	struct qplan plan = QPLAN_INIT;
	struct qplan_defaults d = qplan_defaults(&b->s->cpu);
	struct err err = ERR_INIT;
	double saved, all = 0;
	size_t k;

	qplan_default(&plan, &b->s->ops, &b->s->g, &d);
	for (k = 0; k < plans; k++) {
		struct model *m = model_of(b, &plan);
		struct answers cold, warm;
		size_t batches = feed_batches(feed);

		if (rng_below(r, 3))
			shuffle_feed(b, feed, r);
		if (rng_below(r, 4) == 0)
			batches = 1 + rng_below(r, batches);
		cold_answers(b, m, b->feed, &cold);
		assert_ok(cut_answers(b, c, m, feed, batches, &warm, &saved, &err), err);
		if (differs(&cold, &warm) < SAMPLES)
			fail_msg(
				"%s: plan %zu of a chain, sample %zu: not what a cold run gives (%.2f saved)",
				what, k, differs(&cold, &warm), saved);
		if (cutcache_peak(c) > budget)
			fail_msg("%s: %zu bytes kept, of %zu", what, cutcache_peak(c), budget);
		all += saved;
		answers_release(&cold);
		answers_release(&warm);
		model_free(m);
		mutate(&plan, b, r, 1 + rng_below(r, 3));
	}
	qplan_release(&plan);
	feed_free(feed);
	cutcache_free(c);
	return all;
}

/* ---- small networks ---- */

static const struct {
	const char *why, *body;
} nets[] = {
	{ "one after the other", "w1 = 8x3x3x3; b1 = 8; c1 = Conv(x, w1, b1) pads=1,1,1,1; r1 = Relu(c1);"
				 "w2 = 8x8x3x3; c2 = Conv(r1, w2) pads=1,1,1,1; r2 = Relu(c2);"
				 "w3 = 8x1x3x3; c3 = Conv(r2, w3) group=8 pads=1,1,1,1; r3 = Relu(c3); m = "
				 "MaxPool(r3) kernel_shape=2,2 strides=2,2;"
				 "w4 = 12x8x3x3; c4 = Conv(m, w4) pads=1,1,1,1; r4 = Relu(c4); g = "
				 "GlobalAveragePool(r4); f = Flatten(g);"
				 "w5 = 12x10; b5 = 10; y = Gemm(f, w5, b5)" },
	{ "branches that rejoin",
	  "w1 = 8x3x3x3; b1 = 8; c1 = Conv(x, w1, b1) pads=1,1,1,1; r1 = Relu(c1);"
	  "w2 = 8x8x3x3; c2 = Conv(r1, w2) pads=1,1,1,1; a1 = Add(r1, c2); r2 = Relu(a1);"
	  "w3 = 8x8x3x3; c3 = Conv(r2, w3) pads=1,1,1,1; w4 = 8x8x1x1; c4 = Conv(r2, w4); a2 = Add(c3, c4);"
	  "k = Concat(a2, r1) axis=1; w5 = 10x16x3x3; c5 = Conv(k, w5); g = GlobalAveragePool(c5); y = "
	  "Flatten(g)" },
	{ "rows that lie differently in memory",
	  "w1 = 5x3x2x2; c1 = Conv(x, w1); r1 = Relu(c1); e = ReduceMean(r1) axes=2,3 keepdims=1;"
	  "w2 = 6x5x1x1; c2 = Conv(e, w2); r2 = Relu(c2); w3 = 7x6x1x1; c3 = Conv(r2, w3); g = "
	  "GlobalAveragePool(c3); f = Flatten(g); w4 = 7x10; y = Gemm(f, w4)" },
};

static char *make_data(void)
{
	struct zip_out z = { .zip64 = false };
	size_t size = 3 * 8 * 8, i;
	float *x = xcalloc(SAMPLES * size, sizeof(*x));
	struct rng r;
	struct str npz;
	char shape[64];

	rng_seed(&r, 5);
	for (i = 0; i < SAMPLES * size; i++)
		x[i] = (float)rng_normal(&r);
	snprintf(shape, sizeof(shape), "(%d, 3, 8, 8)", SAMPLES);
	zip_add(&z, "x.npy", npy_of("<f4", false, shape, x, SAMPLES * size * sizeof(*x)), false);
	npz = zip_end(&z);
	free(x);
	return put_file(dir, "x.npz", &npz);
}

static void bed_open_small(struct bed *b, size_t net)
{
	char *path = xstrfmt("%s/net%zu.onnx", dir, net), *data = make_data();

	build_model(path, 13, "x:?x3x8x8", nets[net].body, "y");
	bed_open(b, path, data);
	free(path);
	free(data);
}

static void small_networks(void **state)
{
	struct rng r;
	size_t i;

	(void)state;
	rng_seed(&r, 1);
	for (i = 0; i < ARRAY_LEN(nets); i++) {
		struct bed b;
		double saved;

		bed_open_small(&b, i);
		saved = chain(&b, nets[i].why, (size_t)1 << 28, 40, &r);
		if (saved < 2)
			fail_msg("%s: only %.2f passes saved in 40 trials", nets[i].why, saved);
		bed_close(&b);
	}
}

/* Too small for all that is worth keeping: things are thrown out, and results stay. */
static void small_budgets(void **state)
{
	static const size_t budgets[] = { 0, 4096, 40000, 150000 };
	struct rng r;
	struct bed b;
	double saved[ARRAY_LEN(budgets)];
	size_t i;

	(void)state;
	rng_seed(&r, 2);
	bed_open_small(&b, 1);
	for (i = 0; i < ARRAY_LEN(budgets); i++)
		saved[i] = chain(&b, "a small budget", budgets[i], 25, &r);
	assert_true(saved[0] == 0);
	if (!(saved[3] > 0.5))
		fail_msg("%zu bytes save %.2f passes", budgets[3], saved[3]);
	bed_close(&b);
}

/* ---- side by side ---- */

enum { CROWD = 24 };

struct crowd {
	struct bed *b;
	struct cutcache *c;
	struct model *models[CROWD];
	struct answers cold[CROWD];
	pthread_mutex_t lock;
	size_t next, wrong;
	double saved;
};

static void *work(void *self)
{
	struct crowd *w = self;
	struct feed *feed = feed_twin(w->b->feed);
	struct err err = ERR_INIT;
	struct rng r;
	size_t k;

	for (;;) {
		struct answers warm = { .have = { false } };
		double saved = 0;
		bool wrong;

		pthread_mutex_lock(&w->lock);
		k = w->next++;
		pthread_mutex_unlock(&w->lock);
		if (k >= CROWD)
			break;
		rng_seed(&r, k);
		shuffle_feed(w->b, feed, &r);
		wrong = cut_answers(w->b, w->c, w->models[k], feed, feed_batches(feed), &warm, &saved,
				    &err) ||
			differs(&w->cold[k], &warm) < SAMPLES;
		answers_release(&warm);
		pthread_mutex_lock(&w->lock);
		w->wrong += wrong;
		w->saved += saved;
		pthread_mutex_unlock(&w->lock);
	}
	feed_free(feed);
	return NULL;
}

static void several_threads(void **state)
{
	static const size_t budgets[] = { (size_t)1 << 28, 100000 };
	struct bed b;
	struct crowd w = { .b = &b };
	struct qplan plan = QPLAN_INIT;
	struct qplan_defaults d;
	pthread_t threads[4];
	struct rng r;
	size_t i, k;

	(void)state;
	rng_seed(&r, 3);
	bed_open_small(&b, 1);
	d = qplan_defaults(&b.s->cpu);
	qplan_default(&plan, &b.s->ops, &b.s->g, &d);
	for (k = 0; k < CROWD; k++) {
		w.models[k] = model_of(&b, &plan);
		cold_answers(&b, w.models[k], b.feed, &w.cold[k]);
		mutate(&plan, &b, &r, 1 + rng_below(&r, 2));
	}
	pthread_mutex_init(&w.lock, NULL);
	for (i = 0; i < ARRAY_LEN(budgets); i++) {
		w.c = cutcache_new(budgets[i], b.order.n);
		w.next = w.wrong = 0;
		w.saved = 0;
		for (k = 0; k < ARRAY_LEN(threads); k++)
			assert_int_equal(pthread_create(&threads[k], NULL, work, &w), 0);
		for (k = 0; k < ARRAY_LEN(threads); k++)
			pthread_join(threads[k], NULL);
		assert_int_equal(w.wrong, 0);
		assert_true(cutcache_peak(w.c) <= budgets[i]);
		if (i == 0)
			assert_true(w.saved > 0);
		cutcache_free(w.c);
	}
	pthread_mutex_destroy(&w.lock);
	for (k = 0; k < CROWD; k++) {
		answers_release(&w.cold[k]);
		model_free(w.models[k]);
	}
	qplan_release(&plan);
	bed_close(&b);
}

/* ---- every model there is ---- */

/* The data of a model has its name, or the part before the first '_'; the rest were trained on CIFAR-10. */
static char *data_of(const char *folder, const char *file)
{
	static const char ends[] = "_.";
	char *path;
	size_t i;

	for (i = 0; i < strlen(ends); i++) {
		path = xstrfmt("%s/%.*s_eval.npz", folder, (int)strcspn(file, (char[]){ ends[i], 0 }), file);
		if (access(path, R_OK) == 0)
			return path;
		free(path);
	}
	return xstrfmt("%s/cifar10_eval.npz", folder);
}

static void shared_models(void **state)
{
	static const char folder[] = "../shared/models";
	DIR *all = opendir(folder);
	const struct dirent *f;
	double sum = 0;
	struct rng r;
	size_t n = 0;

	(void)state;
	if (!all) {
		print_message("SKIPPED: no %s\n", folder);
		skip();
	}
	rng_seed(&r, 4);
	while ((f = readdir(all))) {
		struct bed b;
		char *model, *data;
		double saved;

		if (!strstr(f->d_name, ".onnx"))
			continue;
		model = xstrfmt("%s/%s", folder, f->d_name);
		data = data_of(folder, f->d_name);
		bed_open(&b, model, data);
		saved = chain(&b, f->d_name, (size_t)1 << 28, SHARED_PLANS, &r);
		print_message("%s: %.2f passes saved in %d trials\n", f->d_name, saved, SHARED_PLANS);
		sum += saved;
		bed_close(&b);
		free(model);
		free(data);
		n++;
	}
	closedir(all);
	assert_true(sum > (double)n / 2); /* it is cuts that were compared, not cold runs */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(small_networks),
		cmocka_unit_test(small_budgets),
		cmocka_unit_test(several_threads),
		cmocka_unit_test(shared_models),
	};

	return cmocka_run_group_tests(tests, place_open, place_close);
}
