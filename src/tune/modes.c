#include "tune/modes_impl.h"

#include <math.h>
#include <stdlib.h>

#include "base/file.h"
#include "base/str.h"
#include "tune/worker.h"

/* The share of the fp32 model's time that conversions can take without meaning much. */
#define CONVERTING_LITTLE 0.05
/* The share of it that ops which may be dynamic take at least to be worth a profile: no more than half of it can be gained. */
#define DYNAMIC_LITTLE 0.04
/* As long as the fastest plan takes more than this share of it, the result may be one that needs next to no calibration. */
#define GAINED_LITTLE 0.9

/*
 * Profiles were taken on a busy machine, which slows integers down more than floats, if a plan is so many times as fast as they predict
 * (undisturbed ones are right within 6 %), or if the fp32 model took so many times as long then as its shortest run.
 */
#define FASTER_THAN_PREDICTED 1.06
#define SLOWER_THAN_SHORTEST 1.1
#define DOUBTED_NAME "the profiles were taken again"

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
	plan_release(&m->ranked);
	free(m->errors);
	free(m->fp32.seconds);
	free(m->slower);
	free(m->blocked);
	free(m->apart);
	free(m->within);
	free(m->place);
	free(m->node);
	VEC_RELEASE(&m->values);
	VEC_RELEASE(&m->readers);
	VEC_RELEASE(&m->elements);
	VEC_RELEASE(&m->layouts);
	VEC_RELEASE(&m->sums);
	VEC_RELEASE(&m->floats);
	VEC_RELEASE(&m->names);
	VEC_RELEASE(&m->pairs);
	VEC_RELEASE(&m->seen);
	free(m);
}

struct modes *modes_of(struct lab *l)
{
	if (!l->modes) {
		l->modes = xcalloc(1, sizeof(*l->modes));
		l->modes->slower = xcalloc(l->s->m->nodes.n + 1, sizeof(bool));
		l->modes->blocked = xcalloc(l->s->m->nodes.n + 1, sizeof(bool));
		l->modes->apart = xcalloc(l->s->g.n + 1, sizeof(bool));
		l->modes->within = xcalloc(l->s->g.n + 1, sizeof(bool));
	}
	return l->modes;
}

/* ---- profiles ---- */

const struct profiled *seen_of(const struct lab *l, const struct plan *p)
{
	size_t i;

	for (i = 0; i < l->modes->seen.n; i++)
		if (plan_equal(&l->modes->seen.v[i].plan, p, &l->t->space))
			return &l->modes->seen.v[i];
	return NULL;
}

const struct mode_profile *profile_of(const struct lab *l, const struct plan *p)
{
	const struct profiled *seen = seen_of(l, p);

	return seen ? &seen->p : NULL;
}

enum fettle_status profile_fp32(struct lab *l, struct err *err)
{
	struct modes *m = l->modes;
	struct session *s = NULL;
	enum fettle_status st;

	if (m->fp32.seconds)
		return FETTLE_OK;
	st = mode_profile(l, l->s->m, &m->fp32, &s, err);
	timing_take_rewritten(l, s);
	return st ? st : time_original(l, &m->original, err);
}

static const struct profiled *fastest_seen(const struct modes *m)
{
	size_t i, best = 0;

	for (i = 1; i < m->seen.n; i++)
		if (m->seen.v[i].p.total < m->seen.v[best].p.total)
			best = i;
	return &m->seen.v[best];
}

enum lab_weights modes_weights(const struct lab *l)
{
	const struct modes *m = l->modes;

	return m && m->fp32.seconds && !m->calibrate &&
			       (!m->seen.n || fastest_seen(m)->p.total >= GAINED_LITTLE * m->fp32.total)
		       ? RANGES_ANY
		       : WEIGHTS_ANY;
}

bool needs_calibration(struct lab *l, enum fettle_status st)
{
	const bool needs = modes_weights(l) == RANGES_ANY && (st == FETTLE_BACKEND || st == FETTLE_INVALID);

	l->modes->calibrate |= needs;
	return needs;
}

static enum fettle_status profile_with(struct lab *l, const struct plan *p, enum lab_weights weights,
				       struct mode_profile *out, struct err *err)
{
	struct session *s = NULL;
	struct model *model;
	enum fettle_status st = lab_model(l, p, weights, &model, err);
	const double start = clock_now();

	if (!st)
		st = mode_profile(l, model, out, &s, err);
	l->modes->profiling = clock_now() - start;
	if (!st)
		lab_take_session(l, p, s);
	if (st)
		free(out->seconds);
	return st;
}

static enum fettle_status profile_new(struct lab *l, const struct plan *p, struct err *err)
{
	struct profiled now = { PLAN_INIT, { .total = 0 }, NAN };
	enum fettle_status st = profile_with(l, p, modes_weights(l), &now.p, err);

