/* What values are computed from, what is computed from some of them, and sessions that start there. */
#include "unit/unit.h"
#include "unit/build.h"
#include "unit/place.h"

#include "model/index.h"
#include "runtime/session.h"

static struct model *model_of(int opset, const char *inputs, const char *body, const char *outputs)
{
	char *path = xstrfmt("%s/m.onnx", dir);
	struct model *m = NULL;
	struct err err = ERR_INIT;

	build_model(path, opset, inputs, body, outputs);
	assert_ok(model_load(&m, path, &err), err);
	assert_ok(graph_sort(m, &err), err);
	free(path);
	return m;
}

/* The number of one value; weights are fetched first, as the quantizer does. */
static uint64_t print_of(struct model *m, const char *value)
{
	struct graph_index g;
	struct err err = ERR_INIT;
	uint64_t *prints, out;
	size_t i;

	for (i = 0; i < m->inits.n; i++)
		assert_ok(model_weight(m, m->inits.v[i], &err), err);
	graph_index_init(&g, m);
	prints = xcalloc(g.n, sizeof(*prints));
	graph_fingerprints(&g, prints);
	out = prints[graph_value(&g, value)];
	free(prints);
	graph_index_release(&g);
	return out;
}

static void same_number_same_computation(void **state)
{
#define LIKE "w = 4x3x3x3; a = Conv(x, w) pads=1,1,1,1; y = Relu(a)"
	static const struct {
		const char *why, *inputs, *body, *outputs;
		int opset;
		bool same;
	} rows[] = {
		{ "itself", "x:?x3x8x8", LIKE, "y", 13, true },
		{ "other names of values and weights", "x:?x3x8x8",
		  "v = 4x3x3x3; b = Conv(x, v) pads=1,1,1,1; y = Relu(b)", "y", 13, true },
		/* the weight comes first, so that its random values are the same */
		{ "more that leads elsewhere", "x:?x3x8x8",
		  "w = 4x3x3x3; z = Sigmoid(x); a = Conv(x, w) pads=1,1,1,1; y = Relu(a); q = Neg(z)", "y,q",
		  13, true },
		{ "another op", "x:?x3x8x8", "w = 4x3x3x3; a = Conv(x, w) pads=1,1,1,1; y = Sigmoid(a)", "y",
		  13, false },
		{ "another op before", "x:?x3x8x8",
		  "w = 4x3x3x3; n = Neg(x); a = Conv(n, w) pads=1,1,1,1; y = Relu(a)", "y", 13, false },
		{ "another attribute", "x:?x3x8x8", "w = 4x3x3x3; a = Conv(x, w) pads=0,0,0,0; y = Relu(a)",
		  "y", 13, false },
		{ "an attribute less", "x:?x3x8x8", "w = 4x3x3x3; a = Conv(x, w); y = Relu(a)", "y", 13,
		  false },
		{ "another constant", "x:?x3x8x8",
		  "u = 1; w = 4x3x3x3; a = Conv(x, w) pads=1,1,1,1; y = Relu(a)", "y", 13, false },
		{ "a constant of another shape", "x:?x3x8x8",
		  "w = 4x3x1x1; a = Conv(x, w) pads=1,1,1,1; y = Relu(a)", "y", 13, false },
		{ "an input more", "x:?x3x8x8",
		  "w = 4x3x3x3; b = 4; a = Conv(x, w, b) pads=1,1,1,1; y = Relu(a)", "y", 13, false },
		{ "another input of the graph", "z:?x3x8x8,x:?x3x8x8",
		  "w = 4x3x3x3; a = Conv(z, w) pads=1,1,1,1; y = Relu(a)", "y", 13, false },
	};
	struct model *like = model_of(13, "x:?x3x8x8", LIKE, "y");
	uint64_t want = print_of(like, "y");
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_LEN(rows); i++) {
		struct model *m = model_of(rows[i].opset, rows[i].inputs, rows[i].body, rows[i].outputs);

		if ((print_of(m, "y") == want) != rows[i].same)
			fail_msg("%s: %s number", rows[i].why, rows[i].same ? "another" : "the same");
		model_free(m);
	}
	model_free(like);
}

