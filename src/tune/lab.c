#include "tune/lab.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/str.h"
#include "runtime/probe.h"
#include "space/plan_json.h"

bool lab_stopped(const struct lab *l)
{
	return clock_now() >= l->deadline || (l->cancelled && l->cancelled(l->cancel_self));
}

bool lab_go_on(void *lab, size_t done, size_t total)
{
	(void)done;
	(void)total;
	return !lab_stopped(lab);
}

static void forget_last(struct lab *l)
{
	session_free(l->session);
	l->session = NULL;
	model_free(l->model);
	l->model = NULL;
	plan_release(&l->last);
}

enum fettle_status lab_model(struct lab *l, const struct plan *p, struct model **out, struct err *err)
{
	struct quantizer *z = NULL;
	struct qplan q = QPLAN_INIT;
	enum fettle_status st;
	double start;

	if (l->model && plan_equal(&l->last, p)) {
		*out = l->model;
		return FETTLE_OK;
	}
	forget_last(l);
	st = lab_quantizer(l, p, &z, err);
	if (st)
		return st;
	start = clock_now();
	tuning_qplan(l->t, p, &q);
	st = quantize(z, &q, &l->model, err);
	qplan_release(&q);
	l->times.quantize += clock_now() - start;
	if (st)
		return st;
	plan_copy(&l->last, p);
	*out = l->model;
	return FETTLE_OK;
}

enum fettle_status lab_quantize(struct lab *l, const struct qplan *q, struct model **out, struct err *err)
{
	struct quantizer *z = NULL;
	struct plan first = PLAN_INIT;
	enum fettle_status st;

	plan_init(&first, &l->t->space);
	st = lab_quantizer_for(l, tuning_samples(l->t, &first), &q->recipes, &z, err);
	plan_release(&first);
	return st ? st : quantize(z, q, out, err);
}

enum fettle_status lab_session(struct lab *l, const struct plan *p, struct session **out, struct err *err)
{
	struct session_options so = { .threads = l->o.threads, .level = l->o.level };
	struct model *m;
	enum fettle_status st;
	double start;

	st = lab_model(l, p, &m, err);
	if (st)
		return st;
	if (!l->session) {
		start = clock_now();
		st = session_new(&l->session, l->rt, m, &so, err);
		l->times.session += clock_now() - start;
	}
	*out = l->session;
	return st;
}

enum fettle_status lab_evaluate(struct lab *l, struct session *s, struct accuracy *a, struct err *err)
{
	double start = clock_now();
	enum fettle_status st;

	metric_reset(l->metric);
	st = evaluate_accuracy(s, l->o.has_reference ? l->fp32 : NULL, l->eval, l->metric, lab_go_on, l, a,
			       err);
	l->times.evaluate += clock_now() - start;
	l->samples_evaluated += a->samples;
	return st;
}

static bool has_evaluator(const struct lab *l)
{
	return l->o.eval_cmd || l->o.evaluate;
}

/* the user's program or function */
static enum fettle_status evaluate_file(struct lab *l, const char *path, double *value, struct err *err)
{
	double start = clock_now();
	enum fettle_status st = FETTLE_OK;

	if (l->o.eval_cmd) {
		st = evaluate_command(l->o.eval_cmd, path, lab_go_on, l, value, err);
	} else {
		*value = l->o.evaluate(l->o.evaluate_self, path);
		if (isnan(*value))
			st = fail(err, FETTLE_INVALID, "the evaluator gave no number");
	}
	l->times.evaluate += clock_now() - start;
	return st;
}

static enum fettle_status evaluate_model(struct lab *l, struct model *m, double *value, struct err *err)
{
	char *path = xstrfmt("%s/trial.onnx", l->o.workspace);
	enum fettle_status st;

	st = model_save(m, path, err);
	if (!st)
		st = evaluate_file(l, path, value, err);
	unlink(path);
	free(path);
	return st;
}

enum fettle_status lab_baseline(struct lab *l, struct accuracy *out, struct err *err)
{
	struct session_options so = { .threads = l->o.threads, .level = l->o.level };
	double start = clock_now();
	enum fettle_status st;

	st = session_open(&l->fp32, l->rt, l->o.model, &so, err);
	l->times.session += clock_now() - start;
	l->baseline_size = model_file_size(l->o.model);
	if (st)
		return st;
	start = clock_now();
	st = has_evaluator(l) ? evaluate_file(l, l->o.model, &out->value, err)
			      : lab_evaluate(l, l->fp32, out, err);
	out->seconds = l->pass_seconds = clock_now() - start;
	return st;
}

