#include "cli/cli.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int run(int argc, char **argv);

const struct command cmd_tune = {
	.name = "tune",
	.args = "MODEL --calib DATA --eval DATA [-o OUT.onnx] [OPTION...]",
	.summary = "finds the fastest int8 model within the accuracy you can afford to lose",
	.run = run,
};

static const char details[] =
	"It always ends with a model: the best that met the target (exit code 0), or else the best seen "
	"(exit\n"
	"code 1). Every trial is kept in the workspace; a run that was stopped goes on with --resume.\n"
	"'fettle strategies' lists the strategies; 'fettle quantize --help' tells what DATA may be.\n";

static const char *best_sign(const struct fettle_progress_info *i)
{
	return !i->best_early ? "" : i->best_met == i->higher_is_better ? ">=" : "<=";
}

/* what the live line says until the next trial; least important last, for it may be cut off */
static void keep_trial(struct progress *p, const struct fettle_progress_info *i)
{
	const struct fettle_trial *t = i->trial;
	char limit[32] = "", left[32] = "", result[80] = "failed", best[64] = "", a[32], b[32];

	if (i->max_trials)
		snprintf(limit, sizeof(limit), " of %zu", i->max_trials);
	if (isfinite(i->seconds_left))
		snprintf(left, sizeof(left), "<%.0f s left, ", ceil(i->seconds_left));
	if (!t->failed)
		snprintf(result, sizeof(result), "%s %s %s", trial_score(t, a, sizeof(a)),
			 t->met ? "meets" : "misses", human_score(i->target, b, sizeof(b)));
	if (i->best)
		snprintf(best, sizeof(best), ", best %s%s%s", best_sign(i),
			 human_score(i->best_accuracy, a, sizeof(a)), i->best_met ? " met" : "");
	snprintf(p->trial, sizeof(p->trial), "%strial %zu%s: %s%s, %.200s", left, t->number, limit, result,
		 best, t->stage);
}

void show_trial(void *self, const struct fettle_progress_info *i)
{
	struct progress *p = self;
	const struct fettle_trial *t = i->trial;
	char limit[48] = "", left[64] = "", best[96] = "", value[32], target[32], top[32];

	if (p->quiet)
		return;
	keep_trial(p, i);
	if (p->live) {
		progress_show(p, "%.0f s, %s", i->seconds_used, p->trial);
		return;
	}
	if (i->max_trials)
		snprintf(limit, sizeof(limit), " of at most %zu", i->max_trials);
	if (isfinite(i->seconds_left))
		snprintf(left, sizeof(left), ", at most %.0f s left", i->seconds_left);
	if (i->best)
		snprintf(best, sizeof(best), ", best %s%s (trial %zu%s)", best_sign(i),
			 human_score(i->best_accuracy, top, sizeof(top)), i->best,
			 i->best_met ? ", met" : "");
	if (t->failed)
		progress_show(p, "trial %zu%s, %s: failed: %s", t->number, limit, t->stage, t->why);
	else if (isnan(t->accuracy))
		progress_show(p, "trial %zu%s, %s: %s", t->number, limit, t->stage, t->why);
	else
		progress_show(p, "trial %zu%s, %s: %s %s %s%s, %.0f s used%s", t->number, limit, t->stage,
			      trial_score(t, value, sizeof(value)), t->met ? "meets" : "misses",
			      human_score(i->target, target, sizeof(target)), best, i->seconds_used, left);
}

static json_t *number(double x)
{
	return isfinite(x) ? json_real(x) : json_null();
}

static json_t *measure_json(const struct fettle_measure *m)
{
	json_t *ops = json_object();

	if (m->ops_int8)
		json_object_set_new(ops, "int8", json_integer((json_int_t)m->ops_int8));
	if (m->ops_int16)
		json_object_set_new(ops, "int16", json_integer((json_int_t)m->ops_int16));
	if (m->ops_dynamic)
		json_object_set_new(ops, "dynamic", json_integer((json_int_t)m->ops_dynamic));
	json_object_set_new(ops, "fp32", json_integer((json_int_t)m->ops_fp32));
	return json_pack("{s:I, s:o, s:o, s:I, s:o, s:f, s:o}", "trial", (json_int_t)m->trial, "accuracy",
			 number(m->accuracy), "latency_ms", number(m->latency_ms), "size_bytes",
			 (json_int_t)m->size_bytes, "ops", ops, "int8_share", m->int8_share, "speedup",
			 number(m->speedup));
}

