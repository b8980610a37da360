#include "runtime/probe.h"

#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "data/made.h"

static struct input_spec spec_of(const struct value *v)
{
	struct input_spec s = { v->name, v->type.dtype, v->type.rank, { 0 } };

	memcpy(s.dims, v->type.dims, sizeof(s.dims));
	return s;
}

static bool has_past(const struct session *s)
{
	size_t i;

	for (i = 0; i < session_n_inputs(s); i++) {
		const struct input_spec spec = spec_of(session_input(s, i));

		if (made_rule_of(&spec) == MADE_PAST)
			return true;
	}
	return false;
}

static enum fettle_status fake_input(const struct value *v, const struct made_size *size, struct rng *rng,
				     struct tensor *out, struct err *err)
{
	enum fettle_status st;
	size_t k;
	int d;

	*out = v->type;
	out->data = NULL;
	for (d = 0; d < out->rank; d++)
		if (out->dims[d] < 0)
			out->dims[d] = d ? size->tokens : size->n;
	st = tensor_alloc(out, v->name, err);
	if (st)
		return st;
	memset(out->data, 0, tensor_bytes(out));
	if (rng && (v->type.dtype == DT_F32 || v->type.dtype == DT_F64 || v->type.dtype == DT_F16))
		for (k = 0; k < (size_t)tensor_count(out); k++)
			tensor_set(out, k, rng_normal(rng));
	return FETTLE_OK;
}

/* What a language model's past asks for (data/made.h) holds only where it has one. */
static enum fettle_status fake_all(const struct session *s, const struct made_size *size, struct rng *rng,
				   struct tensor *out, struct err *err)
{
	const bool by_rule = has_past(s);
	enum fettle_status st = FETTLE_OK;
	size_t i;

	memset(out, 0, session_n_inputs(s) * sizeof(*out));
	for (i = 0; i < session_n_inputs(s) && !st; i++) {
		const struct value *v = session_input(s, i);
		const struct input_spec spec = spec_of(v);
		struct buffer made = { .cap = 0 };

		if (v->type.rank < 0 || !dtype_size(v->type.dtype))
			return fail(err, FETTLE_UNSUPPORTED,
				    "cannot make up input '%s': it is no numeric tensor", v->name);
		if (!by_rule || !made_rule_of(&spec)) {
			st = fake_input(v, size, rng, &out[i], err);
			continue;
		}
		st = made_fill(&made, made_rule_of(&spec), &spec, size, NULL, err);
		out[i] = made.t;
	}
	return st;
}

enum fettle_status fake_inputs(const struct session *s, size_t batch, int64_t other_dims, bool random,
			       struct tensor *out, struct err *err)
{
	struct rng rng;

	rng_seed(&rng, 1);
	return fake_all(s, &(struct made_size){ (int64_t)batch, 0, other_dims }, random ? &rng : NULL, out,
			err);
}

enum fettle_status fake_token(const struct session *s, size_t batch, size_t past, struct tensor *out,
			      struct err *err)
{
	if (!has_past(s))
		return fail(
			err, FETTLE_INVALID,
			"cannot decode one token: no input holds the past, need some called past..., of open "
			"length");
	return fake_all(s, &(struct made_size){ (int64_t)batch, (int64_t)past, 1 }, NULL, out, err);
}

static void add_shape(struct shapes *out, const char *name, const struct tensor *t)
{
	out->v[out->n] = *t;
	out->v[out->n].data = NULL;
	if (t->dtype != DT_NONE)
		map_set(&out->index, name, out->n);
	out->n++;
}

static void collect(struct shapes *out, const struct all_values *all, struct tensor *inputs)
{
	struct tensor *results = xcalloc(all->n, sizeof(*results));
	size_t i;

	if (!session_run(all->s, inputs, results, NULL)) {
		out->v = xcalloc(all->n + all->m->n_inputs, sizeof(*out->v));
		for (i = 0; i < all->n; i++)
			add_shape(out, all->names[i], &results[i]);
	}
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

/* What is declared, if that leaves nothing open: there is nothing to see in a run, then. */
static bool take_declared(struct shapes *out, const struct model *m)
{
	size_t i;
	int d;

	for (i = 0; i < m->values.n; i++) {
		const struct tensor *t = &m->values.v[i].type;

		for (d = 0; d < t->rank && t->dims[d] > 0; d++)
			;
		if (t->rank <= 0 || d < t->rank)
			return false;
	}
	out->v = xcalloc(m->values.n + 1, sizeof(*out->v));
	for (i = 0; i < m->values.n; i++) {
		out->v[i] = m->values.v[i].type;
		map_set(&out->index, m->values.v[i].name, i);
	}
	out->n = i;
	return true;
}

static bool all_declared(const struct model *m)
{
	size_t i, k;

	for (i = 0; i < m->nodes.n; i++)
		for (k = 0; k < m->nodes.v[i]->n_out; k++)
			if (*m->nodes.v[i]->out[k] &&
			    map_get(&m->value_index, m->nodes.v[i]->out[k]) == MAP_NONE)
				return false;
	return true;
}

void probe_shapes(struct shapes *out, struct runtime *rt, struct model *m)
{
	struct all_values all;
	size_t i;

	if (all_declared(m) && take_declared(out, m))
		return;
	if (!all_values_open(&all, rt, m, NULL) && all.s) {
		struct tensor *in = xcalloc(session_n_inputs(all.s), sizeof(*in));

		if (!fake_inputs(all.s, 1, 1, false, in, NULL))
			collect(out, &all, in);
		for (i = 0; i < session_n_inputs(all.s); i++)
			tensor_free(&in[i]);
		free(in);
	}
	all_values_close(&all);
}

void probe_shapes_on(struct shapes *out, struct runtime *rt, const struct model *m, struct tensor *inputs)
{
	struct all_values all;
	size_t i;

	if (!all_values_open(&all, rt, m, NULL) && all.s)
		collect(out, &all, inputs);
	for (i = 0; i < m->n_inputs && out->v; i++)
		add_shape(out, m->inputs[i].name, &inputs[i]);
	all_values_close(&all);
}

void shapes_release(struct shapes *s)
{
	map_release(&s->index);
	free(s->v);
	*s = (struct shapes)SHAPES_INIT;
}
