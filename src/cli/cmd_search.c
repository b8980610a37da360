#include "cli/cli.h"

#include <math.h>
#include <string.h>

static int run(int argc, char **argv);

const struct command cmd_search = {
	.name = "search",
	.args = "MODEL -c SEARCH.yaml --calib DATA [-o OUT.onnx] [OPTION...]",
	.summary = "finds the quantization settings that lose least: methods, types, recipes, fine-tuning",
	.run = run,
};

static const char details[] =
	"SEARCH.yaml lists what to try under search_space, in the words of AMD's Automatic Search. "
	"Candidates are\n"
	"listed best first, and get any of them with 'fettle recover WORKSPACE --trial K -o FILE'. It always "
	"ends\n"
	"with a model: the best (exit code 0), or else the best seen, short of the target (exit code 1).\n"
	"Without --eval, outputs are compared with the fp32 model's on the calibration data.\n"
	"Under mpirun, the trials are shared among the ranks (doc/MANY-MACHINES.md).\n";

static void show_candidates(const struct fettle_tuned *t)
{
	const char *const head[] = { "place", "trial", t->metric, "int8 share", "settings" };
	size_t n = t->n_candidates < 10 ? t->n_candidates : 10, i;
	struct table table;
	char buf[32];

	table_begin(&table, head, 5, 0xf);
	for (i = 0; i < n; i++) {
		const struct fettle_candidate *c = t->candidates[i];

		table_cell(&table, "%zu", i + 1);
		table_cell(&table, "%zu", c->trial);
		table_cell(&table, "%s", human_score(c->accuracy, buf, sizeof(buf)));
		table_cell(&table, "%.0f %%", 100 * c->int8_share);
		table_cell(&table, "%s", c->settings);
	}
	table_print(&table);
	if (n < t->n_candidates)
		printf("and %zu more: fettle history %s\n", t->n_candidates - n, t->workspace);
}

void show_search_result(const struct fettle *f, const struct fettle_tuned *t, const char *model)
{
	char target[192] = "", buf[32], word[64];

	(void)model;
	if (t->n_candidates) {
		show_candidates(t);
		printf("\n");
	}
	show_models(t);
	if (isfinite(t->target))
		snprintf(target, sizeof(target), " (%s %s %s)", t->metric,
			 t->higher_is_better ? "at least" : "at most",
			 human_score(t->target, buf, sizeof(buf)));
	printf("\n%s%s: %zu candidate%s after %zu trial%s of %zu settings (%s), %.1f s\n",
	       styled(stdout, t->met ? STYLE_GOOD : STYLE_BAD, t->met ? "Found" : "NONE GOOD ENOUGH", word,
		      sizeof(word)),
	       target, t->met ? t->n_candidates : 0, t->met && t->n_candidates == 1 ? "" : "s", t->trials,
	       t->trials == 1 ? "" : "s", t->space, why_stopped(t), t->seconds->total);
	show_fp32(f);
	printf("\nwrote %s%s\n", t->output,
	       t->met           ? ""
	       : t->best->trial ? " (the best seen, short of the target)"
				: " (the default plan, not evaluated: no trial finished)");
	if (t->stop == FETTLE_STOP_INTERRUPTED)
		printf("next: fettle resume %s\n", t->workspace);
	else
		printf("next: fettle recover %s --trial K -o FILE makes the model of any trial\n",
		       t->workspace);
}

static struct fettle_search_options options_of(const struct tuner *u)
{
	struct fettle_search_options o = *(const struct fettle_search_options *)u->o;

	o.model = u->given;
	o.settings = u->settings;
	o.n_settings = u->n_settings;
	o.helper = "/proc/self/exe";
	o.ranks = true;
	return o;
}

static enum fettle_status search(struct fettle *f, const struct tuner *u, struct fettle_tuned **out)
{
	struct fettle_search_options o = options_of(u);

	return fettle_auto_search(f, &o, out);
}

static enum fettle_status config(struct fettle *f, const struct tuner *u, char **text)
{
	struct fettle_search_options o = options_of(u);

	return fettle_search_config(f, &o, text);
}