json_t *tuned_json(const struct fettle_tuned *t)
{
	json_t *fallen = json_array(), *j;
	size_t i;

	for (i = 0; i < t->n_fallen_back; i++)
		json_array_append_new(fallen, json_string(t->fallen_back[i]));
	j = json_pack("{s:b, s:s, s:s, s:s, s:o, s:o, s:o, s:I, s:f, s:o, s:I, s:s?, s:s, s:s?, s:o}", "met",
		      t->met, "stop", t->stop, "strategy", t->strategy, "metric", t->metric, "target",
		      number(t->target), "baseline", measure_json(&t->baseline), "best",
		      measure_json(&t->best), "trials", (json_int_t)t->trials, "fp32_pass_s", t->fp32_pass_s,
		      "seconds",
		      json_pack("{s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:f}", "total", t->seconds.total,
				"prepare", t->seconds.prepare, "calibrate", t->seconds.calibrate, "quantize",
				t->seconds.quantize, "session", t->seconds.session, "evaluate",
				t->seconds.evaluate, "latency", t->seconds.latency, "rank", t->seconds.rank,
				"runtime", t->seconds.runtime),
		      "samples_evaluated", (json_int_t)t->samples_evaluated, "output", t->output, "workspace",
		      t->workspace, "plan", t->plan, "fallen_back", fallen);
	json_object_set_new(j, "saved_passes",
			    json_pack("{s:f, s:f, s:f, s:f}", "early", t->saved.early, "cuts", t->saved.cuts,
				      "repeated", t->saved.repeated, "beside", t->saved.beside));
	if (t->has_holdout)
		json_object_set_new(j, "holdout",
				    json_pack("{s:f, s:o, s:o, s:f, s:I}", "accuracy", t->holdout, "low",
					      number(t->holdout_low), "high", number(t->holdout_high),
					      "baseline", t->holdout_baseline, "samples",
					      (json_int_t)t->holdout_samples));
	return j;
}

void show_row(struct table *table, const char *name, const struct fettle_measure *m)
{
	char buf[32];

	table_cell(table, "%s", name);
	table_cell(table, "%s", human_score(m->accuracy, buf, sizeof(buf)));
	table_cell(table, isfinite(m->latency_ms) ? "%.3f ms" : "-", m->latency_ms);
	table_cell(table, isfinite(m->speedup) ? "%.2fx" : "-", m->speedup);
	table_cell(table, "%s", human_bytes((double)m->size_bytes, buf, sizeof(buf)));
	table_cell(table, "%zu", m->ops_int8 + m->ops_dynamic);
	table_cell(table, "%zu", m->ops_fp32);
	table_cell(table, "%.0f %%", 100 * m->int8_share);
}

