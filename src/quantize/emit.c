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

static struct node *new_qdq(struct job *j, const char *op, const char *in, const char *scale,
			    const char *zero, const char *out)
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

/* Q and DQ on a value, once. `source` is the float it is made from. */
static void emit_pair(struct job *j, struct qpair *p, const char *value, const char *source,
		      const char *float_again)
{
	if (p->quantized)
		return;
	if (!p->scale) {
		p->scale = emit_scalar(j, suffixed(j, value, "_scale"), DT_F32, p->q.scale);
		p->zero = emit_scalar(j, suffixed(j, value, "_zero_point"), p->setting.dtype, p->q.zero);
	}
	p->quantized = model_fresh(j->m, suffixed(j, value, "_quantized"));
	new_qdq(j, "QuantizeLinear", source, p->scale, p->zero, p->quantized);
	p->float_again = float_again ? float_again : model_fresh(j->m, suffixed(j, value, "_dequantized"));
	new_qdq(j, "DequantizeLinear", p->quantized, p->scale, p->zero, p->float_again);
}

/* a value that shares its root's numbers has a pair of its own with the same constants */
static struct qpair *main_pair(struct job *j, size_t v)
{
	struct qvalue *val = &j->values[v];

	if (!val->pair) {
		const struct qpair *root = j->values[val->root].pair;

		val->pair = arena_alloc(&j->m->arena, sizeof(*val->pair));
		val->pair->setting = root->setting;
		val->pair->q = root->q;
		val->pair->scale = root->scale;
		val->pair->zero = root->zero;
	}
	return val->pair;
}

/* after a value is made: its pair, and what the graph's caller reads */
static void emit_output(struct job *j, size_t v)
{
	const char *name = j->g->names[v], *raw = name;
	struct node *maker = j->nodes.n ? j->nodes.v[j->nodes.n - 1] : NULL;
	size_t k;

	if (!j->values[v].quantized)
		return;
	if (j->g->output[v] && j->values[v].from_int) { /* the caller reads behind the DQ */
		raw = model_fresh(j->m, suffixed(j, name, "_float"));
		for (k = 0; k < maker->n_out; k++)
			if (strcmp(maker->out[k], name) == 0)
				maker->out[k] = raw;
		emit_pair(j, main_pair(j, v), name, raw, name);
		return;
	}
	emit_pair(j, main_pair(j, v), name, raw, NULL);
}

/* the input of a quantized op: behind the pair of its own setting */
static const char *int_input(struct job *j, const char *name, const struct qsetting *s)
{
	size_t v = graph_value(j->g, name);
	struct qvalue *val = &j->values[v];
	struct qpair *first = main_pair(j, v), *p;

	for (p = j->values[val->root].pair; p && !qsetting_equal(&p->setting, s); p = p->next)
		;
	if (!p || qsetting_equal(&first->setting, s))
		return first->float_again;
	for (p = first; p->next && !qsetting_equal(&p->setting, s); p = p->next)
		;
	if (!qsetting_equal(&p->setting, s)) { /* dedicated pair of the root's, here under our own name */
		const struct qpair *model = j->values[val->root].pair;

		while (!qsetting_equal(&model->setting, s))
			model = model->next;
		p = p->next = arena_alloc(&j->m->arena, sizeof(*p));
		p->setting = *s;
		p->q = model->q;
	}
	emit_pair(j, p, name, val->from_int ? first->float_again : name, NULL);
	return p->float_again;
}

