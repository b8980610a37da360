/*
 * CMA-ES (evolve.h) on the numbers, on their scales; restarted with twice the population when it has converged (IPOP,
 * Auger and Hansen 2005). Each categorical parameter has a probability per option that moves towards the options of the
 * better half, as in population-based incremental learning (Baluja 1994), and stays above a margin.
 *
 * A generation ends when as many of its points as make a population have been told; what is told later or was
 * never asked is only not asked again, but the best told before the first ask is where the search begins. Pending
 * points change nothing. Numbers that a condition makes inactive are drawn all the same, and count as they were
 * drawn. A point that has been seen is drawn again; when that does not help, a random one takes its place.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "sampler/evolve.h"
#include "sampler/trials.h"
#include "sampler/type.h"

#define SIGMA_START (1. / 6)
#define SIGMA_END 1e-9 /* in parts of the scale: converged */
#define LEARNING 0.25  /* of the options' probabilities, per generation */
#define MARGIN 0.1     /* of probability that all options share, whatever the samples showed */

enum {
	DRAWS = 64, /* to find a point within bounds that is unseen */
	STALE = 10, /* generations without a change of the best are 10 + 30 n / lambda */
	STALE_N = 30,
};

struct member {
	size_t number; /* of the trial */
	double *x;     /* as it was drawn */
};

struct cmaes {
	const struct point_space *space;
	struct trials trials;
	struct rng rng;
	size_t *numbers, n; /* which parameters are numbers */
	double *floors;     /* half a level of each: less would never reach the next */
	double **chances;   /* [params][options] of the categorical ones */
	struct evolve evolve;
	bool started;
	size_t lambda;
	VEC(struct member) population;
	size_t substitutes; /* random points in it */
	double best;
	size_t stale; /* generations without a better one */
};

static void *cmaes_start(const struct point_space *space, const struct sampler_options *opt)
{
	struct cmaes *c = xcalloc(1, sizeof(*c));
	size_t i;

	c->space = space;
	c->numbers = xcalloc(space->n, sizeof(*c->numbers));
	c->floors = xcalloc(space->n, sizeof(*c->floors));
	c->chances = xcalloc(space->n, sizeof(*c->chances));
	for (i = 0; i < space->n; i++) {
		const struct point_param *p = &space->params[i];

		if (param_is_number(p)) {
			c->floors[c->n] = p->levels ? 0.5 / (double)p->levels : 0;
			c->numbers[c->n++] = i;
		} else {
			c->chances[i] = xcalloc(p->levels, sizeof(double));
		}
	}
	c->lambda = 4 + (size_t)(3 * log((double)space->n));
	trials_init(&c->trials, space, opt);
	rng_seed(&c->rng, opt->seed ^ 0x636d610000000000u);
	return c;
}

static void empty_population(struct cmaes *c)
{
	size_t i;

	for (i = 0; i < c->population.n; i++)
		free(c->population.v[i].x);
	c->population.n = 0;
	c->substitutes = 0;
}

static void cmaes_end(void *state)
{
	struct cmaes *c = state;
	size_t i;

	for (i = 0; i < c->space->n; i++)
		free(c->chances[i]);
	empty_population(c);
	VEC_RELEASE(&c->population);
	evolve_release(&c->evolve);
	trials_release(&c->trials);
	free(c->numbers);
	free(c->floors);
	free(c->chances);
	free(c);
}

static void cmaes_tell(void *state, const double *point, const struct sampler_result *r)
{
	struct cmaes *c = state;

	trials_tell(&c->trials, point, r);
}

static void units_of(const struct cmaes *c, const double *point, double *x)
{
	size_t k;

	for (k = 0; k < c->n; k++)
		if (!isnan(point[c->numbers[k]]))
			x[k] = param_unit(&c->space->params[c->numbers[k]], point[c->numbers[k]]);
}

/* From the middle or the best that was told; later from anywhere, with a larger population. */
static void restart(struct cmaes *c)
{
	double *mean = xcalloc(c->n + 1, sizeof(double));
	size_t *ranked = xcalloc(c->trials.list.n + 1, sizeof(*ranked)), i, k;

	for (i = 0; i < c->n; i++)
		mean[i] = c->started ? rng_unit(&c->rng) : 0.5;
	if (!c->started && c->trials.done) {
		trials_rank(&c->trials, ranked);
		units_of(c, point_set_get(&c->trials.points, ranked[0]), mean);
	}
	for (i = 0; i < c->space->n; i++)
		for (k = 0; c->chances[i] && k < c->space->params[i].levels; k++)
			c->chances[i][k] = 1 / (double)c->space->params[i].levels;
	if (c->started)
		c->lambda *= 2;
	evolve_release(&c->evolve);
	memset(&c->evolve, 0, sizeof(c->evolve));
	if (c->n)
		evolve_init(&c->evolve, c->n, c->lambda, mean, SIGMA_START);
	empty_population(c);
	c->best = INFINITY;
	c->stale = 0;
	c->started = true;
	free(ranked);
	free(mean);
}

