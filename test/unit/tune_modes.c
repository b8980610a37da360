/*
 * What prices of modes are made of: every node of a profile is some op's or a conversion, and conversions are priced where the
 * runtime has them. Compared with what the runtime makes of each plan, not with a clock.
 */
#include "unit/unit.h"
#include "unit/build.h"
#include "unit/know.h"
#include "unit/place.h"

#include <math.h>

#include "runtime/profile.h"
#include "tune/modes_impl.h"

struct bench {
	struct lab l;
	struct subject *s;
	char *path;
};

static void bench_open_on(struct bench *b, const char *input, const char *body, const char *output)
{
	static const int64_t samples[] = { 10 };
	const struct recipe_numbers numbers[RECIPES] = { { .n = 0 } };
	struct tuning_options o = { .numbers = numbers, .samples = samples, .n_samples = 1 };
	struct op_mask *masks;
	struct err err = ERR_INIT;
	bool fixed[RECIPES];

	b->path = xstrfmt("%s/m.onnx", dir);
	memset(fixed, true, sizeof(fixed));
	build_model(b->path, 13, input, body, output);
	assert_ok(subject_open(&b->s, rt, b->path, &err), err);
	masks = xcalloc(b->s->ops.n, sizeof(*masks));
	o.defaults = qplan_defaults(&b->s->cpu);
	o.defaults.approach = APPROACH_AUTO;
	o.masks = masks;
	o.recipe_fixed = fixed;
	b->l = (struct lab){
		.rt = rt, .s = b->s, .deadline = INFINITY, .o = { .deployed = { .threads = 1 } }
	};
	b->l.t = tuning_new(&b->s->ops, &b->s->g, &o);
	modes_of(&b->l);
	free(masks);
}

static void bench_open(struct bench *b, const char *body, const char *output)
{
	bench_open_on(b, "x:1x32x12x12", body, output);
}

static void bench_close(struct bench *b)
{
	modes_free(b->l.modes);
	tuning_free(b->l.t);
	subject_free(b->s);
	free(b->path);
}

/*
 * A BatchNormalization that no convolution takes in, and a sum and a Relu that one does: the runtime names them after each other. And a
 * Gelu, which it makes of several nodes, the bias among them, and gives a name of its own.
 */
static void no_node_is_lost(void **state)
{
	static const struct {
		const char *input, *body;
	} rows[] = {
		{ "x:1x32x12x12",
		  "w = 32x32x3x3; c = Conv(x, w) pads=1,1,1,1; r = Relu(c);"
		  "v = 32x32x3x3; d = Conv(r, v) pads=1,1,1,1; s = Add(d, r);"
		  "g = 32; h = 32; m = 32; k = "
		  "[1.0,1.0,1.0,1.0,1.0,1.0,1.0,1.0,1.0,1.0,1.0,1.0,1.0,1.0,1.0,1.0,"
		  "1.0,1.0,1.0,1.0,1.0,1.0,1.0,1.0,1.0,1.0,1.0,1.0,1.0,1.0,1.0,1.0];"
		  "n = BatchNormalization(s, g, h, m, k); q = Relu(n); t = Add(q, s); u = Relu(t); y = "
		  "GlobalAveragePool(u)" },
		{ "x:1x16x32",
		  "w = 32x64; m = MatMul(x, w); b = 64; a = Add(m, b); r = [1.4142135]; d = Div(a, r);"
		  "e = Erf(d); o = [1.0]; p = Add(e, o); q = Mul(a, p); h = [0.5]; g = Mul(q, h);"
		  "v = 64x32; y = MatMul(g, v)" },
	};
	size_t i, k;

	(void)state;
	for (k = 0; k < ARRAY_LEN(rows); k++) {
		struct bench b;
		struct err err = ERR_INIT;
		const struct mode_profile *p;
		double sum;

		bench_open_on(&b, rows[k].input, rows[k].body, "y");
		assert_ok(profile_fp32(&b.l, &err), err);
		p = &b.l.modes->fp32;
		for (i = sum = 0; i < CONVERSIONS; i++)
			sum += p->converting[i];
		for (i = 0; i < b.s->m->nodes.n; i++)
			sum += p->seconds[i];
		assert_true(p->total > 0);
		if (fabs(sum / p->total - 1) > 1e-6)
			fail_msg("row %zu: nodes take %g s of %g s", k, sum, p->total);
		bench_close(&b);
	}
}

