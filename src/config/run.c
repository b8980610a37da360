#include "config/run.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "config/effort.h"
#include "config/resume.h"
#include "base/file.h"
#include "data/unpack.h"
#include "tune/deployed.h"

static size_t most_samples(const struct config *c)
{
	int64_t most = 0;
	size_t i;

	for (i = 0; i < c->calibration.sampling_size.n; i++)
		if (c->calibration.sampling_size.v[i] > most)
			most = c->calibration.sampling_size.v[i];
	return (size_t)most;
}

static enum fettle_status open_one(struct run *u, struct source *s, const struct config_dataloader *d,
				   const char *what, struct unpacking **begun, const struct feed_options *o)
{
	struct data_ref ref;
	enum fettle_status st = request_data(&u->r, d, what, &ref);

	ref.begun = begun;
	return st ? st : source_open(s, u->cx, &ref, u->lab.fp32, o);
}

/* what is open already is not read twice */
static enum fettle_status open_timed(struct run *u)
{
	struct deployed *d = &u->lab.o.deployed;
	struct source s = { .data = u->eval.data ? u->eval.data : u->calib.data };
	enum fettle_status st = FETTLE_OK;
	size_t i;

	deployed_drop_same(d, u->cx, u->r.o.model, u->lab.fp32, s.data ? s.data->n : 0);
	deployed_compare_on(d, u->cx, u->lab.fp32, u->eval.feed ? feed_samples(u->eval.feed) : 0);
	for (i = 0; i < d->n_batches + (d->compared > 0) && s.data && !st; i++) {
		st = open_one(u, &s, &u->r.c->evaluation.dataloader, "timing", NULL,
			      &(struct feed_options){ .batch = d->batches[i], .limit = d->batches[i] });
		u->lab.timed[i] = st ? NULL : s.feed;
		s.feed = NULL; /* now the lab's */
	}
	return st;
}

/* Archives are inflated while the model is prepared. */
static struct unpacking *begin_data(const struct run *u, const struct config_dataloader *d)
{
	return d->dataset.root && !request_data_is_own(&u->r, d) ? unpacking_begin(d->dataset.root) : NULL;
}

static enum fettle_status open_data(struct run *u, bool need_eval)
{
	const struct config *c = u->r.c;
	const struct config_dataloader *calib = &c->calibration.dataloader, *eval = &c->evaluation.dataloader;
	struct feed_options fc = request_calib_options(&u->r, CALIB_BATCH, most_samples(c));
	struct feed_options fe = request_eval_options(&u->r);
	enum fettle_status st;

	if (!request_has_data(&u->r, calib) && c->quantization.approach != APPROACH_DYNAMIC &&
	    c->quantization.approach != APPROACH_WEIGHT)
		return fail(&u->cx->err, FETTLE_INVALID,
			    "cannot tune %s: static quantization needs calibration data (--calib), or choose "
			    "--approach dynamic",
			    u->r.o.model);
	if (need_eval && !request_has_data(&u->r, eval) && !request_evaluator(&u->r))
		return fail(&u->cx->err, FETTLE_INVALID,
			    "cannot tune %s: need data to evaluate on (--eval), or an evaluator (--eval-cmd, "
			    "--eval-server)",
			    u->r.o.model);
	st = lab_open_fp32(&u->lab, &u->cx->err);
	if (!st && request_has_data(&u->r, calib))
		st = open_one(u, &u->calib, calib, "calibration", &u->calib_begun, &fc);
	if (!st && request_has_data(&u->r, eval))
		st = open_one(u, &u->eval, eval, "evaluation", &u->eval_begun, &fe);
	if (!st)
		st = open_timed(u);
	u->lab.calib = u->calib.feed;
	u->lab.eval = u->eval.feed;
	return st;
}

static enum fettle_status tell_data(struct run *u)
{
	const bool judges = !u->r.eval_is_calib && !request_evaluator(&u->r);
	enum fettle_status st = fed_tell(u->cx, "calibration", &u->calib, NULL);

	if (!st)
		st = fed_tell(u->cx, "evaluation", &u->eval, &u->looked);
	return st || !judges ? st : fed_compare(u->cx, "evaluation", &u->eval, "calibration", &u->calib);
}

static enum fettle_status open_metric(struct run *u)
{
	const struct config *c = u->r.c;
	bool given = config_is_set(c, &c->tuning.higher_is_better);
	struct scores_asked asked = request_scores(&u->r);
	enum fettle_status st;
	size_t i;

	u->higher_is_better = c->tuning.higher_is_better;
	for (i = 0; i < c->tuning.higher_is_better_each.n && !given; i++)
		if (c->tuning.objectives.v[i] == OBJECTIVE_ACCURACY) {
			u->higher_is_better = config_higher_is_better(c, i);
			given = true;
		}
	if (request_evaluator(&u->r)) {
		snprintf(u->metric, sizeof(u->metric), "%s", request_evaluator(&u->r));
		return FETTLE_OK;
	}
	if (!u->eval.feed)
		return FETTLE_OK;
	st = scores_open(&u->scores, u->cx, &asked, u->lab.fp32, &u->eval, &u->looked);
	u->lab.metric = u->scores.metric; /* also after a failure: run_release() frees it */
	if (st)
		return st;
	/* the metric knows which way is up, unless the user says otherwise */
	if (!given)
		u->higher_is_better = metric_higher_is_better(u->lab.metric);
	u->lab.o.has_reference = true;
	snprintf(u->metric, sizeof(u->metric), "%s", metric_name(u->lab.metric));
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

/* A program runs where the run was begun: it may name files there. */
static char *run_from(const struct request *r, const char *command)
{
	return !command ? NULL : r->o.resumed ? resume_command(r->o.resumed, command) : xstrdup(command);
}

/* More threads or sessions than there are cores would only wait for one another: what is asked for is measured as far as it is possible. */
static void fit_cores(struct run *u, struct deployed *d)
{
	const long cores = sysconf(_SC_NPROCESSORS_ONLN);
	char *text;

	if (cores < 1 || (d->threads <= cores && d->instances <= (size_t)cores))
		return;
	text = xstrfmt(
		"%zu sessions of %ld threads are asked for, and this machine has %ld cores: latency is "
		"measured with no more than that of either",
		d->instances, d->threads ? (long)d->threads : cores, cores);
	context_note(u->cx, text);
	free(text);
	d->threads = d->threads > cores ? (int)cores : d->threads;
	d->instances = d->instances > (size_t)cores ? (size_t)cores : d->instances;
}

static enum fettle_status read_deployed(struct run *u)
{
	const struct config *c = u->r.c;
	const struct config_ints *batches = &c->performance.batches;
	struct deployed *d = &u->lab.o.deployed;
	size_t i;

