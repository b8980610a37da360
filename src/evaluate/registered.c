/* A caller's metric as the evaluator sees one. */
#include "evaluate/registered.h"

#include <math.h>
#include <stdlib.h>

#include "base/why.h"

struct fettle_tensor registered_sample(const struct tensor *t, size_t i)
{
	struct tensor one = *t;

	one.dims[0] = 1;
	return (struct fettle_tensor){ (enum fettle_dtype)t->dtype, t->rank - 1, t->dims + 1,
				       t->data ? (const char *)t->data + i * tensor_bytes(&one) : NULL };
}

static enum fettle_status scores(const struct metric *m, const struct metric_batch *b, double *out,
				 struct err *err)
{
	const struct fettle_metric *def =
		&((const struct registered_metric *)(const void *)metric_type(m))->def;
	struct fettle_tensor *outputs = xcalloc(b->n_outputs, sizeof(*outputs)), label;
	enum fettle_status st = FETTLE_OK;
	size_t i, k;

	for (k = 0; k < b->n_outputs && !st; k++)
		st = metric_check(m, "outputs", &b->outputs[k], b->n_valid, err);
	if (!st && b->labels)
		st = metric_check(m, "labels", b->labels, b->n_valid, err);
	for (i = 0; i < b->n_valid && !st; i++) {
		for (k = 0; k < b->n_outputs; k++)
			outputs[k] = registered_sample(&b->outputs[k], i);
		if (b->labels)
			label = registered_sample(b->labels, i);
		why_forget();
		out[i] = def->sample(def->self, outputs, b->n_outputs, b->labels ? &label : NULL);
		if (isnan(out[i]) && *why_text())
			st = fail(err, FETTLE_INVALID, "cannot compute metric '%s'%s", def->name, why_text());
	}
	free(outputs);
	return st;
}

struct registered_metric *registered_metric_new(const struct fettle_metric *def)
{
	struct registered_metric *m = xcalloc(1, sizeof(*m));

	m->def = *def;
	m->def.name = xstrdup(def->name);
	m->type = (struct metric_type){
		.name = m->def.name,
		.summary = "registered",
		.needs = METRIC_NOTHING,
		.higher_is_better = def->higher_is_better,
		.is_mean = true,
		.score_min = -INFINITY,
		.score_max = INFINITY,
		.scores = scores,
	};
	return m;
}

void registered_metric_free(struct registered_metric *m)
{
	free((char *)(uintptr_t)m->def.name);
	free(m);
}
