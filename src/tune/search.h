/*
 * The search: what strategies ask their questions of (strategy/strategy.h). It remembers every trial, knows
 * when to stop, and keeps the best plan. Callbacks run the plans, so that it can be tested, and
 * replayed, with no model.
 *
 *	search_new(&s, &config, err);
 *	search_run(s, strategy_find("basic"), err);
 *	best = search_best_trial(s);
 *	why = search_why(s);
 *	search_free(s);
 *
 * A run can be resumed: trials that `known` has the result of are not run again, but keep their numbers and count
 * against the limits as they did, so that the run continues exactly where it was cut off. With other limits the
 * strategy may ask for other plans from some trial on; what was known and is not asked for again is adopted at the end.
 */
#ifndef TUNE_SEARCH_H
#define TUNE_SEARCH_H

#include "evaluate/metric.h"
#include "strategy/strategy.h"

/* When an evaluation has told what there is to know: see verdict_certain(). All are values of the metric. */
struct verdict {
	bool higher_is_better;
	double meet;     /* this good meets the criterion */
	double beat;     /* a trial that fails is of use only if it is at least this good; NaN: it never is */
	double tie;      /* less than this is of no use even if it meets the criterion; NaN: it is */
	bool exact_pass; /* the value of those that meet it is wanted too */
	double look; /* this share of the samples, the hardest, is looked at even if it is certain before */
};
/* Can no value within low..high, NaN included, make a difference? */
bool verdict_certain(const struct verdict *v, double low, double high);

struct trial {
	size_t number; /* from 1; 0 is the baseline */
	struct plan plan;
	const char *stage;
	struct score score;
	char why[256]; /* of a failure */
	double seconds;
	uint64_t identity;             /* of the model it comes to; 0: unknown */
	const struct verdict *verdict; /* for the backend: what is enough; NULL: the value is wanted */
	bool ahead;                    /* for the backend: nobody has asked for it, see run_all */
	/* what the backend wants to keep of it */
	size_t samples, size_bytes;
	double latency;         /* seconds; NaN: not measured */
	size_t footprint_bytes; /* 0: not measured */
	double quantize_s, session_s, evaluate_s, measure_s;
	double values[METRICS_MAX]; /* of several metrics, each one's; NaN: not known */
	double cut_share;           /* of a pass, that earlier trials had run already */
	double beyond; /* of one that ended early: what its accuracy is expected to be worse than the best it can be */
	int rank; /* that ran it, and which of its workers */
	size_t worker;
};

struct search_backend {
	/*
	 * Evaluates t->plan: fills score.accuracy; or, if it ended early, score.early, low and high; or score.failed
	 * and why. Anything but FETTLE_OK ends the search; FETTLE_STOP says that the trial was broken off (out of time
	 * or cancelled) and does not count.
	 */
	enum fettle_status (*run)(void *self, struct trial *t, struct err *err);
	/*
	 * The same for several, at most `width`, side by side; statuses of each. May be NULL, then `width` is 1. After them may come
	 * plans that nobody has asked for (`ahead`), the likeliest first: workers that are left run them, one after the other, and
	 * break off (FETTLE_STOP) when the others are done. What was computed makes the trial of the same plan cheaper, should it
	 * come; its score is to the bit the same as without. Nothing else may depend on them: their scores are not looked at, and
	 * their failures are none.
	 */
	void (*run_all)(void *self, struct trial *t, size_t n, enum fettle_status *st, struct err *err);
	/*
	 * Fills t->identity: plans that come to the same model have the same one, and only the first of them is a trial. Says
	 * what it took in quantize_s. May be NULL.
	 */
	void (*identify)(void *self, struct trial *t);
	/* The share of the model's multiply-adds that a plan has in low precision. NULL: none quantizes too little. */
	double (*share)(void *self, const struct plan *p);
	/*
	 * Latency or the like, lower is better; only asked of plans that meet the criterion or may come to be the best. What is
	 * measured is measured against `against`, a plan whose objective is known, so that the two can be compared; NULL:
	 * against the fp32 model.
	 */
	enum fettle_status (*objective)(void *self, struct trial *t, const struct trial *against,
					double *value, struct err *err);
	/* This plan is the best so far: others will be measured against it. May be NULL. */
	void (*prefer)(void *self, const struct plan *p);
	/* Before trials that do not depend on each other: what was learnt from earlier ones may be used from here on. */
	void (*begin_group)(void *self);
	/* Any order; the search sorts. */
	enum fettle_status (*rank)(void *self, const struct plan *p, enum rank by, int batches,
				   struct op_order *out, struct err *err);
	enum fettle_status (*estimate)(void *self, const struct plan *p, int batches, double *error,
				       struct err *err);
	/* The same for several side by side; a plan that cannot be had has INFINITY. May be NULL; FETTLE_UNSUPPORTED: it can do
	 * one at a time only. */
	enum fettle_status (*estimate_all)(void *self, const struct plan *plans, size_t n, int batches,
					   double *errors, struct err *err);
	/* As search_fastest(). May be NULL: then nothing is known to be faster. */
	enum fettle_status (*fastest)(void *self, const struct plan *from, bool within, struct plan *out,
				      struct err *err);
	/* As search_doubts_fastest(), of a plan with this objective. May be NULL. */
	bool (*doubts)(void *self, const struct plan *p, double objective);
	/* The share of the model's time that the fastest plan so found saves; INFINITY: not known. May be NULL. */
	double (*saves)(void *self);
	/* From a history: fills number (0: the next), score.accuracy, failed, objective, why, identity and seconds. May be
	 * NULL, as may those below. */
	bool (*known)(void *self, const struct plan *p, struct trial *out);
	void (*record)(void *self,
		       const struct trial *t); /* every finished trial that was not known, in order */
	/* A trial that was recorded with bounds has run again, to its end: its accuracy is known now. */
	void (*completed)(void *self, const struct trial *t);
	/* What search_note() keeps. May be NULL. */
	enum fettle_status (*note)(void *self, const char *name, const char *text, struct err *err);
	char *(*noted)(void *self, const char *name);
	bool (*cancelled)(void *self);
	double (*now)(void *self); /* seconds; needed when there is a timeout */
};