/* one bit of one weight, the order of inputs, which of several outputs, an input that is left out */
static void small_differences_count(void **state)
{
	static const struct {
		const char *why, *a, *b;
	} rows[] = {
		{ "the order of inputs", "y = Sub(x, z)", "y = Sub(z, x)" },
		{ "which output", "y, q = Split(x) axis=1", "q, y = Split(x) axis=1" },
		{ "one that is left out", "l = 0.0; y = Clip(x, l)", "l = 0.0; y = Clip(x, _, l)" },
		{ "the same value twice", "s = Neg(x); y = Add(s, s)",
		  "s = Neg(x); t = Neg(z); y = Add(s, t)" },
		{ "a number", "l = 0.0; y = Add(x, l)", "l = 0.5; y = Add(x, l)" },
	};
	struct model *a, *b;
	float *data;
	uint64_t before;
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_LEN(rows); i++) {
		a = model_of(11, "x:?x4,z:?x4", rows[i].a, "y");
		b = model_of(11, "x:?x4,z:?x4", rows[i].b, "y");
		if (print_of(a, "y") == print_of(b, "y"))
			fail_msg("%s: the same number", rows[i].why);
		model_free(a);
		model_free(b);
	}
	a = model_of(13, "x:?x16", "w = 16x9; y = MatMul(x, w)", "y");
	before = print_of(a, "y");
	data = xmalloc(16 * 9 * sizeof(*data));
	memcpy(data, model_init(a, "w")->t.data, 16 * 9 * sizeof(*data));
	model_init(a, "w")->t.data = data;
	for (i = 0; i < 16 * 9; i++) {
		float kept = data[i];

		assert_true(print_of(a, "y") == before);
		data[i] = nextafterf(kept, 9);
		if (print_of(a, "y") == before)
			fail_msg("weight %zu does not count", i);
		data[i] = kept;
	}
	model_free(a);
	free(data);
}

/* ---- what follows a cut ---- */

static const char rejoins[] = "w1 = 4x3x3x3; a = Conv(x, w1) pads=1,1,1,1; b = Relu(a);"
			      "w2 = 4x4x3x3; c = Conv(b, w2) pads=1,1,1,1; d = Add(b, c); e = Relu(d);"
			      "w3 = 2x4x1x1; y = Conv(e, w3); z = Sigmoid(c)";

static void what_is_behind(void **state)
{
	static const struct {
		const char *why, *known, *outputs, *nodes,
			*values; /* outputs of nodes that run; values that are read */
	} rows[] = {
		{ "nothing known: all of it", "", "y", "a b c d e y", "x a b c d e y" },
		{ "a cut through which everything passes", "e", "y", "y", "e y" },
		{ "a branch goes around what is known", "c", "y", "a b d e y", "x a b c d e y" },
		{ "both branches known", "b c", "y", "d e y", "b c d e y" },
		{ "the output itself", "y", "y", "", "y" },
		{ "two outputs", "e c", "y,z", "y z", "c e y z" },
		{ "what is known but not needed", "a e", "y", "y", "e y" },
	};
	size_t i, k;

	(void)state;
	for (i = 0; i < ARRAY_LEN(rows); i++) {
		struct model *m = model_of(13, "x:?x3x8x8", rejoins, rows[i].outputs);
		struct graph_index g;
		bool *known, *nodes, *values;

		graph_index_init(&g, m);
		known = xcalloc(g.n, sizeof(*known));
		values = xcalloc(g.n, sizeof(*values));
		nodes = xcalloc(m->nodes.n, sizeof(*nodes));
		for (k = 0; k < g.n; k++) /* all names are one letter, but for weights */
			known[k] = !g.names[k][1] && strchr(rows[i].known, g.names[k][0]);
		graph_behind(&g, known, nodes, values);
		for (k = 0; k < m->nodes.n; k++)
			if (nodes[k] != (strchr(rows[i].nodes, m->nodes.v[k]->out[0][0]) != NULL))
				fail_msg("%s: the node of %s", rows[i].why, m->nodes.v[k]->out[0]);
		for (k = 0; k < g.n; k++)
			if (!g.names[k][1] && values[k] != (strchr(rows[i].values, g.names[k][0]) != NULL))
				fail_msg("%s: the value %s", rows[i].why, g.names[k]);
		free(known);
		free(nodes);
		free(values);
		graph_index_release(&g);
		model_free(m);
	}
}

/* ---- sessions that start there ---- */

enum { BATCH = 3, VALUES_MAX = 6 };

static struct session *open(struct model *m)
{
	struct session *s = NULL;
	struct err err = ERR_INIT;

