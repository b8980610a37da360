/* The result of a run, and its history, as JSON. */
#include "report/json.h"

#include <math.h>

#include "tune/stop_words.h"

static void add_interval(json_t *j, double low, double high)
{
	if (!isfinite(high))
		return;
	json_object_set_new(j, "speedup_low", json_real(low));
	json_object_set_new(j, "speedup_high", json_real(high));
}

static json_t *measure_json(const struct fettle_measure *m, const char *metric)
{
	json_t *ops = json_object(), *j;

	if (m->ops_int8)
		json_object_set_new(ops, "int8", json_integer((json_int_t)m->ops_int8));
	if (m->ops_int16)
		json_object_set_new(ops, "int16", json_integer((json_int_t)m->ops_int16));
	if (m->ops_dynamic)
		json_object_set_new(ops, "dynamic", json_integer((json_int_t)m->ops_dynamic));
	if (m->ops_weight_only)
		json_object_set_new(ops, "weight_only", json_integer((json_int_t)m->ops_weight_only));
	json_object_set_new(ops, "fp32", json_integer((json_int_t)m->ops_fp32));
	j = json_pack("{s:I, s:o, s:o, s:I, s:o, s:f, s:o}", "trial", (json_int_t)m->trial, "accuracy",
		      json_number(m->accuracy), "latency_ms", json_number(m->latency_ms), "size_bytes",
		      (json_int_t)m->size_bytes, "ops", ops, "int8_share", m->int8_share, "speedup",
		      json_number(m->speedup));
	add_interval(j, m->speedup_low, m->speedup_high);
	json_add_values(j, metric, &m->values);
	return j;
}

static json_t *speeds_json(const struct fettle_tuned *t)
{
	json_t *list = json_array(), *j;
	size_t i;

	for (i = 0; i < t->n_speeds; i++) {
		const struct fettle_speed *s = t->speeds[i];

		j = json_pack("{s:I, s:f, s:f, s:f}", "batch", (json_int_t)s->batch, "baseline_latency_ms",
			      s->baseline_latency_ms, "latency_ms", s->latency_ms, "speedup", s->speedup);
		add_interval(j, s->speedup_low, s->speedup_high);
		json_array_append_new(list, j);
	}
	return list;
}

static json_t *numbers_json(const size_t *v, size_t n)
{
	json_t *list = json_array();
	size_t i;

	for (i = 0; i < n; i++)
		json_array_append_new(list, json_integer((json_int_t)v[i]));
	return list;
}

static void add_candidates(json_t *j, const struct fettle_tuned *t)
{
	json_t *list = json_array();
	size_t i;

	for (i = 0; i < t->n_candidates; i++) {
		const struct fettle_candidate *c = t->candidates[i];

		json_array_append_new(list, json_pack("{s:I, s:b, s:f, s:f, s:f, s:s}", "trial",
						      (json_int_t)c->trial, "met", c->met, "accuracy",
						      c->accuracy, "loss", c->loss, "int8_share",
						      c->int8_share, "settings", c->settings));
	}
	json_object_set_new(j, "space", json_integer((json_int_t)t->space));
	json_object_set_new(j, "candidates", list);
}

/* the fp32 model with its graph rewritten, and how */
static json_t *rewritten_json(const struct fettle_tuned *t)
{
	json_t *j = measure_json(t->rewritten, t->metric), *each = json_object();
	size_t i;

	json_object_del(j, "trial");
	json_object_del(j, "accuracy");
	for (i = 0; i < t->n_rewritings; i++)
		json_object_set_new(each, t->rewritings[i]->name,
				    json_integer((json_int_t)t->rewritings[i]->times));
	json_object_set_new(j, "rewritings", each);
	return j;
}

