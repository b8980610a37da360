#include "tune/search.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "base/mem.h"
#include "base/str.h"

#define GAIN_EQUAL 1e-9
#define CRITERION_EPSILON 1e-12 /* so that a loss of exactly the tolerance passes however it was rounded */

enum {
	DEFAULT_BATCHES = 2,
	SAME_MAX =
		500, /* plans in a row that come to models that were tried: the space is as good as exhausted */
};

struct search {
	struct search_config c;
	VEC(struct trial) trials;
	struct map
		places; /* hash of a plan -> place in `trials`, from 1, of its trial or of one that came to the same model */
	struct arena hashes;
	size_t n_same, n_same_in_a_row;
	struct str untried;
	size_t best, most_accurate; /* places in `trials`, from 1; 0: none yet */
	size_t whole;               /* the most accurate of those in which nothing has fallen back */
	size_t last;                /* the highest number of a trial */
	size_t fresh;               /* trials that were not known */
	double least;               /* objective of those that count as much as the best */
	size_t held;
	size_t n_met;    /* plans that have met the criterion, and not by quantizing next to nothing */
	bool all_slight; /* not even the default plan quantizes more than that: then it counts */
	enum search_stop why;
	enum fettle_status failed; /* the status that ended it */
	struct err err;
	double started, replayed; /* when; and the seconds that known trials took, in their day */
	struct arena stages;
	const char *stage;
	enum want want;
	bool spends_all;
	struct verdict verdict; /* of the trials that are under way */
	double least_before;    /* the least objective, and these when they began */
	size_t best_before, most_accurate_before, whole_before;
};

/* ---- construction ---- */

static enum fettle_status check_criterion(const struct search_config *c, struct err *err)
{
	if (!isfinite(c->baseline))
		return fail(err, FETTLE_INVALID,
			    "cannot tune: the baseline's accuracy is %g, need a finite number", c->baseline);
	if (c->relative && c->baseline == 0)
		return fail(err, FETTLE_INVALID,
			    "cannot tune: the baseline's accuracy is 0, no loss can be relative to it; "
			    "use an absolute criterion");
	if (!(c->tolerance >= 0))
		return fail(err, FETTLE_INVALID, "cannot tune: tolerance %g, need 0 or more", c->tolerance);
	if (!(c->timeout >= 0))
		return fail(err, FETTLE_INVALID, "cannot tune: timeout %g, need 0 or more", c->timeout);
	return FETTLE_OK;
}

static double now(const struct search *s)
{
	return s->c.backend->now ? s->c.backend->now(s->c.self) : 0;
}

static bool quantizes_little(const struct search *s, const struct plan *p)
{
	return s->c.backend->share && s->c.backend->share(s->c.self, p) < SLIGHT_SHARE;
}

enum fettle_status search_new(struct search **out, const struct search_config *c, struct err *err)
{
	enum fettle_status st = check_criterion(c, err);
	struct plan p = PLAN_INIT;
	struct search *s;

	if (st)
		return st;
	s = xcalloc(1, sizeof(*s));
	s->least = INFINITY;
	s->c = *c;
	s->stage = "";
	s->last = c->recorded;
	s->started = now(s);
	plan_init(&p, c->space);
	s->all_slight = quantizes_little(s, &p);
	plan_release(&p);
	*out = s;
	return FETTLE_OK;
}

void search_free(struct search *s)
{
	size_t i;

	if (!s)
		return;
	for (i = 0; i < s->trials.n; i++)
		plan_release(&s->trials.v[i].plan);
	VEC_RELEASE(&s->trials);
	map_release(&s->places);
	arena_release(&s->hashes);
	str_release(&s->untried);
	arena_release(&s->stages);
	free(s);
}

/* ---- what has been tried ---- */

static struct trial *trial_at(const struct search *s, size_t place)
{
	return &s->trials.v[place - 1];
}

static const struct trial *tried(const struct search *s, const struct plan *p)
{
	char hash[FINGERPRINT_LEN];
	size_t place;

	plan_hash(p, s->c.space, hash);
	place = map_get(&s->places, hash);
	return place <= s->trials.n ? trial_at(s, place) : NULL;
}

