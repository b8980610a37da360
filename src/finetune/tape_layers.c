/* Steps of a tape that multiply: layers with a constant weight, and matrices that are both computed. */
#include <string.h>

#include "finetune/tape_op.h"

/* ---- layers ---- */

/* to the layer's layout, [place][channel] for each unit */
static void to_layer(const float *from, float *to, size_t units, size_t channels, size_t places)
{
	size_t u, c, p;

	for (u = 0; u < units; u++, from += channels * places, to += channels * places)
		for (p = 0; p < places; p++)
			for (c = 0; c < channels; c++)
				to[p * channels + c] = from[c * places + p];
}

/* and back; added up */
static void add_from_layer(const float *from, float *to, size_t units, size_t channels, size_t places)
{
	size_t u, c, p;

	for (u = 0; u < units; u++, from += channels * places, to += channels * places)
		for (c = 0; c < channels; c++)
			for (p = 0; p < places; p++)
				to[c * places + p] += from[p * channels + c];
}

static const char *not_possible(const struct tape_step *s)
{
	const struct node *n = s->node;
	const int rank = s->in[1]->t.rank;

	if (!step_has_constant(s, 1) || (step_has(s, 2) && !s->in[2]->constant))
		return "has a weight or a bias that is computed";
	if (op_convolves(n) ? rank < 3 || rank > 5 : rank != 2)
		return "has a weight of an unexpected shape";
	if (node_is(n, "Gemm") &&
	    (node_int(n, "transA", 0) || node_float(n, "alpha", 1) != 1 || node_float(n, "beta", 1) != 1))
		return "is transposed or multiplied";
	return NULL;
}

/* what the model has */
static void read_model(struct tape_step *s, const struct tape *t)
{
	struct tape_layer *l = s->layer;
	size_t o;

	for (o = 0; o < layer_outputs(&l->l) && step_has(s, 2); o++)
		l->bias[o] = cell_get(s->in[2], o % cell_count(s->in[2]));
	memcpy(l->math->w, l->l.w, layer_weights(&l->l) * sizeof(float));
	l->learns = map_get(&t->learns, s->node->out[0]) != MAP_NONE;
}

static enum fettle_status layer_prepare(struct tape *t, struct tape_step *s, const char **why,
					struct err *err)
{
	struct tape_layer *l;
	enum fettle_status st;
	size_t outputs;

	*why = not_possible(s);
	if (*why)
		return FETTLE_OK;
	l = s->layer = arena_alloc(&t->arena, sizeof(*l));
	VEC_PUSH(&t->layers, l);
	layer_plain(&l->l, s->node, &s->in[1]->t);
	st = layer_shape(&l->l, s->node, &s->in[0]->t, &s->out->t, err);
	if (!st)
		st = math_new(&l->math, &l->l, cell_count(s->in[0]) / layer_x_size(&l->l), err);
	if (!st && s->in[0]->g)
		st = math_want_dx(l->math, &l->l, err);
	if (st)
		return st;
	outputs = layer_outputs(&l->l);
	l->shift = arena_alloc(&t->arena, outputs * sizeof(float));
	l->bias = arena_alloc(&t->arena, outputs * sizeof(float));
	read_model(s, t);
	return FETTLE_OK;
}

static enum fettle_status layer_forward(struct tape_step *s, struct err *err)
{
	struct tape_layer *t = s->layer;
	const struct layer *l = &t->l;
	struct layer_math *m = t->math;
	enum fettle_status st;
	size_t o;

	to_layer(cell_data(s->in[0]), m->x, m->n, l->groups * l->ins, layer_product(l->in));
	for (o = 0; o < layer_outputs(l); o++)
		m->b[o] = t->bias[o] + t->shift[o];
	st = math_residual(m, &(struct math_units){ m->x, m->target }, err); /* the target is nought */
	if (st)
		return st;
	memset(cell_data(s->out), 0, cell_count(s->out) * sizeof(float));
	add_from_layer(m->y, cell_data(s->out), m->n, layer_outputs(l), layer_positions(l));
	return FETTLE_OK;
}

