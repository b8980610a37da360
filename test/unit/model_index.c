/* The graph's structure: order, makers and readers, cuts and blocks, against definitions that cannot be wrong. */
#include "unit/unit.h"

#include <time.h>
#include <unistd.h>

#include "base/rng.h"
#include "model/index.h"
#include "unit/proto.h"

static struct model *decode(struct build *b)
{
	struct err err = ERR_INIT;
	struct model *m = NULL;

	assert_ok(build_decode(b, &m, NULL, &err), err);
	return m;
}

static void makers_and_readers(void **state)
{
	struct err err = ERR_INIT;
	Onnx__GraphProto *sub;
	struct graph_index g;
	struct model *m;
	struct build b;
	size_t v;

	(void)state;
	build_init(&b, 13);
	build_input(&b, "x", DT_F32, DIMS(2));
	build_weight(&b, "w", DT_F32, DIMS(2), "abcdefgh", 8);
	build_node(&b, "Add", "x,w", "a");
	build_node(&b, "Mul", "a,a", "b");
	build_node(&b, "Split", "b", "c,,d"); /* one output left out */
	build_node(&b, "Clip", "c,,w", "e");  /* and one input: that is no edge between them */
	build_node(&b, "Print", "d", "");
	sub = build_graph(&b, "s");
	build_node_in(&b, sub, "Neg", "a", "n");
	build_attr_graph(&b, build_node(&b, "If", "e", "y"), "then_branch", sub);
	build_output(&b, "y", DT_F32, DIMS(2));
	build_output(&b, "c", DT_F32, DIMS(2));
	m = decode(&b);
	assert_ok(graph_sort(m, &err), err);
	graph_index_init(&g, m);
	assert_null(graph_producer(&g, "x"));
	assert_null(graph_producer(&g, "w"));
	assert_null(graph_producer(&g, ""));
	assert_null(graph_producer(&g, "nonsense"));
	assert_ptr_equal(graph_producer(&g, "d"), m->nodes.v[2]);
	assert_true(g.constant[graph_value(&g, "w")]);
	assert_false(g.constant[graph_value(&g, "x")]);
	assert_true(g.output[graph_value(&g, "c")]);
	assert_int_equal(graph_value(&g, "nonsense"), MAP_NONE);
	assert_int_equal(graph_n_uses(&g, graph_value(&g, "")), 0);
	v = graph_value(&g, "a"); /* twice by Mul, once by the subgraph */
	assert_int_equal(graph_n_uses(&g, v), 3);
	assert_int_equal(g.uses[g.first[v]], 1);
	assert_int_equal(g.uses[g.first[v] + 1], 1);
	assert_int_equal(g.uses[g.first[v] + 2], 5);
	assert_int_equal(graph_n_uses(&g, graph_value(&g, "w")), 2);
	assert_ptr_equal(graph_only_user(&g, "b"), m->nodes.v[2]);
	assert_null(graph_only_user(&g, "a"));
	assert_null(graph_only_user(&g, "c")); /* the caller reads it, too */
	assert_null(graph_only_user(&g, "y"));
	assert_null(graph_only_user(&g, ""));
	graph_index_release(&g);
	model_free(m);
	build_release(&b);
}

static void bad_graphs_cannot_be_ordered(void **state)
{
	static const struct {
		const char *why, *in, *out, *says;
	} rows[] = {
		{ "a value from nowhere", "nowhere", "r", "'nowhere' is read but nothing makes it" },
		{ "its own result", "q", "q", "'loop' (Neg) waits for its own result" },
		{ "a result twice", "x", "a", "'a' is made twice" },
		{ "a result twice by one node", "x", "q,q", "'q' is made twice" },
		{ "a result that is an input", "a", "x", "'x' is made twice" },
		{ "a result that is a constant", "a", "w", "'w' is made twice" },
	};
	struct err err = ERR_INIT;
	struct model *m;
	struct build b;
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_LEN(rows); i++) {
		build_init(&b, 13);
		build_input(&b, "x", DT_F32, DIMS(2));
		build_weight(&b, "w", DT_F32, DIMS(1), "abcd", 4);
		build_node(&b, "Neg", rows[i].in, rows[i].out)->name = arena_strdup(&b.a, "loop");
		build_node(&b, "Add", "x,w", "a");
		m = decode(&b);
		assert_int_equal(graph_sort(m, &err), FETTLE_INVALID);
		if (!strstr(err.msg, rows[i].says))
			fail_msg("%s: %s", rows[i].why, err.msg);
		model_free(m);
		build_release(&b);
	}
}

