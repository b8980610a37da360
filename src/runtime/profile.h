/* How long each node of a session takes, by the runtime's own profile. */
#ifndef RUNTIME_PROFILE_H
#define RUNTIME_PROFILE_H

#include "runtime/session.h"

/*
 * One node: its name as the runtime has it, which begins with the name it had in the model; its op type; seconds of one
 * run; and the shapes of its inputs, as JSON of the profile (a json_t).
 */
typedef void (*profile_fn)(void *self, const char *node, const char *op, double seconds, const void *shapes);

/* Opens the model (in memory, or the file `path` when m is NULL), runs it on these inputs, and calls `take` per node. */
struct profile_options {
	struct session_options session;
	size_t batch; /* made-up inputs of so many rows, unless: */
	struct tensor *inputs;
	size_t runs;
	double seconds; /* no more runs after so long, once there are PROFILE_LEAST, or two long ones; 0: no limit */
	/*
	 * What a run takes without a profile: the fastest of a few more, unless `also` knows it. Nodes are told so that this
	 * is their sum: less what profiling adds to each, and by what the machine was slower or faster. NULL: as they were
	 * profiled.
	 */
	double *plain;
	/*
	 * Called with the session, which is not profiled any more. May be NULL. If it sets *plain, which is NAN at first, no more runs
	 * are made to find that out.
	 */
	enum fettle_status (*also)(void *self, struct session *s, double *plain, struct err *err);
	void *also_self;
	struct session **keep; /* takes the session; NULL: it is closed */
};
enum { PROFILE_LEAST = 5 };
enum fettle_status profile_model(struct runtime *rt, struct model *m, const char *path,
				 const struct profile_options *o, profile_fn take, void *self,
				 struct err *err);

/* Of the node's first input, by its shapes; 0: it has none. */
double profile_elements(const void *shapes);
/* Its least dimension beside the first; 0: it has none. */
int64_t profile_least_dim(const void *shapes);

#endif
