/* The calls of fettle.h: each reads its own options, has its work done by the options of all, and fills what the caller's
 * version of the result has. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/internal.h"
#include "base/file.h"
#include "config/commands.h"
#include "config/resume.h"
#include "report/json.h"
#include "tune/runs.h"
#include "tune/stop_words.h"

static enum fettle_status begin(struct fettle *f, struct options *o, const struct options_type *type,
				const void *in)
{
	api_clear(f);
	return options_read(o, type, in, &f->cx.err);
}

enum fettle_status fettle_quantize(struct fettle *f, const struct fettle_quantize_options *in,
				   struct fettle_quantized *out)
{
	const struct fettle_quantize_options *given;
	struct fettle_quantized q = FETTLE_QUANTIZED_INIT;
	struct scratch s = { NULL, -1 };
	struct options o;
	enum fettle_status st = begin(f, &o, &options_quantize, in);

	given = o.given;
	if (!st && given->to_memory)
		st = memory_begin(f, &o.o, &s);
	if (!st)
		st = request_quantize(&f->cx, &o.o, &q);
	if (!st && given->to_memory)
		st = memory_keep(f, o.o.output);
	if (!st && given->output)
		q.output = arena_strdup(&f->cx.told, given->output);
	memory_release(&o.o, &s);
	sized_give(out, &q, sizeof(q));
	options_release(&o);
	return st;
}

enum fettle_status fettle_recover(struct fettle *f, const struct fettle_recover_options *in)
{
	const struct fettle_recover_options *given;
	struct scratch s = { NULL, -1 };
	struct options o;
	enum fettle_status st = begin(f, &o, &options_recover, in);

	given = o.given;
	if (!st && given->to_memory)
		st = memory_begin(f, &o.o, &s);
	if (!st)
		st = request_recover(&f->cx, &o.o, given->trial);
	if (!st && given->to_memory)
		st = memory_keep(f, o.o.output);
	memory_release(&o.o, &s);
	options_release(&o);
	return st;
}

enum fettle_status fettle_eval(struct fettle *f, const struct fettle_eval_options *in,
			       struct fettle_score *out)
{
	struct fettle_score score = FETTLE_SCORE_INIT;
	struct options o;
	enum fettle_status st = begin(f, &o, &options_eval, in);

	if (!st)
		st = request_eval(&f->cx, &o.o, &score);
	sized_give(out, &score, sizeof(score));
	options_release(&o);
	return st;
}

enum fettle_status fettle_bench(struct fettle *f, const struct fettle_bench_options *in,
				struct fettle_timing *out)
{
	struct fettle_timing *timings = NULL;
	const struct fettle_bench_options *given;
	struct options o;
	enum fettle_status st = begin(f, &o, &options_bench, in);
	size_t i;

	given = o.given;
	if (!st && !given->n_models)
		st = fail(&f->cx.err, FETTLE_INVALID, "cannot time models: none is given");
	if (!st) {
		timings = xcalloc(given->n_models, sizeof(*timings));
		st = request_bench(&f->cx, &o.o, given->models, given->n_models, timings);
	}
	for (i = 0; i < given->n_models && !st; i++) /* of the caller's version: as large as the first says */
		sized_give((char *)out + i * out->size, &timings[i], sizeof(*timings));
	free(timings);
	options_release(&o);
	return st;
}

/* options of `bench` for a call that takes one model */
enum fettle_status options_read_one_model(struct fettle *f, struct options *o,
					  const struct fettle_bench_options *in)
{
	enum fettle_status st = begin(f, o, &options_bench, in);
	const struct fettle_bench_options *given = o->given;

	if (!st && given->n_models != 1)
		st = fail(&f->cx.err, FETTLE_INVALID, "cannot measure %zu models: need a model, and only one",
			  given->n_models);
	o->o.model = st ? NULL : given->models[0];
	return st;
}

enum fettle_status fettle_footprint(struct fettle *f, const struct fettle_bench_options *in, size_t *bytes)
{
	struct options o;
	enum fettle_status st = options_read_one_model(f, &o, in);

	if (!st)
		st = request_footprint(&f->cx, &o.o, bytes);
	options_release(&o);
	return st;
}

static enum fettle_status print_config(struct fettle *f, const struct options_type *type, const void *in,
				       char **text)
{
	struct options o;
	enum fettle_status st = begin(f, &o, type, in);

	if (!st)
		st = request_config(&f->cx, &o.o, text);
	options_release(&o);
	return st;
}

enum fettle_status fettle_tune_config(struct fettle *f, const struct fettle_tune_options *in, char **text)
{
	return print_config(f, &options_tune, in, text);
}

enum fettle_status fettle_search_config(struct fettle *f, const struct fettle_search_options *in, char **text)
{
	return print_config(f, &options_search, in, text);
}

