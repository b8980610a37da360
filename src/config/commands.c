#include "config/commands.h"

#include <stdlib.h>

#include "base/file.h"
#include "config/effort.h"
#include "tune/measure.h"
#include "tune/one_plan.h"
#include "tune/runs.h"

/* how a request measures models on disk; `data` is what measure_options.data points to, if there is any */
static enum fettle_status measuring(struct request *r, struct data_ref *data, struct measure_options *out)
{
	const struct config_dataloader *d = &r->c->evaluation.dataloader;
	enum fettle_status st = FETTLE_OK;

	*out = (struct measure_options){ .model = r->o.model,
					 .reference = r->o.reference,
					 .feed = request_eval_options(r),
					 .batch = r->o.batch,
					 .scores = request_scores(r),
					 .command = r->c->evaluation.command,
					 .server = r->c->evaluation.server,
					 .higher_is_better = r->c->tuning.higher_is_better,
					 .threads = r->threads,
					 .instances = (size_t)r->c->performance.instances,
					 .seconds = r->o.seconds,
					 .decode = r->o.decode,
					 .past = r->o.past,
					 .helper = r->o.helper,
					 .helper_data = r->o.eval };
	if (request_has_data(r, d)) {
		st = request_data(r, d, "evaluation", data);
		out->data = data;
	}
	return st;
}

static enum fettle_status quantize_by(struct request *r, struct fettle_quantized *out)
{
	struct context *cx = r->cx;
	struct one_plan one = { .approach = (enum approach)r->c->quantization.approach,
				.model = r->o.model,
				.output = r->o.output,
				.threads = r->threads,
				.cache = CACHE_DEFAULT };
	struct data_ref calib;
	struct qplan plan = QPLAN_INIT;
	double start = clock_now();
	enum fettle_status st = context_phase(cx, "prepare");

	if (!st)
		st = one.approach == APPROACH_WEIGHT
			     ? context_subject_outside(cx, r->o.model, r->c->recipes.rewrite_graph, &one.s)
			     : context_subject(cx, r->o.model, r->c->recipes.rewrite_graph, &one.s);
	if (!st)
		st = request_plan(r, one.s, &plan, &cx->err);
	if (!st && r->o.cache)
		st = parse_size(r->o.cache, &one.cache, &cx->err);
	if (!st && request_has_data(r, &r->c->calibration.dataloader)) {
		st = request_data(r, &r->c->calibration.dataloader, "calibration", &calib);
		one.calib = &calib;
	}
	if (!st) {
		size_t samples = r->samples ? r->samples : (size_t)r->c->calibration.sampling_size.v[0];

		one.plan = &plan;
		one.feed = request_calib_options(r, r->o.batch ? r->o.batch : CALIB_BATCH, samples);
		out->seconds_prepare = clock_now() - start;
		st = quantize_one(cx, &one, out);
	}
	qplan_release(&plan);
	subject_free(one.s);
	return st;
}

enum fettle_status request_quantize(struct context *cx, const struct call_options *o,
				    struct fettle_quantized *out)
{
	struct request r;
	enum fettle_status st = request_begin(&r, cx, o, CONFIG_QUANTIZE);

	if (!st && (!r.o.model || !r.o.output))
		st = fail(&cx->err, FETTLE_INVALID, "cannot quantize: need a model and an output path");
	if (!st && r.c->recipes.include_auto_mp)
		st = fail(&cx->err, FETTLE_INVALID,
			  "cannot quantize: auto_mp goes by a target, and only 'fettle tune' and 'fettle "
			  "search' have one");
	if (!st)
		st = quantize_by(&r, out);
	request_release(&r);
	return st;
}

enum fettle_status request_eval(struct context *cx, const struct call_options *o, struct fettle_score *out)
{
	struct request r;
	struct data_ref data;
	struct measure_options m;
	bool program;
	enum fettle_status st = request_begin(&r, cx, o, CONFIG_EVAL);

	program = !st && (r.c->evaluation.command || r.c->evaluation.server);
	if (!st && (!r.o.model || !(request_has_data(&r, &r.c->evaluation.dataloader) || program)))
		st = fail(&cx->err, FETTLE_INVALID,
			  "cannot evaluate: need a model, and data or an evaluator command");
	if (!st)
		st = measuring(&r, &data, &m);
	if (!st)
		st = program ? measure_by_program(cx, &m, out) : measure_accuracy(cx, &m, out);
	request_release(&r);
	return st;
}

enum fettle_status request_bench(struct context *cx, const struct call_options *o, const char *const *models,
				 size_t n, struct fettle_timing *out)
{
	struct request r;
	struct data_ref data;
	struct measure_options m;
	enum fettle_status st = request_begin(&r, cx, o, CONFIG_BENCH);

	if (!st)
		st = measuring(&r, &data, &m);
	if (!st)
		st = measure_latency(cx, &m, models, n, out);
	request_release(&r);
	return st;
}

