/* Trials: from a plan to its accuracy, one at a time or several side by side. */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/file.h"
#include "base/str.h"
#include "tune/compare.h"
#include "tune/cutcache.h"
#include "tune/stand.h"

static size_t n_stands(const struct lab *l)
{
	return l->o.jobs ? l->o.jobs : 1;
}

int lab_threads(const struct lab *l)
{
	return n_stands(l) > 1 ? 1 : l->o.threads;
}

static void stand_clear(struct stand *d)
{
	session_free(d->session);
	d->session = NULL;
	model_free(d->model);
	d->model = NULL;
	plan_release(&d->plan);
}

void lab_forget_stands(struct lab *l)
{
	size_t i;

	for (i = 0; l->stands && i < n_stands(l); i++) {
		struct stand *d = &l->stands[i];

		stand_clear(d);
		metric_free(d->metric);
		server_free(d->server);
		recall_release(&d->recall);
		free(d->scores);
	}
	if (l->stands)
		pthread_mutex_destroy(&l->lock);
	free(l->stands);
	l->stands = NULL;
	reference_release(&l->scored);
	cutcache_free(l->cuts);
	l->cuts = NULL;
	map_release(&l->node_macs);
	plan_release(&l->kept);
	free(l->kept_scores);
	l->kept_scores = NULL;
	lab_drop_reference(l);
	order_free(l->order);
	l->order = NULL;
}

static struct stand *stand_at(struct lab *l, size_t i)
{
	if (!l->stands) {
		l->stands = xcalloc(n_stands(l), sizeof(*l->stands));
		pthread_mutex_init(&l->lock, NULL);
	}
	return &l->stands[i];
}

/* The one that has this plan's model, or NULL. */
static struct stand *stand_with(const struct lab *l, const struct plan *p)
{
	size_t i;

	for (i = 0; l->stands && i < n_stands(l); i++)
		if (l->stands[i].model && plan_equal(&l->stands[i].plan, p, &l->t->space))
			return &l->stands[i];
	return NULL;
}

/* The same; else the first, to be given it. */
static struct stand *stand_for(struct lab *l, const struct plan *p)
{
	struct stand *d = stand_with(l, p);

	return d ? d : stand_at(l, 0);
}

static enum fettle_status make_model(struct lab *l, struct stand *d, const struct plan *p, double *seconds,
				     struct err *err)
{
	const bool plain = l->scoring && l->t->base.recipes.finetune.algorithm != FINETUNE_OFF;
	struct knowledge k;
	struct qplan q = QPLAN_INIT;
	enum fettle_status st;
	double start, calibrating;

	if (d->model && plan_equal(&d->plan, p, &l->t->space) && d->plain == plain)
		return FETTLE_OK;
	stand_clear(d);
	pthread_mutex_lock(&l->lock);
	tuning_qplan(l->t, p, &q);
	if (plain)
		q.recipes.finetune.algorithm = FINETUNE_OFF;
	start = clock_now();
	calibrating = l->times.calibrate;
	st = lab_learn_plan(l, tuning_samples(l->t, p), &q, &k, err);
	if (!st)
		st = quantize(l->s->z, &k, &q, &d->model, err);
	calibrating = l->times.calibrate - calibrating;
	qplan_release(&q);
	pthread_mutex_unlock(&l->lock);
	*seconds += clock_now() - start - calibrating;
	d->plain = plain;
	if (!st)
		plan_copy(&d->plan, p);
	return st;
}

static enum fettle_status make_session(struct lab *l, struct stand *d, double *seconds, struct err *err)
{
	struct session_options so = { .threads = lab_threads(l), .level = l->o.level };
	double start = clock_now();
	enum fettle_status st = FETTLE_OK;

	if (!d->session)
		st = session_new(&d->session, l->rt, d->model, &so, err);
	*seconds += clock_now() - start;
	return st;
}

enum fettle_status lab_model(struct lab *l, const struct plan *p, struct model **out, struct err *err)
{
	struct stand *d = stand_for(l, p);
	enum fettle_status st = make_model(l, d, p, &l->times.quantize, err);

	*out = d->model;
	return st;
}

enum fettle_status lab_session(struct lab *l, const struct plan *p, struct session **out, struct err *err)
{
	struct stand *d = stand_for(l, p);
	enum fettle_status st;

	st = make_model(l, d, p, &l->times.quantize, err);
	if (!st)
		st = make_session(l, d, &l->times.session, err);
	*out = d->session;
	return st;
}

/* ---- evaluation ---- */

bool has_evaluator(const struct lab *l)
{
	return l->o.eval_cmd || l->o.eval_server || l->o.evaluate;
}

bool lab_output_counts(const struct lab *l, size_t i)
{
	return !l->metric || metric_looks_at(l->metric, i);
}

