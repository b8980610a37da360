#include "cli/cli.h"

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

static size_t edit_distance(const char *a, const char *b)
{
	size_t row[65], na = strlen(a), nb = strlen(b), i, j;

	if (na > 64 || nb > 64)
		return 64;
	for (j = 0; j <= nb; j++)
		row[j] = j;
	for (i = 1; i <= na; i++) {
		size_t diag = row[0]++;

		for (j = 1; j <= nb; j++) {
			size_t best = diag + (a[i - 1] != b[j - 1]);

			diag = row[j];
			best = row[j] + 1 < best ? row[j] + 1 : best;
			row[j] = row[j - 1] + 1 < best ? row[j - 1] + 1 : best;
		}
	}
	return row[nb];
}

const char *nearest_word(const char *word, const char *const *words, size_t n)
{
	size_t limit = strlen(word) / 3 + 2, i;
	const char *best = NULL;

	for (i = 0; i < n; i++) {
		size_t d = edit_distance(word, words[i]);

		if (d < limit) {
			limit = d;
			best = words[i];
		}
	}
	return best;
}

enum { HELP_LEFT = 26, HELP_WIDTH = 80 };

/* Lines that begin with a space are rows of a list; the others make up one paragraph. */
static void print_details(const char *text)
{
	char paragraph[2048] = "";
	size_t n, used = 0;

	for (; *text; text += n + (text[n] == '\n')) {
		n = strcspn(text, "\n");
		if (*text == ' ') {
			char row[256];

			print_indented(stdout, 0, HELP_WIDTH, paragraph);
			*paragraph = '\0';
			used = 0;
			snprintf(row, sizeof(row), "%.*s", (int)n, text);
			print_indented(stdout, 13, HELP_WIDTH - 13, row);
		} else {
			used += (size_t)snprintf(paragraph + used, sizeof(paragraph) - used, "%s%.*s",
						 used ? " " : "", (int)n, text);
		}
	}
	print_indented(stdout, 0, HELP_WIDTH, paragraph);
}

static void print_help(const struct command *c, const struct option *o, size_t n, const char *details)
{
	size_t i;

	printf("usage: fettle %s %s\n\n", c->name, c->args);
	print_indented(stdout, 0, HELP_WIDTH, c->summary);
	putchar('\n');
	for (i = 0; i < n; i++) {
		char left[64];

		if (o[i].letter)
			snprintf(left, sizeof(left), "-%c, --%s%s%s", o[i].letter, o[i].name,
				 o[i].value ? " " : "", o[i].value ? o[i].value : "");
		else
			snprintf(left, sizeof(left), "    --%s%s%s", o[i].name, o[i].value ? " " : "",
				 o[i].value ? o[i].value : "");
		printf("  %-*s ", HELP_LEFT, left);
		if (strlen(left) >= HELP_LEFT)
			printf("\n%*s", HELP_LEFT + 3, "");
		print_indented(stdout, HELP_LEFT + 3, HELP_WIDTH - HELP_LEFT - 3, o[i].help);
	}
	printf("  -h, --help                 this text\n");
	if (details) {
		putchar('\n');
		print_details(details);
	}
}

/* For the shells' completion: an option a line, with what its value is and its help, separated by tabs. */
static void print_completions(const struct option *o, size_t n)
{
	size_t i;

	for (i = 0; i < n; i++)
		printf("--%s\t%s\t%.*s\n", o[i].name, o[i].value ? o[i].value : "",
		       (int)strcspn(o[i].help, "\n"), o[i].help);
	printf("--help\t\tthis text\n");
}

int usage_error(const struct command *c, const char *fmt, ...)
{
	char message[1024];
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(message, sizeof(message), fmt, ap);
	va_end(ap);
	fprintf(stderr, "fettle %s: %s%s 'fettle %s --help' tells more\n", c->name, message,
		n > 0 && message[strlen(message) - 1] == '?' ? "" : ";", c->name);
	return EXIT_USAGE;
}

