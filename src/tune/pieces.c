#include "tune/pieces.h"

#include <math.h>
#include <stdlib.h>

#include "base/file.h"
#include "tune/ranks_impl.h"

static const struct piece_work *const works[PIECES_KINDS] = {
	[PIECES_TRACES] = &trace_work,
	[PIECES_EFFECTS] = &effect_work,
	[PIECES_SWEEP] = &sweep_work,
	[PIECES_ERRORS] = &error_work,
};

/* ---- on any rank ---- */

void pieces_close(struct pieces_opened *o)
{
	if (o->self)
		o->work->close(o->self);
	o->self = NULL;
}

enum fettle_status pieces_open_here(struct pieces_opened *o, struct lab *l, enum pieces_kind kind,
				    const struct str *what, struct err *err)
{
	struct wire w = { (const unsigned char *)what->s, what->n, false };

	o->work = works[kind];
	return o->self ? FETTLE_OK : o->work->open(l, &w, &o->self, err);
}

void take_score(void *scores, size_t piece, struct wire *answer)
{
	((double *)scores)[piece] = wire_real(answer);
}

/* ---- rank 0 ---- */

#define WAIT_SECONDS 0.05

struct item {
	bool ended, given;
	double since; /* it was given */
	struct str answer;
};

struct round {
	struct pieces *p;
	const size_t *list;
	struct item *items;
	size_t n, left, taken;
	piece_fn take;
	void *self;
};

static void answered(struct round *r, size_t i, struct str *answer)
{
	struct item *e = &r->items[i];

	e->ended = true;
	e->answer = *answer;
	*answer = (struct str)STR_INIT;
	r->left--;
	for (; r->taken < r->n && r->items[r->taken].ended; r->taken++) {
		struct str *a = &r->items[r->taken].answer;
		struct wire w = { (const unsigned char *)a->s, a->n, false };

		r->take(r->self, r->list[r->taken], &w);
		str_release(a);
	}
}

static enum fettle_status run_own(struct round *r, size_t i, struct err *err)
{
	struct pieces *p = r->p;
	const double start = clock_now();
	struct str answer = STR_INIT;
	enum fettle_status st = pieces_open(p, err);

	if (!st)
		st = p->here.work->run(p->here.self, r->list[i], &answer, err);
	p->longest = fmax(p->longest, clock_now() - start);
	if (st)
		str_release(&answer);
	else if (p->number)
		ranks_drop_pieces(p->l->ranks, p->number, i, i + 1);
	if (!st)
		answered(r, i, &answer);
	return st;
}

/* The first from `i` that nobody has; n: there is none. */
static size_t next_free(const struct round *r, size_t i)
{
	while (i < r->n && (r->items[i].ended || r->items[i].given))
		i++;
	return i;
}

/* By the longest that was done here. */
static size_t next_slow(const struct round *r)
{
	const double limit = slow_after(r->p->longest), now = clock_now();
	size_t i;

	for (i = 0; i < r->n; i++)
		if (!r->items[i].ended && now - r->items[i].since > limit)
			break;
	return i;
}

/* To the others, but for one piece that is done here. */
static void hand_out(struct round *r, size_t own)
{
	struct pieces *p = r->p;
	size_t i = next_free(r, own + 1);

	while (i < r->n && ranks_give_piece(p->l->ranks, p, r->list[i], i, r->n - i)) {
		r->items[i].given = true;
		r->items[i].since = clock_now();
		i = next_free(r, i + 1);
	}
}

static enum fettle_status hear(struct round *r, double seconds, struct err *err)
{
	struct heard h;
	enum fettle_status st;

	do {
		st = ranks_hear(r->p->l->ranks, seconds, &h, err);
		if (st || h.what == HEARD_NOTHING || h.work != r->p->number)
			break;
		if (h.what == HEARD_PIECE && !r->items[h.key].ended)
			answered(r, h.key, &h.answer);
		else if (h.what == HEARD_LOST)
			r->items[h.key].given = false;
		str_release(&h.answer);
		seconds = 0;
	} while (r->left);
	return st;
}

static enum fettle_status share_round(struct round *r, struct err *err)
{
	enum fettle_status st = FETTLE_OK;

	while (r->left && !st) {
		size_t own = next_free(r, 0);

		hand_out(r, own);
		if (own == r->n && (own = next_slow(r)) < r->n)
			ranks_gave_twice(r->p->l->ranks);
		st = own < r->n ? run_own(r, own, err) : FETTLE_OK;
		if (!st)
			st = hear(r, own < r->n ? 0 : WAIT_SECONDS, err);
		if (!st && lab_stopped(r->p->l))
			st = fail(err, FETTLE_STOP, "stopped");
	}
	ranks_drop_pieces(r->p->l->ranks, r->p->number, 0, r->n);
	return st;
}

void pieces_begin(struct pieces *p, struct lab *l, enum pieces_kind kind, struct str what)
{
	*p = (struct pieces){ .l = l, .kind = kind, .what = what, .number = ranks_new_work(l->ranks) };
}

enum fettle_status pieces_open(struct pieces *p, struct err *err)
{
	return pieces_open_here(&p->here, p->l, p->kind, &p->what, err);
}

struct str what_of_plan(const struct lab *l, const struct plan *plan, size_t batches)
{
	char *text = plan_text(plan, &l->t->space);
	struct str what = STR_INIT;

	wire_put_text(&what, text);
	wire_put_count(&what, batches);
	free(text);
	return what;
}

enum fettle_status pieces_run(struct pieces *p, const size_t *list, size_t n, piece_fn take, void *self,
			      struct err *err)
{
	struct round r = { .p = p, .list = list, .n = n, .left = n, .take = take, .self = self };
	enum fettle_status st = FETTLE_OK;
	size_t i;

	r.items = xcalloc(n + 1, sizeof(*r.items));
	if (p->number)
		st = share_round(&r, err);
	for (i = 0; i < n && !st && !p->number; i++)
		st = run_own(&r, i, err);
	for (i = 0; i < n; i++)
		str_release(&r.items[i].answer);
	free(r.items);
	return st;
}

void pieces_end(struct pieces *p)
{
	if (p->number)
		ranks_end_pieces(p->l->ranks, p->number);
	pieces_close(&p->here);
	str_release(&p->what);
}