/* sparse constants are no struct init, but they are there */
static void sparse_constants_count(void **state)
{
	Onnx__SparseTensorProto s = ONNX__SPARSE_TENSOR_PROTO__INIT, *list[] = { &s };
	struct err err = ERR_INIT;
	struct model *m, *d;
	struct graph_index g;
	struct build b;

	(void)state;
	build_init(&b, 13);
	build_input(&b, "x", DT_F32, DIMS(2));
	s.values = build_tensor(&b, "sparse", DT_F32, DIMS(1), "abcd", 4);
	b.g->n_sparse_initializer = 1;
	b.g->sparse_initializer = list;
	build_node(&b, "Add", "x,sparse", "y");
	build_output(&b, "y", DT_F32, DIMS(2));
	m = decode(&b);
	d = model_derive(m);
	assert_ok(graph_sort(d, &err), err);
	graph_index_init(&g, d);
	assert_true(g.constant[graph_value(&g, "sparse")]);
	assert_string_not_equal(model_fresh(d, "sparse"), "sparse");
	graph_index_release(&g);
	model_free(d);
	model_free(m);
	build_release(&b);
}

/* A random graph: values 0..n-1, those below `inputs` given, each node making one to two values of earlier ones. */
struct dag {
	struct build b;
	struct model *m;
	size_t n_nodes;
};

static void dag_init(struct dag *d, struct rng *r)
{
	size_t inputs = 1 + rng_below(r, 3), n = 3 + rng_below(r, 14), i, k, made = inputs;

	build_init(&d->b, 13);
	for (i = 0; i < inputs; i++)
		build_input(&d->b, arena_strfmt(&d->b.a, "v%zu", i), DT_F32, DIMS(2));
	build_weight(&d->b, "w", DT_F32, DIMS(1), "abcd", 4);
	for (i = 0; i < n; i++) {
		char *in = arena_strdup(&d->b.a, rng_below(r, 3) ? "" : "w"), *out;
		size_t reads = 1 + rng_below(r, 2);

		for (k = 0; k < reads; k++) {
			/* mostly the latest, so that there are cuts to find */
			size_t back = rng_below(r, rng_below(r, 3) ? 2 : made);

			in = arena_strfmt(&d->b.a, "%s%sv%zu", in, *in ? "," : "",
					  made - 1 - (back < made ? back : 0));
		}
		if (!rng_below(r, 8))
			in = arena_strdup(&d->b.a, "w"); /* needs no input */
		out = arena_strfmt(&d->b.a, "v%zu", made++);
		if (!rng_below(r, 6))
			out = arena_strfmt(&d->b.a, "%s,,v%zu", out, made++);
		build_node(&d->b, "Op", in, out);
	}
	build_output(&d->b, arena_strfmt(&d->b.a, "v%zu", made - 1), DT_F32, DIMS(2));
	if (!rng_below(r, 4))
		build_output(&d->b, arena_strfmt(&d->b.a, "v%zu", rng_below(r, made)), DT_F32, DIMS(2));
	d->m = decode(&d->b);
	d->n_nodes = n;
}

static void dag_release(struct dag *d)
{
	model_free(d->m);
	build_release(&d->b);
}

/* can an output be reached from an input without passing through `without`? */
static bool reaches(const struct graph_index *g, size_t without)
{
	bool *reached = xcalloc(g->n, sizeof(*reached)), found = false;
	size_t i, j;

	for (i = 0; i < g->m->n_inputs; i++)
		reached[graph_value(g, g->m->inputs[i].name)] = true;
	for (i = 0; i < g->m->nodes.n; i++) {
		const struct node *n = g->m->nodes.v[i];
		bool any = false;

		for (j = 0; j < n->n_in; j++)
			any |= *n->in[j] && reached[graph_value(g, n->in[j])];
		for (j = 0; j < n->n_out; j++) {
			size_t v = graph_value(g, n->out[j]);

			reached[v] = any && *n->out[j] && v != without;
		}
	}
	for (i = 0; i < g->m->n_outputs; i++)
		found |= reached[graph_value(g, g->m->outputs[i].name)];
	free(reached);
	return found;
}

