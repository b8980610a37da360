/* The values that are more than a scalar or a list: data, numbers of recipes and constraints. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "config/print.h"
#include "config/read.h"
#include "space/qplan.h"

static const char *as_text(struct reader *r, const struct yaml *y)
{
	struct str text = STR_INIT;
	const char *copy;

	yaml_print(y, &text);
	copy = arena_strdup(&r->c->state->arena, text.s);
	str_release(&text);
	return copy;
}

static void keep_param(struct reader *r, struct config_params *params, const struct yaml *key,
		       const struct yaml *value)
{
	params->v[params->n++] = (struct config_param){
		.key = key->text,
		.value = as_text(r, value),
		.text = yaml_is_text(value) ? value->text : NULL,
		.at = origin_of(r, value),
	};
}

static struct config_params new_params(struct reader *r, const struct yaml *map)
{
	return (struct config_params){ arena_alloc(&r->c->state->arena, map->n * sizeof(struct config_param)),
				       0 };
}

/* ---- dataset ---- */

bool config_is_data_file(const char *key)
{
	static const char *const paths[] = { "image_list",  "label_file",         "vocab_file",
					     "label_map",   "model_name_or_path", "content_folder",
					     "style_folder" };
	size_t i;

	for (i = 0; i < ARRAY_LEN(paths); i++)
		if (strcmp(paths[i], key) == 0)
			return true;
	return false;
}

static bool is_root(const char *key)
{
	return !strcmp(key, "root") || !strcmp(key, "data_path") || !strcmp(key, "data_dir");
}

static enum fettle_status read_dataset_params(struct reader *r, const struct yaml *y,
					      struct config_dataset *out)
{
	enum fettle_status st;
	size_t i;

	if (yaml_is_null(y))
		return FETTLE_OK;
	if (yaml_is_text(y))
		return read_path(r, y, &out->root);
	st = as_map(r, &y);
	if (st)
		return st;
	if (y->type != YAML_MAP)
		return fail_value(r, y, "%s, need a map", describe(r, y));
	out->params = new_params(r, y);
	for (i = 0; i < y->n; i++) {
		if (config_is_data_file(y->key[i]->text) && yaml_is_text(y->v[i])) {
			struct yaml path = *y->v[i];

			st = read_path(r, y->v[i], &path.text);
			if (st)
				return st;
			keep_param(r, &out->params, y->key[i], &path);
			continue;
		}
		if (!is_root(y->key[i]->text)) {
			keep_param(r, &out->params, y->key[i], y->v[i]);
			continue;
		}
		if (out->root)
			return fail_value(r, y->key[i],
					  "the path is given twice, need 'root', 'data_path' or 'data_dir'");
		st = read_path(r, y->v[i], &out->root);
		if (st)
			return st;
		out->root_at = origin_of(r, y->v[i]);
	}
	return FETTLE_OK;
}

static enum fettle_status read_dataset(struct reader *r, const struct key *k, const struct yaml *y,
				       void *field)
{
	struct config_dataset d = { .kind = NULL };
	enum fettle_status st = as_map(r, &y);

	(void)k;
	if (st)
		return st;
	if (yaml_is_text(y)) {
		st = read_path(r, y, &d.root);
	} else if (!yaml_is_null(y)) {
		if (y->type != YAML_MAP)
			return fail_value(r, y, "%s, need a map or a path", describe(r, y));
		if (y->n != 1)
			return fail_value(r, y, "%zu datasets, need one", y->n);
		d.kind = y->key[0]->text;
		r->path = path_add(r, d.kind);
		st = read_dataset_params(r, y->v[0], &d);
	}
	if (!st)
		*(struct config_dataset *)field = d;
	return st;
}

static void print_params(struct printer *p, const struct config_params *params)
{
	size_t i;

	for (i = 0; i < params->n; i++)
		print_line(p, params->v[i].key, params->v[i].value, &params->v[i].at);
}

static void print_dataset(struct printer *p, const struct key *k, const void *field)
{
	const struct config_dataset *d = field;
	const struct config_origin *at = config_origin(p->c, field);
	struct str root = STR_INIT;

	if (d->root && !p->identity) /* a run is known by what is in the data */
		yaml_print_text(d->root, &root);
	if (!d->kind) {
		print_line(p, k->name, root.n ? root.s : "null", at);
	} else {
		print_open(p, k->name);
		if (!root.n && !d->params.n) {
			print_line(p, d->kind, "{}", at);
		} else {
			print_open(p, d->kind);
			if (root.n)
				print_line(p, "root", root.s, d->root_at.source ? &d->root_at : at);
			print_params(p, &d->params);
			print_close(p);
		}
		print_close(p);
	}
	str_release(&root);
}

