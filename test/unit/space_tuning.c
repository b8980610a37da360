/* The tuning space of a small model: what constraints leave, what plans mean, and plans as JSON. */
#include "unit/unit.h"
#include "unit/build.h"
#include "unit/know.h"

#include <unistd.h>

#include "quantize/subject.h"
#include "space/plan_json.h"
#include "space/select.h"

static struct runtime *rt;
static struct subject *s;
static char path[] = "/tmp/fettle-space.XXXXXX";

static const char body[] = "w1 = 8x4x3x3; b1 = 8; a = Conv(x, w1, b1) pads=1,1,1,1; r = Relu(a); m = "
			   "MaxPool(r) kernel_shape=2,2; "
			   "w2 = 8x8x3x3; c = Conv(m, w2); f = Flatten(c); v = 968x10; y = Gemm(f, v)";

static size_t op_named(const struct tuning *t, const char *name)
{
	size_t i;

	for (i = 0; i < t->space.n_ops; i++)
		if (strcmp(t->space.v[i].name, name) == 0)
			return i;
	return MAP_NONE;
}

static struct str notes; /* one per line */

static void keep_note(void *self, const char *text)
{
	(void)self;
	str_addf(&notes, "%s\n", text);
}

static struct tuning *make(const struct constraint *v, size_t n, enum approach approach, bool saturates)
{
	static const int64_t samples[] = { 10, 20 };
	static const double alphas[] = { SMOOTH_AUTO, 0.5, 0.25 };
	const struct recipe_numbers numbers[RECIPES] = { [RECIPE_smooth_quant] = { alphas,
										   ARRAY_LEN(alphas) } };
	bool fixed[RECIPES] = { false };
	struct op_mask *masks = xcalloc(s->ops.n, sizeof(*masks));
	struct cpu cpu = { .name = "test", .saturates = saturates };
	struct tuning_options o = { .defaults = qplan_defaults(&cpu),
				    .masks = masks,
				    .recipe_fixed = fixed,
				    .numbers = numbers,
				    .when_on = { .finetune = finetune_defaults(FINETUNE_ADAROUND) },
				    .mixed = true,
				    .samples = samples,
				    .n_samples = 2 };
	struct err err = ERR_INIT;
	struct tuning *t;

	o.defaults.approach = approach;
	fixed[0] = true; /* the user has decided on the first recipe */
	assert_ok(constraints_apply(v, n, &s->ops, s->m, NULL, masks, &err), err);
	str_release(&notes);
	constraints_resolve(masks, &s->ops, &cpu, keep_note, NULL);
	t = tuning_new(&s->ops, &s->g, &o);
	free(masks);
	return t;
}

static void the_default_plan_comes_first(void **state)
{
	struct tuning *t = make(NULL, 0, APPROACH_STATIC, false);
	struct plan p = PLAN_INIT;
	struct qplan q = QPLAN_INIT, want = QPLAN_INIT;
	struct qplan_defaults d = qplan_defaults(&(struct cpu){ .name = "test" });
	size_t i;

	(void)state;
	assert_int_equal(t->space.n_ops, 3);
	plan_init(&p, &t->space);
	tuning_qplan(t, &p, &q);
	qplan_default(&want, &s->ops, &s->g, &d);
	for (i = 0; i < q.n; i++) {
		assert_int_equal(q.ops[i].mode, want.ops[i].mode);
		assert_true(qsetting_equal(&q.ops[i].act, &want.ops[i].act));
		assert_true(qsetting_equal(&q.ops[i].weight, &want.ops[i].weight));
	}
	assert_int_equal(tuning_samples(t, &p), 10);
	p.choice[p.n - 1] = 1;
	assert_int_equal(tuning_samples(t, &p), 20);
	/* fallback is the fp32 option, and no two options of an op are alike */
	for (i = 0; i < t->space.n_ops; i++) {
		const struct param *op = &t->space.v[i];
		size_t k, m;

		assert_int_equal(t->choices[i][op->fallback].mode, OP_FP32);
		for (k = 0; k < op->n_options; k++)
			for (m = 0; m < k; m++)
				assert_true(
					t->choices[i][k].mode != t->choices[i][m].mode ||
					!qsetting_equal(&t->choices[i][k].act, &t->choices[i][m].act) ||
					!qsetting_equal(&t->choices[i][k].weight, &t->choices[i][m].weight));
	}
	qplan_release(&q);
	qplan_release(&want);
	plan_release(&p);
	tuning_free(t);
}

