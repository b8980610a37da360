#include "tune/slower.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "tune/deployed.h"
#include "tune/modes.h"

enum { TYPES_TOLD = 4 };
#define WORTH_TELLING 0.01 /* of the fp32 model's time */

struct type_cost {
	const char *type;
	double fp32, plan; /* seconds of one run */
};

struct costs {
	VEC(struct type_cost) v;
	double total, conversions; /* of fp32; of the plan */
};

static void add_cost(struct costs *c, const char *type, double fp32, double plan)
{
	size_t i;

	for (i = 0; i < c->v.n && strcmp(c->v.v[i].type, type) != 0; i++)
		;
	if (i == c->v.n)
		VEC_PUSH(&c->v, ((struct type_cost){ .type = type }));
	c->v.v[i].fp32 += fp32;
	c->v.v[i].plan += plan;
}

/* those that lose most first */
static int by_loss(const void *a, const void *b)
{
	const struct type_cost *x = a, *y = b;
	double p = x->plan - x->fp32, q = y->plan - y->fp32;

	return (p < q) - (p > q);
}

static void describe(struct costs *c, struct str *out)
{
	const double least = WORTH_TELLING * c->total;
	double gained = 0;
	size_t i, n = 0;

	qsort(c->v.v, c->v.n, sizeof(*c->v.v), by_loss);
	for (i = 0; i < c->v.n; i++) {
		const struct type_cost *t = &c->v.v[i];

		gained += fmax(t->fp32 - t->plan, 0);
		if (t->plan - t->fp32 > least && n++ < TYPES_TOLD)
			str_addf(out, "%s%s takes %.3f ms instead of %.3f", out->n ? ", " : "", t->type,
				 1e3 * t->plan, 1e3 * t->fp32);
	}
	if (n > TYPES_TOLD)
		str_addf(out, ", and %zu more types of ops take longer", n - TYPES_TOLD);
	if (c->conversions > least)
		str_addf(out, "%sconversions between floats and integers take %.3f ms", out->n ? "; " : "",
			 1e3 * c->conversions);
	if (gained > least)
		str_addf(out, "%sthe other ops gain %.3f ms", out->n ? "; " : "", 1e3 * gained);
	else
		str_addf(out, "%sno type of op gains anything", out->n ? "; " : "");
	str_addf(out, ", of %.3f ms in fp32", 1e3 * c->total);
}

static double changing_layouts(const struct mode_profile *p)
{
	return p->converting[TO_LAST] + p->converting[FEW_TO_LAST] + p->converting[TO_BLOCKS];
}

enum fettle_status slower_why(struct lab *l, const struct plan *p, struct arena *a, const char **out,
			      struct err *err)
{
	struct mode_profile fp32, plan;
	struct costs c = { .total = 0 };
	struct str text = STR_INIT;
	const double scale = deployed_scale(&l->o.deployed);
	double share;
	enum fettle_status st = modes_profiles(l, p, &fp32, &plan, &share, err);
	size_t i;

	if (st)
		return st;
	for (i = 0; i < l->s->m->nodes.n; i++)
		add_cost(&c, l->s->m->nodes.v[i]->op, scale * fp32.seconds[i], scale * plan.seconds[i]);
	add_cost(&c, "changing layouts", scale * changing_layouts(&fp32), scale * changing_layouts(&plan));
	c.total = scale * fp32.total;
	c.conversions =
		scale * (plan.converting[TO_INT] + plan.converting[TO_FLOAT] + plan.converting[AT_RUN_TIME]);
	describe(&c, &text);
	*out = isnan(share) ? arena_strdup(a, text.s)
			    : arena_strfmt(a, "with %.0f %% of the multiply-adds in integers, %s",
					   100 * share, text.s);
	VEC_RELEASE(&c.v);
	str_release(&text);
	return FETTLE_OK;
}

const char *slower_help(const struct lab *l, struct arena *a)
{
	const struct value *in = session_n_inputs(l->fp32) ? session_input(l->fp32, 0) : NULL;
	const bool fixed = in && in->type.rank > 0 && in->type.dims[0] > 0;
	const char *cpu = cpu_detect().name;
	struct str text = STR_INIT;
	const char *copy;

	if (!fixed && l->o.deployed.batches[0] < 16)
		str_addf(&text, "larger batches (--batch 32)");
	if (!strstr(cpu, "vnni") && !strstr(cpu, "amx"))
		str_addf(&text, "%sa CPU with instructions for int8, such as VNNI (this one is %s)",
			 text.n ? "; " : "", cpu);
	if (!(l->o.weights[LAB_SIZE] > 0))
		str_addf(&text, "%s--objective modelsize, if a smaller model is worth it",
			 text.n ? "; " : "");
	copy = text.n ? arena_strdup(a, text.s) : NULL;
	str_release(&text);
	return copy;
}
