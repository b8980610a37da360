/*
 * Bayesian optimisation: a Gaussian process (gauss.h) is fitted to the trials, and the unseen point with the
 * highest expected improvement on the best of them (Jones, Schonlau and Welch 1998) is asked.
 *
 * Costs are standardised. A failed trial counts as the worst done. A pending one counts as average
 * (a constant liar, Ginsbourger, Le Riche and Carraro 2010): what is left to learn there is small, so
 * the next point goes elsewhere, but nothing is held against its surroundings.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "sampler/gauss.h"
#include "sampler/trials.h"
#include "sampler/type.h"

enum {
	STARTUP = 10, /* trials that must be told before the model is asked */
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
	double *y, lowest; /* standardised costs */
	size_t y_cap;
};

/* A search for the highest expected improvement. */
struct hunt {
	struct gp *gp;
	uint16_t *at;     /* where the climb is */
	uint16_t *apart;  /* its distances to the trials */
	uint16_t *batch;  /* those of a batch: GAUSS_BATCH per trial */
	double *scratch;
	size_t *order;    /* of the parameters */
	uint16_t *best;   /* unseen */
	double best_gain;
	bool found;
	int looks;
};

static void *gp_start(const struct point_space *space, uint64_t seed)
{
	struct gp *g = xcalloc(1, sizeof(*g));

	g->space = space;
	trials_init(&g->trials, space, seed);
	rng_seed(&g->rng, seed ^ 0x6770000000000000u);
	return g;
}

static void gp_end(void *state)
{
	struct gp *g = state;

	trials_release(&g->trials);
	gauss_release(&g->gauss);
	free(g->y);
	free(g);
}

static void gp_tell(void *state, const uint16_t *point, double cost)
{
	struct gp *g = state;

	trials_tell(&g->trials, point, cost);
}

