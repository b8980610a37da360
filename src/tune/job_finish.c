/* The end of a job: the best trial's model is evaluated to its end, written, measured and described. */
#include "tune/job_impl.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/str.h"
#include "tune/board.h"
#include "tune/deployed.h"
#include "tune/ledger.h"
#include "tune/modes.h"
#include "tune/pareto.h"
#include "tune/slower.h"
#include "tune/timing.h"
#include "tune/values.h"

/* Of a job that was interrupted: what takes more seconds to evaluate, or to run a batch, is not waited for. */
#define PASS_BRIEF 3
#define RUN_BRIEF 0.01

/* Matrices of at least this size in all that are read for so few rows a run: what takes time is reading them. */
#define MATRICES_LARGE 8e6
#define FEW_ROWS 4

static bool must_be_brief(const struct job *j)
{
	const struct lab *l = j->o.lab;
	const double runs = l->eval ? (double)feed_batches(l->eval) : 1;

	return search_why(j->search) == SEARCH_INTERRUPTED &&
	       (l->pass_seconds > PASS_BRIEF || l->pass_seconds > RUN_BRIEF * runs);
}

/* The most accurate trial that quantizes more than next to nothing; NULL: none. */
static const struct trial *best_of_substance(const struct job *j)
{
	const struct trial *best = NULL;
	size_t i;

	for (i = 1; i <= search_n_trials(j->search); i++) {
		const struct trial *t = search_trial(j->search, i);

		if (!isnan(t->score.loss) && (!best || t->score.loss < best->score.loss) &&
		    lab_summary(j->o.lab, &t->plan).low_share >= SLIGHT_SHARE)
			best = t;
	}
	return best;
}

static const char *why_almost_nothing(struct job *j, const struct plan *best)
{
	const struct lab *l = j->o.lab;
	const struct trial *other = best_of_substance(j);
	const struct precisions *is = &j->r.precisions;
	double planned = lab_summary(l, best).low_share, most;
	struct plan first = PLAN_INIT;

	if (planned >= SLIGHT_SHARE && l->s->ops.total_macs > 0 && is->int8_share < SLIGHT_SHARE &&
	    !is->int16)
		return arena_strfmt(&j->arena,
				    "the plan quantizes %.0f %%, but the runtime computes that in fp32",
				    100 * planned);
	if (planned >= SLIGHT_SHARE)
		return NULL;
	plan_init(&first, &l->t->space);
	most = lab_summary(l, &first).low_share;
	plan_release(&first);
	if (most < SLIGHT_SHARE)
		return arena_strfmt(&j->arena,
				    "the ops that can be quantized have only %.2g %% of the multiply-adds",
				    100 * most);
	if (modes_gain_nothing(l, best))
		return "with more in integers it would be slower than fp32";
	if (!other)
		return "no trial that quantizes more finished";
	return arena_strfmt(&j->arena,
			    "of the plans that quantize more, the most accurate is trial %zu with %s%.4g",
			    other->number, other->score.early ? "at best " : "", other->score.accuracy);
}

/* Of a search that tried less because it had spent enough. */
static const char *why_no_more(struct job *j)
{
	return arena_strfmt(
		&j->arena,
		"what costs more than the %.1f fp32 passes of the search, for which at most %.0f %% of the "
		"latency could be saved; --max-trials N or --timeout S try more",
		search_spent(j->search), 100 * search_gain(j->search));
}

/* A search that ended for lack of plans says which it never proposes. */
static const char *what_is_untried(struct job *j)
{
	double size = space_size_log10(&j->o.lab->t->space, false);
	size_t n = search_n_trials(j->search), same = search_n_same(j->search);
	const char *left = search_left_untried(j->search);
	char all[32], alike[96] = "";

	if (search_limited(j->search) && j->o.kind->says_untried)
		return why_no_more(j);
	if (search_why(j->search) != SEARCH_EXHAUSTED || !j->o.kind->says_untried || !*left ||
	    log10((double)(n + same) + 1e-9) >= size - 1e-9)
		return NULL;
	snprintf(all, sizeof(all), size < 6 ? "%.0f" : "10^%.1f", size < 6 ? pow(10, size) : size);
	if (same)
		snprintf(alike, sizeof(alike), ", and %zu that come%s to the same models", same,
			 same == 1 ? "s" : "");
	return arena_strfmt(&j->arena, "of %s plans, %zu were tried%s; %s leaves out %s", all, n, alike,
			    j->o.strategy->name, left);
}

