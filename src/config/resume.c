/* A run again, from its workspace alone. A trial that the history has is not run twice. */
#include "config/resume.h"

#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "history/history.h"

/* What the workspace knows of the run. */
static enum fettle_status load_run(struct run_request *r, const char *workspace, size_t *trials,
				   struct err *err)
{
	struct history *h = NULL;
	enum fettle_status st = history_open(&h, workspace, true, err);

	if (!st)
		st = history_count(h, trials, err);
	if (!st)
		st = run_request_load(r, history_run(h)->request, workspace, err);
	history_close(h);
	return st;
}

/* The limits have other names in a search. */
static const char *limit_key(const struct run_request *r, const char *key)
{
	static const char *const names[][2] = {
		{ "tuning.exit_policy.max_trials", "search_stop_condition.iteration_limit" },
		{ "tuning.exit_policy.timeout", "search_stop_condition.time_limit" },
	};
	size_t i;

	for (i = 0; strcmp(r->job, "search") == 0 && i < ARRAY_LEN(names); i++)
		if (strcmp(key, names[i][0]) == 0)
			return names[i][1];
	return key;
}

static void add_settings(struct run_request *r, const struct call_options *o)
{
	size_t n = r->o.n_settings, i;
	struct fettle_setting *v = arena_alloc(&r->arena, (n + o->n_settings + 1) * sizeof(*v));

	for (i = 0; i < n; i++)
		v[i] = r->o.settings[i];
	for (i = 0; i < o->n_settings; i++) {
		v[n + i] = o->settings[i];
		v[n + i].key = limit_key(r, o->settings[i].key);
	}
	r->o.settings = v;
	r->o.n_settings = n + o->n_settings;
}

char *resume_command(const struct run_request *r, const char *command)
{
	char *here = path_absolute("");
	struct str s = STR_INIT;
	const char *p;

	if (strcmp(here, r->folder) != 0) {
		str_addf(&s, "cd '");
		for (p = r->folder; *p; p++)
			if (*p == '\'')
				str_addf(&s, "'\\''");
			else
				str_add(&s, p, 1);
		str_addf(&s, "' || exit 1; ");
	}
	str_addf(&s, "%s", command);
	free(here);
	return s.s;
}

/* What the caller may say anew. */
static enum fettle_status merge(struct run_request *r, const struct call_options *o, const char *workspace,
				struct err *err)
{
	bool has_own = o->evaluate || o->calib_source || o->eval_source;
	char *absolute = path_absolute(workspace);

	r->o.workspace = arena_strdup(&r->arena, absolute);
	free(absolute);
	r->o.resume = true;
	r->o.resumed = r;
	if (r->own && !has_own)
		return fail(err, FETTLE_INVALID,
			    "cannot resume %s: its %s came from the program that began it; resume it there",
			    workspace, r->own);
	r->o.evaluate = o->evaluate;
	r->o.evaluate_self = o->evaluate_self;
	r->o.calib_source = o->calib_source;
	r->o.eval_source = o->eval_source;
	r->o.helper = o->helper;
	r->o.ranks = o->ranks;
	r->o.broadcast_data = o->broadcast_data;
	r->o.output = o->output ? o->output : r->o.output;
	r->o.jobs = o->jobs ? o->jobs : r->o.jobs;
	r->o.cache = o->cache ? o->cache : r->o.cache;
	if (r->model_kept)
		r->o.model = arena_strfmt(&r->arena, "%s/model.onnx", workspace);
	add_settings(r, o);
	return FETTLE_OK;
}

void resume_note_finished(struct context *cx, enum fettle_stop stop)
{
	static const struct {
		enum fettle_stop stop;
		const char *text;
	} notes[] = {
		{ FETTLE_STOP_ACCURACY_MET,
		  "the target is met; a --timeout keeps it looking for a faster model" },
		{ FETTLE_STOP_MAX_TRIALS, "all trials are used up; a larger --max-trials continues it" },
		{ FETTLE_STOP_TIMEOUT, "its time is used up; a larger --timeout continues it" },
		{ FETTLE_STOP_EXHAUSTED, "there is nothing more to try" },
	};
	size_t i;

	for (i = 0; i < ARRAY_LEN(notes); i++)
		if (notes[i].stop == stop) {
			char *text = xstrfmt("this run is finished: %s", notes[i].text);

			context_note(cx, text);
			free(text);
		}
}

enum fettle_status resume_load(struct run_request *r, const struct call_options *o, size_t *trials,
			       struct err *err)
{
	enum fettle_status st;

	if (!o->workspace)
		return fail(err, FETTLE_INVALID, "cannot resume: need a workspace");
	st = load_run(r, o->workspace, trials, err);
	return st ? st : merge(r, o, o->workspace, err);
}
