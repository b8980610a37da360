/* Constants in integers: weights, biases, and what the recipes make of them. */
#include "quantize/internal.h"

#include <math.h>
#include <string.h>

static const char *add_constant(struct job *j, const char *name, const char *suffix, const struct tensor *t)
{
	return model_add_init(j->m, model_fresh(j->m, arena_strfmt(&j->m->arena, "%s%s", name, suffix)), t)
		->name;
}

static const char *emit_dq(struct job *j, const struct qweight *w, const char *q, const char *scale,
			   const char *zero, const char *out_base)
{
	const char *out = model_fresh(j->m, arena_strfmt(&j->m->arena, "%s_dequantized", out_base));
	struct node *n = emit_qdq(j, "DequantizeLinear", q, scale, zero, out);

	if (w->axis >= 0)
		node_set_int(j->m, n, "axis", w->axis);
	return out;
}

const char *emit_weight_dq(struct job *j, const char *name, const struct qweight *w, const char *out_base)
{
	/* the same constant under another setting is another constant: the integers' address tells them apart */
	const char *tag = arena_strfmt(&j->m->arena, "%s_%llx", name, (unsigned long long)(uintptr_t)w);
	size_t known = map_get(&j->made, tag);

	if (known == MAP_NONE) {
		known = j->m->inits.n;
		add_constant(j, name, "_quantized", &w->q);
		add_constant(j, name, "_scale", &w->scale);
		add_constant(j, name, "_zero_point", &w->zero);
		map_set(&j->made, tag, known);
	}
	return emit_dq(j, w, j->m->inits.v[known]->name, j->m->inits.v[known + 1]->name,
		       j->m->inits.v[known + 2]->name, out_base);
}

/* does a QuantizeLinear of these floats give these integers? */
static bool quantizes_to(const struct tensor *x, const struct qweight *w)
{
	const struct qlimits lim = quant_limits(w->q.dtype, SCHEME_ASYM, false);
	const size_t n = (size_t)tensor_count(x);
	size_t inner = 1, i;
	int d;

	if (!tensor_same_shape(x, &w->q))
		return false; /* transposed */
	for (d = w->axis + 1; w->axis >= 0 && d < x->rank; d++)
		inner *= (size_t)x->dims[d];
	for (i = 0; i < n; i++) {
		size_t c = w->axis >= 0 ? i / inner % (size_t)w->scale.dims[0] : 0;
		struct qparams q = { ((const float *)w->scale.data)[c], (int32_t)tensor_get(&w->zero, c) };

		if (quant_value(((const float *)x->data)[i], q, lim) != (int32_t)tensor_get(&w->q, i))
			return false;
	}
	return true;
}

/*
 * Recipe qdq_pair_on_weights: floats, Q and DQ, from which the runtime makes the same integers when it loads the
 * model. The floats are the weight's own where those round to what was decided. A range cut short in 7
 * bits or a corrected scale do not: then they are the rounded ones.
 */
