/* Strategies over op-wise settings that are driven by a sampler. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/mem.h"
#include "sampler/sampler.h"
#include "strategy/stages.h"

/*
 * The space as the sampler sees it: ops (fp32 only where there is nothing else) and calibration sizes, no recipes; the
 * default as option 0.
 */
struct sampled {
	struct search *s;
	struct sampler *sampler;
	size_t *param; /* [n]: which of the space's */
	size_t n;
	uint16_t (*option)[SPACE_OPTIONS_MAX]; /* [n]: what the sampler's numbers mean */
	struct sampler_param *params;
	double *point;
};

static unsigned list_options(const struct param *op, uint16_t *out)
{
	unsigned k, n = 0;
	bool quantized;

	if (op->kind != PARAM_OP) { /* all of them, the default first */
		out[n++] = op->first;
		for (k = 0; k < op->n_options; k++)
			if (k != op->first)
				out[n++] = (uint16_t)k;
		return n;
	}
	quantized = option_is_int8(&op->options[op->first]);
	if (quantized)
		out[n++] = op->first;
	for (k = 0; k < op->n_options; k++)
		if (option_is_int8(&op->options[k]) && !(quantized && k == op->first))
			out[n++] = (uint16_t)k;
	if (!n)
		out[n++] = op->first;
	return n;
}

static void sampled_release(struct sampled *x)
{
	sampler_free(x->sampler);
	free(x->param);
	free(x->option);
	free(x->params);
	free(x->point);
}

static enum fettle_status sampled_init(struct sampled *x, struct search *s, const char *name)
{
	const struct space *space = search_space(s);
	const struct strategy_options *o = search_options(s);
	struct sampler_options opt = { .seed = o->seed,
				       .tpe = { .startup = (unsigned)o->n_startup_trials,
						.candidates = (unsigned)o->n_ei_candidates,
						.gamma = o->gamma,
						.prior_weight = o->prior_weight } };
	size_t i;

	*x = (struct sampled){ .s = s };
	x->param = xcalloc(space->n, sizeof(*x->param));
	x->option = xcalloc(space->n, sizeof(*x->option));
	x->params = xcalloc(space->n, sizeof(*x->params));
	x->point = xcalloc(space->n, sizeof(*x->point));
	for (i = 0; i < space->n; i++) {
		if (space->v[i].kind == PARAM_RECIPE)
			continue;
		x->param[x->n] = i;
		x->params[x->n] =
			(struct sampler_param){ .kind = SAMPLER_CATEGORICAL,
						.options = list_options(&space->v[i], x->option[x->n]) };
		x->n++;
	}
	opt.params = x->params;
	opt.n_params = x->n;
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
	for (i = 0; i < x->n; i++)
		p.choice[x->param[i]] = x->option[i][(size_t)x->point[i]];
	st = search_try(x->s, &p, &score);
	plan_release(&p);
	if (st)
		return st;
	return sampler_tell(x->sampler, x->point, &(struct sampler_result){ .values = { score.loss } },
			    search_err(x->s));
}

static void name_stage(struct search *s)
{
	double size = space_size_log10(search_space(s), true);
	char stage[64];

	if (size < 6)
		snprintf(stage, sizeof(stage), "%.0f plans", pow(10, size));
	else
		snprintf(stage, sizeof(stage), "10^%.0f plans", size);
	search_stage(s, stage);
}

static bool can_quantize(const struct space *space)
{
	size_t i, k;

	for (i = 0; i < space->n_ops; i++)
		for (k = 0; k < space->v[i].n_options; k++)
			if (option_is_int8(&space->v[i].options[k]))
				return true;
	return false;
}

enum fettle_status sampled(struct search *s, const char *sampler, bool default_first)
{
	struct sampled x;
	enum fettle_status st;

	if (!can_quantize(search_space(s)))
		return FETTLE_OK;
	st = sampled_init(&x, s, sampler);
	if (st)
		goto out;
	name_stage(s);
	search_untried(s, "recipes, and ops in fp32");
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
