/* Settings op type by op type: all ops of a type share one. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "strategy/stages.h"

enum {
	PROMISING = 3,          /* settings of all ops that are tried where the settings are not the point */
	COMBINATIONS_MAX = 200, /* without a limit on trials there is still a next stage to come to */
};

/* What the ops of one type can be set to, in order of preference. */
struct settings {
	struct param_option *v;
	size_t n, cap;
};

/* A combination is one setting number per type. */
struct combinations {
	struct search *s;
	struct plan base;       /* recipes and samples, and ops that have no such setting */
	struct settings *types; /* [n_types] */
	size_t n_types;
	size_t *pick, *best; /* the combination at hand, and the one with the least loss */
	double best_loss;
	size_t leave, n_done;
	size_t *picks, n_picks; /* combinations to be tried together */
};

static bool has_setting(const struct settings *t, const struct param_option *o)
{
	size_t i;

	for (i = 0; i < t->n; i++)
		if (t->v[i].mode == o->mode && t->v[i].setting == o->setting)
			return true;
	return false;
}

static void add_setting(struct settings *t, const struct param_option *o)
{
	size_t i;

	VEC_PUSH(t, *o);
	for (i = t->n - 1; i && t->v[i - 1].setting > o->setting; i--)
		t->v[i] = t->v[i - 1];
	t->v[i] = *o;
}

static void collect_settings(struct settings *t, const struct space *space, size_t type,
			     enum option_mode mode)
{
	size_t i, k;

	for (i = 0; i < space->n_ops; i++)
		for (k = 0; space->v[i].type_id == type && k < space->v[i].n_options; k++)
			if (space->v[i].options[k].mode == mode && !has_setting(t, &space->v[i].options[k]))
				add_setting(t, &space->v[i].options[k]);
}

static void combinations_release(struct combinations *c)
{
	size_t t;

	for (t = 0; t < c->n_types; t++)
		VEC_RELEASE(&c->types[t]);
	free(c->types);
	free(c->pick);
	free(c->best);
	free(c->picks);
	plan_release(&c->base);
}

/* As many ops as possible are quantized: types that do not have the mode keep the other. */
static void combinations_init(struct combinations *c, struct search *s, enum option_mode mode)
{
	const struct space *space = search_space(s);
	enum option_mode other = mode == OPTION_STATIC ? OPTION_DYNAMIC : OPTION_STATIC;
	size_t t;

	*c = (struct combinations){ .s = s, .n_types = space->n_types, .best_loss = INFINITY };
	c->types = xcalloc(c->n_types, sizeof(*c->types));
	c->pick = xcalloc(c->n_types, sizeof(*c->pick));
	c->best = xcalloc(c->n_types, sizeof(*c->best));
	settings_base(s, &c->base);
	for (t = 0; t < c->n_types; t++) {
		collect_settings(&c->types[t], space, t, mode);
		if (!c->types[t].n)
			collect_settings(&c->types[t], space, t, other);
	}
}

static bool any_has(const struct combinations *c, enum option_mode mode)
{
	size_t t;

	for (t = 0; t < c->n_types; t++)
		if (c->types[t].n && c->types[t].v[0].mode == mode)
			return true;
	return false;
}

static unsigned option_with(const struct param *op, const struct param_option *wanted)
{
	unsigned k;

	for (k = 0; k < op->n_options; k++)
		if (op->options[k].mode == wanted->mode && op->options[k].setting == wanted->setting)
			return k;
	return NO_OPTION;
}

static unsigned first_quantized(const struct param *op)
{
	unsigned k;

	if (op->options[op->first].mode != OPTION_FP32)
		return op->first;
	for (k = 0; k < op->n_options; k++)
		if (op->options[k].mode != OPTION_FP32)
			return k;
	return op->first;
}

static void to_plan(const struct combinations *c, const size_t *pick, struct plan *p)
{
	const struct space *space = search_space(c->s);
	size_t i;

	plan_copy(p, &c->base);
	for (i = 0; i < space->n_ops; i++) {
		const struct settings *t = &c->types[space->v[i].type_id];
		unsigned k = t->n ? option_with(&space->v[i], &t->v[pick[space->v[i].type_id]]) : NO_OPTION;

		p->choice[i] = (uint16_t)(k == NO_OPTION ? first_quantized(&space->v[i]) : k);
	}
}

static bool may_go_on(const struct combinations *c)
{
	return c->n_done < COMBINATIONS_MAX && stage_may_go_on(c->s, c->leave);
}

static void add_pick(struct combinations *c)
{
	c->picks = xrealloc(c->picks, (c->n_picks + 1) * c->n_types, sizeof(*c->picks));
	memcpy(c->picks + c->n_picks++ * c->n_types, c->pick, c->n_types * sizeof(*c->pick));
}

/* The combinations collected, which do not depend on each other. */
static enum fettle_status try_picks(struct combinations *c)
{
	struct plan *plans = xcalloc(c->n_picks + 1, sizeof(*plans));
	struct score *scores = xcalloc(c->n_picks + 1, sizeof(*scores));
	enum fettle_status st = FETTLE_OK;
	size_t i, n, tried = 0;

	for (i = 0; i < c->n_picks; i++)
		to_plan(c, c->picks + i * c->n_types, &plans[i]);
	/* those that were tried before cost nothing: then there is room for more */
	while (!st && tried < c->n_picks && stage_may_go_on(c->s, c->leave) &&
	       plan_n_quantized(&plans[0], search_space(c->s))) {
		n = search_trials_left(c->s) - c->leave;
		n = n < c->n_picks - tried ? n : c->n_picks - tried;
		st = search_try_all(c->s, plans + tried, n, scores + tried);
		tried += n;
	}
	for (i = 0; i < c->n_picks; i++) {
		if (i < tried && !scores[i].early && scores[i].loss < c->best_loss) {
			c->best_loss = scores[i].loss;
			memcpy(c->best, c->picks + i * c->n_types, c->n_types * sizeof(*c->best));
		}
		plan_release(&plans[i]);
	}
	free(plans);
	free(scores);
	c->n_done += c->n_picks;
	c->n_picks = 0;
	return st;
}

