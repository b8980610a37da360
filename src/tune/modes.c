#include "tune/modes_impl.h"

#include <math.h>
#include <stdlib.h>

#include "base/file.h"
#include "base/str.h"

enum { ROUNDS = 3 }; /* assignments that are profiled, at most: each corrects the next */
/* No other once they have taken this share of an evaluation. */
#define ROUNDS_SHARE 0.5
/* Plans are candidates whose profile takes at most this many times the least. */
#define NEARLY 1.15
/* What is faster than fp32 for certain takes less than this share of its time. */
#define CLEARLY 0.98
/* Evaluations that timing all candidates may take; two are timed in any case, and all until one is faster than fp32. */
#define RACE_SHARE 0.5
/* The last comparison: its share of an evaluation, if that is so many seconds, of plans that differ by no more than this. */
#define FINAL_SHARE 0.15
#define FINAL_SECONDS 0.1
#define FINAL_NEARLY 1.05

void modes_free(struct modes *m)
{
	size_t i;

	if (!m)
		return;
	for (i = 0; i < ASSIGN_MODES; i++)
		free(m->seconds[i]);
	for (i = 0; i < m->seen.n; i++) {
		plan_release(&m->seen.v[i].plan);
		free(m->seen.v[i].p.seconds);
	}
	plan_release(&m->fastest);
	free(m->fp32.seconds);
	free(m->slower);
	free(m->place);
	free(m->node);
	VEC_RELEASE(&m->values);
	VEC_RELEASE(&m->readers);
	VEC_RELEASE(&m->elements);
	VEC_RELEASE(&m->images);
	VEC_RELEASE(&m->seen);
	free(m);
}

static struct modes *modes_of(struct lab *l)
{
	if (!l->modes) {
		l->modes = xcalloc(1, sizeof(*l->modes));
		l->modes->slower = xcalloc(l->s->m->nodes.n + 1, sizeof(bool));
	}
	return l->modes;
}

/* ---- profiles ---- */

/* The profile of a plan; NULL: it has none. */
static const struct mode_profile *profile_of(const struct lab *l, const struct plan *p)
{
	size_t i;

	for (i = 0; i < l->modes->seen.n; i++)
		if (plan_equal(&l->modes->seen.v[i].plan, p, &l->t->space))
			return &l->modes->seen.v[i].p;
	return NULL;
}

static enum fettle_status profile_fp32(struct lab *l, struct err *err)
{
	struct modes *m = l->modes;
	enum fettle_status st;

	if (m->fp32.seconds)
		return FETTLE_OK;
	st = mode_profile(l, l->s->m, &m->fp32, err);
	return st ? st : time_original(l, &m->original, err);
}

static enum fettle_status profile_new(struct lab *l, const struct plan *p, struct err *err)
{
	struct profiled now = { PLAN_INIT, { .total = 0 } };
	struct model *model;
	enum fettle_status st = lab_model(l, p, WEIGHTS_ANY, &model, err);

	if (!st)
		st = mode_profile(l, model, &now.p, err);
	if (st) {
		free(now.p.seconds);
		return st;
	}
	plan_copy(&now.plan, p);
	VEC_PUSH(&l->modes->seen, now);
	return FETTLE_OK;
}

enum fettle_status modes_profiles(struct lab *l, const struct plan *p, struct mode_profile *fp32,
				  struct mode_profile *of_plan, struct err *err)
{
	struct modes *m = modes_of(l);
	enum fettle_status st = profile_fp32(l, err);

	if (!st && !profile_of(l, p))
		st = profile_new(l, p, err);
	if (!st) {
		*fp32 = m->fp32;
		*of_plan = *profile_of(l, p);
	}
	return st;
}

static enum assign_mode mode_in(const struct lab *l, const struct plan *p, size_t param)
{
	enum option_mode o = l->t->space.v[param].options[p->choice[param]].mode;

	return o == OPTION_FP32 ? ASSIGN_FP32 : o == OPTION_DYNAMIC ? ASSIGN_DYNAMIC : ASSIGN_STATIC;
}

/* Profiles a plan; what each of its ops took in the mode it has counts from here on. */
static enum fettle_status profile_plan(struct lab *l, const struct plan *p, double predicted_converting,
				       struct err *err)
{
	struct modes *m = l->modes;
	const bool first = !m->seen.n;
	const struct mode_profile *now;
	enum fettle_status st = profile_new(l, p, err);
	size_t i, k;

