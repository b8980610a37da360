/* A search of settings (AMD's Automatic Search) as a request describes it. */
#include "config/job.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/file.h"
#include "sampler/sampler.h"
#include "tune/settings_job.h"

struct settings_search {
	struct arena arena;
	struct settings_space spaces[CONFIG_SPACES];
	struct settings_list list;
	struct param_search p;
	struct settings_job job;
};

/* ---- the spaces ---- */

/* the lists of a space of the configuration, by setting */
static const struct {
	enum setting which;
	size_t offset;
	bool numbers; /* struct config_numbers; otherwise config_ints */
} lists[] = {
#define INTS(which, member)                                                                                  \
	{                                                                                                    \
		SET_##which, offsetof(struct config_space, member), false                                    \
	}
#define NUMBERS(which, member)                                                                               \
	{                                                                                                    \
		SET_##which, offsetof(struct config_space, member), true                                     \
	}
	INTS(METHOD, calibrate_method),
	INTS(ACT_TYPE, activation_type),
	INTS(WEIGHT_TYPE, weight_type),
	INTS(CLE, include_cle),
	INTS(SQ, include_sq),
	INTS(AUTO_MP, include_auto_mp),
	INTS(FAST_FT, include_fast_ft),
	INTS(ACT_SYMMETRIC, activation_symmetric),
	INTS(WEIGHT_SYMMETRIC, weight_symmetric),
	INTS(MOVING_AVERAGE, calib_moving_average),
	NUMBERS(AVERAGING, calib_moving_average_constant),
	NUMBERS(PERCENTILE, percentile),
	NUMBERS(SMOOTH_ALPHA, smooth_alpha),
	INTS(OPTIM_ALGORITHM, optim_algorithm),
	INTS(GRANULARITY, granularity),
	INTS(DATA_SIZE, data_size),
	INTS(SELECTIVE, selective_update),
	INTS(BATCH_SIZE, batch_size),
	INTS(ITERATIONS, num_iterations),
	NUMBERS(LEARNING_RATE, learning_rate),
	INTS(SEED, fixed_seed),
	INTS(EARLY_STOP, early_stop),
};
_Static_assert(ARRAY_LEN(lists) == SETTINGS, "every setting has a key");

/* What the rest of the configuration says of a setting that a space does not name; NAN: nothing. */
static double configured(const struct config *c, enum setting which)
{
	const struct finetune *f = &c->recipes.keys.finetune;
	const bool *on = c->recipes.on;
	const int *way = &c->recipes.way[RECIPE_finetune];
	const struct {
		enum setting which;
		const void *field;
		double value;
	} known[] = {
		{ SET_CLE, &on[RECIPE_cle], on[RECIPE_cle] },
		{ SET_SQ, &on[RECIPE_smooth_quant], on[RECIPE_smooth_quant] },
		{ SET_SMOOTH_ALPHA, &c->recipes.number[RECIPE_smooth_quant],
		  c->recipes.number[RECIPE_smooth_quant].v[0] },
		{ SET_AUTO_MP, &c->recipes.include_auto_mp, c->recipes.include_auto_mp },
		{ SET_FAST_FT, &on[RECIPE_finetune], on[RECIPE_finetune] },
		{ SET_FAST_FT, way, *way != FINETUNE_OFF },
		{ SET_OPTIM_ALGORITHM, way, *way == FINETUNE_OFF ? NAN : *way },
		{ SET_OPTIM_ALGORITHM, &f->algorithm, f->algorithm },
		{ SET_GRANULARITY, &f->granularity, f->granularity },
		{ SET_DATA_SIZE, &f->data_size, (double)f->data_size },
		{ SET_BATCH_SIZE, &f->batch_size, (double)f->batch_size },
		{ SET_ITERATIONS, &f->iterations, (double)f->iterations },
		{ SET_LEARNING_RATE, &f->learning_rate, f->learning_rate },
		{ SET_SEED, &f->seed, (double)f->seed },
		{ SET_EARLY_STOP, &f->early_stop, f->early_stop },
		{ SET_SELECTIVE, &f->selective_update, f->selective_update },
	};
	size_t i;

	for (i = 0; i < ARRAY_LEN(known); i++)
		if (known[i].which == which && config_is_set(c, known[i].field) && !isnan(known[i].value))
			return known[i].value;
	return NAN;
}

