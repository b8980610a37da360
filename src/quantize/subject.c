#include "quantize/subject.h"

#include <stdlib.h>

#include "ops/kind.h"
#include "runtime/prepare.h"
#include "runtime/probe.h"

/* What is declared of values, where nothing can be run. Open dimensions count as 1, as in probe_shapes(). */
static void declared_shapes(struct shapes *out, const struct model *m)
{
	size_t i;
	int d;

	out->v = xcalloc(m->values.n + 1, sizeof(*out->v));
	for (i = 0; i < m->values.n; i++) {
		struct tensor t = m->values.v[i].type;

		for (d = 0; d < t.rank; d++)
			t.dims[d] = t.dims[d] < 0 ? 1 : t.dims[d];
		if (t.rank < 0)
			continue;
		map_set(&out->index, m->values.v[i].name, out->n);
		out->v[out->n++] = t;
	}
}

static enum fettle_status open_subject(struct subject **out, struct runtime *rt, const char *path,
				       bool rewrite, bool outside, struct err *err)
{
	struct subject *s = xcalloc(1, sizeof(*s));
	enum fettle_status st;
	size_t i;

	st = outside   ? prepare_outside(&s->m, rt, path, rewrite ? &s->rewritten : NULL, err)
	     : rewrite ? prepare_rewritten(&s->m, rt, path, &s->rewritten, err)
		       : prepare(&s->m, rt, path, err);
	if (st) {
		free(s);
		return st;
	}
	s->outside = outside;
	if (outside)
		declared_shapes(&s->shapes, s->m);
	else
		probe_shapes(&s->shapes, rt, s->m);
	graph_index_init(&s->g, s->m);
	op_list_init(&s->ops, &s->m->arena, s->m, &s->g, &s->shapes);
	/* so that a node of any model made from it says which op it is */
	for (i = 0; i < s->ops.n; i++)
		s->m->nodes.v[i]->name = s->ops.v[i].name;
	s->z = quantizer_new(s->m, &s->g, &s->ops);
	s->quantized = kind_quantized(s->m, &s->m->arena);
	s->hidden = kind_hidden(s->m, &s->m->arena);
	s->cpu = cpu_detect();
	*out = s;
	return FETTLE_OK;
}

enum fettle_status subject_open(struct subject **out, struct runtime *rt, const char *path, struct err *err)
{
	return open_subject(out, rt, path, true, false, err);
}

enum fettle_status subject_open_outside(struct subject **out, struct runtime *rt, const char *path,
					bool rewrite, struct err *err)
{
	return open_subject(out, rt, path, rewrite, true, err);
}

enum fettle_status subject_open_as_is(struct subject **out, struct runtime *rt, const char *path,
				      struct err *err)
{
	return open_subject(out, rt, path, false, false, err);
}

void subject_free(struct subject *s)
{
	if (!s)
		return;
	quantizer_free(s->z);
	op_list_release(&s->ops);
	shapes_release(&s->shapes);
	shapes_release(&s->seen);
	graph_index_release(&s->g);
	model_free(s->m);
	free(s);
}

static bool is_open(const struct subject *s)
{
	size_t i;

	for (i = 0; i < s->m->n_inputs; i++)
		if (tensor_is_open(&s->m->inputs[i].type))
			return true;
	return !s->shapes.n;
}

void subject_see(struct subject *s, struct runtime *rt, const struct feed *data)
{
	struct feed_batch b = FEED_BATCH_INIT;
	struct feed *one;

	if (s->outside || s->seen.n || !is_open(s))
		return;
	one = feed_twin(data);
	feed_limit_batch(one, 1);
	if (!feed_read(one, 0, &b, NULL))
		probe_shapes_on(&s->seen, rt, s->m, b.inputs);
	if (s->seen.n)
		op_list_count(&s->ops, s->m, &s->seen);
	feed_batch_release(&b);
	feed_free(one);
}

const struct tensor *subject_shape(const struct subject *s, const char *value)
{
	const struct tensor *t = shapes_find(&s->seen, value);

	return t ? t : shapes_find(&s->shapes, value);
}

enum fettle_status subject_calibrate(struct subject *s, struct runtime *rt, const struct qplan *plan,
				     struct feed *feed, const struct calibrate_options *o,
				     struct calibration **out, struct err *err)
{
	const char **values = NULL;
	size_t n = quantizer_values(&s->g, &s->ops, plan, &values);
	enum fettle_status st = calibrate(out, &(struct calibrate_on){ rt, s->m, feed }, values, n, o, err);

	free(values);
	return st;
}
