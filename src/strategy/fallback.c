/* Ops fall back to fp32: by blocks, one by one, or as many as it takes. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "strategy/stages.h"

/* Share of the worst one's impact that makes an op a suspect, worth a trial by itself. Less may be chance. */
#define SUSPECT_SHARE 0.05

/* ---- the order ---- */

/* Appends the ops of `more` that can fall back and are not in the order yet. */
static void append_order(struct op_order *o, const struct op_order *more, const struct space *space,
			 const struct plan *base)
{
	bool *in = xcalloc(space->n_ops, sizeof(*in));
	size_t i;

	o->op = xrealloc(o->op, space->n_ops, sizeof(*o->op));
	o->score = xrealloc(o->score, space->n_ops, sizeof(*o->score));
	for (i = 0; i < o->n; i++)
		in[o->op[i]] = true;
	for (i = 0; i < more->n; i++) {
		if (in[more->op[i]] || !plan_can_fall_back(base, space, more->op[i]))
			continue;
		in[more->op[i]] = true;
		o->op[o->n] = more->op[i];
		o->score[o->n++] = more->score[i];
	}
	free(in);
}

static enum fettle_status append_rank(struct search *s, const struct plan *base, enum rank by,
				      struct op_order *out)
{
	struct op_order ranked = OP_ORDER_INIT;
	enum fettle_status st = search_rank_ops(s, base, by, &ranked);

	if (!st)
		append_order(out, &ranked, search_space(s), base);
	op_order_release(&ranked);
	return st;
}

static void append_rest(struct search *s, const struct plan *base, struct op_order *out)
{
	const struct space *space = search_space(s);
	struct op_order all = { xcalloc(space->n_ops, sizeof(size_t)), xcalloc(space->n_ops, sizeof(double)),
				space->n_ops };
	size_t i;

	for (i = 0; i < all.n; i++)
		all.op[i] = i;
	append_order(out, &all, space, base);
	op_order_release(&all);
}

static size_t n_can_fall_back(const struct space *space, const struct plan *base)
{
	size_t i, n = 0;

	for (i = 0; i < space->n_ops; i++)
		n += plan_can_fall_back(base, space, i);
	return n;
}

enum fettle_status fallback_order(struct search *s, const struct plan *base, enum rank by,
				  struct op_order *out)
{
	enum fettle_status st;

	st = append_rank(s, base, by, out);
	if (!st && by != RANK_OUTPUT_MSE && out->n < n_can_fall_back(search_space(s), base))
		st = append_rank(s, base, RANK_OUTPUT_MSE, out);
	if (!st)
		append_rest(s, base, out);
	return st;
}

/* ---- blocks ---- */

static enum fettle_status try_block(struct search *s, const struct plan *base, int block, struct plan *out,
				    bool *met)
{
	const struct space *space = search_space(s);
	size_t i;

	plan_copy(out, base);
	for (i = 0; i < space->n_ops; i++)
		if (space->v[i].block == block && plan_can_fall_back(base, space, i))
			out->choice[i] = space->v[i].fallback;
	return stage_try(s, out, met);
}

/* The blocks of the most disturbed ops first. */
static enum fettle_status find_block(struct search *s, const struct plan *base, const struct op_order *order,
				     struct plan *out, bool *met)
{
	const struct space *space = search_space(s);
	bool *seen = xcalloc((size_t)space->n_blocks, sizeof(*seen));
	size_t i, leave = stage_leave(s, LEAVE_AFTER_STAGE);
	enum fettle_status st = FETTLE_OK;

	for (i = 0; !st && !*met && i < order->n && stage_may_go_on(s, leave); i++) {
		int block = space->v[order->op[i]].block;

		if (block < 0 || seen[block])
			continue;
		seen[block] = true;
		st = try_block(s, base, block, out, met);
	}
	free(seen);
	return st;
}

enum fettle_status stage_blocks(struct search *s, const struct plan *base, const struct op_order *order)
{
	struct plan p = PLAN_INIT;
	enum fettle_status st;
	bool met = false;

	if (search_space(s)->n_blocks < 1)
		return FETTLE_OK;
	search_stage(s, "blocks");
	search_hold(s);
	st = find_block(s, base, order, &p, &met);
	if (!st && met)
		st = push(s, &p, base, 0);
	plan_release(&p);
	return st ? st : search_release(s);
}

/* ---- single ops ---- */

/* Puts the ops whose fallback wins back most of the output first, the rest after them in their old order. */
static enum fettle_status order_by_impact(struct search *s, const struct plan *base, struct op_order *order,
					  size_t *suspects)
{
	struct op_order o = OP_ORDER_INIT;
	enum fettle_status st = append_rank(s, base, RANK_IMPACT, &o);
	size_t i;

	if (!st) {
		for (i = 0; i < o.n && o.score[i] > 0 && o.score[i] >= SUSPECT_SHARE * o.score[0]; i++)
			;
		*suspects = o.n = i;
		append_order(&o, order, search_space(s), base);
		op_order_release(order);
		*order = o;
		return FETTLE_OK;
	}
	op_order_release(&o);
	return st;
}

