/*
 * What each recipe does to a model: the structure of the result, how close the result stays to fp32, and
 * that any combination of them gives a model that loads and that python3-onnx's checker accepts. And the same
 * of random graphs under random plans.
 */
#include "unit/quantize.h"

#include "base/str.h"
#include "quantize/weights.h"

static struct runtime *rt;
static char dir[] = "/tmp/fettle-test.XXXXXX";
static int n_files;

struct spec {
	const char *inputs, *body, *outputs;
	enum quant_format format;
	struct recipes recipes;
	const char *on, *off;        /* an op type that is quantized beside the defaults; an op that is not */
	const char *other;           /* an op whose activations are symmetric s8 instead */
	const char *other_algorithm; /* an op whose activations are cut at a percentile */
	bool per_tensor, no_means;
	const char *path; /* instead of inputs, body and outputs */
};

struct made {
	struct subject *s;
	struct seen seen;
	struct qplan plan;
	bool no_means;
	struct model *q, *graph; /* ours, and what the runtime makes of it */
	struct qplan_summary sum;
	double db;
};

static void tweak(struct qplan *p, const struct subject *s, const struct spec *sp)
{
	size_t i;

	for (i = 0; i < s->ops.n; i++) {
		const char *name = s->ops.v[i].name;

		if (sp->on && strcmp(s->m->nodes.v[i]->op, sp->on) == 0 && s->ops.v[i].modes & MODE_STATIC)
			p->ops[i].mode = OP_STATIC;
		if (sp->off && strcmp(name, sp->off) == 0)
			p->ops[i].mode = OP_FP32;
		if (sp->other && strcmp(name, sp->other) == 0) {
			p->ops[i].act.dtype = DT_S8;
			p->ops[i].act.scheme = SCHEME_SYM;
		}
		if (sp->other_algorithm && strcmp(name, sp->other_algorithm) == 0) {
			p->ops[i].act.algorithm = RANGE_PERCENTILE;
			p->ops[i].act.parameter = 99;
		}
	}
}

static void observe_plan(struct made *m)
{
	struct channel_axis *means;
	const char **values, **all;
	size_t n = quantizer_values(&m->s->g, &m->s->ops, &m->plan, &values), k, i;

	k = quantizer_means(&m->s->g, &m->s->ops, &m->plan, &means);
	all = xcalloc(n + k + 1, sizeof(*all));
	for (i = 0; i < n + k; i++)
		all[i] = i < n ? values[i] : means[i - n].value;
	observe(&m->seen, rt, m->s, all, n + k);
	free(all);
	free(values);
	free(means);
}

static void save(struct model *q)
{
	struct err err = ERR_INIT;
	char path[128];

	snprintf(path, sizeof(path), "%s/%d.int8.onnx", dir, n_files++);
	assert_ok(model_save(q, path, &err), err);
}

/* everything up to quantizing */
static void open_case(struct made *m, const struct spec *sp)
{
	struct qplan_defaults d;
	struct err err = ERR_INIT;
	char path[128];

	*m = (struct made){ .plan = QPLAN_INIT, .no_means = sp->no_means };
	snprintf(path, sizeof(path), "%s/fp32.onnx", dir);
	if (!sp->path)
		build_model(path, 13, sp->inputs, sp->body, sp->outputs ? sp->outputs : "y");
	assert_ok(subject_open(&m->s, rt, sp->path ? sp->path : path, &err), err);
	d = qplan_defaults(&m->s->cpu);
	d.format = sp->format;
	d.weight.per_channel = !sp->per_tensor;
	qplan_default(&m->plan, &m->s->ops, &m->s->g, &d);
	m->plan.recipes = sp->recipes;
	tweak(&m->plan, m->s, sp);
	observe_plan(m);
}

static enum fettle_status quantize_made(struct made *m, struct err *err)
{
	return quantize_by(m->s, &m->plan, seen_range, m->no_means ? NULL : seen_mean, &m->seen, &m->q, err);
}

static void make(struct made *m, const struct spec *sp)
{
	struct err err = ERR_INIT;

	open_case(m, sp);
	assert_ok(quantize_made(m, &err), err);
	save(m->q);
	m->db = compare(rt, m->s->m, m->q);
	m->sum = qplan_summarise(&m->plan, &m->s->ops);
	assert_ok(optimised_graph(&m->graph, rt, m->q, &(struct session_options){ .threads = 1 }, &err), err);
}

static void made_release(struct made *m)
{
	model_free(m->graph);
	model_free(m->q);
	qplan_release(&m->plan);
	subject_free(m->s);
	seen_release(&m->seen);
}

static void want_ops(const char *why, const struct model *m, const char *op, size_t n)
{
	if (count_ops(m, op) != n)
		fail_msg("%s: %zu %s, want %zu; ops:%s", why, count_ops(m, op), op, n, describe(m));
}

static void want_db(const char *why, const struct made *m, double db)
{
	if (!(m->db >= db))
		fail_msg("%s: %.1f dB, need %.1f; ops:%s", why, m->db, db, describe(m->graph));
}

static struct node *find_node(const struct model *m, const char *name)
{
	size_t i;

	for (i = 0; i < m->nodes.n; i++)
		if (strcmp(m->nodes.v[i]->name, name) == 0)
			return m->nodes.v[i];
	fail_msg("no node %s; ops:%s", name, describe(m));
	return NULL;
}

static struct node *maker_of(const struct model *m, const char *value)
{
	size_t i, k;

	for (i = 0; i < m->nodes.n; i++)
		for (k = 0; k < m->nodes.v[i]->n_out; k++)
			if (strcmp(m->nodes.v[i]->out[k], value) == 0)
				return m->nodes.v[i];
	return NULL;
}

static struct node *reader_of(const struct model *m, const char *value)
{
	size_t i, k;

	for (i = 0; i < m->nodes.n; i++)
		for (k = 0; k < m->nodes.v[i]->n_in; k++)
			if (strcmp(m->nodes.v[i]->in[k], value) == 0)
				return m->nodes.v[i];
	return NULL;
}

