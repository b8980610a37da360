/* Clip(x + b, 0, h) times constants, and maybe times x, is HardSigmoid times those: four ops become two or three, and the
 * runtime fuses x * HardSigmoid(x) into the Conv before it. */
#include "simplify/match.h"

#include <math.h>

#include "ops/rules.h"

static bool apply(struct simplifying *s, struct node *n)
{
	double shift, slope = 1, scale;
	const struct node *add, *before;
	struct node *last, *gate;
	struct product p;
	const char *x, *scaled;
	float lo, hi;

	if (!node_is(n, "Clip") || !is_f32(s, n->out[0]))
		return false;
	op_cut_bounds(s->m, n, &lo, &hi);
	add = inner_is(s, n->in[0], "Add");
	x = add ? scalar_operand(s, add, &shift) : NULL;
	if (!x || lo != 0 || !(hi > 0) || !isfinite(hi))
		return false;
	last = product_around(s, n->out[0], x, &p);
	before = inner_is(s, x, "Mul"); /* Clip(slope * x + b, 0, 1), where only that reads the product */
	if (!last && hi == 1 && before && (scaled = scalar_operand(s, before, &slope))) {
		become(s, n, "HardSigmoid", scaled, NULL);
		gate = n;
	} else if (last) {
		scale = p.constant * hi;
		slope /= hi;
		gate = p.n == 2 || !about(scale, 1) ? put_before(s, last, "HardSigmoid", x, NULL) : last;
		if (gate == last) {
			become(s, last, "HardSigmoid", x, NULL);
		} else if (about(scale, 1)) {
			become(s, last, "Mul", x, gate->out[0]);
		} else {
			const char *v = gate->out[0];

			if (p.n == 2)
				v = put_before(s, last, "Mul", x, v)->out[0];
			become(s, last, "Mul", v, new_scalar(s, last, scale));
		}
	} else {
		return false;
	}
	node_set_float(s->m, gate, "alpha", (float)slope);
	node_set_float(s->m, gate, "beta", (float)(shift / hi));
	return true;
}

const struct simplification simplification_hard_swish = {
	.name = "hard_swish",
	.summary = "Add, Clip and Mul or Div: HardSigmoid, and Mul for HardSwish",
	.apply = apply,
};
