/* Every command by its name, for other languages: options as a JSON object in, what the command prints with --json out. */
#include "api/json.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"

static char *text_of(json_t *j)
{
	char *text = json_dumps(j, JSON_INDENT(2) | JSON_REAL_PRECISION(10));

	json_decref(j);
	return text;
}

/* ---- results by themselves ---- */

char *fettle_tuned_json(const struct fettle *f, const struct fettle_tuned *t)
{
	return text_of(json_of_tuned(f, t));
}

char *fettle_quantized_json(const struct fettle *f, const struct fettle_quantized *q)
{
	struct fettle_quantized full = FETTLE_QUANTIZED_INIT;

	api_take(&full, q, sizeof(full));
	return text_of(json_of_quantized(f, &full));
}

char *fettle_score_json(const struct fettle *f, const struct fettle_score *s)
{
	struct fettle_score full = FETTLE_SCORE_INIT;

	api_take(&full, s, sizeof(full));
	return text_of(json_of_score(f, &full));
}

char *fettle_timings_json(const struct fettle_bench_options *o, const struct fettle_timing *t)
{
	struct fettle_timing *full = xcalloc(o->n_models, sizeof(*full));
	json_t *j;
	size_t i;

	for (i = 0; i < o->n_models; i++)
		api_take(&full[i], (const char *)t + i * t->size, sizeof(*full));
	j = json_of_timings(o->models, o->n_models, full);
	free(full);
	return text_of(j);
}

char *fettle_inspection_json(const struct fettle *f, const struct fettle_inspection *x)
{
	return text_of(json_of_inspection(f, x));
}

char *fettle_sensitivity_json(const struct fettle *f, const struct fettle_sensitivity *s)
{
	return text_of(json_of_sensitivity(f, s));
}

char *fettle_run_json(const struct fettle_run *r, bool pareto)
{
	return text_of(json_of_run(r, pareto));
}

char *fettle_runs_json(const struct fettle_run *const *v, size_t n)
{
	return text_of(json_of_runs(v, n));
}

/* ---- the commands ---- */

struct history_options {
	size_t size;
	const char *workspace;
	bool pareto;
};
static const struct option_field history_fields[] = {
	{ .name = "workspace", .kind = FIELD_TEXT, .at = offsetof(struct history_options, workspace) },
	{ .name = "pareto", .kind = FIELD_YES, .at = offsetof(struct history_options, pareto) },
};
static const struct options_type options_history = {
	.name = "history",
	.init = &(const struct history_options){ .size = sizeof(struct history_options) },
	.size = sizeof(struct history_options),
	.fields = history_fields,
	.n = ARRAY_LEN(history_fields),
};

static enum fettle_status give_tuned(struct fettle *f, enum fettle_status st, struct fettle_tuned *t,
				     json_t **out)
{
	if (!st)
		*out = json_of_tuned(f, t);
	fettle_tuned_free(t);
	return st;
}

static enum fettle_status call_tune(struct fettle *f, const void *o, json_t **out)
{
	struct fettle_tuned *t = NULL;
	enum fettle_status st = fettle_tune(f, o, &t);

	return give_tuned(f, st, t, out);
}

static enum fettle_status call_search(struct fettle *f, const void *o, json_t **out)
{
	struct fettle_tuned *t = NULL;
	enum fettle_status st = fettle_auto_search(f, o, &t);

	return give_tuned(f, st, t, out);
}

static enum fettle_status call_resume(struct fettle *f, const void *o, json_t **out)
{
	struct fettle_tuned *t = NULL;
	enum fettle_status st = fettle_resume(f, o, &t);

	return give_tuned(f, st, t, out);
}

static enum fettle_status call_quantize(struct fettle *f, const void *o, json_t **out)
{
	struct fettle_quantized q = FETTLE_QUANTIZED_INIT;
	enum fettle_status st = fettle_quantize(f, o, &q);

	if (!st)
		*out = json_of_quantized(f, &q);
	return st;
}