/* the scale of the DQ that input k of a node comes from, or of the Q that its output goes to */
static const char *in_scale(const struct model *m, const char *node, size_t k)
{
	const struct node *dq = maker_of(m, find_node(m, node)->in[k]);

	if (!dq || strcmp(dq->op, "DequantizeLinear") != 0)
		fail_msg("input %zu of %s is not quantized; ops:%s", k, node, describe(m));
	return dq->in[1];
}

static const char *out_scale(const struct model *m, const char *node)
{
	const struct node *q = reader_of(m, find_node(m, node)->out[0]);

	if (!q || strcmp(q->op, "QuantizeLinear") != 0)
		fail_msg("the output of %s is not quantized; ops:%s", node, describe(m));
	return q->in[1];
}

static double scale_value(const struct model *m, const char *name)
{
	return tensor_get(&model_init(m, name)->t, 0);
}

#define X "x:?x4x8x8"
#define C0 "w1 = 8x4x3x3; b1 = 8; a = Conv(x, w1, b1) pads=1,1,1,1; "
#define THREE C0 "w2 = 8x8x3x3; b = Conv(a, w2) pads=1,1,1,1; w3 = 4x8x3x3; y = Conv(b, w3)"

static void first_and_last_stay_in_fp32(void **state)
{
	static const struct {
		const char *why;
		struct recipes r;
		size_t fp32;
	} cases[] = {
		{ "none", { 0 }, 0 },
		{ "first", { .keep_first = true }, 1 },
		{ "last", { .keep_last = true }, 1 },
		{ "both", { .keep_first = true, .keep_last = true }, 2 },
	};
	size_t i, f;

	(void)state;
	for (f = 0; f < 2; f++)
		for (i = 0; i < ARRAY_LEN(cases); i++) {
			struct made m;

			make(&m, &(struct spec){
					 .inputs = X, .body = THREE, .recipes = cases[i].r, .format = f });
			want_ops(cases[i].why, m.graph, "QLinearConv", 3 - cases[i].fp32);
			want_ops(cases[i].why, m.graph, "Conv", cases[i].fp32);
			want_db(cases[i].why, &m, 28);
			assert_int_equal(m.sum.int8, 3 - cases[i].fp32);
			assert_int_equal(m.sum.fp32, cases[i].fp32);
			made_release(&m);
		}
}

static void ends_stay_in_fp32(void **state)
{
	struct spec sp = {
		.inputs = X,
		.on = "Add",
		.body = "k = 1x4x1x1; t = Add(x, k); w1 = 8x4x3x3; a = Conv(t, w1); w2 = 8x8x3x3; b = "
			"Conv(a, w2); c = LeakyRelu(b) alpha=0.1; y = MaxPool(c) kernel_shape=2,2"
	};
	struct made m;

	(void)state;
	make(&m, &sp);
	want_ops("without", m.graph, "QLinearAdd", 1);
	want_ops("without", m.graph, "QLinearLeakyRelu", 1);
	assert_int_equal(m.sum.int8, 4);
	made_release(&m);
	sp.recipes.keep_ends = true;
	make(&m, &sp);
	want_ops("keep_ends", m.graph, "QLinearAdd", 0);
	want_ops("keep_ends", m.graph, "QLinearLeakyRelu", 0);
	want_ops("keep_ends", m.graph, "QLinearConv", 2);
	assert_int_equal(m.sum.int8, 2);
	want_db("keep_ends", &m, 28);
	made_release(&m);
	/* a model that has no such op has no ends either */
	sp = (struct spec){ .inputs = X, .body = "y = LeakyRelu(x) alpha=0.1", .on = "LeakyRelu" };
	sp.recipes = (struct recipes){ .keep_ends = true, .keep_first = true, .keep_last = true };
	make(&m, &sp);
	want_ops("nothing to keep", m.graph, "QLinearLeakyRelu", 1);
	made_release(&m);
}

static void pool_has_its_own_scale(void **state)
{
	struct spec sp = { .inputs = X,
			   .body = C0
			   "p = MaxPool(a) kernel_shape=3,3; k = [0,8,2,18]; t = Reshape(p, k); w2 = "
			   "4x8x1x1; y = Conv(t, w2)" };
	struct made m;
	int f;

	(void)state;
	for (f = 0; f < 2; f++) {
		sp.format = (enum quant_format)f;
		sp.recipes.own_pool_scale = false;
		make(&m, &sp);
		if (!f)
			assert_string_equal(in_scale(m.q, "MaxPool_1", 0), out_scale(m.q, "MaxPool_1"));
		want_ops("shared", m.graph, "DequantizeLinear", 1);
		want_db("shared", &m, 25);
		made_release(&m);
		sp.recipes.own_pool_scale = true;
		make(&m, &sp);
		/* the pool cuts off what is most negative */
		assert_true(scale_value(m.q, out_scale(m.q, "MaxPool_1")) <
			    0.95 * scale_value(m.q, in_scale(m.q, "MaxPool_1", 0)));
		if (!f)
			assert_string_equal(in_scale(m.q, "Reshape_2", 0), out_scale(m.q, "Reshape_2"));
		want_ops("its own", m.graph, "DequantizeLinear", 2);
		want_db("its own", &m, 25);
		made_release(&m);
	}
}

