/* Settings op type by op type: all ops of a type share one. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "strategy/stages.h"

enum {
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
	fallback_base(s, &c->base);
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

static enum fettle_status try_combination(struct combinations *c)
{
	const struct space *space = search_space(c->s);
	struct plan p = PLAN_INIT;
	struct score score = { .loss = NAN };
	enum fettle_status st = FETTLE_OK;
	size_t i;

	plan_copy(&p, &c->base);
	for (i = 0; i < space->n_ops; i++) {
		const struct settings *t = &c->types[space->v[i].type_id];
		unsigned k =
			t->n ? option_with(&space->v[i], &t->v[c->pick[space->v[i].type_id]]) : NO_OPTION;

		p.choice[i] = (uint8_t)(k == NO_OPTION ? first_quantized(&space->v[i]) : k);
	}
	if (plan_n_quantized(&p, space))
		st = search_try(c->s, &p, &score);
	if (score.loss < c->best_loss) {
		c->best_loss = score.loss;
		memcpy(c->best, c->pick, c->n_types * sizeof(*c->best));
	}
	c->n_done++;
	plan_release(&p);
	return st;
}

static bool may_go_on(const struct combinations *c)
{
	return c->n_done < COMBINATIONS_MAX && stage_may_go_on(c->s, c->leave);
}

/* All types at their k-th setting. */
static enum fettle_status try_alike(struct combinations *c)
{
	enum fettle_status st = FETTLE_OK;
	size_t k, t, n = 0;

	for (t = 0; t < c->n_types; t++)
		n = c->types[t].n > n ? c->types[t].n : n;
	for (k = 0; !st && k < n && may_go_on(c); k++) {
		for (t = 0; t < c->n_types; t++)
			c->pick[t] = k < c->types[t].n ? k : (c->types[t].n ? c->types[t].n - 1 : 0);
		st = try_combination(c);
	}
	return st;
}

/* From the best combination so far, one type at another setting. */
static enum fettle_status try_one_apart(struct combinations *c)
{
	enum fettle_status st = FETTLE_OK;
	size_t k, t;

	for (t = 0; t < c->n_types; t++) {
		for (k = 0; !st && k < c->types[t].n && may_go_on(c); k++) {
			memcpy(c->pick, c->best, c->n_types * sizeof(*c->pick));
			c->pick[t] = k;
			st = try_combination(c);
		}
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

	memset(c->pick, 0, c->n_types * sizeof(*c->pick));
	do
		st = try_combination(c);
	while (!st && may_go_on(c) && next_combination(c));
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
	st = try_alike(&c);
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

/* A quarter of the trials for static combinations, a sixth of the rest for dynamic ones. */
static enum fettle_status try_modes(struct search *s, bool alike)
{
	struct plan best = PLAN_INIT;
	enum fettle_status st;

	st = try_mode(s, OPTION_STATIC, alike, stage_leave(s, 75));
	if (!st && !(search_space(s)->prefer_static && fallback_base(s, &best)))
		st = try_mode(s, OPTION_DYNAMIC, alike, stage_leave(s, 83));
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
