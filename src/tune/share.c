/*
 * Trials side by side, on this rank's workers and on the other ranks: whoever is free takes the next. Those that were asked for come
 * first; who has none of them left runs plans ahead, until all that were asked for have ended.
 */
#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/file.h"
#include "tune/forerun.h"
#include "tune/ranks.h"
#include "tune/worker.h"

#define POLL_SECONDS 0.002 /* for workers here, while other ranks are listened to */
#define LOOK_SECONDS 0.1   /* whether to stop, while nobody else is */

enum { ANYWHERE = -1 };

struct item {
	struct trial *t;
	enum fettle_status st;
	bool ended;
	size_t tries;   /* that have it now */
	double started; /* the first of them */
	bool again;     /* it was slow, and was given to another */
	char hash[FINGERPRINT_LEN];
};

struct share;

/* A worker of this rank, in its thread. */
struct local {
	struct share *s;
	struct worker *d;
	struct trial t; /* its own copy: another rank may have the same trial, and be first */
	size_t item;
	enum fettle_status st;
	pthread_t thread;
	bool busy, joinable;
	atomic_bool done;
};

struct share {
	struct lab *l;
	struct item *items; /* those that were asked for come first */
	size_t n, n_asked, left;
	double begun;
	struct local *locals;
	size_t n_locals;
	pthread_mutex_t lock;
	pthread_cond_t any_done;
};

static void *local_main(void *local)
{
	struct local *w = local;

	w->st = worker_run(w->s->l, w->d, &w->t);
	pthread_mutex_lock(&w->s->lock);
	atomic_store(&w->done, true);
	pthread_cond_signal(&w->s->any_done);
	pthread_mutex_unlock(&w->s->lock);
	return NULL;
}

/* ---- an answer ---- */

/* what the backend fills in of a trial */
static void take_answer(struct trial *to, const struct trial *from)
{
	const struct plan plan = to->plan;
	const struct trial before = *to;

	*to = *from;
	to->plan = plan;
	to->number = before.number;
	to->stage = before.stage;
	to->seconds = before.seconds;
	to->identity = before.identity;
	to->verdict = before.verdict;
	to->measure_s = before.measure_s;
	to->latency = before.latency;
	to->footprint_bytes = before.footprint_bytes;
}

/* The first answer counts; others of the same trial are the same, and come too late. */
static void answered(struct share *s, size_t i, enum fettle_status st, const struct trial *t)
{
	struct item *e = &s->items[i];
	size_t k;

	e->st = st;
	e->ended = true;
	if (e->t->ahead) {
		if (s->l->ranks && !st)
			ranks_set_home(s->l->ranks, e->hash, t->rank, true);
		return;
	}
	take_answer(e->t, t);
	s->left--;
	if (!s->l->ranks)
		return;
	ranks_took(s->l->ranks, clock_now() - e->started);
	ranks_drop(s->l->ranks, i);
	for (k = 0; k < s->n_locals; k++)
		if (s->locals[k].busy && s->locals[k].item == i)
			atomic_store(&s->locals[k].d->stop, true);
}

static void end_local(struct share *s, struct local *w, struct err *err)
{
	struct item *e = &s->items[w->item];

	if (w->joinable)
		pthread_join(w->thread, NULL);
	w->busy = false;
	e->tries--;
	if (e->ended)
		return;
	answered(s, w->item, w->st, &w->t);
	if (e->t->ahead)
		return;
	lab_account(s->l, e->t, w->st ? NULL : w->d);
	if (w->st)
		*err = w->d->err;
}

/* ---- starting one here ---- */

static bool in_use(const struct share *s, const struct worker *d)
{
	size_t k;

	for (k = 0; k < s->n_locals; k++)
		if (s->locals[k].busy && s->locals[k].d == d)
			return true;
	return false;
}

/* It has the model of a trial that has ended: who asked for that may measure it next. */
static bool is_wanted(const struct share *s, const struct worker *d)
{
	size_t i;

	for (i = 0; i < s->n_asked && d->model; i++)
		if (plan_equal(&d->plan, &s->items[i].t->plan, &s->l->t->space))
			return true;
	return false;
}

static struct worker *worker_for(const struct share *s, const struct plan *p)
{
	struct workers *w = s->l->workers;
	struct worker *best = NULL;
	int merit, most = -1;
	size_t i;

	for (i = 0; i < workers_n(w); i++) {
		struct worker *d = workers_at(w, i);

		if (in_use(s, d))
			continue;
		merit = d->model && plan_equal(&d->plan, p, &s->l->t->space) ? 2 : !is_wanted(s, d);
		if (merit > most) {
			best = d;
			most = merit;
		}
	}
	return best;
}