static bool has_mode(const struct param *op, enum option_mode mode)
{
	return param_option_in(op, mode) != NO_OPTION;
}

/* The runtime is slow at it. */
static void a_conv_that_can_be_static_is_not_dynamic(void **state)
{
	struct tuning *t = make(NULL, 0, APPROACH_AUTO, false);
	const struct param *conv = &t->space.v[op_named(t, "Conv_0")],
			   *gemm = &t->space.v[op_named(t, "Gemm_5")];

	(void)state;
	assert_true(has_mode(conv, OPTION_STATIC) && !has_mode(conv, OPTION_DYNAMIC));
	assert_true(has_mode(gemm, OPTION_STATIC) && has_mode(gemm, OPTION_DYNAMIC));
	tuning_free(t);
}

static void the_cpu_decides_on_narrow_weights(void **state)
{
	struct tuning *plain = make(NULL, 0, APPROACH_STATIC, false),
		      *narrow = make(NULL, 0, APPROACH_STATIC, true);
	size_t i, wide = 0, unsigned8 = 0;

	(void)state;
	assert_false(plain->choices[0][0].weight.narrow);
	assert_true(narrow->choices[0][0].weight.narrow);
	for (i = 0; i < narrow->space.v[0].n_options; i++) {
		wide += !narrow->choices[0][i].weight.narrow;
		unsigned8 += narrow->choices[0][i].weight.dtype == DT_U8;
		assert_int_equal(narrow->choices[0][i].act.narrow, false); /* activations keep all bits */
	}
	assert_true(wide > 0 && unsigned8 > 0);
	tuning_free(plain);
	tuning_free(narrow);
}

/* 16-bit activations need no 7-bit weights, and what overflows on a CPU that is not here is not on offer */
static void only_what_overflows_is_narrow(void **state)
{
	const struct constraint wide = { CONSTRAIN_MODEL,
					 NULL,
					 "c:1",
					 { .act = { .dtype = T_U8 | T_U16 }, .weight = { .dtype = T_S8 } } };
	struct tuning *t = make(&wide, 1, APPROACH_STATIC, true);
	const struct cpu cpu = { .name = "test", .saturates = true };
	struct op_mask *masks = xcalloc(s->ops.n, sizeof(*masks));
	struct tuning_options o = { .defaults = qplan_defaults(&cpu),
				    .masks = masks,
				    .recipe_fixed = (bool[RECIPES]){ false },
				    .samples = &(int64_t){ 10 },
				    .n_samples = 1 };
	size_t i, k, n[2] = { 0, 0 };

	(void)state;
	for (i = 0; i + 2 < t->space.v[0].n_options; i++) {
		const struct op_choice *c = &t->choices[0][i];

		n[dtype_size(c->act.dtype) - 1]++;
		assert_false(c->weight.narrow && dtype_size(c->act.dtype) == 2);
	}
	assert_true(n[0] > 0 && n[1] > 0);
	tuning_free(t);
	o.defaults.elsewhere = true;
	t = tuning_new(&s->ops, &s->g, &o);
	for (k = 0; k < t->space.n_ops; k++)
		for (i = 0; i < t->space.v[k].n_options; i++) {
			const struct op_choice *c = &t->choices[k][i];

			assert_true(c->mode == OP_FP32 || c->weight.narrow || c->weight.dtype == DT_U8);
		}
	tuning_free(t);
	free(masks);
}

static void the_narrower_constraint_wins(void **state)
{
	const struct constraint v[] = {
		{ CONSTRAIN_OP, "Conv_0", "c:1", { .act = { .algorithm = 1u << RANGE_MINMAX } } },
		{ CONSTRAIN_MODEL,
		  NULL,
		  "c:2",
		  { .act = { .algorithm = 1u << RANGE_KL, .scheme = 1u << SCHEME_ASYM } } },
		{ CONSTRAIN_TYPE,
		  "Gemm",
		  "c:3",
		  { .act = { .dtype = MASK_FP32 }, .weight = { .dtype = MASK_FP32 } } },
	};
	struct tuning *t = make(v, ARRAY_LEN(v), APPROACH_STATIC, false);
	size_t first = op_named(t, "Conv_0"), second = op_named(t, "Conv_3"), k;

	(void)state;
	assert_int_equal(op_named(t, "Gemm_5"), MAP_NONE); /* fp32 only: nothing to tune */
	assert_int_equal(t->base.ops[s->ops.n - 1].mode, OP_FP32);
	for (k = 0; k + 1 < t->space.v[first].n_options; k++) {
		assert_int_equal(t->choices[first][k].act.algorithm, RANGE_MINMAX);
		assert_int_equal(t->choices[first][k].act.scheme, SCHEME_ASYM); /* from the model */
	}
	for (k = 0; k + 1 < t->space.v[second].n_options; k++)
		assert_int_equal(t->choices[second][k].act.algorithm, RANGE_KL);
	tuning_free(t);
}

