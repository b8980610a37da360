#include "remote/sigopt.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "base/mem.h"

/* limits of the server */
enum { NAME_MAX_LENGTH = 100, METADATA_KEYS = 100, METADATA_LENGTH = 500 };

struct sigopt {
	struct service service; /* first */
	struct http *http;
	char *token, *project, *name;
	struct service_experiment e;
	char *path; /* "/v1/experiments/123" */
};

/* The token is part of no message, not even where the server repeats it. */
static void hide_token(const struct sigopt *s, struct err *err)
{
	const size_t n = strlen(s->token);
	char *p = err && n ? err->msg : NULL;

	while (p && (p = strstr(p, s->token)))
		memset(p, '*', n);
}

/* ---- calls ---- */

static enum fettle_status refused(const struct sigopt *s, const char *method, const char *path, long status,
				  const char *answer, struct err *err)
{
	json_t *j = json_loads(answer, 0, NULL);
	const char *why = json_string_value(json_object_get(j, "message"));
	enum fettle_status st;

	st = fail(err, FETTLE_INVALID, "the SigOpt server %s refuses %s %s: %.300s (status %ld)%s",
		  http_url(s->http), method, path, why ? why : "it does not say why", status,
		  status == 401 || status == 403 ? "; is the token right?" : "");
	json_decref(j);
	return st;
}

static enum fettle_status nonsense(const struct sigopt *s, const char *method, const char *path,
				   const char *what, struct err *err)
{
	return fail(err, FETTLE_SYSTEM, "cannot use what the SigOpt server %s answers to %s %s: %s",
		    http_url(s->http), method, path, what);
}

/* *answer (may be NULL: not needed) is an object; json_decref() it. `body` is taken. */
static enum fettle_status call(struct sigopt *s, const char *method, const char *path, json_t *body,
			       json_t **answer, struct err *err)
{
	char *sent = body ? json_dumps(body, JSON_COMPACT | JSON_REAL_PRECISION(17)) : NULL;
	struct str got = STR_INIT;
	enum fettle_status st;
	json_error_t why;
	long status = 0;

	http_stop_by(s->http, s->service.stop, s->service.stop_self);
	st = http_call(s->http, method, path, sent, &status, &got, err);
	if (!st && (status < 200 || status > 299))
		st = refused(s, method, path, status, got.s, err);
	if (!st && answer) {
		*answer = json_loadb(got.s, got.n, 0, &why);
		if (!*answer)
			st = nonsense(s, method, path, got.n ? "it is not JSON" : "nothing", err);
		else if (!json_is_object(*answer))
			st = nonsense(s, method, path, "it is not a JSON object", err);
		if (st) {
			json_decref(*answer);
			*answer = NULL;
		}
	}
	if (st)
		hide_token(s, err);
	json_decref(body);
	free(sent);
	str_release(&got);
	return st;
}

/* An id: text, or a number. NULL: there is none that can be used; free() it. */
static char *id_of(const json_t *answer)
{
	const json_t *id = json_object_get(answer, "id");
	const char *text = json_string_value(id);
	size_t i;

	if (json_is_integer(id))
		return xstrfmt("%lld", (long long)json_integer_value(id));
	for (i = 0; text && text[i]; i++)
		if (!isalnum((unsigned char)text[i]) && text[i] != '-' && text[i] != '_')
			return NULL;
	return text && *text ? xstrdup(text) : NULL;
}

/* ---- experiments ---- */

/* Names of parameters are short, for those of ops are not. */
static char *param_id(size_t i)
{
	return xstrfmt("p%zu", i);
}

static json_t *params_json(const struct service_experiment *e)
{
	json_t *list = json_array();
	size_t i, k;

	for (i = 0; i < e->n; i++) {
		json_t *values = json_array();
		char *id = param_id(i);

		for (k = 0; k < e->params[i].n; k++)
			json_array_append_new(values, json_string(e->params[i].options[k]));
		json_array_append_new(list, json_pack("{s:s, s:s, s:o}", "name", id, "type", "categorical",
						      "categorical_values", values));
		free(id);
	}
	return list;
}

static json_t *metrics_json(const struct service_experiment *e)
{
	json_t *accuracy = json_pack("{s:s, s:s, s:s}", "name", "accuracy", "objective",
				     e->higher_is_better ? "maximize" : "minimize", "strategy",
				     isfinite(e->threshold) ? "constraint" : "store");

	if (isfinite(e->threshold))
		json_object_set_new(accuracy, "threshold", json_real(e->threshold));
	return json_pack("[o, {s:s, s:s, s:s}]", accuracy, "name", e->objective, "objective", "minimize",
			 "strategy", "optimize");
}

