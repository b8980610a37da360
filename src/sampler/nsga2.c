/*
 * NSGA-II (Deb, Pratap, Agarwal and Meyarivan 2002): points are crossed that have won tournaments by front and
 * crowding (pareto.h), with simulated binary crossover and polynomial mutation (Deb and Agrawal 1995; Deb and Goyal
 * 1996) on the scales of numbers, and exchange and redrawing of options. Not by generations but steadily: every told trial
 * may become a parent at once (Durillo et al. 2009), so that pending points hold nothing up; they change nothing else. The
 * population grows with the trials: with few of them, a large one would learn nothing.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "sampler/pareto.h"
#include "sampler/type.h"

enum {
	STARTUP = 20, /* trials that must be told before points are crossed, and the smallest population */
	PARENTS_MAX = 100,
	SHARE = 5,  /* of the trials: the population is as many as one in SHARE */
	TRIES = 32, /* to get a child that is unseen */
};

#define CROSSOVER 0.9  /* chance that a child has two parents */
#define ETA_CROSS 10.  /* the higher, the closer to the parents */
#define ETA_MUTATE 20. /* the higher, the closer to what was there */

struct nsga2 {
	const struct point_space *space;
	struct trials trials;
	struct rng rng;
	VEC(size_t) pool; /* the best, sorted, then those told since */
	size_t sorted;
};

static void *nsga2_start(const struct point_space *space, const struct sampler_options *opt)
{
	struct nsga2 *g = xcalloc(1, sizeof(*g));

	g->space = space;
	trials_init(&g->trials, space, opt);
	rng_seed(&g->rng, opt->seed ^ 0x6e73676132000000u);
	return g;
}

static void nsga2_end(void *state)
{
	struct nsga2 *g = state;

	VEC_RELEASE(&g->pool);
	trials_release(&g->trials);
	free(g);
}

static void nsga2_tell(void *state, const double *point, const struct sampler_result *r)
{
	struct nsga2 *g = state;
	size_t number, i;

	trials_tell(&g->trials, point, r);
	number = point_set_find(&g->trials.points, point);
	for (i = 0; i < g->pool.n && g->pool.v[i] != number; i++)
		;
	if (i == g->pool.n)
		VEC_PUSH(&g->pool, number);
	else
		g->sorted = 0; /* it has a new result */
}

static void select_parents(struct nsga2 *g)
{
	if (g->sorted < g->pool.n) {
		pareto_sort(&g->trials, g->pool.v, g->pool.n);
		g->pool.n = g->pool.n < PARENTS_MAX ? g->pool.n : PARENTS_MAX;
		g->sorted = g->pool.n;
	}
}

/* The better of two of the population. */
static const double *choose_parent(struct nsga2 *g)
{
	size_t n = (g->trials.done + g->trials.failed) / SHARE, a, b;

	n = n < STARTUP ? STARTUP : n;
	n = n < g->pool.n ? n : g->pool.n;
	a = (size_t)rng_below(&g->rng, n);
	b = (size_t)rng_below(&g->rng, n);
	return point_set_get(&g->trials.points, g->pool.v[a < b ? a : b]);
}

/* One of the two children of a number, on its scale. */
static double cross(struct rng *rng, double a, double b)
{
	double u = rng_unit(rng), spread;

	spread = u < 0.5 ? pow(2 * u, 1 / (ETA_CROSS + 1)) : pow(2 - 2 * u, -1 / (ETA_CROSS + 1));
	return 0.5 * (a + b) + (rng_below(rng, 2) ? 0.5 : -0.5) * spread * (a - b);
}

static double mutate(struct rng *rng, double a)
{
	double u = rng_unit(rng);

	return a +
	       (u < 0.5 ? pow(2 * u, 1 / (ETA_MUTATE + 1)) - 1 : 1 - pow(2 - 2 * u, 1 / (ETA_MUTATE + 1)));
}

static void breed(struct nsga2 *g, const double *a, const double *b, double *child)
{
	struct rng *rng = &g->rng;
	double active = 0;
	size_t i;

	for (i = 0; i < g->space->n; i++)
		active += !isnan(a[i]);
	for (i = 0; i < g->space->n; i++) {
		const struct point_param *p = &g->space->params[i];
		bool both = !isnan(a[i]) && !isnan(b[i]), mutates = rng_unit(rng) * active < 1;

		child[i] = isnan(a[i]) ? b[i] : a[i];
		if (!param_is_number(p)) {
			if (both && rng_below(rng, 2))
				child[i] = b[i];
			if (mutates && !isnan(child[i]))
				child[i] = param_draw(p, rng);
		} else if (!isnan(child[i])) {
			double u = param_unit(p, child[i]);

			if (both && a[i] != b[i] && rng_below(rng, 2))
				u = cross(rng, u, param_unit(p, b[i]));
			if (mutates)
				u = mutate(rng, u);
			child[i] = param_from_unit(p, u);
		}
	}
	point_canonical(g->space, rng, child);
}

static bool nsga2_ask(void *state, double *point)
{
	struct nsga2 *g = state;
	int tries;

	if (g->trials.done + g->trials.failed < STARTUP)
		return trials_ask_random(&g->trials, point);
	select_parents(g);
	for (tries = 0; tries < TRIES; tries++) {
		const double *a = choose_parent(g), *b = rng_unit(&g->rng) < CROSSOVER ? choose_parent(g) : a;

		breed(g, a, b, point);
		if (trials_seen(&g->trials, point))
			continue;
		trials_ask(&g->trials, point);
		return true;
	}
	return trials_ask_random(&g->trials, point);
}

const struct sampler_type sampler_nsga2 = {
	.name = "nsga2",
	.aliases = "NSGAIISampler nsgaii nsga-ii",
	.summary = "crosses and mutates the points that no other beats in all objectives",
	.several = true,
	.start = nsga2_start,
	.ask = nsga2_ask,
	.tell = nsga2_tell,
	.end = nsga2_end,
};
