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

enum fettle_status all_values_open(struct all_values *a, struct runtime *rt, const struct model *m,
				   struct err *err)
{
	struct session_options so = { .threads = 1, .level = OPT_NONE, .unused = true };
	VEC(const char *) names = { 0 };
	size_t i, j;

	*a = (struct all_values){ .m = NULL };
	for (i = 0; i < m->nodes.n; i++)
		for (j = 0; j < m->nodes.v[i]->n_out; j++)
			if (*m->nodes.v[i]->out[j])
				VEC_PUSH(&names, m->nodes.v[i]->out[j]);
	a->names = names.v;
	a->n = names.n;
	if (!a->n) /* everything was folded into constants */
		return FETTLE_OK;
	a->m = model_derive(m);
	model_set_outputs(a->m, a->names, a->n);
	return session_new(&a->s, rt, a->m, &so, err);
}

void all_values_close(struct all_values *a)
{
	session_free(a->s);
	model_free(a->m);
	free(a->names);
	*a = (struct all_values){ .m = NULL };
}

void probe_shapes(struct shapes *out, struct runtime *rt, struct model *m)
{
	struct all_values all;

	if (!all_values_open(&all, rt, m, NULL) && all.s)
		collect(out, all.s, all.names, all.n);
	all_values_close(&all);
}

void shapes_release(struct shapes *s)
{
	map_release(&s->index);
	free(s->v);
	*s = (struct shapes)SHAPES_INIT;
}
