/* What fettle sees in a model: its ops, what can be done with each, what the runtime makes of a plan. */
#ifndef TUNE_INSPECT_H
#define TUNE_INSPECT_H

#include "space/tuning.h"
#include "tune/context.h"

/* Names are the subject's, which lives as long. */
struct inspection {
	struct subject *subject;
	struct fettle_op *ops;         /* of all nodes */
	struct fettle_value *in, *out; /* the model's inputs and outputs */
	size_t n_cuts, weight_bytes, n_recipes;
	const char **recipes; /* that a search tries */
	double int8_share, log10_plans;
	struct arena arena;
};

enum fettle_status inspect(struct context *cx, struct subject *s, enum approach approach,
			   const struct qplan *plan, const struct tuning *t, struct inspection *out);
void inspection_release(struct inspection *x);

#endif
