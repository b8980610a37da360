/* Who takes part: opening, agreeing on model and data, closing. */
#include <math.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/launched.h"
#include "tune/ranks_impl.h"

enum fettle_status ranks_open(struct ranks **out, void (*warn)(void *self, const char *text), void *self,
			      struct err *err)
{
	const struct transport *t;
	struct ranks *r;
	enum fettle_status st;
	int rank;

	*out = NULL;
	if (!launched_as_rank(&rank))
		return FETTLE_OK;
	st = transport_load(&t, err);
	if (st || t->size < 2)
		return st;
	*out = r = xcalloc(1, sizeof(*r));
	r->t = t;
	r->warn = warn;
	r->warn_self = self;
	r->baseline = NAN;
	r->peers = xcalloc((size_t)t->size, sizeof(*r->peers));
	return FETTLE_OK;
}

int ranks_rank(const struct ranks *r)
{
	return r ? r->t->rank : 0;
}

int ranks_threads(const struct ranks *r)
{
	const long all = sysconf(_SC_NPROCESSORS_ONLN);
	cpu_set_t set;
	int own;

	if (sched_getaffinity(0, sizeof(set), &set))
		return 0;
	own = CPU_COUNT(&set);
	if (own < all) /* mpirun has bound this rank to some */
		return own;
	if (r->t->here < 2)
		return 0;
	return own > r->t->here ? own / r->t->here : 1;
}

void ranks_begin(struct str *out, enum message what)
{
	out->n = 0;
	wire_put_count(out, what);
}

void ranks_lose(struct ranks *r, int rank, const char *why)
{
	char *text;

	if (r->t->rank || r->peers[rank].gone)
		return;
	r->peers[rank].gone = true;
	text = xstrfmt("rank %d takes no more trials: %s", rank, why);
	r->warn(r->warn_self, text);
	free(text);
}

bool ranks_send(struct ranks *r, int to, const struct str *message)
{
	const char *why = "it cannot be reached";

	if (!r->t->rank && r->peers[to].gone)
		return false;
	if (r->t->send(to, message->s, message->n, &why))
		return true;
	ranks_lose(r, to, why);
	return false;
}

static enum fettle_status lost(const struct ranks *r, const char *why, struct err *err)
{
	return fail(err, FETTLE_SYSTEM, "cannot go on as rank %d of %d: %s", r->t->rank, r->t->size, why);
}

/* ---- agreeing ---- */

enum fettle_status ranks_next(struct ranks *r, enum message *is, struct wire *w, void **bytes,
			      struct err *err)
{
	const char *why = "";
	size_t n;
	int from;

	for (;;)
		switch (r->t->receive(3600, &from, bytes, &n, &why)) {
		case TRANSPORT_BROKEN:
			r->ended = true; /* nobody will say so */
			return lost(r, why, err);
		case TRANSPORT_GONE:
			r->ended = !from;
			if (!from)
				return lost(r, "rank 0 has died", err);
			break;
		case TRANSPORT_MESSAGE:
			*w = (struct wire){ *bytes, n, false };
			*is = (enum message)wire_count(w);
			if (*is != MESSAGE_END)
				return FETTLE_OK;
			r->ended = true;
			r->ended_with = (enum fettle_status)wire_count(w);
			snprintf(err->msg, sizeof(err->msg), "%s", wire_text(w));
			return r->ended_with;
		default:
			break;
		}
}

/* On another rank: waits for that word of rank 0, and the number that follows it, or the end. */
static enum fettle_status await(struct ranks *r, enum message what, int *number, struct err *err)
{
	enum fettle_status st = FETTLE_OK;
	enum message is = what;

	do {
		void *bytes = NULL;
		struct wire w;

		st = ranks_next(r, &is, &w, &bytes, err);
		if (!st && is == what && number)
			*number = (int)wire_count(&w);
		free(bytes);
	} while (!r->ended && !st && is != what);
	return st;
}

static void say_hello(struct ranks *r, const struct ranks_fact *facts, size_t n, size_t jobs, const char *why)
{
	struct str m = STR_INIT;
	size_t i;

	ranks_begin(&m, MESSAGE_HELLO);
	wire_put_text(&m, why);
	wire_put_count(&m, jobs);
	wire_put_count(&m, n);
	for (i = 0; i < n; i++) {
		wire_put_text(&m, facts[i].value);
		wire_put_text(&m, facts[i].path);
	}
	r->said_hello = true;
	ranks_send(r, 0, &m);
	str_release(&m);
}

