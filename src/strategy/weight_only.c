/*
 * Weight-only spaces. First the list that Intel Neural Compressor tries, under its names. Then our own: each op has the bits that
 * suit it. What an op's format adds to the error of the model's output is measured for a few formats with all ops in it
 * (search_rank_ops(), about an fp32 pass each); errors of ops add up, so that from all ops in the smallest format the steps to
 * larger ones are sorted by what they win per byte, and a bisection finds how many of them the criterion takes.
 */
#include <math.h>
#include <stdlib.h>

#include "base/mem.h"
#include "blockwise/blockwise.h"
#include "strategy/stages.h"

/* the algorithms that lose least, in this order: those that need data come first */
static const enum block_algorithm preferred[] = { BLOCK_GRAM, BLOCK_GPTQ,     BLOCK_K_QUANT,
						  BLOCK_HQQ,  BLOCK_RTN_CLIP, BLOCK_RTN };

/* what mixed bits are made of, smallest first */
static const struct block_format formats[] = {
	{ 2, 128, false }, { 2, 32, false }, { 4, 128, false }, { 4, 32, false }, { 8, 128, false }
};
/* How often a step that is needed is set apart, to do without others before it. */
enum { ROUNDS_MAX = 4 };
enum { FORMATS = sizeof(formats) / sizeof(formats[0]), CANDIDATES = FORMATS + 1 };

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

/* All ops that have it in one format; tables only with `tables`. False: none has that algorithm. */
static bool all_in(struct plan *out, const struct space *space, const struct block_format *f,
		   enum block_algorithm a, bool tables)
{
	bool any = false;
	size_t i;

	plan_release(out);
	plan_init(out, space);
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
	struct plan p = PLAN_INIT;
	enum fettle_status st = FETTLE_OK;
	size_t i, n = 0;

	for (i = 0; i < ARRAY_LEN(list) && !st; i++) {
		if (!all_in(&p, space, &list[i].format, list[i].algorithm, false))
			continue; /* the user has fixed another, or there is no data */
		if (list[i].last)
			keep_last(&p, space);
		search_stage(s, list[i].name);
		st = stage_try(s, &p, NULL);
		n++;
	}
	plan_release(&p);
	return n || st ? st : stage_default(s);
}

/* ---- mixed bits ---- */

struct candidate {
	uint16_t option;
	double bytes, error;
};
/* an op's candidates that are worth it, smallest first: each wins more per byte than the next */
struct op_formats {
	struct candidate v[CANDIDATES];
	size_t n;
};
/* from one candidate of an op to the next */
struct step {
	size_t op, to;
	double won_per_byte;
};

static enum block_algorithm choose_algorithm(const struct space *space)
{
	const struct block_format f = { 4, 32, false };
	size_t i, k;

	for (k = 0; k < ARRAY_LEN(preferred); k++)
		for (i = 0; i < space->n_ops; i++)
			if (find_option(&space->v[i], &f, preferred[k], true) != NO_OPTION)
				return preferred[k];
	return BLOCK_RTN;
}

static void add_candidate(struct op_formats *o, const struct param *p, unsigned option, double error)
{
	o->v[o->n++] = (struct candidate){ (uint16_t)option, p->options[option].bytes, error };
}

/* What each op adds to the output's error when all are in this format. */
static enum fettle_status measure(struct search *s, const struct plan *p, const struct block_format *f,
				  enum block_algorithm a, struct op_formats *out)
{
	const struct space *space = search_space(s);
	struct op_order order = OP_ORDER_INIT;
	enum fettle_status st = search_rank_ops(s, p, RANK_IMPACT, &order);
	size_t i;

	for (i = 0; i < order.n && !st; i++) {
		const size_t op = order.op[i];
		const unsigned k = find_option(&space->v[op], f, a, false);

		if (k != NO_OPTION && p->choice[op] == k && isfinite(order.score[i]))
			add_candidate(&out[op], &space->v[op], k, order.score[i]);
	}
	op_order_release(&order);
	return st;
}

static int smaller_first(const void *a, const void *b)
{
	const struct candidate *x = a, *y = b;

	if (x->bytes != y->bytes)
		return x->bytes < y->bytes ? -1 : 1;
	return x->error < y->error ? -1 : x->error > y->error;
}

static double slope(const struct candidate *from, const struct candidate *to)
{
	return (from->error - to->error) / (to->bytes - from->bytes);
}

/* leaves the lower convex hull of error over bytes */
static void keep_worthwhile(struct op_formats *o)
{
	size_t i, n = 0;

	if (!o->n)
		return;
	qsort(o->v, o->n, sizeof(*o->v), smaller_first);
	for (i = 0; i < o->n; i++) {
		const struct candidate c = o->v[i];

		if (n && !(c.bytes > o->v[n - 1].bytes && c.error < o->v[n - 1].error))
			continue;
		while (n > 1 && slope(&o->v[n - 2], &o->v[n - 1]) <= slope(&o->v[n - 1], &c))
			n--;
		o->v[n++] = c;
	}
	o->n = n;
}

static int more_first(const void *a, const void *b)
{
	const struct step *x = a, *y = b;

	if (x->won_per_byte != y->won_per_byte)
		return x->won_per_byte > y->won_per_byte ? -1 : 1;
	return x->op != y->op ? (x->op < y->op ? -1 : 1) : (x->to < y->to ? -1 : 1);
}

