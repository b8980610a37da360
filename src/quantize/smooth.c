/*
 * Recipe smooth_quant: what a MatMul or Gemm reads has a few channels far wider than the rest, which one scale for
 * all cannot serve. Part of that moves into the weights (Xiao et al., "SmoothQuant", arXiv:2211.10438):
 *
 *	x'_i = x_i / s_i,  w'_i = w_i s_i,  s_i = max |x_i|^alpha / max |w_i|^(1-alpha)
 *
 * 1/s goes into the constants of what makes x (a normalisation, a Mul, a layer) where everything that reads x can
 * take s; otherwise a Mul is put in front. All MatMul and Gemm that read the same channels have the same s.
 *
 * With alpha auto, each such group has the alpha, of a grid, with which its ops' own outputs suffer least from being
 * quantized, as measured on rows of what they read (layer_error.h); or none, if that is as good, or if a Mul would have
 * to be put in for little.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "quantize/internal.h"
#include "quantize/layer_error.h"

enum { STEPS = 10 }; /* of the grid of alpha */
/* A Mul takes time, and data that is not between normalisations may have more outliers in use than it had here, which a
 * range that all channels fill cuts off: what is left of the error must be a fraction of it. */
static const double worth_a_mul = 0.25;

/* What shares one s: the matrix ops that read the channels of a class, or (of a pinned class, or none) a value. */
struct group {
	size_t class; /* NO_CLASS: a Mul before `value` */
	size_t value;
	size_t n; /* channels */
	VEC(size_t) readers;
};

static void groups_release(struct group *groups, size_t n)
{
	size_t i;

	for (i = 0; i < n; i++)
		VEC_RELEASE(&groups[i].readers);
	free(groups);
}

static size_t op_inputs(const struct rewrite *w, size_t node)
{
	const struct node *n = w->m->nodes.v[node];
	struct layout l = layout_of(n, &model_init(w->m, n->in[1])->t);

	return layout_inputs(&l);
}

static size_t input_of(const struct rewrite *w, size_t node)
{
	return graph_value(&w->base->g, w->base->m->nodes.v[node]->in[0]);
}

static bool may_smooth(const struct subject *s, size_t node)
{
	const struct node *n = s->m->nodes.v[node];

	return is_matrix_op(s->m, n) && s->ops.v[node].rule && !model_init(s->m, n->in[0]);
}

bool can_smooth(const struct subject *s)
{
	size_t i;

	for (i = 0; i < s->ops.n; i++)
		if (may_smooth(s, i))
			return true;
	return false;
}

bool smooth_can_fold(const struct rewrite *w, size_t class)
{
	bool found = false;
	size_t i;

	if (class == NO_CLASS || w->c.pinned[class])
		return false;
	for (i = 0; i < w->c.parts.n; i++) {
		const struct part *p = &w->c.parts.v[i];
		const struct node *n = w->m->nodes.v[p->node];
		const bool matrix = is_matrix_op(w->m, n);

		if (p->class == class &&
		    (p->role == PART_CLIPS || (p->role == PART_READS && is_linear(w->m, n) && !matrix)))
			return false;
		found |= p->class == class && p->role == PART_READS && matrix;
	}
	return found;
}

static size_t find_groups(const struct rewrite *w, struct group **out)
{
	const struct subject *s = w->base;
	struct group *groups = xcalloc(s->ops.n, sizeof(*groups));
	size_t i, k, n = 0;

	for (i = 0; i < s->ops.n; i++) {
		size_t value, class;

		if (!may_smooth(s, i))
			continue;
		value = input_of(w, i);
		class = channels_class(&w->c, value);
		if (!smooth_can_fold(w, class))
			class = NO_CLASS;
		for (k = 0; k < n; k++)
			if (class == NO_CLASS ? groups[k].class == NO_CLASS && groups[k].value == value
					      : groups[k].class == class)
				break;
		if (k == n)
			groups[n++] =
				(struct group){ .class = class,
						.value = value,
						.n = class == NO_CLASS ? op_inputs(w, i) : w->c.size[class] };
		VEC_PUSH(&groups[k].readers, i);
	}
	*out = groups;
	return n;
}

static size_t repeat_of(const struct rewrite *w, const struct group *g, size_t node)
{
	return g->class == NO_CLASS ? 1 : w->c.lanes[input_of(w, node)].repeat;
}

/* the largest |w| of each channel that a matrix op reads */
static enum fettle_status widen_weights(struct rewrite *w, size_t node, size_t repeat, double *y,
					struct err *err)
{
	const struct tensor *t;
	enum fettle_status st = rewrite_weight(w, node, &t, err);
	struct layout l;
	const float *x;
	size_t a, b;

	if (st)
		return st;
	l = layout_of(w->m->nodes.v[node], t);
	x = t->data;
	for (a = 0; a < l.first; a++)
		for (b = 0; b < l.second; b++, x++) {
			size_t k = (l.inputs_first ? a : b) / repeat;

			y[k] = fmax(y[k], fabsf(*x));
		}
	return st;
}