/* Weights in fewer bits than eight are no part of approach auto: trying them takes several fp32 passes, and gains only where memory is slow. */
static void note_few_rows(struct job *j)
{
	const struct op_list *ops = &j->o.lab->s->ops;
	const double batch = (double)deployed_batch(&j->o.lab->o.deployed, 0);
	double bytes = 0, macs = 0;
	size_t i;

	for (i = 0; i < ops->n; i++) {
		const double weights = (double)ops->v[i].inputs * (double)ops->v[i].outputs;

		if (ops->v[i].macs > 0 && batch * ops->v[i].macs <= FEW_ROWS * weights) {
			bytes += sizeof(float) * weights;
			macs += ops->v[i].macs;
		}
	}
	if (j->o.approach == APPROACH_AUTO && bytes >= MATRICES_LARGE && macs >= ops->total_macs / 2)
		job_note(j,
			 "each run reads %.0f MB of matrices for a few rows of data at most: weights in 2 to "
			 "8 bits "
			 "may be much faster than int8; --approach all tries these as well, but takes longer",
			 bytes / 1e6);
}

static enum fettle_status write_plan(struct job *j, const struct plan *p, struct err *err)
{
	char *plan = plan_text(p, &j->o.lab->t->space), *text = xstrfmt("%s\n", plan);
	enum fettle_status st;

	tuning_qplan(j->o.lab->t, p, &j->r.plan);
	j->r.plan_path = arena_strfmt(&j->arena, "%s/best_plan.json", j->o.workspace);
	st = file_write(j->r.plan_path, text, strlen(text), err);
	free(text);
	free(plan);
	return st;
}

/* The speed that is reported, for each batch. */
static enum fettle_status measure_speeds(struct job *j, const struct plan *best, struct err *err)
{
	struct lab *l = j->o.lab;
	const struct deployed *d = &l->o.deployed;
	struct job_result *r = &j->r;
	const bool rewritten = simplified_total(&l->s->rewritten) > 0;
	struct latency times[2];
	enum fettle_status st = FETTLE_OK;
	size_t i;

	for (i = 0; i < d->n_batches && !st; i++) {
		st = lab_time_to_report(l, best, i, times, err);
		if (st)
			break;
		r->speeds[i] = (struct job_speed){ .batch = d->batches[i],
						   .baseline = times[0].median,
						   .best = times[1].median,
						   .speedup = times[1].speedup };
		r->n_speeds++;
	}
	if (st)
		return st;
	if (!r->n_speeds)
		return FETTLE_OK;
	r->baseline.latency = r->speeds[0].baseline;
	r->best.latency = r->speeds[0].best;
	r->best.speedup = r->speeds[0].speedup;
	if (rewritten) { /* what came from the graph, and not from integers */
		st = lab_time_rewritten(l, times, err);
		if (st)
			return st;
		r->rewritten.latency =
			r->baseline.latency / times[1].speedup.value; /* maybe on fewer samples */
		r->rewritten.speedup = times[1].speedup;
		st = lab_size(l->s->m, &r->rewritten.size_bytes, err);
	}
	return st ? st : speedup_write(j->history, &r->best.speedup, err);
}

/* A model that is no faster is written all the same: the user learns why. Without a profile the speed alone is told. */
static void explain_speed(struct job *j, const struct plan *best)
{
	struct job_result *r = &j->r;

	if (r->best.speedup.low > 1 || !isfinite(r->best.speedup.high))
		return;
	if (slower_why(j->o.lab, best, &j->arena, &r->no_faster, NULL))
		r->no_faster = "it could not be profiled";
	r->would_help = slower_help(j->o.lab, &j->arena);
}

