/*
 * What each op's quantization alone does to the model's output. One run tells what each op puts out beside its fp32 output
 * when all before it is in fp32: its own noise. A second session is the fp32 model with an input at each op's output to which
 * that noise is fed, of one op or of several. So the effect of any op costs one run and no session.
 */
#ifndef TUNE_OWN_NOISE_H
#define TUNE_OWN_NOISE_H

#include "tune/compare.h"

/* q is derived from its fp32 model. Op k makes value[k] in both. */
/* The outputs of *out: for each op, what it makes in q from the fp32 model's values, less what it makes there. */
enum fettle_status noise_model(struct model *q, const char *const *value, size_t n, struct model **out,
			       struct err *err);
/* The fp32 model with n more inputs, of these types, that are added to what the ops make. */
enum fettle_status noisy_model(const struct model *f, const char *const *value, const struct tensor *types,
			       size_t n, struct model **out, struct err *err);

/* Noise of n ops on some samples. */
struct noises {
	struct feed *feed;
	size_t n, batches;
	struct tensor *v; /* [batch][op] */
};
/* So many samples of a feed, from all over it; all of them if it has fewer. */
enum fettle_status noises_begin(struct noises *t, struct feed *all, size_t samples, size_t n,
				struct err *err);
void noises_release(struct noises *t);
/* A take_fn into a struct noises, of a session of noise_model(). Outputs after the n-th are not looked at. */
void keep_noises(void *self, size_t batch, const struct feed_batch *b, const struct tensor *out, size_t n);
/* Runs a session of noisy_model() on all samples with the noise of this op; of none if it is n. */
enum fettle_status noises_run(struct lab *l, const struct noises *t, struct session *s, size_t op,
			      take_fn take, void *self, struct err *err);

#endif
