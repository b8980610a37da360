#include "quantize/variant.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "quantize/rewrite.h"

static bool recipes_rewrite(const struct recipes *r)
{
	return r->cle || r->smooth_quant;
}

static bool scales_inputs(const struct op_choice *c)
{
	return c->mode == OP_WEIGHT && block_methods[c->blocks.algorithm]->scales_inputs;
}

bool plan_scales_inputs(const struct qplan *p)
{
	size_t i;

	for (i = 0; i < p->n && !recipes_rewrite(&p->recipes); i++)
		if (scales_inputs(&p->ops[i]))
			return true;
	return false;
}

bool plan_rewrites(const struct qplan *p)
{
	return recipes_rewrite(&p->recipes) || plan_scales_inputs(p);
}

static bool same_format(const struct block_format *a, const struct block_format *b)
{
	return a->bits == b->bits && a->block == b->block && a->symmetric == b->symmetric;
}

/* the format of most ops by awq: one for all, or every trial of one op would be another variant */
static struct block_format usual_format(const struct qplan *p)
{
	struct block_format usual = { 4, 32, false };
	size_t i, k, most = 0;

	for (i = 0; i < p->n; i++) {
		size_t n = 0;

		for (k = 0; k < p->n && scales_inputs(&p->ops[i]); k++)
			n += scales_inputs(&p->ops[k]) &&
			     same_format(&p->ops[k].blocks.format, &p->ops[i].blocks.format);
		if (n > most) {
			most = n;
			usual = p->ops[i].blocks.format;
		}
	}
	return usual;
}

/* what tells one of alpha auto's choices from another */
static void add_choice(struct str *s, const struct op_choice *c)
{
	const struct qsetting *both[] = { &c->act, &c->weight };
	size_t i;

	for (i = 0; i < ARRAY_LEN(both); i++)
		str_addf(s, " %s %s%s%s%s", dtype_name(both[i]->dtype),
			 both[i]->scheme == SCHEME_SYM ? "sym" : "asym",
			 qsetting_is_pow2(both[i]) ? " pow2" : "", both[i]->per_channel ? " per_channel" : "",
			 both[i]->narrow ? " narrow" : "");
}

/* How most matrix ops are quantized: one choice for all, or every trial of one op would be another variant. Those in
 * 16 bits do not count where there are others: nothing need be done for them. */
static struct op_choice usual_choice(const struct subject *base, const struct qplan *p)
{
	const struct qplan_defaults d = qplan_defaults(&base->cpu);
	struct op_choice usual = { .act = d.act, .weight = d.weight };
	size_t i, k, most = 0;

	for (i = 0; i < p->n; i++) {
		const struct op_choice *c = &p->ops[i];
		size_t n = 1;

		if (c->mode == OP_FP32 || !is_matrix_op(base->m, base->m->nodes.v[i]))
			continue;
		for (k = 0; k < p->n && dtype_size(c->act.dtype) == 1; k++)
			n += p->ops[k].mode != OP_FP32 && is_matrix_op(base->m, base->m->nodes.v[k]) &&
			     qsetting_equal(&p->ops[k].act, &c->act) &&
			     qsetting_equal(&p->ops[k].weight, &c->weight);
		if (n > most) {
			most = n;
			usual = *c;
		}
	}
	return usual;
}

char *variant_key(const struct subject *base, const struct qplan *p)
{
	const struct recipes *r = &p->recipes;
	struct str s = STR_INIT;

	if (r->cle)
		str_addf(&s, "cle");
	if (r->smooth_quant && r->smooth_alpha == SMOOTH_AUTO) {
		const struct op_choice c = usual_choice(base, p);

		str_addf(&s, "%ssmooth_quant=auto", s.n ? " " : "");
		add_choice(&s, &c);
	} else if (r->smooth_quant) {
		str_addf(&s, "%ssmooth_quant=%.10g", s.n ? " " : "", r->smooth_alpha);
	}
	if (plan_scales_inputs(p)) {
		const struct block_format f = usual_format(p);

		str_addf(&s, "awq=%d_%lld_%s", f.bits, (long long)f.block, f.symmetric ? "sym" : "asym");
	}
	return s.s ? s.s : xstrdup("");
}

static struct variant *new_variant(struct subject *base)
{
	struct variant *v = xcalloc(1, sizeof(*v));

	v->s = base;
	v->n_base = base->m->nodes.n;
	return v;
}

static void add_change(struct variant *v, const char *value, struct range r, const double *factors)
{
	map_set(&v->changed, value, v->ranges.n);
	VEC_PUSH(&v->ranges, r);
	VEC_PUSH(&v->factors, factors);
}

/* a copy that lives with the variant's model */
static const double *kept_factors(struct rewrite *w, size_t value)
{
	const size_t class = channels_class(&w->c, value);
	const size_t size = class == NO_CLASS ? 0 : w->c.size[class] * sizeof(double);
	double *out;

	if (!size || !w->factor[class] || w->shift[value] || w->c.lanes[value].repeat != 1)
		return NULL;
	out = arena_alloc(&w->m->arena, size);
	memcpy(out, w->factor[class], size);
	return out;
}

