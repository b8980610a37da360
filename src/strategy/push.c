/* Requantizing what need not be in fp32 or 16 bits: the result is as much int8 as the tolerance allows. */
#include <math.h>
#include <stdlib.h>

#include "base/mem.h"
#include "strategy/stages.h"

#define GAIN_MIN 1e-9 /* where nothing is known of gains, loss alone decides */

/* Of a frugal search: the least gain, as a share of the model's time, that is worth a trial, and how many trials there are. */
#define GAIN_WORTH 0.01
/* What a trial must gain on average: most of an evaluation. */
#define GAIN_TRIAL 0.03
enum { TRIALS_MAX = 8 }; /* whatever there is to gain */
/* While the plan quantizes next to nothing and a large part of the latency may be gained: trials that may cost more than is left. */
enum { TRIALS_SLIGHT = 3 };
#define GAIN_LARGE 0.1
/* While nothing meets the criterion, so many ops are tried alone, and others until so many fp32 passes are spent. */
enum { NONE_TRIALS = 8 };
#define NONE_PASSES 11

struct push {
	struct search *s;
	struct plan *plan;
	const struct plan *base;
	size_t leave;                 /* as long as nothing is met */
	const struct op_order *known; /* the impact of ops, as they fell back; NULL: they are ranked */
	const double *worth;          /* by op, RANK_WORTH; NULL: not known */
	bool revert;                  /* not by loss per gain, and little of it is expected to go through */
	size_t *op;                   /* in fp32 or 16 bits, cheapest first */
	size_t n;
	size_t first; /* trials that there were before */
	size_t most;  /* that it may take */
	bool none;    /* nothing meets the criterion yet */
	bool slight;  /* the plan quantizes next to nothing */
};

static bool is_candidate(const struct push *p, size_t op)
{
	const struct space *space = search_space(p->s);

	return option_is_int8(&space->v[op].options[p->base->choice[op]]) &&
	       !option_is_int8(&space->v[op].options[p->plan->choice[op]]);
}

/* Sorts the order by loss per gain, cheapest first; without a space by loss. */
static void sort_by_cost(struct op_order *o, const struct space *space)
{
	size_t i, k;

	for (i = 0; i < o->n && space; i++)
		o->score[i] /= fmax(space->v[o->op[i]].gain, GAIN_MIN);
	for (i = 1; i < o->n; i++) {
		size_t op = o->op[i];
		double cost = o->score[i];

		for (k = i; k && cost < o->score[k - 1]; k--) {
			o->op[k] = o->op[k - 1];
			o->score[k] = o->score[k - 1];
		}
		o->op[k] = op;
		o->score[k] = cost;
	}
}

static void add_candidates(struct push *p, const struct op_order *order)
{
	const struct space *space = search_space(p->s);
	bool *ranked = xcalloc(space->n_ops, sizeof(*ranked));
	size_t i;

	p->op = xcalloc(space->n_ops, sizeof(*p->op));
	for (i = 0; i < order->n; i++) {
		ranked[order->op[i]] = true;
		if (is_candidate(p, order->op[i]))
			p->op[p->n++] = order->op[i];
	}
	for (i = 0; i < space->n_ops; i++) /* those of which nothing is known */
		if (!ranked[i] && is_candidate(p, i))
			p->op[p->n++] = i;
	free(ranked);
}

static enum fettle_status find_candidates(struct push *p)
{
	struct op_order order = OP_ORDER_INIT;
	enum fettle_status st = FETTLE_OK;
	size_t i;

	if (p->known && !p->none)
		order = op_order_copy(p->known);
	else
		st = search_rank_ops(p->s, p->plan, RANK_IMPACT_BACK, &order);
	if (!st) {
		const bool by_loss = p->revert || (p->none && search_frugal(p->s)),
			   by_worth = !by_loss && p->worth && p->known && !p->none;

		for (i = 0; i < order.n && by_worth; i++)
			order.score[i] = p->worth[order.op[i]];
		sort_by_cost(&order, by_loss || by_worth ? NULL : search_space(p->s));
		add_candidates(p, &order);
	}
	op_order_release(&order);
	return st;
}

