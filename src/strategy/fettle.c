/*
 * Our own: what can be measured locally is, on a few batches and by profiles; whole evaluations only verify. Settings and
 * recipes are chosen by the error of the model's output, ops fall back until the predicted error fits, and what was seen
 * corrects the prediction.
 */
#include <math.h>
#include <stdlib.h>

#include "base/mem.h"
#include "strategy/stages.h"

/* An option must lower the error to this share of what it was: less would be chance, and no option is free. */
#define WORTH_TAKING 0.7
/* Corrections of weights and biases are: one was observed for, and the others come with it. */
#define WORTH_CORRECTING 0.95
/* Recipes that have no effect on more than this share of the multiply-adds are not considered. */
#define SPARES_MOST 0.95
/* Errors of the output, as a share of it, that are hoped to pass: at first, and when that was not enough. */
#define ERROR_FINE 3e-3
#define ERROR_NONE 1e-4
/* Of the error that should just pass, the share that is aimed at; and where what is lost grows as the error does, which says more. */
#define ERROR_AIM 0.5
#define ERROR_AIM_KNOWN 0.9
/* A plan that loses less than this many times what may be lost: to fall back an op or two costs less than all settings do. */
#define NEAR_MISS 1.2
/* fp32 passes that settings and recipes take to consider: at first, and all of them. */
#define IMPROVE_PASSES 1.5
#define IMPROVE_MORE 3
/* A plan that is expected to lose so many times what may be lost need not be tried. Less is chance, as on few samples. */
#define HOPELESS 4
/* What falling back takes. */
#define FALL_BACK_PASSES 3
/* Where nothing is known: the error of the output that is hoped to pass. */
#define ERROR_FIRST 0.02
/* Of a plan that loses up to so many times what may be lost, the error is measured: that much less of it should pass. */
#define LOSS_NEAR 2
/* Plans that have ops with more than this share of all gains in other modes are not alike. */
#define ALIKE_OTHER 0.1
/* What a plan that failed teaches: this share of its error may pass. */
#define ERROR_STEP 0.4
#define ERROR_NEAR 0.75 /* if it is a near miss */
/* At least this share of it is hoped to pass, however much it lost. */
#define ERROR_LEAST 0.1

/* Takes the option if the output's error falls to such a share of what it was. */
static enum fettle_status consider(struct search *s, struct plan *best, const struct plan *p, double worth,
				   double *error)
{
	double e;
	enum fettle_status st;

	if (plan_equal(p, best, search_space(s)) || !plan_n_quantized(p, search_space(s)))
		return FETTLE_OK;
	st = search_estimate(s, p, &e);
	if (st || !(e < worth * *error))
		return st;
	*error = e;
	plan_copy(best, p);
	return FETTLE_OK;
}

/* The option with the same mode and setting, but for that part of it; as it is if there is none. */
static uint16_t with_part(const struct param *op, uint16_t choice, int which, unsigned part)
{
	const struct param_option *is = &op->options[choice];
	uint16_t o;

	for (o = 0; o < op->n_options && is->part[which] != part; o++)
		if (op->options[o].mode == is->mode && op->options[o].part[which] == part &&
		    op->options[o].part[!which] == is->part[!which])
			return o;
	return choice;
}

/* A change of settings or recipes that may lower the error. */
struct step {
	enum { STEP_RECIPE, STEP_PART, STEP_DYNAMIC } kind;
	size_t which; /* recipe; or part of a setting */
	unsigned option;
	bool corrects;
};

struct steps {
	struct step *v;
	size_t n, cap;
};

/* Those that repair most for what it takes to see that come first. */
static int turn_of(const struct param *recipe)
{
	return recipe->corrects ? 0 : recipe->rewrites ? 1 : 2;
}

static void list_recipes(const struct space *space, int turn, struct steps *out)
{
	unsigned k;
	size_t i;

	for (i = space->n; i-- > space->n_ops;) {
		const struct param *p = &space->v[i];

		if (p->kind != PARAM_RECIPE || p->apply == NO_OPTION || p->keeps_fp32 || p->costly ||
		    p->spares > SPARES_MOST || turn_of(p) != turn)
			continue;
		for (k = 0; k < p->n_options; k++)
			VEC_PUSH(out, ((struct step){ STEP_RECIPE, i, k, p->corrects }));
	}
}