#define MINMAX (1u << RANGE_MINMAX)
#define KL (1u << RANGE_KL)
#define ASYM (1u << SCHEME_ASYM)
#define SYM (1u << SCHEME_SYM)

/* The lists of both sides are crossed; what the runtime does not have becomes the nearest it has. */
static void constraints_leave_what_they_say(void **state)
{
	static const struct {
		const char *what;
		struct op_mask mask;
		size_t settings; /* of a Conv, without fp32 */
		bool fp32;
		enum dtype act, weight; /* of the first */
		enum scheme act_scheme, weight_scheme;
		enum range_algorithm algorithm;
		const char *note; /* NULL: none */
	} rows[] = {
		{ "nothing",
		  { .named = false },
		  32,
		  true,
		  DT_U8,
		  DT_S8,
		  SCHEME_ASYM,
		  SCHEME_SYM,
		  RANGE_MINMAX,
		  NULL },
		{ "the seed's: int8 x int8 or fp32, asymmetric",
		  { .weight = { MASK_PER_CHANNEL, ASYM, T_S8, MINMAX },
		    .act = { MASK_PER_TENSOR, ASYM, T_S8 | MASK_FP32, MINMAX | KL } },
		  2,
		  true,
		  DT_U8,
		  DT_S8,
		  SCHEME_ASYM,
		  SCHEME_SYM,
		  RANGE_MINMAX,
		  "activation dtype int8: 3 ops use uint8, the nearest that the runtime has\n"
		  "weight scheme asym: 3 ops use sym, the nearest that the runtime has\n" },
		{ "fp32 on one side is enough to fall back",
		  { .weight = { .dtype = T_S8 }, .act = { .dtype = T_U8 | MASK_FP32 } },
		  32,
		  true,
		  DT_U8,
		  DT_S8,
		  SCHEME_ASYM,
		  SCHEME_SYM,
		  RANGE_MINMAX,
		  NULL },
		{ "nor does it matter on which",
		  { .weight = { .dtype = T_S8 | MASK_FP32 }, .act = { .dtype = T_U8 } },
		  32,
		  true,
		  DT_U8,
		  DT_S8,
		  SCHEME_ASYM,
		  SCHEME_SYM,
		  RANGE_MINMAX,
		  NULL },
		{ "on neither: no fallback",
		  { .weight = { .dtype = T_S8 }, .act = { .dtype = T_U8 } },
		  32,
		  false,
		  DT_U8,
		  DT_S8,
		  SCHEME_ASYM,
		  SCHEME_SYM,
		  RANGE_MINMAX,
		  NULL },
		{ "a side that is not constrained says nothing",
		  { .act = { .dtype = T_U8 } },
		  32,
		  false,
		  DT_U8,
		  DT_S8,
		  SCHEME_ASYM,
		  SCHEME_SYM,
		  RANGE_MINMAX,
		  NULL },
		{ "int8 symmetric is uint8 symmetric, shifted",
		  { .act = { .dtype = T_S8, .scheme = SYM } },
		  16,
		  false,
		  DT_U8,
		  DT_S8,
		  SCHEME_SYM,
		  SCHEME_SYM,
		  RANGE_MINMAX,
		  "activation dtype int8: 3 ops use uint8, the nearest that the runtime has\n" },
		{ "16 bits for those who ask",
		  { .act = { .dtype = T_U16 | MASK_FP32, .scheme = SYM } },
		  16,
		  true,
		  DT_U16,
		  DT_S8,
		  SCHEME_ASYM,
		  SCHEME_SYM,
		  RANGE_MINMAX,
		  "activation scheme sym: 3 ops use asym, the nearest that the runtime has\n" },
		{ "weights know two algorithms",
		  { .weight = { .algorithm = KL } },
		  16,
		  true,
		  DT_U8,
		  DT_S8,
		  SCHEME_ASYM,
		  SCHEME_SYM,
		  RANGE_MINMAX,
		  "weight algorithm kl: 3 ops use minmax, the nearest that the runtime has\n" },
		{ "an algorithm that is tried only where it is named",
		  { .act = { .algorithm = 1u << RANGE_MOVING_AVERAGE } },
		  8,
		  true,
		  DT_U8,
		  DT_S8,
		  SCHEME_ASYM,
		  SCHEME_SYM,
		  RANGE_MOVING_AVERAGE,
		  NULL },
		{ "activations have one scale each",
		  { .act = { .granularity = MASK_PER_CHANNEL } },
		  32,
		  true,
		  DT_U8,
		  DT_S8,
		  SCHEME_ASYM,
		  SCHEME_SYM,
		  RANGE_MINMAX,
		  "activation granularity per_channel: 3 ops use per_tensor, the nearest that the runtime "
		  "has\n" },
		{ "asymmetric weights are uint8",
		  { .weight = { .scheme = ASYM } },
		  32,
		  true,
		  DT_U8,
		  DT_U8,
		  SCHEME_ASYM,
		  SCHEME_ASYM,
		  RANGE_MINMAX,
		  NULL },
	};
	size_t i, k;

	(void)state;
	for (i = 0; i < ARRAY_LEN(rows); i++) {
		struct constraint v = { CONSTRAIN_MODEL, NULL, "c:1", rows[i].mask };
		struct tuning *t = make(&v, 1, APPROACH_STATIC, false);
		const struct param *p = &t->space.v[0];
		const struct op_choice *c = t->choices[0];
		size_t settings = 0;

		for (k = 0; k < p->n_options; k++)
			settings += p->options[k].mode == OPTION_STATIC;
		if (settings != rows[i].settings || (p->fallback != NO_OPTION) != rows[i].fp32 ||
		    p->first != 0)
			fail_msg("%s: %zu settings, fallback %u", rows[i].what, settings, p->fallback);
		if (c->act.dtype != rows[i].act || c->weight.dtype != rows[i].weight ||
		    c->act.scheme != rows[i].act_scheme || c->weight.scheme != rows[i].weight_scheme ||
		    c->act.algorithm != rows[i].algorithm)
			fail_msg("%s: the first setting is another", rows[i].what);
		if (strcmp(notes.s ? notes.s : "", rows[i].note ? rows[i].note : "") != 0)
			fail_msg("%s: noted '%s'", rows[i].what, notes.s ? notes.s : "");
		/* what a plan without a search is made from agrees */
		assert_int_equal(t->base.ops[t->node[0]].act.dtype, rows[i].act);
		assert_int_equal(t->base.ops[t->node[0]].weight.scheme, rows[i].weight_scheme);
		tuning_free(t);
	}
}

