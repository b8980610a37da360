/* The trials of a run that no other beats in all objectives at once. */
#ifndef TUNE_PARETO_H
#define TUNE_PARETO_H

#include "history/history.h"

/*
 * The objectives of a run are a text, kept by its history: "accuracy+ performance-", + where higher is better. Their names are
 * accuracy, performance, modelsize and footprint.
 */
struct pareto_point {
	size_t number;                             /* of the trial */
	double accuracy, latency, size, footprint; /* NaN: not measured, or not to the end */
	bool on_front;                             /* never, where an objective was not measured */
};

/* Every trial of the history; free() *out. */
enum fettle_status pareto_points(struct history *h, struct pareto_point **out, size_t *n, struct err *err);
/* The numbers of those on the front. */
enum fettle_status pareto_front(struct history *h, struct arena *a, const size_t **numbers, size_t *n,
				struct err *err);

#endif
