#include "quantize/variant.h"

#include <stdlib.h>
#include <string.h>

#include "quantize/rewrite.h"

bool recipes_rewrite(const struct recipes *r)
{
	return r->cle || r->smooth_quant;
}

char *variant_key(const struct recipes *r)
{
	struct str s = STR_INIT;

	if (r->cle)
		str_addf(&s, "cle");
	if (r->smooth_quant && r->smooth_alpha == SMOOTH_AUTO)
		str_addf(&s, "%ssmooth_quant=auto", s.n ? " " : "");
	else if (r->smooth_quant)
		str_addf(&s, "%ssmooth_quant=%.10g", s.n ? " " : "", r->smooth_alpha);
	return s.s ? s.s : xstrdup("");
}

static struct variant *new_variant(struct subject *base)
{
	struct variant *v = xcalloc(1, sizeof(*v));

	v->s = base;
	v->n_base = base->m->nodes.n;
	return v;
}

/* a subject of the rewritten model */
static void finish(struct variant *v, struct rewrite *w)
{
	struct subject *base = v->s;

	v->node = xcalloc(v->n_base, sizeof(*v->node));
	rewrite_end(w, v->node);
	v->s = xcalloc(1, sizeof(*v->s));
	v->s->m = w->m;
	w->m = NULL;
	v->s->cpu = base->cpu;
	model_sweep(v->s->m);
	graph_index_init(&v->s->g, v->s->m);
	op_list_init(&v->s->ops, &v->s->m->arena, v->s->m, &v->s->g, &base->shapes);
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
			       const struct recipes *r, struct feed *feed, const struct calibrate_options *o,
			       struct err *err)
{
	struct variant *v = new_variant(base);
	struct rewrite w;
	enum fettle_status st = FETTLE_OK;

	if (recipes_rewrite(r)) {
		rewrite_begin(&w, base);
		st = rewrite_observe(&w, r, rt, feed, o, err);
		if (!st && r->cle)
			st = equalise(&w, err);
		if (!st && r->smooth_quant)
			st = smooth(&w, r->smooth_alpha, err);
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

struct quantizer *variant_quantizer(const struct variant *v, const struct range_source *ranges)
{
	struct quantizer *z = quantizer_new(v->s->m, &v->s->g, &v->s->ops, ranges);

	quantizer_map(z, v);
	return z;
}
