/* What the readers of plans share; for the files of this folder. */
#ifndef SPACE_PLAN_READ_H
#define SPACE_PLAN_READ_H

#include <jansson.h>

#include "space/plan_json.h"

struct plan_reader {
	const char *where; /* names the text in messages */
	const char *op;    /* and what is being read of it */
	struct err *err;
};

extern const char *const plan_formats[FORMATS], *const plan_schemes[2], *const plan_grains[2];

/* The index of j[key] among words; *out stays as it is when there is no such key. */
enum fettle_status plan_read_word(const struct plan_reader *r, const json_t *j, const char *key,
				  const char *const *words, size_t n, int *out);
enum fettle_status plan_read_recipes(struct plan_reader *r, const json_t *recipes, struct recipes *out);
/* A plan with "settings": space/settings_tuning.h. */
enum fettle_status plan_read_settings(struct plan_reader *r, const json_t *all, const struct op_list *ops,
				      const struct graph_index *g, struct qplan *out);

#endif
