/* Writes the decided graph in QDQ format. */
#include "quantize/internal.h"

#include <math.h>
#include <string.h>

const char *emit_const(struct job *j, const char *name, const struct tensor *t)
{
	size_t i = map_get(&j->made, name);

	if (i != MAP_NONE)
		return j->m->inits.v[i]->name;
	name = model_fresh(j->m, name);
	map_set(&j->made, name, j->m->inits.n);
	return model_add_init(j->m, name, t)->name;
}

const char *emit_scalar(struct job *j, const char *name, enum dtype type, double x)
{
	struct tensor t = { .dtype = type, .data = arena_alloc(&j->m->arena, 8) };

	tensor_set(&t, 0, x);
	return model_add_init(j->m, model_fresh(j->m, name), &t)->name;
}

static const char *suffixed(struct job *j, const char *name, const char *suffix)
{
	return arena_strfmt(&j->m->arena, "%s%s", name, suffix);
}

struct node *emit_qdq(struct job *j, const char *op, const char *in, const char *scale, const char *zero,
		      const char *out)
{
	struct node *n =
		model_new_node(j->m, op, j->qdq_domain, suffixed(j, in, op[0] == 'Q' ? "_Q" : "_DQ"), 3, 1);

	n->in[0] = in;
	n->in[1] = scale;
	n->in[2] = zero;
	n->out[0] = out;
	VEC_PUSH(&j->nodes, n);
	return n;
}

static void emit_params(struct job *j, struct qpair *p, const char *value)
{
	if (p->scale)
		return;
	p->scale = emit_scalar(j, suffixed(j, value, "_scale"), DT_F32, p->q.scale);
	p->zero = emit_scalar(j, suffixed(j, value, "_zero_point"), p->setting.dtype, p->q.zero);
}

/* Q and DQ on a value, once. `source` is the float it is made from. */
static void emit_pair(struct job *j, struct qpair *p, const char *value, const char *source,
		      const char *float_again)
{
	if (p->quantized)
		return;
	emit_params(j, p, value);
	p->quantized = model_fresh(j->m, suffixed(j, value, "_quantized"));
	emit_qdq(j, "QuantizeLinear", source, p->scale, p->zero, p->quantized);
	p->float_again = float_again ? float_again : model_fresh(j->m, suffixed(j, value, "_dequantized"));
	emit_qdq(j, "DequantizeLinear", p->quantized, p->scale, p->zero, p->float_again);
}

/* a pair with the same numbers and constants, not yet emitted */
static struct qpair *same_pair(struct job *j, struct qpair *p, const char *value)
{
	struct qpair *copy = arena_alloc(&j->m->arena, sizeof(*copy));

	emit_params(j, p, value);
	copy->setting = p->setting;
	copy->q = p->q;
	copy->scale = p->scale;
	copy->zero = p->zero;
	return copy;
}

/* the pair that a value is made with; it may share its root's numbers */
static struct qpair *main_pair(struct job *j, size_t v)
{
	struct qvalue *val = &j->values[v];

	if (!val->pair)
		val->pair = same_pair(j, j->values[val->root].pair, j->g->names[val->root]);
	return val->pair;
}

/* after a value is made: its pair, and what the graph's caller reads */
static void emit_output(struct job *j, size_t v, struct node *maker)
{
	const char *name = j->g->names[v];
	bool caller_reads_dq = j->g->output[v] && j->values[v].from_int;
	size_t k;

	if (!j->values[v].quantized)
		return;
	j->values[v].source = name;
	if (caller_reads_dq) {
		j->values[v].source = model_fresh(j->m, suffixed(j, name, "_float"));
		for (k = 0; k < maker->n_out; k++)
			if (strcmp(maker->out[k], name) == 0)
				maker->out[k] = j->values[v].source;
	}
	emit_pair(j, main_pair(j, v), name, j->values[v].source, caller_reads_dq ? name : NULL);
}

/* the pair for readers whose setting is not that of the main one */
static struct qpair *other_pair(struct job *j, size_t v, const struct qsetting *s)
{
	struct qvalue *val = &j->values[v];
	struct qpair *p = main_pair(j, v), *root = j->values[val->root].pair;