static const char *emit_weight_pair(struct job *j, const char *name, const struct qweight *w,
				    const char *out_base)
{
	const char *q = model_fresh(j->m, arena_strfmt(&j->m->arena, "%s_quantized", name)), *scale, *zero;
	const struct init *own = model_init(j->z->base, name);
	struct node *n;

	if (!quantizes_to(&own->t, w)) {
		struct tensor rounded = w->q;

		rounded.dtype = DT_F32;
		rounded.data = arena_alloc(&j->m->arena, tensor_bytes(&rounded));
		qweight_floats(w, rounded.data);
		name = add_constant(j, name, "_rounded", &rounded);
	}
	scale = add_constant(j, name, "_scale", &w->scale);
	zero = add_constant(j, name, "_zero_point", &w->zero);
	n = emit_qdq(j, "QuantizeLinear", name, scale, zero, q);
	if (w->axis >= 0)
		node_set_int(j->m, n, "axis", w->axis);
	return emit_dq(j, w, q, scale, zero, out_base);
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

static void set_input(struct job *j, struct node *n, size_t k, const char *name)
{
	if (k >= n->n_in) {
		const char **grown = arena_alloc(&j->m->arena, (k + 1) * sizeof(*grown));
		size_t i;

		for (i = 0; i <= k; i++)
			grown[i] = i < n->n_in ? n->in[i] : "";
		n->in = grown;
		n->n_in = k + 1;
	}
	n->in[k] = name;
}

/*
 * Recipe gemm_to_matmul: from a Gemm with its constants in place to a MatMul and the Add that must follow
 * (NULL without bias). In QDQ the bias stays in 32 bits: the runtime makes a Gemm of a MatMul and an Add before
 * it looks for integers, and one whose bias is float would then compute in floats.
 */
static struct node *to_matmul(struct job *j, struct node *n)
{
	static const char *const attrs[] = { "transA", "transB", "alpha", "beta" };
	const bool has_bias = n->n_in > 2 && *n->in[2];
	struct node *add;
	size_t k;

	n->op = "MatMul";
	n->n_in = 2;
	for (k = 0; k < ARRAY_LEN(attrs); k++)
		node_drop_attr(n, attrs[k]);
	if (!has_bias)
		return NULL;
	add = model_new_node(j->m, "Add", "", arena_strfmt(&j->m->arena, "%s_bias", n->out[0]), 2, 1);
	add->out[0] = n->out[0];
	n->out[0] = model_fresh(j->m, arena_strfmt(&j->m->arena, "%s_product", n->out[0]));
	add->in[0] = n->out[0];
	add->in[1] = n->in[2];
	return add;
}

/* how an op wants its weight: where the output channels are, and whether there is one axis of them at all */
static struct weight_form form_of(const struct job *j, const struct op_rule *r, const struct node *n,
				  struct qsetting *s)
{
	struct weight_form f = { .axis = op_weight_axis(n),
				 .match_variance = j->plan->recipes.weight_correction };

	if (r->layout == LAYOUT_DECONV && node_int(n, "group", 1) > 1)
		s->per_channel = false; /* with groups its output channels are not one axis of the weight */
	return f;
}

static const char *emit_weight(struct job *j, const char *name, const struct qweight *w, const char *op)
{
	return j->plan->recipes.qdq_pair_on_weights ? emit_weight_pair(j, name, w, op)
						    : emit_weight_dq(j, name, w, op);
}

static const char *emit_bias(struct job *j, const char *name, const struct tensor *b, const struct qweight *q,
			     bool in_floats, const char *op)
{
	struct tensor row = *b;

	if (!in_floats)
		return emit_weight_dq(j, name, q, op);
	row.rank = 1; /* a Gemm's may be [1, n] */
	row.dims[0] = tensor_count(b);
	return add_constant(j, name, "_row", &row);
}

/* an op's weight and its bias */
struct fitted {
	struct qsetting s;
	struct weight_form form;
	float input_scale;
	const struct qweight *w;
	struct tensor bias; /* no data: there is none */
	struct qweight *q;  /* the bias in integers */
};

/* fills w, bias and q, with a scale of the weight at which the bias fits */
static enum fettle_status fit_weights(struct job *j, size_t i, struct fitted *f, struct err *err)
{
	const struct op *op = &j->z->ops->v[i];
	const char *name = j->g->m->nodes.v[i]->in[op->rule->weight];
	const struct rounded *own = job_rounded(j, i);
	float *min_scale;
	enum fettle_status st = FETTLE_OK;

	if (own)
		f->w = &own->w;
	else
		st = weight_get(j->z->weights, name, &f->s, &f->form, &f->w, err);
	if (st)
		return st;
	if (op->rule->bias < 0)
		return correct_matmul(j, i, f->w, err);
	st = corrected_bias(j, i, f->w, &f->bias, err);
	if (st || !f->bias.data || quantize_bias(j, &f->bias, f->input_scale, f->w, f->q, &min_scale))
		return st;
	f->form.min_scale = min_scale;
	if (!own)
		st = weight_get(j->z->weights, name, &f->s, &f->form, &f->w, err);
	if (!st)
		st = corrected_bias(j, i, f->w, &f->bias, err);
	if (!st && !quantize_bias(j, &f->bias, f->input_scale, f->w, f->q, &min_scale))
		st = fail(err, FETTLE_INVALID,
			  "cannot quantize the bias of '%s': too large for 32 bits at scale %g", op->name,
			  (double)f->input_scale);
	return st;
}

enum fettle_status emit_weights(struct job *j, size_t i, struct node *n, float input_scale,
				struct node **added, struct err *err)
{
	const struct op *op = &j->z->ops->v[i];
	const struct op_rule *r = op->rule;
	const bool matmul = node_is(n, "Gemm") && j->plan->recipes.gemm_to_matmul && j->m->opset >= 10;
	struct fitted f = { .s = j->plan->ops[i].weight,
			    .input_scale = input_scale,
			    .bias = TENSOR_INIT,
			    .q = arena_alloc(&j->m->arena, sizeof(*f.q)) };
	const char *name = n->in[r->weight];
	enum fettle_status st;

	f.form = form_of(j, r, n, &f.s);
	st = fit_weights(j, i, &f, err);
	if (!st && j->traces) {
		j->traces[i].w = f.w;
		j->traces[i].takes_shift = takes_shift(j, i);
		j->traces[i].node = n;
	}
	if (!st && matmul && op_weight_turned(n)) {
		f.form.axis = 1;
		f.form.transpose = true;
		if (job_rounded(j, i))
			f.w = qweight_transposed(&j->m->arena, f.w);
		else
			st = weight_get(j->z->weights, name, &f.s, &f.form, &f.w, err);
	}
	if (st)
		return st;
	job_tell_weight(j, i, (size_t)r->weight, f.w);
	n->in[r->weight] = emit_weight(j, name, f.w, op->name);
	if (f.bias.data) {
		name = (int)n->n_in > r->bias && *n->in[r->bias]
			       ? n->in[r->bias]
			       : arena_strfmt(&j->m->arena, "%s_bias", op->name);
		set_input(j, n, (size_t)r->bias,
			  emit_bias(j, name, &f.bias, f.q, matmul && j->plan->format == FORMAT_QOPERATOR,
				    op->name));
	}
	if (matmul)
		*added = to_matmul(j, n);
	return FETTLE_OK;
}
