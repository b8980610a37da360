/* Workers carry out trials side by side. Each has the model and the session of one plan, and what an evaluation needs of its own. */
#ifndef TUNE_WORKER_H
#define TUNE_WORKER_H

#include <stdatomic.h>

#include "evaluate/paired.h"
#include "tune/order.h"

struct worker {
	struct lab *l;
	atomic_bool stop; /* its trial is no longer wanted; see workers_stop() for all of them */
	struct plan plan; /* whose model and session these are */
	enum lab_weights weights;
	struct model *model;
	struct session *session;
	struct metric *metric;
	struct server *server; /* for options.eval_server; NULL: not started yet */
	struct recall recall;
	double *scores; /* what the samples scored in the last evaluation, by place; NaN: not looked at */
	struct err err;
	atomic_size_t done, total; /* samples of the trial that it carries out */
};

struct workers;
/*
 * For n trials side by side there are twice as many: a model stays with its worker while another runs plans ahead, for whoever
 * measures it next. The lab outlives them.
 */
struct workers *workers_new(size_t n, struct lab *l);
void workers_free(struct workers *w);
size_t workers_n(const struct workers *w);

struct worker *workers_at(struct workers *w, size_t i); /* after the last comes the one of workers_keep() */
size_t workers_index(const struct workers *w, const struct worker *d);
/* The worker that holds this plan's model, or NULL. */
struct worker *workers_with(const struct workers *w, const struct plan *p);
/* The worker that already holds this plan's model; otherwise worker 0. */
struct worker *workers_for(struct workers *w, const struct plan *p);
/* A plan's model and session, if some worker has them, go to one that carries out no trials: they stay until another's do. */
void workers_keep(struct workers *w, const struct plan *p);
/* Sessions go, models stay: for who needs the memory. A session is made again when it is wanted. */
void workers_end_sessions(struct workers *w);

/* Only one at a time may use what all share: the learner, the quantizers. */
void workers_lock(struct workers *w);
void workers_unlock(struct workers *w);

/* The thread that calls this asks whether to stop, and tells the others. */
void workers_begin(struct workers *w, bool stopped);
bool workers_is_main(const struct workers *w);
void workers_stop(struct workers *w, bool stop);
bool workers_stopped(const struct workers *w);

/* Of the trials that were asked for, and run here: have some no model yet? Others run ahead only when all have. */
void workers_expect_model(struct workers *w);
void workers_has_model(struct workers *w);
bool workers_expect_models(const struct workers *w);

/* trial.c: the plan's model, unless it has it already; and its session, for the model it has. Both add the seconds. */
enum fettle_status worker_model(struct lab *l, struct worker *d, const struct plan *p,
				enum lab_weights weights, double *seconds, struct err *err);
enum fettle_status worker_session(struct lab *l, struct worker *d, double *seconds, struct err *err);
/* Runs the trial, in any thread: FETTLE_OK, or FETTLE_STOP if it was broken off. lab_account() comes after it, in the search's
 * thread: adds up what the trial cost, and keeps what it showed, unless the worker is NULL. */
enum fettle_status worker_run(struct lab *l, struct worker *d, struct trial *t);
void lab_account(struct lab *l, const struct trial *t, const struct worker *d);
bool worker_may_continue(void *worker, size_t done, size_t total); /* a progress_fn */
struct workers *workers_of(struct lab *l);                         /* made when first asked for */

#endif