enum fettle_status request_footprint(struct context *cx, const struct call_options *o, size_t *bytes)
{
	struct request r;
	struct data_ref data;
	struct measure_options m;
	enum fettle_status st = request_begin(&r, cx, o, 0);

	if (!st && !r.o.model)
		st = fail(&cx->err, FETTLE_INVALID, "cannot measure memory: need a model");
	if (!st)
		st = measuring(&r, &data, &m);
	if (!st)
		st = measure_footprint(cx, &m, bytes);
	request_release(&r);
	return st;
}

enum fettle_status request_profile(struct context *cx, const struct call_options *o,
				   struct fettle_profile_row **rows, size_t *n)
{
	struct request r;
	struct data_ref data;
	struct measure_options m;
	enum fettle_status st = request_begin(&r, cx, o, CONFIG_BENCH);

	if (!st)
		st = context_phase(cx, "profile");
	if (!st && !r.o.model)
		st = fail(&cx->err, FETTLE_INVALID, "cannot profile: need a model");
	if (!st)
		st = measuring(&r, &data, &m);
	if (!st)
		st = measure_profile(cx, &m, rows, n);
	request_release(&r);
	return st;
}

enum fettle_status request_inspect(struct context *cx, const struct call_options *o, struct inspection *out)
{
	struct request r;
	struct qplan plan = QPLAN_INIT;
	struct tuning *tuning = NULL;
	enum fettle_status st = request_begin(&r, cx, o, CONFIG_INSPECT);

	if (!st && !r.o.model)
		st = fail(&cx->err, FETTLE_INVALID, "cannot inspect: need a model");
	if (!st)
		st = context_phase(cx, "prepare");
	if (!st)
		st = context_subject(cx, r.o.model, r.c->recipes.rewrite_graph, &out->subject);
	if (!st)
		st = request_plan(&r, out->subject, &plan, &cx->err);
	if (!st)
		st = request_tuning(&r, out->subject, &tuning, &cx->err);
	if (!st)
		st = inspect(cx, out->subject, (enum approach)r.c->quantization.approach, &plan, tuning, out);
	request_release(&r);
	tuning_free(tuning);
	qplan_release(&plan);
	return st;
}

enum fettle_status request_sensitivity(struct run *u, struct context *cx, const struct call_options *o,
				       struct accuracy *baseline, struct op_sensitivity **rows, size_t *n)
{
	enum fettle_status st;

	*u = (struct run){ .cx = cx, .start = clock_now() };
	st = request_begin(&u->r, cx, o, CONFIG_SENSITIVITY);
	if (!st && !u->r.o.model)
		st = fail(&cx->err, FETTLE_INVALID, "cannot rate ops: need a model");
	if (!st)
		st = run_open(u, false);
	if (!st)
		st = context_phase(cx, "baseline");
	if (!st && u->lab.metric)
		st = lab_baseline(&u->lab, baseline, &cx->err);
	if (!st && u->lab.metric)
		scores_judge(&u->scores, cx, "the fp32 model", baseline->value);
	if (!st)
		st = context_phase(cx, "rate ops");
	return st ? st
		  : sensitivity(&u->lab, &(struct sensitivity_wanted){ .metric = true }, rows, n, &cx->err);
}

enum fettle_status request_diff(struct context *cx, const struct call_options *o, const char *a,
				const char *b, struct diff *out)
{
	enum { SAMPLES = 32 };
	struct feed_options feed = { .batch = CALIB_BATCH,
				     .limit = o->eval_samples ? o->eval_samples : SAMPLES };
	struct data_ref data;
	struct request r;
	enum fettle_status st = request_begin(&r, cx, o, CONFIG_EVAL);

	if (!st)
		st = diff_open(out, a, b, &cx->err);
	if (!st && request_has_data(&r, &r.c->evaluation.dataloader)) {
		st = request_data(&r, &r.c->evaluation.dataloader, "evaluation", &data);
		if (!st)
			st = diff_values(out, cx, &data, &feed, r.threads);
	}
	request_release(&r);
	return st;
}

enum fettle_status request_recover(struct context *cx, const struct call_options *o, size_t trial)
{
	struct request r;
	enum fettle_status st = request_begin(&r, cx, o, 0);

	if (!st && !r.o.workspace)
		st = fail(&cx->err, FETTLE_INVALID, "cannot recover: need a workspace");
	if (!st && !r.o.output)
		st = fail(&cx->err, FETTLE_INVALID, "cannot recover: need an output path");
	if (!st)
		st = run_recover(cx, r.o.workspace, trial, r.o.model, r.o.output);
	request_release(&r);
	return st;
}

enum fettle_status request_config(struct context *cx, const struct call_options *o, char **text)
{
	struct str out = STR_INIT;
	struct request r;
	enum fettle_status st = request_begin(&r, cx, o, 0);

	if (!st) {
		config_print(r.c, &out);
		*text = out.s ? out.s : xstrdup("");
	}
	request_release(&r);
	return st;
}
