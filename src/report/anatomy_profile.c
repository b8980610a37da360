/* Where the time goes before and after, by op type; and the rows of the sensitivity. */
#include "report/anatomy.h"

#include <stdlib.h>

#include "base/scratch.h"
#include "evaluate/profile.h"
#include "report/json.h"

static enum fettle_status rows_json(const struct anatomy *a, const struct anatomy_timing *t, const char *path,
				    json_t **out)
{
	struct fettle_profile_row *rows = NULL;
	size_t n = 0, i;
	enum fettle_status st =
		profile_by_op(a->cx->rt, path, t->threads, t->batch, t->inputs, &rows, &n, &a->cx->err);

	*out = json_array();
	for (i = 0; i < n && !st; i++)
		json_array_append_new(*out, json_pack("{s:s, s:I, s:f}", "op", rows[i].op, "count",
						      (json_int_t)rows[i].count, "ms", rows[i].ms));
	free(rows);
	return st;
}

enum fettle_status anatomy_profile(const struct anatomy *a, const struct anatomy_timing *t, json_t *run)
{
	struct scratch scratch = { NULL, -1 };
	json_t *before = NULL, *after = NULL;
	char *path = NULL;
	enum fettle_status st = scratch_new(&scratch, &a->cx->err);

	if (!st) {
		path = scratch_path(&scratch, "quantized.onnx");
		st = model_save(a->quantized, path, &a->cx->err);
	}
	if (!st)
		st = rows_json(a, t, t->model, &before);
	if (!st)
		st = rows_json(a, t, path, &after);
	if (!st)
		json_object_set_new(run, "profile",
				    json_pack("{s:O, s:O, s:i, s:I}", "before", before, "after", after,
					      "threads", t->threads, "batch", (json_int_t)t->batch));
	json_decref(before);
	json_decref(after);
	free(path);
	scratch_release(&scratch);
	return st;
}

void anatomy_sensitivity(const struct lab *l, const struct op_sensitivity *rows, size_t n, double all_sqnr,
			 json_t *run)
{
	json_t *list = json_array();
	size_t i;

	for (i = 0; i < n; i++) {
		const struct op *op = &l->s->ops.v[l->t->node[rows[i].op]];

		json_array_append_new(
			list, json_pack("{s:s, s:s, s:o, s:o, s:o, s:f, s:f, s:f}", "name", op->name, "type",
					l->s->m->nodes.v[l->t->node[rows[i].op]]->op, "model_sqnr_db",
					json_number(rows[i].model_sqnr), "sqnr_db", json_number(rows[i].sqnr),
					"without_sqnr_db", json_number(rows[i].without_sqnr), "weight_share",
					rows[i].weight_share, "clipping_share", rows[i].clipping_share,
					"macs_share",
					l->s->ops.total_macs > 0 ? op->macs / l->s->ops.total_macs : 0));
	}
	json_object_set_new(run, "sensitivity",
			    json_pack("{s:o, s:o}", "ops", list, "all_sqnr_db", json_number(all_sqnr)));
}
