/*
 * Mixed bits: each op in the format that suits it. What an op's format adds to the error of the model's output is measured with all
 * ops in that format (search_rank_ops(), about an fp32 pass for each of a few formats). Errors of ops add up, so that from all ops
 * in the cheapest format the steps to dearer ones are sorted by what they win for their cost, and a bisection finds how many of
 * them the criterion takes. The cost is bytes; where latency is what counts, it is the time by profiles, and the fastest int8 plan
 * is one more format where int8 is on offer.
 */
#include <math.h>
#include <stdlib.h>

#include "base/mem.h"
#include "strategy/weight_only.h"

/* what mixed bits are made of, smallest first */
static const struct block_format formats[] = {
	{ 2, 128, false }, { 2, 32, false }, { 4, 128, false }, { 4, 32, false }, { 8, 128, false }
};
/* beside these, int8 and fp32 */
enum { FORMATS = sizeof(formats) / sizeof(formats[0]), FORMS = FORMATS + 1, CANDIDATES = FORMS + 1 };
/* How often a step that is needed is set apart, to do without others before it. */
enum { ROUNDS_MAX = 4 };
/* What all weights of the fp32 model cost where time counts, as a share of its time: of equally fast formats the smaller. */
#define SIZE_WORTH 0.01
/* A format that saves less than this share of the fp32 model's time is not looked at. */
#define TIME_WORTH 0.01

struct candidate {
	uint16_t option;
	double cost, error;
};
/* an op's candidates that are worth it, cheapest first: each wins more for its cost than the next */
struct op_formats {
	struct candidate v[CANDIDATES];
	size_t n;
};
/* from one candidate of an op to the next */
struct step {
	size_t op, to;
	double won;
};
/* all ops in one format */
struct form {
	struct plan plan;
	double *cost; /* per op */
	double sum;
};

struct mix {
	struct search *s;
	const struct space *space;
	bool timed;       /* costs are times, in units of the fp32 model's; otherwise bytes */
	double bytes;     /* of all ops in fp32 */
	struct plan base; /* what has no candidates stays as it is here */
	struct form fp32, forms[FORMS];
	size_t n_forms;
	struct op_formats *ops; /* per op */
	struct step *steps;
	size_t n; /* steps */
	size_t needed[ROUNDS_MAX],
		n_needed; /* steps without which the criterion was missed, the last first */
};

static void form_release(struct form *f)
{
	plan_release(&f->plan);
	free(f->cost);
}

static void mix_release(struct mix *m)
{
	size_t i;

	for (i = 0; i < m->n_forms; i++)
		form_release(&m->forms[i]);
	form_release(&m->fp32);
	free(m->ops);
	free(m->steps);
	plan_release(&m->base);
}

/* ---- what formats cost ---- */

static double bytes_of(const struct mix *m, const struct plan *p, size_t op)
{
	return m->space->v[op].options[p->choice[op]].bytes;
}

/* By the time of each op under a plan that runs the same kernels. *known: false of a plan that cannot run, or where latency is not
 * what counts. */
static enum fettle_status price_by_time(struct mix *m, struct form *f, const struct plan *alike, bool *known)
{
	struct op_order order = OP_ORDER_INIT;
	enum fettle_status st = search_rank_ops(m->s, alike, RANK_SECONDS, &order);
	size_t i;

	for (i = 0; i < order.n; i++)
		f->cost[order.op[i]] =
			order.score[i] + SIZE_WORTH * bytes_of(m, &f->plan, order.op[i]) / fmax(m->bytes, 1);
	*known = order.n > 0;
	op_order_release(&order);
	return st;
}