struct mix {
	struct op_formats *ops; /* per op */
	struct step *steps;
	size_t n;         /* steps */
	struct plan base; /* what has no candidates stays as it is here */
	size_t needed[ROUNDS_MAX],
		n_needed; /* steps without which the criterion was missed, the last first */
};

/* has an earlier one of the needed steps taken the op further? */
static bool step_done(const struct mix *m, size_t step, size_t before)
{
	size_t k;

	for (k = 0; k < before; k++)
		if (m->steps[m->needed[k]].op == m->steps[step].op)
			return true;
	return false;
}

static void mix_release(struct mix *m)
{
	free(m->ops);
	free(m->steps);
	plan_release(&m->base);
}

/* Everything in its smallest format, then the first n steps and those that turned out to be needed. */
static void mixed_plan(const struct mix *m, const struct space *space, size_t n, struct plan *out)
{
	size_t i, k;

	plan_copy(out, &m->base);
	for (i = 0; i < space->n_ops; i++)
		if (m->ops[i].n)
			out->choice[i] = m->ops[i].v[0].option;
	for (i = 0; i < n; i++)
		out->choice[m->steps[i].op] = m->ops[m->steps[i].op].v[m->steps[i].to].option;
	for (k = 0; k < m->n_needed; k++) /* the later of an op's steps come first */
		if (m->needed[k] >= n && !step_done(m, m->needed[k], k))
			out->choice[m->steps[m->needed[k]].op] =
				m->ops[m->steps[m->needed[k]].op].v[m->steps[m->needed[k]].to].option;
}

static enum fettle_status make_mix(struct search *s, struct mix *m)
{
	const struct space *space = search_space(s);
	const enum block_algorithm a = choose_algorithm(space);
	struct plan p = PLAN_INIT;
	enum fettle_status st = FETTLE_OK;
	size_t i, k;

	m->ops = xcalloc(space->n_ops + 1, sizeof(*m->ops));
	m->steps = xcalloc(space->n_ops * CANDIDATES + 1, sizeof(*m->steps));
	plan_init(&m->base, space);
	for (k = 0; k < FORMATS && !st; k++)
		if (all_in(&p, space, &formats[k], a, true))
			st = measure(s, &p, &formats[k], a, m->ops);
	for (i = 0; i < space->n_ops && !st; i++) {
		const struct param *op = &space->v[i];

		if (m->ops[i].n && op->fallback != NO_OPTION)
			add_candidate(&m->ops[i], op, op->fallback, 0);
		keep_worthwhile(&m->ops[i]);
		for (k = 1; k < m->ops[i].n; k++)
			m->steps[m->n++] = (struct step){ i, k, slope(&m->ops[i].v[k - 1], &m->ops[i].v[k]) };
	}
	if (m->n)
		qsort(m->steps, m->n, sizeof(*m->steps), more_first);
	plan_release(&p);
	return st;
}

/* The fewest steps, up to `high`, that meet the criterion, if accuracy grows with each; some that do in any case. */
static enum fettle_status bisect(struct search *s, const struct mix *m, size_t high, size_t *fewest)
{
	struct plan p = PLAN_INIT;
	size_t low = 0;
	enum fettle_status st = FETTLE_OK;
	bool met;

	while (!st && low < high) {
		const size_t n = low + (high - low) / 2;

		mixed_plan(m, search_space(s), n, &p);
		st = stage_try(s, &p, &met);
		if (met)
			high = n;
		else
			low = n + 1;
	}
	*fewest = high;
	plan_release(&p);
	return st;
}

/* The last step that it took may be a large one: with it, fewer of those before it may be enough. */
static enum fettle_status find_fewest(struct search *s, struct mix *m)
{
	size_t n = m->n, was;
	enum fettle_status st = bisect(s, m, m->n, &n);

	for (was = m->n + 1; !st && n && n < was && m->n_needed < ROUNDS_MAX;) {
		was = n;
		m->needed[m->n_needed++] = n - 1;
		st = bisect(s, m, n - 1, &n);
	}
	return st;
}

static double mixed_bytes(const struct mix *m, const struct space *space, size_t n)
{
	struct plan p = PLAN_INIT;
	double sum = 0;
	size_t i;

	mixed_plan(m, space, n, &p);
	for (i = 0; i < space->n_ops; i++)
		sum += space->v[i].options[p.choice[i]].bytes;
	plan_release(&p);
	return sum;
}

/* As many steps as there is room for. What a model's file takes up beside weights is not known exactly. */
static enum fettle_status fill_room(struct search *s, const struct mix *m)
{
	enum { TRIES = 4 };
	struct score score = { .failed = true };
	struct plan p = PLAN_INIT;
	double room = search_size_room(s);
	enum fettle_status st = FETTLE_OK;
	size_t n = m->n, k;

	for (k = 0; k < TRIES && !st && score.failed; k++, room *= 0.985) {
		while (n && mixed_bytes(m, search_space(s), n) > room)
			n--;
		mixed_plan(m, search_space(s), n, &p);
		st = search_try(s, &p, &score);
	}
	plan_release(&p);
	return st;
}

static enum fettle_status mix_bits(struct search *s)
{
	struct mix m = { .n = 0 };
	enum fettle_status st;

	search_stage(s, "mixed bits");
	st = make_mix(s, &m);
	if (!st)
		st = search_size_room(s) > 0 ? fill_room(s, &m) : find_fewest(s, &m);
	mix_release(&m);
	return st;
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
		st = mix_bits(s);
	return st ? st : search_release(s);
}
