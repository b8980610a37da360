#include "simplify/match.h"

#include <math.h>
#include <string.h>

bool is_f32(const struct simplifying *s, const char *value)
{
	const struct init *w = model_init(s->m, value);
	const struct value *v = w ? NULL : model_value(s->m, value);

	return w ? w->t.dtype == DT_F32 : v && v->type.dtype == DT_F32;
}

int rank_of(const struct simplifying *s, const char *value)
{
	const struct init *w = model_init(s->m, value);
	const struct value *v = w ? NULL : model_value(s->m, value);

	return w ? w->t.rank : v ? v->type.rank : -1;
}

bool is_scalar(const struct simplifying *s, const char *name, const char *with, double *value)
{
	const struct init *w = model_init(s->m, name);

	if (!w || w->t.dtype != DT_F32 || !w->t.data || tensor_count(&w->t) != 1)
		return false;
	if (w->t.rank > 0 && w->t.rank > rank_of(s, with))
		return false;
	*value = tensor_get(&w->t, 0);
	return true;
}

bool about(double a, double b)
{
	return fabs(a - b) <= 4e-7 * fabs(b);
}

struct node *inner(const struct simplifying *s, const char *value)
{
	return graph_only_user(&s->g, value) ? graph_producer(&s->g, value) : NULL;
}

struct node *inner_is(const struct simplifying *s, const char *value, const char *op)
{
	struct node *n = inner(s, value);

	return n && node_is(n, op) ? n : NULL;
}

const char *other_operand(const struct node *n, const char *one)
{
	if (n->n_in != 2)
		return NULL;
	return strcmp(n->in[0], one) == 0 ? n->in[1] : strcmp(n->in[1], one) == 0 ? n->in[0] : NULL;
}

const char *scalar_operand(const struct simplifying *s, const struct node *n, double *value)
{
	size_t i;

	for (i = 0; i < 2 && n->n_in == 2; i++)
		if (!model_init(s->m, n->in[1 - i]) && is_scalar(s, n->in[i], n->in[1 - i], value))
			return n->in[1 - i];
	return NULL;
}

static void add_factor(struct product *p, const char *value)
{
	if (p->n < FACTORS_MAX)
		p->of[p->n] = value;
	p->n++;
}

static void take_apart(const struct simplifying *s, const struct node *n, struct product *p);

static void take_factor(const struct simplifying *s, const char *value, const char *with, struct product *p)
{
	struct node *maker = inner(s, value);
	double c;

	if (is_scalar(s, value, with, &c))
		p->constant *= c;
	else if (maker && (node_is(maker, "Mul") || node_is(maker, "Div") || node_is(maker, "Pow")))
		take_apart(s, maker, p);
	else
		add_factor(p, value);
}

static void take_apart(const struct simplifying *s, const struct node *n, struct product *p)
{
	double c;

	if (node_is(n, "Mul") && n->n_in == 2) {
		take_factor(s, n->in[0], n->in[1], p);
		take_factor(s, n->in[1], n->in[0], p);
	} else if (node_is(n, "Div") && is_scalar(s, n->in[1], n->in[0], &c) && c != 0) {
		p->constant /= c;
		take_factor(s, n->in[0], n->in[1], p);
	} else if (node_is(n, "Pow") && is_scalar(s, n->in[1], n->in[0], &c) && (c == 2 || c == 3)) {
		while (c-- > 0)
			add_factor(p, n->in[0]);
	} else {
		add_factor(p, n->out[0]);
	}
}

void product_of(const struct simplifying *s, const struct node *n, struct product *out)
{
	*out = (struct product){ .constant = 1 };
	take_apart(s, n, out);
}

void product_of_value(const struct simplifying *s, const char *value, struct product *out)
{
	const struct node *n = inner(s, value);

	*out = (struct product){ .constant = 1 };
	if (n)
		take_apart(s, n, out);
	else
		add_factor(out, value);
}

size_t product_count(const struct product *p, const char *value)
{
	size_t i, n = 0;

	for (i = 0; i < p->n && i < FACTORS_MAX; i++)
		n += strcmp(p->of[i], value) == 0;
	return n;
}

struct node *product_around(const struct simplifying *s, const char *value, const char *times,
			    struct product *out)
{
	struct node *best = NULL, *n = graph_only_user(&s->g, value);

	for (; n && (node_is(n, "Mul") || node_is(n, "Div")); n = graph_only_user(&s->g, n->out[0])) {
		struct product p;
		size_t with;

		product_of(s, n, &p);
		with = times ? product_count(&p, times) : 0;
		if (p.n != 1 + with || with > 1 || product_count(&p, value) != 1)
			break;
		best = n;
		*out = p;
	}
	return best;
}

static size_t place_of(const struct model *m, const struct node *n)
{
	size_t i = 0;

	while (m->nodes.v[i] != n)
		i++;
	return i;
}

struct node *put_before(struct simplifying *s, const struct node *before, const char *op, const char *a,
			const char *b)
{
	struct model *m = s->m;
	struct node *n = model_new_node(m, op, "", *before->name ? before->name : op, b ? 2 : 1, 1);
	size_t at = place_of(m, before);

	n->in[0] = a;
	if (b)
		n->in[1] = b;
	n->out[0] = model_fresh(m, arena_strfmt(&m->arena, "%s_output", n->name));
	VEC_PUSH(&m->nodes, n);
	memmove(m->nodes.v + at + 1, m->nodes.v + at, (m->nodes.n - 1 - at) * sizeof(*m->nodes.v));
	m->nodes.v[at] = n;
	return n;
}

void become(struct simplifying *s, struct node *n, const char *op, const char *a, const char *b)
{
	n->op = op;
	n->in = arena_alloc(&s->m->arena, 2 * sizeof(*n->in));
	n->in[0] = a;
	n->in[1] = b;
	n->n_in = b ? 2 : 1;
	n->n_attrs = 0;
}

const char *new_scalar(struct simplifying *s, const struct node *n, double value)
{
	struct model *m = s->m;
	float *data = arena_alloc(&m->arena, sizeof(*data));
	const char *name = model_fresh(m, arena_strfmt(&m->arena, "%s_constant", n->out[0]));

	*data = (float)value;
	model_add_init(m, name, &(struct tensor){ .dtype = DT_F32, .data = data });
	return name;
}

bool can_redirect(const struct simplifying *s, const char *from)
{
	const size_t v = graph_value(&s->g, from);
	size_t i, k;

	if (s->g.output[v])
		return false;
	for (i = s->g.first[v]; i < s->g.first[v + 1]; i++) {
		const struct node *n = s->m->nodes.v[s->g.uses[i]];

		for (k = 0; k < n->n_captured; k++)
			if (strcmp(n->captured[k], from) == 0)
				return false;
	}
	return true;
}

void redirect(struct simplifying *s, const char *from, const char *to)
{
	const size_t v = graph_value(&s->g, from);
	size_t i, k;

	for (i = s->g.first[v]; i < s->g.first[v + 1]; i++) {
		struct node *n = s->m->nodes.v[s->g.uses[i]];

		for (k = 0; k < n->n_in; k++)
			if (strcmp(n->in[k], from) == 0)
				n->in[k] = to;
	}
}
