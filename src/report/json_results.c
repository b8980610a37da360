/* The results of single calls, and the lists of what there is, as JSON. */
#include "report/json.h"

#include <math.h>
#include <string.h>

static json_t *finetuned_json(const struct context *cx, const struct fettle_quantized *q)
{
	json_t *ops = json_array();
	size_t i;

	for (i = 0; i < cx->finetuned.n; i++) {
		const struct fettle_finetuned *op = &cx->finetuned.v[i];

		json_array_append_new(ops,
				      op->left ? json_pack("{s:s, s:s}", "name", op->name, "left", op->left)
					       : json_pack("{s:s, s:o, s:o, s:b}", "name", op->name, "before",
							   json_number(op->before), "after",
							   json_number(op->after), "kept", op->kept));
	}
	return json_pack("{s:I, s:I, s:I, s:o, s:o, s:o}", "tuned", (json_int_t)q->finetuned, "kept",
			 (json_int_t)q->finetune_kept, "left", (json_int_t)q->finetune_left, "error_before",
			 json_number(q->finetune_before), "error_after", json_number(q->finetune_after),
			 "ops", ops);
}

json_t *json_of_quantized(const struct context *cx, const struct fettle_quantized *q)
{
	double total = q->seconds_prepare + q->seconds_calibrate + q->seconds_quantize;
	json_t *j =
		json_pack("{s:s?, s:s, s:o, s:{s:I, s:I, s:I, s:I}, s:f, s:I, s:I, s:I, s:{s:f, s:f, s:f, "
			  "s:f}, s:o, s:o*}",
			  "output", q->output, "cpu", q->cpu, "saturates_on", json_names(q->saturates_on),
			  "ops", "int8", (json_int_t)q->ops_int8, "int16", (json_int_t)q->ops_int16,
			  "dynamic", (json_int_t)q->ops_dynamic, "fp32", (json_int_t)q->ops_fp32,
			  "int8_share", q->int8_share, "calib_samples", (json_int_t)q->calib_samples,
			  "size_before_bytes", (json_int_t)q->size_before, "size_bytes",
			  (json_int_t)q->size_after, "seconds", "total", total, "prepare", q->seconds_prepare,
			  "calibrate", q->seconds_calibrate, "quantize", q->seconds_quantize, "fp32_ops",
			  json_of_fp32(cx), "finetune", cx->finetuned.n ? finetuned_json(cx, q) : NULL);

	if (q->ops_weight_only) {
		json_object_set_new(json_object_get(j, "ops"), "weight_only",
				    json_integer((json_int_t)q->ops_weight_only));
		json_object_set_new(j, "weight_only_share", json_real(q->weight_only_share));
	}
	json_add_remarks(j, cx);
	return j;
}

json_t *json_of_score(const struct context *cx, const struct fettle_score *s)
{
	json_t *j = json_pack("{s:s, s:s, s:o, s:I, s:f}", "cpu", cpu_detect().name, "metric", s->metric,
			      "value", isfinite(s->value) ? json_real(s->value) : json_null(), "samples",
			      (json_int_t)s->samples, "seconds", s->seconds);

	json_add_values(j, s->metric, &s->values);
	json_add_remarks(j, cx);
	return j;
}

json_t *json_of_preview(const struct context *cx, const struct fettle_preview *p)
{
	json_t *j = json_pack("{s:s, s:s, s:b, s:s, s:f, s:I, s:I, s:I, s:f, s:I, s:f, s:o, s:o, s:o}",
			      "strategy", p->strategy, "metric", p->metric, "higher_is_better",
			      (int)p->higher_is_better, "criterion", p->criterion, "tolerance", p->tolerance,
			      "calib_samples", (json_int_t)p->calib_samples, "eval_samples",
			      (json_int_t)p->eval_samples, "ops", (json_int_t)p->n_ops, "log10_plans",
			      p->log10_plans, "max_trials", (json_int_t)p->max_trials, "timeout", p->timeout,
			      "fp32_pass_s", json_number(p->fp32_pass_s), "shortest_s",
			      json_number(p->shortest_s), "longest_s", json_number(p->longest_s));

	json_add_remarks(j, cx);
	return j;
}

json_t *json_of_timings(const char *const *models, size_t n, const struct fettle_timing *t)
{
	json_t *list = json_array();
	size_t i;

	for (i = 0; i < n; i++) {
		json_t *row =
			json_pack("{s:s, s:I, s:f, s:f, s:I, s:I, s:f, s:f, s:o, s:I}", "model", models[i],
				  "batch", (json_int_t)t[i].batch, "latency_ms", t[i].latency_ms, "p90_ms",
				  t[i].p90_ms, "size_bytes", (json_int_t)t[i].size_bytes, "footprint_bytes",
				  (json_int_t)t[i].footprint_bytes, "speedup", t[i].speedup, "speedup_low",
				  t[i].speedup_low, "speedup_high",
				  isfinite(t[i].speedup_high) ? json_real(t[i].speedup_high) : json_null(),
				  "runs", (json_int_t)t[i].runs);

		if (t[i].tokens_per_s > 0) {
			json_object_set_new(row, "past", json_integer((json_int_t)t[i].past));
			json_object_set_new(row, "tokens_per_s", json_real(t[i].tokens_per_s));
		}
		json_array_append_new(list, row);
	}
	return json_pack("{s:s, s:o}", "cpu", cpu_detect().name, "models", list);
}

