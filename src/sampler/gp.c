/*
 * Bayesian optimisation: a Gaussian process (gauss.h) is fitted to the trials, and the unseen point with the
 * highest expected improvement on the best of them (Jones, Schonlau and Welch 1998) is asked.
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
	LOOKS = 1500,  /* points looked at by all climbs together */
};

struct gp {
	const struct point_space *space;
	struct trials trials;
	struct rng rng;
	struct gauss gauss;
	size_t n; /* trials the process is fitted to */
	size_t *numbers;
	double *points;
	double ceiling;    /* costs above count as this */
	double *y, lowest; /* standardised costs */
};

/* A search for the highest expected improvement. */
struct hunt {
	struct gp *gp;
	double *at;       /* where the climb is */
	uint16_t *apart;  /* its distances to the trials */
	uint16_t *beside; /* those of a point beside it */
	double *scratch;
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
	trials_init(&g->trials, space, opt);
	rng_seed(&g->rng, opt->seed ^ 0x6770000000000000u);
	return g;
}

static void gp_end(void *state)
{
	struct gp *g = state;

	trials_release(&g->trials);
	gauss_release(&g->gauss);
	free(g->numbers);
	free(g->points);
	free(g->y);
	free(g);
}

static void gp_tell(void *state, const double *point, const struct sampler_result *r)
{
	struct gp *g = state;

	trials_tell(&g->trials, point, r);
}

/* As far above the median as twice the best is below it; the worst, when half are equally good. */
static double find_ceiling(const struct trials *t, const size_t *ranked)
{
	double best = t->list.v[ranked[0]].cost, median = t->list.v[ranked[t->done / 2]].cost,
	       worst = t->list.v[ranked[t->done - 1]].cost;

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
	g->ceiling = find_ceiling(t, g->numbers);
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

/* False when all costs are equal: then there is nothing to learn from. */
static bool standardise(struct gp *g)
{
	double mean = 0, square = 0, deviation;
	size_t told = 0, i;

	g->y = xrealloc(g->y, g->n, sizeof(double));
	for (i = 0; i < g->n; i++) {
		const struct trial *t = &g->trials.list.v[g->numbers[i]];

		g->y[i] = t->state == TRIAL_PENDING ? NAN
			  : t->state == TRIAL_DONE  ? fmin(t->cost, g->ceiling)
						    : g->ceiling;
		told += t->state != TRIAL_PENDING;
	}
	for (i = 0; i < g->n; i++)
		mean += isnan(g->y[i]) ? 0 : g->y[i] / (double)told;
	for (i = 0; i < g->n; i++)
		square += isnan(g->y[i]) ? 0 : (g->y[i] - mean) * (g->y[i] - mean) / (double)told;
	deviation = sqrt(square);
	if (!(deviation > 1e-12 * fabs(mean)) || !isfinite(deviation))
		return false;
	g->lowest = INFINITY;
	for (i = 0; i < g->n; i++) {
		bool pending = isnan(g->y[i]);

		g->y[i] = pending ? 0 : (g->y[i] - mean) / deviation;
		g->lowest = pending ? g->lowest : fmin(g->lowest, g->y[i]);
	}
	return true;
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

static void measure(const struct hunt *h, const double *point, uint16_t *distances)
{
	const struct gp *g = h->gp;
	size_t i;

	for (i = 0; i < g->n; i++)
		distances[i] = (uint16_t)point_distance(point, g->points + i * g->space->n, g->space->n);
}

/*
 * The gain at a point with these distances; or, when it is certain not to be above `floor`, something below it.
 * Most points are told from their mean and the nearest trial, without computing the variance.
 */
static double look(struct hunt *h, const uint16_t *distances, double floor)
{
	const struct gp *g = h->gp;
	double mean = gauss_mean(&g->gauss, distances);

	h->looks++;
	if (log_gain(g->lowest, mean, gauss_variance_bound(&g->gauss, distances)) < floor)
		return -INFINITY;
	return log_gain(g->lowest, mean, gauss_variance(&g->gauss, distances, h->scratch));
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
static void climb(struct hunt *h, const double *from, int looks)
{
	size_t n = h->gp->space->n, i, still = 0;
	int end = h->looks + looks;
	double gain;

	memcpy(h->at, from, n * sizeof(*from));
	measure(h, h->at, h->apart);
	gain = look(h, h->apart, -INFINITY);
	remember(h, h->at, gain);
	for (i = 0; i < n; i++)
		h->order[i] = i;
	while (still < n && h->looks < end) {
		rng_shuffle(&h->gp->rng, h->order, n);
		for (i = 0; i < n && still < n && h->looks < end; i++)
			still = improve(h, h->order[i], &gain) ? 0 : still + 1;
	}
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
	double *start = xcalloc(n, sizeof(*start));
	double best = -INFINITY;
	int i;

	trials_rank(&g->trials, ranked);
	for (i = 0; i < CLIMBS - 1; i++)
		climb(h, point_set_get(&g->trials.points, ranked[i]), LOOKS / CLIMBS);
	for (i = 0; i < RANDOM; i++) {
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

static bool gp_ask(void *state, double *point)
{
	struct gp *g = state;
	struct hunt h = { .gp = g, .best = point };
	size_t params = g->space->n;

	if (g->trials.done + g->trials.failed < STARTUP || !g->trials.done)
		return trials_ask_random(&g->trials, point);
	select_trials(g);
	if (!standardise(g))
		return trials_ask_random(&g->trials, point);
	gauss_fit(&g->gauss, g->points, g->y, g->n, params);
	h.at = xcalloc(params, sizeof(*h.at));
	h.apart = xcalloc(g->n, sizeof(*h.apart));
	h.beside = xcalloc(g->n, sizeof(*h.beside));
	h.scratch = xcalloc(g->n, sizeof(*h.scratch));
	h.order = xcalloc(params, sizeof(*h.order));
	if (g->space->size && g->space->size <= LISTED)
		hunt_all(&h);
	else
		hunt_climbing(&h);
	free(h.at);
	free(h.apart);
	free(h.beside);
	free(h.scratch);
	free(h.order);
	if (!h.found)
		return trials_ask_random(&g->trials, point);
	trials_ask(&g->trials, point);
	return true;
}

const struct sampler_type sampler_gp = {
	.name = "gp",
	.aliases = "gps GPSampler GPSSampler",
	.summary = "Gaussian process on the number of differing parameters, expected improvement",
	.start = gp_start,
	.ask = gp_ask,
	.tell = gp_tell,
	.end = gp_end,
};
