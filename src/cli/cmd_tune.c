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
	"code 1). Every trial is kept in the workspace; 'fettle resume' continues one that was stopped.\n"
	"'fettle strategies' lists the strategies; 'fettle quantize --help' says what DATA may be.\n"
	"Under mpirun, the trials are shared among the ranks (doc/MANY-MACHINES.md).\n";

static void show_saved(const struct fettle_tuned *t)
{
	const struct {
		const char *by;
		double passes;
	} ways[] = { { "verdicts that were certain early", t->saved->early },
		     { "starting where plans part", t->saved->cuts },
		     { "plans that gave a model tried before", t->saved->repeated },
		     { "trials side by side", t->saved->beside } };
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

static bool gain_is_demanded(const struct fettle_tuned *t)
{
	return t->higher_is_better ? t->target > t->baseline->accuracy : t->target < t->baseline->accuracy;
}

static void show_verdict(const struct fettle_tuned *t)
{
	char value[32], word[96];

	putchar('\n');
	if (isnan(t->target))
		print_wrapped(stdout,
			      "No target for %s was set (performance_only): the fastest after %zu trial%s "
			      "of strategy %s (%s)",
			      t->metric, t->trials, t->trials == 1 ? "" : "s", t->strategy, why_stopped(t));
	else
		print_wrapped(stdout, "%s: %s %s %s after %zu trial%s of strategy %s (%s)",
			      styled(stdout, t->met && !t->almost_nothing ? STYLE_GOOD : STYLE_BAD,
				     !t->met             ? "TARGET NOT MET"
				     : t->almost_nothing ? "Target met, but almost nothing could be quantized"
							 : "Target met",
				     word, sizeof(word)),
			      t->metric, t->higher_is_better ? "at least" : "at most",
			      human_score(t->target, value, sizeof(value)), t->trials,
			      t->trials == 1 ? "" : "s", t->strategy, why_stopped(t));
	if (t->untried)
		print_wrapped(stdout, "Untried: %s.", t->untried);
	if (!t->met && gain_is_demanded(t))
		print_wrapped(
			stdout,
			"A negative tolerance demands a gain over fp32, which does not meet it either.");
	else if (!t->met && t->best->trial)
		print_wrapped(stdout, "Of all that was tried, only fp32 meets it.");
	if (t->almost_nothing)
		print_wrapped(stdout, "Almost nothing is quantized (%.2g %% of the multiply-adds): %s.",
			      100 * t->best->int8_share, t->almost_nothing);
}

static void show_no_faster(const struct fettle_tuned *t)
{
	const bool slower = t->best->speedup_high < 1;
	char buf[64], word[64];

	if (!t->no_faster)
		return;
	print_wrapped(stdout, "%s: %s, measured on this CPU. Why: %s.",
		      styled(stdout, STYLE_BAD, slower ? "SLOWER THAN FP32" : "NO FASTER THAN FP32", word,
			     sizeof(word)),
		      human_speedup(t->best->speedup, t->best->speedup_low, t->best->speedup_high, buf,
				    sizeof(buf)),
		      t->no_faster);
	if (t->would_help)
		print_wrapped(stdout, "What may help: %s.", t->would_help);
	putchar('\n');
}

void show_tune_result(const struct fettle *f, const struct fettle_tuned *t, const char *model)
{
	double pass = t->fp32_pass_s > 0 ? t->fp32_pass_s : 1;
	char data[512];

	show_no_faster(t);
	show_models(t);
	show_verdict(t);
	if (t->recipes && *t->recipes)
		print_wrapped(stdout, "Recipes: %s", t->recipes);
	show_fp32(f);
	if (t->has_holdout && isfinite(t->holdout_low))
		printf("On %zu held-out samples: %.4f (95 %%: %.4f to %.4f), fp32 %.4f\n", t->holdout_samples,
		       t->holdout, t->holdout_low, t->holdout_high, t->holdout_baseline);
	else if (t->has_holdout)
		printf("On %zu held-out samples: %.6g, fp32 %.6g\n", t->holdout_samples, t->holdout,
		       t->holdout_baseline);
	print_wrapped(stdout,
		      "Time: %.1f s, or %.1f fp32 passes of %.2g s: prepare %.1f, calibrate %.1f, rank %.1f, "
		      "quantize %.1f, sessions %.1f, "
		      "evaluate %.1f, latency %.1f",
		      t->seconds->total, t->seconds->total / pass, t->fp32_pass_s, t->seconds->prepare,
		      t->seconds->calibrate, t->seconds->rank, t->seconds->quantize, t->seconds->session,
		      t->seconds->evaluate, t->seconds->latency);
	show_saved(t);
	printf("\nwrote %s%s\n", t->output,
	       t->met           ? ""
	       : t->best->trial ? " (the best seen, short of the target)"
	       : t->trials      ? " (not evaluated: every trial failed)"
				: " (the default plan, not evaluated: no trial finished)");
	if (t->stop == FETTLE_STOP_INTERRUPTED)
		printf("next: fettle resume %s\n", t->workspace);
	else if (!t->trials)
		printf("next: fettle resume %s --timeout S, with more time\n", t->workspace);
	else
		printf("next: fettle bench %s %s%s; fettle history %s\n", model, t->output,
		       bench_data(f, data, sizeof(data)), t->workspace);
}

static struct fettle_tune_options options_of(const struct tuner *u)
{
	struct fettle_tune_options o = *(const struct fettle_tune_options *)u->o;

	o.model = u->given;
	o.settings = u->settings;
	o.n_settings = u->n_settings;
	o.recipes = u->recipes.v;
	o.n_recipes = u->recipes.n;
	o.helper = "/proc/self/exe";
	o.ranks = true;
	return o;
}

static enum fettle_status tune(struct fettle *f, const struct tuner *u, struct fettle_tuned **out)
{
	struct fettle_tune_options o = options_of(u);

	return fettle_tune(f, &o, out);
}

static enum fettle_status config(struct fettle *f, const struct tuner *u, char **text)
{
	struct fettle_tune_options o = options_of(u);

	return fettle_tune_config(f, &o, text);
}

/* "45 s", "12 min", "3.4 h" */
static const char *human_seconds(double s, char *buf, size_t n)
{
	if (s < 1)
		snprintf(buf, n, "less than 1 s");
	else if (s < 90)
		snprintf(buf, n, "%.0f s", s);
	else if (s < 90 * 60)
		snprintf(buf, n, "%.0f min", s / 60);
	else
		snprintf(buf, n, "%.1f h", s / 3600);
	return buf;
}

static void show_fed(const struct fettle *f)
{
	static const char *const head[] = { "data for", "input",   "from",      "batches",
					    "type",     "samples", "transforms" };
	struct fettle_fed d = FETTLE_FED_INIT;
	struct table table;
	size_t i;

	table_begin(&table, head, 7, 1 << 5);
	for (i = 0; fettle_fed(f, i, &d); i++) {
		table_cell(&table, "%s", d.purpose);
		table_cell(&table, "%s", d.input);
		table_cell(&table, "%s", d.made ? d.made : d.array);
		table_cell(&table, "%s", d.shape);
		table_cell(&table, "%s", d.dtype);
		table_cell(&table, "%zu", d.samples);
		table_cell(&table, "%s", d.transforms ? d.transforms : "-");
	}
	if (i)
		table_print(&table);
}

static void show_times(const struct fettle_preview *p)
{
	char shortest[32], longest[32], pass[32];

	if (isnan(p->fp32_pass_s)) {
		print_wrapped(stdout, "Time: not known, for the evaluator was not run.");
		return;
	}
	human_seconds(p->shortest_s, shortest, sizeof(shortest));
	human_seconds(p->longest_s, longest, sizeof(longest));
	human_seconds(p->fp32_pass_s, pass, sizeof(pass));
	if (p->timeout > 0)
		print_wrapped(stdout, "Expected time: at most %s; one fp32 pass takes %s.", longest, pass);
	else if (isfinite(p->longest_s))
		print_wrapped(stdout,
			      "Expected time: about %s if the first plan meets the target, at most about %s "
			      "for all %zu "
			      "trials; one fp32 pass takes %s.",
			      shortest, longest, p->max_trials, pass);
	else
		print_wrapped(stdout,
			      "Expected time: about %s if the first plan meets the target, without a limit "
			      "if none does; "
			      "one fp32 pass takes %s.",
			      shortest, pass);
}

static void show_preview(const struct fettle *f, const struct fettle_preview *p)
{
	struct fettle_scoring s = FETTLE_SCORING_INIT;

	show_fed(f);
	if (fettle_scoring(f, &s))
		print_wrapped(stdout, "\nMetric: %s of %s, %s is better; %s tolerance %g", p->metric,
			      s.outputs, p->higher_is_better ? "higher" : "lower", p->criterion,
			      p->tolerance);
	else
		print_wrapped(stdout, "\nMetric: %s, %s is better; %s tolerance %g", p->metric,
			      p->higher_is_better ? "higher" : "lower", p->criterion, p->tolerance);
	print_wrapped(stdout, "Space: %zu ops with a choice, %s%.*f plans; strategy %s", p->n_ops,
		      p->log10_plans > 6 ? "10^" : "", p->log10_plans > 6 ? 1 : 0,
		      p->log10_plans > 6 ? p->log10_plans : pow(10, p->log10_plans), p->strategy);
	show_times(p);
	printf("Nothing was written.\n");
}

static enum fettle_status preview(struct fettle *f, const struct tuner *u)
{
	struct fettle_tune_options o = options_of(u);
	struct fettle_preview p = FETTLE_PREVIEW_INIT;
	enum fettle_status st = fettle_tune_preview(f, &o, &p);

	if (!st && u->json)
		print_json(fettle_preview_json(f, &p));
	else if (!st)
		show_preview(f, &p);
	return st;
}

static int run(int argc, char **argv)
{
	struct fettle_tune_options o = FETTLE_TUNE_OPTIONS_INIT;
	struct tuner u = { .command = &cmd_tune,
			   .details = details,
			   .run = tune,
			   .config = config,
			   .preview = preview,
			   .o = &o,
			   .show = show_tune_result };
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
		{ "--batch", "evaluation.performance.dataloader.batch_size", NULL },
		{ "--latency-threads", "evaluation.performance.configs.cores_per_instance", NULL },
		{ "--instances", "evaluation.performance.configs.num_of_instance", NULL },
	};
	const struct cli_option options[] = {
		{ "calib", "DATA", "samples to calibrate on", .text = &o.calib },
		{ "eval", "DATA", "labelled samples to evaluate on", .text = &o.eval },
		{ "metric", "METRIC", "as suits the labels, else cosine; 'fettle eval --help' lists them",
		  .text = &o.metric },
		{ "scores", "NAMES", "outputs that are scored (the one that fits the labels)",
		  .text = &o.scores },
		{ "eval-cmd", "CMD", "any program as evaluator: 'cmd {model}' prints one number",
		  .text = &o.eval_cmd },
		{ "eval-server", "CMD", "one that stays: a path per line in, a number per line out",
		  .text = &o.eval_server },
		{ "lower-is-better", NULL, "what the evaluator or metric gives is an error",
		  .flag = &o.lower_is_better },
		{ "config", "YAML", "configuration; options override it", .text = &o.config, .letter = 'c' },
		{ "recipe", "RECIPE[=VALUE]",
		  "always, or (=off) never, with this recipe; may be given several times ('fettle inspect "
		  "--recipes' lists them)",
		  .list = &u.recipes },
		{ "keep-fp32", "OPS", "leave these ops alone: names, types or /regular expressions/",
		  .text = &o.keep_fp32 },
		{ "capability", "YAML",
		  "what op types may be quantized to, instead of the built-in table; 'fettle inspect "
		  "--capability' prints that",
		  .text = &o.capability },
		{ "output", "FILE", "where to write the best model (WORKSPACE/best_model.onnx)",
		  .text = &o.output, .letter = 'o' },
		{ "strategy", "STRATEGY", "auto, basic, mse_v2, …: 'fettle strategies' lists them",
		  .text = &flags[0].value },
		{ "plugin", "FILE", "shared library with further strategies, metrics, losses and data",
		  .text = &u.plugin },
		{ "quant-level", "auto|0|1", "0: conservative; 1: the strategy (auto)",
		  .text = &flags[1].value },
		{ "approach", "static|dynamic|auto|weight_only|all",
		  "auto: static or dynamic, whatever is fastest, op by op; weight_only: weights in few bits, "
		  "floats "
		  "elsewhere; all: any of these (auto)",
		  .text = &o.approach },
		{ "size-budget", "SHARE|SIZE",
		  "find the most accurate model of at most this size: 0.3 of fp32's, 300MB",
		  .text = &o.size_budget },
		{ "bits", "2|4|8", "weight_only: of a weight, several as [4, 8] (each op its own)",
		  .text = &o.bits },
		{ "group-size", "16|32|64|128|256",
		  "weight_only: weights that share a scale (as suits each op)", .text = &o.group_size },
		{ "scheme", "asym|sym", "weight_only: with or without a zero point for each group (asym)",
		  .text = &o.scheme },
		{ "algorithm", "ALGORITHM", "weight_only: how weights are rounded (several are tried)",
		  .text = &o.algorithm },
		{ "accuracy-level", "0|1|4",
		  "weight_only: the runtime computes in floats (0, 1) or in int8 (4); 8 bits need 4 (4)",
		  .text = &o.accuracy_level },
		{ "format", "qdq|qoperator", "(qdq); if given, weight-only ops become pairs too",
		  .text = &o.format },
		{ "tolerance", "T", "accuracy that may be lost: 0.01 is one percent (0.01)",
		  .text = &flags[2].value },
		{ "criterion", "relative|absolute", "(relative)", .text = &flags[3].value },
		{ "objective", "performance|modelsize|footprint|accuracy",
		  "what the best is best in (performance)", .text = &flags[4].value },
		{ "max-trials", "N", "at most N trials, 0: no limit (100, or fewer if they gain too little)",
		  .text = &flags[5].value },
		{ "timeout", "TIME",
		  "keep looking for the fastest for so long: 600, 10m, 1h30m; 0: stop at the first that "
		  "meets the target (0)",
		  .text = &flags[6].value },
		{ "samples", "N", "calibration samples (100)", .number = &o.samples },
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
		  "evaluate every trial to its end, even when its verdict is certain before",
		  .flag = &o.no_early },
		{ "confidence", "P",
		  "for large data: accept verdicts that hold with this probability, e.g. 0.99",
		  .real = &o.confidence },
		{ "cpu", "CPU", "plan for another kind of CPU ('fettle inspect --cpus' lists them; this one)",
		  .text = &o.cpu },
		{ "threads", "N", "threads for the runtime (all cores)", .integer = &o.threads },
		{ "batch", "N[,N...]",
		  "samples per run when latency is measured; plans are chosen by the first, all are reported "
		  "(1)",
		  .text = &flags[9].value },
		{ "latency-threads", "N", "threads of each session when latency is measured (as --threads)",
		  .text = &flags[10].value },
		{ "instances", "N", "sessions that run at once when latency is measured (1)",
		  .text = &flags[11].value },
		{ "workspace", "DIR", "where the run is kept (fettle_workspace/<model>-<time>)",
		  .text = &o.workspace },
		{ "resume", NULL, "continue the run in the workspace", .flag = &o.resume },
		{ "broadcast-data", NULL, "under mpirun: send the data to ranks that cannot read it",
		  .flag = &o.broadcast_data },
		{ "tensorboard", NULL, "write event files for TensorBoard to WORKSPACE/tensorboard",
		  .flag = &u.tensorboard },
		{ "print-config", NULL, "print the configuration in force and where each value came from",
		  .flag = &u.print_config },
		{ "dry-run", NULL,
		  "say what would be fed, the metric, the size of the space and the expected time; write "
		  "nothing",
		  .flag = &u.dry_run },
		{ "json", NULL, "print the result as JSON", .flag = &u.json },
		{ "quiet", NULL, "no progress", .flag = &u.quiet },
	};

	u.options = options;
	u.n_options = sizeof(options) / sizeof(options[0]);
	u.flags = flags;
	u.n_flags = sizeof(flags) / sizeof(flags[0]);
	return tuner_main(&u, argc, argv);
}