static void where_the_runtime_takes_int8_it_stays(void **state)
{
	struct op_mask *masks = xcalloc(s->ops.n, sizeof(*masks));
	struct cpu cpu = { .name = "arm", .s8_activations = true };
	size_t i;

	(void)state;
	for (i = 0; i < s->ops.n; i++)
		masks[i].act.dtype = T_S8;
	str_release(&notes);
	constraints_resolve(masks, &s->ops, &cpu, keep_note, NULL);
	assert_null(notes.s);
	for (i = 0; i < s->ops.n; i++)
		assert_int_equal(masks[i].act.dtype, T_S8);
	free(masks);
}

static void what_constraints_take_away_is_told(void **state)
{
	const struct constraint v[] = {
		{ CONSTRAIN_TYPE, "Conv", "c:1", { .act = { .algorithm = MINMAX | KL, .dtype = T_U8 } } },
		{ CONSTRAIN_OP, "Conv_3", "c:2", { .act = { .algorithm = KL } } },
		{ CONSTRAIN_OP,
		  "Gemm_5",
		  "c:3",
		  { .act = { .dtype = T_U8 }, .weight = { .dtype = MASK_FP32 } } },
	};
	struct tuning *with = make(v, ARRAY_LEN(v), APPROACH_STATIC, false),
		      *without = make(NULL, 0, APPROACH_STATIC, false);
	char *text = tuning_taken_away(with, without);

	(void)state;
	/* 16 bits, too, for make() allows mixed precision */
	assert_string_equal(text,
			    "constraints leave Conv 8 to 16 of 33 settings; 1 op stays in fp32: Gemm_5; "
			    "2 ops cannot fall back to fp32: Conv_0, Conv_3");
	free(text);
	assert_null(tuning_taken_away(without, without));
	tuning_free(with);
	tuning_free(without);
}

