/*
 * What strategies are made of. Every stage tries plans until it has nothing more to try or has spent its share of
 * the budget, and returns FETTLE_STOP as soon as the search says so.
 */
#ifndef STRATEGY_STAGES_H
#define STRATEGY_STAGES_H

#include "strategy/strategy.h"

/*
 * What a stage leaves to those that follow, in percent of the trials that are left when it begins. Each leaves at least
 * half, so that a stage that finds nothing does not use up the budget of the others.
 */
enum {
	LEAVE_AFTER_FETTLE = 50,  /* auto: half for basic */
	LEAVE_AFTER_OPS = 66,     /* single ops: two thirds for sets of them */
	LEAVE_AFTER_STAGE = 75,   /* most stages: three quarters */
	LEAVE_AFTER_DYNAMIC = 83, /* dynamic combinations come after the static ones and get a sixth */
};
/*
 * How many trials to leave to the stages that follow: percent of those that are left. A stage continues while
 * stage_may_go_on(). Without a limit, always.
 */
size_t stage_leave(const struct search *s, unsigned percent);
bool stage_may_go_on(const struct search *s, size_t leave);

/* What those leave untried that go by op type and fall back along an order. */
#define UNTRIED_BY_TYPE                                                                                      \
	"settings that differ between ops of one type, recipes other than all of them and each by itself, "  \
	"and sets of fallen-back ops that no order of their errors gives"

#define UNTRIED_ALIKE                                                                                        \
	"settings that are not the same for all ops, recipes other than all of them together, and sets of "  \
	"fallen-back ops that no order of their scores gives"

/* Of many trials that do not depend on each other, so many are tried before any result is used. */
enum { SIDE_BY_SIDE = 8 };

/* Tries the plan unless it quantizes nothing: that would be the baseline again. met: may be NULL. */
enum fettle_status stage_try(struct search *s, const struct plan *p, bool *met);
/* The same, as a stage; its accuracy is looked at only if it is faster than what there is. WANT_PASS holds from here on. */
enum fettle_status stage_try_if_faster(struct search *s, const char *stage, const struct plan *p);

/* ---- settings: everything stays quantized ---- */

enum fettle_status stage_default(struct search *s); /* as the runtime would do it */
enum fettle_status
stage_all_recipes(struct search *s); /* those that the user has not fixed; none that is costly */
/*
 * Every op type at its first setting, at its second and so on, the few that disturb the output least; static, then
 * dynamic if that will not do.
 */
enum fettle_status stage_op_types_alike(struct search *s);
/* All of them, then one type apart from the others, then every combination. */
enum fettle_status stage_op_types(struct search *s);
/* Each number of samples, then each recipe, on the best plan so far; costly ones only while the criterion is not met. */
enum fettle_status stage_recipes(struct search *s);

/* Where ops can be in 16 bits: as few as meet the criterion so, on the best plan so far. */
enum fettle_status stage_mixed(struct search *s);

/* All that comes before fallback: default, all recipes, op types, then recipes one by one, then 16 bits. */
enum fettle_status stage_settings(struct search *s);
/* As stage_settings(), for strategies that do not search over settings: default, op types alike, 16 bits. */
enum fettle_status stage_settings_alike(struct search *s);
/* Stages leave trials to those that follow. If these did not need them, all begin again and leave none, until nothing is new. */
enum fettle_status stage_again(struct search *s, enum fettle_status (*stages)(struct search *s));

/* The best plan so far without costly recipes: each change of settings would cost as much again. */
void settings_base(struct search *s, struct plan *base);

/* ---- fallback: `base` is the plan whose ops fall back, `order` says which first ---- */

/* Everything in fp32 that may be. */
void fall_back_all(struct plan *p, const struct space *space);
/* The default's ops, with the recipes of the plan. */
void default_ops(const struct space *space, const struct plan *base, struct plan *out);
/* search_base(), the default plan if there is none. true: it meets the criterion. */
bool fallback_base(struct search *s, struct plan *base);
/* `by` for all ops that can fall back; those it does not cover follow in order of their output error. */
enum fettle_status fallback_order(struct search *s, const struct plan *base, enum rank by,
				  struct op_order *out);

