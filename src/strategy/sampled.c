/* Strategies over op-wise settings that are driven by a sampler. */
#include <stdlib.h>

#include "base/mem.h"
#include "sampler/sampler.h"
#include "strategy/opwise.h"
#include "strategy/stages.h"

struct sampled {
	struct search *s;
	struct sampler *sampler;
	struct opwise ops;
	struct sampler_param *params;
	double *points; /* room for SIDE_BY_SIDE; at first, the default plan */
};

static void sampled_release(struct sampled *x)
{
	sampler_free(x->sampler);
	opwise_release(&x->ops);
	free(x->params);
	free(x->points);
}

static enum fettle_status sampled_init(struct sampled *x, struct search *s, const char *name)
{
	const struct strategy_options *o = search_options(s);
	struct sampler_options opt = { .seed = o->seed,
				       .tpe = { .startup = (unsigned)o->n_startup_trials,
						.candidates = (unsigned)o->n_ei_candidates,
						.gamma = o->gamma,
						.prior_weight = o->prior_weight } };
	size_t i;

	*x = (struct sampled){ .s = s };
	opwise_init(&x->ops, search_space(s));
	x->params = xcalloc(x->ops.n, sizeof(*x->params));
	x->points = xcalloc(SIDE_BY_SIDE * x->ops.n, sizeof(*x->points));
	for (i = 0; i < x->ops.n; i++)
		x->params[i] =
			(struct sampler_param){ .kind = SAMPLER_CATEGORICAL, .options = x->ops.n_options[i] };
	opt.params = x->params;
	opt.n_params = x->ops.n;
	return sampler_new(&x->sampler, name, &opt, search_err(s));
}

/* Tries the first n points, and reports their losses to the sampler. */
static enum fettle_status try_points(struct sampled *x, size_t n)
{
	struct plan plans[SIDE_BY_SIDE] = { PLAN_INIT };
	struct score scores[SIDE_BY_SIDE];
	enum fettle_status st;
	size_t i, k;

	for (k = 0; k < n; k++) {
		plan_init(&plans[k], search_space(x->s));
		for (i = 0; i < x->ops.n; i++)
			plans[k].choice[x->ops.param[i]] =
				x->ops.option[i][(size_t)x->points[k * x->ops.n + i]];
	}
	st = search_try_all(x->s, plans, n, scores);
	for (k = 0; k < n; k++) {
		plan_release(&plans[k]);
		if (!st)
			st = sampler_tell(x->sampler, x->points + k * x->ops.n,
					  &(struct sampler_result){ .values = { scores[k].loss } },
					  search_err(x->s));
	}
	return st;
}

/* Asks for as many points at once as do not depend on each other's results. FETTLE_STOP: every plan has been tried. */
static enum fettle_status ask_points(struct sampled *x, size_t *n)
{
	const size_t most = sampler_independent(x->sampler);
	enum fettle_status st = FETTLE_OK;

	for (*n = 0; !st && *n < most && *n < SIDE_BY_SIDE; *n += !st)
		st = sampler_ask(x->sampler, x->points + *n * x->ops.n, search_err(x->s));
	return st == FETTLE_STOP && *n ? FETTLE_OK : st;
}

enum fettle_status sampled(struct search *s, const char *sampler, bool default_first)
{
	struct sampled x;
	enum fettle_status st;
	size_t n;

	if (!opwise_can_quantize(search_space(s)))
		return FETTLE_OK;
	st = sampled_init(&x, s, sampler);
	if (st)
		goto out;
	opwise_begin(s);
	if (default_first)
		st = try_points(&x, 1);
	while (!st) {
		st = ask_points(&x, &n);
		if (st == FETTLE_STOP) {
			st = FETTLE_OK;
			break;
		}
		if (!st)
			st = try_points(&x, n);
	}
out:
	sampled_release(&x);
	return st;
}