/* False when all costs are equal: then there is nothing to learn from. */
static bool standardise(struct gp *g)
{
	const struct trial *t = g->trials.list.v;
	size_t n = g->trials.list.n, told = g->trials.done + g->trials.failed, i;
	double worst = -INFINITY, mean = 0, square = 0, deviation;

	g->y = xrealloc(g->y, n, sizeof(double));
	for (i = 0; i < n; i++)
		if (t[i].state == TRIAL_DONE)
			worst = fmax(worst, t[i].cost);
	for (i = 0; i < n; i++) {
		g->y[i] = t[i].state == TRIAL_FAILED ? worst : t[i].cost;
		if (t[i].state != TRIAL_PENDING)
			mean += g->y[i] / (double)told;
	}
	for (i = 0; i < n; i++)
		if (t[i].state != TRIAL_PENDING)
			square += (g->y[i] - mean) * (g->y[i] - mean) / (double)told;
	deviation = sqrt(square);
	if (!(deviation > 1e-12 * fabs(mean)))
		return false;
	g->lowest = INFINITY;
	for (i = 0; i < n; i++) {
		g->y[i] = t[i].state == TRIAL_PENDING ? 0 : (g->y[i] - mean) / deviation;
		if (t[i].state != TRIAL_PENDING)
			g->lowest = fmin(g->lowest, g->y[i]);
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

static void remember(struct hunt *h, const uint16_t *point, double gain)
{
	if ((h->found && gain <= h->best_gain) || trials_seen(&h->gp->trials, point))
		return;
	memcpy(h->best, point, h->gp->space->n * sizeof(*point));
	h->best_gain = gain;
	h->found = true;
}

static void look(struct hunt *h, int count, double gain[GAUSS_BATCH])
{
	double mean[GAUSS_BATCH], variance[GAUSS_BATCH];
	int b;

	gauss_predict(&h->gp->gauss, h->batch, h->scratch, mean, variance);
	for (b = 0; b < count; b++)
		gain[b] = log_gain(h->gp->lowest, mean[b], variance[b]);
	h->looks += count;
}

static void measure(struct hunt *h, const uint16_t *point, uint16_t *out, size_t stride)
{
	const struct gp *g = h->gp;
	size_t i;

	for (i = 0; i < g->trials.list.n; i++)
		out[i * stride] = (uint16_t)point_distance(point, point_set_get(&g->trials.points, i), g->space->n);
}

/* `count` points, one after the other. */
static void look_at(struct hunt *h, const uint16_t *points, int count, double gain[GAUSS_BATCH])
{
	size_t n = h->gp->space->n;
	int b;

	for (b = 0; b < count; b++)
		measure(h, points + (size_t)b * n, h->batch + b, GAUSS_BATCH);
	look(h, count, gain);
	for (b = 0; b < count; b++)
		remember(h, points + (size_t)b * n, gain[b]);
}

/* The other options of one parameter. True when one is better than `*gain`: then that is taken. */
static bool improve(struct hunt *h, size_t param, double *gain)
{
	const struct gp *g = h->gp;
	const uint16_t *column = g->trials.points.options.v + param;
	uint16_t from = h->at[param], to = from;
	unsigned option = 0, options[GAUSS_BATCH];
	size_t n = g->trials.list.n, i;

	while (option < g->space->options[param]) {
		double gains[GAUSS_BATCH];
		int count = 0, b;

		for (; count < GAUSS_BATCH && option < g->space->options[param]; option++)
			if (option != from)
				options[count++] = option;
		for (i = 0; i < n; i++) {
			uint16_t trial = column[i * g->space->n];
			int others = h->apart[i] - (trial != from);

			for (b = 0; b < count; b++)
				h->batch[i * GAUSS_BATCH + (size_t)b] =
					(uint16_t)(others + (trial != options[b]));
		}
		look(h, count, gains);
		for (b = 0; b < count; b++) {
			h->at[param] = (uint16_t)options[b];
			remember(h, h->at, gains[b]);
			if (gains[b] > *gain) {
				*gain = gains[b];
				to = (uint16_t)options[b];
			}
		}
	}
	h->at[param] = to;
	for (i = 0; i < n; i++) {
		uint16_t trial = column[i * g->space->n];

		h->apart[i] = (uint16_t)(h->apart[i] - (trial != from) + (trial != to));
	}
	return to != from;
}

/* One parameter after the other, in random order, until none can be improved or the looks are spent. */
static void climb(struct hunt *h, const uint16_t *from, int looks)
{
	size_t n = h->gp->space->n, i, still = 0;
	double gains[GAUSS_BATCH], gain;
	int end = h->looks + looks;

	memcpy(h->at, from, n * sizeof(*from));
	look_at(h, h->at, 1, gains);
	gain = gains[0];
	measure(h, h->at, h->apart, 1);
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
	uint16_t *points = xcalloc(space->n * GAUSS_BATCH, sizeof(*points));
	uint64_t index = 0;

	while (index < space->size) {
		double gain[GAUSS_BATCH];
		int count = 0;

		for (; count < GAUSS_BATCH && index < space->size; index++) {
			uint16_t *p = points + (size_t)count * space->n;

			point_at(space, index, p);
			count += !trials_seen(&h->gp->trials, p);
		}
		look_at(h, points, count, gain);
	}
	free(points);
}

static void hunt_climbing(struct hunt *h)
{
	const struct gp *g = h->gp;
	size_t *ranked = xcalloc(g->trials.list.n, sizeof(*ranked)), n = g->space->n;
	uint16_t *points = xcalloc(n * GAUSS_BATCH, sizeof(*points)), *start = xcalloc(n, sizeof(*start));
	double best = -INFINITY;
	int i, b;

	trials_rank(&g->trials, ranked);
	for (i = 0; i < CLIMBS - 1; i++)
		climb(h, point_set_get(&g->trials.points, ranked[i]), LOOKS / CLIMBS);
	for (i = 0; i < RANDOM; i += GAUSS_BATCH) {
		double gain[GAUSS_BATCH];

		for (b = 0; b < GAUSS_BATCH; b++)
			point_draw(g->space, &h->gp->rng, points + (size_t)b * n);
		look_at(h, points, GAUSS_BATCH, gain);
		for (b = 0; b < GAUSS_BATCH; b++)
			if (gain[b] > best) {
				best = gain[b];
				memcpy(start, points + (size_t)b * n, n * sizeof(*start));
			}
	}
	climb(h, start, LOOKS / CLIMBS);
	free(start);
	free(points);
	free(ranked);
}

static bool gp_ask(void *state, uint16_t *point)
{
	struct gp *g = state;
	size_t n = g->trials.list.n, params = g->space->n;
	struct hunt h = { .gp = g, .best = point };

	if (g->trials.done + g->trials.failed < STARTUP || g->trials.done < 2 || !standardise(g))
		return trials_ask_random(&g->trials, point);
	gauss_fit(&g->gauss, g->trials.points.options.v, g->y, n, params);
	h.at = xcalloc(params, sizeof(*h.at));
	h.apart = xcalloc(n, sizeof(*h.apart));
	h.batch = xcalloc(n * GAUSS_BATCH, sizeof(*h.batch));
	h.scratch = xcalloc(n * GAUSS_BATCH, sizeof(*h.scratch));
	h.order = xcalloc(params, sizeof(*h.order));
	if (g->space->size && g->space->size <= LISTED)
		hunt_all(&h);
	else
		hunt_climbing(&h);
	free(h.at);
	free(h.apart);
	free(h.batch);
	free(h.scratch);
	free(h.order);
	if (!h.found)
		return trials_ask_random(&g->trials, point);
	trials_ask(&g->trials, point);
	return true;
}

const struct sampler_type sampler_gp = {
	.name = "gp",
	.summary = "Gaussian process on the number of differing parameters, expected improvement",
	.start = gp_start,
	.ask = gp_ask,
	.tell = gp_tell,
	.end = gp_end,
};