/* One transformer block after the other; when one suffices, as much of it as possible is quantized again. */
enum fettle_status stage_blocks(struct search *s, const struct plan *base, const struct op_order *order);
/*
 * One op after the other, by predicted effect, as long as they have one and a third of the trials reach. The order becomes that
 * of the effects: those that were tried by what they won back, then the rest. Ends with WANT_VERDICT.
 */
enum fettle_status stage_single_ops(struct search *s, const struct plan *base, struct op_order *order);
/*
 * The first ops of the order, as many as it takes (bisection), then those that need not be are requantized. When not
 * even all of them suffice, single ops are quantized instead.
 */
enum fettle_status stage_accumulated(struct search *s, const struct plan *base, const struct op_order *order);
/* The first n of the order in fp32. */
void fall_back_first(struct plan *out, const struct plan *base, const struct space *space,
		     const struct op_order *order, size_t n);
/* Accumulated fallback from the best plan so far, in the order of a rank; nothing when that plan meets the criterion. */
enum fettle_status stage_fall_back_by(struct search *s, enum rank by);

/*
 * Requantizes as `base` has it what `plan` has in fp32 or 16 bits, cheapest predicted loss per gain first, as long as the criterion
 * holds, until no single op can be. If `plan` itself does not meet the criterion, it starts from the first op that can be
 * quantized alone, and gives up looking for that one when only `leave` trials are left. `plan` becomes the result. For use
 * while the search is held.
 */
enum fettle_status push(struct search *s, struct plan *plan, const struct plan *base, size_t leave);
/* As push(), with the impact that its ops had when they fell back (RANK_IMPACT of `base`), and RANK_WORTH by op (NULL: not known):
 * they are not ranked again. */
enum fettle_status push_along(struct search *s, struct plan *plan, const struct plan *base, size_t leave,
			      const struct op_order *known, const double *worth);
/* As push(), but the op whose requantizing disturbs the output least comes first, whatever it gains. */
enum fettle_status revert(struct search *s, struct plan *plan, const struct plan *base);

/* ---- dynamic ops: dynamic_ops.c ---- */

/* A plan of dynamic ops alone, if they gain something and it is faster than what there is. */
enum fettle_status stage_dynamic(struct search *s, const struct plan *base);

/* ---- a single op in integers, where they gain nothing: nearly as fast as fp32 ---- */

/* What meets the criterion, if it is not clearly faster than fp32, is compared with such plans. errors: what each op adds; may be NULL. */
enum fettle_status stage_single_op(struct search *s, const struct plan *base, const struct op_order *errors);
/* The only op of a plan that fails: of others that cost as little time, one may lose less. */
enum fettle_status stage_another_op(struct search *s, const struct plan *failed);

/* ---- weight-only ---- */

/* Has any op weight-only options, and has none any other but fp32? */
bool space_has_blocks(const struct space *space, bool *nothing_else);
/* Intel Neural Compressor's list; then the bits of each op by what they cost and win, as few as meet the criterion. */
enum fettle_status stage_weight_only(struct search *s);

/* ---- whole strategies that others are made of ---- */

/* Int8, then 16 bits, then fp32, op by op, by how much each disturbs the model's output, until the criterion holds. */
enum fettle_status mixed_precision(struct search *s, const struct plan *start, struct score *score);

enum fettle_status conservative(struct search *s, size_t leave);
enum fettle_status basic_traverse(struct search *s);
enum fettle_status fettle_search(struct search *s, size_t leave);
/* Op-wise settings, proposed by a sampler (sampler/list.h); no op falls back. */
enum fettle_status sampled(struct search *s, const char *sampler, bool default_first);

#endif