#define CC C0 "w3 = 8x4x1x1; c = Conv(x, w3); "
static const struct concat_case {
	const char *why, *body;
	const char *concat;
	bool shared[2]; /* is input k's scale the output's? */
	const char *other, *other_algorithm;
} concats[] = {
	{ "two Convs", CC "d = Concat(a, c) axis=1; w4 = 4x16x1x1; y = Conv(d, w4)", "Concat_2",
	  .shared = { 1, 1 } },
	{ "one is read by a Conv too",
	  CC "d = Concat(a, c) axis=1; w4 = 4x16x1x1; e = Conv(d, w4); w5 = 4x8x1x1; f = Conv(a, w5); y = "
	     "Add(e, f)",
	  "Concat_2", .shared = { 1, 1 } },
	{ "that Conv has another type",
	  CC "d = Concat(a, c) axis=1; w4 = 4x16x1x1; e = Conv(d, w4); w5 = 4x8x1x1; f = Conv(a, w5); y = "
	     "Add(e, f)",
	  "Concat_2", .shared = { 0, 1 }, .other = "Conv_4" },
	{ "that Conv has another algorithm",
	  CC "d = Concat(a, c) axis=1; w4 = 4x16x1x1; e = Conv(d, w4); w5 = 4x8x1x1; f = Conv(a, w5); y = "
	     "Add(e, f)",
	  "Concat_2", .shared = { 0, 1 }, .other_algorithm = "Conv_4" },
	{ "Relus", CC "r = Relu(a); s = Relu(c); d = Concat(r, s) axis=1; w4 = 4x16x1x1; y = Conv(d, w4)",
	  "Concat_4", .shared = { 1, 1 } },
	{ "a Relu beside a Conv keeps its own, or it would not be fused",
	  CC "r = Relu(a); d = Concat(r, c) axis=1; w4 = 4x16x1x1; y = Conv(d, w4)", "Concat_3",
	  .shared = { 0, 1 } },
	{ "after a Transpose",
	  CC "t = Transpose(a) perm=0,1,3,2; d = Concat(t, c) axis=1; w4 = 4x16x1x1; y = Conv(d, w4)",
	  "Concat_3", .shared = { 1, 1 } },
	{ "after a MaxPool",
	  CC "t = MaxPool(a) kernel_shape=1,1; d = Concat(t, c) axis=1; w4 = 4x16x1x1; y = Conv(d, w4)",
	  "Concat_3", .shared = { 1, 1 } },
	{ "part of a value that another reads whole",
	  CC
	  "s = [0]; e = [4]; k = [1]; t = Slice(a, s, e, k); u = Slice(c, s, e, k); d = Concat(t, u) axis=1; "
	  "w4 = 4x8x1x1; f = Conv(d, w4); w5 = 4x8x1x1; g = Conv(a, w5); y = Add(f, g)",
	  "Concat_4", .shared = { 0, 1 } },
	{ "parts of a Split",
	  "w1 = 8x4x1x1; a = Conv(x, w1); t, u = Split(a) axis=1; w2 = 4x4x1x1; c = Conv(u, "
	  "w2); d = Concat(t, c) axis=1; w4 = 4x8x1x1; y = Conv(d, w4)",
	  "Concat_3", .shared = { 0, 1 } },
	{ "the same twice", C0 "d = Concat(a, a) axis=1; w4 = 4x16x1x1; y = Conv(d, w4)", "Concat_1",
	  .shared = { 1, 1 } },
	{ "of another Concat: all take the outer one's",
	  CC "d = Concat(a, c) axis=1; e = Concat(d, a) axis=1; w4 = 4x24x1x1; y = Conv(e, w4)", "Concat_3",
	  .shared = { 1, 1 } },
	{ "of part of another Concat, whose inputs others read whole",
	  CC "d = Concat(a, c) axis=1; p = MaxPool(d) kernel_shape=3,3; e = Concat(p, p) axis=1; w4 = "
	     "4x32x1x1; f = "
	     "Conv(e, w4); w5 = 4x8x3x3; g = Conv(a, w5); y = Add(f, g)",
	  "Concat_4", .shared = { 0, 0 } },
	{ "claimed twice: the second rescales",
	  CC "d = Concat(a, c) axis=1; w4 = 4x16x1x1; f = Conv(d, w4); w5 = 8x4x1x1; e = Conv(f, w5); h = "
	     "Concat(a, e) axis=1; w6 = 4x16x1x1; y = Conv(h, w6)",
	  "Concat_5", .shared = { 0, 1 } },
	{ "a graph's input",
	  "w1 = 4x4x1x1; a = Conv(x, w1); d = Concat(x, a) axis=1; w4 = 4x8x1x1; y = Conv(d, w4)", "Concat_1",
	  .shared = { 1, 1 } },
	{ "a Relu after it", CC "d = Concat(a, c) axis=1; r = Relu(d); w4 = 4x16x1x1; y = Conv(r, w4)",
	  "Concat_2", .shared = { 0, 0 } },
};

/* what its output is quantized with, past a Relu */
static const char *concat_scale(const struct model *m, const char *name)
{
	const struct node *user = reader_of(m, find_node(m, name)->out[0]);

	return strcmp(user->op, "Relu") == 0 ? out_scale(m, user->name) : out_scale(m, name);
}

static void concat_shares_one_scale(void **state)
{
	size_t i, k, f;

	(void)state;
	for (i = 0; i < ARRAY_LEN(concats); i++) {
		const struct concat_case *c = &concats[i];
		struct spec sp = { .inputs = X,
				   .body = c->body,
				   .on = "Concat",
				   .other = c->other,
				   .other_algorithm = c->other_algorithm };
		struct made m;
		double own;

		sp.recipes.own_concat_scale = true;
		make(&m, &sp);
		own = m.db;
		made_release(&m);
		sp.recipes.own_concat_scale = false;
		for (f = 0; f < 2; f++) {
			sp.format = (enum quant_format)f;
			make(&m, &sp);
			want_db(c->why, &m, own - 3);
			want_ops(c->why, m.graph, "Concat", 0);
			for (k = 0; k < 2 && !f; k++) {
				bool same = strcmp(in_scale(m.q, c->concat, k),
						   concat_scale(m.q, c->concat)) == 0;

				if (same != c->shared[k])
					fail_msg("%s: input %zu has %s", c->why, k,
						 same ? "the output's scale" : "a scale of its own");
			}
			made_release(&m);
		}
	}
}

static void concat_can_keep_scales(void **state)
{
	struct spec sp = { .inputs = X, .body = concats[0].body, .recipes = { .own_concat_scale = true } };
	struct made m;

	(void)state;
	make(&m, &sp);
	assert_string_not_equal(in_scale(m.q, "Concat_2", 0), out_scale(m.q, "Concat_2"));
	assert_string_not_equal(in_scale(m.q, "Concat_2", 1), out_scale(m.q, "Concat_2"));
	want_ops("own_concat_scale", m.graph, "QLinearConcat", 1);
	want_db("own_concat_scale", &m, 28);
	made_release(&m);
}

