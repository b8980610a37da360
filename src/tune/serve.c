/* Another rank than 0: runs the trials that rank 0 sends, as many at once as it has workers, until it is told to end. */
#include <math.h>
#include <pthread.h>
#include <stdlib.h>

#include "tune/compare.h"
#include "tune/ranks_impl.h"
#include "tune/worker.h"

#define POLL_SECONDS 0.002 /* for trials that have ended; messages are heard at once */

struct slot {
	struct lab *l;
	struct worker *d;
	struct errand e;
	enum fettle_status st;
	pthread_t thread;
	bool busy, joinable;
	atomic_bool done;
};

struct serving {
	struct ranks *r;
	struct lab *l;
	struct slot *slots;
	size_t n;
};

static void *slot_main(void *slot)
{
	struct slot *s = slot;

	s->st = worker_run(s->l, s->d, &s->e.t);
	atomic_store(&s->done, true);
	return NULL;
}

static void answer(struct serving *s, struct slot *slot)
{
	struct str m = STR_INIT;
	struct shown shown = { .hardest_first = false };

	if (slot->joinable)
		pthread_join(slot->thread, NULL);
	if (!slot->st && !slot->e.t.ahead)
		examiner_see(s->l, slot->d, &slot->e.t, &shown);
	ranks_begin(&m, MESSAGE_ANSWER);
	errand_put_answer(&m, slot->e.id, workers_index(s->l->workers, slot->d), slot->st, &slot->e.t, &shown,
			  examiner_notes_bytes(s->l->examiner, &shown.notes));
	ranks_send(s->r, 0, &m);
	str_release(&m);
	plan_release(&slot->e.t.plan);
	slot->busy = false;
}

static bool any_busy(const struct serving *s)
{
	size_t i;

	for (i = 0; i < s->n; i++)
		if (s->slots[i].busy)
			return true;
	return false;
}

static void send_ended(struct serving *s)
{
	size_t i;

	for (i = 0; i < s->n; i++)
		if (s->slots[i].busy && atomic_load(&s->slots[i].done))
			answer(s, &s->slots[i]);
}

/* what is in progress is no longer wanted */
static void break_off(struct serving *s)
{
	size_t i;

	for (i = 0; i < s->n; i++)
		atomic_store(&s->slots[i].d->stop, true);
	for (i = 0; i < s->n; i++)
		if (s->slots[i].busy)
			answer(s, &s->slots[i]);
}

/* A free one: where a part of the plan has run ahead its model is still there. */
static struct slot *slot_for(struct serving *s, const struct plan *p)
{
	struct slot *found = NULL;
	size_t i;

	for (i = 0; i < s->n; i++) {
		struct slot *slot = &s->slots[i];

		if (slot->busy)
			continue;
		if (slot->d->model && plan_equal(&slot->d->plan, p, &s->l->t->space))
			return slot;
		found = found ? found : slot;
	}
	return found;
}

static enum fettle_status begin_trial(struct serving *s, struct wire *w, struct err *err)
{
	struct slot *slot;
	struct errand e;
	enum fettle_status st;

	if (errand_changes_order(
		    w)) /* a new round: of an old one, only what was dropped can be in progress */
		break_off(s);
	workers_lock(s->l->workers);
	st = errand_read(&e, s->l, w, err);
	slot = st ? NULL : slot_for(s, &e.t.plan);
	workers_unlock(s->l->workers);
	if (st)
		return st;
	if (!slot) {
		plan_release(&e.t.plan);
		return fail(err, FETTLE_SYSTEM, "rank 0 sent a trial too many");
	}
	slot->e = e;
	if (slot->e.t.verdict)
		slot->e.t.verdict = &slot->e.verdict;
	slot->busy = true;
	atomic_store(&slot->done, false);
	atomic_store(&slot->d->stop, false);
	slot->joinable = pthread_create(&slot->thread, NULL, slot_main, slot) == 0;
	if (!slot->joinable)
		slot_main(slot);
	return FETTLE_OK;
}

static void drop(struct serving *s, uint64_t id)
{
	size_t i;

	for (i = 0; i < s->n; i++)
		if (s->slots[i].busy && s->slots[i].e.id == id)
			atomic_store(&s->slots[i].d->stop, true);
}

static enum fettle_status serve_one(struct serving *s, struct wire *w, struct err *err)
{
	switch (wire_count(w)) {
	case MESSAGE_TRIAL:
		return begin_trial(s, w, err);
	case MESSAGE_LESSON:
		ranks_learn(s->r, s->l, w);
		return FETTLE_OK;
	case MESSAGE_PIECE:
		ranks_serve_piece(s->r, s->l, w);
		return FETTLE_OK;
	case MESSAGE_PIECES_END:
		ranks_forget_pieces(s->r);
		return FETTLE_OK;
	case MESSAGE_DROP:
		drop(s, wire_count(w));
		return FETTLE_OK;
	case MESSAGE_END:
		s->r->ended = true;
		s->r->ended_with = (enum fettle_status)wire_count(w);
		return FETTLE_OK;
	}
	return FETTLE_OK;
}

static enum fettle_status serve(struct serving *s, struct err *err)
{
	enum fettle_status st = FETTLE_OK;

	while (!s->r->ended && !st) {
		const char *why = "";
		void *bytes = NULL;
		struct wire w;
		size_t n;
		int from;

		send_ended(s);
		switch (s->r->t->receive(any_busy(s) ? POLL_SECONDS : 60, &from, &bytes, &n, &why)) {
		case TRANSPORT_BROKEN:
			s->r->ended = true;
			st = fail(err, FETTLE_SYSTEM, "cannot hear rank 0: %s", why);
			break;
		case TRANSPORT_GONE:
			s->r->ended = !from;
			if (!from)
				st = fail(err, FETTLE_SYSTEM, "rank 0 has died");
			break;
		case TRANSPORT_MESSAGE:
			w = (struct wire){ bytes, n, false };
			st = serve_one(s, &w, err);
			break;
		default:
			break;
		}
		free(bytes);
	}
	break_off(s);
	return st;
}

/* what rank 0 knows of the data, this rank must know too: the fp32 model's scores, and its outputs */
static enum fettle_status prepare(struct lab *l, double *baseline, struct err *err)
{
	struct accuracy a = { .value = NAN };
	enum fettle_status st = FETTLE_OK;

	scoring_feed(l);
	if (!has_evaluator(l))
		st = lab_baseline(l, &a, err);

	*baseline = a.value;
	return st;
}

enum fettle_status ranks_serve(struct ranks *r, struct lab *l, struct err *err)
{
	struct serving s = { .r = r, .l = l, .n = l->o.jobs ? l->o.jobs : 1 };
	struct str m = STR_INIT;
	double baseline;
	enum fettle_status st = prepare(l, &baseline, err);
	size_t i;

	ranks_begin(&m, MESSAGE_READY);
	wire_put_text(&m, st ? err->msg : "");
	wire_put_real(&m, baseline);
	ranks_send(r, 0, &m);
	str_release(&m);
	if (st)
		return st;
	s.slots = xcalloc(s.n, sizeof(*s.slots));
	workers_begin(workers_of(l), false);
	for (i = 0; i < s.n; i++) {
		s.slots[i].l = l;
		s.slots[i].d = workers_at(l->workers, i);
	}
	st = serve(&s, err);
	ranks_forget_pieces(r);
	free(s.slots);
	return st;
}
