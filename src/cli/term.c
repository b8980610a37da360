#include "cli/cli.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

size_t columns_of(FILE *f)
{
	const char *set = getenv("COLUMNS");
	struct winsize w = { .ws_col = 0 };

	if (ioctl(fileno(f), TIOCGWINSZ, &w) == 0 && w.ws_col > 1)
		return w.ws_col;
	return set && atoi(set) > 1 ? (size_t)atoi(set) : isatty(fileno(f)) ? 80 : SIZE_MAX;
}

const char *styled(FILE *f, enum style style, const char *s, char *buf, size_t n)
{
	static const char *const codes[] = {
		[STYLE_BOLD] = "1", [STYLE_GOOD] = "1;32", [STYLE_BAD] = "1;31"
	};
	const char *no = getenv("NO_COLOR");

	if (!isatty(fileno(f)) || (no && *no))
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

void add_remarks(json_t *j, const struct fettle *f)
{
	json_t *warnings = json_array(), *fed = json_array();
	struct fettle_scoring s = FETTLE_SCORING_INIT;
	struct fettle_fed d = FETTLE_FED_INIT;
	const char *text;
	size_t i;

	for (i = 0; fettle_fed(f, i, &d); i++)
		json_array_append_new(fed,
				      json_pack("{s:s, s:s, s:s, s:s, s:s, s:s, s:f, s:f, s:I}", "purpose",
						d.purpose, "data", d.data, "array", d.array, "input", d.input,
						"stored", d.stored, "dtype", d.dtype, "min", d.min, "max",
						d.max, "samples", (json_int_t)d.samples));
	for (i = 0; (text = fettle_warning(f, i)); i++)
		json_array_append_new(warnings, json_string(text));
	json_object_set_new(j, "fed", fed);
	if (fettle_scoring(f, &s))
		json_object_set_new(j, "scoring",
				    json_pack("{s:s, s:s, s:s?, s:s?}", "metric", s.metric, "outputs",
					      s.outputs, "why_metric", s.why_metric, "why_outputs",
					      s.why_outputs));
	json_object_set_new(j, "warnings", warnings);
}

json_t *names_json(const char *list)
{
	json_t *all = json_array();
	size_t n;

	for (; *list; list += n + strspn(list + n, ", ")) {
		n = strcspn(list, ",");
		json_array_append_new(all, json_stringn(list, n));
	}
	return all;
}

int print_json(json_t *j)
{
	json_dumpf(j, stdout, JSON_INDENT(2) | JSON_REAL_PRECISION(10));
	putchar('\n');
	json_decref(j);
	return 0;
}
