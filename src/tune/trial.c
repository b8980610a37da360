/* Trials: from a plan to its accuracy. */
#include <math.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/why.h"
#include "tune/examiner.h"
#include "tune/worker.h"

static size_t n_workers(const struct lab *l)
{
	return l->o.jobs ? l->o.jobs : 1;
}

struct session_options lab_session_options(const struct lab *l)
{
	return (struct session_options){ .threads = l->o.threads, .level = l->o.level };
}

struct session_options lab_trial_options(const struct lab *l)
{
	struct session_options so = lab_session_options(l);

	so.alone = n_workers(l) > 1;
	return so;
}

struct workers *workers_of(struct lab *l)
{
	if (!l->workers)
		l->workers = workers_new(n_workers(l), l);
	return l->workers;
}

/* what its model was made for is not wanted any more */
static void forget_model(struct worker *d)
{
	session_free(d->session);
	d->session = NULL;
	model_free(d->model);
	d->model = NULL;
	plan_release(&d->plan);
}

/* What the plan needs; *made_up: its ranges are, as they may be for RANGES_ANY. */
static enum fettle_status learn_for(struct lab *l, const struct plan *p, const struct qplan *q,
				    enum lab_weights weights, struct knowledge *out, bool *made_up,
				    struct err *err)
{
	const int64_t samples = tuning_samples(l->t, p);
	enum fettle_status st = FETTLE_OK;

	*made_up = false;
	if (weights == RANGES_ANY && !learner_calibrated(lab_learner(l), samples))
		st = learn_made_up(lab_learner(l), q, out, made_up, err);
	return st || *made_up ? st : lab_learn_plan(l, samples, q, out, err);
}

enum fettle_status worker_model(struct lab *l, struct worker *d, const struct plan *p,
				enum lab_weights weights, double *seconds, struct err *err)
{
	struct knowledge k;
	struct qplan q = QPLAN_INIT;
	enum fettle_status st;
	double start, calibrating;
	bool finetunes, made_up;

	if (weights == WEIGHTS_NEAREST && l->t->base.recipes.finetune.algorithm == FINETUNE_OFF)
		weights = WEIGHTS_AS_PLANNED; /* which then are the nearest too, or the plan's own recipe's */
	workers_lock(l->workers);             /* the space, too, may grow meanwhile: tune/serve.c */
	if (d->model && plan_equal(&d->plan, p, &l->t->space) &&
	    (d->weights == weights || weights >= WEIGHTS_ANY)) {
		workers_unlock(l->workers);
		return FETTLE_OK;
	}
	forget_model(d);
	tuning_qplan(l->t, p, &q);
	finetunes = q.recipes.finetune.algorithm != FINETUNE_OFF;
	if (weights != WEIGHTS_AS_PLANNED)
		q.recipes.finetune.algorithm = FINETUNE_OFF;
	start = clock_now();
	calibrating = l->times.calibrate;
	st = learn_for(l, p, &q, weights, &k, &made_up, err);
	if (!st)
		st = quantize(l->s->z, &k, &q, &d->model, err);
	calibrating = l->times.calibrate - calibrating;
	qplan_release(&q);
	workers_unlock(l->workers);
	*seconds += clock_now() - start - calibrating;
	d->weights = made_up ? RANGES_ANY : finetunes ? weights : WEIGHTS_AS_PLANNED;
	if (!st)
		plan_copy(&d->plan, p);
	return st;
}

enum fettle_status worker_session(struct lab *l, struct worker *d, double *seconds, struct err *err)
{
	struct session_options so = lab_trial_options(l);
	double start = clock_now();
	enum fettle_status st = FETTLE_OK;

	if (!d->session)
		st = session_new(&d->session, l->rt, d->model, &so, err);
	*seconds += clock_now() - start;
	return st;
}

enum fettle_status lab_model(struct lab *l, const struct plan *p, enum lab_weights weights,
			     struct model **out, struct err *err)
{
	struct worker *d = workers_for(workers_of(l), p);
	enum fettle_status st = worker_model(l, d, p, weights, &l->times.quantize, err);

	*out = d->model;
	return st;
}