static void keep_place(struct search *s, const struct plan *p, size_t place)
{
	char hash[FINGERPRINT_LEN];

	plan_hash(p, s->c.space, hash);
	map_set(&s->places, arena_strdup(&s->hashes, hash), place);
}

static const struct trial *remember(struct search *s, struct trial t)
{
	keep_place(s, &t.plan, s->trials.n + 1);
	VEC_PUSH(&s->trials, t);
	return trial_at(s, s->trials.n);
}

/* ---- when to stop ---- */

double search_time_left(const struct search *s)
{
	if (!(s->c.timeout > 0))
		return INFINITY;
	return s->c.timeout - (now(s) - s->started) - s->replayed;
}

static enum fettle_status stop(struct search *s, enum search_stop why)
{
	if (s->why == SEARCH_RUNNING)
		s->why = why;
	return s->failed ? s->failed : FETTLE_STOP;
}

static bool cancelled(const struct search *s)
{
	return s->c.backend->cancelled && s->c.backend->cancelled(s->c.self);
}

/* May the search go on, budget aside? */
static enum fettle_status go_on(struct search *s)
{
	if (s->why != SEARCH_RUNNING)
		return stop(s, s->why);
	if (cancelled(s))
		return stop(s, SEARCH_INTERRUPTED);
	if (search_time_left(s) <= 0)
		return stop(s, SEARCH_TIMEOUT);
	return FETTLE_OK;
}

static bool goal_reached(const struct search *s)
{
	return s->n_met >= (s->c.enough ? s->c.enough : s->c.timeout == 0 ? 1 : SIZE_MAX);
}

static bool goal_ends_it(const struct search *s)
{
	return goal_reached(s) && !s->held;
}

static enum fettle_status after_trial(struct search *s)
{
	if (goal_ends_it(s))
		return stop(s, SEARCH_ACCURACY_MET);
	if (!search_trials_left(s))
		return stop(s, SEARCH_MAX_TRIALS);
	return FETTLE_OK;
}

/* What a backend's status means: broken off, or a failure that ends the search. */
static enum fettle_status backend_ended(struct search *s, enum fettle_status st)
{
	if (st == FETTLE_STOP)
		return stop(s,
			    !cancelled(s) && search_time_left(s) <= 0 ? SEARCH_TIMEOUT : SEARCH_INTERRUPTED);
	s->failed = st;
	return stop(s, SEARCH_FAILED);
}

/* ---- scores ---- */

static double loss_of(const struct search_config *c, double accuracy)
{
	double loss = c->higher_is_better ? c->baseline - accuracy : accuracy - c->baseline;

	return c->relative ? loss / fabs(c->baseline) : loss;
}

/* Sums of scores differ in their last bits with the order of the samples: what is nearer than this is not certain. */
#define VERDICT_SLACK 1e-9

/* is a worse than b, beyond doubt? */
static bool surely_worse(const struct verdict *v, double a, double b)
{
	double slack = VERDICT_SLACK * fmax(1, fabs(b));

	return v->higher_is_better ? a < b - slack : a > b + slack;
}

bool verdict_certain(const struct verdict *v, double low, double high)
{
	double best = v->higher_is_better ? high : low, worst = v->higher_is_better ? low : high;
	bool fails = surely_worse(v, best, v->meet), passes = surely_worse(v, v->meet, worst);

	if (isnan(low) || isnan(high))
		return true;
	if (!isnan(v->tie) && surely_worse(v, best, v->tie))
		return true;
	if (fails)
		return isnan(v->beat) || surely_worse(v, best, v->beat);
	return passes && !v->exact_pass;
}

/* An evaluation that ended early leaves bounds: the end that is nearer to the criterion stands for the value. */
static void judge_bounds(const struct search *s, struct score *score)
{
	double worst = s->c.higher_is_better ? score->low : score->high,
	       best = s->c.higher_is_better ? score->high : score->low;

	score->met = loss_of(&s->c, worst) <= s->c.tolerance + CRITERION_EPSILON;
	score->accuracy = score->met ? worst : best;
}