/*
 * Recipes, of which the last repair most. For every op the k-th way to quantize activations; then, with the best of those, the k-th
 * way to quantize weights: their errors add up, so that not all combinations are needed. Last, ranges that are taken at run
 * time, which fit every sample.
 */
static void list_steps(const struct space *space, struct steps *out)
{
	unsigned k, o, most[2] = { 0, 0 };
	size_t i, which;

	for (i = 0; i < 3; i++)
		list_recipes(space, (int)i, out);
	for (i = 0; i < space->n_ops; i++)
		for (o = 0; o < space->v[i].n_options; o++)
			for (which = 0; which < 2; which++)
				if (space->v[i].options[o].part[which] > most[which])
					most[which] = space->v[i].options[o].part[which];
	for (which = 0; which < 2; which++)
		for (k = 0; k <= most[which]; k++)
			VEC_PUSH(out, ((struct step){ STEP_PART, which, k, false }));
	VEC_PUSH(out, ((struct step){ STEP_DYNAMIC, 0, 0, false }));
}

static void apply_step(const struct step *step, const struct space *space, const struct plan *best,
		       struct plan *out)
{
	size_t i;

	plan_copy(out, best);
	if (step->kind == STEP_RECIPE)
		out->choice[step->which] = (uint16_t)step->option;
	for (i = 0; i < space->n_ops && step->kind != STEP_RECIPE; i++) {
		unsigned o = param_option_in(&space->v[i], OPTION_DYNAMIC);

		if (!plan_is_quantized(best, space, i))
			continue;
		if (step->kind == STEP_PART)
			out->choice[i] =
				with_part(&space->v[i], best->choice[i], (int)step->which, step->option);
		else if (o != NO_OPTION)
			out->choice[i] = (uint16_t)o;
	}
}

/* Until one of them is taken, the steps to come change the same plan: as many as there are workers. */
static enum fettle_status expect_steps(struct search *s, const struct step *v, size_t n,
				       const struct plan *best)
{
	struct plan *plans;
	enum fettle_status st;
	size_t i;

	n = n < search_workers(s) ? n : search_workers(s);
	plans = xcalloc(n, sizeof(*plans));
	for (i = 0; i < n; i++)
		apply_step(&v[i], search_space(s), best, &plans[i]);
	st = search_expect_estimates(s, plans, n);
	for (i = 0; i < n; i++)
		plan_release(&plans[i]);
	free(plans);
	return st;
}

/* Step by step, until the error is low enough; corrections, which come first, are considered together. */
static enum fettle_status consider_steps(struct search *s, struct plan *best, double *error, double enough)
{
	struct steps steps = { NULL, 0, 0 };
	struct plan p = PLAN_INIT;
	enum fettle_status st = FETTLE_OK;
	const double most = search_spent(s) + IMPROVE_PASSES;
	size_t i, expected = 0;
	double before;

	if (*error > enough)
		list_steps(search_space(s), &steps);
	for (i = 0; i < steps.n && !st && *error > (steps.v[i].corrects ? 0 : enough) &&
		    (search_spent(s) < most || search_may_spend(s, IMPROVE_MORE));
	     i++) {
		if (i >= expected)
			st = expect_steps(s, &steps.v[i], steps.n - i, best);
		expected = i < expected ? expected : i + search_workers(s);
		before = *error;
		apply_step(&steps.v[i], search_space(s), best, &p);
		if (!st)
			st = consider(s, best, &p, steps.v[i].corrects ? WORTH_CORRECTING : WORTH_TAKING,
				      error);
		if (*error < before)
			expected = 0;
	}
	VEC_RELEASE(&steps);
	plan_release(&p);
	return st;
}

/* Its loss is what it is expected to be. */
static enum fettle_status try_plan(struct search *s, const struct plan *p, struct score *score)
{
	enum fettle_status st = search_try(s, p, score);

	score->loss += score->beyond;
	return st;
}

