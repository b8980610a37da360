/*
 * Test functions with numbers, options and conditions, to be minimised; some have a constraint or two objectives.
 * mixed.py has the same in Python: both sides agree but for rounding.
 */
#ifndef OPTUNA_MIXED_H
#define OPTUNA_MIXED_H

#include <math.h>
#include <stddef.h>

#include "sampler/sampler.h"

#define MIXED_PI 3.14159265358979323846

static const double mixed_shift[] = { 1.2, -2.3, 0.7, 3.1, -1.6 };

static inline void mixed_sphere(const double *x, double *out)
{
	size_t i;

	for (*out = 0, i = 0; i < 5; i++)
		*out += (x[i] - mixed_shift[i]) * (x[i] - mixed_shift[i]);
}

static inline void mixed_rosenbrock(const double *x, double *out)
{
	size_t i;

	for (*out = 0, i = 0; i < 3; i++)
		*out += 100 * (x[i + 1] - x[i] * x[i]) * (x[i + 1] - x[i] * x[i]) + (1 - x[i]) * (1 - x[i]);
}

static inline void mixed_ackley(const double *x, double *out)
{
	double squares = 0, waves = 0;
	size_t i;

	for (i = 0; i < 5; i++) {
		double y = x[i] - 4 * mixed_shift[i];

		squares += y * y;
		waves += cos(2 * MIXED_PI * y);
	}
	*out = -20 * exp(-0.2 * sqrt(squares / 5)) - exp(waves / 5) + 20 + exp(1);
}

static inline void mixed_branin(const double *x, double *out)
{
	double a = x[0], b = x[1],
	       parabola = b - 5.1 / (4 * MIXED_PI * MIXED_PI) * a * a + 5 / MIXED_PI * a - 6;

	*out = parabola * parabola + 10 * (1 - 1 / (8 * MIXED_PI)) * cos(a) + 10;
}

static inline void mixed_hartmann6(const double *x, double *out)
{
	static const double alpha[] = { 1.0, 1.2, 3.0, 3.2 },
			    a[4][6] = { { 10, 3, 17, 3.5, 1.7, 8 },
					{ 0.05, 10, 17, 0.1, 8, 14 },
					{ 3, 3.5, 1.7, 10, 17, 8 },
					{ 17, 8, 0.05, 10, 0.1, 14 } },
			    p[4][6] = { { 0.1312, 0.1696, 0.5569, 0.0124, 0.8283, 0.5886 },
					{ 0.2329, 0.4135, 0.8307, 0.3736, 0.1004, 0.9991 },
					{ 0.2348, 0.1451, 0.3522, 0.2883, 0.3047, 0.6650 },
					{ 0.4047, 0.8828, 0.8732, 0.5743, 0.1091, 0.0381 } };
	size_t i, k;

	for (*out = 0, i = 0; i < 4; i++) {
		double sum = 0;

		for (k = 0; k < 6; k++)
			sum += a[i][k] * (x[k] - p[i][k]) * (x[k] - p[i][k]);
		*out -= alpha[i] * exp(-sum);
	}
}

/* Like a fine-tuning: rate (log), momentum, iterations (integer, log), blocks (integer), optimizer, loss. */
static inline void mixed_training(const double *x, double *out)
{
	static const double rates[] = { 2.0, 2.6, 3.4, 3.0 }, momenta[] = { 0.9, 0.8, 0.3, 0.6 },
			    losses[] = { 0.3, 0.0, 0.8 };
	size_t optimizer = (size_t)x[4], loss = (size_t)x[5];
	double r = log10(x[0]) + rates[optimizer], m = x[1] - momenta[optimizer],
	       i = log2(x[2]) - 9 + x[3] / 4, b = x[3] - 5 - x[5];

	*out = r * r + 2 * m * m + 0.1 * i * i + losses[loss] + 0.05 * b * b + 0.1 * x[4];
}

/* Each kind has parameters of its own. */
static inline void mixed_recipes(const double *x, double *out)
{
	static const double roundings[] = { 0.25, 0.0, 0.4 };
	double r;

	if (x[0] == 0) {
		*out = 1;
	} else if (x[0] == 1) {
		*out = 0.5 + 4 * (x[1] - 0.37) * (x[1] - 0.37);
	} else {
		r = log10(x[2]) + 3.3 + (x[4] == 1 ? 0.5 : 0);
		*out = 0.1 + 0.2 * r * r + 0.02 * (x[3] - 17) * (x[3] - 17) / 10 + roundings[(size_t)x[4]] +
		       0.05 * (8 - x[5]);
	}
}

/* Time and violation: each part is quicker and less accurate the smaller its number; a kind changes both. */
static inline void mixed_latency(const double *x, double *out)
{
	static const double times[] = { 0.6, 0.3, 0.0 }, losses[] = { 0.02, 0.05, 0.11 };
	size_t kind = (size_t)x[4];

	out[0] = 1 + 2 * x[0] + x[1] + 0.5 * x[2] + 0.2 * x[3] + times[kind];
	out[1] = losses[kind] + 0.3 * (1 - x[0]) * (1 - x[0]) + 0.2 * (1 - x[1]) * (1 - x[1]) +
		 0.1 * (1 - x[2]) * (1 - x[2]) + 0.02 * (8 - x[3]) - 0.25;
}

static inline double mixed_zdt_g(const double *x)
{
	double sum = 0;
	size_t i;

	for (i = 1; i < 8; i++)
		sum += x[i];
	return 1 + 9 * sum / 7;
}

static inline void mixed_zdt1(const double *x, double *out)
{
	double g = mixed_zdt_g(x);

	out[0] = x[0];
	out[1] = g * (1 - sqrt(x[0] / g));
}

