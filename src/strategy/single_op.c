/* Where integers gain nothing: plans with a single op in integers, which are nearly as fast as fp32. */
#include <math.h>
#include <stdlib.h>

#include "base/mem.h"
#include "strategy/stages.h"

/* Plans that are timed, and of these tried. */
enum { TIMED = 4, TIMED_TRIALS = 2 };
/* Plans whose error is estimated, and of these tried: where one has failed for a sample that is nearly lost in fp32, others may, too. */
enum { ESTIMATED = 8, ESTIMATED_TRIALS = 4 };
/* Such an op may add so many times the error of what has met the criterion: predicted errors are not that precise. */
#define SINGLE_ERROR 2
/* Integers gain nothing if the fastest plan saves less than this share of the latency. */
#define GAINS_NOTHING 0.01

/* A plan with one op in integers; its objective, or the error of its output. */
struct single {
	struct plan plan;
	double value;
};

static int by_value(const void *a, const void *b)
{
	const struct single *x = a, *y = b;

	return (x->value > y->value) - (x->value < y->value);
}

static void keep_only(const struct space *space, const struct plan *base, size_t op, struct plan *out)
{
	plan_copy(out, base);
	fall_back_all(out, space);
	out->choice[op] = base->choice[op];
}

/* Tries the first few until one meets the criterion. */
static enum fettle_status try_in_order(struct search *s, const struct single *v, size_t n)
{
	enum fettle_status st = FETTLE_OK;
	bool met = false;
	size_t i;

	search_stage(s, "one op in int8");
	for (i = 0; i < n && v[i].plan.n && !met && !st; i++)
		st = stage_try(s, &v[i].plan, &met);
	return st;
}

static void singles_release(struct single *v, size_t n)
{
	while (n)
		plan_release(&v[--n].plan);
}

/* The error that the ops of a plan add, in all: `order` has it op by op. */
static double error_of(const struct space *space, const struct plan *p, const struct op_order *order)
{
	double sum = 0;
	size_t i;

	for (i = 0; i < order->n; i++)
		if (plan_is_quantized(p, space, order->op[i]))
			sum += fmax(order->score[i], 0);
	return sum;
}

/* Is an op expected to be accurate enough by itself? Nothing speaks against it, or it adds not much more than what has met the criterion. */
static bool may_stay(const struct op_order *errors, size_t op, double limit)
{
	size_t i;

	for (i = 0; errors && i < errors->n; i++)
		if (errors->op[i] == op)
			return errors->score[i] <= SINGLE_ERROR * limit;
	return true;
}

/* Those that are predicted to be fastest and accurate enough; measured, and sorted by that. */
static enum fettle_status find_fastest(struct search *s, const struct plan *base,
				       const struct op_order *errors, const struct op_order *alone,
				       struct single *out)
{
	const struct space *space = search_space(s);
	struct plan best = PLAN_INIT;
	struct score score;
	enum fettle_status st = FETTLE_OK;
	double limit;
	size_t i, n = 0;

	search_best(s, &best, &score);
	limit = errors ? error_of(space, &best, errors) : INFINITY;
	plan_release(&best);
	for (i = 0; i < alone->n && 1 - alone->score[i] < score.objective && n < TIMED && !st; i++) {
		const size_t op = alone->op[i];

		if (!plan_is_quantized(base, space, op) || !may_stay(errors, op, limit))
			continue;
		keep_only(space, base, op, &out[n].plan);
		st = search_objective(s, &out[n].plan, &out[n].value);
		n++;
	}
	qsort(out, n, sizeof(*out), by_value);
	return st;
}

enum fettle_status stage_single_op(struct search *s, const struct plan *base, const struct op_order *errors)
{
	struct single v[TIMED] = { { PLAN_INIT, 0 } };
	struct op_order alone = OP_ORDER_INIT;
	enum fettle_status st;

	if (plan_n_quantized(base, search_space(s)) < 2 || !search_best_gains_nothing(s))
		return FETTLE_OK;
	st = search_rank_ops(s, base, RANK_ALONE, &alone);
	if (!st)
		st = find_fastest(s, base, errors, &alone, v);
	search_want(s, WANT_FASTER); /* the accuracy matters only if it is faster than what there is */
	if (!st)
		st = try_in_order(s, v, TIMED_TRIALS);
	search_want(s, WANT_PASS);
	singles_release(v, TIMED);
	op_order_release(&alone);
	return st;
}

/* Of the other ops, those that cost least time; sorted by the error of the output. */
static enum fettle_status find_least_error(struct search *s, const struct plan *base,
					   const struct plan *failed, const struct op_order *alone,
					   struct single *out)
{
	const struct space *space = search_space(s);
	enum fettle_status st = FETTLE_OK;
	size_t i, n = 0;

	for (i = 0; i < alone->n && isfinite(alone->score[i]) && n < ESTIMATED && !st; i++) {
		const size_t op = alone->op[i];

		if (!space->v[op].compute || !plan_is_quantized(base, space, op) ||
		    plan_is_quantized(failed, space, op))
			continue;
		keep_only(space, base, op, &out[n].plan);
		st = search_estimate(s, &out[n].plan, &out[n].value);
		n++;
	}
	qsort(out, n, sizeof(*out), by_value);
	return st;
}

enum fettle_status stage_another_op(struct search *s, const struct plan *failed)
{
	struct single v[ESTIMATED] = { { PLAN_INIT, 0 } };
	struct op_order alone = OP_ORDER_INIT;
	struct plan base = PLAN_INIT;
	enum fettle_status st;

	if (search_gain(s) >= GAINS_NOTHING)
		return FETTLE_OK;
	default_ops(search_space(s), failed, &base);
	st = search_rank_ops(s, &base, RANK_ALONE, &alone);
	if (!st)
		st = find_least_error(s, &base, failed, &alone, v);
	if (!st)
		st = try_in_order(s, v, ESTIMATED_TRIALS);
	singles_release(v, ESTIMATED);
	op_order_release(&alone);
	plan_release(&base);
	return st;
}