static void keep_text(void *self, const char *text)
{
	str_addf(self, "%s\n", text);
}

/* no name is near: it may be of an op that only INC sees */
static void constraints_on_other_ops_are_noted(void **state)
{
	static const struct constraint v[] = {
		{ CONSTRAIN_OP, "Attention_9", "c.yaml:3:5", { .act = { .dtype = MASK_FP32 } } },
		{ CONSTRAIN_TYPE, "LayerNormalization", "c.yaml:4:5", { .act = { .dtype = T_U8 } } },
		{ CONSTRAIN_OP, "Conv.*", "c.yaml:5:5", { .act = { .dtype = MASK_FP32 } } },
	};
	struct op_mask *masks = xcalloc(s->ops.n, sizeof(*masks));
	struct err err = ERR_INIT;
	struct str told = STR_INIT;
	size_t i;

	(void)state;
	assert_ok(constraints_apply(v, 3, &s->ops, s->m, &(struct constraint_notes){ keep_text, &told },
				    masks, &err),
		  err);
	assert_string_equal(
		told.s, "c.yaml:4:5: 'LayerNormalization' has no effect: no op of the model has that type\n"
			"c.yaml:3:5: 'Attention_9' has no effect: no op of the model has that name\n");
	for (i = 0; i < s->ops.n; i++)
		assert_int_equal(masks[i].act.dtype == MASK_FP32, strncmp(s->ops.v[i].name, "Conv", 4) == 0);
	str_release(&told);
	free(masks);
}

static void constraints_on_nothing_are_errors(void **state)
{
	static const struct {
		struct constraint c;
		const char *message;
	} rows[] = {
		{ { CONSTRAIN_OP, "Conv_O", "c.yaml:3:5", { .act = { .dtype = T_U8 } } },
		  "c.yaml:3:5: no op of the model has the name 'Conv_O', did you mean 'Conv_0'?" },
		{ { CONSTRAIN_TYPE, "Cnov", "c.yaml:4:5", { .act = { .dtype = T_U8 } } },
		  "c.yaml:4:5: no op of the model has the type 'Cnov', did you mean 'Conv'?" },
	};
	struct op_mask *masks = xcalloc(s->ops.n, sizeof(*masks));
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_LEN(rows); i++) {
		struct err err = ERR_INIT;

		assert_int_equal(constraints_apply(&rows[i].c, 1, &s->ops, s->m, NULL, masks, &err),
				 FETTLE_INVALID);
		assert_string_equal(err.msg, rows[i].message);
	}
	free(masks);
}

static void plans_survive_json(void **state)
{
	struct tuning *t = make(NULL, 0, APPROACH_AUTO, true);
	struct err err = ERR_INIT;
	size_t fell_back = 0;
	struct rng rng;
	int round;

	(void)state;
	rng_seed(&rng, 3);
	for (round = 0; round < 300; round++) {
		struct qplan a = QPLAN_INIT, b = QPLAN_INIT;
		struct plan p = PLAN_INIT;
		char *text, *again;
		int64_t samples = 0;
		size_t i;

		plan_init(&p, &t->space);
		for (i = 0; i < p.n; i++)
			p.choice[i] = (uint16_t)rng_below(&rng, t->space.v[i].n_options);
		space_remember(&t->space, &p);
		t->base.recipes.n_no_output = 0;
		if (round % 2)
			recipes_leave_output(&t->base.recipes, "Conv");
		i = rng_below(&rng, t->space.n_ops);
		p.choice[i] = t->space.v[i].fallback;
		tuning_qplan(t, &p, &a);
		text = qplan_to_json(&a, &s->ops, tuning_samples(t, &p));
		assert_ok(qplan_from_json(&b, &samples, text, "test", &s->ops, &s->g, &err), err);
		assert_int_equal(samples, tuning_samples(t, &p));
		again = qplan_to_json(&b, &s->ops, samples);
		assert_string_equal(text, again);
		for (i = 0; i < a.n; i++) {
			assert_int_equal(a.ops[i].mode, b.ops[i].mode);
			assert_int_equal(a.ops[i].fell_back, b.ops[i].fell_back);
			fell_back += a.ops[i].fell_back;
		}
		assert_memory_equal(&a.recipes, &b.recipes, offsetof(struct recipes, no_output));
		free(text);
		free(again);
		qplan_release(&a);
		qplan_release(&b);
		plan_release(&p);
	}
	assert_true(fell_back > 50);
	tuning_free(t);
}

