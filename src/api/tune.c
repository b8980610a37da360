/* fettle_tune(): from options to a finished run. */
#include "api/request.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/file.h"
#include "base/fingerprint.h"
#include "base/str.h"
#include "space/plan_json.h"
#include "tune/lab.h"

/* everything of one run */
struct run {
	struct fettle *f;
	struct request r;
	struct lab lab;
	struct source calib, eval, one;
	struct session *shape; /* tells what the inputs are */
	const struct strategy *strategy;
	struct history *history;
	struct search *search;
	struct accuracy baseline;
	double start;
	char *workspace, *output;
	struct tuned *out;
};

/* the result, with what it points to */
struct tuned {
	struct fettle_tuned pub;
	struct arena arena;
};

void fettle_tuned_free(struct fettle_tuned *t)
{
	struct tuned *own = (struct tuned *)t;

	if (!own)
		return;
	arena_release(&own->arena);
	free(own);
}

static bool is_cancelled(void *self)
{
	struct fettle *f = self;

	return f->progress && !f->progress(f->progress_self, "tune", 0, 0);
}

static double target_accuracy(const struct run *u)
{
	const struct config *c = u->r.c;
	double loss = c->tuning.tolerable_loss *
		      (c->tuning.criterion == CRITERION_RELATIVE ? fabs(u->baseline.value) : 1);
	bool higher = u->out->pub.higher_is_better;

	return u->baseline.value + (higher ? -loss : loss);
}

static void on_trial(void *self, const struct trial *t)
{
	struct run *u = self;
	const struct trial *best = search_best_trial(u->search);
	struct fettle_trial trial = {
		.number = t->number,
		.stage = t->stage,
		.failed = t->score.failed,
		.met = t->score.met,
		.why = t->why,
		.accuracy = t->score.accuracy,
		.loss = t->score.loss,
		.latency_ms = 1e3 * u->lab.trial_latency,
		.size_bytes = u->lab.trial_size,
		.samples = u->lab.trial_samples,
		.seconds = t->seconds,
	};
	struct fettle_progress_info info = {
		.trial = &trial,
		.max_trials = (size_t)u->r.c->tuning.max_trials,
		.baseline = u->baseline.value,
		.target = target_accuracy(u),
		.higher_is_better = u->out->pub.higher_is_better,
		.best = best ? best->number : 0,
		.best_accuracy = best ? best->score.accuracy : NAN,
		.best_met = best && best->score.met,
		.seconds_used = clock_now() - u->start,
		.seconds_left = search_time_left(u->search),
	};

	if (info.max_trials && t->number) { /* at most as long as the trials that are left would take */
		double each = info.seconds_used / (double)t->number;

		info.seconds_left = fmin(info.seconds_left, each * (double)(info.max_trials - t->number));
	}
	if (u->f->on_trial)
		u->f->on_trial(u->f->on_trial_self, &info);
}

static enum fettle_status choose_strategy(struct run *u)
{
	const struct config *c = u->r.c;
	const char *name = c->tuning.quant_level == QUANT_LEVEL_0      ? "conservative"
			   : c->tuning.quant_level == QUANT_LEVEL_AUTO ? "auto"
								       : c->tuning.strategy;
	const char *names[64], *near;
	size_t n = 0;

	u->strategy = strategy_find(name);
	if (u->strategy)
		return FETTLE_OK;
	while (n < ARRAY_LEN(names) && strategy_at(n)) {
		names[n] = strategy_at(n)->name;
		n++;
	}
	near = str_nearest(name, names, n);
	return config_fail(config_origin(c, &c->tuning.strategy), FETTLE_INVALID, &u->f->err,
			   "unknown strategy '%s'%s%s%s", name,
			   near ? ", did you mean '" : "; 'fettle strategies' lists them", near ? near : "",
			   near ? "'?" : "");
}

static size_t most_samples(const struct config *c)
{
	int64_t most = 0;
	size_t i;

	for (i = 0; i < c->calibration.sampling_size.n; i++)
		if (c->calibration.sampling_size.v[i] > most)
			most = c->calibration.sampling_size.v[i];
	return (size_t)most;
}

