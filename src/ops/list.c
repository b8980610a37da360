/* Looks at a model's nodes: which can be quantized, which not and why, and what each costs. */
#include "ops/kind.h"
#include "ops/rules.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* the shape a value was seen with, or as far as it is declared; NULL if unknown */
static const struct tensor *shape_of(const struct model *m, const struct shapes *seen, const char *name)
{
	const struct tensor *t = seen ? shapes_find(seen, name) : NULL;
	const struct value *v = model_value(m, name);

	return t ? t : v && v->type.rank >= 0 ? &v->type : NULL;
}

/* the number of elements per sample; 0 if unknown. An open first dimension is the batch. */
static double elements(const struct tensor *t, int first)
{
	double n = 1;
	int i;

	for (i = first; i < t->rank; i++)
		n *= t->dims[i] >= 0 ? (double)t->dims[i] : i ? 0 : 1;
	return n;
}

/* multiply-adds per sample (per batch, for a model whose batch is fixed: shares stay right) */
static double count_macs(const struct model *m, const struct shapes *seen, const struct node *n)
{
	const struct tensor *out = n->n_out ? shape_of(m, seen, n->out[0]) : NULL;
	const struct tensor *in = n->n_in ? shape_of(m, seen, n->in[0]) : NULL;
	const struct init *w = n->n_in > 1 ? model_init(m, n->in[1]) : NULL;
	double depth = 0;

	if (!out)
		return 0;
	if (strcmp(n->op, "MatMulNBits") == 0) /* its weight is packed */
		return (double)node_int(n, "K", 0) * elements(out, 0);
	if (node_is(n, "ConvTranspose") && w && w->t.rank >= 3)
		return in ? elements(in, 0) * elements(&w->t, 1) : 0;
	if (node_is(n, "Conv") && w && w->t.rank >= 3)
		depth = elements(&w->t, 1);
	else if (node_is(n, "Gemm") && w && w->t.rank == 2)
		depth = (double)w->t.dims[node_int(n, "transB", 0) ? 1 : 0];
	else if (op_is_turned_matmul(n) && w && w->t.rank == 2)
		depth = (double)w->t.dims[1];
	else if (node_is(n, "MatMul") && w && w->t.rank >= 2)
		depth = (double)w->t.dims[w->t.rank - 2];
	else if (node_is(n, "MatMul") && in && in->rank >= 1)
		depth = (double)in->dims[in->rank - 1];
	else if (node_is(n, "LSTM") && w && w->t.rank == 3 && in && in->rank == 3)
		/* per step and direction: four gates from the input and from the last output */
		return elements(in, 0) / (double)w->t.dims[2] * elements(&w->t, 0) *
		       (1 + (double)w->t.dims[1] / 4 / (double)w->t.dims[2]);
	return depth > 0 ? depth * elements(out, 0) : 0;
}

static bool is_float_init(const struct init *w)
{
	return w && w->t.dtype == DT_F32 && tensor_count(&w->t) > 0;
}

static const char *check_weight(const struct model *m, struct op *op, const struct node *n)
{
	const struct op_rule *r = op->rule;
	const struct init *w = (int)n->n_in > r->weight ? model_init(m, n->in[r->weight]) : NULL;
	const struct init *b;

	if (w && w->t.dtype != DT_F32)
		return "its weight is not float32";
	if (!is_float_init(w)) {
		if (!(r->activations & (1u << r->weight)))
			return "its weight is computed, not a constant";
		op->modes &= MODE_STATIC; /* activation x activation */
		return NULL;
	}
	if (node_is(n, "MatMul") && w->t.rank != 2)
		return "its weight is not a matrix";
	if (node_is(n, "Gemm") &&
	    (node_int(n, "transA", 0) || node_float(n, "alpha", 1) != 1 || node_float(n, "beta", 1) != 1))
		return "transA, alpha or beta is not the default";
	if (r->bias < 0 || (int)n->n_in <= r->bias || !*n->in[r->bias])
		return NULL;
	b = model_init(m, n->in[r->bias]);
	if (!is_float_init(b))
		return "its bias is computed, not a constant";
	if (node_is(n, "Gemm") && tensor_count(&b->t) != w->t.dims[node_int(n, "transB", 0) ? 0 : 1])
		return "its bias is not one value per output";
	return NULL;
}