static enum fettle_status call_eval(struct fettle *f, const void *o, json_t **out)
{
	struct fettle_score s = FETTLE_SCORE_INIT;
	enum fettle_status st = fettle_eval(f, o, &s);

	if (!st)
		*out = json_of_score(f, &s);
	return st;
}

static enum fettle_status call_bench(struct fettle *f, const void *options, json_t **out)
{
	const struct fettle_bench_options *o = options;
	struct fettle_timing *t = xcalloc(o->n_models, sizeof(*t));
	enum fettle_status st;
	size_t i;

	for (i = 0; i < o->n_models; i++)
		t[i].size = sizeof(*t);
	st = fettle_bench(f, o, t);
	if (!st)
		*out = json_of_timings(o->models, o->n_models, t);
	free(t);
	return st;
}

static enum fettle_status call_inspect(struct fettle *f, const void *o, json_t **out)
{
	struct fettle_inspection *x = NULL;
	enum fettle_status st = fettle_inspect(f, o, &x);

	if (!st)
		*out = json_of_inspection(f, x);
	fettle_inspection_free(x);
	return st;
}

static enum fettle_status call_sensitivity(struct fettle *f, const void *o, json_t **out)
{
	struct fettle_sensitivity *s = NULL;
	enum fettle_status st = fettle_sensitivity(f, o, &s);

	if (!st)
		*out = json_of_sensitivity(f, s);
	fettle_sensitivity_free(s);
	return st;
}

static enum fettle_status call_recover(struct fettle *f, const void *options, json_t **out)
{
	const struct fettle_recover_options *o = options;
	enum fettle_status st = fettle_recover(f, o);

	if (!st)
		*out = json_pack("{s:s?, s:s, s:o}", "output", o->output, "workspace", o->workspace, "trial",
				 o->trial ? json_integer((json_int_t)o->trial) : json_null());
	return st;
}

/* A run that cannot be read fails the call: its name is in the message. */
static enum fettle_status list_runs(struct fettle *f, json_t **out)
{
	struct fettle_run **runs;
	char **paths = NULL;
	size_t n = 0, i;
	enum fettle_status st = fettle_workspaces(f, NULL, &paths, &n);

	runs = xcalloc(n, sizeof(struct fettle_run *));
	for (i = 0; i < n && !st; i++)
		st = fettle_history(f, paths[i], &runs[i]);
	if (!st)
		*out = json_of_runs((const struct fettle_run *const *)runs, n);
	for (i = 0; i < n; i++) {
		fettle_run_free(runs[i]);
		free(paths[i]);
	}
	free(runs);
	free(paths);
	return st;
}

static enum fettle_status call_history(struct fettle *f, const void *options, json_t **out)
{
	const struct history_options *o = options;
	struct fettle_run *r = NULL;
	enum fettle_status st;

	if (!o->workspace)
		return list_runs(f, out);
	st = fettle_history(f, o->workspace, &r);
	if (!st)
		*out = json_of_run(r, o->pareto);
	fettle_run_free(r);
	return st;
}

static enum fettle_status call_recipes(struct fettle *f, const void *o, json_t **out)
{
	(void)f, (void)o;
	*out = json_of_recipes();
	return FETTLE_OK;
}

static enum fettle_status call_cpus(struct fettle *f, const void *o, json_t **out)
{
	(void)f, (void)o;
	*out = json_of_cpus();
	return FETTLE_OK;
}

static enum fettle_status call_strategies(struct fettle *f, const void *o, json_t **out)
{
	(void)f, (void)o;
	*out = json_of_strategies();
	return FETTLE_OK;
}

