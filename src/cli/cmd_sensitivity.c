#include "cli/cli.h"

#include <math.h>

static int run(int argc, char **argv);

const struct command cmd_sensitivity = {
	.name = "sensitivity",
	.args = "MODEL --calib DATA [--eval DATA] [OPTION...]",
	.summary = "how much each op costs when it alone is quantized, and why",
	.run = run,
};

static const char details[] = "Worst first, by the error of the model's output. 'output' is the error of the "
			      "op's own output in dB (higher\n"
			      "is better); 'weights' is their share of it, the rest is the activations'; "
			      "'clipped' is what ranges cut off,\n"
			      "the rest is rounding. With --eval also the metric when only this op is "
			      "quantized, for the 25 worst\nops (one evaluation each).\n";

static void as_table(const struct fettle_sensitivity *s)
{
	const char *const head[] = { "op",      "type",    "model",         "output",
				     "weights", "clipped", "multiply-adds", *s->metric ? s->metric : "" };
	struct table t;
	size_t i;

	table_begin(&t, head, *s->metric ? 8 : 7, 0xfc);
	for (i = 0; i < s->n; i++) {
		const struct fettle_op_cost *o = s->ops[i];

		table_cell(&t, "%s", o->name);
		table_cell(&t, "%s", o->type);
		table_cell(&t, "%.1f dB", o->model_sqnr_db);
		table_cell(&t, "%.1f dB", o->sqnr_db);
		table_cell(&t, "%.0f %%", 100 * o->weight_share);
		table_cell(&t, "%.0f %%", 100 * o->clipping_share);
		table_cell(&t, "%.1f %%", 100 * o->macs_share);
		if (*s->metric)
			table_cell(&t, isnan(o->metric) ? "-" : "%.4f", o->metric);
	}
	table_print(&t);
	if (*s->metric)
		printf("\nfp32 %s %.4f\n", s->metric, s->baseline);
}

static int run(int argc, char **argv)
{
	struct fettle_sensitivity_options o = FETTLE_SENSITIVITY_OPTIONS_INIT;
	bool json = false, quiet = false;
	const struct cli_option options[] = {
		{ "calib", "DATA", "samples to calibrate on", .text = &o.calib },
		{ "eval", "DATA", "labelled samples, for the effect on the metric", .text = &o.eval },
		{ "metric", "METRIC", "as suits the labels, else cosine", .text = &o.metric },
		{ "scores", "NAMES", "outputs that are scored (the one that fits the labels)",
		  .text = &o.scores },
		{ "config", "YAML", "configuration; options override it", .text = &o.config, .letter = 'c' },
		{ "samples", "N", "calibration samples (100)", .number = &o.samples },
		{ "eval-samples", "N", "only the first N evaluation samples", .number = &o.eval_samples },
		{ "cpu", "CPU", "plan for another kind of CPU ('fettle inspect --cpus' lists them; this one)",
		  .text = &o.cpu },
		{ "threads", "N", "threads for the runtime (all cores)", .integer = &o.threads },
		{ "json", NULL, "print the result as JSON", .flag = &json },
		{ "quiet", NULL, "no progress", .flag = &quiet },
	};
	struct fettle_sensitivity *s = NULL;
	const char *rest[64];
	struct progress p;
	enum fettle_status st;
	struct fettle *f;
	int n, code = 0;

	if (argc > 64)
		return usage_error(&cmd_sensitivity, "too many arguments");
	n = args_read(&cmd_sensitivity, options, sizeof(options) / sizeof(options[0]), details, argc, argv,
		      rest);
	if (n < 0)
		return args_exit(n);
	if (n != 1)
		return usage_error(&cmd_sensitivity, n ? "one model at a time" : "which model?");
	o.model = rest[0];
	f = fettle_new();
	progress_begin(&p, f, quiet);
	st = fettle_sensitivity(f, &o, &s);
	progress_end(&p);
	if (st)
		code = library_error(f, st);
	else if (json)
		print_json(fettle_sensitivity_json(f, s));
	else
		as_table(s);
	fettle_sensitivity_free(s);
	fettle_free(f);
	return code;
}
