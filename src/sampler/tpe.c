/*
 * The tree-structured Parzen estimator (Bergstra, Bardenet, Bengio and Kégl 2011), in the multivariate form
 * (Falkner, Klein and Hutter 2018), with Optuna's defaults: a random start; then the trials are split into
 * the good tenth and the rest, a density is fitted to each, and of a few points drawn from the
 * density l of the good ones that is asked for which l / g is highest.
 *
 * One thing differs: in Optuna a kernel's prior weighs 1 / K for each option, which with many options drowns
 * the trial itself; here the options share that weight. Pending trials count among the rest, so that the
 * next point keeps away from them. Where there are numbers, every second candidate takes each parameter from
 * a good trial of its own.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "sampler/parzen.h"
#include "sampler/type.h"

enum {
	GOOD_MAX = 25,
};

struct tpe {
	const struct point_space *space;
	struct trials trials;
	struct rng rng;
	struct sampler_tpe_options opt;
	bool numbers_too;
};

static struct sampler_tpe_options with_defaults(struct sampler_tpe_options o)
{
	return (struct sampler_tpe_options){
		.startup = o.startup ? o.startup : 10,
		.candidates = o.candidates ? o.candidates : 24,
		.gamma = o.gamma > 0 ? o.gamma : 0.1,
		.prior_weight = o.prior_weight > 0 ? o.prior_weight : 1,
	};
}

static void *tpe_start(const struct point_space *space, const struct sampler_options *opt)
{
	struct tpe *t = xcalloc(1, sizeof(*t));

	t->space = space;
	t->numbers_too = point_has_numbers(space);
	t->opt = with_defaults(opt->tpe);
	trials_init(&t->trials, space, opt);
	rng_seed(&t->rng, opt->seed ^ 0x7470650000000000u);
	return t;
}

static void tpe_end(void *state)
{
	struct tpe *t = state;

	trials_release(&t->trials);
	free(t);
}

static void tpe_tell(void *state, const double *point, const struct sampler_result *r)
{
	struct tpe *t = state;

	trials_tell(&t->trials, point, r);
}

static size_t good_count(double gamma, size_t n)
{
	size_t share = (size_t)ceil(gamma * (double)n - 1e-9); /* 0.1 is a little more than a tenth */

	return share < GOOD_MAX ? share : GOOD_MAX;
}

static void split(const struct tpe *tpe, struct parzen *good, struct parzen *rest)
{
	const struct trials *t = &tpe->trials;
	size_t *ranked = xcalloc(t->list.n, sizeof(size_t)), *good_ones = xcalloc(t->list.n, sizeof(size_t)),
	       *others = xcalloc(t->list.n, sizeof(size_t)), n_good = 0, n_others = 0, i;
	bool *is_good = xcalloc(t->list.n, sizeof(*is_good));

	trials_rank(t, ranked);
	for (i = 0; i < good_count(tpe->opt.gamma, t->done + t->failed); i++)
		is_good[ranked[i]] = true;
	for (i = 0; i < t->list.n; i++)
		if (is_good[i])
			good_ones[n_good++] = i;
		else
			others[n_others++] = i;
	parzen_init(good, t, good_ones, n_good, tpe->opt.prior_weight);
	parzen_init(rest, t, others, n_others, tpe->opt.prior_weight);
	free(is_good);
	free(ranked);
}

static size_t tpe_independent(const void *state)
{
	const struct tpe *t = state;
	const size_t told = t->trials.done + t->trials.failed;

	return told < t->opt.startup ? t->opt.startup - told : 1;
}

static bool tpe_ask(void *state, double *point)
{
	struct tpe *t = state;
	struct parzen good, rest;
	double *candidate;
	double best = -INFINITY;
	bool found = false;
	unsigned i;

	if (t->trials.done + t->trials.failed < t->opt.startup)
		return trials_ask_random(&t->trials, point);
	candidate = xcalloc(t->space->n, sizeof(*candidate));
	split(t, &good, &rest);
	for (i = 0; i < t->opt.candidates; i++) {
		double score;

		parzen_draw(&good, &t->rng, t->numbers_too && i % 2, candidate);
		if (trials_seen(&t->trials, candidate))
			continue;
		score = parzen_log(&good, candidate) - parzen_log(&rest, candidate);
		if (!found || score > best) {
			memcpy(point, candidate, t->space->n * sizeof(*point));
			best = score;
			found = true;
		}
	}
	parzen_release(&good);
	parzen_release(&rest);
	free(candidate);
	if (!found)
		return trials_ask_random(&t->trials, point);
	trials_ask(&t->trials, point);
	return true;
}

const struct sampler_type sampler_tpe = {
	.name = "tpe",
	.aliases = "TPESampler",
	.summary = "prefers what is common among good points and rare among the rest",
	.start = tpe_start,
	.ask = tpe_ask,
	.independent = tpe_independent,
	.tell = tpe_tell,
	.end = tpe_end,
};
