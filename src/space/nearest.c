/* Constraints that ask for what the runtime does not have: the nearest it has takes its place. */
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "space/constraint.h"

const struct form act_forms[N_ACT_FORMS] = {
	{ DT_U8, SCHEME_ASYM }, { DT_S8, SCHEME_ASYM },  { DT_S8, SCHEME_SYM },
	{ DT_U8, SCHEME_SYM },  { DT_U16, SCHEME_ASYM }, { DT_S16, SCHEME_SYM },
};
const struct form weight_forms[N_WEIGHT_FORMS] = {
	{ DT_S8, SCHEME_SYM },
	{ DT_U8, SCHEME_ASYM },
	{ DT_S16, SCHEME_SYM },
};

static unsigned weight_algorithms(void)
{
	unsigned mask = 0;
	int i;

	for (i = 0; i < RANGE_ALGORITHMS; i++)
		mask |= range_methods[i]->for_weights ? 1u << i : 0;
	return mask;
}

/* One kind of replacement, on the way to a note. */
struct replacement {
	const char *side, *field;
	unsigned asked, used; /* bits of the field */
	size_t ops;
};
struct replacements {
	VEC(struct replacement) v;
};

static unsigned same_width(unsigned types)
{
	return (types & T_8 ? T_8 : 0) | (types & ~(unsigned)T_8 ? T_U16 | T_S16 : 0);
}

/* 0: just what is asked; higher: farther from it */
static unsigned distance(const struct side_mask *m, const struct form *f)
{
	unsigned types = m->dtype ? m->dtype & T_ALL : T_8, bit = dtype_bit(f->dtype);
	bool scheme = !m->scheme || m->scheme & 1u << f->scheme;

	if (types & bit)
		return scheme ? 0 : 1;
	if (same_width(types) & bit)
		return scheme ? 2 : 3;
	return 4;
}

static struct side_mask nearest_form(struct side_mask m, const struct form *forms, size_t n,
				     unsigned possible)
{
	unsigned best = ~0u, types = 0, schemes = 0;
	size_t i;

	if ((!m.dtype && !m.scheme) || (m.dtype && !(m.dtype & T_ALL)))
		return m; /* nothing asked of integers */
	for (i = 0; i < n; i++) {
		unsigned d = distance(&m, &forms[i]);

		if (!(possible & dtype_bit(forms[i].dtype)) || d > best)
			continue;
		if (d < best)
			types = schemes = 0;
		best = d;
		types |= dtype_bit(forms[i].dtype);
		schemes |= 1u << forms[i].scheme;
	}
	if (m.dtype)
		m.dtype = types | (m.dtype & MASK_FP32);
	if (m.scheme)
		m.scheme = schemes;
	return m;
}

static unsigned within(unsigned asked, unsigned there_is, unsigned otherwise)
{
	return !asked ? 0 : asked & there_is ? asked & there_is : otherwise;
}

static void add(struct replacements *r, const char *side, const char *field, unsigned asked, unsigned used)
{
	unsigned gone = asked & ~used;
	size_t i;

	if (!gone)
		return;
	if (*field == 'd')
		used &= T_ALL;
	for (i = 0; i < r->v.n; i++) {
		struct replacement *x = &r->v.v[i];

		if (x->side == side && x->field == field && x->asked == gone && x->used == used) {
			x->ops++;
			return;
		}
	}
	VEC_PUSH(&r->v, ((struct replacement){ side, field, gone, used, 1 }));
}

static void resolve_side(struct side_mask *m, struct side_mask now, const char *side, struct replacements *r)
{
	add(r, side, "dtype", m->dtype, now.dtype);
	add(r, side, "scheme", m->scheme, now.scheme);
	add(r, side, "granularity", m->granularity, now.granularity);
	add(r, side, "algorithm", m->algorithm, now.algorithm);
	*m = now;
}

static void resolve_op(struct op_mask *m, const struct op_rule *rule, const struct cpu *cpu,
		       struct replacements *r)
{
	unsigned acts = rule->act_dtypes & (cpu->s8_activations ? T_ALL : ~(unsigned)T_S8);
	struct side_mask now = nearest_form(m->act, act_forms, N_ACT_FORMS, acts);

	now.granularity = within(now.granularity, MASK_PER_TENSOR, MASK_PER_TENSOR);
	resolve_side(&m->act, now, "activation", r);
	if (rule->weight < 0)
		return;
	now = nearest_form(m->weight, weight_forms, N_WEIGHT_FORMS, rule->weight_dtypes);
	now.algorithm = within(now.algorithm, weight_algorithms(), 1u << RANGE_MINMAX);
	resolve_side(&m->weight, now, "weight", r);
}

static const char *bit_name(const char *field, unsigned i)
{
	static const char *const dtypes[] = { "uint8", "int8", "uint16", "int16", "fp32" },
				 *const schemes[] = { [SCHEME_ASYM] = "asym", [SCHEME_SYM] = "sym" },
				 *const grains[] = { "per_tensor", "per_channel" };

	return *field == 'd'   ? dtypes[i]
	       : *field == 's' ? schemes[i]
	       : *field == 'g' ? grains[i]
			       : range_methods[i]->name;
}

static void add_names(struct str *out, const char *field, unsigned mask)
{
	unsigned i, n = 0;

	for (i = 0; mask >> i; i++)
		if (mask & 1u << i)
			str_addf(out, "%s%s", n++ ? ", " : "", bit_name(field, i));
}

void constraints_resolve(struct op_mask *masks, const struct op_list *ops, const struct cpu *cpu,
			 void (*note)(void *self, const char *text), void *self)
{
	struct replacements r = { .v = { NULL, 0, 0 } };
	size_t i;

	for (i = 0; i < ops->n; i++) {
		const struct op_rule *rule = ops->v[i].rule;

		if (rule && rule->kind != OP_MOVE && (rule->on || masks[i].named))
			resolve_op(&masks[i], rule, cpu, &r);
	}
	for (i = 0; i < r.v.n; i++) {
		const struct replacement *x = &r.v.v[i];
		struct str text = STR_INIT;

		str_addf(&text, "%s %s ", x->side, x->field);
		add_names(&text, x->field, x->asked);
		str_addf(&text, ": %zu op%s ", x->ops, x->ops == 1 ? " uses" : "s use");
		add_names(&text, x->field, x->used);
		str_addf(&text, ", the nearest that the runtime has");
		note(self, text.s);
		str_release(&text);
	}
	VEC_RELEASE(&r.v);
}