/* ---- conversions ---- */

static void conversions_are_measured_first(void **state)
{
	static const enum mode_conversion always[] = { TO_INT, TO_FLOAT, TO_LAST, FEW_TO_LAST };
	struct bench b;
	struct err err = ERR_INIT;
	const struct modes *m;
	size_t i;

	(void)state;
	bench_open(&b, "w = 32x32x3x3; c = Conv(x, w) pads=1,1,1,1; y = Relu(c)", "y");
	m = b.l.modes;
	assert_ok(profile_fp32(&b.l, &err), err);
	find_mode_ops(&b.l);
	assert_ok(measure_conversions(&b.l, &err), err);
	for (i = 0; i < ARRAY_LEN(always); i++) {
		assert_true(m->lines[always[i]].n >= 2); /* of two sizes */
		assert_true(line_at(&m->lines[always[i]], 1e6) > 0);
	}
	assert_true(m->alone.n >= 2);
	assert_true((m->lines[TO_BLOCKS].n >= 4) == m->blocked[0]); /* there and back */
	bench_close(&b);
}

static enum fettle_status any_range(void *self, const char *value, const struct qsetting *s,
				    struct range *out, struct err *err)
{
	(void)self;
	(void)s;
	(void)err;
	*out = (struct range){ *value == 'r' ? 0 : -4, 4 }; /* Relu makes r0, r1, … */
	return FETTLE_OK;
}

static void count_conversion(void *self, const char *node, const char *op, double seconds, const void *shapes)
{
	(void)node;
	(void)seconds;
	*(double *)self += conversion_of(op, shapes) != CONVERSIONS;
}

static double conversions_in(struct bench *b, const struct plan *p)
{
	const struct profile_options o = { .session = { .threads = 1 }, .batch = 1, .runs = 1 };
	struct qplan q = QPLAN_INIT;
	struct model *m = NULL;
	struct err err = ERR_INIT;
	double n = 0;

	tuning_qplan(b->l.t, p, &q);
	assert_ok(quantize_by(b->s, &q, any_range, NULL, NULL, &m, &err), err);
	assert_ok(profile_model(rt, m, NULL, &o, count_conversion, &n, &err), err);
	model_free(m);
	qplan_release(&q);
	return n;
}

/* Nothing has a price. */
static void price_nothing(struct bench *b)
{
	struct modes *m = b->l.modes;
	struct err err = ERR_INIT;
	size_t i;

	assert_ok(profile_fp32(&b->l, &err), err);
	find_mode_ops(&b->l);
	m->factor = 1;
	for (i = 0; i < ASSIGN_MODES; i++)
		m->seconds[i] = xcalloc(b->s->m->nodes.n + 1, sizeof(double));
}

/* Every conversion has a price of 1. */
static void price_conversions(struct bench *b)
{
	struct modes *m = b->l.modes;
	size_t i;

	for (i = 0; i < CONVERSIONS; i++) {
		m->lines[i] = (struct line){ .n = 0 };
		line_add(&m->lines[i], 1, 1);
		line_add(&m->lines[i], 2, 1);
	}
}

