/*
 * Corrections that a bias can take up. Rounding a weight changes the mean of the op's output; with
 * the mean of each input channel known, the change is known, and the bias takes it back:
 *
 *	b_o += sum over input channels i and kernel positions k of (W - W')[o,i,k] E[x_i]
 *
 * (fast_bias_correction; after Nagel et al., "Data-free quantization through weight equalization and bias
 * correction", arXiv:1906.04721, and Finkelstein et al., "Fighting quantization bias with bias",
 * arXiv:1906.03193. Borders that see padding are taken to be like the rest.)
 *
 * weight_correction restores each channel's mean and standard deviation (after the bias correction of Banner et
 * al., "Post training 4-bit quantization of convolution networks for rapid-deployment", arXiv:1810.05723; the
 * channel of a weight quantized per tensor is the tensor). The deviation goes into the weight's scale
 * (weights.c). A shift of the mean has no place in symmetric integers, but what it does to the output on
 * average is (mean W - mean W')_o times the sum of all E[x]: that goes into the bias, if means are
 * known. Both recipes together: the first formula, which contains the second.
 *
 * Static ops only: for others there may be no calibration. A MatMul has no bias; if the only thing after it is
 * an Add of a constant in fp32, that is taken for one. Otherwise it is left alone, for an Add put there would
 * keep the runtime from writing integers.
 */
#include "quantize/internal.h"

#include <stdlib.h>
#include <string.h>

struct layout layout_of(const struct node *n, const struct tensor *w)
{
	struct layout l = { .groups = 1, .inner = 1, .share = 1 };
	const int64_t *strides;
	size_t count, i;
	int d;

	l.first = (size_t)w->dims[0];
	l.second = (size_t)w->dims[1];
	for (d = 2; d < w->rank; d++)
		l.inner *= (size_t)w->dims[d];
	l.inputs_first = op_layout(n) != LAYOUT_CONV && !op_weight_turned(n);
	if (op_convolves(n))
		l.groups = (size_t)node_int(n, "group", 1);
	l.first /= l.groups;
	if (op_layout(n) == LAYOUT_DECONV) {
		strides = node_ints(n, "strides", &count);
		for (i = 0; i < count; i++)
			l.share /= (double)strides[i];
	}
	return l;
}

size_t layout_inputs(const struct layout *l)
{
	return l->groups * (l->inputs_first ? l->first : l->second);
}

size_t layout_outputs(const struct layout *l)
{
	return l->groups * (l->inputs_first ? l->second : l->first);
}

struct channel_axis weighted_axis(const struct model *m, const struct op *op, const struct node *n)
{
	const struct init *w = op->rule->weight == 1 && n->n_in > 1 ? model_init(m, n->in[1]) : NULL;
	struct layout l;

	if (!w || w->t.rank < 2 || !is_activation_input(m, op->rule, n, 0))
		return (struct channel_axis){ .value = NULL };
	l = layout_of(n, &w->t);
	return (struct channel_axis){ .value = n->in[0],
				      .axis = w->t.rank > 2 ? 1 : -1,
				      .channels = layout_inputs(&l) };
}

/* shift[o] = sum of error[o,i,k] E[x_i] */
static void full_shift(const struct layout *l, const float *error, const double *mean, double *shift)
{
	size_t g, a, b, k;

	for (g = 0; g < l->groups; g++)
		for (a = 0; a < l->first; a++)
			for (b = 0; b < l->second; b++, error += l->inner) {
				size_t i = l->inputs_first ? g * l->first + a : g * l->second + b;
				size_t o = l->inputs_first ? g * l->second + b : g * l->first + a;
				double sum = 0;

				for (k = 0; k < l->inner; k++)
					sum += error[k];
				shift[o] += sum * mean[i] * l->share;
			}
}

/* the same if all weights of an output were off by the mean of their errors */
static void mean_shift(const struct layout *l, const float *error, const double *mean, double *shift)
{
	const size_t inputs = layout_inputs(l), outputs = layout_outputs(l), per_group = inputs / l->groups;
	double *ones = xcalloc(inputs, sizeof(*ones));
	size_t i, o;

	for (i = 0; i < inputs; i++)
		ones[i] = 1;
	full_shift(l, error, ones, shift);
	for (o = 0; o < outputs; o++) {
		size_t group = o / (outputs / l->groups);
		double sum = 0;

		for (i = 0; i < per_group; i++)
			sum += mean[group * per_group + i];
		shift[o] *= sum / (double)per_group;
	}
	free(ones);
}