/* a sample, or what looks like one where there is no data */
static enum fettle_status timing_inputs(struct lab *l, struct feed_batch *b, struct tensor **made_up,
					struct err *err)
{
	if (l->one)
		return feed_read(l->one, 0, b, err);
	*made_up = xcalloc(session_n_inputs(l->fp32), sizeof(**made_up));
	return fake_inputs(l->fp32, 1, 1, true, *made_up, err);
}

enum fettle_status lab_latency(struct lab *l, const struct plan *p, double seconds, double *fp32,
			       double *plan, struct err *err)
{
	struct feed_batch b = FEED_BATCH_INIT;
	struct session *pair[2] = { l->fp32, NULL };
	struct tensor *inputs[2], *made_up = NULL;
	struct latency times[2];
	size_t i;
	double start;
	enum fettle_status st;

	st = lab_session(l, p, &pair[1], err);
	start = clock_now();
	if (!st)
		st = timing_inputs(l, &b, &made_up, err);
	if (!st) {
		inputs[0] = inputs[1] = made_up ? made_up : b.inputs;
		st = evaluate_latency(pair, inputs, 2, seconds, lab_go_on, l, times, err);
	}
	if (!st) {
		*fp32 = times[0].median / (double)(b.n ? b.n : 1);
		*plan = times[1].median / (double)(b.n ? b.n : 1);
	}
	for (i = 0; made_up && i < session_n_inputs(l->fp32); i++)
		tensor_free(&made_up[i]);
	free(made_up);
	feed_batch_release(&b);
	l->times.latency += clock_now() - start;
	return st;
}

static enum fettle_status model_size(struct lab *l, const struct plan *p, size_t *bytes, struct err *err)
{
	struct packed packed = PACKED_INIT;
	struct model *m;
	enum fettle_status st;
	size_t i;

	st = lab_model(l, p, &m, err);
	if (!st)
		st = model_pack(m, 1024, &packed, err);
	if (st)
		return st;
	*bytes = packed.n;
	for (i = 0; i < packed.n_weights; i++)
		*bytes += tensor_bytes(&packed.weights[i]->t);
	packed_release(&packed);
	return FETTLE_OK;
}

static enum fettle_status model_footprint(struct lab *l, const struct plan *p, size_t *bytes, struct err *err)
{
	char *path = xstrfmt("%s/footprint.onnx", l->o.workspace);
	struct model *m;
	enum fettle_status st;

	st = lab_model(l, p, &m, err);
	if (!st)
		st = model_save(m, path, err);
	if (!st)
		st = evaluate_footprint(l->o.helper, path, NULL, 1, l->o.threads, bytes, err);
	unlink(path);
	free(path);
	return st;
}

/* a quarter of an evaluation: enough to be worth something, too little to be felt */
static double latency_budget(const struct lab *l)
{
	return fmin(fmax(0.25 * l->pass_seconds, 0.05), 0.5);
}

static enum fettle_status objective(void *self, const struct plan *p, double *value, struct err *err)
{
	struct lab *l = self;
	const double *w = l->o.weights;
	bool only_latency = !w[LAB_SIZE] && !w[LAB_FOOTPRINT] && !w[LAB_ACCURACY];
	double fp32 = 0, plan = 0, sum = 0;
	size_t bytes = 0;
	enum fettle_status st = FETTLE_OK;

	/* each in units of the fp32 model's, so that they can be added */
	if (only_latency || w[LAB_LATENCY] > 0) {
		st = lab_latency(l, p, latency_budget(l), &fp32, &plan, err);
		if (st)
			return st;
		if (!l->baseline_latency)
			l->baseline_latency = fp32;
		sum += (only_latency ? 1 : w[LAB_LATENCY]) * plan / fp32;
		l->trial_latency = plan / fp32 * l->baseline_latency;
	}
	if (w[LAB_SIZE] > 0) {
		st = model_size(l, p, &bytes, err);
		sum += w[LAB_SIZE] * (double)bytes / (double)(l->baseline_size ? l->baseline_size : 1);
	}
	if (!st && w[LAB_FOOTPRINT] > 0) {
		if (!l->baseline_footprint)
			st = evaluate_footprint(l->o.helper, l->o.model, NULL, 1, l->o.threads,
						&l->baseline_footprint, err);
		if (!st)
			st = model_footprint(l, p, &bytes, err);
		if (!st)
			sum += w[LAB_FOOTPRINT] * (double)bytes / (double)l->baseline_footprint;
	}
	*value = sum;
	return st;
}

