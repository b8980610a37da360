/*
 * A strategy that tries the default plan, and writes how ops score to the file FETTLE_TEST_SCORES, to the last bit. Before that it
 * waits FETTLE_TEST_WAIT seconds, so that the other ranks are ready.
 */
#include <fettle.h>

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static enum fettle_status write_scores(struct fettle_search *s, const unsigned char *plan, FILE *f)
{
	static const enum fettle_rank by[] = { FETTLE_RANK_IMPACT, FETTLE_RANK_HESSIAN };
	size_t *ops = malloc(fettle_search_n_ops(s) * sizeof(*ops)), n, i, k;
	double *scores = malloc(fettle_search_n_ops(s) * sizeof(*scores));
	enum fettle_status st = FETTLE_OK;

	for (k = 0; k < 2 && !st; k++) {
		st = fettle_search_rank_ops(s, plan, by[k], ops, scores, &n);
		for (i = 0; i < n && !st; i++)
			fprintf(f, "%zu %zu %a\n", k, ops[i], scores[i]);
	}
	free(ops);
	free(scores);
	return st;
}

static enum fettle_status traverse(struct fettle_search *s, void *self)
{
	const char *path = getenv("FETTLE_TEST_SCORES"), *wait = getenv("FETTLE_TEST_WAIT");
	FILE *f = fopen(path ? path : "/dev/null", "we");
	unsigned char *plan = malloc(fettle_search_n_params(s));
	struct fettle_plan_score score = FETTLE_PLAN_SCORE_INIT;
	const struct fettle_param *p;
	enum fettle_status st;
	size_t i;

	(void)self;
	for (i = 0; (p = fettle_search_param(s, i)); i++)
		plan[i] = (unsigned char)p->first;
	sleep(wait ? (unsigned)atoi(wait) : 0);
	st = fettle_search_try(s, plan, &score);
	st = st ? st : write_scores(s, plan, f);
	fclose(f);
	free(plan);
	return st;
}

static const struct fettle_strategy strategies[] = {
	{ .size = sizeof(strategies[0]), .name = "scores", .summary = "scores ops", .traverse = traverse },
};

static const struct fettle_plugin plugin = {
	.size = sizeof(plugin),
	.abi = FETTLE_PLUGIN_ABI,
	.strategies = strategies,
	.n_strategies = 1,
};

const struct fettle_plugin *fettle_plugin_entry(void)
{
	return &plugin;
}
