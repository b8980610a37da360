/* What sets one plan apart from another, in words. */
#include "space/plan_json.h"

#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "base/map.h"

enum { NAMES_SHOWN = 3, CHANGES_SHOWN = 3 }; /* the plan itself has the rest */

/* Ops that changed alike: "a, b and 4 more" and "in fp32" */
struct change {
	char *what;
	struct str names;
	size_t n;
};
struct changes {
	struct change *v;
	size_t n, cap;
};

static void add_change(struct changes *list, const char *name, char *what)
{
	struct change *c = NULL;
	size_t i;

	for (i = 0; i < list->n && !c; i++)
		if (strcmp(list->v[i].what, what) == 0)
			c = &list->v[i];
	if (c) {
		free(what);
	} else {
		VEC_PUSH(list, ((struct change){ .what = what }));
		c = &list->v[list->n - 1];
	}
	if (c->n++ < NAMES_SHOWN)
		str_addf(&c->names, "%s%s", c->n > 1 ? ", " : "", name);
}

static char *value_text(const json_t *j)
{
	char *dumped, *out;

	if (json_is_string(j))
		return xstrdup(json_string_value(j));
	if (json_is_boolean(j))
		return xstrdup(json_is_true(j) ? "on" : "off");
	if (json_is_object(j) && json_object_get(j, "algorithm"))
		return xstrdup(json_string_value(json_object_get(j, "algorithm")));
	dumped = json_dumps(j, JSON_ENCODE_ANY | JSON_COMPACT | JSON_REAL_PRECISION(6));
	out = xstrdup(dumped ? dumped : "");
	free(dumped);
	return out;
}

static bool ends_with(const struct str *s, const char *word)
{
	size_t n = strlen(word);

	return s->n >= n && strcmp(s->s + s->n - n, word) == 0;
}

/*
 * "weight per_tensor mse": what one side of an op has that differs. Words say it all, numbers need their name, unless that
 * was just said: "percentile 99.99".
 */
static void side_changes(const char *side, json_t *before, json_t *after, struct str *out)
{
	struct str words = STR_INIT;
	const char *key;
	json_t *value;

	json_object_foreach(after, key, value)
	{
		const bool bare = json_is_string(value) || ends_with(&words, key);
		char *text;

		if (json_equal(value, json_object_get(before, key)))
			continue;
		text = value_text(value);
		str_addf(&words, " %s%s%s", bare ? "" : key, bare ? "" : " ", text);
		free(text);
	}
	if (words.n)
		str_addf(out, "%s%s%s", out->n ? ", " : "", side, words.s);
	str_release(&words);
}

static void op_changes(struct changes *list, const char *name, json_t *before, json_t *after)
{
	const char *was = json_string_value(json_object_get(before, "mode")),
		   *mode = json_string_value(json_object_get(after, "mode"));
	struct str text = STR_INIT;

	if (!mode || json_equal(before, after))
		return;
	if (!was || strcmp(was, mode) != 0) {
		if (strcmp(mode, "weight_only") == 0)
			str_addf(&text, "in %d bits, weight-only",
				 (int)json_integer_value(
					 json_object_get(json_object_get(after, "weight"), "bits")));
		else
			str_addf(&text, "%s",
				 strcmp(mode, "static") == 0 ? "in integers"
				 : strcmp(mode, "fp32") == 0 ? "in fp32"
							     : "in integers, dynamic");
	} else {
		side_changes("activation", json_object_get(before, "activation"),
			     json_object_get(after, "activation"), &text);
		side_changes("weight", json_object_get(before, "weight"), json_object_get(after, "weight"),
			     &text);
	}
	if (text.n)
		add_change(list, name, xstrdup(text.s));
	str_release(&text);
}

