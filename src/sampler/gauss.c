#include "sampler/gauss.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* length in parts of the number of parameters; the longest make the process nearly a sum over parameters */
static const double lengths[] = { 1. / 32, 1. / 16, 1. / 8, 1. / 4, 1. / 2, 1, 2, 4 };
/* in parts of the signal's variance; the lowest only where there are numbers: a smooth function has less than that */
static const double noises[] = { 1e-8, 1e-6, 1e-4, 1e-3, 1e-2, 1e-1 };
/* of numbers, in parts of the scale; what is likely beforehand is one near the middle */
static const double number_lengths[] = { 0.04, 0.07, 0.12, 0.2, 0.35, 0.6, 1, 1.8, 3, 5, 9, 16 };

#define VARIANCE_MIN 1e-12 /* in parts of the signal's: what rounding leaves of none */
#define PRIOR_DEVIATION 4. /* of a number's length, in places of the grid */

enum {
	FULL_GRID = 64, /* up to as many points every fit looks at the whole grid: it is cheap */
	PASSES = 3,     /* through all hyperparameters, up to as many points; one beyond */
	LENGTH_START = 5,
};

unsigned gauss_differ(const struct point_space *space, const double *a, const double *b)
{
	unsigned differ = 0;
	size_t i;

	for (i = 0; i < space->n; i++)
		if (param_is_number(&space->params[i]))
			differ += isnan(a[i]) != isnan(b[i]);
		else
			differ += a[i] != b[i] && !(isnan(a[i]) && isnan(b[i]));
	return differ;
}

void gauss_place(const struct gauss *g, const double *point, double *numbers)
{
	size_t k;

	for (k = 0; k < g->n_numbers; k++) {
		double x = point[g->numbers[k]];

		numbers[k] = isnan(x) ? NAN : param_unit(&g->space->params[g->numbers[k]], x);
	}
}

/* exp(-a) (1 + a + a^2 / 3) with a = sqrt(5) r, of numbers that both have */
static double matern(const struct gauss *g, const double *a, const double *b)
{
	double square = 0, r;
	size_t k;

	for (k = 0; k < g->n_numbers; k++) {
		double apart = (a[k] - b[k]) * g->inverse[k];

		square += apart == apart ? apart * apart : 0; /* not NAN */
	}
	r = sqrt(5 * square);
	return exp(-r) * (1 + r + r * r / 3);
}

/*
 * In place, by rows of the upper triangle: the inner loop adds a multiple of one row to another, which the
 * compiler can do with vectors without changing the order of any sum.
 */
static bool cholesky(double *a, size_t n)
{
	size_t i, k, c;

	for (k = 0; k < n; k++) {
		double *row = a + k * n, pivot = row[k];

		if (!(pivot > 0))
			return false;
		pivot = sqrt(pivot);
		for (c = k; c < n; c++)
			row[c] /= pivot;
		for (i = k + 1; i < n; i++) {
			double *below = a + i * n, x = row[i];

			for (c = i; c < n; c++)
				below[c] -= x * row[c];
		}
	}
	return true;
}

