/* The runs in workspaces: listing them, reading one, making the model of any trial again. */
#ifndef TUNE_RUNS_H
#define TUNE_RUNS_H

#include "history/history.h"
#include "tune/context.h"

#define RESULT_FILE "result.json"             /* in a workspace: what --json prints, of a run that ended */
#define DEFAULT_WORKSPACES "fettle_workspace" /* the folder of workspaces that were not named */

/* A run as its history has it. */
struct run_copy {
	struct fettle_run pub;
	struct arena arena;
	VEC(struct fettle_trial) trials;
};
enum fettle_status run_read(const char *workspace, struct run_copy **out, struct err *err);
void run_copy_free(struct run_copy *c);

/* The workspaces in a folder (NULL: the default one), by name; free() each and the list. */
enum fettle_status runs_list(const char *folder, char ***out, size_t *n, struct err *err);
/* Writes the model of a trial (0: the best), from the history alone. `model`: NULL: where it was. */
enum fettle_status run_recover(struct context *cx, const char *workspace, size_t trial, const char *model,
			       const char *output);

#endif