/* recipes may leave nothing of what a plan quantizes: such a plan is no success, whatever its accuracy */
static bool quantizes_nothing(const struct lab *l, const struct plan *p)
{
	struct qplan q = QPLAN_INIT;
	struct qplan_summary sum;

	tuning_qplan(l->t, p, &q);
	sum = qplan_summarise(&q, &l->s->ops);
	qplan_release(&q);
	return !sum.int8 && !sum.int16 && !sum.dynamic;
}

static enum fettle_status run(void *self, const struct plan *p, struct trial *out, struct err *err)
{
	struct lab *l = self;
	struct session *s = NULL;
	struct model *m = NULL;
	struct accuracy a = { 0 };
	enum fettle_status st;
	struct err why = ERR_INIT;

	l->before = l->times;
	l->trial_latency = NAN;
	l->trial_size = 0;
	l->trial_samples = 0;
	if (quantizes_nothing(l, p)) {
		out->score.failed = true;
		snprintf(out->why, sizeof(out->why), "its recipes leave nothing quantized");
		return FETTLE_OK;
	}
	st = has_evaluator(l) ? lab_model(l, p, &m, &why) : lab_session(l, p, &s, &why);
	if (!st)
		st = model_size(l, p, &l->trial_size, &why);
	if (!st && has_evaluator(l))
		st = evaluate_model(l, m, &a.value, &why);
	else if (!st)
		st = lab_evaluate(l, s, &a, &why);
	l->trial_samples = a.samples;
	if (lab_stopped(l) && st)
		return fail(err, FETTLE_STOP, "stopped");
	if (st) { /* this plan cannot be had: the search goes on without it */
		out->score.failed = true;
		snprintf(out->why, sizeof(out->why), "%.255s", why.msg);
		return FETTLE_OK;
	}
	out->score.accuracy = a.value;
	return FETTLE_OK;
}

static bool known(void *self, const struct plan *p, struct trial *out)
{
	struct lab *l = self;
	struct history_trial t = { .number = 0 };

	if (!l->history || history_find(l->history, p->choice, p->n, &t, NULL) || !t.number)
		return false;
	out->score.accuracy = t.accuracy;
	out->score.failed = t.failed;
	out->score.objective = t.objective;
	out->seconds = t.seconds;
	snprintf(out->why, sizeof(out->why), "%s", t.why);
	history_trial_release(&t);
	return true;
}

static void record(void *self, const struct trial *t)
{
	struct lab *l = self;
	struct qplan q = QPLAN_INIT;
	char finished[32], *json, *stage;

	if (l->history) {
		lab_flush_ranges(l);
		tuning_qplan(l->t, &t->plan, &q);
		json = qplan_to_json(&q, &l->s->ops, tuning_samples(l->t, &t->plan));
		stage = tuning_text(l->t, &t->plan, t->stage);
		clock_utc(finished);
		if (history_add_trial(l->history,
				      &(struct history_trial){
					      .number = t->number,
					      .choice = t->plan.choice,
					      .n_choices = t->plan.n,
					      .plan = json,
					      .stage = stage,
					      .failed = t->score.failed,
					      .met = t->score.met,
					      .accuracy = t->score.accuracy,
					      .loss = t->score.loss,
					      .objective = t->score.objective,
					      .latency = l->trial_latency,
					      .size_bytes = l->trial_size,
					      .samples = l->trial_samples,
					      .quantize_s = l->times.quantize - l->before.quantize,
					      .session_s = l->times.session - l->before.session,
					      .evaluate_s = l->times.evaluate - l->before.evaluate,
					      .measure_s = l->times.latency - l->before.latency,
					      .seconds = t->seconds,
					      .finished = finished,
					      .why = t->why,
				      },
				      NULL, &l->history_err))
			l->history_failed = true; /* ends the search: what cannot be kept must not be spent */
		free(stage);
		free(json);
		qplan_release(&q);
	}
	if (l->on_trial)
		l->on_trial(l->on_trial_self, t);
}

static bool cancelled(void *self)
{
	const struct lab *l = self;

	return l->history_failed || (l->cancelled && l->cancelled(l->cancel_self));
}

static double now(void *self)
{
	(void)self;
	return clock_now();
}

const struct search_backend lab_backend = {
	.run = run,
	.objective = objective,
	.rank = lab_rank,
	.known = known,
	.record = record,
	.cancelled = cancelled,
	.now = now,
};

void lab_release(struct lab *l)
{
	forget_last(l);
	session_free(l->fp32);
	l->fp32 = NULL;
	lab_forget_ranges(l);
}
