/*
 * An optimiser that runs elsewhere: it is given a list of parameters once, then proposes an option of each, again and again, and
 * is told what came of it. A strategy sees only this; remote/sigopt.h is such a service, and tests have another.
 *
 * Every function may return FETTLE_STOP when told to stop by `stop`.
 */
#ifndef REMOTE_SERVICE_H
#define REMOTE_SERVICE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"

struct service_param {
	const char *name;
	char *const *options; /* at most SERVICE_OPTION_MAX characters each, all different */
	size_t n;
};
enum { SERVICE_OPTION_MAX = 50 };

struct service_experiment {
	const struct service_param *params;
	size_t n;
	const char *objective; /* the name of what is to be as low as possible, beside the accuracy */
	bool higher_is_better; /* the accuracy */
	double threshold;      /* that the accuracy must reach; not finite: none */
	size_t budget;         /* observations there will be */
	size_t workers;        /* proposals that are tried at the same time */
};

struct service_result {
	bool failed; /* then there are no values */
	double accuracy, objective;
};

struct service {
	/* *id names the experiment from now on, also in another process; free() it. */
	enum fettle_status (*create)(struct service *s, const struct service_experiment *e, char **id,
				     struct err *err);
	/* Continues it. The experiment is the one that it was created with. */
	enum fettle_status (*resume)(struct service *s, const struct service_experiment *e, const char *id,
				     struct err *err);
	/* choice[i] is an option of parameter i; *suggestion names the proposal; free() it. */
	enum fettle_status (*suggest)(struct service *s, size_t *choice, char **suggestion, struct err *err);
	enum fettle_status (*observe)(struct service *s, const char *suggestion,
				      const struct service_result *r, struct err *err);
	/* The proposal will not be tried. */
	enum fettle_status (*drop)(struct service *s, const char *suggestion, struct err *err);
	void (*free)(struct service *s);
	bool (*stop)(void *self); /* asked while waiting for an answer; may be NULL */
	void *stop_self;
};

#endif