static enum fettle_status layer_backward(struct tape_step *s, struct err *err)
{
	const struct layer *l = &s->layer->l;
	struct layer_math *m = s->layer->math;
	enum fettle_status st = FETTLE_OK;

	to_layer(s->out->g, m->y, m->n, layer_outputs(l), layer_positions(l));
	if (s->layer->learns)
		st = math_gradient(m, err);
	if (st || !s->in[0]->g)
		return st;
	st = math_input_gradient(m, err);
	if (!st)
		add_from_layer(m->dx, s->in[0]->g, m->n, l->groups * l->ins, layer_product(l->in));
	return st;
}

/* ---- products of matrices, many at once: size is rows, columns, inner ---- */

static size_t leading(const struct tensor *t)
{
	size_t n = 1;
	int d;

	for (d = 0; d < t->rank - 2; d++)
		n *= (size_t)t->dims[d];
	return n;
}

static enum fettle_status product_prepare(struct tape *t, struct tape_step *s, const char **why,
					  struct err *err)
{
	const struct tensor *a = &s->in[0]->t, *b = &s->in[1]->t;
	size_t k;

	if (step_has_constant(s, 1) && b->rank == 2)
		return layer_prepare(t, s, why, err);
	for (k = 0; k < 2; k++)
		if (s->in[k]->t.rank < 2 ||
		    (leading(&s->in[k]->t) != leading(&s->out->t) && leading(&s->in[k]->t) != 1))
			*why = "broadcasts in a way of its own";
	if (*why)
		return FETTLE_OK;
	s->size[0] = (size_t)a->dims[a->rank - 2];
	s->size[1] = (size_t)b->dims[b->rank - 1];
	s->size[2] = (size_t)a->dims[a->rank - 1];
	return FETTLE_OK;
}

/* where matrix i of a value begins */
static size_t begins(const struct tape_cell *c, size_t i)
{
	const struct tensor *t = &c->t;

	return leading(t) == 1 ? 0 : i * (size_t)(t->dims[t->rank - 2] * t->dims[t->rank - 1]);
}

static enum fettle_status product_forward(struct tape_step *s, struct err *err)
{
	const size_t n = leading(&s->out->t);
	enum fettle_status st = FETTLE_OK;
	size_t i;

	if (s->layer)
		return layer_forward(s, err);
	memset(cell_data(s->out), 0, cell_count(s->out) * sizeof(float));
	for (i = 0; i < n && !st; i++)
		st = math_product(&(struct math_factors){ s->size[0], s->size[1], s->size[2],
							  cell_data(s->in[0]) + begins(s->in[0], i),
							  cell_data(s->in[1]) + begins(s->in[1], i), false,
							  false },
				  cell_data(s->out) + i * s->size[0] * s->size[1], err);
	return st;
}

static enum fettle_status product_backward(struct tape_step *s, struct err *err)
{
	const size_t n = leading(&s->out->t), rows = s->size[0], columns = s->size[1], inner = s->size[2];
	enum fettle_status st = FETTLE_OK;
	size_t i;

	if (s->layer)
		return layer_backward(s, err);
	for (i = 0; i < n && !st; i++) {
		const float *g = s->out->g + i * rows * columns;
		const size_t a = begins(s->in[0], i), b = begins(s->in[1], i);

		if (s->in[0]->g)
			st = math_product(&(struct math_factors){ rows, inner, columns, g,
								  cell_data(s->in[1]) + b, .b_turned = true },
					  s->in[0]->g + a, err);
		if (!st && s->in[1]->g)
			st = math_product(&(struct math_factors){ inner, columns, rows,
								  cell_data(s->in[0]) + a, g,
								  .a_turned = true },
					  s->in[1]->g + b, err);
	}
	return st;
}

const struct tape_kind tape_layers[] = {
	{ "Conv", layer_prepare, layer_forward, layer_backward },
	{ "Gemm", layer_prepare, layer_forward, layer_backward },
	{ "MatMul", product_prepare, product_forward, product_backward },
	{ NULL, NULL, NULL, NULL },
};
