#include "strategy/strategy.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/mem.h"

#define STRATEGY(id) extern const struct strategy strategy_##id;
#include "strategy/list.h"
#undef STRATEGY

static const struct strategy *const strategies[] = {
#define STRATEGY(id) &strategy_##id,
#include "strategy/list.h"
#undef STRATEGY
};

/* A `next` that proposes this many plans in a row that are not new has run dry without knowing it. */
enum { REPEATS_MAX = 10000 };

const struct strategy *strategy_at(size_t i)
{
	return i < ARRAY_LEN(strategies) ? strategies[i] : NULL;
}

const struct strategy *strategy_find(const char *name)
{
	/* INC's names for what quant_level 0 and 1 begin with */
	static const char *const aliases[][2] = { { "O0", "conservative" }, { "O1", "basic" } };
	size_t i;

	for (i = 0; i < ARRAY_LEN(aliases); i++)
		if (strcasecmp(aliases[i][0], name) == 0)
			name = aliases[i][1];
	for (i = 0; i < ARRAY_LEN(strategies); i++)
		if (strcasecmp(strategies[i]->name, name) == 0)
			return strategies[i];
	return NULL;
}

static enum fettle_status drive(const struct strategy *strategy, struct search *s, void *state)
{
	struct plan p = PLAN_INIT;
	struct score score;
	enum fettle_status st = FETTLE_OK;
	size_t before, repeats = 0;

	while (!st && repeats < REPEATS_MAX) {
		plan_release(&p);
		plan_init(&p, search_space(s));
		st = strategy->next(s, state, &p);
		if (st == FETTLE_STOP) { /* no more plans, which is no reason for the search to stop */
			st = FETTLE_OK;
			break;
		}
		if (st)
			break;
		before = search_n_trials(s);
		st = search_try(s, &p, &score);
		repeats = search_n_trials(s) == before ? repeats + 1 : 0;
	}
	plan_release(&p);
	return st;
}

enum fettle_status strategy_run(const struct strategy *strategy, struct search *s)
{
	enum fettle_status st;
	void *state;

	if (strategy->traverse)
		return strategy->traverse(s);
	state = strategy->state_new ? strategy->state_new(s) : NULL;
	st = drive(strategy, s, state);
	if (strategy->state_free)
		strategy->state_free(state);
	return st;
}

struct op_order op_order_copy(const struct op_order *o)
{
	struct op_order c = { xcalloc(o->n + 1, sizeof(*c.op)), xcalloc(o->n + 1, sizeof(*c.score)), o->n };

	if (o->n) {
		memcpy(c.op, o->op, o->n * sizeof(*c.op));
		memcpy(c.score, o->score, o->n * sizeof(*c.score));
	}
	return c;
}

void op_order_release(struct op_order *o)
{
	free(o->op);
	free(o->score);
	*o = (struct op_order)OP_ORDER_INIT;
}
