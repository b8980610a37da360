/* fettle_tune(): from options to a finished run. */
#include "api/tune.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#include "api/own.h"
#include "api/pareto.h"
#include "api/resume.h"
#include "base/file.h"
#include "base/fingerprint.h"
#include "base/str.h"
#include "tune/values.h"

void fettle_tuned_free(struct fettle_tuned *t)
{
	struct tuned *own = (struct tuned *)t;

	if (!own)
		return;
	arena_release(&own->arena);
	free(own);
}

static double target_accuracy(const struct tune_run *u)
{
	const struct config *c = u->base.r.c;
	double loss = c->tuning.tolerable_loss *
		      (c->tuning.criterion == CRITERION_RELATIVE ? fabs(u->baseline.value) : 1);
	bool higher = u->base.higher_is_better;

	if (c->tuning.performance_only)
		return NAN;
	return u->baseline.value + (higher ? -loss : loss);
}

static void on_trial(void *self, const struct trial *t)
{
	struct tune_run *u = self;
	const struct trial *best = u->as ? auto_search_best(u) : search_best_trial(u->search);
	char *stage = tuning_text(u->base.lab.t, &t->plan, t->stage);
	struct fettle_trial trial = {
		.size = sizeof(trial),
		.number = t->number,
		.stage = stage,
		.failed = t->score.failed,
		.met = t->score.met,
		.why = t->why,
		.accuracy = t->score.accuracy,
		.loss = t->score.loss,
		.early = t->score.early,
		.accuracy_low = t->score.low,
		.accuracy_high = t->score.high,
		.latency_ms = 1e3 * t->latency,
		.size_bytes = t->size_bytes,
		.samples = t->samples,
		.seconds = t->seconds,
		.values = api_values(t->values, t->score.early ? 0 : metric_n_parts(u->base.lab.metric)),
	};
	struct fettle_progress_info info = {
		.size = sizeof(info),
		.trial = &trial,
		.max_trials = (size_t)u->base.r.c->tuning.max_trials,
		.baseline = u->baseline.value,
		.target = target_accuracy(u),
		.higher_is_better = u->base.higher_is_better,
		.best = best ? best->number : 0,
		.best_accuracy = best ? best->score.accuracy : NAN,
		.best_met = best && best->score.met,
		.best_early = best && best->score.early,
		.seconds_used = clock_now() - u->base.start,
		.seconds_left = search_time_left(u->search),
	};

	if (info.max_trials && t->number) { /* at most as long as the trials that are left would take */
		double each = info.seconds_used / (double)t->number;

		info.seconds_left =
			fmin(info.seconds_left, each * fmax(0, (double)info.max_trials - (double)t->number));
	}
	if (u->as)
		auto_search_log_trial(u, t, stage);
	if (u->base.f->on_trial)
		u->base.f->on_trial(u->base.f->on_trial_self, &info);
	free(stage);
}

static enum fettle_status choose_strategy(struct tune_run *u)
{
	const struct config *c = u->base.r.c;
	const char *name = config_strategy(c);
	const struct fettle *f = u->base.f;
	VEC(const char *) names = { 0 };
	const char *near;
	size_t i;

	if (u->as)
		return FETTLE_OK; /* has brought its own */
	u->own = own_strategy_find(f, name);
	u->strategy = u->own ? &u->own->type : strategy_find(name);
	if (u->strategy)
		return FETTLE_OK;
	for (i = 0; i < f->strategies.n; i++)
		VEC_PUSH(&names, f->strategies.v[i]->def.name);
	for (i = 0; strategy_at(i); i++)
		VEC_PUSH(&names, strategy_at(i)->name);
	near = str_nearest(name, names.v, names.n);
	VEC_RELEASE(&names);
	return config_fail(config_origin(c, &c->tuning.strategy), FETTLE_INVALID, &u->base.f->err,
			   "unknown strategy '%s'%s%s%s", name,
			   near ? ", did you mean '" : "; 'fettle strategies' lists them", near ? near : "",
			   near ? "'?" : "");
}

static enum fettle_status set_objective(struct tune_run *u)
{
	static const enum lab_objective index[] = { [OBJECTIVE_PERFORMANCE] = LAB_LATENCY,
						    [OBJECTIVE_MODELSIZE] = LAB_SIZE,
						    [OBJECTIVE_FOOTPRINT] = LAB_FOOTPRINT,
						    [OBJECTIVE_ACCURACY] = LAB_ACCURACY };
	const struct config *c = u->base.r.c;
	double *w = u->base.lab.o.weights;
	size_t i;

