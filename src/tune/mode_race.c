/* Plans that may be the fastest, by their profiles and by what is predicted, timed against each other. */
#include <math.h>
#include <stdlib.h>

#include "base/file.h"
#include "tune/modes_impl.h"

enum { ROUNDS = 3 }; /* assignments that are profiled, at most: each corrects the next */
/* After the first no other once they have taken this share of an evaluation, nor one that is not predicted to take less than this
 * share of the fastest's time. */
#define ROUNDS_SHARE 0.5
#define ROUNDS_GAIN 0.98
/* An assignment that takes less than this share of what was predicted: what all static ops took may have been disturbed. One that takes so
 * many times as long may have been disturbed itself. Once, that is profiled again. */
#define FASTER_THAN_THOUGHT 0.89
#define SLOWER_THAN_THOUGHT 1.12
/* Plans are candidates whose profile takes at most this many times the least. */
#define NEARLY 1.15
/* What it is worth, as a share of the time, to have all multiply-adds in integers: a model that is a quarter of the size. */
#define SMALLER_WORTH 0.02
/* What a plan with next to nothing in integers must gain over one with a single op: it may lose accuracy, and finding out costs trials. */
#define LITTLE_WORTH 0.03
/* Evaluations that timing all candidates may take, and until one is faster than fp32; two are timed unless the first takes all of it.
 * If one is, no more than so many: they differ by little. */
enum { RACE_CANDIDATES = 4 };
#define RACE_SHARE 0.35
#define RACE_MOST 0.5
/* Of an assignment within a plan that was tried: the share of the fp32 model's time that it must be predicted to save. */
#define WITHIN_GAIN 0.04
/* The last comparison: its share of an evaluation, if that is so many seconds, of plans that differ by no more than this. */
#define FINAL_SHARE 0.25
#define FINAL_SECONDS 0.06
#define FINAL_NEARLY 1.05

/* A plan that takes this much of the time of the fp32 model as rewritten is timed beside it, for such a share of an evaluation. */
#define BESIDE_LEAST 0.92
#define BESIDE_MOST 1.05
#define BESIDE_SHARE 0.15

struct candidate {
	struct plan plan;
	double seconds; /* by its profile, or as predicted; INFINITY: not known */
	size_t order;   /* in which it was added */
};

struct candidates {
	VEC(struct candidate) v;
};

static void candidates_release(struct candidates *c)
{
	size_t i;

	for (i = 0; i < c->v.n; i++)
		plan_release(&c->v.v[i].plan);
	VEC_RELEASE(&c->v);
}

static void keep_first(struct candidates *c)
{
	while (c->v.n > 1)
		plan_release(&c->v.v[--c->v.n].plan);
}

static void add_candidate(const struct lab *l, const struct plan *from, const struct plan *p, double seconds,
			  struct candidates *c)
{
	struct candidate new = { PLAN_INIT, seconds, c->v.n };
	size_t i;

	if (!plan_n_quantized(p, &l->t->space) || mode_share(l, p) < least_share(l, from))
		return;
	for (i = 0; i < c->v.n; i++)
		if (plan_equal(&c->v.v[i].plan, p, &l->t->space))
			return;
	plan_copy(&new.plan, p);
	VEC_PUSH(&c->v, new);
}

static int by_seconds(const void *a, const void *b)
{
	const struct candidate *x = a, *y = b;

	return x->seconds != y->seconds ? (x->seconds > y->seconds ? 1 : -1)
					: (x->order > y->order) - (x->order < y->order);
}

/* Seconds of the fastest plan that was profiled, of those with enough in integers, from the first of them on. */
static double fastest_profiled(const struct lab *l, const struct plan *from, size_t first)
{
	double least = INFINITY;
	size_t i;

	for (i = first; i < l->modes->seen.n; i++)
		if (mode_share(l, &l->modes->seen.v[i].plan) >= least_share(l, from))
			least = fmin(least, l->modes->seen.v[i].p.total);
	return least;
}

