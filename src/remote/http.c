#include "remote/http.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/file.h"
#include "base/mem.h"
#include "base/rng.h"

#ifdef FETTLE_CURL

#include <curl/curl.h>

enum { ANSWER_MAX = 16 << 20 };
#define WAIT_MAX 60 /* seconds, whatever the server asks for */

struct http {
	CURL *curl;
	struct curl_slist *headers;
	char *url, *user;
	double timeout, wait;
	unsigned tries, tried; /* at most; of the last call */
	struct rng rng;
	bool (*stop)(void *self);
	void *stop_self;
};

static bool stopped(const struct http *h)
{
	return h->stop && h->stop(h->stop_self);
}

static size_t take(char *bytes, size_t one, size_t n, void *answer)
{
	struct str *s = answer;

	if (s->n + one * n > ANSWER_MAX)
		return 0;
	str_add(s, bytes, one * n);
	return one * n;
}

static int look_whether_to_stop(void *self, curl_off_t to_get, curl_off_t got, curl_off_t to_put,
				curl_off_t put)
{
	(void)to_get, (void)got, (void)to_put, (void)put;
	return stopped(self);
}

enum fettle_status http_new(struct http **out, const struct http_options *o, struct err *err)
{
	struct http *h;

	if (strncmp(o->url, "http://", 7) != 0 && strncmp(o->url, "https://", 8) != 0)
		return fail(err, FETTLE_INVALID, "cannot use the address %s: need http:// or https://",
			    o->url);
	if (strchr(o->url, '@'))
		return fail(err, FETTLE_INVALID,
			    "cannot use the address: it has a user in it, need the address alone");
	if (curl_global_init(CURL_GLOBAL_DEFAULT))
		return fail(err, FETTLE_SYSTEM, "cannot start libcurl");
	h = xcalloc(1, sizeof(*h));
	h->curl = curl_easy_init();
	h->url = xstrdup(o->url);
	while (strlen(h->url) > 8 && h->url[strlen(h->url) - 1] == '/')
		h->url[strlen(h->url) - 1] = '\0';
	h->user = xstrdup(o->user ? o->user : "");
	h->timeout = o->timeout > 0 ? o->timeout : 60;
	h->wait = o->wait > 0 ? o->wait : 0.5;
	h->tries = o->tries ? o->tries : 6;
	rng_seed(&h->rng, o->seed);
	h->headers = curl_slist_append(NULL, "Content-Type: application/json");
	*out = h;
	if (h->curl && h->headers)
		return FETTLE_OK;
	http_free(h);
	*out = NULL;
	return fail(err, FETTLE_SYSTEM, "cannot start libcurl");
}

void http_free(struct http *h)
{
	if (!h)
		return;
	curl_slist_free_all(h->headers);
	curl_easy_cleanup(h->curl);
	curl_global_cleanup();
	free(h->url);
	free(h->user);
	free(h);
}

void http_stop_by(struct http *h, bool (*stop)(void *self), void *self)
{
	h->stop = stop;
	h->stop_self = self;
}

unsigned http_tries(const struct http *h)
{
	return h->tried;
}

const char *http_url(const struct http *h)
{
	return h->url;
}

