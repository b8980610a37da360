/* From a request to a finished job. */
#include "config/job.h"

#include "config/effort.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#include "config/resume.h"
#include "base/file.h"
#include "base/fingerprint.h"
#include "base/str.h"
#include "tune/ranks.h"
#include "tune/runs.h"

static enum fettle_status choose_strategy(struct job_request *u)
{
	const struct config *c = u->run.r.c;
	const char *name = config_strategy(c);
	const struct members *m = &u->run.cx->members;
	struct registered_strategy *own;
	VEC(const char *) names = { 0 };
	const char *near;
	size_t i;

	own = registered_strategy_find(m, name);
	u->job.search.options.self = own;
	u->job.strategy = own ? &own->type : strategy_find(name);
	if (!u->job.strategy &&
	    (!strcmp(name, "automixedprecision") || !strcmp(name, "auto_mixed_precision"))) {
		context_note(
			u->run.cx,
			"INC's strategy for bf16 and fp16 has no effect, because ONNX Runtime has no such "
			"kernels for the cpu: auto takes its place, for int8");
		u->job.strategy = strategy_find("auto");
	}
	if (u->job.strategy && strcmp(u->job.strategy->name, "sigopt") == 0 && !job_request_serves(u))
		return request_service(c, &u->service, &u->run.cx->err);
	if (u->job.strategy)
		return FETTLE_OK;
	for (i = 0; i < m->strategies.n; i++)
		VEC_PUSH(&names, m->strategies.v[i]->def.name);
	for (i = 0; strategy_at(i); i++)
		VEC_PUSH(&names, strategy_at(i)->name);
	near = str_nearest(name, names.v, names.n);
	VEC_RELEASE(&names);
	return config_fail(config_origin(c, &c->tuning.strategy), FETTLE_INVALID, &u->run.cx->err,
			   "unknown strategy '%s'%s%s%s", name,
			   near ? ", did you mean '" : "; 'fettle strategies' lists them", near ? near : "",
			   near ? "'?" : "");
}

