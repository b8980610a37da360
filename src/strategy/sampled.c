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
	double *point;
};

static void sampled_release(struct sampled *x)
{
	sampler_free(x->sampler);
	opwise_release(&x->ops);
	free(x->params);
	free(x->point);
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
	x->point = xcalloc(x->ops.n, sizeof(*x->point));
	for (i = 0; i < x->ops.n; i++)
		x->params[i] =
			(struct sampler_param){ .kind = SAMPLER_CATEGORICAL, .options = x->ops.n_options[i] };
	opt.params = x->params;
	opt.n_params = x->ops.n;
	return sampler_new(&x->sampler, name, &opt, search_err(s));
}

/* Tries the point at hand, and reports its loss to the sampler. */
static enum fettle_status try_point(struct sampled *x)
{
	const struct space *space = search_space(x->s);
	struct plan p = PLAN_INIT;
	struct score score;
	enum fettle_status st;
	size_t i;

	plan_init(&p, space);
	for (i = 0; i < x->ops.n; i++)
		p.choice[x->ops.param[i]] = x->ops.option[i][(size_t)x->point[i]];
	st = search_try(x->s, &p, &score);
	plan_release(&p);
	if (st)
		return st;
	return sampler_tell(x->sampler, x->point, &(struct sampler_result){ .values = { score.loss } },
			    search_err(x->s));
}

enum fettle_status sampled(struct search *s, const char *sampler, bool default_first)
{
	struct sampled x;
	enum fettle_status st;

	if (!opwise_can_quantize(search_space(s)))
		return FETTLE_OK;
	st = sampled_init(&x, s, sampler);
	if (st)
		goto out;
	opwise_begin(s);
	if (default_first)
		st = try_point(&x);
	while (!st) {
		st = sampler_ask(x.sampler, x.point, search_err(s));
		if (st == FETTLE_STOP) { /* every plan has been tried */
			st = FETTLE_OK;
			break;
		}
		if (!st)
			st = try_point(&x);
	}
out:
	sampled_release(&x);
	return st;
}
