#include "quantize/internal.h"

#include <stdlib.h>
#include <string.h>

#include "quantize/blocks.h"
#include "quantize/channels.h"
#include "quantize/late_blocks.h"
#include "quantize/variant.h"

struct quantizer *quantizer_new(struct model *prepared, const struct graph_index *g,
				const struct op_list *ops)
{
	struct quantizer *z = xcalloc(1, sizeof(*z));

	z->base = prepared;
	z->g = g;
	z->ops = ops;
	z->weights = weight_cache_new(prepared);
	z->blocks = block_store_new();
	return z;
}

void quantizer_free(struct quantizer *z)
{
	size_t i;

	if (!z)
		return;
	for (i = 0; i < z->late.n; i++)
		late_blocks_free(z->late.v[i]);
	VEC_RELEASE(&z->late);
	weight_cache_free(z->weights);
	block_store_free(z->blocks);
	free(z);
}

static bool needs_16_bits(const struct qplan *p, const struct op_list *ops)
{
	size_t i;

	for (i = 0; i < p->n; i++)
		if (ops->v[i].rule && p->ops[i].mode == OP_STATIC &&
		    (dtype_size(p->ops[i].act.dtype) == 2 || dtype_size(p->ops[i].weight.dtype) == 2))
			return true;
	return false;
}

static enum fettle_status check_plan(const struct quantizer *z, const struct qplan *p, struct err *err)
{
	static const unsigned modes[] = { [OP_FP32] = 0,
					  [OP_STATIC] = MODE_STATIC,
					  [OP_DYNAMIC] = MODE_DYNAMIC,
					  [OP_WEIGHT] = MODE_WEIGHT };
	static const char *const words[] = {
		[OP_STATIC] = "static int8", [OP_DYNAMIC] = "dynamic int8", [OP_WEIGHT] = "weight-only"
	};
	enum fettle_status st = FETTLE_OK;
	size_t i;

	if (p->n != z->ops->n)
		return fail(err, FETTLE_INVALID, "cannot apply plan: it is for %zu ops, the model has %zu",
			    p->n, z->ops->n);
	for (i = 0; i < p->n; i++) {
		const struct op *op = &z->ops->v[i];
		const struct op_choice *c = &p->ops[i];

		if (modes[c->mode] & ~op->modes)
			return fail(err, FETTLE_INVALID, "cannot apply plan: op '%s' cannot be %s: %s",
				    op->name, words[c->mode],
				    op->why ? op->why : "the runtime has no such kernel");
		if (c->mode == OP_WEIGHT)
			st = block_setting_check(&c->blocks, err);
		if (st)
			return fail_prefix(err, st, "cannot apply plan: op '%s'", op->name);
		if (c->mode == OP_WEIGHT && op->rule->kind == OP_COMPUTE && p->format == FORMAT_QDQ_WEIGHTS)
			st = check_block_pairs(z->base, op, &c->blocks, err);
		if (st)
			return fail_prefix(err, st, "cannot apply plan");
		if (c->mode == OP_WEIGHT && !block_setting_fits(&c->blocks, op))
			return fail(err, FETTLE_INVALID,
				    "cannot apply plan: op '%s' in %d bits and blocks of %lld by %s, which "
				    "this version of "
				    "the runtime, or a table of rows of %lld, does not have",
				    op->name, c->blocks.format.bits, (long long)c->blocks.format.block,
				    block_methods[c->blocks.algorithm]->name, (long long)op->inputs);
	}
	return FETTLE_OK;
}

/* a plan that is all dynamic needs no calibration */
static enum fettle_status check_static(const struct quantizer *z, const struct qplan *p, struct err *err)
{
	size_t i;

	for (i = 0; i < p->n; i++) {
		const struct op *op = &z->ops->v[i];

		if (p->ops[i].mode == OP_STATIC &&
		    (op->rule->kind == OP_COMPUTE || op->rule->kind == OP_ELEMENT))
			return fail(err, FETTLE_INVALID,
				    "cannot apply plan: op '%s' is static, which needs calibration",
				    op->name);
	}
	return FETTLE_OK;
}

static struct node **dup_nodes(const struct model *m)
{
	struct node **v = xcalloc(m->nodes.n, sizeof(struct node *));

	if (m->nodes.n)
		memcpy(v, m->nodes.v, m->nodes.n * sizeof(struct node *));
	return v;
}

