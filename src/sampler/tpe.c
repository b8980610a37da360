/*
 * The tree-structured Parzen estimator (Bergstra, Bardenet, Bengio and Kégl 2011), in the multivariate form
 * (Falkner, Klein and Hutter 2018), with Optuna's defaults: a random start; then the trials are split into
 * the good tenth and the rest, a density is fitted to each, and of a few points drawn from the
 * density l of the good ones that is asked for which l / g is highest.
 *
 * One thing differs: in Optuna a kernel's prior weighs 1 / K for each option, which with many options drowns
 * the trial itself; here the options share that weight. Pending trials count among the rest, so that the
 * next point keeps away from them.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "sampler/trials.h"
#include "sampler/type.h"

enum {
	GOOD_MAX = 25,
	FLAT = 25, /* as many of the latest trials have full weight */
};

struct tpe {
	const struct point_space *space;
	struct trials trials;
	struct rng rng;
	struct sampler_tpe_options opt;
};

/*
 * A mixture of one kernel per trial and the uniform prior, which weighs as much as one recent trial. With
 * K kernels in all, a trial's kernel is, for each parameter on its own, the trial's own option with weight 1
 * mixed with all options evenly, with weight 1 / K (times the prior's). So the logarithm of a kernel is a sum over those
 * parameters in which the point agrees with the trial.
 */
struct density {
	const struct trials *trials;
	double prior_weight;
	size_t *numbers; /* of the trials, in order of age */
	size_t n;
	double *weights; /* of the kernels, then of the prior; they add up to 1 */
	double *log_weights;
	double *log_agree;           /* what it adds to agree, for each parameter */
	double log_apart, log_prior; /* of a kernel where nothing agrees, and of the prior */
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

/* Old trials fade: from 1 / n for the first in equal steps to 1 for the last FLAT. */
static double weight_of_age(size_t i, size_t n)
{
	size_t ramp = n > FLAT ? n - FLAT : 0;

	if (i >= ramp)
		return 1;
	return ramp == 1 ? 1. / (double)n
			 : 1. / (double)n + (1 - 1. / (double)n) * (double)i / (double)(ramp - 1);
}

static void density_finish(struct density *d)
{
	const struct point_space *space = d->trials->space;
	double total = 0;
	size_t i;

	d->weights = xcalloc(d->n + 1, sizeof(double));
	d->log_weights = xcalloc(d->n + 1, sizeof(double));
	d->log_agree = xcalloc(space->n, sizeof(double));
	for (i = 0; i <= d->n; i++)
		total += d->weights[i] = i < d->n ? weight_of_age(i, d->n) : d->prior_weight;
	for (i = 0; i <= d->n; i++) {
		d->weights[i] /= total;
		d->log_weights[i] = log(d->weights[i]);
	}
	for (i = 0; i < space->n; i++) {
		double even = d->prior_weight / ((double)(d->n + 1) * (double)space->params[i].levels);

		d->log_agree[i] = log1p(1 / even);
		d->log_apart += log(even) - log1p(d->prior_weight / (double)(d->n + 1));
		d->log_prior -= log((double)space->params[i].levels);
	}
}

static void density_release(struct density *d)
{
	free(d->numbers);
	free(d->weights);
	free(d->log_weights);
	free(d->log_agree);
}

static size_t good_count(double gamma, size_t n)
{
	size_t share = (size_t)ceil(gamma * (double)n - 1e-9); /* 0.1 is a little more than a tenth */

	return share < GOOD_MAX ? share : GOOD_MAX;
}

static void split(const struct tpe *tpe, struct density *good, struct density *rest)
{
	const struct trials *t = &tpe->trials;
	size_t *ranked = xcalloc(t->list.n, sizeof(*ranked)), i;
	size_t n_good = good_count(tpe->opt.gamma, t->done + t->failed);
	bool *is_good = xcalloc(t->list.n, sizeof(*is_good));

	*good = *rest = (struct density){ .trials = t, .prior_weight = tpe->opt.prior_weight };
	good->numbers = xcalloc(t->list.n, sizeof(size_t));
	rest->numbers = xcalloc(t->list.n, sizeof(size_t));
	trials_rank(t, ranked);
	for (i = 0; i < n_good; i++)
		is_good[ranked[i]] = true;
	for (i = 0; i < t->list.n; i++) {
		struct density *d = is_good[i] ? good : rest;

		d->numbers[d->n++] = i;
	}
	density_finish(good);
	density_finish(rest);
	free(is_good);
	free(ranked);
}

static double density_log(const struct density *d, const double *point)
{
	size_t n = d->trials->space->n, i, k;
	double top = d->log_weights[d->n] + d->log_prior, sum = 1; /* the sum is in parts of e^top */

	for (i = 0; i < d->n; i++) {
		const double *trial = point_set_get(&d->trials->points, d->numbers[i]);
		double x = d->log_weights[i] + d->log_apart;

		for (k = 0; k < n; k++)
			x += point[k] == trial[k] ? d->log_agree[k] : 0;
		if (x > top) {
			sum = sum * exp(top - x) + 1;
			top = x;
		} else {
			sum += exp(x - top);
		}
	}
	return top + log(sum);
}

static void density_draw(const struct density *d, struct rng *rng, double *point)
{
	const struct point_space *space = d->trials->space;
	double u = rng_unit(rng);
	const double *trial;
	size_t i;

	for (i = 0; i < d->n && u >= d->weights[i]; i++)
		u -= d->weights[i];
	if (i == d->n) {
		point_draw(space, rng, point);
		return;
	}
	trial = point_set_get(&d->trials->points, d->numbers[i]);
	for (i = 0; i < space->n; i++)
		if (rng_unit(rng) * ((double)(d->n + 1) + d->prior_weight) <
		    (double)(d->n + 1)) /* 1 against w / K */
			point[i] = trial[i];
		else
			point[i] = param_draw(&space->params[i], rng);
}

static bool tpe_ask(void *state, double *point)
{
	struct tpe *t = state;
	struct density good, rest;
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

		density_draw(&good, &t->rng, candidate);
		if (trials_seen(&t->trials, candidate))
			continue;
		score = density_log(&good, candidate) - density_log(&rest, candidate);
		if (!found || score > best) {
			memcpy(point, candidate, t->space->n * sizeof(*point));
			best = score;
			found = true;
		}
	}
	density_release(&good);
	density_release(&rest);
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
	.tell = tpe_tell,
	.end = tpe_end,
};
