/* A SigOpt server as a service: its API, version 1. */
#ifndef REMOTE_SIGOPT_H
#define REMOTE_SIGOPT_H

#include "remote/http.h"
#include "remote/service.h"

struct sigopt_options {
	struct http_options http; /* its user is the token */
	const char *project;      /* the id of a project on the server */
	const char *name;         /* of experiments: under 100 characters */
};

/* FETTLE_INVALID when an option is missing or cannot be right; nothing is sent yet. service->free() it. */
enum fettle_status sigopt_new(struct service **out, const struct sigopt_options *o, struct err *err);

#endif