static size_t recipe_named(const struct tuning *t, const char *name)
{
	size_t i;

	for (i = t->space.n_ops; strcmp(t->space.v[i].name, name) != 0;)
		i++;
	return i;
}

/* Weights are rounded for the plan that was tried before ops fell back, whatever each op's setting was. */
static void what_fell_back_is_rounded_as_before(void **state)
{
	struct tuning *t = make(NULL, 0, APPROACH_STATIC, true);
	size_t first = op_named(t, "Conv_0"), second = op_named(t, "Conv_3"), gemm = op_named(t, "Gemm_5");
	unsigned wide = param_option_in(&t->space.v[second], OPTION_WIDE);
	struct qplan whole = QPLAN_INIT, fallen, before;
	struct plan p = PLAN_INIT;
	char *want, *got;
	int k;

	(void)state;
	plan_init(&p, &t->space);
	p.choice[recipe_named(t, "finetune")] = 1;
	p.choice[first] = 3;
	p.choice[second] = 5;
	p.choice[gemm] = 2;
	space_remember(&t->space, &p);
	tuning_qplan(t, &p, &whole);
	assert_int_equal(whole.recipes.finetune.algorithm, FINETUNE_ADAROUND);
	want = qplan_to_json(&whole, &s->ops, 0);
	assert_int_equal(t->choices[second][wide].act.dtype, DT_U16);
	assert_int_equal(t->choices[second][wide].weight.dtype, DT_S16);
	for (k = 0; k < 2; k++) {
		p.choice[second] = k ? (uint16_t)wide : t->space.v[second].fallback;
		p.choice[gemm] = t->space.v[gemm].fallback;
		tuning_qplan(t, &p, &fallen);
		assert_int_equal(fallen.ops[t->node[second]].mode, k ? OP_STATIC : OP_FP32);
		before = qplan_before(&fallen);
		got = qplan_to_json(&before, &s->ops, 0);
		assert_string_equal(got, want);
		free(got);
		qplan_release(&before);
		qplan_release(&fallen);
	}
	p.choice[recipe_named(t, "finetune")] = 0; /* then nobody asks */
	tuning_qplan(t, &p, &fallen);
	assert_false(fallen.ops[t->node[second]].fell_back);
	qplan_release(&fallen);
	qplan_release(&whole);
	free(want);
	plan_release(&p);
	tuning_free(t);
}

static void recipes_in_words(void **state)
{
	struct recipes r = { .cle = true };
	struct str text = STR_INIT;

	(void)state;
	recipes_text(&(struct recipes){ 0 }, &text);
	assert_int_equal(text.n, 0);
	r.keep_last = true;
	r.smooth_quant = true;
	r.smooth_alpha = SMOOTH_AUTO;
	r.finetune = finetune_defaults(FINETUNE_GRAM);
	recipes_text(&r, &text);
	assert_string_equal(text.s,
			    "last_conv_or_matmul_quantization=off, cle, smooth_quant=auto, finetune=gram");
	str_release(&text);
}

