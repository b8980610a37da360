#include "tune/foresee.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	DEFAULT_BATCHES = 2,
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
	if (isnan(c->tolerance))
		return fail(err, FETTLE_INVALID, "cannot tune: tolerance %g, need a number", c->tolerance);
	if (!(c->timeout >= 0))
		return fail(err, FETTLE_INVALID, "cannot tune: timeout %g, need 0 or more", c->timeout);
	return FETTLE_OK;
}

double search_now(const struct search *s)
{
	return s->c.backend->now ? s->c.backend->now(s->c.self) : 0;
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
	s->started = search_now(s);
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
	plan_release(&s->asked.plan);
	map_release(&s->places);
	map_release(&s->ahead);
	memo_release(&s->memo);
	arena_release(&s->keys);
	str_release(&s->untried);
	arena_release(&s->stages);
	free(s);
}

/* ---- what has been tried ---- */

struct trial *trial_at(const struct search *s, size_t place)
{
	return &s->trials.v[place - 1];
}

/* As plan_hash(), without writing the text: plans that plan_equal() says are the same have the same key. */
void search_key(const struct search *s, const struct plan *p, int kind, char out[FINGERPRINT_LEN])
{
	uint16_t *c = xcalloc(p->n + 1, sizeof(*c));
	size_t i;

	for (i = 0; i < p->n; i++)
		c[i] = plan_uses(p, s->c.space, i) ? p->choice[i] : UINT16_MAX;
	c[p->n] = (uint16_t)kind;
	fingerprint_bytes(c, (p->n + 1) * sizeof(*c), out);
	free(c);
}

struct trial *search_tried(const struct search *s, const struct plan *p)
{
	char key[FINGERPRINT_LEN];
	size_t place;

	search_key(s, p, 0, key);
	place = map_get(&s->places, key);
	return place <= s->trials.n ? trial_at(s, place) : NULL;
}

void search_keep_place(struct search *s, const struct plan *p, size_t place)
{
	char key[FINGERPRINT_LEN];

	search_key(s, p, 0, key);
	map_set(&s->places, arena_strdup(&s->keys, key), place);
}

struct trial *search_remember(struct search *s, struct trial t)
{
	search_keep_place(s, &t.plan, s->trials.n + 1);
	VEC_PUSH(&s->trials, t);
	return trial_at(s, s->trials.n);
}

/* ---- when to stop ---- */

double search_time_left(const struct search *s)
{
	if (!(s->c.timeout > 0))
		return INFINITY;
	return s->c.timeout - (search_now(s) - s->started) - s->replayed;
}

