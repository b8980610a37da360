/*
 * Shapes that are computed at run time from what is known before: Shape, Gather, Concat and the like around a dimension that
 * never changes. They become constants, and so does the shape of a Reshape in which one dimension stays open. After that the
 * runtime knows the shapes of what follows, and fuses more.
 */
#include "simplify/match.h"

#include <string.h>

enum { LENGTH_MAX = TENSOR_RANK_MAX, CHAIN_MAX = 24 };

/* A vector or scalar of integers, as far as its elements are known. */
struct list {
	size_t n;
	bool scalar;
	struct element {
		bool known;
		int64_t value;
		const char *of; /* not known: it is this value's dimension `axis`; NULL: something else */
		int axis;
	} v[LENGTH_MAX];
};

static bool read_list(const struct simplifying *s, const char *name, struct list *out, int chain);

static bool from_constant(const struct init *w, struct list *out)
{
	size_t i;

	if ((w->t.dtype != DT_S64 && w->t.dtype != DT_S32) || !w->t.data || w->t.rank > 1 ||
	    tensor_count(&w->t) > LENGTH_MAX)
		return false;
	out->scalar = w->t.rank == 0;
	out->n = (size_t)tensor_count(&w->t);
	for (i = 0; i < out->n; i++)
		out->v[i] = (struct element){ .known = true, .value = (int64_t)tensor_get(&w->t, i) };
	return true;
}

/* a bound of a slice, as Python counts */
static int64_t bound(int64_t i, int64_t n)
{
	i = i < 0 ? i + n : i;
	return i < 0 ? 0 : i > n ? n : i;
}

static bool from_shape(const struct simplifying *s, const struct node *n, struct list *out)
{
	const struct init *w = model_init(s->m, n->in[0]);
	const struct value *v = w ? NULL : model_value(s->m, n->in[0]);
	const struct tensor *t = w ? &w->t : v ? &v->type : NULL;
	int64_t i, end;

	if (!t || t->rank < 0)
		return false;
	i = bound(node_int(n, "start", 0), t->rank);
	end = bound(node_int(n, "end", t->rank), t->rank);
	for (out->n = 0; i < end; i++)
		out->v[out->n++] = (struct element){
			.known = t->dims[i] >= 0, .value = t->dims[i], .of = n->in[0], .axis = (int)i
		};
	out->scalar = false;
	return true;
}

static bool from_gather(const struct simplifying *s, const struct node *n, struct list *out, int chain)
{
	struct list data, at;
	size_t i;

	if (node_int(n, "axis", 0) != 0 || !read_list(s, n->in[0], &data, chain) || data.scalar ||
	    !read_list(s, n->in[1], &at, chain))
		return false;
	*out = (struct list){ .n = at.n, .scalar = at.scalar };
	for (i = 0; i < at.n; i++) {
		int64_t k = at.v[i].value < 0 ? at.v[i].value + (int64_t)data.n : at.v[i].value;

		if (!at.v[i].known || k < 0 || k >= (int64_t)data.n)
			return false;
		out->v[i] = data.v[k];
	}
	return true;
}

/* one number that an input, or before opset 10 an attribute, of a Slice gives */
static bool slice_number(const struct simplifying *s, const struct node *n, size_t input, const char *attr,
			 int64_t otherwise, int64_t *out, int chain)
{
	struct list l;
	size_t count;
	const int64_t *v = node_ints(n, attr, &count);

	*out = otherwise;
	if (v) {
		*out = v[0];
		return count == 1;
	}
	if (input >= n->n_in || !*n->in[input])
		return true;
	if (!read_list(s, n->in[input], &l, chain) || l.n != 1 || !l.v[0].known)
		return false;
	*out = l.v[0].value;
	return true;
}