static void judge(const struct search *s, struct trial *t)
{
	struct score *score = &t->score;

	if (score->early && isinf(score->low) && isinf(score->high)) { /* not evaluated at all */
		score->accuracy = score->loss = score->low = score->high = NAN;
		score->met = false;
		return;
	}
	if (score->early && !score->failed && !isnan(score->low))
		judge_bounds(s, score);
	if (!score->failed && isnan(score->accuracy)) {
		score->failed = true;
		if (!t->why[0])
			strcpy(t->why, "the accuracy is not a number");
	}
	if (score->failed)
		score->accuracy = NAN;
	if (!score->early)
		score->low = score->high = score->accuracy;
	score->loss = loss_of(&s->c, score->accuracy);
	if (!score->early)
		score->met = score->loss <= s->c.tolerance + CRITERION_EPSILON;
	score->met = score->met && !score->failed && plan_n_quantized(&t->plan, s->c.space) > 0;
	score->slight = score->met && !s->all_slight && quantizes_little(s, &t->plan);
}

/* Less loss; then more in int8. */
static bool more_accurate(const struct search *s, const struct trial *a, const struct trial *b)
{
	if (a->score.loss != b->score.loss)
		return a->score.loss < b->score.loss;
	return plan_n_quantized(&a->plan, s->c.space) > plan_n_quantized(&b->plan, s->c.space);
}

/* what int8 saves, as far as the space knows */
static double plan_gain(const struct search *s, const struct plan *p)
{
	double sum = 0;
	size_t i;

	for (i = 0; i < s->c.space->n_ops; i++)
		if (plan_is_quantized(p, s->c.space, i))
			sum += s->c.space->v[i].gain;
	return sum;
}

/* Both meet the criterion. Objectives that differ by less than their noise say nothing: then more in int8 wins. */
static bool more_useful(const struct search *s, const struct trial *a, const struct trial *b)
{
	double limit = s->least * (1 + s->c.objective_noise), x = a->score.objective, y = b->score.objective,
	       gain;

	if (isnan(x) || isnan(y))
		return !isnan(x) || (isnan(y) && a->score.loss < b->score.loss);
	if (x > limit || y > limit || s->c.objective_noise <= 0) {
		if (x != y)
			return x < y;
		return a->score.loss < b->score.loss;
	}
	gain = plan_gain(s, &a->plan) - plan_gain(s, &b->plan);
	if (fabs(gain) > GAIN_EQUAL)
		return gain > 0;
	return a->score.loss != b->score.loss ? a->score.loss < b->score.loss : x < y;
}

/* What meets the criterion by quantizing next to nothing wins only if nothing else meets it. */
static int merit(const struct trial *t)
{
	return !t->score.met ? 0 : t->score.slight ? 1 : 2;
}

static bool better(const struct search *s, const struct trial *a, const struct trial *b)
{
	if (merit(a) != merit(b))
		return merit(a) > merit(b);
	return a->score.met ? more_useful(s, a, b) : more_accurate(s, a, b);
}

static void keep_most_accurate(const struct search *s, const struct trial *t, size_t *place)
{
	if (!*place || more_accurate(s, t, trial_at(s, *place)))
		*place = s->trials.n;
}

/* of the last one */
static void keep_best(struct search *s, const struct trial *t)
{
	size_t i;

	s->n_met += merit(t) == 2;
	if (t->score.failed || !plan_n_quantized(&t->plan, s->c.space))
		return;
	if (s->best && merit(t) > merit(trial_at(s, s->best)))
		s->least = INFINITY;
	if (!s->best || better(s, t, trial_at(s, s->best)))
		s->best = s->trials.n;
	keep_most_accurate(s, t, &s->most_accurate);
	if (plan_is_whole(&t->plan, s->c.space))
		keep_most_accurate(s, t, &s->whole);
	if (!t->score.met || merit(t) < merit(trial_at(s, s->best)) || !(t->score.objective < s->least))
		return;
	s->least = t->score.objective; /* the band has moved: who is in it now? */
	for (i = 1; i <= s->trials.n; i++) {
		const struct trial *x = trial_at(s, i);

		if (merit(x) == merit(t) && more_useful(s, x, trial_at(s, s->best)))
			s->best = i;
	}
}

