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
	double cost; /* when done */
};

struct trials {
	const struct point_space *space;
	struct point_set points;
	VEC(struct trial) list; /* parallel to the points */
	size_t done, failed;
	struct shuffle order; /* where unseen points come from when the model has no say */
};

void trials_init(struct trials *t, const struct point_space *space, uint64_t seed);
void trials_release(struct trials *t);

void trials_ask(struct trials *t, const uint16_t *point); /* now pending; it must be unseen */
void trials_tell(struct trials *t, const uint16_t *point, double cost);
bool trials_seen(const struct trials *t, const uint16_t *point);
bool trials_ask_random(struct trials *t, uint16_t *point); /* an unseen one, asked; false: none is left */

/* numbers[done + failed], the best first; the failed come last, and the earlier before its equals. */
void trials_rank(const struct trials *t, size_t *numbers);

#endif