/* Factors for the choice of hyperparameters at hand; the logarithm of its likelihood, up to a constant. */
static double try_choice(struct gauss *g)
{
	double scale = -1 / (lengths[g->length] * (double)g->n_options), squares = 0, log_det = 0, prior = 0;
	size_t n = g->n, i, k;

	for (i = 0; i <= g->n_options; i++)
		g->covariance[i] = i ? exp(scale * (double)i) : 1;
	for (k = 0; k < g->n_numbers; k++) {
		double place = (g->lengths[k] - LENGTH_START) / PRIOR_DEVIATION;

		g->inverse[k] = 1 / number_lengths[g->lengths[k]];
		prior -= 0.5 * place * place;
	}
	for (i = 0; i < n; i++) {
		for (k = i; k < n; k++) {
			g->factor[i * n + k] = g->covariance[g->differ[i * n + k]];
			if (g->n_numbers)
				g->factor[i * n + k] *=
					matern(g, g->units + i * g->n_numbers, g->units + k * g->n_numbers);
		}
		g->factor[i * n + i] += noises[g->noise];
	}
	if (!cholesky(g->factor, n))
		return -INFINITY;
	memcpy(g->whitened, g->y, n * sizeof(double));
	for (i = 0; i < n; i++) {
		const double *row = g->factor + i * n;
		double z = g->whitened[i] /= row[i];

		for (k = i + 1; k < n; k++)
			g->whitened[k] -= z * row[k];
		squares += z * z;
		log_det += log(row[i]);
	}
	/* given the rest, the best variance of the signal is known */
	g->variance = fmax(squares / (double)n, VARIANCE_MIN);
	return -0.5 * (double)n * log(g->variance) - log_det + prior;
}

static double try_pair(struct gauss *g, int length, int noise)
{
	g->length = length;
	g->noise = noise;
	return try_choice(g);
}

/* Options only: the whole grid, or a step from where the last fit was. */
static void choose_pair(struct gauss *g)
{
	int n_lengths = ARRAY_LEN(lengths), n_noises = ARRAY_LEN(noises), l0 = 0, l1 = n_lengths - 1, k0 = 1,
	    k1 = n_noises - 1, length, noise, best_length = n_lengths / 2, best_noise = n_noises - 1,
	    was_length = g->length, was_noise = g->noise;
	bool step = g->fitted && g->n > FULL_GRID;
	double best = -INFINITY;

	if (step) {
		l0 = was_length > 0 ? was_length - 1 : 0;
		l1 = was_length + 1 < n_lengths ? was_length + 1 : was_length;
		k0 = was_noise > 1 ? was_noise - 1 : 1;
		k1 = was_noise + 1 < n_noises ? was_noise + 1 : was_noise;
	}
	for (length = l0; length <= l1; length++)
		for (noise = k0; noise <= k1; noise++) {
			double likelihood;

			if (step && length != was_length && noise != was_noise)
				continue; /* a step along one axis at a time */
			likelihood = try_pair(g, length, noise);
			if (likelihood > best) {
				best = likelihood;
				best_length = length;
				best_noise = noise;
			}
		}
	if (g->length != best_length || g->noise != best_noise)
		try_pair(g, best_length, best_noise);
}

/* Steps of one hyperparameter as long as they make the data likelier; true when it was changed. */
static bool climb(struct gauss *g, int *place, int n_places, double *best)
{
	int from = *place, direction;

	for (direction = -1; direction <= 1; direction += 2)
		while (*place + direction >= 0 && *place + direction < n_places) {
			double likelihood;

			*place += direction;
			likelihood = try_choice(g);
			if (!(likelihood > *best)) {
				*place -= direction;
				break;
			}
			*best = likelihood;
		}
	return *place != from;
}

/* With numbers: one hyperparameter after the other. Later, the choice is only looked at when a tenth is new. */
static void choose_each(struct gauss *g)
{
	double best = try_choice(g);
	int pass, passes = g->n <= FULL_GRID ? PASSES : 1;
	bool changed = true;
	size_t k;

	if (isfinite(best) && g->fitted && g->n > FULL_GRID && g->n < g->fitted + g->fitted / 10)
		return;
	for (pass = 0; changed && pass < passes; pass++) {
		changed = climb(g, &g->noise, ARRAY_LEN(noises), &best);
		if (g->n_options)
			changed |= climb(g, &g->length, ARRAY_LEN(lengths), &best);
		for (k = 0; k < g->n_numbers; k++)
			changed |= climb(g, &g->lengths[k], ARRAY_LEN(number_lengths), &best);
	}
	try_choice(g);
	g->fitted = g->n;
}

