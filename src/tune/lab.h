/* Where trials are carried out: a model, its data, and all that is kept between trials so that nothing is paid for
 * twice. Implements struct search_backend. */
#ifndef TUNE_LAB_H
#define TUNE_LAB_H

#include "evaluate/evaluate.h"
#include "evaluate/rows.h"
#include "history/history.h"
#include "quantize/subject.h"
#include "space/tuning.h"
#include "tune/learn.h"
#include "tune/search.h"

enum lab_objective { LAB_LATENCY, LAB_SIZE, LAB_FOOTPRINT, LAB_ACCURACY, LAB_OBJECTIVES };

/* How the model will be deployed: latency is measured so. */
enum { DEPLOYED_BATCHES = 8 };
struct deployed {
	int threads;      /* of each session; 0: the runtime's choice (all cores) */
	size_t instances; /* sessions that run at once; 0: 1 */
	size_t batches[DEPLOYED_BATCHES + 1], n_batches; /* samples per run; 0: 1 */
	size_t compared; /* which of them plans are compared on: 0, or n_batches, which has fewer samples */
};

struct lab_options {
	const char *model; /* path of the fp32 model */
	int threads;       /* 0: as runtime_share() says, or the runtime chooses */
	struct deployed deployed;
	enum opt_level level; /* of the sessions; OPT_DEFAULT: as users deploy */
	const char *eval_cmd,
		*eval_server; /* evaluator program, instead of data and metric; or a function: */
	double (*evaluate)(void *self, const char *model);
	void *evaluate_self;
	const char *workspace, *helper;
	double weights[LAB_OBJECTIVES]; /* what a plan is judged by; all 0: latency */
	bool higher[LAB_OBJECTIVES];    /* the user wants more of it: then what is judged is its inverse */
	const char *hawq_loss;          /* cross_entropy, mse; NULL: the former where there are labels */
	/* another loss, summed over the first `valid` rows, in place of that; labels may be NULL */
	double (*own_loss)(void *self, const struct tensor *outputs, const struct tensor *reference,
			   size_t n_outputs, const struct tensor *labels, size_t valid);
	void *own_loss_self;
	bool relative;      /* losses are shares of the fp32 model's values; several metrics need to know */
	bool has_reference; /* the metric compares with the fp32 model's outputs */
	double averaging[OBSERVER_AVERAGES]; /* constants of moving averages that plans may ask for */
	bool no_early;                       /* every trial is evaluated to its end */
	double confidence;    /* a verdict that holds with this confidence is enough; 0: it must be certain */
	size_t jobs;          /* trials side by side; 0: 1 */
	size_t cache;         /* bytes to keep activations in */
	int rounding_threads; /* of the recipe finetune; 0: 1 */
	uint64_t seed;
	size_t size_budget; /* bytes of the model file; 0: no limit */
};

/* What was not spent, in seconds of one thread. */
struct lab_saved {
	double early;  /* samples that could not change a verdict */
	double cuts;   /* the part of a network that an earlier trial had run already */
	double beside; /* trials that ran beside others */
};

struct lab_times {
	double prepare, calibrate, quantize, session, evaluate, latency, rank;
};

/* Outputs of the fp32 side, kept for comparing. */
struct reference {
	VEC(struct tensor) v; /* batch by batch */
	size_t per_batch;
};
#define REFERENCE_INIT                                                                                       \
	{                                                                                                    \
		.per_batch = 0                                                                               \
	}

struct ranks;
struct meter;
struct impact;
struct timing;
struct modes;

struct lab {
	struct runtime *rt;
	struct subject *s;
	struct tuning *t;
	struct feed *calib, *eval; /* calib may be NULL for dynamic plans, eval with an evaluator */
	struct feed *timed[DEPLOYED_BATCHES + 1]; /* by batch; NULL: inputs are made up */
	struct metric *metric;
	struct lab_options o;
	struct history *history; /* may be NULL */
	struct err history_err;
	bool history_failed;
	struct lab_times times;
	size_t samples_evaluated;
	struct lab_saved saved;
	double deadline;      /* clock_now() at which a trial is broken off; INFINITY: never */
	progress_fn progress; /* false: cancelled */
	void *progress_self;
	void (*phase)(void *progress_self,
		      const char *name); /* names what progress is of; NULL: nobody asks */
	void (*on_trial)(void *self, const struct trial *t);
	void *on_trial_self;

	struct ranks *ranks; /* that share the trials; NULL: this is the only one. The job's */

	/* kept between trials */
	struct session *fp32;
	struct learner *learner;   /* see lab_learn_plan() */
	struct workers *workers;   /* NULL until the first trial */
	struct forerun *forerun;   /* see tune/forerun.h; NULL: no trial runs ahead */
	struct examiner *examiner; /* NULL before the baseline, and with an evaluator */
	struct meter *meter;       /* NULL until something is measured */
	struct timing *timing;     /* NULL until something is timed */
	struct impact *impact;     /* NULL until ops are ranked by it */
	struct feed *few;          /* what plans are scored on; NULL until then */
	struct modes *modes;       /* NULL until the fastest modes were asked for; see tune/modes.h */
	bool doubted;              /* lab_doubts_modes() was true */
	struct reference scored;   /* outputs of the fp32 model for the samples that plans are estimated on */
	double pass_seconds;       /* of one fp32 evaluation */
	size_t baseline_size;
};