	if (needs_calibration(l, st)) {
		now.p = (struct mode_profile){ .total = 0 };
		st = profile_with(l, p, WEIGHTS_AS_PLANNED, &now.p, err);
	}
	if (st)
		return st;
	plan_copy(&now.plan, p);
	now.ratio = l->modes->ratio;
	VEC_PUSH(&l->modes->seen, now);
	return FETTLE_OK;
}

enum fettle_status modes_profiles(struct lab *l, const struct plan *p, struct mode_profile *fp32,
				  struct mode_profile *of_plan, double *share, struct err *err)
{
	struct modes *m = modes_of(l);
	const struct profiled *is;
	enum fettle_status st = profile_fp32(l, err);

	if (!st && !m->seen.n)
		st = profile_new(l, p, err);
	if (st)
		return st;
	is = seen_of(l, p) ? seen_of(l, p) : fastest_seen(m);
	*fp32 = m->fp32;
	*of_plan = is->p;
	*share = seen_of(l, p) ? NAN : mode_share(l, &is->plan);
	return FETTLE_OK;
}

bool modes_gain_nothing(const struct lab *l, const struct plan *p)
{
	const struct modes *m = l->modes;

	return m && m->fastest.n && m->answer.saves <= 0 && plan_equal(&m->fastest, p, &l->t->space);
}

/* The lines know of the profile already. Where conversions take next to nothing, a factor would say nothing about others. */
static void correct_factor(struct lab *l, const struct plan *p, double converting)
{
	struct modes *m = l->modes;
	const double little = CONVERTING_LITTLE * m->fp32.total;

	m->factor = 1;
	m->factor = (converting + little) / (price_plan(l, p).converting + little);
}

enum fettle_status profile_plan(struct lab *l, const struct plan *p, bool assigned, struct err *err)
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
	charge_neighbours(l, p, now);
	find_within(l, p);
	for (i = 0; i < l->s->m->nodes.n && first; i++)
		if (m->place[i] >= 0 && tuning_param(l->t, m->node[m->place[i]]) == MAP_NONE &&
		    now->seconds[i] > 0)
			m->seconds[ASSIGN_STATIC][i] = now->seconds[i];
	for (i = 0; i < m->seen.n && m->seen.v[i].p.total >= now->total; i++)
		;
	if (i == m->seen.n) /* the fastest so far: others are timed against it */
		workers_keep(l->workers, p);
	if (assigned)
		correct_factor(l, p, mode_converting(l, now));
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

static void forget_profile(struct modes *m, const struct space *space, const struct plan *p)
{
	size_t i, n = 0;

	for (i = 0; i < m->seen.n; i++) {
		if (!plan_equal(&m->seen.v[i].plan, p, space)) {
			m->seen.v[n++] = m->seen.v[i];
			continue;
		}
		plan_release(&m->seen.v[i].plan);
		free(m->seen.v[i].p.seconds);
	}
	m->seen.n = n;
}

enum fettle_status profile_again(struct lab *l, const struct plan *p, bool assigned, struct err *err)
{
	forget_profile(l->modes, &l->t->space, p);
	return profile_plan(l, p, assigned, err);
}

enum fettle_status profile_static(struct lab *l, const struct plan *from, struct err *err)
{
	struct plan p = PLAN_INIT;
	enum fettle_status st = FETTLE_OK;

	all_in(l, from, ASSIGN_STATIC, &p);
	if (plan_n_quantized(&p, &l->t->space))
		st = profile_again(l, &p, false, err);
	plan_release(&p);
	return st;
}

static bool has_few_dynamic(const struct lab *l, const struct plan *from)
{
	double sum = 0;
	size_t i;

	for (i = 0; i < l->t->space.n_ops; i++)
		if (mode_option(l, i, from, false, ASSIGN_DYNAMIC) != NO_OPTION)
			sum += l->modes->fp32.seconds[l->t->node[i]];
	return sum < DYNAMIC_LITTLE * l->modes->fp32.total;
}

enum fettle_status measure_modes(struct lab *l, const struct plan *from, struct err *err)
{
	struct modes *m = l->modes;
	struct plan p = PLAN_INIT;
	enum fettle_status st = profile_fp32(l, err);
	size_t i;

	m->factor = 1;
	for (i = 0; i < ASSIGN_MODES; i++)
		m->seconds[i] = xcalloc(l->s->m->nodes.n + 1, sizeof(double));
	find_mode_ops(l);
	if (!st)
		st = measure_conversions(l, err);
	for (i = 0; i < l->s->m->nodes.n && !st; i++)
		m->seconds[ASSIGN_FP32][i] = m->seconds[ASSIGN_STATIC][i] = m->fp32.seconds[i];
	m->few_dynamic = !st && has_few_dynamic(l, from);
	if (!st)
		st = profile_static(l, from, err);
	all_in(l, from, ASSIGN_DYNAMIC, &p);
	if (!st && plan_n_quantized(&p, &l->t->space) && !profile_of(l, &p))
		st = profile_plan(l, &p, false, err);
	plan_release(&p);
	return st;
}

/* ---- what the history keeps of it ---- */