static void gemm_becomes_matmul(void **state)
{
	static const struct {
		const char *why, *body;
		size_t adds;
	} cases[] = {
		{ "plain", "w = 16x8; b = 8; y = Gemm(x, w, b)", 1 },
		{ "transposed", "w = 8x16; b = 8; y = Gemm(x, w, b) transB=1", 1 },
		{ "bias of a row", "w = 8x16; b = 1x8; y = Gemm(x, w, b) transB=1", 1 },
		{ "no bias", "w = 8x16; y = Gemm(x, w) transB=1", 0 },
		{ "two with a Relu",
		  "w = 16x8; b = 8; a = Gemm(x, w, b); t = Relu(a); v = 8x8; c = 8; y = "
		  "Gemm(t, v, c)",
		  2 },
		{ "two without bias", "w = 16x8; a = Gemm(x, w); v = 8x8; y = Gemm(a, v)", 0 },
	};
	size_t i, f;

	(void)state;
	for (f = 0; f < 2; f++)
		for (i = 0; i < ARRAY_LEN(cases); i++) {
			struct spec sp = { .inputs = "x:?x16", .body = cases[i].body, .format = f };
			struct made m;
			double plain;

			make(&m, &sp);
			plain = m.db;
			made_release(&m);
			sp.recipes.gemm_to_matmul = true;
			make(&m, &sp);
			want_ops(cases[i].why, m.q, "Gemm", 0);
			want_ops(cases[i].why, m.q, "QGemm", 0);
			want_ops(cases[i].why, m.q, "Add", cases[i].adds);
			want_ops(cases[i].why, m.graph, "MatMul", 0);
			want_ops(cases[i].why, m.graph, "Gemm", 0);
			want_db(cases[i].why, &m, plain - 2);
			if (getenv("SHOW"))
				print_message("%zu %s:%s\n", f, cases[i].why, describe(m.graph));
			made_release(&m);
		}
}

static void readers_have_pairs_of_their_own(void **state)
{
	static const struct {
		const char *why, *body;
	} cases[] = {
		{ "an input read twice", CC "t = Add(a, c); w2 = 4x8x3x3; y = Conv(t, w2)" },
		{ "a Conv's output read twice",
		  C0 "w2 = 8x8x1x1; b = Conv(a, w2); w3 = 8x8x1x1; c = Conv(a, w3); t = Add(b, c); w4 = "
		     "4x8x1x1; y = Conv(t, w4)" },
		{ "through a MaxPool",
		  C0 "p = MaxPool(a) kernel_shape=1,1; w2 = 8x8x1x1; b = Conv(p, w2); w3 = 8x8x1x1; c = "
		     "Conv(p, w3); t "
		     "= Add(b, c); w4 = 4x8x1x1; y = Conv(t, w4)" },
	};
	size_t i, k;

	(void)state;
	for (i = 0; i < ARRAY_LEN(cases); i++) {
		struct spec sp = { .inputs = X, .body = cases[i].body };
		struct made plain, m;

		make(&plain, &sp);
		sp.recipes.dedicated_qdq_pair = true;
		make(&m, &sp);
		for (k = 0; k < m.q->nodes.n; k++) {
			const struct node *n = m.q->nodes.v[k];

			if (strcmp(n->op, "DequantizeLinear") != 0)
				continue;
			if (reader_of(m.q, n->in[0]) != n)
				fail_msg("%s: a Q has two DQs", cases[i].why);
		}
		assert_true(count_ops(m.q, "QuantizeLinear") > count_ops(plain.q, "QuantizeLinear"));
		if (m.db != plain.db)
			fail_msg("%s: %f dB, without %f", cases[i].why, m.db, plain.db);
		want_ops(cases[i].why, m.graph, "QLinearConv", count_ops(plain.graph, "QLinearConv"));
		want_ops(cases[i].why, m.graph, "QLinearAdd", count_ops(plain.graph, "QLinearAdd"));
		want_ops(cases[i].why, m.graph, "QuantizeLinear", count_ops(plain.graph, "QuantizeLinear"));
		made_release(&plain);
		made_release(&m);
	}
}

static void weights_keep_floats(void **state)
{
	static const char *const bodies[] = {
		THREE,
		"k = [0,256]; f = Reshape(x, k); w = 256x8; b = 8; y = Gemm(f, w, b)",
		"k = [0,256]; f = Reshape(x, k); w = 8x256; b = 8; y = Gemm(f, w, b) transB=1",
		"k = [0,4,64]; f = Reshape(x, k); w = 64x8; y = MatMul(f, w)",
	};
	static const char *const ops[] = { "QLinearConv", "QGemm", "QGemm", "MatMulIntegerToFloat" };
	size_t i, k;

	(void)state;
	for (i = 0; i < ARRAY_LEN(bodies); i++)
		for (k = 0; k < 6; k++) {
			struct spec sp = { .inputs = X, .body = bodies[i], .per_tensor = k & 1 };
			struct made plain, m;
			const struct node *q;

			sp.recipes.gemm_to_matmul = k == 2;
			sp.recipes.weight_correction = k == 3;
			sp.format = k == 4 ? FORMAT_QOPERATOR : FORMAT_QDQ;
			make(&plain, &sp);
			sp.recipes.qdq_pair_on_weights = true;
			make(&m, &sp);
			if (m.db != plain.db)
				fail_msg("%s: %f dB, without %f", bodies[i], m.db, plain.db);
			made_release(&plain);
			if (k < 2) {
				q = reader_of(m.q, i ? "w" : "w1");
				assert_non_null(q);
				assert_string_equal(q->op, "QuantizeLinear");
				want_ops(bodies[i], m.graph, ops[i], i ? 1 : 3);
			}
			made_release(&m);
		}
}

