/*
 * Points that fill the space evenly: Sobol's sequence (sobol.h), a dimension for each parameter, options being equal
 * parts of theirs. What is seen is left out; when too much of it comes in a row, a random point is asked instead.
 */
#include <math.h>
#include <stdlib.h>

#include "sampler/sobol.h"
#include "sampler/trials.h"
#include "sampler/type.h"

enum {
	TRIES = 32,
};

struct qmc {
	const struct point_space *space;
	struct trials trials;
	struct sobol sobol;
	double *u;
};

static void *qmc_start(const struct point_space *space, const struct sampler_options *opt)
{
	struct qmc *q = xcalloc(1, sizeof(*q));

	q->space = space;
	q->u = xcalloc(space->n, sizeof(*q->u));
	trials_init(&q->trials, space, opt);
	sobol_init(&q->sobol, space->n, opt->seed ^ 0x716d630000000000u, true);
	return q;
}

static void qmc_end(void *state)
{
	struct qmc *q = state;

	sobol_release(&q->sobol);
	trials_release(&q->trials);
	free(q->u);
	free(q);
}

static void qmc_tell(void *state, const double *point, const struct sampler_result *r)
{
	struct qmc *q = state;

	trials_tell(&q->trials, point, r);
}

static bool qmc_ask(void *state, double *point)
{
	struct qmc *q = state;
	size_t i;
	int tries;

	for (tries = 0; tries < TRIES; tries++) {
		sobol_next(&q->sobol, q->u);
		for (i = 0; i < q->space->n; i++) {
			const struct point_param *p = &q->space->params[i];

			if (!point_active(q->space, point, i))
				point[i] = NAN;
			else if (param_is_number(p))
				point[i] = param_from_unit(p, q->u[i]);
			else
				point[i] = floor(q->u[i] * (double)p->levels);
		}
		if (trials_seen(&q->trials, point))
			continue;
		trials_ask(&q->trials, point);
		return true;
	}
	return trials_ask_random(&q->trials, point);
}

const struct sampler_type sampler_qmc = {
	.name = "qmc",
	.aliases = "QMCSampler sobol",
	.summary = "points that fill the space evenly (scrambled Sobol)",
	.several = true,
	.never_learns = true,
	.start = qmc_start,
	.ask = qmc_ask,
	.tell = qmc_tell,
	.end = qmc_end,
};
