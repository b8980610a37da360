#include "tune/job_impl.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/str.h"
#include "tune/board.h"
#include "tune/examiner.h"
#include "tune/ranks.h"
#include "tune/values.h"

static const struct trial *best_tuned(const struct job *j)
{
	return search_best_trial(j->search);
}

const struct job_kind job_tune = { .name = "tune", .best = best_tuned, .says_untried = true };

double job_target(const struct job *j)
{
	const struct search_config *c = &j->o.search;
	double loss = c->tolerance * (c->relative ? fabs(j->baseline.value) : 1);

	if (j->o.performance_only)
		return NAN;
	return j->baseline.value + (c->higher_is_better ? -loss : loss);
}

static char *format(const char *fmt, va_list ap)
{
	char text[512];

	vsnprintf(text, sizeof(text), fmt, ap);
	return xstrdup(text);
}

void job_note(struct job *j, const char *fmt, ...)
{
	va_list ap;
	char *text;

	va_start(ap, fmt);
	text = format(fmt, ap);
	va_end(ap);
	context_note(j->o.cx, text);
	free(text);
}

void job_warn(struct job *j, const char *fmt, ...)
{
	va_list ap;
	char *text;

	va_start(ap, fmt);
	text = format(fmt, ap);
	va_end(ap);
	context_warn(j->o.cx, "%s", text);
	free(text);
}

void job_board_status(struct job *j, enum fettle_status st, const struct err *why)
{
	if (!st || st == FETTLE_STOP)
		return;
	j->board_failed = true;
	job_warn(j, "the files for TensorBoard are not complete: %s", why->msg);
}

/* ---- open ---- */

static void show_on_board(struct job *j, const struct trial *t)
{
	struct err why = ERR_INIT;

	if (j->o.tensorboard && !j->board_failed && !j->o.lab->history_failed)
		job_board_status(j, board_trial(j->o.lab, j->o.workspace, t->number, &why), &why);
}

static void on_trial(void *self, const struct trial *t)
{
	struct job *j = self;
	const size_t most = j->o.search.max_trials;
	char *text = tuning_text(j->o.lab->t, &t->plan, t->stage);
	struct job_progress p = { .trial = t,
				  .best = j->o.kind->best(j),
				  .text = text,
				  .baseline = j->baseline.value,
				  .target = job_target(j),
				  .seconds_used = clock_now() - j->o.start,
				  .seconds_left = search_time_left(j->search),
				  .ranks = ranks_at_work(j->o.lab->ranks) };

	if (most && t->number) { /* at most as long as the trials that are left would take */
		double each = p.seconds_used / (double)t->number;

		p.seconds_left = fmin(p.seconds_left, each * fmax(0, (double)most - (double)t->number));
	}
	p.seconds_left = fmin(p.seconds_left, search_passes_left(j->search) * j->o.lab->pass_seconds);
	if (j->o.kind->tried)
		j->o.kind->tried(j, t, text);
	show_on_board(j, t);
	j->o.trial(j->o.trial_self, &p);
	free(text);
}

static enum fettle_status create_history(struct job *j, struct err *err)
{
	const struct job_options *o = &j->o;
	char threads[16];
	enum fettle_status st;

	st = history_create(&j->history, o->workspace, &o->info, err);
	if (!st && o->model_bytes)
		st = file_write(o->info.model_path, o->model_bytes, o->model_size, err);
	if (!st)
		st = history_set_meta(j->history, REWRITTEN_META, o->rewrite ? "yes" : "no", err);
	snprintf(threads, sizeof(threads), "%d", o->threads);
	st = st ? st : history_set_meta(j->history, THREADS_META, threads, err);
	return st ? st : history_set_meta(j->history, "objectives", o->objectives, err);
}

static enum fettle_status continue_history(struct job *j, struct err *err)
{
	const struct job_options *o = &j->o;
	enum fettle_status st;

	st = history_open(&j->history, o->workspace, false, err);
	if (!st)
		st = history_check_same(j->history, &o->info, err);
	return st ? st : history_set_request(j->history, o->info.request, err);
}

enum fettle_status job_open(struct job **out, const struct job_options *o, struct err *err)
{
	struct job *j = xcalloc(1, sizeof(*j));
	enum fettle_status st;

	j->o = *o;
	j->r.noise = NAN;
	o->lab->on_trial = on_trial;
	o->lab->on_trial_self = j;
	o->lab->o.relative = o->search.relative;
	st = o->resume ? continue_history(j, err) : create_history(j, err);
	o->lab->history = j->history;
	if (!st && o->kind->opened)
		st = o->kind->opened(j, err);
	if (st)
		job_free(j);
	else
		*out = j;
	return st;
}