static enum fettle_status set_objective(struct job_request *u)
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
	if (c->tuning.size_budget) {
		w[LAB_ACCURACY] = 1; /* the most accurate that is small enough */
		return parse_budget(c->tuning.size_budget, model_file_size(u->run.r.o.model),
				    &u->run.lab.o.size_budget, &u->run.cx->err);
	}
	for (i = 0; i < c->tuning.objectives.n; i++) {
		enum lab_objective which = index[c->tuning.objectives.v[i]];

		w[which] = c->tuning.weights.n ? c->tuning.weights.v[i] : 1;
		u->run.lab.o.higher[which] = config_higher_is_better(c, i);
	}
	if (!c->tuning.objectives.n)
		w[index[c->tuning.objective]] = 1;
	if (w[LAB_FOOTPRINT] > 0 && !u->run.r.o.helper)
		return fail(&u->run.cx->err, FETTLE_INVALID,
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
static enum fettle_status identify(struct job_request *u, struct str *out)
{
	static const char *const names[LAB_OBJECTIVES] = { "latency", "size", "footprint", "accuracy" };
	size_t i;

	if (u->settings)
		str_addf(out, "%s", u->settings);
	else
		config_identity(u->run.r.c, out);
	for (i = 0; i < LAB_OBJECTIVES; i++)
		if (u->run.lab.o.weights[i] > 0)
			str_addf(out, "weight of %s: %.17g\n", names[i], u->run.lab.o.weights[i]);
	return run_request_identity(&u->run.r, out, &u->run.cx->err);
}

static const char *keep(struct arena *a, char *text)
{
	const char *copy = arena_strdup(a, text ? text : "");

	free(text);
	return copy;
}

static enum fettle_status fingerprint(struct job_request *u, const struct config_dataloader *d,
				      char out[FINGERPRINT_LEN])
{
	struct data_ref ref;
	enum fettle_status st = request_data(&u->run.r, d, "", &ref);

	return st ? st : data_fingerprint(u->run.cx, &ref, out);
}

/* what the history is made with, or must be the same as; its texts are `a`'s */
static enum fettle_status describe_run(struct job_request *u, struct arena *a, struct run_info *out)
{
	const struct config *c = u->run.r.c;
	struct err *err = &u->run.cx->err;
	char model[FINGERPRINT_LEN], calib[FINGERPRINT_LEN], eval[FINGERPRINT_LEN], conf[FINGERPRINT_LEN],
		space[FINGERPRINT_LEN], started[CLOCK_UTC_LEN];
	const char *planned = u->run.cx->cpu.name, *here = cpu_detect().name;
	const bool elsewhere = strcmp(planned, here) != 0;
	struct str text = STR_INIT;
	char *request, *path;
	enum fettle_status st;

	clock_utc(started);
	st = identify(u, &text);
	st = st ? st : fingerprint_file(u->run.r.o.model, model, err);
	st = st ? st : fingerprint(u, &c->calibration.dataloader, calib);
	st = st ? st : fingerprint(u, &c->evaluation.dataloader, eval);
	st = st ? st : run_request_save(&u->run.r, u->job.kind->name, &request, err);
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
static const char *objectives_text(struct job_request *u)
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
	if (!list->n && c->tuning.objective != OBJECTIVE_ACCURACY)
		str_addf(&out, " %s-", names[c->tuning.objective]);
	for (i = 0; i < list->n; i++)
		if (list->v[i] != OBJECTIVE_ACCURACY)
			str_addf(&out, " %s%c", names[list->v[i]], config_higher_is_better(c, i) ? '+' : '-');
	return keep(&u->arena, out.s);
}

static enum fettle_status check_loss(struct job_request *u)
{
	const struct config *c = u->run.r.c;
	const char *name = c->tuning.hawq_v2_loss;
	const struct fettle_loss *own = name ? registered_loss_find(&u->run.cx->members, name) : NULL;

	u->run.lab.o.hawq_loss = name ? hawq_loss_find(name) : NULL;
	if (own) {
		u->run.lab.o.own_loss = registered_loss;
		u->run.lab.o.own_loss_self = (void *)(uintptr_t)own;
	}
	if (name && strcasecmp(name, "cross_entropy") == 0 && u->run.eval.feed &&
	    !feed_has_labels(u->run.eval.feed))
		return config_fail(config_origin(c, &c->tuning.hawq_v2_loss), FETTLE_INVALID, &u->run.cx->err,
				   "cannot set hawq_v2_loss: cross_entropy, but the evaluation data has no "
				   "labels; need mse");
	if (!name || u->run.lab.o.hawq_loss || own)
		return FETTLE_OK;
	return config_fail(config_origin(c, &c->tuning.hawq_v2_loss), FETTLE_INVALID, &u->run.cx->err,
			   "unknown hawq_v2_loss '%s', need cross_entropy, mse or one that a plug-in brings",
			   name);
}

/* tuning.workspace.resume: the workspace to continue, or a file in it */
static enum fettle_status resume_from(struct job_request *u, const char **given)
{
	const struct config *c = u->run.r.c;
	const char *from = c->tuning.resume;
	char *folder;

	if (!from)
		return FETTLE_OK;
	folder = path_is_dir(from) ? xstrdup(from) : xstrfmt("%.*s", (int)(path_base(from) - from), from);
	from = arena_strdup(&u->arena, *folder ? folder : ".");
	free(folder);
	if (*given && !path_same(*given, from))
		return config_fail(config_origin(c, &c->tuning.resume), FETTLE_INVALID, &u->run.cx->err,
				   "cannot resume %s: the workspace is %s, need one of them", from, *given);
	*given = from;
	u->run.r.o.resume = true;
	return FETTLE_OK;
}

static enum fettle_status choose_workspace(struct job_request *u)
{
	const struct call_options *o = &u->run.r.o;
	const char *given = o->workspace ? o->workspace : u->run.r.c->tuning.workspace;
	enum fettle_status st = resume_from(u, &given);

	if (st)
		return st;
	if (!given && o->resume)
		return fail(&u->run.cx->err, FETTLE_INVALID, "cannot resume: say which run, --workspace DIR");
	u->run.workspace =
		given ? xstrdup(given)
		      : default_workspace(u->run.r.c->model.name, u->run.r.temp ? "model" : o->model);
	u->output = o->output ? xstrdup(o->output) : xstrfmt("%s/best_model.onnx", u->run.workspace);
	return FETTLE_OK;
}

/* opened before the search: a run of hours must not end on a path that was mistyped */
static enum fettle_status open_holdout(struct job_request *u)
{
	struct run *b = &u->run;
	struct config_dataloader d = b->r.c->evaluation.dataloader;
	const struct fettle_dataset *own;
	struct feed_options fo = { .batch = DEFAULT_BATCH, .bytes = DEFAULT_BATCH_BYTES };
	struct data_ref ref;
	enum fettle_status st;

	if (!b->r.o.holdout || !b->lab.metric)
		return FETTLE_OK;
	d.dataset = (struct config_dataset){ .root = b->r.o.holdout };
	own = registered_dataset_named(&b->cx->members, b->r.o.holdout, &d.dataset.root);
	d.dataset.kind = own ? own->name : NULL;
	st = request_data(&b->r, &d, "holdout", &ref);
	st = st ? st : source_open(&u->hold, b->cx, &ref, b->lab.fp32, &fo);
	st = st ? st : scores_label(&b->scores, u->hold.feed, &b->cx->err);
	st = st ? st : fed_tell(b->cx, "holdout", &u->hold, NULL);
	st = st ? st : fed_compare(b->cx, "holdout", &u->hold, "evaluation", &b->eval);
	u->job.holdout = u->hold.feed;
	return st ? st : fed_compare(b->cx, "holdout", &u->hold, "calibration", &b->calib);
}

/* likewise, that the result can be written where it is to go */
static enum fettle_status check_output(struct job_request *u)
{
	struct file_out o = FILE_OUT_INIT;
	struct err *err = &u->run.cx->err;
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
static void note_unused(struct job_request *u)
{
	struct run *b = &u->run;

	if (!request_evaluator(&b->r))
		return;
	if (b->r.c->model.outputs.n)
		context_note(b->cx, "model.outputs has no effect: the evaluator measures the accuracy");
	if (b->r.c->evaluation.metric)
		context_note(b->cx, "the metric has no effect: the evaluator measures the accuracy");
	if (b->r.o.holdout)
		context_note(b->cx, "the holdout data has no effect: the evaluator measures the accuracy");
	if (request_has_data(&b->r, &b->r.c->evaluation.dataloader))
		context_note(b->cx,
			     "the evaluation data serves only to measure time: the evaluator measures the "
			     "accuracy");
}

/* what is minimised, as others are told */
static const char *objective_name(const struct config *c)
{
	static const char *const names[] = { [OBJECTIVE_PERFORMANCE] = "latency",
					     [OBJECTIVE_MODELSIZE] = "size",
					     [OBJECTIVE_FOOTPRINT] = "footprint",
					     [OBJECTIVE_ACCURACY] = "loss" };

	return c->tuning.objectives.n ? "objective" : names[c->tuning.objective];
}

static void describe_job(struct job_request *u)
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
	o->rewrite = c->recipes.rewrite_graph;
	o->tensorboard = c->tuning.tensorboard;
	o->cx = u->run.cx;
	o->search.options.confidence_batches = c->tuning.confidence_batches;
	o->search.options.n_startup_trials = c->tuning.n_startup_trials;
	o->search.options.n_ei_candidates = c->tuning.n_ei_candidates;
	o->search.options.gamma = c->tuning.gamma;
	o->search.options.prior_weight = c->tuning.prior_weight;
	o->search.options.seed = (uint64_t)c->tuning.random_seed;
	o->search.options.service = u->service;
	o->search.options.objective = objective_name(c);
	o->search.higher_is_better = u->run.higher_is_better;
	o->search.relative = c->tuning.criterion == CRITERION_RELATIVE;
	o->search.tolerance = c->tuning.tolerable_loss;
	o->search.accuracy_weight =
		c->tuning.objectives.n || c->tuning.size_budget || c->tuning.objective == OBJECTIVE_ACCURACY
			? u->run.lab.o.weights[LAB_ACCURACY]
			: 0;
	o->search.max_trials = (size_t)c->tuning.max_trials;
	o->search.bounded = !config_is_set(c, &c->tuning.max_trials);
	o->search.timeout = u->run.r.is_search ? 0 : c->tuning.timeout;
}

/*
 * Where no number of threads is asked for, it is what the runtime chooses on rank 0's machine when the run begins: the last bits
 * of results may depend on it, and they are to be the same on all ranks, and when the run is resumed elsewhere.
 */
static enum fettle_status choose_threads(struct job_request *u)
{
	struct job_options *o = &u->job;
	struct history *h = NULL;
	char *before = NULL;
	enum fettle_status st = FETTLE_OK;

	if (o->resume)
		st = history_open(&h, o->workspace, true, &u->run.cx->err);
	if (h)
		st = history_meta(h, THREADS_META, &before, &u->run.cx->err);
	o->threads = before ? atoi(before) : runtime_threads(u->run.cx->rt);
	history_close(h);
	free(before);
	return st;
}

/* All have so many threads; how many of them run depends on the cores, and on how many ranks are on this machine. */
static void share_cores(struct job_request *u)
{
	struct runtime *rt = u->run.cx->rt;
	const int running = u->ranks ? ranks_threads(u->ranks) : 0;

	if (!running && u->job.threads == runtime_threads(rt))
		return;
	runtime_share(rt, u->job.threads, running);
	session_free(u->run.lab.fp32); /* which was made otherwise */
	u->run.lab.fp32 = NULL;
}

/* Is it the same run everywhere? */
static enum fettle_status agree(struct job_request *u)
{
	const struct run_info *i = &u->job.info;
	const struct ranks_fact facts[] = {
		{ "it runs another version of fettle", i->fettle_version, NULL },
		{ "it runs another version of ONNX Runtime", i->runtime_version, NULL },
		{ "it has another kind of CPU", i->cpu, NULL },
		{ "the model differs", i->model_fingerprint, i->model_path },
		{ "the calibration data differs", i->calib_fingerprint, i->calib_path },
		{ "the evaluation data differs", i->eval_fingerprint, i->eval_path },
		{ "the settings differ", i->config_fingerprint, NULL },
		{ "the tuning space differs", i->space, NULL },
	};
	enum fettle_status st = FETTLE_OK;

	if (!ranks_rank(u->ranks))
		st = choose_threads(u);
	if (!st && u->ranks) {
		u->run.lab.ranks = u->ranks;
		st = ranks_agree(u->ranks, facts, ARRAY_LEN(facts), u->run.lab.o.jobs, &u->job.threads,
				 &u->run.cx->err);
	}
	if (!st && !u->run.lab.o.threads)
		share_cores(u);
	return st;
}

/* What every rank needs: the model, the data, and what plans are judged by. */
static enum fettle_status open_run(struct job_request *u)
{
	enum fettle_status st = u->job.strategy ? FETTLE_OK : choose_strategy(u);

	st = st ? st : run_open(&u->run, true);
	st = st ? st : set_objective(u);
	return st ? st : check_loss(u);
}

/* all but the history: nothing is written yet */
static enum fettle_status open_all(struct job_request *u)
{
	struct run *b = &u->run;
	enum fettle_status st;

	if (!b->r.o.model)
		return fail(&b->cx->err, FETTLE_INVALID, "cannot tune: need a model");
	st = job_request_broadcast(u);
	st = st ? st : choose_workspace(u);
	st = st ? st : open_run(u);
	st = st ? st : open_holdout(u);
	st = st ? st : check_output(u);
	if (st)
		return st;
	note_unused(u);
	describe_job(u);
	return describe_run(u, &u->arena, &u->job.info);
}

/* Another rank than 0: opens the same model and data, has no history, and runs what rank 0 sends. */
static enum fettle_status serve(struct job_request *u)
{
	struct run *b = &u->run;
	enum fettle_status st = scratch_new(&u->scratch, &b->cx->err);

	if (st)
		return st;
	b->workspace = xstrdup(u->scratch.dir);
	st = job_request_broadcast(u);
	st = st ? st : open_run(u);
	if (st)
		return st;
	describe_job(u);
	b->lab.o.relative = u->job.search.relative;
	st = describe_run(u, &u->arena, &u->job.info);
	st = st ? st : agree(u);
	return st ? st : ranks_serve(u->ranks, &b->lab, &b->cx->err);
}

static enum fettle_status carry_out(struct job_request *u)
{
	struct context *cx = u->run.cx;
	struct job *j = u->j;
	enum fettle_status st = job_baseline(j, &cx->err);

	if (st)
		return st;
	scores_judge(&u->run.scores, cx, "the fp32 model", job_result(j)->baseline_accuracy.value);
	st = job_search(j, &cx->err);
	if (!st) {
		st = job_finish(j, &cx->err);
	} else if (job_has_best(j)) {
		struct err why = cx->err; /* what was found is written all the same */

		job_finish(j, &cx->err);
		cx->err = why;
	}
	return st;
}

static void warn(void *cx, const char *text)
{
	context_warn(cx, "%s", text);
}

bool job_request_serves(const struct job_request *u)
{
	return ranks_rank(u->ranks) > 0;
}

enum fettle_status job_request_begin(struct job_request *u, struct context *cx, const struct call_options *o,
				     bool is_search)
{
	enum fettle_status st = FETTLE_OK;

	u->run.cx = cx;
	u->run.start = clock_now();
	u->job.kind = &job_tune;
	if (o->ranks)
		st = ranks_open(&u->ranks, warn, cx, &cx->err);
	st = st ? st : request_begin(&u->run.r, cx, o, is_search ? CONFIG_SEARCH : CONFIG_TUNE);
	return st || !is_search ? st : job_request_search(u);
}

enum fettle_status job_request_run(struct job_request *u)
{
	enum fettle_status st;

	if (job_request_serves(u))
		return serve(u);
	st = open_all(u);
	st = st ? st : agree(u);
	if (!st)
		st = job_open(&u->j, &u->job, &u->run.cx->err);
	if (!st)
		st = carry_out(u);
	if (st == FETTLE_STOP && u->j)
		fail(&u->run.cx->err, st,
		     "interrupted before the first trial, no model is written; continue with: fettle resume "
		     "%s",
		     u->run.workspace);
	return st;
}

/* would job_open() have its history? */
static enum fettle_status check_history(const struct job_request *u, struct err *err)
{
	struct history *h = NULL;
	enum fettle_status st;

	if (!u->job.resume)
		return history_check_free(u->job.workspace, err);
	st = history_open(&h, u->job.workspace, true, err);
	st = st ? st : history_check_same(h, &u->job.info, err);
	history_close(h);
	return st;
}

enum fettle_status job_request_preview(struct job_request *u, struct preview *out)
{
	struct err *err = &u->run.cx->err;
	enum fettle_status st = open_all(u);

	st = st ? st : check_history(u, err);
	return st ? st : preview_times(&u->run.lab, out, err);
}

enum fettle_status job_request_end(struct job_request *u, enum fettle_status st)
{
	st = ranks_close(u->ranks, st, &u->run.cx->err);
	u->ranks = u->run.lab.ranks = NULL;
	if (u->run.cx->rt)
		runtime_share(u->run.cx->rt, 0, 0);
	return st;
}

void job_request_release(struct job_request *u)
{
	job_free(u->j);
	if (u->service)
		u->service->free(u->service);
	source_release(&u->hold);
	run_release(&u->run);
	settings_search_free(u->search);
	scratch_release(&u->scratch);
	arena_release(&u->arena);
	free(u->output);
}