static void weigh(struct gauss *g)
{
	size_t n = g->n, i, k;

	for (i = n; i-- > 0;) {
		const double *row = g->factor + i * n;
		double sum = g->whitened[i];

		for (k = i + 1; k < n; k++)
			sum -= row[k] * g->weights[k];
		g->weights[i] = sum / row[i];
	}
}

static void list_numbers(struct gauss *g)
{
	size_t i;

	g->numbers = xcalloc(g->space->n, sizeof(*g->numbers));
	g->lengths = xcalloc(g->space->n, sizeof(*g->lengths));
	g->inverse = xcalloc(g->space->n, sizeof(*g->inverse));
	for (i = 0; i < g->space->n; i++) {
		const struct point_param *p = &g->space->params[i];

		if (param_is_number(p)) {
			g->lengths[g->n_numbers] = LENGTH_START;
			g->numbers[g->n_numbers++] = i;
		}
		g->n_options += !param_is_number(p) || p->parent != POINT_NONE;
	}
	g->length = ARRAY_LEN(lengths) / 2;
	g->noise = 1;
	g->covariance = xcalloc(g->n_options + 1, sizeof(double));
}

void gauss_fit(struct gauss *g, const struct point_space *space, const double *points, const double *y,
	       size_t n)
{
	size_t i, k;

	if (!g->space) {
		g->space = space;
		list_numbers(g);
	}
	g->y = y;
	g->n = n;
	g->units = xrealloc(g->units, n * g->n_numbers + 1, sizeof(double));
	g->differ = xrealloc(g->differ, n * n, sizeof(*g->differ));
	g->factor = xrealloc(g->factor, n * n, sizeof(double));
	g->whitened = xrealloc(g->whitened, n, sizeof(double));
	g->weights = xrealloc(g->weights, n, sizeof(double));
	for (i = 0; i < n; i++) {
		gauss_place(g, points + i * space->n, g->units + i * g->n_numbers);
		for (k = i; k < n; k++)
			g->differ[i * n + k] =
				(uint16_t)gauss_differ(space, points + i * space->n, points + k * space->n);
	}
	if (g->n_numbers)
		choose_each(g);
	else
		choose_pair(g);
	g->fitted = g->fitted ? g->fitted : n;
	weigh(g);
}

double gauss_length(const struct gauss *g, size_t number)
{
	return number_lengths[g->lengths[number]];
}

void gauss_covariances(const struct gauss *g, const double *numbers, const uint16_t *differ, double *out)
{
	size_t i;

	for (i = 0; i < g->n; i++) {
		out[i] = g->covariance[differ[i]];
		if (g->n_numbers)
			out[i] *= matern(g, numbers, g->units + i * g->n_numbers);
	}
}

double gauss_mean(const struct gauss *g, const double *covariances)
{
	double sum = 0;
	size_t i;

	for (i = 0; i < g->n; i++)
		sum += g->weights[i] * covariances[i];
	return sum;
}

/* The variance given the nearest point alone: to know more only makes it smaller. */
double gauss_variance_bound(const struct gauss *g, const double *covariances)
{
	double c = 0;
	size_t i;

	for (i = 0; i < g->n; i++)
		c = fmax(c, covariances[i]);
	return g->variance * fmax(1 - c * c / (1 + noises[g->noise]), VARIANCE_MIN);
}

double gauss_variance(const struct gauss *g, double *covariances)
{
	size_t n = g->n, i, k;
	double squares = 0;

	for (i = 0; i < n; i++) {
		const double *row = g->factor + i * n;
		double v = covariances[i] / row[i];

		squares += v * v;
		for (k = i + 1; k < n; k++)
			covariances[k] -= v * row[k];
	}
	return g->variance * fmax(1 - squares, VARIANCE_MIN);
}

void gauss_release(struct gauss *g)
{
	free(g->numbers);
	free(g->lengths);
	free(g->inverse);
	free(g->units);
	free(g->differ);
	free(g->covariance);
	free(g->factor);
	free(g->whitened);
	free(g->weights);
}