	if (st)
		return st;
	now = profile_of(l, p);
	for (i = 0; i < l->t->space.n_ops; i++) {
		enum assign_mode mode = mode_in(l, p, i);
		size_t node = l->t->node[i];

		for (k = 0; k < l->s->m->nodes.n; k++)
			if (k == node || (m->place[node] >= 0 && m->place[k] == m->place[node]))
				m->seconds[mode][k] = now->seconds[k];
	}
	for (i = 0; i < l->s->m->nodes.n && first; i++)
		if (m->place[i] >= 0 && tuning_param(l->t, m->node[m->place[i]]) == MAP_NONE &&
		    now->seconds[i] > 0)
			m->seconds[ASSIGN_STATIC][i] = now->seconds[i];
	if (predicted_converting > 0)
		m->factor *= sqrt(fmin(fmax(mode_converting(now) / predicted_converting, 0.1), 10));
	return FETTLE_OK;
}

/* all ops in one mode, as far as they can be */
static void all_in(const struct lab *l, const struct plan *from, enum assign_mode mode, struct plan *out)
{
	size_t i;

	plan_copy(out, from);
	for (i = 0; i < l->t->space.n_ops; i++) {
		unsigned o = mode_option(l, i, from, false, mode);

		if (o == NO_OPTION && has_mode_choice(l, l->t->node[i]))
			o = l->t->space.v[i].fallback;
		if (o != NO_OPTION)
			out->choice[i] = (uint16_t)o;
	}
}

static enum fettle_status measure_modes(struct lab *l, const struct plan *from, struct err *err)
{
	struct modes *m = l->modes;
	struct plan p = PLAN_INIT;
	enum fettle_status st = profile_fp32(l, err);
	size_t i;

	m->factor = 1;
	for (i = 0; i < ASSIGN_MODES; i++)
		m->seconds[i] = xcalloc(l->s->m->nodes.n + 1, sizeof(double));
	find_mode_ops(l);
	for (i = 0; i < l->s->m->nodes.n && !st; i++)
		m->seconds[ASSIGN_FP32][i] = m->seconds[ASSIGN_STATIC][i] = m->fp32.seconds[i];
	all_in(l, from, ASSIGN_STATIC, &p);
	if (!st && plan_n_quantized(&p, &l->t->space))
		st = profile_plan(l, &p, 0, err);
	all_in(l, from, ASSIGN_DYNAMIC, &p);
	if (!st && plan_n_quantized(&p, &l->t->space) && !profile_of(l, &p))
		st = profile_plan(l, &p, 0, err);
	plan_release(&p);
	return st;
}

/* ---- candidates ---- */

struct candidate {
	struct plan plan;
	double seconds; /* by its profile, or as predicted; INFINITY: not known */
};

struct candidates {
	VEC(struct candidate) v;
};

static void candidates_release(struct candidates *c)
{
	size_t i;

	for (i = 0; i < c->v.n; i++)
		plan_release(&c->v.v[i].plan);
	VEC_RELEASE(&c->v);
}

static void add_candidate(const struct lab *l, const struct plan *from, const struct plan *p, double seconds,
			  struct candidates *c)
{
	struct candidate new = { PLAN_INIT, seconds };
	size_t i;

	if (!plan_n_quantized(p, &l->t->space) || mode_share(l, p) < least_share(l, from))
		return;
	for (i = 0; i < c->v.n; i++)
		if (plan_equal(&c->v.v[i].plan, p, &l->t->space))
			return;
	plan_copy(&new.plan, p);
	VEC_PUSH(&c->v, new);
}

/* What comes first reads floats, and images have few channels: often faster in fp32, by little more than noise. */
static void add_without_first(const struct lab *l, const struct plan *from, double seconds,
			      struct candidates *c)
{
	struct plan q = PLAN_INIT;
	size_t i;

	for (i = 0; i < l->t->space.n_ops && !l->t->space.v[i].compute; i++)
		;
	if (i == l->t->space.n_ops || !plan_can_fall_back(from, &l->t->space, i))
		return;
	plan_copy(&q, from);
	q.choice[i] = l->t->space.v[i].fallback;
	add_candidate(l, from, &q, seconds, c);
	plan_release(&q);
}

static int by_seconds(const void *a, const void *b)
{
	const struct candidate *x = a, *y = b;

	return (x->seconds > y->seconds) - (x->seconds < y->seconds);
}

/* Assignments by prices as they are, each corrected by its profile: what is profiled last is the answer, if prices are right. */
static enum fettle_status profile_assignments(struct lab *l, const struct plan *from, bool within,
					      struct err *err)
{
	const double start = clock_now();
	struct plan p = PLAN_INIT;
	enum fettle_status st = FETTLE_OK;
	size_t round;

