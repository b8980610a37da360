#include "api/run.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/file.h"
#include "tune/sensitivity.h"

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
	c->pub.ops = api_list(&c->arena, out, n, sizeof(*out));
	c->pub.n = n;
}

enum fettle_status api_sensitivity(struct fettle *f, const struct fettle_options *in,
				   struct fettle_sensitivity **out)
{
	struct run u = { .f = f, .start = clock_now() };
	struct costs *c = xcalloc(1, sizeof(*c));
	struct op_sensitivity *rows = NULL;
	struct accuracy a = { .value = NAN };
	enum fettle_status st;
	size_t n = 0;

	st = request_begin(&u.r, f, in, CONFIG_SENSITIVITY);
	if (!st && !u.r.o.model)
		st = fail(&f->err, FETTLE_INVALID, "cannot rate ops: need a model");
	if (!st)
		st = run_open(&u, false);
	if (!st)
		st = api_phase(f, "baseline");
	if (!st && u.lab.metric)
		st = lab_baseline(&u.lab, &a, &f->err);
	if (!st && u.lab.metric)
		scores_judge(&u.scores, f, "the fp32 model", a.value);
	if (!st)
		st = api_phase(f, "rate ops");
	if (!st)
		st = sensitivity(&u.lab, api_progress, f, &rows, &n, &f->err);
	if (!st) {
		fill(c, &u, rows, n);
		if (u.lab.metric) /* a program is not asked about each op */
			snprintf(c->pub.metric, sizeof(c->pub.metric), "%s", u.metric);
		c->pub.baseline = a.value;
		c->pub.cpu = f->cpu.name;
		*out = &c->pub;
	} else {
		fettle_sensitivity_free(&c->pub);
	}
	free(rows);
	run_release(&u);
	return st;
}
