/*
 * Prints, for compare.py, the value of random points, by which it checks that both sides mean the same
 * functions, and the best values that our samplers find:
 *
 *	point FUNCTION VALUE OPTION…
 *	best FUNCTION SAMPLER SEED TRIALS VALUE
 */
#include <stdio.h>
#include <stdlib.h>

#include "base/mem.h"
#include "base/rng.h"
#include "optuna/functions.h"
#include "sampler/sampler.h"

enum {
	POINTS = 20,
	EARLY = 50,
};

static const struct contestant {
	const char *sampler;
	unsigned seeds;
	int trials;
} contestants[] = {
	{ "tpe", 63, 200 }, { "gp", 21, 100 }, /* slower, but as good after 100 */
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

static enum fettle_status print_best(const struct function *f, const struct contestant *c, unsigned seed,
				     struct err *err)
{
	struct sampler_param params[FUNCTION_PARAMS_MAX];
	struct sampler_options opt = { .params = params, .n_params = f->params, .seed = seed };
	double point[FUNCTION_PARAMS_MAX];
	unsigned x[FUNCTION_PARAMS_MAX];
	struct sampler *s = NULL;
	uint64_t best = UINT64_MAX;
	enum fettle_status st;
	size_t i;
	int trial;

	for (i = 0; i < f->params; i++)
		params[i] = (struct sampler_param){ .kind = SAMPLER_CATEGORICAL, .options = f->options };
	st = sampler_new(&s, c->sampler, &opt, err);
	for (trial = 1; !st && trial <= c->trials; trial++) {
		uint64_t value;

		st = sampler_ask(s, point, err);
		if (st)
			break;
		for (i = 0; i < f->params; i++)
			x[i] = (unsigned)point[i];
		value = f->value(x, f->params);
		best = value < best ? value : best;
		if (trial == EARLY || trial == c->trials)
			printf("best %s %s %u %d %llu\n", f->name, c->sampler, seed, trial,
			       (unsigned long long)best);
		st = sampler_tell(s, point, &(struct sampler_result){ .values = { (double)value } }, err);
	}
	sampler_free(s);
	return st;
}

int main(void)
{
	struct err err = ERR_INIT;
	size_t f, k;
	unsigned seed;

	for (f = 0; f < ARRAY_LEN(functions); f++) {
		print_points(&functions[f]);
		for (k = 0; k < ARRAY_LEN(contestants); k++)
			for (seed = 0; seed < contestants[k].seeds; seed++)
				if (print_best(&functions[f], &contestants[k], seed, &err)) {
					fprintf(stderr, "%s\n", err.msg);
					return EXIT_FAILURE;
				}
	}
	return EXIT_SUCCESS;
}
