/*
 * JSON over HTTP, for services that a run talks to. What may go better next time (no connection, no answer, 429, 5xx) is tried
 * again after a while, a limited number of times.
 *
 *	http_new(&h, &options, err);
 *	http_call(h, "POST", "/v1/experiments", body, &status, &answer, err);
 *	http_free(h);
 */
#ifndef REMOTE_HTTP_H
#define REMOTE_HTTP_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/str.h"

struct http_options {
	const char *url;  /* what paths are appended to: "https://host:8443"; copied */
	const char *user; /* of basic authentication, with no password; copied, and never part of a message */
	double timeout;   /* seconds for one try; 0: 60 */
	double wait;      /* seconds before the second try; doubled for each further one; 0: 0.5 */
	unsigned tries;   /* 0: 6 */
	uint64_t seed; /* waits are varied by a random half, so that many clients do not come back together */
};

struct http;
/* FETTLE_UNSUPPORTED: fettle was built without libcurl. */
enum fettle_status http_new(struct http **out, const struct http_options *o, struct err *err);
void http_free(struct http *h);
/* Asked while waiting: true ends a call with FETTLE_STOP. */
void http_stop_by(struct http *h, bool (*stop)(void *self), void *self);

/*
 * One call, whatever its answer is: *status is below 500 and not 429. `body` may be NULL. Fails with FETTLE_SYSTEM once
 * every try has failed; the message names the last reason.
 */
enum fettle_status http_call(struct http *h, const char *method, const char *path, const char *body,
			     long *status, struct str *answer, struct err *err);
unsigned
http_tries(const struct http *h); /* that the last call took: after the first, it may have been heard twice */
const char *http_url(const struct http *h);

#endif
