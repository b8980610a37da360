/* What quantizing each op gains in time, by the runtime's own profile of both models. */
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "runtime/profile.h"
#include "tune/compare.h"

enum { PROFILE_RUNS = 30 };

struct times {
	const struct lab *l;
	double *of; /* per parameter */
};

/* The op whose name the runtime's node begins with: the longest, for "conv1" begins "conv10" too. */
static void add_time(void *self, const char *node, const char *op, double seconds, const void *shapes)
{
	struct times *t = self;
	size_t best = 0, found = 0, i;

	(void)op;
	(void)shapes;
	for (i = 0; i < t->l->t->space.n_ops; i++) {
		const char *name = t->l->s->m->nodes.v[t->l->t->node[i]]->name;

		if (strlen(name) > best && str_starts(node, name)) {
			best = strlen(name);
			found = i;
		}
	}
	if (best)
		t->of[found] += seconds;
}

enum fettle_status rank_gain(struct lab *l, const struct plan *p, struct op_order *out, struct err *err)
{
	const struct space *space = &l->t->space;
	struct times fp32 = { l, xcalloc(space->n_ops, sizeof(double)) },
		     plan = { l, xcalloc(space->n_ops, sizeof(double)) };
	struct profile_options o = { .session = { .threads = l->o.threads, .level = l->o.level },
				     .batch = 1,
				     .runs = PROFILE_RUNS };
	struct feed_batch b = FEED_BATCH_INIT;
	struct model *m;
	enum fettle_status st;
	size_t i;

	st = l->one ? feed_read(l->one, 0, &b, err) : FETTLE_OK;
	o.inputs = l->one ? b.inputs : NULL;
	if (!st)
		st = profile_model(l->rt, l->s->m, NULL, &o, add_time, &fp32, err);
	if (!st)
		st = lab_model(l, p, WEIGHTS_ANY, &m, err);
	if (!st)
		st = profile_model(l->rt, m, NULL, &o, add_time, &plan, err);
	for (i = 0; i < space->n_ops && !st; i++)
		if (plan_is_quantized(p, space, i) && fp32.of[i] > 0)
			op_order_add(out, i, fp32.of[i] - plan.of[i]);
	feed_batch_release(&b);
	free(fp32.of);
	free(plan.of);
	return st;
}