/* Each at a price of 1, what conversions cost is how many there are. In floats, two are at the ends of the model. */
static void conversions_are_where_the_runtime_has_them(void **state)
{
	enum { CONVS = 4 };
	struct bench b;
	struct plan p = PLAN_INIT;
	struct modes *m;
	size_t i, k;

	(void)state;
	bench_open(&b,
		   "w0 = 32x32x3x3; c0 = Conv(x, w0) pads=1,1,1,1; r0 = Relu(c0);"
		   "w1 = 32x32x3x3; c1 = Conv(r0, w1) pads=1,1,1,1; r1 = Relu(c1);"
		   "w2 = 32x32x1x1; c2 = Conv(r1, w2); r2 = Relu(c2);"
		   "w3 = 32x32x3x3; y = Conv(r2, w3) pads=1,1,1,1",
		   "y");
	m = b.l.modes;
	assert_int_equal(b.l.t->space.n_ops, CONVS);
	price_nothing(&b);
	price_conversions(&b);
	for (k = 1; k < 1 << CONVS; k++) {
		const bool first = k & 1, last = k & 1 << (CONVS - 1);
		const double ends = m->blocked[0] ? !first + !last : 0;

		plan_init(&p, &b.l.t->space);
		for (i = 0; i < CONVS; i++)
			if (!(k & 1 << i))
				p.choice[i] = b.l.t->space.v[i].fallback;
		if (price_plan(&b.l, &p).converting + ends != conversions_in(&b, &p))
			fail_msg("ops %zx in integers: %g conversions are priced, there are %g", k,
				 price_plan(&b.l, &p).converting + ends, conversions_in(&b, &p));
		plan_release(&p);
	}
	bench_close(&b);
}

/* All in one mode; false: an op does not have it. */
static bool put_in(const struct bench *b, struct plan *p, size_t op, enum assign_mode mode)
{
	const unsigned o = mode_option(&b->l, op, p, false, mode);

	if (o != NO_OPTION)
		p->choice[op] = (uint16_t)o;
	return o != NO_OPTION;
}

/* What the runtime does with a plan that is dynamic is seen in its profile. */
static void see_dynamic(struct bench *b, const struct plan *p)
{
	struct mode_profile seen;
	struct qplan q = QPLAN_INIT;
	struct model *m = NULL;
	struct err err = ERR_INIT;

	b->l.o.model = b->path;
	assert_ok(lab_open_fp32(&b->l, &err), err);
	tuning_qplan(b->l.t, p, &q);
	assert_ok(quantize_by(b->s, &q, any_range, NULL, NULL, &m, &err), err);
	assert_ok(mode_profile(&b->l, m, &seen, NULL, &err), err);
	assert_true(b->l.modes->ratio > 0); /* timed in turns, though profiling takes longer than its ops */
	find_within(&b->l, p);
	free(seen.seconds);
	timing_free(b->l.timing);
	session_free(b->l.fp32);
	model_free(m);
	qplan_release(&q);
}

/* Matrices give floats by themselves, and one that alone reads a value quantizes it by itself: neither is a conversion. */
static void matrices_convert_by_themselves(void **state)
{
	enum { MATRICES = 4, ALL = 81 };
	static const enum assign_mode modes[] = { ASSIGN_FP32, ASSIGN_STATIC, ASSIGN_DYNAMIC };
	struct bench b;
	struct plan p = PLAN_INIT;
	size_t i, k, left;
	bool alone;

	(void)state;
	bench_open(&b,
		   "w0 = 12x12; a = MatMul(x, w0); w1 = 12x12; b = MatMul(x, w1); t = Tanh(a); u = Tanh(b);"
		   "s = Sub(t, u); w2 = 12x12; c = MatMul(s, w2); v = Tanh(c); w3 = 12x12; y = MatMul(v, w3)",
		   "y");
	assert_int_equal(b.l.t->space.n_ops, MATRICES);
	price_nothing(&b);
	plan_init(&p, &b.l.t->space);
	for (i = 0; i < MATRICES; i++)
		assert_true(put_in(&b, &p, i, ASSIGN_DYNAMIC));
	see_dynamic(&b, &p);
	price_conversions(&b); /* which the profile has added to */
	for (k = 0; k < ALL; k++) {
		for (i = 0, left = k; i < MATRICES; i++, left /= 3)
			assert_true(put_in(&b, &p, i, modes[left % 3]));
		/* of two that may read a value, one that does so alone does it by itself, too: at the same price */
		alone = (mode_in(&b.l, &p, 0) == ASSIGN_DYNAMIC) != (mode_in(&b.l, &p, 1) == ASSIGN_DYNAMIC);
		if (price_plan(&b.l, &p).converting != conversions_in(&b, &p) + alone)
			fail_msg("modes %zu: %g conversions are priced, there are %g", k,
				 price_plan(&b.l, &p).converting, conversions_in(&b, &p) + alone);
	}
	plan_release(&p);
	bench_close(&b);
}

