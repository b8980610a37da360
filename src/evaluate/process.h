/* Programs that are run to measure something. */
#ifndef EVALUATE_PROCESS_H
#define EVALUATE_PROCESS_H

#include <sys/types.h>

#include "base/str.h"
#include "calibrate/calibrate.h"

/* A program in a process group of its own. What it writes to its standard error goes where ours goes. */
struct child {
	pid_t pid;
	int in, out; /* to its standard input (-1: it has none), from its standard output */
};

/* `what` names it in messages. */
enum fettle_status child_start(struct child *c, const char *what, char *const *argv, bool has_input,
			       struct err *err);
/* Is there something to read, or its end? Asks go_on (may be NULL) ten times a second; false: that said stop. */
bool child_wait(const struct child *c, progress_fn go_on, void *self);
/* After its output has ended: how it ended, as a failure unless with exit code 0. */
enum fettle_status child_reap(struct child *c, const char *what, struct err *err);
/* Ends it with all it has started; it may tidy up, but not take long over it. */
void child_end(struct child *c);

/* Runs argv, gives what it wrote to its standard output. One that go_on broke off is FETTLE_STOP. */
enum fettle_status run_program(const char *what, char *const *argv, struct str *out, progress_fn go_on,
			       void *self, struct err *err);

#endif