/* The thread that the search runs on asks whether to stop, and tells the others. */
static bool trial_goes_on(void *lab, size_t done, size_t total)
{
	struct lab *l = lab;

	if (pthread_equal(pthread_self(), l->main) && !lab_go_on(l, done, total))
		atomic_store(&l->stop, true);
	return !atomic_load(&l->stop);
}

enum fettle_status lab_evaluate_file(struct lab *l, size_t worker, const char *path, progress_fn go_on,
				     double *value, struct err *err)
{
	struct stand *d = stand_at(l, worker);

	if (l->o.eval_server) {
		if (!d->server)
			d->server = server_new(l->o.eval_server);
		return server_ask(d->server, path, go_on, l, value, err);
	}
	if (l->o.eval_cmd)
		return evaluate_command(l->o.eval_cmd, path, go_on, l, value, err);
	*value = l->o.evaluate(l->o.evaluate_self, path);
	if (isnan(*value))
		return fail(err, FETTLE_INVALID, "the evaluator gave no number");
	return FETTLE_OK;
}

static enum fettle_status evaluate_saved(struct lab *l, const struct stand *d, double *value, struct err *err)
{
	const size_t worker = (size_t)(d - l->stands);
	char *path = xstrfmt("%s/trial%zu.onnx", l->o.workspace, worker);
	enum fettle_status st;

	st = model_save(d->model, path, err);
	if (!st)
		st = lab_evaluate_file(l, worker, path, trial_goes_on, value, err);
	unlink(path);
	free(path);
	return st;
}

static bool certain(void *verdict, double low, double high)
{
	return verdict_certain(verdict, low, high);
}

/* Dynamic ranges are those of a whole batch: which samples are in it changes the result. */
static bool depends_on_batches(const struct lab *l, const struct plan *p)
{
	size_t i;

	for (i = 0; i < l->t->space.n_ops; i++)
		if (l->t->space.v[i].options[p->choice[i]].mode == OPTION_DYNAMIC)
			return true;
	return false;
}

static void evaluation_init(struct lab *l, struct stand *d, struct evaluation *e)
{
	size_t i;

	if (!d->metric)
		d->metric = metric_twin(l->metric);
	d->recall.l = l;
	*e = (struct evaluation){ .net = network_of(d->session),
				  .feed = l->eval,
				  .metric = d->metric,
				  .progress = trial_goes_on,
				  .self = l };
	if (l->o.has_reference)
		e->reference = recall_network(&d->recall);
	if (!l->order)
		return;
	e->place = l->order->place;
	e->n_scores = l->order->n;
	d->scores = xrealloc(d->scores, e->n_scores, sizeof(*d->scores));
	for (i = 0; i < e->n_scores; i++)
		d->scores[i] = NAN;
	e->scores = d->scores;
}

/* in thousands of multiply-adds; nodes that have none count as one, for they are not free */
static double node_cost(void *lab, const struct node *n)
{
	const struct lab *l = lab;
	size_t macs = map_get(&l->node_macs, n->name);

	return 1 + (macs == MAP_NONE ? 0 : (double)macs);
}

static enum fettle_status evaluate_graph(struct lab *l, struct stand *d, const struct graph_index *g,
					 const uint64_t *prints, struct trial *t, struct accuracy *a,
					 struct err *err)
{
	const struct metric_type *type = metric_type(l->metric);
	struct session_options so = { .threads = lab_threads(l), .level = l->o.level };
	struct cut_options co = { l->rt, &so, l->order, node_cost, l };
	struct cut_run *cut = NULL;
	struct verdict v;
	struct paired paired;
	struct evaluation e;
	enum fettle_status st = FETTLE_OK;

	evaluation_init(l, d, &e);
	if (t->verdict && l->order) {
		v = *t->verdict;
		e.certain = certain;
		e.judge = &v;
	}
	if (t->verdict && l->order && l->order->feed && !depends_on_batches(l, &t->plan)) {
		e.feed = l->order->feed;
		if (!l->order->hard) {
			paired_init(&paired, e.n_scores, type->score_max - type->score_min, l->o.confidence);
			e.paired = &paired;
			e.baseline = l->order->baseline;
		}
	}
	if (l->cuts && !depends_on_batches(l, &t->plan))
		cut_begin(l->cuts, d->model, g, prints, &co, &cut);
	if (!cut)
		st = make_session(l, d, &t->session_s, err);
	e.net = cut ? cut_network(cut) : network_of(d->session);
	if (!st)
		st = evaluate_accuracy(&e, a, err);
	if (cut)
		t->cut_share = cut_end(cut, &t->session_s) / (double)l->order->n;
	return st;
}

static enum fettle_status evaluate(struct lab *l, struct stand *d, struct trial *t, struct accuracy *a,
				   struct err *err)
{
	struct graph_index g;
	uint64_t *prints;
	enum fettle_status st;

