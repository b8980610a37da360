/* Trials that do not depend on each other: what is known is replayed, the rest runs side by side, all count in order. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tune/foresee.h"

/* Plans in a row that come to models that were tried: the space is as good as exhausted. */
enum { SAME_MAX = 500 };

bool replay_trial(struct search *s, struct trial *t)
{
	struct trial known = { .seconds = 0 };

	if (!s->c.backend->known || !s->c.backend->known(s->c.self, &t->plan, &known))
		return false;
	t->number = known.number;
	t->score = known.score;
	t->seconds = known.seconds;
	t->identity = known.identity;
	t->samples = known.samples;
	t->beyond = known.beyond;
	memcpy(t->why, known.why, sizeof(t->why));
	judge(s, t);
	if (!t->score.met)
		t->score.objective = NAN;
	return true;
}

/* What ended early has bounds only: it runs again, to its end. It stays one trial. */
static enum fettle_status run_to_end(struct search *s, struct trial *t)
{
	struct trial again = *t;
	bool newly_met;
	enum fettle_status st;

	again.score = (struct score){ .accuracy = NAN };
	again.why[0] = '\0';
	st = s->c.backend->run(s->c.self, &again, &s->err);
	if (!st)
		st = measure_trial(s, &again);
	if (st)
		return search_backend_ended(s, st);
	newly_met = again.score.met && !t->score.met;
	*t = again;
	if (newly_met)
		keep_best(s, t);
	if (!t->score.failed && s->c.backend->completed)
		s->c.backend->completed(s->c.self, t);
	return FETTLE_OK;
}

static enum fettle_status complete(struct search *s, struct trial *t)
{
	enum fettle_status st;

	if (!t->score.early || !wants_value(s))
		return FETTLE_OK;
	st = run_to_end(s, t);
	return st ? st : search_after_trial(s);
}

/* What a trial lost on some samples is the least that it can have lost: if the best of them is known exactly, it is the best. */
enum fettle_status search_settle(struct search *s)
{
	enum fettle_status st = FETTLE_OK;

	while (!st && s->best && !trial_at(s, s->best)->score.met) {
		const size_t place = trial_at(s, s->best)->score.early ? s->best : s->whole;

		if (!place || !trial_at(s, place)->score.early)
			break;
		st = run_to_end(s, trial_at(s, place));
		find_best_again(s);
	}
	return st;
}

/* A trial that has run, or is known: it counts from here on. */
static enum fettle_status finish(struct search *s, struct trial t, bool known, struct score *score)
{
	struct trial *kept;
	enum fettle_status st;

	t.verdict = NULL;
	s->n_same_in_a_row = 0;
	spend_trial(s, &t);
	kept = search_remember(s, t);
	keep_best(s, kept);
	if (!known && s->c.backend->record)
		s->c.backend->record(s->c.self, kept);
	if (s->best == s->trials.n && kept->score.met && s->c.backend->prefer)
		s->c.backend->prefer(s->c.self, &kept->plan);
	st = known ? complete(s, kept) : FETTLE_OK;
	*score = kept->score;
	return st ? st : search_after_trial(s);
}

/* Of the plans, those in a row that nobody has tried, at most `width`. Known ones are not among them. */
struct group {
	struct trial *t;
	struct verdict *verdicts;
	size_t *plan; /* which */
	bool *known, *skipped;
	enum fettle_status *st;
	size_t n;
};

/* The place of the trial that comes to the same model; 0: none does. */
static size_t same_model(const struct search *s, const struct group *g, uint64_t identity)
{
	size_t i;

	for (i = 0; i < s->trials.n && identity; i++)
		if (s->trials.v[i].identity == identity)
			return i + 1;
	for (i = 0; i < g->n && identity; i++)
		if (g->t[i].identity == identity)
			return s->trials.n + 1 + i;
	return 0;
}

/* False: it is not known, and all trials are used up. What comes to a model that was tried is not added. */
static bool add_to_group(struct search *s, struct group *g, const struct plan *p, size_t which)
{
	struct trial *t = &g->t[g->n];
	bool known;
	size_t same = 0;
	double start = search_now(s);

	*t = (struct trial){ .stage = s->stage, .score.accuracy = NAN };
	plan_copy(&t->plan, p);
	prepare_trial(s, t, &g->verdicts[g->n]);
	known = replay_trial(s, t);
	if (!known && s->c.max_trials && s->c.recorded + s->fresh >= s->c.max_trials) {
		plan_release(&t->plan);
		return false;
	}
	if (!known && s->c.backend->identify) {
		s->c.backend->identify(s->c.self, t);
		t->seconds = search_now(s) - start;
		same = same_model(s, g, t->identity);
	}
	if (same) {
		search_keep_place(s, &t->plan, same);
		plan_release(&t->plan);
		s->n_same++;
		s->n_same_in_a_row++;
		return true;
	}
	s->fresh += !known;
	if (!t->number)
		t->number = s->last + 1;
	if (t->number > s->last)
		s->last = t->number;
	g->plan[g->n] = which;
	g->known[g->n] = known;
	g->skipped[g->n] = false;
	g->st[g->n++] = FETTLE_OK;
	return true;
}

static bool in_group(const struct search *s, const struct group *g, const struct plan *p)
{
	size_t i;

	for (i = 0; i < g->n; i++)
		if (plan_equal(&g->t[i].plan, p, s->c.space))
			return true;
	return false;
}

/* Plans that were asked for, or may be next, for each worker: one may end long before the trials that are waited for. */
enum { AHEAD_PER_WORKER = 2 };

