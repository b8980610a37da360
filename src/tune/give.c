/* Rank 0's side: trials that others run. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tune/ranks_impl.h"

bool peer_is_there(const struct peer *p)
{
	return p->agreed && !p->gone;
}

size_t ranks_slots(const struct ranks *r)
{
	size_t n = 0;
	int i;

	for (i = 1; r && i < r->t->size; i++)
		n += peer_is_there(&r->peers[i]) ? r->peers[i].jobs : 0;
	return n;
}

size_t ranks_at_work(const struct ranks *r)
{
	size_t n = 1;
	int i;

	for (i = 1; r && i < r->t->size; i++)
		n += peer_is_there(&r->peers[i]);
	return n;
}

void ranks_baseline(struct ranks *r, double accuracy)
{
	r->baseline = accuracy;
}

static bool is_free(const struct peer *p)
{
	return peer_is_there(p) && p->ready && p->busy < p->jobs;
}

/* the one with the least to do */
static int free_rank(const struct ranks *r, int not_to)
{
	int i, best = 0;

	for (i = 1; i < r->t->size; i++) {
		const struct peer *p = &r->peers[i];

		if (i != not_to && is_free(p) && (!best || p->busy < r->peers[best].busy))
			best = i;
	}
	return best;
}

bool ranks_any_free(const struct ranks *r)
{
	return free_rank(r, -1) > 0;
}

bool ranks_give(struct ranks *r, struct lab *l, const struct trial *t, size_t key, int wanted, int not_to)
{
	struct str m = STR_INIT;
	size_t plan;
	int to;

	while ((to = wanted < 0 ? free_rank(r, not_to) : is_free(&r->peers[wanted]) ? wanted : 0)) {
		const uint64_t id = ++r->last_id;

		if (!ranks_tell_all(r, to))
			continue; /* it is gone: the next */
		ranks_begin(&m, MESSAGE_TRIAL);
		plan = errand_put(&m, id, l, t, &r->peers[to]);
		if (!ranks_send(r, to, &m))
			continue;
		r->peers[to].busy++;
		VEC_PUSH(&r->given,
			 ((struct given){
				 .id = id, .key = key, .rank = to, .ahead = t->ahead, .bytes = m.n - plan }));
		r->stats.plan_bytes += t->ahead ? 0 : plan;
		break;
	}
	str_release(&m);
	return to != 0;
}

bool ranks_have(const struct ranks *r, size_t key, int *rank)
{
	size_t i;

	for (i = 0; i < r->given.n; i++)
		if (r->given.v[i].key == key && !r->given.v[i].dropped) {
			*rank = r->given.v[i].rank;
			return true;
		}
	return false;
}

void ranks_drop(struct ranks *r, size_t key)
{
	struct str m = STR_INIT;
	size_t i;

	for (i = 0; i < r->given.n; i++) {
		struct given *g = &r->given.v[i];

		if (g->key != key || g->dropped)
			continue;
		g->dropped = true;
		ranks_begin(&m, MESSAGE_DROP);
		wire_put_count(&m, g->id);
		ranks_send(r, g->rank, &m);
	}
	str_release(&m);
}

void ranks_gave_twice(struct ranks *r)
{
	r->stats.given_twice++;
}

/* ---- how long trials take ---- */

/* A trial that takes so many times the median is given to another, too, if it is that long at all. */
#define SLOW_TIMES 5
#define SLOW_SECONDS 1.0
enum { TOOK_LEAST = 3, TOOK_MOST = 99 };

void ranks_took(struct ranks *r, double seconds)
{
	if (r->took.n < TOOK_MOST)
		VEC_PUSH(&r->took, seconds);
}

