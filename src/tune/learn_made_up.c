/* Ranges that nobody has observed: what a model takes to run does not depend on them. */
#include "quantize/precision.h"
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

enum fettle_status learn_made_up(struct learner *l, const struct qplan *plan, struct knowledge *out,
				 bool *made_up, struct err *err)
{
	struct needs needs = NEEDS_INIT;
	struct facts *f = NULL;
	enum fettle_status st;

	*made_up = !plan_rewrites(plan) && !depends_on_data(l->s.s->m);
	if (!*made_up)
		return FETTLE_OK;
	st = find_facts(l, MADE_UP, plan, &f, err);
	if (!st)
		st = quantizer_needs(l->s.s->z, plan, &needs, err);
	*made_up = !needs.means.n && !needs.blocks.n && !needs.rounding;
	needs_release(&needs);
	if (!st && *made_up)
		st = made_up_ranges(f->values, l->s.s, plan, err);
	if (!st)
		*out = (struct knowledge){ .variant = f->v, .values = f->values };
	return st;
}