static double gain_of(const struct push *p, const size_t *op, size_t n)
{
	double sum = 0;
	size_t i;

	for (i = 0; i < n; i++)
		sum += search_space(p->s)->v[op[i]].gain;
	return sum;
}

/* A trial that may quantize these: is it worth it? */
static bool is_worth(const struct push *p, const size_t *op, size_t n)
{
	const struct space *space = search_space(p->s);
	const size_t trials = search_n_trials(p->s) - p->first;
	double gain, all = 0;
	size_t i;

	if (!search_frugal(p->s))
		return true;
	if (p->none)
		return trials < NONE_TRIALS || search_spent(p->s) < NONE_PASSES;
	for (i = 0; i < space->n_ops; i++)
		all += space->v[i].gain;
	gain = gain_of(p, op, n) * search_gain_scale(p->s);
	if (p->slight && trials < TRIALS_SLIGHT && gain >= GAIN_LARGE)
		return true;
	return (gain >= GAIN_WORTH || all <= 0) && trials < p->most && search_may_spend(p->s, 0);
}

/* What all of them may gain bounds the trials. */
static size_t most_trials(const struct push *p)
{
	const struct space *space = search_space(p->s);
	double gain = 0, trials;
	size_t i;

	for (i = 0; i < space->n_ops; i++)
		gain += is_candidate(p, i) ? space->v[i].gain : 0;
	trials = ceil(gain * search_gain_scale(p->s) / GAIN_TRIAL);
	return gain > 0 && trials < TRIALS_MAX ? (size_t)trials : TRIALS_MAX;
}

/* Before they are ranked, which takes time. */
static bool any_is_worth(const struct push *p)
{
	const size_t n = search_space(p->s)->n_ops;
	size_t *all = xcalloc(n + 1, sizeof(*all)), found = 0, i;
	bool worth;

	for (i = 0; i < n; i++)
		if (is_candidate(p, i))
			all[found++] = i;
	worth = is_worth(p, all, found);
	free(all);
	return worth;
}

/* Quantizes these too if the criterion still holds. */
static enum fettle_status try_with(struct push *p, const size_t *op, size_t n, bool *met)
{
	struct plan with = PLAN_INIT;
	struct score score = { .met = false };
	enum fettle_status st = FETTLE_OK;
	size_t i;

	plan_copy(&with, p->plan);
	for (i = 0; i < n; i++)
		with.choice[op[i]] = p->base->choice[op[i]];
	if (!search_frugal(p->s) || !search_fails_with_less(p->s, &with))
		st = search_try(p->s, &with, &score);
	*met = score.met;
	if (*met) {
		p->none = false;
		p->slight = score.slight;
		plan_copy(p->plan, &with);
	}
	plan_release(&with);
	return st;
}

/* In place of a plan that quantizes next to nothing, an op that gains more than all of it, and cannot be had with it. */
static enum fettle_status try_instead(struct push *p, size_t op, bool *met)
{
	const struct space *space = search_space(p->s);
	struct plan before = PLAN_INIT;
	enum fettle_status st;

	if (!p->slight || !search_frugal(p->s) || !is_worth(p, &op, 1) ||
	    space->v[op].gain <= plan_gain(p->plan, space))
		return FETTLE_OK;
	plan_copy(&before, p->plan);
	fall_back_all(p->plan, space);
	st = try_with(p, &op, 1, met);
	if (!*met)
		plan_copy(p->plan, &before);
	plan_release(&before);
	return st;
}

/* The first single op that can be quantized. Sets are not tried: if none of its ops works, a set hardly will. */
static enum fettle_status find_first(struct push *p, bool *met)
{
	enum fettle_status st = FETTLE_OK;
	size_t i;