static inline void mixed_zdt2(const double *x, double *out)
{
	double g = mixed_zdt_g(x);

	out[0] = x[0];
	out[1] = g * (1 - x[0] / g * (x[0] / g));
}

/* Time, loss and violation. */
static inline void mixed_tradeoff(const double *x, double *out)
{
	double latency[2];

	mixed_latency(x, latency);
	out[0] = latency[0];
	out[1] = latency[1] + 0.25;
	out[2] = latency[1] - 0.1;
}

enum {
	MIXED_PARAMS_MAX = 8,
	MIXED_RESULTS_MAX = 3,
};

struct mixed {
	const char *name;
	void (*value)(const double *x, double *out); /* objectives, then violations */
	size_t n_params, n_objectives, n_constraints;
	struct sampler_param params[MIXED_PARAMS_MAX];
};

#define MIXED_FLOAT(from, to)                                                                                \
	{                                                                                                    \
		.kind = SAMPLER_FLOAT, .low = from, .high = to                                               \
	}
#define MIXED_INT(from, to)                                                                                  \
	{                                                                                                    \
		.kind = SAMPLER_INTEGER, .low = from, .high = to                                             \
	}
#define MIXED_OPTIONS(n)                                                                                     \
	{                                                                                                    \
		.kind = SAMPLER_CATEGORICAL, .options = n                                                    \
	}
#define MIXED_UNIT MIXED_FLOAT(0, 1)
#define MIXED_WHEN(...)                                                                                      \
	&(const struct sampler_condition)                                                                    \
	{                                                                                                    \
		0, (const unsigned[]){ __VA_ARGS__ }, sizeof((unsigned[]){ __VA_ARGS__ }) / sizeof(unsigned) \
	}

static const struct mixed mixed_functions[] = {
	{ "sphere",
	  mixed_sphere,
	  5,
	  1,
	  0,
	  { MIXED_FLOAT(-5, 5), MIXED_FLOAT(-5, 5), MIXED_FLOAT(-5, 5), MIXED_FLOAT(-5, 5),
	    MIXED_FLOAT(-5, 5) } },
	{ "rosenbrock",
	  mixed_rosenbrock,
	  4,
	  1,
	  0,
	  { MIXED_FLOAT(-2.048, 2.048), MIXED_FLOAT(-2.048, 2.048), MIXED_FLOAT(-2.048, 2.048),
	    MIXED_FLOAT(-2.048, 2.048) } },
	{ "ackley",
	  mixed_ackley,
	  5,
	  1,
	  0,
	  { MIXED_FLOAT(-32.768, 32.768), MIXED_FLOAT(-32.768, 32.768), MIXED_FLOAT(-32.768, 32.768),
	    MIXED_FLOAT(-32.768, 32.768), MIXED_FLOAT(-32.768, 32.768) } },
	{ "branin", mixed_branin, 2, 1, 0, { MIXED_FLOAT(-5, 10), MIXED_FLOAT(0, 15) } },
	{ "hartmann6",
	  mixed_hartmann6,
	  6,
	  1,
	  0,
	  { MIXED_UNIT, MIXED_UNIT, MIXED_UNIT, MIXED_UNIT, MIXED_UNIT, MIXED_UNIT } },
	{ "training",
	  mixed_training,
	  6,
	  1,
	  0,
	  { { .kind = SAMPLER_FLOAT, .low = 1e-6, .high = 1, .log = true },
	    MIXED_UNIT,
	    { .kind = SAMPLER_INTEGER, .low = 16, .high = 4096, .log = true },
	    MIXED_INT(1, 12),
	    MIXED_OPTIONS(4),
	    MIXED_OPTIONS(3) } },
	{ "recipes",
	  mixed_recipes,
	  6,
	  1,
	  0,
	  { MIXED_OPTIONS(3),
	    { .kind = SAMPLER_FLOAT, .low = 0, .high = 1, .when = MIXED_WHEN(1) },
	    { .kind = SAMPLER_FLOAT, .low = 1e-6, .high = 1, .log = true, .when = MIXED_WHEN(2) },
	    { .kind = SAMPLER_INTEGER, .low = 1, .high = 50, .when = MIXED_WHEN(2) },
	    { .kind = SAMPLER_CATEGORICAL, .options = 3, .when = MIXED_WHEN(2) },
	    { .kind = SAMPLER_INTEGER, .low = 2, .high = 8, .when = MIXED_WHEN(1, 2) } } },
	{ "latency",
	  mixed_latency,
	  5,
	  1,
	  1,
	  { MIXED_UNIT, MIXED_UNIT, MIXED_UNIT, MIXED_INT(0, 8), MIXED_OPTIONS(3) } },
	{ "zdt1",
	  mixed_zdt1,
	  8,
	  2,
	  0,
	  { MIXED_UNIT, MIXED_UNIT, MIXED_UNIT, MIXED_UNIT, MIXED_UNIT, MIXED_UNIT, MIXED_UNIT,
	    MIXED_UNIT } },
	{ "zdt2",
	  mixed_zdt2,
	  8,
	  2,
	  0,
	  { MIXED_UNIT, MIXED_UNIT, MIXED_UNIT, MIXED_UNIT, MIXED_UNIT, MIXED_UNIT, MIXED_UNIT,
	    MIXED_UNIT } },
	{ "tradeoff",
	  mixed_tradeoff,
	  5,
	  2,
	  1,
	  { MIXED_UNIT, MIXED_UNIT, MIXED_UNIT, MIXED_INT(0, 8), MIXED_OPTIONS(3) } },
};

#endif