static struct setting_values space_values(struct settings_search *as, const struct config *c,
					  const struct config_space *s, size_t i)
{
	const char *field = (const char *)s + lists[i].offset;
	const struct config_ints *ints = (const struct config_ints *)(const void *)field;
	const struct config_numbers *numbers = (const struct config_numbers *)(const void *)field;
	double *v;
	size_t k;

	if (lists[i].numbers && numbers->n)
		return (struct setting_values){ numbers->v, numbers->n };
	v = arena_alloc(&as->arena, (ints->n + 1) * sizeof(*v));
	if (!ints->n) {
		v[0] = configured(c, lists[i].which);
		return (struct setting_values){ v, !isnan(v[0]) };
	}
	for (k = 0; k < ints->n; k++)
		v[k] = (double)ints->v[k];
	return (struct setting_values){ v, ints->n };
}

/* does it list anything? */
static bool is_space(const struct config_space *s)
{
	static const struct config_space empty;

	return memcmp(s, &empty, sizeof(empty)) != 0;
}

static void read_spaces(struct settings_search *as, const struct config *c)
{
	size_t i, k;

	for (i = 0; i < CONFIG_SPACES; i++) {
		struct settings_space *to = &as->spaces[as->p.n_spaces];

		if (!is_space(&c->search.spaces[i]))
			continue;
		*to = (struct settings_space){ .n_pairs = c->search.spaces[i].num_iter_lr.n / 2 };
		to->pairs = (const double(*)[2])(const void *)c->search.spaces[i].num_iter_lr.v;
		for (k = 0; k < ARRAY_LEN(lists); k++)
			to->list[lists[k].which] = space_values(as, c, &c->search.spaces[i], k);
		as->p.n_spaces++;
	}
	as->p.spaces = as->spaces;
}

/* ---- algorithms ---- */

static bool has_word(const char *words, const char *word)
{
	size_t n = strlen(word);
	const char *p;

	for (p = words; p && *p; p += strcspn(p, " "), p += strspn(p, " "))
		if (strcspn(p, " ") == n && strncasecmp(p, word, n) == 0)
			return true;
	return false;
}

/* the sampler of that name or alias */
static enum fettle_status find_sampler(const struct config *c, const char *const *field, const char *key,
				       const char **out, struct err *err)
{
	const char *names[64], *near;
	size_t i;

	for (i = 0; i < sampler_count() && i < ARRAY_LEN(names); i++) {
		names[i] = sampler_name(i);
		if (strcasecmp(names[i], *field) == 0 || has_word(sampler_aliases(i), *field)) {
			*out = names[i];
			return FETTLE_OK;
		}
	}
	near = str_nearest(*field, names, i);
	return config_fail(
		config_origin(c, field), FETTLE_INVALID, err, "cannot set %s: unknown algorithm '%s'%s%s%s",
		key, *field, near ? ", did you mean '" : "",
		near ? near : ", need grid, random or the name of a sampler such as tpe", near ? "'?" : "");
}

static enum fettle_status choose_algorithm(struct job_request *u, struct settings_search *as)
{
	const struct config *c = u->run.r.c;
	struct param_search *p = &as->p;
	enum fettle_status st;

	if (strcasecmp(c->search.algorithm, "grid_search") == 0)
		p->algorithm = "grid";
	else if (strcasecmp(c->search.algorithm, "random_search") == 0)
		p->algorithm = "random";
	else {
		st = find_sampler(c, &c->search.algorithm, "search_algo", &p->algorithm, &u->run.cx->err);
		if (st)
			return st;
	}
	return find_sampler(c, &c->search.sampler_algo, "sampler_algo", &p->sampler, &u->run.cx->err);
}

static void bounds(const struct setting_values *v, double first, double out[2])
{
	size_t i;

	out[0] = out[1] = v->n ? v->v[0] : first;
	for (i = 1; i < v->n; i++) {
		out[0] = fmin(out[0], v->v[i]);
		out[1] = fmax(out[1], v->v[i]);
	}
}

/* advanced_fastft_search: two numbers between bounds, all else fixed */
static enum fettle_status begin_advanced(struct job_request *u, struct settings_search *as)
{
	const struct config *c = u->run.r.c;
	const struct config_origin *at = config_origin(c, &c->search.advanced_fastft);
	struct param_search *p = &as->p;
	struct settings_space *s = &as->spaces[0];
	struct err *err = &u->run.cx->err;