	for (i = 0; !st && !*met && i < p->n && stage_may_go_on(p->s, p->leave); i++)
		if (is_worth(p, &p->op[i], 1))
			st = try_with(p, &p->op[i], 1, met);
	return st;
}

/* How many of them have half of the gain: an op that has it alone is tried alone. */
static size_t half_of(const struct push *p, const size_t *op, size_t n)
{
	const double all = gain_of(p, op, n);
	size_t i = 0;

	if (!(all > 0))
		return n / 2;
	while (i < n - 1 && 2 * gain_of(p, op, i) < all)
		i++;
	return i;
}

/*
 * All at once; if that will not do, each half by itself. With ops in good order this is a bisection for how many can be
 * had; with some in bad places it still isolates each in about two trials per halving.
 */
static enum fettle_status requantize(struct push *p, const size_t *op, size_t n)
{
	enum fettle_status st;
	bool met = false;
	size_t half;

	if (!n || !is_worth(p, op, n))
		return FETTLE_OK;
	st = try_with(p, op, n, &met);
	if (!st && !met && n == 1)
		st = try_instead(p, *op, &met);
	if (st || met || n == 1)
		return st;
	half = half_of(p, op, n);
	st = requantize(p, op, half);
	return st ? st : requantize(p, op + half, n - half);
}

/* One, then twice as many at a time as long as that works, and half as many when not. */
static enum fettle_status requantize_in_steps(struct push *p)
{
	enum fettle_status st = FETTLE_OK;
	size_t i = 0, n = 1;
	bool met;

	while (!st && i < p->n) {
		n = n < p->n - i ? n : p->n - i;
		if (!is_worth(p, &p->op[i], p->n - i))
			break;
		st = try_with(p, &p->op[i], n, &met);
		i += met || n == 1 ? n : 0;
		n = met ? 2 * n : n > 1 ? n / 2 : 1;
	}
	return st;
}

/* One by one, until none of them can be put back any more. */
static enum fettle_status requantize_singly(struct push *p)
{
	enum fettle_status st = FETTLE_OK;
	bool any = true, met = false;
	size_t i;

	while (!st && any) {
		any = false;
		for (i = 0; !st && i < p->n; i++) {
			if (!is_candidate(p, p->op[i]) || !is_worth(p, &p->op[i], 1))
				continue;
			st = try_with(p, &p->op[i], 1, &met);
			any |= met;
		}
	}
	return st;
}

static enum fettle_status run_push(struct push *p)
{
	struct score score = { .met = false };
	enum fettle_status st = FETTLE_OK;
	bool met;

	p->first = search_n_trials(p->s);
	if (plan_n_quantized(p->plan, search_space(p->s)))
		st = search_try(p->s, p->plan, &score);
	met = score.met;
	p->none = !met;
	p->slight = score.slight;
	p->most = most_trials(p);
	if (st || (met && !any_is_worth(p)))
		return st;
	st = find_candidates(p);
	if (!st && !met)
		st = find_first(p, &met);
	if (!st && met)
		st = p->revert ? requantize_in_steps(p) : requantize(p, p->op, p->n);
	if (!st && met)
		st = requantize_singly(p);
	free(p->op);
	return st;
}

enum fettle_status push(struct search *s, struct plan *plan, const struct plan *base, size_t leave)
{
	return push_along(s, plan, base, leave, NULL, NULL);
}

enum fettle_status push_along(struct search *s, struct plan *plan, const struct plan *base, size_t leave,
			      const struct op_order *known, const double *worth)
{
	struct push p = {
		.s = s, .plan = plan, .base = base, .leave = leave, .known = known, .worth = worth
	};

	search_stage(s, "push");
	return run_push(&p);
}

enum fettle_status revert(struct search *s, struct plan *plan, const struct plan *base)
{
	struct push p = { .s = s, .plan = plan, .base = base, .revert = true };

	search_stage(s, "revert");
	return run_push(&p);
}