static const struct options_type no_options = {
	.name = "",
	.init = &(const struct { size_t size; }){ sizeof(size_t) },
	.size = sizeof(size_t),
};
static const struct json_call {
	const char *name;
	const struct options_type *options;
	enum fettle_status (*run)(struct fettle *f, const void *options, json_t **out);
} calls[] = {
	{ "tune", &options_tune, call_tune },
	{ "search", &options_search, call_search },
	{ "resume", &options_resume, call_resume },
	{ "quantize", &options_quantize, call_quantize },
	{ "eval", &options_eval, call_eval },
	{ "bench", &options_bench, call_bench },
	{ "inspect", &options_inspect, call_inspect },
	{ "sensitivity", &options_sensitivity, call_sensitivity },
	{ "history", &options_history, call_history },
	{ "recover", &options_recover, call_recover },
	{ "strategies", &no_options, call_strategies },
	{ "recipes", &no_options, call_recipes },
	{ "cpus", &no_options, call_cpus },
};

/* ---- options ---- */

struct reader {
	const struct json_call *call;
	char *options; /* the call's struct */
	struct arena arena;
	struct err *err;
};

static enum fettle_status wrong(const struct reader *r, const char *name, const json_t *j, const char *need)
{
	char *text = json_dumps(j, JSON_ENCODE_ANY | JSON_COMPACT);
	enum fettle_status st = fail(r->err, FETTLE_INVALID, "cannot call %s: option '%s' is %.200s, need %s",
				     r->call->name, name, text ? text : "not text", need);

	free(text);
	return st;
}

static bool in_json(const struct option_field *f)
{
	return f->kind != FIELD_POINTER && f->kind != FIELD_DATA;
}

static enum fettle_status unknown(const struct reader *r, const char *name)
{
	const struct options_type *t = r->call->options;
	const char *names[64], *near;
	size_t i, n = 0;

	for (i = 0; i < t->n && n < ARRAY_LEN(names); i++)
		if (in_json(&t->fields[i]))
			names[n++] = t->fields[i].name;
	near = str_nearest(name, names, n);
	return fail(r->err, FETTLE_INVALID, "cannot call %s: unknown option '%.80s'%s%s%s", r->call->name,
		    name, near ? ", did you mean '" : "", near ? near : "", near ? "'?" : "");
}

/* an array of texts, or one */
static enum fettle_status read_texts(struct reader *r, const struct option_field *f, const json_t *j)
{
	size_t n = json_is_array(j) ? json_array_size(j) : 1, i;
	const char **v = arena_alloc(&r->arena, (n + 1) * sizeof(*v));

	for (i = 0; i < n; i++) {
		v[i] = json_string_value(json_is_array(j) ? json_array_get(j, i) : j);
		if (!v[i])
			return wrong(r, f->name, j, "a list of texts");
	}
	memcpy(r->options + f->at, &v, sizeof(v));
	memcpy(r->options + f->at + sizeof(v), &n, sizeof(n));
	return FETTLE_OK;
}

/* {"tuning.exit_policy.timeout": 60} */
static enum fettle_status read_settings(struct reader *r, const struct option_field *f, json_t *j)
{
	size_t n = json_object_size(j), i = 0;
	struct fettle_setting *v = arena_alloc(&r->arena, (n + 1) * sizeof(*v));
	const char *key;
	json_t *value;

	if (!json_is_object(j))
		return wrong(r, f->name, j, "an object of settings");
	json_object_foreach(j, key, value)
	{
		char *text = json_is_string(value) ? xstrdup(json_string_value(value))
						   : json_dumps(value, JSON_ENCODE_ANY | JSON_COMPACT);

		v[i++] = (struct fettle_setting){ key, arena_strdup(&r->arena, text), "settings" };
		free(text);
	}
	memcpy(r->options + f->at, &v, sizeof(v));
	memcpy(r->options + f->at + sizeof(v), &n, sizeof(n));
	return FETTLE_OK;
}

static enum fettle_status read_option(struct reader *r, const struct option_field *f, json_t *j)
{
	char *to = r->options + f->at;
	const json_int_t whole = json_integer_value(j);
	const char *text = json_string_value(j);