void job_free(struct job *j)
{
	if (!j)
		return;
	search_free(j->search);
	precisions_release(&j->r.precisions);
	qplan_release(&j->r.plan);
	history_close(j->history);
	j->o.lab->history = NULL;
	arena_release(&j->arena);
	free(j);
}

const struct job_result *job_result(const struct job *j)
{
	return &j->r;
}

bool job_has_best(const struct job *j)
{
	return j->search && search_best_trial(j->search);
}

/* ---- baseline ---- */

/* An evaluator of the user's may give another answer each time: what is within that says nothing about a plan. */
static enum fettle_status measure_noise(struct job *j, struct err *err)
{
	double again = NAN, loss, noise;
	enum fettle_status st;

	if (!has_evaluator(j->o.lab))
		return FETTLE_OK;
	st = lab_evaluate_file(j->o.lab, 0, j->o.model, lab_go_on, j->o.lab, &again, err);
	if (st)
		return st;
	noise = fabs(again - j->baseline.value);
	loss = fabs(j->baseline.value - job_target(j));
	j->r.noise = noise;
	if (noise > loss)
		job_warn(j,
			 "the evaluator gave the fp32 model %.6g and then %.6g: a difference of %.3g, more "
			 "than the %.3g that may be lost",
			 j->baseline.value, again, noise, loss);
	else if (noise > 0)
		job_note(j,
			 "the evaluator gave the fp32 model %.6g and then %.6g: a difference of %.3g; %.3g "
			 "may be lost",
			 j->baseline.value, again, noise, loss);
	return FETTLE_OK;
}

/* what makes meeting the target mean little */
static void doubt_target(struct job *j)
{
	const struct search_config *c = &j->o.search;

	if (c->higher_is_better && j->baseline.value > 0 && job_target(j) <= 0 && !j->o.performance_only &&
	    isfinite(c->tolerance))
		job_warn(j,
			 "a tolerance of %g lets any model meet the target: %s at least %.4g, and fp32 has "
			 "%.4g (0.01 is one percent)",
			 c->tolerance, j->o.metric, job_target(j), j->baseline.value);
}

/* Of an error against the fp32 model's own outputs (INC's compare_label: false), fp32 has none, to which no loss can be relative: it is
 * then a share of what outputs of zeros would have. */
static void scale_criterion(struct job *j)
{
	struct search_config *c = &j->o.search;
	const struct metric *m = has_evaluator(j->o.lab) ? NULL : j->o.lab->metric;
	const double zeros = m && metric_needs(m) == METRIC_REFERENCE ? metric_zeros(m) : NAN;

	if (!c->relative || j->baseline.value != 0 || !(zeros > 0))
		return;
	job_note(j,
		 "the fp32 model's own %s is 0: the tolerance of %g is a share of %.4g, which outputs of "
		 "zeros would have",
		 j->o.metric, c->tolerance, zeros);
	c->relative = false;
	c->tolerance *= zeros;
}

enum fettle_status job_baseline(struct job *j, struct err *err)
{
	struct lab *l = j->o.lab;
	struct history_baseline b = { 0 };
	bool found = false;
	enum fettle_status st;

	st = context_phase(j->o.cx, "baseline");
	if (!st)
		st = history_baseline(j->history, &b, &found, err);
	/* measured again on resuming too: it opens the session, and its time is the unit of account */
	if (!st)
		st = lab_baseline(l, &j->baseline, err);
	if (st)
		return st;
	if (l->ranks && !has_evaluator(l))
		ranks_baseline(l->ranks, j->baseline.value);
	if (found)
		j->baseline.value = b.accuracy;
	if (isnan(j->baseline.value))
		return fail(err, FETTLE_INVALID, "cannot tune %s: the fp32 model's %s is not a number",
			    j->o.model, j->o.metric);
	scale_criterion(j);
	j->r.baseline_accuracy = j->baseline;
	j->r.target = job_target(j);
	doubt_target(j);
	if (found)
		return FETTLE_OK;
	st = measure_noise(j, err);
	if (!st)
		st = values_write(j->history, 0, j->baseline.parts, metric_n_parts(l->metric), err);
	return st ? st
		  : history_set_baseline(j->history,
					 &(struct history_baseline){ .accuracy = j->baseline.value,
								     .latency = NAN,
								     .size_bytes = l->baseline_size,
								     .pass_seconds = j->baseline.seconds,
								     .samples = j->baseline.samples },
					 err);
}

/* ---- search ---- */

/* Trials of an earlier session that this one did not ask for again. */
static enum fettle_status adopt_known(struct job *j, struct err *err)
{
	struct history_trial t = { .number = 0 };
	struct plan p = PLAN_INIT;
	enum fettle_status st;
	size_t last = 0;