/* Each op in the mode that is fastest. */
static enum fettle_status choose_modes(struct search *s, struct plan *base)
{
	struct plan p = PLAN_INIT;
	enum fettle_status st = search_fastest(s, base, false, &p);

	if (!st && !plan_equal(&p, base, search_space(s))) {
		search_stage(s, "fastest");
		plan_copy(base, &p);
	}
	plan_release(&p);
	return st;
}

/* A plan that meets the criterion was chosen by profiles that it proves wrong: are others faster, by new ones? */
static enum fettle_status choose_again(struct search *s, const struct plan *met)
{
	struct plan from = PLAN_INIT, p = PLAN_INIT;
	enum fettle_status st;

	if (!search_doubts_fastest(s))
		return FETTLE_OK;
	default_ops(search_space(s), met, &from);
	st = search_fastest(s, &from, false, &p);
	if (!st && plan_n_quantized(&p, search_space(s)))
		st = stage_try_if_faster(s, "fastest", &p);
	plan_release(&from);
	plan_release(&p);
	return st;
}

/* Of a plan that meets the criterion: without the ops whose integers cost more time than they save. */
static enum fettle_status drop_slow_ops(struct search *s, const struct plan *met)
{
	struct plan p = PLAN_INIT;
	enum fettle_status st = search_fastest(s, met, true, &p);

	if (!st && !plan_equal(&p, met, search_space(s)) && plan_n_quantized(&p, search_space(s)))
		st = stage_try_if_faster(s, "faster", &p);
	plan_release(&p);
	return st;
}

/* The ops that fall back, by what they add to the error; and, where times are known, by that over the time that they save. */
struct descent {
	struct op_order order, by_worth; /* the scores of the latter are RANK_WORTH; .n is 0: not known */
	double *error, *worth;           /* by op */
};

static void descent_release(struct descent *d)
{
	op_order_release(&d->order);
	op_order_release(&d->by_worth);
	free(d->error);
	free(d->worth);
}

/*
 * Where samples are right or wrong, which of them are lost is a matter of chance as much as of errors: then the ops that add most to the
 * error fall back, and the push finds what else may be in integers.
 */
static enum fettle_status rank_descent(struct search *s, const struct plan *base, struct descent *d)
{
	const size_t n_ops = search_space(s)->n_ops;
	enum fettle_status st = fallback_order(s, base, RANK_IMPACT, &d->order);
	size_t i;

	if (!st && !search_counts(s))
		st = search_rank_ops(s, base, RANK_WORTH, &d->by_worth);
	d->error = xcalloc(n_ops + 1, sizeof(*d->error));
	d->worth = xcalloc(n_ops + 1, sizeof(*d->worth));
	for (i = 0; i < d->order.n; i++)
		d->error[d->order.op[i]] = fmax(d->order.score[i], 0);
	for (i = 0; i < d->by_worth.n; i++)
		d->worth[d->by_worth.op[i]] = d->by_worth.score[i];
	return st;
}

static void fall_back_one(const struct space *space, size_t op, struct plan *p)
{
	if (plan_n_quantized(p, space) > 1 && plan_can_fall_back(p, space, op))
		p->choice[op] = space->v[op].fallback;
}

/*
 * So many that no more of the error is left than without the first `to` of those that add most to it: those that add most for the time
 * that they save, with those that gain nothing without them. One op stays quantized.
 */
static void fall_back_up_to(const struct space *space, const struct descent *d, size_t to, size_t *n,
			    struct plan *p)
{
	const struct op_order *by = &d->by_worth;
	double left = 0;
	size_t i;

	for (; *n < to && *n < d->order.n; ++*n)
		if (!by->n)
			fall_back_one(space, d->order.op[*n], p);
	for (i = 0; i < *n; i++)
		left += d->error[d->order.op[i]];
	for (i = 0; i < by->n && (left > 0 || (i && by->score[i] > 0 && by->score[i] == by->score[i - 1]));
	     i++) {
		left -= d->error[by->op[i]];
		fall_back_one(space, by->op[i], p);
	}
}