static void cuts_are_what_they_say(void **state)
{
	size_t trial, i, k, found = 0;
	struct err err = ERR_INIT;
	struct rng r;

	(void)state;
	rng_seed(&r, 11);
	for (trial = 0; trial < 2000; trial++) {
		struct graph_index g;
		struct cuts c;
		struct dag d;

		dag_init(&d, &r);
		assert_ok(graph_sort(d.m, &err), err);
		graph_index_init(&g, d.m);
		graph_cuts(&g, false, &c);
		for (i = k = 0; i < d.m->nodes.n && reaches(&g, MAP_NONE); i++) {
			const struct node *n = d.m->nodes.v[i];
			size_t j;

			for (j = 0; j < n->n_out; j++) {
				if (!*n->out[j] || reaches(&g, graph_value(&g, n->out[j])))
					continue;
				/* all data passes here, so it is the next cut */
				if (k >= c.n || strcmp(c.v[k], n->out[j]) != 0 || c.after[k] != (int)i)
					fail_msg("trial %zu: cut %zu should be %s", trial, k, n->out[j]);
				k++;
			}
		}
		assert_int_equal(k, c.n);
		found += k;
		cuts_release(&c);
		graph_index_release(&g);
		dag_release(&d);
	}
	assert_true(found > 2000);
}

static void check_order(const struct model *m)
{
	struct map at = MAP_INIT;
	size_t i, j;

	for (i = 0; i < m->nodes.n; i++)
		for (j = 0; j < m->nodes.v[i]->n_out; j++)
			if (*m->nodes.v[i]->out[j])
				map_set(&at, m->nodes.v[i]->out[j], i);
	for (i = 0; i < m->nodes.n; i++)
		for (j = 0; j < m->nodes.v[i]->n_in; j++) {
			size_t maker = map_get(&at, m->nodes.v[i]->in[j]);

			assert_true(maker == MAP_NONE || maker < i);
		}
	map_release(&at);
}

static void shuffled_graphs_are_ordered(void **state)
{
	struct err err = ERR_INIT;
	struct rng r;
	size_t trial, i;

	(void)state;
	rng_seed(&r, 12);
	for (trial = 0; trial < 1000; trial++) {
		struct dag d;
		size_t order[32];
		struct node *nodes[32], *before[32];

		dag_init(&d, &r);
		/* what is in order stays as it is */
		memcpy(before, d.m->nodes.v, d.n_nodes * sizeof(struct node *));
		assert_ok(graph_sort(d.m, &err), err);
		assert_memory_equal(before, d.m->nodes.v, d.n_nodes * sizeof(struct node *));
		for (i = 0; i < d.n_nodes; i++)
			order[i] = i;
		rng_shuffle(&r, order, d.n_nodes);
		for (i = 0; i < d.n_nodes; i++)
			nodes[i] = before[order[i]];
		model_set_nodes(d.m, nodes, d.n_nodes);
		assert_ok(graph_sort(d.m, &err), err);
		assert_int_equal(d.m->nodes.n, d.n_nodes);
		check_order(d.m);
		dag_release(&d);
	}
}

/* the processor time that it takes to order a chain that is written backwards */
static clock_t time_to_order(int nodes)
{
	struct err err = ERR_INIT;
	struct model *m;
	struct build b;
	clock_t start, took;
	int i;

	build_init(&b, 13);
	build_input(&b, "v0", DT_F32, DIMS(2));
	for (i = nodes; i > 0; i--)
		build_node(&b, "Neg", arena_strfmt(&b.a, "v%d", i - 1), arena_strfmt(&b.a, "v%d", i));
	m = decode(&b);
	start = clock();
	assert_ok(graph_sort(m, &err), err);
	took = clock() - start;
	check_order(m);
	model_free(m);
	build_release(&b);
	return took;
}

/* Sixteen times as long takes sixteen times as much, and more for what the caches do not hold; by squares it would be 256. */
static void long_chains_are_ordered_quickly(void **state)
{
	clock_t chain, most;

	(void)state;
	chain = time_to_order(5000);
	most = 100 * (chain + CLOCKS_PER_SEC / 1000);
	assert_true(time_to_order(16 * 5000) < most);
}