/* Does the float behind this value reach a Conv or Gemm that stays in fp32, maybe through moves? */
static bool feeds_fp32_weights(const struct job *j, size_t v, int depth)
{
	size_t i;

	for (i = j->g->first[v]; i < j->g->first[v + 1]; i++) {
		size_t reader = j->g->uses[i];
		const struct node *n = j->g->m->nodes.v[reader];
		const struct op_rule *r = op_rule_find(n);

		if ((node_is(n, "Conv") || node_is(n, "ConvTranspose") || node_is(n, "Gemm")) &&
		    job_mode(j, reader) != OP_STATIC && v == graph_value(j->g, n->in[0]))
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
	n = new_qdq(j, "DequantizeLinear", p->quantized,
		    emit_const(j, suffixed(j, j->g->names[v], "_scales"), &scale),
		    emit_const(j, suffixed(j, j->g->names[v], "_zero_points"), &zero), p->barrier);
	node_set_int(j->m, n, "axis", axis);
	return p->barrier;
}

/* the input of an op in fp32: the float where there is one, else behind a DQ */
static const char *float_input(struct job *j, const char *name, bool in_weights_path)
{
	size_t v = graph_value(j->g, name);

	if (v == MAP_NONE || !j->values[v].quantized || !j->values[v].from_int)
		return name;
	if (in_weights_path)
		return barrier(j, v);
	return main_pair(j, v)->float_again;
}

static const char *emit_weight_dq(struct job *j, const char *name, const struct qweight *w,
				  const char *out_base)
{
	/* the same constant under another setting is another constant: the integers' address tells them apart */
	const char *tag = arena_strfmt(&j->m->arena, "%s_%llx", name, (unsigned long long)(uintptr_t)w);
	size_t known = map_get(&j->made, tag);
	const char *q, *scale, *zero, *out;
	struct node *n;

	if (known == MAP_NONE) {
		q = model_add_init(j->m, model_fresh(j->m, suffixed(j, name, "_quantized")), &w->q)->name;
		scale = model_add_init(j->m, model_fresh(j->m, suffixed(j, name, "_scale")), &w->scale)->name;
		zero = model_add_init(j->m, model_fresh(j->m, suffixed(j, name, "_zero_point")), &w->zero)
			       ->name;
		map_set(&j->made, tag, j->m->inits.n - 3);
	} else {
		q = j->m->inits.v[known]->name;
		scale = j->m->inits.v[known + 1]->name;
		zero = j->m->inits.v[known + 2]->name;
	}
	out = model_fresh(j->m, suffixed(j, out_base, "_dequantized"));
	n = new_qdq(j, "DequantizeLinear", q, scale, zero, out);
	if (w->axis >= 0)
		node_set_int(j->m, n, "axis", w->axis);
	return out;
}

/* bias in 32 bits with scale s_x * s_w. False when it does not fit: *min_scale then has what would. */
static bool quantize_bias(struct job *j, const struct tensor *b, float input_scale, const struct qweight *w,
			  struct qweight *out, float **min_scale)
{
	size_t n = (size_t)tensor_count(b), channels = (size_t)tensor_count(&w->scale), i;
	const float *x = b->data, *ws = w->scale.data;
	const double limit = 2147483647.0 * 0.999;
	struct tensor shape = { .dtype = DT_F32,
				.rank = channels > 1 ? 1 : w->scale.rank,
				.dims = { (int64_t)n } };
	bool fits = true;
	int32_t *q;
	float *s;

	*out = (struct qweight){ .q = *b, .scale = shape, .zero = shape, .axis = channels > 1 ? 0 : -1 };
	out->q.dtype = out->zero.dtype = DT_S32;
	out->q.rank = 1;
	out->q.dims[0] = (int64_t)n;
	q = out->q.data = arena_alloc(&j->m->arena, n * sizeof(*q));
	s = out->scale.data = arena_alloc(&j->m->arena, n * sizeof(*s));
	out->zero.data = arena_alloc(&j->m->arena, n * sizeof(*q));
	*min_scale = arena_alloc(&j->m->arena, channels * sizeof(float));
	for (i = 0; i < n; i++) {
		size_t c = channels > 1 ? i : 0;
		double step = (double)input_scale * ws[c], v;

		s[channels > 1 ? i : 0] = (float)step;
		step = (float)step; /* the runtime multiplies by the rounded one */
		v = step > 0 ? rint(x[i] / step) : INFINITY;
		if (!(fabs(v) <= limit)) {
			fits = false;
			/* a little above the least, so that rounding cannot undo it */
			(*min_scale)[c] =
				fmaxf((*min_scale)[c], (float)(fabs(x[i]) / limit / input_scale * 1.001));
			continue;
		}
		q[i] = (int32_t)v;
	}
	return fits;
}

static enum fettle_status emit_weights(struct job *j, size_t i, struct node *n, float input_scale,
				       struct err *err)
{
	const struct op *op = &j->z->ops->v[i];
	const struct op_rule *r = op->rule;
	const struct qsetting *s = &j->plan->ops[i].weight;
	const char *name = n->in[r->weight];
	const bool has_bias = r->bias >= 0 && (int)n->n_in > r->bias && *n->in[r->bias];
	int axis = r->axis;
	const struct qweight *w;
	enum fettle_status st;

	if (node_is(n, "Gemm"))
		axis = node_int(n, "transB", 0) ? 0 : 1;
	if (node_is(n, "ConvTranspose") && node_int(n, "group", 1) > 1) {
		/* with groups its output channels are not one axis of the weight */
		struct qsetting per_tensor = *s;

		per_tensor.per_channel = false;
		st = weight_get(j->z->weights, name, &per_tensor, axis, false, NULL, &w, err);
	} else {
		st = weight_get(j->z->weights, name, s, axis, false, NULL, &w, err);
	}
	if (st)
		return st;
	if (has_bias) {
		struct init *b = model_init(j->z->base, n->in[r->bias]);
		struct qweight *q = arena_alloc(&j->m->arena, sizeof(*q));
		float *min_scale;

		st = model_weight(j->z->base, b, err);
		if (st)
			return st;
		if (!quantize_bias(j, &b->t, input_scale, w, q, &min_scale)) {
			st = weight_get(j->z->weights, name, s, axis, false, min_scale, &w, err);
			if (st)
				return st;
			if (!quantize_bias(j, &b->t, input_scale, w, q, &min_scale))
				return fail(err, FETTLE_INVALID,
					    "cannot quantize bias '%s': too large for 32 bits at scale %g",
					    n->in[r->bias], (double)input_scale);
		}
		n->in[r->bias] = emit_weight_dq(j, n->in[r->bias], q, op->name);
	}
	n->in[r->weight] = emit_weight_dq(j, name, w, op->name);
	return FETTLE_OK;
}

/* a constant operand of an element-wise op, or of MatMul's left side: like an activation whose range is known */
static enum fettle_status emit_operand(struct job *j, struct node *n, size_t k, const struct qsetting *act,
				       struct err *err)
{
	struct qsetting s = *act;
	const struct qweight *w;
	enum fettle_status st;

	s.algorithm = RANGE_MINMAX;
	s.per_channel = s.narrow = false;
	st = weight_get(j->z->weights, n->in[k], &s, 0, false, NULL, &w, err);
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
	struct node *n = j->m->nodes.v[i];
	float input_scale = 1;
	enum fettle_status st = FETTLE_OK;
	size_t k;

	for (k = 0; k < n->n_in && !st; k++) {
		if (!*n->in[k])
			continue;
		if (is_activation_input(base, r, old, k)) {
			const struct qpair *p = j->values[j->values[graph_value(j->g, old->in[k])].root].pair;

			n->in[k] = int_input(j, old->in[k], &c->act);
			while (p->next && !qsetting_equal(&p->setting, &c->act))
				p = p->next;
			if (k == 0)
				input_scale = p->q.scale;
		} else if ((int)k == r->weight) {
			st = emit_weights(j, i, n, input_scale, err);
		} else if ((r->activations & (1u << (k < 7 ? k : 7))) && model_init(base, old->in[k])) {
			st = emit_operand(j, n, k, &c->act, err);
		}
	}
	if (!st)
		VEC_PUSH(&j->nodes, n);
	return st;
}

static void emit_move(struct job *j, size_t i)
{
	const struct node *old = j->g->m->nodes.v[i];
	struct node *n = j->m->nodes.v[i];
	size_t in = graph_value(j->g, old->in[0]);
	bool to_int = j->values[graph_value(j->g, old->out[0])].from_int;

	if (j->values[in].quantized && to_int)
		n->in[0] = main_pair(j, in)->float_again;
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
	st = weight_get(j->z->weights, n->in[0], &s, 0, false, NULL, &w, err);
	if (st)
		return st;
	n->in[0] = emit_const(j, suffixed(j, n->in[0], "_rows"), &w->q);
	n->out[0] = rows;
	VEC_PUSH(&j->nodes, n);
	new_qdq(j, "DequantizeLinear", rows, emit_const(j, suffixed(j, out, "_row_scale"), &w->scale),
		emit_const(j, suffixed(j, out, "_row_zero_point"), &w->zero), out);
	return FETTLE_OK;
}

static void emit_fp32(struct job *j, size_t i)
{
	const struct node *old = j->g->m->nodes.v[i];
	struct node *n = j->m->nodes.v[i];
	bool weights = node_is(n, "Conv") || node_is(n, "ConvTranspose") || node_is(n, "Gemm");
	size_t k;

	for (k = 0; k < n->n_in; k++)
		n->in[k] = float_input(j, old->in[k], weights && k == 0);
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

enum fettle_status emit(struct job *j, struct err *err)
{
	const struct model *base = j->g->m;
	enum fettle_status st = FETTLE_OK;
	size_t i, k;

	for (i = 0; i < j->g->n; i++)
		if (j->values[i].quantized && is_captured(j, i))
			j->g->output[i] = true; /* keep the name, as for an output */
	for (i = 0; i < base->n_inputs; i++)
		emit_output(j, graph_value(j->g, base->inputs[i].name));
	for (i = 0; i < base->nodes.n && !st; i++) {
		const struct op_rule *r = j->z->ops->v[i].rule;
		enum op_mode mode = job_mode(j, i);

		if (mode == OP_DYNAMIC)
			st = emit_dynamic(j, i, err);
		else if (mode == OP_STATIC && r->kind == OP_TABLE)
			st = emit_table(j, i, err);
		else if (mode == OP_STATIC && r->kind == OP_MOVE)
			emit_move(j, i);
		else if (mode == OP_STATIC)
			st = emit_static(j, i, err);
		else
			emit_fp32(j, i);
		for (k = 0; k < base->nodes.v[i]->n_out && !st; k++)
			if (*base->nodes.v[i]->out[k])
				emit_output(j, graph_value(j->g, base->nodes.v[i]->out[k]));
	}
	if (!st)
		model_set_nodes(j->m, j->nodes.v, j->nodes.n);
	return st;
}