/* Assignments by prices as they are, each corrected by its profile: what is profiled last is the answer, if prices are right. */
static enum fettle_status profile_assignments(struct lab *l, const struct plan *from, bool within,
					      size_t first, struct err *err)
{
	const double start = clock_now();
	struct plan p = PLAN_INIT;
	enum fettle_status st = FETTLE_OK;
	bool more = true, again = within;
	double predicted, took;
	size_t round;

	for (round = 0; round < ROUNDS && !st && more; round++) {
		solve_modes(l, from, within, (struct mode_wish){ 1, false }, &p);
		if (!plan_n_quantized(&p, &l->t->space) || profile_of(l, &p))
			break;
		predicted = mode_predicted(l, &p);
		if (predicted > (round ? ROUNDS_GAIN : NEARLY) * fastest_profiled(l, from, first))
			break;
		st = profile_plan(l, &p, true, err);
		more = clock_now() - start <= ROUNDS_SHARE * l->pass_seconds;
		if (st || again)
			continue;
		took = profile_of(l, &p)->total / predicted;
		again = took < FASTER_THAN_THOUGHT || took > SLOWER_THAN_THOUGHT;
		if (again)
			st = took < 1 ? profile_static(l, from, err) : profile_again(l, &p, true, err);
		more |= again;
	}
	plan_release(&p);
	return st;
}

/* What was profiled; and what the assignment would be if conversions cost more or less. Those that seem fastest first; of equal ones,
 * those that were profiled. */
static enum fettle_status find_candidates(struct lab *l, const struct plan *from, bool within,
					  struct candidates *c, struct err *err)
{
	static const struct mode_wish wishes[] = {
		{ 1, false }, { 0.4, false }, { 2.5, false }, { 6, false }, { 1, true }
	};
	struct modes *m = l->modes;
	struct plan p = PLAN_INIT;
	double least;
	enum fettle_status st = FETTLE_OK;
	size_t i, first;

	if (!m->place)
		st = measure_modes(l, from, err);
	first = within ? m->seen.n : 0; /* what was profiled before may have more in integers */
	if (!st)
		st = profile_assignments(l, from, within, first, err);
	if (st)
		return st;
	for (i = first; i < m->seen.n; i++)
		add_candidate(l, from, &m->seen.v[i].plan, m->seen.v[i].p.total, c);
	least = fastest_profiled(l, from, first);
	for (i = 0; i < ARRAY_LEN(wishes); i++) {
		if (wishes[i].least && least < CLEARLY_FASTER * m->fp32.total)
			continue;
		solve_modes(l, from, within, wishes[i], &p);
		add_candidate(l, from, &p, mode_predicted(l, &p), c);
	}
	if (within) /* it was timed already */
		add_candidate(l, from, from, profile_of(l, from) ? profile_of(l, from)->total : least, c);
	for (i = 0; i < c->v.n;)
		if (c->v.v[i].seconds <= NEARLY * least || !isfinite(least)) {
			i++;
		} else {
			plan_release(&c->v.v[i].plan);
			c->v.v[i] = c->v.v[--c->v.n];
		}
	qsort(c->v.v, c->v.n, sizeof(*c->v.v), by_seconds);
	plan_release(&p);
	return st;
}

/* A candidate that was timed. */
struct timed {
	struct trial t;
	double seconds; /* as the candidate has them */
	bool profiled;  /* which they are from */
	double beside;  /* its time over that of the fp32 model as rewritten, in turns; NAN: not known */
};
#define TIMED_INIT                                                                                           \
	{                                                                                                    \
		.seconds = NAN, .beside = NAN                                                                \
	}

/* Both what turns and what profiles say counts: on a busy machine each is off by more than near-equal plans differ. What is only predicted
 * says less than turns do. */
static bool is_faster(const struct timed *a, const struct timed *b)
{
	double ratio = a->t.score.objective / b->t.score.objective;

	if (a->profiled && b->profiled)
		ratio *= ratio * a->seconds / b->seconds;
	return ratio < 1;
}

static void timed_copy(struct timed *to, const struct timed *from)
{
	plan_copy(&to->t.plan, &from->t.plan);
	to->t.score.objective = from->t.score.objective;
	to->seconds = from->seconds;
	to->profiled = from->profiled;
	to->beside = from->beside;
}

/* The two that are fastest are timed once more, for longer, if they are nearly equal and an evaluation takes long enough. */
static enum fettle_status decide(struct lab *l, struct timed *best, const struct timed *second,
				 struct err *err)
{
	const struct latency_limits limits = { .seconds = fmin(FINAL_SHARE * l->pass_seconds, 1),
					       .equal = LATENCY_EQUAL };
	struct latency times[2];
	enum fettle_status st;