/* Half as many again, and at least one. */
static size_t more_than(size_t n)
{
	return n + (n + 1) / 2 + !n;
}

/* So many that what the others add to the error is at most this share of it. */
static size_t many_for(const struct op_order *order, double share)
{
	double all = 0, rest = 0;
	size_t i;

	for (i = 0; i < order->n; i++)
		all += order->score[i] > 0 ? order->score[i] : 0;
	for (i = order->n; i > 0; i--) {
		rest += order->score[i - 1] > 0 ? order->score[i - 1] : 0;
		if (rest > share * all)
			break;
	}
	return i;
}

/* The plans that will be looked at, this one first, as many as there are workers. */
static enum fettle_status expect_more(struct search *s, const struct descent *d, size_t n,
				      const struct plan *p)
{
	const size_t most = search_workers(s);
	struct plan *plans = xcalloc(most, sizeof(*plans));
	enum fettle_status st;
	size_t i, before = SIZE_MAX, k = 0;

	for (; k < most && n != before; k++) {
		before = k ? n : SIZE_MAX;
		plan_copy(&plans[k], k ? &plans[k - 1] : p);
		if (k)
			fall_back_up_to(search_space(s), d, more_than(n), &n, &plans[k]);
	}
	st = search_expect_estimates(s, plans, k);
	for (i = 0; i < k; i++)
		plan_release(&plans[i]);
	free(plans);
	return st;
}

/* Falls back in order until the predicted error is low enough. */
static enum fettle_status fall_back_to(struct search *s, const struct descent *d, double limit, size_t *n,
				       struct plan *p, double *error)
{
	const struct space *space = search_space(s);
	enum fettle_status st = expect_more(s, d, *n, p);

	if (st)
		return st;
	st = search_estimate(s, p, error);
	while (!st && *error > limit && *n < d->order.n && plan_n_quantized(p, space) > 1) {
		fall_back_up_to(space, d, more_than(*n), n, p);
		st = search_estimate(s, p, error);
	}
	return st;
}

/* Is it known what share of its error a plan that failed may have? */
static bool knows_share(const struct search *s, double loss)
{
	return search_loses_by_error(s) && isfinite(loss);
}

/*
 * The share of its error with which a plan that failed should pass. Where nothing is known of how losses grow: were they the square root
 * of errors.
 */
static double share_that_passes(const struct search *s, double loss)
{
	const double too_much = loss / search_tolerance(s);

	return knows_share(s, loss) ? ERROR_AIM_KNOWN / fmax(too_much, 1) : ERROR_AIM / (too_much * too_much);
}

/* The error of the output that should pass: of what missed by little, so much less as it lost too much. */
static enum fettle_status error_to_pass(struct search *s, const struct plan *base, const struct score *score,
					double *limit)
{
	const double too_much = score->loss / search_tolerance(s);
	const bool known = knows_share(s, score->loss);
	double error;
	enum fettle_status st;

	*limit = ERROR_FIRST;
	if (!known && (!(too_much > 1 && too_much < LOSS_NEAR) || search_one_sample(s, score)))
		return FETTLE_OK; /* of a single sample, errors say nothing */
	st = search_estimate(s, base, &error);
	*limit = known ? error * share_that_passes(s, score->loss) : fmin(ERROR_FIRST, error / too_much);
	return st;
}

/* Is what may be spent needed for falling back: a rank of the ops and two trials? */
static bool is_short(struct search *s)
{
	return !search_may_spend(s, FALL_BACK_PASSES);
}

/* The error at which the next trial is hoped to pass, after one that failed. */
static double next_limit(struct search *s, double limit, double error, double loss)
{
	if (knows_share(s, loss))
		return error * share_that_passes(s, loss);
	if (is_short(s) && loss < NEAR_MISS * search_tolerance(s))
		return error * ERROR_NEAR;
	if (is_short(s) && isfinite(loss))
		return error * fmin(fmax(share_that_passes(s, loss), ERROR_LEAST), ERROR_STEP);
	return fmin(limit, error) * ERROR_STEP;
}