	if (!batches->n || batches->n > DEPLOYED_BATCHES)
		return config_fail(
			config_origin(c, batches), FETTLE_INVALID, &u->cx->err,
			"cannot set evaluation.performance.dataloader.batch_size: %zu values, need 1 to %d",
			batches->n, DEPLOYED_BATCHES);
	*d = (struct deployed){ .threads = c->performance.threads ? c->performance.threads : u->r.threads,
				.instances = (size_t)c->performance.instances,
				.n_batches = batches->n };
	for (i = 0; i < batches->n; i++)
		d->batches[i] = (size_t)batches->v[i];
	if (config_is_set(c, &c->performance.threads) || config_is_set(c, &c->performance.instances))
		fit_cores(u, d);
	return FETTLE_OK;
}

/* Before anything is loaded: the fp32 model, one being made of it and a session each are in memory at a time. */
static enum fettle_status check_memory(const struct run *u)
{
	const double need = 2.5 * (double)model_file_size(u->r.o.model), have = (double)mem_available();

	if (have <= 0 || need <= have)
		return FETTLE_OK;
	return fail(&u->cx->err, FETTLE_UNSUPPORTED,
		    "cannot tune %s: its weights have %.1f GB, which takes about %.1f GB of memory, and %.1f "
		    "GB are "
		    "available; 'fettle quantize --approach weight_only' reads weights as it goes",
		    u->r.o.model, need / 2.5e9, need / 1e9, have / 1e9);
}

static void name_phase(void *cx, const char *name)
{
	(void)context_phase(cx, name); /* the search itself asks whether to stop */
}

enum fettle_status run_open(struct run *u, bool need_eval)
{
	const struct call_options *o = &u->r.o;
	enum fettle_status st;
	char note[96];

	u->lab = (struct lab){ .rt = u->cx->rt,
			       .o = { .model = o->model,
				      .threads = u->r.threads,
				      .level = graph_level(u->r.c->recipes.graph_optimization_level),
				      .eval_cmd = u->command = run_from(&u->r, u->r.c->evaluation.command),
				      .eval_server = u->server = run_from(&u->r, u->r.c->evaluation.server),
				      .evaluate = o->evaluate,
				      .evaluate_self = o->evaluate_self,
				      .workspace = u->workspace,
				      .helper = o->helper },
			       .deadline = INFINITY,
			       .progress = context_progress,
			       .progress_self = u->cx,
			       .phase = name_phase };
	u->busy = runtime_busy(u->cx->rt);
	st = effort_read(u);
	st = st ? st : read_deployed(u);
	st = st ? st : context_phase(u->cx, "prepare");
	st = st ? st : check_memory(u);
	if (!st) {
		u->eval_begun = begin_data(u, &u->r.c->evaluation.dataloader);
		u->calib_begun = begin_data(u, &u->r.c->calibration.dataloader);
	}
	st = st ? st : context_subject(u->cx, o->model, u->r.c->recipes.rewrite_graph, &u->lab.s);
	u->lab.times.prepare = clock_now() - u->start;
	st = st ? st : request_tuning(&u->r, u->lab.s, &u->lab.t, &u->cx->err);
	if (!st && !u->lab.t->space.n_ops)
		st = context_nothing(u->cx, u->lab.s, "tune", o->model);
	if (!st)
		context_note_kind(u->cx, u->lab.s);
	st = st ? st : open_data(u, need_eval);
	if (!st && (u->lab.calib || u->lab.eval)) {
		subject_see(u->lab.s, u->cx->rt, u->lab.calib ? u->lab.calib : u->lab.eval);
		tuning_weigh(u->lab.t);
	}
	if (!st && u->lab.calib && tuning_limit_samples(u->lab.t, feed_samples(u->lab.calib))) {
		snprintf(note, sizeof(note), "sampling sizes above the %zu samples there are count as one",
			 feed_samples(u->lab.calib));
		context_note(u->cx, note);
	}
	st = st ? st : tell_data(u);
	st = st ? st : open_metric(u);
	if (!st)
		effort_restrict(u);
	return st;
}

void run_release(struct run *u)
{
	size_t i;

	lab_release(&u->lab);
	tuning_free(u->lab.t);
	metric_free(u->lab.metric);
	for (i = 0; i < ARRAY_LEN(u->lab.timed); i++) /* their data are the others' */
		feed_free(u->lab.timed[i]);
	unpacking_free(u->calib_begun);
	unpacking_free(u->eval_begun);
	source_release(&u->calib);
	source_release(&u->eval);
	subject_free(u->lab.s);
	free(u->workspace);
	free(u->command);
	free(u->server);
	request_release(&u->r);
}