static json_t *values_json(const struct fettle_value *const *v, size_t n)
{
	json_t *list = json_array();
	size_t i;

	for (i = 0; i < n; i++)
		json_array_append_new(list, json_pack("{s:s, s:s, s:s}", "name", v[i]->name, "dtype",
						      v[i]->dtype, "shape", v[i]->shape));
	return list;
}

json_t *json_of_inspection(const struct context *cx, const struct fettle_inspection *x)
{
	json_t *ops = json_array(), *notes = json_array();
	size_t i;

	for (i = 0; i < x->n_ops; i++) {
		const struct fettle_op *o = x->ops[i];
		json_t *modes = json_array();

		if (o->can_static)
			json_array_append_new(modes, json_string("static"));
		if (o->can_dynamic)
			json_array_append_new(modes, json_string("dynamic"));
		if (o->can_weight_only)
			json_array_append_new(modes, json_string("weight_only"));
		json_array_append_new(modes, json_string("fp32"));
		json_array_append_new(ops,
				      json_pack("{s:s, s:s, s:s?, s:o, s:s, s:s?, s:s?, s:f, s:i}", "name",
						o->name, "type", o->type, "kind", o->kind, "modes", modes,
						"default", o->by_default, "why_not", o->why_not, "why_fp32",
						o->why_fp32, "macs", o->macs, "block", o->block));
	}
	for (i = 0; i < cx->notes.n; i++)
		json_array_append_new(notes, json_string(cx->notes.v[i]));
	return json_pack(
		"{s:s, s:i, s:i, s:o, s:o, s:I, s:f, s:f, s:I, s:I, s:f, s:o, s:o}", "cpu", x->cpu, "opset",
		x->opset, "opset_of_file", x->opset_of_file, "inputs", values_json(x->inputs, x->n_inputs),
		"outputs", values_json(x->outputs, x->n_outputs), "weight_bytes", (json_int_t)x->weight_bytes,
		"macs", x->total_macs, "int8_share", x->int8_share, "blocks", (json_int_t)x->n_blocks, "cuts",
		(json_int_t)x->n_cuts, "log10_plans", x->log10_plans, "notes", notes, "ops", ops);
}

json_t *json_of_sensitivity(const struct context *cx, const struct fettle_sensitivity *s)
{
	json_t *list = json_array(), *j;
	size_t i;

	for (i = 0; i < s->n; i++) {
		const struct fettle_op_cost *o = s->ops[i];

		json_array_append_new(
			list, json_pack("{s:s, s:s, s:f, s:f, s:f, s:f, s:o, s:f}", "name", o->name, "type",
					o->type, "sqnr_db", o->sqnr_db, "model_sqnr_db", o->model_sqnr_db,
					"weight_share", o->weight_share, "clipping_share", o->clipping_share,
					"metric", isfinite(o->metric) ? json_real(o->metric) : json_null(),
					"macs_share", o->macs_share));
	}
	j = json_pack("{s:s, s:s, s:o, s:o}", "cpu", s->cpu, "metric", s->metric, "baseline",
		      isfinite(s->baseline) ? json_real(s->baseline) : json_null(), "ops", list);
	json_add_remarks(j, cx);
	return j;
}

json_t *json_of_recipes(void)
{
	json_t *all = json_array();
	struct fettle_recipe r;
	size_t i;

	for (i = 0; recipe_describe(i, &r); i++)
		json_array_append_new(all, json_pack("{s:s, s:s, s:s, s:s, s:b}", "name", r.name, "summary",
						     r.summary, "default", r.by_default, "values", r.values,
						     "tuned", (int)r.tuned));
	return all;
}

json_t *json_of_cpus(void)
{
	json_t *all = json_array();
	size_t i;

	for (i = 0; i < n_cpus; i++)
		json_array_append_new(all, json_pack("{s:s, s:s, s:b, s:b}", "name", cpus[i].name, "summary",
						     cpus[i].summary, "saturates", (int)cpus[i].saturates,
						     "here", strcmp(cpus[i].name, cpu_detect().name) == 0));
	return all;
}

json_t *json_of_strategies(void)
{
	json_t *all = json_object();
	size_t i;

	for (i = 0; strategy_at(i); i++)
		json_object_set_new(all, strategy_at(i)->name, json_string(strategy_at(i)->summary));
	return all;
}
