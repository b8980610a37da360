/*
 * Bayesian optimisation: Gaussian processes (gauss.h) are fitted to the trials, one to the objective and one to each
 * constraint, and the unseen point is asked that has the highest expected improvement on the best of them (Jones,
 * Schonlau and Welch 1998) times the probability that it is feasible (Schonlau, Welch and Jones 1998); as long
 * as no trial is feasible that probability alone counts.
 *
 * Costs are standardised, after those far on the bad side were cut off: a few disasters must not make the
 * good ones look all alike. A failed trial counts as the worst. A pending one counts as average (a constant
 * liar, Ginsbourger, Le Riche and Carraro 2010): what is left to learn there is small, so the next point
 * goes elsewhere, but nothing is held against its surroundings.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "sampler/gauss.h"
#include "sampler/trials.h"
#include "sampler/type.h"

enum {
	STARTUP = 10,  /* trials that must be told before the model is asked */
	MODEL = 300,   /* trials the process is fitted to, for that takes the third power of their number */
	LISTED = 1024, /* spaces up to this size are searched whole */
	CLIMBS = 5,    /* from the best trials and from a random point, in spaces that are larger */
	RANDOM = 32,   /* random points looked at before the last climb */
	RANDOM_NUMBERS = 200, /* the same where there are numbers */
	LOOKS = 1500,         /* points looked at by all climbs together */
	OUTPUTS_MAX = 1 + SAMPLER_CONSTRAINTS_MAX,
};

/* What is known of the objective or of a constraint. */
struct output {
	struct gauss gauss;
	double *y;    /* standardised */
	bool flat;    /* all the same: there is nothing to learn from */
	double limit; /* the lowest of a feasible trial; of a constraint, where it begins to hold */
};

struct gp {
	const struct point_space *space;
	struct trials trials;
	struct rng rng;
	struct output outputs[OUTPUTS_MAX]; /* the objective, then the constraints */
	size_t n_outputs;
	bool numbers_too, feasible; /* there are numbers in the space; there is a feasible trial */
	size_t n;                   /* trials the processes are fitted to */
	size_t *numbers;
	double *points;
};

/* A search for the highest gain. */
struct hunt {
	struct gp *gp;
	double *at;      /* where the climb is */
	uint16_t *apart; /* how many options tell it from the trials */
	double *units;   /* its numbers on their scales */
	uint16_t *beside;
	double *next; /* a point beside it */
	double *covariances;
	size_t *order; /* of the parameters */
	double *best;  /* unseen */
	double best_gain;
	bool found;
	int looks;
};

static void *gp_start(const struct point_space *space, const struct sampler_options *opt)
{
	struct gp *g = xcalloc(1, sizeof(*g));

	g->space = space;
	g->n_outputs = 1 + opt->n_constraints;
	g->numbers_too = point_has_numbers(space);
	trials_init(&g->trials, space, opt);
	rng_seed(&g->rng, opt->seed ^ 0x6770000000000000u);
	return g;
}

static void gp_end(void *state)
{
	struct gp *g = state;
	size_t i;

	for (i = 0; i < g->n_outputs; i++) {
		gauss_release(&g->outputs[i].gauss);
		free(g->outputs[i].y);
	}
	trials_release(&g->trials);
	free(g->numbers);
	free(g->points);
	free(g);
}

static void gp_tell(void *state, const double *point, const struct sampler_result *r)
{
	struct gp *g = state;

	trials_tell(&g->trials, point, r);
}

static int compare_values(const void *pa, const void *pb)
{
	double a = *(const double *)pa, b = *(const double *)pb;

	return a < b ? -1 : a > b;
}

/* As far above the median as twice the best is below it; the worst, when half are equally good. */
static double find_ceiling(const struct trials *t, size_t output)
{
	double *values = xcalloc(t->done, sizeof(*values)), best, median, worst;
	size_t i, n = 0;

	for (i = 0; i < t->list.n; i++)
		if (t->list.v[i].state == TRIAL_DONE)
			values[n++] = trials_result(t, i)[output];
	qsort(values, n, sizeof(*values), compare_values);
	best = values[0];
	median = values[n / 2];
	worst = values[n - 1];
	free(values);
	return median > best ? fmin(worst, median + 2 * (median - best)) : worst;
}

