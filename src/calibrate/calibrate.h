/* One pass over the calibration samples observes every value; every algorithm works from that. */
#ifndef CALIBRATE_CALIBRATE_H
#define CALIBRATE_CALIBRATE_H

#include "calibrate/range.h"
#include "data/feed.h"
#include "runtime/session.h"

struct calibration;

/* Called after each batch; returning false stops with FETTLE_STOP. */
typedef bool (*progress_fn)(void *self, size_t done, size_t total);

/* Gets the outputs of each batch. */
typedef enum fettle_status (*observe_fn)(void *self, const struct tensor *out, const struct feed_batch *b,
					 struct err *err);

/* Another that looks at the same runs. Its values begin with those of the calibration, in their order. */
struct calibrate_watch {
	const char *const *values;
	size_t n;
	/* Gets values[i] of a batch. Different values may come at the same time, from different threads. */
	enum fettle_status (*take)(void *self, size_t i, const struct tensor *t, const struct feed_batch *b,
				   struct err *err);
	void *self;
};

struct calibrate_options {
	int threads;
	progress_fn progress;
	void *self;
	double averaging[OBSERVER_AVERAGES]; /* constants of moving averages, as for an observer */
	const struct calibrate_watch *watch; /* of calibrate() alone; may be NULL */
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

/*
 * The same in parts, a batch each, which may be observed in any order and in different processes: joined in the order of the
 * batches they come to what calibrate() says, to the bit.
 */
struct calibrating;
enum fettle_status calibrating_open(struct calibrating **out, const struct calibrate_on *on,
				    const char *const *values, size_t n, const struct calibrate_options *o,
				    struct err *err);
void calibrating_free(struct calibrating *c);
size_t calibrating_batches(const struct calibrating *c);
enum fettle_status calibrating_observe(struct calibrating *c, size_t batch, struct calibration **out,
				       struct err *err);
/* Of no samples, yet. keep_samples: as for an observer. */
struct calibration *calibration_new(const char *const *values, size_t n, const struct calibrate_options *o,
				    bool keep_samples);
size_t calibration_n(const struct calibration *c);
struct observer *calibration_at(struct calibration *c, size_t i); /* of values[i] */
void calibration_add_samples(struct calibration *c, size_t n);

size_t calibration_samples(const struct calibration *c);
/* NULL when the value was not observed. */
const struct observer *calibration_find(const struct calibration *c, const char *value);

/* A session whose outputs are these values of the model, in this order; graph inputs may be among them. */
struct observed {
	struct model *m;
	struct session *session;
	bool beside; /* a batch is looked at while the next one runs */
};
#define OBSERVED_INIT                                                                                        \
	{                                                                                                    \
		.m = NULL                                                                                    \
	}
enum fettle_status observed_open(struct observed *o, struct runtime *rt, const struct model *m,
				 const char *const *values, size_t n, int threads, struct err *err);
void observed_close(struct observed *o);
/*
 * Runs it on all samples, from the first, and hands on the outputs of each batch, in their order. If `beside`, take()
 * is called in a thread of its own while the next batch runs.
 */
enum fettle_status observed_run(struct observed *o, struct feed *feed, const struct calibrate_options *opt,
				observe_fn take, void *self, struct err *err);
/*
 * The same samples in the batches that it is run on, once: all values of a batch are in memory together, and what is observed does not
 * depend on how many samples that are. `beside`: it may be, where there are a core and memory for it.
 */
struct feed *observed_begin(struct observed *o, const struct feed *feed, bool beside);

/* What a session wants to be fed. */
void session_specs(const struct session *s, struct input_spec *specs); /* session_n_inputs() of them */

#endif
