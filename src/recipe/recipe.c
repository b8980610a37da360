#include "recipe/recipe.h"

#include <string.h>

const struct recipe *const recipe_list[RECIPES] = {
#define RECIPE(id, members) &recipe_##id,
#include "recipe/list.h"
#undef RECIPE
};

const struct recipe *recipe_find(const char *name)
{
	size_t i;

	for (i = 0; i < RECIPES; i++)
		if (strcmp(recipe_list[i]->name, name) == 0 ||
		    (recipe_list[i]->alias && strcmp(recipe_list[i]->alias, name) == 0))
			return recipe_list[i];
	return NULL;
}

static const void *member(const struct recipes *r, size_t offset)
{
	return (const char *)r + offset;
}

int recipe_way(const struct recipes *r, const struct recipe *i)
{
	return *(const int *)member(r, i->offset);
}

bool recipe_applies(const struct recipes *r, const struct recipe *i)
{
	return i->words ? recipe_way(r, i) != 0 : *(const bool *)member(r, i->offset);
}

bool recipe_get(const struct recipes *r, const struct recipe *i)
{
	return recipe_applies(r, i) != i->usual;
}

void recipe_set(struct recipes *r, const struct recipe *i, bool on)
{
	void *p = (char *)r + i->offset;

	if (!i->words)
		*(bool *)p = on != i->usual;
	else if (!on)
		*(int *)p = 0;
	else if (!recipe_applies(r, i))
		i->start(r, i->usual_way);
}

double *recipe_number(struct recipes *r, const struct recipe *i)
{
	return (double *)(void *)((char *)r + i->number->offset);
}

void recipe_copy(struct recipes *to, const struct recipes *from, const struct recipe *i)
{
	memcpy((char *)to + i->offset, (const char *)from + i->offset, i->size);
	if (i->number)
		memcpy((char *)to + i->number->offset, (const char *)from + i->number->offset,
		       sizeof(double));
}

void recipe_copy_key(struct recipes *to, const struct recipes *from, const struct recipe_key *k)
{
	static const size_t sizes[] = {
		[RECIPE_COUNT] = sizeof(size_t), [RECIPE_SEED] = sizeof(uint64_t),
		[RECIPE_REAL] = sizeof(double),  [RECIPE_PAIR] = sizeof(double[2]),
		[RECIPE_BOOL] = sizeof(bool),    [RECIPE_WORD] = sizeof(int),
	};

	memcpy((char *)to + k->offset, (const char *)from + k->offset, sizes[k->type]);
}

static void add_value(const struct recipes *r, const struct recipe *i, struct str *out)
{
	const struct recipe_key *k;

	if (i->number) {
		const double x = *(const double *)member(r, i->number->offset);

		if (i->number->word && x == i->number->word_value)
			str_addf(out, "=%s", i->number->word);
		else
			str_addf(out, "=%.3g", x);
	}
	if (i->words)
		str_addf(out, "=%s", i->words[recipe_way(r, i)]);
	for (k = i->keys; k && k->name; k++)
		if (k->brief && *(const int *)member(r, k->offset))
			str_addf(out, ":%s", k->words[*(const int *)member(r, k->offset)]);
}

void recipes_text(const struct recipes *r, struct str *out)
{
	size_t before = out->n, n;

	for (n = 0; n < RECIPES; n++) {
		const struct recipe *i = recipe_list[n];

		if (!recipe_applies(r, i))
			continue;
		str_addf(out, "%s%s", out->n > before ? ", " : "", i->name);
		if (i->usual)
			str_addf(out, "=off");
		else
			add_value(r, i, out);
	}
}

void recipes_leave_output(struct recipes *r, const char *type)
{
	size_t i, k;

	for (i = 0; i < n_op_rules && strcmp(op_rules[i].type, type) != 0;)
		i++;
	for (k = 0; k < r->n_no_output && strcmp(r->no_output[k], type) != 0;)
		k++;
	if (i < n_op_rules && k == r->n_no_output && k < NO_OUTPUT_MAX)
		r->no_output[r->n_no_output++] = op_rules[i].type;
}

bool recipe_describe(size_t i, struct fettle_recipe *out)
{
	/* what no plan has; listed after those that plans have */
	static const struct fettle_recipe others[] = {
		{ .name = "auto_mp",
		  .summary = "ops go to 16 bits, then to fp32, until the target holds (include_auto_mp)",
		  .by_default = "off",
		  .values = "on, off; in tune and search" },
		{ .name = "rewrite_graph",
		  .summary = "the fp32 graph is rewritten first, where fewer ops compute the same",
		  .by_default = "on",
		  .values = "on, off" },
	};
	const struct recipe *r = i < RECIPES ? recipe_list[i] : NULL;

	if (i >= RECIPES + ARRAY_LEN(others))
		return false;
	*out = r ? (struct fettle_recipe){ .name = r->name,
					   .summary = r->summary,
					   .by_default = r->usual ? "on" : "off",
					   .values = r->values ? r->values : "on, off",
					   .tuned = r->tuned }
		 : others[i - RECIPES];
	return true;
}
