/* Steps of a tape that only move numbers about. */
#include <stdlib.h>
#include <string.h>

#include "finetune/tape_op.h"

/* floats count no further */
static const size_t most_counted = (size_t)1 << 24;

/*
 * Where each number of the output comes from: the runtime runs the op alone on the numbers 0, 1, 2, ... For ops whose
 * other inputs are constants of the model.
 */
static enum fettle_status find_sources(struct tape *t, const struct tape_step *s, uint32_t *map,
				       struct err *err)
{
	struct session_options so = { .threads = 1 };
	struct value in = { .name = s->node->in[0], .type = s->in[0]->t };
	struct tensor count = s->in[0]->t, got;
	struct model *m = model_derive(t->m);
	struct session *session = NULL;
	enum fettle_status st;
	size_t i;

	in.type.data = count.data = NULL;
	model_set_outputs(m, &s->node->out[s->which], 1);
	model_cut(m, &in, 1);
	st = session_new(&session, t->rt, m, &so, err);
	if (!st)
		st = tensor_alloc(&count, "values of a block", err);
	for (i = 0; i < cell_count(s->in[0]) && !st; i++)
		((float *)count.data)[i] = (float)i;
	if (!st)
		st = session_run(session, &count, &got, err);
	for (i = 0; i < cell_count(s->out) && !st; i++)
		map[i] = (uint32_t)((const float *)got.data)[i];
	tensor_free(&count);
	session_free(session);
	model_free(m);
	return st;
}

static enum fettle_status move_prepare(struct tape *t, struct tape_step *s, const char **why, struct err *err)
{
	size_t k;

	if (cell_count(s->in[0]) > most_counted)
		*why = "moves too many values";
	for (k = 1; k < s->n_in; k++)
		if (s->in[k] && !model_init(t->m, s->node->in[k]))
			*why = "moves to where is computed";
	if (*why)
		return FETTLE_OK;
	s->map[0] = arena_alloc(&t->arena, (cell_count(s->out) + 1) * sizeof(uint32_t));
	return find_sources(t, s, s->map[0], err);
}

static enum fettle_status move_forward(struct tape_step *s, struct err *err)
{
	const float *x = cell_data(s->in[0]);
	float *y = cell_data(s->out);
	size_t i, n = cell_count(s->out);

	(void)err;
	for (i = 0; i < n; i++)
		y[i] = x[s->map[0] ? s->map[0][i] : i];
	return FETTLE_OK;
}

static enum fettle_status move_backward(struct tape_step *s, struct err *err)
{
	size_t i, n = cell_count(s->out);

	(void)err;
	for (i = 0; i < n; i++)
		s->in[0]->g[s->map[0] ? s->map[0][i] : i] += s->out->g[i];
	return FETTLE_OK;
}

/* stretches of each input take turns: size[0] times */
static enum fettle_status concat_prepare(struct tape *t, struct tape_step *s, const char **why,
					 struct err *err)
{
	const struct tensor *y = &s->out->t;
	int64_t axis = node_int(s->node, "axis", 0);
	int d;

	(void)t, (void)why, (void)err;
	axis += axis < 0 ? y->rank : 0;
	s->size[0] = 1;
	for (d = 0; d < axis; d++)
		s->size[0] *= (size_t)y->dims[d];
	return FETTLE_OK;
}

static enum fettle_status concat_forward(struct tape_step *s, struct err *err)
{
	float *y = cell_data(s->out);
	size_t i, k, n;

	(void)err;
	for (i = 0; i < s->size[0]; i++)
		for (k = 0; k < s->n_in; k++, y += n) {
			n = cell_count(s->in[k]) / s->size[0];
			memcpy(y, cell_data(s->in[k]) + i * n, n * sizeof(float));
		}
	return FETTLE_OK;
}

static enum fettle_status concat_backward(struct tape_step *s, struct err *err)
{
	const float *g = s->out->g;
	size_t i, j, k, n;

	(void)err;
	for (i = 0; i < s->size[0]; i++)
		for (k = 0; k < s->n_in; k++, g += n) {
			n = cell_count(s->in[k]) / s->size[0];
			for (j = 0; j < n && s->in[k]->g; j++)
				s->in[k]->g[i * n + j] += g[j];
		}
	return FETTLE_OK;
}

const struct tape_kind tape_moves[] = {
	{ "Identity", NULL, move_forward, move_backward },
	{ "Dropout", NULL, move_forward, move_backward },
	{ "Reshape", NULL, move_forward, move_backward },
	{ "Flatten", NULL, move_forward, move_backward },
	{ "Squeeze", NULL, move_forward, move_backward },
	{ "Unsqueeze", NULL, move_forward, move_backward },
	{ "Transpose", move_prepare, move_forward, move_backward },
	{ "Slice", move_prepare, move_forward, move_backward },
	{ "Split", move_prepare, move_forward, move_backward },
	{ "Gather", move_prepare, move_forward, move_backward },
	{ "Expand", move_prepare, move_forward, move_backward },
	{ "DepthToSpace", move_prepare, move_forward, move_backward },
	{ "SpaceToDepth", move_prepare, move_forward, move_backward },
	{ "Concat", concat_prepare, concat_forward, concat_backward },
	{ NULL, NULL, NULL, NULL },
};