/* Of the combinations collected, those that disturb the model's output least. */
static enum fettle_status keep_promising(struct combinations *c)
{
	struct plan *plans = xcalloc(c->n_picks, sizeof(*plans));
	double *error = xcalloc(c->n_picks, sizeof(*error));
	enum fettle_status st;
	size_t i, k, n = 0, n_all = c->n_picks;

	for (i = 0; i < n_all; i++)
		to_plan(c, c->picks + i * c->n_types, &plans[i]);
	st = search_expect_estimates(c->s, plans, n_all);
	for (i = 0; i < n_all && !st; i++)
		st = search_estimate(c->s, &plans[i], &error[i]);
	for (n = 0; n < PROMISING && n < c->n_picks && !st; n++) { /* the first n are the best n */
		for (i = n, k = n; i < c->n_picks; i++)
			k = error[i] < error[k] ? i : k;
		memcpy(c->pick, c->picks + k * c->n_types, c->n_types * sizeof(*c->pick));
		memmove(c->picks + (n + 1) * c->n_types, c->picks + n * c->n_types,
			(k - n) * c->n_types * sizeof(*c->pick));
		memcpy(c->picks + n * c->n_types, c->pick, c->n_types * sizeof(*c->pick));
		memmove(&error[n + 1], &error[n], (k - n) * sizeof(*error));
	}
	c->n_picks = n;
	for (i = 0; i < n_all; i++)
		plan_release(&plans[i]);
	free(plans);
	free(error);
	return st;
}

/* All types at their k-th setting; of these the promising ones only, if there is no time for all. */
static enum fettle_status try_alike(struct combinations *c, bool all)
{
	enum fettle_status st = FETTLE_OK;
	size_t k, t, n = 0;

	for (t = 0; t < c->n_types; t++)
		n = c->types[t].n > n ? c->types[t].n : n;
	for (k = 0; k < n; k++) {
		for (t = 0; t < c->n_types; t++)
			c->pick[t] = k < c->types[t].n ? k : (c->types[t].n ? c->types[t].n - 1 : 0);
		add_pick(c);
	}
	if (!all)
		st = keep_promising(c);
	return st ? st : try_picks(c);
}

/* From the best combination so far, one type at another setting. */
static enum fettle_status try_one_apart(struct combinations *c)
{
	enum fettle_status st = FETTLE_OK;
	size_t k, t;

	for (t = 0; !st && t < c->n_types && may_go_on(c); t++) {
		memcpy(c->pick, c->best, c->n_types * sizeof(*c->pick));
		for (k = 0; k < c->types[t].n; k++) {
			c->pick[t] = k;
			add_pick(c);
		}
		st = try_picks(c);
	}
	return st;
}

static bool next_combination(struct combinations *c)
{
	size_t t;

	for (t = c->n_types; t-- > 0;) {
		if (++c->pick[t] < c->types[t].n)
			return true;
		c->pick[t] = 0;
	}
	return false;
}

static enum fettle_status try_product(struct combinations *c)
{
	enum fettle_status st = FETTLE_OK;
	bool more = true;

	memset(c->pick, 0, c->n_types * sizeof(*c->pick));
	while (!st && more && may_go_on(c)) {
		while (more && c->n_picks < SIDE_BY_SIDE) {
			add_pick(c);
			more = next_combination(c);
		}
		st = try_picks(c);
	}
	return st;
}

static enum fettle_status try_mode(struct search *s, enum option_mode mode, bool alike, size_t leave)
{
	struct combinations c;
	enum fettle_status st = FETTLE_OK;

	combinations_init(&c, s, mode);
	c.leave = leave;
	if (!any_has(&c, mode))
		goto out;
	search_stage(s, mode == OPTION_STATIC ? "op types, static" : "op types, dynamic");
	st = try_alike(&c, !alike);
	if (st || alike)
		goto out;
	st = try_one_apart(&c);
	if (st || !may_go_on(&c))
		goto out;
	st = try_product(&c);
out:
	combinations_release(&c);
	return st;
}

/* Not for the last layer of a convolutional network: if that layer is at fault, it falls back later. */
static bool many_can_be_dynamic(const struct space *space)
{
	size_t i, n = 0, n_compute = 0;

	for (i = 0; i < space->n_ops; i++) {
		n_compute += space->v[i].compute;
		n += space->v[i].compute && param_option_in(&space->v[i], OPTION_DYNAMIC) != NO_OPTION;
	}
	return 4 * n > n_compute;
}

/* A quarter of the trials for static combinations, a sixth of the rest for dynamic ones. */
static enum fettle_status try_modes(struct search *s, bool alike)
{
	struct plan best = PLAN_INIT;
	enum fettle_status st;

	st = try_mode(s, OPTION_STATIC, alike, stage_leave(s, LEAVE_AFTER_STAGE));
	if (!st && many_can_be_dynamic(search_space(s)) &&
	    !(search_space(s)->prefer_static && fallback_base(s, &best)))
		st = try_mode(s, OPTION_DYNAMIC, alike, stage_leave(s, LEAVE_AFTER_DYNAMIC));
	plan_release(&best);
	return st;
}

enum fettle_status stage_op_types(struct search *s)
{
	return try_modes(s, false);
}

enum fettle_status stage_op_types_alike(struct search *s)
{
	return try_modes(s, true);
}