	graph_index_init(&g, d->model);
	prints = xcalloc(g.n, sizeof(*prints));
	graph_fingerprints(&g, prints);
	st = evaluate_graph(l, d, &g, prints, t, a, err);
	free(prints);
	graph_index_release(&g);
	return st;
}

enum fettle_status lab_evaluate(struct lab *l, struct session *s, struct accuracy *a, struct err *err)
{
	struct evaluation e = { .net = network_of(s),
				.reference = network_of(l->o.has_reference ? l->fp32 : NULL),
				.feed = l->eval,
				.metric = l->metric,
				.progress = lab_go_on,
				.self = l };
	double start = clock_now();
	enum fettle_status st = evaluate_accuracy(&e, a, err);

	l->times.evaluate += clock_now() - start;
	l->samples_evaluated += a->samples;
	return st;
}

/* ---- a trial ---- */

static void begin(struct lab *l)
{
	l->main = pthread_self();
	atomic_store(&l->stop, lab_stopped(l));
}

struct qplan_summary lab_summary(const struct lab *l, const struct plan *p)
{
	struct qplan q = QPLAN_INIT;
	struct qplan_summary sum;

	tuning_qplan(l->t, p, &q);
	sum = qplan_summarise(&q, &l->s->ops);
	qplan_release(&q);
	return sum;
}

/* recipes may leave nothing of what a plan quantizes: such a plan is no success, whatever its accuracy */
static bool quantizes_nothing(const struct lab *l, const struct plan *p)
{
	struct qplan_summary sum = lab_summary(l, p);

	return !sum.int8 && !sum.int16 && !sum.dynamic;
}

/* Options may have no effect here: what is computed from what, up to the outputs. */
void lab_identify(void *lab, struct trial *t)
{
	struct lab *l = lab;
	struct stand *d = stand_for(l, &t->plan);
	struct err why = ERR_INIT;
	struct graph_index g;
	uint64_t *prints;
	size_t i;

	begin(l);
	if (quantizes_nothing(l, &t->plan) || make_model(l, d, &t->plan, &t->quantize_s, &why))
		return; /* a failure is the trial's to report */
	graph_index_init(&g, d->model);
	prints = xcalloc(g.n, sizeof(*prints));
	graph_fingerprints(&g, prints);
	for (i = 0; i < d->model->n_outputs; i++)
		t->identity = t->identity * 31 + prints[graph_value(&g, d->model->outputs[i].name)];
	free(prints);
	graph_index_release(&g);
}

static enum fettle_status run_on(struct lab *l, struct stand *d, struct trial *t)
{
	struct accuracy a = { .value = NAN };
	struct err why = ERR_INIT;
	enum fettle_status st;
	double start;

	if (quantizes_nothing(l, &t->plan)) {
		t->score.failed = true;
		snprintf(t->why, sizeof(t->why), "its recipes leave nothing quantized");
		return FETTLE_OK;
	}
	st = make_model(l, d, &t->plan, &t->quantize_s, &why);
	if (!st)
		st = lab_size(d->model, &t->size_bytes, &why);
	start = clock_now();
	if (!st && has_evaluator(l))
		st = evaluate_saved(l, d, &a.value, &why);
	else if (!st)
		st = evaluate(l, d, t, &a, &why);
	t->evaluate_s = clock_now() - start - t->session_s;
	t->samples = a.samples;
	if (st == FETTLE_STOP || (st && atomic_load(&l->stop))) {
		fail(&d->err, FETTLE_STOP, "stopped");
		return FETTLE_STOP;
	}
	if (st) { /* this plan cannot be had: the search goes on without it */
		t->score.failed = true;
		snprintf(t->why, sizeof(t->why), "%.255s", why.msg);
		return FETTLE_OK;
	}
	t->score.accuracy = a.value;
	memcpy(t->values, a.parts, sizeof(t->values));
	t->score.early = !has_evaluator(l) && a.samples < l->order->n;
	t->score.low = a.low;
	t->score.high = a.high;
	return FETTLE_OK;
}

/* what it cost, and what it did not */
static void account(struct lab *l, const struct trial *t)
{
	l->times.quantize += t->quantize_s;
	l->times.session += t->session_s;
	l->times.evaluate += t->evaluate_s;
	l->samples_evaluated += t->samples;
	l->saved.cuts += t->cut_share * l->pass_seconds;
	if (t->score.early && t->samples)
		l->saved.early += t->evaluate_s * (double)(l->order->n - t->samples) / (double)t->samples;
}

enum fettle_status lab_run(void *lab, struct trial *t, struct err *err)
{
	struct lab *l = lab;
	struct stand *d = stand_at(l, 0);
	enum fettle_status st;

	begin(l);
	st = run_on(l, d, t);
	account(l, t);
	if (st)
		*err = d->err;
	return st;
}

