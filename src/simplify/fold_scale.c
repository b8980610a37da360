/* A Mul or Div by one number next to ops with constant weights: the number goes into the weights. So do attention's 1 / sqrt(d),
 * which the runtime only fuses into a MatMul of floats, and the 1 / 255 of images. */
#include "simplify/match.h"

#include <math.h>
#include <string.h>

enum { DEPTH = 6, TAKERS_MAX = 16 }; /* so far away, in ops; in so many weights */

/* a constant of one op's only, to be changed */
static struct init *own_weight(const struct simplifying *s, const struct node *n, size_t i)
{
	struct init *w = i < n->n_in && *n->in[i] ? model_init(s->m, n->in[i]) : NULL;

	return w && w->t.dtype == DT_F32 && w->t.data && graph_only_user(&s->g, n->in[i]) ? w : NULL;
}

static void multiply(struct simplifying *s, struct node *n, size_t i, double by)
{
	const struct init *w = model_init(s->m, n->in[i]);
	const size_t count = (size_t)tensor_count(&w->t);
	const float *from = w->t.data;
	struct tensor t = w->t;
	float *to = t.data = arena_alloc(&s->m->arena, tensor_bytes(&t) + 1);
	size_t k;

	for (k = 0; k < count; k++)
		to[k] = (float)(from[k] * by);
	n->in[i] = model_fresh(s->m, arena_strfmt(&s->m->arena, "%s_scaled", w->name));
	model_add_init(s->m, n->in[i], &t);
}

static bool moves_only(const struct node *n)
{
	return node_is(n, "Transpose") || node_is(n, "Reshape") || node_is(n, "Squeeze") ||
	       node_is(n, "Unsqueeze") || node_is(n, "Flatten");
}

static bool has_weight(const struct node *n)
{
	return node_is(n, "Conv") || node_is(n, "MatMul") || node_is(n, "Gemm");
}

/* 1 + Erf or Tanh: what multiplies with it is a GELU, which the runtime fuses with its constants */
static bool is_gelu_gate(const struct simplifying *s, const char *value)
{
	const struct node *add = graph_producer(&s->g, value), *n;
	size_t i;

	for (i = 0; add && node_is(add, "Add") && i < add->n_in; i++) {
		n = graph_producer(&s->g, add->in[i]);
		if (n && (node_is(n, "Erf") || node_is(n, "Tanh")))
			return true;
	}
	return false;
}

static bool makes_gelu(const struct simplifying *s, const struct node *n)
{
	return node_is(n, "Mul") && n->n_in == 2 && (is_gelu_gate(s, n->in[0]) || is_gelu_gate(s, n->in[1]));
}

/* One factor on its way down, and the ops whose weights can take it. */
struct fold {
	struct simplifying *s;
	double by;
	struct node *takers[TAKERS_MAX];
	size_t n;
};

static bool fold_down(struct fold *f, const char *value, int depth);

/* false: it has one already, by another way */
static bool add_taker(struct fold *f, struct node *n)
{
	size_t i;

	for (i = 0; i < f->n; i++)
		if (f->takers[i] == n)
			return false;
	if (f->n == TAKERS_MAX)
		return false;
	f->takers[f->n++] = n;
	return true;
}

static bool reader_takes(struct fold *f, struct node *n, const char *value, int depth)
{
	struct simplifying *s = f->s;

	if (has_weight(n))
		return strcmp(n->in[0], value) == 0 && own_weight(s, n, 1) &&
		       (n->n_in < 3 || strcmp(n->in[2], value) != 0) && add_taker(f, n);
	if (((moves_only(n) || node_is(n, "GlobalAveragePool") || node_is(n, "AveragePool")) &&
	     strcmp(n->in[0], value) == 0) ||
	    (f->by > 0 && (node_is(n, "Relu") || (node_is(n, "MaxPool") && n->n_out == 1))))
		return fold_down(f, n->out[0], depth - 1);
	if (node_is(n, "Mul") && n->n_in == 2 && !makes_gelu(s, n))
		return fold_down(f, n->out[0], depth - 1);
	return false;
}

/* Can all that read the value take it into their weights? They are f->takers then. */
static bool fold_down(struct fold *f, const char *value, int depth)
{
	const struct graph_index *g = &f->s->g;
	const size_t v = graph_value(g, value);
	size_t i;

	if (!depth || !can_redirect(f->s, value) || g->first[v] == g->first[v + 1])
		return false;
	for (i = g->first[v]; i < g->first[v + 1]; i++)
		if (!reader_takes(f, f->s->m->nodes.v[g->uses[i]], value, depth))
			return false;
	return true;
}

/* into the weights of what makes the value */
static bool fold_up(struct simplifying *s, const char *value, double by, bool really, int depth)
{
	struct node *n = inner(s, value);
	size_t i;

	if (!n || !depth)
		return false;
	if (moves_only(n))
		return fold_up(s, n->in[0], by, really, depth - 1);
	if (node_is(n, "Add") && n->n_in == 2) {
		for (i = 0; i < 2; i++)
			if (own_weight(s, n, i) && fold_up(s, n->in[1 - i], by, really, depth - 1)) {
				if (really)
					multiply(s, n, i, by);
				return true;
			}
		return false;
	}
	if (node_is(n, "MatMul") && !model_init(s->m, n->in[0]) && !model_init(s->m, n->in[1]))
		return fold_up(s, n->in[0], by, really, depth - 1);
	if (!has_weight(n) || !own_weight(s, n, 1) || (n->n_in > 2 && *n->in[2] && !own_weight(s, n, 2)))
		return false;
	for (i = 1; really && i < n->n_in; i++)
		if (*n->in[i])
			multiply(s, n, i, by);
	return true;
}

static bool apply(struct simplifying *s, struct node *n)
{
	struct fold f = { .s = s };
	const struct node *maker;
	const char *x = NULL;
	double by = 0;
	size_t i;

	if (node_is(n, "Mul"))
		x = scalar_operand(s, n, &by);
	else if (node_is(n, "Div") && !model_init(s->m, n->in[0]) && is_scalar(s, n->in[1], n->in[0], &by)) {
		x = n->in[0];
		by = 1 / by;
	}
	if (!x || !isfinite(by) || by == 0 || !is_f32(s, n->out[0]) || !can_redirect(s, n->out[0]))
		return false;
	maker = graph_producer(&s->g, x);
	if (maker && makes_gelu(s, maker))
		return false;
	f.by = by;
	if (fold_down(&f, n->out[0], DEPTH))
		for (i = 0; i < f.n; i++)
			multiply(s, f.takers[i], 1, by);
	else if (fold_up(s, x, by, false, DEPTH))
		fold_up(s, x, by, true, DEPTH);
	else
		return false;
	redirect(s, n->out[0], x);
	return true;
}

const struct simplification simplification_fold_scale = {
	.name = "fold_scale",
	.summary = "Mul or Div by one number: into the weights before or after it",
	.apply = apply,
};
