/*
 * Prints, for compare_mixed.py, the results of random points, by which it checks that both sides mean the same
 * functions, and the results of all trials of our samplers:
 *
 *	point FUNCTION RESULT… NUMBER…
 *	run FUNCTION SAMPLER SEED RESULT…
 *
 * results_mixed [SAMPLER TRIALS SEEDS [FIRST]] runs one sampler only, its seeds from FIRST on.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "optuna/mixed.h"
#include "sampler/sampler.h"

enum {
	POINTS = 20,
};

struct contestant {
	const char *sampler;
	unsigned trials, seeds, first;
};

static const struct contestant contestants[] = {
	{ "random", 200, 63, 0 }, { "tpe", 200, 21, 0 },   { "gp", 50, 5, 0 }, /* slow, and better by far */
	{ "cmaes", 200, 63, 0 },  { "nsga2", 200, 21, 0 }, { "qmc", 200, 63, 0 },
};

static enum fettle_status start(struct sampler **out, const struct mixed *f, const char *sampler,
				unsigned seed, struct err *err)
{
	return sampler_new(out, sampler,
			   &(struct sampler_options){ .params = f->params,
						      .n_params = f->n_params,
						      .seed = seed,
						      .n_objectives = f->n_objectives,
						      .n_constraints = f->n_constraints },
			   err);
}

static enum fettle_status run(const struct mixed *f, const struct contestant *c, unsigned seed, bool points,
			      struct err *err)
{
	struct sampler *s = NULL;
	enum fettle_status st;
	unsigned trial;
	size_t i, n = f->n_objectives + f->n_constraints;

	st = start(&s, f, c->sampler, seed, err);
	if (!st && !points)
		printf("run %s %s %u", f->name, c->sampler, seed);
	for (trial = 0; !st && trial < c->trials; trial++) {
		struct sampler_result r = { .values = { 0 } };
		double x[MIXED_PARAMS_MAX], out[MIXED_RESULTS_MAX];

		st = sampler_ask(s, x, err);
		if (st)
			break;
		f->value(x, out);
		if (points)
			printf("point %s", f->name);
		for (i = 0; i < n; i++)
			printf(" %.17g", out[i]);
		for (i = 0; points && i < f->n_params; i++)
			printf(" %.17g", x[i]);
		if (points)
			printf("\n");
		memcpy(r.values, out, f->n_objectives * sizeof(double));
		memcpy(r.violations, out + f->n_objectives, f->n_constraints * sizeof(double));
		st = sampler_tell(s, x, &r, err);
	}
	if (!points)
		printf("\n");
	sampler_free(s);
	return st;
}

/* One objective and no constraint can be given to all; the rest only to those who say so. */
static bool takes(const char *sampler, const struct mixed *f)
{
	size_t i;

	for (i = 0; i < sampler_count(); i++)
		if (!strcmp(sampler_name(i), sampler))
			return f->n_objectives == 1 || sampler_takes_several(i);
	return false;
}

static enum fettle_status compete(const struct contestant *c, struct err *err)
{
	enum fettle_status st = FETTLE_OK;
	size_t f;
	unsigned k;

	for (f = 0; f < ARRAY_LEN(mixed_functions); f++)
		for (k = 0; !st && takes(c->sampler, &mixed_functions[f]) && k < c->seeds; k++)
			st = run(&mixed_functions[f], c, c->first + k, false, err);
	return st;
}

int main(int argc, char **argv)
{
	const struct contestant points = { "random", POINTS, 1, 0 };
	struct err err = ERR_INIT;
	enum fettle_status st = FETTLE_OK;
	size_t i;

	for (i = 0; !st && i < ARRAY_LEN(mixed_functions); i++)
		st = run(&mixed_functions[i], &points, 0, true, &err);
	if (argc >= 4) {
		struct contestant one = { argv[1], (unsigned)atoi(argv[2]), (unsigned)atoi(argv[3]),
					  argc > 4 ? (unsigned)atoi(argv[4]) : 0 };

		st = compete(&one, &err);
	} else {
		for (i = 0; !st && i < ARRAY_LEN(contestants); i++)
			st = compete(&contestants[i], &err);
	}
	if (st)
		fprintf(stderr, "%s\n", err.msg);
	return st ? EXIT_FAILURE : EXIT_SUCCESS;
}