const struct custom custom_dataset = { read_dataset, print_dataset };

/* ---- filter ---- */

/* `{size: 2}`, or `{}`, which is 1, or `2` */
static enum fettle_status read_label_balance(struct reader *r, const struct key *k, const struct yaml *y,
					     void *field)
{
	static const struct key limits = { "size", KEY_INT, .min = 1, .max = 1 << 20 };
	enum fettle_status st = FETTLE_OK;
	double size = 1;

	(void)k;
	if (y->type == YAML_MAP && y->n && (y->n > 1 || strcmp(y->key[0]->text, "size") != 0))
		return fail_value(r, y->key[0], "unknown key '%s', need only size", y->key[y->n - 1]->text);
	if (y->type == YAML_MAP && y->n)
		y = y->v[0];
	if (y->type != YAML_MAP && !yaml_is_null(y))
		st = read_number(r, &limits, y, true, &size);
	if (!st)
		*(int *)field = (int)size;
	return st;
}

static void print_label_balance(struct printer *p, const struct key *k, const void *field)
{
	char text[32];

	if (!*(const int *)field)
		return;
	snprintf(text, sizeof(text), "%d", *(const int *)field);
	print_line(p, k->name, text, config_origin(p->c, field));
}

const struct custom custom_label_balance = { read_label_balance, print_label_balance };

/* ---- transforms ---- */

static enum fettle_status set_transform_key(struct reader *r, struct transform *t, const struct yaml *key,
					    const struct yaml *y)
{
	struct items items;
	enum fettle_status st;
	double *v;
	size_t i;

	if (y->type == YAML_MAP || yaml_is_null(y))
		return fail_value(r, y, "%s, need a value or a list of numbers", describe(r, y));
	st = read_items(r, y, &items);
	if (st)
		return st;
	v = arena_alloc(&r->c->state->arena, items.n * sizeof(*v));
	for (i = 0; i < items.n; i++) {
		if (parse_number(items.v[i]->text, &v[i]))
			continue;
		if (items.n > 1)
			return fail_value(r, items.v[i], "%s, need a number", describe(r, items.v[i]));
		st = transform_set(t, key->text, NULL, 0, items.v[i]->text, r->err);
		return st ? fail_here(r, y, st) : FETTLE_OK;
	}
	st = transform_set(t, key->text, v, items.n, NULL, r->err);
	return st ? fail_here(r, y, st) : FETTLE_OK;
}

static enum fettle_status read_transform(struct reader *r, const struct yaml *name, const struct yaml *y,
					 struct transform *t, struct config_named_params *source)
{
	enum fettle_status st;
	size_t i;

	source->name = name->text;
	st = transform_init(t, name->text, r->err);
	if (st)
		return fail_here(r, name, st);
	st = as_map(r, &y);
	if (st)
		return st;
	if (!yaml_is_null(y) && y->type != YAML_MAP)
		return fail_value(r, y, "%s, need a map", describe(r, y));
	source->params = new_params(r, y);
	for (i = 0; i < y->n; i++) {
		st = set_transform_key(r, t, y->key[i], y->v[i]);
		if (st)
			return st;
		keep_param(r, &source->params, y->key[i], y->v[i]);
	}
	st = transform_check(t, r->err);
	if (st)
		return fail_here(r, name, st);
	if (transform_is_random(t) && str_starts(r->path, "evaluation."))
		return fail_value(r, name, "it is random, and scores must be repeatable: %s",
				  strstr(name->text, "Crop") ? "use CenterCrop" : "leave it out");
	return FETTLE_OK;
}

/* How many there are in a map; those of a Compose take its place. */
static size_t count_transforms(const struct yaml *y)
{
	size_t n = y->n, i;

	for (i = 0; i < y->n && y->type == YAML_MAP; i++)
		n += strcmp(y->key[i]->text, "Compose") == 0 ? y->v[i]->size : 0;
	return n;
}