static void bad_plans_are_refused(void **state)
{
	static const struct {
		const char *text, *message;
	} rows[] = {
		{ "{", "cannot read plan p.json: line 1, " },
		{ "{}", "cannot read plan p.json: need \"fettle_plan\": 2 and \"ops\"" },
		{ "{\"fettle_plan\": 1, \"ops\": {\"Conv_9\": {}}}",
		  "cannot read plan p.json: the model has no op 'Conv_9', did you mean 'Conv_" },
		{ "{\"fettle_plan\": 1, \"ops\": {\"Conv_0\": {\"mode\": \"statik\"}}}",
		  "cannot read plan p.json: op 'Conv_0', mode 'statik', did you mean 'static'?" },
		{ "{\"fettle_plan\": 1, \"ops\": {\"Relu_1\": {\"mode\": \"static\"}}}",
		  "cannot read plan p.json: op 'Relu_1' cannot be static: it becomes part of the op before "
		  "it" },
		{ "{\"fettle_plan\": 1, \"ops\": {\"Relu_1\": {\"mode\": \"fp32\", \"before\": {}}}}",
		  "cannot read plan p.json: op 'Relu_1' cannot be static: it becomes part of the op before "
		  "it" },
		{ "{\"fettle_plan\": 1, \"ops\": {\"Conv_0\": {\"mode\": \"static\", \"activation\": "
		  "{\"algorithm\": \"kll\"}}}}",
		  "cannot read plan p.json: op 'Conv_0': " },
		{ "{\"fettle_plan\": 1, \"ops\": {\"Conv_0\": {\"mode\": \"static\", \"activation\": "
		  "{\"averaging\": 1e300}}}}",
		  "cannot read plan p.json: op 'Conv_0', averaging 1e+300, need a number from 0 to 1" },
		{ "{\"fettle_plan\": 1, \"recipes\": {\"finetune\": {\"BatchSize\": 4611686018427387904}}, "
		  "\"ops\": {}}",
		  "cannot read plan p.json: recipe finetune, BatchSize has no valid value" },
		{ "{\"fettle_plan\": 1, \"recipes\": {\"finetune\": {\"DropRatio\": 1.5}}, \"ops\": {}}",
		  "cannot read plan p.json: recipe finetune, DropRatio has no valid value" },
		{ "{\"fettle_plan\": 1, \"recipes\": {\"finetune\": {\"BetaRange\": [2]}}, \"ops\": {}}",
		  "cannot read plan p.json: recipe finetune, BetaRange needs two numbers over 0" },
	};
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_LEN(rows); i++) {
		struct qplan q = QPLAN_INIT;
		struct err err = ERR_INIT;

		assert_int_equal(qplan_from_json(&q, NULL, rows[i].text, "p.json", &s->ops, &s->g, &err),
				 FETTLE_INVALID);
		if (strncmp(err.msg, rows[i].message, strlen(rows[i].message)) != 0)
			fail_msg("'%s', want '%s'", err.msg, rows[i].message);
	}
}

static enum fettle_status any_range(void *self, const char *value, const struct qsetting *q,
				    struct range *out, struct err *err)
{
	(void)self;
	(void)value;
	(void)q;
	(void)err;
	*out = (struct range){ -1, 2 };
	return FETTLE_OK;
}

static enum fettle_status any_means(void *self, const char *value, int axis, size_t channels, double *means,
				    struct err *err)
{
	(void)self;
	(void)value;
	(void)axis;
	(void)err;
	while (channels--)
		means[channels] = 0.1;
	return FETTLE_OK;
}

/* puts another token for one of the text's: what a word, a number or a bracket is replaced with */
static char *change_token(struct rng *rng, const char *text)
{
	static const char *const tokens[] = {
		"{",
		"}",
		"[]",
		",",
		"null",
		"true",
		"false",
		"0",
		"-1",
		"1e308",
		"0.5",
		"9223372036854775807",
		"\"fp32\"",
		"\"static\"",
		"\"uint8\"",
		"\"int8\"",
		"\"uint16\"",
		"\"int16\"",
		"\"sym\"",
		"\"asym\"",
		"\"kl\"",
		"\"mse\"",
		"\"percentile\"",
		"\"minmse\"",
		"\"before\"",
		"\"mode\"",
		"\"weight\"",
		"\"Relu_1\"",
		"\"Gemm_5\"",
		"\"auto\"",
	};
	const char *const marks = "{}[]:,", *const with = tokens[rng_below(rng, ARRAY_LEN(tokens))];
	const char *at = text + rng_below(rng, strlen(text)), *end;

	while (at > text && !strchr(marks, at[-1]))
		at--;
	end = at + strcspn(at, marks);
	end += end == at;
	return xstrfmt("%.*s%s%s", (int)(at - text), text, with, end);
}

static char *change_byte(struct rng *rng, const char *text)
{
	char *changed = xstrdup(text);

	changed[rng_below(rng, strlen(text))] =
		(char)(rng_below(rng, 4) ? ' ' + rng_below(rng, 95) : rng_below(rng, 256));
	return changed;
}

/* Is it a plan? Then it is the same when it is printed and read again, and makes a model or a message. */
static bool is_plan(const char *text, size_t *carried)
{
	struct qplan p = QPLAN_INIT, q = QPLAN_INIT;
	struct model *m = NULL;
	struct err err = ERR_INIT;
	char *printed, *again;
	int64_t samples = 0;

	if (qplan_from_json(&p, &samples, text, "p.json", &s->ops, &s->g, &err)) {
		assert_int_not_equal(err.msg[0], 0);
		assert_null(p.ops);
		return false;
	}
	printed = qplan_to_json(&p, &s->ops, samples);
	assert_ok(qplan_from_json(&q, &samples, printed, "p.json", &s->ops, &s->g, &err), err);
	again = qplan_to_json(&q, &s->ops, samples);
	assert_string_equal(printed, again);
	if (!quantize_by(s, &p, any_range, any_means, NULL, &m, &err))
		++*carried;
	else
		assert_int_not_equal(err.msg[0], 0);
	model_free(m);
	free(printed);
	free(again);
	qplan_release(&p);
	qplan_release(&q);
	return true;
}