/* are its integers, scales and shifts as many as the op has weights and outputs? */
static bool rounding_fits(const struct model *m, const struct node *n, const struct rounded *o)
{
	const struct tensor *w = is_linear(m, n) ? &model_init(m, n->in[1])->t : NULL;
	struct layout l;

	if (!w || !tensor_same_shape(w, &o->w.q))
		return false;
	l = layout_of(n, w);
	return (!o->shift || o->n_shift == layout_outputs(&l)) &&
	       (o->w.axis < 0 ||
		(o->w.axis == l.inputs_first && (size_t)tensor_count(&o->w.scale) == layout_outputs(&l)));
}

/* a rounding from a file may be of another model */
static enum fettle_status check_rounding(const struct quantizer *z, const struct rounding *r, struct err *err)
{
	size_t i;

	if (r->n != z->ops->n)
		return fail(err, FETTLE_INVALID,
			    "cannot apply rounding: it is for %zu ops, the model has %zu", r->n, z->ops->n);
	for (i = 0; i < r->n; i++)
		if (r->v[i] && !rounding_fits(z->base, z->base->nodes.v[i], r->v[i]))
			return fail(err, FETTLE_INVALID, "cannot apply rounding: op '%s' has another weight",
				    z->ops->v[i].name);
	return FETTLE_OK;
}

static bool has_static_compute(const struct qplan *p, const struct op_list *ops)
{
	size_t i;

	for (i = 0; i < p->n; i++)
		if (ops->v[i].rule && ops->v[i].rule->kind == OP_COMPUTE && p->ops[i].mode == OP_STATIC)
			return true;
	return false;
}

static bool needs_rounding(const struct quantizer *z, const struct qplan *p)
{
	return p->recipes.finetune.algorithm != FINETUNE_OFF && has_static_compute(p, z->ops);
}

/* what fell back afterwards has no use for its rounding */
static void without_fallen_back(const struct qplan *plan, const struct rounding *r, struct rounding *out)
{
	size_t i;

	out->n = r->n;
	out->v = xcalloc(r->n, sizeof(struct rounded *));
	for (i = 0; i < r->n; i++)
		out->v[i] = i < plan->n && plan->ops[i].fell_back ? NULL : r->v[i];
}

static void tell_values(const struct job *j)
{
	const struct qpair *p;
	size_t i;

	for (i = 0; i < j->g->n && j->watch; i++)
		for (p = j->values[i].pair; p; p = p->next)
			j->watch->value(j->watch->self, j->g->names[i], j->g->names[rearranged_from(j->g, i)],
					p->q, p->setting.dtype);
}

static enum fettle_status make_model(struct job *j, const struct qplan *asked, struct model **out,
				     struct err *err)
{
	struct quantizer *z = j->z;
	const struct knowledge *k = j->known;
	struct qplan plan;
	struct graph_index g = *z->g;
	struct node **ops;
	enum fettle_status st;

	st = check_plan(z, asked, err);
	if (!st && !k->values)
		st = check_static(z, asked, err);
	if (!st && k->rounding)
		st = check_rounding(z, k->rounding, err);
	if (st)
		return st;
	plan = effective_plan(asked, z->ops);
	j->plan = &plan;
	/* which values must keep their names may be added to: work on a copy of that one table */
	g.output = xcalloc(g.n, sizeof(*g.output));
	memcpy(g.output, z->g->output, g.n * sizeof(*g.output));
	j->g = &g;
	j->m = model_derive(z->base);
	j->arena = &j->m->arena;
	j->qdq_domain =
		j->m->opset < 13 || (j->m->opset < 21 && needs_16_bits(&plan, z->ops)) ? DOMAIN_MS : "";
	model_need_domain(j->m, DOMAIN_MS, 1);
	ops = dup_nodes(j->m);
	st = decide(j, err);
	if (!st) {
		tell_values(j);
		st = emit(j, err);
	}
	if (!st && plan.format == FORMAT_QOPERATOR)
		to_qoperator(j, ops);
	free(ops);
	if (!st)
		model_sweep(j->m);
	free(g.output);
	qplan_release(&plan);
	VEC_RELEASE(&j->nodes);
	map_release(&j->made);
	map_release(&j->dynamic);
	if (st)
		model_free(j->m);
	else
		*out = j->m;
	return st;
}

enum fettle_status quantize_traced(struct quantizer *z, const struct knowledge *k, const struct qplan *asked,
				   struct trace *traces, struct model **out, struct err *err)
{
	struct job j = { .z = z, .known = k, .traces = traces };