/* The plan becomes a form, if it can run. `alike` runs the same kernels and is made sooner. */
static enum fettle_status price(struct mix *m, struct form *f, const struct plan *p, const struct plan *alike,
				bool *known)
{
	enum fettle_status st = FETTLE_OK;
	size_t i;

	plan_copy(&f->plan, p);
	f->cost = xcalloc(m->space->n_ops + 1, sizeof(*f->cost));
	*known = true;
	for (i = 0; i < m->space->n_ops; i++)
		f->cost[i] = bytes_of(m, p, i);
	if (m->timed)
		st = price_by_time(m, f, alike, known);
	for (i = 0; i < m->space->n_ops; i++)
		f->sum += f->cost[i];
	return st;
}

static enum fettle_status add_form(struct mix *m, const struct plan *p, const struct plan *alike)
{
	struct form f = { PLAN_INIT, NULL, 0 };
	bool known;
	enum fettle_status st = price(m, &f, p, alike, &known);

	if (!st && known)
		m->forms[m->n_forms++] = f;
	else
		form_release(&f);
	return st;
}

/* Everything in fp32 that may be: what that costs, and whether costs are times. */
static enum fettle_status price_fp32(struct mix *m)
{
	struct plan p = PLAN_INIT;
	bool known;
	enum fettle_status st;
	size_t i;

	plan_copy(&p, &m->base);
	fall_back_all(&p, m->space);
	for (i = 0; i < m->space->n_ops; i++)
		m->bytes += bytes_of(m, &p, i);
	m->timed = !(search_size_room(m->s) > 0);
	st = price(m, &m->fp32, &p, &p, &known);
	m->timed &= known;
	plan_release(&p);
	return st;
}

/* The fastest plan in int8, of ops that can be: then each may be as it is there. */
static enum fettle_status price_int8(struct mix *m)
{
	struct plan first = PLAN_INIT;
	enum fettle_status st;
	bool only;

	space_has_blocks(m->space, &only);
	if (only || !m->timed)
		return FETTLE_OK;
	plan_copy(&first, &m->base);
	st = search_fastest(m->s, &first, false, &m->base);
	if (!st && plan_n_quantized(&m->base, m->space))
		st = add_form(m, &m->base, &m->base);
	plan_release(&first);
	return st;
}

static enum fettle_status price_forms(struct mix *m)
{
	const enum block_algorithm a = best_algorithm(m->space);
	struct plan p = PLAN_INIT, alike = PLAN_INIT;
	enum fettle_status st;
	size_t k;

	st = price_fp32(m);
	if (!st)
		st = price_int8(m);
	for (k = 0; k < FORMATS && !st; k++) {
		if (!blocks_everywhere(&p, &m->base, m->space, &formats[k], a, true))
			continue;
		blocks_everywhere(&alike, &m->base, m->space, &formats[k], BLOCK_RTN, true);
		st = add_form(m, &p, &alike);
	}
	plan_release(&alike);
	plan_release(&p);
	return st;
}

static int cheaper_form_first(const void *a, const void *b)
{
	const struct form *x = a, *y = b;

	return (x->sum > y->sum) - (x->sum < y->sum);
}

/* Does one form save time over another, op by op? */
static bool saves(const struct mix *m, const struct form *f, const struct form *over)
{
	double saved = 0;
	size_t i;

	for (i = 0; i < m->space->n_ops; i++)
		saved += fmax(over->cost[i] - f->cost[i], 0);
	return saved > TIME_WORTH;
}

/*
 * Where time counts: the fastest form that meets the criterion is what others must beat; those that save nothing over it are
 * dropped. Nothing is left to mix if it is the only one.
 */
static enum fettle_status drop_slow_forms(struct mix *m)
{
	enum fettle_status st = FETTLE_OK;
	bool met = false;
	size_t i, best = 0, n = 0;

