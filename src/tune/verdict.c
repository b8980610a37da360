/* Which trials meet the criterion, which of them is the best, and what is enough to know of the next. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "tune/search_impl.h"

#define CRITERION_EPSILON 1e-12 /* so that a loss of exactly the tolerance passes however it was rounded */

bool quantizes_little(const struct search *s, const struct plan *p)
{
	return s->c.backend->share && s->c.backend->share(s->c.self, p) < SLIGHT_SHARE;
}

static double loss_of(const struct search_config *c, double accuracy)
{
	double loss = c->higher_is_better ? c->baseline - accuracy : accuracy - c->baseline;

	return c->relative ? loss / fabs(c->baseline) : loss;
}

/* Of a trial that fails, the share of the samples, the hardest, that say how much it loses: most of what is lost is among them. */
#define FAILED_LOOK 0.25
/* If fewer may be lost. */
#define FEW_LOST 4

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

void judge(const struct search *s, struct trial *t)
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
	score->beyond = s->c.only_lose && score->early && !score->met
				? t->beyond / (s->c.relative ? fabs(s->c.baseline) : 1)
				: 0;
	score->met = score->met && !score->failed && plan_n_quantized(&t->plan, s->c.space) > 0;
	score->slight = score->met && !s->all_slight && quantizes_little(s, &t->plan);
}

static size_t place_of(const struct search *s, const struct trial *t)
{
	return (size_t)(t - s->trials.v) + 1;
}

/* Less loss; then more in int8. */
static bool more_accurate(const struct search *s, const struct trial *a, const struct trial *b)
{
	if (a->score.loss != b->score.loss)
		return a->score.loss < b->score.loss;
	return plan_n_quantized(&a->plan, s->c.space) > plan_n_quantized(&b->plan, s->c.space);
}

/* Both meet the criterion. Of those that are as good as equal, the one with more in int8 wins. */
static bool more_useful(const struct search *s, const struct trial *a, const struct trial *b)
{
	double limit = s->least * (1 + s->c.objective_equal), x = a->score.objective, y = b->score.objective,
	       gain;

	if (isnan(x) || isnan(y))
		return !isnan(x) || (isnan(y) && a->score.loss < b->score.loss);
	if (x > limit || y > limit || s->c.objective_equal <= 0) {
		if (x != y)
			return x < y;
		return a->score.loss < b->score.loss;
	}
	gain = plan_gain(&a->plan, s->c.space) - plan_gain(&b->plan, s->c.space);
	if (fabs(gain) > GAIN_EQUAL)
		return gain > 0;
	return a->score.loss != b->score.loss ? a->score.loss < b->score.loss : x < y;
}

/* slower than the fp32 model, or larger, or whatever the objective is */
static bool gains_nothing(const struct search *s, double objective)
{
	return s->c.fp32_objective > 0 && objective > s->c.fp32_objective * (1 + s->c.objective_equal);
}

/*
 * Of those that meet the criterion, what is no slower than fp32 comes before the rest; then the objective decides. Were accuracy part
 * of it, what quantizes next to nothing would always win.
 */
static int merit(const struct search *s, const struct trial *t)
{
	const bool last = t->score.slight && s->c.accuracy_weight > 0;

	return !t->score.met ? 0 : last || gains_nothing(s, t->score.objective) ? 1 : 2;
}

static bool better(const struct search *s, const struct trial *a, const struct trial *b)
{
	if (merit(s, a) != merit(s, b))
		return merit(s, a) > merit(s, b);
	return a->score.met ? more_useful(s, a, b) : more_accurate(s, a, b);
}

static void keep_most_accurate(const struct search *s, const struct trial *t, size_t *place)
{
	if (!*place || more_accurate(s, t, trial_at(s, *place)))
		*place = place_of(s, t);
}

void keep_best(struct search *s, const struct trial *t)
{
	size_t i;

	s->n_met += t->score.met && !t->score.slight;
	if (t->score.failed || !plan_n_quantized(&t->plan, s->c.space))
		return;
	if (s->best && merit(s, t) > merit(s, trial_at(s, s->best)))
		s->least = INFINITY;
	if (!s->best || better(s, t, trial_at(s, s->best)))
		s->best = place_of(s, t);
	keep_most_accurate(s, t, &s->most_accurate);
	if (plan_is_whole(&t->plan, s->c.space))
		keep_most_accurate(s, t, &s->whole);
	if (!t->score.met || merit(s, t) < merit(s, trial_at(s, s->best)) || !(t->score.objective < s->least))
		return;
	s->least = t->score.objective; /* the band has moved: who is in it now? */
	for (i = 1; i <= s->trials.n; i++) {
		const struct trial *x = trial_at(s, i);

		if (merit(s, x) == merit(s, t) && more_useful(s, x, trial_at(s, s->best)))
			s->best = i;
	}
}

