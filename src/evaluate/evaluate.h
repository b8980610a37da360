/* Measuring models: accuracy on data, latency, memory; and any program as evaluator. */
#ifndef EVALUATE_EVALUATE_H
#define EVALUATE_EVALUATE_H

#include "calibrate/calibrate.h"
#include "evaluate/metric.h"
#include "evaluate/turns.h"

struct paired; /* evaluate/paired.h */

struct accuracy {
	double value;     /* NaN when it ended early */
	double low, high; /* what the value lies in; both equal it when nothing was left out */
	size_t samples;
	double seconds;            /* of it, in the runtime */
	double parts[METRICS_MAX]; /* of several metrics, each one's value; NaN when it ended early */
};

/* What makes outputs of a batch: a session, or what knows a part of the way already. */
struct network {
	enum fettle_status (*run)(void *self, const struct feed_batch *b, struct tensor *out,
				  struct err *err);
	void *self;
	size_t n_outputs;
};
struct network network_of(struct session *s); /* NULL: no network */

struct evaluation {
	struct network net, reference; /* the reference (the fp32 model) only where the metric needs one */
	const struct feed *feed;       /* read, but not moved: several evaluations may use one */
	struct metric *metric;         /* forgets what it knew */
	progress_fn progress;          /* may be NULL, as may all below */
	void *self;
	/* Asked after each batch: are these bounds of the value good enough to stop? */
	bool (*certain)(void *judge, double low, double high);
	void *judge;
	size_t least; /* samples that are looked at in any case */
	/*
	 * The feed may visit the samples in another order than their own: scores[place[sample number]] gets what each
	 * scored, so that their mean is, to the bit, what it is in their own order. Only for metrics that are means.
	 */
	const size_t *place; /* NULL: as they come */
	double *scores;      /* [n_scores]; NaN: not seen yet */
	size_t n_scores;     /* in all, also those that this feed does not visit */
	double *margins; /* [n_scores]: how far each is from being wrong; NaN where the metric cannot tell */
	struct paired *paired;  /* bounds that only hold with its confidence, from ... */
	const double *baseline; /* ... the scores of the fp32 model */
};

enum fettle_status evaluate_accuracy(const struct evaluation *e, struct accuracy *out, struct err *err);

/* What is timed: so many sessions of one model at once, each in its own thread, on the same inputs. */
struct contender {
	struct session *const *s;
	size_t n;
	struct tensor *inputs;
	bool crowded;   /* there are more threads than cores: what they take from each other counts */
	bool all_cores; /* as many threads as the runtime chooses: see bind_to_first() */
};
bool sessions_crowd(size_t n, int threads); /* so many at once, each on so many threads (0: all cores) */
struct latency_limits {
	double seconds, undecided, equal, width, slower, warm, least; /* as in struct turns */
};
/* Times models against each other: see evaluate/turns.h. */
enum fettle_status evaluate_latency(const struct contender *v, size_t n, const struct latency_limits *limits,
				    progress_fn progress, void *self, struct latency *out, struct err *err);

/* Peak resident memory, in bytes, of a fresh process that loads the model and runs it once: `helper` is the
 * fettle command. past -1: on a batch of the data; else on one token after so many. */
enum fettle_status evaluate_footprint(const char *helper, const char *model, const char *data, size_t batch,
				      long past, int threads, size_t *bytes, struct err *err);
size_t peak_memory(void); /* of this process so far, in bytes */

/* Runs `command` with {model} replaced by the path; what it prints is read by answer_read(). When go_on (may be NULL)
 * says stop, the command is ended with all it has started, and the status is FETTLE_STOP. */
enum fettle_status evaluate_command_check(const char *command, struct err *err); /* before anything is run */
enum fettle_status evaluate_command(const char *command, const char *model, progress_fn go_on, void *self,
				    double *value, struct err *err);

/* A command that is started when it is first asked and then stays: it reads a path per line and answers with a line.
 * One that has ended or answered nonsense is started again for the next model. One thread at a time. */
struct server;
struct server *server_new(const char *command);
enum fettle_status server_ask(struct server *s, const char *model, progress_fn go_on, void *self,
			      double *value, struct err *err);
void server_free(struct server *s); /* NULL does nothing */

/* The 95 % confidence interval of a share of n samples (Wilson's). */
void share_interval(double share, size_t n, double *low, double *high);

#endif