	if (!c->search.advanced_fastft)
		return FETTLE_OK;
	p->advanced = true;
	p->n_trials = (size_t)c->search.n_trials;
	if (p->n_spaces != 1)
		return config_fail(at, FETTLE_INVALID, err,
				   "cannot set advanced_fastft_search: %zu search spaces, need one",
				   p->n_spaces);
	if (s->n_pairs)
		return config_fail(
			at, FETTLE_INVALID, err,
			"cannot set advanced_fastft_search: NumIterLR has pairs, need NumIterations and "
			"LearningRate");
	bounds(&s->list[SET_ITERATIONS], 0, p->iterations);
	bounds(&s->list[SET_LEARNING_RATE], 0, p->learning_rate);
	if (p->iterations[0] == p->iterations[1] && p->learning_rate[0] == p->learning_rate[1])
		return config_fail(at, FETTLE_INVALID, err,
				   "cannot set advanced_fastft_search: nothing to vary, need two values of "
				   "NumIterations or LearningRate: the bounds");
	/* the bounds are no candidates of their own */
	if (s->list[SET_ITERATIONS].n > 1)
		s->list[SET_ITERATIONS].n = 1;
	if (s->list[SET_LEARNING_RATE].n > 1)
		s->list[SET_LEARNING_RATE].n = 1;
	return FETTLE_OK;
}

static enum fettle_status check_advanced(struct job_request *u, struct settings_search *as)
{
	const struct config *c = u->run.r.c;
	const struct config_origin *at = config_origin(c, &c->search.advanced_fastft);
	const struct settings_list *l = &as->list;

	if (!as->p.advanced)
		return FETTLE_OK;
	if (l->n != 1)
		return config_fail(at, FETTLE_INVALID, &u->run.cx->err,
				   "cannot set advanced_fastft_search: the space has %zu settings apart from "
				   "NumIterations "
				   "and LearningRate, need one",
				   l->n);
	if (isnan(l->v[0].v[SET_ITERATIONS]))
		return config_fail(at, FETTLE_INVALID, &u->run.cx->err,
				   "cannot set advanced_fastft_search: nothing is fine-tuned, need "
				   "include_fast_ft: [true] "
				   "with adaround or adaquant");
	/* what the study varies is what its trials are called by */
	as->list.varies[SET_ITERATIONS] |= as->p.iterations[0] < as->p.iterations[1];
	as->list.varies[SET_LEARNING_RATE] |= as->p.learning_rate[0] < as->p.learning_rate[1];
	return FETTLE_OK;
}

/* ---- what is measured, and what is good enough ---- */

static enum fettle_status set_criterion(struct job_request *u)
{
	struct config *c = u->run.r.c;
	bool given = config_is_set(c, &c->search.tolerance), compares = false,
	     higher = c->tuning.higher_is_better;
	bool evaluator = request_evaluator(&u->run.r) != NULL, unit = false;
	double decibels =
		0; /* of identical outputs, where the metric is in decibels: then the tolerance is the least that is enough */
	struct metric *m = NULL;
	enum fettle_status st;

	if (!evaluator) {
		if (c->search.metric)
			c->evaluation.metric = c->search.metric;
		if (!c->evaluation.metric)
			c->evaluation.metric = "l2";
		st = registered_metric_open(&u->run.cx->members, c->evaluation.metric, &m, &u->run.cx->err);
		if (st)
			return st;
		compares = metric_needs(m) & METRIC_REFERENCE;
		unit = metric_type(m)->is_mean &&
		       metric_type(m)->score_max == 1; /* cosine, ssim, agreement */
		decibels = compares ? metric_type(m)->decibels_max : 0;
		higher = metric_higher_is_better(m);
		metric_free(m);
	}
	if (compares && !config_is_set(c, &c->tuning.criterion))
		c->tuning.criterion = CRITERION_ABSOLUTE; /* nothing is relative to no difference at all */
	if (given && decibels > 0 && c->search.tolerance > decibels)
		return config_fail(
			config_origin(c, &c->search.tolerance), FETTLE_INVALID, &u->run.cx->err,
			"cannot set search_tolerance: %g dB, need at most %g, which is no difference",
			c->search.tolerance, decibels);
	if (given && decibels > 0)
		c->tuning.tolerable_loss = decibels - c->search.tolerance;
	else if (given)
		c->tuning.tolerable_loss = c->search.tolerance;
	else if (compares && !unit && !config_is_set(c, &c->tuning.tolerable_loss))
		c->tuning.tolerable_loss =
			INFINITY; /* no number is natural: every candidate counts, best first */
	if (config_is_set(c, &c->search.direction)) {
		bool want = c->search.direction == DIRECTION_MAXIMIZE;

		if (!evaluator && want != higher)
			return config_fail(config_origin(c, &c->search.direction), FETTLE_INVALID,
					   &u->run.cx->err, "cannot set direction: %s is better when %s",
					   c->evaluation.metric,
					   higher ? "higher, need maximize" : "lower, need minimize");
		if (evaluator && !config_is_set(c, &c->tuning.higher_is_better))
			c->tuning.higher_is_better = want;
	}
	return FETTLE_OK;
}

