#include "runtime/prepare.h"

#include <stdlib.h>

#include "base/mem.h"
#include "base/scratch.h"
#include "model/index.h"
#include "runtime/probe.h"

/* maps the external data and lets go of the names on disk */
static enum fettle_status take(struct model **out, const char *path, struct err *err)
{
	struct model *m = NULL;
	enum fettle_status st;
	size_t i;

	st = model_load(&m, path, err);
	for (i = 0; !st && i < m->inits.n; i++)
		if (dtype_size(m->inits.v[i]->t.dtype))
			st = model_weight(m, m->inits.v[i], err);
	if (!st)
		st = graph_sort(m, err);
	if (st) {
		model_free(m);
		return st;
	}
	model_drop_repeats(m);
	model_sweep(m);
	*out = m;
	return FETTLE_OK;
}

static void rename_model(struct model *m, const char *path)
{
	free(m->path);
	m->path = path ? xstrdup(path) : NULL;
}

enum fettle_status optimised_graph(struct model **out, struct runtime *rt, struct model *m,
				   const struct session_options *o, struct err *err)
{
	struct session_options so = *o;
	struct scratch tmp = { .dir = NULL };
	struct session *s = NULL;
	char *path = NULL;
	enum fettle_status st;

	/* the runtime writes its optimised graph only to a file, and weights beside it */
	st = scratch_new(&tmp, err);
	if (!st)
		so.dump = path = scratch_path(&tmp, "model.onnx");
	if (!st)
		st = session_new(&s, rt, m, &so, err);
	if (!st)
		st = take(out, path, err);
	if (!st)
		rename_model(*out, m->path);
	session_free(s);
	scratch_release(&tmp);
	free(path);
	return st;
}

/* The types and shapes of all values, as the runtime infers them: it tells them only of outputs, so make
 * every value one for a moment. */
static enum fettle_status infer_types(struct model *m, struct runtime *rt, struct err *err)
{
	struct all_values all;
	enum fettle_status st;
	size_t i;

	st = all_values_open(&all, rt, m, err);
	for (i = 0; !st && i < all.n; i++) {
		struct value v = *session_output(all.s, i);

		if (!v.type.rank) /* the runtime says 0 of a scalar and of an unknown shape alike */
			v.type.rank = -1;
		v.name = all.names[i];
		v.batch = v.batch ? arena_strdup(&m->arena, v.batch) : NULL;
		model_declare(m, &v);
	}
	all_values_close(&all);
	return st;
}

enum fettle_status prepare(struct model **out, struct runtime *rt, const char *path, struct err *err)
{
	struct session_options so = { .threads = 1, .level = OPT_BASIC };
	struct model *raw = NULL, *m = NULL;
	enum fettle_status st;

	st = model_load(&raw, path, err); /* for our own, better errors first */
	if (!st)
		st = optimised_graph(&m, rt, raw, &so, err);
	if (!st)
		st = infer_types(m, rt, err);
	model_free(raw);
	if (st)
		model_free(m);
	else
		*out = m;
	return st;
}