static int by_value(const void *a, const void *b)
{
	const double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

/* INFINITY: too few have ended */
static double median(const struct ranks *r)
{
	double v[TOOK_MOST];

	if (r->took.n < TOOK_LEAST)
		return INFINITY;
	memcpy(v, r->took.v, r->took.n * sizeof(*v));
	qsort(v, r->took.n, sizeof(*v), by_value);
	return v[r->took.n / 2];
}

double slow_after(double usual)
{
	return fmax(SLOW_TIMES * usual, SLOW_SECONDS);
}

double ranks_slow_after(const struct ranks *r)
{
	return slow_after(median(r));
}

double ranks_patience(const struct ranks *r)
{
	const double m = median(r);

	return isfinite(m) ? m : SLOW_SECONDS;
}

/* ---- what has run ahead ---- */

bool ranks_home(const struct ranks *r, const char *hash, int *rank, bool *whole)
{
	const size_t i = map_get(&r->home_of, hash);

	if (i == MAP_NONE || (r->homes.v[i].rank && !peer_is_there(&r->peers[r->homes.v[i].rank])))
		return false;
	*rank = r->homes.v[i].rank;
	*whole = r->homes.v[i].whole;
	return true;
}

void ranks_set_home(struct ranks *r, const char *hash, int rank, bool whole)
{
	const size_t i = map_get(&r->home_of, hash);

	if (i != MAP_NONE) {
		r->homes.v[i] = (struct home){ rank, whole };
		return;
	}
	map_set(&r->home_of, arena_strdup(&r->hashes, hash), r->homes.n);
	VEC_PUSH(&r->homes, ((struct home){ rank, whole }));
}

bool ranks_frees_soon(const struct ranks *r, int rank)
{
	size_t i;

	for (i = 0; i < r->given.n; i++)
		if (r->given.v[i].rank == rank && r->given.v[i].dropped)
			return true;
	return false;
}

/* ---- what comes back ---- */

static void read_ready(struct ranks *r, int from, struct wire *w)
{
	const char *why = wire_text(w);
	double baseline = wire_real(w);
	char *text;

	if (*why) {
		ranks_lose(r, from, why);
		return;
	}
	if (!isnan(baseline) && !isnan(r->baseline) && baseline != r->baseline) {
		text = xstrfmt("its fp32 model has an accuracy of %.17g, and rank 0's %.17g", baseline,
			       r->baseline);
		ranks_lose(r, from, text);
		free(text);
		return;
	}
	r->peers[from].ready = true;
}

struct given *ranks_find_given(struct ranks *r, uint64_t id)
{
	size_t i;

	for (i = 0; i < r->given.n; i++)
		if (r->given.v[i].id == id)
			return &r->given.v[i];
	return NULL;
}

bool ranks_take_back(struct ranks *r, int from, uint64_t id, struct given *out)
{
	struct given *g = ranks_find_given(r, id);

	if (!g)
		return false;
	*out = *g;
	*g = r->given.v[--r->given.n];
	r->peers[from].busy -= out->work ? r->peers[from].jobs : 1;
	r->peers[from].pieces -= out->work != 0;
	return true;
}

static void read_answer(struct ranks *r, int from, struct wire *w, struct heard *out)
{
	const size_t size = w->n;
	struct given g;
	uint64_t id;

	if (!errand_read_answer(w, &id, out)) {
		out->what = HEARD_NOTHING;
		ranks_lose(r, from, "its answer cannot be read");
		return;
	}
	out->what = HEARD_NOTHING;
	if (!ranks_take_back(r, from, id, &g) || g.dropped)
		return;
	out->what = HEARD_ANSWER;
	out->key = g.key;
	out->t.rank = from;
	if (g.ahead) {
		r->stats.ahead += !out->st;
		return;
	}
	g.bytes += size + 1;
	r->stats.trials++;
	r->stats.bytes += g.bytes;
	if (g.bytes > r->stats.most_bytes)
		r->stats.most_bytes = g.bytes;
}

/* what was with a rank that is gone */
static bool find_lost(struct ranks *r, struct heard *out)
{
	size_t i;

	for (i = 0; i < r->given.n; i++) {
		struct given g = r->given.v[i];

		if (!r->peers[g.rank].gone)
			continue;
		r->given.v[i--] = r->given.v[--r->given.n];
		str_release(&g.answer);
		if (g.dropped)
			continue;
		*out = (struct heard){ .what = HEARD_LOST, .key = g.key, .work = g.work };
		return true;
	}
	return false;
}

enum fettle_status ranks_hear(struct ranks *r, double seconds, struct heard *out, struct err *err)
{
	const char *why = "";
	void *bytes = NULL;
	struct wire w;
	size_t n;
	int from;

	*out = (struct heard){ .what = HEARD_NOTHING };
	if (find_lost(r, out))
		return FETTLE_OK;
	switch (r->t->receive(seconds, &from, &bytes, &n, &why)) {
	case TRANSPORT_BROKEN:
		return fail(err, FETTLE_SYSTEM, "cannot hear the other ranks: %s", why);
	case TRANSPORT_GONE:
		ranks_lose(r, from, "it has died");
		find_lost(r, out);
		return FETTLE_OK;
	case TRANSPORT_MESSAGE:
		w = (struct wire){ bytes, n, false };
		switch (wire_count(&w)) {
		case MESSAGE_READY:
			read_ready(r, from, &w);
			break;
		case MESSAGE_ANSWER:
			read_answer(r, from, &w, out);
			break;
		case MESSAGE_PIECE_PART:
			ranks_read_part(r, &w);
			break;
		case MESSAGE_PIECE_DONE:
			ranks_read_piece(r, from, &w, out);
			break;
		}
		free(bytes);
		break;
	default:
		break;
	}
	return FETTLE_OK;
}