static enum fettle_status compare(const struct ranks *r, int rank, struct wire *w,
				  const struct ranks_fact *facts, size_t n, struct err *err)
{
	const char *why = wire_text(w);
	size_t i;

	if (*why)
		return fail(err, FETTLE_INVALID, "rank %d of %d: %s", rank, r->t->size, why);
	r->peers[rank].jobs = (size_t)wire_count(w);
	if (wire_count(w) != n)
		return fail(err, FETTLE_INVALID,
			    "cannot share trials with rank %d: it runs another version of fettle", rank);
	for (i = 0; i < n; i++) {
		const char *value = wire_text(w), *path = wire_text(w);

		if (strcmp(value, facts[i].value) == 0)
			continue;
		if (facts[i].path && *facts[i].path)
			return fail(err, FETTLE_INVALID,
				    "cannot share trials with rank %d: %s, %s there and %s on rank 0", rank,
				    facts[i].what, *path ? path : "none", facts[i].path);
		return fail(err, FETTLE_INVALID, "cannot share trials with rank %d: %s", rank, facts[i].what);
	}
	return w->bad ? fail(err, FETTLE_SYSTEM,
			     "cannot share trials with rank %d: its greeting is not complete", rank)
		      : FETTLE_OK;
}

/* all hellos are read even after a failure, so that nothing is left on the way */
static enum fettle_status hear_hellos(struct ranks *r, const struct ranks_fact *facts, size_t n,
				      struct err *err)
{
	enum fettle_status st = FETTLE_OK;
	int heard = 1;

	while (heard < r->t->size) {
		const char *why = "";
		void *bytes = NULL;
		struct wire w;
		size_t size;
		int from;

		switch (r->t->receive(3600, &from, &bytes, &size, &why)) {
		case TRANSPORT_BROKEN:
			return lost(r, why, err);
		case TRANSPORT_GONE:
			r->peers[from].gone = true;
			st = st ? st : fail(err, FETTLE_SYSTEM, "rank %d has died before the search", from);
			heard += !r->peers[from].agreed;
			break;
		case TRANSPORT_MESSAGE:
			w = (struct wire){ bytes, size, false };
			if (wire_count(&w) == MESSAGE_HELLO) { /* not an answer of an earlier job */
				r->peers[from].agreed = true;
				heard++;
				st = st ? st : compare(r, from, &w, facts, n, err);
			}
			free(bytes);
			break;
		default:
			break;
		}
	}
	return st;
}

enum fettle_status ranks_agree(struct ranks *r, const struct ranks_fact *facts, size_t n, size_t jobs,
			       int *threads, struct err *err)
{
	struct str m = STR_INIT;
	enum fettle_status st;
	int rank;

	if (r->t->rank) {
		say_hello(r, facts, n, jobs, "");
		return await(r, MESSAGE_GO, threads, err);
	}
	st = hear_hellos(r, facts, n, err);
	ranks_begin(&m, MESSAGE_GO);
	wire_put_count(&m, (uint64_t)*threads);
	for (rank = 1; rank < r->t->size && !st; rank++)
		ranks_send(r, rank, &m);
	str_release(&m);
	return st;
}

enum fettle_status ranks_close(struct ranks *r, enum fettle_status st, struct err *err)
{
	struct str m = STR_INIT;
	size_t i;
	int rank;

	if (!r)
		return st;
	if (r->t->rank) {
		if (!r->said_hello)
			say_hello(r, NULL, 0, 0, *err->msg ? err->msg : "it could not begin");
		if (!r->ended)
			st = await(r, MESSAGE_END, NULL, err);
	} else {
		ranks_begin(&m, MESSAGE_END);
		wire_put_count(&m, st);
		wire_put_text(&m, st ? err->msg : "");
		for (rank = 1; rank < r->t->size; rank++)
			ranks_send(r, rank, &m);
		str_release(&m);
	}
	for (i = 0; i < r->given.n; i++)
		str_release(&r->given.v[i].answer);
	for (i = 0; i < r->lessons.n; i++)
		str_release(&r->lessons.v[i]);
	VEC_RELEASE(&r->lessons);
	str_release(&r->lesson);
	VEC_RELEASE(&r->given);
	VEC_RELEASE(&r->took);
	VEC_RELEASE(&r->homes);
	map_release(&r->home_of);
	arena_release(&r->hashes);
	free(r->peers);
	free(r);
	return st;
}

struct ranks_stats ranks_stats(const struct ranks *r)
{
	struct ranks_stats s = { .ranks = 0 };

	if (!r)
		return s;
	s = r->stats;
	s.ranks = (size_t)r->t->size;
	return s;
}