	search_stage(m->s, "one format");
	if (m->n_forms)
		qsort(m->forms, m->n_forms, sizeof(*m->forms), cheaper_form_first);
	for (i = 0; i < m->n_forms && !st && !met; i++) {
		best = i;
		st = stage_try(m->s, &m->forms[i].plan, &met);
	}
	if (st || !met)
		return st;
	for (i = 0; i < m->n_forms; i++)
		if (i == best || saves(m, &m->forms[i], &m->forms[best]))
			m->forms[n++] = m->forms[i];
		else
			form_release(&m->forms[i]);
	m->n_forms = n;
	if (n == 1 && !saves(m, &m->fp32, &m->forms[0])) {
		form_release(&m->forms[0]);
		m->n_forms = 0;
	}
	return st;
}

/* ---- what they lose ---- */

static void add_candidate(struct mix *m, const struct form *f, size_t op, double error)
{
	struct op_formats *o = &m->ops[op];
	const uint16_t option = f->plan.choice[op];
	size_t i;

	for (i = 0; i < o->n && o->v[i].option != option; i++)
		;
	if (i == o->n)
		o->v[o->n++] = (struct candidate){ option, f->cost[op], error };
}

/* What each op adds to the output's error when all are in this form. */
static enum fettle_status measure(struct mix *m, const struct form *f)
{
	struct op_order order = OP_ORDER_INIT;
	enum fettle_status st = search_rank_ops(m->s, &f->plan, RANK_IMPACT, &order);
	size_t i;

	for (i = 0; i < order.n && !st; i++)
		if (isfinite(order.score[i]))
			add_candidate(m, f, order.op[i], order.score[i]);
	op_order_release(&order);
	return st;
}

static int cheaper_first(const void *a, const void *b)
{
	const struct candidate *x = a, *y = b;

	if (x->cost != y->cost)
		return x->cost < y->cost ? -1 : 1;
	return x->error < y->error ? -1 : x->error > y->error;
}

static double slope(const struct candidate *from, const struct candidate *to)
{
	return (from->error - to->error) / (to->cost - from->cost);
}

