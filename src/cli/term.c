#include "cli/cli.h"

#include <math.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

static volatile sig_atomic_t interrupted;

static void on_interrupt(int sig)
{
	(void)sig;
	if (interrupted)
		_exit(130); /* asked twice: at once */
	interrupted = 1;
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

/* as soon as they are there: a setting without effect is better known before a long run than after it */
static void show_notes(struct progress *p)
{
	const char *note;

	while ((note = fettle_note(p->f, p->n_notes))) {
		p->n_notes++;
		if (p->quiet)
			continue;
		clear_line(p);
		fprintf(stderr, "note: %s\n", note);
	}
}

static size_t columns(void)
{
	struct winsize w = { .ws_col = 0 };

	return ioctl(STDERR_FILENO, TIOCGWINSZ, &w) == 0 && w.ws_col > 1 ? w.ws_col : 80;
}

/* so that it fits: a line that wraps cannot be cleared */
static void cut(char *line, size_t most)
{
	size_t n = 0;

	for (; *line; line++)
		if ((*line & 0xc0) != 0x80 && n++ == most) {
			*line = '\0';
			return;
		}
}

void progress_show(struct progress *p, const char *fmt, ...)
{
	char line[1024];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(line, sizeof(line), fmt, ap);
	va_end(ap);
	clear_line(p);
	if (p->live)
		cut(line, columns() - 1);
	fprintf(stderr, "%s%s", line, p->live ? "" : "\n");
	p->shown = p->live;
	p->last_shown = now();
	fflush(stderr);
}

/* quick things show nothing; the rest a line with the time left */
static bool on_progress(void *self, const char *phase, size_t done, size_t total)
{
	struct progress *p = self;
	double t = now(), used;

	if (strcmp(p->phase, phase) != 0) {
		snprintf(p->phase, sizeof(p->phase), "%s", phase);
		p->phase_start = t;
		p->last_shown = t;
	}
	show_notes(p);
	if (p->quiet || t - p->last_shown < (p->live ? 0.2 : 5))
		return !interrupted;
	used = t - p->phase_start;
	if (total && done)
		progress_show(p, "%s: %zu of %zu (%.0f %%), %.0f s used, %.0f s left", phase, done, total,
			      100.0 * (double)done / (double)total, used,
			      used * (double)(total - done) / (double)done);
	else if (p->trial[0] && p->live)
		progress_show(p, "%.0f s, %s", t - p->begun, p->trial);
	else if (p->trial[0])
		progress_show(p, "next trial under way, %.0f s used", t - p->begun);
	else
		progress_show(p, "%s: %.0f s", phase, used);
	return !interrupted;
}

void progress_begin(struct progress *p, struct fettle *f, bool quiet)
{
	struct sigaction sa = { .sa_handler = on_interrupt };

	*p = (struct progress){ .f = f, .quiet = quiet, .live = isatty(STDERR_FILENO), .begun = now() };
	sigaction(SIGINT, &sa, NULL);
	sigaction(SIGTERM, &sa, NULL);
	fettle_on_progress(f, on_progress, p);
}

void progress_end(struct progress *p)
{
	clear_line(p);
	show_notes(p);
}

const char *bold(const char *s, char *buf, size_t n)
{
	const char *no = getenv("NO_COLOR");

	if (!isatty(STDOUT_FILENO) || (no && *no))
		return s;
	snprintf(buf, n, "\033[1m%s\033[0m", s);
	return buf;
}

void table_begin(struct table *t, const char *const *head, size_t columns, unsigned right)
{
	*t = (struct table){ .head = head, .columns = columns, .right = right };
}

void table_cell(struct table *t, const char *fmt, ...)
{
	va_list ap;

	if (t->rows == t->cap) {
		char **grown = realloc(t->cells, (t->cap ? 2 * t->cap : 64) * sizeof(*grown));

		if (!grown)
			abort();
		t->cells = grown;
		t->cap = t->cap ? 2 * t->cap : 64;
	}
	va_start(ap, fmt);
	if (vasprintf(&t->cells[t->rows++], fmt, ap) < 0)
		abort();
	va_end(ap);
}

/* columns on a terminal, whatever bytes it takes to write them */
static int width(const char *s)
{
	int n = 0;

	for (; *s; s++)
		n += (*s & 0xc0) != 0x80;
	return n;
}

static void print_row(const struct table *t, const char *const *cells, const int *widths, bool head)
{
	size_t i, n = t->columns;

	while (n > 1 && !cells[n - 1][0]) /* no spaces at the end of a line */
		n--;
	for (i = 0; i < n; i++) {
		char buf[256];
		int pad = widths[i] - width(cells[i]);
		const char *text = head ? bold(cells[i], buf, sizeof(buf)) : cells[i];

		if (t->right & 1u << i)
			printf("%*s%s", pad, "", text);
		else
			printf("%s%*s", text, i + 1 < n ? pad : 0, "");
		fputs(i + 1 < n ? "  " : "\n", stdout);
	}
}

void table_print(struct table *t)
{
	int widths[16] = { 0 };
	size_t i;

	for (i = 0; i < t->columns; i++)
		widths[i] = width(t->head[i]);
	for (i = 0; i < t->rows; i++)
		if (width(t->cells[i]) > widths[i % t->columns])
			widths[i % t->columns] = width(t->cells[i]);
	print_row(t, t->head, widths, true);
	for (i = 0; i + t->columns <= t->rows; i += t->columns)
		print_row(t, (const char *const *)t->cells + i, widths, false);
	for (i = 0; i < t->rows; i++)
		free(t->cells[i]);
	free(t->cells);
}

static char *human(double x, double step, const char *const *units, char *buf, size_t n)
{
	int i = 0;

	while (x >= step && i < 4) {
		x /= step;
		i++;
	}
	snprintf(buf, n, i && x < 100 ? "%.1f %s" : "%.0f %s", x, units[i]);
	return buf;
}

char *human_bytes(double bytes, char *buf, size_t n)
{
	static const char *const units[] = { "B", "KB", "MB", "GB", "TB" };

	return human(bytes, 1000, units, buf, n);
}

char *human_count(double count, char *buf, size_t n)
{
	static const char *const units[] = { "", "K", "M", "G", "T" };

	return human(count, 1000, units, buf, n);
}

char *human_score(double x, char *buf, size_t n)
{
	if (!isfinite(x))
		snprintf(buf, n, "-");
	else if (x == 0 || (fabs(x) >= 0.001 && fabs(x) < 1e6))
		snprintf(buf, n, "%.4f", x);
	else
		snprintf(buf, n, "%.3g", x);
	return buf;
}

char *trial_score(const struct fettle_trial *t, char *buf, size_t n)
{
	char value[32];

	human_score(t->failed ? NAN : t->accuracy, value, sizeof(value));
	/* an evaluation that ended early knows only one end of where the accuracy lies */
	snprintf(buf, n, "%s%s",
		 !t->early || t->failed || !isfinite(t->accuracy) ? ""
		 : t->accuracy == t->accuracy_low                 ? ">="
								  : "<=",
		 value);
	return buf;
}

int print_json(json_t *j)
{
	json_dumpf(j, stdout, JSON_INDENT(2) | JSON_REAL_PRECISION(10));
	putchar('\n');
	json_decref(j);
	return 0;
}
