/* Where a model's time goes, by op type, from the runtime's own profile. */
#include "evaluate/profile.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "runtime/profile.h"

enum { RUNS = 20 };

struct rows {
	VEC(struct fettle_profile_row) v;
	const struct model *model;
};

/*
 * Convolutions of each channel by itself gain differently: keep them apart. The profile shows the weight's
 * shape unless the runtime has repacked it; then the node's name tells, which begins with the model's.
 */
static bool is_depthwise(const struct rows *r, const char *event, const json_t *shapes)
{
	const json_t *dims[2];
	size_t i;

	for (i = 0; i < 2; i++) { /* input and weight, each {"type": [dims]} */
		void *it = json_object_iter(json_array_get(shapes, i));

		dims[i] = it ? json_object_iter_value(it) : NULL;
	}
	if (json_array_size(dims[1]) == 4)
		return json_integer_value(json_array_get(dims[1], 1)) == 1 &&
		       json_integer_value(json_array_get(dims[0], 1)) != 1;
	for (i = 0; i < r->model->nodes.n; i++) {
		const struct node *n = r->model->nodes.v[i];

		if (strstr(n->op, "Conv") && node_int(n, "group", 1) > 1 && *n->name &&
		    str_starts(event, n->name))
			return true;
	}
	return false;
}

static void add_node(void *self, const char *name, const char *op, double seconds, const void *shapes)
{
	struct rows *r = self;
	struct fettle_profile_row row = { .count = 0 };
	size_t i;

	snprintf(row.op, sizeof(row.op), "%.30s%s", op,
		 strstr(op, "Conv") && is_depthwise(r, name, shapes) ? " (depthwise)" : "");
	for (i = 0; i < r->v.n && strcmp(r->v.v[i].op, row.op) != 0; i++)
		;
	if (i == r->v.n)
		VEC_PUSH(&r->v, row);
	r->v.v[i].ms += seconds * 1e3;
	r->v.v[i].count++;
}

static int slowest_first(const void *a, const void *b)
{
	double x = ((const struct fettle_profile_row *)a)->ms, y = ((const struct fettle_profile_row *)b)->ms;

	return (x < y) - (x > y);
}

enum fettle_status profile_by_op(struct runtime *rt, const char *path, int threads, size_t batch,
				 struct tensor *inputs, struct fettle_profile_row **out, size_t *n,
				 struct err *err)
{
	struct rows found = { .model = NULL };
	struct model *m = NULL;
	enum fettle_status st = model_load(&m, path, err);

	found.model = m;
	if (!st)
		st = profile_model(rt, NULL, path,
				   &(struct profile_options){ .session = { .threads = threads },
							      .batch = batch,
							      .inputs = inputs,
							      .runs = RUNS },
				   add_node, &found, err);
	if (!st && found.v.n)
		qsort(found.v.v, found.v.n, sizeof(*found.v.v), slowest_first);
	if (st)
		VEC_RELEASE(&found.v);
	*out = found.v.v;
	*n = found.v.n;
	model_free(m);
	return st;
}