static enum fettle_status open_data(struct run *u)
{
	struct session_options so = { .threads = 1, .level = OPT_NONE };
	const struct config *c = u->r.c;
	const struct config_dataloader *calib = &c->calibration.dataloader, *eval = &c->evaluation.dataloader;
	bool evaluator = u->r.o.eval_cmd || u->r.o.evaluate;
	struct feed_options fc = { .batch = CALIB_BATCH,
				   .limit = most_samples(c),
				   .shuffle = u->r.o.seed || calib->shuffle,
				   .seed = (uint64_t)c->tuning.random_seed };
	struct feed_options fe = request_eval_options(&u->r), f1 = { .batch = 1, .limit = 1 };
	enum fettle_status st;

	if (!request_has_data(calib) && c->quantization.approach != APPROACH_DYNAMIC)
		return fail(&u->f->err, FETTLE_INVALID,
			    "cannot tune %s: static quantization needs calibration data (--calib), or choose "
			    "--approach dynamic",
			    u->r.o.model);
	if (!request_has_data(eval) && !evaluator)
		return fail(&u->f->err, FETTLE_INVALID,
			    "cannot tune %s: need data to evaluate on (--eval), or an evaluator (--eval-cmd)",
			    u->r.o.model);
	st = session_new(&u->shape, u->f->rt, u->lab.s->m, &so, &u->f->err);
	if (!st && request_has_data(calib))
		st = request_source(&u->calib, calib, "calibration", u->shape, &fc, &u->f->err);
	if (!st && request_has_data(eval))
		st = request_source(&u->eval, eval, "evaluation", u->shape, &fe, &u->f->err);
	if (!st && (request_has_data(eval) || request_has_data(calib)))
		st = request_source(&u->one, request_has_data(eval) ? eval : calib, "timing", u->shape, &f1,
				    &u->f->err);
	u->lab.calib = u->calib.feed;
	u->lab.eval = u->eval.feed;
	u->lab.one = u->one.feed;
	return st;
}

static enum fettle_status open_metric(struct run *u)
{
	const struct config *c = u->r.c;
	struct fettle_tuned *t = &u->out->pub;
	enum fettle_status st;

	t->higher_is_better = c->tuning.higher_is_better;
	if (u->r.o.eval_cmd || u->r.o.evaluate) {
		snprintf(t->metric, sizeof(t->metric), u->r.o.eval_cmd ? "eval-cmd" : "evaluator");
		return FETTLE_OK;
	}
	st = metric_new(&u->lab.metric,
			c->evaluation.metric ? c->evaluation.metric : default_metric(u->eval.feed),
			&u->f->err);
	if (st)
		return st;
	/* the metric knows which way is up, unless the user says otherwise */
	if (!config_is_set(c, &c->tuning.higher_is_better))
		t->higher_is_better = metric_higher_is_better(u->lab.metric);
	u->lab.o.has_reference = true;
	snprintf(t->metric, sizeof(t->metric), "%s", metric_name(u->lab.metric));
	return FETTLE_OK;
}

static enum opt_level graph_level(int level)
{
	static const enum opt_level levels[] = { [GRAPH_DEFAULT] = OPT_DEFAULT,
						 [GRAPH_DISABLE_ALL] = OPT_NONE,
						 [GRAPH_BASIC] = OPT_BASIC,
						 [GRAPH_EXTENDED] = OPT_EXTENDED,
						 [GRAPH_ALL] = OPT_ALL };

	return levels[level];
}

static enum fettle_status set_objective(struct run *u)
{
	static const enum lab_objective index[] = { [OBJECTIVE_PERFORMANCE] = LAB_LATENCY,
						    [OBJECTIVE_MODELSIZE] = LAB_SIZE,
						    [OBJECTIVE_FOOTPRINT] = LAB_FOOTPRINT,
						    [OBJECTIVE_ACCURACY] = LAB_ACCURACY };
	const struct config *c = u->r.c;
	double *w = u->lab.o.weights;
	size_t i;

