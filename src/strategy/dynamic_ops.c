/* Where static ops have fallen back: dynamic ones gain less, but lose next to nothing, for their ranges fit every sample. */
#include "base/mem.h"
#include "strategy/stages.h"

/* An op must save such a share of the fp32 model's time, and all of them together so much to be worth a session and a few turns. */
#define GAIN_LEAST 2e-3
#define GAINS_LEAST 0.02

/* All in fp32, but for the ops that gain alone if they are dynamic. */
static enum fettle_status only_dynamic(struct search *s, const struct plan *base, struct plan *out,
				       double *gains)
{
	const struct space *space = search_space(s);
	struct op_order order = OP_ORDER_INIT;
	enum fettle_status st = search_rank_ops(s, base, RANK_DYNAMIC, &order);
	size_t i;

	default_ops(space, base, out);
	fall_back_all(out, space);
	*gains = 0;
	for (i = 0; i < order.n && order.score[i] >= GAIN_LEAST; i++) {
		out->choice[order.op[i]] = (uint16_t)param_option_in(&space->v[order.op[i]], OPTION_DYNAMIC);
		*gains += order.score[i];
	}
	op_order_release(&order);
	return st;
}

enum fettle_status stage_dynamic(struct search *s, const struct plan *base)
{
	struct plan p = PLAN_INIT;
	double gains;
	enum fettle_status st = only_dynamic(s, base, &p, &gains);

	if (!st && gains >= GAINS_LEAST)
		st = stage_try_if_faster(s, "dynamic", &p);
	plan_release(&p);
	return st;
}