/* All trials; when they are too many, the best and the latest. */
static void select_trials(struct gp *g)
{
	const struct trials *t = &g->trials;
	size_t n = t->list.n, told = t->done + t->failed, width = g->space->n, left, i;
	bool *chosen = xcalloc(n, sizeof(*chosen));

	g->n = n < MODEL ? n : MODEL;
	left = g->n;
	g->numbers = xrealloc(g->numbers, n, sizeof(*g->numbers));
	trials_rank(t, g->numbers);
	g->feasible = t->list.v[g->numbers[0]].violation <= 0;
	for (i = 0; i < told && i < MODEL / 2; i++, left--)
		chosen[g->numbers[i]] = true;
	for (i = n; i-- > 0 && left;)
		if (!chosen[i]) {
			chosen[i] = true;
			left--;
		}
	g->points = xrealloc(g->points, g->n * width, sizeof(*g->points));
	for (i = g->n = 0; i < n; i++)
		if (chosen[i]) {
			memcpy(g->points + g->n * width, point_set_get(&t->points, i),
			       width * sizeof(*g->points));
			g->numbers[g->n++] = i;
		}
	free(chosen);
}

static void standardise(struct gp *g, size_t output)
{
	struct output *o = &g->outputs[output];
	double ceiling = find_ceiling(&g->trials, output), mean = 0, square = 0, deviation;
	size_t told = 0, i;

	o->y = xrealloc(o->y, g->n, sizeof(double));
	for (i = 0; i < g->n; i++) {
		const struct trial *t = &g->trials.list.v[g->numbers[i]];

		o->y[i] = t->state == TRIAL_PENDING ? NAN
			  : t->state == TRIAL_DONE
				  ? fmin(trials_result(&g->trials, g->numbers[i])[output], ceiling)
				  : ceiling;
		told += t->state != TRIAL_PENDING;
	}
	for (i = 0; i < g->n; i++)
		mean += isnan(o->y[i]) ? 0 : o->y[i] / (double)told;
	for (i = 0; i < g->n; i++)
		square += isnan(o->y[i]) ? 0 : (o->y[i] - mean) * (o->y[i] - mean) / (double)told;
	deviation = sqrt(square);
	o->flat = !(deviation > 1e-12 * fabs(mean)) || !isfinite(deviation);
	if (o->flat)
		return;
	o->limit = output ? -mean / deviation : INFINITY;
	for (i = 0; i < g->n; i++) {
		bool pending = isnan(o->y[i]);

		o->y[i] = pending ? 0 : (o->y[i] - mean) / deviation;
		if (!output && !pending && g->trials.list.v[g->numbers[i]].violation <= 0)
			o->limit = fmin(o->limit, o->y[i]);
	}
}

/* False when there is nothing to learn from. */
static bool fit(struct gp *g)
{
	bool any = false;
	size_t i;

	select_trials(g);
	for (i = 0; i < g->n_outputs; i++) {
		standardise(g, i);
		if (!i && !g->feasible)
			g->outputs[i].flat = true; /* it does not count yet */
		if (g->outputs[i].flat)
			continue;
		gauss_fit(&g->outputs[i].gauss, g->space, g->points, g->outputs[i].y, g->n);
		any = true;
	}
	return any;
}

/* The logarithm of the expected improvement, which is fit to be compared where the improvement underflows. */
static double log_gain(double lowest, double mean, double variance)
{
	double s = sqrt(variance), u = (lowest - mean) / s;
	double log_density = -0.5 * u * u - 0.91893853320467274178;

	if (u < -6) /* the first terms of the asymptotic series */
		return log(s) + log_density - 2 * log(-u) + log1p(-3 / (u * u));
	return log(s) + log(exp(log_density) + u * 0.5 * erfc(-u * 0.70710678118654752440));
}

static double log_probability(double u) /* of less than u, in the standard normal distribution */
{
	if (u < -6)
		return -0.5 * u * u - 0.91893853320467274178 - log(-u) + log1p(-1 / (u * u));
	return log(0.5 * erfc(-u * 0.70710678118654752440));
}

static double best_gain(const struct hunt *h)
{
	return h->found ? h->best_gain : -INFINITY;
}

static void remember(struct hunt *h, const double *point, double gain)
{
	if (!(gain > best_gain(h) || !h->found) || trials_seen(&h->gp->trials, point))
		return;
	memcpy(h->best, point, h->gp->space->n * sizeof(*point));
	h->best_gain = gain;
	h->found = true;
}