struct job_on_stand {
	struct lab *l;
	struct stand *d;
	struct trial *t;
	enum fettle_status st;
};

static void *job_main(void *arg)
{
	struct job_on_stand *j = arg;

	j->st = run_on(j->l, j->d, j->t);
	return NULL;
}

/* This thread is the one that learns whether to stop: the others may wait for a program that hangs. */
static void join(struct lab *l, pthread_t thread)
{
	struct timespec until;

	do {
		clock_gettime(CLOCK_REALTIME, &until);
		until.tv_nsec += 100000000;
		if (until.tv_nsec >= 1000000000) {
			until.tv_nsec -= 1000000000;
			until.tv_sec++;
		}
		trial_goes_on(l, 0, 0);
	} while (pthread_timedjoin_np(thread, NULL, &until) == ETIMEDOUT);
}

void lab_run_all(void *lab, struct trial *t, size_t n, enum fettle_status *st, struct err *err)
{
	struct lab *l = lab;
	struct job_on_stand *jobs = xcalloc(n, sizeof(*jobs));
	pthread_t *threads = xcalloc(n, sizeof(*threads));
	bool *started = xcalloc(n, sizeof(*started));
	double start = clock_now(), sum = 0;
	size_t i;

	begin(l);
	for (i = 0; i < n; i++)
		jobs[i] = (struct job_on_stand){ l, stand_at(l, i), &t[i], FETTLE_OK };
	for (i = 1; i < n; i++)
		started[i] = pthread_create(&threads[i], NULL, job_main, &jobs[i]) == 0;
	for (i = 0; i < n; i++)
		if (!started[i]) /* the first is this thread's own */
			job_main(&jobs[i]);
	for (i = 0; i < n; i++) {
		if (started[i])
			join(l, threads[i]);
		account(l, &t[i]);
		sum += t[i].quantize_s + t[i].session_s + t[i].evaluate_s;
		st[i] = jobs[i].st;
		if (st[i])
			*err = jobs[i].d->err;
	}
	l->saved.beside += fmax(sum - (clock_now() - start), 0);
	free(jobs);
	free(threads);
	free(started);
}

/* ---- afterwards ---- */

void lab_learn(struct lab *l, const struct trial *t)
{
	const struct stand *d = stand_with(l, &t->plan);
	char *text;

	if (!d || !d->scores || t->score.failed || !l->order || !t->samples)
		return;
	if (t->score.met) {
		plan_copy(&l->kept, &t->plan);
		l->kept_scores = xrealloc(l->kept_scores, l->order->n, sizeof(*l->kept_scores));
		memcpy(l->kept_scores, d->scores, l->order->n * sizeof(*l->kept_scores));
	}
	if (!l->order->hard || !metric_type(l->metric)->is_mean)
		return;
	hard_learn(l->order->hard, d->scores);
	if (l->history) {
		text = hard_save(l->order->hard);
		history_set_meta(l->history, "hard samples", text, NULL);
		free(text);
	}
}

/* the samples that the trial did not look at */
static enum fettle_status visit_missing(struct lab *l, struct evaluation *e, struct feed **feed,
					struct err *err)
{
	size_t *missing = xcalloc(l->order->n, sizeof(*missing)), i, n = 0;
	enum fettle_status st = FETTLE_OK;

	for (i = 0; i < l->order->n; i++) {
		e->scores[i] = l->kept_scores[i];
		if (isnan(e->scores[i]))
			missing[n++] = l->order->sample[i];
	}
	if (n) {
		*feed = feed_twin(l->eval);
		st = feed_set_order(*feed, missing, n, err);
		e->feed = *feed;
	}
	free(missing);
	return st;
}

enum fettle_status lab_finish(struct lab *l, const struct plan *p, struct accuracy *out, struct err *err)
{
	bool part = l->kept_scores && plan_equal(&l->kept, p, &l->t->space) &&
		    metric_type(l->metric)->is_mean && !depends_on_batches(l, p);
	struct stand *d = stand_for(l, p);
	struct feed *feed = NULL;
	struct evaluation e;
	double start;
	enum fettle_status st;

	begin(l);
	atomic_store(&l->stop, false); /* short, and not to be broken off */
	st = make_model(l, d, p, &l->times.quantize, err);
	if (!st)
		st = make_session(l, d, &l->times.session, err);
	if (st)
		return st;
	start = clock_now();
	evaluation_init(l, d, &e);
	e.progress = NULL;
	if (part)
		st = visit_missing(l, &e, &feed, err);
	if (!st)
		st = evaluate_accuracy(&e, out, err);
	feed_free(feed);
	if (st)
		return st;
	l->times.evaluate += clock_now() - start;
	l->samples_evaluated += out->samples;
	return FETTLE_OK;
}