static enum fettle_status add_transforms(struct reader *r, const struct yaml *y,
					 struct config_transforms *list)
{
	const char *path = r->path;
	enum fettle_status st = as_map(r, &y);
	size_t i;

	if (!st && !yaml_is_null(y) && y->type != YAML_MAP)
		return fail_value(r, y, "%s, need a map", describe(r, y));
	for (i = 0; i < y->n && !st; i++) {
		const struct yaml *name = y->key[i], *v = y->v[i];

		r->path = path_add(r, name->text);
		if (strcmp(name->text, "Compose") == 0) {
			if (v->type == YAML_MAP && v->n == 1 && !strcmp(v->key[0]->text, "transform_list"))
				v = v->v[0];
			st = add_transforms(r, v, list);
		} else {
			st = read_transform(r, name, v, &list->v[list->n], &list->source[list->n]);
			list->n += !st;
		}
		r->path = path;
	}
	return st;
}

static enum fettle_status read_transforms(struct reader *r, const struct key *k, const struct yaml *y,
					  void *field)
{
	struct arena *arena = &r->c->state->arena;
	struct config_transforms list = { NULL, 0, NULL };
	enum fettle_status st = as_map(r, &y);

	(void)k;
	if (st)
		return st;
	list.v = arena_alloc(arena, count_transforms(y) * sizeof(*list.v));
	list.source = arena_alloc(arena, count_transforms(y) * sizeof(*list.source));
	st = add_transforms(r, y, &list);
	if (!st)
		*(struct config_transforms *)field = list;
	return st;
}

static void print_transforms(struct printer *p, const struct key *k, const void *field)
{
	const struct config_transforms *list = field;
	const struct config_origin *at = config_origin(p->c, field);
	size_t i;

	if (!list->n) {
		print_line(p, k->name, "{}", at);
		return;
	}
	print_open(p, k->name);
	for (i = 0; i < list->n; i++) {
		if (!list->source[i].params.n) {
			print_line(p, list->source[i].name, "{}", at);
			continue;
		}
		print_open(p, list->source[i].name);
		print_params(p, &list->source[i].params);
		print_close(p);
	}
	print_close(p);
}

const struct custom custom_transforms = { read_transforms, print_transforms };

/* ---- a recipe's number ---- */

static bool is_word(const struct key *k, const struct yaml *y)
{
	return k->recipe->number->word && yaml_is_text(y) && !strcasecmp(y->text, k->recipe->number->word);
}

/* each a number or the word for one */
static enum fettle_status read_list_of_numbers(struct reader *r, const struct key *k, const struct yaml *y,
					       void *field)
{
	struct config_numbers list = { NULL, 0 };
	struct items items;
	enum fettle_status st = read_items(r, y, &items);

	if (!st && !items.n)
		st = fail_value(r, y, "an empty list, need at least one number or %s",
				k->recipe->number->word);
	if (st)
		return st;
	list.v = arena_alloc(&r->c->state->arena, items.n * sizeof(*list.v));
	for (; list.n < items.n && !st; list.n++)
		if (is_word(k, items.v[list.n]))
			list.v[list.n] = k->recipe->number->word_value;
		else
			st = read_number(r, k, items.v[list.n], false, &list.v[list.n]);
	if (!st)
		*(struct config_numbers *)field = list;
	return st;
}

static void print_list_of_numbers(struct printer *p, const struct key *k, const void *field)
{
	const struct config_numbers *list = field;
	struct str s = STR_INIT;
	size_t i;

	if (!list->n)
		return;
	for (i = 0; i < list->n; i++) {
		str_addf(&s, "%s", i ? ", " : "[");
		if (k->recipe->number->word && list->v[i] == k->recipe->number->word_value)
			str_addf(&s, "%s", k->recipe->number->word);
		else
			str_addf(&s, "%.17g", list->v[i]);
	}
	str_addf(&s, "]");
	print_line(p, k->name, s.s, config_origin(p->c, field));
	str_release(&s);
}

const struct custom custom_list_of_numbers = { read_list_of_numbers, print_list_of_numbers };

/* numbers, or the word alone */
static enum fettle_status read_recipe_number(struct reader *r, const struct key *k, const struct yaml *y,
					     void *field)
{
	struct config_numbers list = { NULL, 0 };
	enum fettle_status st = read_list_of_numbers(r, k, y, &list);
	size_t i;

	for (i = 0; i < list.n && list.n > 1 && !st; i++)
		if (list.v[i] == k->recipe->number->word_value && k->recipe->number->word)
			st = fail_value(r, y, "%s in a list, it stands alone", k->recipe->number->word);
	if (!st)
		*(struct config_numbers *)field = list;
	return st;
}