static struct fettle_preview preview_of(const struct job_request *u, const struct preview *p)
{
	const struct search_config *s = &u->job.search;
	const struct run *b = &u->run;
	struct fettle_preview out = { .strategy = u->job.strategy->name,
				      .higher_is_better = b->higher_is_better,
				      .criterion = s->relative ? "relative" : "absolute",
				      .tolerance = s->tolerance,
				      .calib_samples = p->samples,
				      .eval_samples = b->eval.feed ? feed_samples(b->eval.feed) : 0,
				      .n_ops = b->lab.t->space.n_ops,
				      .log10_plans = space_size_log10(&b->lab.t->space, false),
				      .max_trials = s->max_trials,
				      .timeout = s->timeout,
				      .fp32_pass_s = p->pass };
	const double once = p->prepare + p->session + p->pass + p->calibrate, trial = p->make + p->pass;

	snprintf(out.metric, sizeof(out.metric), "%s", b->metric);
	out.shortest_s = once + trial;
	/* every strategy looks at the clock: a trial that the time runs out in is broken off */
	out.longest_s = s->max_trials ? once + (double)s->max_trials * trial : INFINITY;
	if (s->timeout > 0) {
		out.shortest_s = fmin(out.longest_s, once + s->timeout);
		out.longest_s = out.shortest_s;
	}
	return out;
}

enum fettle_status fettle_tune_preview(struct fettle *f, const struct fettle_tune_options *in,
				       struct fettle_preview *out)
{
	struct fettle_preview preview = FETTLE_PREVIEW_INIT;
	struct job_request u = { .j = NULL };
	struct preview p;
	struct options o;
	enum fettle_status st = begin(f, &o, &options_tune, in);

	o.o.ranks = false; /* each looks for itself */
	st = st ? st : job_request_begin(&u, &f->cx, &o.o, false);
	st = st ? st : job_request_preview(&u, &p);
	if (!st)
		preview = preview_of(&u, &p);
	job_request_release(&u);
	sized_give(out, &preview, sizeof(preview));
	options_release(&o);
	return st;
}

/* For the report; a run that cannot keep it has its model all the same. */
static void keep_result(struct fettle *f, const struct fettle_tuned *t)
{
	char *path = xstrfmt("%s/" RESULT_FILE, t->workspace), *json = report_text(json_of_tuned(&f->cx, t)),
	     *text = xstrfmt("%s\n", json);
	struct err err = ERR_INIT;

	if (file_write(path, text, strlen(text), &err))
		context_warn(&f->cx, "the report will lack the result: %s", err.msg);
	free(text);
	free(json);
	free(path);
}

enum fettle_status api_run_job(struct fettle *f, const struct call_options *o, bool is_search, bool to_memory,
			       struct fettle_tuned **out)
{
	struct tune_call call = { .f = f };
	struct job_request *u = &call.u;
	enum fettle_status st = job_request_begin(u, &f->cx, o, is_search);

	u->job.trial = tuned_tell_trial;
	u->job.trial_self = &call;
	*out = NULL;
	if (!st)
		st = job_request_run(u);
	if (!st && to_memory && !job_request_serves(u))
		st = memory_keep(f, u->output);
	if (!st && !job_request_serves(u)) {
		*out = tuned_new(u);
		keep_result(f, *out);
	}
	st = job_request_end(u, st);
	job_request_release(u);
	return st;
}

enum fettle_status fettle_tune(struct fettle *f, const struct fettle_tune_options *in,
			       struct fettle_tuned **out)
{
	struct options o;
	enum fettle_status st = begin(f, &o, &options_tune, in);

	if (!st)
		st = api_run_job(f, &o.o, false, ((const struct fettle_tune_options *)o.given)->to_memory,
				 out);
	options_release(&o);
	return st;
}

enum fettle_status fettle_auto_search(struct fettle *f, const struct fettle_search_options *in,
				      struct fettle_tuned **out)
{
	struct options o;
	enum fettle_status st = begin(f, &o, &options_search, in);

	if (!st)
		st = api_run_job(f, &o.o, true, ((const struct fettle_search_options *)o.given)->to_memory,
				 out);
	options_release(&o);
	return st;
}

enum fettle_status fettle_resume(struct fettle *f, const struct fettle_resume_options *in,
				 struct fettle_tuned **out)
{
	struct run_request r = { .job = NULL };
	size_t trials = 0, i;
	struct options o;
	enum fettle_status st = begin(f, &o, &options_resume, in);

	if (!st)
		st = resume_load(&r, &o.o, &trials, &f->cx.err);
	for (i = 0; i < r.plugins.n && !st; i++)
		st = members_load_once(&f->cx.members, r.plugins.v[i], &f->cx.err);
	if (!st)
		st = api_run_job(f, &r.o, strcmp(r.job, "search") == 0,
				 ((const struct fettle_resume_options *)o.given)->to_memory, out);
	if (!st && *out && (*out)->trials == trials)
		resume_note_finished(&f->cx, (*out)->stop);
	run_request_release(&r);
	options_release(&o);
	return st;
}