static enum fettle_status try_alone(struct search *s, const struct plan *base, const size_t *op, size_t n,
				    double *loss)
{
	const struct space *space = search_space(s);
	struct plan plans[SIDE_BY_SIDE] = { PLAN_INIT };
	struct score scores[SIDE_BY_SIDE];
	size_t i;
	enum fettle_status st;

	for (i = 0; i < n; i++) {
		plan_copy(&plans[i], base);
		plans[i].choice[op[i]] = space->v[op[i]].fallback;
	}
	st = search_try_all(s, plans, n, scores);
	for (i = 0; i < n; i++) {
		loss[i] = isnan(scores[i].loss) ? INFINITY : scores[i].loss;
		plan_release(&plans[i]);
	}
	return st;
}

/* Of the first n, those that left the least loss first; else as they are. */
static void sort_by_loss(struct op_order *o, double *loss, size_t n)
{
	size_t i, k;

	for (i = 1; i < n; i++) {
		size_t op = o->op[i];
		double x = loss[i];

		for (k = i; k && x < loss[k - 1]; k--) {
			o->op[k] = o->op[k - 1];
			loss[k] = loss[k - 1];
		}
		o->op[k] = op;
		loss[k] = x;
	}
}

enum fettle_status stage_single_ops(struct search *s, const struct plan *base, struct op_order *order)
{
	size_t i, k, n, suspects = 0, leave = stage_leave(s, LEAVE_AFTER_OPS);
	bool any = true; /* of the last few had an effect: otherwise the loss is a joint one */
	double *loss = xcalloc(search_space(s)->n_ops, sizeof(*loss));
	struct score score;
	enum fettle_status st;

	search_stage(s, "single ops");
	st = search_try(s, base, &score); /* known, as a rule */
	if (!st)
		st = order_by_impact(s, base, order, &suspects);
	if (score.met)
		suspects = order->n; /* none is guilty of anything: which of them may be faster in fp32? */
	else
		search_want(s, WANT_VALUE); /* their effects are compared */
	if (search_frugal(s) && suspects > SIDE_BY_SIDE)
		suspects = SIDE_BY_SIDE;
	if (plan_n_quantized(base, search_space(s)) < 2)
		suspects = 0; /* without it, nothing is left */
	for (i = 0; !st && i < suspects && any && stage_may_go_on(s, leave); i += n) {
		n = suspects - i < SIDE_BY_SIDE ? suspects - i : SIDE_BY_SIDE;
		if (n > search_trials_left(s) - leave)
			n = search_trials_left(s) - leave;
		st = try_alone(s, base, &order->op[i], n, &loss[i]);
		for (any = score.met, k = i; k < i + n; k++)
			any |= loss[k] < (1 - SUSPECT_SHARE) * score.loss;
	}
	search_want(s, WANT_VERDICT);
	sort_by_loss(order, loss, i);
	if (!st && i < order->n)
		search_untried(s, "%zu ops alone in fp32 (%s)", order->n - i,
			       i == suspects ? "next to no effect is predicted"
			       : any         ? "too few trials are left"
					     : "others, predicted to have more effect, had next to none");
	free(loss);
	return st;
}

/* ---- as many as it takes ---- */

void fall_back_first(struct plan *out, const struct plan *base, const struct space *space,
		     const struct op_order *order, size_t n)
{
	size_t i;

	plan_copy(out, base);
	for (i = 0; i < n; i++)
		out->choice[order->op[i]] = space->v[order->op[i]].fallback;
}

/*
 * The smallest n that meets the criterion, if accuracy grows with n; one that does meet it in any case. If there is
 * none, the longest was tried, and `out` is all that can be in fp32.
 */
static enum fettle_status bisect(struct search *s, const struct plan *base, const struct op_order *order,
				 struct plan *out)
{
	const struct space *space = search_space(s);
	size_t max = order->n - (plan_n_quantized(base, space) == order->n); /* one stays quantized */
	size_t low = 1, high = max + 1;
	struct plan p = PLAN_INIT;
	enum fettle_status st = FETTLE_OK;
	bool met;

	plan_copy(out, base);
	fall_back_all(out, space);
	while (!st && low < high) {
		size_t n = low + (high - low) / 2;

		fall_back_first(&p, base, space, order, n);
		st = stage_try(s, &p, &met);
		if (met) {
			plan_copy(out, &p);
			high = n;
		} else {
			low = n + 1;
		}
	}
	plan_release(&p);
	return st;
}

enum fettle_status stage_accumulated(struct search *s, const struct plan *base, const struct op_order *order)
{
	struct plan p = PLAN_INIT;
	enum fettle_status st;

	if (!order->n)
		return FETTLE_OK;
	search_stage(s, "accumulated");
	search_hold(s);
	st = bisect(s, base, order, &p);
	if (!st)
		st = push(s, &p, base, 0);
	plan_release(&p);
	return st ? st : search_release(s);
}

enum fettle_status stage_fall_back_by(struct search *s, enum rank by)
{
	struct plan base = PLAN_INIT;
	struct op_order order = OP_ORDER_INIT;
	enum fettle_status st = FETTLE_OK;

	if (fallback_base(s, &base))
		goto out;
	st = fallback_order(s, &base, by, &order);
	if (st)
		goto out;
	st = stage_accumulated(s, &base, &order);
out:
	op_order_release(&order);
	plan_release(&base);
	return st;
}