json_t *json_of_tuned(const struct context *cx, const struct fettle_tuned *t)
{
	json_t *j;

	j = json_pack("{s:b, s:s, s:s, s:s, s:o, s:o, s:o, s:I, s:f, s:o, s:I, s:s?, s:s, s:s?, s:o}", "met",
		      t->met, "stop", stop_word(t->stop), "strategy", t->strategy, "metric", t->metric,
		      "target", json_number(t->target), "baseline", measure_json(t->baseline, t->metric),
		      "best", measure_json(t->best, t->metric), "trials", (json_int_t)t->trials,
		      "fp32_pass_s", t->fp32_pass_s, "seconds",
		      json_pack("{s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:f}", "total", t->seconds->total,
				"prepare", t->seconds->prepare, "calibrate", t->seconds->calibrate,
				"quantize", t->seconds->quantize, "session", t->seconds->session, "evaluate",
				t->seconds->evaluate, "latency", t->seconds->latency, "rank",
				t->seconds->rank, "runtime", t->seconds->runtime),
		      "samples_evaluated", (json_int_t)t->samples_evaluated, "output", t->output, "workspace",
		      t->workspace, "plan", t->plan, "fp32_ops", json_of_fp32(cx));
	json_object_set_new(j, "saved_passes",
			    json_pack("{s:f, s:f, s:f, s:f}", "early", t->saved->early, "cuts",
				      t->saved->cuts, "repeated", t->saved->repeated, "beside",
				      t->saved->beside));
	if (isfinite(t->noise))
		json_object_set_new(j, "noise", json_real(t->noise));
	json_object_set_new(j, "speeds", speeds_json(t));
	json_object_set_new(j, "latency_threads", json_integer(t->latency_threads));
	json_object_set_new(j, "instances", json_integer((json_int_t)t->instances));
	json_object_set_new(j, "faster", json_boolean(t->best->speedup_low > 1));
	json_object_set_new(j, "predicted_speedup", json_number(t->predicted_speedup));
	if (t->rewritten)
		json_object_set_new(j, "rewritten", rewritten_json(t));
	json_object_set_new(j, "cpu", json_string(t->cpu));
	json_object_set_new(j, "measured_on", json_string(t->measured_on));
	json_object_set_new(j, "saturates_on", json_names(t->saturates_on));
	json_object_set_new(j, "recipes", json_string(t->recipes ? t->recipes : ""));
	json_object_set_new(j, "pareto", numbers_json(t->pareto, t->n_pareto));
	json_object_set_new(j, "almost_nothing",
			    t->almost_nothing ? json_string(t->almost_nothing) : json_null());
	json_object_set_new(j, "no_faster", t->no_faster ? json_string(t->no_faster) : json_null());
	json_object_set_new(j, "would_help", t->would_help ? json_string(t->would_help) : json_null());
	json_object_set_new(j, "untried", t->untried ? json_string(t->untried) : json_null());
	if (t->has_holdout)
		json_object_set_new(j, "holdout",
				    json_pack("{s:f, s:o, s:o, s:f, s:I}", "accuracy", t->holdout, "low",
					      json_number(t->holdout_low), "high",
					      json_number(t->holdout_high), "baseline", t->holdout_baseline,
					      "samples", (json_int_t)t->holdout_samples));
	if (t->ranks)
		json_object_set_new(
			j, "ranks",
			json_pack("{s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I}", "ranks",
				  (json_int_t)t->ranks->ranks, "trials", (json_int_t)t->ranks->trials,
				  "given_twice", (json_int_t)t->ranks->given_twice, "bytes",
				  (json_int_t)t->ranks->bytes, "most_bytes", (json_int_t)t->ranks->most_bytes,
				  "plan_bytes", (json_int_t)t->ranks->plan_bytes, "pieces",
				  (json_int_t)t->ranks->pieces, "piece_bytes",
				  (json_int_t)t->ranks->piece_bytes, "ahead", (json_int_t)t->ranks->ahead));
	json_add_remarks(j, cx);
	if (t->is_search)
		add_candidates(j, t);
	return j;
}

/* with `pareto`, only the trials on the front */
json_t *json_of_run(const struct fettle_run *r, bool pareto)
{
	json_t *list = json_array(), *j;
	size_t i;

	for (i = 0; i < r->n_trials; i++) {
		const struct fettle_trial *t = r->trials[i];

		if (pareto && !t->pareto)
			continue;
		json_array_append_new(
			list, json_pack("{s:I, s:s, s:s, s:b, s:b, s:s, s:o, s:o, s:o, s:o, s:o, s:I, s:I, "
					"s:f, s:b, s:o}",
					"trial", (json_int_t)t->number, "stage", t->stage, "changed",
					t->changed, "failed", t->failed, "met", t->met, "why", t->why,
					"accuracy", json_number(t->early ? NAN : t->accuracy), "accuracy_low",
					json_number(t->accuracy_low), "accuracy_high",
					json_number(t->accuracy_high), "loss",
					json_number(t->early ? NAN : t->loss), "latency_ms",
					json_number(t->latency_ms), "size_bytes", (json_int_t)t->size_bytes,
					"samples", (json_int_t)t->samples, "seconds", t->seconds, "pareto",
					t->pareto, "plan", json_loads(t->plan, 0, NULL)));
		json_add_values(json_array_get(list, json_array_size(list) - 1), r->metric, &t->values);
		if (t->rank >= 0)
			json_object_update_new(json_array_get(list, json_array_size(list) - 1),
					       json_pack("{s:i, s:i}", "rank", t->rank, "worker", t->worker));
		if (t->footprint_bytes)
			json_object_set_new(json_array_get(list, json_array_size(list) - 1),
					    "footprint_bytes", json_integer((json_int_t)t->footprint_bytes));
	}
	j = json_pack("{s:s, s:s, s:s, s:s, s:s, s:s, s:s?, s:b, s:o, s:I, s:o}", "model", r->model, "cpu",
		      r->cpu, "measured_on", r->measured_on, "strategy", r->strategy, "metric", r->metric,
		      "started", r->started, "stop", stop_word(r->stop), "met", r->met, "baseline",
		      json_number(r->baseline), "best", (json_int_t)r->best, "trials", list);
	json_object_set_new(j, "running", json_boolean(r->running));
	json_object_set_new(j, "speedup", json_number(r->speedup));
	add_interval(j, r->speedup_low, r->speedup_high);
	json_add_values(j, r->metric, &r->baseline_values);
	return j;
}

json_t *json_of_runs(const struct fettle_run *const *v, size_t n)
{
	json_t *list = json_array();
	size_t i;

	for (i = 0; i < n; i++) {
		const struct fettle_run *r = v[i];
		const struct fettle_trial *best = r->best_trial;

		json_array_append_new(
			list,
			json_pack("{s:s, s:s, s:s, s:s, s:s, s:s?, s:I, s:I, s:o, s:b}", "workspace",
				  r->workspace, "model", r->model, "started", r->started, "strategy",
				  r->strategy, "metric", r->metric, "stop", stop_word(r->stop), "trials",
				  (json_int_t)r->n_trials, "best", (json_int_t)r->best, "accuracy",
				  json_number(best && !best->early ? best->accuracy : NAN), "met", r->met));
	}
	return list;
}
