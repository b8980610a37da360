#include "cli/cli.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static int run_history(int argc, char **argv);
static int run_recover(int argc, char **argv);
static int run_strategies(int argc, char **argv);

const struct command cmd_history = {
	.name = "history",
	.args = "[WORKSPACE] [OPTION...]",
	.summary = "the trials of a run, also while it is in progress; or all runs",
	.run = run_history,
};

const struct command cmd_recover = {
	.name = "recover",
	.args = "WORKSPACE -o OUT.onnx [--trial K] [OPTION...]",
	.summary = "makes the model of the best trial, or any other, again; needs no data",
	.run = run_recover,
};

const struct command cmd_strategies = {
	.name = "strategies",
	.args = "[--json]",
	.summary = "the strategies of 'fettle tune'",
	.run = run_strategies,
};

static void show_run(const struct fettle_run *r, bool pareto)
{
	const char *const head[] = { "trial", "stage",   r->metric, "loss",    "latency",
				     "size",  "seconds", "",        "changed", "metrics" };
	struct table t;
	char buf[64], text[512];
	size_t i;

	print_wrapped(stdout, "%s: strategy %s, CPU %s, started %s, %s%s", r->model, r->strategy, r->cpu,
		      r->started, r->stop ? "ended: " : "going on, or cut off",
		      r->stop ? fettle_stop_word(r->stop) : "");
	printf("fp32 %s %s\n", r->metric,
	       values_text(r->metric, &r->baseline_values, r->baseline, text, sizeof(text)));
	if (isfinite(r->speedup))
		printf("speed-up of the result: %s\n",
		       human_speedup(r->speedup, r->speedup_low, r->speedup_high, buf, sizeof(buf)));
	putchar('\n');
	table_begin(&t, head, r->baseline_values.n ? 10 : 9, 0x7d);
	for (i = 0; i < r->n_trials; i++) {
		const struct fettle_trial *x = r->trials[i];

		if (pareto && !x->pareto)
			continue;
		table_cell(&t, "%zu", x->number);
		table_cell(&t, "%s", x->stage);
		table_cell(&t, "%s", trial_score(x, buf, sizeof(buf)));
		table_cell(&t, "%s", human_score(x->failed || x->early ? NAN : x->loss, buf, sizeof(buf)));
		table_cell(&t, isfinite(x->latency_ms) ? "%.3f ms" : "-", x->latency_ms);
		table_cell(&t, "%s",
			   x->size_bytes ? human_bytes((double)x->size_bytes, buf, sizeof(buf)) : "-");
		table_cell(&t, "%.2f", x->seconds);
		table_cell(&t, "%s%s%s%s", x->met ? "met" : "", x->number == r->best && x->met ? ", " : "",
			   x->number == r->best ? "best" : "", x->why ? x->why : "");
		table_cell(&t, "%s", x->changed);
		if (r->baseline_values.n)
			table_cell(&t, "%s", values_text(r->metric, &x->values, NAN, text, sizeof(text)));
	}
	table_print(&t);
}

/* ---- all runs ---- */

static int by_start(const void *a, const void *b)
{
	const struct fettle_run *const *x = a, *const *y = b;

	return strcmp((*x)->started, (*y)->started);
}

static void show_runs(struct fettle_run *const *v, size_t n)
{
	static const char *const head[] = {
		"started", "model", "strategy", "trials", "best", "", "workspace"
	};
	struct table t;
	char buf[64];
	size_t i;

	table_begin(&t, head, 7, 0x18);
	for (i = 0; i < n; i++) {
		const struct fettle_run *r = v[i];
		const struct fettle_trial *best = r->best_trial;
		const char *model = strrchr(r->model, '/');

		table_cell(&t, "%.16s", r->started);
		table_cell(&t, "%s", model ? model + 1 : r->model);
		table_cell(&t, "%s", r->strategy);
		table_cell(&t, "%zu", r->n_trials);
		table_cell(&t, best ? "%s %s" : "-", r->metric,
			   best ? trial_score(best, buf, sizeof(buf)) : "");
		table_cell(&t, "%s%s", r->met ? "met" : "not met",
			   r->stop      ? ""
			   : r->running ? ", in progress"
					: ", not ended");
		table_cell(&t, "%s", r->workspace);
	}
	table_print(&t);
}

