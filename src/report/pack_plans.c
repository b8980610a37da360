#include "report/report.h"

#include <stdlib.h>

#include "base/map.h"
#include "base/mem.h"
#include "base/str.h"
#include "space/plan_json.h"

static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
enum { BASE = sizeof(digits) - 1, WIDTH = 2, MOST = BASE * BASE };

/* things that are numbered in the order in which they are first seen */
struct numbered {
	struct map ids;
	struct arena arena;
	json_t *list;
};

static size_t number_of(struct numbered *t, const char *text, bool *is_new)
{
	size_t id = map_get(&t->ids, text);

	*is_new = id == MAP_NONE;
	if (*is_new) {
		id = t->ids.n;
		map_set(&t->ids, arena_strdup(&t->arena, text), id);
	}
	return id;
}

static void numbered_release(struct numbered *t)
{
	map_release(&t->ids);
	arena_release(&t->arena);
}

static size_t option_number(struct numbered *options, const json_t *option)
{
	char *text = json_dumps(option, JSON_COMPACT | JSON_SORT_KEYS | JSON_ENCODE_ANY), *words;
	bool is_new;
	size_t id = number_of(options, text, &is_new);

	if (is_new) {
		words = option_words(text);
		json_array_append_new(options->list, json_string(words));
		free(words);
	}
	free(text);
	return id;
}

static void add_ops(struct numbered *ops, json_t *plan)
{
	const char *name;
	json_t *value;
	bool is_new;

	json_object_foreach(json_object_get(plan, "ops"), name, value)
	{
		number_of(ops, name, &is_new);
		if (is_new)
			json_array_append_new(ops->list, json_string(name));
	}
}

/* An op that this plan does not name has the option "". */
static char *choices_of(const struct numbered *ops, struct numbered *options, json_t *plan)
{
	json_t *none = json_string(""), *in = json_object_get(plan, "ops");
	const size_t n = json_array_size(ops->list);
	char *out = xmalloc(WIDTH * n + 1);
	size_t i, id;

	for (i = 0; i < n; i++) {
		json_t *option = json_object_get(in, json_string_value(json_array_get(ops->list, i)));

		id = option_number(options, option ? option : none);
		id = id < MOST ? id : MOST - 1;
		out[WIDTH * i] = digits[id / BASE];
		out[WIDTH * i + 1] = digits[id % BASE];
	}
	out[WIDTH * n] = '\0';
	json_decref(none);
	return out;
}

static size_t rest_number(struct numbered *rests, json_t *plan)
{
	char *text;
	bool is_new;
	size_t id;

	json_object_del(plan, "ops");
	json_object_del(plan, "fettle_plan");
	text = json_dumps(plan, JSON_COMPACT | JSON_SORT_KEYS | JSON_REAL_PRECISION(10));
	id = number_of(rests, text, &is_new);
	if (is_new)
		json_array_append(rests->list, plan);
	free(text);
	return id;
}

void pack_plans(json_t *run)
{
	struct numbered ops = { .list = json_array() }, options = { .list = json_array() },
			rests = { .list = json_array() };
	json_t *trials = json_object_get(run, "trials"), *trial;
	size_t i;

	json_array_foreach(trials, i, trial) add_ops(&ops, json_object_get(trial, "plan"));
	json_array_foreach(trials, i, trial)
	{
		json_t *plan = json_incref(json_object_get(trial, "plan"));
		char *choices;

		if (json_is_object(plan)) {
			choices = choices_of(&ops, &options, plan);
			json_object_set_new(trial, "plan", json_string(choices));
			json_object_set_new(trial, "rest",
					    json_integer((json_int_t)rest_number(&rests, plan)));
			free(choices);
		}
		json_decref(plan);
	}
	json_object_set_new(run, "plans",
			    json_pack("{s:i, s:o, s:o, s:o}", "width", WIDTH, "ops", ops.list, "options",
				      options.list, "rests", rests.list));
	numbered_release(&ops);
	numbered_release(&options);
	numbered_release(&rests);
}