	if (u->as && !config_is_set(c, &c->tuning.objective) && !c->tuning.objectives.n) {
		w[LAB_ACCURACY] = 1; /* settings differ in what they lose, not in what they gain */
		return FETTLE_OK;
	}
	for (i = 0; i < c->tuning.objectives.n; i++) {
		enum lab_objective which = index[c->tuning.objectives.v[i]];

		w[which] = c->tuning.weights.n ? c->tuning.weights.v[i] : 1;
		u->base.lab.o.higher[which] = config_higher_is_better(c, i);
	}
	if (!c->tuning.objectives.n)
		w[index[c->tuning.objective]] = 1;
	if (w[LAB_FOOTPRINT] > 0 && !u->base.r.o.helper)
		return fail(&u->base.f->err, FETTLE_INVALID,
			    "cannot tune for footprint: need options.helper, the fettle command, to measure "
			    "memory with");
	return FETTLE_OK;
}

/* by the name that the configuration gives the model, else by its file's */
static char *default_workspace(const char *name, const char *model)
{
	const char *base = name && *name && !strchr(name, '/') ? name : path_base(model),
		   *dot = base == name ? NULL : strrchr(base, '.');
	char when[32];
	time_t t = time(NULL);
	struct tm tm;
	char *path;
	int n;

	gmtime_r(&t, &tm);
	strftime(when, sizeof(when), "%Y%m%d-%H%M%S", &tm);
	path = xstrfmt(DEFAULT_WORKSPACES "/%.*s-%s", (int)(dot ? dot - base : (long)strlen(base)), base,
		       when);
	for (n = 2; path_is_dir(path); n++) { /* another run began in the same second */
		free(path);
		path = xstrfmt(DEFAULT_WORKSPACES "/%.*s-%s-%d", (int)(dot ? dot - base : (long)strlen(base)),
			       base, when, n);
	}
	return path;
}

static enum fettle_status write_bytes(const char *path, const void *p, size_t n, struct err *err)
{
	struct file_out o = FILE_OUT_INIT;
	enum fettle_status st = file_create(&o, path, err);

	if (st)
		return st;
	fwrite(p, 1, n, o.f); /* file_commit() reports a failure */
	return file_commit(&o, err);
}

/* All that decides what this run finds; run_request.c has what the configuration does not know. */
static enum fettle_status identify(struct tune_run *u, struct str *out)
{
	static const char *const names[LAB_OBJECTIVES] = { "latency", "size", "footprint", "accuracy" };
	size_t i;

	config_identity(u->base.r.c, out);
	for (i = 0; i < LAB_OBJECTIVES; i++)
		if (u->base.lab.o.weights[i] > 0)
			str_addf(out, "weight of %s: %.17g\n", names[i], u->base.lab.o.weights[i]);
	return run_request_identity(&u->base.r, u->base.f, out, &u->base.f->err);
}

static const char *keep(struct arena *a, char *text)
{
	const char *copy = arena_strdup(a, text ? text : "");

	free(text);
	return copy;
}

/* what the history is made with, or must be the same as; its texts are `a`'s */
static enum fettle_status describe_run(struct tune_run *u, struct arena *a, struct run_info *out)
{
	const struct config *c = u->base.r.c;
	struct err *err = &u->base.f->err;
	char model[FINGERPRINT_LEN], calib[FINGERPRINT_LEN], eval[FINGERPRINT_LEN], conf[FINGERPRINT_LEN],
		space[FINGERPRINT_LEN], started[CLOCK_UTC_LEN];
	const char *planned = u->base.f->cpu.name, *here = cpu_detect().name;
	const bool elsewhere = strcmp(planned, here) != 0;
	struct str text = STR_INIT;
	char *request, *path;
	enum fettle_status st;

	clock_utc(started);
	st = identify(u, &text);
	st = st ? st : fingerprint_file(u->base.r.o.model, model, err);
	st = st ? st : request_fingerprint(&u->base.r, &c->calibration.dataloader, calib, err);
	st = st ? st : request_fingerprint(&u->base.r, &c->evaluation.dataloader, eval, err);
	st = st ? st : run_request_save(&u->base.r, u->base.f, u->as ? "search" : "tune", &request, err);
	if (st)
		goto out;
	fingerprint_bytes(text.s, text.n, conf);
	space_hash(&u->base.lab.t->space, space);
	/* a model from memory stays in the workspace, so that trials can be recovered */
	path = u->base.r.temp ? xstrfmt("%s/model.onnx", u->base.workspace) : xstrdup(u->base.r.o.model);
	*out = (struct run_info){
		.model_path = keep(a, path_absolute(path)),
		.model_fingerprint = arena_strdup(a, model),
		.calib_fingerprint = arena_strdup(a, calib),
		.eval_fingerprint = arena_strdup(a, eval),
		.calib_path = c->calibration.dataloader.dataset.root,
		.eval_path = c->evaluation.dataloader.dataset.root,
		.config_fingerprint = arena_strdup(a, conf),
		.config = arena_strdup(a, text.s),
		.space = arena_strdup(a, space),
		.request = keep(a, request),
		.strategy = u->strategy->name,
		.seed = (uint64_t)c->tuning.random_seed,
		.fettle_version = FETTLE_VERSION,
		.runtime_version = runtime_version(),
		.cpu = elsewhere ? arena_strfmt(a, "%s on %s", planned, here) : here,
		.started = arena_strdup(a, started),
		.criterion = c->tuning.criterion == CRITERION_RELATIVE ? "relative" : "absolute",
		.tolerance = c->tuning.tolerable_loss,
		.metric = u->base.metric,
		.higher_is_better = u->base.higher_is_better,
	};
	free(path);
out:
	str_release(&text);
	return st;
}

