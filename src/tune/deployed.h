/* How a model will be deployed: what latency is measured under. */
#ifndef TUNE_DEPLOYED_H
#define TUNE_DEPLOYED_H

#include "tune/context.h"
#include "tune/lab.h"

/*
 * What a batch of so many samples really has: the model may have no other number, nor the data more samples (0: they are
 * made up). Tells the caller.
 */
size_t deployed_rows(struct context *cx, const char *model, const struct session *s, size_t samples,
		     size_t batch);
/* The same for all, of which those that come to the same are one. */
void deployed_drop_same(struct deployed *d, struct context *cx, const char *model, const struct session *s,
			size_t samples);
/*
 * Plans are compared on the first batch, or on as many samples as a run may take of an evaluation with so many (0: not known).
 * Tells the caller.
 */
void deployed_compare_on(struct deployed *d, struct context *cx, const struct session *s, size_t evaluated);
size_t deployed_batch(const struct deployed *d, size_t which);
/* What a run on the first batch takes, over one on the batch that plans are compared on. */
double deployed_scale(const struct deployed *d);

#endif
