/* A job's result and its trials, as the caller gets them. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/internal.h"
#include "base/str.h"
#include "tune/ranks.h"
#include "tune/settings_job.h"
#include "tune/stop_words.h"

/* the result, with what it points to */
struct tuned {
	struct fettle_tuned pub;
	struct fettle_measure baseline, best, rewritten;
	struct fettle_seconds seconds;
	struct fettle_saved saved;
	struct fettle_ranks ranks;
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

void tuned_tell_trial(void *self, const struct job_progress *p)
{
	const struct tune_call *call = self;
	const struct job_request *u = &call->u;
	const struct fettle *f = call->f;
	const struct trial *t = p->trial, *best = p->best;
	const struct fettle_trial trial = {
		.size = sizeof(trial),
		.number = t->number,
		.stage = p->text,
		.failed = t->score.failed,
		.met = t->score.met,
		.why = t->why,
		.accuracy = t->score.accuracy,
		.loss = t->score.loss,
		.early = t->score.early,
		.accuracy_low = t->score.low,
		.accuracy_high = t->score.high,
		.latency_ms = 1e3 * t->latency,
		.size_bytes = t->size_bytes,
		.samples = t->samples,
		.seconds = t->seconds,
		.values = values_of(t->values, t->score.early ? 0 : metric_n_parts(u->run.lab.metric)),
		.rank = u->ranks || u->run.lab.o.jobs > 1 ? t->rank : -1,
		.worker = u->ranks || u->run.lab.o.jobs > 1 ? (int)t->worker : -1,
	};
	const struct fettle_progress_info info = {
		.size = sizeof(info),
		.trial = &trial,
		.max_trials = u->job.search.max_trials,
		.baseline = p->baseline,
		.target = p->target,
		.higher_is_better = u->run.higher_is_better,
		.best = best ? best->number : 0,
		.best_accuracy = best ? best->score.accuracy : NAN,
		.best_met = best && best->score.met,
		.best_early = best && best->score.early,
		.seconds_used = p->seconds_used,
		.seconds_left = p->seconds_left,
		.ranks = p->ranks,
	};

	if (f->on_trial)
		f->on_trial(f->on_trial_self, &info);
}

static struct fettle_measure measure_of(const struct job_measure *m, size_t trial, double accuracy)
{
	return (struct fettle_measure){ .trial = trial,
					.accuracy = accuracy,
					.latency_ms = 1e3 * m->latency,
					.speedup = m->speedup.value,
					.speedup_low = m->speedup.low,
					.speedup_high = m->speedup.high,
					.size_bytes = m->size_bytes,
					.values = values_of(m->values, m->n_values) };
}

static void copy_speeds(struct tuned *out, const struct deployed *d, const struct job_result *r)
{
	struct fettle_tuned *t = &out->pub;
	struct fettle_speed *v = arena_alloc(&out->arena, (r->n_speeds + 1) * sizeof(*v));
	size_t i;

	for (i = 0; i < r->n_speeds; i++)
		v[i] = (struct fettle_speed){ .batch = r->speeds[i].batch,
					      .latency_ms = 1e3 * r->speeds[i].best,
					      .baseline_latency_ms = 1e3 * r->speeds[i].baseline,
					      .speedup = r->speeds[i].speedup.value,
					      .speedup_low = r->speeds[i].speedup.low,
					      .speedup_high = r->speeds[i].speedup.high };
	t->speeds = sized_list(&out->arena, v, r->n_speeds, sizeof(*v));
	t->n_speeds = r->n_speeds;
	t->latency_threads = d->threads;
	t->instances = d->instances;
}

/* by precision, as the runtime computes them */
static void copy_precisions(struct tuned *out, const struct job_request *u, const struct job_result *r)
{
	struct fettle_tuned *t = &out->pub;
	const struct precisions *is = &r->precisions;
	struct str recipes = STR_INIT;

	out->best.ops_int8 = is->int8;
	out->best.ops_int16 = is->int16;
	out->best.ops_dynamic = is->dynamic;
	out->best.ops_weight_only = is->weight;
	out->best.weight_only_share = is->weight_share;
	out->best.ops_fp32 = is->fp32;
	out->best.int8_share = is->int8_share;
	out->baseline.ops_fp32 = is->int8 + is->int16 + is->dynamic + is->weight + is->fp32;
	context_keep_precisions(u->run.cx, is, u->run.lab.s);
	recipes_text(&r->plan.recipes, &recipes);
	t->recipes = arena_strdup(&out->arena, recipes.s ? recipes.s : "");
	str_release(&recipes);
	t->cpu = u->run.cx->cpu.name;
	t->measured_on = cpu_detect().name;
	context_saturates_on(u->run.cx, &r->plan, &u->run.lab.s->ops, t->saturates_on,
			     sizeof(t->saturates_on));
}

static void copy_rewritten(struct tuned *out, const struct subject *s, const struct job_result *r)
{
	struct fettle_tuned *t = &out->pub;
	struct fettle_rewriting *all = arena_alloc(&out->arena, SIMPLIFICATIONS * sizeof(*all));
	size_t i, n = 0;

	for (i = 0; i < SIMPLIFICATIONS; i++)
		if (s->rewritten.n[i])
			all[n++] = (struct fettle_rewriting){ .name = simplifications[i]->name,
							      .summary = simplifications[i]->summary,
							      .times = s->rewritten.n[i] };
	t->rewritings = sized_list(&out->arena, all, n, sizeof(*all));
	t->n_rewritings = n;
	out->rewritten = measure_of(&r->rewritten, 0, NAN);
	out->rewritten.size = sizeof(out->rewritten);
	out->rewritten.ops_fp32 = out->baseline.ops_fp32;
	t->rewritten = n ? &out->rewritten : NULL;
}

static void copy_costs(struct tuned *t, const struct job_result *r)
{
	const struct lab_times *s = &r->seconds;

	t->seconds.total = r->seconds_total;
	t->seconds.prepare = s->prepare;
	t->seconds.calibrate = s->calibrate;
	t->seconds.quantize = s->quantize;
	t->seconds.session = s->session;
	t->seconds.evaluate = s->evaluate;
	t->seconds.latency = s->latency;
	t->seconds.rank = s->rank;
	t->seconds.runtime = r->seconds_runtime;
	t->pub.samples_evaluated = r->samples_evaluated;
	t->saved.early = r->saved.early;
	t->saved.cuts = r->saved.cuts;
	t->saved.repeated = r->saved.repeated;
	t->saved.beside = r->saved.beside;
}

static void copy_result(struct tuned *out, const struct job_request *u, const struct job_result *r)
{
	struct fettle_tuned *t = &out->pub;
	struct arena *a = &out->arena;
	size_t *pareto = arena_alloc(a, (r->n_pareto + 1) * sizeof(*pareto));

	t->met = r->met;
	t->is_search = u->job.kind == &job_settings;
	t->model = arena_strdup(a, u->job.model);
	t->higher_is_better = u->run.higher_is_better;
	snprintf(t->metric, sizeof(t->metric), "%s", u->run.metric);
	t->stop = stop_of_word(search_stop_word(r->stop));
	t->strategy = u->job.strategy->name;
	t->target = r->target;
	t->noise = r->noise;
	t->trials = r->trials;
	t->fp32_pass_s = r->baseline_accuracy.seconds;
	out->baseline = measure_of(&r->baseline, 0, r->baseline_accuracy.value);
	out->best = measure_of(&r->best, r->best_trial, r->best_accuracy);
	t->workspace = arena_strdup(a, u->run.workspace);
	t->output = arena_strdup(a, u->output);
	t->plan = arena_strdup(a, r->plan_path);
	t->almost_nothing = r->almost_nothing ? arena_strdup(a, r->almost_nothing) : NULL;
	t->no_faster = r->no_faster ? arena_strdup(a, r->no_faster) : NULL;
	t->would_help = r->would_help ? arena_strdup(a, r->would_help) : NULL;
	t->predicted_speedup = r->predicted;
	t->untried = r->untried ? arena_strdup(a, r->untried) : NULL;
	t->has_holdout = r->has_holdout;
	t->holdout = r->holdout;
	t->holdout_low = r->holdout_low;
	t->holdout_high = r->holdout_high;
	t->holdout_baseline = r->holdout_baseline;
	t->holdout_samples = r->holdout_samples;
	if (r->n_pareto)
		memcpy(pareto, r->pareto, r->n_pareto * sizeof(*pareto));
	t->pareto = pareto;
	t->n_pareto = r->n_pareto;
	copy_precisions(out, u, r);
	copy_speeds(out, &u->run.lab.o.deployed, r);
	copy_rewritten(out, u->run.lab.s, r);
	copy_costs(out, r);
}

static void copy_candidates(struct tuned *out, const struct settings_job *s)
{
	struct fettle_candidate *to = arena_alloc(&out->arena, (s->n_candidates + 1) * sizeof(*to));
	size_t i;

	for (i = 0; i < s->n_candidates; i++) {
		const struct candidate *c = &s->candidates[i];

		to[i] = (struct fettle_candidate){ .trial = c->trial,
						   .met = c->met,
						   .accuracy = c->accuracy,
						   .loss = c->loss,
						   .int8_share = c->int8_share,
						   .settings = arena_strdup(&out->arena, c->settings) };
	}
	out->pub.candidates = sized_list(&out->arena, to, s->n_candidates, sizeof(*to));
	out->pub.n_candidates = s->n_candidates;
	out->pub.space = s->list->n;
}

static void copy_ranks(struct tuned *t, const struct ranks *r)
{
	const struct ranks_stats s = ranks_stats(r);

	t->ranks = (struct fettle_ranks){ .size = sizeof(t->ranks),
					  .ranks = s.ranks,
					  .trials = s.trials,
					  .given_twice = s.given_twice,
					  .bytes = s.bytes,
					  .most_bytes = s.most_bytes,
					  .plan_bytes = s.plan_bytes,
					  .pieces = s.pieces,
					  .piece_bytes = s.piece_bytes,
					  .ahead = s.ahead };
	t->pub.ranks = r ? &t->ranks : NULL;
}

struct fettle_tuned *tuned_new(const struct job_request *u)
{
	struct tuned *t = xcalloc(1, sizeof(*t));

	copy_result(t, u, job_result(u->j));
	if (t->pub.is_search)
		copy_candidates(t, u->job.kind_self);
	t->baseline.size = sizeof(t->baseline);
	t->best.size = sizeof(t->best);
	t->seconds.size = sizeof(t->seconds);
	t->saved.size = sizeof(t->saved);
	t->pub.size = sizeof(t->pub);
	t->pub.baseline = &t->baseline;
	t->pub.best = &t->best;
	t->pub.seconds = &t->seconds;
	t->pub.saved = &t->saved;
	copy_ranks(t, u->ranks);
	return &t->pub;
}