enum fettle_status lab_session(struct lab *l, const struct plan *p, enum lab_weights weights,
			       struct session **out, struct err *err)
{
	struct worker *d = workers_for(workers_of(l), p);
	enum fettle_status st;

	st = worker_model(l, d, p, weights, &l->times.quantize, err);
	if (!st)
		st = worker_session(l, d, &l->times.session, err);
	*out = d->session;
	return st;
}

/* ---- evaluation ---- */

bool has_evaluator(const struct lab *l)
{
	return l->o.eval_cmd || l->o.eval_server || l->o.evaluate;
}

bool lab_output_counts(const struct lab *l, size_t i)
{
	return !l->metric || metric_looks_at(l->metric, i);
}

/* The thread that the search runs on asks whether to stop, and tells the others. */
bool worker_may_continue(void *worker, size_t done, size_t total)
{
	struct worker *d = worker;

	if (!workers_is_main(d->l->workers)) {
		atomic_store(&d->done, done);
		atomic_store(&d->total, total);
	} else if (!lab_go_on(d->l, done, total)) {
		workers_stop(d->l->workers, true);
	}
	return !workers_stopped(d->l->workers) && !atomic_load(&d->stop);
}

enum fettle_status lab_evaluate_file(struct lab *l, size_t worker, const char *path, progress_fn go_on,
				     void *self, double *value, struct err *err)
{
	struct worker *d = workers_at(workers_of(l), worker);

	if (l->o.eval_server) {
		if (!d->server)
			d->server = server_new(l->o.eval_server);
		return server_ask(d->server, path, go_on, self, value, err);
	}
	if (l->o.eval_cmd)
		return evaluate_command(l->o.eval_cmd, path, go_on, self, value, err);
	why_forget();
	*value = l->o.evaluate(l->o.evaluate_self, path);
	if (isnan(*value))
		return fail(err, FETTLE_INVALID, "the evaluator gave no number%s", why_text());
	return FETTLE_OK;
}

static enum fettle_status evaluate_saved(struct lab *l, struct worker *d, double *value, struct err *err)
{
	const size_t worker = workers_index(l->workers, d);
	char *path = xstrfmt("%s/trial%zu.onnx", l->o.workspace, worker);
	enum fettle_status st;

	st = model_save(d->model, path, err);
	if (!st)
		st = lab_evaluate_file(l, worker, path, worker_may_continue, d, value, err);
	unlink(path);
	free(path);
	return st;
}

/* ---- a trial ---- */

static void begin(struct lab *l)
{
	workers_begin(workers_of(l), lab_stopped(l));
}

struct qplan_summary lab_summary(const struct lab *l, const struct plan *p)
{
	struct qplan q = QPLAN_INIT;
	struct qplan_summary sum;

	tuning_qplan(l->t, p, &q);
	sum = qplan_summarise(&q, &l->s->ops);
	qplan_release(&q);
	return sum;
}

/* recipes may leave nothing of what a plan quantizes: such a plan is no success, whatever its accuracy */
static bool quantizes_nothing(const struct lab *l, const struct plan *p)
{
	struct qplan_summary sum = lab_summary(l, p);

	return !sum.int8 && !sum.int16 && !sum.dynamic && !sum.weight;
}

/* Is there an op that is allowed to be anything but fp32? */
static bool may_quantize(const struct space *s)
{
	size_t i;

	for (i = 0; i < s->n_ops; i++)
		if (s->v[i].n_options > 1 || s->v[i].fallback == NO_OPTION)
			return true;
	return false;
}

/* Options may have no effect here: what is computed from what, up to the outputs. */
void lab_identify(void *lab, struct trial *t)
{
	struct lab *l = lab;
	struct worker *d = workers_for(workers_of(l), &t->plan);
	struct err why = ERR_INIT;
	struct graph_index g;
	uint64_t *prints;

	begin(l);
	if (quantizes_nothing(l, &t->plan) ||
	    worker_model(l, d, &t->plan, WEIGHTS_AS_PLANNED, &t->quantize_s, &why))
		return; /* a failure is the trial's to report */
	graph_index_init(&g, d->model);
	prints = xcalloc(g.n, sizeof(*prints));
	graph_fingerprints(&g, prints);
	t->identity = model_identity(d->model, &g, prints);
	free(prints);
	graph_index_release(&g);
}

