#include "config/capability.h"

#include <stdint.h>
#include <string.h>

static const struct yaml *find(const struct yaml *map, const char *key)
{
	size_t i;

	for (i = 0; map && map->type == YAML_MAP && i < map->n; i++)
		if (strcmp(map->key[i]->text, key) == 0)
			return map->v[i];
	return NULL;
}

/* A map or list like y, for at most n items. */
static struct yaml *like(struct arena *arena, const struct yaml *y, enum yaml_type type, size_t n)
{
	struct yaml *out = arena_alloc(arena, sizeof(*out));

	*out = *y;
	out->type = type;
	out->n = 0;
	out->v = arena_alloc(arena, (n + 1) * sizeof(*out->v));
	out->key = arena_alloc(arena, (n + 1) * sizeof(*out->key));
	return out;
}

static void add(struct yaml *to, struct yaml *key, struct yaml *value)
{
	to->key[to->n] = key;
	to->v[to->n++] = value;
}

static struct yaml *word(struct arena *arena, const struct yaml *at, const char *text)
{
	struct yaml *y = yaml_scalar(arena, text, false);

	y->line = at->line;
	y->column = at->column;
	return y;
}

/* One of weight and activation: its dtypes, and fp32. */
static struct yaml *side_of(struct arena *arena, const struct yaml *y)
{
	struct yaml *out, *list;
	bool fp32 = false;
	size_t i, k;

	if (y->type != YAML_MAP)
		return (struct yaml *)(uintptr_t)y;
	out = like(arena, y, YAML_MAP, y->n);
	for (i = 0; i < y->n; i++) {
		if (strcmp(y->key[i]->text, "dtype") != 0 || y->v[i]->type != YAML_LIST) {
			add(out, y->key[i], y->v[i]);
			continue;
		}
		list = like(arena, y->v[i], YAML_LIST, y->v[i]->n + 1);
		for (k = 0; k < y->v[i]->n; k++) {
			add(list, NULL, y->v[i]->v[k]);
			fp32 |= y->v[i]->v[k]->type == YAML_SCALAR &&
				strcmp(y->v[i]->v[k]->text, "fp32") == 0;
		}
		if (!fp32)
			add(list, NULL, word(arena, y, "fp32"));
		add(out, y->key[i], list);
	}
	return out;
}

/* What else is there (`mode`) says how the runtime is given a model, which is not asked here. */
static void add_type(struct arena *arena, struct yaml *types, struct yaml *name, const struct yaml *y)
{
	static const char *const sides[] = { "weight", "activation" };
	struct yaml *out = like(arena, y, YAML_MAP, 2);
	size_t i;

	if (find(types, name->text))
		return;
	for (i = 0; i < ARRAY_LEN(sides); i++)
		if (find(y, sides[i]))
			add(out, word(arena, y, sides[i]), side_of(arena, find(y, sides[i])));
	add(types, name, out);
}

static void add_types(struct arena *arena, struct yaml *types, const struct yaml *from)
{
	size_t i;

	for (i = 0; from && from->type == YAML_MAP && i < from->n; i++)
		if (strcmp(from->key[i]->text, "default") != 0)
			add_type(arena, types, from->key[i], from->v[i]);
}

static const struct yaml *entry_of(const struct yaml *list)
{
	const struct yaml *name;
	size_t i;

	for (i = 0; i < list->n; i++) {
		name = find(find(list->v[i], "version"), "name");
		if (name && name->type == YAML_LIST && name->n)
			name = name->v[0];
		if (name && name->type == YAML_SCALAR && strcmp(name->text, "default") == 0)
			return list->v[i];
	}
	return list->v[list->n - 1];
}

struct yaml *capability_tree(struct arena *arena, struct yaml *root)
{
	const struct yaml *entry, *int8, *listed, *otherwise;
	struct yaml *types, *quantization, *out;
	size_t i, most;

	if (root->type != YAML_LIST || !root->n)
		return root;
	entry = entry_of(root);
	int8 = find(entry, "int8") ? find(entry, "int8") : find(find(entry, "capabilities"), "int8");
	if (!int8 || int8->type != YAML_MAP)
		return root;
	listed = find(find(entry, "ops"), "int8");
	otherwise = find(int8, "default");
	most = int8->n + (listed ? listed->n : 0);
	for (i = 0; i < int8->n; i++)
		most += int8->v[i]->n;
	types = like(arena, int8, YAML_MAP, most);
	if (find(int8, "static") || find(int8, "dynamic")) {
		add_types(arena, types, find(int8, "static"));
		add_types(arena, types, find(int8, "dynamic"));
	} else {
		add_types(arena, types, int8);
	}
	for (i = 0; otherwise && listed && listed->type == YAML_LIST && i < listed->n; i++)
		if (listed->v[i]->type == YAML_SCALAR)
			add_type(arena, types, listed->v[i], otherwise);
	quantization = like(arena, int8, YAML_MAP, 1);
	add(quantization, word(arena, int8, "op_type_wise"), types);
	out = like(arena, root, YAML_MAP, 1);
	add(out, word(arena, root, "quantization"), quantization);
	return out;
}
