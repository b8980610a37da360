/* The part of the schema that is made from the recipes; for the files of this folder. */
#ifndef CONFIG_RECIPE_KEYS_H
#define CONFIG_RECIPE_KEYS_H

#include "config/schema.h"

/* The keys of `recipes`: those of every recipe, then these. */
const struct key *make_recipe_keys(struct arena *a, const struct key *others);
/* Lists of values for 'fettle search', with the limits and words of the recipe's settings. */
const struct key *make_search_keys(struct arena *a, const struct key *lists, const struct recipe *r);
void recipe_key_defaults(struct config *c, struct arena *a);
/* Why a number or setting of a recipe has no effect; NULL: it has, or is none. */
const char *recipe_key_idle(const struct config *c, enum config_command command, const void *field);

#endif
