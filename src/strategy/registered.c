/* A caller's strategy as the search sees one, and the search as the strategy sees it. */
#include "strategy/registered.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/sized.h"

struct fettle_search {
	struct search *s;
	const struct registered_strategy *own;
	struct fettle_param *params;
	struct arena arena;
};

/* so that values can be passed on as they are */
_Static_assert((int)FETTLE_PARAM_OP == PARAM_OP && (int)FETTLE_PARAM_RECIPE == PARAM_RECIPE &&
		       (int)FETTLE_PARAM_SAMPLES == PARAM_SAMPLES,
	       "kinds");
_Static_assert((int)FETTLE_MODE_FP32 == OPTION_FP32 && (int)FETTLE_MODE_STATIC == OPTION_STATIC &&
		       (int)FETTLE_MODE_DYNAMIC == OPTION_DYNAMIC && (int)FETTLE_MODE_WIDE == OPTION_WIDE,
	       "modes");
_Static_assert((int)FETTLE_RANK_OUTPUT_ERROR == RANK_OUTPUT_MSE && (int)FETTLE_RANK_IMPACT == RANK_IMPACT &&
		       (int)FETTLE_RANK_IMPACT_BACK == RANK_IMPACT_BACK &&
		       (int)FETTLE_RANK_HESSIAN == RANK_HESSIAN,
	       "ranks");

static struct fettle_param describe(struct arena *a, const struct param *p)
{
	struct fettle_param out = { .size = sizeof(out),
				    .kind = (enum fettle_param_kind)p->kind,
				    .name = p->name,
				    .n_options = p->n_options,
				    .first = p->first,
				    .block = -1,
				    .fp32 = -1 };
	enum fettle_mode *modes;
	size_t i;

	if (p->kind != PARAM_OP)
		return out;
	modes = arena_alloc(a, p->n_options * sizeof(*modes));
	for (i = 0; i < p->n_options; i++)
		modes[i] = (enum fettle_mode)p->options[i].mode;
	out.modes = modes;
	out.type = p->type;
	out.block = p->block;
	out.fp32 = p->fallback == NO_OPTION ? -1 : p->fallback;
	out.compute = p->compute;
	out.gain = p->gain;
	return out;
}

static void *view_new(struct search *s)
{
	struct fettle_search *view = xcalloc(1, sizeof(*view));
	const struct space *space = search_space(s);
	size_t i;

	view->s = s;
	view->own = search_options(s)->self;
	view->params = arena_alloc(&view->arena, space->n * sizeof(*view->params));
	for (i = 0; i < space->n; i++)
		view->params[i] = describe(&view->arena, &space->v[i]);
	return view;
}

static void view_free(void *self)
{
	struct fettle_search *view = self;

	arena_release(&view->arena);
	free(view);
}

/* no foreign code's status goes up unexplained */
static enum fettle_status explained(struct fettle_search *view, enum fettle_status st)
{
	if (st == FETTLE_OK || st == FETTLE_STOP || search_err(view->s)->msg[0])
		return st;
	return fail(search_err(view->s), st < FETTLE_OK || st > FETTLE_BACKEND ? FETTLE_INVALID : st,
		    "strategy '%s' failed: it returned status %d and does not say why", view->own->def.name,
		    (int)st);
}

static enum fettle_status check_plan(struct fettle_search *view, const unsigned char *plan)
{
	const struct space *space = search_space(view->s);
	size_t i;

	for (i = 0; i < space->n; i++)
		if (plan[i] >= space->v[i].n_options)
			return fail(search_err(view->s), FETTLE_INVALID,
				    "strategy '%s' chose option %d of '%s', need less than %d",
				    view->own->def.name, plan[i], space->v[i].name, space->v[i].n_options);
	return FETTLE_OK;
}

static enum fettle_status traverse(struct search *s)
{
	struct fettle_search *view = view_new(s);
	enum fettle_status st = explained(view, view->own->def.traverse(view, view->own->def.self));

	view_free(view);
	return st;
}

/* The caller's plans have one byte per option: SPACE_OPTIONS_MAX. */
static void to_bytes(const struct plan *p, unsigned char *out)
{
	size_t i;

	for (i = 0; i < p->n; i++)
		out[i] = (unsigned char)p->choice[i];
}

static void from_bytes(const unsigned char *from, struct plan *p)
{
	size_t i;

	for (i = 0; i < p->n; i++)
		p->choice[i] = from[i];
}