	while (p->next && !qsetting_equal(&p->setting, s))
		p = p->next;
	if (!qsetting_equal(&p->setting, s)) { /* after a move: the root's numbers under our own name */
		while (!qsetting_equal(&root->setting, s))
			root = root->next;
		p = p->next = same_pair(j, root, j->g->names[val->root]);
	}
	/* what an op makes must go into one Q only, or the runtime does not fuse it */
	emit_pair(j, p, j->g->names[v], val->from_int ? main_pair(j, v)->float_again : j->g->names[v], NULL);
	return p;
}

/* what a quantized op reads: the value after a pair of the op's own setting */
static const struct qpair *int_input(struct job *j, size_t v, const struct qsetting *s)
{
	const char *name = j->g->names[v];
	struct qpair *p = main_pair(j, v);
	bool is_main = qsetting_equal(&p->setting, s);

	if (!is_main)
		p = other_pair(j, v, s);
	if (p->taken && j->plan->recipes.dedicated_qdq_pair) {
		/* the runtime's optimiser sees that pairs on one float are the same, and fuses all the same */
		bool from_main = !is_main && j->values[v].from_int;

		p = same_pair(j, p, name);
		emit_pair(j, p, name, from_main ? main_pair(j, v)->float_again : j->values[v].source, NULL);
	}
	p->taken = true;
	return p;
}

/* Does this value, as a float, reach an op that stays in fp32 and that the runtime would requantize? Moves may be in between. */
static bool feeds_fp32_weights(const struct job *j, size_t v, int depth)
{
	size_t i;

	for (i = j->g->first[v]; i < j->g->first[v + 1]; i++) {
		size_t reader = j->g->uses[i];
		const struct node *n = j->g->m->nodes.v[reader];
		const struct op_rule *r = op_rule_find(n);

		if (r && r->requantized && job_mode(j, reader) != OP_STATIC &&
		    job_mode(j, reader) != OP_WEIGHT && v == graph_value(j->g, n->in[0]))
			return true;
		if (r && r->kind == OP_MOVE && depth && n->n_out &&
		    !j->values[graph_value(j->g, n->out[0])].quantized &&
		    feeds_fp32_weights(j, graph_value(j->g, n->out[0]), depth - 1))
			return true;
	}
	return false;
}

/*
 * ONNX Runtime's WeightBiasQuantization quantizes the weights of any Conv or Gemm that reads a DQ with a
 * single scale, whatever the plan says. A DQ with equal scales per channel is the same numbers, and it
 * leaves that alone. Where no dimension is known to be above 1, a Clip that cuts nothing stands between.
 */
static const char *barrier(struct job *j, size_t v)
{
	const struct value *type = model_value(j->z->base, j->g->names[v]);
	struct qpair *p = main_pair(j, v);
	struct tensor scale = { .dtype = DT_F32, .rank = 1 }, zero = { .rank = 1 };
	struct node *n;
	int axis = 1, i;

	if (p->barrier)
		return p->barrier;
	p->barrier = model_fresh(j->m, suffixed(j, j->g->names[v], "_kept_float"));
	for (i = 0; type && i < type->type.rank && !(axis < type->type.rank && type->type.dims[axis] > 1);
	     i++)
		axis = i;
	if (!type || axis >= type->type.rank || type->type.dims[axis] < 2 ||
	    (j->m->opset < 13 && !*j->qdq_domain)) {
		n = model_new_node(j->m, "Clip", "", suffixed(j, j->g->names[v], "_keep"), 1, 1);
		n->in[0] = p->float_again;
		n->out[0] = p->barrier;
		VEC_PUSH(&j->nodes, n);
		return p->barrier;
	}
	scale.dims[0] = zero.dims[0] = type->type.dims[axis];
	zero.dtype = p->setting.dtype;
	scale.data = arena_alloc(&j->m->arena, tensor_bytes(&scale));
	zero.data = arena_alloc(&j->m->arena, tensor_bytes(&zero));
	for (i = 0; i < scale.dims[0]; i++) {
		tensor_set(&scale, (size_t)i, p->q.scale);
		tensor_set(&zero, (size_t)i, p->q.zero);
	}
	n = emit_qdq(j, "DequantizeLinear", p->quantized,
		     emit_const(j, suffixed(j, j->g->names[v], "_scales"), &scale),
		     emit_const(j, suffixed(j, j->g->names[v], "_zero_points"), &zero), p->barrier);
	node_set_int(j->m, n, "axis", axis);
	return p->barrier;
}

