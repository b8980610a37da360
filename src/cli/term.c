#include "cli/cli.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/launched.h"

size_t columns_of(FILE *f)
{
	const char *set = getenv("COLUMNS");
	struct winsize w = { .ws_col = 0 };

	if (ioctl(fileno(f), TIOCGWINSZ, &w) == 0 && w.ws_col > 1)
		return w.ws_col;
	return set && atoi(set) > 1 ? (size_t)atoi(set) : isatty(fileno(f)) ? 80 : SIZE_MAX;
}

/* Where it goes in the end: Open MPI gives rank 0 a terminal of its own, whatever mpirun itself writes to. Where that cannot be
 * found out, because mpirun runs on another machine, it is none. */
bool is_terminal(FILE *f)
{
	char link[64], to[16] = "";

	if (!isatty(fileno(f)) || !launched_by_mpi())
		return isatty(fileno(f));
	snprintf(link, sizeof(link), "/proc/%d/fd/%d", (int)getppid(), fileno(f));
	return readlink(link, to, sizeof(to) - 1) > 0 &&
	       (strncmp(to, "/dev/pts/", 9) == 0 || strncmp(to, "/dev/tty", 8) == 0);
}

const char *styled(FILE *f, enum style style, const char *s, char *buf, size_t n)
{
	static const char *const codes[] = {
		[STYLE_BOLD] = "1", [STYLE_GOOD] = "1;32", [STYLE_BAD] = "1;31"
	};
	const char *no = getenv("NO_COLOR");

	if (!is_terminal(f) || (no && *no))
		return s;
	snprintf(buf, n, "\033[%sm%s\033[0m", codes[style], s);
	return buf;
}

static char *human(double x, double step, const char *const *units, char *buf, size_t n)
{
	int i = 0;

	while (x >= step && i < 4) {
		x /= step;
		i++;
	}
	snprintf(buf, n, i && x < 100 ? "%.1f%s%s" : "%.0f%s%s", x, *units[i] ? " " : "", units[i]);
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

const char *bench_data(const struct fettle *f, char *buf, size_t n)
{
	struct fettle_fed d = FETTLE_FED_INIT;
	size_t i;

	*buf = '\0';
	for (i = 0; fettle_fed(f, i, &d); i++)
		if (d.data && strstr(d.data, ".npz") && !d.transforms && strcmp(d.purpose, "holdout") != 0)
			snprintf(buf, n, " --data %s", d.data);
	return buf;
}

char *human_speedup(double value, double low, double high, char *buf, size_t n)
{
	if (isfinite(high))
		snprintf(buf, n, "%.2fx (%.2f to %.2f with 99 %% confidence)", value, low, high);
	else
		snprintf(buf, n, "%.2fx", value);
	return buf;
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

int print_json(char *text)
{
	if (!text)
		return EXIT_FAILED;
	puts(text);
	free(text);
	return 0;
}

int print_list(const char *command)
{
	struct fettle *f = fettle_new();
	char *text = NULL;
	enum fettle_status st = fettle_call_json(f, command, NULL, &text);
	int code = st ? library_error(f, st) : print_json(text);

	fettle_free(f);
	return code;
}