	return make_model(&j, asked, out, err);
}

/* a plan of the quantizer's own model */
static enum fettle_status carry_out(struct quantizer *z, const struct knowledge *k, const struct qplan *plan,
				    const struct quantize_watch *watch, struct model **out, struct err *err)
{
	struct rounding left = { .n = 0 };
	struct knowledge own = { .values = k->values, .blocks = k->blocks };
	struct job j = { .z = z, .known = &own, .watch = watch };
	enum fettle_status st;

	st = check_plan(z, plan, err);
	if (st)
		return st;
	if (needs_rounding(z, plan) && !k->rounding)
		return fail(err, FETTLE_INVALID,
			    "cannot apply plan: finetune needs calibration data, or the weights it has made");
	if (needs_rounding(z, plan)) {
		without_fallen_back(plan, k->rounding, &left);
		own.rounding = &left;
	}
	st = make_model(&j, plan, out, err);
	free(left.v);
	return st;
}

static enum fettle_status quantize_told(struct quantizer *z, const struct knowledge *k,
					const struct qplan *asked, const struct quantize_watch *watch,
					struct model **out, struct err *err)
{
	struct qplan mapped;
	enum fettle_status st;

	if (!k->variant || !k->variant->node)
		return carry_out(z, k, asked, watch, out, err);
	if (asked->n != k->variant->n_base)
		return fail(err, FETTLE_INVALID, "cannot apply plan: it is for %zu ops, the model has %zu",
			    asked->n, k->variant->n_base);
	variant_plan(k->variant, asked, &mapped);
	st = carry_out(k->variant->s->z, k, &mapped, watch, out, err);
	qplan_release(&mapped);
	return st;
}

enum fettle_status quantize(struct quantizer *z, const struct knowledge *k, const struct qplan *plan,
			    struct model **out, struct err *err)
{
	return quantize_told(z, k, plan, NULL, out, err);
}

enum fettle_status quantize_watched(struct quantizer *z, const struct knowledge *k, const struct qplan *plan,
				    const struct quantize_watch *watch, struct err *err)
{
	struct model *m = NULL;
	enum fettle_status st = quantize_told(z, k, plan, watch, &m, err);

	model_free(m);
	return st;
}

/* ---- what must be known ---- */

static void need_ranges(struct job *j, struct needs *out)
{
	const struct qpair *p;
	size_t i;

	decide_pairs(j);
	for (i = 0; i < j->g->n; i++)
		for (p = j->values[i].pair; p; p = p->next)
			VEC_PUSH(&out->ranges,
				 ((struct range_need){ j->g->names[rearranged_from(j->g, i)], p->setting }));
}

static void need_means(const struct job *j, struct needs *out)
{
	const struct recipes *r = &j->plan->recipes;
	size_t i;

	for (i = 0; i < j->plan->n && (r->fast_bias_correction || r->weight_correction); i++) {
		const struct op *op = &j->z->ops->v[i];
		struct channel_axis a;

		if (!job_quantizes(j, i) || op->rule->kind != OP_COMPUTE)
			continue;
		a = weighted_axis(j->g->m, op, j->g->m->nodes.v[i]);
		if (a.value)
			VEC_PUSH(&out->means, a);
	}
}

enum fettle_status quantizer_needs(struct quantizer *z, const struct qplan *asked, struct needs *out,
				   struct err *err)
{
	struct arena arena = ARENA_INIT;
	struct qplan plan;
	struct job j = { .z = z, .plan = &plan, .g = z->g, .arena = &arena };
	enum fettle_status st = check_plan(z, asked, err);
	size_t i;

	if (st)
		return st;
	plan = effective_plan(asked, z->ops);
	need_ranges(&j, out);
	need_means(&j, out);
	for (i = 0; i < plan.n; i++)
		if (plan.ops[i].mode == OP_WEIGHT && block_needs_data(&plan.ops[i].blocks))
			VEC_PUSH(&out->blocks, i);
	out->rounding = needs_rounding(z, asked);
	qplan_release(&plan);
	arena_release(&arena);
	return FETTLE_OK;
}

void needs_release(struct needs *n)
{
	VEC_RELEASE(&n->ranges);
	VEC_RELEASE(&n->means);
	VEC_RELEASE(&n->blocks);
}