static bool start_here(struct share *s, size_t i)
{
	struct item *e = &s->items[i];
	struct local *w = s->locals;

	while (w < s->locals + s->n_locals && w->busy)
		w++;
	if (w == s->locals + s->n_locals)
		return false;
	w->d = worker_for(s, &e->t->plan);
	w->t = *e->t;
	w->t.rank = 0;
	w->t.worker = (size_t)(w - s->locals);
	w->item = i;
	w->busy = true;
	atomic_store(&w->done, false);
	atomic_store(&w->d->stop, false);
	if (!e->t->ahead)
		workers_expect_model(s->l->workers);
	w->joinable = pthread_create(&w->thread, NULL, local_main, w) == 0;
	if (!w->joinable)
		local_main(w);
	return true;
}

/* ---- handing out ---- */

static bool any_free(const struct share *s)
{
	size_t k;

	for (k = 0; k < s->n_locals; k++)
		if (!s->locals[k].busy)
			return true;
	return s->l->ranks && ranks_any_free(s->l->ranks);
}

/* To that rank, or to whoever is free but for one: ANYWHERE is none. */
static bool give(struct share *s, size_t i, int to, int not_to)
{
	struct item *e = &s->items[i];
	int rank = 0;
	bool given = to <= 0 && not_to != 0 && start_here(s, i);

	if (!given && to != 0 && s->l->ranks)
		given = ranks_give(s->l->ranks, s->l, e->t, i, to, not_to);
	if (!given)
		return false;
	if (!e->tries++)
		e->started = clock_now();
	if (s->l->ranks && e->t->ahead) {
		ranks_have(s->l->ranks, i, &rank);
		ranks_set_home(s->l->ranks, e->hash, rank, false);
	}
	return true;
}

/* Is it better to wait for the rank on which it has run ahead? */
static bool waits(const struct share *s, const struct item *e, int home, bool whole)
{
	if (e->t->ahead)
		return true;
	return (whole || ranks_frees_soon(s->l->ranks, home)) &&
	       clock_now() - s->begun < ranks_patience(s->l->ranks);
}

/* Of the items from `first` on: each to where it has run ahead, then to whoever is free. False: some wait for anyone. */
static bool give_all(struct share *s, size_t first, size_t n)
{
	bool all = true, whole;
	int pass, home;
	size_t i;

	for (pass = 0; pass < 2; pass++)
		for (all = true, i = first; i < first + n; i++) {
			const struct item *e = &s->items[i];

			if (e->ended || e->tries)
				continue;
			if (!any_free(s))
				return false;
			home = ANYWHERE;
			if (!s->l->ranks || !ranks_home(s->l->ranks, e->hash, &home, &whole) ||
			    !(give(s, i, home, ANYWHERE) || waits(s, e, home, whole)))
				all &= pass == 1 && give(s, i, ANYWHERE, ANYWHERE);
		}
	return all;
}

/* What takes far too long is given to somebody else, too. True: something does. */
static bool give_slow_again(struct share *s)
{
	const double limit = s->l->ranks ? ranks_slow_after(s->l->ranks) : INFINITY;
	bool any = false;
	size_t i;

	for (i = 0; i < s->n_asked; i++) {
		struct item *e = &s->items[i];
		int rank = 0; /* unless another has it */

		if (e->ended || e->again || !e->tries || clock_now() - e->started < limit)
			continue;
		any = true;
		ranks_have(s->l->ranks, i, &rank);
		e->again = give(s, i, ANYWHERE, rank);
		if (e->again)
			ranks_gave_twice(s->l->ranks);
	}
	return any;
}

static void hand_out(struct share *s)
{
	if (!give_all(s, 0, s->n_asked) || give_slow_again(s))
		return;
	if (!workers_expect_models(s->l->workers)) /* making a model locks out the others here */
		give_all(s, s->n_asked, s->n - s->n_asked);
}

/* ---- waiting ---- */

static void wait_for_local(struct share *s)
{
	struct timespec until;
	size_t k;
	bool any = false;

	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_nsec += (long)(LOOK_SECONDS * 1e9);
	until.tv_sec += until.tv_nsec / 1000000000;
	until.tv_nsec %= 1000000000;
	pthread_mutex_lock(&s->lock);
	for (k = 0; k < s->n_locals; k++)
		any |= s->locals[k].busy && atomic_load(&s->locals[k].done);
	if (!any)
		pthread_cond_timedwait(&s->any_done, &s->lock, &until);
	pthread_mutex_unlock(&s->lock);
}

static enum fettle_status hear(struct share *s, struct err *err)
{
	struct item *e;
	struct heard h;
	enum fettle_status st = ranks_hear(s->l->ranks, POLL_SECONDS, &h, err);