static void outputs_left_to_readers(void **state)
{
	static const char *const add[] = { "Add", "MaxPool" };
	struct spec sp = { .inputs = X, .body = C0 "w2 = 8x8x3x3; b = Conv(a, w2); y = Sigmoid(b)" };
	struct made m;
	const struct node *n;

	(void)state;
	make(&m, &sp);
	want_ops("without", m.q, "QuantizeLinear", 3);
	made_release(&m);
	recipes_leave_output(&sp.recipes, "Conv");
	make(&m, &sp);
	/* x and a, for the second Conv; nobody wants b in integers */
	want_ops("Conv", m.q, "QuantizeLinear", 2);
	assert_string_equal(reader_of(m.q, "b")->op, "Sigmoid");
	want_db("Conv", &m, 28);
	made_release(&m);
	/* a float reader beside an integer one reads the float */
	sp.body = CC "t = Add(a, c); p = MaxPool(t) kernel_shape=1,1; w2 = 8x8x1x1; b = Conv(p, w2); s = "
		     "Sigmoid(p); y "
		     "= Mul(b, s)";
	sp.recipes.n_no_output = 0;
	recipes_leave_output(&sp.recipes, add[0]);
	recipes_leave_output(&sp.recipes, add[1]);
	make(&m, &sp);
	n = find_node(m.q, "Sigmoid_5");
	assert_string_equal(n->in[0], "p");
	assert_string_equal(maker_of(m.q, "p")->in[0], "t");
	assert_string_equal(maker_of(m.q, "t")->op, "Add");
	want_db("Add and MaxPool", &m, 28);
	made_release(&m);
	sp.format = FORMAT_QOPERATOR;
	make(&m, &sp);
	want_db("QOperator", &m, 28);
	made_release(&m);
}

static void moments(const float *x, size_t n, double *mean, double *deviation)
{
	double squares = 0;
	size_t i;

	*mean = 0;
	for (i = 0; i < n; i++)
		*mean += x[i] / (double)n;
	for (i = 0; i < n; i++)
		squares += (x[i] - *mean) * (x[i] - *mean) / (double)n;
	*deviation = sqrt(squares);
}

/* every channel of the dequantized weight spreads as the float one does; the integers are the same */
static void variances_are_kept(void **state)
{
	struct weight_form form = { .axis = 0 };
	struct qsetting s = { .dtype = DT_S8, .scheme = SCHEME_SYM, .per_channel = true };
	const struct qweight *plain, *w;
	struct weight_cache *c;
	struct model *m = NULL;
	struct err err = ERR_INIT;
	char path[128];
	float y[4 * 27], z[4 * 27];
	size_t i;
	const float *x;

	(void)state;
	snprintf(path, sizeof(path), "%s/w.onnx", dir);
	build_model(path, 13, "x:1x3x8x8", "w = 4x3x3x3; y = Conv(x, w)", "y");
	assert_ok(model_load(&m, path, &err), err);
	c = weight_cache_new(m);
	s.algorithm = RANGE_MSE; /* cuts, which makes the spread smaller */
	assert_ok(weight_get(c, "w", &s, &form, &plain, &err), err);
	form.match_variance = true;
	assert_ok(weight_get(c, "w", &s, &form, &w, &err), err);
	assert_ptr_not_equal(plain, w);
	assert_memory_equal(plain->q.data, w->q.data, 4 * 27);
	qweight_floats(plain, y);
	qweight_floats(w, z);
	x = model_init(m, "w")->t.data;
	for (i = 0; i < 4; i++) {
		double mean, want, before, after;

		moments(x + 27 * i, 27, &mean, &want);
		moments(y + 27 * i, 27, &mean, &before);
		moments(z + 27 * i, 27, &mean, &after);
		assert_true(fabs(before / want - 1) > 1e-5); /* there was something to do */
		assert_true(fabs(after / want - 1) < 1e-6);
	}
	weight_cache_free(c);
	model_free(m);
}

/* inputs far from zero, and one large channel that makes the others coarse */
#define SHIFTED "o = 2.5; v = Add(x, o); "
static const struct {
	const char *why, *inputs, *body;
} shifted[] = {
	{ "Conv", "x:?x4x24x24", SHIFTED "w = 6x4x3x3; b = 6; y = Conv(v, w, b)" },
	{ "Conv without bias", "x:?x4x24x24", SHIFTED "w = 6x4x3x3; y = Conv(v, w)" },
	{ "Conv in groups", "x:?x4x24x24", SHIFTED "w = 6x2x3x3; b = 6; y = Conv(v, w, b) group=2" },
	{ "ConvTranspose", "x:?x4x24x24",
	  SHIFTED "w = 4x6x2x2; b = 6; y = ConvTranspose(v, w, b) strides=2,2" },
	{ "ConvTranspose in groups", "x:?x4x24x24",
	  SHIFTED "w = 4x3x2x2; y = ConvTranspose(v, w) strides=2,2 group=2" },
	{ "Gemm", "x:2000x32", SHIFTED "w = 32x6; b = 6; y = Gemm(v, w, b)" },
	{ "Gemm transposed", "x:2000x32", SHIFTED "w = 6x32; y = Gemm(v, w) transB=1" },
	{ "MatMul and Add", "x:?x1000x32", SHIFTED "w = 32x6; b = 6; m = MatMul(v, w); y = Add(m, b)" },
};

/* the mean error of each of the 6 output channels */
static void mean_errors(struct made *m, double *error)
{
	struct session *sa = NULL, *sb = NULL;
	struct tensor in[4], a, b;
	struct err err = ERR_INIT;
	size_t k, n, inner = 1;

	assert_ok(session_new(&sa, rt, m->s->m, &(struct session_options){ .threads = 1 }, &err), err);
	assert_ok(session_new(&sb, rt, m->q, &(struct session_options){ .threads = 1 }, &err), err);
	assert_ok(fake_inputs(sa, 2, 4, true, in, &err), err);
	assert_ok(session_run(sa, in, &a, &err), err);
	assert_ok(session_run(sb, in, &b, &err), err);
	n = (size_t)tensor_count(&a);
	if (a.rank == 4)
		inner = (size_t)(a.dims[2] * a.dims[3]);
	for (k = 0; k < 6; k++)
		error[k] = 0;
	for (k = 0; k < n; k++)
		error[k / inner % 6] += (tensor_get(&b, k) - tensor_get(&a, k)) * 6 / (double)n;
	tensor_free(&in[0]);
	session_free(sa);
	session_free(sb);
}

static double norm(const double *x)
{
	double sum = 0;
	int i;

	for (i = 0; i < 6; i++)
		sum += x[i] * x[i];
	return sqrt(sum);
}