	while (!(st = history_next(j->history, last, &t, err)) && t.number) {
		if (!plan_read(&p, &j->o.lab->t->space, t.plan, "of the history", NULL))
			search_adopt(j->search, &p);
		last = t.number;
	}
	plan_release(&p);
	history_trial_release(&t);
	return st;
}

/* Of latency, what the timing itself takes for equal; of memory, what two measurements of one model differ by. Sizes and
 * accuracies are exact, so of several objectives it is as much as the share of those that are not. */
static double objective_equal(const double *weights)
{
	double sum =
		weights[LAB_LATENCY] + weights[LAB_SIZE] + weights[LAB_FOOTPRINT] + weights[LAB_ACCURACY];

	return sum > 0 ? (LATENCY_EQUAL * weights[LAB_LATENCY] + 0.03 * weights[LAB_FOOTPRINT]) / sum : 0;
}

/* what the budget leaves to the weights of ops that have a choice */
static double size_room(const struct lab *l)
{
	double others = (double)l->baseline_size;
	size_t i;

	for (i = 0; i < l->t->space.n_ops; i++) {
		const struct param *p = &l->t->space.v[i];

		others -= p->fallback != NO_OPTION ? p->options[p->fallback].bytes : 0;
	}
	return fmax((double)l->o.size_budget - fmax(others, 0), 1);
}

/* Seconds that things take on a CPU of today. Only their ratios count, and they are the same on every machine. */
#define MAC_SECONDS 3e-11
#define NODE_SECONDS 3e-6
#define SESSION_NODE_SECONDS 1e-4
#define SESSION_BYTE_SECONDS 2e-9
#define FINETUNE_OP_SECONDS 0.15
#define FINETUNE_OP_RUNS 20

/* A model compared with itself is this near to the best value: sums are rounded. */
#define BEST_WITHIN 1e-6

static void set_costs(const struct lab *l, struct search_config *c)
{
	const double nodes = (double)l->s->m->nodes.n,
		     run = MAC_SECONDS * l->s->ops.total_macs + NODE_SECONDS * nodes,
		     session = SESSION_NODE_SECONDS * nodes + SESSION_BYTE_SECONDS * (double)l->baseline_size;

	c->trial_runs = nodes > 0 ? session / run : 0;
	/* what it takes on the smallest networks counts only where the user has not asked for so many trials */
	c->costly_runs = FINETUNE_OP_RUNS + (c->bounded && nodes > 0 ? FINETUNE_OP_SECONDS / run : 0);
}

/* Is this mean the best that a metric has, as that of a model compared with itself? */
static bool is_best_of(const struct metric_type *t, double mean)
{
	return fabs(mean - (t->higher_is_better ? t->score_max : t->score_min)) < BEST_WITHIN;
}

enum fettle_status job_search(struct job *j, struct err *err)
{
	struct lab *l = j->o.lab;
	struct search_config c = j->o.search;
	enum fettle_status st;
	size_t i;

	c.space = &l->t->space;
	c.baseline = j->baseline.value;
	c.tolerance = j->o.performance_only ? INFINITY : c.tolerance;
	if (j->o.time_limit > 0)
		c.timeout = fmax(j->o.time_limit - (clock_now() - j->o.start), 1e-9);
	c.objective_equal = objective_equal(l->o.weights);
	for (c.fp32_objective = i = 0; i < LAB_OBJECTIVES; i++)
		c.fp32_objective += i == LAB_ACCURACY ? c.accuracy_weight : l->o.weights[i];
	if (l->o.size_budget) {
		c.fp32_objective = 0; /* it is not small enough */
		c.size_room = size_room(l);
	}
	c.no_early = l->o.no_early;
	c.width = l->o.jobs + ranks_slots(l->ranks);
	c.frugal = !(c.timeout > 0);
	c.bounded = c.frugal && c.bounded && j->o.strategy->bounded;
	c.samples = l->examiner ? examiner_samples(l->examiner) : 0;
	c.counts = l->metric && metric_type(l->metric)->bounded && metric_type(l->metric)->margins;
	c.only_lose = examiner_has_weights(l->examiner) && is_best_of(metric_type(l->metric), c.baseline);
	set_costs(l, &c);
	c.backend = &lab_backend;
	c.self = l;
	st = history_count(j->history, &c.recorded, err);
	if (st)
		return st;
	l->deadline = c.timeout > 0 ? clock_now() + c.timeout : INFINITY;
	context_phase(j->o.cx, LAB_TRIAL); /* the search itself asks whether to stop */
	st = search_new(&j->search, &c, err);
	if (!st)
		st = search_run(j->search, j->o.strategy, err);
	if (!st)
		st = adopt_known(j, err);
	l->deadline = INFINITY; /* what follows is short, and must not be broken off */
	l->progress = NULL;
	if (!st && l->history_failed) {
		*err = l->history_err;
		st = FETTLE_SYSTEM;
	}
	return st;
}