	if (st || h.what == HEARD_NOTHING)
		return st;
	e = &s->items[h.key];
	e->tries--;
	if (e->ended || h.what == HEARD_LOST)
		return FETTLE_OK;
	h.t.quantize_s += e->t->quantize_s; /* to identify it */
	answered(s, h.key, h.st, &h.t);
	if (e->t->ahead)
		return FETTLE_OK;
	lab_account(s->l, e->t, NULL);
	if (!h.st)
		examiner_keep(s->l, e->t, &h.shown, NULL);
	return FETTLE_OK;
}

static void end_locals(struct share *s, bool wait, struct err *err)
{
	size_t k;

	for (k = 0; k < s->n_locals; k++)
		if (s->locals[k].busy && (wait || atomic_load(&s->locals[k].done)))
			end_local(s, &s->locals[k], err);
}

/* This thread is the one that learns whether to stop: the others may wait for a program that hangs. */
static bool may_continue(struct share *s)
{
	size_t k, done = 0, total = 0;

	for (k = 0; k < s->n_locals && !total; k++)
		if (s->locals[k].busy && !s->locals[k].t.ahead) {
			done = atomic_load(&s->locals[k].d->done);
			total = atomic_load(&s->locals[k].d->total);
		}
	return worker_may_continue(workers_at(s->l->workers, workers_n(s->l->workers)), done, total);
}

/* All that is in progress ends, and counts for nothing. */
static void break_off(struct share *s, enum fettle_status st)
{
	size_t i, k;

	for (i = 0; i < s->n; i++) {
		if (s->items[i].ended)
			continue;
		s->items[i].st = st;
		s->items[i].ended = true;
		if (s->l->ranks)
			ranks_drop(s->l->ranks, i);
	}
	for (k = 0; k < s->n_locals; k++)
		if (s->locals[k].busy)
			atomic_store(&s->locals[k].d->stop, true);
}

static void share_run(struct share *s, struct err *err)
{
	enum fettle_status st = FETTLE_OK;

	while (s->left && !st) {
		hand_out(s);
		if (s->l->ranks)
			st = hear(s, err);
		else
			wait_for_local(s);
		end_locals(s, false, err);
		if (!st && !may_continue(s))
			st = fail(err, FETTLE_STOP, "stopped");
	}
	break_off(s, st ? st : FETTLE_STOP);
	end_locals(s, true, err);
}

/* ---- all of it ---- */

/* Costly recipes take long, and cannot be broken off. */
static bool is_costly(const struct lab *l, const struct plan *p)
{
	const struct space *s = &l->t->space;
	size_t i;

	for (i = s->n_ops; i < s->n; i++)
		if (s->v[i].costly && p->choice[i] != s->v[i].first)
			return true;
	return false;
}

static void items_init(struct share *s, struct trial *t)
{
	size_t i;

	s->items = xcalloc(s->n, sizeof(*s->items));
	for (i = 0; i < s->n; i++) {
		struct item *e = &s->items[i];

		e->t = &t[i];
		e->ended = t[i].ahead && is_costly(s->l, &t[i].plan);
		if (s->l->ranks)
			plan_hash(&t[i].plan, &s->l->t->space, e->hash);
	}
}

void lab_run_all(void *lab, struct trial *t, size_t n, enum fettle_status *st, struct err *err)
{
	struct lab *l = lab;
	struct share s = { .l = l, .n_locals = l->o.jobs ? l->o.jobs : 1, .begun = clock_now() };
	double sum = 0;
	size_t i;

	for (i = 0; i < n; i++) {
		s.n_asked += !t[i].ahead;
		st[i] = FETTLE_STOP;
	}
	s.left = s.n_asked;
	s.n = has_evaluator(l) || forerun_is_useless(l->forerun) ? s.n_asked : n;
	workers_begin(workers_of(l), lab_stopped(l));
	items_init(&s, t);
	s.locals = xcalloc(s.n_locals, sizeof(*s.locals));
	for (i = 0; i < s.n_locals; i++)
		s.locals[i].s = &s;
	pthread_mutex_init(&s.lock, NULL);
	pthread_cond_init(&s.any_done, NULL);
	share_run(&s, err);
	for (i = 0; i < s.n; i++)
		st[i] = s.items[i].st;
	for (i = 0; i < s.n_asked; i++)
		sum += t[i].quantize_s + t[i].session_s + t[i].evaluate_s;
	for (i = 0; i < workers_n(l->workers); i++)
		atomic_store(&workers_at(l->workers, i)->stop, false);
	l->saved.beside += fmax(sum - (clock_now() - s.begun), 0);
	pthread_cond_destroy(&s.any_done);
	pthread_mutex_destroy(&s.lock);
	free(s.locals);
	free(s.items);
}