static char *answer_key(const struct lab *l, const struct plan *from, bool within)
{
	char hash[FINGERPRINT_LEN];

	plan_hash(from, &l->t->space, hash);
	return xstrfmt("fastest%s%s of %s", l->doubted ? " again" : "", within ? " within" : "", hash);
}

static bool known_answer(struct lab *l, const char *key, struct plan *out, struct mode_answer *answer)
{
	char *text = NULL, *plan;
	struct err ignored;
	bool known = false;

	if (l->history && !history_meta(l->history, key, &text, NULL) && text) {
		answer->predicted = strtod(text, &plan);
		answer->saves = strtod(plan, &plan);
		known = *plan == ' ' && !plan_read(out, &l->t->space, plan + 1, "of the history", &ignored);
	}
	free(text);
	return known;
}

static enum fettle_status keep_answer(struct lab *l, const char *key, const struct plan *p,
				      const struct mode_answer *answer, struct err *err)
{
	char *plan = plan_text(p, &l->t->space),
	     *text = xstrfmt("%.17g %.17g %s", answer->predicted, answer->saves, plan);
	enum fettle_status st = l->history ? history_set_meta(l->history, key, text, err) : FETTLE_OK;

	free(text);
	free(plan);
	return st;
}

static void note_answer(struct lab *l, const struct plan *from, const struct plan *p,
			const struct mode_answer *answer)
{
	struct modes *m = l->modes;
	size_t i;

	plan_copy(&m->fastest, p);
	m->answer = *answer;
	for (i = 0; i < l->t->space.n_ops; i++)
		m->slower[l->t->node[i]] |=
			plan_is_quantized(from, &l->t->space, i) && !plan_is_quantized(p, &l->t->space, i);
}

bool modes_slower(const struct modes *m, size_t node)
{
	return m && m->slower[node];
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

/* As it was when it was chosen; of a plan that differs from it in a few ops, by what their prices differ. */
double modes_predicted(struct lab *l, const struct plan *p)
{
	const struct modes *m = l->modes;
	double seconds;
	size_t i;

	if (!m || !m->fastest.n || has_weight_only(l, p))
		return NAN;
	for (i = 0; i < l->t->space.n_ops && mode_in(l, p, i) == mode_in(l, &m->fastest, i); i++)
		;
	if (i == l->t->space.n_ops || !m->place)
		return i == l->t->space.n_ops ? m->answer.predicted : NAN;
	seconds = m->original / m->answer.predicted + mode_seconds(l, p) - mode_seconds(l, &m->fastest);
	return seconds > 0 ? m->original / seconds : NAN;
}

double lab_saves(void *lab)
{
	const struct lab *l = lab;

	return lab_latency_alone(l) && l->modes && l->modes->fastest.n ? l->modes->answer.saves : INFINITY;
}

bool modes_doubtful(double predicted, double objective, double original, double shortest)
{
	return predicted * objective * FASTER_THAN_PREDICTED < 1 ||
	       (shortest > 0 && original > SLOWER_THAN_SHORTEST * shortest);
}

/* as the run that is resumed did */
static bool has_doubted(struct lab *l)
{
	char *text = NULL;
	const bool has = l->history && !history_meta(l->history, DOUBTED_NAME, &text, NULL) && text;

	free(text);
	return has;
}

bool lab_doubts_modes(void *lab, const struct plan *p, double objective)
{
	struct lab *l = lab;

	if (l->doubted || !lab_latency_alone(l) || !l->modes ||
	    (!has_doubted(l) &&
	     !modes_doubtful(modes_predicted(l, p), objective, l->modes->original, timing_fp32_run(l))))
		return false;
	if (l->history) /* a failure is the next trial's to report */
		(void)history_set_meta(l->history, DOUBTED_NAME, "yes", NULL);
	l->doubted = true;
	modes_free(l->modes);
	l->modes = NULL;
	return true;
}

bool lab_latency_counts(const struct lab *l)
{
	const double *w = l->o.weights;

	return w[LAB_LATENCY] > 0 || !(w[LAB_SIZE] > 0 || w[LAB_FOOTPRINT] > 0);
}

enum fettle_status lab_fastest(void *self, const struct plan *from, bool within, struct plan *out,
			       struct err *err)
{
	struct lab *l = self;
	struct mode_answer answer;
	enum fettle_status st = FETTLE_OK;
	char *key;

	plan_copy(out, from);
	if (!lab_latency_counts(l) || has_weight_only(l, from))
		return FETTLE_OK;
	modes_of(l);
	key = answer_key(l, from, within);
	if (!known_answer(l, key, out, &answer)) {
		lab_phase(l, "time ops");
		st = race_modes(l, from, within, out, &answer, err);
		lab_phase(l, LAB_TRIAL);
		if (!st)
			st = keep_answer(l, key, out, &answer, err);
	}
	if (!st && !(within && plan_equal(out, from, &l->t->space)))
		note_answer(l, from, out, &answer);
	free(key);
	return st;
}
