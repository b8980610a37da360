#include "config/resume.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <jansson.h>

#include "base/file.h"
#include "base/fingerprint.h"
#include "config/secret.h"

enum { DECIDES = true, FREE = false };
#define ROW(member, kind, decides)                                                                           \
	{                                                                                                    \
#member, OPTION_##kind, offsetof(struct call_options, member),                               \
			sizeof(((struct call_options *)0)->member), decides                                  \
	}
const struct option_row option_rows[] = {
	ROW(model, PATH, FREE),
	ROW(output, PATH, FREE),
	ROW(config, PATH, FREE),
	ROW(calib, PATH, FREE),
	ROW(calib_samples, COUNT, FREE), /* also a setting, as some of those that follow */
	ROW(eval, PATH, FREE),
	ROW(eval_samples, COUNT, DECIDES),
	ROW(batch, COUNT, DECIDES),
	ROW(seed, SEED, DECIDES),
	ROW(metric, TEXT, FREE),
	ROW(eval_cmd, TEXT, FREE),
	ROW(reference, PATH, FREE),
	ROW(approach, TEXT, FREE),
	ROW(format, TEXT, FREE),
	ROW(act_dtype, GONE, FREE), /* of fettle_quantize(), as are those that follow */
	ROW(act_scheme, GONE, FREE),
	ROW(algorithm, GONE, FREE),
	ROW(weight_dtype, GONE, FREE),
	ROW(weight_scheme, GONE, FREE),
	ROW(granularity, GONE, FREE),
	ROW(reduce_range, GONE, FREE),
	ROW(keep_fp32, TEXT, DECIDES),
	ROW(quantize, GONE, FREE),
	ROW(threads, INT, DECIDES), /* times are only comparable with the same */
	ROW(seconds, GONE, FREE),
	ROW(decode, GONE, FREE),
	ROW(past, GONE, FREE),
	ROW(no_early, YES, DECIDES),
	ROW(confidence, REAL, DECIDES),
	ROW(jobs, TEXT, FREE),
	ROW(cache, TEXT, FREE),
	ROW(helper, GONE, FREE),
	ROW(settings, GONE, FREE), /* kept as a list */
	ROW(n_settings, GONE, FREE),
	ROW(workspace, GONE, FREE),
	ROW(resume, GONE, FREE),
	ROW(holdout, PATH, FREE),
	ROW(plan, GONE, FREE),
	ROW(capability, PATH, DECIDES),
	ROW(evaluate, GONE, FREE), /* the caller's own: run_request.own */
	ROW(evaluate_self, GONE, FREE),
	ROW(model_bytes, GONE, FREE),
	ROW(model_size, GONE, FREE),
	ROW(calib_source, GONE, FREE),
	ROW(eval_source, GONE, FREE),
	ROW(recipes, GONE, FREE), /* kept as a list */
	ROW(n_recipes, GONE, FREE),
	ROW(eval_server, TEXT, FREE),
	ROW(cpu, TEXT, FREE), /* also a setting */
	ROW(scores, TEXT, FREE),
	ROW(resumed, GONE, FREE),
	ROW(ranks, GONE, FREE),
	ROW(broadcast_data, GONE, FREE),
};
const size_t n_option_rows = ARRAY_LEN(option_rows);

static const void *field_of(const struct call_options *o, const struct option_row *row)
{
	return (const char *)o + row->at;
}

static bool is_given(const struct call_options *o, const struct option_row *row)
{
	static const char zero[sizeof(double)];

	return row->kind != OPTION_GONE && memcmp(field_of(o, row), zero, row->size) != 0;
}

/* ---- what decides ---- */

static enum fettle_status add_print(struct str *out, const char *name, const char *path, struct err *err)
{
	char print[FINGERPRINT_LEN];
	enum fettle_status st = fingerprint_file(path, print, err);

	if (!st)
		str_addf(out, "%s: %s\n", name, print);
	return st;
}

static enum fettle_status add_option(struct str *out, const struct option_row *row, const void *field,
				     struct err *err)
{
	switch (row->kind) {
	case OPTION_PATH: /* a file is known by what is in it */
		return add_print(out, row->name, *(const char *const *)field, err);
	case OPTION_TEXT:
		str_addf(out, "%s: %s\n", row->name, *(const char *const *)field);
		break;
	case OPTION_COUNT:
		str_addf(out, "%s: %zu\n", row->name, *(const size_t *)field);
		break;
	case OPTION_SEED:
		str_addf(out, "%s: %llu\n", row->name, (unsigned long long)*(const uint64_t *)field);
		break;
	case OPTION_INT:
		str_addf(out, "%s: %d\n", row->name, *(const int *)field);
		break;
	case OPTION_REAL:
		str_addf(out, "%s: %.17g\n", row->name, *(const double *)field);
		break;
	default:
		str_addf(out, "%s: yes\n", row->name);
		break;
	}
	return FETTLE_OK;
}