void find_best_again(struct search *s)
{
	size_t i;

	s->best = s->most_accurate = s->whole = s->n_met = 0;
	s->least = INFINITY;
	for (i = 1; i <= s->trials.n; i++)
		keep_best(s, trial_at(s, i));
}

/* ---- what is wanted of the next ---- */

/*
 * Where hardly a sample may be lost, the hardest say all; elsewhere, what is lost of them says little about how much is in all. Where
 * samples can only lose, some say how much the others will.
 */
static bool wants_pass_alone(const struct search *s)
{
	const double loss = s->c.tolerance * (s->c.relative ? fabs(s->c.baseline) : 1);

	return s->want == WANT_PASS &&
	       (s->c.only_lose || (s->c.counts && loss * (double)s->c.samples < FEW_LOST));
}

void decide_verdict(struct search *s)
{
	const struct search_config *c = &s->c;
	double loss = c->tolerance * (c->relative ? fabs(c->baseline) : 1);
	bool finds_best = s->n_met && !s->held;

	s->verdict = (struct verdict){
		.higher_is_better = c->higher_is_better,
		.meet = c->baseline + (c->higher_is_better ? -loss : loss),
		.beat = NAN, /* each plan has its own */
		.tie = finds_best && !(c->accuracy_weight > 0) ? trial_at(s, s->best)->score.accuracy : NAN,
		/* where the search continues after a success, ties in the objective go to the more accurate */
		.exact_pass = s->held || c->timeout > 0 || c->enough > 1 || c->accuracy_weight > 0,
		.look = wants_pass_alone(s) ? FAILED_LOOK : 0,
	};
	s->best_before = s->best;
	s->most_accurate_before = s->most_accurate;
	s->whole_before = s->whole;
	s->least_before = s->least;
	if (c->backend->begin_group)
		c->backend->begin_group(c->self);
}

bool wants_value(const struct search *s)
{
	return s->c.no_early || s->want == WANT_VALUE;
}

/*
 * With a plan in hand that meets the criterion, another is of use only if it is faster, or as good as equal and quantizes
 * no less. That is measured in less time than its accuracy.
 */
enum fettle_status too_slow(struct search *s, struct trial *t, struct verdict *v, bool *too_slow)
{
	const struct trial *best = s->best_before ? trial_at(s, s->best_before) : NULL;
	double equal = fmax(s->c.objective_equal, 0), x = NAN, y, limit;
	enum fettle_status st;

	*too_slow = false;
	if (wants_value(s) || s->c.accuracy_weight > 0 || !best || !best->score.met ||
	    isnan(best->score.objective) || (s->held && s->want != WANT_FASTER))
		return FETTLE_OK;
	st = s->c.backend->objective(s->c.self, t, best, &x, &s->err);
	if (st) /* a failure is the evaluation's to report */
		return st == FETTLE_STOP ? st : FETTLE_OK;
	y = best->score.objective;
	limit = plan_gain(&t->plan, s->c.space) < plan_gain(&best->plan, s->c.space) - GAIN_EQUAL
			? y / (1 + equal)
			: fmax(s->least_before * (1 + equal), y);
	if (x * (1 + equal) < y) /* then it is the best if it meets the criterion, no matter by how much */
		v->tie = NAN;
	if (x < limit || (x == y && equal <= 0))
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

	if (s->n_met || wants_pass_alone(s))
		return NAN;
	return best ? trial_at(s, best)->score.accuracy : s->c.higher_is_better ? -INFINITY : INFINITY;
}

void prepare_trial(struct search *s, struct trial *t, struct verdict *own)
{
	*own = s->verdict;
	own->beat = to_beat(s, &t->plan);
	/* with as much in int8 as the best, accuracy decides; with more or less, speed does */
	if (s->best_before && fabs(plan_gain(&t->plan, s->c.space) -
				   plan_gain(&trial_at(s, s->best_before)->plan, s->c.space)) > GAIN_EQUAL)
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

/* Measures what is needed. */
enum fettle_status measure_trial(struct search *s, struct trial *t)
{
	const struct trial *best = s->best ? trial_at(s, s->best) : NULL;
	enum fettle_status st;

	judge(s, t);
	t->score.objective = NAN;
	if (!t->score.met)
		return FETTLE_OK;
	st = s->c.backend->objective(s->c.self, t, best && isfinite(best->score.objective) ? best : NULL,
				     &t->score.objective, &s->err);
	if (s->c.accuracy_weight > 0)
		t->score.objective += accuracy_term(&s->c, t->score.accuracy);
	return st;
}
