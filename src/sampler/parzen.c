#include "sampler/parzen.h"

#include <math.h>
#include <stdlib.h>

enum {
	FLAT = 25, /* as many of the latest trials have full weight */
};

#define LOG_SQRT_2PI 0.91893853320467274178

/* Old trials fade: from 1 / n for the first in equal steps to 1 for the last FLAT. */
static double weight_of_age(size_t i, size_t n)
{
	size_t ramp = n > FLAT ? n - FLAT : 0;

	if (i >= ramp)
		return 1;
	return ramp == 1 ? 1. / (double)n
			 : 1. / (double)n + (1 - 1. / (double)n) * (double)i / (double)(ramp - 1);
}

/* What of the standard normal distribution lies between a and b; from the side where little is lost. */
static double normal_between(double a, double b)
{
	double r = 0.70710678118654752440;

	return a > 0 ? 0.5 * (erfc(a * r) - erfc(b * r)) : 0.5 * (erfc(-b * r) - erfc(-a * r));
}

static bool is_plain(const struct point_param *p) /* an option that is always active */
{
	return !param_is_number(p) && p->parent == POINT_NONE;
}

/*
 * With K kernels in all, a trial's kernel is, for each categorical parameter on its own, the trial's own option
 * with weight 1 mixed with all options evenly, with weight 1 / K (times the prior's). So the logarithm of a kernel
 * is a sum over those parameters in which the point agrees with the trial.
 */
static void init_options(struct parzen *d)
{
	const struct point_space *space = d->trials->space;
	size_t i;

	for (i = 0; i < space->n; i++) {
		double levels = (double)space->params[i].levels, even;

		if (param_is_number(&space->params[i]))
			continue;
		even = d->prior_weight / ((double)(d->n + 1) * levels);
		d->log_agree[i] = log1p(1 / even);
		d->log_even[i] = log(even) - log1p(d->prior_weight / (double)(d->n + 1));
		if (space->params[i].parent != POINT_NONE)
			continue;
		d->log_apart += d->log_even[i];
		d->log_prior -= log(levels);
	}
}

/*
 * Half of what Scott's rule (1992) says, for the trials and one evenly spread pseudo-trial: as good trials draw
 * together, so do the points drawn around them. Few trials say little about their spread, so there is a limit
 * that sinks with their number; and the next level must stay in reach.
 */
static double width_of(const struct parzen *d, size_t param, size_t n_numbers)
{
	size_t width = d->trials->space->n, i;
	double levels = (double)d->trials->space->params[param].levels, mean = 0, squares = 1. / 12, n = 0,
	       sigma;

	for (i = 0; i < d->n; i++) {
		double x = d->centre[i * width + param], apart = x - mean;

		if (isnan(x))
			continue;
		mean += apart / ++n;
		squares += apart * (x - mean);
	}
	sigma = sqrt(squares / (n + 1)) * pow(fmax(n, 1), -1 / (4 + (double)n_numbers));
	sigma = 0.5 * fmax(sigma, 1 / (n + 1));
	return fmin(fmax(sigma, levels > 0 ? 1 / levels : 0), 1);
}

static void init_numbers(struct parzen *d)
{
	const struct point_space *space = d->trials->space;
	size_t width = space->n, n_numbers = 0, i, k;

	for (k = 0; k < width; k++)
		n_numbers += param_is_number(&space->params[k]);
	if (!n_numbers)
		return;
	d->sigma = xcalloc(width, sizeof(double));
	d->centre = xcalloc(d->n * width + 1, sizeof(double));
	d->log_cut = xcalloc(d->n * width + 1, sizeof(double));
	for (k = 0; k < width; k++) {
		if (!param_is_number(&space->params[k]))
			continue;
		for (i = 0; i < d->n; i++) {
			double x = point_set_get(&d->trials->points, d->numbers[i])[k];

			d->centre[i * width + k] = isnan(x) ? NAN : param_unit(&space->params[k], x);
		}
		d->sigma[k] = width_of(d, k, n_numbers);
		for (i = 0; i < d->n; i++) {
			double mu = d->centre[i * width + k];

			d->log_cut[i * width + k] =
				log(normal_between(-mu / d->sigma[k], (1 - mu) / d->sigma[k]));
		}
	}
}

void parzen_init(struct parzen *d, const struct trials *t, size_t *numbers, size_t n, double prior_weight)
{
	double total = 0;
	size_t i;

	*d = (struct parzen){ .trials = t, .prior_weight = prior_weight, .numbers = numbers, .n = n };
	d->weights = xcalloc(n + 1, sizeof(double));
	d->log_weights = xcalloc(n + 1, sizeof(double));
	d->log_agree = xcalloc(t->space->n, sizeof(double));
	d->log_even = xcalloc(t->space->n, sizeof(double));
	for (i = 0; i <= n; i++)
		total += d->weights[i] = i < n ? weight_of_age(i, n) : prior_weight;
	for (i = 0; i <= n; i++) {
		d->weights[i] /= total;
		d->log_weights[i] = log(d->weights[i]);
	}
	init_options(d);
	init_numbers(d);
}

