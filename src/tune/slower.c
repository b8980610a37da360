#include "tune/slower.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "runtime/profile.h"

enum { RUNS = 20, TYPES_TOLD = 4 };
#define WORTH_TELLING 0.01 /* of the fp32 model's time */

struct type_cost {
	const char *type;
	double fp32, plan; /* seconds of one run */
};

struct costs {
	const struct model *base;
	VEC(struct type_cost) v;
	double total, conversions; /* of fp32; of the plan */
	bool of_plan;
};

static bool is_conversion(const char *op)
{
	return strcmp(op, "QuantizeLinear") == 0 || strcmp(op, "DequantizeLinear") == 0 ||
	       strcmp(op, "DynamicQuantizeLinear") == 0;
}

/* What it was in the model: the node whose name the runtime's begins with, the longest; else what the runtime calls it. */
static const char *type_of(const struct model *m, const char *node, const char *op)
{
	size_t i, best = 0;

	for (i = 0; i < m->nodes.n; i++) {
		const char *name = m->nodes.v[i]->name;

		if (name && strlen(name) > best && str_starts(node, name)) {
			best = strlen(name);
			op = m->nodes.v[i]->op;
		}
	}
	return op;
}

static struct type_cost *cost_of(struct costs *c, const char *type)
{
	size_t i;

	for (i = 0; i < c->v.n; i++)
		if (strcmp(c->v.v[i].type, type) == 0)
			return &c->v.v[i];
	VEC_PUSH(&c->v, ((struct type_cost){ .type = xstrdup(type) }));
	return &c->v.v[c->v.n - 1];
}

static void add_time(void *self, const char *node, const char *op, double seconds, const void *shapes)
{
	struct costs *c = self;

	(void)shapes;
	if (c->of_plan && is_conversion(op)) {
		c->conversions += seconds;
		return;
	}
	if (c->of_plan)
		cost_of(c, type_of(c->base, node, op))->plan += seconds;
	else
		cost_of(c, type_of(c->base, node, op))->fp32 += seconds;
	c->total += c->of_plan ? 0 : seconds;
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

enum fettle_status slower_why(struct lab *l, const struct plan *p, struct arena *a, const char **out,
			      struct err *err)
{
	struct profile_options o = { .session = { .threads = l->o.deployed.threads, .level = l->o.level },
				     .batch = l->o.deployed.batches[0],
				     .runs = RUNS };
	struct costs c = { .base = l->s->m };
	struct feed_batch b = FEED_BATCH_INIT;
	struct str text = STR_INIT;
	struct model *m;
	enum fettle_status st;
	size_t i;

	st = l->timed[0] ? feed_read(l->timed[0], 0, &b, err) : FETTLE_OK;
	o.inputs = l->timed[0] ? b.inputs : NULL;
	if (!st)
		st = profile_model(l->rt, l->s->m, NULL, &o, add_time, &c, err);
	if (!st)
		st = lab_model(l, p, WEIGHTS_AS_PLANNED, &m, err);
	c.of_plan = true;
	if (!st)
		st = profile_model(l->rt, m, NULL, &o, add_time, &c, err);
	if (!st) {
		describe(&c, &text);
		*out = arena_strdup(a, text.s);
	}
	for (i = 0; i < c.v.n; i++)
		free((char *)(uintptr_t)c.v.v[i].type);
	VEC_RELEASE(&c.v);
	str_release(&text);
	feed_batch_release(&b);
	return st;
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
