/* Ops whose inputs are quantized at run time: DynamicQuantizeLinear and the integer ops. */
#include "quantize/internal.h"

#include <string.h>

static struct node *push(struct job *j, const char *op, const char *domain, const char *base, size_t n_in,
			 size_t n_out)
{
	struct node *n = model_new_node(j->m, op, domain, base, n_in, n_out);
	size_t k;

	for (k = 0; k < n_out; k++)
		n->out[k] = model_fresh(j->m, arena_strfmt(&j->m->arena, "%s_%s_%zu", base, op, k));
	VEC_PUSH(&j->nodes, n);
	return n;
}

/* one DynamicQuantizeLinear per value, shared by all its readers */
static struct node *dynamic_input(struct job *j, const char *value)
{
	size_t known = map_get(&j->dynamic, value);
	struct node *n;

	if (known != MAP_NONE)
		return j->nodes.v[known];
	n = push(j, "DynamicQuantizeLinear", "", value, 1, 3);
	n->in[0] = value;
	map_set(&j->dynamic, value, j->nodes.n - 1);
	return n;
}

static const char *add_weight(struct job *j, const char *name, const char *suffix, const struct tensor *t)
{
	return model_add_init(j->m, model_fresh(j->m, arena_strfmt(&j->m->arena, "%s%s", name, suffix)), t)
		->name;
}

/* integer product -> float: times input scale times weight scale, in the shape the runtime's fusions look for */
static struct node *rescale(struct job *j, const char *name, const char *product, const char *input_scale,
			    const char *weight_scale)
{
	struct node *cast, *scale, *mul;

	cast = push(j, "Cast", "", name, 1, 1);
	cast->in[0] = product;
	node_set_int(j->m, cast, "to", DT_F32);
	scale = push(j, "Mul", "", name, 2, 1);
	scale->in[0] = input_scale;
	scale->in[1] = weight_scale;
	mul = push(j, "Mul", "", name, 2, 1);
	mul->in[0] = cast->out[0];
	mul->in[1] = scale->out[0];
	return mul;
}

/* [c] -> [1, c, 1, …]: what broadcasts along a convolution's channels */
static struct tensor along_channels(const struct tensor *t, int rank)
{
	struct tensor out = *t;
	int i;

	if (tensor_count(t) <= 1)
		return out;
	out.rank = rank;
	for (i = 0; i < rank; i++)
		out.dims[i] = i == 1 ? tensor_count(t) : 1;
	return out;
}

static enum fettle_status dynamic_product(struct job *j, size_t i, const char *input, struct err *err)
{
	const struct op *op = &j->z->ops->v[i];
	const struct node *old = j->g->m->nodes.v[i];
	const bool conv = op_convolves(old), transpose = op_weight_turned(old);
	const bool has_bias =
		op->rule->bias >= 0 && (int)old->n_in > op->rule->bias && *old->in[op->rule->bias];
	static const char *const conv_attrs[] = { "auto_pad",     "dilations", "group",
						  "kernel_shape", "pads",      "strides" };
	struct node *dq, *n, *last;
	struct tensor scale, zero;
	const struct qweight *w;
	enum fettle_status st;
	size_t k;

