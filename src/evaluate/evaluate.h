/* Measuring models: accuracy on data, latency, memory; and any program as evaluator. */
#ifndef EVALUATE_EVALUATE_H
#define EVALUATE_EVALUATE_H

#include "calibrate/calibrate.h"
#include "evaluate/metric.h"

struct accuracy {
	double value;
	size_t samples;
	double seconds; /* of it, in the runtime */
};

/* Every sample of the feed through the session. `reference` (the fp32 model) may be NULL when the metric
 * needs none. */
enum fettle_status evaluate_accuracy(struct session *s, struct session *reference, struct feed *feed,
				     struct metric *metric, progress_fn progress, void *self,
				     struct accuracy *out, struct err *err);

struct latency {
	double median, p90; /* seconds for one run */
	size_t runs;
};

/*
 * Times sessions against each other: in turns, so that whatever disturbs the machine disturbs all alike.
 * Each has its own inputs. Runs until `seconds` have passed and each has at least 5 runs.
 */
enum fettle_status evaluate_latency(struct session *const *s, struct tensor *const *inputs, size_t n,
				    double seconds, progress_fn progress, void *self, struct latency *out,
				    struct err *err);

/* Peak resident memory, in bytes, of a fresh process that loads the model and runs it once: `helper` is the
 * fettle command. */
enum fettle_status evaluate_footprint(const char *helper, const char *model, const char *data, size_t batch,
				      int threads, size_t *bytes, struct err *err);
size_t peak_memory(void); /* of this process so far, in bytes */

/* Runs `command` with {model} replaced by the path; the one number on the last line it prints is the score. When go_on (may be NULL)
 * says stop, the command is ended with all it has started, and the status is FETTLE_STOP. */
enum fettle_status evaluate_command(const char *command, const char *model, progress_fn go_on, void *self,
				    double *value, struct err *err);

#endif
