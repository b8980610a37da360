/*
 * What a strategy is, and what it may ask. It sees the space and the scores, never the runtime:
 *
 *	static enum fettle_status mine_traverse(struct search *s)
 *	{
 *		struct plan p = PLAN_INIT;
 *		struct score score;
 *		enum fettle_status st;
 *
 *		plan_init(&p, search_space(s));
 *		st = search_try(s, &p, &score);
 *		...
 *		plan_release(&p);
 *		return st;
 *	}
 *	const struct strategy strategy_mine = { .name = "mine", .summary = "…", .traverse = mine_traverse };
 *
 * Every function that returns FETTLE_STOP means: the budget is spent, the goal is reached, or the user wants
 * to stop; pass it up. The search remembers every trial and the best plan; a strategy need not.
 * A plan that was tried before, or comes to a model that was, returns that score and is no second trial.
 */
#ifndef STRATEGY_STRATEGY_H
#define STRATEGY_STRATEGY_H

#include "base/err.h"
#include "base/rng.h"
#include "remote/service.h"
#include "space/space.h"

struct search; /* implemented in tune */

#define SLIGHT_SHARE 0.1 /* of the multiply-adds: with less in low precision the search is not over */

struct score {
	bool failed;     /* the trial could not be run or evaluated; accuracy is NaN */
	bool met;        /* meets the accuracy criterion, and quantizes something */
	bool slight;     /* met, but by quantizing less than SLIGHT_SHARE: the search continues */
	double accuracy; /* as the metric gives it */
	double loss; /* what it lost against the baseline, in units of the criterion; lower is better, NaN if failed */
	double objective; /* latency (or size, memory) of those that meet the criterion; lower is better; else NaN */
	/*
	 * The evaluation ended as soon as what the strategy wants was certain. low..high holds the accuracy; `accuracy`
	 * is the end of it that is nearer to the criterion: the worst it can be when met, otherwise the best.
	 */
	bool early;
	double low, high;
	/* What it is expected to lose beyond `loss`, which is then the least that it can have lost; in the same unit. */
	double beyond;
};

/* What a strategy wants to know of the trials to come. The less it wants, the less they cost. */
enum want {
	WANT_VALUE, /* the accuracy itself, to compare trials by; what every strategy begins with */
	/*
	 * Whether the criterion is met, and which trial is the most accurate so far. Once there is a plan that meets it
	 * and the search is not held, only which is the best: `met` of others may be false though nobody knows.
	 */
	WANT_VERDICT,
	/*
	 * Whether the criterion is met. Where samples are right or wrong and hardly one may be lost, a trial that fails is looked at on
	 * the hardest samples only, and its loss is what it lost of them. Where samples can only lose, it is looked at until it is
	 * certain that it fails, and score.beyond says what more it is expected to lose. See search_settle().
	 */
	WANT_PASS,
	/* As WANT_VERDICT while the search is held: a plan that quantizes less and is no faster is not even evaluated. */
	WANT_FASTER,
};

/* What a strategy can be told by the user; zero or NULL: its own default. */
struct strategy_options {
	int confidence_batches;                /* mse_v2: 2 */
	int n_startup_trials, n_ei_candidates; /* tpe: 10, 24 */
	double gamma, prior_weight;            /* tpe: 0.1, 1 */
	uint64_t seed;
	void *self;              /* of a strategy that was registered through the C API */
	struct service *service; /* sigopt: what proposes plans */
	const char *objective;   /* what score.objective is called elsewhere; NULL: latency */
};

struct strategy {
	const char *name, *summary;
	/*
	 * What it asks for depends on nothing but the search's answers, costs next to nothing to find out, and changes nothing
	 * outside: so it can run again, on guesses, to see which plans are likely to come next. Idle workers run these ahead.
	 */
	bool replays;
	bool bounded; /* it asks search_may_spend(): the user may set neither trials nor time */
	/* Either full control, or one plan after the other (FETTLE_STOP: no more), driven by the common loop. */
	enum fettle_status (*traverse)(struct search *s);
	enum fettle_status (*next)(struct search *s, void *state, struct plan *plan);
	void *(*state_new)(struct search *s); /* for `next`; may be NULL */
	void (*state_free)(void *state);
};

