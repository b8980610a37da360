/* fettle_auto_search(): AMD's Automatic Search on top of what fettle_tune() does. */
#include "api/tune.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "api/own.h"
#include "base/file.h"
#include "sampler/sampler.h"
#include "space/plan_json.h"
#include "strategy/param_search.h"

struct auto_search {
	struct arena arena;
	struct settings_space spaces[CONFIG_SPACES];
	struct settings_list list;
	struct param_search p;
	FILE *log;
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

static struct setting_values values_of(struct auto_search *as, const struct config *c,
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

bool auto_search_has_space(const struct config *c)
{
	size_t i;

	for (i = 0; i < CONFIG_SPACES; i++)
		if (is_space(&c->search.spaces[i]))
			return true;
	return false;
}

static void read_spaces(struct auto_search *as, const struct config *c)
{
	size_t i, k;

	for (i = 0; i < CONFIG_SPACES; i++) {
		struct settings_space *to = &as->spaces[as->p.n_spaces];

		if (!is_space(&c->search.spaces[i]))
			continue;
		*to = (struct settings_space){ .n_pairs = c->search.spaces[i].num_iter_lr.n / 2 };
		to->pairs = (const double(*)[2])(const void *)c->search.spaces[i].num_iter_lr.v;
		for (k = 0; k < ARRAY_LEN(lists); k++)
			to->list[lists[k].which] = values_of(as, c, &c->search.spaces[i], k);
		as->p.n_spaces++;
	}
	as->p.spaces = as->spaces;
}

/* the observers must know the constants of moving averages beforehand */
static enum fettle_status collect_averaging(struct tune_run *u)
{
	double *v = u->base.lab.o.averaging;
	const struct settings_list *l = &u->as->list;
	size_t i, k, n = 0;

	for (i = 0; i < l->n; i++) {
		double x = l->v[i].v[SET_AVERAGING];

		for (k = 0; k < n && v[k] != x; k++)
			;
		if (isnan(x) || k < n)
			continue;
		if (n == OBSERVER_AVERAGES)
			return fail(&u->base.f->err, FETTLE_INVALID,
				    "cannot search: more than %d values of CalibMovingAverageConstant in all "
				    "spaces",
				    OBSERVER_AVERAGES);
		v[n++] = x;
	}
	return FETTLE_OK;
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

static enum fettle_status choose_algorithm(struct tune_run *u)
{
	const struct config *c = u->base.r.c;
	struct param_search *p = &u->as->p;
	enum fettle_status st;

	if (strcasecmp(c->search.algorithm, "grid_search") == 0)
		p->algorithm = "grid";
	else if (strcasecmp(c->search.algorithm, "random_search") == 0)
		p->algorithm = "random";
	else {
		st = find_sampler(c, &c->search.algorithm, "search_algo", &p->algorithm, &u->base.f->err);
		if (st)
			return st;
	}
	return find_sampler(c, &c->search.sampler_algo, "sampler_algo", &p->sampler, &u->base.f->err);
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
static enum fettle_status begin_advanced(struct tune_run *u)
{
	const struct config *c = u->base.r.c;
	const struct config_origin *at = config_origin(c, &c->search.advanced_fastft);
	struct auto_search *as = u->as;
	struct param_search *p = &as->p;
	struct settings_space *s = &as->spaces[0];
	struct err *err = &u->base.f->err;

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

static enum fettle_status check_advanced(struct tune_run *u)
{
	const struct config *c = u->base.r.c;
	const struct config_origin *at = config_origin(c, &c->search.advanced_fastft);
	const struct settings_list *l = &u->as->list;

	if (!u->as->p.advanced)
		return FETTLE_OK;
	if (l->n != 1)
		return config_fail(at, FETTLE_INVALID, &u->base.f->err,
				   "cannot set advanced_fastft_search: the space has %zu settings apart from "
				   "NumIterations "
				   "and LearningRate, need one",
				   l->n);
	if (isnan(l->v[0].v[SET_ITERATIONS]))
		return config_fail(at, FETTLE_INVALID, &u->base.f->err,
				   "cannot set advanced_fastft_search: nothing is fine-tuned, need "
				   "include_fast_ft: [true] "
				   "with adaround or adaquant");
	/* what the study varies is what its trials are called by */
	u->as->list.varies[SET_ITERATIONS] |= u->as->p.iterations[0] < u->as->p.iterations[1];
	u->as->list.varies[SET_LEARNING_RATE] |= u->as->p.learning_rate[0] < u->as->p.learning_rate[1];
	return FETTLE_OK;
}

/* ---- what is measured, and what is good enough ---- */

/* Decibels have no natural loss: there the tolerance is the least that will do. */
static bool in_decibels(const char *metric)
{
	return strcmp(metric, "psnr") == 0 || strcmp(metric, "sqnr") == 0;
}

static enum fettle_status set_criterion(struct tune_run *u)
{
	struct config *c = u->base.r.c;
	bool given = config_is_set(c, &c->search.tolerance), compares = false,
	     higher = c->tuning.higher_is_better;
	bool evaluator = request_evaluator(&u->base.r) != NULL, unit = false;
	struct metric *m = NULL;
	enum fettle_status st;

	if (!evaluator) {
		if (c->search.metric)
			c->evaluation.metric = c->search.metric;
		if (!c->evaluation.metric)
			c->evaluation.metric = "l2";
		st = own_metric_open(u->base.f, c->evaluation.metric, &m, &u->base.f->err);
		if (st)
			return st;
		compares = metric_needs(m) & METRIC_REFERENCE;
		unit = metric_type(m)->is_mean &&
		       metric_type(m)->score_max == 1; /* cosine, ssim, agreement */
		higher = metric_higher_is_better(m);
		metric_free(m);
	}
	if (compares && !config_is_set(c, &c->tuning.criterion))
		c->tuning.criterion = CRITERION_ABSOLUTE; /* nothing is relative to no difference at all */
	if (given && compares && in_decibels(c->evaluation.metric) && c->search.tolerance > 200)
		return config_fail(
			config_origin(c, &c->search.tolerance), FETTLE_INVALID, &u->base.f->err,
			"cannot set search_tolerance: %g dB, need at most 200, which is no difference",
			c->search.tolerance);
	if (given && compares && in_decibels(c->evaluation.metric))
		c->tuning.tolerable_loss = 200 - c->search.tolerance; /* of identical outputs */
	else if (given)
		c->tuning.tolerable_loss = c->search.tolerance;
	else if (compares && !unit && !config_is_set(c, &c->tuning.tolerable_loss))
		c->tuning.tolerable_loss =
			INFINITY; /* no number is natural: every candidate counts, best first */
	if (config_is_set(c, &c->search.direction)) {
		bool want = c->search.direction == DIRECTION_MAXIMIZE;

		if (!evaluator && want != higher)
			return config_fail(config_origin(c, &c->search.direction), FETTLE_INVALID,
					   &u->base.f->err, "cannot set direction: %s is better when %s",
					   c->evaluation.metric,
					   higher ? "higher, need maximize" : "lower, need minimize");
		if (evaluator && !config_is_set(c, &c->tuning.higher_is_better))
			c->tuning.higher_is_better = want;
	}
	return FETTLE_OK;
}

/* without data to evaluate on, the calibration data serves: outputs are compared with the fp32 model's */
static void set_data(struct tune_run *u)
{
	struct request *r = &u->base.r;

	if (request_has_data(r, &r->c->evaluation.dataloader) || request_evaluator(r))
		return;
	r->c->evaluation.dataloader = r->c->calibration.dataloader;
	r->o.eval_source = r->o.calib_source;
	r->eval_is_calib = true;
}

static enum fettle_status check_config(struct tune_run *u)
{
	const struct config *c = u->base.r.c;

	if (c->quantization.approach != APPROACH_STATIC)
		return config_fail(config_origin(c, &c->quantization.approach), FETTLE_INVALID,
				   &u->base.f->err, "cannot search: the approach is not static, need static");
	if (!u->as->p.n_spaces)
		return fail(&u->base.f->err, FETTLE_INVALID,
			    "cannot search%s%s: no search_space, need a configuration that lists what to try",
			    u->base.r.o.config ? " " : "", u->base.r.o.config ? u->base.r.o.config : "");
	return FETTLE_OK;
}

enum fettle_status auto_search_begin(struct tune_run *u)
{
	struct auto_search *as = u->as;
	struct config *c = u->base.r.c;
	enum fettle_status st;

	read_spaces(as, c);
	st = check_config(u);
	st = st ? st : choose_algorithm(u);
	st = st ? st : begin_advanced(u);
	st = st ? st : settings_expand(&as->list, as->spaces, as->p.n_spaces, &u->base.f->err);
	st = st ? st : check_advanced(u);
	st = st ? st : set_criterion(u);
	if (st)
		return st;
	set_data(u);
	as->p.list = &as->list;
	as->p.two_stage = c->search.two_stage && param_search_has_stages(&as->list);
	as->list.varies[SET_FAST_FT] |= as->p.two_stage;
	if (c->search.two_stage && !as->p.two_stage)
		api_note(u->base.f, "two_stage_search has no effect: no space has include_fast_ft: [true]");
	c->tuning.max_trials = c->search.iteration_limit;
	if (!u->base.r.o.jobs && c->search.jobs > 1)
		u->base.r.o.jobs = arena_strfmt(&as->arena, "%d", c->search.jobs);
	u->base.r.is_search = true;
	u->strategy = &strategy_param_search;
	return FETTLE_OK;
}

/* ---- the log ---- */

enum { LOGGED_MAX = 1000 }; /* candidates that are listed beforehand */

static void log_line(struct auto_search *as, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static void log_line(struct auto_search *as, const char *fmt, ...)
{
	char now[32];
	va_list ap;

	if (!as->log)
		return;
	clock_utc(now);
	fprintf(as->log, "%s ", now);
	va_start(ap, fmt);
	vfprintf(as->log, fmt, ap);
	va_end(ap);
	fputc('\n', as->log);
	fflush(as->log);
}

enum fettle_status auto_search_open(struct tune_run *u)
{
	const struct config *c = u->base.r.c;
	struct auto_search *as = u->as;
	char *path =
		c->search.log ? xstrdup(c->search.log) : xstrfmt("%s/auto_search.log", u->base.workspace);
	enum fettle_status st = FETTLE_OK;
	size_t i;

	as->log = fopen(path, "a");
	if (!as->log)
		st = fail(&u->base.f->err, FETTLE_SYSTEM, "cannot write %s: %s", path, strerror(errno));
	free(path);
	settings_tuning_vary(u->base.lab.t, &as->list);
	st = st ? st : collect_averaging(u);
	log_line(as, "search of %s: %zu settings in %zu space%s, %s, by %s", u->base.r.o.model, as->list.n,
		 as->p.n_spaces, as->p.n_spaces == 1 ? "" : "s",
		 as->p.advanced    ? "advanced_fastft_search"
		 : as->p.two_stage ? "two stages"
				   : as->p.algorithm,
		 u->base.metric);
	for (i = 0; i < as->list.n && i < LOGGED_MAX; i++) {
		struct str text = STR_INIT;

		settings_text(&as->list.v[i], NULL, &text);
		log_line(as, "candidate: %s", text.s);
		str_release(&text);
	}
	if (i < as->list.n)
		log_line(as, "and %zu more candidates", as->list.n - i);
	return st;
}

void auto_search_log_trial(struct tune_run *u, const struct trial *t, const char *settings)
{
	if (t->score.failed)
		log_line(u->as, "trial %zu: %s: failed: %s", t->number, settings, t->why);
	else
		log_line(u->as, "trial %zu: %s: %s %.10g, loss %.6g, %s, %.2f s", t->number, settings,
			 u->base.metric, t->score.accuracy, t->score.loss, t->score.met ? "met" : "not met",
			 t->seconds);
}

/* ---- running ---- */

static char *identity(void *self, const struct plan *p)
{
	struct tune_run *u = self;
	struct qplan q = QPLAN_INIT;
	char *json;

	tuning_qplan(u->base.lab.t, p, &q);
	json = qplan_to_json(&q, &u->base.lab.s->ops, tuning_samples(u->base.lab.t, p));
	qplan_release(&q);
	return json;
}

void auto_search_config(struct tune_run *u, struct search_config *sc)
{
	const struct config *c = u->base.r.c;
	bool whole = u->as->p.two_stage || u->as->p.advanced || c->search.find_best_candidate;

	u->as->p.space = &u->base.lab.t->space;
	u->as->p.identity = identity;
	u->as->p.self = u;
	sc->options.self = &u->as->p;
	sc->enough = c->search.find_n_candidates && !whole ? (size_t)c->search.find_n_candidates : SIZE_MAX;
	/* all time counts: what has passed since the call began too */
	sc->timeout = c->search.time_limit > 0
			      ? fmax(c->search.time_limit - (clock_now() - u->base.start), 1e-9)
			      : 0;
}

/* a trial among the candidates */
struct listed {
	const struct trial *t;
	double int8_share;
};

static int better_first(const void *a, const void *b)
{
	const struct listed *x = a, *y = b;

	if (x->t->score.loss != y->t->score.loss)
		return x->t->score.loss < y->t->score.loss ? -1 : 1;
	if (x->int8_share != y->int8_share)
		return x->int8_share > y->int8_share ? -1 : 1;
	return x->t->number < y->t->number ? -1 : x->t->number > y->t->number;
}

/* Of the steps of one search for mixed precision, only the one with most in int8 is a candidate. */
static void list_trial(const struct tune_run *u, struct listed *v, size_t *n, const struct trial *t)
{
	const struct space *space = &u->base.lab.t->space;
	struct settings s = plan_settings(&t->plan, space), other;
	struct listed new = { t, lab_summary(&u->base.lab, &t->plan).int8_share };
	size_t i;

	for (i = 0; i < *n && settings_on(&s, SET_AUTO_MP); i++) {
		other = plan_settings(&v[i].t->plan, space);
		if (!settings_equal(&s, &other))
			continue;
		if (t->score.met ? new.int8_share > v[i].int8_share : t->score.loss < v[i].t->score.loss)
			v[i] = new;
		return;
	}
	v[(*n)++] = new;
}

/* what the runtime makes of it; a model that does not load again keeps what its plan asks for */
static double actual_share(struct tune_run *u, const struct listed *v)
{
	double share;

	return lab_share(&u->base.lab, &v->t->plan, &share, NULL) ? v->int8_share : share;
}

/* those that met the target, best first; all when none has */
static struct listed *list_candidates(const struct tune_run *u, size_t *n)
{
	const struct trial *best = search_best_trial(u->search);
	size_t trials = search_n_trials(u->search), i;
	struct listed *v = xcalloc(trials + 1, sizeof(*v));

	*n = 0;
	for (i = 1; i <= trials; i++) {
		const struct trial *t = search_trial(u->search, i);

		if (!t->score.failed && best && (t->score.met || !best->score.met))
			list_trial(u, v, n, t);
	}
	qsort(v, *n, sizeof(*v), better_first);
	return v;
}

const struct trial *auto_search_best(const struct tune_run *u)
{
	const struct trial *best = search_best_trial(u->search);
	size_t n;
	struct listed *v = list_candidates(u, &n);

	if (n && u->base.lab.o.weights[LAB_ACCURACY] == 1) /* and by nothing else */
		best = v[0].t;
	free(v);
	return best;
}

void auto_search_finish(struct tune_run *u)
{
	struct fettle_tuned *t = &u->out->pub;
	size_t most = (size_t)u->base.r.c->search.find_best_candidate, i, n;
	struct listed *v = list_candidates(u, &n);
	struct fettle_candidate *out;

	t->n_candidates = most && n > most ? most : n;
	t->space = u->as->list.n;
	out = arena_alloc(&u->out->arena, (t->n_candidates + 1) * sizeof(*out));
	for (i = 0; i < t->n_candidates; i++) {
		char *text = tuning_text(u->base.lab.t, &v[i].t->plan, "");

		out[i] = (struct fettle_candidate){
			.trial = v[i].t->number,
			.met = v[i].t->score.met,
			.accuracy = v[i].t->score.accuracy,
			.loss = v[i].t->score.loss,
			.int8_share = actual_share(u, &v[i]),
			.settings = arena_strdup(&u->out->arena, text),
		};
		free(text);
		log_line(u->as, "place %zu: trial %zu: %s: %.10g%s", i + 1, out[i].trial, out[i].settings,
			 out[i].accuracy, out[i].met ? "" : ", not met");
	}
	t->candidates = api_list(&u->out->arena, out, t->n_candidates, sizeof(*out));
	free(v);
	log_line(u->as, "ended: %s, %zu trials, %.1f s, wrote %s", fettle_stop_word(t->stop), t->trials,
		 u->out->seconds.total, t->output);
}

enum fettle_status api_search(struct fettle *f, const struct fettle_options *in, struct fettle_tuned **out)
{
	struct auto_search as = { .log = NULL };
	struct tune_run u = { .base = { .f = f, .start = clock_now() }, .as = &as };
	enum fettle_status st = tune_run(&u, in, out);

	if (as.log)
		fclose(as.log);
	settings_list_release(&as.list);
	arena_release(&as.arena);
	return st;
}