static const char *check_inputs(const struct model *m, const struct op *op, const struct node *n)
{
	const struct value *v;
	size_t j;
	int data = op->rule->kind == OP_TABLE ? -1 : 0;

	if (op->rule->kind == OP_TABLE) {
		const struct init *table = model_init(m, n->in[0]);

		return is_float_init(table) && table->t.rank == 2 && node_int(n, "axis", 0) == 0
			       ? NULL
			       : "it does not look up rows of a constant float table";
	}
	for (j = 0; j < n->n_in; j++) {
		if (!*n->in[j] || model_init(m, n->in[j]) ||
		    !(op->rule->activations & (1u << (j < 7 ? j : 7))))
			continue;
		v = model_value(m, n->in[j]);
		if (v && v->type.dtype != DT_F32 && v->type.dtype != DT_NONE)
			return "its input is not float32";
		data++;
	}
	return data > 0 || op->rule->kind == OP_TABLE ? NULL : "all its inputs are constants";
}

static const char *check_special(const struct model *m, const struct node *n)
{
	if (node_is(n, "LSTM")) {
		const struct init *r = n->n_in > 2 ? model_init(m, n->in[2]) : NULL;

		if (!is_float_init(r))
			return "its recurrence weight is computed, not a constant";
		if (node_has_attr(n, "activations") || node_has_attr(n, "clip") || node_int(n, "layout", 0))
			return "custom activations, clip or layout";
	}
	if (node_is(n, "Resize")) {
		const char *mode = node_str(n, "mode");

		/* linear and cubic interpolate, i.e. compute */
		if (mode && strcmp(mode, "nearest") != 0)
			return "it interpolates";
	}
	if (node_is(n, "Pad")) {
		const char *mode = node_str(n, "mode");
		bool constant = !mode || strcmp(mode, "constant") == 0;

		if (constant && n->n_in > 2 && *n->in[2])
			return "it pads with a given value";
	}
	if (node_is(n, "MaxPool") && n->n_out > 1 && *n->out[1])
		return "it returns indices";
	if ((node_is(n, "Add") || node_is(n, "Mul")) && n->n_in != 2)
		return "not two inputs";
	return NULL;
}

/* a constant matrix with enough inputs, applied to something that is not: a Gemm in any form */
static bool has_block_weight(const struct model *m, const struct op_rule *r, const struct node *n)
{
	const struct init *w =
		(int)n->n_in > r->weight && r->weight >= 0 ? model_init(m, n->in[r->weight]) : NULL;
	const struct value *x = n->n_in ? model_value(m, n->in[0]) : NULL;

	if (!(r->modes & MODE_WEIGHT) || !is_float_init(w) || w->t.rank != 2)
		return false;
	if (r->kind == OP_TABLE) /* rows are whole blocks */
		return runtime_table_bits(m) && w->t.dims[1] % NBITS_INPUTS_MIN == 0;
	return !model_init(m, n->in[0]) && !(x && x->type.rank == 1) &&
	       w->t.dims[op_weight_turned(n) ? 1 : 0] >= NBITS_INPUTS_MIN;
}

/* a Relu or Clip after an op that can be quantized needs no kernel of its own */
static void explain_fused(struct op_list *l, const struct graph_index *g)
{
	size_t i;

	for (i = 0; i < l->n; i++) {
		const struct node *n = g->m->nodes.v[i];
		size_t v = n->n_in ? graph_value(g, n->in[0]) : MAP_NONE;

		if (!l->v[i].rule && v != MAP_NONE && g->producer[v] != NO_NODE &&
		    l->v[g->producer[v]].rule && fused_activation(g, n->in[0]) == n)
			l->v[i].why = "it becomes part of the op before it";
	}
}