/* not within a character */
static size_t piece_length(const char *text)
{
	size_t n = strnlen(text, METADATA_LENGTH + 1);

	if (n <= METADATA_LENGTH)
		return n;
	for (n = METADATA_LENGTH; n > 1 && (text[n] & 0xc0) == 0x80;)
		n--;
	return n;
}

/*
 * What the short names stand for: {"p0":"/conv1/Conv",…}, cut into pieces under "map0", "map1", …, for a server takes few
 * keys and short values. It is for people: a map that is too long is not complete.
 */
static json_t *metadata_json(const struct service_experiment *e)
{
	json_t *map = json_object(), *out = json_pack("{s:s}", "optimizer_client", "fettle");
	char *text, *p;
	size_t i, n;

	for (i = 0; i < e->n; i++) {
		char *id = param_id(i);

		json_object_set_new(map, id, json_string_nocheck(e->params[i].name));
		free(id);
	}
	text = json_dumps(map, JSON_COMPACT | JSON_ENSURE_ASCII);
	for (p = text, i = 0; p && *p && i < METADATA_KEYS - 1; p += n, i++) {
		char *key = xstrfmt("map%zu", i);

		n = piece_length(p);
		json_object_set_new(out, key, json_stringn(p, n));
		free(key);
	}
	free(text);
	json_decref(map);
	return out;
}

static void use_experiment(struct sigopt *s, const struct service_experiment *e, const char *id)
{
	s->e = *e;
	free(s->path);
	s->path = xstrfmt("/v1/experiments/%s", id);
}

static enum fettle_status create(struct service *service, const struct service_experiment *e, char **id,
				 struct err *err)
{
	struct sigopt *s = (struct sigopt *)service;
	json_t *answer = NULL;
	enum fettle_status st;

	st = call(s, "POST", "/v1/experiments",
		  json_pack("{s:s, s:s, s:o, s:o, s:I, s:I, s:o}", "name", s->name, "project", s->project,
			    "parameters", params_json(e), "metrics", metrics_json(e), "observation_budget",
			    (json_int_t)e->budget, "parallel_bandwidth", (json_int_t)e->workers, "metadata",
			    metadata_json(e)),
		  &answer, err);
	if (st)
		return st;
	*id = id_of(answer);
	if (*id)
		use_experiment(s, e, *id);
	else
		st = nonsense(s, "POST", "/v1/experiments", "the experiment has no id", err);
	json_decref(answer);
	return st;
}

static enum fettle_status resume(struct service *service, const struct service_experiment *e, const char *id,
				 struct err *err)
{
	struct sigopt *s = (struct sigopt *)service;
	json_t *answer = NULL;
	const char *state;
	enum fettle_status st;

	use_experiment(s, e, id);
	st = call(s, "GET", s->path, NULL, &answer, err);
	if (st)
		return st;
	state = json_string_value(json_object_get(answer, "state"));
	if (state && strcmp(state, "deleted") == 0)
		st = fail(err, FETTLE_INVALID,
			  "cannot continue experiment %s of the SigOpt server %s: it was deleted", id,
			  http_url(s->http));
	else if (json_array_size(json_object_get(answer, "parameters")) != e->n)
		st = fail(err, FETTLE_INVALID,
			  "cannot continue experiment %s of the SigOpt server %s: it has %zu parameters, "
			  "need %zu",
			  id, http_url(s->http), json_array_size(json_object_get(answer, "parameters")),
			  e->n);
	json_decref(answer);
	return st;
}

/* ---- suggestions ---- */

/* SIZE_MAX: none of the parameter's */
static size_t option_of(const struct service_param *p, const char *name)
{
	size_t k;

	for (k = 0; name && k < p->n; k++)
		if (strcmp(p->options[k], name) == 0)
			return k;
	return SIZE_MAX;
}

/* false: there is no option for some parameter */
static bool read_choice(const struct service_experiment *e, const json_t *answer, size_t *choice)
{
	const json_t *assignments = json_object_get(answer, "assignments");
	size_t i;

	for (i = 0; i < e->n; i++) {
		char *id = param_id(i);

		choice[i] = option_of(&e->params[i], json_string_value(json_object_get(assignments, id)));
		free(id);
		if (choice[i] == SIZE_MAX)
			return false;
	}
	return true;
}