	for (round = 0;
	     round < ROUNDS && !st && !(round && clock_now() - start > ROUNDS_SHARE * l->pass_seconds);
	     round++) {
		struct mode_price price = solve_modes(l, from, within, (struct mode_wish){ 1, false }, &p);

		if (!plan_n_quantized(&p, &l->t->space) || profile_of(l, &p))
			break;
		st = profile_plan(l, &p, price.converting, err);
	}
	plan_release(&p);
	return st;
}

/* What was profiled; and what the assignment would be if conversions cost more or less. Those that seem fastest first. */
static enum fettle_status find_candidates(struct lab *l, const struct plan *from, bool within,
					  struct candidates *c, struct err *err)
{
	static const struct mode_wish wishes[] = {
		{ 1, false }, { 0.4, false }, { 2.5, false }, { 6, false }, { 1, true }
	};
	struct modes *m = l->modes;
	struct plan p = PLAN_INIT;
	double least = INFINITY, best = NAN;
	enum fettle_status st = FETTLE_OK;
	size_t i, first;

	if (!m->place)
		st = measure_modes(l, from, err);
	first = within ? m->seen.n : 0; /* what was profiled before may have more in integers */
	if (!st)
		st = profile_assignments(l, from, within, err);
	if (st)
		return st;
	for (i = first; i < m->seen.n; i++) {
		add_candidate(l, from, &m->seen.v[i].plan, m->seen.v[i].p.total, c);
		if (mode_share(l, &m->seen.v[i].plan) >= least_share(l, from))
			least = fmin(least, m->seen.v[i].p.total);
	}
	for (i = 0; i < ARRAY_LEN(wishes); i++) {
		struct mode_price price;

		if (wishes[i].least && least < CLEARLY * m->fp32.total)
			continue;
		price = solve_modes(l, from, within, wishes[i], &p);
		if (!i)
			best = price.ops + price.converting;
		add_candidate(l, from, &p, least + price.ops + price.converting - best, c);
	}
	if (within) /* it was timed already */
		add_candidate(l, from, from, profile_of(l, from) ? profile_of(l, from)->total : least, c);
	else if (profile_of(l, from))
		add_without_first(l, from, profile_of(l, from)->total, c);
	for (i = 0; i < c->v.n;)
		if (c->v.v[i].seconds <= NEARLY * least || !isfinite(least)) {
			i++;
		} else {
			plan_release(&c->v.v[i].plan);
			c->v.v[i] = c->v.v[--c->v.n];
		}
	qsort(c->v.v, c->v.n, sizeof(*c->v.v), by_seconds);
	plan_release(&p);
	return st;
}

/* A candidate that was timed. */
struct timed {
	struct trial t;
	double seconds; /* as the candidate has them */
};

/* Both what turns and what profiles say counts: on a busy machine each is off by more than near-equal plans differ. */
static bool is_faster(const struct timed *a, const struct timed *b)
{
	double ratio = a->t.score.objective / b->t.score.objective;

	if (isfinite(a->seconds) && isfinite(b->seconds))
		ratio *= ratio * a->seconds / b->seconds;
	return ratio < 1;
}

static void timed_copy(struct timed *to, const struct timed *from)
{
	plan_copy(&to->t.plan, &from->t.plan);
	to->t.score.objective = from->t.score.objective;
	to->seconds = from->seconds;
}

/* The two that are fastest are timed once more, for longer, if they are nearly equal and an evaluation takes long enough. */
static enum fettle_status decide(struct lab *l, struct timed *best, const struct timed *second,
				 struct err *err)
{
	const struct latency_limits limits = { .seconds = fmin(FINAL_SHARE * l->pass_seconds, 1),
					       .equal = LATENCY_EQUAL };
	struct latency times[2];
	enum fettle_status st;

	if (!second->t.plan.n || limits.seconds < FINAL_SECONDS ||
	    second->t.score.objective > FINAL_NEARLY * best->t.score.objective)
		return FETTLE_OK;
	st = lab_time(l, &second->t.plan, &best->t.plan, 0, &limits, times, err);
	if (!st && times[1].speedup.value > 1)
		timed_copy(best, second);
	return st;
}