void parzen_release(struct parzen *d)
{
	free(d->numbers);
	free(d->weights);
	free(d->log_weights);
	free(d->log_agree);
	free(d->log_even);
	free(d->sigma);
	free(d->centre);
	free(d->log_cut);
}

/* Where a number of the point lies on its scale. */
struct place {
	double at, lo, hi; /* of its cell; lo = hi when it is continuous */
};

static double prior_factor(const struct point_param *p, const struct place *place)
{
	if (!param_is_number(p))
		return -log((double)p->levels);
	return p->levels ? log(place->hi - place->lo) : 0;
}

static double kernel_factor(const struct parzen *d, size_t i, size_t k, double x, const struct place *place)
{
	const struct point_param *p = &d->trials->space->params[k];
	size_t at = i * d->trials->space->n + k;
	double trial = point_set_get(&d->trials->points, d->numbers[i])[k], z;

	if (isnan(trial))
		return prior_factor(p, place);
	if (!param_is_number(p))
		return d->log_even[k] + (x == trial ? d->log_agree[k] : 0);
	if (p->levels)
		return log(fmax(normal_between((place->lo - d->centre[at]) / d->sigma[k],
					       (place->hi - d->centre[at]) / d->sigma[k]),
				1e-300)) -
		       d->log_cut[at];
	z = (place->at - d->centre[at]) / d->sigma[k];
	return -0.5 * z * z - log(d->sigma[k]) - LOG_SQRT_2PI - d->log_cut[at];
}

static void find_places(const struct point_space *space, const double *point, struct place *places)
{
	size_t k;

	for (k = 0; k < space->n; k++) {
		const struct point_param *p = &space->params[k];

		if (!param_is_number(p) || isnan(point[k]))
			continue;
		places[k].at = param_unit(p, point[k]);
		if (p->levels)
			param_cell(p, point[k], &places[k].lo, &places[k].hi);
	}
}

double parzen_log(const struct parzen *d, const double *point)
{
	const struct point_space *space = d->trials->space;
	struct place *places = xcalloc(space->n, sizeof(*places));
	size_t *others = xcalloc(space->n, sizeof(*others)), n_others = 0, i, k;
	double top = d->log_weights[d->n] + d->log_prior, sum = 1; /* the sum is in parts of e^top */

	find_places(space, point, places);
	for (k = 0; k < space->n; k++)
		if (!is_plain(&space->params[k]) && !isnan(point[k])) {
			others[n_others++] = k;
			top += prior_factor(&space->params[k], &places[k]);
		}
	for (i = 0; i < d->n; i++) {
		const double *trial = point_set_get(&d->trials->points, d->numbers[i]);
		double x = d->log_weights[i] + d->log_apart;

		for (k = 0; k < space->n; k++) /* log_agree is 0 for numbers */
			x += point[k] == trial[k] && is_plain(&space->params[k]) ? d->log_agree[k] : 0;
		for (k = 0; k < n_others; k++)
			x += kernel_factor(d, i, others[k], point[others[k]], &places[others[k]]);
		if (x > top) {
			sum = sum * exp(top - x) + 1;
			top = x;
		} else {
			sum += exp(x - top);
		}
	}
	free(places);
	free(others);
	return top + log(sum);
}

static double draw_number(const struct parzen *d, struct rng *rng, size_t kernel, size_t k)
{
	double u;

	do
		u = d->centre[kernel * d->trials->space->n + k] + d->sigma[k] * rng_normal(rng);
	while (!(u >= 0 && u <= 1)); /* a third of it or more is inside */
	return param_from_unit(&d->trials->space->params[k], u);
}

static size_t choose_kernel(const struct parzen *d, struct rng *rng)
{
	double u = rng_unit(rng);
	size_t kernel;

	for (kernel = 0; kernel < d->n && u >= d->weights[kernel]; kernel++)
		u -= d->weights[kernel];
	return kernel;
}

static double draw_param(const struct parzen *d, struct rng *rng, size_t kernel, size_t i)
{
	const struct point_param *p = &d->trials->space->params[i];
	double trial = kernel < d->n ? point_set_get(&d->trials->points, d->numbers[kernel])[i] : NAN;

	if (isnan(trial))
		return param_draw(p, rng);
	if (param_is_number(p))
		return draw_number(d, rng, kernel, i);
	if (rng_unit(rng) * ((double)(d->n + 1) + d->prior_weight) < (double)(d->n + 1))
		return trial; /* 1 against w / K */
	return param_draw(p, rng);
}

void parzen_draw(const struct parzen *d, struct rng *rng, bool mixed, double *point)
{
	const struct point_space *space = d->trials->space;
	size_t kernel = choose_kernel(d, rng), i;

	for (i = 0; i < space->n; i++) {
		if (!point_active(space, point, i)) {
			point[i] = NAN;
			continue;
		}
		if (mixed)
			kernel = choose_kernel(d, rng);
		point[i] = draw_param(d, rng, kernel, i);
	}
}