/* the largest |x| and |w| of each channel of a group */
static enum fettle_status examine(struct rewrite *w, const struct group *g, double *x, double *y,
				  struct err *err)
{
	enum fettle_status st = FETTLE_OK;
	size_t r, i;

	for (r = 0; r < g->readers.n && !st; r++) {
		const size_t node = g->readers.v[r], repeat = repeat_of(w, g, node);
		struct spread seen;

		st = rewrite_input_spread(w, node, repeat, &seen, err);
		if (st)
			break;
		for (i = 0; i < g->n; i++)
			x[i] = fmax(x[i], fmax(seen.max[i], -seen.min[i]));
		spread_release(&seen);
		st = widen_weights(w, node, repeat, y, err);
	}
	return st;
}

/* 1/s; a channel that is never used, or weighs nothing, stays as it is */
static void smoothing(const double *x, const double *y, size_t n, double alpha, double *out)
{
	size_t i;

	for (i = 0; i < n; i++) {
		out[i] = x[i] > 0 && y[i] > 0 ? pow(y[i], 1 - alpha) / pow(x[i], alpha) : 1;
		out[i] = fmin(fmax(out[i], 1e-6), 1e6);
	}
}

/* What alpha auto has found so far. */
struct choice {
	const struct group *g;
	const double *x, *y; /* the largest of each channel, of what is read and of weights */
	const struct layer_error *e;
	double *best, alpha, least; /* factors, and what gave them; SMOOTH_AUTO: nothing did */
};

static enum fettle_status try_alpha(struct choice *c, double alpha, struct err *err)
{
	double *f = xcalloc(c->g->n, sizeof(*f)), now;
	enum fettle_status st;

	smoothing(c->x, c->y, c->g->n, alpha, f);
	st = layer_error_of(c->e, f, &now, err);
	if (!st && now < c->least) {
		c->least = now;
		c->alpha = alpha;
		memcpy(c->best, f, c->g->n * sizeof(*f));
	}
	free(f);
	return st;
}

/* the alpha of least error, on a grid that is finer around the best; not if none is as good */
static enum fettle_status choose(struct choice *c, struct err *err)
{
	enum fettle_status st;
	double middle;
	size_t i;

	for (i = 0; i < c->g->n; i++)
		c->best[i] = 1;
	st = layer_error_of(c->e, c->best, &c->least, err);
	if (c->g->class == NO_CLASS)
		c->least *= worth_a_mul;
	for (i = 0; i <= STEPS && !st; i++)
		st = try_alpha(c, (double)i / STEPS, err);
	middle = c->alpha;
	if (!st && middle > 0)
		st = try_alpha(c, middle - 0.5 / STEPS, err);
	if (!st && middle >= 0 && middle < 1)
		st = try_alpha(c, middle + 0.5 / STEPS, err);
	return st;
}

static enum fettle_status measure(struct rewrite *w, const struct group *g, struct layer_error *e,
				  struct err *err)
{
	enum fettle_status st = FETTLE_OK;
	size_t r;

	for (r = 0; r < g->readers.n && !st; r++)
		st = layer_error_add(e, w, g->readers.v[r], repeat_of(w, g, g->readers.v[r]), err);
	return st;
}

static enum fettle_status smooth_group(struct rewrite *w, const struct group *g, double alpha,
				       const struct op_choice *q, struct err *err)
{
	double *x = xcalloc(g->n, sizeof(*x)), *y = xcalloc(g->n, sizeof(*y)), *f = xcalloc(g->n, sizeof(*f));
	struct layer_error e = { .q = q };
	struct choice c = { .g = g, .x = x, .y = y, .e = &e, .best = f, .alpha = alpha };
	enum fettle_status st;

	st = examine(w, g, x, y, err);
	if (!st && alpha == SMOOTH_AUTO)
		st = measure(w, g, &e, err);
	if (st)
		goto out;
	if (alpha == SMOOTH_AUTO)
		st = choose(&c, err);
	else
		smoothing(x, y, g->n, alpha, f);
	if (!st && c.alpha != SMOOTH_AUTO)
		st = g->class == NO_CLASS ? rewrite_insert(w, g->value, f, g->n, err)
					  : rewrite_fold(w, g->class, f, err);
out:
	layer_error_release(&e);
	free(x);
	free(y);
	free(f);
	return st;
}

enum fettle_status smooth(struct rewrite *w, double alpha, const struct op_choice *q, struct err *err)
{
	struct group *groups;
	size_t n = find_groups(w, &groups), i;
	enum fettle_status st = FETTLE_OK;

	for (i = 0; i < n && !st; i++)
		st = smooth_group(w, &groups[i], alpha, q, err);
	groups_release(groups, n);
	return st;
}
