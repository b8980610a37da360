/*
 * For awq: what matrix ops read is divided by scales, one per input, and their weights multiplied (block_input_scales()), so that
 * large inputs lose less when weights are rounded. The division goes into what makes the input, a normalisation, a Mul or a layer;
 * an input that nothing of the kind makes, or that something else reads too, stays as it is: a Mul at run time would cost more
 * than it wins.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "quantize/blocks.h"
#include "quantize/internal.h"
#include "quantize/rewrite.h"
#include "quantize/variant.h"

/* The matrix ops that read the channels of a class, all from one value. */
struct readers {
	VEC(size_t) nodes;
	VEC(struct block_reader) v;
	VEC(float *) own;
};

static void readers_release(struct readers *r)
{
	size_t i;

	for (i = 0; i < r->own.n; i++)
		free(r->own.v[i]);
	VEC_RELEASE(&r->own);
	VEC_RELEASE(&r->nodes);
	VEC_RELEASE(&r->v);
}

/* does a table hold the same numbers, so that both can be one constant? */
static bool is_tied_to_table(const struct subject *s, const struct node *n)
{
	size_t i;

	for (i = 0; i < s->ops.n; i++)
		if (s->ops.v[i].rule && s->ops.v[i].rule->kind == OP_TABLE &&
		    s->ops.v[i].modes & MODE_WEIGHT && block_tied(s->m, s->m->nodes.v[i], n))
			return true;
	return false;
}

/* is the weight this op's alone? A shared one would have to be stored twice. */
static bool has_own_weight(const struct rewrite *w, size_t node)
{
	const struct graph_index *g = &w->base->g;
	const struct node *n = w->base->m->nodes.v[node];
	const size_t v = graph_value(g, n->in[1]);

	return g->first[v + 1] - g->first[v] == 1 && !is_tied_to_table(w->base, n);
}

/* does it make an output of the model? What errors do to logits, say, is not their squares: scales would fit the wrong thing. */
static bool is_head(const struct rewrite *w, size_t node)
{
	const struct graph_index *g = &w->base->g;

	return g->output[graph_value(g, w->base->m->nodes.v[node]->out[0])];
}

/* False: this class is left alone. */
static bool find_readers(const struct rewrite *w, size_t class, struct readers *out)
{
	size_t i, value = MAP_NONE;
	bool any = false;

	if (channels_root(&w->c, class) != class || !smooth_can_fold(w, class))
		return false;
	for (i = 0; i < w->c.parts.n; i++) {
		const struct part *p = &w->c.parts.v[i];

		if (p->class != class || !is_matrix_op(w->m, w->m->nodes.v[p->node]))
			continue;
		if (!has_own_weight(w, p->node))
			return false;
		if (p->role != PART_READS)
			continue;
		if (is_head(w, p->node) || (value != MAP_NONE && value != p->value) ||
		    w->c.lanes[p->value].repeat != 1)
			return false;
		value = p->value;
		any |= (w->base->ops.v[p->node].modes & MODE_WEIGHT) != 0;
		VEC_PUSH(&out->nodes, p->node);
	}
	return any;
}

static enum fettle_status read_weights(struct rewrite *w, struct readers *r, struct err *err)
{
	enum fettle_status st = FETTLE_OK;
	size_t i;

	for (i = 0; i < r->nodes.n && !st; i++) {
		const bool turned = op_weight_turned(w->m->nodes.v[r->nodes.v[i]]);
		const struct tensor *t = NULL;
		const float *rows = NULL;
		float *own = NULL;

		st = rewrite_weight(w, r->nodes.v[i], &t, err);
		if (!st)
			st = block_rows(t, turned, &rows, &own, err);
		VEC_PUSH(&r->own, own);
		if (!st)
			VEC_PUSH(&r->v, ((struct block_reader){ rows, t->dims[turned ? 0 : 1] }));
	}
	return st;
}

static enum fettle_status scale_class(struct rewrite *w, size_t class, struct readers *r,
				      const struct block_format *f, const struct input_seen *seen,
				      struct err *err)
{
	const size_t k = w->c.size[class];
	float *scales = xcalloc(k, sizeof(*scales));
	double *factors = xcalloc(k, sizeof(*factors));
	const struct block_seen *x = NULL;
	enum fettle_status st = seen->see(seen->self, r->nodes.v[0], &x, err);
	bool any = false;
	size_t i;

	if (!st)
		st = read_weights(w, r, err);
	if (!st)
		st = block_input_scales(r->v.v, r->v.n, (int64_t)k, x, f, scales, err);
	for (i = 0; i < k && !st; i++) {
		factors[i] = 1 / (double)scales[i];
		any |= scales[i] != 1;
	}
	if (!st && any)
		st = rewrite_fold(w, class, factors, err);
	free(scales);
	free(factors);
	return st;
}

enum fettle_status scale_inputs(struct rewrite *w, const struct block_format *f,
				const struct input_seen *seen, struct err *err)
{
	enum fettle_status st = FETTLE_OK;
	size_t i;

	for (i = 0; i < w->c.n && !st; i++) {
		struct readers r = { .nodes = { NULL, 0, 0 } };

		if (find_readers(w, i, &r))
			st = scale_class(w, i, &r, f, seen, err);
		readers_release(&r);
	}
	return st;
}
