/* The value of each of a run's metrics, where there are several: what the history keeps of a trial (0: the baseline). */
#ifndef TUNE_VALUES_H
#define TUNE_VALUES_H

#include "evaluate/metric.h"
#include "history/history.h"

enum fettle_status values_write(struct history *h, size_t trial, const double *v, size_t n, struct err *err);
size_t values_read(struct history *h, size_t trial, double v[METRICS_MAX]); /* how many; 0: none are kept */

#endif
