/* Where a model's time goes, by op type, from the runtime's own profile. */
#include "api/request.h"

#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/str.h"
#include "runtime/probe.h"

enum { RUNS = 20 };

struct rows {
	VEC(struct fettle_profile_row) v;
	struct map nodes; /* node names seen, so that each counts once */
	const struct model *model;
};

/*
 * Convolutions of each channel by itself gain differently: keep them apart. The profile shows the weight's
 * shape unless the runtime has repacked it; then the node's name tells, which begins with the model's.
 */
static bool is_depthwise(const struct rows *r, const char *event, const json_t *args)
{
	const json_t *shapes = json_object_get(args, "input_type_shape"), *dims[2];
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
		    str_starts(event, n->name) && event[strlen(n->name)] == '_')
			return true;
	}
	return false;
}

static void add_event(struct rows *r, const json_t *event)
{
	const char *name = json_string_value(json_object_get(event, "name"));
	const json_t *args = json_object_get(event, "args");
	const char *op = json_string_value(json_object_get(args, "op_name"));
	double us = (double)json_integer_value(json_object_get(event, "dur"));
	struct fettle_profile_row row = { .count = 0 };
	size_t i;

	if (!name || !op || !str_ends(name, "_kernel_time"))
		return;
	snprintf(row.op, sizeof(row.op), "%.30s%s", op,
		 strstr(op, "Conv") && is_depthwise(r, name, args) ? " (depthwise)" : "");
	for (i = 0; i < r->v.n && strcmp(r->v.v[i].op, row.op) != 0; i++)
		;
	if (i == r->v.n)
		VEC_PUSH(&r->v, row);
	r->v.v[i].ms += us / 1e3 / RUNS;
	if (map_get(&r->nodes, name) == MAP_NONE) {
		map_set(&r->nodes, name, 1);
		r->v.v[i].count++;
	}
}

static int slowest_first(const void *a, const void *b)
{
	double x = ((const struct fettle_profile_row *)a)->ms, y = ((const struct fettle_profile_row *)b)->ms;

	return (x < y) - (x > y);
}

static enum fettle_status read_profile(const char *path, const struct model *m,
				       struct fettle_profile_row **rows, size_t *n, struct err *err)
{
	struct rows r = { .model = m };
	json_error_t why;
	json_t *all = json_load_file(path, 0, &why), *event;
	size_t i;

	if (!all)
		return fail(err, FETTLE_BACKEND, "cannot read the profile %s: %s", path, why.text);
	json_array_foreach(all, i, event) add_event(&r, event);
	map_release(&r.nodes); /* its keys are in the JSON */
	json_decref(all);
	if (r.v.n)
		qsort(r.v.v, r.v.n, sizeof(*r.v.v), slowest_first);
	*rows = r.v.v;
	*n = r.v.n;
	return FETTLE_OK;
}

enum fettle_status fettle_profile(struct fettle *f, const struct fettle_options *in,
				  struct fettle_profile_row **rows, size_t *n)
{
	const char *tmp = getenv("TMPDIR");
	char *prefix = xstrfmt("%s/fettle-profile.%ld", tmp && *tmp ? tmp : "/tmp", (long)getpid()),
	     *path = NULL;
	struct session_options so = { .profile = prefix };
	struct request r;
	struct session *s = NULL;
	struct model *m = NULL;
	struct tensor *inputs = NULL, *out = NULL;
	enum fettle_status st;
	size_t i;

	st = request_begin(&r, f, in);
	so.threads = r.threads;
	if (!st)
		st = api_phase(f, "profile");
	if (!st && !r.o.model)
		st = fail(&f->err, FETTLE_INVALID, "cannot profile: need a model");
	if (!st)
		st = model_load(&m, r.o.model, &f->err);
	if (!st)
		st = session_open(&s, f->rt, r.o.model, &so, &f->err);
	if (st)
		goto out;
	inputs = xcalloc(session_n_inputs(s), sizeof(*inputs));
	out = xcalloc(session_n_outputs(s), sizeof(*out));
	st = fake_inputs(s, r.o.batch ? r.o.batch : 1, 1, true, inputs, &f->err);
	for (i = 0; i < RUNS && !st; i++)
		st = session_run(s, inputs, out, &f->err);
	if (!st)
		st = session_end_profile(s, &path, &f->err);
	if (!st)
		st = read_profile(path, m, rows, n, &f->err);
	if (path)
		unlink(path);
out:
	for (i = 0; inputs && i < session_n_inputs(s); i++)
		tensor_free(&inputs[i]);
	session_free(s);
	model_free(m);
	free(inputs);
	free(out);
	free(path);
	free(prefix);
	request_release(&r);
	return st;
}