/* Of two convolutions that gain as little, the one that reads an image stays in floats; unless it gains more. */
static void what_sees_an_image_must_gain(void **state)
{
	static const double saved[] = { 1, 3 }; /* of 100 */
	struct bench b;
	struct plan from = PLAN_INIT, p = PLAN_INIT;
	struct modes *m;
	size_t i, k;

	(void)state;
	bench_open_on(&b, "x:1x3x12x12",
		      "w0 = 32x3x3x3; c0 = Conv(x, w0) pads=1,1,1,1; r0 = Relu(c0);"
		      "w1 = 32x32x3x3; y = Conv(r0, w1) pads=1,1,1,1",
		      "y");
	m = b.l.modes;
	price_nothing(&b);
	m->fp32.total = 100;
	plan_init(&from, &b.l.t->space);
	for (k = 0; k < ARRAY_LEN(saved); k++) {
		for (i = 0; i < b.l.t->space.n_ops; i++) {
			m->seconds[ASSIGN_FP32][b.l.t->node[i]] = 50;
			m->seconds[ASSIGN_STATIC][b.l.t->node[i]] = 50 - saved[k];
		}
		solve_modes(&b.l, &from, false, (struct mode_wish){ 1, false }, &p);
		assert_int_equal(mode_in(&b.l, &p, 0), k ? ASSIGN_STATIC : ASSIGN_FP32);
		assert_int_equal(mode_in(&b.l, &p, 1), ASSIGN_STATIC);
	}
	plan_release(&p);
	plan_release(&from);
	bench_close(&b);
}

/* The fp32 model changes layouts too: that is no price of integers, and a plan may even save some of it. */
static void only_what_is_converted_more_counts(void **state)
{
	const struct mode_profile more = { .converting = { [TO_INT] = 3, [TO_BLOCKS] = 8 } },
				  less = { .converting = { [TO_INT] = 1, [TO_BLOCKS] = 5 } };
	struct modes m = { .fp32.converting = { [TO_BLOCKS] = 9 } };
	const struct lab l = { .modes = &m };

	(void)state;
	assert_true(mode_converting(&l, &more) == 2);
	assert_true(mode_converting(&l, &less) == 0);
}

static double both(struct bench *b, struct plan *p, enum assign_mode first, enum assign_mode second)
{
	assert_true(put_in(b, p, 0, first) && put_in(b, p, 1, second));
	return price_plan(&b->l, p).ops;
}

/* An op without a choice, between two convolutions: what it gains needs both in integers, what it loses is the first one's. */
static void what_is_between_gains_with_both(void **state)
{
	static const double between[] = { 4, 11 };
	struct bench b;
	struct plan p = PLAN_INIT;
	struct mode_profile now;
	struct modes *m;
	size_t i, k;

	(void)state;
	bench_open(&b,
		   "w0 = 32x32x3x3; c0 = Conv(x, w0) pads=1,1,1,1; e = Elu(c0);"
		   "w1 = 32x32x3x3; y = Conv(e, w1) pads=1,1,1,1",
		   "y");
	m = b.l.modes;
	assert_int_equal(b.l.t->space.n_ops, 2);
	price_nothing(&b);
	plan_init(&p, &b.l.t->space);
	now = (struct mode_profile){ .seconds = xcalloc(b.s->m->nodes.n + 1, sizeof(double)) };
	for (k = 0; k < ARRAY_LEN(between); k++) {
		for (i = 0; i < b.s->m->nodes.n; i++) {
			m->seconds[ASSIGN_FP32][i] = m->seconds[ASSIGN_STATIC][i] = now.seconds[i] = 5;
			m->fp32.seconds[i] = m->place[i] < 0 ? 10 : 5;
			if (m->place[i] < 0)
				now.seconds[i] = between[k];
		}
		both(&b, &p, ASSIGN_STATIC, ASSIGN_STATIC);
		charge_neighbours(&b.l, &p, &now);
		assert_true(both(&b, &p, ASSIGN_FP32, ASSIGN_FP32) == 10);
		assert_true(both(&b, &p, ASSIGN_STATIC, ASSIGN_STATIC) == between[k]);
		assert_true(both(&b, &p, ASSIGN_STATIC, ASSIGN_FP32) == (k ? 11 : 10));
		assert_true(both(&b, &p, ASSIGN_FP32, ASSIGN_STATIC) == 10);
	}
	free(now.seconds);
	plan_release(&p);
	bench_close(&b);
}

