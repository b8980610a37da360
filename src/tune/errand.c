/* A trial as it is sent to another rank, and its answer. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tune/ranks_impl.h"
#include "tune/worker.h"

/* ---- there ---- */

/* an order that the rank has already is sent as nothing; it comes first, for errand_changes_order() */
static void put_order(struct str *to, const struct lab *l, struct peer *peer)
{
	const struct hard_notes *levels = examiner_levels(l->examiner);
	const size_t bytes = levels ? examiner_notes_bytes(l->examiner, levels) : 0;
	const bool same = !levels || (peer->has_levels && peer->levels.n == levels->n &&
				      memcmp(peer->levels.v, levels->v, bytes) == 0);

	wire_put_count(to, same ? 0 : levels->n);
	if (same)
		return;
	wire_put_bytes(to, levels->v, bytes);
	peer->levels = *levels;
	peer->has_levels = true;
}

static void put_verdict(struct str *to, const struct verdict *v)
{
	wire_put_count(to, v != NULL);
	if (!v)
		return;
	wire_put_count(to, v->higher_is_better);
	wire_put_real(to, v->meet);
	wire_put_real(to, v->beat);
	wire_put_real(to, v->tie);
	wire_put_count(to, v->exact_pass);
	wire_put_real(to, v->look);
}

void errand_put_roots(struct str *to, const struct space *s, struct peer *peer)
{
	wire_put_count(to, s->roots.n - peer->roots);
	for (; peer->roots < s->roots.n; peer->roots++) {
		char *text = plan_text(&s->roots.v[peer->roots], s);

		wire_put_text(to, text);
		free(text);
	}
}

size_t errand_put(struct str *to, uint64_t id, struct lab *l, const struct trial *t, struct peer *peer)
{
	const struct space *s = &l->t->space;
	char *plan = plan_text(&t->plan, s);
	size_t before;

	put_order(to, l, peer);
	wire_put_count(to, id);
	wire_put_count(to, t->number);
	wire_put_count(to, t->ahead);
	put_verdict(to, t->verdict);
	before = to->n;
	errand_put_roots(to, s, peer);
	wire_put_text(to, plan);
	free(plan);
	return to->n - before;
}

bool errand_changes_order(const struct wire *w)
{
	struct wire ahead = *w;

	return wire_count(&ahead) > 0;
}

static void read_order(struct lab *l, struct wire *w)
{
	struct hard_notes levels = { .n = (size_t)wire_count(w) };
	const void *bytes;
	size_t n;

	if (!levels.n)
		return;
	bytes = wire_bytes(w, &n);
	if (!bytes || n > HARD_BYTES || !l->examiner) {
		w->bad = true;
		return;
	}
	memcpy(levels.v, bytes, n);
	examiner_set_levels(l, &levels);
}

static void read_verdict(struct wire *w, struct errand *e)
{
	if (!wire_count(w))
		return;
	e->verdict.higher_is_better = wire_count(w);
	e->verdict.meet = wire_real(w);
	e->verdict.beat = wire_real(w);
	e->verdict.tie = wire_real(w);
	e->verdict.exact_pass = wire_count(w);
	e->verdict.look = wire_real(w);
	e->t.verdict = &e->verdict;
}

enum fettle_status errand_read_roots(struct space *s, struct wire *w, struct err *err)
{
	size_t n = (size_t)wire_count(w);
	struct plan p = PLAN_INIT;
	enum fettle_status st = FETTLE_OK;

	for (; n && !w->bad && !st; n--) {
		st = plan_read(&p, s, wire_text(w), "of rank 0", err);
		if (!st)
			space_remember(s, &p);
	}
	plan_release(&p);
	return st;
}

enum fettle_status errand_read(struct errand *out, struct lab *l, struct wire *w, struct err *err)
{
	enum fettle_status st;

	*out = (struct errand){ .t = { .stage = "", .score.accuracy = NAN, .latency = NAN } };
	read_order(l, w);
	out->id = wire_count(w);
	out->t.number = (size_t)wire_count(w);
	out->t.ahead = wire_count(w);
	read_verdict(w, out);
	st = errand_read_roots(&l->t->space, w, err);
	if (!st)
		st = plan_read(&out->t.plan, &l->t->space, wire_text(w), "of rank 0", err);
	if (!st && w->bad) {
		plan_release(&out->t.plan);
		st = fail(err, FETTLE_SYSTEM, "cannot read what rank 0 sent: it is not complete");
	}
	return st;
}

/* ---- and back ---- */

void errand_put_answer(struct str *to, uint64_t id, size_t worker, enum fettle_status st,
		       const struct trial *t, const struct shown *shown, size_t notes_bytes)
{
	size_t i;

	wire_put_count(to, id);
	wire_put_count(to, worker);
	wire_put_count(to, (uint64_t)st);
	wire_put_count(to, t->score.failed);
	wire_put_count(to, t->score.early);
	wire_put_real(to, t->score.accuracy);
	wire_put_real(to, t->score.low);
	wire_put_real(to, t->score.high);
	wire_put_text(to, t->why);
	wire_put_count(to, t->samples);
	wire_put_count(to, t->size_bytes);
	wire_put_real(to, t->quantize_s);
	wire_put_real(to, t->session_s);
	wire_put_real(to, t->evaluate_s);
	wire_put_real(to, t->cut_share);
	wire_put_real(to, t->beyond);
	for (i = 0; i < METRICS_MAX; i++)
		wire_put_real(to, t->values[i]);
	wire_put_count(to, shown->hardest_first);
	wire_put_count(to, shown->notes.n);
	wire_put_bytes(to, shown->notes.v, notes_bytes);
}

bool errand_read_answer(struct wire *w, uint64_t *id, struct heard *out)
{
	struct trial *t = &out->t;
	const void *notes;
	size_t i, n;

	*out = (struct heard){ .what = HEARD_ANSWER, .t = { .latency = NAN } };
	*id = wire_count(w);
	t->worker = (size_t)wire_count(w);
	out->st = (enum fettle_status)wire_count(w);
	t->score.failed = wire_count(w);
	t->score.early = wire_count(w);
	t->score.accuracy = wire_real(w);
	t->score.low = wire_real(w);
	t->score.high = wire_real(w);
	snprintf(t->why, sizeof(t->why), "%s", wire_text(w));
	t->samples = (size_t)wire_count(w);
	t->size_bytes = (size_t)wire_count(w);
	t->quantize_s = wire_real(w);
	t->session_s = wire_real(w);
	t->evaluate_s = wire_real(w);
	t->cut_share = wire_real(w);
	t->beyond = wire_real(w);
	for (i = 0; i < METRICS_MAX; i++)
		t->values[i] = wire_real(w);
	out->shown.hardest_first = wire_count(w);
	out->shown.notes.n = (size_t)wire_count(w);
	notes = wire_bytes(w, &n);
	if (w->bad || n > HARD_BYTES || out->shown.notes.n > 8 * n)
		return false;
	if (n)
		memcpy(out->shown.notes.v, notes, n);
	return true;
}
