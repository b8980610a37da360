/* A call's options from a JSON object. */
#include <jansson.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "config/options.h"

struct reader {
	const char *name; /* of the command */
	const struct options_type *type;
	char *options; /* the call's struct */
	struct arena *arena;
	struct err *err;
};

static enum fettle_status wrong(const struct reader *r, const char *name, const json_t *j, const char *need)
{
	char *text = json_dumps(j, JSON_ENCODE_ANY | JSON_COMPACT);
	enum fettle_status st = fail(r->err, FETTLE_INVALID, "cannot call %s: option '%s' is %.200s, need %s",
				     r->name, name, text ? text : "not text", need);

	free(text);
	return st;
}

static enum fettle_status unknown(const struct reader *r, const char *name)
{
	const struct options_type *t = r->type;
	const char *names[64], *near;
	size_t i, n = 0;

	for (i = 0; i < t->n && n < ARRAY_LEN(names); i++)
		names[n++] = t->fields[i].name;
	near = str_nearest(name, names, n);
	return fail(r->err, FETTLE_INVALID, "cannot call %s: unknown option '%.80s'%s%s%s", r->name, name,
		    near ? ", did you mean '" : "", near ? near : "", near ? "'?" : "");
}

/* an array of texts, or one */
static enum fettle_status read_texts(struct reader *r, const struct option_field *f, const json_t *j)
{
	size_t n = json_is_array(j) ? json_array_size(j) : 1, i;
	const char **v = arena_alloc(r->arena, (n + 1) * sizeof(*v));

	for (i = 0; i < n; i++) {
		const char *text = json_string_value(json_is_array(j) ? json_array_get(j, i) : j);

		if (!text)
			return wrong(r, f->name, j, "a list of texts");
		v[i] = arena_strdup(r->arena, text);
	}
	memcpy(r->options + f->at, &v, sizeof(v));
	memcpy(r->options + f->at + sizeof(v), &n, sizeof(n));
	return FETTLE_OK;
}

/* {"tuning.exit_policy.timeout": 60} */
static enum fettle_status read_settings(struct reader *r, const struct option_field *f, json_t *j)
{
	size_t n = json_object_size(j), i = 0;
	struct fettle_setting *v = arena_alloc(r->arena, (n + 1) * sizeof(*v));
	const char *key;
	json_t *value;

	if (!json_is_object(j))
		return wrong(r, f->name, j, "an object of settings");
	json_object_foreach(j, key, value)
	{
		char *text = json_is_string(value) ? xstrdup(json_string_value(value))
						   : json_dumps(value, JSON_ENCODE_ANY | JSON_COMPACT);

		v[i++] = (struct fettle_setting){ arena_strdup(r->arena, key), arena_strdup(r->arena, text),
						  "settings" };
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
		text = arena_strdup(r->arena, text);
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
	case FIELD_DATA:
	case FIELD_POINTER:
		if (!json_is_integer(j) || whole < 0)
			return wrong(r, f->name, j, "an address in this process, as a whole number");
		memcpy(to, &whole, sizeof(void *));
		return FETTLE_OK;
	default:
		return read_settings(r, f, j);
	}
}

/* null is as if it were not there */
static enum fettle_status read_options(struct reader *r, json_t *in)
{
	const struct options_type *t = r->type;
	enum fettle_status st = FETTLE_OK;
	const char *name;
	json_t *value;
	size_t i;

	json_object_foreach(in, name, value)
	{
		for (i = 0; i < t->n; i++)
			if (strcmp(t->fields[i].name, name) == 0)
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

enum fettle_status options_from_json(const struct options_type *type, const char *name, const char *json,
				     struct arena *a, void **out, struct err *err)
{
	struct reader r = {
		.name = name, .type = type, .options = arena_alloc(a, type->size), .arena = a, .err = err
	};
	json_error_t why;
	json_t *in = json_loads(json ? json : "{}", JSON_REJECT_DUPLICATES, &why);
	enum fettle_status st;

	memcpy(r.options, type->init, type->size);
	if (!in)
		st = fail(err, FETTLE_INVALID, "cannot read the options of %s: line %d, column %d: %s", name,
			  why.line, why.column, why.text);
	else if (!json_is_object(in))
		st = fail(err, FETTLE_INVALID, "cannot read the options of %s: need a JSON object", name);
	else
		st = read_options(&r, in);
	*out = r.options;
	json_decref(in);
	return st;
}
