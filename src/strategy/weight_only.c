/*
 * Weight-only spaces. First the list that Intel Neural Compressor tries, under its names; then our own, mixed bits.
 */
#include "strategy/weight_only.h"

/* the algorithms that lose least, in this order: those that need data come first */
static const enum block_algorithm preferred[] = { BLOCK_GRAM, BLOCK_GPTQ,     BLOCK_K_QUANT,
						  BLOCK_HQQ,  BLOCK_RTN_CLIP, BLOCK_RTN };

static bool is_block(const struct param_option *o, const struct block_format *f)
{
	return o->mode == OPTION_WEIGHT && (int)o->bits == f->bits && (int64_t)o->block == f->block;
}

/* The op's option of that format: by that algorithm, else by the best it has; NO_OPTION: none, or none by that one if `only`. */
static unsigned find_option(const struct param *p, const struct block_format *f, enum block_algorithm a,
			    bool only)
{
	unsigned k;
	size_t i;

	for (k = 0; k < p->n_options; k++)
		if (is_block(&p->options[k], f) && p->options[k].algorithm == (unsigned)a)
			return k;
	for (i = 0; i < ARRAY_LEN(preferred) && !only; i++)
		for (k = 0; k < p->n_options; k++)
			if (is_block(&p->options[k], f) && p->options[k].algorithm == (unsigned)preferred[i])
				return k;
	return NO_OPTION;
}

bool blocks_everywhere(struct plan *out, const struct plan *from, const struct space *space,
		       const struct block_format *f, enum block_algorithm a, bool tables)
{
	bool any = false;
	size_t i;

	plan_copy(out, from);
	for (i = 0; i < space->n_ops; i++) {
		unsigned k;

		if (!space->v[i].compute && !tables)
			continue;
		k = find_option(&space->v[i], f, a, true);
		if (k == NO_OPTION)
			k = find_option(&space->v[i], f, a, false); /* of one that has no such algorithm */
		else
			any = true;
		if (k != NO_OPTION)
			out->choice[i] = (uint16_t)k;
	}
	return any;
}

enum block_algorithm best_algorithm(const struct space *space)
{
	const struct block_format f = { 4, 32, false };
	size_t i, k;

	for (k = 0; k < ARRAY_LEN(preferred); k++)
		for (i = 0; i < space->n_ops; i++)
			if (find_option(&space->v[i], &f, preferred[k], true) != NO_OPTION)
				return preferred[k];
	return BLOCK_RTN;
}

/* ---- Intel Neural Compressor's list ---- */

static void keep_last(struct plan *p, const struct space *space)
{
	size_t i;

	for (i = space->n_ops; i-- > 0;)
		if (space->v[i].compute && plan_can_fall_back(p, space, i)) {
			p->choice[i] = space->v[i].fallback;
			return;
		}
}

static enum fettle_status try_list(struct search *s)
{
	static const struct {
		const char *name;
		enum block_algorithm algorithm;
		struct block_format format;
		bool last; /* the last MatMul stays in fp32 */
	} list[] = {
		{ "RTN_G32ASYM", BLOCK_RTN, { 4, 32, false }, false },
		{ "GPTQ_G32ASYM", BLOCK_GPTQ, { 4, 32, false }, false },
		{ "GPTQ_G32ASYM_DISABLE_LAST_MATMUL", BLOCK_GPTQ, { 4, 32, false }, true },
		{ "GPTQ_G128ASYM", BLOCK_GPTQ, { 4, 128, false }, false },
		{ "AWQ_G32ASYM", BLOCK_AWQ, { 4, 32, false }, false },
	};
	const struct space *space = search_space(s);
	struct plan first = PLAN_INIT, p = PLAN_INIT;
	enum fettle_status st = FETTLE_OK;
	size_t i, n = 0;

	plan_init(&first, space);
	for (i = 0; i < ARRAY_LEN(list) && !st; i++) {
		if (!blocks_everywhere(&p, &first, space, &list[i].format, list[i].algorithm, false))
			continue; /* the user has fixed another, or there is no data */
		if (list[i].last)
			keep_last(&p, space);
		search_stage(s, list[i].name);
		st = stage_try(s, &p, NULL);
		n++;
	}
	plan_release(&p);
	plan_release(&first);
	return n || st ? st : stage_default(s);
}

bool space_has_blocks(const struct space *space, bool *nothing_else)
{
	bool any = false, other = false;
	size_t i, k;

	for (i = 0; i < space->n_ops; i++)
		for (k = 0; k < space->v[i].n_options; k++) {
			const enum option_mode mode = space->v[i].options[k].mode;

			any |= mode == OPTION_WEIGHT;
			other |= mode != OPTION_WEIGHT && mode != OPTION_FP32;
		}
	*nothing_else = !other;
	return any;
}

enum fettle_status stage_weight_only(struct search *s)
{
	enum fettle_status st;

	search_hold(s);
	st = try_list(s);
	if (!st)
		st = stage_mixed_bits(s);
	return st ? st : search_release(s);
}