static void damaged_plans_are_plans_or_refused(void **state)
{
	enum { ROUNDS = 3000 };
	struct tuning *t = make(NULL, 0, APPROACH_AUTO, true);
	size_t round, plans = 0, carried = 0;
	struct rng rng;

	(void)state;
	rng_seed(&rng, 5);
	for (round = 0; round < ROUNDS; round++) {
		struct plan p = PLAN_INIT;
		struct qplan q = QPLAN_INIT;
		char *text, *changed;
		size_t i;

		plan_init(&p, &t->space);
		for (i = 0; i < p.n; i++)
			p.choice[i] = (uint16_t)rng_below(&rng, t->space.v[i].n_options);
		tuning_qplan(t, &p, &q);
		text = qplan_to_json(&q, &s->ops, 8);
		for (i = 0; i < 1 + round % 3; i++) {
			changed = round % 2 ? change_byte(&rng, text) : change_token(&rng, text);
			free(text);
			text = changed;
		}
		plans += is_plan(text, &carried);
		free(text);
		qplan_release(&q);
		plan_release(&p);
	}
	/* all of it happens */
	assert_in_range(plans, ROUNDS / 20, ROUNDS - ROUNDS / 4);
	assert_in_range(carried, ROUNDS / 50, plans - 10);
	tuning_free(t);
}

static void ops_are_chosen_by_name_type_or_pattern(void **state)
{
	static const struct {
		const char *list, *chosen; /* one digit per node */
	} rows[] = {
		{ "Conv_0", "100000" },
		{ "Conv", "100100" },
		{ "/Conv_[03]/", "100100" },
		{ "/.*/", "111111" },
		{ " Gemm_5 , Conv_0,", "100001" },
		{ "MaxPool,Relu", "011000" },
	};
	size_t i, k;

	(void)state;
	for (i = 0; i < ARRAY_LEN(rows); i++) {
		bool selected[6] = { false };
		struct err err = ERR_INIT;

		assert_int_equal(s->ops.n, 6);
		assert_ok(select_ops(rows[i].list, &s->ops, s->m, selected, &err), err);
		for (k = 0; k < 6; k++)
			if (selected[k] != (rows[i].chosen[k] == '1'))
				fail_msg("'%s': node %zu", rows[i].list, k);
	}
}

static int begin(void **state)
{
	struct err err = ERR_INIT;
	int fd = mkstemp(path);

	(void)state;
	if (fd < 0 || close(fd) != 0 || runtime_new(&rt, &err))
		return 1;
	build_model(path, 13, "x:?x4x14x14", body, "y");
	if (subject_open(&s, rt, path, &err)) {
		print_error("%s\n", err.msg);
		return 1;
	}
	return 0;
}

static int end(void **state)
{
	(void)state;
	str_release(&notes);
	subject_free(s);
	runtime_free(rt);
	return unlink(path);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_default_plan_comes_first),
		cmocka_unit_test(a_conv_that_can_be_static_is_not_dynamic),
		cmocka_unit_test(the_cpu_decides_on_narrow_weights),
		cmocka_unit_test(only_what_overflows_is_narrow),
		cmocka_unit_test(the_narrower_constraint_wins),
		cmocka_unit_test(constraints_leave_what_they_say),
		cmocka_unit_test(where_the_runtime_takes_int8_it_stays),
		cmocka_unit_test(what_constraints_take_away_is_told),
		cmocka_unit_test(constraints_on_nothing_are_errors),
		cmocka_unit_test(constraints_on_other_ops_are_noted),
		cmocka_unit_test(plans_survive_json),
		cmocka_unit_test(what_fell_back_is_rounded_as_before),
		cmocka_unit_test(recipes_in_words),
		cmocka_unit_test(bad_plans_are_refused),
		cmocka_unit_test(damaged_plans_are_plans_or_refused),
		cmocka_unit_test(ops_are_chosen_by_name_type_or_pattern),
	};

	return cmocka_run_group_tests(tests, begin, end);
}
