#include "config/analyse.h"

#include <stdlib.h>
#include <string.h>

#include "config/job.h"
#include "config/resume.h"
#include "report/anatomy.h"
#include "space/plan_json.h"
#include "tune/job.h"

/* what is open of a run while it is analysed */
struct analysed {
	struct context *cx;
	const char *workspace;
	const struct call_options *o;
	json_t *run;
	struct history *h;
	struct run_request request;
	struct job_request u;
	bool has_data;                            /* u is open */
	struct subject *s;                        /* u's, or its own where that is not */
	struct learner *learner;                  /* its own */
	char why[sizeof(((struct err *)0)->msg)]; /* the data could not be opened */
};

/* A part that cannot be had is no reason to have no report. */
static enum fettle_status missing(struct analysed *x, const char *part, enum fettle_status st)
{
	json_t *all = json_object_get(x->run, "missing");

	if (!st || st == FETTLE_STOP)
		return st;
	if (!all) {
		all = json_object();
		json_object_set_new(x->run, "missing", all);
	}
	json_object_set_new(all, part, json_string(x->cx->err.msg));
	x->cx->err.msg[0] = '\0';
	return FETTLE_OK;
}

/* as when it is resumed, but that nothing is written */
static enum fettle_status open_data(struct analysed *x)
{
	const struct call_options o = { .workspace = x->workspace,
					.calib_source = x->o->calib_source,
					.eval_source = x->o->eval_source };
	size_t trials;
	enum fettle_status st = resume_load(&x->request, &o, &trials, &x->cx->err);

	if (!st && x->o->threads)
		x->request.o.threads = x->o->threads;
	if (!st)
		st = job_request_begin(&x->u, x->cx, &x->request.o, strcmp(x->request.job, "search") == 0);
	if (!st) {
		x->u.run.workspace = xstrdup(x->workspace);
		st = run_open(&x->u.run, false);
	}
	x->has_data = !st;
	x->s = st ? NULL : x->u.run.lab.s;
	return st;
}

/* from the history alone, as 'recover' does */
static enum fettle_status open_model(struct analysed *x)
{
	char *text = NULL;
	enum fettle_status st = context_begin(x->cx);

	if (!st)
		st = history_meta(x->h, REWRITTEN_META, &text, &x->cx->err);
	if (!st)
		st = context_subject(x->cx, history_run(x->h)->model_path, text && strcmp(text, "yes") == 0,
				     &x->s);
	free(text);
	return st;
}

static enum fettle_status rate_ops(struct analysed *x)
{
	const struct sensitivity_wanted w = { .without = true };
	struct lab *l = &x->u.run.lab;
	struct op_sensitivity *rows = NULL;
	double all = 0;
	size_t n = 0;
	enum fettle_status st = context_phase(x->cx, "rate ops");

	if (!st && !x->has_data)
		return fail(&x->cx->err, FETTLE_INVALID, "%s", x->why);
	if (!st)
		st = sensitivity_of_all(l, &all, &x->cx->err);
	if (!st)
		st = sensitivity(l, &w, &rows, &n, &x->cx->err);
	if (!st)
		anatomy_sensitivity(l, rows, n, all, x->run);
	free(rows);
	return st;
}

static enum fettle_status learn_for(struct analysed *x, const struct anatomy *a, struct knowledge *out)
{
	struct learn_source source = { .s = x->s, .history = x->h, .workspace = x->workspace };

	if (x->has_data)
		return lab_learn_plan(&x->u.run.lab, a->samples, a->plan, out, &x->cx->err);
	x->learner = learner_new(&source);
	return learn(x->learner, a->samples, a->plan, out, &x->cx->err);
}

static enum fettle_status take_apart(struct analysed *x, const struct history_trial *t)
{
	struct qplan plan = QPLAN_INIT;
	struct knowledge known;
	struct anatomy a = { .cx = x->cx, .s = x->s, .plan = &plan, .known = &known };
	const struct deployed *d = &x->u.run.lab.o.deployed;
	struct feed_batch b = FEED_BATCH_INIT;
	struct anatomy_timing timing = { .model = history_run(x->h)->model_path,
					 .threads = x->has_data ? d->threads : 0,
					 .batch = x->has_data ? d->batches[0] : 1 };
	enum fettle_status st = qplan_from_json(&plan, &a.samples, t->plan, "of the history", &x->s->ops,
						&x->s->g, &x->cx->err);

	if (x->has_data)
		a.approach = (enum approach)x->u.run.r.c->quantization.approach;
	if (!st)
		st = context_phase(x->cx, "take apart");
	if (!st)
		st = learn_for(x, &a, &known);
	a.learner = x->has_data ? x->u.run.lab.learner : x->learner;
	if (!st)
		st = quantize(x->s->z, &known, &plan, &a.quantized, &x->cx->err);
	if (st) {
		st = missing(x, "graph", st);
		goto out;
	}
	st = missing(x, "graph", anatomy_graph(&a, x->run));
	if (!st)
		st = missing(x, "histograms", anatomy_histograms(&a, x->run));
	if (!st)
		st = context_phase(x->cx, "profile");
	if (!st && x->has_data && x->u.run.lab.timed[0])
		st = feed_read(x->u.run.lab.timed[0], 0, &b, &x->cx->err);
	timing.inputs = b.inputs;
	if (!st)
		st = missing(x, "profile", anatomy_profile(&a, &timing, x->run));
out:
	feed_batch_release(&b);
	model_free(a.quantized);
	qplan_release(&plan);
	return st;
}

static enum fettle_status analyse(struct analysed *x, size_t best, bool rate)
{
	struct history_trial t = { .number = 0 };
	enum fettle_status st = open_data(x);

	if (st) {
		snprintf(x->why, sizeof(x->why), "%s", x->cx->err.msg);
		st = st == FETTLE_STOP ? st : open_model(x);
	}
	if (!st && rate)
		st = missing(x, "sensitivity", rate_ops(x));
	if (!st && best) {
		st = history_trial_at(x->h, best, &t, &x->cx->err);
		if (!st)
			st = take_apart(x, &t);
	}
	history_trial_release(&t);
	return missing(x, "graph", st);
}

enum fettle_status request_analysis(struct context *cx, const struct analysis_wanted *w, json_t *run)
{
	struct analysed x = { .cx = cx, .workspace = w->workspace, .o = w->o, .run = run };
	const size_t best = (size_t)json_integer_value(json_object_get(run, "best"));
	enum fettle_status st = history_open(&x.h, w->workspace, true, &cx->err);

	if (!st)
		st = analyse(&x, best, w->sensitivity);
	learner_free(x.learner);
	if (!x.has_data)
		subject_free(x.s);
	job_request_release(&x.u);
	run_request_release(&x.request);
	history_close(x.h);
	return missing(&x, "graph", st);
}