static void print_recipe_number(struct printer *p, const struct key *k, const void *field)
{
	const struct config_numbers *list = field;
	const struct recipe_number *n = k->recipe->number;

	if (n->word && list->n == 1 && list->v[0] == n->word_value)
		print_line(p, k->name, n->word, config_origin(p->c, field));
	else
		print_numbers(p, k, field);
}

const struct custom custom_number = { read_recipe_number, print_recipe_number };

/* ---- NumIterLR ---- */

static enum fettle_status read_pairs(struct reader *r, const struct key *k, const struct yaml *y, void *field)
{
	const char *near;
	const struct key *keys = r->c->state->keys[KEYS_FINETUNE_SEARCH],
			 *iterations = find_key(keys, "NumIterations", &near),
			 *rate = find_key(keys, "LearningRate", &near);
	struct config_numbers list = { NULL, 0 };
	enum fettle_status st;
	size_t i;

	(void)k;
	if (y->type != YAML_LIST || !y->n)
		return fail_value(r, y, "%s, need a list of pairs such as [[100, 1e-4]]", describe(r, y));
	list.v = arena_alloc(&r->c->state->arena, 2 * y->n * sizeof(*list.v));
	for (i = 0; i < y->n; i++) {
		if (y->v[i]->type != YAML_LIST || y->v[i]->n != 2)
			return fail_value(r, y->v[i],
					  "%s, need NumIterations and LearningRate such as [100, 1e-4]",
					  describe(r, y->v[i]));
		st = read_number(r, iterations, y->v[i]->v[0], true, &list.v[list.n++]);
		if (!st)
			st = read_number(r, rate, y->v[i]->v[1], false, &list.v[list.n++]);
		if (st)
			return st;
	}
	*(struct config_numbers *)field = list;
	return FETTLE_OK;
}

static void print_pairs(struct printer *p, const struct key *k, const void *field)
{
	const struct config_numbers *list = field;
	struct str s = STR_INIT;
	size_t i;

	for (i = 0; i + 1 < list->n; i += 2)
		str_addf(&s, "%s[%.17g, %.17g]", i ? ", " : "[", list->v[i], list->v[i + 1]);
	if (list->n) {
		str_addf(&s, "]");
		print_line(p, k->name, s.s, config_origin(p->c, field));
	}
	str_release(&s);
}

const struct custom custom_pairs = { read_pairs, print_pairs };

/* ---- op_wise, op_type_wise ---- */

static enum fettle_status read_constraints(struct reader *r, const struct key *k, const struct yaml *y,
					   void *field)
{
	struct config_constraints list = { NULL, 0 };
	const char *path = r->path;
	enum fettle_status st;

	(void)k;
	if (!yaml_is_null(y) && y->type != YAML_MAP)
		return fail_value(r, y, "%s, need a map", describe(r, y));
	list.v = arena_alloc(&r->c->state->arena, y->n * sizeof(*list.v));
	for (; list.n < y->n; list.n++) {
		struct config_constraint *c = &list.v[list.n];

		c->name = y->key[list.n]->text;
		c->at = origin_of(r, y->key[list.n]);
		r->path = path_add(r, c->name);
		st = read_map(r, constraint_keys, c, y->v[list.n]);
		if (st)
			return st;
		r->path = path;
	}
	*(struct config_constraints *)field = list;
	return FETTLE_OK;
}

static void print_constraints(struct printer *p, const struct key *k, const void *field)
{
	const struct config_constraints *list = field;
	size_t i;

	if (!list->n) {
		print_line(p, k->name, "{}", config_origin(p->c, field));
		return;
	}
	print_open(p, k->name);
	for (i = 0; i < list->n; i++) {
		size_t before = p->lines.n + 1;

		print_open(p, list->v[i].name);
		print_keys(p, constraint_keys, &list->v[i]);
		print_close(p);
		if (p->lines.n < before) /* an op that nothing is said of */
			print_line(p, list->v[i].name, "{}", &list->v[i].at);
	}
	print_close(p);
}

const struct custom custom_constraints = { read_constraints, print_constraints };