enum fettle_status worker_run(struct lab *l, struct worker *d, struct trial *t)
{
	struct accuracy a = { .value = NAN };
	struct err why = ERR_INIT;
	enum fettle_status st;
	double start;
	bool nothing;

	workers_lock(l->workers);
	nothing = quantizes_nothing(l, &t->plan);
	workers_unlock(l->workers);
	if (nothing) {
		if (!t->ahead)
			workers_has_model(l->workers); /* which it never will */
		t->score.failed = true;
		snprintf(t->why, sizeof(t->why), "%s",
			 may_quantize(&l->t->space)
				 ? "its recipes leave nothing quantized"
				 : "the constraints, or the capability file, leave every op in fp32");
		return FETTLE_OK;
	}
	st = worker_model(l, d, &t->plan, WEIGHTS_AS_PLANNED, &t->quantize_s, &why);
	if (!t->ahead)
		workers_has_model(l->workers);
	if (!st)
		st = lab_size(d->model, &t->size_bytes, &why);
	if (!st && l->o.size_budget && t->size_bytes > l->o.size_budget)
		st = fail(&why, FETTLE_INVALID, "%zu bytes, over the size budget of %zu", t->size_bytes,
			  l->o.size_budget);
	start = clock_now();
	if (!st && has_evaluator(l))
		st = evaluate_saved(l, d, &a.value, &why);
	else if (!st)
		st = examine(l, d, t, &a, &why);
	t->evaluate_s = clock_now() - start - t->session_s;
	t->samples = a.samples;
	if (st == FETTLE_STOP || (st && !worker_may_continue(d, 0, 0))) {
		fail(&d->err, FETTLE_STOP, "stopped");
		return FETTLE_STOP;
	}
	if (st) { /* this plan has no model: the search continues without it */
		t->score.failed = true;
		snprintf(t->why, sizeof(t->why), "%.255s", why.msg);
		return FETTLE_OK;
	}
	t->score.accuracy = a.value;
	memcpy(t->values, a.parts, sizeof(t->values));
	t->score.early = !has_evaluator(l) && a.samples < examiner_samples(l->examiner);
	t->score.low = a.low;
	t->score.high = a.high;
	return FETTLE_OK;
}

/* what it cost, and what it did not */
void lab_account(struct lab *l, const struct trial *t, const struct worker *d)
{
	struct shown shown;

	if (d) {
		examiner_see(l, d, t, &shown);
		examiner_keep(l, t, &shown, d->scores);
	}
	l->times.quantize += t->quantize_s;
	l->times.session += t->session_s;
	l->times.evaluate += t->evaluate_s;
	l->samples_evaluated += t->samples;
	l->saved.cuts += t->cut_share * l->pass_seconds;
	if (t->score.early && t->samples)
		l->saved.early += t->evaluate_s * (double)(examiner_samples(l->examiner) - t->samples) /
				  (double)t->samples;
}

enum fettle_status lab_run(void *lab, struct trial *t, struct err *err)
{
	struct lab *l = lab;
	struct worker *d = workers_for(workers_of(l), &t->plan);
	enum fettle_status st;

	begin(l);
	st = worker_run(l, d, t);
	lab_account(l, t, st ? NULL : d);
	if (st)
		*err = d->err;
	return st;
}

enum fettle_status lab_finish(struct lab *l, const struct plan *p, struct accuracy *out, struct err *err)
{
	struct worker *d = workers_for(workers_of(l), p);
	double start;
	enum fettle_status st;

	begin(l);
	workers_stop(l->workers, false); /* short, and not to be broken off */
	st = worker_model(l, d, p, WEIGHTS_AS_PLANNED, &l->times.quantize, err);
	if (!st)
		st = worker_session(l, d, &l->times.session, err);
	if (st)
		return st;
	start = clock_now();
	st = examine_rest(l, d, p, out, err);
	if (st)
		return st;
	l->times.evaluate += clock_now() - start;
	l->samples_evaluated += out->samples;
	return FETTLE_OK;
}
