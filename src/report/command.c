/* The command line that would begin a run again. */
#include "report/report.h"

#include <stdio.h>
#include <string.h>

#include "base/str.h"

/* as one word of a shell */
static void add_word(struct str *out, const char *word)
{
	const char *p;

	str_addf(out, " ");
	if (*word &&
	    word[strspn(word, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./:=,+-")] ==
		    '\0') {
		str_addf(out, "%s", word);
		return;
	}
	str_addf(out, "'");
	for (p = word; *p; p++)
		if (*p == '\'')
			str_addf(out, "'\\''");
		else
			str_add(out, p, 1);
	str_addf(out, "'");
}

static void add_value(struct str *out, const json_t *value)
{
	char text[64];

	if (json_is_string(value)) {
		add_word(out, json_string_value(value));
		return;
	}
	if (json_is_integer(value))
		snprintf(text, sizeof(text), "%" JSON_INTEGER_FORMAT, json_integer_value(value));
	else
		snprintf(text, sizeof(text), "%.10g", json_number_value(value));
	add_word(out, text);
}

/* keep_fp32 -> --keep-fp32 */
static void add_flag(struct str *out, const char *name)
{
	static const char *const others[][2] = { { "calib_samples", "samples" } };
	size_t i;

	for (i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		if (strcmp(name, others[i][0]) == 0)
			name = others[i][1];
	str_addf(out, " --");
	for (; *name; name++)
		str_addf(out, "%c", *name == '_' ? '-' : *name);
}

static void add_options(struct str *out, json_t *options)
{
	const char *name;
	json_t *value;

	json_object_foreach(options, name, value)
	{
		if (strcmp(name, "model") == 0 || json_is_false(value) || json_is_null(value))
			continue;
		add_flag(out, name);
		if (!json_is_true(value))
			add_value(out, value);
	}
}

char *command_of_request(const char *request)
{
	json_t *j = json_loads(request ? request : "", 0, NULL), *settings = json_object_get(j, "settings"),
	       *recipes = json_object_get(j, "recipes"), *plugins = json_object_get(j, "plugins"), *row;
	const char *job = json_string_value(json_object_get(j, "job")),
		   *model = json_string_value(json_object_get(json_object_get(j, "options"), "model"));
	struct str out = STR_INIT, notes = STR_INIT;
	size_t i;

	str_addf(&out, "fettle %s", job ? job : "tune");
	add_word(&out, model ? model : "MODEL");
	add_options(&out, json_object_get(j, "options"));
	json_array_foreach(settings, i, row)
	{
		const char *key = json_string_value(json_array_get(row, 0)),
			   *value = json_string_value(json_array_get(row, 1)),
			   *flag = json_string_value(json_array_get(row, 2));

		if (!key || !value)
			continue;
		if (flag && str_starts(flag, "--")) {
			str_addf(&out, " %s", flag);
			add_word(&out, value);
		} else { /* set by a program: a configuration would say it */
			str_addf(&notes, "\n# with %s: %s", key, value);
		}
	}
	json_array_foreach(recipes, i, row)
	{
		str_addf(&out, " --recipe");
		add_value(&out, row);
	}
	json_array_foreach(plugins, i, row)
	{
		str_addf(&out, " --plugin");
		add_value(&out, row);
	}
	if (notes.n)
		str_add(&out, notes.s, notes.n);
	str_release(&notes);
	json_decref(j);
	return out.s;
}
