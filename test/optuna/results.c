/*
 * Prints, for compare.py, the value of random points, by which it checks that both sides mean the same
 * functions, and the best values that our samplers find:
 *
 *	point FUNCTION VALUE OPTION…
 *	best FUNCTION SAMPLER SEED TRIALS VALUE
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/rng.h"
#include "optuna/functions.h"
#include "sampler/sampler.h"

enum {
	SEEDS = 21,
	POINTS = 20,
	TRIALS = 200,
	HALFTIME = 50,
};

static void print_points(const struct function *f)
{
	unsigned x[FUNCTION_PARAMS_MAX];
	struct rng rng;
	size_t i;
	int k;

	rng_seed(&rng, 1);
	for (k = 0; k < POINTS; k++) {
		for (i = 0; i < f->params; i++)
			x[i] = (unsigned)rng_below(&rng, f->options);
		printf("point %s %llu", f->name, (unsigned long long)f->value(x, f->params));
		for (i = 0; i < f->params; i++)
			printf(" %u", x[i]);
		printf("\n");
	}
}

static enum fettle_status print_best(const struct function *f, const char *name, unsigned seed, struct err *err)
{
	struct sampler_param params[FUNCTION_PARAMS_MAX];
	struct sampler_options opt = { .params = params, .n_params = f->params, .seed = seed };
	unsigned x[FUNCTION_PARAMS_MAX];
	struct sampler *s = NULL;
	uint64_t best = UINT64_MAX;
	enum fettle_status st;
	size_t i;
	int trial;

	for (i = 0; i < f->params; i++)
		params[i] = (struct sampler_param){ SAMPLER_CATEGORICAL, f->options };
	st = sampler_new(&s, name, &opt, err);
	for (trial = 1; !st && trial <= TRIALS; trial++) {
		uint64_t value;

		st = sampler_ask(s, x, err);
		if (st)
			break;
		value = f->value(x, f->params);
		best = value < best ? value : best;
		if (trial == HALFTIME || trial == TRIALS)
			printf("best %s %s %u %d %llu\n", f->name, name, seed, trial, (unsigned long long)best);
		st = sampler_tell(s, x, (double)value, err);
	}
	sampler_free(s);
	return st;
}

int main(int argc, char **argv)
{
	static const char *const names[] = { "tpe", "gp" };
	struct err err = ERR_INIT;
	size_t f, k;
	unsigned seed;

	for (f = 0; f < ARRAY_LEN(functions); f++) {
		print_points(&functions[f]);
		for (k = 0; k < ARRAY_LEN(names); k++) {
			if (argc > 1 && strcmp(argv[1], names[k]))
				continue;
			for (seed = 0; seed < SEEDS; seed++)
				if (print_best(&functions[f], names[k], seed, &err)) {
					fprintf(stderr, "%s\n", err.msg);
					return EXIT_FAILURE;
				}
		}
	}
	return EXIT_SUCCESS;
}