static int run(int argc, char **argv)
{
	struct fettle_search_options o = FETTLE_SEARCH_OPTIONS_INIT;
	struct tuner u = { .command = &cmd_search,
			   .details = details,
			   .run = search,
			   .config = config,
			   .o = &o,
			   .show = show_search_result };
	struct flag flags[] = {
		{ "--metric", "search_metric", NULL },
		{ "--algo", "search_algo", NULL },
		{ "--tolerance", "search_tolerance", NULL },
		{ "--iteration-limit", "search_stop_condition.iteration_limit", NULL },
		{ "--time-limit", "search_stop_condition.time_limit", NULL },
		{ "--seed", "tuning.random_seed", NULL },
		{ "--log", "search_log_path", NULL },
		{ "--batch", "evaluation.performance.dataloader.batch_size", NULL },
		{ "--latency-threads", "evaluation.performance.configs.cores_per_instance", NULL },
		{ "--instances", "evaluation.performance.configs.num_of_instance", NULL },
	};
	const struct cli_option options[] = {
		{ "config", "YAML", "the search space and all else; options override it", .text = &o.config,
		  .letter = 'c' },
		{ "calib", "DATA", "samples to calibrate on", .text = &o.calib },
		{ "eval", "DATA", "samples to evaluate on (the calibration data)", .text = &o.eval },
		{ "metric", "METRIC",
		  "l1, l2, cosine, psnr, ssim: against the fp32 model's outputs; or any of 'fettle eval "
		  "--help' (l2)",
		  .text = &flags[0].value },
		{ "scores", "NAMES", "outputs that are scored (the one that fits the labels)",
		  .text = &o.scores },
		{ "eval-cmd", "CMD", "any program as evaluator: 'cmd {model}' prints one number",
		  .text = &o.eval_cmd },
		{ "eval-server", "CMD", "one that stays: a path per line in, a number per line out",
		  .text = &o.eval_server },
		{ "lower-is-better", NULL, "what the evaluator or metric gives is an error",
		  .flag = &o.lower_is_better },
		{ "plugin", "FILE", "shared library with further metrics and data", .text = &u.plugin },
		{ "output", "FILE", "where to write the best model (WORKSPACE/best_model.onnx)",
		  .text = &o.output, .letter = 'o' },
		{ "algo", "grid|random|tpe|gp|cmaes|nsga2|qmc",
		  "grid: cheap ones first; the others after random are samplers (grid)",
		  .text = &flags[1].value },
		{ "tolerance", "T", "what a candidate may lose; in dB for psnr: what it must reach",
		  .text = &flags[2].value },
		{ "iteration-limit", "N", "at most N trials, -1: no limit (1000)", .text = &flags[3].value },
		{ "time-limit", "TIME", "for all of it: 600, 10m, 1h30m; -1: no limit (-1)",
		  .text = &flags[4].value },
		{ "keep-fp32", "OPS", "leave these ops alone: names, types or /regular expressions/",
		  .text = &o.keep_fp32 },
		{ "samples", "N", "calibration samples (100)", .number = &o.samples },
		{ "eval-samples", "N", "only the first N evaluation samples", .number = &o.eval_samples },
		{ "seed", "N", "the same seed gives the same sequence of trials (9527)",
		  .text = &flags[5].value },
		{ "jobs", "N", "trials side by side, one thread each; auto: as many as cores (1)",
		  .text = &o.jobs },
		{ "cpu", "CPU", "plan for another kind of CPU ('fettle inspect --cpus' lists them; this one)",
		  .text = &o.cpu },
		{ "threads", "N", "threads for the runtime (all cores)", .integer = &o.threads },
		{ "batch", "N[,N...]",
		  "samples per run when latency is measured; plans are chosen by the first, all are reported "
		  "(1)",
		  .text = &flags[7].value },
		{ "latency-threads", "N", "threads of each session when latency is measured (as --threads)",
		  .text = &flags[8].value },
		{ "instances", "N", "sessions that run at once when latency is measured (1)",
		  .text = &flags[9].value },
		{ "workspace", "DIR", "where the run is kept (fettle_workspace/<model>-<time>)",
		  .text = &o.workspace },
		{ "resume", NULL, "continue the run in the workspace", .flag = &o.resume },
		{ "log", "FILE", "where the search is logged (WORKSPACE/auto_search.log)",
		  .text = &flags[6].value },
		{ "broadcast-data", NULL, "under mpirun: send the data to ranks that cannot read it",
		  .flag = &o.broadcast_data },
		{ "tensorboard", NULL, "write event files for TensorBoard to WORKSPACE/tensorboard",
		  .flag = &u.tensorboard },
		{ "print-config", NULL, "print the configuration in force and where each value came from",
		  .flag = &u.print_config },
		{ "json", NULL, "print the result as JSON", .flag = &u.json },
		{ "quiet", NULL, "no progress", .flag = &u.quiet },
	};

	u.options = options;
	u.n_options = sizeof(options) / sizeof(options[0]);
	u.flags = flags;
	u.n_flags = sizeof(flags) / sizeof(flags[0]);
	return tuner_main(&u, argc, argv);
}
