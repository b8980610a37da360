/* GELU, by erf and by tanh, is written in many ways; the runtime fuses few of them. All become one that it does. */
#include "simplify/match.h"

#include <math.h>
#include <string.h>

#define SQRT_HALF 0.70710678118654752
#define TANH_SCALE 0.79788456080286536 /* sqrt(2 / pi) */
#define TANH_CUBE 0.044715

/* n is Erf or Tanh: the Add of 1 after it, and the last node of a * 0.5 * (1 + n) */
struct gate {
	struct node *plus_one, *last;
};

static bool find_gate(const struct simplifying *s, const struct node *n, const char *a, struct gate *out)
{
	struct node *add = graph_only_user(&s->g, n->out[0]);
	struct product p;
	double one;

	if (!add || !node_is(add, "Add") || !scalar_operand(s, add, &one) || one != 1)
		return false;
	out->plus_one = add;
	out->last = product_around(s, add->out[0], a, &p);
	return out->last && p.n == 2 && p.constant == 0.5;
}

/* a constant [[1]] would not be recognised */
static void plain_one(struct simplifying *s, const struct node *n, const struct gate *g)
{
	become(s, g->plus_one, "Add", n->out[0], new_scalar(s, g->plus_one, 1));
}

/* the runtime's own patterns: (a * gate) * 0.5 with `half_last`, (a * 0.5) * gate without */
static bool is_usual(const struct simplifying *s, const struct gate *g, const char *a, bool half_last)
{
	const char *rest;
	const struct node *first;
	double c;

	if (!node_is(g->last, "Mul"))
		return false;
	rest = half_last ? scalar_operand(s, g->last, &c) : other_operand(g->last, g->plus_one->out[0]);
	first = rest ? inner_is(s, rest, "Mul") : NULL;
	return first && other_operand(first, a) &&
	       (half_last ? other_operand(first, g->plus_one->out[0]) != NULL
			  : scalar_operand(s, first, &c) != NULL);
}

static bool apply_erf(struct simplifying *s, struct node *n)
{
	const struct node *div = inner_is(s, n->in[0], "Div");
	struct product p;
	struct gate g;
	const char *a;

	product_of_value(s, n->in[0], &p);
	if (p.n != 1 || !about(p.constant, SQRT_HALF) || !is_f32(s, p.of[0]))
		return false;
	a = p.of[0];
	if (!find_gate(s, n, a, &g))
		return false;
	if (div && strcmp(div->in[0], a) == 0 && (is_usual(s, &g, a, true) || is_usual(s, &g, a, false)))
		return false;
	n->in[0] = put_before(s, n, "Div", a, new_scalar(s, n, 1 / SQRT_HALF))->out[0];
	plain_one(s, n, &g);
	become(s, g.last, "Mul", put_before(s, g.last, "Mul", a, g.plus_one->out[0])->out[0],
	       new_scalar(s, g.last, 0.5));
	return true;
}

/* Is `value` c * a^power? */
static bool is_power(const struct simplifying *s, const char *value, const char *a, size_t power, double c)
{
	struct product p;

	product_of_value(s, value, &p);
	return p.n == power && product_count(&p, a) == power && about(p.constant, c);
}

/* what Tanh reads is sqrt(2 / pi) * (a + 0.044715 a^3): the a; NULL: it is not */
static const char *tanh_operand(const struct simplifying *s, const char *value)
{
	const struct node *add;
	struct product p;
	double one;
	size_t i;

	product_of_value(s, value, &p);
	if (!about(p.constant, TANH_SCALE) || p.n < 1 || p.n > 2)
		return NULL;
	for (i = 0; i < p.n; i++) {
		add = inner_is(s, p.of[i], "Add");
		if (!add || add->n_in != 2)
			continue;
		if (p.n == 1) /* a + c a^3, in either order */
			return is_power(s, add->in[1], add->in[0], 3, TANH_CUBE)   ? add->in[0]
			       : is_power(s, add->in[0], add->in[1], 3, TANH_CUBE) ? add->in[1]
										   : NULL;
		/* a * (1 + c a^2) */
		value = scalar_operand(s, add, &one);
		if (value && one == 1 && is_power(s, value, p.of[1 - i], 2, TANH_CUBE))
			return p.of[1 - i];
	}
	return NULL;
}

/* sqrt(2 / pi) * (a + 0.044715 * Pow(a, 3)), as the runtime looks for it */
static bool is_usual_operand(const struct simplifying *s, const char *value, const char *a)
{
	const struct node *outer = inner_is(s, value, "Mul"), *add, *cube, *power;
	const char *v;
	double c;

	v = outer ? scalar_operand(s, outer, &c) : NULL;
	add = v ? inner_is(s, v, "Add") : NULL;
	v = add ? other_operand(add, a) : NULL;
	cube = v ? inner_is(s, v, "Mul") : NULL;
	v = cube ? scalar_operand(s, cube, &c) : NULL;
	power = v ? inner_is(s, v, "Pow") : NULL;
	return power && strcmp(power->in[0], a) == 0;
}

static bool apply_tanh(struct simplifying *s, struct node *n)
{
	const char *a = tanh_operand(s, n->in[0]), *v;
	struct gate g;

	if (!a || !is_f32(s, a) || !find_gate(s, n, a, &g))
		return false;
	if (is_usual_operand(s, n->in[0], a) && is_usual(s, &g, a, false))
		return false;
	v = put_before(s, n, "Pow", a, new_scalar(s, n, 3))->out[0];
	v = put_before(s, n, "Mul", v, new_scalar(s, n, TANH_CUBE))->out[0];
	v = put_before(s, n, "Add", a, v)->out[0];
	n->in[0] = put_before(s, n, "Mul", v, new_scalar(s, n, TANH_SCALE))->out[0];
	plain_one(s, n, &g);
	v = put_before(s, g.last, "Mul", a, new_scalar(s, g.last, 0.5))->out[0];
	become(s, g.last, "Mul", v, g.plus_one->out[0]);
	return true;
}

static bool apply(struct simplifying *s, struct node *n)
{
	return node_is(n, "Erf") ? apply_erf(s, n) : node_is(n, "Tanh") && apply_tanh(s, n);
}

const struct simplification simplification_gelu = {
	.name = "gelu",
	.summary = "GELU by erf or tanh, however it is written: as the runtime fuses it",
	.apply = apply,
};
