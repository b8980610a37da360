/*
 * What a search has spent, in fp32 passes, and whether what it may gain is worth more. Counted by what was asked for, not by the
 * clock: so a run that is repeated, resumed or shared among workers makes the same decisions.
 */
#include <math.h>

#include "tune/search_impl.h"

/* What a pass must be expected to gain, as a share of the latency. */
#define PASS_WORTH 0.03
/* Passes that a bounded search may spend, whatever it gains. */
#define SPEND_LEAST 4
#define SPEND_MOST 7
/* Of an evaluation, the share of the samples that a plan's error is estimated on. */
#define ESTIMATE_SHARE (1.0 / 16)
/* What it takes besides when the fp32 model is rewritten for it: a part of a pass, and as much as making so many sessions. */
#define REWRITE_PASSES 0.25
#define REWRITE_SESSIONS 10
/* Finding the fastest modes takes about a pass, and as much as this. */
#define PROFILE_SESSIONS 20
/* Passes that it may take to do so twice. */
#define PROFILES_AGAIN 1.5

/* ---- spent ---- */

/* What a trial, or an estimate, takes besides its samples. */
static double fixed_passes(const struct search *s)
{
	return s->c.samples ? s->c.trial_runs / (double)s->c.samples : 0;
}

/* Fine-tuning is done once for all plans with the same recipes. */
static bool finetunes(const struct search *s, const struct plan *p)
{
	const struct space *space = s->c.space;
	bool costly = false;
	size_t i, k;

	for (i = space->n_ops; i < space->n; i++)
		costly |= space->v[i].costly && p->choice[i] == space->v[i].apply;
	for (k = 1; k <= s->trials.n && costly; k++) {
		for (i = space->n_ops; i < space->n && trial_at(s, k)->plan.choice[i] == p->choice[i]; i++)
			;
		costly = i < space->n;
	}
	return costly;
}

/* By a recipe that no other trial has. */
static bool is_rewritten(const struct search *s, const struct plan *p)
{
	const struct space *space = s->c.space;
	bool tried = true;
	size_t i, k;

	for (i = space->n_ops; i < space->n && tried; i++)
		for (tried = !space->v[i].rewrites || p->choice[i] == space->v[i].first, k = 1;
		     k <= s->trials.n && !tried; k++)
			tried = trial_at(s, k)->plan.choice[i] == p->choice[i];
	return !tried;
}

static double costly_passes(const struct search *s, const struct plan *p)
{
	return s->c.samples
		       ? s->c.costly_runs * (double)plan_n_quantized(p, s->c.space) / (double)s->c.samples
		       : 0;
}

void spend_trial(struct search *s, const struct trial *t)
{
	s->spent += s->c.samples ? (double)t->samples / (double)s->c.samples : 1;
	s->spent += fixed_passes(s) + (finetunes(s, &t->plan) ? costly_passes(s, &t->plan) : 0);
}

void spend_estimate(struct search *s, const struct plan *p)
{
	s->spent += ESTIMATE_SHARE + fixed_passes(s);
	if (is_rewritten(s, p))
		s->spent += REWRITE_PASSES + REWRITE_SESSIONS * fixed_passes(s);
}

void spend_rank(struct search *s)
{
	s->spent += 1;
}

static double profile_passes(const struct search *s)
{
	return 1 + PROFILE_SESSIONS * fixed_passes(s);
}

void spend_profiles(struct search *s)
{
	s->spent += profile_passes(s);
}

bool may_profile_again(const struct search *s)
{
	return profile_passes(s) <= PROFILES_AGAIN;
}

double search_spent(const struct search *s)
{
	return s->spent;
}

/* ---- worth ---- */

static double all_gains(const struct search *s)
{
	double all = 0;
	size_t i;

	for (i = 0; i < s->c.space->n_ops; i++)
		all += s->c.space->v[i].gain;
	return all;
}

/* The space estimates gains; what the fastest plan saves was measured. */
double search_gain_scale(const struct search *s)
{
	double saves = s->c.backend->saves ? s->c.backend->saves(s->c.self) : INFINITY, all = all_gains(s);

	return all > saves ? saves / all : 1;
}

double search_gain(const struct search *s)
{
	return all_gains(s) * search_gain_scale(s);
}

static double limit(const struct search *s)
{
	const double gain = search_gain(s);

	return gain > 0 ? fmin(fmax(gain / PASS_WORTH, SPEND_LEAST), SPEND_MOST) : SPEND_MOST;
}

/* May it spend so many more? */
static bool within_limit(struct search *s, double passes)
{
	const bool within = !s->c.bounded || s->spent + passes <= limit(s);

	s->limited |= !within;
	return within;
}

bool search_worth(struct search *s, const struct plan *p, double passes)
{
	double gain = 0;
	size_t i;

	for (i = 0; i < s->c.space->n_ops; i++)
		if (plan_is_quantized(p, s->c.space, i))
			gain += s->c.space->v[i].gain;
	return !s->c.frugal || ((all_gains(s) <= 0 || passes * PASS_WORTH <= gain * search_gain_scale(s)) &&
				within_limit(s, passes));
}

bool search_costly_worth(struct search *s, const struct plan *p)
{
	return !s->c.samples || search_worth(s, p, costly_passes(s, p));
}

bool search_may_spend(struct search *s, double passes)
{
	return !s->c.frugal || within_limit(s, passes);
}

double search_passes_left(const struct search *s)
{
	return s->c.bounded ? fmax(0, limit(s) - s->spent) : INFINITY;
}

enum fettle_status search_bound(struct search *s)
{
	s->ends_at_limit = true;
	return search_may_spend(s, 1) ? FETTLE_OK : search_stop(s, SEARCH_EXHAUSTED);
}

bool search_limited(const struct search *s)
{
	return s->limited;
}
