#include "space/constraint.h"

#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "space/op_pattern.h"

unsigned dtype_bit(enum dtype t)
{
	return t == DT_U8 ? T_U8 : t == DT_S8 ? T_S8 : t == DT_U16 ? T_U16 : t == DT_S16 ? T_S16 : 0;
}

static void narrow(unsigned *to, unsigned from)
{
	if (from)
		*to = from;
}

static void narrow_side(struct side_mask *to, const struct side_mask *from)
{
	narrow(&to->granularity, from->granularity);
	narrow(&to->scheme, from->scheme);
	narrow(&to->dtype, from->dtype);
	narrow(&to->algorithm, from->algorithm);
	narrow(&to->bits, from->bits);
	narrow(&to->group, from->group);
	narrow(&to->method, from->method);
	narrow(&to->level, from->level);
}

/* A name like one that there is, is a mistake. Others may be of ops that are there only after ONNX Runtime has fused some, which is where
 * INC looks, or of another model: a note says that they do nothing. */
static enum fettle_status no_match(const struct constraint *c, const struct op_list *ops,
				   const struct model *m, const struct constraint_notes *notes,
				   struct err *err)
{
	const char **names = xcalloc(ops->n, sizeof(*names)), *near;
	const char *what = c->scope == CONSTRAIN_TYPE ? "type" : "name";
	char *text;
	size_t i;

	for (i = 0; i < ops->n; i++)
		names[i] = c->scope == CONSTRAIN_TYPE ? op_type(m->nodes.v[i]) : ops->v[i].name;
	near = str_nearest(c->name, names, ops->n);
	free(names);
	if (near || !notes->note)
		return fail(err, FETTLE_INVALID, "%s: no op of the model has the %s '%s'%s%s%s", c->where,
			    what, c->name, near ? ", did you mean '" : "", near ? near : "",
			    near ? "'?" : "");
	text = xstrfmt("%s: '%s' has no effect: no op of the model has that %s", c->where, c->name, what);
	notes->note(notes->self, text);
	free(text);
	return FETTLE_OK;
}

static enum fettle_status apply_one(const struct constraint *c, const struct op_list *ops,
				    const struct model *m, const struct constraint_notes *notes,
				    struct op_mask *out, struct err *err)
{
	struct op_pattern pattern = { .name = NULL };
	size_t hits = 0, i;

	if (c->scope == CONSTRAIN_OP)
		op_pattern_init(&pattern, c->name);
	for (i = 0; i < ops->n; i++) {
		const char *type = op_type(m->nodes.v[i]);

		if (c->scope == CONSTRAIN_TYPE && strcmp(type, c->name) != 0)
			continue;
		if (c->scope == CONSTRAIN_OP && !op_pattern_matches(&pattern, ops->v[i].name, type))
			continue;
		narrow_side(&out[i].weight, &c->mask.weight);
		narrow_side(&out[i].act, &c->mask.act);
		out[i].named |=
			c->scope != CONSTRAIN_MODEL && (c->mask.act.dtype & T_ALL || c->mask.weight.bits);
		hits++;
	}
	for (i = 0; i < m->gone.n && c->scope == CONSTRAIN_OP; i++)
		hits += op_pattern_matches(&pattern, m->gone.v[i], NULL);
	op_pattern_release(&pattern);
	return hits || c->scope == CONSTRAIN_MODEL ? FETTLE_OK : no_match(c, ops, m, notes, err);
}

enum fettle_status constraints_apply(const struct constraint *v, size_t n, const struct op_list *ops,
				     const struct model *m, const struct constraint_notes *notes,
				     struct op_mask *out, struct err *err)
{
	static const struct constraint_notes none;
	enum fettle_status st = FETTLE_OK;
	enum constraint_scope scope;
	size_t i;

	memset(out, 0, ops->n * sizeof(*out));
	for (scope = CONSTRAIN_MODEL; scope <= CONSTRAIN_OP; scope++) /* the narrower later, so it wins */
		for (i = 0; i < n && !st; i++)
			if (v[i].scope == scope)
				st = apply_one(&v[i], ops, m, notes ? notes : &none, out, err);
	return st;
}

static void intersect(unsigned *to, unsigned with, unsigned nothing)
{
	if (with && *to)
		*to = *to & with ? *to & with : nothing;
	else if (with)
		*to = with;
}

static void intersect_side(struct side_mask *to, const struct side_mask *with)
{
	/* where nothing is left, the op stays in fp32: that is said by the type alone */
	const struct side_mask before = *to;

	intersect(&to->dtype, with->dtype, MASK_FP32);
	intersect(&to->granularity, with->granularity, 0);
	intersect(&to->scheme, with->scheme, 0);
	intersect(&to->algorithm, with->algorithm, 0);
	intersect(&to->bits, with->bits, 0);
	intersect(&to->group, with->group, 0);
	intersect(&to->method, with->method, 0);
	intersect(&to->level, with->level, 0);
	if ((before.granularity && !to->granularity) || (before.scheme && !to->scheme) ||
	    (before.algorithm && !to->algorithm) || (before.bits && !to->bits) ||
	    (before.group && !to->group) || (before.method && !to->method) || (before.level && !to->level))
		to->dtype = MASK_FP32;
}

void mask_intersect(struct op_mask *to, const struct op_mask *with)
{
	intersect_side(&to->weight, &with->weight);
	intersect_side(&to->act, &with->act);
	to->named |= with->named;
}

