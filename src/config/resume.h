/* Running a run again: what it was asked to do, which of that decides its result, and how that is kept. */
#ifndef CONFIG_RESUME_H
#define CONFIG_RESUME_H

#include "config/request.h"

/* How an option of struct call_options is kept, and compared. */
enum option_kind {
	OPTION_TEXT,  /* const char * */
	OPTION_PATH,  /* const char *; kept as an absolute path */
	OPTION_COUNT, /* size_t */
	OPTION_SEED,  /* uint64_t */
	OPTION_INT,   /* int */
	OPTION_REAL,  /* double */
	OPTION_YES,   /* bool */
	OPTION_GONE,  /* not kept: the caller's own, of another command, or kept in another way */
};
struct option_row {
	const char *name;
	enum option_kind kind;
	size_t at, size;
	/*
	 * Whether the option itself decides what a run finds. False for those that are settings of the configuration as
	 * well, for which its schema says so, and for data, whose content counts.
	 */
	bool decides;
};
/* Every member of struct call_options, in order; the test fails when one is missing. */
extern const struct option_row option_rows[];
extern const size_t n_option_rows;

/* Adds a line "name: value" for every option and plug-in that decides what a run finds. */
enum fettle_status run_request_identity(const struct request *r, struct str *out, struct err *err);

/* What was asked for, as JSON; free() it. `job` is "tune" or "search". */
enum fettle_status run_request_save(const struct request *r, const char *job, char **out, struct err *err);

struct run_request {
	struct arena arena; /* all texts are its own */
	struct call_options o;
	const char *job;
	const char *folder; /* it was begun in; ends with a slash */
	const char *config; /* the text of o.config; NULL: none */
	const char *own;    /* what the calling program itself had brought: "evaluator"; NULL: nothing */
	struct config_strings plugins;
	bool model_kept; /* it came from memory: the workspace has it */
};
/* `what` names the text in messages. run_request_release() it, also after a failure. */
enum fettle_status run_request_load(struct run_request *out, const char *text, const char *what,
				    struct err *err);
void run_request_release(struct run_request *r);
/* The same of the run in a workspace, with what the options of this call say anew, and how many trials it has. */
enum fettle_status resume_load(struct run_request *out, const struct call_options *o, size_t *trials,
			       struct err *err);
/* Says what would continue a run that had ended before, and tried nothing more. */
void resume_note_finished(struct context *cx, enum fettle_stop stop);
/* A command of its, to be run from anywhere; free() it. */
char *resume_command(const struct run_request *r, const char *command);

#endif