static enum fettle_status open_history(struct tune_run *u)
{
	const struct fettle_options *o = &u->base.r.o;
	struct err *err = &u->base.f->err;
	struct arena texts = ARENA_INIT;
	struct run_info info;
	enum fettle_status st = describe_run(u, &texts, &info);

	if (!st && o->resume) {
		st = history_open(&u->history, u->base.workspace, false, err);
		if (!st)
			st = history_check_same(u->history, &info, err);
		if (!st)
			st = history_set_request(u->history, info.request, err);
	} else if (!st) {
		st = history_create(&u->history, u->base.workspace, &info, err);
		if (!st && u->base.r.temp)
			st = write_bytes(info.model_path, o->model_bytes, o->model_size, err);
	}
	if (!st && !o->resume) {
		char *objectives = pareto_objectives(u->base.r.c, u->base.higher_is_better);

		st = history_set_meta(u->history, "objectives", objectives, err);
		free(objectives);
	}
	u->base.lab.history = u->history;
	arena_release(&texts);
	return st;
}

/* An evaluator of the user's may give another answer each time: what is within that says nothing about a plan. */
static enum fettle_status measure_noise(struct tune_run *u)
{
	struct run *b = &u->base;
	double again = NAN, loss, noise;
	enum fettle_status st;

	if (!request_evaluator(&b->r))
		return FETTLE_OK;
	st = lab_evaluate_file(&b->lab, 0, b->r.o.model, lab_go_on, &again, &b->f->err);
	if (st)
		return st;
	noise = fabs(again - u->baseline.value);
	loss = fabs(u->baseline.value - target_accuracy(u));
	u->out->pub.noise = noise;
	if (noise > loss)
		api_warn(b->f,
			 "the evaluator gave the fp32 model %.6g and then %.6g: a difference of %.3g, more "
			 "than "
			 "the %.3g that may be lost",
			 u->baseline.value, again, noise, loss);
	else if (noise > 0) {
		char *text = xstrfmt("the evaluator gave the fp32 model %.6g and then %.6g: a difference of "
				     "%.3g; %.3g may be lost",
				     u->baseline.value, again, noise, loss);

		api_note(b->f, text);
		free(text);
	}
	return FETTLE_OK;
}

/* what makes meeting the target mean little */
static void doubt(struct tune_run *u)
{
	const struct config *c = u->base.r.c;

	scores_judge(&u->base.scores, u->base.f, "the fp32 model", u->baseline.value);
	if (u->base.higher_is_better && u->baseline.value > 0 && target_accuracy(u) <= 0 &&
	    !c->tuning.performance_only && isfinite(c->tuning.tolerable_loss))
		api_warn(u->base.f,
			 "a tolerance of %g lets any model meet the target: %s at least %.4g, and fp32 has "
			 "%.4g "
			 "(0.01 is one percent)",
			 c->tuning.tolerable_loss, u->base.metric, target_accuracy(u), u->baseline.value);
}

static enum fettle_status measure_baseline(struct tune_run *u)
{
	struct history_baseline b = { 0 };
	bool found = false;
	enum fettle_status st;

	st = api_phase(u->base.f, "baseline");
	if (!st)
		st = history_baseline(u->history, &b, &found, &u->base.f->err);
	/* measured again on resuming too: it opens the session, and its time is the unit of account */
	if (!st)
		u->base.lab.o.relative = u->base.r.c->tuning.criterion == CRITERION_RELATIVE;
	if (!st)
		st = lab_baseline(&u->base.lab, &u->baseline, &u->base.f->err);
	if (st)
		return st;
	if (found)
		u->baseline.value = b.accuracy;
	if (isnan(u->baseline.value))
		return fail(&u->base.f->err, FETTLE_INVALID,
			    "cannot tune %s: the fp32 model's %s is not a number", u->base.r.o.model,
			    u->base.metric);
	doubt(u);
	if (found)
		return FETTLE_OK;
	st = measure_noise(u);
	if (!st)
		st = values_write(u->history, 0, u->baseline.parts, metric_n_parts(u->base.lab.metric),
				  &u->base.f->err);
	return st ? st
		  : history_set_baseline(u->history,
					 &(struct history_baseline){ .accuracy = u->baseline.value,
								     .latency = NAN,
								     .size_bytes = u->base.lab.baseline_size,
								     .pass_seconds = u->baseline.seconds,
								     .samples = u->baseline.samples },
					 &u->base.f->err);
}

