#include "runtime/probe.h"

#include <stdlib.h>
#include <string.h>

#include "base/rng.h"

enum fettle_status fake_inputs(const struct session *s, size_t batch, int64_t other_dims, bool random,
			       struct tensor *out, struct err *err)
{
	enum fettle_status st = FETTLE_OK;
	struct rng rng;
	size_t i, k;
	int d;

	rng_seed(&rng, 1);
	memset(out, 0, session_n_inputs(s) * sizeof(*out));
	for (i = 0; i < session_n_inputs(s) && !st; i++) {
		const struct value *v = session_input(s, i);

		if (v->type.rank < 0 || !dtype_size(v->type.dtype))
			return fail(err, FETTLE_UNSUPPORTED,
				    "cannot make up input '%s': it is no numeric tensor", v->name);
		out[i] = v->type;
		out[i].data = NULL;
		for (d = 0; d < out[i].rank; d++)
			if (out[i].dims[d] < 0)
				out[i].dims[d] = d ? other_dims : (int64_t)batch;
		st = tensor_alloc(&out[i], v->name, err);
		if (st)
			break;
		memset(out[i].data, 0, tensor_bytes(&out[i]));
		if (random && (v->type.dtype == DT_F32 || v->type.dtype == DT_F64 || v->type.dtype == DT_F16))
			for (k = 0; k < (size_t)tensor_count(&out[i]); k++)
				tensor_set(&out[i], k, rng_normal(&rng));
	}
	return st;
}

static void collect(struct shapes *out, struct session *s, const char *const *names, size_t n)
{
	struct tensor *in = xcalloc(session_n_inputs(s), sizeof(*in));
	struct tensor *results = xcalloc(n, sizeof(*results));
	size_t i;

	if (!fake_inputs(s, 1, 1, false, in, NULL) && !session_run(s, in, results, NULL)) {
		out->v = xcalloc(n, sizeof(*out->v));
		out->n = n;
		for (i = 0; i < n; i++) {
			out->v[i] = results[i];
			out->v[i].data = NULL;
			if (results[i].dtype != DT_NONE)
				map_set(&out->index, names[i], i);
		}
	}
	for (i = 0; i < session_n_inputs(s); i++)
		tensor_free(&in[i]);
	free(in);
	free(results);
}

void probe_shapes(struct shapes *out, struct runtime *rt, struct model *m)
{
	struct session_options so = { .threads = 1, .level = OPT_NONE };
	struct model *all = model_derive(m);
	VEC(const char *) names = { 0 };
	struct session *s = NULL;
	size_t i, j;

	for (i = 0; i < m->nodes.n; i++)
		for (j = 0; j < m->nodes.v[i]->n_out; j++)
			if (*m->nodes.v[i]->out[j])
				VEC_PUSH(&names, m->nodes.v[i]->out[j]);
	model_set_outputs(all, names.v, names.n);
	if (!session_new(&s, rt, all, &so, NULL))
		collect(out, s, names.v, names.n);
	session_free(s);
	VEC_RELEASE(&names);
	model_free(all);
}

void shapes_release(struct shapes *s)
{
	map_release(&s->index);
	free(s->v);
	*s = (struct shapes)SHAPES_INIT;
}