static enum fettle_status fall_back(struct search *s, const struct plan *base, const struct score *failed,
				    size_t leave)
{
	struct descent d = { OP_ORDER_INIT, OP_ORDER_INIT, NULL, NULL };
	struct plan p = PLAN_INIT;
	struct score score = *failed;
	const bool known = knows_share(s, failed->loss);
	double limit, error = INFINITY;
	enum fettle_status st;
	size_t n = 0, tried = SIZE_MAX, to;

	search_stage(s, "predicted");
	st = error_to_pass(s, base, failed, &limit);
	if (!st)
		st = rank_descent(s, base, &d);
	plan_copy(&p, base);
	if (!st && is_short(s))
		st = search_estimate(s, base, &error);
	if (!st && is_short(s) && !(score.loss < LOSS_NEAR * search_tolerance(s)))
		limit = next_limit(s, limit, error, score.loss);
	while (!st && !score.met && n != tried) {
		tried = n;
		/* a trial halves what is left to try, at least, if little may be spent and little is known */
		to = !is_short(s) || known ? more_than(n)
		     : n                   ? (n + d.order.n + 1) / 2
					   : many_for(&d.order, limit / error) + 1;
		fall_back_up_to(search_space(s), &d, to, &n, &p);
		st = fall_back_to(s, &d, limit, &n, &p, &error);
		if (!st && n != tried)
			st = try_plan(s, &p, &score);
		limit = next_limit(s, limit, error, score.loss);
	}
	if (!st && !score.met)
		fall_back_all(&p, search_space(s));
	if (!st && n != 1) /* with the only one back it is what failed */
		st = push_along(s, &p, base, leave, is_short(s) ? &d.order : NULL,
				d.by_worth.n ? d.worth : NULL);
	if (!st)
		st = drop_slow_ops(s, &p);
	if (!st)
		st = stage_dynamic(s, base);
	if (!st)
		st = stage_single_op(s, base, &d.order);
	plan_release(&p);
	descent_release(&d);
	return st;
}

/*
 * The settings and recipes with the least error, or an error that is low enough: at most `enough`, or so much less than that of
 * the plan which failed that it should pass. What will fail all the same is not tried if little may be spent: its loss is then
 * what is expected.
 */
static enum fettle_status improve(struct search *s, struct plan *base, double enough, struct score *score)
{
	double error, before;
	enum fettle_status st;

	st = search_estimate(s, base, &before);
	error = before;
	enough = fmax(enough, error * share_that_passes(s, score->loss));
	if (!st)
		st = consider_steps(s, base, &error, enough);
	search_stage(s, "least error");
	if (!st && is_short(s) && error > ERROR_FIRST &&
	    score->loss * sqrt(error / before) > HOPELESS * search_tolerance(s)) {
		score->loss *= sqrt(error / before);
		return FETTLE_OK;
	}
	return st ? st : try_plan(s, base, score);
}

/* Applies all corrections; had the plan one of them already? */
static bool correct_all(const struct space *space, struct plan *p)
{
	bool had = false;
	size_t i;

	for (i = space->n_ops; i < space->n; i++)
		if (space->v[i].corrects && space->v[i].apply != NO_OPTION) {
			had |= p->choice[i] == space->v[i].apply;
			p->choice[i] = space->v[i].apply;
		}
	return had;
}

/* Has a plan more than a little in other modes than another? */
static bool runs_otherwise(const struct space *space, const struct plan *a, const struct plan *b)
{
	double all = 0, other = 0;
	size_t i;

	for (i = 0; i < space->n_ops; i++) {
		const struct param *op = &space->v[i];

		all += op->gain;
		if (op->options[a->choice[i]].mode != op->options[b->choice[i]].mode)
			other += op->gain;
	}
	return other > ALIKE_OTHER * all;
}

/* The default's ops, with the recipes of the plan; those of the plan, if the default's run otherwise by more than a little. */
static void with_default_ops(const struct space *space, const struct plan *base, struct plan *out)
{
	default_ops(space, base, out);
	if (runs_otherwise(space, base, out))
		plan_copy(out, base);
}

static enum fettle_status try_instead(struct search *s, const struct plan *p, struct plan *base,
				      struct score *score)
{
	struct score last;
	enum fettle_status st = try_plan(s, p, &last);