const struct strategy *strategy_find(const char *name); /* in any case, O0 and O1 too; NULL when unknown */
const struct strategy *strategy_at(size_t i);           /* NULL past the end */
/* Runs traverse, or drives next; FETTLE_STOP when told to stop, FETTLE_OK when the strategy has nothing more. */
enum fettle_status strategy_run(const struct strategy *st, struct search *s);

const struct space *search_space(const struct search *s);
const struct strategy_options *search_options(const struct search *s);

/* One trial. FETTLE_STOP when there is to be no further one (score is still filled for this one, if it ran:
 * score->accuracy is NaN and failed is set if it did not). */
enum fettle_status search_try(struct search *s, const struct plan *p, struct score *score);
/* Trials that do not depend on each other; scores in the order of the plans. May end early with FETTLE_STOP:
 * those not tried have failed set. */
enum fettle_status search_try_all(struct search *s, const struct plan *plans, size_t n, struct score *scores);
/* As long as nothing meets the criterion: trials that may be the most accurate so far, but were looked at in part, are evaluated to
 * their end. At the end of a search it is done in any case. */
enum fettle_status search_settle(struct search *s);
/* Says what the strategy leaves untried, and why, as a phrase; for the user, should the search end for lack of plans. */
void search_untried(struct search *s, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void search_want(struct search *s, enum want what);
double search_tolerance(const struct search *s); /* the largest score.loss that meets the criterion */
/* Is there room for n more trials? (0 limit: always.) For choosing how to spend what is left. */
size_t search_trials_left(const struct search *s); /* SIZE_MAX: no limit */

size_t search_workers(const struct search *s); /* trials that search_try_all() runs side by side */
/* FETTLE_STOP: the user wants to stop, or time is up. For strategies that wait for something else than a trial. */
enum fettle_status search_may_continue(struct search *s);
bool search_cancelled(const struct search *s);        /* by the user, or out of time */
bool search_higher_is_better(const struct search *s); /* the accuracy */
double
search_target(const struct search *s); /* the accuracy that meets the criterion; not finite: any does */
/* Something that this strategy must know when the run is resumed: a text by its name. NULL: there is none; free() it. */
enum fettle_status search_note(struct search *s, const char *name, const char *text);
char *search_noted(struct search *s, const char *name);

/*
 * The user has set no time: then stages that only improve on what meets the criterion try what may gain something that is worth
 * a trial, and not for long.
 */
bool search_frugal(const struct search *s);
/* The user limits the model's size: so many bytes are about what the weights of all ops may take up. 0: there is no limit. */
double search_size_room(const struct search *s);
/* What the gains of the space are to be multiplied by: at most 1, less where profiles have shown that they are smaller. */
double search_gain_scale(const struct search *s);
/* Is what a plan may gain worth so many fp32 passes? With time to spend, it always is. */
bool search_worth(struct search *s, const struct plan *p, double passes);
/*
 * May the search spend so many fp32 passes more? A user who sets neither trials nor time wants a good result soon: then all that
 * it spends is bounded by what the fastest plan saves, and by a few passes. A strategy that has met nothing yet looks further.
 */
bool search_may_spend(struct search *s, double passes);
double search_spent(const struct search *s); /* so far, in fp32 passes */
double search_gain(const struct search *s);  /* what the fastest plan saves, as a share of the latency */
/* From here on the search ends when that is used up, whether something meets the criterion or not. FETTLE_STOP: it is. */
enum fettle_status search_bound(struct search *s);
/* Is each sample right or wrong, and the accuracy how many are right? */
bool search_counts(const struct search *s);
/* Does what is lost grow as the error of the output does, as by cosine? */
bool search_loses_by_error(const struct search *s);
/* Does a plan miss the criterion by what a single sample weighs? Which sample that is, is a matter of chance. */
bool search_one_sample(const struct search *s, const struct score *score);
/* Is a costly recipe, applied to this plan, expected to be worth the time it takes? */
bool search_costly_worth(struct search *s, const struct plan *p);

/* From here on no stage need leave trials to those that follow. */
void search_spend_all(struct search *s);
bool search_spends_all(const struct search *s);

size_t search_n_trials(const struct search *s); /* so far; to see whether a plan was new */
/* Where a function of another folder may write its message; a strategy that returns its status has reported it. */
struct err *search_err(struct search *s);

/* Names the stage that the following trials belong to, for the history and the user. The text is copied. */
void search_stage(struct search *s, const char *stage);
/*
 * While held, meeting the criterion does not stop the search (budget and user still do): for stages that continue
 * to improve what they found. Letting go returns FETTLE_STOP if the goal was reached meanwhile.
 */
void search_hold(struct search *s);
enum fettle_status search_release(struct search *s);

/* The best so far: among those that meet the criterion by the objective, else the most accurate. false: none yet. */
bool search_best(const struct search *s, struct plan *plan, struct score *score);
/* It meets the criterion, but is not clearly better than the fp32 model by the objective. */
bool search_best_gains_nothing(const struct search *s);
/*
 * What to build on: the best if it meets the criterion (and is not slight), else the most accurate of those in which no op
 * has fallen back; the best if there is none such. false: nothing yet.
 */
bool search_base(const struct search *s, struct plan *plan, struct score *score);

/* Has a trial failed that quantizes a part of what this plan does, in the same way and with the same recipes? */
bool search_fails_with_less(const struct search *s, const struct plan *p);

enum rank {
	RANK_OUTPUT_MSE, /* error of each op's output in the quantized model against the fp32 one */
	RANK_IMPACT,     /* error of the model's output when this op alone is quantized, as the plan has it */
	RANK_IMPACT_BACK, /* the same for ops in fp32, as they would be quantized again */
	RANK_HESSIAN,     /* average trace of the Hessian times squared weight error (HAWQ-V2) */
	/* the share of the fp32 model's time that each op takes as the plan has it, by a profile; no ops where latency does not count */
	RANK_SECONDS,
	/* What RANK_IMPACT says of each op over the time that it saves, conversions counted: those that should fall back first. Ops with
	 * the same score gain only together. Of the plan ranked by impact last; no ops where no times are known. */
	RANK_WORTH,
	/* The share of the fp32 model's time that is saved with this op alone in integers, conversions counted; no ops as above. */
	RANK_ALONE,
	/* The same for ops that may be dynamic, if they are, whatever the plan has them in. Negative: it takes longer. */
	RANK_DYNAMIC,
};
/* Ops (parameter numbers) with their scores, highest first. Only ops that the rank covers are in it. */
struct op_order {
	size_t *op;
	double *score;
	size_t n;
};
#define OP_ORDER_INIT                                                                                        \
	{                                                                                                    \
		NULL, NULL, 0                                                                                \
	}
/* Costs no trial. RANK_IMPACT and RANK_IMPACT_BACK use at most confidence_batches batches, and take at most about as long as one
 * evaluation of the fp32 model. */
enum fettle_status search_rank_ops(struct search *s, const struct plan *p, enum rank by,
				   struct op_order *out);
struct op_order op_order_copy(const struct op_order *o);
void op_order_release(struct op_order *o);
/* The error of the model's output under a plan, as a share of the output, on a few batches. Costs no trial. */
enum fettle_status search_estimate(struct search *s, const struct plan *p, double *error);
/* These are likely to be estimated next, in this order: where there are several workers they do so now, side by side. */
enum fettle_status search_expect_estimates(struct search *s, const struct plan *plans, size_t n);
/*
 * The plan with the settings and recipes of `from` in which each op has the mode (static, dynamic, fp32) that makes the model fastest,
 * by profiles. `within`: ops may only be as they are in `from`, or in fp32. The plan is `from` where nothing faster is known, and
 * where latency is not what counts. Costs no trial.
 */
enum fettle_status search_fastest(struct search *s, const struct plan *from, bool within, struct plan *out);
/*
 * Does the best trial show that the profiles of search_fastest() were taken on a busy machine? Then they are forgotten, and the next call
 * takes new ones. True once at most, and only where that takes little time.
 */
bool search_doubts_fastest(struct search *s);
/* Latency, or what else the user wants low, in units of the fp32 model's. Costs no trial. */
enum fettle_status search_objective(struct search *s, const struct plan *p, double *value);

#endif
