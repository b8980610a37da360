/* fettle_tune(): from options to a finished run. */
#include "api/tune.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#include "api/own.h"
#include "api/resume.h"
#include "api/words.h"
#include "base/file.h"
#include "base/fingerprint.h"
#include "base/str.h"

void fettle_tuned_free(struct fettle_tuned *t)
{
	struct tuned *own = (struct tuned *)t;

	if (!own)
		return;
	arena_release(&own->arena);
	free(own);
}

static enum fettle_status choose_strategy(struct tune_call *u)
{
	const struct config *c = u->run.r.c;
	const char *name = config_strategy(c);
	const struct fettle *f = u->run.f;
	VEC(const char *) names = { 0 };
	const char *near;
	size_t i;

	u->job.search.options.self = own_strategy_find(f, name);
	u->job.strategy =
		u->job.search.options.self ? &own_strategy_find(f, name)->type : strategy_find(name);
	if (u->job.strategy)
		return FETTLE_OK;
	for (i = 0; i < f->strategies.n; i++)
		VEC_PUSH(&names, f->strategies.v[i]->def.name);
	for (i = 0; strategy_at(i); i++)
		VEC_PUSH(&names, strategy_at(i)->name);
	near = str_nearest(name, names.v, names.n);
	VEC_RELEASE(&names);
	return config_fail(config_origin(c, &c->tuning.strategy), FETTLE_INVALID, &u->run.f->err,
			   "unknown strategy '%s'%s%s%s", name,
			   near ? ", did you mean '" : "; 'fettle strategies' lists them", near ? near : "",
			   near ? "'?" : "");
}

static enum fettle_status set_objective(struct tune_call *u)
{
	static const enum lab_objective index[] = { [OBJECTIVE_PERFORMANCE] = LAB_LATENCY,
						    [OBJECTIVE_MODELSIZE] = LAB_SIZE,
						    [OBJECTIVE_FOOTPRINT] = LAB_FOOTPRINT,
						    [OBJECTIVE_ACCURACY] = LAB_ACCURACY };
	const struct config *c = u->run.r.c;
	double *w = u->run.lab.o.weights;
	size_t i;