static void biases_take_up_the_mean_error(void **state)
{
	size_t i, f;

	(void)state;
	for (i = 0; i < ARRAY_LEN(shifted); i++)
		for (f = 0; f < 3; f++) {
			struct spec sp = { .inputs = shifted[i].inputs,
					   .body = shifted[i].body,
					   .per_tensor = true,
					   .on = "ConvTranspose",
					   .off = "Add_2", /* MatMul's */
					   .format = f == 1 ? FORMAT_QOPERATOR : FORMAT_QDQ };
			double before[6], after[6];
			struct made m;

			sp.recipes.gemm_to_matmul = f == 2;
			make(&m, &sp);
			mean_errors(&m, before);
			if (strncmp(shifted[i].why, "MatMul", 6) == 0) /* or it is no test of that */
				want_ops(shifted[i].why, m.s->m, "MatMul", 1);
			made_release(&m);
			sp.recipes.fast_bias_correction = true;
			make(&m, &sp);
			mean_errors(&m, after);
			if (getenv("SHOW"))
				print_message("%s: %g -> %g\n", shifted[i].why, norm(before), norm(after));
			if (!(norm(after) * 5 < norm(before)))
				fail_msg("%s, form %zu: mean error %g, was %g: need a fifth", shifted[i].why,
					 f, norm(after), norm(before));
			made_release(&m);
		}
}

static void weight_correction_is_close(void **state)
{
	size_t i, k;

	(void)state;
	for (i = 0; i < ARRAY_LEN(shifted); i++)
		for (k = 0; k < 2; k++) {
			struct spec sp = { .inputs = shifted[i].inputs,
					   .body = shifted[i].body,
					   .per_tensor = true,
					   .no_means = k };
			struct made m;
			double plain;

			make(&m, &sp);
			plain = m.db;
			made_release(&m);
			sp.recipes.weight_correction = true;
			make(&m, &sp);
			want_db(shifted[i].why, &m, plain - 1);
			made_release(&m);
		}
}

static void no_means_no_correction(void **state)
{
	struct spec sp = { .inputs = X, .body = THREE, .no_means = true };
	struct err err = ERR_INIT;
	struct made m;

	(void)state;
	sp.recipes.fast_bias_correction = true;
	open_case(&m, &sp);
	assert_int_equal(quantize_made(&m, &err), FETTLE_INVALID);
	assert_non_null(strstr(err.msg, "fast_bias_correction needs the means"));
	made_release(&m);
}

static const char *const left[] = { "Add", "Gemm" };
static const struct recipes everything = { .keep_first = true,
					   .keep_last = true,
					   .keep_ends = true,
					   .own_pool_scale = true,
					   .own_concat_scale = true,
					   .gemm_to_matmul = true,
					   .dedicated_qdq_pair = true,
					   .qdq_pair_on_weights = true,
					   .fast_bias_correction = true,
					   .weight_correction = true,
					   .no_output = { "Add", "Gemm" },
					   .n_no_output = 2 };

static void all_at_once(void **state)
{
	static const char *const bodies[] = {
		THREE,
		C0 "p = MaxPool(a) kernel_shape=2,2; w2 = 8x8x3x3; r = Conv(p, w2); s = Relu(r); f = "
		   "Flatten(s); v = "
		   "200x16; c = 16; g = Gemm(f, v, c); h = Relu(g); u = 16x4; y = Gemm(h, u)",
		CC "t = Add(a, c); d = Concat(t, a) axis=1; w4 = 4x16x1x1; b4 = 4; e = Conv(d, w4, b4); s = "
		   "Sigmoid(e); w5 = 4x4x1x1; y = Conv(s, w5)",
		"k = [0,4,64]; f = Reshape(x, k); v = 64x32; g = MatMul(f, v); b = 32; h = Add(g, b); v2 = "
		"32x32; i = "
		"MatMul(h, v2); p = Softmax(i); v3 = 32x4; y = MatMul(p, v3)",
	};
	size_t i, f, bit;

	(void)state;
	for (i = 0; i < ARRAY_LEN(bodies); i++)
		for (f = 0; f < 2; f++)
			for (bit = 0; bit < 3; bit++) {
				struct spec sp = { .inputs = X, .body = bodies[i], .format = f };
				struct made m;

				sp.recipes = everything;
				if (bit) /* with all of the graph in integers, too */
					sp.recipes.keep_first = sp.recipes.keep_last = sp.recipes.keep_ends =
						false;
				if (bit == 2)
					sp.recipes.own_concat_scale = sp.recipes.own_pool_scale = false;
				make(&m, &sp);
				want_db(bodies[i], &m, 20);
				made_release(&m);
			}
}

static void all_at_once_on_real_models(void **state)
{
	static const char *const models[] = { "cnn", "mobilenet", "vit" };
	size_t i, f, ran = 0;

	(void)state;
	for (i = 0; i < ARRAY_LEN(models); i++) {
		char path[128];

		snprintf(path, sizeof(path), "../shared/models/%s.onnx", models[i]);
		if (access(path, R_OK) != 0) {
			print_message("SKIPPED: %s is not there\n", path);
			continue;
		}
		for (f = 0; f < 4; f++) {
			struct spec sp = { .path = path, .format = f & 1, .recipes = everything };
			struct made m;

			if (f & 2)
				sp.recipes.keep_first = sp.recipes.keep_last = sp.recipes.keep_ends = false;
			make(&m, &sp);
			if (getenv("SHOW"))
				print_message("%s %zu: %.1f dB\n", models[i], f, m.db);
			want_db(models[i], &m, 8);
			made_release(&m);
		}
		ran++;
	}
	if (!ran)
		skip();
}

static size_t count_integer_ops(const struct model *m)
{
	return count_ops(m, "QLinearConv") + count_ops(m, "QGemm") + count_ops(m, "QLinearMatMul") +
	       count_ops(m, "MatMulIntegerToFloat");
}