static enum fettle_status next(struct search *s, void *state, struct plan *plan)
{
	struct fettle_search *view = state;
	unsigned char *bytes = xcalloc(plan->n, sizeof(*bytes));
	enum fettle_status st;

	(void)s;
	to_bytes(plan, bytes);
	st = explained(view, view->own->def.next(view, view->own->def.self, bytes));
	if (!st)
		st = check_plan(view, bytes);
	from_bytes(bytes, plan);
	free(bytes);
	return st;
}

struct registered_strategy *registered_strategy_new(const struct fettle_strategy *def)
{
	struct registered_strategy *own = xcalloc(1, sizeof(*own));

	own->def = *def;
	own->def.name = xstrdup(def->name);
	own->def.summary = xstrdup(def->summary ? def->summary : "");
	own->type = (struct strategy){ .name = own->def.name, .summary = own->def.summary };
	if (def->traverse) {
		own->type.traverse = traverse;
	} else {
		own->type.next = next;
		own->type.state_new = view_new;
		own->type.state_free = view_free;
	}
	return own;
}

void registered_strategy_free(struct registered_strategy *own)
{
	free((char *)(uintptr_t)own->def.name);
	free((char *)(uintptr_t)own->def.summary);
	free(own);
}

/* ---- what it may ask ---- */

size_t fettle_search_n_params(const struct fettle_search *s)
{
	return search_space(s->s)->n;
}

size_t fettle_search_n_ops(const struct fettle_search *s)
{
	return search_space(s->s)->n_ops;
}

const struct fettle_param *fettle_search_param(const struct fettle_search *s, size_t i)
{
	return i < search_space(s->s)->n ? &s->params[i] : NULL;
}

static void give_score(struct fettle_plan_score *out, const struct score *s)
{
	struct fettle_plan_score score = { .failed = s->failed,
					   .met = s->met,
					   .accuracy = s->accuracy,
					   .loss = s->loss,
					   .objective = s->objective };

	sized_give(out, &score, sizeof(score));
}

/* the plan of the caller's array, if it is one */
static enum fettle_status read_bytes(struct fettle_search *s, const unsigned char *bytes, struct plan *out)
{
	enum fettle_status st = check_plan(s, bytes);

	if (st)
		return st;
	plan_init(out, search_space(s->s));
	from_bytes(bytes, out);
	return FETTLE_OK;
}

enum fettle_status fettle_search_try(struct fettle_search *s, const unsigned char *plan,
				     struct fettle_plan_score *out)
{
	struct plan p = PLAN_INIT;
	struct score score = { .failed = true, .accuracy = NAN, .loss = NAN, .objective = NAN };
	enum fettle_status st = read_bytes(s, plan, &p);

	if (!st)
		st = search_try(s->s, &p, &score);
	plan_release(&p);
	give_score(out, &score);
	return st;
}

bool fettle_search_best(const struct fettle_search *s, unsigned char *plan, struct fettle_plan_score *out)
{
	struct plan p = PLAN_INIT;
	struct score score;
	bool found = search_best(s->s, &p, &score);

	if (found) {
		to_bytes(&p, plan);
		give_score(out, &score);
	}
	plan_release(&p);
	return found;
}

size_t fettle_search_n_trials(const struct fettle_search *s)
{
	return search_n_trials(s->s);
}

size_t fettle_search_trials_left(const struct fettle_search *s)
{
	return search_trials_left(s->s);
}

uint64_t fettle_search_seed(const struct fettle_search *s)
{
	return search_options(s->s)->seed;
}

void fettle_search_stage(struct fettle_search *s, const char *stage)
{
	search_stage(s->s, stage);
}

enum fettle_status fettle_search_rank_ops(struct fettle_search *s, const unsigned char *plan,
					  enum fettle_rank by, size_t *ops, double *scores, size_t *n)
{
	struct plan p = PLAN_INIT;
	struct op_order order = OP_ORDER_INIT;
	enum fettle_status st = read_bytes(s, plan, &p);

	*n = 0;
	if (!st)
		st = search_rank_ops(s->s, &p, (enum rank)by, &order);
	if (!st && order.n) {
		*n = order.n;
		memcpy(ops, order.op, order.n * sizeof(*ops));
		if (scores)
			memcpy(scores, order.score, order.n * sizeof(*scores));
	}
	op_order_release(&order);
	plan_release(&p);
	return st;
}

enum fettle_status fettle_search_fail(struct fettle_search *s, enum fettle_status st, const char *message)
{
	return fail(search_err(s->s), st, "strategy '%s' failed: %s", s->own->def.name, message);
}