	if (!st && (last.met || last.loss <= score->loss)) { /* more of it can fall back */
		*score = last;
		plan_copy(base, p);
	}
	return st;
}

/* Plans that are about as fast and as accurate as one that loses a single sample too many need not lose it, too. */
static enum fettle_status try_alike(struct search *s, struct plan *base, struct score *score)
{
	struct plan p = PLAN_INIT;
	enum fettle_status st = FETTLE_OK;

	search_stage(s, "alike");
	plan_copy(&p, base);
	if (!correct_all(search_space(s), &p))
		st = try_instead(s, &p, base, score);
	if (!st && !score->met) {
		plan_release(&p);
		with_default_ops(search_space(s), base, &p);
		correct_all(search_space(s), &p);
		st = try_instead(s, &p, base, score);
	}
	plan_release(&p);
	return st;
}

/* What takes longer than a trial is worth it before ops fall back; then from what loses least. */
static enum fettle_status apply_costly(struct search *s, struct plan *base, struct score *score)
{
	const struct space *space = search_space(s);
	struct score last = *score;
	struct plan p = PLAN_INIT;
	enum fettle_status st = FETTLE_OK;
	size_t i;

	search_stage(s, "fine-tuned");
	for (i = space->n_ops; i < space->n && !st && !score->met; i++) {
		if (!space->v[i].costly || space->v[i].apply == NO_OPTION || !search_costly_worth(s, base) ||
		    base->choice[i] == space->v[i].apply)
			continue;
		plan_copy(&p, base);
		p.choice[i] = space->v[i].apply;
		st = try_plan(s, &p, &last);
		if (!st && (last.met || last.loss < score->loss)) {
			*score = last;
			plan_copy(base, &p);
		}
	}
	plan_release(&p);
	return st;
}

static enum fettle_status try_16_bits(struct search *s, struct plan *base, struct score *score)
{
	struct plan best = PLAN_INIT;
	enum fettle_status st = stage_mixed(s);

	if (!st && fallback_base(s, &best)) {
		score->met = true;
		plan_copy(base, &best);
	}
	plan_release(&best);
	return st;
}

enum fettle_status fettle_search(struct search *s, size_t leave)
{
	struct plan base = PLAN_INIT;
	struct score score = { .met = false };
	enum fettle_status st;

	search_hold(s);
	search_want(s, WANT_PASS);
	plan_init(&base, search_space(s));
	search_stage(s, "default");
	st = choose_modes(s, &base);
	if (!st)
		st = try_plan(s, &base, &score);
	if (!st && !score.met && search_worth(s, &base, IMPROVE_PASSES))
		st = improve(s, &base, ERROR_FINE, &score);
	if (!st && !score.met && !(score.loss < NEAR_MISS * search_tolerance(s)) &&
	    search_worth(s, &base, IMPROVE_MORE))
		st = improve(s, &base, ERROR_NONE, &score);
	if (!st && search_frugal(s) && search_one_sample(s, &score) && search_worth(s, &base, 1))
		st = try_alike(s, &base, &score);
	if (!st && !score.met)
		st = apply_costly(s, &base, &score);
	if (!st && !score.met)
		st = try_16_bits(s, &base, &score);
	if (!st && score.met)
		st = choose_again(s, &base);
	if (!st)
		st = score.met                                       ? stage_single_op(s, &base, NULL)
		     : plan_n_quantized(&base, search_space(s)) == 1 ? stage_another_op(s, &base)
								     : fall_back(s, &base, &score, leave);
	plan_release(&base);
	search_want(s, WANT_VERDICT);
	if (!st)
		st = search_settle(s);
	return st ? st : search_release(s);
}

static enum fettle_status fettle_traverse(struct search *s)
{
	search_untried(s, "settings, recipes and sets of fallen-back ops that are predicted to lose more");
	return fettle_search(s, 0);
}

const struct strategy strategy_fettle = {
	.name = "fettle",
	.summary = "measures what it can locally and in profiles, predicts, and verifies",
	.replays = true,
	.bounded = true,
	.traverse = fettle_traverse,
};