/* ---- trials ---- */

/* What is enough to know of the trials to come, as things stand. */
static void settle(struct search *s)
{
	const struct search_config *c = &s->c;
	double loss = c->tolerance * (c->relative ? fabs(c->baseline) : 1);
	bool finds_best = s->n_met && !s->held;

	s->verdict = (struct verdict){
		.higher_is_better = c->higher_is_better,
		.meet = c->baseline + (c->higher_is_better ? -loss : loss),
		.beat = NAN, /* each plan has its own */
		.tie = finds_best && !(c->accuracy_weight > 0) ? trial_at(s, s->best)->score.accuracy : NAN,
		/* where the search goes on after a success, ties in the objective go to the more accurate */
		.exact_pass = s->held || c->timeout > 0 || c->enough > 1 || c->accuracy_weight > 0,
	};
	s->best_before = s->best;
	s->most_accurate_before = s->most_accurate;
	s->whole_before = s->whole;
	s->least_before = s->least;
	if (c->backend->settle)
		c->backend->settle(c->self);
}

static bool wants_value(const struct search *s)
{
	return s->c.no_early || s->want == WANT_VALUE;
}

/*
 * With a plan in hand that meets the criterion, another is of use only if it is faster, or as fast (within the noise)
 * and quantizes no less. That is measured in less time than its accuracy.
 */
static enum fettle_status too_slow(struct search *s, struct trial *t, struct verdict *v, bool *too_slow)
{
	const struct trial *best = s->best_before ? trial_at(s, s->best_before) : NULL;
	double noise = fmax(s->c.objective_noise, 0), x = NAN, y, limit;
	enum fettle_status st;

	*too_slow = false;
	if (wants_value(s) || s->c.accuracy_weight > 0 || !best || merit(best) < 2 ||
	    isnan(best->score.objective) || (s->held && s->want != WANT_FASTER))
		return FETTLE_OK;
	st = s->c.backend->objective(s->c.self, t, &x, &s->err);
	if (st) /* a failure is the evaluation's to report */
		return st == FETTLE_STOP ? st : FETTLE_OK;
	y = best->score.objective;
	limit = plan_gain(s, &t->plan) < plan_gain(s, &best->plan) - GAIN_EQUAL
			? y / (1 + noise)
			: fmax(s->least_before * (1 + noise), y);
	if (x * (1 + noise) < y) /* then it is the best if it meets the criterion, no matter by how much */
		v->tie = NAN;
	if (x < limit || (x == y && noise <= 0))
		return FETTLE_OK;
	*too_slow = true;
	t->score.early = true;
	t->score.low = -INFINITY;
	t->score.high = INFINITY;
	snprintf(t->why, sizeof(t->why), "not evaluated: no faster than trial %zu", best->number);
	return FETTLE_OK;
}

/* As long as nothing meets the criterion, a trial that fails must be known to be no more accurate than the best seen. */
static double to_beat(const struct search *s, const struct plan *p)
{
	size_t best = plan_is_whole(p, s->c.space) ? s->whole_before : s->most_accurate_before;

	if (s->n_met)
		return NAN;
	return best ? trial_at(s, best)->score.accuracy : s->c.higher_is_better ? -INFINITY : INFINITY;
}

static void prepare(struct search *s, struct trial *t, struct verdict *own)
{
	*own = s->verdict;
	own->beat = to_beat(s, &t->plan);
	/* with as much in int8 as the best, accuracy decides; with more or less, speed does */
	if (s->best_before &&
	    fabs(plan_gain(s, &t->plan) - plan_gain(s, &trial_at(s, s->best_before)->plan)) > GAIN_EQUAL)
		own->tie = NAN;
	t->verdict = wants_value(s) ? NULL : own;
	t->latency = NAN;
}

