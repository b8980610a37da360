#include "tune/search.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

#define CRITERION_EPSILON 1e-12 /* so that a loss of exactly the tolerance passes however it was rounded */

enum { DEFAULT_BATCHES = 2 };

struct search {
	struct search_config c;
	VEC(struct trial) trials;
	size_t *slots; /* hash table of trial numbers by plan; 0: empty */
	size_t n_slots;
	size_t best, most_accurate; /* trial numbers; 0: none yet */
	double least;               /* objective of those that meet the criterion */
	size_t held;
	size_t n_met; /* plans that have met the criterion */
	enum search_stop why;
	enum fettle_status failed; /* the status that ended it */
	struct err err;
	double started, replayed; /* when; and the seconds that known trials took, in their day */
	struct arena stages;
	const char *stage;
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

enum fettle_status search_new(struct search **out, const struct search_config *c, struct err *err)
{
	enum fettle_status st = check_criterion(c, err);
	struct search *s;

	if (st)
		return st;
	s = xcalloc(1, sizeof(*s));
	s->least = INFINITY;
	s->c = *c;
	s->stage = "";
	s->started = now(s);
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
	free(s->slots);
	arena_release(&s->stages);
	free(s);
}

/* ---- what has been tried ---- */

static struct trial *trial_at(const struct search *s, size_t number)
{
	return &s->trials.v[number - 1];
}

/* the slot that holds the plan, or the empty one where it belongs */
static size_t *slot_of(const struct search *s, const struct plan *p)
{
	size_t i = plan_hash(p) & (s->n_slots - 1);

	while (s->slots[i] && !plan_equal(&trial_at(s, s->slots[i])->plan, p))
		i = (i + 1) & (s->n_slots - 1);
	return &s->slots[i];
}

static const struct trial *tried(const struct search *s, const struct plan *p)
{
	size_t number = s->n_slots ? *slot_of(s, p) : 0;

	return number ? trial_at(s, number) : NULL;
}

static void grow_slots(struct search *s)
{
	size_t number;

	s->n_slots = s->n_slots ? s->n_slots * 2 : 256;
	free(s->slots);
	s->slots = xcalloc(s->n_slots, sizeof(*s->slots));
	for (number = 1; number <= s->trials.n; number++)
		*slot_of(s, &trial_at(s, number)->plan) = number;
}

static const struct trial *remember(struct search *s, struct trial t)
{
	if (2 * (s->trials.n + 1) > s->n_slots)
		grow_slots(s);
	*slot_of(s, &t.plan) = t.number;
	VEC_PUSH(&s->trials, t);
	return trial_at(s, t.number);
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

static void judge(const struct search *s, struct trial *t)
{
	struct score *score = &t->score;

	if (!score->failed && isnan(score->accuracy)) {
		score->failed = true;
		if (!t->why[0])
			strcpy(t->why, "the accuracy is not a number");
	}
	if (score->failed)
		score->accuracy = NAN;
	score->loss = loss_of(&s->c, score->accuracy);
	score->met = score->loss <= s->c.tolerance + CRITERION_EPSILON &&
		     plan_n_quantized(&t->plan, s->c.space) > 0;
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
	if (fabs(gain) > 1e-9)
		return gain > 0;
	return x < y;
}

static bool better(const struct search *s, const struct trial *a, const struct trial *b)
{
	if (a->score.met != b->score.met)
		return a->score.met;
	return a->score.met ? more_useful(s, a, b) : more_accurate(s, a, b);
}

static void keep_best(struct search *s, const struct trial *t)
{
	bool record = t->score.met && t->score.objective < s->least;
	size_t i;

	s->n_met += t->score.met;
	if (t->score.failed || !plan_n_quantized(&t->plan, s->c.space))
		return;
	if (!s->best || better(s, t, trial_at(s, s->best)))
		s->best = t->number;
	if (!s->most_accurate || more_accurate(s, t, trial_at(s, s->most_accurate)))
		s->most_accurate = t->number;
	if (!record)
		return;
	s->least = t->score.objective; /* the band has moved: who is in it now? */
	for (i = 1; i <= t->number; i++) {
		const struct trial *x = trial_at(s, i);

		if (!x->score.failed && x->score.met && plan_n_quantized(&x->plan, s->c.space) &&
		    more_useful(s, x, trial_at(s, s->best)))
			s->best = i;
	}
}

/* ---- trials ---- */

/* Evaluates the plan, and measures it if it will do. */
static enum fettle_status run(struct search *s, struct trial *t)
{
	const struct search_backend *b = s->c.backend;
	double start = now(s);
	enum fettle_status st;

	st = b->run(s->c.self, &t->plan, t, &s->err);
	if (st)
		return st;
	judge(s, t);
	t->score.objective = NAN;
	if (t->score.met)
		st = b->objective(s->c.self, &t->plan, &t->score.objective, &s->err);
	t->seconds = now(s) - start;
	return st;
}

static bool replay(struct search *s, struct trial *t)
{
	struct trial known = { .seconds = 0 };

	if (!s->c.backend->known || !s->c.backend->known(s->c.self, &t->plan, &known))
		return false;
	t->score = known.score;
	t->seconds = known.seconds;
	memcpy(t->why, known.why, sizeof(t->why));
	judge(s, t);
	if (!t->score.met)
		t->score.objective = NAN;
	s->replayed += t->seconds;
	return true;
}

static enum fettle_status new_trial(struct search *s, const struct plan *p, struct score *score)
{
	struct trial t = { .number = s->trials.n + 1, .stage = s->stage, .score.accuracy = NAN };
	const struct trial *kept;
	enum fettle_status st;
	bool known;

	plan_copy(&t.plan, p);
	known = replay(s, &t);
	st = known ? FETTLE_OK : run(s, &t);
	if (st) {
		plan_release(&t.plan);
		return backend_ended(s, st);
	}
	kept = remember(s, t);
	*score = kept->score;
	keep_best(s, kept);
	if (!known && s->c.backend->record)
		s->c.backend->record(s->c.self, kept);
	return after_trial(s);
}

enum fettle_status search_try(struct search *s, const struct plan *p, struct score *score)
{
	const struct trial *before = tried(s, p);
	enum fettle_status st = go_on(s);

	*score = before ? before->score : (struct score){ true, false, NAN, NAN, NAN };
	if (st || before)
		return st;
	return new_trial(s, p, score);
}

enum fettle_status search_try_all(struct search *s, const struct plan *plans, size_t n, struct score *scores)
{
	enum fettle_status st = FETTLE_OK;
	size_t i;

	for (i = 0; i < n; i++) {
		enum fettle_status one = search_try(s, &plans[i], &scores[i]);

		st = st ? st : one; /* the rest only learn that they were not tried */
	}
	return st;
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

static bool read_trial(const struct search *s, size_t number, struct plan *plan, struct score *score)
{
	if (!number)
		return false;
	plan_copy(plan, &trial_at(s, number)->plan);
	*score = trial_at(s, number)->score;
	return true;
}

bool search_best(const struct search *s, struct plan *plan, struct score *score)
{
	return read_trial(s, s->best, plan, score);
}

bool search_most_accurate(const struct search *s, struct plan *plan, struct score *score)
{
	return read_trial(s, s->most_accurate, plan, score);
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
		s->why = goal_reached(s) ? SEARCH_ACCURACY_MET : SEARCH_EXHAUSTED;
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

const struct trial *search_trial(const struct search *s, size_t number)
{
	return trial_at(s, number);
}

const struct trial *search_best_trial(const struct search *s)
{
	return s->best ? trial_at(s, s->best) : NULL;
}