/* Trials of an earlier session that this one did not ask for again. */
static enum fettle_status adopt_known(struct tune_run *u)
{
	struct history_trial t = { .number = 0 };
	struct plan p = PLAN_INIT;
	enum fettle_status st;
	size_t last = 0;

	while (!(st = history_next(u->history, last, &t, &u->base.f->err)) && t.number) {
		if (!plan_read(&p, &u->base.lab.t->space, t.plan, "of the history", NULL))
			search_adopt(u->search, &p);
		last = t.number;
	}
	plan_release(&p);
	history_trial_release(&t);
	return st;
}

/* Two measurements of one model differ by so much on a busy machine. Sizes and accuracies are exact, so several objectives are as
 * noisy as the share of those that are not. */
static double objective_noise(const double *weights)
{
	double sum =
		weights[LAB_LATENCY] + weights[LAB_SIZE] + weights[LAB_FOOTPRINT] + weights[LAB_ACCURACY];

	return sum > 0 ? (0.1 * weights[LAB_LATENCY] + 0.03 * weights[LAB_FOOTPRINT]) / sum : 0;
}

static enum fettle_status run_search(struct tune_run *u)
{
	const struct config *c = u->base.r.c;
	struct search_config sc = {
		.space = &u->base.lab.t->space,
		.options = { .confidence_batches = c->tuning.confidence_batches,
			     .n_startup_trials = c->tuning.n_startup_trials,
			     .n_ei_candidates = c->tuning.n_ei_candidates,
			     .gamma = c->tuning.gamma,
			     .prior_weight = c->tuning.prior_weight,
			     .seed = (uint64_t)c->tuning.random_seed,
			     .self = u->own },
		.baseline = u->baseline.value,
		.higher_is_better = u->base.higher_is_better,
		.relative = c->tuning.criterion == CRITERION_RELATIVE,
		.tolerance = c->tuning.performance_only ? INFINITY : c->tuning.tolerable_loss,
		.accuracy_weight = c->tuning.objectives.n ? u->base.lab.o.weights[LAB_ACCURACY] : 0,
		.objective_noise = objective_noise(u->base.lab.o.weights),
		.max_trials = (size_t)c->tuning.max_trials,
		.timeout = c->tuning.timeout,
		.no_early = u->base.r.o.no_early,
		.width = u->base.lab.o.jobs,
		.backend = &lab_backend,
		.self = &u->base.lab,
	};
	enum fettle_status st;

	st = history_count(u->history, &sc.recorded, &u->base.f->err);
	if (st)
		return st;
	if (u->as)
		auto_search_config(u, &sc);
	u->base.lab.deadline = sc.timeout > 0 ? clock_now() + sc.timeout : INFINITY;
	api_phase(u->base.f, "first trial"); /* whether to go on the search asks itself */
	st = search_new(&u->search, &sc, &u->base.f->err);
	if (!st)
		st = search_run(u->search, u->strategy, &u->base.f->err);
	if (!st)
		st = adopt_known(u);
	u->base.lab.deadline = INFINITY; /* what follows is short, and must not be broken off */
	u->base.lab.progress = NULL;
	if (!st && u->base.lab.history_failed) {
		u->base.f->err = u->base.lab.history_err;
		st = FETTLE_SYSTEM;
	}
	return st;
}

static enum fettle_status describe(struct tune_run *u, const struct plan *p, const struct model *m,
				   struct fettle_measure *out)
{
	struct tuned *t = u->out;
	struct qplan q = QPLAN_INIT;
	struct precisions is = PRECISIONS_INIT;
	struct str recipes = STR_INIT;
	enum fettle_status st;

	tuning_qplan(u->base.lab.t, p, &q);
	st = api_precisions(u->base.f, &u->base.r, u->base.lab.s, &u->base.lab.t->base, &q, m, &is);
	recipes_text(&q.recipes, &recipes);
	t->pub.recipes = arena_strdup(&t->arena, recipes.s ? recipes.s : "");
	str_release(&recipes);
	t->pub.cpu = u->base.f->cpu.name;
	t->pub.measured_on = cpu_detect().name;
	api_saturates_on(u->base.f, &q, &u->base.lab.s->ops, t->pub.saturates_on,
			 sizeof(t->pub.saturates_on));
	qplan_release(&q);
	out->ops_int8 = is.int8;
	out->ops_int16 = is.int16;
	out->ops_dynamic = is.dynamic;
	out->ops_fp32 = is.fp32;
	out->int8_share = is.int8_share;
	precisions_release(&is);
	return st;
}

/* The most accurate trial that quantizes more than next to nothing; NULL: none. */
static const struct trial *best_of_substance(const struct tune_run *u)
{
	const struct trial *best = NULL;
	size_t i;

	for (i = 1; i <= search_n_trials(u->search); i++) {
		const struct trial *t = search_trial(u->search, i);

		if (!isnan(t->score.loss) && (!best || t->score.loss < best->score.loss) &&
		    lab_summary(&u->base.lab, &t->plan).low_share >= SLIGHT_SHARE)
			best = t;
	}
	return best;
}