/* A factor on a channel is one on its extremes: nobody need look at the data again for those. */
static void find_changes(struct variant *v, struct rewrite *w)
{
	const struct graph_index *g = &w->base->g;
	size_t i;

	for (i = 0; i < g->n; i++) {
		const size_t class = channels_class(&w->c, i);

		if ((class != NO_CLASS && w->factor[class]) || w->shift[i])
			add_change(v, g->names[i], rewrite_range(w, i, NULL), kept_factors(w, i));
	}
	for (i = 0; i < w->insertions.n; i++)
		add_change(v, w->insertions.v[i].made,
			   rewrite_range(w, w->insertions.v[i].value, &w->insertions.v[i]), NULL);
}

bool variant_changes(const struct variant *v, const char *value, struct range *out)
{
	const size_t i = map_get(&v->changed, value);

	if (i != MAP_NONE)
		*out = v->ranges.v[i];
	return i != MAP_NONE;
}

const double *variant_factors(const struct variant *v, const char *value)
{
	const size_t i = map_get(&v->changed, value);

	return i == MAP_NONE ? NULL : v->factors.v[i];
}

bool variant_needs_own(const struct variant *v, const char *value, enum range_algorithm a)
{
	struct range r;

	return !v || !v->node || a != RANGE_MINMAX || (variant_changes(v, value, &r) && isnan(r.min));
}

enum fettle_status variant_range(const struct variant *v, const struct calibration *base,
				 const struct calibration *own, const char *value,
				 const struct range_options *o, struct range *out, struct err *err)
{
	const struct calibration *c = variant_needs_own(v, value, o->algorithm) ? own : base;
	const struct observer *seen;

	if (c != own && variant_changes(v, value, out))
		return FETTLE_OK;
	seen = c ? calibration_find(c, value) : NULL;
	if (!seen)
		return fail(err, FETTLE_INVALID, "cannot quantize value '%s': it was not calibrated", value);
	return range_compute(seen, o, out, err);
}

/* a subject of the rewritten model */
static void finish(struct variant *v, struct rewrite *w)
{
	struct subject *base = v->s;

	v->node = xcalloc(v->n_base, sizeof(*v->node));
	rewrite_end(w, v->node);
	find_changes(v, w);
	v->s = xcalloc(1, sizeof(*v->s));
	v->s->m = w->m;
	w->m = NULL;
	v->s->cpu = base->cpu;
	model_sweep(v->s->m);
	graph_index_init(&v->s->g, v->s->m);
	op_list_init(&v->s->ops, &v->s->m->arena, v->s->m, &v->s->g,
		     base->seen.n ? &base->seen : &base->shapes);
	v->s->z = quantizer_new(v->s->m, &v->s->g, &v->s->ops);
	v->text = w->text.s;
	w->text = (struct str)STR_INIT;
}

static enum fettle_status deliver(struct variant *v, enum fettle_status st, struct variant **out)
{
	if (!v->text)
		v->text = xstrdup("");
	if (st)
		variant_free(v);
	else
		*out = v;
	return st;
}

enum fettle_status variant_new(struct variant **out, struct runtime *rt, struct subject *base,
			       const struct qplan *p, struct feed *feed, const struct calibrate_options *o,
			       const struct input_seen *seen, struct err *err)
{
	const struct op_choice usual = usual_choice(base, p);
	const struct recipes *r = &p->recipes;
	struct variant *v = new_variant(base);
	struct rewrite w;
	enum fettle_status st = FETTLE_OK;

	if (plan_rewrites(p)) {
		const struct block_format f = usual_format(p);

		rewrite_begin(&w, base);
		v->scaled = plan_scales_inputs(p);
		if (!v->scaled)
			st = rewrite_observe(&w, r, rt, feed, o, err);
		else
			st = scale_inputs(&w, &f, seen, err);
		if (!st && r->cle)
			st = equalise(&w, err);
		if (!st && r->smooth_quant)
			st = smooth(&w, r->smooth_alpha, &usual, err);
		if (!st)
			finish(v, &w);
		rewrite_release(&w);
	}
	return deliver(v, st, out);
}

enum fettle_status variant_read(struct variant **out, struct subject *base, const char *text, struct err *err)
{
	struct variant *v = new_variant(base);
	struct rewrite w;
	enum fettle_status st;

	rewrite_begin(&w, base);
	st = rewrite_read(&w, text, err);
	if (!st)
		finish(v, &w);
	rewrite_release(&w);
	return deliver(v, st, out);
}

void variant_free(struct variant *v)
{
	if (!v)
		return;
	if (v->node)
		subject_free(v->s);
	free(v->node);
	map_release(&v->changed);
	VEC_RELEASE(&v->ranges);
	VEC_RELEASE(&v->factors);
	free(v->text);
	free(v);
}

void variant_plan(const struct variant *v, const struct qplan *p, struct qplan *out)
{
	size_t i;

	*out = *p;
	out->n = v->s->ops.n;
	out->ops = xcalloc(out->n, sizeof(*out->ops));
	for (i = 0; i < p->n && i < v->n_base; i++)
		out->ops[v->node ? v->node[i] : i] = p->ops[i];
}
