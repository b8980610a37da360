/* What plans are calibrated on: nothing where they are only timed, few values where they need few, else all values at once. */
#include "unit/quantize.h"
#include "unit/data_files.h"
#include "unit/place.h"

#include "tune/learn.h"

enum { SAMPLES = 24, BATCH = 8, OPS = 8 };

static bool read_sample(void *self, size_t sample, size_t field, void *to)
{
	struct rng rng;
	size_t i;

	(void)field;
	++*(size_t *)self;
	rng_seed(&rng, sample);
	for (i = 0; i < 4 * 8 * 8; i++)
		((float *)to)[i] = (float)rng_normal(&rng);
	return true;
}

struct course {
	struct fettle_data_source source;
	struct subject *s;
	struct dataset *set;
	struct feed *feed;
	struct learner *l;
	struct qplan plan;
	size_t read; /* samples */
};

static void course_open(struct course *c, const char *body)
{
	static const int64_t dims[] = { 4, 8, 8 };
	static const struct fettle_field field = { "x", FETTLE_FLOAT32, 3, dims };
	const struct input_spec spec = { .name = "x", .dtype = DT_F32, .rank = 4, .dims = { -1, 4, 8, 8 } };
	struct qplan_defaults d;
	struct err err = ERR_INIT;
	char *path = xstrfmt("%s/m.onnx", dir);

	*c = (struct course){ .source = { .size = sizeof(c->source),
					  .samples = SAMPLES,
					  .fields = &field,
					  .n_fields = 1,
					  .read = read_sample,
					  .self = &c->read },
			      .plan = QPLAN_INIT };
	build_model(path, 13, "x:?x4x8x8", body, "y");
	assert_ok(subject_open(&c->s, rt, path, &err), err);
	assert_ok(dataset_open_source(&c->set, &c->source, &(struct dataset_options){ 0 }, &err), err);
	assert_ok(feed_open(&c->feed, c->set, &spec, 1, &(struct feed_options){ .batch = BATCH }, &err), err);
	c->l = learner_new(
		&(struct learn_source){ .rt = rt, .s = c->s, .calib = c->feed, .threads = 1, .means = true });
	d = qplan_defaults(&c->s->cpu);
	qplan_default(&c->plan, &c->s->ops, &c->s->g, &d);
	c->read = 0;
	free(path);
}

static void course_close(struct course *c)
{
	qplan_release(&c->plan);
	learner_free(c->l);
	feed_free(c->feed);
	dataset_free(c->set);
	subject_free(c->s);
}

/* What the runtime makes of it; free() it. */
static char *ops_of(struct course *c, const struct knowledge *k)
{
	struct model *q = NULL, *graph = NULL;
	struct err err = ERR_INIT;
	char *text;

	assert_ok(quantize(c->s->z, k, &c->plan, &q, &err), err);
	assert_ok(optimised_graph(&graph, rt, q, &(struct session_options){ .threads = 1 }, &err), err);
	text = xstrdup(describe(graph));
	model_free(graph);
	model_free(q);
	return text;
}

#define CONV(out, in) "w" out " = 4x4x3x3; " out " = Conv(" in ", w" out ") pads=1,1,1,1; "

/* The runtime makes the same of a model with made-up ranges, and no sample is read for them. */
static void made_up_ranges_make_the_same_ops(void **state)
{
	static const char *const bodies[] = {
		CONV("a", "x") "r = Relu(a); " CONV("y", "r"),
		CONV("a", "x") "lo = 0.0; hi = 6.0; r = Clip(a, lo, hi); " CONV("y", "r"),
		CONV("a", "x") "lo = -0.5; hi = 0.5; r = Clip(a, lo, hi); " CONV("y", "r"),
		CONV("a", "x")
			CONV("b", "x") "s = Add(a, b); r = Relu(s); p = MaxPool(r) kernel_shape=2,2; " CONV(
				"y", "p"),
		CONV("a",
		     "x") "r = Relu(a); p = GlobalAveragePool(r); f = Flatten(p); w = 4x3; y = MatMul(f, w)",
		CONV("a", "x") "r = LeakyRelu(a) alpha=0.1; f = Flatten(r); w = 256x8; b = 8; g = Gemm(f, w, "
			       "b); h = "
			       "Relu(g); y = Tanh(h)",
	};
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_LEN(bodies); i++) {
		struct course c;
		struct knowledge k;
		struct err err = ERR_INIT;
		char *made, *real;
		bool made_up;

		course_open(&c, bodies[i]);
		assert_false(learner_calibrated(c.l, 0));
		assert_ok(learn_made_up(c.l, &c.plan, &k, &made_up, &err), err);
		assert_true(made_up);
		made = ops_of(&c, &k);
		assert_int_equal(c.read, 0);
		assert_ok(learn(c.l, 0, &c.plan, &k, &err), err);
		assert_true(c.read >= SAMPLES);
		assert_true(learner_calibrated(c.l, 0));
		real = ops_of(&c, &k);
		assert_string_equal(made, real);
		free(made);
		free(real);
		course_close(&c);
	}
}

static void what_depends_on_data_is_not_made_up(void **state)
{
	struct course c;
	struct knowledge k;
	struct err err = ERR_INIT;
	bool made_up = true;

	(void)state;
	course_open(&c, CONV("a", "x") "n = NonZero(a); y = Cast(n) to=1");
	assert_ok(learn_made_up(c.l, &c.plan, &k, &made_up, &err), err);
	assert_false(made_up);
	course_close(&c);
}

static struct range range_of(const struct course *c, const struct knowledge *k, const char *value)
{
	struct range r = { NAN, NAN };
	size_t i;

