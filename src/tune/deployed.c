#include "tune/deployed.h"

#include <stdio.h>

/* What a run that plans are compared by may take of an evaluation: there are many of them. */
#define COMPARED_SHARE (1.0 / 8)

/* 0: any */
static size_t fixed_batch(const struct session *s)
{
	const struct value *v = session_n_inputs(s) ? session_input(s, 0) : NULL;

	return v && v->type.rank > 0 && v->type.dims[0] > 0 ? (size_t)v->type.dims[0] : 0;
}

size_t deployed_rows(struct context *cx, const char *model, const struct session *s, size_t samples,
		     size_t batch)
{
	size_t fixed = fixed_batch(s);
	char note[512];

	if (fixed && fixed != batch) {
		snprintf(note, sizeof(note),
			 "%.300s takes batches of %zu only: latency is measured with that, not with %zu",
			 model, fixed, batch);
		context_note(cx, note);
		return fixed;
	}
	if (!fixed && samples && samples < batch) {
		snprintf(note, sizeof(note),
			 "the data has %zu samples: latency is measured with that, not with batches of %zu",
			 samples, batch);
		context_note(cx, note);
		return samples;
	}
	return batch;
}

void deployed_drop_same(struct deployed *d, struct context *cx, const char *model, const struct session *s,
			size_t samples)
{
	size_t i, k, n = 0, rows;

	for (i = 0; i < d->n_batches; i++) {
		rows = deployed_rows(cx, model, s, samples, d->batches[i]);
		for (k = 0; k < n && d->batches[k] != rows; k++)
			;
		if (k == n)
			d->batches[n++] = rows;
	}
	d->n_batches = n;
}

void deployed_compare_on(struct deployed *d, struct context *cx, const struct session *s, size_t evaluated)
{
	const size_t share = (size_t)(COMPARED_SHARE * (double)evaluated), most = share ? share : 1;
	char note[512];

	d->compared = 0;
	if (fixed_batch(s) || !evaluated || deployed_batch(d, 0) <= most)
		return;
	d->compared = d->n_batches;
	d->batches[d->compared] = most;
	snprintf(note, sizeof(note),
		 "plans are compared on batches of %zu, because one of %zu is a large part of the "
		 "%zu samples to evaluate; the best is timed with %zu",
		 most, d->batches[0], evaluated, d->batches[0]);
	context_note(cx, note);
}

size_t deployed_batch(const struct deployed *d, size_t which)
{
	return d->batches[which] ? d->batches[which] : 1;
}

double deployed_scale(const struct deployed *d)
{
	return (double)deployed_batch(d, 0) / (double)deployed_batch(d, d->compared);
}
