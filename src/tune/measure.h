/* Models as they are on disk, measured: accuracy, latency, memory. */
#ifndef TUNE_MEASURE_H
#define TUNE_MEASURE_H

#include "tune/fed.h"

struct measure_options {
	const char *model;
	const char *reference;       /* another model, whose outputs are used as labels; NULL: none */
	const struct data_ref *data; /* NULL: made-up numbers are timed */
	struct feed_options feed;    /* how it is read for the accuracy */
	size_t batch;                /* to time with; 0: 1 */
	struct scores_asked scores;
	const char *command, *server; /* programs that measure the accuracy */
	bool higher_is_better;        /* of theirs */
	int threads;
	size_t instances; /* sessions to time at once, each on so many threads; 0: 1 */
	bool decode;      /* time one token after `past` others, made up, instead of the data */
	size_t past;
	double seconds;     /* to time each model for; 0: 1 */
	const char *helper; /* the fettle command, to measure memory in a separate process; NULL: do not */
	const char *helper_data; /* DATA for it, in words */
};

enum fettle_status measure_accuracy(struct context *cx, const struct measure_options *o,
				    struct fettle_score *out);
enum fettle_status measure_by_program(struct context *cx, const struct measure_options *o,
				      struct fettle_score *out);
/* In turns, so that noise hits all of them. */
enum fettle_status measure_latency(struct context *cx, const struct measure_options *o,
				   const char *const *models, size_t n, struct fettle_timing *out);
/* Where the time goes, by op type; free() the rows. */
enum fettle_status measure_profile(struct context *cx, const struct measure_options *o,
				   struct fettle_profile_row **rows, size_t *n);
/* The most memory that this process has had, after one run. */
enum fettle_status measure_footprint(struct context *cx, const struct measure_options *o, size_t *bytes);

#endif