	if (!second->t.plan.n || limits.seconds < FINAL_SECONDS ||
	    second->t.score.objective > FINAL_NEARLY * best->t.score.objective)
		return FETTLE_OK;
	st = lab_time(l, &second->t.plan, &best->t.plan, l->o.deployed.compared, &limits, times, err);
	if (!st && times[1].speedup.value > 1)
		timed_copy(best, second);
	return st;
}

/* Seconds by the profiles that there are: the plan's own, or those of others. */
static double predicted(struct lab *l, const struct plan *p)
{
	const struct mode_profile *own = profile_of(l, p);

	return own ? own->total : mode_predicted(l, p);
}

/* Does a plan seem to take about as long as the fp32 model as rewritten? Each was timed with the user's model, not with the other. */
static bool is_near_rewritten(const struct lab *l, double seconds)
{
	const double fp32 = l->modes->fp32.total;

	return was_rewritten(l) && seconds > BESIDE_LEAST * fp32 && seconds < BESIDE_MOST * fp32;
}

static enum fettle_status time_beside(struct lab *l, struct timed *t, struct err *err)
{
	return time_beside_rewritten(l, &t->t.plan, BESIDE_SHARE * l->pass_seconds, &t->beside, err);
}

/*
 * Where no plan is faster than fp32, one with next to nothing in integers is as fast as that: it need not be timed to know. The less
 * a plan has in integers, the more it must gain over that one.
 */
static enum fettle_status prefer_slight(struct lab *l, const struct plan *from, struct timed *best,
					struct plan *out, struct mode_answer *answer, struct err *err)
{
	const struct modes *m = l->modes;
	const double share = mode_share(l, &best->t.plan), timed = best->t.score.objective * m->original,
		     enough = 1 + SMALLER_WORTH * share - LITTLE_WORTH * (1 - share);
	struct plan p = PLAN_INIT;
	double slight, seconds = isfinite(best->seconds) ? sqrt(timed * best->seconds) : timed;
	enum fettle_status st = FETTLE_OK;

	if (isnan(best->beside) && is_near_rewritten(l, seconds))
		st = time_beside(l, best, err);
	if (best->beside > 0)
		seconds = best->beside * m->fp32.total;
	if (st || seconds < enough * m->fp32.total)
		return st;
	slight = slight_plan(l, from, &p);
	if (enough * slight <= seconds) {
		plan_copy(out, &p);
		*answer = (struct mode_answer){ m->original / slight, 0 };
	}
	plan_release(&p);
	return FETTLE_OK;
}

/*
 * What is known of the first candidate's time over that of the user's model: it was timed so when it was profiled. If it seems to take
 * about as long as the fp32 model as rewritten, which was timed so too, the two are timed with each other, and once is enough.
 */
static enum fettle_status recall_first(struct lab *l, struct timed *t, struct err *err)
{
	const struct profiled *seen = seen_of(l, &t->t.plan);
	enum fettle_status st = FETTLE_OK;
	double ratio = seen ? seen->ratio : NAN;

	if (!(ratio > 0) && is_near_rewritten(l, t->seconds)) {
		st = time_beside(l, t, err);
		ratio = t->beside * l->modes->fp32.total / l->modes->original;
	}
	if (!st && ratio > 0)
		lab_recall(l, &t->t.plan, ratio, l->modes->original);
	return needs_calibration(l, st) ? FETTLE_OK : st;
}

static enum fettle_status time_candidate(struct lab *l, struct timed *now, const struct timed *against,
					 struct err *err)
{
	const struct trial *t = against ? &against->t : NULL;
	enum fettle_status st = lab_objective(l, &now->t, t, &now->t.score.objective, err);
	struct model *m;

	if (!needs_calibration(l, st))
		return st;
	st = lab_model(l, &now->t.plan, WEIGHTS_AS_PLANNED, &m, err);
	return st ? st : lab_objective(l, &now->t, t, &now->t.score.objective, err);
}

/* Is timing one more too dear for what it may gain? A session and a few turns take about as long as a profile. */
static bool is_not_worth_it(const struct lab *l, const struct candidate *c, const struct timed *best)
{
	return c->seconds >= best->seconds && l->modes->profiling > ROUNDS_SHARE * l->pass_seconds;
}