static const struct gauss *any_gauss(const struct gp *g)
{
	size_t i = 0;

	while (g->outputs[i].flat)
		i++;
	return &g->outputs[i].gauss;
}

static void measure(const struct hunt *h, const double *point, uint16_t *differ)
{
	const struct gp *g = h->gp;
	size_t i;

	for (i = 0; i < g->n; i++)
		differ[i] = (uint16_t)gauss_differ(g->space, point, g->points + i * g->space->n);
	gauss_place(any_gauss(g), point, h->units);
}

/*
 * The gain at a point with these distances; or, when it is certain not to be above `floor`, something below it.
 * Most points are told from their mean and the nearest trial, without computing the variance.
 */
static double look(struct hunt *h, const uint16_t *differ, double floor)
{
	struct gp *g = h->gp;
	double gain = 0;
	size_t i;

	h->looks++;
	for (i = 0; i < g->n_outputs; i++) {
		const struct output *o = &g->outputs[i];
		double mean, variance;

		if (o->flat)
			continue;
		gauss_covariances(&o->gauss, h->units, differ, h->covariances);
		mean = gauss_mean(&o->gauss, h->covariances);
		if (!i && log_gain(o->limit, mean, gauss_variance_bound(&o->gauss, h->covariances)) < floor)
			return -INFINITY;
		variance = gauss_variance(&o->gauss, h->covariances);
		gain += i ? log_probability((o->limit - mean) / sqrt(variance))
			  : log_gain(o->limit, mean, variance);
	}
	return gain;
}

/* The other options of one parameter. True when one is better than `*gain`: then that is taken. */
static bool improve(struct hunt *h, size_t param, double *gain)
{
	const struct gp *g = h->gp;
	const double *column = g->points + param;
	double from = h->at[param], to = from;
	size_t n = g->n, i;
	unsigned option;

	for (option = 0; option < g->space->params[param].levels; option++) {
		double there;

		if (option == from)
			continue;
		for (i = 0; i < n; i++) {
			double trial = column[i * g->space->n];

			h->beside[i] = (uint16_t)(h->apart[i] - (trial != from) + (trial != option));
		}
		there = look(h, h->beside, fmin(*gain, best_gain(h)));
		h->at[param] = option;
		remember(h, h->at, there);
		if (there > *gain) {
			*gain = there;
			to = option;
		}
	}
	h->at[param] = to;
	for (i = 0; i < n && to != from; i++) {
		double trial = column[i * g->space->n];

		h->apart[i] = (uint16_t)(h->apart[i] - (trial != from) + (trial != to));
	}
	return to != from;
}

/* One parameter after the other, in random order, until none can be improved or the looks are spent. */
static void climb_options(struct hunt *h, double gain, int end)
{
	size_t n = h->gp->space->n, i, still = 0;

	for (i = 0; i < n; i++)
		h->order[i] = i;
	while (still < n && h->looks < end) {
		rng_shuffle(&h->gp->rng, h->order, n);
		for (i = 0; i < n && still < n && h->looks < end; i++)
			still = improve(h, h->order[i], &gain) ? 0 : still + 1;
	}
}

/*
 * A point beside `at`: the numbers moved, each by up to `step` of its length or, sometimes, just one; or an option
 * changed, with all that depends on it.
 */
static void move(struct hunt *h, double step)
{
	const struct gp *g = h->gp;
	const struct gauss *gauss = any_gauss(g);
	struct rng *rng = &h->gp->rng;
	size_t i = (size_t)rng_below(rng, g->space->n), k;
	const struct point_param *p = &g->space->params[i];
	bool one = rng_below(rng, 4) == 0;

	memcpy(h->next, h->at, g->space->n * sizeof(double));
	if (!param_is_number(p)) {
		h->next[i] = isnan(h->at[i]) ? NAN : param_draw(p, rng);
		point_canonical(g->space, rng, h->next);
		return;
	}
	for (k = 0; k < gauss->n_numbers; k++) {
		size_t at = gauss->numbers[k];

		if ((one && at != i) || isnan(h->at[at]))
			continue;
		p = &g->space->params[at];
		h->next[at] =
			param_from_unit(p, param_unit(p, h->at[at]) +
						   step * fmin(gauss_length(gauss, k), 1) * rng_normal(rng));
	}
}