	switch (f->kind) {
	case FIELD_TEXT:
		if (!text)
			return wrong(r, f->name, j, "a text");
		memcpy(to, &text, sizeof(text));
		return FETTLE_OK;
	case FIELD_COUNT:
	case FIELD_SEED:
		if (!json_is_integer(j) || whole < 0)
			return wrong(r, f->name, j, "a whole number, 0 or more");
		_Static_assert(sizeof(size_t) == sizeof(json_int_t), "a count is as wide as JSON's integers");
		memcpy(to, &whole, sizeof(whole));
		return FETTLE_OK;
	case FIELD_WHOLE:
		if (!json_is_integer(j) || whole < -1)
			return wrong(r, f->name, j, "a whole number, 0 or more, or -1 for no limit");
		memcpy(to, &whole, sizeof(whole));
		return FETTLE_OK;
	case FIELD_INT:
		if (!json_is_integer(j) || whole < INT_MIN || whole > INT_MAX)
			return wrong(r, f->name, j, "a whole number");
		*(int *)(void *)to = (int)whole;
		return FETTLE_OK;
	case FIELD_REAL:
		if (!json_is_number(j))
			return wrong(r, f->name, j, "a number");
		*(double *)(void *)to = json_number_value(j);
		return FETTLE_OK;
	case FIELD_YES:
		if (!json_is_boolean(j))
			return wrong(r, f->name, j, "true or false");
		*(bool *)(void *)to = json_is_true(j);
		return FETTLE_OK;
	case FIELD_TEXTS:
		return read_texts(r, f, j);
	default:
		return read_settings(r, f, j);
	}
}

/* null is as if it were not there */
static enum fettle_status read_options(struct reader *r, json_t *in)
{
	const struct options_type *t = r->call->options;
	enum fettle_status st = FETTLE_OK;
	const char *name;
	json_t *value;
	size_t i;

	json_object_foreach(in, name, value)
	{
		for (i = 0; i < t->n; i++)
			if (in_json(&t->fields[i]) && strcmp(t->fields[i].name, name) == 0)
				break;
		if (i == t->n)
			return unknown(r, name);
		if (!json_is_null(value))
			st = read_option(r, &t->fields[i], value);
		if (st)
			return st;
	}
	return FETTLE_OK;
}

static enum fettle_status find_call(const char *name, const struct json_call **out, struct err *err)
{
	const char *names[ARRAY_LEN(calls)], *near;
	size_t i;

	for (i = 0; i < ARRAY_LEN(calls); i++) {
		names[i] = calls[i].name;
		if (name && strcmp(calls[i].name, name) == 0) {
			*out = &calls[i];
			return FETTLE_OK;
		}
	}
	near = name ? str_nearest(name, names, ARRAY_LEN(calls)) : NULL;
	return fail(err, FETTLE_INVALID, "cannot call '%.80s': there is no such command%s%s%s",
		    name ? name : "", near ? ", did you mean '" : "", near ? near : "", near ? "'?" : "");
}

enum fettle_status fettle_call_json(struct fettle *f, const char *command, const char *json_in,
				    char **json_out)
{
	struct reader r = { .arena = ARENA_INIT, .err = &f->err };
	json_t *in = NULL, *out = NULL;
	json_error_t why;
	enum fettle_status st;

	api_clear(f);
	*json_out = NULL;
	st = find_call(command, &r.call, &f->err);
	if (st)
		return st;
	in = json_loads(json_in ? json_in : "{}", JSON_REJECT_DUPLICATES, &why);
	if (!in)
		st = fail(&f->err, FETTLE_INVALID, "cannot read the options of %s: line %d, column %d: %s",
			  command, why.line, why.column, why.text);
	else if (!json_is_object(in))
		st = fail(&f->err, FETTLE_INVALID, "cannot read the options of %s: need a JSON object",
			  command);
	if (!st) {
		r.options = arena_alloc(&r.arena, r.call->options->size);
		memcpy(r.options, r.call->options->init, r.call->options->size);
		st = read_options(&r, in);
	}
	if (!st)
		st = r.call->run(f, r.options, &out);
	if (!st)
		*json_out = text_of(out);
	json_decref(in);
	arena_release(&r.arena);
	return st;
}