/* They may need different values, and are calibrated once. */
static enum fettle_status expect_candidates(struct lab *l, const struct candidates *c, struct err *err)
{
	enum fettle_status st = FETTLE_OK;
	size_t i;

	for (i = 0; i < c->v.n && i < RACE_CANDIDATES && !st; i++) {
		struct qplan q = QPLAN_INIT;

		tuning_qplan(l->t, &c->v.v[i].plan, &q);
		st = learner_expect(lab_learner(l), tuning_samples(l->t, &c->v.v[i].plan), &q, err);
		qplan_release(&q);
	}
	return st;
}

/* Profiles are not taken in turns: the candidate that is fastest when they are timed against each other. */
static enum fettle_status race_candidates(struct lab *l, const struct plan *from, bool within,
					  const struct candidates *c, struct plan *out,
					  struct mode_answer *answer, struct err *err)
{
	const struct modes *m = l->modes;
	const double start = clock_now(), faster = CLEARLY_FASTER * m->fp32.total / m->original;
	struct timed best = TIMED_INIT, second = TIMED_INIT, now = TIMED_INIT;
	enum fettle_status st = FETTLE_OK;
	size_t i;

	if (modes_weights(l) != RANGES_ANY)
		st = expect_candidates(l, c, err);
	for (i = 0; i < c->v.n && !st; i++) {
		const bool found = i && best.t.score.objective < faster;
		const double share = found ? RACE_SHARE : RACE_MOST;

		if ((i > 1 || (i && clock_now() - start > RACE_MOST * l->pass_seconds)) &&
		    (clock_now() - start > share * l->pass_seconds || (found && i >= RACE_CANDIDATES)))
			break;
		if (found && is_not_worth_it(l, &c->v.v[i], &best))
			break;
		plan_copy(&now.t.plan, &c->v.v[i].plan);
		now.seconds = c->v.v[i].seconds;
		now.profiled = seen_of(l, &now.t.plan) && isfinite(now.seconds);
		now.beside = NAN;
		if (!i)
			st = recall_first(l, &now, err);
		if (!st)
			st = time_candidate(l, &now, i ? &best : NULL, err);
		if (st)
			break;
		if (!i || is_faster(&now, &best)) {
			if (i)
				timed_copy(&second, &best);
			timed_copy(&best, &now);
		} else if (!second.t.plan.n || is_faster(&now, &second)) {
			timed_copy(&second, &now);
		}
	}
	if (!st)
		st = decide(l, &best, &second, err);
	if (!st) {
		plan_copy(out, &best.t.plan);
		answer->predicted = m->original / predicted(l, out);
		answer->saves = fmax(fmin(m->fp32.total / m->original, 1) - best.t.score.objective, 0);
		if (!within)
			st = prefer_slight(l, from, &best, out, answer, err);
	}
	plan_release(&best.t.plan);
	plan_release(&second.t.plan);
	plan_release(&now.t.plan);
	return st;
}

/* Is an assignment within the plan predicted to be faster, by enough to be worth profiles and an evaluation? */
static bool may_be_faster(struct lab *l, const struct plan *from)
{
	struct plan p = PLAN_INIT;
	struct mode_price best;

	if (!l->modes->place)
		return true;
	best = solve_modes(l, from, true, (struct mode_wish){ 1, false }, &p);
	plan_release(&p);
	return mode_seconds(l, from) - best.ops - best.converting > WITHIN_GAIN * l->modes->fp32.total;
}

enum fettle_status race_modes(struct lab *l, const struct plan *from, bool within, struct plan *out,
			      struct mode_answer *answer, struct err *err)
{
	struct lab_times before = l->times;
	const double start = clock_now();
	struct candidates c = { { NULL, 0, 0 } };
	enum fettle_status st = FETTLE_OK;

	*answer = (struct mode_answer){ NAN, INFINITY };
	if (!within || may_be_faster(l, from))
		st = find_candidates(l, from, within, &c, err);
	lab_count_as_rank(l, &before, start);
	if (!st && !within && c.v.n && c.v.v[0].seconds >= l->modes->fp32.total)
		keep_first(&c); /* it will not be faster; but profiles may be wrong on a busy machine */
	if (!st && c.v.n)
		st = race_candidates(l, from, within, &c, out, answer, err);
	candidates_release(&c);
	return st;
}