static bool from_slice(const struct simplifying *s, const struct node *n, struct list *out, int chain)
{
	struct list data;
	int64_t start, end, axis, step;

	if (!read_list(s, n->in[0], &data, chain) || data.scalar ||
	    !slice_number(s, n, 1, "starts", 0, &start, chain) ||
	    !slice_number(s, n, 2, "ends", 0, &end, chain) ||
	    !slice_number(s, n, 3, "axes", 0, &axis, chain) ||
	    !slice_number(s, n, 4, "steps", 1, &step, chain) || (axis != 0 && axis != -1) || step != 1)
		return false;
	start = bound(start, (int64_t)data.n);
	end = bound(end, (int64_t)data.n);
	*out = (struct list){ .n = end > start ? (size_t)(end - start) : 0 };
	memcpy(out->v, data.v + start, out->n * sizeof(*out->v));
	return true;
}

static bool from_concat(const struct simplifying *s, const struct node *n, struct list *out, int chain)
{
	struct list part;
	size_t i;

	*out = (struct list){ .n = 0 };
	for (i = 0; i < n->n_in; i++) {
		if (!read_list(s, n->in[i], &part, chain) || part.scalar || out->n + part.n > LENGTH_MAX)
			return false;
		memcpy(out->v + out->n, part.v, part.n * sizeof(*part.v));
		out->n += part.n;
	}
	return true;
}

static bool compute(const struct node *n, int64_t a, int64_t b, int64_t *out)
{
	const int64_t far = (int64_t)1 << 31;

	if (a <= -far || a >= far || b <= -far || b >= far || (node_is(n, "Div") && b == 0))
		return false;
	*out = node_is(n, "Add") ? a + b : node_is(n, "Sub") ? a - b : node_is(n, "Mul") ? a * b : a / b;
	return true;
}

static bool from_arithmetic(const struct simplifying *s, const struct node *n, struct list *out, int chain)
{
	struct list a, b;
	size_t i;

	if (n->n_in != 2 || !read_list(s, n->in[0], &a, chain) || !read_list(s, n->in[1], &b, chain) ||
	    (a.n != b.n && a.n != 1 && b.n != 1))
		return false;
	*out = (struct list){ .n = a.n == 1 ? b.n : a.n, .scalar = a.scalar && b.scalar };
	for (i = 0; i < out->n; i++) {
		const struct element *x = &a.v[a.n == 1 ? 0 : i], *y = &b.v[b.n == 1 ? 0 : i];

		out->v[i].known = x->known && y->known && compute(n, x->value, y->value, &out->v[i].value);
	}
	return true;
}

static bool read_list(const struct simplifying *s, const char *name, struct list *out, int chain)
{
	const struct init *w = model_init(s->m, name);
	const struct node *n = w ? NULL : graph_producer(&s->g, name);
	int64_t to;

	if (w)
		return from_constant(w, out);
	if (!n || !chain--)
		return false;
	if (node_is(n, "Shape"))
		return from_shape(s, n, out);
	if (node_is(n, "Gather"))
		return from_gather(s, n, out, chain);
	if (node_is(n, "Slice"))
		return from_slice(s, n, out, chain);
	if (node_is(n, "Concat"))
		return from_concat(s, n, out, chain);
	if (node_is(n, "Add") || node_is(n, "Sub") || node_is(n, "Mul") || node_is(n, "Div"))
		return from_arithmetic(s, n, out, chain);
	to = node_int(n, "to", 0);
	if (node_is(n, "Cast")
		    ? to != DT_S64 && to != DT_S32
		    : !node_is(n, "Identity") && !node_is(n, "Unsqueeze") && !node_is(n, "Squeeze"))
		return false;
	if (!read_list(s, n->in[0], out, chain))
		return false;
	if (node_is(n, "Unsqueeze")) {
		if (!out->scalar)
			return false;
		out->scalar = false;
	} else if (node_is(n, "Squeeze")) {
		if (out->scalar || out->n != 1)
			return false;
		out->scalar = true;
	}
	return true;
}