	st = weight_get(j->z->weights, old->in[1], &j->plan->ops[i].weight,
			&(struct weight_form){ .axis = conv ? 0 : 1,
					       .transpose = transpose,
					       .match_variance = j->plan->recipes.weight_correction },
			&w, err);
	if (st)
		return st;
	job_tell_weight(j, i, 1, w);
	dq = dynamic_input(j, input);
	n = push(j, conv ? "ConvInteger" : "MatMulInteger", "", op->name, 4, 1);
	n->name = op->name; /* in whose place it is */
	scale = w->scale;
	zero = w->zero;
	if (conv) {
		scale = along_channels(&w->scale, w->q.rank);
		if (w->is_symmetric) /* all alike: the kernel takes one for all */
			zero.rank = 0;
		for (k = 0; k < ARRAY_LEN(conv_attrs); k++)
			node_copy_attr(j->m, n, old, conv_attrs[k]);
	}
	n->in[0] = dq->out[0];
	n->in[1] = add_weight(j, old->in[1], "_quantized", &w->q);
	n->in[2] = dq->out[2];
	n->in[3] = add_weight(j, old->in[1], "_zero_point", &zero);
	last = rescale(j, op->name, n->out[0], dq->out[1], add_weight(j, old->in[1], "_scale", &scale));
	if (has_bias) {
		struct init *b = model_init(j->z->base, old->in[op->rule->bias]);
		struct tensor bias;
		struct node *add;

		st = model_weight(j->z->base, b, err);
		if (st)
			return st;
		bias = conv ? along_channels(&b->t, w->q.rank) : b->t;
		add = push(j, "Add", "", op->name, 2, 1);
		add->in[0] = last->out[0];
		add->in[1] = add_weight(j, b->name, "_bias", &bias);
		last = add;
	}
	last->out[0] = old->out[0];
	return FETTLE_OK;
}

/* DynamicQuantizeLSTM: X, W', R', B, sequence_lens, initial_h, initial_c, P, then scales and zero points of W, R */
static enum fettle_status dynamic_lstm(struct job *j, size_t i, struct err *err)
{
	const struct node *old = j->g->m->nodes.v[i];
	struct node *n =
		model_new_node(j->m, "DynamicQuantizeLSTM", DOMAIN_MS, j->z->ops->v[i].name, 12, old->n_out);
	struct qsetting s = j->plan->ops[i].weight;
	static const char *const attrs[] = { "direction", "hidden_size", "input_forget" };
	enum fettle_status st;
	size_t k;

	n->name = j->z->ops->v[i].name;
	s.per_channel = false;
	for (k = 0; k < 8 && k < old->n_in; k++)
		n->in[k] = float_input(j, old->in[k], false);
	for (k = 1; k < 3; k++) {
		struct init *init = model_init(j->z->base, old->in[k]);
		const size_t dirs = (size_t)init->t.dims[0];
		const struct qweight *w;
		struct tensor scale = { .dtype = DT_F32, .rank = 1, .dims = { (int64_t)dirs } }, zero = scale;
		size_t d;

		st = weight_get(j->z->weights, old->in[k], &s, &(struct weight_form){ .transpose = true }, &w,
				err);
		if (st)
			return st;
		job_tell_weight(j, i, k, w);
		/* one scale per direction: both directions share the tensor's */
		scale.data = arena_alloc(&j->m->arena, tensor_bytes(&scale));
		zero.dtype = s.dtype;
		zero.data = arena_alloc(&j->m->arena, tensor_bytes(&zero));
		for (d = 0; d < dirs; d++) {
			tensor_set(&scale, d, tensor_get(&w->scale, 0));
			tensor_set(&zero, d, tensor_get(&w->zero, 0));
		}
		n->in[k] = add_weight(j, old->in[k], "_quantized", &w->q);
		n->in[6 + 2 * k] = add_weight(j, old->in[k], "_scale", &scale);
		n->in[7 + 2 * k] = add_weight(j, old->in[k], "_zero_point", &zero);
	}
	for (k = 0; k < ARRAY_LEN(attrs); k++)
		node_copy_attr(j->m, n, old, attrs[k]);
	memcpy(n->out, old->out, old->n_out * sizeof(*n->out));
	VEC_PUSH(&j->nodes, n);
	return FETTLE_OK;
}

enum fettle_status emit_dynamic(struct job *j, size_t i, struct err *err)
{
	const struct node *old = j->g->m->nodes.v[i];

	if (op_layout(old) == LAYOUT_RECURRENT)
		return dynamic_lstm(j, i, err);
	return dynamic_product(j, i, float_input(j, old->in[0], false), err);
}
