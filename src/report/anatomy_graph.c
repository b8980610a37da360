/* The graph: its ops, what flows between them, what they are computed in, and the conversions that the runtime keeps. */
#include "report/anatomy.h"

#include <string.h>

#include "ops/kind.h"
#include "runtime/prepare.h"

static const char *const words[] = { [PRECISION_NONE] = "",           [PRECISION_INT8] = "int8",
				     [PRECISION_DYNAMIC] = "dynamic", [PRECISION_WEIGHT] = "weight_only",
				     [PRECISION_INT16] = "int16",     [PRECISION_FP32] = "fp32" };

static json_t *ops_json(const struct anatomy *a, const struct precisions *p)
{
	json_t *list = json_array(), *j;
	size_t i;

	for (i = 0; i < a->s->ops.n; i++) {
		const struct op *op = &a->s->ops.v[i];
		const struct node *n = a->s->m->nodes.v[i];

		j = json_pack("{s:s, s:s}", "name", op->name, "type", n->op);
		if (op->macs > 0)
			json_object_set_new(j, "macs", json_real(op->macs));
		if (p->v[i].is != PRECISION_NONE)
			json_object_set_new(j, "is", json_string(words[p->v[i].is]));
		if (p->v[i].is == PRECISION_FP32 && p->v[i].why)
			json_object_set_new(j, "why", json_string(p->v[i].why));
		json_array_append_new(list, j);
	}
	return list;
}

static json_t *edges_json(const struct graph_index *g)
{
	json_t *list = json_array();
	size_t v, i;

	for (v = 0; v < g->n; v++)
		for (i = g->first[v]; g->producer[v] != NO_NODE && i < g->first[v + 1]; i++)
			json_array_append_new(list, json_pack("[i, i]", g->producer[v], (int)g->uses[i]));
	return list;
}

/* The op of the base that makes what this node of the optimised graph converts: SIZE_MAX: an input of the graph. */
static bool converted_op(const struct graph_index *g, const struct node *n, size_t *op)
{
	const struct node *from = n;
	const char *at;

	*op = SIZE_MAX;
	do {
		if (!from->n_in || g->constant[graph_value(g, from->in[0])])
			return false; /* a weight */
		from = graph_producer(g, from->in[0]);
		at = from ? from->name : "";
	} while (from && !next_mark(&at, op));
	while (from && next_mark(&at, op)) /* of ops that were fused, the last makes it */
		;
	return true;
}

static bool converts(const struct node *n)
{
	return is_quantize_linear(n) || is_dequantize_linear(n) ||
	       strcmp(n->op, "DynamicQuantizeLinear") == 0;
}

/* pairs of op (-1: an input) and kind */
static enum fettle_status conversions_json(const struct anatomy *a, json_t **out)
{
	const struct session_options so = { .threads = 1 };
	struct model *marked = marked_model(a->quantized, &a->s->ops), *m = NULL;
	struct graph_index g;
	enum fettle_status st = optimised_graph(&m, a->cx->rt, marked, &so, &a->cx->err);
	size_t i, op;

	*out = json_array();
	if (!st) {
		graph_index_init(&g, m);
		for (i = 0; i < m->nodes.n; i++)
			if (converts(m->nodes.v[i]) && converted_op(&g, m->nodes.v[i], &op))
				json_array_append_new(
					*out,
					json_pack("[I, s]", op == SIZE_MAX ? (json_int_t)-1 : (json_int_t)op,
						  m->nodes.v[i]->op));
		graph_index_release(&g);
	}
	model_free(m);
	model_free(marked);
	return st;
}

enum fettle_status anatomy_graph(const struct anatomy *a, json_t *run)
{
	struct precisions p = PRECISIONS_INIT;
	json_t *conversions = NULL;
	enum fettle_status st = context_precisions(a->cx, a->s, a->approach, a->plan, a->quantized, &p);

	if (!st)
		st = conversions_json(a, &conversions);
	if (!st)
		json_object_set_new(run, "graph",
				    json_pack("{s:o, s:o, s:O}", "ops", ops_json(a, &p), "edges",
					      edges_json(&a->s->g), "conversions", conversions));
	json_decref(conversions);
	precisions_release(&p);
	return st;
}
