/*
 * Makes the knowledge that plans need, from data or from the history of a run. What was learnt for one plan serves the next:
 * one calibration pass per variant of the model and number of samples, whatever the algorithms; one rounding per plan.
 *
 *	l = learner_new(&source);
 *	learn(l, samples, plan, &k, err);
 *	quantize(subject->z, &k, plan, &model, err);
 *	learner_free(l);
 *
 * With data, knowledge is computed from it, except roundings that an earlier run has left in the workspace. Without, it is
 * read from the history, and fails where that does not have it.
 */
#ifndef TUNE_LEARN_H
#define TUNE_LEARN_H

#include "history/history.h"
#include "quantize/subject.h"

struct finetune_report;

struct learn_source {
	struct runtime *rt;
	struct subject *s;
	struct feed *calib;      /* NULL: no data */
	struct history *history; /* read where there is no data; may be NULL */
	const char *workspace;   /* where roundings are kept; NULL: nowhere */
	double averaging[OBSERVER_AVERAGES];
	int threads;
	int rounding_threads; /* 0: 1 */
	size_t cache;         /* bytes for the recipe finetune */
	progress_fn progress;
	void *self;
	/* Of the model as it is, in place of calibrate(); may be NULL. */
	enum fettle_status (*calibrate)(void *self, int64_t samples, const char *const *values, size_t n,
					struct calibration **out, struct err *err);
	bool means;                     /* plans will probably need the means of channels */
	double *seconds;                /* what calibrating takes is added to this; may be NULL */
	struct finetune_report *report; /* of the recipe finetune; may be NULL */
};

struct learner;
struct learner *learner_new(const struct learn_source *s);
void learner_free(struct learner *l);

/*
 * All that a plan of the subject needs. `samples` of the data are calibrated on, the first in the feed's order; 0: all. What
 * *out points to lives as long as the learner.
 */
enum fettle_status learn(struct learner *l, int64_t samples, const struct qplan *plan, struct knowledge *out,
			 struct err *err);

/*
 * The same with made-up ranges, for plans that are only timed. *made_up is false where that cannot be: the plan needs more than ranges, or
 * what a run takes depends on the data.
 */
enum fettle_status learn_made_up(struct learner *l, const struct qplan *plan, struct knowledge *out,
				 bool *made_up, struct err *err);
/* A plan that may be to come: the next calibration observes what it needs, too. */
enum fettle_status learner_expect(struct learner *l, int64_t samples, const struct qplan *plan,
				  struct err *err);
/* Was the model as it is calibrated on so many samples, or is there nothing to calibrate it on? */
bool learner_calibrated(const struct learner *l, int64_t samples);

/* From now on the calibration data is what `samples` of it are, as for learn(). */
enum fettle_status learner_use_samples(struct learner *l, int64_t samples, struct err *err);
/* The calibration of the model as it is, on so many samples; unless there is one. Releases it. */
void learner_take(struct learner *l, int64_t samples, struct calibration *c);

/* Writes what is not in the history yet, so that learn() can read it from there. */
void learner_keep(struct learner *l, struct history *h);

/* What was observed of a value of the model as it is, or as the first plan had it; NULL: not calibrated. */
const struct observer *learner_observer(const struct learner *l, const char *value);
/* The same of a value of the model as this plan's recipes rewrite it, on so many samples. NULL: that was not observed. */
const struct observer *learner_plan_observer(const struct learner *l, int64_t samples,
					     const struct qplan *plan, const char *value);

#endif
