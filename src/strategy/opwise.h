/*
 * The space as optimisers see it: ops (fp32 only where there is nothing else) and calibration sizes, no recipes; the default
 * as option 0.
 */
#ifndef STRATEGY_OPWISE_H
#define STRATEGY_OPWISE_H

#include "strategy/strategy.h"

struct opwise {
	size_t *param; /* [n]: which of the space's */
	size_t n;
	uint16_t (*option)[SPACE_OPTIONS_MAX]; /* [n]: what the optimiser's numbers mean */
	unsigned *n_options;                   /* [n] */
};
void opwise_init(struct opwise *x, const struct space *s);
void opwise_release(struct opwise *x);
/* Can any op be quantized? */
bool opwise_can_quantize(const struct space *s);
/* Names the stage by the number of plans, and says what is left out. */
void opwise_begin(struct search *s);

#endif