/* Ops that are in fp32 for speed, and not for accuracy. */
static void explain_modes(struct job *j)
{
	struct precisions *is = &j->r.precisions;
	size_t i;

	for (i = 0; i < is->n; i++)
		if (is->v[i].is == PRECISION_FP32 && is->v[i].reason == FP32_SEARCH &&
		    modes_slower(j->o.lab->modes, i)) {
			is->v[i].reason = FP32_NO_GAIN;
			is->v[i].why = "no slower in fp32, with its conversions";
		}
}

/* the best model and its plan, to where they belong */
static enum fettle_status write_best(struct job *j, const struct trial *best, struct err *err)
{
	struct lab *l = j->o.lab;
	struct job_result *r = &j->r;
	struct model *m;
	enum fettle_status st;

	st = lab_model(l, &best->plan, WEIGHTS_AS_PLANNED, &m, err);
	if (!st)
		st = model_save(m, j->o.output, err);
	if (!st)
		st = write_plan(j, &best->plan, err);
	if (!st && !must_be_brief(j))
		st = measure_speeds(j, &best->plan, err);
	note_few_rows(j);
	r->best.size_bytes = model_file_size(j->o.output);
	r->best.n_values = values_read(j->history, best->number, r->best.values);
	if (!st)
		st = lab_model(l, &best->plan, WEIGHTS_AS_PLANNED, &m, err);
	if (!st)
		st = precisions_of(&r->precisions, l->rt, l->s,
				   &(struct precisions_wanted){ j->o.approach, &l->t->base, &r->plan, m },
				   err);
	if (st)
		return st;
	explain_modes(j);
	r->predicted = modes_predicted(l, &best->plan);
	r->almost_nothing = why_almost_nothing(j, &best->plan);
	explain_speed(j, &best->plan);
	r->untried = what_is_untried(j);
	return FETTLE_OK;
}

static void fill_seconds(struct job *j)
{
	const struct lab *l = j->o.lab;
	struct job_result *r = &j->r;
	double pass = j->baseline.seconds > 0 ? j->baseline.seconds : 1;

	r->seconds = l->times;
	r->seconds_total = clock_now() - j->o.start;
	r->seconds_runtime = runtime_busy(l->rt) - j->o.busy;
	r->samples_evaluated = l->samples_evaluated;
	r->saved.early = l->saved.early / pass;
	r->saved.cuts = l->saved.cuts / pass;
	r->saved.repeated = l->examiner ? (double)search_n_same(j->search) * (double)r->samples_evaluated /
						  (double)(r->trials + 1) / (double)j->baseline.samples
					: 0; /* each as an average trial */
	r->saved.beside = l->saved.beside / pass;
}

static enum fettle_status measure_holdout(struct job *j, const struct trial *best, struct err *err)
{
	struct lab *l = j->o.lab;
	struct job_result *r = &j->r;
	struct evaluation e = { .reference = network_of(l->fp32),
				.feed = j->o.holdout,
				.metric = metric_twin(l->metric) };
	struct session *s;
	struct accuracy a, b;
	enum fettle_status st;

	e.net = e.reference;
	st = evaluate_accuracy(&e, &b, err);
	if (!st && metric_n_parts(e.metric)) /* fp32 on this data is what its losses are against */
		st = metric_set_base(e.metric, b.parts, l->o.relative, err);
	if (!st)
		st = metric_value(e.metric, &b.value, err);
	if (!st)
		st = lab_session(l, &best->plan, WEIGHTS_AS_PLANNED, &s, err);
	if (!st) {
		e.net = network_of(s);
		st = evaluate_accuracy(&e, &a, err);
	}
	metric_free(e.metric);
	if (st)
		return st;
	r->has_holdout = true;
	r->holdout = a.value;
	r->holdout_baseline = b.value;
	r->holdout_samples = a.samples;
	r->holdout_low = r->holdout_high = NAN;
	if (metric_type(l->metric)->bounded)
		share_interval(a.value, a.samples, &r->holdout_low, &r->holdout_high);
	return FETTLE_OK;
}

/* The best trial may have ended early: what is shown and kept of it is exact. */
static enum fettle_status evaluate_rest(struct job *j, const struct trial *best, struct err *err)
{
	struct accuracy a;
	enum fettle_status st;

