/*
 * The threads of a session. The runtime divides the work of an op among as many threads as a session has, and the last bits of
 * floats may depend on how it is divided. So that sessions can share cores and still give the same answers, some of the threads
 * need not exist: the runtime counts them, and those that exist do their part too. (A loop's parts are claimed one by one by the
 * threads that have entered it; what was queued for a thread that has not is taken back at its end.)
 */
#ifndef RUNTIME_POOL_H
#define RUNTIME_POOL_H

#include "runtime/ort.h"

struct pool;
/* For a session made with `so`: `running` of its threads exist, the one that runs it among them. Freed after the session. */
enum fettle_status pool_new(struct pool **out, const OrtApi *api, OrtSessionOptions *so, int running,
			    const char *what, struct err *err);
int pool_threads(const struct pool *p); /* all of them, once there is a session */
void pool_free(struct pool *p);         /* NULL does nothing */

#endif