static const char *why_almost_nothing(struct tune_run *u, const struct plan *best)
{
	const struct trial *other = best_of_substance(u);
	const struct fettle_measure *m = &u->out->best;
	double planned = lab_summary(&u->base.lab, best).low_share, most;
	struct plan first = PLAN_INIT;

	if (planned >= SLIGHT_SHARE && u->base.lab.s->ops.total_macs > 0 && m->int8_share < SLIGHT_SHARE &&
	    !m->ops_int16)
		return arena_strfmt(&u->out->arena,
				    "the plan quantizes %.0f %%, but the runtime computes that in fp32",
				    100 * planned);
	if (planned >= SLIGHT_SHARE)
		return NULL;
	plan_init(&first, &u->base.lab.t->space);
	most = lab_summary(&u->base.lab, &first).low_share;
	plan_release(&first);
	if (most < SLIGHT_SHARE)
		return arena_strfmt(&u->out->arena,
				    "the ops that can be quantized have only %.2g %% of the multiply-adds",
				    100 * most);
	if (!other)
		return "no trial that quantizes more came to its end";
	return arena_strfmt(&u->out->arena,
			    "of the plans that quantize more, the most accurate is trial %zu with %s%.4g",
			    other->number, other->score.early ? "at best " : "", other->score.accuracy);
}

/* A search that ended for lack of plans says which it never proposes. */
static const char *what_is_untried(struct tune_run *u)
{
	double size = space_size_log10(&u->base.lab.t->space, false);
	size_t n = search_n_trials(u->search), same = search_n_same(u->search);
	const char *left = search_left_untried(u->search);
	char all[32], alike[96] = "";

	if (search_why(u->search) != SEARCH_EXHAUSTED || u->as || !*left ||
	    log10((double)(n + same) + 1e-9) >= size - 1e-9)
		return NULL;
	snprintf(all, sizeof(all), size < 6 ? "%.0f" : "10^%.1f", size < 6 ? pow(10, size) : size);
	if (same)
		snprintf(alike, sizeof(alike), ", and %zu that come%s to the same models", same,
			 same == 1 ? "s" : "");
	return arena_strfmt(&u->out->arena, "of %s plans, %zu were tried%s; %s leaves out %s", all, n, alike,
			    u->strategy->name, left);
}

/* the best model and its plan, to where they belong */
static enum fettle_status write_best(struct tune_run *u, const struct trial *best)
{
	struct fettle_tuned *t = &u->out->pub;
	struct err *err = &u->base.f->err;
	struct latency times[2] = { { .median = NAN }, { .median = NAN, .speedup = { NAN, 0, INFINITY } } };
	struct model *m;
	char *plan, *text;
	enum fettle_status st;

	st = lab_model(&u->base.lab, &best->plan, &m, err);
	if (!st)
		st = model_save(m, u->output, err);
	if (st)
		return st;
	plan = plan_text(&best->plan, &u->base.lab.t->space);
	t->plan = arena_strfmt(&u->out->arena, "%s/best_plan.json", u->base.workspace);
	text = xstrfmt("%s\n", plan);
	st = write_bytes(t->plan, text, strlen(text), err);
	free(text);
	free(plan);
	if (!st)
		st = lab_latency(&u->base.lab, &best->plan, fmin(1, fmax(0.1, 0.25 * u->baseline.seconds)),
				 times, err);
	u->out->best = (struct fettle_measure){
		.trial = best->number,
		.accuracy = best->score.accuracy,
		.latency_ms = 1e3 * times[1].median,
		.speedup = times[1].speedup.value,
		.speedup_low = times[1].speedup.low,
		.speedup_high = times[1].speedup.high,
		.size_bytes = model_file_size(u->output),
	};
	u->out->best.values.n = values_read(u->history, best->number, u->out->best.values.v);
	u->out->baseline.latency_ms = 1e3 * times[0].median;
	if (!st)
		st = lab_model(&u->base.lab, &best->plan, &m, err);
	if (!st)
		st = describe(u, &best->plan, m, &u->out->best);
	t->almost_nothing = why_almost_nothing(u, &best->plan);
	t->untried = what_is_untried(u);
	u->out->baseline.ops_fp32 = u->out->best.ops_int8 + u->out->best.ops_int16 +
				    u->out->best.ops_dynamic + u->out->best.ops_fp32;
	return st;
}

static enum fettle_stop stop_of(enum search_stop why)
{
	switch (why) {
	case SEARCH_ACCURACY_MET:
		return FETTLE_STOP_ACCURACY_MET;
	case SEARCH_MAX_TRIALS:
		return FETTLE_STOP_MAX_TRIALS;
	case SEARCH_TIMEOUT:
		return FETTLE_STOP_TIMEOUT;
	case SEARCH_INTERRUPTED:
		return FETTLE_STOP_INTERRUPTED;
	default:
		return FETTLE_STOP_EXHAUSTED;
	}
}

