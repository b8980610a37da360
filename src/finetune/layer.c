#include "finetune/layer.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* the attribute's value for planes (0), rows (1) or columns (2) of what has `dims` of these, the last ones */
static size_t attribute(const struct node *n, const char *name, int dims, int k, int offset, size_t otherwise)
{
	size_t count = 0;
	const int64_t *v = node_ints(n, name, &count);
	int i = k - (LAYER_DIMS - dims);

	return v && i >= 0 && (size_t)(i + offset) < count ? (size_t)v[i + offset] : otherwise;
}

/* does a ConvTranspose take more off its output's edges than its kernel reaches? */
static bool crops(const struct node *n, const struct tensor *w)
{
	const int dims = w->rank - 2;
	size_t count;
	int d;

	if (node_ints(n, "output_shape", &count))
		return true; /* it can */
	for (d = 0; d < dims; d++) {
		const int k = d + LAYER_DIMS - dims;
		const size_t reach = ((size_t)w->dims[2 + d] - 1) * attribute(n, "dilations", dims, k, 0, 1);

		if (attribute(n, "pads", dims, k, 0, 0) > reach ||
		    attribute(n, "pads", dims, k, dims, 0) > reach)
			return true;
	}
	return false;
}

bool layer_possible(const struct subject *s, size_t node, const char **why)
{
	const struct node *n = s->m->nodes.v[node];
	const struct op_rule *r = s->ops.v[node].rule;
	const struct init *w = r && r->weight == 1 && n->n_in > 1 ? model_init(s->m, n->in[1]) : NULL;

	*why = NULL;
	if (!w)
		*why = "it has no constant weight";
	else if (op_convolves(n) ? w->t.rank < 3 || w->t.rank > 2 + LAYER_DIMS
				 : op_layout(n) != LAYOUT_MATRIX || w->t.rank != 2)
		*why = "it is no convolution in up to three dimensions and no product with a matrix";
	else if (op_layout(n) == LAYOUT_DECONV && crops(n, &w->t))
		*why = "it crops its output";
	else if (op_input_turned(n))
		*why = "its input is transposed";
	else if (graph_n_uses(&s->g, graph_value(&s->g, n->in[1])) != 1)
		*why = "another op reads the same weight";
	return !*why;
}

/* how the weight lies in the model, and how many of what it has */
static void find_layout(struct layer *l, const struct node *n, const struct tensor *w)
{
	size_t d0 = (size_t)w->dims[0], d1 = (size_t)w->dims[1];
	size_t size;
	int k;

	l->groups = 1;
	for (k = 0; k < LAYER_DIMS; k++)
		l->kernel[k] = 1;
	if (op_convolves(n)) {
		l->turned = op_layout(n) == LAYOUT_DECONV;
		l->groups = (size_t)node_int(n, "group", 1);
		l->outs = l->turned ? d1 : d0 / l->groups;
		l->ins = l->turned ? d0 / l->groups : d1;
		for (k = 2; k < w->rank; k++)
			l->kernel[k - w->rank + LAYER_DIMS] = (size_t)w->dims[k];
		size = layer_product(l->kernel);
		l->step_channel = l->turned ? l->outs * size : size;
		l->step_output = l->turned ? size : l->ins * size;
		l->step_group = l->outs * l->ins * size;
	} else {
		bool outputs_first = op_weight_turned(n);

		l->is_matrix = true;
		l->outs = outputs_first ? d0 : d1;
		l->ins = outputs_first ? d1 : d0;
		l->step_output = outputs_first ? d1 : 1;
		l->step_channel = outputs_first ? 1 : d1;
	}
	l->patch = layer_product(l->kernel) * l->ins;
}

/* where the model has weight p of output o */
static size_t place(const struct layer *l, size_t o, size_t p)
{
	const size_t c = p % l->ins, k = p / l->ins;

	return o / l->outs * l->step_group + o % l->outs * l->step_output + c * l->step_channel +
	       (l->turned ? layer_product(l->kernel) - 1 - k : k);
}

