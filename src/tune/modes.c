#include "tune/modes_impl.h"

#include <math.h>
#include <stdlib.h>

#include "base/file.h"
#include "base/str.h"

enum { ROUNDS = 3 }; /* assignments that are profiled, at most: each corrects the next */
/* Plans are timed whose profile takes at most this many times the least. */
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

static bool was_profiled(const struct lab *l, const struct plan *p)
{
	size_t i;

	for (i = 0; i < l->modes->seen.n; i++)
		if (plan_equal(&l->modes->seen.v[i].plan, p, &l->t->space))
			return true;
	return false;
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
		if (m->place[i] >= 0 && mode_param(l, m->node[m->place[i]]) == MAP_NONE &&
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

/* The fastest by profiles. */
static enum fettle_status find_fastest(struct lab *l, const struct plan *from, bool within, size_t *first,
				       double *predicted, struct err *err)
{
	struct plan p = PLAN_INIT;
	enum fettle_status st = FETTLE_OK;
	size_t i, round;
	double least = INFINITY, start = clock_now();

	if (!l->modes->place)
		st = measure_modes(l, from, err);
	*first = within ? l->modes->seen.n : 0; /* what was profiled before may have more in integers */
	for (round = 0; round < ROUNDS && !st && !(round && clock_now() - start > l->pass_seconds); round++) {
		double converting = solve_modes(l, from, within, &p);

		if (!plan_n_quantized(&p, &l->t->space) || was_profiled(l, &p))
			break;
		st = profile_plan(l, &p, converting, err);
	}
	for (i = *first; i < l->modes->seen.n && !st; i++) {
		const struct profiled *seen = &l->modes->seen.v[i];

		if (seen->seconds < least && mode_share(l, &seen->plan) >= least_share(l, from)) {
			least = seen->seconds;
			*predicted = seen->seconds / l->modes->original;
		}
	}
	plan_release(&p);
	return st;
}

/* Profiles are not taken in turns: of those that are nearly as fast, the one that is when it is timed against the others. */
static enum fettle_status confirm(struct lab *l, const struct plan *from, size_t first, struct plan *out,
				  double *predicted, struct err *err)
{
	struct trial best = { .latency = NAN }, t = { .latency = NAN };
	const double limit = NEARLY * *predicted * l->modes->original;
	double scale = 1 / l->modes->original; /* from profiles to shares of fp32's latency */
	enum fettle_status st;
	size_t i;

	if (isnan(*predicted))
		return FETTLE_OK;
	plan_copy(&best.plan, from);
	st = lab_objective(l, &best, NULL, &best.score.objective, err);
	plan_copy(out, from);
	*predicted = NAN;
	for (i = 0; i < l->modes->seen.n && !st; i++)
		if (plan_equal(&l->modes->seen.v[i].plan, from, &l->t->space)) {
			*predicted = scale * l->modes->seen.v[i].seconds;
			scale = best.score.objective / l->modes->seen.v[i].seconds; /* one is measured now */
		}
	for (i = first; i < l->modes->seen.n && !st; i++) {
		const struct profiled *seen = &l->modes->seen.v[i];

		if (seen->seconds > limit || mode_share(l, &seen->plan) < least_share(l, from) ||
		    plan_equal(&seen->plan, &best.plan, &l->t->space))
			continue;
		plan_copy(&t.plan, &seen->plan);
		st = lab_objective(l, &t, &best, &t.score.objective, err);
		if (st || !(t.score.objective < best.score.objective))
			continue;
		plan_copy(&best.plan, &t.plan);
		best.score.objective = t.score.objective;
		plan_copy(out, &t.plan);
		*predicted = scale * seen->seconds;
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
	enum fettle_status st = FETTLE_OK;
	size_t first;
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
		st = find_fastest(l, from, within, &first, predicted, err);
		l->times = before;
		l->times.rank += clock_now() - start;
		if (!st)
			st = confirm(l, from, first, out, predicted, err);
		if (!st)
			st = keep_answer(l, key, out, *predicted, err);
	}
	if (!st)
		note_answer(l, from, out, *predicted);
	free(key);
	return st;
}