/* recipes that only write the same thing differently must not cost an integer kernel */
static void integer_ops_survive(void **state)
{
	static const struct {
		const char *why;
		struct recipes r;
	} cases[] = {
		{ "gemm_to_matmul", { .gemm_to_matmul = true } },
		{ "dedicated_qdq_pair", { .dedicated_qdq_pair = true } },
		{ "qdq_pair_on_weights", { .qdq_pair_on_weights = true } },
		{ "fast_bias_correction", { .fast_bias_correction = true } },
		{ "weight_correction", { .weight_correction = true } },
	};
	static const char *const models[] = { "cnn", "mobilenet", "vit" };
	size_t i, k, want, ran = 0;

	(void)state;
	for (i = 0; i < ARRAY_LEN(models); i++) {
		char path[128];
		struct made m;

		snprintf(path, sizeof(path), "../shared/models/%s.onnx", models[i]);
		if (access(path, R_OK) != 0) {
			print_message("SKIPPED: %s is not there\n", path);
			continue;
		}
		make(&m, &(struct spec){ .path = path });
		want = count_integer_ops(m.graph);
		assert_true(want > 4);
		made_release(&m);
		for (k = 0; k < ARRAY_LEN(cases); k++) {
			make(&m, &(struct spec){ .path = path, .recipes = cases[k].r });
			if (count_integer_ops(m.graph) != want)
				fail_msg("%s of %s: %zu integer ops, without it %zu", cases[k].why, models[i],
					 count_integer_ops(m.graph), want);
			made_release(&m);
		}
		ran++;
	}
	if (!ran)
		skip();
}

/* A random graph, as text. All values are [n, channels, size, size]. */
struct dag {
	struct rng rng;
	struct str body;
	struct {
		char name[16];
		int channels, size;
		bool read;
	} v[32];
	size_t n;
};

static size_t pick(struct dag *d)
{
	/* mostly recent values: the graph gets deep */
	size_t back =
		rng_below(&d->rng, 3) ? rng_below(&d->rng, d->n < 3 ? d->n : 3) : rng_below(&d->rng, d->n);

	d->v[d->n - 1 - back].read = true;
	return d->n - 1 - back;
}

/* another value of the same size (and channels), or the same */
static size_t partner(struct dag *d, size_t i, bool same_channels)
{
	size_t k, at = rng_below(&d->rng, d->n);

	for (k = 0; k < d->n; k++, at = (at + 1) % d->n)
		if (at != i && d->v[at].size == d->v[i].size &&
		    (!same_channels || d->v[at].channels == d->v[i].channels)) {
			d->v[at].read = true;
			return at;
		}
	return i;
}

static void grow(struct dag *d)
{
	size_t a = pick(d), b, n = d->n;
	const char *in = d->v[a].name;
	int channels = d->v[a].channels, size = d->v[a].size, out;

	snprintf(d->v[n].name, sizeof(d->v[n].name), "v%zu", n);
	switch (rng_below(&d->rng, 11)) {
	case 0:
	case 1:
	case 2:
		out = 2 + (int)rng_below(&d->rng, 5);
		str_addf(&d->body, "w%zu = %dx%dx3x3; ", n, out, channels);
		if (rng_below(&d->rng, 2))
			str_addf(&d->body, "b%zu = %d; v%zu = Conv(%s, w%zu, b%zu) pads=1,1,1,1; ", n, out, n,
				 in, n, n);
		else
			str_addf(&d->body, "v%zu = Conv(%s, w%zu) pads=1,1,1,1; ", n, in, n);
		channels = out;
		break;
	case 3:
		b = partner(d, a, true);
		str_addf(&d->body, "v%zu = Add(%s, %s); ", n, in, d->v[b].name);
		break;
	case 4:
	case 5:
		b = partner(d, a, false);
		str_addf(&d->body, "v%zu = Concat(%s, %s) axis=1; ", n, in, d->v[b].name);
		channels += d->v[b].channels;
		break;
	case 6:
		if (size > 2) {
			str_addf(&d->body, "v%zu = MaxPool(%s) kernel_shape=2,2; ", n, in);
			size--;
		} else {
			str_addf(&d->body, "v%zu = MaxPool(%s) kernel_shape=1,1; ", n, in);
		}
		break;
	case 7:
		str_addf(&d->body, "v%zu = Relu(%s); ", n, in);
		break;
	case 8:
		str_addf(&d->body, "s%zu = [0]; e%zu = [%d]; a%zu = [1]; ", n, n, (channels + 1) / 2, n);
		str_addf(&d->body, "v%zu = Slice(%s, s%zu, e%zu, a%zu); ", n, in, n, n, n);
		channels = (channels + 1) / 2;
		break;
	case 9:
		if (channels % 2 == 0) {
			str_addf(&d->body, "v%zu, h%zu = Split(%s) axis=1; ", n, n, in);
			channels /= 2;
			snprintf(d->v[n + 1].name, sizeof(d->v[n + 1].name), "h%zu", n);
			d->v[n + 1].channels = channels;
			d->v[n + 1].size = size;
			d->v[n + 1].read = false;
			d->n++;
			break;
		}
		/* fall through */
	default: /* the same shape again, otherwise arranged */
		str_addf(&d->body, "k%zu = [0,%d,%d]; u%zu = Reshape(%s, k%zu); l%zu = [0,%d,%d,%d]; ", n,
			 size * size, channels, n, in, n, n, channels, size, size);
		str_addf(&d->body, "v%zu = Reshape(u%zu, l%zu); ", n, n, n);
	}
	d->v[n].channels = channels;
	d->v[n].size = size;
	d->v[n].read = false;
	d->n++;
}

