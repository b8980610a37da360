#include "evaluate/evaluate.h"

#include <stdlib.h>

#include "base/file.h"

static enum fettle_status one_batch(struct session *s, struct session *reference, const struct feed_batch *b,
				    struct metric *metric, struct tensor *out, struct tensor *want,
				    double *seconds, struct err *err)
{
	size_t n = session_n_outputs(s);
	const struct tensor *labels = b->labels.data ? &b->labels : NULL;
	bool use_reference = false;
	enum fettle_status st;
	double start;

	start = clock_now();
	st = session_run(s, b->inputs, out, err);
	*seconds += clock_now() - start;
	if (st)
		return st;
	if (!labels && b->n_outputs) /* a test set's published outputs */
		return metric_add(metric, out, n < b->n_outputs ? n : b->n_outputs, NULL, b->outputs,
				  b->valid, err);
	use_reference = metric_uses_reference(metric, out, labels);
	if (use_reference && !reference)
		return fail(err, FETTLE_INVALID,
			    "cannot compute %s: the data has no labels for it, need a reference model to "
			    "compare with",
			    metric_name(metric));
	if (use_reference && reference == s)
		want = out; /* the reference against itself: a second run would overwrite the first one's outputs */
	else if (use_reference)
		st = session_run(reference, b->inputs, want, err);
	if (!st)
		st = metric_add(metric, out, n, labels, use_reference ? want : NULL, b->valid, err);
	return st;
}

enum fettle_status evaluate_accuracy(struct session *s, struct session *reference, struct feed *feed,
				     struct metric *metric, progress_fn progress, void *self,
				     struct accuracy *out, struct err *err)
{
	struct tensor *results = xcalloc(session_n_outputs(s), sizeof(*results));
	struct tensor *want = reference ? xcalloc(session_n_outputs(reference), sizeof(*want)) : NULL;
	struct feed_batch b = FEED_BATCH_INIT;
	enum fettle_status st = FETTLE_OK;

	*out = (struct accuracy){ 0 };
	if (reference && session_n_outputs(reference) != session_n_outputs(s)) {
		st = fail(err, FETTLE_INVALID,
			  "cannot compare models: %zu outputs against %zu of the reference",
			  session_n_outputs(s), session_n_outputs(reference));
		goto out;
	}
	feed_rewind(feed);
	while (!(st = feed_next(feed, &b, err))) {
		st = one_batch(s, reference, &b, metric, results, want, &out->seconds, err);
		if (st)
			goto out;
		out->samples += b.valid;
		if (progress && !progress(self, out->samples, feed_samples(feed))) {
			st = fail(err, FETTLE_STOP, "evaluation was stopped");
			goto out;
		}
	}
	if (st == FETTLE_STOP)
		st = metric_value(metric, &out->value, err);
out:
	feed_batch_release(&b);
	free(results);
	free(want);
	return st;
}
