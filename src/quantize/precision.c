#include "quantize/precision.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ops/kind.h"
#include "quantize/internal.h"
#include "runtime/prepare.h"

/* The runtime names what it makes of a node after it, and may add text before and after the name. */
#define MARK "fettle#"

static bool is_narrow(enum dtype t)
{
	return t == DT_U8 || t == DT_S8;
}

/* does it only convert between floats and integers? */
static bool converts(const struct node *n)
{
	return strcmp(n->op, "QuantizeLinear") == 0 || strcmp(n->op, "DequantizeLinear") == 0 ||
	       strcmp(n->op, "DynamicQuantizeLinear") == 0;
}

/* does this node of an optimised graph compute with integers, or look rows up in a table of them? */
static bool works_on_integers(const struct model *m, const struct node *n)
{
	const struct init *table = n->n_in && strcmp(n->op, "Gather") == 0 ? model_init(m, n->in[0]) : NULL;

	return (table && is_narrow(table->t.dtype)) || computes_integers(n);
}

/* The op that a node of the quantized model has the name of, or is a part of: "conv1_7" is one of "conv1". */
static size_t op_of_node(const struct map *names, const struct node *n)
{
	size_t op = map_get(names, n->name), len = strlen(n->name);
	char *base;

	while (len && n->name[len - 1] >= '0' && n->name[len - 1] <= '9')
		len--;
	if (op != MAP_NONE || converts(n) || !len || !n->name[len] || n->name[len - 1] != '_')
		return op;
	base = xstrfmt("%.*s", (int)len - 1, n->name);
	op = map_get(names, base);
	free(base);
	return op;
}

struct model *marked_model(const struct model *q, const struct op_list *ops)
{
	struct model *m = model_derive(q);
	struct map names = MAP_INIT;
	size_t i, op;

	for (i = 0; i < ops->n; i++)
		map_set(&names, ops->v[i].name, i);
	for (i = 0; i < m->nodes.n; i++) {
		op = op_of_node(&names, m->nodes.v[i]);
		if (op != MAP_NONE)
			m->nodes.v[i]->name = arena_strfmt(&m->arena, MARK "%zu#%zu", op, i);
	}
	map_release(&names);
	return m;
}

bool next_mark(const char **at, size_t *op)
{
	const char *found = strstr(*at, MARK);

	if (!found)
		return false;
	*op = strtoull(found + strlen(MARK), NULL, 10);
	*at = found + strlen(MARK);
	return true;
}

/* The node of the optimised graph that makes what `value` goes into, if the op that makes `value` was taken up by another. */
static const struct node *taker(const struct graph_index *g, const struct graph_index *optimised,
				const char *value, int depth)
{
	const struct node *n = graph_producer(optimised, value);
	size_t v = graph_value(g, value), i, k;

	for (i = v == MAP_NONE ? 0 : g->first[v]; !n && v != MAP_NONE && depth && i < g->first[v + 1]; i++) {
		const struct node *reader = g->m->nodes.v[g->uses[i]];

		for (k = 0; k < reader->n_out && !n; k++)
			n = taker(g, optimised, reader->out[k], depth - 1);
	}
	return n;
}

/* of ops with multiply-adds whose mark is gone */
static void find_taken(const struct model *m, struct model *optimised, const struct op_list *ops,
		       const bool *seen, bool *out)
{
	enum { FAR = 8 };
	struct graph_index g, o;
	const char *at;
	size_t i, op;

	graph_index_init(&g, m);
	graph_index_init(&o, optimised);
	for (i = 0; i < m->nodes.n; i++) {
		const struct node *n = m->nodes.v[i], *by;

		at = n->name;
		if (!next_mark(&at, &op) || seen[op] || !n->n_out || !(ops->v[op].macs > 0))
			continue;
		by = taker(&g, &o, n->out[0], FAR);
		out[op] |= by && works_on_integers(optimised, by);
	}
	graph_index_release(&g);
	graph_index_release(&o);
}

enum fettle_status integer_ops(const struct model *quantized, struct runtime *rt, const struct op_list *ops,
			       bool *out, struct err *err)
{
	const struct session_options so = { .threads = 1 };
	struct model *m = marked_model(quantized, ops), *optimised = NULL;
	bool *seen = xcalloc(ops->n + 1, sizeof(*seen));
	enum fettle_status st = optimised_graph(&optimised, rt, m, &so, err);
	size_t i, op;

	memset(out, 0, ops->n * sizeof(*out));
	for (i = 0; !st && i < optimised->nodes.n; i++) {
		const struct node *n = optimised->nodes.v[i];
		const char *at = n->name;

		while (next_mark(&at, &op)) {
			seen[op] = true;
			out[op] |= works_on_integers(optimised, n);
		}
	}
	if (!st)
		find_taken(m, optimised, ops, seen, out);
	free(seen);
	model_free(optimised);
	model_free(m);
	return st;
}

/* what a Relu or Clip leaves is positive, so that it is fused */
enum fettle_status made_up_ranges(struct statistics *out, struct subject *s, const struct qplan *plan,
				  struct err *err)
{
	struct needs needs = NEEDS_INIT;
	enum fettle_status st = quantizer_needs(s->z, plan, &needs, err);
	size_t i;

	for (i = 0; i < needs.ranges.n; i++) {
		const struct range_need *need = &needs.ranges.v[i];
		const struct node *n = graph_producer(&s->g, need->value);
		const bool positive = n && op_cuts_off(n);

		statistics_set_range(out, need->value, &need->setting,
				     (struct range){ positive ? 0 : -1, 1 });
	}
	needs_release(&needs);
	return st;
}