/* A workspace that cannot be read is named; the others are listed. */
static int list_runs(struct fettle *f, bool json)
{
	struct fettle_run **runs;
	char **paths = NULL;
	size_t n_paths = 0, n = 0, i;
	enum fettle_status st = fettle_workspaces(f, NULL, &paths, &n_paths);
	int code = st ? library_error(f, st) : 0;

	runs = calloc(n_paths + 1, sizeof(*runs));
	if (!runs)
		abort();
	for (i = 0; i < n_paths; i++) {
		st = fettle_history(f, paths[i], &runs[n]);
		if (st)
			code = library_error(f, st);
		n += !st;
		free(paths[i]);
	}
	qsort(runs, n, sizeof(*runs), by_start);
	if (json)
		print_json(fettle_runs_json((const struct fettle_run *const *)runs, n));
	else if (n)
		show_runs(runs, n);
	else if (!code)
		print_wrapped(stdout, "no runs in fettle_workspace; 'fettle history WORKSPACE' shows one "
				      "that is elsewhere");
	for (i = 0; i < n; i++)
		fettle_run_free(runs[i]);
	free(runs);
	free(paths);
	return code;
}

static int run_history(int argc, char **argv)
{
	bool json = false, pareto = false;
	const struct cli_option options[] = {
		{ "pareto", NULL,
		  "only the trials that no other beats in accuracy and all objectives at once",
		  .flag = &pareto },
		{ "json", NULL, "print it as JSON, with every plan", .flag = &json },
	};
	struct fettle_run *r = NULL;
	const char *rest[16];
	enum fettle_status st;
	struct fettle *f;
	int n, code = 0;

	if (argc > 16)
		return usage_error(&cmd_history, "too many arguments");
	n = args_read(&cmd_history, options, 2, NULL, argc, argv, rest);
	if (n < 0)
		return args_exit(n);
	if (n > 1)
		return usage_error(&cmd_history, "one workspace at a time");
	if (!n && pareto)
		return usage_error(&cmd_history, "--pareto shows the trials of one run: give its WORKSPACE");
	f = fettle_new();
	st = n ? fettle_history(f, rest[0], &r) : FETTLE_OK;
	if (!n)
		code = list_runs(f, json);
	else if (st)
		code = library_error(f, st);
	else if (json)
		print_json(fettle_run_json(r, pareto));
	else
		show_run(r, pareto);
	fettle_run_free(r);
	fettle_free(f);
	return code;
}

static int run_recover(int argc, char **argv)
{
	struct fettle_recover_options o = FETTLE_RECOVER_OPTIONS_INIT;
	const struct cli_option options[] = {
		{ "trial", "K", "which trial; 'fettle history' lists them (the best)", .number = &o.trial },
		{ "output", "FILE", "where to write its model", .text = &o.output, .letter = 'o' },
		{ "model", "MODEL", "the fp32 model, if it is no longer where it was", .text = &o.model },
	};
	const char *rest[32];
	enum fettle_status st;
	struct fettle *f;
	int n, code = 0;

	if (argc > 32)
		return usage_error(&cmd_recover, "too many arguments");
	n = args_read(&cmd_recover, options, 3, NULL, argc, argv, rest);
	if (n < 0)
		return args_exit(n);
	if (n != 1)
		return usage_error(&cmd_recover, "which workspace?");
	if (!o.output)
		return usage_error(&cmd_recover, "where to, -o OUT.onnx?");
	f = fettle_new();
	o.workspace = rest[0];
	st = fettle_recover(f, &o);
	if (st)
		code = library_error(f, st);
	else if (o.trial)
		printf("wrote %s: the model of trial %zu\n", o.output, o.trial);
	else
		printf("wrote %s: the model of the best trial\n", o.output);
	fettle_free(f);
	return code;
}

static int run_strategies(int argc, char **argv)
{
	static const char *const head[] = { "strategy", "what it does" };
	bool json = false;
	const struct cli_option options[] = { { "json", NULL, "print it as JSON", .flag = &json } };
	const char *rest[16], *name, *summary;
	struct table t;
	size_t i;
	int n;

	if (argc > 16)
		return usage_error(&cmd_strategies, "too many arguments");
	n = args_read(&cmd_strategies, options, 1, NULL, argc, argv, rest);
	if (n)
		return n < 0 ? args_exit(n) : usage_error(&cmd_strategies, "it takes no arguments");
	if (json)
		return print_list("strategies");
	table_begin(&t, head, 2, 0);
	for (i = 0; (name = fettle_strategy_name(i, &summary)); i++) {
		table_cell(&t, "%s", name);
		table_cell(&t, "%s", summary);
	}
	table_print(&t);
	return 0;
}