void layer_reset(struct layer *l)
{
	const struct qweight *q = l->start;
	size_t o, p;

	for (o = 0; o < layer_outputs(l); o++) {
		size_t channel = l->one_scale ? 0 : o;
		float zero = (float)tensor_get(&q->zero, channel);

		l->scale[o] = (float)tensor_get(&q->scale, channel);
		l->shift[o] = 0;
		for (p = 0; p < l->patch; p++)
			l->level[o * l->patch + p] = (float)tensor_get(&q->q, place(l, o, p)) - zero;
	}
}

static void read_weights(struct layer *l, const struct tensor *w, const struct qsetting *s)
{
	const struct qlimits lim = quant_limits(s->dtype, s->scheme, s->narrow);
	size_t o, p;

	l->one_scale = l->start->axis < 0;
	for (o = 0; o < layer_outputs(l); o++) {
		float zero = (float)tensor_get(&l->start->zero, l->one_scale ? 0 : o);

		l->least[o] = (float)lim.lo - zero;
		l->most[o] = (float)lim.hi - zero;
		for (p = 0; p < l->patch; p++)
			l->w[o * l->patch + p] = ((const float *)w->data)[place(l, o, p)];
	}
	layer_reset(l);
}

enum fettle_status layer_open(struct layer *l, const struct subject *s, size_t node, const struct trace *t,
			      const struct qsetting *weight, struct err *err)
{
	const struct node *n = s->m->nodes.v[node];
	const struct op_rule *r = s->ops.v[node].rule;
	struct init *w = model_init(s->m, n->in[1]), *b = NULL;
	enum fettle_status st;
	size_t o, outputs;

	*l = (struct layer){ .name = s->ops.v[node].name, .input = t->q, .takes_shift = t->takes_shift };
	st = model_weight(s->m, w, err);
	if (!st && r->bias >= 0 && (int)n->n_in > r->bias && *n->in[r->bias]) {
		b = model_init(s->m, n->in[r->bias]);
		st = model_weight(s->m, b, err);
	}
	if (st)
		return st;
	l->start = t->w;
	find_layout(l, n, &w->t);
	outputs = layer_outputs(l);
	l->w = arena_alloc(&l->arena, layer_weights(l) * sizeof(float));
	l->level = arena_alloc(&l->arena, layer_weights(l) * sizeof(float));
	l->scale = arena_alloc(&l->arena, outputs * sizeof(float));
	l->least = arena_alloc(&l->arena, outputs * sizeof(float));
	l->most = arena_alloc(&l->arena, outputs * sizeof(float));
	l->bias = arena_alloc(&l->arena, outputs * sizeof(float));
	l->shift = arena_alloc(&l->arena, outputs * sizeof(double));
	for (o = 0; o < outputs && b; o++)
		l->bias[o] = (float)tensor_get(&b->t, o);
	read_weights(l, &w->t, weight);
	return FETTLE_OK;
}

void layer_plain(struct layer *l, const struct node *n, const struct tensor *w)
{
	size_t o, p;

	*l = (struct layer){ .name = n->name };
	find_layout(l, n, w);
	l->w = arena_alloc(&l->arena, layer_weights(l) * sizeof(float));
	for (o = 0; o < layer_outputs(l); o++)
		for (p = 0; p < l->patch; p++)
			l->w[o * l->patch + p] = ((const float *)w->data)[place(l, o, p)];
}

void layer_release(struct layer *l)
{
	arena_release(&l->arena);
	*l = (struct layer){ .name = NULL };
}

static size_t over(size_t a, size_t b)
{
	return a > b ? a - b : 0;
}

/* What is read of the input is what there is, and padding. For a Conv: */
static void pad_conv(struct layer *l, const struct node *n, int dims, int k)
{
	const char *same = node_str(n, "auto_pad");
	const size_t need = (l->out[k] - 1) * l->stride[k] + (l->kernel[k] - 1) * l->dilation[k] + 1;

	l->pad[k] = attribute(n, "pads", dims, k, 0, 0);
	if (same && strncmp(same, "SAME", 4) == 0)
		l->pad[k] = (over(need, l->in[k]) + (strcmp(same, "SAME_LOWER") == 0)) / 2;
	l->pad_end[k] = over(need, l->in[k] + l->pad[k]);
}

