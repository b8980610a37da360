/* Ranges that nobody has observed: what a model takes to run does not depend on them. */
#include <math.h>

#include "tune/facts.h"

enum { MADE_UP = -1 }; /* in place of a number of samples */

bool learner_calibrated(const struct learner *l, int64_t samples)
{
	const struct facts *f = known_facts(l, samples, "");

	return !l->s.calib || (f && f->own);
}

/* How long a run takes depends on the data, too. */
static bool depends_on_data(const struct model *m)
{
	static const char *const ops[] = { "Compress", "If",       "Loop", "NonMaxSuppression",
					   "NonZero",  "RoiAlign", "Scan", "Unique" };
	size_t i, k;

	for (i = 0; i < m->nodes.n; i++)
		for (k = 0; k < ARRAY_LEN(ops); k++)
			if (node_is(m->nodes.v[i], ops[k]))
				return true;
	return false;
}

/* A Relu or Clip that the runtime leaves out before a Q must be one that it can leave out here, too. */
static struct range made_up_range(const struct subject *s, const char *value)
{
	const struct node *n = graph_producer(&s->g, value);
	float lo = -1, hi = 1;

	if (n && op_cuts_off(n)) {
		op_cut_bounds(s->m, n, &lo, &hi);
		lo = isfinite(lo) ? lo : fminf(hi, 0) - 1;
		hi = isfinite(hi) ? hi : fmaxf(lo, 0) + 1;
	}
	return (struct range){ fminf(lo, 0), fmaxf(hi, 0) };
}

enum fettle_status learn_made_up(struct learner *l, const struct qplan *plan, struct knowledge *out,
				 bool *made_up, struct err *err)
{
	struct needs needs = NEEDS_INIT;
	struct facts *f = NULL;
	enum fettle_status st = FETTLE_OK;
	size_t i;

	*made_up = !plan_rewrites(plan) && !depends_on_data(l->s.s->m);
	if (!*made_up)
		return FETTLE_OK;
	st = find_facts(l, MADE_UP, plan, &f, err);
	if (!st)
		st = quantizer_needs(f->v->s->z, plan, &needs, err);
	*made_up = !needs.means.n && !needs.blocks.n && !needs.rounding;
	for (i = 0; i < needs.ranges.n && !st; i++)
		statistics_set_range(f->values, needs.ranges.v[i].value, &needs.ranges.v[i].setting,
				     made_up_range(l->s.s, needs.ranges.v[i].value));
	needs_release(&needs);
	if (!st)
		*out = (struct knowledge){ .variant = f->v, .values = f->values };
	return st;
}
