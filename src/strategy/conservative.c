#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "strategy/stages.h"

/* Where most of the time goes comes first: 0 conv-like, 1 matmul-like, 2 the rest. */
static int type_class(const struct space *space, size_t type)
{
	size_t i;

	if (strstr(space->types[type], "MatMul") || strstr(space->types[type], "Gemm"))
		return 1;
	for (i = 0; i < space->n_ops; i++)
		if (space->v[i].type_id == type)
			return space->v[i].compute ? 0 : 2;
	return 2;
}

/* Quantizes all ops of the type, and keeps that if the criterion holds. */
static enum fettle_status add_type(struct search *s, size_t type, const struct plan *base, struct plan *plan)
{
	const struct space *space = search_space(s);
	struct plan p = PLAN_INIT;
	enum fettle_status st = FETTLE_OK;
	char stage[64];
	bool met = false;
	size_t i;

	plan_copy(&p, plan);
	for (i = 0; i < space->n_ops; i++)
		if (space->v[i].type_id == type)
			p.choice[i] = base->choice[i];
	if (!plan_equal(&p, plan, space)) {
		snprintf(stage, sizeof(stage), "op type %s", space->types[type]);
		search_stage(s, stage);
		st = stage_try(s, &p, &met);
	}
	if (met)
		plan_copy(plan, &p);
	plan_release(&p);
	return st;
}

static enum fettle_status add_types(struct search *s, const struct plan *base, struct plan *plan,
				    size_t leave)
{
	const struct space *space = search_space(s);
	enum fettle_status st = FETTLE_OK;
	size_t type;
	int class;

	for (class = 0; class < 3; class ++)
		for (type = 0; !st && type < space->n_types && stage_may_go_on(s, leave); type++)
			if (type_class(space, type) == class)
				st = add_type(s, type, base, plan);
	return st;
}

enum fettle_status conservative(struct search *s, size_t leave)
{
	struct plan base = PLAN_INIT, plan = PLAN_INIT;
	enum fettle_status st;

	plan_init(&base, search_space(s));
	plan_copy(&plan, &base);
	fall_back_all(&plan, search_space(s));
	search_hold(s);
	st = add_types(s, &base, &plan, leave);
	if (!st)
		st = push(s, &plan, &base, leave);
	plan_release(&plan);
	plan_release(&base);
	return st ? st : search_release(s);
}

static enum fettle_status conservative_traverse(struct search *s)
{
	search_want(s, WANT_VERDICT);
	search_untried(s, "settings and recipes other than the default ones, and sets of ops that are not "
			  "reached by adding op types, then single ops");
	return conservative(s, 0);
}

const struct strategy strategy_conservative = {
	.name = "conservative",
	.summary = "starts at fp32 and quantizes one op type after the other while accuracy holds",
	.replays = true,
	.traverse = conservative_traverse,
};