/* What the accuracy adds to the objective: 1 is the baseline's, as for the other objectives. */
static double accuracy_term(const struct search_config *c, double accuracy)
{
	double lost = c->higher_is_better ? c->baseline - accuracy : accuracy - c->baseline;

	return c->accuracy_weight * (1 + (c->baseline != 0 ? lost / fabs(c->baseline) : lost));
}

/* Measures what will do. */
static enum fettle_status measure(struct search *s, struct trial *t)
{
	enum fettle_status st;

	judge(s, t);
	t->score.objective = NAN;
	if (!t->score.met)
		return FETTLE_OK;
	st = s->c.backend->objective(s->c.self, t, &t->score.objective, &s->err);
	if (s->c.accuracy_weight > 0)
		t->score.objective += accuracy_term(&s->c, t->score.accuracy);
	return st;
}

static bool replay(struct search *s, struct trial *t)
{
	struct trial known = { .seconds = 0 };

	if (!s->c.backend->known || !s->c.backend->known(s->c.self, &t->plan, &known))
		return false;
	t->number = known.number;
	t->score = known.score;
	t->seconds = known.seconds;
	t->identity = known.identity;
	memcpy(t->why, known.why, sizeof(t->why));
	judge(s, t);
	if (!t->score.met)
		t->score.objective = NAN;
	return true;
}

/* A trial that has run, or is known: it counts from here on. */
static enum fettle_status finish(struct search *s, struct trial t, bool known, struct score *score)
{
	const struct trial *kept;

	t.verdict = NULL;
	s->n_same_in_a_row = 0;
	kept = remember(s, t);
	*score = kept->score;
	keep_best(s, kept);
	if (!known && s->c.backend->record)
		s->c.backend->record(s->c.self, kept);
	return after_trial(s);
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
	double start = now(s);