static void random_plan(struct rng *rng, struct made *m)
{
	static const struct qsetting acts[] = {
		{ .dtype = DT_U8, .scheme = SCHEME_ASYM },
		{ .dtype = DT_U8, .scheme = SCHEME_ASYM, .algorithm = RANGE_PERCENTILE, .parameter = 99.9 },
		{ .dtype = DT_S8, .scheme = SCHEME_SYM },
		{ .dtype = DT_S8, .scheme = SCHEME_ASYM, .algorithm = RANGE_MSE },
		{ .dtype = DT_U16, .scheme = SCHEME_ASYM },
	};
	/* few settings at a time, or nothing is ever shared */
	size_t kinds = 1 + rng_below(rng, 3), first = rng_below(rng, ARRAY_LEN(acts)), i;
	struct recipes *r = &m->plan.recipes;

	for (i = 0; i < m->plan.n; i++) {
		const struct op *op = &m->s->ops.v[i];
		struct op_choice *c = &m->plan.ops[i];

		c->mode = OP_FP32;
		if (op->modes & MODE_STATIC && rng_below(rng, 4))
			c->mode = OP_STATIC;
		else if (op->modes & MODE_DYNAMIC && !rng_below(rng, 4))
			c->mode = OP_DYNAMIC;
		c->act = acts[(first + rng_below(rng, kinds)) % ARRAY_LEN(acts)];
		c->weight.per_channel = rng_below(rng, 2);
	}
	m->plan.format = rng_below(rng, 3) ? FORMAT_QDQ : FORMAT_QOPERATOR;
	if (rng_below(rng, 2))
		return;
	r->own_pool_scale = rng_below(rng, 2);
	r->own_concat_scale = rng_below(rng, 2);
	r->dedicated_qdq_pair = rng_below(rng, 2);
	r->qdq_pair_on_weights = rng_below(rng, 2);
	r->fast_bias_correction = rng_below(rng, 2);
	r->weight_correction = rng_below(rng, 2);
	r->keep_ends = rng_below(rng, 2);
	if (rng_below(rng, 2))
		recipes_leave_output(r, left[0]);
}

static void try_random(uint64_t seed)
{
	struct dag d = { .body = STR_INIT, .v = { { .name = "x", .channels = 4, .size = 6 } }, .n = 1 };
	struct made m = { .plan = QPLAN_INIT };
	struct str outputs = STR_INIT;
	struct err err = ERR_INIT;
	char path[128];
	size_t i, n;

	rng_seed(&d.rng, seed);
	n = 4 + rng_below(&d.rng, 10);
	while (d.n < n)
		grow(&d);
	for (i = 1, n = 0; i < d.n; i++) /* what nothing reads, and some others */
		if (n < 7 && (!d.v[i].read || !rng_below(&d.rng, 6)))
			str_addf(&outputs, "%s%s", n++ ? "," : "", d.v[i].name);
	snprintf(path, sizeof(path), "%s/random.onnx", dir);
	build_model(path, 13, "x:?x4x6x6", d.body.s, outputs.s);
	if (getenv("SHOW"))
		print_message("%llu: %s -> %s\n", (unsigned long long)seed, d.body.s, outputs.s);
	assert_ok(subject_open(&m.s, rt, path, &err), err);
	qplan_default(&m.plan, &m.s->ops, &m.s->g,
		      &(struct qplan_defaults){ .weight = { .dtype = DT_S8, .scheme = SCHEME_SYM },
						.reduce_range = REDUCE_ON });
	random_plan(&d.rng, &m);
	observe_plan(&m);
	if (quantize_made(&m, &err) != FETTLE_OK)
		fail_msg("graph %llu: %s: %s", (unsigned long long)seed, err.msg, d.body.s);
	save(m.q);
	m.db = compare(rt, m.s->m, m.q);
	if (!(m.db > 12))
		fail_msg("graph %llu: %.1f dB: %s", (unsigned long long)seed, m.db, d.body.s);
	made_release(&m);
	str_release(&d.body);
	str_release(&outputs);
}

static void random_graphs(void **state)
{
	const char *only = getenv("SEED");
	uint64_t seed, n = getenv("RANDOM_GRAPHS") ? strtoull(getenv("RANDOM_GRAPHS"), NULL, 10) : 400;

	(void)state;
	for (seed = only ? strtoull(only, NULL, 10) : 1; seed <= (only ? seed : n); seed++) {
		try_random(seed);
		if (only)
			break;
	}
}

static void checker_accepts_all(void **state)
{
	char command[1024];

	(void)state;
	if (system("/usr/bin/python3 -c 'import onnx' 2>/dev/null") != 0) {
		print_message("SKIPPED: python3-onnx is not installed\n");
		skip();
	}
	snprintf(command, sizeof(command),
		 "/usr/bin/python3 - %s <<'E'\n"
		 "import glob, onnx, sys\n"
		 "n = 0\n"
		 "for f in sorted(glob.glob(sys.argv[1] + '/*.int8.onnx')):\n"
		 "    m = onnx.load(f)\n"
		 "    onnx.checker.check_model(m, full_check=True)\n"
		 "    onnx.shape_inference.infer_shapes(m, check_type=True, strict_mode=True)\n"
		 "    n += 1\n"
		 "print('onnx.checker accepts', n, 'models')\n"
		 "assert n == %d\n"
		 "E\n",
		 dir, n_files);
	assert_int_equal(system(command), 0);
}

static int begin(void **state)
{
	struct err err = ERR_INIT;

	(void)state;
	return !mkdtemp(dir) || runtime_new(&rt, &err) != FETTLE_OK;
}

static int end(void **state)
{
	char command[256];

	(void)state;
	snprintf(command, sizeof(command), "rm -rf %s", dir);
	runtime_free(rt);
	return getenv("KEEP") ? 0 : system(command);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(first_and_last_stay_in_fp32),
		cmocka_unit_test(ends_stay_in_fp32),
		cmocka_unit_test(pool_has_its_own_scale),
		cmocka_unit_test(concat_shares_one_scale),
		cmocka_unit_test(concat_can_keep_scales),
		cmocka_unit_test(gemm_becomes_matmul),
		cmocka_unit_test(readers_have_pairs_of_their_own),
		cmocka_unit_test(weights_keep_floats),
		cmocka_unit_test(outputs_left_to_readers),
		cmocka_unit_test(variances_are_kept),
		cmocka_unit_test(biases_take_up_the_mean_error),
		cmocka_unit_test(weight_correction_is_close),
		cmocka_unit_test(no_means_no_correction),
		cmocka_unit_test(all_at_once),
		cmocka_unit_test(all_at_once_on_real_models),
		cmocka_unit_test(integer_ops_survive),
		cmocka_unit_test(random_graphs),
		cmocka_unit_test(checker_accepts_all),
	};

	if (getenv("TEST"))
		cmocka_set_test_filter(getenv("TEST"));
	return cmocka_run_group_tests(tests, begin, end);
}
