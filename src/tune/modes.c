#include "tune/modes_impl.h"

#include <math.h>
#include <stdlib.h>

#include "base/file.h"
#include "base/str.h"

enum { ROUNDS = 3 }; /* assignments that are profiled, at most: each corrects the next */
/* Plans are candidates whose profile takes at most this many times the least. */
#define NEARLY 1.15

void modes_free(struct modes *m)
{
	size_t i;

	if (!m)
		return;
	for (i = 0; i < ASSIGN_MODES; i++)
		free(m->seconds[i]);
	for (i = 0; i < m->seen.n; i++)
		plan_release(&m->seen.v[i].plan);
	plan_release(&m->fastest);
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

/* The seconds of a plan by its profile; NAN: it was not profiled. */
static double profiled_seconds(const struct lab *l, const struct plan *p)
{
	size_t i;

	for (i = 0; i < l->modes->seen.n; i++)
		if (plan_equal(&l->modes->seen.v[i].plan, p, &l->t->space))
			return l->modes->seen.v[i].seconds;
	return NAN;
}

static bool was_profiled(const struct lab *l, const struct plan *p)
{
	return !isnan(profiled_seconds(l, p));
}

/* Profiles a plan; what each of its ops took in the mode it has counts from here on. */
static enum fettle_status profile_plan(struct lab *l, const struct plan *p, double predicted_converting,
				       struct err *err)
{
	struct modes *m = l->modes;
	struct mode_profile now = { .total = 0 };
	struct profiled seen = { PLAN_INIT, 0 };
	struct model *model;
	enum fettle_status st = lab_model(l, p, WEIGHTS_ANY, &model, err);
	size_t i;

	if (!st)
		st = mode_profile(l, model, &now, err);
	for (i = 0; i < l->t->space.n_ops && !st; i++) {
		enum option_mode o = l->t->space.v[i].options[p->choice[i]].mode;
		size_t node = l->t->node[i], k;
		enum assign_mode mode = o == OPTION_FP32      ? ASSIGN_FP32
					: o == OPTION_DYNAMIC ? ASSIGN_DYNAMIC
							      : ASSIGN_STATIC;

		for (k = 0; k < l->s->m->nodes.n; k++)
			if (k == node || (m->place[node] >= 0 && m->place[k] == m->place[node]))
				m->seconds[mode][k] = now.seconds[k];
	}
	for (i = 0; i < l->s->m->nodes.n && !st; i++)
		if (m->place[i] >= 0 && tuning_param(l->t, m->node[m->place[i]]) == MAP_NONE &&
		    now.seconds[i] > 0 && !m->seen.n)
			m->seconds[ASSIGN_STATIC][i] = now.seconds[i];
	if (!st && predicted_converting > 0)
		m->factor *= sqrt(fmin(fmax(now.converting / predicted_converting, 0.1), 10));
	if (!st) {
		plan_copy(&seen.plan, p);
		seen.seconds = now.total;
		VEC_PUSH(&m->seen, seen);
	}
	free(now.seconds);
	return st;
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
	struct mode_profile fp32 = { .total = 0 };
	struct plan p = PLAN_INIT;
	enum fettle_status st;
	size_t i;

	m->factor = 1;
	for (i = 0; i < ASSIGN_MODES; i++)
		m->seconds[i] = xcalloc(l->s->m->nodes.n + 1, sizeof(double));
	find_mode_ops(l);
	st = mode_profile(l, l->s->m, &fp32, err);
	m->fp32 = fp32.total;
	for (i = 0; i < l->s->m->nodes.n && !st; i++)
		m->seconds[ASSIGN_FP32][i] = m->seconds[ASSIGN_STATIC][i] = fp32.seconds[i];
	free(fp32.seconds);
	all_in(l, from, ASSIGN_STATIC, &p);
	if (!st && plan_n_quantized(&p, &l->t->space))
		st = profile_plan(l, &p, 0, err);
	all_in(l, from, ASSIGN_DYNAMIC, &p);
	if (!st && plan_n_quantized(&p, &l->t->space) && !was_profiled(l, &p))
		st = profile_plan(l, &p, 0, err);
	plan_release(&p);
	return st;
}

/* ---- candidates ---- */

struct candidates {
	VEC(struct plan) v;
};

static void candidates_release(struct candidates *c)
{
	size_t i;

	for (i = 0; i < c->v.n; i++)
		plan_release(&c->v.v[i]);
	VEC_RELEASE(&c->v);
}

static void add_candidate(const struct lab *l, const struct plan *from, const struct plan *p,
			  struct candidates *c)
{
	struct plan copy = PLAN_INIT;
	size_t i;

	if (!plan_n_quantized(p, &l->t->space) || mode_share(l, p) < least_share(l, from))
		return;
	for (i = 0; i < c->v.n; i++)
		if (plan_equal(&c->v.v[i], p, &l->t->space))
			return;
	plan_copy(&copy, p);
	VEC_PUSH(&c->v, copy);
}

/* What comes first reads floats, and images have few channels: often faster in fp32, by little more than noise. */
static void add_without_first(const struct lab *l, const struct plan *from, const struct plan *p,
			      struct candidates *c)
{
	struct plan q = PLAN_INIT;
	size_t i;

	for (i = 0; i < l->t->space.n_ops && !l->t->space.v[i].compute; i++)
		;
	if (i == l->t->space.n_ops || !plan_can_fall_back(p, &l->t->space, i))
		return;
	plan_copy(&q, p);
	q.choice[i] = l->t->space.v[i].fallback;
	add_candidate(l, from, &q, c);
	plan_release(&q);
}

/* Assignments by prices as they are, corrected by a profile of each; and what they would be if conversions cost more or less. */
static enum fettle_status find_candidates(struct lab *l, const struct plan *from, bool within,
					  struct candidates *c, struct err *err)
{
	static const double factors[] = { 0.4, 2.5, 6 };
	struct modes *m = l->modes;
	struct plan p = PLAN_INIT;
	enum fettle_status st = FETTLE_OK;
	const double start = clock_now();
	double least = INFINITY;
	size_t i, first, round;

	if (!m->place)
		st = measure_modes(l, from, err);
	first = within ? m->seen.n : 0; /* what was profiled before may have more in integers */
	for (round = 0; round < ROUNDS && !st && !(round && clock_now() - start > l->pass_seconds); round++) {
		double converting = solve_modes(l, from, within, &p);

		if (!plan_n_quantized(&p, &l->t->space) || was_profiled(l, &p))
			break;
		st = profile_plan(l, &p, converting, err);
	}
	for (i = first; i < m->seen.n && !st; i++)
		if (mode_share(l, &m->seen.v[i].plan) >= least_share(l, from))
			least = fmin(least, m->seen.v[i].seconds);
	for (i = first; i < m->seen.n && !st; i++)
		if (m->seen.v[i].seconds <= NEARLY * least)
			add_candidate(l, from, &m->seen.v[i].plan, c);
	for (i = 0; i < ARRAY_LEN(factors) && !st; i++) {
		const double factor = m->factor;

		m->factor = factor * factors[i];
		solve_modes(l, from, within, &p);
		add_candidate(l, from, &p, c);
		m->factor = factor;
	}
	if (!st)
		add_without_first(l, from, from, c);
	plan_release(&p);
	return st;
}

/* Profiles are not taken in turns: the candidate that is fastest when they are timed against each other, or `from`. */
static enum fettle_status race_candidates(struct lab *l, const struct plan *from, const struct candidates *c,
					  struct plan *out, double *predicted, struct err *err)
{
	struct trial best = { .latency = NAN }, t = { .latency = NAN };
	double scale = 1 / l->modes->original; /* from profiles to shares of fp32's latency */
	enum fettle_status st;
	size_t i;

	plan_copy(&best.plan, from);
	st = lab_objective(l, &best, NULL, &best.score.objective, err);
	if (!st && profiled_seconds(l, from) > 0)
		scale = best.score.objective / profiled_seconds(l, from); /* of one plan both are known */
	for (i = 0; i < c->v.n && !st; i++) {
		if (plan_equal(&c->v.v[i], &best.plan, &l->t->space))
			continue;
		plan_copy(&t.plan, &c->v.v[i]);
		st = lab_objective(l, &t, &best, &t.score.objective, err);
		if (st || !(t.score.objective < best.score.objective))
			continue;
		plan_copy(&best.plan, &t.plan);
		best.score.objective = t.score.objective;
	}
	if (!st && !was_profiled(l, &best.plan))
		st = profile_plan(l, &best.plan, 0, err);
	if (!st) {
		plan_copy(out, &best.plan);
		if (plan_equal(out, from, &l->t->space))
			scale = 1 / l->modes->original;
		*predicted = scale * profiled_seconds(l, out);
	}
	plan_release(&best.plan);
	plan_release(&t.plan);
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

enum fettle_status lab_fastest(void *self, const struct plan *from, bool within, struct plan *out,
			       double *predicted, struct err *err)
{
	struct lab *l = self;
	struct lab_times before = l->times;
	const double *w = l->o.weights, start = clock_now();
	struct candidates c = { { NULL, 0, 0 } };
	enum fettle_status st = FETTLE_OK;
	char *key;

	*predicted = NAN;
	plan_copy(out, from);
	if (!(w[LAB_LATENCY] > 0) && (w[LAB_SIZE] > 0 || w[LAB_FOOTPRINT] > 0))
		return FETTLE_OK;
	if (!l->modes) {
		l->modes = xcalloc(1, sizeof(*l->modes));
		l->modes->slower = xcalloc(l->s->m->nodes.n + 1, sizeof(bool));
	}
	key = answer_key(l, from, within);
	if (!known_answer(l, key, out, predicted)) {
		st = find_candidates(l, from, within, &c, err);
		l->times = before;
		l->times.rank += clock_now() - start;
		if (!st && c.v.n)
			st = race_candidates(l, from, &c, out, predicted, err);
		candidates_release(&c);
		if (!st)
			st = keep_answer(l, key, out, *predicted, err);
	}
	if (!st)
		note_answer(l, from, out, *predicted);
	free(key);
	return st;
}