static bool offers_static(const struct op *op)
{
	return op->rule && op->offered && op->modes & MODE_STATIC;
}

/* is the op static under the plan, or was it? */
static bool is_static(const struct op_list *ops, const struct qplan *plan, size_t i)
{
	return ops->v[i].rule && (plan->ops[i].mode == OP_STATIC || plan->ops[i].fell_back);
}

size_t quantizer_means(const struct graph_index *g, const struct op_list *ops, const struct qplan *plan,
		       struct channel_axis **out)
{
	size_t i, k, n = 0;

	*out = xcalloc(ops->n, sizeof(**out));
	for (i = 0; i < ops->n; i++) {
		struct channel_axis a;

		if ((!offers_static(&ops->v[i]) && !(plan && is_static(ops, plan, i))) ||
		    ops->v[i].rule->kind != OP_COMPUTE)
			continue;
		a = weighted_axis(g->m, &ops->v[i], g->m->nodes.v[i]);
		for (k = 0; k < n && a.value; k++)
			if (strcmp((*out)[k].value, a.value) == 0 && (*out)[k].axis == a.axis)
				break;
		if (a.value && k == n)
			(*out)[n++] = a;
	}
	return n;
}

size_t quantizer_values(const struct graph_index *g, const struct op_list *ops, const struct qplan *plan,
			const char ***out)
{
	bool *take = xcalloc(g->n, sizeof(*take)), *seen = xcalloc(g->n, sizeof(*seen));
	size_t i, k, n = 0;

	for (i = 0; i < ops->n; i++) {
		const struct node *node = g->m->nodes.v[i];
		const struct op_rule *r = ops->v[i].rule;

		if (!offers_static(&ops->v[i]) && !(plan && is_static(ops, plan, i)))
			continue;
		if (r->kind == OP_MOVE || r->kind == OP_TABLE)
			continue;
		for (k = 0; k < node->n_in; k++)
			if (is_activation_input(g->m, r, node, k))
				take[graph_value(g, node->in[k])] = true;
		for (k = 0; k < node->n_out; k++)
			if (*node->out[k] && op_needs_output(g, r, node->out[k]))
				take[quantized_output(g, node->out[k])] = true;
	}
	/* what is read after a move may take its range from before it */
	for (i = ops->n; i--;) {
		const struct node *node = g->m->nodes.v[i];
		const struct op_rule *r = ops->v[i].rule;

		if (!r || r->kind != OP_MOVE)
			continue;
		for (k = 0; k < node->n_out; k++)
			if (*node->out[k] && take[graph_value(g, node->out[k])])
				take[graph_value(g, node->in[0])] = true;
	}
	*out = xcalloc(g->n, sizeof(**out));
	for (i = 0; i < g->n; i++)
		if (take[i])
			seen[rearranged_from(g, i)] = true;
	for (i = 0; i < g->n; i++)
		if (seen[i])
			(*out)[n++] = g->names[i];
	free(take);
	free(seen);
	return n;
}

struct qplan_summary qplan_summarise(const struct qplan *asked, const struct op_list *ops)
{
	struct qplan p = effective_plan(asked, ops);
	struct qplan_summary s = { 0 };
	double macs = 0, low = 0;
	size_t i, n;

	for (i = 0; i < p.n; i++) {
		const struct op *op = &ops->v[i];
		const struct op_choice *c = &p.ops[i];
		bool wide = op->rule && c->mode != OP_WEIGHT && choice_is_wide(c, op->rule);

		if (!op->rule || op->rule->kind == OP_MOVE)
			continue;
		if (c->mode == OP_FP32)
			s.fp32++;
		else if (c->mode == OP_WEIGHT)
			s.weight++;
		else if (c->mode == OP_DYNAMIC)
			s.dynamic++;
		else if (wide)
			s.int16++;
		else
			s.int8++;
		if (c->mode == OP_DYNAMIC || (c->mode == OP_STATIC && !wide) ||
		    (c->mode == OP_WEIGHT && c->blocks.level == 4))
			macs += op->macs;
		low += c->mode == OP_FP32 ? 0 : op->macs;
	}
	qplan_release(&p);
	n = s.int8 + s.int16 + s.dynamic + s.weight;
	s.low_share = ops->total_macs > 0 ? low / ops->total_macs : n ? (double)n / (double)(n + s.fp32) : 0;
	s.int8_share = ops->total_macs > 0 ? macs / ops->total_macs : 0;
	return s;
}
