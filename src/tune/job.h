/*
 * One run from open to finish. Tuning and the search of settings are two kinds of job: they differ in the strategy, in
 * which trial is the best, and in what they report.
 *
 *	job_open(&j, &options, err)	the history is made, or continued
 *	job_baseline(j, err)		the fp32 model is measured
 *	job_search(j, err)		plans are tried
 *	job_finish(j, err)		the best is evaluated to its end, written and described: job_result(j)
 *	job_free(j)
 */
#ifndef TUNE_JOB_H
#define TUNE_JOB_H

#include "quantize/precision.h"
#include "tune/context.h"
#include "tune/lab.h"

struct job;

#define REWRITTEN_META "rewritten"
#define THREADS_META "threads"

/* What differs between the kinds of job. */
struct job_kind {
	const char *name; /* "tune" */
	/* When the history is there. May be NULL. */
	enum fettle_status (*opened)(struct job *j, struct err *err);
	/* The best trial so far, or NULL. */
	const struct trial *(*best)(const struct job *j);
	/* After each trial; `text` describes its plan. May be NULL. */
	void (*tried)(struct job *j, const struct trial *t, const char *text);
	/* When the result is complete. May be NULL. */
	void (*finished)(struct job *j);
	bool says_untried; /* a strategy that runs out of plans says which it left out */
};
extern const struct job_kind job_tune;
extern const struct job_kind job_settings; /* tune/settings_job.h */

/* What a caller is told after each trial. */
struct job_progress {
	const struct trial *trial, *best; /* best: NULL: none yet */
	const char *text;                 /* of the trial's plan */
	double baseline, target;
	double seconds_used, seconds_left; /* left: INFINITY when unknown */
	size_t ranks;                      /* that take part */
};

/* All pointers must outlive the job. */
struct job_options {
	const struct job_kind *kind;
	void *kind_self; /* the kind's own: of job_settings, a struct settings_job */
	struct lab *lab; /* model, data, metric and space */
	const struct strategy *strategy;
	/* Goals and limits. The job itself fills in space, baseline, recorded trials and backend. */
	struct search_config search;
	double time_limit;     /* seconds since `start` that the search ends after; 0: by search.timeout */
	bool performance_only; /* there is no target */
	enum approach approach;
	const char *model, *metric, *workspace, *output;
	struct run_info info; /* what the history is made with, or must be the same as */
	int threads; /* that work is divided among where none are asked for; the history keeps it, as THREADS_META */
	bool resume;
	bool tensorboard;       /* write TensorBoard's files, too: tune/board.h */
	bool rewrite;           /* is the model's graph rewritten? The history keeps it, as REWRITTEN_META. */
	const char *objectives; /* see tune/pareto.h; kept for the history's front */
	const void *model_bytes; /* a model from memory is kept in the workspace; NULL: it has a file */
	size_t model_size;
	struct feed *holdout; /* samples that the search does not see; NULL: none */
	double start, busy;   /* when the call began, and what the runtime had done by then */
	struct context *cx;   /* for notes, warnings and phases */
	void (*trial)(void *self, const struct job_progress *p); /* told after each trial */
	void *trial_self;
};

/* A model as measured. */
struct job_measure {
	double latency; /* seconds; NaN: not measured */
	struct race_ratio speedup;
	size_t size_bytes;
	double values[METRICS_MAX]; /* of each metric, where there are several */
	size_t n_values;
};

/* The best model against fp32, on batches of one size. */
struct job_speed {
	size_t batch;          /* samples in a run */
	double baseline, best; /* seconds of one run */
	struct race_ratio speedup;
};

struct job_result {
	bool met;
	enum search_stop stop;
	double target; /* NaN: there was none */
	double noise;  /* by how much two evaluations of the fp32 model differed; NaN: evaluated once */
	size_t trials;
	struct accuracy baseline_accuracy;
	size_t best_trial; /* 0: no trial finished */
	double best_accuracy;
	struct job_measure baseline, best;
	struct job_measure rewritten; /* the fp32 model with its graph rewritten, if it was */
	struct job_speed
		speeds[DEPLOYED_BATCHES]; /* as many as deployed.batches; the first is that of `best` */
	size_t n_speeds;
	double predicted;  /* how many times as fast as fp32 it was predicted to be; NaN: it was not */
	struct qplan plan; /* of the best */
	struct precisions precisions; /* of its model */
	const char *plan_path;
	const char *almost_nothing, *untried; /* in words; NULL: nothing to say */
	const char *no_faster,
		*would_help; /* why it is no faster than fp32, and under which conditions it may be */
	struct lab_times seconds;
	double seconds_total, seconds_runtime;
	struct {
		double early, cuts, repeated, beside; /* in fp32 passes */
	} saved;
	size_t samples_evaluated;
	bool has_holdout;
	double holdout, holdout_low, holdout_high, holdout_baseline;
	size_t holdout_samples;
	const size_t *pareto;
	size_t n_pareto;
};

enum fettle_status job_open(struct job **out, const struct job_options *o, struct err *err);
enum fettle_status job_baseline(struct job *j, struct err *err);
enum fettle_status job_search(struct job *j, struct err *err);
enum fettle_status job_finish(struct job *j, struct err *err);
const struct job_result *job_result(const struct job *j); /* belongs to the job */
bool job_has_best(const struct job *j);                   /* has a trial come to its end? */
void job_free(struct job *j);

#endif
