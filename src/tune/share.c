/* Trials that do not depend on each other, on this rank's workers and on the other ranks: whoever is free takes the next. */
#include <math.h>
#include <pthread.h>
#include <stdlib.h>

#include "base/file.h"
#include "tune/ranks.h"
#include "tune/worker.h"

#define POLL_SECONDS 0.002

struct item {
	struct trial *t;
	enum fettle_status st;
	bool ended;
	size_t tries;   /* that have it now */
	double started; /* the first of them */
	bool again;     /* it was slow, and was given to another */
};

struct local {
	struct lab *l;
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
	struct item *items;
	size_t n, left;
	struct local *locals;
	size_t n_locals;
};

static void *local_main(void *local)
{
	struct local *w = local;

	w->st = worker_run(w->l, w->d, &w->t);
	atomic_store(&w->done, true);
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

	take_answer(e->t, t);
	e->st = st;
	e->ended = true;
	s->left--;
	ranks_took(s->l->ranks, clock_now() - e->started);
	ranks_drop(s->l->ranks, i);
	for (k = 0; k < s->n_locals; k++)
		if (s->locals[k].busy && s->locals[k].item == i)
			atomic_store(&s->locals[k].d->stop, true);
}

static void end_local(struct share *s, struct local *w)
{
	struct item *e = &s->items[w->item];

	if (w->joinable)
		pthread_join(w->thread, NULL);
	w->busy = false;
	e->tries--;
	if (e->ended)
		return;
	answered(s, w->item, w->st, &w->t);
	lab_account(s->l, e->t, w->st ? NULL : w->d);
}

/* ---- handing out ---- */

static void start_local(struct share *s, struct local *w, size_t i)
{
	struct item *e = &s->items[i];

	w->t = *e->t;
	w->t.rank = 0;
	w->t.worker = workers_index(s->l->workers, w->d);
	w->item = i;
	w->busy = true;
	atomic_store(&w->done, false);
	atomic_store(&w->d->stop, false);
	w->joinable = pthread_create(&w->thread, NULL, local_main, w) == 0;
	if (!w->joinable)
		local_main(w);
}

/* To whoever is free, but for one rank: -1 is none. */
static bool give(struct share *s, size_t i, int not_to)
{
	size_t k;

	for (k = 0; k < s->n_locals; k++)
		if (!s->locals[k].busy && not_to != 0) {
			start_local(s, &s->locals[k], i);
			return true;
		}
	return ranks_give(s->l->ranks, s->l, s->items[i].t, i, not_to);
}

/* With nothing else to hand out, what takes far too long is given to somebody else, too. */
static void give_slow_again(struct share *s)
{
	const double limit = ranks_slow_after(s->l->ranks);
	size_t i;

	for (i = 0; i < s->n; i++) {
		struct item *e = &s->items[i];
		int rank = 0; /* unless another has it */

		if (e->ended || e->again || !e->tries || clock_now() - e->started < limit)
			continue;
		ranks_have(s->l->ranks, i, &rank);
		e->again = give(s, i, rank);
		e->tries += e->again;
		if (e->again)
			ranks_gave_twice(s->l->ranks);
	}
}

static void hand_out(struct share *s)
{
	size_t i;

	for (i = 0; i < s->n; i++) {
		struct item *e = &s->items[i];

		if (e->ended || e->tries)
			continue;
		if (!give(s, i, -1))
			return;
		e->tries++;
		e->started = clock_now();
	}
	give_slow_again(s);
}

/* ---- waiting ---- */

static enum fettle_status hear(struct share *s, struct err *err)
{
	struct heard h;
	enum fettle_status st = ranks_hear(s->l->ranks, POLL_SECONDS, &h, err);

	if (st || h.what == HEARD_NOTHING)
		return st;
	s->items[h.key].tries--;
	if (s->items[h.key].ended || h.what == HEARD_LOST)
		return FETTLE_OK;
	h.t.quantize_s += s->items[h.key].t->quantize_s; /* to identify it */
	answered(s, h.key, h.st, &h.t);
	lab_account(s->l, s->items[h.key].t, NULL);
	if (!h.st)
		examiner_keep(s->l, s->items[h.key].t, &h.shown, NULL);
	return FETTLE_OK;
}

static void end_locals(struct share *s, bool wait)
{
	size_t k;

	for (k = 0; k < s->n_locals; k++)
		if (s->locals[k].busy && (wait || atomic_load(&s->locals[k].done)))
			end_local(s, &s->locals[k]);
}

/* All that is in progress ends, and counts for nothing. */
static void break_off(struct share *s, enum fettle_status st)
{
	size_t i, k;

	for (i = 0; i < s->n; i++) {
		if (!s->items[i].ended)
			s->items[i].st = st;
		s->items[i].ended = true;
		ranks_drop(s->l->ranks, i);
	}
	for (k = 0; k < s->n_locals; k++)
		atomic_store(&s->locals[k].d->stop, true);
}

static void share_run(struct share *s, struct err *err)
{
	enum fettle_status st = FETTLE_OK;

	while (s->left && !st) {
		hand_out(s);
		st = hear(s, err);
		end_locals(s, false);
		if (!st && !worker_may_continue(workers_at(s->l->workers, s->n_locals), 0, 0))
			st = fail(err, FETTLE_STOP, "stopped");
	}
	if (st)
		break_off(s, st);
	end_locals(s, true);
}

void ranks_run_all(struct lab *l, struct trial *t, size_t n, enum fettle_status *st, struct err *err)
{
	struct share s = { .l = l, .n = n, .left = n, .n_locals = l->o.jobs ? l->o.jobs : 1 };
	double start = clock_now(), sum = 0;
	size_t i;

	workers_begin(workers_of(l), lab_stopped(l));
	s.items = xcalloc(n, sizeof(*s.items));
	s.locals = xcalloc(s.n_locals, sizeof(*s.locals));
	for (i = 0; i < n; i++)
		s.items[i].t = &t[i];
	for (i = 0; i < s.n_locals; i++) {
		s.locals[i].l = l;
		s.locals[i].d = workers_at(l->workers, i);
	}
	share_run(&s, err);
	for (i = 0; i < n; i++) {
		st[i] = s.items[i].st;
		sum += t[i].quantize_s + t[i].session_s + t[i].evaluate_s;
	}
	for (i = 0; i < s.n_locals; i++)
		atomic_store(&s.locals[i].d->stop, false);
	l->saved.beside += fmax(sum - (clock_now() - start), 0);
	free(s.locals);
	free(s.items);
}