/* Profiles are not taken in turns: the candidate that is fastest when they are timed against each other. */
static enum fettle_status race_candidates(struct lab *l, const struct candidates *c, struct plan *out,
					  double *predicted, struct err *err)
{
	const struct modes *m = l->modes;
	const double start = clock_now(), fp32 = m->original > 0 ? m->original : m->fp32.total,
		     faster = CLEARLY * m->fp32.total / fp32;
	struct timed best = { .seconds = NAN }, second = { .seconds = NAN }, now = { .seconds = NAN };
	enum fettle_status st = FETTLE_OK;
	size_t i;

	for (i = 0; i < c->v.n && !st; i++) {
		if (i > 1 && best.t.score.objective < faster &&
		    clock_now() - start > RACE_SHARE * l->pass_seconds)
			break;
		plan_copy(&now.t.plan, &c->v.v[i].plan);
		now.seconds = c->v.v[i].seconds;
		st = lab_objective(l, &now.t, i ? &best.t : NULL, &now.t.score.objective, err);
		if (st)
			break;
		if (!i || is_faster(&now, &best)) {
			if (i)
				timed_copy(&second, &best);
			timed_copy(&best, &now);
		} else if (!second.t.plan.n || is_faster(&now, &second)) {
			timed_copy(&second, &now);
		}
	}
	if (!st)
		st = decide(l, &best, &second, err);
	if (!st) {
		plan_copy(out, &best.t.plan);
		*predicted = isfinite(best.seconds) ? best.seconds / fp32 : NAN;
	}
	plan_release(&best.t.plan);
	plan_release(&second.t.plan);
	plan_release(&now.t.plan);
	return st;
}

/* ---- what the history keeps of it ---- */

static char *answer_key(const struct lab *l, const struct plan *from, bool within)
{
	char hash[FINGERPRINT_LEN];

	plan_hash(from, &l->t->space, hash);
	return xstrfmt("fastest%s of %s", within ? " within" : "", hash);
}

static bool known_answer(struct lab *l, const char *key, struct plan *out, double *predicted)
{
	char *text = NULL, *plan;
	struct err ignored;
	bool known = false;

	if (l->history && !history_meta(l->history, key, &text, NULL) && text) {
		*predicted = strtod(text, &plan);
		known = *plan == ' ' && !plan_read(out, &l->t->space, plan + 1, "of the history", &ignored);
	}
	free(text);
	return known;
}

static enum fettle_status keep_answer(struct lab *l, const char *key, const struct plan *p, double predicted,
				      struct err *err)
{
	char *plan = plan_text(p, &l->t->space), *text = xstrfmt("%.17g %s", predicted, plan);
	enum fettle_status st = l->history ? history_set_meta(l->history, key, text, err) : FETTLE_OK;

	free(text);
	free(plan);
	return st;
}

static void note_answer(struct lab *l, const struct plan *from, const struct plan *p, double predicted)
{
	struct modes *m = l->modes;
	size_t i;

	plan_copy(&m->fastest, p);
	m->predicted = 1 / predicted;
	for (i = 0; i < l->t->space.n_ops; i++)
		m->slower[l->t->node[i]] |=
			plan_is_quantized(from, &l->t->space, i) && !plan_is_quantized(p, &l->t->space, i);
}

bool modes_slower(const struct modes *m, size_t node)
{
	return m && m->slower[node];
}

double modes_predicted(const struct lab *l, const struct plan *p)
{
	const struct space *space = &l->t->space;
	size_t i;

	if (!l->modes || !l->modes->fastest.n)
		return NAN;
	for (i = 0; i < space->n_ops; i++)
		if (space->v[i].options[p->choice[i]].mode !=
		    space->v[i].options[l->modes->fastest.choice[i]].mode)
			return NAN;
	return l->modes->predicted;
}

/* of which the profiles of static and dynamic ops say nothing */
static bool has_weight_only(const struct lab *l, const struct plan *p)
{
	size_t i;

	for (i = 0; i < l->t->space.n_ops; i++)
		if (l->t->space.v[i].options[p->choice[i]].mode == OPTION_WEIGHT)
			return true;
	return false;
}

enum fettle_status lab_fastest(void *self, const struct plan *from, bool within, struct plan *out,
			       struct err *err)
{
	struct lab *l = self;
	struct lab_times before = l->times;
	const double *w = l->o.weights, start = clock_now();
	struct candidates c = { { NULL, 0, 0 } };
	double predicted = NAN;
	enum fettle_status st = FETTLE_OK;
	char *key;

	plan_copy(out, from);
	if ((!(w[LAB_LATENCY] > 0) && (w[LAB_SIZE] > 0 || w[LAB_FOOTPRINT] > 0)) || has_weight_only(l, from))
		return FETTLE_OK;
	modes_of(l);
	key = answer_key(l, from, within);
	if (!known_answer(l, key, out, &predicted)) {
		st = find_candidates(l, from, within, &c, err);
		l->times = before;
		l->times.rank += clock_now() - start;
		if (!st && c.v.n)
			st = race_candidates(l, &c, out, &predicted, err);
		candidates_release(&c);
		if (!st)
			st = keep_answer(l, key, out, predicted, err);
	}
	if (!st)
		note_answer(l, from, out, predicted);
	free(key);
	return st;
}