static void fill_seconds(struct tune_run *u)
{
	struct fettle_tuned *t = &u->out->pub;
	const struct lab_times *l = &u->base.lab.times;
	const struct lab_saved *saved = &u->base.lab.saved;
	double pass = u->baseline.seconds > 0 ? u->baseline.seconds : 1;

	u->out->seconds.total = clock_now() - u->base.start;
	u->out->seconds.prepare = l->prepare;
	u->out->seconds.calibrate = l->calibrate;
	u->out->seconds.quantize = l->quantize;
	u->out->seconds.session = l->session;
	u->out->seconds.evaluate = l->evaluate;
	u->out->seconds.latency = l->latency;
	u->out->seconds.rank = l->rank;
	u->out->seconds.runtime = runtime_busy(u->base.f->rt) - u->base.busy;
	t->samples_evaluated = u->base.lab.samples_evaluated;
	u->out->saved.early = saved->early / pass;
	u->out->saved.cuts = saved->cuts / pass;
	u->out->saved.repeated = u->base.lab.order
					 ? (double)search_n_same(u->search) * (double)t->samples_evaluated /
						   (double)(t->trials + 1) / (double)u->baseline.samples
					 : 0; /* each as an average trial */
	u->out->saved.beside = saved->beside / pass;
}

/* Wilson's interval for a share; for other metrics none */
static void wilson(double p, size_t n, double *low, double *high)
{
	double z = 1.959964, nn = (double)n, middle = (p + z * z / (2 * nn)) / (1 + z * z / nn);
	double half = z / (1 + z * z / nn) * sqrt(p * (1 - p) / nn + z * z / (4 * nn * nn));

	*low = middle - half;
	*high = middle + half;
}

static enum fettle_status measure_holdout(struct tune_run *u, const struct trial *best)
{
	struct fettle_tuned *t = &u->out->pub;
	struct evaluation e = { .reference = network_of(u->base.lab.fp32),
				.feed = u->hold.feed,
				.metric = metric_twin(u->base.lab.metric) };
	struct session *s;
	struct accuracy a, b;
	enum fettle_status st;

	e.net = e.reference;
	st = evaluate_accuracy(&e, &b, &u->base.f->err);
	if (!st && metric_n_parts(e.metric)) /* fp32 on this data is what its losses are against */
		st = metric_set_base(e.metric, b.parts, u->base.lab.o.relative, &u->base.f->err);
	if (!st)
		st = metric_value(e.metric, &b.value, &u->base.f->err);
	if (!st)
		st = lab_session(&u->base.lab, &best->plan, &s, &u->base.f->err);
	if (!st) {
		e.net = network_of(s);
		st = evaluate_accuracy(&e, &a, &u->base.f->err);
	}
	metric_free(e.metric);
	if (!st) {
		t->has_holdout = true;
		t->holdout = a.value;
		t->holdout_baseline = b.value;
		t->holdout_samples = a.samples;
		t->holdout_low = t->holdout_high = NAN;
		if (metric_type(u->base.lab.metric)->bounded)
			wilson(a.value, a.samples, &t->holdout_low, &t->holdout_high);
	}
	return st;
}

/* The best trial may have ended early: what is shown and kept of it is exact. */
static enum fettle_status settle_best(struct tune_run *u, const struct trial *best)
{
	struct accuracy a;
	enum fettle_status st;

	if (!best->score.early)
		return FETTLE_OK;
	st = lab_finish(&u->base.lab, &best->plan, &a, &u->base.f->err);
	st = st ? st
		: values_write(u->history, best->number, a.parts, metric_n_parts(u->base.lab.metric),
			       &u->base.f->err);
	if (st)
		return st;
	search_settle_best(u->search, a.value);
	return history_settle_trial(u->history, best->number, best->score.met, a.value, best->score.loss,
				    &u->base.f->err);
}

static enum fettle_status finish(struct tune_run *u)
{
	struct fettle_tuned *t = &u->out->pub;
	const struct trial *best = u->as ? auto_search_best(u) : search_best_trial(u->search);
	struct trial unevaluated = { .score = { .accuracy = NAN } };
	enum fettle_status st = FETTLE_OK;