enum fettle_status run_request_identity(const struct request *r, struct str *out, struct err *err)
{
	const struct members *m = &r->cx->members;
	enum fettle_status st = FETTLE_OK;
	size_t i;

	for (i = 0; i < n_option_rows && !st; i++)
		if (option_rows[i].decides && is_given(&r->o, &option_rows[i]))
			st = add_option(out, &option_rows[i], field_of(&r->o, &option_rows[i]), err);
	if (r->o.evaluate)
		str_addf(out, "evaluator: a function\n");
	for (i = 0; i < m->plugins.n && !st; i++)
		st = add_print(out, path_base(m->plugins.v[i].path), m->plugins.v[i].path, err);
	return st;
}

/* ---- keeping it ---- */

/* a path, or DATA of a registered kind: "NAME:ROOT" */
static char *absolute_data(const struct members *m, const char *data)
{
	const char *root = data;
	const struct fettle_dataset *own = registered_dataset_named(m, data, &root);
	char *path = path_absolute(root), *out;

	if (!own)
		return path;
	out = xstrfmt("%s:%s", own->name, path);
	free(path);
	return out;
}

static json_t *option_json(const struct members *m, const struct option_row *row, const void *field)
{
	json_t *j;
	char *path;

	switch (row->kind) {
	case OPTION_PATH:
		path = absolute_data(m, *(const char *const *)field);
		j = json_string_nocheck(path);
		free(path);
		return j;
	case OPTION_TEXT:
		return json_string_nocheck(*(const char *const *)field);
	case OPTION_COUNT:
		return json_integer((json_int_t) * (const size_t *)field);
	case OPTION_SEED:
		return json_integer((json_int_t) * (const uint64_t *)field);
	case OPTION_INT:
		return json_integer(*(const int *)field);
	case OPTION_REAL:
		return json_real(*(const double *)field);
	default:
		return json_true();
	}
}

static json_t *options_json(const struct request *r)
{
	json_t *j = json_object();
	size_t i;

	for (i = 0; i < n_option_rows; i++)
		if (is_given(&r->o, &option_rows[i]))
			json_object_set_new(j, option_rows[i].name,
					    option_json(&r->cx->members, &option_rows[i],
							field_of(&r->o, &option_rows[i])));
	if (r->temp)
		json_object_del(j, "model");
	return j;
}

/* A text that is not UTF-8 stays as its bytes: the reader takes it as it comes. */
static json_t *settings_json(const struct request *r)
{
	json_t *list = json_array(), *one;
	size_t i;

	for (i = 0; i < r->o.n_settings; i++) {
		if (setting_is_secret(r->o.settings[i].key))
			continue;
		one = json_array();
		json_array_append_new(one, json_string_nocheck(r->o.settings[i].key));
		json_array_append_new(one, json_string_nocheck(r->o.settings[i].value));
		json_array_append_new(one, json_string_nocheck(r->o.settings[i].origin));
		json_array_append_new(list, one);
	}
	return list;
}

static enum fettle_status config_json(const struct request *r, json_t **out, struct err *err)
{
	struct bytes file = BYTES_INIT;
	enum fettle_status st = FETTLE_OK;
	char *text;

	*out = json_null();
	if (r->o.config && r->o.resumed) {
		*out = json_string_nocheck(r->o.resumed->config);
	} else if (r->o.config) {
		st = file_map(r->o.config, &file, err);
		if (st)
			return st;
		text = xstrfmt("%.*s", (int)file.n, (const char *)file.p);
		st = config_hide_secrets(r->c, text, err);
		if (!st)
			*out = json_string_nocheck(text);
		free(text);
		bytes_release(&file);
	}
	return st;
}

enum fettle_status run_request_save(const struct request *r, const char *job, char **out, struct err *err)
{
	const char *own = r->o.evaluate       ? "evaluator"
			  : r->o.calib_source ? "calibration data"
			  : r->o.eval_source  ? "evaluation data"
					      : NULL;
	char *folder = r->o.resumed ? xstrdup(r->o.resumed->folder) : path_absolute("");
	json_t *config, *recipes = json_array(), *plugins = json_array(), *j;
	enum fettle_status st = config_json(r, &config, err);
	size_t i;