/* What is faster than fp32 for certain takes less than this share of its time. */
#define CLEARLY_FASTER 0.98

struct search_config {
	const struct space *space; /* outlives the search */
	struct strategy_options options;
	double baseline; /* accuracy of the fp32 model */
	bool higher_is_better;
	bool relative;          /* loss in shares of |baseline|; otherwise as a difference */
	double tolerance;       /* the loss that is allowed */
	double accuracy_weight; /* of what was lost, as a share of the baseline, beside the objective; 0: none */
	double size_room;       /* see search_size_room() */
	double fp32_objective; /* a plan with a higher one is no gain over the fp32 model; 0: unknown */
	double objective_equal; /* objectives within this share of the least count as equal: then more int8 wins */
	size_t max_trials;      /* 0: no limit */
	size_t recorded;        /* trials that a history has, numbered from 1; `known` finds them */
	size_t enough; /* so many that meet the criterion end it; 0: one, but none where there is a timeout */
	double timeout; /* seconds from search_new(); 0: stop at the first plan that meets the criterion */
	bool no_early;  /* every trial is evaluated to its end */
	size_t width;   /* trials side by side; 0: 1 */
	bool frugal;    /* see search_frugal() */
	bool bounded;   /* frugal, and what it spends is bounded: see search_may_spend() */
	size_t samples; /* of an evaluation; 0: not known */
	bool counts;    /* a sample is right or wrong, and the accuracy is how many are right */
	bool only_lose; /* the baseline is the best that a sample can have, and what one loses says what others will */
	/* what takes as long as so many runs of the model on one sample: a trial, besides its samples; fine-tuning one op */
	double trial_runs, costly_runs;
	const struct search_backend *backend;
	void *self; /* the backend's */
};

enum search_stop {
	SEARCH_RUNNING,
	SEARCH_ACCURACY_MET,
	SEARCH_MAX_TRIALS,
	SEARCH_TIMEOUT,
	SEARCH_EXHAUSTED, /* the strategy has nothing more to try */
	SEARCH_INTERRUPTED,
	SEARCH_FAILED, /* a status of the backend or the strategy ended it */
};

/* FETTLE_INVALID when the criterion cannot be computed. */
enum fettle_status search_new(struct search **out, const struct search_config *c, struct err *err);
void search_free(struct search *s);
/* FETTLE_OK when it ended for any reason but a failure; after a failure too the best is there. */
enum fettle_status search_run(struct search *s, const struct strategy *strategy, struct err *err);

enum search_stop search_why(const struct search *s);
const char *search_stop_name(enum search_stop why); /* "accuracy met" */
const char *search_stop_word(enum search_stop why); /* "accuracy_met": what results and histories call it */
/* what strategies said of it, "" if nothing; valid as long as the search */
const char *search_left_untried(const struct search *s);
/* Was anything left out because too much was spent? */
bool search_limited(const struct search *s);
/* plans that were no trial, because they gave a model that was tried */
size_t search_n_same(const struct search *s);
double search_time_left(const struct search *s);   /* INFINITY: no limit */
double search_passes_left(const struct search *s); /* that it may spend; INFINITY: no limit */
const struct trial *search_trial(const struct search *s, size_t place); /* 1 .. search_n_trials() */
const struct trial *search_best_trial(const struct search *s);          /* NULL: none yet */
/* When the run is over: a plan of the history that the strategy did not ask for may be the best, too. */
void search_adopt(struct search *s, const struct plan *p);
/* The best trial's accuracy turned out to be this, now that it was evaluated to the end. */
void search_set_best_accuracy(struct search *s, double accuracy);
/* The pointers that search_trial() and search_best_trial() return are valid until the next trial. */

#endif
