/* A metric that a caller has registered, as the evaluator sees one. */
#ifndef EVALUATE_REGISTERED_H
#define EVALUATE_REGISTERED_H

#include "evaluate/metric_impl.h"
#include "fettle.h"

struct registered_metric {
	struct metric_type type; /* first, so that a metric's type leads here */
	struct fettle_metric def;
};
struct registered_metric *registered_metric_new(const struct fettle_metric *def);
void registered_metric_free(struct registered_metric *m);
/* One row of a batch's tensor, as registered functions see it. */
struct fettle_tensor registered_sample(const struct tensor *t, size_t i);

#endif