	for (i = 0; i < c->plan.n; i++)
		if (c->plan.ops[i].mode == OP_STATIC &&
		    statistics_range(k->values, value, &c->plan.ops[i].act, &r))
			break;
	return r;
}

/* A plan that has one op in integers has only what that needs observed, to the same ranges; another plan, then, everything. */
static void few_values_are_observed_alone(void **state)
{
	struct course c, all;
	struct knowledge k, full;
	struct err err = ERR_INIT;
	struct range a, b;
	size_t i, per_sweep;

	(void)state;
	course_open(&c, CONV("a", "x") CONV("b", "a") CONV("c", "b") CONV("d", "c") CONV("e", "d")
				CONV("f", "e") CONV("g", "f") CONV("y", "g"));
	course_open(&all, CONV("a", "x") CONV("b", "a") CONV("c", "b") CONV("d", "c") CONV("e", "d")
				  CONV("f", "e") CONV("g", "f") CONV("y", "g"));
	assert_int_equal(c.plan.n, OPS);
	assert_ok(learn(all.l, 0, &all.plan, &full, &err), err);
	per_sweep = all.read;
	for (i = 0; i < OPS; i++)
		if (i != 3)
			c.plan.ops[i].mode = OP_FP32;
	assert_ok(learn(c.l, 0, &c.plan, &k, &err), err);
	assert_int_equal(c.read, per_sweep);
	assert_false(learner_calibrated(c.l, 0));
	a = range_of(&c, &k, "c");
	b = range_of(&all, &full, "c");
	assert_true(a.min < 0 && a.max > 0 && a.min == b.min && a.max == b.max);
	assert_ok(learn(c.l, 0, &c.plan, &k, &err), err); /* again: it is known */
	assert_int_equal(c.read, per_sweep);
	for (i = 0; i < OPS; i++)
		c.plan.ops[i].mode = OP_STATIC;
	assert_ok(learn(c.l, 0, &c.plan, &k, &err), err);
	assert_int_equal(c.read, 2 * per_sweep);
	assert_true(learner_calibrated(c.l, 0));
	a = range_of(&c, &k, "f");
	b = range_of(&all, &full, "f");
	assert_true(a.min < 0 && a.max > 0 && a.min == b.min && a.max == b.max);
	course_close(&c);
	course_close(&all);
}

static void only_static(struct qplan *p, size_t op)
{
	size_t i;

	for (i = 0; i < p->n; i++)
		p->ops[i].mode = i == op ? OP_STATIC : OP_FP32;
}

/* Where several plans are to be compared, those after the first need no calibration of their own, be it of few values or of all. */
static void several_plans_are_calibrated_at_once(void **state)
{
	static const size_t few = 2, many = 8;
	struct course c;
	struct knowledge k;
	struct err err = ERR_INIT;
	size_t n, op, per_sweep;

	(void)state;
	for (n = few; n <= many; n += many - few) {
		course_open(&c, CONV("a", "x") CONV("b", "a") CONV("c", "b") CONV("d", "c") CONV("e", "d")
					CONV("f", "e") CONV("g", "f") CONV("h", "g") CONV("i", "h")
						CONV("j", "i") CONV("k", "j") CONV("y", "k"));
		for (op = 3; op < 3 + n; op++) {
			only_static(&c.plan, op);
			assert_ok(learner_expect(c.l, 0, &c.plan, &err), err);
		}
		assert_int_equal(c.read, 0);
		for (op = 3, per_sweep = 0; op < 3 + n; op++) {
			only_static(&c.plan, op);
			assert_ok(learn(c.l, 0, &c.plan, &k, &err), err);
			per_sweep = per_sweep ? per_sweep : c.read;
			assert_int_equal(c.read, per_sweep);
			assert_int_equal(learner_calibrated(c.l, 0), n == many);
		}
		only_static(&c.plan, 11); /* nobody expected it */
		assert_ok(learn(c.l, 0, &c.plan, &k, &err), err);
		assert_int_equal(c.read, (n == many ? 1 : 2) * per_sweep);
		course_close(&c);
	}
}

/* Means that are needed after few values were calibrated come with all the others: one more sweep gives both. */
static void means_come_with_all_values(void **state)
{
	struct course c;
	struct knowledge k;
	struct err err = ERR_INIT;
	size_t per_sweep, i;

	(void)state;
	course_open(&c, CONV("a", "x") CONV("b", "a") CONV("c", "b") CONV("d", "c") CONV("e", "d")
				CONV("f", "e") CONV("g", "f") CONV("y", "g"));
	only_static(&c.plan, 3);
	assert_ok(learn(c.l, 0, &c.plan, &k, &err), err);
	per_sweep = c.read;
	assert_false(learner_calibrated(c.l, 0));
	c.plan.recipes.fast_bias_correction = true;
	assert_ok(learn(c.l, 0, &c.plan, &k, &err), err);
	assert_int_equal(c.read, 2 * per_sweep);
	for (i = 0; i < c.plan.n; i++)
		c.plan.ops[i].mode = OP_STATIC;
	assert_ok(learn(c.l, 0, &c.plan, &k, &err), err);
	assert_int_equal(c.read, 2 * per_sweep);
	course_close(&c);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(made_up_ranges_make_the_same_ops),
					    cmocka_unit_test(what_depends_on_data_is_not_made_up),
					    cmocka_unit_test(few_values_are_observed_alone),
					    cmocka_unit_test(several_plans_are_calibrated_at_once),
					    cmocka_unit_test(means_come_with_all_values) };

	return cmocka_run_group_tests(tests, place_open, place_close);
}
