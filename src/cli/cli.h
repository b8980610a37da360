/* The command's own parts: commands, their options, what they show. Nothing here but fettle.h is the library. */
#ifndef CLI_H
#define CLI_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "fettle.h"

enum exit_code { EXIT_MET = 0, EXIT_NOT_MET = 1, EXIT_USAGE = 2, EXIT_FAILED = 3 };

struct command {
	const char *name, *args, *summary;
	int (*run)(int argc, char **argv);
	bool hidden;
};

/* What was given with an option that may be given several times. */
struct text_list {
	const char *v[32];
	size_t n;
};

/* An option: --name VALUE or --name=VALUE. Only one of the targets is set. */
struct cli_option {
	const char *name, *value, *help;
	const char **text;
	struct text_list *list;
	size_t *number; /* "2000" */
	int *integer;
	double *real;
	uint64_t *seed;
	bool *flag;  /* takes no value */
	char letter; /* -o for --output, or 0 */
};

/*
 * Reads options into their targets and collects the rest in `rest` (at least argc long). Returns the number
 * of those, or -1 after an error message, or -2 when --help was printed.
 */
int args_read(const struct command *c, const struct cli_option *options, size_t n, const char *details,
	      int argc, char **argv, const char **rest);
/* Turns the result of args_read() < 0 into an exit code. */
int args_exit(int result);
/* help.c: what --help prints; for the shells' completion (--complete), an option a line, with what its value is and its help,
 * separated by tabs; for the manual (--manual), Markdown. */
void print_help(const struct command *c, const struct cli_option *o, size_t n, const char *details);
void print_completions(const struct cli_option *o, size_t n);
void print_manual(const struct command *c, const struct cli_option *o, size_t n, const char *details);
/* Complains in the one form: "fettle COMMAND: MESSAGE" and where help is. */
int usage_error(const struct command *c, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* After a library call failed: prints its message, gives the exit code. */
int library_error(const struct fettle *f, enum fettle_status st);

/* How much goes to stderr, by the environment variable LOGLEVEL; --quiet is LOG_ERROR. */
enum log_level {
	LOG_ERROR,   /* errors, and warnings that cast doubt on a result */
	LOG_WARNING, /* notes, too */
	LOG_INFO,    /* and progress */
	LOG_DEBUG,   /* and each phase and trial in detail, in plain lines */
};

/* Progress on stderr: a live line on a terminal, else a plain line now and then. Ctrl-C cancels cleanly. */
struct progress {
	struct fettle *f;
	enum log_level level;
	bool live;
	char phase[32];
	double begun, phase_start, last_shown;
	size_t done, total;                /* samples of the pass over data that is in progress */
	char trial[512];                   /* the last one, when tuning */
	size_t n_notes, n_warnings, n_fed; /* that have been shown */
	bool scoring_shown;
	bool shown; /* something is on the live line */
};
void progress_begin(struct progress *p, struct fettle *f, bool quiet);
/* A line of its own, or on a terminal the one line, cut to fit. */
void progress_show(struct progress *p, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void progress_end(struct progress *p); /* and shows the notes that have not been shown yet */

/* Results on stdout. */
struct table {
	const char *const *head;
	size_t columns;
	unsigned right; /* bit i: column i is aligned to the right */
	char **cells;
	size_t rows, cap;
};
void table_begin(struct table *t, const char *const *head, size_t columns, unsigned right);
void table_cell(struct table *t, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void table_print(struct table *t); /* and frees it */
/* A paragraph: lines that fit, those after the first indented. */
void print_wrapped(FILE *f, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Lines of at most `limit` columns, those after the first after `indent` spaces. */
void print_indented(FILE *f, size_t indent, size_t limit, const char *text);
/* Of the terminal, or of $COLUMNS where there is none; SIZE_MAX: any number (a pipe, a file). */
size_t columns_of(FILE *f);
bool is_terminal(FILE *f);
/* `s` in a style, where `f` is a terminal and NO_COLOR is not set. */
enum style { STYLE_BOLD, STYLE_GOOD, STYLE_BAD };
const char *styled(FILE *f, enum style style, const char *s, char *buf, size_t n);
char *human_bytes(double bytes, char *buf, size_t n);
char *human_count(double count, char *buf, size_t n);
/* "0.7713", or "<=0.6810" of a trial that ended as soon as its verdict was certain */
char *trial_score(const struct fettle_trial *t, char *buf, size_t n);
/* " --data FILE" with what the last command was fed, where 'fettle bench' takes it as it is; else "". */
const char *bench_data(const struct fettle *f, char *buf, size_t n);
/* "1.79x (1.78 to 1.80 with 99 % confidence)"; without the interval where there is none */
char *human_speedup(double value, double low, double high, char *buf, size_t n);
char *human_score(double x, char *buf, size_t n); /* 0.9433; 1.2e-05 rather than 0.0000; - for none */
int print_json(char *text);                       /* and frees it */
int print_list(const char *command);              /* what fettle_call_json() gives for it */

/* fp32.c: the ops that the model just written computes in fp32 */
void show_fp32(const struct fettle *f);

/* tuned.c: a command that tunes a model, and its options */
struct flag { /* a setting of the configuration under another name */
	const char *name, *key, *value;
};
enum { FLAGS_MAX = 16 };
struct tuner {
	const struct command *command;
	const char *details;
	const char *subject; /* what it works on; NULL: "model" */
	const struct cli_option *options;
	size_t n_options;
	const struct flag *flags;
	size_t n_flags;
	/* with what tuner_main() has read: the subject, the settings and the recipes; or prints the configuration */
	enum fettle_status (*run)(struct fettle *f, const struct tuner *u, struct fettle_tuned **out);
	enum fettle_status (*config)(struct fettle *f, const struct tuner *u, char **text);
	/* prints what it would do */
	enum fettle_status (*preview)(struct fettle *f, const struct tuner *u);
	void *o; /* its options, for these three */
	void (*show)(const struct fettle *f, const struct fettle_tuned *t, const char *model);

	const char *plugin;
	struct text_list recipes;
	bool json, quiet, print_config, dry_run, tensorboard;

	const char *given; /* the model or workspace; NULL: none, for print_config */
	struct fettle_setting settings[FLAGS_MAX];
	size_t n_settings;
};
int tuner_main(struct tuner *u, int argc, char **argv);
void show_models(const struct fettle_tuned *t); /* a table */
/* The results of 'fettle tune' and 'fettle search', for those who resume them. */
void show_tune_result(const struct fettle *f, const struct fettle_tuned *t, const char *model);
void show_search_result(const struct fettle *f, const struct fettle_tuned *t, const char *model);
const char *why_stopped(const struct fettle_tuned *t);

#define COMMAND(id) extern const struct command cmd_##id;
#include "cli/list.h"
#undef COMMAND

/* Several metrics: all with their values, or `value` if there are none. */
const char *values_text(const char *metric, const struct fettle_values *values, double value, char *buf,
			size_t n);

#endif
