/* What is being done, on stderr while it is done. */
#include "cli/cli.h"

#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>
#include <unistd.h>

static volatile sig_atomic_t interrupted;
static struct fettle *volatile in_progress; /* a signal may end its call */

static void on_interrupt(int sig)
{
	(void)sig;
	if (interrupted)
		_exit(130); /* asked twice: at once */
	interrupted = 1;
	if (in_progress)
		fettle_interrupt(in_progress);
}

static double now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + 1e-9 * (double)ts.tv_nsec;
}

static void clear_line(struct progress *p)
{
	if (p->shown)
		fputs("\r\033[K", stderr);
	p->shown = false;
}

/* what is fed to the model, and what of its outputs is scored */
static void show_data(struct progress *p)
{
	struct fettle_scoring s = FETTLE_SCORING_INIT;
	struct fettle_fed d = FETTLE_FED_INIT;
	const char *lead = ": ";

	while (fettle_fed(p->f, p->n_fed, &d)) {
		const bool same = strcmp(d.stored, d.dtype) == 0;

		p->n_fed++;
		clear_line(p);
		if (d.made) {
			print_wrapped(stderr, "%s data: %s has nothing for input '%s', which gets %s",
				      d.purpose, d.data, d.input, d.made);
			continue;
		}
		print_wrapped(stderr,
			      "%s data: '%s' of %s (%s%s%s, %.4g to %.4g) feeds input '%s', %zu sample%s",
			      d.purpose, d.array, d.data, d.stored, same ? "" : " as ", same ? "" : d.dtype,
			      d.min, d.max, d.input, d.samples, d.samples == 1 ? "" : "s");
	}
	if (p->scoring_shown || !fettle_scoring(p->f, &s))
		return;
	p->scoring_shown = true;
	clear_line(p);
	if (!s.why_metric && !s.why_outputs)
		lead = "";
	print_wrapped(stderr, "scoring: %s of output%s %s%s%s%s%s", s.metric,
		      strchr(s.outputs, ',') ? "s" : "", s.outputs, lead, s.why_outputs ? s.why_outputs : "",
		      s.why_outputs && s.why_metric ? "; " : "", s.why_metric ? s.why_metric : "");
}

/* as soon as they are there: a setting without effect is better known before a long run than after it */
static void show_notes(struct progress *p)
{
	const char *text;

	if (p->level >= LOG_INFO)
		show_data(p);
	while ((text = fettle_note(p->f, p->n_notes))) {
		p->n_notes++;
		if (p->level < LOG_WARNING)
			continue;
		clear_line(p);
		print_wrapped(stderr, "note: %s", text);
	}
	while ((text = fettle_warning(p->f, p->n_warnings))) { /* --quiet or not */
		p->n_warnings++;
		clear_line(p);
		print_wrapped(stderr, "warning: %s", text);
	}
}

/* A line that wraps cannot be cleared, so it must fit. Colours take no room, and must not leak past the cut. */
static void cut(char *line, size_t room, size_t most)
{
	size_t n = 0, at;

	for (at = 0; line[at]; at++) {
		if (line[at] == '\033') {
			at += strcspn(line + at, "m");
		} else if ((line[at] & 0xc0) != 0x80 && n++ == most) {
			snprintf(line + at, room - at, "%s", strchr(line, '\033') ? "\033[0m" : "");
			return;
		}
	}
}

void progress_show(struct progress *p, const char *fmt, ...)
{
	char line[1024];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(line, sizeof(line) - 8, fmt, ap); /* cut() may add 4 bytes */
	va_end(ap);
	clear_line(p);
	if (p->live)
		cut(line, sizeof(line), columns_of(stderr) - 1);
	fprintf(stderr, "%s%s", line, p->live ? "" : "\n");
	p->shown = p->live;
	p->last_shown = now();
	fflush(stderr);
}

/* "[###.......]" */
static const char *bar(char *buf, size_t n, size_t done, size_t total)
{
	static const char full[] = "##########", empty[] = "..........";
	int cells = done < total ? (int)(10 * done / total) : 10;

	snprintf(buf, n, "[%.*s%.*s]", cells, full, 10 - cells, empty);
	return buf;
}

/* quick things show nothing; the rest a line with the time left */
static bool on_progress(void *self, const char *phase, size_t done, size_t total)
{
	struct progress *p = self;
	double t = now(), used;
	char cells[32];

	if (strcmp(p->phase, phase) != 0) {
		snprintf(p->phase, sizeof(p->phase), "%s", phase);
		p->phase_start = t;
		p->last_shown = t;
		if (p->level == LOG_DEBUG)
			fprintf(stderr, "debug: %.3f s: %s\n", t - p->begun, phase);
	}
	if (total && (done < p->done || total != p->total)) /* the next pass over data */
		p->phase_start = t;
	if (total) {
		p->done = done;
		p->total = total;
	}
	show_notes(p);
	if (p->level < LOG_INFO || t - p->last_shown < (p->live ? 0.2 : 5))
		return !interrupted;
	used = t - p->phase_start;
	if (p->trial[0] && p->live && total)
		progress_show(p, "%s %zu/%zu, %.0f s, %s", bar(cells, sizeof(cells), done, total), done,
			      total, t - p->begun, p->trial);
	else if (p->trial[0] && p->live)
		progress_show(p, "%.0f s, %s", t - p->begun, p->trial);
	else if (p->trial[0])
		progress_show(p, "next trial in progress, %.0f s used", t - p->begun);
	else if (total && done)
		progress_show(p, "%s %s%s%zu of %zu, %.0f s used, %.0f s left", phase,
			      p->live ? bar(cells, sizeof(cells), done, total) : "", p->live ? " " : "", done,
			      total, used, used * (double)(total - done) / (double)done);
	else
		progress_show(p, "%s: %.0f s", phase, used);
	return !interrupted;
}

static enum log_level level_asked(void)
{
	static const char *const names[] = { "ERROR", "WARNING", "INFO", "DEBUG" };
	const char *asked = getenv("LOGLEVEL");
	int i;

	if (!asked || !*asked)
		return LOG_INFO;
	for (i = LOG_ERROR; i <= LOG_DEBUG; i++)
		if (strcasecmp(asked, names[i]) == 0)
			return (enum log_level)i;
	fprintf(stderr, "note: LOGLEVEL '%s' has no effect: need DEBUG, INFO, WARNING or ERROR\n", asked);
	return LOG_INFO;
}

void progress_begin(struct progress *p, struct fettle *f, bool quiet)
{
	struct sigaction sa = { .sa_handler = on_interrupt };

	*p = (struct progress){ .f = f, .level = quiet ? LOG_ERROR : level_asked(), .begun = now() };
	p->live = p->level == LOG_INFO && is_terminal(stderr);
	sigaction(SIGINT, &sa, NULL);
	sigaction(SIGTERM, &sa, NULL);
	fettle_on_progress(f, on_progress, p);
	in_progress = f;
}

void progress_end(struct progress *p)
{
	in_progress = NULL;
	clear_line(p);
	show_notes(p);
}