const char *const fp32_reasons[] = {
	[FP32_NO_KERNEL] = "no_kernel", [FP32_NO_GAIN] = "no_gain", [FP32_USER] = "user",
	[FP32_SEARCH] = "search",       [FP32_RECIPE] = "recipe",   [FP32_NOT_FUSED] = "not_fused"
};

static struct op_precision fp32(enum fp32_reason reason, const char *why)
{
	return (struct op_precision){ PRECISION_FP32, reason, why };
}

static const char *no_gain(const struct op *op)
{
	if (op->rule->kind == OP_ELEMENT)
		return op->rule->on ? "not everything it reads is in int8" : "int8 would gain nothing";
	if (op->rule->kind == OP_TABLE)
		return "a table in fewer bits is smaller, not faster";
	if ((op->modes & MODE_INT) == MODE_INT)
		return "int8 is no faster";
	return op->modes & MODE_STATIC ? "only the static approach has a kernel for it"
				       : "only the dynamic approach has a kernel for it";
}

static struct op_precision precision_of(const struct plan_origin *o, const struct qplan *effective,
					const struct op_list *ops, size_t i, bool integer)
{
	const struct op *op = &ops->v[i];
	const struct op_choice *c = &effective->ops[i];

	if (!op->rule && op->quantized)
		return (struct op_precision){ .is = PRECISION_NONE };
	if (!op->rule)
		return op->macs > 0 || op->subgraph ? fp32(FP32_NO_KERNEL, op->why)
						    : (struct op_precision){ .is = PRECISION_NONE };
	if (op->rule->kind == OP_MOVE)
		return (struct op_precision){ .is = PRECISION_NONE };
	if (c->mode == OP_WEIGHT)
		return (struct op_precision){ .is = PRECISION_WEIGHT };
	if (c->mode == OP_STATIC && choice_is_wide(c, op->rule))
		return (struct op_precision){ .is = PRECISION_INT16 };
	if (integer && (c->mode != OP_FP32 || op->macs > 0))
		return (struct op_precision){ .is = c->mode == OP_DYNAMIC ? PRECISION_DYNAMIC
									  : PRECISION_INT8 };
	if (c->mode != OP_FP32)
		return fp32(FP32_NOT_FUSED, "the runtime has no integer kernel for these settings");
	if (o->plan->ops[i].mode != OP_FP32)
		return fp32(FP32_RECIPE, recipe_that_keeps(&effective->recipes, ops, i));
	if (o->by_default->ops[i].mode == OP_FP32 && op->why)
		return fp32(FP32_NO_KERNEL, op->why);
	if (o->by_default->ops[i].mode == OP_FP32 && op->rule->kind == OP_COMPUTE && !op->rule->on)
		return fp32(FP32_NO_KERNEL, "the runtime has no integer kernel for it");
	if (o->by_default->ops[i].mode == OP_FP32)
		return fp32(FP32_NO_GAIN, no_gain(op));
	return o->allowed->ops[i].mode == OP_FP32 ? fp32(FP32_USER, "told to stay in fp32")
						  : fp32(FP32_SEARCH, "the search put it back into fp32");
}

void precisions_init(struct precisions *p, const struct plan_origin *o, const struct op_list *ops,
		     const bool *integer)
{
	struct qplan effective = effective_plan(o->plan, ops);
	size_t *const count[] = { [PRECISION_INT8] = &p->int8,
				  [PRECISION_DYNAMIC] = &p->dynamic,
				  [PRECISION_WEIGHT] = &p->weight,
				  [PRECISION_INT16] = &p->int16,
				  [PRECISION_FP32] = &p->fp32 };
	double macs = 0, weight = 0;
	size_t i;

	*p = (struct precisions){ .v = xcalloc(ops->n, sizeof(*p->v)), .n = ops->n };
	for (i = 0; i < ops->n; i++) {
		p->v[i] = precision_of(o, &effective, ops, i, integer[i]);
		if (p->v[i].is != PRECISION_NONE)
			++*count[p->v[i].is];
		if (integer[i])
			macs += ops->v[i].macs;
		if (p->v[i].is == PRECISION_WEIGHT)
			weight += ops->v[i].macs;
	}
	p->int8_share = ops->total_macs > 0 ? macs / ops->total_macs : 0;
	p->weight_share = ops->total_macs > 0 ? weight / ops->total_macs : 0;
	qplan_release(&effective);
}

enum fettle_status precisions_of(struct precisions *out, struct runtime *rt, const struct subject *s,
				 const struct precisions_wanted *w, struct err *err)
{
	struct qplan by_default = QPLAN_INIT;
	struct qplan_defaults d = qplan_defaults(&s->cpu);
	bool *integer = xcalloc(s->ops.n + 1, sizeof(*integer));
	enum fettle_status st = FETTLE_OK;
	size_t i;

	if (s->outside) /* what a session makes of it cannot be asked: it does without one */
		for (i = 0; i < s->ops.n; i++)
			integer[i] = w->plan->ops[i].mode == OP_WEIGHT && w->plan->ops[i].blocks.level == 4;
	else
		st = integer_ops(w->quantized, rt, &s->ops, integer, err);

	d.approach = w->approach;
	qplan_default(&by_default, &s->ops, &s->g, &d);
	if (!st)
		precisions_init(out, &(struct plan_origin){ &by_default, w->allowed, w->plan }, &s->ops,
				integer);
	qplan_release(&by_default);
	free(integer);
	return st;
}

void precisions_release(struct precisions *p)
{
	free(p->v);
	*p = (struct precisions)PRECISIONS_INIT;
}