	for (i = 0; i < r->o.n_recipes; i++)
		json_array_append_new(recipes, json_string_nocheck(r->o.recipes[i]));
	for (i = 0; i < r->cx->members.plugins.n; i++)
		json_array_append_new(plugins, json_string_nocheck(r->cx->members.plugins.v[i].path));
	j = json_pack("{s:s, s:o, s:o, s:o, s:o, s:o, s:o, s:s?, s:b}", "job", job, "folder",
		      json_string_nocheck(folder), "options", options_json(r), "config", config, "settings",
		      settings_json(r), "recipes", recipes, "plugins", plugins, "own", own, "model_kept",
		      r->temp != NULL);
	*out = st ? NULL : json_dumps(j, JSON_COMPACT | JSON_REAL_PRECISION(17));
	json_decref(j);
	free(folder);
	return st;
}

/* ---- and back ---- */

/* One allocation of a text that a JSON value has; NULL: it is none. */
static const char *text_of(struct run_request *r, const json_t *j)
{
	return json_is_string(j) ? arena_strdup(&r->arena, json_string_value(j)) : NULL;
}

static void read_option(struct run_request *r, const struct option_row *row, const json_t *j)
{
	void *field = (char *)&r->o + row->at;

	switch (row->kind) {
	case OPTION_PATH:
	case OPTION_TEXT:
		*(const char **)field = text_of(r, j);
		break;
	case OPTION_COUNT:
		*(size_t *)field = (size_t)json_integer_value(j);
		break;
	case OPTION_SEED:
		*(uint64_t *)field = (uint64_t)json_integer_value(j);
		break;
	case OPTION_INT:
		*(int *)field = (int)json_integer_value(j);
		break;
	case OPTION_REAL:
		*(double *)field = json_number_value(j);
		break;
	case OPTION_YES:
		*(bool *)field = json_is_true(j);
		break;
	default:
		break;
	}
}

static struct config_strings read_texts(struct run_request *r, const json_t *list)
{
	size_t n = json_array_size(list), i;
	struct config_strings out = { arena_alloc(&r->arena, (n + 1) * sizeof(*out.v)), 0 };

	for (i = 0; i < n; i++)
		if (json_is_string(json_array_get(list, i)))
			out.v[out.n++] = text_of(r, json_array_get(list, i));
	return out;
}

static void read_settings(struct run_request *r, const json_t *list)
{
	size_t n = json_array_size(list), i;
	struct fettle_setting *v = arena_alloc(&r->arena, (n + 1) * sizeof(*v));

	for (i = 0; i < n; i++) {
		struct config_strings one = read_texts(r, json_array_get(list, i));

		if (one.n == 3)
			v[r->o.n_settings++] = (struct fettle_setting){ one.v[0], one.v[1], one.v[2] };
	}
	r->o.settings = v;
}

enum fettle_status run_request_load(struct run_request *r, const char *text, const char *what,
				    struct err *err)
{
	struct config_strings recipes;
	const json_t *options;
	json_t *j;
	size_t i;

	*r = (struct run_request){ .job = NULL };
	j = json_loads(text, 0, NULL);
	options = json_object_get(j, "options");
	r->job = text_of(r, json_object_get(j, "job"));
	r->folder = text_of(r, json_object_get(j, "folder"));
	if (!r->job || !r->folder || !options) {
		json_decref(j);
		return fail(err, FETTLE_INVALID,
			    "cannot resume %s: its history does not say how it was begun; begin a new run",
			    what);
	}
	for (i = 0; i < n_option_rows; i++)
		if (json_object_get(options, option_rows[i].name))
			read_option(r, &option_rows[i], json_object_get(options, option_rows[i].name));
	r->config = text_of(r, json_object_get(j, "config"));
	r->own = text_of(r, json_object_get(j, "own"));
	r->model_kept = json_is_true(json_object_get(j, "model_kept"));
	r->plugins = read_texts(r, json_object_get(j, "plugins"));
	recipes = read_texts(r, json_object_get(j, "recipes"));
	r->o.recipes = recipes.v;
	r->o.n_recipes = recipes.n;
	read_settings(r, json_object_get(j, "settings"));
	json_decref(j);
	return FETTLE_OK;
}

void run_request_release(struct run_request *r)
{
	arena_release(&r->arena);
}
