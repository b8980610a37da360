/* The loss of a model that computes it itself, as Neural Compressor has it: the mean over samples of what the first output adds up to. */
#include <math.h>

#include "evaluate/metric_impl.h"

static enum fettle_status loss_scores(const struct metric *m, const struct metric_batch *b, double *scores,
				      struct err *err)
{
	const struct tensor *t = &b->outputs[0];
	enum fettle_status st = metric_check(m, "outputs", t, b->n_valid, err);
	double v[METRIC_PIECE];
	size_t n, i, at, k, got;

	if (st)
		return st;
	n = (size_t)tensor_count(t) / (size_t)t->dims[0];
	for (i = 0; i < b->n_valid; i++) {
		scores[i] = 0;
		for (at = 0; at < n; at += got) {
			got = metric_read(t, i * n + at, n - at, v);
			for (k = 0; k < got; k++)
				scores[i] += v[k];
		}
	}
	return FETTLE_OK;
}

const struct metric_type metric_type_loss = {
	.name = "loss",
	.summary = "mean over samples of the first output, for a model that computes its own loss",
	.needs = METRIC_NOTHING,
	.is_mean = true,
	.score_min = -INFINITY,
	.score_max = INFINITY,
	.scores = loss_scores,
};