extern const struct search_backend lab_backend;

const char *hawq_loss_find(const char *name); /* whatever its case; NULL: there is none */

/* The session of the user's model, unless it is open already. */
enum fettle_status lab_open_fp32(struct lab *l, struct err *err);
/* The fp32 model's accuracy and latency: the baseline. */
enum fettle_status lab_baseline(struct lab *l, struct accuracy *out, struct err *err);
/* Which weights a plan's model is made with. */
enum lab_weights {
	WEIGHTS_AS_PLANNED,
	WEIGHTS_NEAREST, /* for comparing plans: where finetune is always on it is left out, or each would need its own */
	WEIGHTS_ANY, /* for speed and size, which do not depend on them: those at hand, else without finetune */
	RANGES_ANY, /* the same; and as long as nothing is calibrated, ranges are made up */
};
/* The quantized model of a plan; belongs to the lab until the next call. */
enum fettle_status lab_model(struct lab *l, const struct plan *p, enum lab_weights weights,
			     struct model **out, struct err *err);
/* The model of any quantizer's plan, on the first calibration, without finetune: for comparing many plans that
 * differ in an op or two. model_free() it before the lab. */
enum fettle_status lab_quantize(struct lab *l, const struct qplan *q, struct model **out, struct err *err);
/* The share of its multiply-adds that the runtime computes in integers. Once for all plans of one structure. */
enum fettle_status lab_share(struct lab *l, const struct plan *p, double *share, struct err *err);
/* On all samples, to the end. */
enum fettle_status lab_evaluate(struct lab *l, struct session *s, struct accuracy *a, struct err *err);
enum fettle_status lab_session(struct lab *l, const struct plan *p, enum lab_weights weights,
			       struct session **out, struct err *err);
/* The exact accuracy of a plan whose trial may have ended early: what is missing is evaluated now. */
enum fettle_status lab_finish(struct lab *l, const struct plan *p, struct accuracy *out, struct err *err);
enum fettle_status lab_rank(void *lab, const struct plan *p, enum rank by, int batches, struct op_order *out,
			    struct err *err);
enum fettle_status lab_estimate(void *lab, const struct plan *p, int batches, double *error, struct err *err);
/* Over the ranks; FETTLE_UNSUPPORTED: there are none. */
enum fettle_status lab_estimate_all(void *lab, const struct plan *plans, size_t n, int batches,
				    double *errors, struct err *err);
bool lab_stopped(const struct lab *l); /* cancelled or out of time */
/* As progress_fn: not stopped. The first passes on how many samples are done; the second does not, for what
 * counts something else. */
bool lab_go_on(void *lab, size_t done, size_t total);
bool lab_go_on_uncounted(void *lab, size_t done, size_t total);
/* What the search does now, for who watches; LAB_TRIAL when it is nothing else. */
void lab_phase(struct lab *l, const char *name);
/* All that was done since `start`, when times were as before, counts as ranking, whatever it is made of; calibrating alone does not. */
void lab_count_as_rank(struct lab *l, const struct lab_times *before, double start);
#define LAB_TRIAL "trial"
void lab_release(struct lab *l); /* what is kept between trials; the rest is the caller's */

/* trial.c: a trial */
bool has_evaluator(const struct lab *l);
bool lab_output_counts(const struct lab *l, size_t i); /* is it one that the metric looks at? */
struct session_options lab_session_options(const struct lab *l);
struct session_options
lab_trial_options(const struct lab *l); /* of a trial's: trials side by side leave each other the cores */
/* By the user's program or function; `worker` says which of those side by side asks. */
enum fettle_status lab_evaluate_file(struct lab *l, size_t worker, const char *path, progress_fn go_on,
				     void *self, double *value, struct err *err);
enum fettle_status lab_run(void *lab, struct trial *t, struct err *err);
void lab_identify(void *lab, struct trial *t);
/* share.c: several side by side, here and on other ranks; and plans that run ahead */
void lab_run_all(void *lab, struct trial *t, size_t n, enum fettle_status *st, struct err *err);
void lab_begin_group(void *lab);
struct qplan_summary lab_summary(const struct lab *l, const struct plan *p);
enum fettle_status lab_size(struct model *m, size_t *bytes, struct err *err);
/* Is latency all that counts, besides the criterion? */
bool lab_latency_alone(const struct lab *l);
/* meter.c: what struct search_backend asks; once for all plans that run the same kernels */
enum fettle_status lab_objective(void *lab, struct trial *t, const struct trial *against, double *value,
				 struct err *err);
/* A plan was timed in turns with fp32, which takes so many seconds: its objective, if that is latency alone, need not be measured. */
void lab_recall(struct lab *l, const struct plan *p, double latency, double fp32_seconds);
void meter_free(struct meter *m);
/* timing.c, likewise */
void lab_prefer(void *lab, const struct plan *p);
void timing_free(struct timing *t);

struct learner *lab_learner(struct lab *l); /* made when first asked for */
/* What is known for a plan of the base; see learn(). */
enum fettle_status lab_learn_plan(struct lab *l, int64_t samples, const struct qplan *plan,
				  struct knowledge *out, struct err *err);

#endif