const char *float_input(struct job *j, const char *name, bool in_weights_path)
{
	size_t v = graph_value(j->g, name);

	if (v == MAP_NONE || !j->values[v].quantized || !j->values[v].from_int)
		return name;
	if (in_weights_path)
		return barrier(j, v);
	return main_pair(j, v)->float_again;
}

/* a constant operand of an element-wise op, or of MatMul's left side: like an activation whose range is known */
static enum fettle_status emit_operand(struct job *j, struct node *n, size_t k, const struct qsetting *act,
				       struct err *err)
{
	struct qsetting s = *act;
	const struct qweight *w;
	enum fettle_status st;

	if (!qsetting_is_pow2(&s))
		s.algorithm = RANGE_MINMAX;
	s.per_channel = s.narrow = false;
	st = weight_get(j->z->weights, n->in[k], &s, &(struct weight_form){ .axis = 0 }, &w, err);
	if (!st)
		n->in[k] = emit_weight_dq(j, n->in[k], w, n->in[k]);
	return st;
}

static enum fettle_status emit_static(struct job *j, size_t i, struct err *err)
{
	const struct model *base = j->g->m;
	const struct node *old = base->nodes.v[i];
	const struct op_rule *r = j->z->ops->v[i].rule;
	const struct op_choice *c = &j->plan->ops[i];
	struct node *n = j->m->nodes.v[i], *added = NULL;
	float input_scale = 1;
	enum fettle_status st = FETTLE_OK;
	size_t k;

	for (k = 0; k < old->n_in && !st; k++) {
		if (!*old->in[k])
			continue;
		if (is_activation_input(base, r, old, k)) {
			const struct qpair *p = int_input(j, graph_value(j->g, old->in[k]), &c->act);

			n->in[k] = p->float_again;
			if (k == 0)
				input_scale = p->q.scale;
			if (k == 0 && j->traces && r->weight > 0)
				j->traces[i] = (struct trace){ .input = p->quantized, .q = p->q };
		} else if ((int)k == r->weight) {
			st = emit_weights(j, i, n, input_scale, &added, err);
		} else if ((r->activations & (1u << (k < 7 ? k : 7))) && model_init(base, old->in[k])) {
			st = emit_operand(j, n, k, &c->act, err);
		}
	}
	if (st)
		return st;
	VEC_PUSH(&j->nodes, n);
	if (added)
		VEC_PUSH(&j->nodes, added);
	return FETTLE_OK;
}

static void emit_move(struct job *j, size_t i)
{
	const struct node *old = j->g->m->nodes.v[i];
	struct node *n = j->m->nodes.v[i];
	size_t in = graph_value(j->g, old->in[0]), k;
	bool to_int = false;

	for (k = 0; k < old->n_out; k++)
		to_int |= *old->out[k] && j->values[graph_value(j->g, old->out[k])].from_int;
	if (j->values[in].quantized && to_int)
		n->in[0] = int_input(j, in, &main_pair(j, in)->setting)->float_again;
	else
		n->in[0] = float_input(j, old->in[0], feeds_fp32_weights(j, in, 8));
	VEC_PUSH(&j->nodes, n);
}

/* rows of an integer table, then one DQ: the table is never turned into floats as a whole */
static enum fettle_status emit_table(struct job *j, size_t i, struct err *err)
{
	struct node *n = j->m->nodes.v[i];
	struct qsetting s = j->plan->ops[i].weight;
	const char *out = n->out[0], *rows = model_fresh(j->m, suffixed(j, out, "_quantized"));
	const struct qweight *w;
	enum fettle_status st;

	s.per_channel = s.narrow = false;
	st = weight_get(j->z->weights, n->in[0], &s, &(struct weight_form){ .axis = 0 }, &w, err);
	if (st)
		return st;
	n->in[0] = emit_const(j, suffixed(j, n->in[0], "_rows"), &w->q);
	n->out[0] = rows;
	VEC_PUSH(&j->nodes, n);
	emit_qdq(j, "DequantizeLinear", rows, emit_const(j, suffixed(j, out, "_row_scale"), &w->scale),
		 emit_const(j, suffixed(j, out, "_row_zero_point"), &w->zero), out);
	return FETTLE_OK;
}

