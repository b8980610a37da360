/* The keys of recipes, made from their rows (recipe/recipe.h): a recipe needs no line of its own here. */
#include "config/recipe_keys.h"

#include <string.h>

#define AT(member) offsetof(struct config, member)

struct table {
	struct arena *arena;
	struct key *v;
	size_t n;
};

static struct key *add(struct table *t, const char *name, enum key_type type, size_t offset)
{
	struct key *k = &t->v[t->n++];

	*k = (struct key){ .name = name, .type = type, .offset = offset };
	return k;
}

/* Words with their places in the list for values, from the first on. */
static const struct word *make_words(struct arena *a, const char *const *names, size_t first, size_t n)
{
	struct word *words = arena_alloc(a, (n - first + 1) * sizeof(*words));
	size_t i;

	for (i = first; i < n; i++)
		words[i - first] = (struct word){ .name = names[i], .value = (int)i };
	return words;
}

static size_t count_keys(const struct recipe *r)
{
	size_t n = 0;

	while (r->keys && r->keys[n].name)
		n++;
	return n;
}

/* FastFinetune */
static const struct key *settings_of(struct arena *a, const struct recipe *r)
{
	static const enum key_type types[] = {
		[RECIPE_COUNT] = KEY_COUNT, [RECIPE_SEED] = KEY_INT64, [RECIPE_REAL] = KEY_NUMBER,
		[RECIPE_PAIR] = KEY_PAIR,   [RECIPE_BOOL] = KEY_BOOL,  [RECIPE_WORD] = KEY_WORD,
	};
	size_t n = count_keys(r), i;
	struct table t = { a, arena_alloc(a, (n + 2) * sizeof(*t.v)), 0 };

	for (i = 0; i < n; i++) {
		const struct recipe_key *from = &r->keys[i];
		struct key *k = add(&t, from->name, types[from->type], AT(recipes.keys) + from->offset);

		k->help = from->summary;
		k->min = from->min;
		k->max = from->max;
		k->open = from->searched;
		if (from->words)
			k->words = make_words(a, from->words, 0, from->n_words);
	}
	if (r == &recipe_finetune) {
		struct key *k = add(&t, "OptimDevice", KEY_WORD, AT(recipes.finetune_device));

		k->help = "where it runs";
		k->words = device_words;
	}
	return t.v;
}

/* smooth_quant_args */
static const struct key *number_of(struct arena *a, const struct recipe *r, size_t i)
{
	const struct recipe_unused *u = r->number->unused;
	struct table t = { a, NULL, 0 };
	struct key *k;
	size_t n = 0;

	while (u && u[n].name)
		n++;
	t.v = arena_alloc(a, (n + 2) * sizeof(*t.v));
	k = add(&t, r->number->key, KEY_CUSTOM, AT(recipes.number) + i * sizeof(struct config_numbers));
	k->help = r->number->summary;
	k->example = arena_strfmt(a, "%g", r->number->by_default);
	k->custom = &custom_number;
	k->recipe = r;
	k->min = r->number->min;
	k->max = r->number->max;
	k->open = true;
	for (; n; n--, u++)
		add(&t, u->name, KEY_UNUSED, 0)->why = u->why;
	return t.v;
}

static void add_map(struct table *t, const char *name, const struct key *keys, const struct recipe *r)
{
	struct key *k = add(t, name, KEY_MAP, 0);

	k->keys = keys;
	k->help = arena_strfmt(t->arena, "the settings of %s", r->name);
}

static void add_recipe(struct table *t, size_t i)
{
	const struct recipe *r = recipe_list[i];
	const size_t on = AT(recipes.on) + i * sizeof(bool);
	struct key *k;

	k = add(t, r->name, r->words ? KEY_WORD : KEY_BOOL,
		r->words ? AT(recipes.way) + i * sizeof(int) : on);
	k->open = true;
	k->help = r->summary;
	if (r->words)
		k->words = make_words(t->arena, r->words, 0, r->n_words);
	if (r->alias) {
		k = add(t, r->alias, KEY_BOOL, on);
		k->help = r->summary;
		k->alias = !r->words; /* else it says less than the name, and is a setting beside it */
		k->open = true;
	}
	if (r->number)
		add_map(t, r->number->map, number_of(t->arena, r, i), r);
	if (r->keys)
		add_map(t, r->map, settings_of(t->arena, r), r);
}

const struct key *make_recipe_keys(struct arena *a, const struct key *others)
{
	struct table t = { a, NULL, 0 };
	size_t n = 0, i;

	while (others[n].name)
		n++;
	t.v = arena_alloc(a, (3 * RECIPES + n + 1) * sizeof(*t.v));
	for (i = 0; i < RECIPES; i++)
		add_recipe(&t, i);
	memcpy(t.v + t.n, others, n * sizeof(*others));
	return t.v;
}

const struct key *make_search_keys(struct arena *a, const struct key *lists, const struct recipe *r)
{
	size_t n = 0, i;
	struct key *out;

	while (lists[n].name)
		n++;
	out = arena_alloc(a, (n + 1) * sizeof(*out));
	memcpy(out, lists, n * sizeof(*out));
	for (i = 0; i < n; i++) {
		const struct recipe_key *k = r->keys;

		while (k->name && strcmp(k->name, out[i].name) != 0)
			k++;
		if (!k->name)
			continue; /* of the search alone */
		out[i].help = k->summary;
		out[i].min = k->min;
		out[i].max = k->max;
		if (k->words) /* a search asks for a way only where it is on */
			out[i].words = make_words(a, k->words, k == r->keys, k->n_words);
	}
	return out;
}

void recipe_key_defaults(struct config *c, struct arena *a)
{
	size_t i;

	for (i = 0; i < RECIPES; i++) {
		const struct recipe *r = recipe_list[i];

		c->recipes.on[i] = r->usual;
		if (r->number) {
			c->recipes.number[i] = (struct config_numbers){ arena_alloc(a, sizeof(double)), 1 };
			c->recipes.number[i].v[0] = r->number->by_default;
		}
		if (r->keys)
			r->start(&c->recipes.keys, r->usual_way);
	}
}

/* ---- why one has no effect ---- */

static bool off_for_good(const struct config *c, size_t i, enum config_command command)
{
	const bool given = config_is_set(c, &c->recipes.on[i]) || config_is_set(c, &c->recipes.way[i]);

	return !c->recipes.on[i] && !c->recipes.way[i] && (command == CONFIG_QUANTIZE || given);
}

static int way_of(const struct config *c, size_t i)
{
	return config_is_set(c, &c->recipes.way[i]) ? c->recipes.way[i]
						    : recipe_way(&c->recipes.keys, recipe_list[i]);
}

const char *recipe_key_idle(const struct config *c, enum config_command command, const void *field)
{
	const size_t offset = (size_t)((const char *)field - (const char *)&c->recipes.keys);
	const struct recipe_key *k;
	size_t i;

	if (command == CONFIG_SEARCH)
		return NULL; /* the spaces say */
	for (i = 0; i < RECIPES; i++) {
		const struct recipe *r = recipe_list[i];

		if (r->number && field == &c->recipes.number[i] && off_for_good(c, i, command))
			return r->off;
		for (k = r->keys; k && k->name; k++) {
			if (k->offset != offset)
				continue;
			if (off_for_good(c, i, command))
				return r->off;
			return k->ways && !(k->ways >> way_of(c, i) & 1) ? k->why : NULL;
		}
		if (r == &recipe_finetune && field == &c->recipes.finetune_device &&
		    off_for_good(c, i, command))
			return r->off;
	}
	return NULL;
}