const char *why_stopped(const struct fettle_tuned *t)
{
	static const struct {
		const char *word, *text;
	} texts[] = { { "accuracy_met", "the target is met" },
		      { "max_trials", "all trials are used up" },
		      { "timeout", "the time is used up" },
		      { "interrupted", "it was interrupted" },
		      { "exhausted", "there is nothing more to try" } };
	size_t i;

	for (i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		if (strcmp(texts[i].word, t->stop) == 0)
			return texts[i].text;
	return t->stop;
}

static void show_saved(const struct fettle_tuned *t)
{
	const struct {
		const char *by;
		double passes;
	} ways[] = { { "verdicts that were certain early", t->saved.early },
		     { "starting where plans part", t->saved.cuts },
		     { "answers and calibrations kept", t->saved.repeated },
		     { "trials side by side", t->saved.beside } };
	const char *lead = "Saved, in fp32 passes:";
	size_t i;

	for (i = 0; i < sizeof(ways) / sizeof(ways[0]); i++)
		if (ways[i].passes >= 0.05) {
			printf("%s %.1f by %s", lead, ways[i].passes, ways[i].by);
			lead = ",";
		}
	if (*lead == ',')
		putchar('\n');
}

static void show_result(const struct fettle_tuned *t, const char *model)
{
	const char *const head[] = { "model", t->metric,  "latency",  "speed-up",
				     "size",  "int8 ops", "fp32 ops", "multiply-adds in int8" };
	struct table table;
	double pass = t->fp32_pass_s > 0 ? t->fp32_pass_s : 1, kept = 0;
	char target[32];
	size_t i;

	table_begin(&table, head, 8, 0xfe);
	show_row(&table, "fp32", &t->baseline);
	show_row(&table, t->met ? "best" : t->best.trial ? "best seen" : "default", &t->best);
	table_print(&table);
	printf("\n%s: %s %s %s after %zu trial%s of strategy %s (%s)\n",
	       t->met ? "Target met" : "TARGET NOT MET", t->metric,
	       t->higher_is_better ? "at least" : "at most", human_score(t->target, target, sizeof(target)),
	       t->trials, t->trials == 1 ? "" : "s", t->strategy, why_stopped(t));
	if (t->met && t->best.speedup < 1.02)
		printf("But it is no faster than fp32 on this CPU.\n");
	if (t->n_fallen_back) {
		for (i = 0; i < t->n_fallen_back; i++)
			kept += t->fallen_back_share[i];
		printf("Kept in fp32 (%zu, %.0f %% of the multiply-adds):", t->n_fallen_back, 100 * kept);
		for (i = 0; i < t->n_fallen_back && i < 12; i++)
			printf("%s %s", i ? "," : "", t->fallen_back[i]);
		printf("%s\n", t->n_fallen_back > 12 ? ", … (see the plan)" : "");
	}
	if (t->has_holdout && isfinite(t->holdout_low))
		printf("On %zu held-out samples: %.4f (95 %%: %.4f to %.4f), fp32 %.4f\n", t->holdout_samples,
		       t->holdout, t->holdout_low, t->holdout_high, t->holdout_baseline);
	else if (t->has_holdout)
		printf("On %zu held-out samples: %.6g, fp32 %.6g\n", t->holdout_samples, t->holdout,
		       t->holdout_baseline);
	printf("Time: %.1f s, or %.1f fp32 passes of %.2g s: prepare %.1f, calibrate %.1f, rank %.1f, "
	       "quantize %.1f, sessions %.1f, "
	       "evaluate %.1f, latency %.1f\n",
	       t->seconds.total, t->seconds.total / pass, t->fp32_pass_s, t->seconds.prepare,
	       t->seconds.calibrate, t->seconds.rank, t->seconds.quantize, t->seconds.session,
	       t->seconds.evaluate, t->seconds.latency);
	show_saved(t);
	printf("\nwrote %s%s\n", t->output,
	       t->met          ? ""
	       : t->best.trial ? " (the best seen, short of the target)"
	       : t->trials     ? " (the default plan, not evaluated: every trial failed)"
			       : " (the default plan, not evaluated: no trial came to its end)");
	if (strcmp(t->stop, "interrupted") == 0)
		printf("next: go on with the same command and --resume --workspace %s\n", t->workspace);
	else if (!t->trials)
		printf("next: go on with the same command, --resume --workspace %s and more time\n",
		       t->workspace);
	else
		printf("next: fettle bench %s %s; fettle history %s\n", model, t->output, t->workspace);
}

int print_config(const struct fettle_options *o, const char *plugin)
{
	struct fettle *f = fettle_new();
	char *text = NULL;
	enum fettle_status st = plugin ? fettle_load_plugin(f, plugin) : FETTLE_OK;
	int code = 0;

	if (!st)
		st = fettle_print_config(f, o, &text);
	if (st)
		code = library_error(f, st);
	else
		fputs(text, stdout);
	free(text);
	fettle_free(f);
	return code;
}

static int tune(struct fettle_options *o, const char *plugin, bool json, bool quiet)
{
	struct fettle *f = fettle_new();
	struct fettle_tuned *t = NULL;
	struct progress p;
	enum fettle_status st;
	int code;

	progress_begin(&p, f, quiet);
	fettle_on_trial(f, show_trial, &p);
	st = plugin ? fettle_load_plugin(f, plugin) : FETTLE_OK;
	if (!st)
		st = fettle_tune(f, o, &t);
	progress_end(&p);
	if (st) {
		code = library_error(f, st);
	} else {
		if (json)
			print_json(tuned_json(t));
		else
			show_result(t, o->model);
		code = t->met ? EXIT_MET : EXIT_NOT_MET;
		fettle_tuned_free(t);
	}
	fettle_free(f);
	return code;
}

size_t flags_given(const struct flag *v, size_t n, struct fettle_setting *out)
{
	size_t i, given = 0;

	for (i = 0; i < n; i++)
		if (v[i].value)
			out[given++] = (struct fettle_setting){ v[i].key, v[i].value, v[i].name };
	return given;
}

static int run(int argc, char **argv)
{
	struct fettle_options o = FETTLE_OPTIONS_INIT;
	struct text_list recipes = { .n = 0 };
	const char *plugin = NULL;
	bool json = false, quiet = false, show_config = false;
	struct flag flags[] = {
		{ "--strategy", "tuning.strategy", NULL },
		{ "--quant-level", "tuning.quant_level", NULL },
		{ "--tolerance", "tuning.accuracy_criterion.tolerable_loss", NULL },
		{ "--criterion", "tuning.accuracy_criterion.criterion", NULL },
		{ "--objective", "tuning.objective", NULL },
		{ "--max-trials", "tuning.exit_policy.max_trials", NULL },
		{ "--timeout", "tuning.exit_policy.timeout", NULL },
		{ "--seed", "tuning.random_seed", NULL },
		{ "--confidence-batches", "tuning.strategy_kwargs.confidence_batches", NULL },
	};
	enum { N_FLAGS = sizeof(flags) / sizeof(flags[0]) };
	struct fettle_setting settings[N_FLAGS];
	const struct option options[] = {
		{ "calib", "DATA", "samples to calibrate on", .text = &o.calib },
		{ "eval", "DATA", "labelled samples to evaluate on", .text = &o.eval },
		{ "metric", "M", "top1 with labels, else cosine; 'fettle eval --help' lists them",
		  .text = &o.metric },
		{ "eval-cmd", "CMD", "any program as evaluator: 'cmd {model}' prints a number",
		  .text = &o.eval_cmd },
		{ "config", "YAML", "configuration; options override it", .text = &o.config, .letter = 'c' },
		{ "recipe", "NAME[=VALUE]",
		  "always, or (=off) never, with this recipe; may be given several times\n('fettle inspect "
		  "--recipes' lists them)",
		  .list = &recipes },
		{ "keep-fp32", "OPS", "leave these ops alone: names, types or /regular expressions/",
		  .text = &o.keep_fp32 },
		{ "capability", "YAML",
		  "what op types may be quantized to, instead of the built-in\ntable; 'fettle inspect "
		  "--capability' prints that",
		  .text = &o.capability },
		{ "output", "FILE", "where to write the best model (WORKSPACE/best_model.onnx)",
		  .text = &o.output, .letter = 'o' },
		{ "strategy", "S", "auto, basic, mse_v2, …: 'fettle strategies' lists them",
		  .text = &flags[0].value },
		{ "plugin", "FILE", "shared library with further strategies and metrics", .text = &plugin },
		{ "quant-level", "L", "auto; 0: conservative; 1: the strategy (auto)",
		  .text = &flags[1].value },
		{ "approach", "A", "static, dynamic, auto (static)", .text = &o.approach },
		{ "format", "F", "qdq or qoperator (qdq)", .text = &o.format },
		{ "tolerance", "T", "accuracy that may be lost: 0.01 is one percent (0.01)",
		  .text = &flags[2].value },
		{ "criterion", "C", "relative or absolute (relative)", .text = &flags[3].value },
		{ "objective", "O", "performance, modelsize or footprint (performance)",
		  .text = &flags[4].value },
		{ "max-trials", "N", "at most so many trials, 0: no limit (100)", .text = &flags[5].value },
		{ "timeout", "S",
		  "seconds to go on for the fastest; 0: stop at the first\nthat meets the target (0)",
		  .text = &flags[6].value },
		{ "samples", "N", "calibration samples (100)", .number = &o.calib_samples },
		{ "eval-samples", "N", "only the first N evaluation samples", .number = &o.eval_samples },
		{ "holdout", "DATA", "samples nothing is chosen by, to measure the result on",
		  .text = &o.holdout },
		{ "seed", "N", "the same seed gives the same sequence of plans (9527)",
		  .text = &flags[7].value },
		{ "confidence-batches", "N", "mse_v2: batches an op is scored on (2)",
		  .text = &flags[8].value },
		{ "jobs", "N", "trials side by side, one thread each; auto: as many as cores (1)",
		  .text = &o.jobs },
		{ "cache", "SIZE", "memory for what trials have in common, 0: none (1G)", .text = &o.cache },
		{ "no-early", NULL,
		  "evaluate every trial to its end, even when its verdict is\ncertain before",
		  .flag = &o.no_early },
		{ "confidence", "P",
		  "for large data: verdicts that hold with this probability,\ne.g. 0.99, will do",
		  .real = &o.confidence },
		{ "threads", "N", "threads for the runtime (all cores)", .integer = &o.threads },
		{ "workspace", "DIR", "where the run is kept\n(fettle_workspace/<model>-<time>)",
		  .text = &o.workspace },
		{ "resume", NULL, "go on with the run in the workspace", .flag = &o.resume },
		{ "print-config", NULL, "print the configuration in force and where each value\ncame from",
		  .flag = &show_config },
		{ "json", NULL, "print the result as JSON", .flag = &json },
		{ "quiet", NULL, "no progress", .flag = &quiet },
	};
	const char *rest[128];
	int n;

	if (argc > 128)
		return usage_error(&cmd_tune, "too many arguments");
	n = args_read(&cmd_tune, options, sizeof(options) / sizeof(options[0]), details, argc, argv, rest);
	if (n < 0)
		return args_exit(n);
	if (n > 1 || (!n && !show_config))
		return usage_error(&cmd_tune, n ? "one model at a time" : "which model?");
	o.settings = settings;
	o.n_settings = flags_given(flags, N_FLAGS, settings);
	o.model = n ? rest[0] : NULL;
	o.recipes = recipes.v;
	o.n_recipes = recipes.n;
	o.helper = "/proc/self/exe";
	return show_config ? print_config(&o, plugin) : tune(&o, plugin, json, quiet);
}