enum fettle_status search_stop(struct search *s, enum search_stop why)
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
enum fettle_status search_may_continue(struct search *s)
{
	if (s->why != SEARCH_RUNNING)
		return search_stop(s, s->why);
	if (cancelled(s))
		return search_stop(s, SEARCH_INTERRUPTED);
	if (search_time_left(s) <= 0)
		return search_stop(s, SEARCH_TIMEOUT);
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

enum fettle_status search_after_trial(struct search *s)
{
	if (goal_ends_it(s))
		return search_stop(s, SEARCH_ACCURACY_MET);
	if (!search_trials_left(s))
		return search_stop(s, SEARCH_MAX_TRIALS);
	if (s->ends_at_limit && !search_may_spend(s, 0))
		return search_stop(s, goal_reached(s) ? SEARCH_ACCURACY_MET : SEARCH_EXHAUSTED);
	return FETTLE_OK;
}

/* What a backend's status means: broken off, or a failure that ends the search. */
enum fettle_status search_backend_ended(struct search *s, enum fettle_status st)
{
	if (st == FETTLE_STOP)
		return search_stop(s, !cancelled(s) && search_time_left(s) <= 0 ? SEARCH_TIMEOUT
										: SEARCH_INTERRUPTED);
	s->failed = st;
	return search_stop(s, SEARCH_FAILED);
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

size_t search_workers(const struct search *s)
{
	return s->c.width ? s->c.width : 1;
}

bool search_cancelled(const struct search *s)
{
	return cancelled(s) || search_time_left(s) <= 0;
}

bool search_higher_is_better(const struct search *s)
{
	return s->c.higher_is_better;
}

double search_target(const struct search *s)
{
	double loss = s->c.tolerance * (s->c.relative ? fabs(s->c.baseline) : 1);

	return s->c.baseline + (s->c.higher_is_better ? -loss : loss);
}

enum fettle_status search_note(struct search *s, const char *name, const char *text)
{
	return s->c.backend->note ? s->c.backend->note(s->c.self, name, text, &s->err) : FETTLE_OK;
}

char *search_noted(struct search *s, const char *name)
{
	return s->c.backend->noted ? s->c.backend->noted(s->c.self, name) : NULL;
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

double search_size_room(const struct search *s)
{
	return s->c.size_room;
}

bool search_frugal(const struct search *s)
{
	return s->c.frugal;
}

bool search_one_sample(const struct search *s, const struct score *score)
{
	return !score->met && s->c.counts && s->c.samples && score->loss * (double)s->c.samples < 1.5;
}

bool search_counts(const struct search *s)
{
	return s->c.counts;
}

bool search_loses_by_error(const struct search *s)
{
	return s->c.only_lose;
}

double search_tolerance(const struct search *s)
{
	return s->c.tolerance;
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
		return search_stop(s, s->why);
	return goal_ends_it(s) ? search_stop(s, SEARCH_ACCURACY_MET) : FETTLE_OK;
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

bool search_best_gains_nothing(const struct search *s)
{
	const struct score *best = s->best ? &trial_at(s, s->best)->score : NULL;

	return best && best->met && best->objective > CLEARLY_FASTER * s->c.fp32_objective &&
	       s->c.fp32_objective > 0;
}

bool search_base(const struct search *s, struct plan *plan, struct score *score)
{
	return read_trial(s, s->n_met || !s->whole ? s->best : s->whole, plan, score);
}

/* Is every parameter of a as b has it, but for ops that a has in fp32? */
static bool is_part_of(const struct search *s, const struct plan *a, const struct plan *b)
{
	const struct space *space = s->c.space;
	size_t i;

	for (i = 0; i < space->n; i++)
		if (a->choice[i] != b->choice[i] && (i >= space->n_ops || plan_is_quantized(a, space, i)))
			return false;
	return true;
}

bool search_fails_with_less(const struct search *s, const struct plan *p)
{
	size_t i;

	for (i = 1; i <= s->trials.n; i++) {
		const struct trial *t = trial_at(s, i);

		if (!t->score.met && !isnan(t->score.loss) && is_part_of(s, &t->plan, p))
			return true;
	}
	return false;
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

static int local_batches(const struct search *s)
{
	return s->c.options.confidence_batches ? s->c.options.confidence_batches : DEFAULT_BATCHES;
}

enum fettle_status search_rank_ops(struct search *s, const struct plan *p, enum rank by, struct op_order *out)
{
	enum fettle_status st = search_may_continue(s);

	op_order_release(out);
	if (st)
		return st;
	if (by != RANK_WORTH && by != RANK_ALONE && by != RANK_DYNAMIC) /* those follow from what is known */
		spend_rank(s);
	st = s->c.backend->rank(s->c.self, p, by, local_batches(s), out, &s->err);
	if (st) {
		op_order_release(out);
		return search_backend_ended(s, st);
	}
	sort_order(out);
	memo_keep(s, MEMO_RANK + (int)by, p, &(struct memo_entry){ .order = *out });
	return FETTLE_OK;
}

enum fettle_status search_expect_estimates(struct search *s, const struct plan *plans, size_t n)
{
	struct plan *missing = xcalloc(n + 1, sizeof(*missing)); /* borrows */
	double *errors = xcalloc(n + 1, sizeof(*errors));
	enum fettle_status st = search_may_continue(s);
	size_t i, k = 0;

	/* what nobody remembers is not worth working out, nor what only one worker can do at a time */
	for (i = 0; i < n && s->strategy && s->c.backend->estimate_all && !st; i++)
		if (plan_n_quantized(&plans[i], s->c.space) && !memo_find(s, MEMO_ESTIMATE, &plans[i]))
			missing[k++] = plans[i];
	if (k > 1)
		st = s->c.backend->estimate_all(s->c.self, missing, k, local_batches(s), errors, &s->err);
	for (i = 0; i < k && k > 1 && !st; i++)
		memo_keep(s, MEMO_ESTIMATE, &missing[i], &(struct memo_entry){ .value = errors[i] });
	free(missing);
	free(errors);
	return k > 1 && st && st != FETTLE_UNSUPPORTED ? search_backend_ended(s, st) : k > 1 ? FETTLE_OK : st;
}

enum fettle_status search_estimate(struct search *s, const struct plan *p, double *error)
{
	const struct memo_entry *known = memo_find(s, MEMO_ESTIMATE, p);
	enum fettle_status st = search_may_continue(s);

	*error = known ? known->value : INFINITY;
	if (!st)
		spend_estimate(s, p);
	if (st || known)
		return st;
	st = s->c.backend->estimate(s->c.self, p, local_batches(s), error, &s->err);
	if (st == FETTLE_UNSUPPORTED || st == FETTLE_BACKEND) { /* this plan cannot be had */
		*error = INFINITY;
		st = FETTLE_OK;
	}
	if (!st)
		memo_keep(s, MEMO_ESTIMATE, p, &(struct memo_entry){ .value = *error });
	return st ? search_backend_ended(s, st) : FETTLE_OK;
}

enum fettle_status search_fastest(struct search *s, const struct plan *from, bool within, struct plan *out)
{
	enum fettle_status st = search_may_continue(s);

	plan_copy(out, from);
	if (st || !s->c.backend->fastest)
		return st;
	if (!within)
		spend_profiles(s);
	st = s->c.backend->fastest(s->c.self, from, within, out, &s->err);
	if (st == FETTLE_UNSUPPORTED ||
	    st == FETTLE_BACKEND) { /* some plan cannot be had: nothing is known, then */
		plan_copy(out, from);
		st = FETTLE_OK;
	}
	if (!st)
		memo_keep(s, MEMO_FASTEST + within, from, &(struct memo_entry){ .plan = *out });
	return st ? search_backend_ended(s, st) : FETTLE_OK;
}

bool search_doubts_fastest(struct search *s)
{
	const struct trial *best = s->best ? trial_at(s, s->best) : NULL;

	return best && best->score.met && s->c.backend->doubts && may_profile_again(s) &&
	       s->c.backend->doubts(s->c.self, &best->plan, best->score.objective);
}

enum fettle_status search_objective(struct search *s, const struct plan *p, double *value)
{
	const struct trial *best = s->best ? trial_at(s, s->best) : NULL;
	struct trial t = { .latency = NAN };
	enum fettle_status st = search_may_continue(s);

	*value = INFINITY;
	if (st)
		return st;
	plan_copy(&t.plan, p);
	if (s->asked.plan.choice) /* strategies ask for alternatives to what they have */
		best = &s->asked;
	st = s->c.backend->objective(s->c.self, &t, best && isfinite(best->score.objective) ? best : NULL,
				     value, &s->err);
	if (!st && !(s->asked.plan.choice && s->asked.score.objective <= *value)) {
		plan_copy(&s->asked.plan, p);
		s->asked.score.objective = *value;
	}
	plan_release(&t.plan);
	if (st == FETTLE_UNSUPPORTED || st == FETTLE_BACKEND) { /* this plan cannot be had */
		*value = INFINITY;
		st = FETTLE_OK;
	}
	if (!st)
		memo_keep(s, MEMO_OBJECTIVE, p, &(struct memo_entry){ .value = *value });
	return st ? search_backend_ended(s, st) : FETTLE_OK;
}

/* ---- a whole run ---- */

enum fettle_status search_run(struct search *s, const struct strategy *strategy, struct err *err)
{
	enum fettle_status st;

	s->strategy = strategy->replays && s->c.backend->run_all && s->c.width > 1 ? strategy : NULL;
	st = strategy_run(strategy, s);
	if ((!st || st == FETTLE_STOP) && !search_cancelled(s))
		st = search_settle(s);
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

const char *search_stop_word(enum search_stop why)
{
	switch (why) {
	case SEARCH_ACCURACY_MET:
		return "accuracy_met";
	case SEARCH_MAX_TRIALS:
		return "max_trials";
	case SEARCH_TIMEOUT:
		return "timeout";
	case SEARCH_INTERRUPTED:
		return "interrupted";
	default:
		return "exhausted";
	}
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

	if (search_tried(s, p))
		return;
	plan_copy(&t.plan, p);
	if (replay_trial(s, &t))
		keep_best(s, search_remember(s, t));
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

void search_set_best_accuracy(struct search *s, double accuracy)
{
	struct trial *t = s->best ? trial_at(s, s->best) : NULL;

	if (!t || !t->score.early)
		return;
	t->score.early = false;
	t->score.accuracy = accuracy;
	judge(s, t);
}