/* The profile of a plan that is profiled again takes the place of the first, and so do the prices of its ops. */
static void the_last_profile_counts(void **state)
{
	struct bench b;
	struct plan p = PLAN_INIT;
	struct err err = ERR_INIT;
	struct modes *m;
	double *price;
	size_t i;

	(void)state;
	bench_open(&b, "w0 = 12x12; a = MatMul(x, w0); w1 = 12x12; y = MatMul(a, w1)", "y");
	b.l.o.model = b.path;
	assert_ok(lab_open_fp32(&b.l, &err), err);
	price_nothing(&b);
	m = b.l.modes;
	plan_init(&p, &b.l.t->space);
	for (i = 0; i < b.l.t->space.n_ops; i++)
		assert_true(put_in(&b, &p, i, ASSIGN_DYNAMIC));
	assert_ok(profile_plan(&b.l, &p, false, &err), err);
	assert_int_equal(m->seen.n, 1);
	price = &m->seconds[ASSIGN_DYNAMIC][b.l.t->node[0]];
	m->seen.v[0].p.total = *price = 1000; /* as if it had been disturbed */
	assert_ok(profile_again(&b.l, &p, false, &err), err);
	assert_int_equal(m->seen.n, 1);
	assert_true(profile_of(&b.l, &p)->total < 1000);
	assert_true(*price > 0 && *price < 1000);
	plan_release(&p);
	lab_release(&b.l);
	bench_close(&b);
}

static void disturbed_profiles_are_doubted(void **state)
{
	static const struct {
		const char *why;
		double predicted, objective, original, shortest;
		bool doubtful;
	} rows[] = {
		{ "as predicted, on a quiet machine", 1.2, 1 / 1.2, 1e-3, 0.98e-3, false },
		{ "slower than predicted", 1.3, 1 / 1.2, 1e-3, 0.98e-3, false },
		{ "a little faster than predicted", 1.2, 1 / 1.25, 1e-3, 0.98e-3, false },
		{ "much faster than predicted", 1, 1 / 1.13, 1e-3, 0.98e-3, true },
		{ "as predicted, but fp32 took long, too", 1.07, 1 / 1.07, 1.3e-3, 1e-3, true },
		{ "nothing was timed", 1.07, 1 / 1.07, 1.3e-3, 0, false },
		{ "nothing was profiled", NAN, 1 / 1.07, 0, 1e-3, false },
	};
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_LEN(rows); i++)
		if (modes_doubtful(rows[i].predicted, rows[i].objective, rows[i].original,
				   rows[i].shortest) != rows[i].doubtful)
			fail_msg("%s", rows[i].why);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(disturbed_profiles_are_doubted),
		cmocka_unit_test(matrices_convert_by_themselves),
		cmocka_unit_test(what_sees_an_image_must_gain),
		cmocka_unit_test(no_node_is_lost),
		cmocka_unit_test(only_what_is_converted_more_counts),
		cmocka_unit_test(what_is_between_gains_with_both),
		cmocka_unit_test(the_last_profile_counts),
		cmocka_unit_test(conversions_are_measured_first),
		cmocka_unit_test(conversions_are_where_the_runtime_has_them),
	};

	return cmocka_run_group_tests(tests, place_open, place_close);
}