static bool converged(const struct cmaes *c)
{
	double widest = 0;
	size_t i;

	if (c->stale > STALE + STALE_N * c->space->n / c->lambda || 2 * c->substitutes >= c->lambda)
		return true;
	for (i = 0; i < c->n; i++)
		widest = fmax(widest, evolve_deviation(&c->evolve, i) - c->floors[i]);
	return c->n && (c->evolve.broken || widest < SIGMA_END);
}

/* Takes the good half's options into the probabilities. */
static void learn_options(struct cmaes *c, const size_t *ranked)
{
	size_t half = c->lambda / 2, i, k, r;

	for (i = 0; i < c->space->n; i++) {
		double levels = (double)c->space->params[i].levels, share = 0;

		if (!c->chances[i])
			continue;
		for (r = 0; r < half; r++)
			share += !isnan(point_set_get(&c->trials.points, ranked[r])[i]);
		if (!(share > 0))
			continue;
		for (k = 0; k < c->space->params[i].levels; k++)
			c->chances[i][k] = (1 - LEARNING) * c->chances[i][k] + LEARNING * MARGIN / levels;
		for (r = 0; r < half; r++) {
			double option = point_set_get(&c->trials.points, ranked[r])[i];

			if (!isnan(option))
				c->chances[i][(size_t)option] += LEARNING * (1 - MARGIN) / share;
		}
	}
}

/* The first lambda that were told, ranked; false when there are not so many. */
static bool rank_population(const struct cmaes *c, size_t *ranked, const double **x)
{
	size_t *all, told = c->trials.done + c->trials.failed, n = 0, i, k;
	const double **drawn = xcalloc(c->trials.list.n + 1, sizeof(*drawn));

	for (i = 0; i < c->population.n && n < c->lambda; i++)
		if (c->trials.list.v[c->population.v[i].number].state != TRIAL_PENDING) {
			drawn[c->population.v[i].number] = c->population.v[i].x;
			n++;
		}
	if (n == c->lambda) {
		all = xcalloc(told, sizeof(*all));
		trials_rank(&c->trials, all);
		for (i = k = 0; i < told; i++)
			if (drawn[all[i]]) {
				ranked[k] = all[i];
				x[k++] = drawn[all[i]];
			}
		free(all);
	}
	free(drawn);
	return n == c->lambda;
}

static void next_generation(struct cmaes *c)
{
	size_t *ranked = xcalloc(c->lambda, sizeof(*ranked));
	const double **x = xcalloc(c->lambda, sizeof(*x));
	const struct trial *best;
	bool end;

	if (!rank_population(c, ranked, x))
		goto out;
	if (c->n)
		evolve_update(&c->evolve, x, c->floors);
	learn_options(c, ranked);
	best = &c->trials.list.v[ranked[0]];
	c->stale++;
	if (best->violation > 0 || best->cost < c->best) /* on the way to what is feasible nothing is stale */
		c->stale = 0;
	if (!(best->violation > 0))
		c->best = fmin(c->best, best->cost);
	end = converged(c);
	empty_population(c);
	if (end)
		restart(c);
out:
	free(x);
	free(ranked);
}

static size_t draw_option(struct cmaes *c, size_t param)
{
	size_t k, n = c->space->params[param].levels;
	double u = rng_unit(&c->rng);

	for (k = 0; k + 1 < n && u >= c->chances[param][k]; k++)
		u -= c->chances[param][k];
	return k;
}

/* Outside the bounds is drawn again; in many dimensions, where that is hopeless, the nearest inside is taken. */
static void draw(struct cmaes *c, double *x, double *point)
{
	size_t i, k;
	int draws = 0;
	bool inside;

	do {
		inside = true;
		if (c->n)
			evolve_draw(&c->evolve, &c->rng, x);
		for (k = 0; k < c->n; k++)
			inside = inside && x[k] >= 0 && x[k] <= 1;
	} while (!inside && ++draws < DRAWS);
	for (k = 0; k < c->n; k++)
		x[k] = fmin(fmax(x[k], 0), 1);
	for (i = k = 0; i < c->space->n; i++) {
		if (!point_active(c->space, point, i))
			point[i] = NAN;
		else if (c->chances[i])
			point[i] = (double)draw_option(c, i);
		else
			point[i] = param_from_unit(&c->space->params[i], x[k]);
		k += !c->chances[i];
	}
}

static bool cmaes_ask(void *state, double *point)
{
	struct cmaes *c = state;
	double *x = xcalloc(c->n + 1, sizeof(*x));
	int draws = 0;

	if (!c->started)
		restart(c);
	else
		next_generation(c);
	do
		draw(c, x, point);
	while (trials_seen(&c->trials, point) && ++draws < DRAWS);
	if (draws == DRAWS) {
		if (!trials_ask_random(&c->trials, point)) {
			free(x);
			return false;
		}
		units_of(c, point, x);
		c->substitutes++;
	} else {
		trials_ask(&c->trials, point);
	}
	VEC_PUSH(&c->population, ((struct member){ point_set_find(&c->trials.points, point), x }));
	return true;
}

const struct sampler_type sampler_cmaes = {
	.name = "cmaes",
	.aliases = "CmaEsSampler cma-es",
	.summary = "a normal distribution that follows the better half of its points, restarted when it "
		   "converges",
	.start = cmaes_start,
	.ask = cmaes_ask,
	.tell = cmaes_tell,
	.end = cmaes_end,
};