	for (i = 0; i < c->tuning.objectives.n; i++)
		w[index[c->tuning.objectives.v[i]]] += c->tuning.weights.n ? c->tuning.weights.v[i] : 1;
	if (!c->tuning.objectives.n)
		w[index[c->tuning.objective]] = 1;
	if (w[LAB_FOOTPRINT] > 0 && !u->r.o.helper)
		return fail(&u->f->err, FETTLE_INVALID,
			    "cannot tune for footprint: need options.helper, the fettle command, to measure "
			    "memory with");
	return FETTLE_OK;
}

/* lines of the configuration that decide what a run does: not where it is kept, nor how long it may take */
static char *deciding_config(const struct config *c)
{
	struct str all = STR_INIT, out = STR_INIT;
	char *line, *save;

	config_print(c, &all);
	for (line = strtok_r(all.s, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
		char *comment = strstr(line, " #");
		size_t n = comment ? (size_t)(comment - line) : strlen(line);

		while (n && line[n - 1] == ' ')
			n--;
		if (!n || line[0] == '#' || strstr(line, "timeout:") || strstr(line, "resume:") ||
		    strstr(line, "workspace") || strstr(line, " path:"))
			continue;
		str_addf(&out, "%.*s\n", (int)n, line);
	}
	str_release(&all);
	return out.s ? out.s : xstrdup("");
}

static char *default_workspace(const char *model)
{
	const char *base = path_base(model), *dot = strrchr(base, '.');
	char when[32];
	time_t t = time(NULL);
	struct tm tm;

	gmtime_r(&t, &tm);
	strftime(when, sizeof(when), "%Y%m%d-%H%M%S", &tm);
	return xstrfmt("fettle_workspace/%.*s-%s", (int)(dot ? dot - base : (long)strlen(base)), base, when);
}

static enum fettle_status fingerprint(const char *path, char *out, struct err *err)
{
	out[0] = '\0';
	return path ? fingerprint_file(path, out, err) : FETTLE_OK;
}

static enum fettle_status open_history(struct run *u)
{
	const struct config *c = u->r.c;
	struct err *err = &u->f->err;
	char model[FINGERPRINT_LEN], calib[FINGERPRINT_LEN], eval[FINGERPRINT_LEN], conf[FINGERPRINT_LEN],
		started[64];
	char *text = deciding_config(c);
	struct run_info info = {
		.model_path = u->r.o.model,
		.model_fingerprint = model,
		.calib_fingerprint = calib,
		.eval_fingerprint = eval,
		.config_fingerprint = conf,
		.config = text,
		.strategy = u->strategy->name,
		.seed = (uint64_t)c->tuning.random_seed,
		.fettle_version = FETTLE_VERSION,
		.runtime_version = runtime_version(),
		.cpu = u->lab.s->cpu.name,
		.started = started,
		.criterion = c->tuning.criterion == CRITERION_RELATIVE ? "relative" : "absolute",
		.tolerance = c->tuning.tolerable_loss,
		.metric = u->out->pub.metric,
		.higher_is_better = u->out->pub.higher_is_better,
	};
	enum fettle_status st;

	clock_utc(started);
	fingerprint_bytes(text, strlen(text), conf);
	st = fingerprint(u->r.o.model, model, err);
	st = st ? st : fingerprint(c->calibration.dataloader.dataset.root, calib, err);
	st = st ? st : fingerprint(c->evaluation.dataloader.dataset.root, eval, err);
	if (!st && u->r.o.resume) {
		st = history_open(&u->history, u->workspace, false, err);
		if (!st)
			st = history_check_same(u->history, &info, err);
	} else if (!st) {
		st = history_create(&u->history, u->workspace, &info, err);
	}
	u->lab.history = u->history;
	free(text);
	return st;
}

static enum fettle_status measure_baseline(struct run *u)
{
	struct history_baseline b = { 0 };
	bool found = false;
	enum fettle_status st;

	st = api_phase(u->f, "baseline");
	if (!st)
		st = history_baseline(u->history, &b, &found, &u->f->err);
	/* measured again on resuming too: it opens the session, and its time is the unit of account */
	if (!st)
		st = lab_baseline(&u->lab, &u->baseline, &u->f->err);
	if (st)
		return st;
	if (found)
		u->baseline.value = b.accuracy;
	if (isnan(u->baseline.value))
		return fail(&u->f->err, FETTLE_INVALID, "cannot tune %s: the fp32 model's %s is not a number",
			    u->r.o.model, u->out->pub.metric);
	return found ? FETTLE_OK
		     : history_set_baseline(u->history,
					    &(struct history_baseline){ .accuracy = u->baseline.value,
									.latency = NAN,
									.size_bytes = u->lab.baseline_size,
									.pass_seconds = u->baseline.seconds,
									.samples = u->baseline.samples },
					    &u->f->err);
}

static enum fettle_status run_search(struct run *u)
{
	const struct config *c = u->r.c;
	struct search_config sc = {
		.space = &u->lab.t->space,
		.options = { .confidence_batches = c->tuning.confidence_batches,
			     .n_startup_trials = c->tuning.n_startup_trials,
			     .n_ei_candidates = c->tuning.n_ei_candidates,
			     .gamma = c->tuning.gamma,
			     .prior_weight = c->tuning.prior_weight,
			     .seed = (uint64_t)c->tuning.random_seed },
		.baseline = u->baseline.value,
		.higher_is_better = u->out->pub.higher_is_better,
		.relative = c->tuning.criterion == CRITERION_RELATIVE,
		.tolerance = c->tuning.performance_only ? INFINITY : c->tuning.tolerable_loss,
		.max_trials = (size_t)c->tuning.max_trials,
		.timeout = c->tuning.timeout,
		.backend = &lab_backend,
		.self = &u->lab,
	};
	enum fettle_status st;

	u->lab.deadline = c->tuning.timeout > 0 ? clock_now() + c->tuning.timeout : INFINITY;
	st = search_new(&u->search, &sc, &u->f->err);
	if (!st)
		st = search_run(u->search, u->strategy, &u->f->err);
	u->lab.deadline = INFINITY; /* what follows is short, and must not be broken off */
	u->lab.cancelled = NULL;
	if (!st && u->lab.history_failed) {
		u->f->err = u->lab.history_err;
		st = FETTLE_SYSTEM;
	}
	return st;
}

static void describe(struct run *u, const struct plan *p, struct fettle_measure *out)
{
	struct tuned *t = u->out;
	struct qplan q = QPLAN_INIT;
	struct qplan_summary s;
	const char **names = arena_alloc(&t->arena, (u->lab.t->space.n_ops + 1) * sizeof(*names));
	size_t i, n = 0;

	tuning_qplan(u->lab.t, p, &q);
	s = qplan_summarise(&q, &u->lab.s->ops);
	qplan_release(&q);
	out->ops_int8 = s.int8;
	out->ops_int16 = s.int16;
	out->ops_dynamic = s.dynamic;
	out->ops_fp32 = s.fp32;
	out->int8_share = s.int8_share;
	for (i = 0; i < u->lab.t->space.n_ops; i++) {
		const struct param *param = &u->lab.t->space.v[i];

		if (!plan_is_quantized(p, &u->lab.t->space, i) && param->first != param->fallback)
			names[n++] = arena_strdup(&t->arena, param->name);
	}
	t->pub.fallen_back = names;
	t->pub.n_fallen_back = n;
}

static enum fettle_status write_text(const char *path, const char *text, struct err *err)
{
	struct file_out o = FILE_OUT_INIT;
	enum fettle_status st = file_create(&o, path, err);

	if (st)
		return st;
	fprintf(o.f, "%s\n", text); /* file_commit() reports a failure */
	return file_commit(&o, err);
}

/* the best model and its plan, to where they belong */
static enum fettle_status write_best(struct run *u, const struct trial *best)
{
	struct fettle_tuned *t = &u->out->pub;
	struct err *err = &u->f->err;
	double fp32 = NAN, latency = NAN;
	struct qplan q = QPLAN_INIT;
	struct model *m;
	char *json;
	enum fettle_status st;

	st = lab_model(&u->lab, &best->plan, &m, err);
	if (!st)
		st = model_save(m, u->output, err);
	if (st)
		return st;
	tuning_qplan(u->lab.t, &best->plan, &q);
	json = qplan_to_json(&q, &u->lab.s->ops, tuning_samples(u->lab.t, &best->plan));
	qplan_release(&q);
	t->plan = arena_strfmt(&u->out->arena, "%s/best_plan.json", u->workspace);
	st = write_text(t->plan, json, err);
	free(json);
	if (!st && u->lab.one)
		st = lab_latency(&u->lab, &best->plan, 1, &fp32, &latency, err);
	t->best = (struct fettle_measure){
		.trial = best->number,
		.accuracy = best->score.accuracy,
		.latency_ms = 1e3 * latency,
		.speedup = fp32 / latency,
		.size_bytes = model_file_size(u->output),
	};
	t->baseline.latency_ms = 1e3 * fp32;
	describe(u, &best->plan, &t->best);
	return st;
}

static const char *stop_word(enum search_stop why)
{
	switch (why) {
	case SEARCH_ACCURACY_MET:
		return "accuracy_met";
	case SEARCH_MAX_TRIALS:
		return "max_trials";
	case SEARCH_TIMEOUT:
		return "timeout";
	case SEARCH_INTERRUPTED:
		return "interrupted";
	default:
		return "exhausted";
	}
}

static void fill_seconds(struct run *u)
{
	struct fettle_tuned *t = &u->out->pub;
	const struct lab_times *l = &u->lab.times;

	t->seconds.total = clock_now() - u->start;
	t->seconds.prepare = l->prepare;
	t->seconds.calibrate = l->calibrate;
	t->seconds.quantize = l->quantize;
	t->seconds.session = l->session;
	t->seconds.evaluate = l->evaluate;
	t->seconds.latency = l->latency;
	t->seconds.rank = l->rank;
	t->samples_evaluated = u->lab.samples_evaluated;
}

/* Wilson's interval for a share; for other metrics none */
static void wilson(double p, size_t n, double *low, double *high)
{
	double z = 1.959964, nn = (double)n, middle = (p + z * z / (2 * nn)) / (1 + z * z / nn);
	double half = z / (1 + z * z / nn) * sqrt(p * (1 - p) / nn + z * z / (4 * nn * nn));

	*low = middle - half;
	*high = middle + half;
}

static enum fettle_status measure_holdout(struct run *u, const struct trial *best)
{
	struct fettle_tuned *t = &u->out->pub;
	struct config_dataloader d = u->r.c->evaluation.dataloader;
	struct feed_options fo = { .batch = DEFAULT_BATCH };
	struct source hold = { NULL, NULL };
	struct session *s;
	struct accuracy a, b;
	enum fettle_status st;

	d.dataset.root = u->r.o.holdout;
	d.dataset.kind = NULL;
	st = request_source(&hold, &d, "holdout", u->shape, &fo, &u->f->err);
	if (!st)
		st = lab_session(&u->lab, &best->plan, &s, &u->f->err);
	if (!st) {
		metric_reset(u->lab.metric);
		st = evaluate_accuracy(s, u->lab.fp32, hold.feed, u->lab.metric, NULL, NULL, &a, &u->f->err);
	}
	if (!st) {
		metric_reset(u->lab.metric);
		st = evaluate_accuracy(u->lab.fp32, u->lab.fp32, hold.feed, u->lab.metric, NULL, NULL, &b,
				       &u->f->err);
	}
	if (!st) {
		t->has_holdout = true;
		t->holdout = a.value;
		t->holdout_baseline = b.value;
		t->holdout_samples = a.samples;
		t->holdout_low = t->holdout_high = NAN;
		if (metric_type(u->lab.metric)->bounded)
			wilson(a.value, a.samples, &t->holdout_low, &t->holdout_high);
	}
	source_release(&hold);
	return st;
}

static enum fettle_status finish(struct run *u)
{
	struct fettle_tuned *t = &u->out->pub;
	const struct trial *best = search_best_trial(u->search);
	enum fettle_status st = FETTLE_OK;

	t->met = best && best->score.met;
	t->stop = stop_word(search_why(u->search));
	t->strategy = u->strategy->name;
	t->target = target_accuracy(u);
	t->trials = search_n_trials(u->search);
	t->fp32_pass_s = u->baseline.seconds;
	t->baseline = (struct fettle_measure){ .accuracy = u->baseline.value,
					       .latency_ms = NAN,
					       .speedup = 1,
					       .size_bytes = u->lab.baseline_size,
					       .ops_fp32 = u->lab.t->space.n_ops };
	t->workspace = arena_strdup(&u->out->arena, u->workspace);
	t->best.accuracy = t->best.latency_ms = t->best.speedup = NAN;
	if (best) {
		t->output = arena_strdup(&u->out->arena, u->output);
		st = write_best(u, best);
	}
	if (!st && best && u->r.o.holdout && u->lab.metric)
		st = measure_holdout(u, best);
	fill_seconds(u);
	if (!st)
		st = history_set_result(u->history,
					&(struct history_result){ .met = t->met,
								  .stop = t->stop,
								  .best_trial = best ? best->number : 0,
								  .output = t->output },
					&u->f->err);
	return st;
}

static enum fettle_status begin(struct run *u)
{
	enum fettle_status st;

	if (!u->r.o.model)
		return fail(&u->f->err, FETTLE_INVALID, "cannot tune: need a model");
	u->workspace = xstrdup(u->r.o.workspace           ? u->r.o.workspace
			       : u->r.c->tuning.workspace ? u->r.c->tuning.workspace
							  : "");
	if (!*u->workspace && u->r.o.resume)
		return fail(&u->f->err, FETTLE_INVALID, "cannot resume: say which run, --workspace DIR");
	if (!*u->workspace) {
		free(u->workspace);
		u->workspace = default_workspace(u->r.o.model);
	}
	u->output = u->r.o.output ? xstrdup(u->r.o.output) : xstrfmt("%s/best_model.onnx", u->workspace);
	u->lab = (struct lab){ .rt = u->f->rt,
			       .o = { .model = u->r.o.model,
				      .threads = u->r.threads,
				      .level = graph_level(u->r.c->recipes.graph_optimization_level),
				      .eval_cmd = u->r.o.eval_cmd,
				      .evaluate = u->r.o.evaluate,
				      .evaluate_self = u->r.o.evaluate_self,
				      .workspace = u->workspace,
				      .helper = u->r.o.helper },
			       .deadline = INFINITY,
			       .cancelled = is_cancelled,
			       .cancel_self = u->f,
			       .on_trial = on_trial,
			       .on_trial_self = u };
	st = choose_strategy(u);
	st = st ? st : set_objective(u);
	st = st ? st : api_phase(u->f, "prepare");
	st = st ? st : subject_open(&u->lab.s, u->f->rt, u->r.o.model, &u->f->err);
	u->lab.times.prepare = clock_now() - u->start;
	st = st ? st : request_tuning(&u->r, u->lab.s, &u->lab.t, &u->f->err);
	if (!st && !u->lab.t->space.n_ops)
		st = fail(&u->f->err, FETTLE_INVALID,
			  "cannot tune %s: it has no op that can be quantized ('fettle inspect' tells why)",
			  u->r.o.model);
	st = st ? st : open_data(u);
	st = st ? st : open_metric(u);
	st = st ? st : open_history(u);
	return st ? st : measure_baseline(u);
}

static void release(struct run *u)
{
	search_free(u->search);
	lab_release(&u->lab);
	tuning_free(u->lab.t);
	metric_free(u->lab.metric);
	source_release(&u->calib);
	source_release(&u->eval);
	source_release(&u->one);
	session_free(u->shape);
	subject_free(u->lab.s);
	history_close(u->history);
	free(u->workspace);
	free(u->output);
	request_release(&u->r);
}

enum fettle_status fettle_tune(struct fettle *f, const struct fettle_options *in, struct fettle_tuned **out)
{
	struct run u = { .f = f, .start = clock_now() };
	enum fettle_status st;

	u.out = xcalloc(1, sizeof(*u.out));
	st = request_begin(&u.r, f, in);
	if (!st)
		st = begin(&u);
	if (!st)
		st = run_search(&u);
	if (!st)
		st = finish(&u);
	if (st)
		fettle_tuned_free(&u.out->pub);
	else
		*out = &u.out->pub;
	release(&u);
	return st;
}

enum fettle_status fettle_print_config(struct fettle *f, const struct fettle_options *in, char **text)
{
	struct str out = STR_INIT;
	struct request r;
	enum fettle_status st;

	st = request_begin(&r, f, in);
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
