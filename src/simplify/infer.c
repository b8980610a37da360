/* The shapes of values as rewriting goes on: the runtime's own inference stops at a Reshape whose shape is computed, and goes
 * on after it only in the next session. Covers the ops between two such in a transformer. */
#include "simplify/match.h"

#include <string.h>

static const struct tensor *type_of(const struct simplifying *s, const char *name)
{
	const struct init *w = *name ? model_init(s->m, name) : NULL;
	const struct value *v = w || !*name ? NULL : model_value(s->m, name);
	const struct tensor *t = w ? &w->t : v ? &v->type : NULL;

	return t && t->rank >= 0 ? t : NULL;
}

static bool is_one_of(const struct node *n, const char *const *ops, size_t count)
{
	size_t i;

	for (i = 0; i < count; i++)
		if (node_is(n, ops[i]))
			return true;
	return false;
}

/* the dimensions before the last `but` of two shapes, joined as NumPy does */
static bool broadcast(const struct tensor *a, const struct tensor *b, int but, struct tensor *out)
{
	int i;

	out->rank = a->rank > b->rank ? a->rank : b->rank;
	for (i = but; i < out->rank; i++) {
		const int64_t x = i < a->rank ? a->dims[a->rank - 1 - i] : 1;
		const int64_t y = i < b->rank ? b->dims[b->rank - 1 - i] : 1;

		/* one that is not known is 1 or equal to the other */
		out->dims[out->rank - 1 - i] = x == 1 ? y : y == 1 || x > 1 ? x : y > 1 ? y : -1;
		if (x > 1 && y > 1 && x != y)
			return false;
	}
	return true;
}

static bool infer_matmul(const struct tensor *a, const struct tensor *b, struct tensor *out)
{
	if (a->rank < 2 || b->rank < 2 || !broadcast(a, b, 2, out))
		return false;
	out->dims[out->rank - 2] = a->dims[a->rank - 2];
	out->dims[out->rank - 1] = b->dims[b->rank - 1];
	return true;
}

static bool infer_transpose(const struct node *n, const struct tensor *a, struct tensor *out)
{
	size_t count;
	const int64_t *perm = node_ints(n, "perm", &count);
	int i;

	if (!perm || (int)count != a->rank)
		return false;
	out->rank = a->rank;
	for (i = 0; i < a->rank; i++) {
		if (perm[i] < 0 || perm[i] >= a->rank)
			return false;
		out->dims[i] = a->dims[perm[i]];
	}
	return true;
}

static bool infer_reshape(const struct node *n, const struct tensor *a, const struct tensor *shape,
			  struct tensor *out)
{
	int64_t total = tensor_count(a), known = 1;
	int i, rest = -1;

	if (shape->dtype != DT_S64 || shape->rank != 1 || !shape->data || shape->dims[0] > TENSOR_RANK_MAX ||
	    node_int(n, "allowzero", 0))
		return false;
	out->rank = (int)shape->dims[0];
	for (i = 0; i < out->rank; i++) {
		const int64_t d = (int64_t)tensor_get(shape, (size_t)i);

		if (d < -1 || (d == 0 && i >= a->rank))
			return false;
		out->dims[i] = d == 0 ? a->dims[i] : d;
		rest = d == -1 ? i : rest;
		known = out->dims[i] < 0 ? (d == -1 ? known : 0) : known * out->dims[i];
	}
	if (rest >= 0 && total > 0 && known > 0)
		out->dims[rest] = total / known;
	return true;
}

static bool infer_mean(const struct node *n, const struct tensor *a, struct tensor *out)
{
	size_t count, i;
	const int64_t *axes = node_ints(n, "axes", &count);

	if (!axes || !node_int(n, "keepdims", 1))
		return false;
	*out = *a;
	for (i = 0; i < count; i++) {
		const int64_t k = axes[i] < 0 ? axes[i] + a->rank : axes[i];

		if (k < 0 || k >= a->rank)
			return false;
		out->dims[k] = 1;
	}
	return true;
}

static bool infer(const struct simplifying *s, const struct node *n, struct tensor *out)
{
	static const char *const same[] = {
		"Relu",    "Sqrt", "Erf",       "Tanh",       "Sigmoid",
		"Softmax", "Neg",  "Exp",       "Clip",       "HardSigmoid",
		"Gelu",    "Cast", "HardSwish", "Reciprocal", "LayerNormalization"
	};
	static const char *const two[] = { "Add", "Sub", "Mul", "Div", "Pow" };
	const struct tensor *a = n->n_in > 0 ? type_of(s, n->in[0]) : NULL;
	const struct tensor *b = n->n_in > 1 ? type_of(s, n->in[1]) : NULL;

	if (!a)
		return false;
	if (is_one_of(n, same, ARRAY_LEN(same))) {
		*out = *a;
		return true;
	}
	if (node_is(n, "Transpose"))
		return infer_transpose(n, a, out);
	if (node_is(n, "ReduceMean"))
		return infer_mean(n, a, out);
	if (!b)
		return false;
	if (is_one_of(n, two, ARRAY_LEN(two)))
		return broadcast(a, b, 0, out);
	return node_is(n, "MatMul")    ? infer_matmul(a, b, out)
	       : node_is(n, "Reshape") ? infer_reshape(n, a, b, out)
				       : false;
}

static int open_dims(const struct tensor *t)
{
	int i, n = 0;

	for (i = 0; i < t->rank; i++)
		n += t->dims[i] < 0;
	return n;
}

void infer_output(struct simplifying *s, const struct node *n)
{
	const struct value *old = n->n_out == 1 ? model_value(s->m, n->out[0]) : NULL;
	const struct tensor *a = n->n_in ? type_of(s, n->in[0]) : NULL;
	struct tensor t = { .rank = 0 };
	struct value v = { .name = n->n_out ? n->out[0] : "" };

	if (n->n_out != 1 || !a || (old && old->type.rank >= 0 && !open_dims(&old->type)))
		return;
	if (!infer(s, n, &t))
		return;
	if (old && old->type.rank >= 0 &&
	    (old->type.rank != t.rank || open_dims(&old->type) <= open_dims(&t)))
		return;
	if (old)
		v = *old;
	else if (node_is(n, "Cast"))
		return;
	else
		t.dtype = a->dtype;
	v.type.rank = t.rank;
	memcpy(v.type.dims, t.dims, sizeof(t.dims));
	if (!old)
		v.type.dtype = t.dtype;
	model_declare(s->m, &v);
}
