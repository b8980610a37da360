#include "strategy/stages.h"

size_t stage_leave(const struct search *s, unsigned percent)
{
	size_t left = search_trials_left(s);

	return left == SIZE_MAX || search_spends_all(s) ? 0 : left * percent / 100;
}

bool stage_may_go_on(const struct search *s, size_t leave)
{
	return search_trials_left(s) > leave;
}

enum fettle_status stage_try(struct search *s, const struct plan *p, bool *met)
{
	struct score score = { .met = false };
	enum fettle_status st = FETTLE_OK;

	if (plan_n_quantized(p, search_space(s)))
		st = search_try(s, p, &score);
	if (met)
		*met = score.met;
	return st;
}

enum fettle_status stage_try_if_faster(struct search *s, const char *stage, const struct plan *p)
{
	enum fettle_status st;

	search_stage(s, stage);
	search_want(s, WANT_FASTER);
	st = stage_try(s, p, NULL);
	search_want(s, WANT_PASS);
	return st;
}

enum fettle_status stage_default(struct search *s)
{
	struct plan p = PLAN_INIT;
	enum fettle_status st;

	search_stage(s, "default");
	plan_init(&p, search_space(s));
	st = stage_try(s, &p, NULL);
	plan_release(&p);
	return st;
}

enum fettle_status stage_all_recipes(struct search *s)
{
	const struct space *space = search_space(s);
	struct plan p = PLAN_INIT;
	enum fettle_status st;
	size_t i;

	search_stage(s, "all recipes");
	plan_init(&p, space);
	for (i = space->n_ops; i < space->n; i++)
		if (space->v[i].kind == PARAM_RECIPE && space->v[i].apply != NO_OPTION && !space->v[i].costly)
			p.choice[i] = space->v[i].apply;
	st = stage_try(s, &p, NULL);
	plan_release(&p);
	return st;
}

void settings_base(struct search *s, struct plan *base)
{
	const struct space *space = search_space(s);
	size_t i;

	fallback_base(s, base);
	for (i = space->n_ops; i < space->n; i++)
		if (space->v[i].costly)
			base->choice[i] = space->v[i].first;
}

/* Every option of one parameter on the best plan so far. */
static enum fettle_status try_options(struct search *s, size_t param, size_t leave)
{
	struct plan p = PLAN_INIT;
	enum fettle_status st = FETTLE_OK;
	unsigned k;

	if (!search_space(s)->v[param].costly) {
		settings_base(s, &p);
	} else if (fallback_base(s, &p) || /* accuracy is all that it has to give */
		   !search_costly_worth(s, &p)) {
		plan_release(&p);
		return FETTLE_OK;
	}
	for (k = 0; !st && k < search_space(s)->v[param].n_options && stage_may_go_on(s, leave); k++) {
		p.choice[param] = (uint16_t)k;
		st = stage_try(s, &p, NULL);
	}
	plan_release(&p);
	return st;
}

static enum fettle_status try_params(struct search *s, enum param_kind kind, size_t leave)
{
	const struct space *space = search_space(s);
	enum fettle_status st = FETTLE_OK;
	size_t i;

	for (i = space->n_ops; !st && i < space->n; i++)
		if (space->v[i].kind == kind && (kind != PARAM_RECIPE || space->v[i].apply != NO_OPTION))
			st = try_options(s, i, leave);
	return st;
}

enum fettle_status stage_recipes(struct search *s)
{
	size_t leave = stage_leave(s, LEAVE_AFTER_STAGE);
	enum fettle_status st;

	search_stage(s,
		     "samples"); /* few, and asked for by the user: before what the search thinks of itself */
	st = try_params(s, PARAM_SAMPLES, leave);
	if (st)
		return st;
	search_stage(s, "recipes");
	return try_params(s, PARAM_RECIPE, leave);
}

enum fettle_status stage_settings(struct search *s)
{
	enum fettle_status st;

	st = stage_default(s);
	if (!st)
		st = stage_all_recipes(s);
	if (!st)
		st = stage_op_types(s);
	if (!st)
		st = stage_recipes(s);
	return st ? st : stage_mixed(s);
}

enum fettle_status stage_settings_alike(struct search *s)
{
	enum fettle_status st = stage_default(s);

	if (!st)
		st = stage_op_types_alike(s);
	return st ? st : stage_mixed(s);
}

enum fettle_status stage_again(struct search *s, enum fettle_status (*stages)(struct search *s))
{
	enum fettle_status st;
	size_t before;

	do {
		before = search_n_trials(s);
		st = stages(s);
		search_spend_all(s);
	} while (!st && search_n_trials(s) > before);
	return st;
}

void fall_back_all(struct plan *p, const struct space *space)
{
	size_t i;

	for (i = 0; i < space->n_ops; i++)
		if (plan_can_fall_back(p, space, i))
			p->choice[i] = space->v[i].fallback;
}

void default_ops(const struct space *space, const struct plan *base, struct plan *out)
{
	size_t i;

	plan_init(out, space);
	for (i = space->n_ops; i < space->n; i++)
		out->choice[i] = base->choice[i];
}

bool fallback_base(struct search *s, struct plan *base)
{
	struct score score = { .met = false };

	if (!search_base(s, base, &score))
		plan_init(base, search_space(s));
	return score.met && !score.slight;
}
