/*
 * Optimisers that are asked for points and told what the points are worth. They know nothing of models.
 *
 *	sampler_new(&s, "tpe", &(struct sampler_options){ .params = params, .n_params = n, .seed = 1 }, err);
 *	while (!sampler_ask(s, point, err))
 *		sampler_tell(s, point, &(struct sampler_result){ .values = { worth(point) } }, err);
 *	sampler_free(s);
 *
 * A point is a number for each parameter: of an option, or the integer or float itself; NAN where a condition
 * does not hold. Such inactive parameters do not tell points apart, and what a caller has in them is not read.
 *
 * Every sampler of sampler/list.h keeps this contract:
 * - No point is asked twice, nor is one that has been told; when none is left, ask returns FETTLE_STOP.
 *   So a small space is handed out whole, whatever the algorithm; a huge one is never listed. A space with a
 *   float that has no step never ends, but for `grid`, which takes `levels` values of it.
 * - Several points may be asked before the first is told. Such pending points push the model-based
 *   samplers away from them; each says how.
 * - Points may be told that were never asked: a history, or what other searches have tried.
 * - The same seed and the same sequence of asks give the same points. Between two asks, points that were
 *   asked may be told in any order; points that were not are ordered as they are told.
 */
#ifndef SAMPLER_SAMPLER_H
#define SAMPLER_SAMPLER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

enum sampler_kind {
	SAMPLER_CATEGORICAL, /* one of `options`, between which there is no order: 0 .. options - 1 */
	SAMPLER_INTEGER,     /* low, low + step, … up to high */
	SAMPLER_FLOAT,       /* low to high; with a step only low, low + step, … */
};

enum {
	SAMPLER_PARAMS_MAX = 65535,
	SAMPLER_OPTIONS_MAX = 65536,
	SAMPLER_OBJECTIVES_MAX = 8,
	SAMPLER_CONSTRAINTS_MAX = 8,
};

/* Holds when `param`, an earlier and categorical one, is active and has one of the options. */
struct sampler_condition {
	size_t param;
	const unsigned *options;
	size_t n_options;
};

struct sampler_param {
	enum sampler_kind kind;
	unsigned options;                     /* categorical: 1 .. SAMPLER_OPTIONS_MAX */
	double low, high;                     /* numbers: both included; fewer than 2^53 steps */
	double step;                          /* numbers; 0: 1 for integers, none for floats */
	bool log;                             /* numbers: equal ratios count alike; low > 0 and no step */
	const struct sampler_condition *when; /* NULL: always active */
};

/* Of tpe; zero: Optuna's default. */
struct sampler_tpe_options {
	unsigned startup;    /* 10: trials that must be told before the model is asked */
	unsigned candidates; /* 24 */
	double gamma;        /* 0.1: the share of trials that are good ones */
	double prior_weight; /* 1 */
};

struct sampler_options {
	const struct sampler_param *params; /* borrowed until sampler_new() returns, conditions as well */
	size_t n_params;                    /* 1 .. SAMPLER_PARAMS_MAX */
	uint64_t seed;
	size_t n_objectives;                   /* 0: 1; only some samplers take several */
	bool maximize[SAMPLER_OBJECTIVES_MAX]; /* otherwise low values are good */
	size_t n_constraints;
	unsigned levels; /* grid: values of a float without a step; 0: 10 */
	struct sampler_tpe_options tpe;
};

/* What a point is worth. */
struct sampler_result {
	double values[SAMPLER_OBJECTIVES_MAX];
	double violations
		[SAMPLER_CONSTRAINTS_MAX]; /* <= 0: the constraint holds; above, how far it is from that */
};

struct sampler;

/*
 * The name, or one of the aliases, in capitals or not. FETTLE_INVALID when there is no such sampler, naming the
 * nearest, or when a parameter is out of bounds.
 */
enum fettle_status sampler_new(struct sampler **out, const char *name, const struct sampler_options *opt,
			       struct err *err);
void sampler_free(struct sampler *s);

/* Fills point[n_params]. FETTLE_STOP when every point has been asked or told. */
enum fettle_status sampler_ask(struct sampler *s, double *point, struct err *err);
/* So many of the points to come are the same whatever is told before they are asked: at least 1. */
size_t sampler_independent(const struct sampler *s);

/*
 * Feasible points are better than others, whatever their values; among the others the sum of violations counts.
 * A value or violation that is not finite means that the trial failed: it counts as worse than all others. A
 * point told again gets the new result. FETTLE_INVALID when the point is not of the space; nothing has changed
 * then.
 */
enum fettle_status sampler_tell(struct sampler *s, const double *point, const struct sampler_result *result,
				struct err *err);

/* The number of points in the space, SIZE_MAX when there are more than that. */
size_t sampler_space_size(const struct sampler *s);

/* What list.h holds: names, other names (with spaces between) and one line on each, 0 <= i < sampler_count(). */
size_t sampler_count(void);
const char *sampler_name(size_t i);
const char *sampler_aliases(size_t i);
bool sampler_takes_several(size_t i); /* objectives */
const char *sampler_summary(size_t i);

#endif
