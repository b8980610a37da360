#include "cli/cli.h"

#include <assert.h>
#include <errno.h>
#include <getopt.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"

int usage_error(const struct command *c, const char *fmt, ...)
{
	char message[1024];
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(message, sizeof(message), fmt, ap);
	va_end(ap);
	fprintf(stderr, "fettle %s: %s%s see 'fettle %s --help'\n", c->name, message,
		n > 0 && message[strlen(message) - 1] == '?' ? "" : ";", c->name);
	return EXIT_USAGE;
}

static bool set_number(const struct cli_option *o, const char *text)
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

static int unknown(const struct command *c, const struct cli_option *o, size_t n, const char *arg)
{
	const char **names = calloc(n + 1, sizeof(*names)), *near = NULL;
	char word[64];
	size_t i;

	for (i = 0; names && i < n; i++)
		names[i] = o[i].name;
	snprintf(word, sizeof(word), "%.*s", (int)strcspn(arg, "="), arg);
	if (names && strlen(word) > 2)
		near = str_nearest(word + 2, names, n);
	usage_error(c, "unknown option '%s'%s%s%s", word, near ? ", did you mean '--" : "", near ? near : "",
		    near ? "'?" : "");
	free(names);
	return -1;
}

/* Writes the value where it belongs; -1 after an error message. */
static int set_value(const struct command *c, const struct cli_option *o, const char *value)
{
	if (o->flag) {
		*o->flag = true;
	} else if (o->list && o->list->n == sizeof(o->list->v) / sizeof(o->list->v[0])) {
		usage_error(c, "--%s: too many of them", o->name);
		return -1;
	} else if (o->list) {
		o->list->v[o->list->n++] = value;
	} else if (o->text) {
		*o->text = value;
	} else if (!set_number(o, value)) {
		usage_error(c, "--%s: '%s' is not a valid number", o->name, value);
		return -1;
	}
	return 0;
}

enum { MAX_OPTIONS = 64, VAL_HELP = 'h', VAL_COMPLETE = 256, VAL_MANUAL, VAL_FIRST };

/* getopt's tables, from ours. Letters and long names of an option return the same value. */
struct getopt_tables {
	struct option longs[MAX_OPTIONS + 4];
	char letters[2 * MAX_OPTIONS + 4];
};

static void fill_tables(struct getopt_tables *t, const struct cli_option *o, size_t n)
{
	char *letter = t->letters;
	size_t i;

	*letter++ = ':'; /* a missing value is ':', not '?' */
	*letter++ = VAL_HELP;
	for (i = 0; i < n; i++) {
		t->longs[i] = (struct option){ o[i].name, o[i].flag ? no_argument : required_argument, NULL,
					       VAL_FIRST + (int)i };
		if (o[i].letter) {
			*letter++ = o[i].letter;
			if (!o[i].flag)
				*letter++ = ':';
		}
	}
	*letter = '\0';
	t->longs[n] = (struct option){ "help", no_argument, NULL, VAL_HELP };
	t->longs[n + 1] = (struct option){ "complete", no_argument, NULL, VAL_COMPLETE };
	t->longs[n + 2] = (struct option){ "manual", no_argument, NULL, VAL_MANUAL };
	t->longs[n + 3] = (struct option){ 0 };
}

static const struct cli_option *option_of(const struct cli_option *o, size_t n, int value)
{
	size_t i;

	if (value >= VAL_FIRST)
		return &o[value - VAL_FIRST];
	for (i = 0; i < n; i++)
		if (o[i].letter && o[i].letter == value)
			return &o[i];
	return NULL;
}

int args_read(const struct command *c, const struct cli_option *options, size_t n, const char *details,
	      int argc, char **argv, const char **rest)
{
	struct getopt_tables t;
	const struct cli_option *o;
	int value, n_rest = 0;

	assert(n <= MAX_OPTIONS);
	fill_tables(&t, options, n);
	argv--; /* getopt skips the first, which is the command's name */
	argc++;
	optind = 0;
	opterr = 0;
	while ((value = getopt_long(argc, argv, t.letters, t.longs, NULL)) != -1) {
		if (value == VAL_HELP) {
			print_help(c, options, n, details);
			return -2;
		}
		if (value == VAL_COMPLETE) {
			print_completions(options, n);
			return -2;
		}
		if (value == VAL_MANUAL) {
			print_manual(c, options, n, details);
			return -2;
		}
		o = option_of(options, n, value == '?' || value == ':' ? optopt : value);
		if (value == '?' && o) {
			usage_error(c, "--%s takes no value", o->name);
			return -1;
		}
		if (value == ':' && o) {
			usage_error(c, "--%s needs a value (%s)", o->name, o->value);
			return -1;
		}
		if (!o)
			return unknown(c, options, n, argv[optind - 1]);
		if (set_value(c, o, optarg) < 0)
			return -1;
	}
	while (optind < argc)
		rest[n_rest++] = argv[optind++];
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