	if (u->run.r.is_search && !config_is_set(c, &c->tuning.objective) && !c->tuning.objectives.n) {
		w[LAB_ACCURACY] = 1; /* settings differ in what they lose, not in what they gain */
		return FETTLE_OK;
	}
	for (i = 0; i < c->tuning.objectives.n; i++) {
		enum lab_objective which = index[c->tuning.objectives.v[i]];

		w[which] = c->tuning.weights.n ? c->tuning.weights.v[i] : 1;
		u->run.lab.o.higher[which] = config_higher_is_better(c, i);
	}
	if (!c->tuning.objectives.n)
		w[index[c->tuning.objective]] = 1;
	if (w[LAB_FOOTPRINT] > 0 && !u->run.r.o.helper)
		return fail(&u->run.f->err, FETTLE_INVALID,
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

/* All that decides what this run finds; run_request.c has what the configuration does not know. */
static enum fettle_status identify(struct tune_call *u, struct str *out)
{
	static const char *const names[LAB_OBJECTIVES] = { "latency", "size", "footprint", "accuracy" };
	size_t i;

	config_identity(u->run.r.c, out);
	for (i = 0; i < LAB_OBJECTIVES; i++)
		if (u->run.lab.o.weights[i] > 0)
			str_addf(out, "weight of %s: %.17g\n", names[i], u->run.lab.o.weights[i]);
	return run_request_identity(&u->run.r, u->run.f, out, &u->run.f->err);
}

static const char *keep(struct arena *a, char *text)
{
	const char *copy = arena_strdup(a, text ? text : "");

	free(text);
	return copy;
}

/* what the history is made with, or must be the same as; its texts are `a`'s */
static enum fettle_status describe_run(struct tune_call *u, struct arena *a, struct run_info *out)
{
	const struct config *c = u->run.r.c;
	struct err *err = &u->run.f->err;
	char model[FINGERPRINT_LEN], calib[FINGERPRINT_LEN], eval[FINGERPRINT_LEN], conf[FINGERPRINT_LEN],
		space[FINGERPRINT_LEN], started[CLOCK_UTC_LEN];
	const char *planned = u->run.f->cpu.name, *here = cpu_detect().name;
	const bool elsewhere = strcmp(planned, here) != 0;
	struct str text = STR_INIT;
	char *request, *path;
	enum fettle_status st;

	clock_utc(started);
	st = identify(u, &text);
	st = st ? st : fingerprint_file(u->run.r.o.model, model, err);
	st = st ? st : request_fingerprint(&u->run.r, &c->calibration.dataloader, calib, err);
	st = st ? st : request_fingerprint(&u->run.r, &c->evaluation.dataloader, eval, err);
	st = st ? st : run_request_save(&u->run.r, u->run.f, u->job.kind->name, &request, err);
	if (st)
		goto out;
	fingerprint_bytes(text.s, text.n, conf);
	space_hash(&u->run.lab.t->space, space);
	/* a model from memory stays in the workspace, so that trials can be recovered */
	path = u->run.r.temp ? xstrfmt("%s/model.onnx", u->run.workspace) : xstrdup(u->run.r.o.model);
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
		.strategy = u->job.strategy->name,
		.seed = (uint64_t)c->tuning.random_seed,
		.fettle_version = FETTLE_VERSION,
		.runtime_version = runtime_version(),
		.cpu = elsewhere ? arena_strfmt(a, "%s on %s", planned, here) : here,
		.started = arena_strdup(a, started),
		.criterion = c->tuning.criterion == CRITERION_RELATIVE ? "relative" : "absolute",
		.tolerance = c->tuning.tolerable_loss,
		.metric = u->run.metric,
		.higher_is_better = u->run.higher_is_better,
	};
	free(path);
out:
	str_release(&text);
	return st;
}

/* The objectives of a run, for its history: see tune/pareto.h. */
static const char *objectives_text(struct tune_call *u)
{
	static const char *const names[] = { [OBJECTIVE_PERFORMANCE] = "performance",
					     [OBJECTIVE_MODELSIZE] = "modelsize",
					     [OBJECTIVE_FOOTPRINT] = "footprint",
					     [OBJECTIVE_ACCURACY] = "accuracy" };
	const struct config *c = u->run.r.c;
	const struct config_ints *list = &c->tuning.objectives;
	struct str out = STR_INIT;
	size_t i;

	/* what is gained is always weighed against what is lost */
	str_addf(&out, "accuracy%c", u->run.higher_is_better ? '+' : '-');
	if (!list->n)
		str_addf(&out, " %s-", names[c->tuning.objective]);
	for (i = 0; i < list->n; i++)
		if (list->v[i] != OBJECTIVE_ACCURACY)
			str_addf(&out, " %s%c", names[list->v[i]], config_higher_is_better(c, i) ? '+' : '-');
	return keep(&u->arena, out.s);
}

static enum fettle_status check_loss(struct tune_call *u)
{
	const struct config *c = u->run.r.c;
	const char *name = c->tuning.hawq_v2_loss;
	const struct fettle_loss *own = name ? own_loss_find(u->run.f, name) : NULL;

	u->run.lab.o.hawq_loss = name ? hawq_loss_find(name) : NULL;
	if (own) {
		u->run.lab.o.own_loss = own_loss;
		u->run.lab.o.own_loss_self = (void *)(uintptr_t)own;
	}
	if (name && strcasecmp(name, "cross_entropy") == 0 && u->run.eval.feed &&
	    !feed_has_labels(u->run.eval.feed))
		return config_fail(config_origin(c, &c->tuning.hawq_v2_loss), FETTLE_INVALID, &u->run.f->err,
				   "cannot set hawq_v2_loss: cross_entropy, but the evaluation data has no "
				   "labels; need mse");
	if (!name || u->run.lab.o.hawq_loss || own)
		return FETTLE_OK;
	return config_fail(config_origin(c, &c->tuning.hawq_v2_loss), FETTLE_INVALID, &u->run.f->err,
			   "unknown hawq_v2_loss '%s', need cross_entropy, mse or one that a plug-in brings",
			   name);
}

/* tuning.workspace.resume: the workspace to go on with, or a file in it */
static enum fettle_status resume_from(struct tune_call *u, const char **given)
{
	const struct config *c = u->run.r.c;
	const char *from = c->tuning.resume;
	char *folder;

