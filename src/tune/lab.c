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

/* a calibration, and the ranges asked of it that the history does not have yet */
struct lab_ranges {
	struct calibration *c;
	struct arena arena;
	struct map seen;
	VEC(struct history_range) fresh;
	size_t samples;
	struct lab *lab;
	struct channel_means *means; /* of all values that recipes may ask for; taken when one first does */
};

bool lab_stopped(const struct lab *l)
{
	return clock_now() >= l->deadline || (l->cancelled && l->cancelled(l->cancel_self));
}

static bool go_on(void *lab, size_t done, size_t total)
{
	(void)done;
	(void)total;
	return !lab_stopped(lab);
}

char *range_key(const struct qsetting *s)
{
	return xstrfmt("%s %s %s %.10g", dtype_name(s->dtype), s->scheme == SCHEME_SYM ? "sym" : "asym",
		       range_methods[s->algorithm]->name,
		       s->algorithm == RANGE_PERCENTILE ? s->percentile : 0);
}

static enum fettle_status get_range(void *self, const char *value, const struct qsetting *s,
				    struct range *out, struct err *err)
{
	struct lab_ranges *r = self;
	const struct observer *o = calibration_find(r->c, value);
	struct range_options ro = { s->algorithm, s->percentile, 0, s->dtype, s->scheme };
	enum fettle_status st;
	char *key, *both;

	if (!o)
		return fail(err, FETTLE_INVALID, "cannot quantize value '%s': it was not calibrated", value);
	st = range_compute(o, &ro, out, err);
	if (st)
		return st;
	key = range_key(s);
	both = arena_strfmt(&r->arena, "%s\t%s", value, key);
	if (map_get(&r->seen, both) == MAP_NONE) {
		map_set(&r->seen, both, 1);
		VEC_PUSH(&r->fresh, ((struct history_range){ arena_strdup(&r->arena, value),
							     arena_strdup(&r->arena, key), r->samples,
							     out->min, out->max }));
	}
	free(key);
	return FETTLE_OK;
}

static enum fettle_status use_first(struct feed *feed, size_t n, struct err *err)
{
	size_t *order = xcalloc(n, sizeof(*order)), i;
	enum fettle_status st;

	for (i = 0; i < n; i++)
		order[i] = i;
	st = feed_set_order(feed, order, n, err);
	free(order);
	return st;
}

static enum fettle_status sweep_means(struct lab_ranges *r, struct err *err)
{
	struct lab *l = r->lab;
	struct calibrate_options o = { .threads = l->o.threads, .progress = go_on, .self = l };
	struct channel_axis *axes = NULL;
	size_t n = quantizer_means(&l->s->g, &l->s->ops, NULL, &axes);
	double start = clock_now();
	enum fettle_status st;

	st = use_first(l->calib, r->samples, err);
	if (!st)
		st = calibrate_means(&r->means, l->rt, l->s->m, axes, n, l->calib, &o, err);
	free(axes);
	l->times.calibrate += clock_now() - start;
	return st;
}

char *mean_key(const char *value, int axis, size_t samples)
{
	return xstrfmt("mean\t%s\t%d\t%zu", value, axis, samples);
}

static void keep_means(struct lab_ranges *r, const char *value, int axis, size_t n, const double *means)
{
	char *key = mean_key(value, axis, r->samples);
	struct str text = STR_INIT;
	size_t i;

	for (i = 0; i < n; i++)
		str_addf(&text, "%a ", means[i]);
	if (r->lab->history)
		history_set_meta(r->lab->history, key, text.s ? text.s : "", NULL);
	str_release(&text);
	free(key);
}

static enum fettle_status get_means(void *self, const char *value, int axis, size_t channels, double *out,
				    struct err *err)
{
	struct lab_ranges *r = self;
	enum fettle_status st = FETTLE_OK;
	char *key;

	if (!r->means)
		st = sweep_means(r, err);
	if (!st)
		st = channel_means_get(r->means, value, axis, channels, out, err);
	if (st)
		return st;
	key = mean_key(value, axis, r->samples);
	if (map_get(&r->seen, key) == MAP_NONE) {
		map_set(&r->seen, arena_strdup(&r->arena, key), 1);
		keep_means(r, value, axis, channels, out);
	}
	free(key);
	return FETTLE_OK;
}

static void ranges_free(struct lab_ranges *r)
{
	if (!r)
		return;
	channel_means_free(r->means);
	calibration_free(r->c);
	map_release(&r->seen);
	VEC_RELEASE(&r->fresh);
	arena_release(&r->arena);
	free(r);
}