	if (!best) { /* no trial came to an end: better the default plan, unevaluated, than nothing */
		plan_init(&unevaluated.plan, &u->base.lab.t->space);
		best = &unevaluated;
	}
	st = settle_best(u, best);
	if (st)
		goto out;
	t->met = best->score.met;
	t->is_search = u->as != NULL;
	t->model = arena_strdup(&u->out->arena, u->base.r.o.model);
	t->higher_is_better = u->base.higher_is_better;
	snprintf(t->metric, sizeof(t->metric), "%s", u->base.metric);
	t->stop = stop_of(search_why(u->search));
	t->strategy = u->strategy->name;
	t->target = target_accuracy(u);
	t->trials = search_n_trials(u->search);
	t->fp32_pass_s = u->baseline.seconds;
	u->out->baseline = (struct fettle_measure){ .accuracy = u->baseline.value,
						    .values = api_values(u->baseline.parts,
									 metric_n_parts(u->base.lab.metric)),
						    .latency_ms = NAN,
						    .speedup = 1,
						    .speedup_low = 1,
						    .speedup_high = 1,
						    .size_bytes = u->base.lab.baseline_size,
						    .ops_fp32 = u->base.lab.t->space.n_ops };
	t->workspace = arena_strdup(&u->out->arena, u->base.workspace);
	u->out->best.accuracy = u->out->best.latency_ms = u->out->best.speedup = NAN;
	u->out->best.speedup_low = 0;
	u->out->best.speedup_high = INFINITY;
	t->output = arena_strdup(&u->out->arena, u->output);
	st = write_best(u, best);
	if (!st && u->hold.feed)
		st = measure_holdout(u, best);
	if (!st)
		st = pareto_front(u->history, &u->out->arena, &t->pareto, &t->n_pareto, &u->base.f->err);
	fill_seconds(u);
	if (u->as)
		auto_search_finish(u);
	if (!st)
		st = history_set_result(u->history,
					&(struct history_result){ .met = t->met,
								  .stop = fettle_stop_word(t->stop),
								  .best_trial = best->number,
								  .output = t->output },
					&u->base.f->err);
out:
	plan_release(&unevaluated.plan);
	return st;
}

static enum fettle_status check_loss(struct tune_run *u)
{
	const struct config *c = u->base.r.c;
	const char *name = c->tuning.hawq_v2_loss;
	const struct fettle_loss *own = name ? own_loss_find(u->base.f, name) : NULL;

	u->base.lab.o.hawq_loss = name ? hawq_loss_find(name) : NULL;
	if (own) {
		u->base.lab.o.own_loss = own_loss;
		u->base.lab.o.own_loss_self = (void *)(uintptr_t)own;
	}
	if (name && strcasecmp(name, "cross_entropy") == 0 && u->base.eval.feed &&
	    !feed_has_labels(u->base.eval.feed))
		return config_fail(config_origin(c, &c->tuning.hawq_v2_loss), FETTLE_INVALID, &u->base.f->err,
				   "cannot set hawq_v2_loss: cross_entropy, but the evaluation data has no "
				   "labels; need mse");
	if (!name || u->base.lab.o.hawq_loss || own)
		return FETTLE_OK;
	return config_fail(config_origin(c, &c->tuning.hawq_v2_loss), FETTLE_INVALID, &u->base.f->err,
			   "unknown hawq_v2_loss '%s', need cross_entropy, mse or one that a plug-in brings",
			   name);
}

/* tuning.workspace.resume: the workspace to go on with, or a file in it */
static enum fettle_status resume_from(struct tune_run *u, const char **given)
{
	const struct config *c = u->base.r.c;
	const char *from = c->tuning.resume;
	char *folder;

	if (!from)
		return FETTLE_OK;
	folder = path_is_dir(from) ? xstrdup(from) : xstrfmt("%.*s", (int)(path_base(from) - from), from);
	from = arena_strdup(&u->out->arena, *folder ? folder : ".");
	free(folder);
	if (*given && !path_same(*given, from))
		return config_fail(config_origin(c, &c->tuning.resume), FETTLE_INVALID, &u->base.f->err,
				   "cannot resume %s: the workspace is %s, need one of them", from, *given);
	*given = from;
	u->base.r.o.resume = true;
	return FETTLE_OK;
}

static enum fettle_status choose_workspace(struct tune_run *u)
{
	const struct fettle_options *o = &u->base.r.o;
	const char *given = o->workspace ? o->workspace : u->base.r.c->tuning.workspace;
	enum fettle_status st = resume_from(u, &given);

	if (st)
		return st;
	if (!given && o->resume)
		return fail(&u->base.f->err, FETTLE_INVALID, "cannot resume: say which run, --workspace DIR");
	u->base.workspace =
		given ? xstrdup(given)
		      : default_workspace(u->base.r.c->model.name, u->base.r.temp ? "model" : o->model);
	u->output = o->output ? xstrdup(o->output) : xstrfmt("%s/best_model.onnx", u->base.workspace);
	return FETTLE_OK;
}

/* opened before the search: a run of hours must not end on a path that was mistyped */
static enum fettle_status open_holdout(struct tune_run *u)
{
	struct run *b = &u->base;
	struct config_dataloader d = b->r.c->evaluation.dataloader;
	const struct fettle_dataset *own;
	struct feed_options fo = { .batch = DEFAULT_BATCH };
	enum fettle_status st;