/* leaves the lower convex hull of error over cost */
static void keep_worthwhile(struct op_formats *o)
{
	size_t i, n = 0;

	if (!o->n)
		return;
	qsort(o->v, o->n, sizeof(*o->v), cheaper_first);
	for (i = 0; i < o->n; i++) {
		const struct candidate c = o->v[i];

		if (n && !(c.cost > o->v[n - 1].cost && c.error < o->v[n - 1].error))
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

	if (x->won != y->won)
		return x->won > y->won ? -1 : 1;
	return x->op != y->op ? (x->op < y->op ? -1 : 1) : (x->to < y->to ? -1 : 1);
}

static enum fettle_status make_steps(struct mix *m)
{
	enum fettle_status st = FETTLE_OK;
	size_t i, k;

	m->ops = xcalloc(m->space->n_ops + 1, sizeof(*m->ops));
	m->steps = xcalloc(m->space->n_ops * CANDIDATES + 1, sizeof(*m->steps));
	for (k = 0; k < m->n_forms && !st; k++)
		st = measure(m, &m->forms[k]);
	for (i = 0; i < m->space->n_ops && !st; i++) {
		struct op_formats *o = &m->ops[i];

		if (o->n && m->space->v[i].fallback != NO_OPTION)
			add_candidate(m, &m->fp32, i, 0);
		keep_worthwhile(o);
		for (k = 1; k < o->n; k++)
			m->steps[m->n++] = (struct step){ i, k, slope(&o->v[k - 1], &o->v[k]) };
	}
	if (m->n)
		qsort(m->steps, m->n, sizeof(*m->steps), more_first);
	return st;
}

/* ---- how many steps it takes ---- */

/* has an earlier one of the needed steps taken the op further? */
static bool step_done(const struct mix *m, size_t step, size_t before)
{
	size_t k;

	for (k = 0; k < before; k++)
		if (m->steps[m->needed[k]].op == m->steps[step].op)
			return true;
	return false;
}

/* Everything in its cheapest format, then the first n steps and those that turned out to be needed. */
static void mixed_plan(const struct mix *m, size_t n, struct plan *out)
{
	size_t i, k;

	plan_copy(out, &m->base);
	for (i = 0; i < m->space->n_ops; i++)
		if (m->ops[i].n)
			out->choice[i] = m->ops[i].v[0].option;
	for (i = 0; i < n; i++)
		out->choice[m->steps[i].op] = m->ops[m->steps[i].op].v[m->steps[i].to].option;
	for (k = 0; k < m->n_needed; k++) /* the later of an op's steps come first */
		if (m->needed[k] >= n && !step_done(m, m->needed[k], k))
			out->choice[m->steps[m->needed[k]].op] =
				m->ops[m->steps[m->needed[k]].op].v[m->steps[m->needed[k]].to].option;
}

/* The fewest steps, up to `high`, that meet the criterion, if accuracy grows with each; some that do in any case. */
static enum fettle_status bisect(const struct mix *m, size_t high, size_t *fewest)
{
	struct plan p = PLAN_INIT;
	size_t low = 0;
	enum fettle_status st = FETTLE_OK;
	bool met;

	while (!st && low < high) {
		const size_t n = low + (high - low) / 2;

		mixed_plan(m, n, &p);
		st = stage_try(m->s, &p, &met);
		if (met)
			high = n;
		else
			low = n + 1;
	}
	*fewest = high;
	plan_release(&p);
	return st;
}

/* The cheapest of all, which is often accurate enough where it is not the one with the fewest bits. */
static enum fettle_status try_cheapest(const struct mix *m, bool *met)
{
	struct plan p = PLAN_INIT;
	enum fettle_status st;

	mixed_plan(m, 0, &p);
	st = stage_try(m->s, &p, met);
	plan_release(&p);
	return st;
}

/* The last step that it took may be a large one: with it, fewer of those before it may be enough. */
static enum fettle_status find_fewest(struct mix *m)
{
	size_t n = m->n, was;
	bool met = false;
	enum fettle_status st = m->timed ? try_cheapest(m, &met) : FETTLE_OK;

	if (!st && !met)
		st = bisect(m, m->n, &n);
	for (was = m->n + 1; !st && !met && n && n < was && m->n_needed < ROUNDS_MAX;) {
		was = n;
		m->needed[m->n_needed++] = n - 1;
		st = bisect(m, n - 1, &n);
	}
	return st;
}

/* ---- with a limit of the size ---- */

static double mixed_bytes(const struct mix *m, size_t n)
{
	struct plan p = PLAN_INIT;
	double sum = 0;
	size_t i;

	mixed_plan(m, n, &p);
	for (i = 0; i < m->space->n_ops; i++)
		sum += m->space->v[i].options[p.choice[i]].bytes;
	plan_release(&p);
	return sum;
}

/* As many steps as there is room for. What a model's file takes up beside weights is not known exactly. */
static enum fettle_status fill_room(const struct mix *m)
{
	enum { TRIES = 4 };
	struct score score = { .failed = true };
	struct plan p = PLAN_INIT;
	double room = search_size_room(m->s);
	enum fettle_status st = FETTLE_OK;
	size_t n = m->n, k;

	for (k = 0; k < TRIES && !st && score.failed; k++, room *= 0.985) {
		while (n && mixed_bytes(m, n) > room)
			n--;
		mixed_plan(m, n, &p);
		st = search_try(m->s, &p, &score);
	}
	plan_release(&p);
	return st;
}

enum fettle_status stage_mixed_bits(struct search *s)
{
	struct mix m = { .s = s, .space = search_space(s) };
	enum fettle_status st;

	search_stage(s, "mixed bits");
	plan_init(&m.base, m.space);
	st = price_forms(&m);
	if (!st && m.timed)
		st = drop_slow_forms(&m);
	search_stage(s, "mixed bits");
	if (!st && m.n_forms)
		st = make_steps(&m);
	if (!st && m.n_forms)
		st = search_size_room(s) > 0 ? fill_room(&m) : find_fewest(&m);
	mix_release(&m);
	return st;
}