	assert_ok(session_new(&s, rt, m, &(struct session_options){ .threads = 1 }, &err), err);
	return s;
}

/* Integers between Q and DQ, given as they came out of the whole, lead to the same bits. */
static void sessions_on_cut_models(void **state)
{
#define QDQ(v) v "q = QuantizeLinear(" v ", s, k); " v "f = DequantizeLinear(" v "q, s, k); "
	static const char body[] =
		"s = 0.05; i = 3.0; k = Cast(i) to=2;" /* a zero point that is no initializer will do here */
		"w1 = 8x3x3x3; a = Conv(x, w1) pads=1,1,1,1; b = Relu(a); " QDQ(
			"b") "w2 = 8x8x3x3;"
			     "c = Conv(bf, w2) pads=1,1,1,1; " QDQ("c") "d = Add(bf, cf); " QDQ(
				     "d") "w3 = 4x8x1x1;"
					  "e = Conv(df, w3); w4 = 4x8x1x1; g = Conv(df, w4); y = Add(e, g); "
					  "z = GlobalAveragePool(df)";
	static const struct {
		const char *why, *at[3];
		size_t n, inputs;
	} rows[] = {
		{ "one value", { "dq" }, 1, 1 },
		{ "two that rejoin", { "bq", "cq" }, 2, 2 },
		{ "one of two: the input is still needed", { "cq" }, 1, 2 },
		{ "several, one after the other", { "bq", "dq" }, 2, 2 },
	};
	static const char *const names[] = { "y", "z", "bq", "cq", "dq" };
	struct model *m = model_of(13, "x:?x3x8x8", body, "y,z");
	struct model *all = model_derive(m);
	struct tensor x = { DT_F32, 4, { BATCH, 3, 8, 8 }, NULL }, out[VALUES_MAX], got[VALUES_MAX],
		      in[VALUES_MAX];
	struct session *whole, *plain;
	struct err err = ERR_INIT;
	struct rng r;
	size_t i, k, j;

	(void)state;
	rng_seed(&r, 1);
	assert_ok(tensor_alloc(&x, "x", &err), err);
	for (i = 0; i < (size_t)tensor_count(&x); i++)
		tensor_set(&x, i, rng_normal(&r));
	model_set_outputs(all, names, ARRAY_LEN(names));
	whole = open(all);
	assert_ok(session_run(whole, &x, out, &err), err);
	plain = open(m);
	assert_ok(session_run(plain, &x, got, &err), err);
	assert_memory_equal(out[0].data, got[0].data, tensor_bytes(&out[0])); /* looking on changes nothing */
	for (i = 0; i < ARRAY_LEN(rows); i++) {
		struct model *part = model_derive(m);
		struct value at[3];
		struct session *s;

		for (k = 0; k < rows[i].n; k++) {
			at[k] = (struct value){ .name = rows[i].at[k], .batch = "n" };
			for (j = 2; j < ARRAY_LEN(names); j++)
				if (strcmp(names[j], rows[i].at[k]) == 0)
					at[k].type = out[j];
			at[k].type.dims[0] = -1;
		}
		model_cut(part, at, rows[i].n);
		assert_true(part->nodes.n < m->nodes.n);
		s = open(part);
		if (session_n_inputs(s) != rows[i].inputs)
			fail_msg("%s: %zu inputs", rows[i].why, session_n_inputs(s));
		for (k = 0; k < session_n_inputs(s); k++) {
			const struct value *v = session_input(s, k);

			in[k] = x;
			for (j = 2; j < ARRAY_LEN(names); j++)
				if (strcmp(names[j], v->name) == 0)
					in[k] = out[j];
			assert_string_equal(v->batch, "n");
		}
		assert_ok(session_run(s, in, got, &err), err);
		for (k = 0; k < 2; k++)
			if (!tensor_same_shape(&got[k], &out[k]) ||
			    memcmp(got[k].data, out[k].data, tensor_bytes(&out[k])) != 0)
				fail_msg("%s: output %zu is not what the whole gives", rows[i].why, k);
		session_free(s);
		model_free(part);
	}
	session_free(whole);
	session_free(plain);
	tensor_free(&x);
	model_free(all);
	model_free(m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(same_number_same_computation),
		cmocka_unit_test(small_differences_count),
		cmocka_unit_test(what_is_behind),
		cmocka_unit_test(sessions_on_cut_models),
	};

	return cmocka_run_group_tests(tests, place_open, place_close);
}