static void examine(struct op *op, const struct model *m, const struct node *n)
{
	const struct init *w;
	bool blocks;

	op->rule = op_rule_find(n);
	op->subgraph = node_has_subgraph(n);
	op->quantized = is_quantized(n);
	if (!op->rule) {
		op->why = op->subgraph    ? "what its subgraphs compute stays in fp32"
			  : op->quantized ? "it is quantized already"
			  : *n->domain    ? "not an ONNX op"
					  : "the runtime has no integer kernel for it";
		return;
	}
	op->modes = op->rule->modes;
	op->why = check_inputs(m, op, n);
	blocks = !op->why && has_block_weight(m, op->rule, n);
	if (!blocks)
		op->modes &= MODE_INT;
	if (m->opset < OPSET_DYNAMIC)
		op->modes &= ~(unsigned)MODE_DYNAMIC;
	if (!op->why && (m->opset < op->rule->since || !(op->modes & MODE_INT)))
		op->why = "the model's opset is too old for it: export with a later one";
	if (!op->why && runtime_lacks(m, op->rule))
		op->why = "this version of the runtime has no integer kernel for it";
	if (!op->why && op->rule->weight >= 0)
		op->why = check_weight(m, op, n);
	if (!op->why)
		op->why = check_special(m, n);
	if (blocks) {
		const struct init *weight = model_init(m, n->in[op->rule->weight]);

		const bool table = op->rule->kind == OP_TABLE, turned = table || op_weight_turned(n);

		op->inputs = weight->t.dims[turned ? 1 : 0];
		op->outputs = weight->t.dims[turned ? 0 : 1];
		op->weight_bits = table ? runtime_table_bits(m) : runtime_weight_bits(m);
	}
	if (op->why && blocks) {
		op->modes = MODE_WEIGHT;
		return;
	}
	if (op->why) {
		op->rule = NULL;
		op->modes = 0;
		return;
	}
	w = n->n_in > 1 ? model_init(m, n->in[1]) : NULL;
	op->speedup = op->rule->speedup;
	op->old_conv = node_is(n, "Conv") && m->runtime && m->runtime < OLD_CONV;
	op->depthwise = node_is(n, "Conv") && w && w->t.rank >= 3 && w->t.dims[1] == 1 && w->t.dims[0] > 1 &&
			w->t.dims[0] == node_int(n, "group", 1);
	if (op->depthwise)
		op->speedup = 1; /* the runtime's integer kernel gains nothing there */
}

/* can the value be there in integers: made by an op on offer, maybe through ops that only move it? */
static bool can_be_int(const struct op_list *l, const struct graph_index *g, const char *value)
{
	const struct node *n = graph_producer(g, value);
	const struct op *op;

	if (!n)
		return false;
	op = &l->v[g->producer[graph_value(g, value)]];
	if (n->n_in && fused_activation(g, n->in[0]) == n)
		return can_be_int(l, g, n->in[0]);
	if (!op->offered || !(op->modes & MODE_STATIC) || op->rule->kind == OP_TABLE)
		return false;
	return op->rule->kind != OP_MOVE || can_be_int(l, g, n->in[0]);
}

/* an element-wise op between floats would only add conversions */
static bool is_offered(const struct op_list *l, const struct graph_index *g, const struct op *op)
{
	const struct node *n = g->m->nodes.v[op->node];
	size_t j;

	if (!op->rule || op->rule->kind != OP_ELEMENT)
		return op->rule != NULL;
	for (j = 0; j < n->n_in; j++)
		if (is_activation_input(g->m, op->rule, n, j) && !can_be_int(l, g, n->in[j]))
			return false;
	return true;
}

static const char *op_name(struct arena *arena, const struct node *n, struct map *seen, size_t i)
{
	const char *name = *n->name ? n->name : n->n_out && *n->out[0] ? n->out[0] : NULL;

	if (!name || map_get(seen, name) != MAP_NONE)
		name = arena_strfmt(arena, "%s_%zu", n->op, i);
	map_set(seen, name, i);
	return name;
}

void op_list_init(struct op_list *l, struct arena *arena, const struct model *m, const struct graph_index *g,
		  const struct shapes *shapes)
{
	struct map seen = MAP_INIT;
	size_t i, b;

	memset(l, 0, sizeof(*l));
	l->n = m->nodes.n;
	l->v = xcalloc(l->n, sizeof(*l->v));
	l->n_blocks = graph_blocks(g, &l->blocks);
	for (i = 0; i < l->n; i++) {
		struct op *op = &l->v[i];
		const struct node *n = m->nodes.v[i];

		op->node = (int)i;
		op->name = op_name(arena, n, &seen, i);
		op->block = -1;
		examine(op, m, n);
		op->offered = is_offered(l, g, op);
		for (b = 0; b < l->n_blocks; b++)
			if ((int)i >= l->blocks[b].first && (int)i <= l->blocks[b].last)
				op->block = (int)b;
	}
	explain_fused(l, g);
	op_list_count(l, m, shapes);
	map_release(&seen);
}

void op_list_count(struct op_list *l, const struct model *m, const struct shapes *shapes)
{
	size_t i;

	l->total_macs = 0;
	for (i = 0; i < l->n; i++) {
		l->v[i].macs = count_macs(m, shapes, m->nodes.v[i]);
		l->total_macs += l->v[i].macs;
	}
}

void op_list_release(struct op_list *l)
{
	free(l->v);
	free(l->blocks);
	memset(l, 0, sizeof(*l));
}