/* without data to evaluate on, the calibration data serves: outputs are compared with the fp32 model's */
static void set_data(struct job_request *u)
{
	struct request *r = &u->run.r;

	if (request_has_data(r, &r->c->evaluation.dataloader) || request_evaluator(r))
		return;
	r->c->evaluation.dataloader = r->c->calibration.dataloader;
	r->o.eval_source = r->o.calib_source;
	r->eval_is_calib = true;
}

static enum fettle_status check_config(struct job_request *u, struct settings_search *as)
{
	const struct config *c = u->run.r.c;

	if (c->quantization.approach != APPROACH_STATIC)
		return config_fail(config_origin(c, &c->quantization.approach), FETTLE_INVALID,
				   &u->run.cx->err, "cannot search: the approach is not static, need static");
	if (!as->p.n_spaces)
		return fail(&u->run.cx->err, FETTLE_INVALID,
			    "cannot search%s%s: no search_space, need a configuration that lists what to try",
			    u->run.r.o.config ? " " : "", u->run.r.o.config ? u->run.r.o.config : "");
	return FETTLE_OK;
}

static enum fettle_status read_search(struct job_request *u, struct settings_search *as)
{
	struct config *c = u->run.r.c;
	enum fettle_status st;

	read_spaces(as, c);
	st = check_config(u, as);
	st = st ? st : choose_algorithm(u, as);
	st = st ? st : begin_advanced(u, as);
	st = st ? st : settings_expand(&as->list, as->spaces, as->p.n_spaces, &u->run.cx->err);
	st = st ? st : check_advanced(u, as);
	st = st ? st : set_criterion(u);
	if (st)
		return st;
	set_data(u);
	as->p.list = &as->list;
	as->p.two_stage = c->search.two_stage && param_search_has_stages(&as->list);
	as->list.varies[SET_FAST_FT] |= as->p.two_stage;
	if (c->search.two_stage && !as->p.two_stage)
		context_note(u->run.cx,
			     "two_stage_search has no effect: no space has include_fast_ft: [true]");
	c->tuning.max_trials = c->search.iteration_limit;
	if (!u->run.r.o.jobs && c->search.jobs > 1)
		u->run.r.o.jobs = arena_strfmt(&as->arena, "%d", c->search.jobs);
	u->run.r.is_search = true;
	return FETTLE_OK;
}

static void describe_search(struct job_request *u, struct settings_search *as)
{
	const struct config *c = u->run.r.c;
	const bool whole = as->p.two_stage || as->p.advanced || c->search.find_best_candidate;

	as->job = (struct settings_job){ .list = &as->list,
					 .search = &as->p,
					 .most = (size_t)c->search.find_best_candidate,
					 .log_path = c->search.log };
	u->job.kind = &job_settings;
	u->job.kind_self = &as->job;
	u->job.strategy = &strategy_param_search;
	u->job.time_limit = c->search.time_limit;
	u->job.search.options.self = &as->p;
	u->job.search.enough =
		c->search.find_n_candidates && !whole ? (size_t)c->search.find_n_candidates : SIZE_MAX;
}

enum fettle_status job_request_search(struct job_request *u)
{
	enum fettle_status st;

	u->search = xcalloc(1, sizeof(*u->search));
	st = read_search(u, u->search);
	if (!st)
		describe_search(u, u->search);
	return st;
}

void settings_search_free(struct settings_search *s)
{
	if (!s)
		return;
	settings_job_release(&s->job);
	settings_list_release(&s->list);
	arena_release(&s->arena);
	free(s);
}