/* x -> three times { q, k, v, attention, projection, residual, two layers, residual } -> head */
static void add_block(struct build *b, int i)
{
	static const char *const steps[][3] = {
		/* %d is this block, @ what comes in */
		{ "MatMul", "@,wq", "q%d" },    { "MatMul", "@,wk", "k%d" },   { "MatMul", "@,wv", "v%d" },
		{ "MatMul", "q%d,k%d", "s%d" }, { "Mul", "s%d,scale", "t%d" }, { "Softmax", "t%d", "p%d" },
		{ "MatMul", "p%d,v%d", "c%d" }, { "MatMul", "c%d,wo", "o%d" }, { "Add", "@,o%d", "r%d" },
		{ "MatMul", "r%d,wi", "h%d" },  { "Relu", "h%d", "a%d" },      { "MatMul", "a%d,wu", "u%d" },
		{ "Add", "r%d,u%d", "x%d" },
	};
	size_t s, k;

	for (s = 0; s < ARRAY_LEN(steps); s++) {
		char *names[2];

		for (k = 0; k < 2; k++) {
			char text[64], *to = text;
			const char *p;

			for (p = steps[s][k + 1]; *p; p++) {
				if (*p == '@')
					to += sprintf(to, "x%d", i - 1);
				else if (*p == '%')
					to += sprintf(to, "%d", i), p++;
				else
					*to++ = *p;
			}
			*to = '\0';
			names[k] = arena_strdup(&b->a, text);
		}
		build_node(b, steps[s][0], names[0], names[1]);
	}
}

static void blocks_repeat(void **state)
{
	static const char *const weights[] = { "wq", "wk", "wv", "wo", "wi", "wu", "wh" };
	static const float w[16] = { 1 };
	struct block *blocks = NULL;
	struct graph_index g;
	struct model *m;
	struct build b;
	size_t i, n;

	(void)state;
	build_init(&b, 13);
	build_input(&b, "in", DT_F32, DIMS(-1, 4));
	for (i = 0; i < ARRAY_LEN(weights); i++)
		build_weight(&b, weights[i], DT_F32, DIMS(4, 4), w, sizeof(w));
	build_weight(&b, "scale", DT_F32, DIMS(1), w, sizeof(*w));
	build_node(&b, "MatMul", "in,wh", "x0");
	for (i = 1; i <= 3; i++)
		add_block(&b, (int)i);
	build_node(&b, "MatMul", "x3,wh", "y");
	build_output(&b, "y", DT_F32, DIMS(-1, 4));
	m = decode(&b);
	graph_index_init(&g, m);
	n = graph_blocks(&g, &blocks);
	assert_int_equal(n, 3);
	for (i = 0; i < n; i++) {
		assert_int_equal(blocks[i].first, 1 + 13 * (int)i);
		assert_int_equal(blocks[i].last, 13 * ((int)i + 1));
	}
	free(blocks);
	graph_index_release(&g);
	model_free(m);
	build_release(&b);
}

/* trained models, when this machine has them */
static void blocks_of_real_models(void **state)
{
	static const struct {
		const char *file;
		size_t blocks;
	} rows[] = { { "vit.onnx", 5 }, { "text_bert.onnx", 3 }, { "mobilenet.onnx", 0 } };
	const char *dir = getenv("FETTLE_MODELS");
	size_t i, seen = 0;

	(void)state;
	for (i = 0; i < ARRAY_LEN(rows); i++) {
		char *path = xstrfmt("%s/%s", dir ? dir : "../shared/models", rows[i].file);
		struct err err = ERR_INIT;
		struct block *blocks = NULL;
		struct model *m = NULL;
		struct graph_index g;
		size_t k, n;

		if (access(path, R_OK) != 0) {
			print_message("SKIPPED: no %s (FETTLE_MODELS says where)\n", path);
			free(path);
			continue;
		}
		seen++;
		assert_ok(model_load(&m, path, &err), err);
		assert_ok(graph_sort(m, &err), err);
		graph_index_init(&g, m);
		n = graph_blocks(&g, &blocks);
		if (n != rows[i].blocks)
			fail_msg("%s: %zu blocks, want %zu", path, n, rows[i].blocks);
		for (k = 0; k < n; k++) {
			assert_true(blocks[k].first <= blocks[k].last);
			assert_true(!k || blocks[k].first == blocks[k - 1].last + 1);
			/* the same ops in each */
			assert_int_equal(blocks[k].last - blocks[k].first, blocks[0].last - blocks[0].first);
		}
		free(blocks);
		graph_index_release(&g);
		model_free(m);
		free(path);
	}
	if (!seen)
		skip();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(makers_and_readers),
		cmocka_unit_test(bad_graphs_cannot_be_ordered),
		cmocka_unit_test(sparse_constants_count),
		cmocka_unit_test(cuts_are_what_they_say),
		cmocka_unit_test(shuffled_graphs_are_ordered),
		cmocka_unit_test(long_chains_are_ordered_quickly),
		cmocka_unit_test(blocks_repeat),
		cmocka_unit_test(blocks_of_real_models),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
