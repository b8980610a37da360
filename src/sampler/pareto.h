/* Which of several trials are better when there are several objectives: NSGA-II's order (Deb et al. 2002). */
#ifndef SAMPLER_PARETO_H
#define SAMPLER_PARETO_H

#include "sampler/trials.h"

/*
 * Sorts the trials, which have been told: those that no other dominates first, then those that only they dominate,
 * and so on; in each such front, those in sparse surroundings first. A feasible trial dominates one that is not; of
 * two that are not, the one with the lower violation dominates.
 */
void pareto_sort(const struct trials *t, size_t *numbers, size_t n);

#endif