static const char *add_constant(struct simplifying *s, const char *name, const struct list *l,
				enum dtype dtype)
{
	struct arena *a = &s->m->arena;
	struct tensor t = { .dtype = dtype, .rank = !l->scalar, .dims = { (int64_t)l->n } };
	size_t i;

	t.data = arena_alloc(a, tensor_bytes(&t) + 1);
	for (i = 0; i < l->n; i++)
		tensor_set(&t, i, (double)l->v[i].value);
	name = model_fresh(s->m, arena_strfmt(a, "%s_known", name));
	model_add_init(s->m, name, &t);
	return name;
}

/* the shape in numbers, with 0 for a dimension that stays and -1 for one that is left over; false: too little is known */
static bool settle_shape(const struct node *n, struct list *l)
{
	size_t i, open = 0, kept = 0, rest = 0;

	for (i = 0; i < l->n; i++) {
		struct element *e = &l->v[i];

		if (e->known && e->value < -1)
			return false;
		kept += e->known && e->value == 0;
		rest += e->known && e->value == -1;
		open += !e->known;
	}
	for (i = 0; i < l->n && open + rest > 1; i++) { /* otherwise one -1 says it all */
		struct element *e = &l->v[i];

		if (e->known || !e->of || strcmp(e->of, n->in[0]) != 0 || e->axis != (int)i)
			continue;
		*e = (struct element){ .known = true, .value = 0 };
		open--;
		kept++;
	}
	if (open + rest > 1 || (kept && node_int(n, "allowzero", 0)))
		return false;
	for (i = 0; i < l->n; i++)
		if (!l->v[i].known)
			l->v[i].value = -1;
	return true;
}

static bool is_integer(const struct simplifying *s, const char *value)
{
	const struct value *v = model_value(s->m, value);

	return v && (v->type.dtype == DT_S64 || v->type.dtype == DT_S32);
}

static bool makes_shape(const struct simplifying *s, const struct node *n)
{
	static const char *const ops[] = { "Shape",     "Gather", "Slice", "Concat", "Cast", "Squeeze",
					   "Unsqueeze", "Add",    "Sub",   "Mul",    "Div" };
	size_t i;

	for (i = 0; i < ARRAY_LEN(ops); i++)
		if (node_is(n, ops[i]))
			return is_integer(s, n->out[0]);
	return false;
}

/* Does something other than a longer chain of the kind read it? */
static bool is_end(const struct simplifying *s, const char *value)
{
	const size_t v = graph_value(&s->g, value);
	size_t i;

	for (i = s->g.first[v]; i < s->g.first[v + 1]; i++) {
		const struct node *n = s->m->nodes.v[s->g.uses[i]];

		if (!makes_shape(s, n) && !node_is(n, "Reshape"))
			return true;
	}
	return false;
}

static bool apply(struct simplifying *s, struct node *n)
{
	struct list l;
	size_t i;

	infer_output(s, n); /* nodes are visited in order */
	if (node_is(n, "Reshape") && n->n_in == 2 && !model_init(s->m, n->in[1])) {
		if (!read_list(s, n->in[1], &l, CHAIN_MAX) || l.scalar || !settle_shape(n, &l))
			return false;
		n->in[1] = add_constant(s, n->in[1], &l, DT_S64);
		return true;
	}
	if (!makes_shape(s, n) || model_init(s->m, n->in[0]) || !can_redirect(s, n->out[0]) ||
	    !is_end(s, n->out[0]) || !read_list(s, n->out[0], &l, CHAIN_MAX))
		return false;
	for (i = 0; i < l.n; i++)
		if (!l.v[i].known)
			return false;
	redirect(s, n->out[0], add_constant(s, n->out[0], &l, model_value(s->m, n->out[0])->type.dtype));
	return true;
}

const struct simplification simplification_constant_shapes = {
	.name = "constant_shapes",
	.summary = "shapes computed at run time that are known before: constants",
	.apply = apply,
};