static enum fettle_status suggest(struct service *service, size_t *choice, char **suggestion, struct err *err)
{
	struct sigopt *s = (struct sigopt *)service;
	char *path = xstrfmt("%s/suggestions", s->path), *id;
	json_t *answer = NULL;
	enum fettle_status st = call(s, "POST", path, json_object(), &answer, err);

	if (st)
		goto out;
	id = id_of(answer);
	if (id && read_choice(&s->e, answer, choice)) {
		*suggestion = id;
	} else {
		st = nonsense(s, "POST", path,
			      id ? "a parameter is missing, or has a value that was not on offer"
				 : "the suggestion has no id",
			      err);
		free(id);
	}
out:
	json_decref(answer);
	free(path);
	return st;
}

static enum fettle_status observe(struct service *service, const char *suggestion,
				  const struct service_result *r, struct err *err)
{
	struct sigopt *s = (struct sigopt *)service;
	char *path = xstrfmt("%s/observations", s->path);
	json_t *body = json_pack("{s:s}", "suggestion", suggestion);
	enum fettle_status st;

	if (r->failed || !isfinite(r->accuracy) || !isfinite(r->objective))
		json_object_set_new(body, "failed", json_true());
	else
		json_object_set_new(body, "values",
				    json_pack("[{s:s, s:f}, {s:s, s:f}]", "name", "accuracy", "value",
					      r->accuracy, "name", s->e.objective, "value", r->objective));
	st = call(s, "POST", path, body, NULL, err);
	if (st == FETTLE_INVALID && http_tries(s->http) > 1)
		st = FETTLE_OK; /* the answer to an earlier try was lost: it has this observation already */
	free(path);
	return st;
}

static enum fettle_status drop(struct service *service, const char *suggestion, struct err *err)
{
	struct sigopt *s = (struct sigopt *)service;
	char *path = xstrfmt("%s/suggestions/%s", s->path, suggestion);
	enum fettle_status st = call(s, "DELETE", path, NULL, NULL, err);

	free(path);
	return st;
}

/* ---- the service ---- */

static void sigopt_free(struct service *service)
{
	struct sigopt *s = (struct sigopt *)service;

	http_free(s->http);
	if (s->token)
		memset(s->token, 0, strlen(s->token));
	free(s->token);
	free(s->project);
	free(s->name);
	free(s->path);
	free(s);
}

static enum fettle_status check_options(const struct sigopt_options *o, struct err *err)
{
	if (!o->http.user || !*o->http.user)
		return fail(err, FETTLE_INVALID,
			    "cannot use strategy sigopt: it has no token; set sigopt_api_token, or "
			    "SIGOPT_API_TOKEN in the environment");
	if (!o->project || !*o->project)
		return fail(err, FETTLE_INVALID,
			    "cannot use strategy sigopt: it has no project; set sigopt_project_id");
	if (!o->http.url || !*o->http.url)
		return fail(err, FETTLE_INVALID,
			    "cannot use strategy sigopt: it has no server; the hosted service is gone, but "
			    "its server is open source: set sigopt_api_url, or SIGOPT_API_URL in the "
			    "environment, to the address of yours");
	if (!*o->name || strlen(o->name) >= NAME_MAX_LENGTH)
		return fail(err, FETTLE_INVALID,
			    "cannot set sigopt_experiment_name: %zu characters, need 1 to %d",
			    strlen(o->name), NAME_MAX_LENGTH - 1);
	return FETTLE_OK;
}

enum fettle_status sigopt_new(struct service **out, const struct sigopt_options *o, struct err *err)
{
	enum fettle_status st = check_options(o, err);
	struct http *http = NULL;
	struct sigopt *s;

	if (!st)
		st = http_new(&http, &o->http, err);
	if (st)
		return st;
	s = xcalloc(1, sizeof(*s));
	s->service = (struct service){ .create = create,
				       .resume = resume,
				       .suggest = suggest,
				       .observe = observe,
				       .drop = drop,
				       .free = sigopt_free };
	s->http = http;
	s->token = xstrdup(o->http.user);
	s->project = xstrdup(o->project);
	s->name = xstrdup(o->name);
	*out = &s->service;
	return FETTLE_OK;
}
