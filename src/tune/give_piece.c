/* Rank 0's side of pieces.c: pieces of other work than trials, that others take; and theirs. */
#include <stdlib.h>

#include "tune/pieces.h"
#include "tune/ranks_impl.h"

/* So many a rank has at once, one of them in progress, so that it need not wait until rank 0 has time for it; not the last. */
enum { PIECES_AT_ONCE = 2 };
enum { PART = 1 << 16 }; /* bytes of a message */

uint64_t ranks_new_work(struct ranks *r)
{
	return r ? ++r->last_work : 0;
}

/* It has no trial, nothing of other work (long messages may go only to who listens), and the fewest pieces. */
static int free_rank(const struct ranks *r, uint64_t work, size_t most)
{
	int i, best = 0;

	for (i = 1; i < r->t->size; i++) {
		const struct peer *p = &r->peers[i];

		if (peer_is_there(p) && p->ready && p->refuses != work && p->pieces < most &&
		    p->busy == p->pieces * p->jobs && (p->work == work || !p->pieces) &&
		    (!best || p->pieces < r->peers[best].pieces))
			best = i;
	}
	return best;
}

bool ranks_give_piece(struct ranks *r, const struct pieces *p, size_t piece, size_t key, size_t left)
{
	const size_t most = left > PIECES_AT_ONCE * ranks_at_work(r) ? PIECES_AT_ONCE : 1;
	struct str m = STR_INIT;
	int to;

	while ((to = free_rank(r, p->number, most))) {
		struct peer *peer = &r->peers[to];
		const uint64_t id = ++r->last_id;
		const bool is_new = peer->work != p->number;

		if (!ranks_tell_all(r, to))
			continue; /* it is gone: the next */
		ranks_begin(&m, MESSAGE_PIECE);
		wire_put_count(&m, id);
		wire_put_count(&m, p->number);
		wire_put_count(&m, p->kind);
		wire_put_count(&m, piece);
		errand_put_roots(&m, &p->l->t->space, peer);
		wire_put_bytes(&m, p->what.s, is_new ? p->what.n : 0);
		if (!ranks_send(r, to, &m))
			continue;
		peer->work = p->number;
		peer->pieces++;
		peer->busy += peer->jobs;
		VEC_PUSH(&r->given,
			 ((struct given){
				 .id = id, .key = key, .rank = to, .bytes = m.n, .work = p->number }));
		break;
	}
	str_release(&m);
	return to != 0;
}

void ranks_drop_pieces(struct ranks *r, uint64_t work, size_t from, size_t to)
{
	size_t i;

	for (i = 0; i < r->given.n; i++)
		if (r->given.v[i].work == work && r->given.v[i].key >= from && r->given.v[i].key < to)
			r->given.v[i].dropped = true;
}

void ranks_end_pieces(struct ranks *r, uint64_t work)
{
	struct str m = STR_INIT;
	int i;

	ranks_begin(&m, MESSAGE_PIECES_END);
	for (i = 1; i < r->t->size; i++)
		if (r->peers[i].work == work)
			ranks_send(r, i, &m);
	str_release(&m);
}

void ranks_read_part(struct ranks *r, struct wire *w)
{
	struct given *g = ranks_find_given(r, wire_count(w));

	if (g)
		str_add(&g->answer, w->p, w->n);
}

void ranks_read_piece(struct ranks *r, int from, struct wire *w, struct heard *out)
{
	const uint64_t id = wire_count(w);
	const bool failed = wire_count(w);
	struct given g;

	if (!ranks_take_back(r, from, id, &g))
		return;
	if (failed)
		r->peers[from].refuses = g.work;
	if (!failed)
		str_add(&g.answer, w->p, w->n);
	*out = (struct heard){
		.what = failed ? HEARD_LOST : HEARD_PIECE, .key = g.key, .work = g.work, .answer = g.answer
	};
	if (!g.dropped && !failed) {
		r->stats.pieces++;
		r->stats.piece_bytes += g.bytes + g.answer.n;
	}
	if (g.dropped) {
		str_release(&out->answer);
		out->what = HEARD_NOTHING;
	}
}

/* ---- the others ---- */

static void send_answer(struct ranks *r, uint64_t id, enum fettle_status st, const struct str *answer)
{
	struct str m = STR_INIT;
	size_t at = 0;

	for (; answer->n - at > PART && !st; at += PART) {
		ranks_begin(&m, MESSAGE_PIECE_PART);
		wire_put_count(&m, id);
		str_add(&m, answer->s + at, PART);
		ranks_send(r, 0, &m);
	}
	ranks_begin(&m, MESSAGE_PIECE_DONE);
	wire_put_count(&m, id);
	wire_put_count(&m, st != FETTLE_OK);
	if (!st)
		str_add(&m, answer->s + at, answer->n - at);
	ranks_send(r, 0, &m);
	str_release(&m);
}

void ranks_serve_piece(struct ranks *r, struct lab *l, struct wire *w)
{
	struct err why = ERR_INIT;
	struct str answer = STR_INIT;
	const uint64_t id = wire_count(w), work = wire_count(w);
	const enum pieces_kind kind = (enum pieces_kind)wire_count(w);
	const size_t piece = (size_t)wire_count(w);
	enum fettle_status st = errand_read_roots(&l->t->space, w, &why);
	const void *what;
	size_t n;

	what = wire_bytes(w, &n);
	if (work != r->last_work) {
		ranks_forget_pieces(r);
		str_add(&r->what, what, n);
		r->last_work = work;
	}
	if (!st && !w->bad && kind < PIECES_KINDS)
		st = pieces_open_here(&r->opened, l, kind, &r->what, &why);
	if (!st && r->opened.self)
		st = r->opened.work->run(r->opened.self, piece, &answer, &why);
	send_answer(r, id, w->bad || kind >= PIECES_KINDS ? FETTLE_SYSTEM : st, &answer);
	str_release(&answer);
}

void ranks_forget_pieces(struct ranks *r)
{
	pieces_close(&r->opened);
	str_release(&r->what);
}