	if (!from)
		return FETTLE_OK;
	folder = path_is_dir(from) ? xstrdup(from) : xstrfmt("%.*s", (int)(path_base(from) - from), from);
	from = arena_strdup(&u->out->arena, *folder ? folder : ".");
	free(folder);
	if (*given && !path_same(*given, from))
		return config_fail(config_origin(c, &c->tuning.resume), FETTLE_INVALID, &u->run.f->err,
				   "cannot resume %s: the workspace is %s, need one of them", from, *given);
	*given = from;
	u->run.r.o.resume = true;
	return FETTLE_OK;
}

static enum fettle_status choose_workspace(struct tune_call *u)
{
	const struct fettle_options *o = &u->run.r.o;
	const char *given = o->workspace ? o->workspace : u->run.r.c->tuning.workspace;
	enum fettle_status st = resume_from(u, &given);

	if (st)
		return st;
	if (!given && o->resume)
		return fail(&u->run.f->err, FETTLE_INVALID, "cannot resume: say which run, --workspace DIR");
	u->run.workspace =
		given ? xstrdup(given)
		      : default_workspace(u->run.r.c->model.name, u->run.r.temp ? "model" : o->model);
	u->output = o->output ? xstrdup(o->output) : xstrfmt("%s/best_model.onnx", u->run.workspace);
	return FETTLE_OK;
}

/* opened before the search: a run of hours must not end on a path that was mistyped */
static enum fettle_status open_holdout(struct tune_call *u)
{
	struct run *b = &u->run;
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
	u->job.holdout = u->hold.feed;
	return st ? st : fed_compare(b->f, "holdout", &u->hold, "calibration", &b->calib);
}

/* likewise, that the result can be written where it is to go */
static enum fettle_status check_output(struct tune_call *u)
{
	struct file_out o = FILE_OUT_INIT;
	struct err *err = &u->run.f->err;
	enum fettle_status st;