/* A (1+1) evolution strategy: steps grow with success and shrink without. */
static void climb_all(struct hunt *h, double gain, int end)
{
	double step = 0.3;

	while (h->looks < end) {
		double there;

		move(h, step);
		measure(h, h->next, h->beside);
		there = look(h, h->beside, fmin(gain, best_gain(h)));
		remember(h, h->next, there);
		if (there > gain) {
			gain = there;
			memcpy(h->at, h->next, h->gp->space->n * sizeof(double));
			step = fmin(step * 1.5, 1);
		} else {
			step = fmax(step * 0.9, 1e-4);
		}
	}
}

static void climb(struct hunt *h, const double *from, int looks)
{
	int end = h->looks + looks;
	double gain;

	memcpy(h->at, from, h->gp->space->n * sizeof(*from));
	measure(h, h->at, h->apart);
	gain = look(h, h->apart, -INFINITY);
	remember(h, h->at, gain);
	if (h->gp->numbers_too || !h->gp->space->even)
		climb_all(h, gain, end);
	else
		climb_options(h, gain, end);
}

static void hunt_all(struct hunt *h)
{
	const struct point_space *space = h->gp->space;
	uint64_t i;

	for (i = 0; i < space->size; i++) {
		point_at(space, i, h->at);
		if (trials_seen(&h->gp->trials, h->at))
			continue;
		measure(h, h->at, h->apart);
		remember(h, h->at, look(h, h->apart, best_gain(h)));
	}
}

static void hunt_climbing(struct hunt *h)
{
	const struct gp *g = h->gp;
	size_t *ranked = xcalloc(g->trials.list.n, sizeof(*ranked)), n = g->space->n;
	double *start = xcalloc(n, sizeof(*start)), best = -INFINITY;
	int i, told = (int)(g->trials.done + g->trials.failed);

	trials_rank(&g->trials, ranked);
	for (i = 0; i < CLIMBS - 1 && i < told; i++)
		climb(h, point_set_get(&g->trials.points, ranked[i]), LOOKS / CLIMBS);
	for (i = 0; i < (g->numbers_too ? RANDOM_NUMBERS : RANDOM); i++) {
		double gain;

		point_draw(g->space, &h->gp->rng, h->at);
		measure(h, h->at, h->apart);
		gain = look(h, h->apart, best);
		if (gain > best || !i) {
			best = gain;
			memcpy(start, h->at, n * sizeof(*start));
		}
	}
	climb(h, start, LOOKS / CLIMBS);
	free(start);
	free(ranked);
}

static size_t gp_independent(const void *state)
{
	const struct gp *g = state;
	const size_t told = g->trials.done + g->trials.failed;

	return told < STARTUP ? STARTUP - told : 1;
}

static bool gp_ask(void *state, double *point)
{
	struct gp *g = state;
	struct hunt h = { .gp = g, .best = point };
	size_t params = g->space->n;

	if (g->trials.done + g->trials.failed < STARTUP || !g->trials.done)
		return trials_ask_random(&g->trials, point);
	if (!fit(g))
		return trials_ask_random(&g->trials, point);
	h.at = xcalloc(params, sizeof(*h.at));
	h.next = xcalloc(params, sizeof(*h.next));
	h.units = xcalloc(params, sizeof(*h.units));
	h.apart = xcalloc(g->n, sizeof(*h.apart));
	h.beside = xcalloc(g->n, sizeof(*h.beside));
	h.covariances = xcalloc(g->n, sizeof(*h.covariances));
	h.order = xcalloc(params, sizeof(*h.order));
	if (g->space->size && g->space->size <= LISTED)
		hunt_all(&h);
	else
		hunt_climbing(&h);
	free(h.at);
	free(h.next);
	free(h.units);
	free(h.apart);
	free(h.beside);
	free(h.covariances);
	free(h.order);
	if (!h.found)
		return trials_ask_random(&g->trials, point);
	trials_ask(&g->trials, point);
	return true;
}

const struct sampler_type sampler_gp = {
	.name = "gp",
	.aliases = "gps GPSampler GPSSampler",
	.summary = "Gaussian process, expected improvement where it is likely to be feasible",
	.start = gp_start,
	.ask = gp_ask,
	.independent = gp_independent,
	.tell = gp_tell,
	.end = gp_end,
};