/* *shift: one per output, free() it; NULL if no recipe asks */
static enum fettle_status find_shift(struct job *j, size_t node, const struct qweight *w, double **shift,
				     size_t *n, struct err *err)
{
	const struct recipes *r = &j->plan->recipes;
	const struct node *old = j->g->m->nodes.v[node];
	const struct channel_axis in = weighted_axis(j->g->m, &j->z->ops->v[node], old);
	const struct rounded *own = job_rounded(j, node);
	struct init *init;
	struct layout l;
	const double *means;
	float *error;
	enum fettle_status st;
	size_t i, count;

	*shift = NULL;
	if (own) { /* has been corrected with the true inputs */
		*n = own->n_shift;
		if (own->shift) {
			*shift = xcalloc(*n, sizeof(**shift));
			memcpy(*shift, own->shift, *n * sizeof(**shift));
		}
		return FETTLE_OK;
	}
	if ((!r->fast_bias_correction && !r->weight_correction) || !in.value)
		return FETTLE_OK;
	means = statistics_means(j->known->values, in.value, in.axis, in.channels);
	if (!means && r->fast_bias_correction)
		return fail(err, FETTLE_INVALID,
			    "cannot correct the bias of op '%s': fast_bias_correction needs the means of the "
			    "channels of value '%s', which are not known",
			    j->z->ops->v[node].name, in.value);
	if (!means)
		return FETTLE_OK;
	init = model_init(j->z->base, old->in[1]);
	l = layout_of(old, &init->t);
	*n = layout_outputs(&l);
	st = model_weight(j->z->base, init, err);
	if (st)
		return st;
	count = (size_t)tensor_count(&init->t);
	error = xcalloc(count, sizeof(*error));
	qweight_floats(w, error);
	for (i = 0; i < count; i++)
		error[i] = ((const float *)init->t.data)[i] - error[i];
	*shift = xcalloc(*n, sizeof(**shift));
	(r->fast_bias_correction ? full_shift : mean_shift)(&l, error, means, *shift);
	free(error);
	return FETTLE_OK;
}

static void add_shift(struct job *j, struct tensor *bias, const double *shift, size_t n)
{
	float *x = arena_alloc(&j->m->arena, n * sizeof(*x));
	size_t i;

	if (!bias->data)
		*bias = (struct tensor){ .dtype = DT_F32, .rank = 1, .dims = { (int64_t)n } };
	for (i = 0; i < n; i++)
		x[i] = (float)((bias->data ? tensor_get(bias, i) : 0) + shift[i]);
	bias->data = x;
}

enum fettle_status corrected_bias(struct job *j, size_t node, const struct qweight *w, struct tensor *out,
				  struct err *err)
{
	const struct op_rule *r = j->z->ops->v[node].rule;
	const struct node *old = j->g->m->nodes.v[node];
	double *shift;
	enum fettle_status st = FETTLE_OK;
	size_t n;

	*out = (struct tensor)TENSOR_INIT;
	if (r->bias >= 0 && (int)old->n_in > r->bias && *old->in[r->bias]) {
		struct init *b = model_init(j->z->base, old->in[r->bias]);

		st = model_weight(j->z->base, b, err);
		*out = b->t;
	}
	if (!st)
		st = find_shift(j, node, w, &shift, &n, err);
	if (!st && shift) {
		add_shift(j, out, shift, n);
		free(shift);
	}
	return st;
}

/* the constant of the Add in fp32 that alone reads a MatMul, or NULL; *at is the Add */
static struct init *bias_behind(const struct job *j, size_t node, size_t *at)
{
	const struct node *add = graph_only_user(j->g, j->g->m->nodes.v[node]->out[0]);
	struct init *b = NULL;
	size_t k;

	for (k = 0; add && node_is(add, "Add") && k < add->n_in; k++)
		if (!b)
			b = model_init(j->z->base, add->in[k]);
	if (!b || b->t.dtype != DT_F32 || b->t.rank < 1 || b->t.dims[b->t.rank - 1] != tensor_count(&b->t))
		return NULL;
	*at = (size_t)j->g->producer[graph_value(j->g, add->out[0])];
	return job_mode(j, *at) == OP_FP32 ? b : NULL;
}

bool takes_shift(const struct job *j, size_t node)
{
	const struct init *b, *w = model_init(j->z->base, j->g->m->nodes.v[node]->in[1]);
	size_t at;

	if (j->z->ops->v[node].rule->bias >= 0)
		return true;
	b = bias_behind(j, node, &at);
	return b && w && tensor_count(&b->t) == w->t.dims[w->t.rank - 1];
}

enum fettle_status correct_matmul(struct job *j, size_t node, const struct qweight *w, struct err *err)
{
	struct init *b;
	const struct node *add;
	struct tensor bias;
	size_t at, k, n;
	double *shift;
	enum fettle_status st;

	b = bias_behind(j, node, &at);
	if (!b)
		return FETTLE_OK;
	add = j->g->m->nodes.v[at];
	st = model_weight(j->z->base, b, err);
	if (!st)
		st = find_shift(j, node, w, &shift, &n, err);
	if (st || !shift)
		return st;
	bias = b->t;
	if (n == (size_t)tensor_count(&bias)) {
		add_shift(j, &bias, shift, n);
		for (k = 0; k < add->n_in; k++)
			if (strcmp(add->in[k], b->name) == 0)
				j->m->nodes.v[at]->in[k] = emit_const(
					j, arena_strfmt(&j->m->arena, "%s_corrected", add->out[0]), &bias);
	}
	free(shift);
	return FETTLE_OK;
}