	if (!u->run.r.o.output)
		return FETTLE_OK; /* in the workspace */
	if (path_is_dir(u->output))
		return fail(err, FETTLE_INVALID, "cannot write %s: it is a folder", u->output);
	st = file_create(&o, u->output, err);
	file_abandon(&o);
	return st;
}

/* what has no effect here, or because of an evaluator of the user's, is said */
static void note_unused(struct tune_call *u)
{
	struct run *b = &u->run;

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

/* ---- what the job says as it goes ---- */

static enum fettle_status tell_phase(void *self, const char *name)
{
	return api_phase(((struct tune_call *)self)->run.f, name);
}

static void tell_note(void *self, const char *text)
{
	api_note(((struct tune_call *)self)->run.f, text);
}

static void tell_warning(void *self, const char *text)
{
	api_warn(((struct tune_call *)self)->run.f, "%s", text);
}

static void tell_trial(void *self, const struct job_progress *p)
{
	const struct tune_call *u = self;
	const struct fettle *f = u->run.f;
	const struct trial *t = p->trial, *best = p->best;
	const struct fettle_trial trial = {
		.size = sizeof(trial),
		.number = t->number,
		.stage = p->text,
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
		.values = api_values(t->values, t->score.early ? 0 : metric_n_parts(u->run.lab.metric)),
	};
	const struct fettle_progress_info info = {
		.size = sizeof(info),
		.trial = &trial,
		.max_trials = u->job.search.max_trials,
		.baseline = p->baseline,
		.target = p->target,
		.higher_is_better = u->run.higher_is_better,
		.best = best ? best->number : 0,
		.best_accuracy = best ? best->score.accuracy : NAN,
		.best_met = best && best->score.met,
		.best_early = best && best->score.early,
		.seconds_used = p->seconds_used,
		.seconds_left = p->seconds_left,
	};

	if (f->on_trial)
		f->on_trial(f->on_trial_self, &info);
}

/* ---- options in, result out ---- */

static void describe_job(struct tune_call *u)
{
	const struct config *c = u->run.r.c;
	struct job_options *o = &u->job;

	o->lab = &u->run.lab;
	o->performance_only = c->tuning.performance_only;
	o->approach = (enum approach)c->quantization.approach;
	o->model = u->run.r.o.model;
	o->metric = u->run.metric;
	o->workspace = u->run.workspace;
	o->output = u->output;
	o->resume = u->run.r.o.resume;
	o->objectives = objectives_text(u);
	o->model_bytes = u->run.r.temp ? u->run.r.o.model_bytes : NULL;
	o->model_size = u->run.r.o.model_size;
	o->start = u->run.start;
	o->busy = u->run.busy;
	o->listener = (struct job_listener){ tell_phase, tell_note, tell_warning, tell_trial, u };
	o->search.options.confidence_batches = c->tuning.confidence_batches;
	o->search.options.n_startup_trials = c->tuning.n_startup_trials;
	o->search.options.n_ei_candidates = c->tuning.n_ei_candidates;
	o->search.options.gamma = c->tuning.gamma;
	o->search.options.prior_weight = c->tuning.prior_weight;
	o->search.options.seed = (uint64_t)c->tuning.random_seed;
	o->search.higher_is_better = u->run.higher_is_better;
	o->search.relative = c->tuning.criterion == CRITERION_RELATIVE;
	o->search.tolerance = c->tuning.tolerable_loss;
	o->search.accuracy_weight = c->tuning.objectives.n ? u->run.lab.o.weights[LAB_ACCURACY] : 0;
	o->search.max_trials = (size_t)c->tuning.max_trials;
	o->search.timeout = u->run.r.is_search ? 0 : c->tuning.timeout;
}

static struct fettle_measure measure_of(const struct job_measure *m, size_t trial, double accuracy)
{
	return (struct fettle_measure){ .trial = trial,
					.accuracy = accuracy,
					.latency_ms = 1e3 * m->latency,
					.speedup = m->speedup.value,
					.speedup_low = m->speedup.low,
					.speedup_high = m->speedup.high,
					.size_bytes = m->size_bytes,
					.values = api_values(m->values, m->n_values) };
}

/* by precision, as the runtime computes them */
static void copy_precisions(struct tune_call *u, const struct job_result *r)
{
	struct fettle_tuned *t = &u->out->pub;
	const struct precisions *is = &r->precisions;
	struct str recipes = STR_INIT;

	u->out->best.ops_int8 = is->int8;
	u->out->best.ops_int16 = is->int16;
	u->out->best.ops_dynamic = is->dynamic;
	u->out->best.ops_fp32 = is->fp32;
	u->out->best.int8_share = is->int8_share;
	u->out->baseline.ops_fp32 = is->int8 + is->int16 + is->dynamic + is->fp32;
	api_keep_precisions(u->run.f, is, u->run.lab.s);
	recipes_text(&r->plan.recipes, &recipes);
	t->recipes = keep(&u->out->arena, recipes.s);
	t->cpu = u->run.f->cpu.name;
	t->measured_on = cpu_detect().name;
	api_saturates_on(u->run.f, &r->plan, &u->run.lab.s->ops, t->saturates_on, sizeof(t->saturates_on));
}

static void copy_costs(struct tuned *t, const struct job_result *r)
{
	const struct lab_times *s = &r->seconds;

	t->seconds.total = r->seconds_total;
	t->seconds.prepare = s->prepare;
	t->seconds.calibrate = s->calibrate;
	t->seconds.quantize = s->quantize;
	t->seconds.session = s->session;
	t->seconds.evaluate = s->evaluate;
	t->seconds.latency = s->latency;
	t->seconds.rank = s->rank;
	t->seconds.runtime = r->seconds_runtime;
	t->pub.samples_evaluated = r->samples_evaluated;
	t->saved.early = r->saved.early;
	t->saved.cuts = r->saved.cuts;
	t->saved.repeated = r->saved.repeated;
	t->saved.beside = r->saved.beside;
}

static void copy_result(struct tune_call *u, const struct job_result *r)
{
	struct fettle_tuned *t = &u->out->pub;
	struct arena *a = &u->out->arena;
	size_t *pareto = arena_alloc(a, (r->n_pareto + 1) * sizeof(*pareto));

	t->met = r->met;
	t->is_search = u->job.kind == &job_settings;
	t->model = arena_strdup(a, u->job.model);
	t->higher_is_better = u->run.higher_is_better;
	snprintf(t->metric, sizeof(t->metric), "%s", u->run.metric);
	t->stop = stop_of_word(search_stop_word(r->stop));
	t->strategy = u->job.strategy->name;
	t->target = r->target;
	t->noise = r->noise;
	t->trials = r->trials;
	t->fp32_pass_s = r->baseline_accuracy.seconds;
	u->out->baseline = measure_of(&r->baseline, 0, r->baseline_accuracy.value);
	u->out->best = measure_of(&r->best, r->best_trial, r->best_accuracy);
	t->workspace = arena_strdup(a, u->run.workspace);
	t->output = arena_strdup(a, u->output);
	t->plan = arena_strdup(a, r->plan_path);
	t->almost_nothing = r->almost_nothing ? arena_strdup(a, r->almost_nothing) : NULL;
	t->untried = r->untried ? arena_strdup(a, r->untried) : NULL;
	t->has_holdout = r->has_holdout;
	t->holdout = r->holdout;
	t->holdout_low = r->holdout_low;
	t->holdout_high = r->holdout_high;
	t->holdout_baseline = r->holdout_baseline;
	t->holdout_samples = r->holdout_samples;
	if (r->n_pareto)
		memcpy(pareto, r->pareto, r->n_pareto * sizeof(*pareto));
	t->pareto = pareto;
	t->n_pareto = r->n_pareto;
	copy_precisions(u, r);
	copy_costs(u->out, r);
}

static enum fettle_status open_job(struct tune_call *u, struct job **out)
{
	struct run *b = &u->run;
	enum fettle_status st;

	if (!b->r.o.model)
		return fail(&b->f->err, FETTLE_INVALID, "cannot tune: need a model");
	st = choose_workspace(u);
	if (!st && !u->job.strategy)
		st = choose_strategy(u);
	st = st ? st : run_open(b, true);
	st = st ? st : set_objective(u);
	st = st ? st : check_loss(u);
	st = st ? st : open_holdout(u);
	st = st ? st : check_output(u);
	if (st)
		return st;
	note_unused(u);
	describe_job(u);
	st = describe_run(u, &u->arena, &u->job.info);
	return st ? st : job_open(out, &u->job, &b->f->err);
}

static enum fettle_status carry_out(struct tune_call *u, struct job *j)
{
	struct fettle *f = u->run.f;
	enum fettle_status st = job_baseline(j, &f->err);

	if (st)
		return st;
	scores_judge(&u->run.scores, f, "the fp32 model", job_result(j)->baseline_accuracy.value);
	st = job_search(j, &f->err);
	if (!st) {
		st = job_finish(j, &f->err);
	} else if (job_has_best(j)) {
		struct err why = f->err; /* what was found is written all the same */

		job_finish(j, &f->err);
		f->err = why;
	}
	return st;
}

enum fettle_status tune_call(struct tune_call *u, struct fettle_tuned **out)
{
	struct fettle *f = u->run.f;
	struct job *j = NULL;
	enum fettle_status st;

	u->out = xcalloc(1, sizeof(*u->out));
	st = open_job(u, &j);
	if (!st)
		st = carry_out(u, j);
	if (st == FETTLE_STOP && j)
		fail(&f->err, st,
		     "interrupted before the first trial, no model is written; continue with: fettle resume "
		     "%s",
		     u->run.workspace);
	if (!st) {
		copy_result(u, job_result(j));
		if (u->job.kind == &job_settings)
			copy_candidates(u->out, u->job.kind_self);
		*out = tuned_publish(u->out);
	} else {
		fettle_tuned_free(&u->out->pub);
	}
	job_free(j);
	source_release(&u->hold);
	run_release(&u->run);
	arena_release(&u->arena);
	free(u->output);
	return st;
}

enum fettle_status api_tune(struct fettle *f, const struct fettle_options *in, struct fettle_tuned **out)
{
	struct tune_call u = { .run = { .f = f, .start = clock_now() }, .job = { .kind = &job_tune } };
	enum fettle_status st = request_begin(&u.run.r, f, in, CONFIG_TUNE);

	if (!st)
		return tune_call(&u, out);
	run_release(&u.run);
	return st;
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
