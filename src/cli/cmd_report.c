#include "cli/cli.h"

#include <errno.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/str.h"

static int run(int argc, char **argv);

const struct command cmd_report = {
	.name = "report",
	.args = "WORKSPACE [WORKSPACE...] [-o report.html] [OPTION...]",
	.summary = "a run as a page to look at, also while it is in progress; or several compared",
	.run = run,
};

static const char details[] =
	"The page is one file that needs no network: the verdict, how sensitive each op is, accuracy "
	"against\n"
	"latency and size, the trials in time, the graph by precision, and how to repeat the run. How "
	"sensitive ops\n"
	"are is computed from the run's own model and data, where these are still there: about as long as\n"
	"'fettle sensitivity' takes.\n";

/* --follow waits for a run to begin: so often, so long each time (ten seconds in all) */
enum { BEGIN_LOOKS = 100, BEGIN_WAIT_US = 100000 };

/* the program that opens pages on this system, without waiting for it */
static void open_page(const char *path)
{
	char *const args[] = { "xdg-open", (char *)path, NULL };
	extern char **environ;
	pid_t pid;

	if (posix_spawnp(&pid, args[0], NULL, NULL, args, environ))
		print_wrapped(stderr, "note: cannot open %s: there is no xdg-open; open it in a browser",
			      path);
}

/* Is none of the runs in progress, and how many trials have they? Says which were cut off. */
static enum fettle_status look(struct fettle *f, const struct fettle_report_options *o, bool *ended,
			       size_t *trials)
{
	struct str cut_off = STR_INIT;
	enum fettle_status st = FETTLE_OK;
	size_t i;

	*ended = true;
	*trials = 0;
	for (i = 0; i < o->n_workspaces && !st; i++) {
		struct fettle_run *r = NULL;

		st = fettle_history(f, o->workspaces[i], &r);
		if (st)
			break;
		*ended &= !r->running;
		*trials += r->n_trials;
		if (!r->running && !r->stop)
			str_addf(&cut_off,
				 "note: the run in %s was cut off after %zu trial%s; 'fettle resume %s' "
				 "continues it\n",
				 r->workspace, r->n_trials, r->n_trials == 1 ? "" : "s", r->workspace);
		fettle_run_free(r);
	}
	if (!st && *ended && cut_off.n)
		fputs(cut_off.s, stderr);
	str_release(&cut_off);
	return st;
}

/* A run that was started a moment ago may not have begun its history: waits for it. What is wrong after that is look()'s to report. */
static void wait_for_begin(struct fettle *f, const struct fettle_report_options *o, bool quiet)
{
	size_t i, left = BEGIN_LOOKS;
	struct fettle_run *r;

	for (i = 0; i < o->n_workspaces; i++) {
		for (r = NULL; fettle_history(f, o->workspaces[i], &r) && left; left--) {
			if (left == BEGIN_LOOKS && !quiet)
				fprintf(stderr, "waiting for a run to begin in %s\n", o->workspaces[i]);
			usleep(BEGIN_WAIT_US);
		}
		fettle_run_free(r);
	}
}

/* Writes the page again whenever a trial has ended, without what takes long, until the runs have ended or were cut off. Ctrl-C ends the process. */
static enum fettle_status follow(struct fettle *f, const struct fettle_report_options *o, bool quiet)
{
	struct fettle_report_options quick = *o;
	size_t trials, written = SIZE_MAX;
	bool ended = false;
	enum fettle_status st;

	quick.no_analysis = true;
	quick.refresh = 3;
	wait_for_begin(f, o, quiet);
	while (!(st = look(f, o, &ended, &trials)) && !ended) {
		if (trials != written) {
			st = fettle_report(f, &quick, NULL);
			if (st)
				break;
			if (!quiet)
				fprintf(stderr, "wrote %s: %zu trial%s, and the run is in progress\n",
					o->output, trials, trials == 1 ? "" : "s");
			written = trials;
		}
		usleep(500000);
	}
	return st;
}

static int run(int argc, char **argv)
{
	struct fettle_report_options o = FETTLE_REPORT_OPTIONS_INIT;
	bool csv = false, markdown = false, json = false, quiet = false, show = false, following = false;
	const struct cli_option options[] = {
		{ "output", "FILE", "where to write it (report.html; CSV, Markdown and JSON to stdout)",
		  .text = &o.output, .letter = 'o' },
		{ "open", NULL, "and open it in the browser", .flag = &show },
		{ "follow", NULL,
		  "write it again whenever a trial ends, until the run has ended or was cut off",
		  .flag = &following },
		{ "csv", NULL, "a row per trial, as CSV", .flag = &csv },
		{ "markdown", NULL, "the result and the trials as Markdown", .flag = &markdown },
		{ "json", NULL, "all that the page shows, as JSON", .flag = &json },
		{ "no-sensitivity", NULL, "leave out how sensitive each op is, which takes longest",
		  .flag = &o.no_sensitivity },
		{ "no-analysis", NULL, "only what the workspace has: neither model nor data is opened",
		  .flag = &o.no_analysis },
		{ "quiet", NULL, "no progress", .flag = &quiet },
	};
	const char *rest[64];
	struct progress p;
	char *text = NULL;
	enum fettle_status st;
	struct fettle *f;
	int n, code = 0;

	if (argc > 64)
		return usage_error(&cmd_report, "too many arguments");
	n = args_read(&cmd_report, options, sizeof(options) / sizeof(options[0]), details, argc, argv, rest);
	if (n < 0)
		return args_exit(n);
	if (!n)
		return usage_error(&cmd_report, "no workspace given: fettle report WORKSPACE");
	if (csv + markdown + json > 1)
		return usage_error(&cmd_report, "one of --csv, --markdown and --json at a time");
	if (show && (csv || markdown || json))
		return usage_error(&cmd_report,
				   "--open shows the page: not with --csv, --markdown or --json");
	if (following && (csv || markdown || json))
		return usage_error(&cmd_report,
				   "--follow writes the page: not with --csv, --markdown or --json");
	o.format = csv ? "csv" : markdown ? "markdown" : json ? "json" : "html";
	if (!o.output && !csv && !markdown && !json)
		o.output = "report.html";
	o.workspaces = rest;
	o.n_workspaces = (size_t)n;
	f = fettle_new();
	st = following ? follow(f, &o, quiet) : FETTLE_OK;
	if (!st) {
		progress_begin(&p, f, quiet);
		st = fettle_report(f, &o, o.output ? NULL : &text);
		progress_end(&p);
	}
	if (st)
		code = library_error(f, st);
	else if (text)
		fputs(text, stdout);
	else
		printf("wrote %s\n", o.output);
	if (!st && show)
		open_page(o.output);
	free(text);
	fettle_free(f);
	return code;
}