/* the first `samples` of the calibration data: one pass per size, when a plan first asks for it */
static enum fettle_status calibrate_size(struct lab *l, int64_t samples, struct lab_ranges **out,
					 struct err *err)
{
	struct calibrate_options o = { .threads = l->o.threads, .progress = go_on, .self = l };
	struct lab_ranges *r = xcalloc(1, sizeof(*r));
	const char **values = NULL;
	size_t n, total = l->calib_total ? l->calib_total : feed_samples(l->calib);
	double start = clock_now();
	enum fettle_status st;

	l->calib_total = total; /* before the feed is cut down to fewer */
	if (samples > 0 && (size_t)samples < total)
		total = (size_t)samples;
	st = use_first(l->calib, total, err);
	n = quantizer_values(&l->s->g, &l->s->ops, NULL, &values);
	if (!st)
		st = calibrate(&r->c, l->rt, l->s->m, values, n, l->calib, &o, err);
	free(values);
	r->samples = total;
	r->lab = l;
	l->times.calibrate += clock_now() - start;
	if (st)
		ranges_free(r);
	else
		*out = r;
	return st;
}

static enum fettle_status quantizer_for(struct lab *l, const struct plan *p, struct quantizer **out,
					struct err *err)
{
	int64_t samples = tuning_samples(l->t, p);
	struct range_source source;
	enum fettle_status st;
	size_t i;

	for (i = 0; i < l->n_sizes; i++)
		if (l->sizes[i] == samples) {
			*out = l->quantizers[i];
			return FETTLE_OK;
		}
	l->sizes = xrealloc(l->sizes, l->n_sizes + 1, sizeof(*l->sizes));
	l->ranges = xrealloc(l->ranges, l->n_sizes + 1, sizeof(struct lab_ranges *));
	l->quantizers = xrealloc(l->quantizers, l->n_sizes + 1, sizeof(struct quantizer *));
	l->ranges[l->n_sizes] = NULL;
	if (l->calib) {
		st = calibrate_size(l, samples, &l->ranges[l->n_sizes], err);
		if (st)
			return st;
	}
	source = (struct range_source){ .get = get_range, .mean = get_means, .self = l->ranges[l->n_sizes] };
	l->sizes[l->n_sizes] = samples;
	l->quantizers[l->n_sizes] = quantizer_new(l->s->m, &l->s->g, &l->s->ops, l->calib ? &source : NULL);
	*out = l->quantizers[l->n_sizes++];
	return FETTLE_OK;
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
	st = quantizer_for(l, p, &z, err);
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
	st = quantizer_for(l, &first, &z, err);
	plan_release(&first);
	return st ? st : quantize(z, q, out, err);
}

const struct observer *lab_observer(const struct lab *l, const char *value)
{
	return l->n_sizes && l->ranges[0] ? calibration_find(l->ranges[0]->c, value) : NULL;
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
	st = evaluate_accuracy(s, l->o.has_reference ? l->fp32 : NULL, l->eval, l->metric, go_on, l, a, err);
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
		st = evaluate_command(l->o.eval_cmd, path, go_on, l, value, err);
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
		st = evaluate_latency(pair, inputs, 2, seconds, go_on, l, times, err);
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

/* ranges first: a trial that is in the history can be recovered */
static void flush_ranges(struct lab *l)
{
	size_t i;

	for (i = 0; i < l->n_sizes; i++)
		if (l->ranges[i] && l->ranges[i]->fresh.n &&
		    !history_add_ranges(l->history, l->ranges[i]->fresh.v, l->ranges[i]->fresh.n, NULL))
			l->ranges[i]->fresh.n = 0;
}

static void record(void *self, const struct trial *t)
{
	struct lab *l = self;
	struct qplan q = QPLAN_INIT;
	char finished[32], *json;

	if (l->history) {
		flush_ranges(l);
		tuning_qplan(l->t, &t->plan, &q);
		json = qplan_to_json(&q, &l->s->ops, tuning_samples(l->t, &t->plan));
		clock_utc(finished);
		if (history_add_trial(l->history,
				      &(struct history_trial){
					      .number = t->number,
					      .choice = t->plan.choice,
					      .n_choices = t->plan.n,
					      .plan = json,
					      .stage = t->stage,
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
	size_t i;

	forget_last(l);
	session_free(l->fp32);
	for (i = 0; i < l->n_sizes; i++) {
		quantizer_free(l->quantizers[i]);
		ranges_free(l->ranges[i]);
	}
	free(l->quantizers);
	free(l->ranges);
	free(l->sizes);
	l->fp32 = NULL;
	l->quantizers = NULL;
	l->ranges = NULL;
	l->sizes = NULL;
	l->n_sizes = 0;
}
