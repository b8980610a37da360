/*
 * Normalisation by the mean square, a * g / sqrt(mean(a^2) + e), of a value or (LayerNorm) of its distance from the mean. The
 * runtime fuses it where the square is a Pow, the root a Sqrt, and the root divides; others become that.
 */
#include "simplify/match.h"

#include <string.h>

static bool last_axis_mean(const struct simplifying *s, const struct node *n)
{
	const int rank = n->n_in ? rank_of(s, n->in[0]) : -1;
	const struct init *w = n->n_in > 1 && *n->in[1] ? model_init(s->m, n->in[1]) : NULL;
	size_t count;
	const int64_t *axes = node_ints(n, "axes", &count);
	int64_t axis;

	if (!node_is(n, "ReduceMean") || !node_int(n, "keepdims", 1))
		return false;
	if (n->n_in > 1 && (!w || w->t.dtype != DT_S64 || !w->t.data || tensor_count(&w->t) != 1))
		return false;
	if (!w && count != 1)
		return false;
	axis = w ? (int64_t)tensor_get(&w->t, 0) : axes[0];
	return axis == -1 || (rank > 0 && axis == rank - 1);
}

/* the parts of one normalisation */
struct norm {
	struct node *square; /* a * a or a^2 */
	struct node *root;
	const char *a;
	struct node *scale; /* the Mul of a and ... */
	const char *times;  /* ... 1 / root, or 1 / root * g: then this is g; NULL */
};

static bool find_square(const struct simplifying *s, struct node *root, struct norm *out)
{
	const struct node *add, *mean;
	const char *v;
	double c;

	if (node_is(root, "Pow") ? !is_scalar(s, root->in[1], root->in[0], &c) || c != 0.5
				 : !node_is(root, "Sqrt"))
		return false;
	add = inner_is(s, root->in[0], "Add");
	v = add ? scalar_operand(s, add, &c) : NULL;
	mean = v ? inner(s, v) : NULL;
	if (!mean || c < 0 || !last_axis_mean(s, mean))
		return false;
	out->square = inner(s, mean->in[0]);
	if (!out->square || !is_f32(s, out->square->out[0]))
		return false;
	out->root = root;
	out->a = out->square->in[0];
	if (node_is(out->square, "Pow"))
		return is_scalar(s, out->square->in[1], out->a, &c) && c == 2;
	return node_is(out->square, "Mul") && strcmp(out->square->in[1], out->a) == 0;
}

/* the node that reads 1 / root: Reciprocal, or Div of 1 */
static const struct node *inverse(const struct simplifying *s, const struct node *root)
{
	const struct node *n = graph_only_user(&s->g, root->out[0]);
	double one;

	if (n && node_is(n, "Reciprocal"))
		return n;
	return n && node_is(n, "Div") && is_scalar(s, n->in[0], n->in[1], &one) && one == 1 ? n : NULL;
}

/* a * (1 / root), or a * (1 / root * g) */
static bool find_scale(const struct simplifying *s, struct norm *x)
{
	const struct node *inv = inverse(s, x->root);
	struct node *n = inv ? graph_only_user(&s->g, inv->out[0]) : NULL;
	const char *other = n && node_is(n, "Mul") ? other_operand(n, inv->out[0]) : NULL;

	if (!other)
		return false;
	if (model_init(s->m, other)) {
		const char *product = n->out[0];

		x->times = other;
		n = graph_only_user(&s->g, product);
		other = n && node_is(n, "Mul") ? other_operand(n, product) : NULL;
	}
	x->scale = n;
	return other && strcmp(other, x->a) == 0;
}

/*
 * As TensorFlow writes it, with r = g / root: y = x * r + (b - mean * r), where a = x - mean. The same is a * r + b.
 */
static bool find_split_scale(const struct simplifying *s, struct norm *x, struct node **sum,
			     const char **shift)
{
	const struct node *inv = inverse(s, x->root), *sub = graph_producer(&s->g, x->a), *r, *mul[2], *diff;
	const char *rest;
	size_t v, i;

	r = inv ? graph_only_user(&s->g, inv->out[0]) : NULL;
	if (!r || !node_is(r, "Mul") || !sub || !node_is(sub, "Sub"))
		return false;
	x->times = other_operand(r, inv->out[0]);
	v = graph_value(&s->g, r->out[0]);
	if (!x->times || !model_init(s->m, x->times) || s->g.output[v] || graph_n_uses(&s->g, v) != 2)
		return false;
	for (i = 0; i < 2; i++) {
		const struct node *n = s->m->nodes.v[s->g.uses[s->g.first[v] + i]];
		const char *by = node_is(n, "Mul") ? other_operand(n, r->out[0]) : NULL;

		mul[i] = n;
		if (!by || !graph_only_user(&s->g, n->out[0]))
			return false;
		if (strcmp(by, sub->in[0]) == 0 && i) { /* x first, then the mean */
			mul[1] = mul[0];
			mul[0] = n;
		}
	}
	rest = other_operand(mul[1], r->out[0]);
	if (strcmp(other_operand(mul[0], r->out[0]), sub->in[0]) != 0 || strcmp(rest, sub->in[1]) != 0)
		return false;
	diff = graph_only_user(&s->g, mul[1]->out[0]);
	*sum = graph_only_user(&s->g, mul[0]->out[0]);
	if (!diff || !node_is(diff, "Sub") || strcmp(diff->in[1], mul[1]->out[0]) != 0 || !*sum ||
	    !node_is(*sum, "Add") || graph_only_user(&s->g, diff->out[0]) != *sum)
		return false;
	*shift = diff->in[0];
	return model_init(s->m, *shift) != NULL;
}

static bool apply(struct simplifying *s, struct node *n)
{
	struct norm x = { .a = NULL };
	struct node *sum;
	const char *shift, *v;
	bool changed = false;

	if (!find_square(s, n, &x))
		return false;
	if (find_scale(s, &x)) {
		v = x.times ? put_before(s, x.scale, "Div", x.a, n->out[0])->out[0] : NULL;
		become(s, x.scale, v ? "Mul" : "Div", v ? v : x.a, v ? x.times : n->out[0]);
		changed = true;
	} else if (find_split_scale(s, &x, &sum, &shift)) {
		v = put_before(s, sum, "Div", x.a, n->out[0])->out[0];
		become(s, sum, "Add", put_before(s, sum, "Mul", v, x.times)->out[0], shift);
		changed = true;
	} else if (!graph_only_user(&s->g, n->out[0])) {
		return false;
	}
	if (node_is(x.square, "Mul")) {
		become(s, x.square, "Pow", x.a, new_scalar(s, x.square, 2));
		changed = true;
	}
	if (node_is(n, "Pow")) {
		become(s, n, "Sqrt", n->in[0], NULL);
		changed = true;
	}
	return changed;
}

const struct simplification simplification_layer_norm = {
	.name = "layer_norm",
	.summary = "LayerNorm and RMSNorm, however they are written: as the runtime fuses them",
	.apply = apply,
};