static void print_changes(struct changes *list, struct str *out)
{
	size_t i, more = 0;

	for (i = 0; i < list->n; i++) {
		struct change *c = &list->v[i];

		if (i >= CHANGES_SHOWN) {
			more += c->n;
		} else {
			str_addf(out, "%s%s", out->n ? "; " : "", c->names.s);
			if (c->n > NAMES_SHOWN)
				str_addf(out, " and %zu more", c->n - NAMES_SHOWN);
			str_addf(out, "%s %s", str_starts(c->what, "in ") ? "" : ":", c->what);
		}
		str_release(&c->names);
		free(c->what);
	}
	if (more)
		str_addf(out, "; %zu more op%s", more, more == 1 ? "" : "s");
	VEC_RELEASE(list);
}

struct plan_words {
	json_t *j;
	uint64_t *parts; /* hashes of its ops, recipes and other members, each with its name */
	size_t n;
};

static void add_parts(struct plan_words *p, json_t *members)
{
	const char *key;
	json_t *value;

	json_object_foreach(members, key, value)
	{
		char *text = json_dumps(value, JSON_COMPACT | JSON_SORT_KEYS | JSON_ENCODE_ANY);

		p->parts[p->n++] = hash_bytes(text, strlen(text), hash_str(key));
		free(text);
	}
}

struct plan_words *plan_words_new(const char *text)
{
	struct plan_words *p = xcalloc(1, sizeof(*p));
	json_t *ops, *recipes;

	p->j = json_loads(text, 0, NULL);
	ops = json_object_get(p->j, "ops");
	recipes = json_object_get(p->j, "recipes");
	p->parts = xcalloc(json_object_size(ops) + json_object_size(recipes) + 1, sizeof(*p->parts));
	add_parts(p, ops);
	add_parts(p, recipes);
	p->parts[p->n++] = (uint64_t)json_integer_value(json_object_get(p->j, "samples"));
	return p;
}

void plan_words_free(struct plan_words *p)
{
	if (!p)
		return;
	json_decref(p->j);
	free(p->parts);
	free(p);
}

/* Members are in the order of their names, so that plans of one space have theirs in the same places. */
size_t plan_distance(const struct plan_words *a, const struct plan_words *b)
{
	const size_t common = a->n < b->n ? a->n : b->n;
	size_t n = a->n + b->n - 2 * common, i;

	for (i = 0; i < common; i++)
		n += a->parts[i] != b->parts[i];
	return n;
}

size_t plan_changes(const struct plan_words *was, const struct plan_words *is, struct str *out)
{
	json_t *before = was ? was->j : NULL, *after = is ? is->j : NULL, *value;
	json_t *ops = json_object_get(before, "ops"), *recipes = json_object_get(before, "recipes");
	struct changes list = { NULL, 0, 0 };
	size_t n = 0, i;
	const char *key;

	json_object_foreach(json_object_get(after, "ops"), key, value)
		op_changes(&list, key, json_object_get(ops, key), value);
	for (i = 0; i < list.n; i++)
		n += list.v[i].n;
	print_changes(&list, out);
	json_object_foreach(json_object_get(after, "recipes"), key, value)
	{
		char *text;

		if (json_equal(value, json_object_get(recipes, key)))
			continue;
		text = value_text(value);
		str_addf(out, "%s%s %s", out->n ? "; " : "", key, text);
		free(text);
		n++;
	}
	value = json_object_get(after, "samples");
	if (value && !json_equal(value, json_object_get(before, "samples"))) {
		str_addf(out, "%s%lld calibration samples", out->n ? "; " : "",
			 (long long)json_integer_value(value));
		n++;
	}
	return n;
}

char *option_words(const char *json)
{
	json_t *option = json_loads(json, JSON_DECODE_ANY, NULL);
	const char *mode = json_string_value(json_object_get(option, "mode"));
	struct str out = STR_INIT;
	char *text;

	if (mode) {
		str_addf(&out, "%s", mode);
		side_changes("activation", NULL, json_object_get(option, "activation"), &out);
		side_changes("weight", NULL, json_object_get(option, "weight"), &out);
		text = xstrdup(out.s);
		str_release(&out);
	} else {
		text = value_text(option);
	}
	json_decref(option);
	return text;
}
