#include "cli/cli.h"

#include <math.h>

static int run(int argc, char **argv);

const struct command cmd_eval = {
	.name = "eval",
	.args = "MODEL --data DATA [--metric M] [OPTION...]",
	.summary = "measures a model's accuracy",
	.run = run,
};

static void metric_help(char *buf, size_t n)
{
	const char *name, *summary;
	size_t i, used;

	used = (size_t)snprintf(buf, n, "Metrics (several: top1,f1; weighted: 0.7*top1,0.3*f1):\n");
	for (i = 0; (name = fettle_metric_name(i, &summary)) && used < n; i++)
		used += (size_t)snprintf(buf + used, n - used, "  %-13s %s\n", name, summary);
}

static void show_score(const struct fettle_score *s)
{
	char name[64], on[48] = "";
	size_t i;

	for (i = 0; i < s->values.n; i++)
		printf("%s %.6g\n", fettle_value_name(s->metric, i, name, sizeof(name)), s->values.v[i]);
	if (s->samples)
		snprintf(on, sizeof(on), " on %zu samples", s->samples);
	if (isnan(s->value) && s->values.n)
		printf("%zu metrics%s, %.2f s\n", s->values.n, on, s->seconds);
	else
		printf("%s %.6g%s, %.2f s\n", s->metric, s->value, on, s->seconds);
}

static int run(int argc, char **argv)
{
	struct fettle_eval_options o = FETTLE_EVAL_OPTIONS_INIT;
	const char *plugin = NULL;
	bool json = false, quiet = false;
	const struct cli_option options[] = {
		{ "data", "DATA", "samples, with labels unless --reference is given", .text = &o.data },
		{ "metric", "METRIC", "as suits the labels, else cosine; see below", .text = &o.metric },
		{ "scores", "NAMES", "outputs that are scored (the one that fits the labels)",
		  .text = &o.scores },
		{ "reference", "MODEL", "compare with this model's outputs instead of labels",
		  .text = &o.reference },
		{ "eval-cmd", "CMD", "any program as evaluator: 'cmd {model}' prints one number",
		  .text = &o.eval_cmd },
		{ "eval-server", "CMD", "one that stays: a path per line in, a number per line out",
		  .text = &o.eval_server },
		{ "config", "YAML", "configuration; options override it", .text = &o.config, .letter = 'c' },
		{ "samples", "N", "only the first N samples", .number = &o.samples },
		{ "batch", "N",
		  "samples per run of the model (32, fewer if their inputs take more than 2 MB)",
		  .number = &o.batch },
		{ "plugin", "FILE", "shared library with further metrics", .text = &plugin },
		{ "threads", "N", "threads for the runtime (all cores)", .integer = &o.threads },
		{ "json", NULL, "print the result as JSON", .flag = &json },
		{ "quiet", NULL, "no progress", .flag = &quiet },
	};
	char details[4096];
	const char *rest[64];
	struct fettle_score score = FETTLE_SCORE_INIT;
	struct progress p;
	enum fettle_status st;
	struct fettle *f;
	int n, code = 0;

	if (argc > 64)
		return usage_error(&cmd_eval, "too many arguments");
	metric_help(details, sizeof(details));
	n = args_read(&cmd_eval, options, sizeof(options) / sizeof(options[0]), details, argc, argv, rest);
	if (n < 0)
		return args_exit(n);
	if (n != 1)
		return usage_error(&cmd_eval, n ? "one model at a time" : "which model?");
	if (!o.data && !o.eval_cmd && !o.eval_server && !o.config)
		return usage_error(&cmd_eval, "on which data? give --data DATA or --eval-cmd CMD");
	o.model = rest[0];
	f = fettle_new();
	progress_begin(&p, f, quiet);
	st = plugin ? fettle_load_plugin(f, plugin) : FETTLE_OK;
	if (!st)
		st = fettle_eval(f, &o, &score);
	progress_end(&p);
	if (st)
		code = library_error(f, st);
	else if (json)
		code = print_json(fettle_score_json(f, &score));
	else
		show_score(&score);
	fettle_free(f);
	return code;
}