/* what the types of the op's sides say together, 0 where neither is constrained */
static unsigned dtypes_named(const struct op_mask *m, const struct op *op)
{
	return m->act.dtype | (op->rule && op->rule->weight >= 0 ? m->weight.dtype : 0);
}

bool mask_allows_fp32(const struct op_mask *m, const struct op *op)
{
	unsigned named = dtypes_named(m, op);

	return !named || named & MASK_FP32;
}

bool mask_allows_int(const struct op_mask *m, const struct op *op)
{
	return (!m->act.dtype || m->act.dtype & T_ALL) &&
	       (op->rule->weight < 0 || !m->weight.dtype || m->weight.dtype & T_ALL);
}

bool mask_allows_blocks(const struct op_mask *m, const struct op *op)
{
	return op->modes & MODE_WEIGHT && (!m->weight.dtype || m->weight.dtype & T_ALL);
}

static bool has(unsigned mask, unsigned bit)
{
	return !mask || mask & bit;
}

bool mask_allows_block(const struct op_mask *m, const struct op *op, const struct block_setting *s)
{
	const struct side_mask *w = &m->weight;

	return mask_allows_blocks(m, op) && block_setting_fits(s, op) && has(w->bits, 1u << s->format.bits) &&
	       has(w->group, (unsigned)s->format.block) &&
	       has(w->scheme, 1u << (s->format.symmetric ? SCHEME_SYM : SCHEME_ASYM)) &&
	       has(w->method, 1u << s->algorithm) && has(w->level, 1u << s->level);
}

static bool form_allowed(const struct side_mask *m, enum dtype t, enum scheme scheme)
{
	return (!m->dtype || m->dtype & dtype_bit(t)) && (!m->scheme || m->scheme & 1u << scheme);
}

static bool side_allows(const struct side_mask *m, const struct qsetting *s, bool weight)
{
	unsigned grain = weight && s->per_channel ? MASK_PER_CHANNEL : MASK_PER_TENSOR;

	return form_allowed(m, s->dtype, s->scheme) && (!m->granularity || m->granularity & grain) &&
	       (!m->algorithm || m->algorithm & 1u << s->algorithm);
}

bool mask_allows(const struct op_mask *m, const struct op *op, const struct op_choice *c)
{
	if (c->mode == OP_FP32)
		return mask_allows_fp32(m, op);
	if (c->mode == OP_WEIGHT)
		return mask_allows_block(m, op, &c->blocks);
	if (op->rule->weight >= 0 && !side_allows(&m->weight, &c->weight, true))
		return false;
	/* a dynamic op's activation is uint8, whatever its setting says */
	return c->mode == OP_DYNAMIC ? !m->act.dtype || m->act.dtype & T_U8
				     : side_allows(&m->act, &c->act, false);
}

/* the lowest allowed bit when the present one is not */
static unsigned fit(unsigned mask, unsigned now)
{
	return !mask || mask & now ? now : mask & -mask;
}

static unsigned log2_of(unsigned bit)
{
	unsigned n = 0;

	while (bit >>= 1)
		n++;
	return n;
}

static void fit_side(const struct side_mask *m, struct qsetting *s, const struct form *forms, size_t n,
		     unsigned possible)
{
	size_t i;

	for (i = 0; i < n && !form_allowed(m, s->dtype, s->scheme); i++)
		if (form_allowed(m, forms[i].dtype, forms[i].scheme) &&
		    possible & dtype_bit(forms[i].dtype)) {
			s->dtype = forms[i].dtype;
			s->scheme = forms[i].scheme;
		}
	qsetting_use(s, (enum range_algorithm)log2_of(fit(m->algorithm, 1u << s->algorithm)));
}

static void fit_blocks(const struct op_mask *m, const struct op *op, struct op_choice *c)
{
	const struct side_mask *w = &m->weight;
	struct block_setting *s = &c->blocks;

	if (w->bits && !(w->bits & 1u << s->format.bits))
		s->format.bits = (int)log2_of(w->bits); /* the most that are allowed */
	s->format.block = fit(w->group, (unsigned)s->format.block);
	s->format.symmetric = w->scheme ? !(w->scheme & 1u << SCHEME_ASYM) : s->format.symmetric;
	s->algorithm = (enum block_algorithm)log2_of(fit(w->method, 1u << s->algorithm));
	s->level = (int)log2_of(fit(w->level, 1u << s->level));
	if (!mask_allows_block(m, op, s) || block_setting_check(s, NULL))
		c->mode = OP_FP32;
}

void mask_fit(const struct op_mask *m, const struct op *op, const struct qplan_defaults *d,
	      struct op_choice *c)
{
	unsigned grain = c->weight.per_channel ? MASK_PER_CHANNEL : MASK_PER_TENSOR;

	if (c->mode == OP_FP32 || !op->rule)
		return;
	if (c->mode == OP_WEIGHT) {
		fit_blocks(m, op, c);
		return;
	}
	fit_side(&m->act, &c->act, act_forms, N_ACT_FORMS, op->rule->act_dtypes);
	fit_side(&m->weight, &c->weight, weight_forms, N_WEIGHT_FORMS,
		 op->rule->weight_dtypes ? op->rule->weight_dtypes : T_ALL);
	c->weight.per_channel = fit(m->weight.granularity, grain) == MASK_PER_CHANNEL;
	op_choice_reduce(c, op, d);
	if (!mask_allows_int(m, op) || !mask_allows(m, op, c))
		c->mode = OP_FP32; /* as asked; or what is allowed, the runtime cannot do */
}