/* A ConvTranspose's pads are what it takes off the convolution's output where only the kernel's edge reaches. */
static void pad_transposed(struct layer *l, const struct node *n, int dims, int k)
{
	const char *same = node_str(n, "auto_pad");
	const size_t reach = (l->kernel[k] - 1) * l->dilation[k];
	size_t pad = attribute(n, "pads", dims, k, 0, 0), all;

	if (same && strncmp(same, "SAME", 4) == 0) {
		all = over(l->in[k] + attribute(n, "output_padding", dims, k, 0, 0) + reach, l->out[k]);
		pad = strcmp(same, "SAME_UPPER") == 0 ? all / 2 : all - all / 2;
	}
	l->pad[k] = over(reach, pad);
	l->pad_end[k] = over(l->out[k] + reach, l->in[k] + l->pad[k]);
}

enum fettle_status layer_shape(struct layer *l, const struct node *n, const struct tensor *x,
			       const struct tensor *y, struct err *err)
{
	const int dims = x->rank - 2;
	int k;

	for (k = 0; k < LAYER_DIMS; k++) {
		l->in[k] = l->out[k] = l->stride[k] = l->dilation[k] = l->spread[k] = 1;
		l->pad[k] = l->pad_end[k] = 0;
	}
	if (l->is_matrix && x->rank > 0 && y->rank > 0 && (size_t)x->dims[x->rank - 1] == l->ins &&
	    (size_t)y->dims[y->rank - 1] == l->outs)
		return FETTLE_OK;
	if (l->is_matrix || dims < 1 || dims > LAYER_DIMS || y->rank != x->rank ||
	    (size_t)x->dims[1] != l->groups * l->ins || (size_t)y->dims[1] != layer_outputs(l))
		return fail(err, FETTLE_INVALID,
			    "cannot fine-tune op '%s': its input has an unexpected shape", l->name);
	for (k = LAYER_DIMS - dims; k < LAYER_DIMS; k++) {
		l->in[k] = (size_t)x->dims[k + x->rank - LAYER_DIMS];
		l->out[k] = (size_t)y->dims[k + x->rank - LAYER_DIMS];
		*(l->turned ? &l->spread[k] : &l->stride[k]) = attribute(n, "strides", dims, k, 0, 1);
		l->dilation[k] = attribute(n, "dilations", dims, k, 0, 1);
		l->in[k] = (l->in[k] - 1) * l->spread[k] + 1;
		(l->turned ? pad_transposed : pad_conv)(l, n, dims, k);
	}
	return FETTLE_OK;
}

size_t layer_inputs(const struct layer *l, size_t **out)
{
	size_t n[LAYER_DIMS], z, y, x, at = 0;
	int k;

	for (k = 0; k < LAYER_DIMS; k++)
		n[k] = (l->in[k] - 1) / l->spread[k] + 1;
	*out = xcalloc(layer_product(n), sizeof(size_t));
	for (z = 0; z < n[0]; z++)
		for (y = 0; y < n[1]; y++)
			for (x = 0; x < n[2]; x++)
				(*out)[at++] = (z * l->spread[0] * l->in[1] + y * l->spread[1]) * l->in[2] +
					       x * l->spread[2];
	return at;
}

bool layer_biases_fit(const struct layer *l)
{
	size_t o;

	for (o = 0; o < layer_outputs(l); o++)
		if (!(fabs((double)l->bias[o] + l->shift[o]) <=
		      2.1e9 * (double)l->input.scale * (double)l->scale[o]))
			return false;
	return true;
}

void layer_store(const struct layer *l, struct rounding *r, size_t node)
{
	struct rounded new = { .w = *l->start, .n_shift = layer_outputs(l) };
	struct qweight *w = &new.w;
	size_t o, p;

	w->q.data = xmalloc(tensor_bytes(&w->q) + 1);
	w->scale.data = xmalloc(tensor_bytes(&w->scale) + 1);
	for (o = 0; o < layer_outputs(l); o++) {
		size_t channel = l->one_scale ? 0 : o;
		double zero = tensor_get(&w->zero, channel);

		tensor_set(&w->scale, channel, l->scale[o]);
		for (p = 0; p < l->patch; p++)
			tensor_set(&w->q, place(l, o, p), l->level[o * l->patch + p] + zero);
		if (l->shift[o] != 0)
			new.shift = l->shift;
	}
	rounding_set(r, node, &new);
	free(w->q.data);
	free(w->scale.data);
}