static void emit_fp32(struct job *j, size_t i)
{
	const struct node *old = j->g->m->nodes.v[i];
	struct node *n = j->m->nodes.v[i];
	const struct op_rule *r = op_rule_find(old);
	/* an old runtime takes DQ and Q away from ops that only move, even where it then has no kernel */
	bool keep = r && (r->requantized || runtime_lacks(j->g->m, r));
	size_t k;

	for (k = 0; k < n->n_in; k++)
		if (!model_init(j->g->m, old->in[k])) /* a constant may have been corrected */
			n->in[k] = float_input(j, old->in[k], keep && k == 0);
	VEC_PUSH(&j->nodes, n);
}

/* Subgraphs read outer values by name, which only the DQ's output may then have. */
static bool is_captured(const struct job *j, size_t v)
{
	size_t i, k;

	for (i = j->g->first[v]; i < j->g->first[v + 1]; i++) {
		const struct node *n = j->g->m->nodes.v[j->g->uses[i]];

		for (k = 0; k < n->n_captured; k++)
			if (strcmp(n->captured[k], j->g->names[v]) == 0)
				return true;
	}
	return false;
}

static void note_read(struct map *read, const char *const *names, size_t n)
{
	size_t i;

	for (i = 0; i < n; i++)
		map_set(read, names[i], 1);
}

/* Who reads through a barrier reads nothing of the pair's own DQ, but the runtime would run it. */
static void drop_unread(struct job *j)
{
	struct map read = MAP_INIT;
	size_t i, kept = 0;

	for (i = 0; i < j->m->n_outputs; i++)
		note_read(&read, &j->m->outputs[i].name, 1);
	for (i = 0; i < j->nodes.n; i++) {
		note_read(&read, j->nodes.v[i]->in, j->nodes.v[i]->n_in);
		note_read(&read, j->nodes.v[i]->captured, j->nodes.v[i]->n_captured);
	}
	for (i = 0; i < j->nodes.n; i++) {
		struct node *n = j->nodes.v[i];

		if (n->proto || strcmp(n->op, "DequantizeLinear") != 0 ||
		    map_get(&read, n->out[0]) != MAP_NONE)
			j->nodes.v[kept++] = n;
	}
	j->nodes.n = kept;
	map_release(&read);
}

enum fettle_status emit(struct job *j, struct err *err)
{
	const struct model *base = j->g->m;
	enum fettle_status st = FETTLE_OK;
	size_t i, k;

	for (i = 0; i < j->g->n; i++)
		if (j->values[i].quantized && is_captured(j, i))
			j->g->output[i] = true; /* keep the name, as for an output */
	for (i = 0; i < base->n_inputs; i++)
		emit_output(j, graph_value(j->g, base->inputs[i].name), NULL);
	for (i = 0; i < base->nodes.n && !st; i++) {
		const struct op_rule *r = j->z->ops->v[i].rule;
		enum op_mode mode = job_mode(j, i);
		struct node *maker;

		if (mode == OP_WEIGHT)
			st = emit_blocks(j, i, err);
		else if (mode == OP_DYNAMIC)
			st = emit_dynamic(j, i, err);
		else if (mode == OP_STATIC && r->kind == OP_TABLE)
			st = emit_table(j, i, err);
		else if (mode == OP_STATIC && r->kind == OP_MOVE)
			emit_move(j, i);
		else if (mode == OP_STATIC)
			st = emit_static(j, i, err);
		else
			emit_fp32(j, i);
		maker = st ? NULL : j->nodes.v[j->nodes.n - 1];
		for (k = 0; k < base->nodes.v[i]->n_out && !st; k++)
			if (*base->nodes.v[i]->out[k])
				emit_output(j, graph_value(j->g, base->nodes.v[i]->out[k]), maker);
	}
	if (!st) {
		drop_unread(j);
		model_set_nodes(j->m, j->nodes.v, j->nodes.n);
	}
	return st;
}