	if (!b->r.o.holdout || !b->lab.metric)
		return FETTLE_OK;
	d.dataset = (struct config_dataset){ .root = b->r.o.holdout };
	own = own_dataset_named(b->f, b->r.o.holdout, &d.dataset.root);
	d.dataset.kind = own ? own->name : NULL;
	st = request_source(&u->hold, &b->r, &d, "holdout", b->shape, &fo, &b->f->err);
	st = st ? st : fed_tell(b->f, "holdout", &u->hold, NULL);
	st = st ? st : fed_compare(b->f, "holdout", &u->hold, "evaluation", &b->eval);
	return st ? st : fed_compare(b->f, "holdout", &u->hold, "calibration", &b->calib);
}

/* likewise, that the result can be written where it is to go */
static enum fettle_status check_output(struct tune_run *u)
{
	struct file_out o = FILE_OUT_INIT;
	struct err *err = &u->base.f->err;
	enum fettle_status st;

	if (!u->base.r.o.output)
		return FETTLE_OK; /* in the workspace */
	if (path_is_dir(u->output))
		return fail(err, FETTLE_INVALID, "cannot write %s: it is a folder", u->output);
	st = file_create(&o, u->output, err);
	file_abandon(&o);
	return st;
}

/* what has no effect here, or because of an evaluator of the user's, is said */
static void note_unused(struct tune_run *u)
{
	struct run *b = &u->base;

	if (!request_evaluator(&b->r))
		return;
	if (b->r.c->model.outputs.n)
		api_note(b->f, "model.outputs has no effect: the evaluator measures the accuracy");
	if (b->r.c->evaluation.metric)
		api_note(b->f, "the metric has no effect: the evaluator measures the accuracy");
	if (b->r.o.holdout)
		api_note(b->f, "the holdout data has no effect: the evaluator measures the accuracy");
	if (request_has_data(&b->r, &b->r.c->evaluation.dataloader))
		api_note(b->f, "the evaluation data serves only to measure time: the evaluator measures the "
			       "accuracy");
}

static enum fettle_status begin(struct tune_run *u)
{
	struct run *b = &u->base;
	enum fettle_status st;

	if (!b->r.o.model)
		return fail(&b->f->err, FETTLE_INVALID, "cannot tune: need a model");
	st = choose_workspace(u);
	st = st ? st : choose_strategy(u);
	st = st ? st : run_open(b, true);
	st = st ? st : set_objective(u);
	st = st ? st : check_loss(u);
	st = st ? st : open_holdout(u);
	st = st ? st : check_output(u);
	if (st)
		return st;
	note_unused(u);
	b->lab.on_trial = on_trial;
	b->lab.on_trial_self = u;
	st = open_history(u);
	if (!st && u->as)
		st = auto_search_open(u);
	return st ? st : measure_baseline(u);
}

enum fettle_status tune_run(struct tune_run *u, const struct fettle_options *in, struct fettle_tuned **out)
{
	struct fettle *f = u->base.f;
	enum fettle_status st;

	u->out = xcalloc(1, sizeof(*u->out));
	u->out->pub.noise = NAN;
	st = request_begin(&u->base.r, f, in, u->as ? CONFIG_SEARCH : CONFIG_TUNE);
	if (!st && u->as)
		st = auto_search_begin(u);
	if (!st)
		st = begin(u);
	if (!st)
		st = run_search(u);
	if (!st) {
		st = finish(u);
	} else if (u->search && search_best_trial(u->search)) {
		struct err why = f->err; /* what was found is written all the same */

		finish(u);
		f->err = why;
	}
	if (st == FETTLE_STOP && u->history)
		fail(&f->err, st,
		     "interrupted before the first trial, no model is written; continue with: fettle resume "
		     "%s",
		     u->base.workspace);
	if (st)
		fettle_tuned_free(&u->out->pub);
	else
		*out = tuned_publish(u->out);
	search_free(u->search);
	source_release(&u->hold);
	run_release(&u->base);
	history_close(u->history);
	free(u->output);
	return st;
}

enum fettle_status api_tune(struct fettle *f, const struct fettle_options *in, struct fettle_tuned **out)
{
	struct tune_run u = { .base = { .f = f, .start = clock_now() } };

	return tune_run(&u, in, out);
}

enum fettle_status api_config(struct fettle *f, const struct fettle_options *in, char **text)
{
	struct str out = STR_INIT;
	struct request r;
	enum fettle_status st;

	st = request_begin(&r, f, in, 0);
	if (!st) {
		config_print(r.c, &out);
		*text = out.s ? out.s : xstrdup("");
	}
	request_release(&r);
	return st;
}

const char *fettle_strategy_name(size_t i, const char **summary)
{
	const struct strategy *s = strategy_at(i);

	if (s && summary)
		*summary = s->summary;
	return s ? s->name : NULL;
}