	if (!best->score.early)
		return FETTLE_OK;
	if (must_be_brief(j)) {
		job_note(j, "trial %zu was not evaluated to its end: its %s is at %s %.6g", best->number,
			 j->o.metric, best->score.met == j->o.search.higher_is_better ? "least" : "most",
			 best->score.accuracy);
		return FETTLE_OK;
	}
	st = lab_finish(j->o.lab, &best->plan, &a, err);
	if (!st)
		st = values_write(j->history, best->number, a.parts, metric_n_parts(j->o.lab->metric), err);
	if (st)
		return st;
	search_set_best_accuracy(j->search, a.value);
	return history_complete_trial(j->history, best->number, best->score.met, a.value, best->score.loss,
				      err);
}

static void fill_result(struct job *j, const struct trial *best)
{
	struct job_result *r = &j->r;
	const size_t n = metric_n_parts(j->o.lab->metric);

	r->met = best->score.met;
	r->stop = search_why(j->search);
	r->trials = search_n_trials(j->search);
	r->best_trial = best->number;
	r->best_accuracy = best->score.accuracy;
	r->best.latency = NAN;
	r->predicted = NAN;
	r->best.speedup = (struct race_ratio){ NAN, 0, INFINITY };
	r->rewritten = r->best;
	r->baseline = (struct job_measure){
		.latency = NAN, .speedup = { 1, 1, 1 }, .size_bytes = j->o.lab->baseline_size, .n_values = n
	};
	memcpy(r->baseline.values, j->baseline.parts, n * sizeof(*r->baseline.values));
}

static void finish_board(struct job *j)
{
	const struct job_result *r = &j->r;
	const struct board_result result = { .best = r->best_trial,
					     .latency = r->best.latency,
					     .baseline_latency = r->baseline.latency,
					     .int8_share = r->precisions.int8_share };
	struct err why = ERR_INIT;

	if (j->o.tensorboard && !j->board_failed)
		job_board_status(j, board_finish(j->o.lab, j->o.workspace, &result, &why), &why);
}

/* No trial finished: better the default plan, unevaluated, than nothing; under a size budget, the smallest that was made. */
static void take_unevaluated(struct job *j, struct plan *out)
{
	struct lab *l = j->o.lab;
	const struct trial *smallest = NULL;
	size_t i;

	for (i = 1; l->o.size_budget && i <= search_n_trials(j->search); i++) {
		const struct trial *t = search_trial(j->search, i);

		if (t->size_bytes && (!smallest || t->size_bytes < smallest->size_bytes))
			smallest = t;
	}
	if (!smallest) {
		plan_init(out, &l->t->space);
		return;
	}
	plan_copy(out, &smallest->plan);
	job_note(j, "no model was within the size budget of %zu bytes: the smallest, of %zu, is written",
		 l->o.size_budget, smallest->size_bytes);
}

enum fettle_status job_finish(struct job *j, struct err *err)
{
	struct job_result *r = &j->r;
	const struct trial *best = j->o.kind->best(j);
	struct trial unevaluated = { .score = { .accuracy = NAN } };
	enum fettle_status st = FETTLE_OK;

	if (must_be_brief(j)) /* what is known is enough for a model, or there is none */
		runtime_stop(j->o.lab->rt);
	else
		runtime_go_on(j->o.lab->rt);
	if (!best) {
		take_unevaluated(j, &unevaluated.plan);
		best = &unevaluated;
	}
	st = evaluate_rest(j, best, err);
	if (st)
		goto out;
	fill_result(j, best);
	st = write_best(j, best, err);
	if (!st && j->o.holdout && !must_be_brief(j))
		st = measure_holdout(j, best, err);
	if (!st)
		st = pareto_front(j->history, &j->arena, &r->pareto, &r->n_pareto, err);
	if (!st)
		finish_board(j);
	fill_seconds(j);
	if (j->o.kind->finished)
		j->o.kind->finished(j);
	if (!st)
		st = history_set_result(j->history,
					&(struct history_result){ .met = r->met,
								  .stop = search_stop_word(r->stop),
								  .best_trial = best->number,
								  .output = j->o.output },
					err);
out:
	runtime_go_on(j->o.lab->rt);
	plan_release(&unevaluated.plan);
	return st;
}
