/* One pass over the calibration samples observes every value; every algorithm works from that. */
#ifndef CALIBRATE_CALIBRATE_H
#define CALIBRATE_CALIBRATE_H

#include "calibrate/range.h"
#include "data/feed.h"
#include "runtime/session.h"

struct calibration;

/* Called after each batch; returning false stops with FETTLE_STOP. */
typedef bool (*progress_fn)(void *self, size_t done, size_t total);

struct calibrate_options {
	int threads;
	progress_fn progress;
	void *self;
	double averaging[OBSERVER_AVERAGES]; /* constants of moving averages, as for an observer */
};

/* A model, and the samples that it is run on. */
struct calibrate_on {
	struct runtime *rt;
	struct model *m;
	struct feed *feed;
};
/* Observes these values of the model over all samples. Values that are not float32 are skipped. */
enum fettle_status calibrate(struct calibration **out, const struct calibrate_on *on,
			     const char *const *values, size_t n, const struct calibrate_options *o,
			     struct err *err);
void calibration_free(struct calibration *c);

size_t calibration_samples(const struct calibration *c);
/* NULL when the value was not observed. */
const struct observer *calibration_find(const struct calibration *c, const char *value);

/* A session whose outputs are these values of the model, in this order; graph inputs may be among them. */
struct observed {
	struct model *m;
	struct session *session;
};
#define OBSERVED_INIT                                                                                        \
	{                                                                                                    \
		NULL, NULL                                                                                   \
	}
enum fettle_status observed_open(struct observed *o, struct runtime *rt, const struct model *m,
				 const char *const *values, size_t n, int threads, struct err *err);
void observed_close(struct observed *o);
/* Runs it on all samples, from the first, and hands on the outputs of each batch. */
typedef enum fettle_status (*observe_fn)(void *self, const struct tensor *out, const struct feed_batch *b,
					 struct err *err);
enum fettle_status observed_run(struct observed *o, struct feed *feed, const struct calibrate_options *opt,
				observe_fn take, void *self, struct err *err);

/* What a session wants to be fed. */
void session_specs(const struct session *s, struct input_spec *specs); /* session_n_inputs() of them */

#endif
