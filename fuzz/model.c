/*
 * Property: any bytes are either a model that can be sorted, indexed, derived, swept, packed and decoded again, or an
 * error of one line.
 */
#include "fuzz.h"

#include "model/index.h"

static void read_attributes(const struct node *n)
{
	const int64_t *v;
	size_t count, i;
	const char *s;

	node_int(n, "axis", 0);
	node_float(n, "alpha", 0);
	s = node_str(n, "mode");
	if (s && strlen(s) == SIZE_MAX)
		abort();
	v = node_ints(n, "pads", &count);
	for (i = 0; i < count; i++)
		if (v[i] == INT64_MIN)
			break;
	node_has_subgraph(n);
}

static void index_graph(struct model *m)
{
	struct block *blocks = NULL;
	struct graph_index g;
	struct cuts c;
	size_t n, i;

	graph_index_init(&g, m);
	for (i = 0; i < g.n; i++) {
		graph_only_user(&g, g.names[i]);
		if (graph_value(&g, g.names[i]) != i)
			abort();
	}
	for (i = 0; i < 2; i++) {
		graph_cuts(&g, i, &c);
		cuts_release(&c);
	}
	n = graph_blocks(&g, &blocks);
	for (i = 0; i < n; i++)
		if (blocks[i].first > blocks[i].last || (size_t)blocks[i].last >= m->nodes.n)
			abort();
	free(blocks);
	graph_index_release(&g);
}

/* what we write, we read */
static void check_packed(const struct model *m, const struct packed *p)
{
	struct err err = ERR_INIT;
	struct model *again = NULL;

	if (model_decode(&again, p->bytes, p->n, NULL, &err))
		abort();
	if (again->nodes.n != m->nodes.n || again->inits.n != m->inits.n ||
	    again->n_outputs != m->n_outputs || again->opset != m->opset)
		abort();
	model_free(again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	struct packed p = PACKED_INIT;
	struct err err = ERR_INIT;
	struct model *m = NULL, *d;
	enum fettle_status st;
	size_t i;

	st = model_decode(&m, data, n, "/nowhere/m.onnx", &err);
	check_message(st, &err);
	if (st)
		return 0;
	for (i = 0; i < m->nodes.n; i++)
		read_attributes(m->nodes.v[i]);
	for (i = 0; i < m->inits.n; i++) {
		st = model_weight(m, m->inits.v[i], &err);
		check_message(st, &err);
	}
	st = graph_sort(m, &err);
	check_message(st, &err);
	if (!st)
		index_graph(m);
	d = model_derive(m);
	model_need_domain(d, "com.microsoft", 1);
	st = model_pack(d, 64, &p, &err);
	check_message(st, &err);
	if (!st)
		check_packed(d, &p);
	packed_release(&p);
	model_drop_repeats(m);
	model_sweep(m);
	model_free(d);
	model_free(m);
	return 0;
}