/* After n trials come those that may run ahead of others. Returns how many. */
static size_t add_ahead(struct search *s, struct trial *t, size_t n, struct verdict *verdicts)
{
	size_t left = search_trials_left(s), most = AHEAD_PER_WORKER * search_workers(s) - n, i, k;
	struct plan *plans;

	most = most < left - n ? most : left - n;
	if (!s->strategy || !n || !most)
		return 0;
	plans = xcalloc(most, sizeof(*plans));
	k = foresee(s, t, n, plans, most);
	for (i = 0; i < k; i++) {
		struct trial *x = &t[n + i];

		*x = (struct trial){
			.plan = plans[i], .stage = s->stage, .score.accuracy = NAN, .ahead = true
		};
		prepare_trial(s, x, &verdicts[i]);
	}
	free(plans);
	return k;
}

static void keep_ahead(struct search *s, struct trial *t, const enum fettle_status *st, size_t n)
{
	size_t i;

	for (i = 0; i < n; i++) {
		if (st[i] != FETTLE_STOP)
			foresee_no_more(s, &t[i].plan);
		plan_release(&t[i].plan);
	}
}

/* The first that nobody knows alone, the others beside it; what is known costs nothing. */
static void run_group(struct search *s, struct group *g)
{
	const struct search_backend *b = s->c.backend;
	const size_t most = g->n + AHEAD_PER_WORKER * search_workers(s);
	struct trial *fresh = xcalloc(most, sizeof(*fresh));
	struct verdict *verdicts = xcalloc(most, sizeof(*verdicts));
	enum fettle_status *st = xcalloc(most, sizeof(*st));
	size_t i, n = 0, n_ahead;
	double start = search_now(s), each;

	for (i = 0; i < g->n; i++) {
		if (!g->known[i])
			g->st[i] = too_slow(s, &g->t[i], &g->verdicts[i], &g->skipped[i]);
		if (!g->known[i] && !g->skipped[i] && !g->st[i])
			fresh[n++] = g->t[i];
	}
	n_ahead = add_ahead(s, fresh, n, verdicts);
	if (n == 1 && (search_workers(s) < 2 || !b->run_all))
		st[0] = b->run(s->c.self, &fresh[0], &s->err);
	else if (n)
		b->run_all(s->c.self, fresh, n + n_ahead, st, &s->err);
	keep_ahead(s, fresh + n, st + n, n_ahead);
	each = n ? (search_now(s) - start) / (double)n : 0;
	for (i = 0, n = 0; i < g->n; i++) {
		if (g->known[i])
			continue;
		if (!g->skipped[i] && !g->st[i]) {
			g->t[i] = fresh[n];
			g->st[i] = st[n++];
		}
		g->t[i].seconds += g->skipped[i] ? g->t[i].measure_s : each;
	}
	free(fresh);
	free(verdicts);
	free(st);
}

/* In order, as if they had run one after the other; FETTLE_STOP leaves the rest untried. */
static enum fettle_status finish_group(struct search *s, struct group *g, struct score *scores)
{
	enum fettle_status st = FETTLE_OK;
	size_t i;

	for (i = 0; i < g->n; i++) {
		struct trial *t = &g->t[i];
		double start = search_now(s);

		if (!st && !g->known[i]) {
			st = g->st[i]        ? g->st[i]
			     : g->skipped[i] ? (judge(s, t), FETTLE_OK)
					     : measure_trial(s, t);
			t->seconds += search_now(s) - start;
			st = st ? search_backend_ended(s, st) : FETTLE_OK;
		} else if (!st) {
			s->replayed += t->seconds;
		}
		if (st)
			plan_release(&t->plan);
		else
			st = finish(s, *t, g->known[i], &scores[g->plan[i]]);
	}
	return st;
}

enum fettle_status search_try_all(struct search *s, const struct plan *plans, size_t n, struct score *scores)
{
	size_t width = s->c.backend->run_all && s->c.width ? s->c.width : 1, i = 0;
	struct group g = { xcalloc(width, sizeof(*g.t)),
			   xcalloc(width, sizeof(*g.verdicts)),
			   xcalloc(width, sizeof(*g.plan)),
			   xcalloc(width, sizeof(*g.known)),
			   xcalloc(width, sizeof(*g.skipped)),
			   xcalloc(width, sizeof(*g.st)),
			   0 };
	enum fettle_status st = search_may_continue(s);
	size_t k;

	for (k = 0; k < n; k++)
		scores[k] = (struct score){ .failed = true,
					    .accuracy = NAN,
					    .loss = NAN,
					    .objective = NAN,
					    .low = NAN,
					    .high = NAN };
	if (!st)
		decide_verdict(s);
	while (i < n) {
		struct trial *before = search_tried(s, &plans[i]);

		if (before) {
			st = st ? st : complete(s, before);
			scores[i++] = before->score;
			continue;
		}
		if (st || (st = search_may_continue(s))) { /* the rest only learn that they were not tried */
			i++;
			continue;
		}
		g.n = 0;
		for (k = i; k < n && g.n < width && g.n < search_trials_left(s); k++)
			if (!search_tried(s, &plans[k]) && !in_group(s, &g, &plans[k]) &&
			    !add_to_group(s, &g, &plans[k], k))
				break;
		if (g.n) {
			run_group(s, &g);
			st = finish_group(s, &g, scores);
		} else if (k < n) {
			st = search_stop(s, SEARCH_MAX_TRIALS);
		} else if (s->n_same_in_a_row >= SAME_MAX) {
			st = search_stop(s, SEARCH_EXHAUSTED);
		}
	}
	free(g.t);
	free(g.verdicts);
	free(g.plan);
	free(g.known);
	free(g.skipped);
	free(g.st);
	return st;
}

enum fettle_status search_try(struct search *s, const struct plan *p, struct score *score)
{
	return search_try_all(s, p, 1, score);
}
