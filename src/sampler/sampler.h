/*
 * Optimisers that are asked for points and told what the points are worth. They know nothing of models.
 *
 *	sampler_new(&s, "tpe", &(struct sampler_options){ .params = params, .n_params = n, .seed = 1 }, err);
 *	while (!sampler_ask(s, point, err))
 *		sampler_tell(s, point, worth(point), err);
 *	sampler_free(s);
 *
 * Every sampler of sampler/list.h keeps this contract:
 * - No point is asked twice, nor is one that has been told; when none is left, ask returns FETTLE_STOP.
 *   So a small space is handed out whole, whatever the algorithm; a huge one is never listed.
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
};

enum {
	SAMPLER_PARAMS_MAX = 65535,
	SAMPLER_OPTIONS_MAX = 65536,
};

struct sampler_param {
	enum sampler_kind kind;
	unsigned options; /* 1 .. SAMPLER_OPTIONS_MAX */
};

/* Of tpe; zero: Optuna's default. */
struct sampler_tpe_options {
	unsigned startup;    /* 10: trials that must be told before the model is asked */
	unsigned candidates; /* 24 */
	double gamma;        /* 0.1: the share of trials that are good ones */
	double prior_weight; /* 1 */
};

struct sampler_options {
	const struct sampler_param *params; /* borrowed until sampler_new() returns */
	size_t n_params;                    /* 1 .. SAMPLER_PARAMS_MAX */
	uint64_t seed;
	bool maximize; /* otherwise low values are good */
	struct sampler_tpe_options tpe;
};

struct sampler;

/* FETTLE_INVALID when there is no such sampler, naming the nearest, or when a parameter is out of bounds. */
enum fettle_status sampler_new(struct sampler **out, const char *name, const struct sampler_options *opt,
			       struct err *err);
void sampler_free(struct sampler *s);

/* point[n_params] gets an option for each parameter. FETTLE_STOP when every point has been asked or told. */
enum fettle_status sampler_ask(struct sampler *s, unsigned *point, struct err *err);

/*
 * A value that is not finite means that the trial failed: it counts as worse than all others. A point told
 * again gets the new value. FETTLE_INVALID when the point is not of the space; nothing has changed then.
 */
enum fettle_status sampler_tell(struct sampler *s, const unsigned *point, double value, struct err *err);

/* The number of points in the space, SIZE_MAX when there are more than that. */
size_t sampler_space_size(const struct sampler *s);

/* What list.h holds: names and one line on each, 0 <= i < sampler_count(). */
size_t sampler_count(void);
const char *sampler_name(size_t i);
const char *sampler_summary(size_t i);

#endif
