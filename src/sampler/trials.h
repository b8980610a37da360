/* What a model-based sampler remembers: every point asked or told, numbered by when it first came up. */
#ifndef SAMPLER_TRIALS_H
#define SAMPLER_TRIALS_H

#include "sampler/shuffle.h"

enum trial_state {
	TRIAL_PENDING, /* asked, not yet told */
	TRIAL_DONE,
	TRIAL_FAILED,
};

struct trial {
	enum trial_state state;
	double cost;      /* when done: the first objective */
	double violation; /* sum of those above 0; INFINITY when it failed */
};

struct trials {
	const struct point_space *space;
	struct point_set points;
	VEC(struct trial) list; /* parallel to the points */
	VEC(double) results;    /* for each trial its objectives, then its violations */
	size_t n_objectives, n_constraints;
	size_t done, failed;
	struct shuffle order; /* where unseen points come from when the model has no say */
};

void trials_init(struct trials *t, const struct point_space *space, const struct sampler_options *opt);
void trials_release(struct trials *t);

void trials_ask(struct trials *t, const double *point); /* now pending; it must be unseen */
void trials_tell(struct trials *t, const double *point, const struct sampler_result *r); /* NULL: failed */
bool trials_seen(const struct trials *t, const double *point);
bool trials_ask_random(struct trials *t, double *point); /* an unseen one, asked; false: none is left */

static inline const double *trials_result(const struct trials *t, size_t number)
{
	return t->results.v + number * (t->n_objectives + t->n_constraints);
}

/* numbers[done + failed], the best first: sampler_tell() says which. The earlier comes before its equals. */
void trials_rank(const struct trials *t, size_t *numbers);

#endif