	*t = (struct trial){ .stage = s->stage, .score.accuracy = NAN };
	plan_copy(&t->plan, p);
	prepare(s, t, &g->verdicts[g->n]);
	known = replay(s, t);
	if (!known && s->c.max_trials && s->c.recorded + s->fresh >= s->c.max_trials) {
		plan_release(&t->plan);
		return false;
	}
	if (!known && s->c.backend->identify) {
		s->c.backend->identify(s->c.self, t);
		t->seconds = now(s) - start;
		same = same_model(s, g, t->identity);
	}
	if (same) {
		keep_place(s, &t->plan, same);
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

/* The first that nobody knows alone, the others beside it; what is known costs nothing. */
static void run_group(struct search *s, struct group *g)
{
	const struct search_backend *b = s->c.backend;
	struct trial *fresh = xcalloc(g->n, sizeof(*fresh));
	enum fettle_status *st = xcalloc(g->n, sizeof(*st));
	size_t i, n = 0;
	double start = now(s), each;

	for (i = 0; i < g->n; i++) {
		if (!g->known[i])
			g->st[i] = too_slow(s, &g->t[i], &g->verdicts[i], &g->skipped[i]);
		if (!g->known[i] && !g->skipped[i] && !g->st[i])
			fresh[n++] = g->t[i];
	}
	if (n == 1)
		st[0] = b->run(s->c.self, &fresh[0], &s->err);
	else if (n)
		b->run_all(s->c.self, fresh, n, st, &s->err);
	each = n ? (now(s) - start) / (double)n : 0;
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
	free(st);
}

/* In order, as if they had run one after the other; FETTLE_STOP leaves the rest untried. */
static enum fettle_status finish_group(struct search *s, struct group *g, struct score *scores)
{
	enum fettle_status st = FETTLE_OK;
	size_t i;

	for (i = 0; i < g->n; i++) {
		struct trial *t = &g->t[i];
		double start = now(s);

		if (!st && !g->known[i]) {
			st = g->st[i] ? g->st[i] : g->skipped[i] ? (judge(s, t), FETTLE_OK) : measure(s, t);
			t->seconds += now(s) - start;
			st = st ? backend_ended(s, st) : FETTLE_OK;
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
	enum fettle_status st = go_on(s);
	size_t k;

	for (k = 0; k < n; k++)
		scores[k] = (struct score){ .failed = true,
					    .accuracy = NAN,
					    .loss = NAN,
					    .objective = NAN,
					    .low = NAN,
					    .high = NAN };
	if (!st)
		settle(s);
	while (i < n) {
		const struct trial *before = tried(s, &plans[i]);

		if (before) {
			scores[i++] = before->score;
			continue;
		}
		if (st || (st = go_on(s))) { /* the rest only learn that they were not tried */
			i++;
			continue;
		}
		g.n = 0;
		for (k = i; k < n && g.n < width && g.n < search_trials_left(s); k++)
			if (!tried(s, &plans[k]) && !in_group(s, &g, &plans[k]) &&
			    !add_to_group(s, &g, &plans[k], k))
				break;
		if (g.n) {
			run_group(s, &g);
			st = finish_group(s, &g, scores);
		} else if (k < n) {
			st = stop(s, SEARCH_MAX_TRIALS);
		} else if (s->n_same_in_a_row >= SAME_MAX) {
			st = stop(s, SEARCH_EXHAUSTED);
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

/* ---- the rest of strategy.h ---- */

const struct space *search_space(const struct search *s)
{
	return s->c.space;
}

const struct strategy_options *search_options(const struct search *s)
{
	return &s->c.options;
}

size_t search_trials_left(const struct search *s)
{
	if (!s->c.max_trials)
		return SIZE_MAX;
	return s->c.max_trials - s->trials.n;
}

size_t search_n_trials(const struct search *s)
{
	return s->trials.n;
}

struct err *search_err(struct search *s)
{
	return &s->err;
}

void search_stage(struct search *s, const char *stage)
{
	if (strcmp(stage, s->stage) != 0)
		s->stage = arena_strdup(&s->stages, stage);
}

void search_untried(struct search *s, const char *fmt, ...)
{
	char what[256];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(what, sizeof(what), fmt, ap);
	va_end(ap);
	if (!s->untried.s || !strstr(s->untried.s, what))
		str_addf(&s->untried, "%s%s", s->untried.n ? "; " : "", what);
}

const char *search_left_untried(const struct search *s)
{
	return s->untried.s ? s->untried.s : "";
}

size_t search_n_same(const struct search *s)
{
	return s->n_same;
}

void search_want(struct search *s, enum want what)
{
	s->want = what;
}

void search_spend_all(struct search *s)
{
	s->spends_all = true;
}

bool search_spends_all(const struct search *s)
{
	return s->spends_all;
}

void search_hold(struct search *s)
{
	s->held++;
}

enum fettle_status search_release(struct search *s)
{
	s->held--;
	if (s->why != SEARCH_RUNNING)
		return stop(s, s->why);
	return goal_ends_it(s) ? stop(s, SEARCH_ACCURACY_MET) : FETTLE_OK;
}

static bool read_trial(const struct search *s, size_t place, struct plan *plan, struct score *score)
{
	if (!place)
		return false;
	plan_copy(plan, &trial_at(s, place)->plan);
	*score = trial_at(s, place)->score;
	return true;
}

bool search_best(const struct search *s, struct plan *plan, struct score *score)
{
	return read_trial(s, s->best, plan, score);
}

bool search_base(const struct search *s, struct plan *plan, struct score *score)
{
	return read_trial(s, s->n_met || !s->whole ? s->best : s->whole, plan, score);
}

static bool goes_before(const struct op_order *o, size_t a, size_t b)
{
	if (isnan(o->score[a]) || isnan(o->score[b]))
		return !isnan(o->score[a]) && isnan(o->score[b]);
	return o->score[a] > o->score[b];
}

static void swap_ranked(struct op_order *o, size_t a, size_t b)
{
	size_t op = o->op[a];
	double score = o->score[a];

	o->op[a] = o->op[b];
	o->score[a] = o->score[b];
	o->op[b] = op;
	o->score[b] = score;
}

/* Insertion: stable, and a model's ops are few. */
static void sort_order(struct op_order *o)
{
	size_t i, k;

	for (i = 1; i < o->n; i++)
		for (k = i; k && goes_before(o, k, k - 1); k--)
			swap_ranked(o, k, k - 1);
}

enum fettle_status search_rank_ops(struct search *s, const struct plan *p, enum rank by, struct op_order *out)
{
	int batches = s->c.options.confidence_batches ? s->c.options.confidence_batches : DEFAULT_BATCHES;
	enum fettle_status st = go_on(s);

	op_order_release(out);
	if (st)
		return st;
	st = s->c.backend->rank(s->c.self, p, by, batches, out, &s->err);
	if (st) {
		op_order_release(out);
		return backend_ended(s, st);
	}
	sort_order(out);
	return FETTLE_OK;
}

enum fettle_status search_estimate(struct search *s, const struct plan *p, double *error)
{
	int batches = s->c.options.confidence_batches ? s->c.options.confidence_batches : DEFAULT_BATCHES;
	enum fettle_status st = go_on(s);

	*error = INFINITY;
	if (st)
		return st;
	st = s->c.backend->estimate(s->c.self, p, batches, error, &s->err);
	if (st == FETTLE_UNSUPPORTED || st == FETTLE_BACKEND) { /* this plan cannot be had */
		*error = INFINITY;
		return FETTLE_OK;
	}
	return st ? backend_ended(s, st) : FETTLE_OK;
}

enum fettle_status search_objective(struct search *s, const struct plan *p, double *value)
{
	struct trial t = { .latency = NAN };
	enum fettle_status st = go_on(s);

	*value = INFINITY;
	if (st)
		return st;
	plan_copy(&t.plan, p);
	st = s->c.backend->objective(s->c.self, &t, value, &s->err);
	plan_release(&t.plan);
	if (st == FETTLE_UNSUPPORTED || st == FETTLE_BACKEND) { /* this plan cannot be had */
		*value = INFINITY;
		return FETTLE_OK;
	}
	return st ? backend_ended(s, st) : FETTLE_OK;
}

/* ---- a whole run ---- */

enum fettle_status search_run(struct search *s, const struct strategy *strategy, struct err *err)
{
	enum fettle_status st = strategy_run(strategy, s);

	if (st && st != FETTLE_STOP) {
		s->failed = st;
		s->why = SEARCH_FAILED;
		if (err)
			*err = s->err;
		return st;
	}
	if (s->why == SEARCH_RUNNING)
		s->why = goal_reached(s)            ? SEARCH_ACCURACY_MET
			 : search_time_left(s) <= 0 ? SEARCH_TIMEOUT
						    : SEARCH_EXHAUSTED;
	return FETTLE_OK;
}

enum search_stop search_why(const struct search *s)
{
	return s->why;
}

const char *search_stop_name(enum search_stop why)
{
	static const char *const names[] = {
		[SEARCH_RUNNING] = "running",       [SEARCH_ACCURACY_MET] = "accuracy met",
		[SEARCH_MAX_TRIALS] = "max trials", [SEARCH_TIMEOUT] = "timeout",
		[SEARCH_EXHAUSTED] = "exhausted",   [SEARCH_INTERRUPTED] = "interrupted",
		[SEARCH_FAILED] = "failed",
	};

	return names[why];
}

void search_adopt(struct search *s, const struct plan *p)
{
	struct trial t = { .stage = "", .latency = NAN };

	if (tried(s, p))
		return;
	plan_copy(&t.plan, p);
	if (replay(s, &t))
		keep_best(s, remember(s, t));
	else
		plan_release(&t.plan);
}

const struct trial *search_trial(const struct search *s, size_t place)
{
	return trial_at(s, place);
}

const struct trial *search_best_trial(const struct search *s)
{
	return s->best ? trial_at(s, s->best) : NULL;
}

void search_settle_best(struct search *s, double accuracy)
{
	struct trial *t = s->best ? trial_at(s, s->best) : NULL;

	if (!t || !t->score.early)
		return;
	t->score.early = false;
	t->score.accuracy = accuracy;
	judge(s, t);
}
