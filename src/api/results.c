/* Results that the library allocates: each public struct is the first member of one that owns what it points to. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/internal.h"
#include "config/commands.h"
#include "tune/runs.h"

static enum fettle_status begin(struct fettle *f, struct options *o, const struct options_type *type,
				const void *in)
{
	api_clear(f);
	return options_read(o, type, in, &f->cx.err);
}

/* ---- sensitivity ---- */

struct costs {
	struct fettle_sensitivity pub;
	struct arena arena;
};

void fettle_sensitivity_free(struct fettle_sensitivity *s)
{
	struct costs *c = (struct costs *)s;

	if (!c)
		return;
	arena_release(&c->arena);
	free(c);
}

static void fill(struct costs *c, const struct run *u, const struct op_sensitivity *rows, size_t n)
{
	struct fettle_op_cost *out = arena_alloc(&c->arena, n * sizeof(*out));
	const struct space *space = &u->lab.t->space;
	size_t i;

	for (i = 0; i < n; i++)
		out[i] = (struct fettle_op_cost){
			.name = arena_strdup(&c->arena, space->v[rows[i].op].name),
			.type = space->v[rows[i].op].type,
			.sqnr_db = rows[i].sqnr,
			.model_sqnr_db = rows[i].model_sqnr,
			.weight_share = rows[i].weight_share,
			.clipping_share = rows[i].clipping_share,
			.metric = rows[i].metric,
			.macs_share = u->lab.s->ops.total_macs > 0
					      ? u->lab.s->ops.v[u->lab.t->node[rows[i].op]].macs /
							u->lab.s->ops.total_macs
					      : 0,
		};
	c->pub.size = sizeof(c->pub);
	c->pub.ops = sized_list(&c->arena, out, n, sizeof(*out));
	c->pub.n = n;
}

enum fettle_status fettle_sensitivity(struct fettle *f, const struct fettle_sensitivity_options *in,
				      struct fettle_sensitivity **out)
{
	struct run u = { .cx = &f->cx };
	struct accuracy a = { .value = NAN };
	struct op_sensitivity *rows = NULL;
	struct options o;
	size_t n = 0;
	enum fettle_status st = begin(f, &o, &options_sensitivity, in);

	if (!st)
		st = request_sensitivity(&u, &f->cx, &o.o, &a, &rows, &n);
	if (!st) {
		struct costs *c = xcalloc(1, sizeof(*c));

		fill(c, &u, rows, n);
		if (u.lab.metric) /* a program is not asked about each op */
			snprintf(c->pub.metric, sizeof(c->pub.metric), "%s", u.metric);
		c->pub.baseline = a.value;
		c->pub.cpu = f->cx.cpu.name;
		*out = &c->pub;
	}
	free(rows);
	run_release(&u);
	options_release(&o);
	return st;
}

/* ---- profile ---- */

struct profile {
	struct fettle_profile pub;
	struct fettle_profile_row *rows;
	struct arena arena;
};

void fettle_profile_free(struct fettle_profile *pub)
{
	struct profile *p = (struct profile *)pub;

	if (!p)
		return;
	arena_release(&p->arena);
	free(p->rows);
	free(p);
}

enum fettle_status fettle_profile(struct fettle *f, const struct fettle_bench_options *in,
				  struct fettle_profile **out)
{
	struct fettle_profile_row *rows = NULL;
	struct options o;
	size_t n = 0;
	enum fettle_status st = options_read_one_model(f, &o, in);

	if (!st)
		st = request_profile(&f->cx, &o.o, &rows, &n);
	if (!st) {
		struct profile *p = xcalloc(1, sizeof(*p));

		p->rows = rows;
		p->pub.size = sizeof(p->pub);
		p->pub.n = n;
		p->pub.rows = sized_list(&p->arena, rows, n, sizeof(*rows));
		*out = &p->pub;
	}
	options_release(&o);
	return st;
}

/* ---- inspection ---- */

struct inspected {
	struct fettle_inspection pub;
	struct inspection own;
};

void fettle_inspection_free(struct fettle_inspection *pub)
{
	struct inspected *x = (struct inspected *)pub;

	if (!x)
		return;
	inspection_release(&x->own);
	free(x);
}

static void publish(struct inspected *x)
{
	struct inspection *i = &x->own;
	const struct subject *s = i->subject;

	x->pub = (struct fettle_inspection){
		.size = sizeof(x->pub),
		.n_ops = s->ops.n,
		.n_blocks = s->ops.n_blocks,
		.n_cuts = i->n_cuts,
		.n_inputs = s->m->n_inputs,
		.n_outputs = s->m->n_outputs,
		.ops = sized_list(&i->arena, i->ops, s->ops.n, sizeof(*i->ops)),
		.inputs = sized_list(&i->arena, i->in, s->m->n_inputs, sizeof(*i->in)),
		.outputs = sized_list(&i->arena, i->out, s->m->n_outputs, sizeof(*i->out)),
		.opset = s->m->opset,
		.opset_of_file = s->m->raised_from ? s->m->raised_from : s->m->opset,
		.weight_bytes = i->weight_bytes,
		.total_macs = s->ops.total_macs,
		.int8_share = i->int8_share,
		.log10_plans = i->log10_plans,
		.n_recipes = i->n_recipes,
		.recipes = i->recipes,
		.cpu = s->cpu.name,
	};
}

enum fettle_status fettle_inspect(struct fettle *f, const struct fettle_inspect_options *in,
				  struct fettle_inspection **out)
{
	struct inspected *x = xcalloc(1, sizeof(*x));
	struct options o;
	enum fettle_status st = begin(f, &o, &options_inspect, in);

	if (!st)
		st = request_inspect(&f->cx, &o.o, &x->own);
	if (!st) {
		publish(x);
		*out = &x->pub;
	} else {
		fettle_inspection_free(&x->pub);
	}
	options_release(&o);
	return st;
}

/* ---- runs ---- */

enum fettle_status fettle_history(struct fettle *f, const char *workspace, struct fettle_run **out)
{
	struct run_copy *c;
	enum fettle_status st;

	f->cx.err.msg[0] = '\0';
	st = run_read(workspace, &c, &f->cx.err);
	if (!st)
		*out = &c->pub;
	return st;
}

void fettle_run_free(struct fettle_run *r)
{
	run_copy_free((struct run_copy *)r);
}

enum fettle_status fettle_workspaces(struct fettle *f, const char *folder, char ***out, size_t *n)
{
	f->cx.err.msg[0] = '\0';
	return runs_list(folder, out, n, &f->cx.err);
}
