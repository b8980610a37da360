/*
 * The model of a run's best trial, taken apart for the report: its graph with what each op is computed in and where conversions are
 * paid, histograms of what ops read and of their weights, and where the time goes.
 */
#ifndef REPORT_ANATOMY_H
#define REPORT_ANATOMY_H

#include <jansson.h>

#include "tune/context.h"
#include "tune/learn.h"
#include "tune/sensitivity.h"

struct anatomy {
	struct context *cx;
	struct subject *s;
	struct learner *learner; /* what it observed is drawn; from a history alone it has observed nothing */
	const struct qplan *plan;
	int64_t samples; /* of that plan */
	enum approach approach;
	struct model *quantized; /* by that plan */
	struct knowledge *known; /* for it */
};

/* Each adds a member to the run: "graph", "histograms". */
enum fettle_status anatomy_graph(const struct anatomy *a, json_t *run);
enum fettle_status anatomy_histograms(const struct anatomy *a, json_t *run);
/* "profile": by op type, of the model on disk and of the quantized one. */
struct anatomy_timing {
	const char *model;
	int threads;
	size_t batch;
	struct tensor *inputs; /* NULL: made up */
};
enum fettle_status anatomy_profile(const struct anatomy *a, const struct anatomy_timing *t, json_t *run);
/* "sensitivity" */
void anatomy_sensitivity(const struct lab *l, const struct op_sensitivity *rows, size_t n, double all_sqnr,
			 json_t *run);

#endif