static bool set_number(const struct option *o, const char *text)
{
	char *end;

	errno = 0;
	if (o->number || o->seed) {
		unsigned long long v = strtoull(text, &end, 10);

		if (o->number)
			*o->number = v;
		else
			*o->seed = v;
		return *text >= '0' && *text <= '9' && !*end && !errno;
	}
	if (o->integer) {
		long v = strtol(text, &end, 10);

		*o->integer = (int)v;
		return end != text && !*end && !errno && v >= 0 && v <= 1 << 20;
	}
	*o->real = strtod(text, &end);
	return end != text && !*end && !errno && *o->real >= 0;
}

static const struct option *find(const struct option *o, size_t n, const char *arg, size_t len)
{
	size_t i;

	for (i = 0; i < n; i++)
		if ((arg[0] == '-' && strlen(o[i].name) == len - 2 &&
		     strncmp(arg + 2, o[i].name, len - 2) == 0 && arg[1] == '-') ||
		    (len == 2 && o[i].letter && arg[1] == o[i].letter))
			return &o[i];
	return NULL;
}

static int unknown(const struct command *c, const struct option *o, size_t n, const char *arg, size_t len)
{
	const char **names = calloc(n + 1, sizeof(*names)), *near = NULL;
	char word[64];
	size_t i;

	for (i = 0; names && i < n; i++)
		names[i] = o[i].name;
	snprintf(word, sizeof(word), "%.*s", (int)len, arg);
	if (names && len > 2)
		near = nearest_word(word + 2, names, n);
	usage_error(c, "unknown option '%s'%s%s%s", word, near ? ", did you mean '--" : "", near ? near : "",
		    near ? "'?" : "");
	free(names);
	return -1;
}

int args_read(const struct command *c, const struct option *options, size_t n, const char *details, int argc,
	      char **argv, const char **rest)
{
	int i, n_rest = 0;

	for (i = 0; i < argc; i++) {
		const char *arg = argv[i], *eq = strchr(arg, '='), *value;
		size_t len = eq && arg[0] == '-' && arg[1] == '-' ? (size_t)(eq - arg) : strlen(arg);
		const struct option *o;

		if (strcmp(arg, "--help") == 0 || strcmp(arg, "-h") == 0) {
			print_help(c, options, n, details);
			return -2;
		}
		if (strcmp(arg, "--complete") == 0) {
			print_completions(options, n);
			return -2;
		}
		if (arg[0] != '-' || !arg[1]) {
			rest[n_rest++] = arg;
			continue;
		}
		o = find(options, n, arg, len);
		if (!o)
			return unknown(c, options, n, arg, len);
		if (o->flag) {
			if (arg[len]) {
				usage_error(c, "--%s takes no value", o->name);
				return -1;
			}
			*o->flag = true;
			continue;
		}
		value = arg[len] ? arg + len + 1 : i + 1 < argc ? argv[++i] : NULL;
		if (!value) {
			usage_error(c, "--%s needs a value (%s)", o->name, o->value);
			return -1;
		}
		if (o->list && o->list->n == sizeof(o->list->v) / sizeof(o->list->v[0])) {
			usage_error(c, "--%s: too many of them", o->name);
			return -1;
		}
		if (o->list) {
			o->list->v[o->list->n++] = value;
		} else if (o->text) {
			*o->text = value;
		} else if (!set_number(o, value)) {
			usage_error(c, "--%s: '%s' is not a valid number", o->name, value);
			return -1;
		}
	}
	return n_rest;
}

int args_exit(int result)
{
	return result == -2 ? 0 : EXIT_USAGE;
}

int library_error(const struct fettle *f, enum fettle_status st)
{
	fprintf(stderr, "fettle: %s\n", fettle_message(f));
	switch (st) {
	case FETTLE_STOP:
		return EXIT_NOT_MET;
	case FETTLE_INVALID:
	case FETTLE_UNSUPPORTED:
		return EXIT_USAGE;
	default:
		return EXIT_FAILED;
	}
}