/* one try; *again: another may go better */
static enum fettle_status try_once(struct http *h, const char *method, const char *url, const char *body,
				   long *status, struct str *answer, bool *again, struct err *err)
{
	char why[CURL_ERROR_SIZE] = "";
	CURLcode code;

	curl_easy_reset(h->curl); /* which keeps the connection */
	str_release(answer);
	str_add(answer, "", 0);
	curl_easy_setopt(h->curl, CURLOPT_URL, url);
	curl_easy_setopt(h->curl, CURLOPT_CUSTOMREQUEST, method);
	curl_easy_setopt(h->curl, CURLOPT_HTTPHEADER, h->headers);
	curl_easy_setopt(h->curl, CURLOPT_HTTPAUTH, CURLAUTH_BASIC);
	curl_easy_setopt(h->curl, CURLOPT_USERNAME, h->user);
	curl_easy_setopt(h->curl, CURLOPT_PASSWORD, "");
	curl_easy_setopt(h->curl, CURLOPT_USERAGENT, "fettle");
	if (body)
		curl_easy_setopt(h->curl, CURLOPT_POSTFIELDS, body);
	curl_easy_setopt(h->curl, CURLOPT_TIMEOUT_MS, (long)ceil(1e3 * h->timeout));
	curl_easy_setopt(h->curl, CURLOPT_NOSIGNAL, 1L);
	curl_easy_setopt(h->curl, CURLOPT_NOPROGRESS, 0L);
	curl_easy_setopt(h->curl, CURLOPT_XFERINFOFUNCTION, look_whether_to_stop);
	curl_easy_setopt(h->curl, CURLOPT_XFERINFODATA, h);
	curl_easy_setopt(h->curl, CURLOPT_WRITEFUNCTION, take);
	curl_easy_setopt(h->curl, CURLOPT_WRITEDATA, answer);
	curl_easy_setopt(h->curl, CURLOPT_ERRORBUFFER, why);
	code = curl_easy_perform(h->curl);
	*again = true;
	if (code == CURLE_ABORTED_BY_CALLBACK)
		return FETTLE_STOP;
	if (code == CURLE_WRITE_ERROR) {
		*again = false;
		return fail(err, FETTLE_SYSTEM, "the answer of %s is larger than %d MB", h->url,
			    ANSWER_MAX >> 20);
	}
	if (code)
		return fail(err, FETTLE_SYSTEM, "no answer from %s: %s", h->url,
			    *why ? why : curl_easy_strerror(code));
	curl_easy_getinfo(h->curl, CURLINFO_RESPONSE_CODE, status);
	if (*status == 429 || *status >= 500)
		return fail(err, FETTLE_SYSTEM, "%s answers with status %ld", h->url, *status);
	return FETTLE_OK;
}

/* false: told to stop */
static bool wait_for(const struct http *h, double seconds)
{
	double until = clock_now() + seconds, left;

	while ((left = until - clock_now()) > 0) {
		double now = fmin(left, 0.1);
		struct timespec ts = { .tv_sec = 0, .tv_nsec = (long)(1e9 * now) };

		if (stopped(h))
			return false;
		nanosleep(&ts, NULL);
	}
	return true;
}

/* how long the server wants to be left alone; 0: it does not say */
static double asked_to_wait(const struct http *h)
{
	curl_off_t seconds = 0;

	curl_easy_getinfo(h->curl, CURLINFO_RETRY_AFTER, &seconds);
	return fmin((double)seconds, WAIT_MAX);
}

enum fettle_status http_call(struct http *h, const char *method, const char *path, const char *body,
			     long *status, struct str *answer, struct err *err)
{
	char *url = xstrfmt("%s%s", h->url, path);
	double wait = h->wait;
	enum fettle_status st;
	bool again = true;

	for (h->tried = 1;; h->tried++) {
		st = try_once(h, method, url, body, status, answer, &again, err);
		if (!st || st == FETTLE_STOP || !again || h->tried == h->tries)
			break;
		if (!wait_for(h, fmax(wait * (0.5 + rng_unit(&h->rng)), asked_to_wait(h)))) {
			st = FETTLE_STOP;
			break;
		}
		wait = fmin(2 * wait, WAIT_MAX);
	}
	if (st && st != FETTLE_STOP && h->tried > 1) {
		struct err last = *err;

		fail(err, st, "%.400s (tried %u times)", last.msg, h->tried);
	}
	free(url);
	return st;
}

#else

enum fettle_status http_new(struct http **out, const struct http_options *o, struct err *err)
{
	(void)out, (void)o;
	return fail(err, FETTLE_UNSUPPORTED,
		    "fettle was built without libcurl, which it talks to servers by: install "
		    "libcurl4-openssl-dev and build it again");
}

void http_free(struct http *h)
{
	(void)h;
}

void http_stop_by(struct http *h, bool (*stop)(void *self), void *self)
{
	(void)h, (void)stop, (void)self;
}

unsigned http_tries(const struct http *h)
{
	(void)h;
	return 0;
}

const char *http_url(const struct http *h)
{
	(void)h;
	return "";
}

enum fettle_status http_call(struct http *h, const char *method, const char *path, const char *body,
			     long *status, struct str *answer, struct err *err)
{
	(void)h, (void)method, (void)path, (void)body, (void)status, (void)answer;
	return fail(err, FETTLE_UNSUPPORTED, "fettle was built without libcurl");
}

#endif
