/* The trials that no other beats in all objectives at once. */
#ifndef API_PARETO_H
#define API_PARETO_H

#include "api/request.h"
#include "history/history.h"

/* The objectives of a run, for its history: "accuracy+ performance-", + where higher is better. */
char *pareto_objectives(const struct config *c, bool higher_is_better); /* free() it */
/* Sets .pareto of the trials on the front. Those of which an objective was not measured are not on it. */
void pareto_mark(struct fettle_trial *v, size_t n, const char *objectives);
/* The same for a run as it was recorded. */
enum fettle_status pareto_mark_run(struct history *h, struct fettle_trial *v, size_t n, struct err *err);

/* Its numbers, in a finished run. */
enum fettle_status pareto_front(struct history *h, struct arena *a, const size_t **numbers, size_t *n,
				struct err *err);

#endif
