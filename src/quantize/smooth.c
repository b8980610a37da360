/*
 * Recipe smooth_quant: what a MatMul or Gemm reads has a few channels far wider than the rest, which one scale for
 * all cannot serve. Part of that moves into the weights (Xiao et al., "SmoothQuant", arXiv:2211.10438):
 *
 *	x'_i = x_i / s_i,  w'_i = w_i s_i,  s_i = max |x_i|^alpha / max |w_i|^(1-alpha)
 *
 * 1/s goes into the constants of what makes x (a normalisation, a Mul, a layer) where everything that reads x can
 * take s; otherwise a Mul is put in front. All MatMul and Gemm that read the same channels have the same s.
 *
 * With alpha auto, each such group has the alpha of which its ops' own outputs, computed on a few rows of what they
 * really read, suffer least from int8; a Mul is only put in if that is much less than without.
 */
#include "quantize/rewrite.h"

#include <cblas.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "quantize/internal.h"

enum { ROWS_MAX = 64, STEPS = 10 };
static const double worth_a_mul = 0.8; /* of the error without */

/* What shares one s: the matrix ops that read the channels of a class, or (of a pinned class, or none) a value. */
struct group {
	size_t class; /* NO_CLASS: a Mul before `value` */
	size_t value;
	size_t n; /* channels */
	VEC(size_t) readers;
};

/* what an op reads, for its own error: a few rows of the batch that was seen first */
struct rows {
	float *x; /* [n][inputs], NULL until seen */
	size_t n;
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

/* is the class free, and every op that reads it a matrix op, so that s can be chosen for those? */
static bool can_fold(const struct rewrite *w, size_t class)
{
	size_t i;

	if (class == NO_CLASS || w->c.pinned[class])
		return false;
	for (i = 0; i < w->c.parts.n; i++) {
		const struct part *p = &w->c.parts.v[i];
		const struct node *n = w->m->nodes.v[p->node];

		if (p->class == class &&
		    (p->role == PART_CLIPS ||
		     (p->role == PART_READS && is_linear(w->m, n) && !is_matrix_op(w->m, n))))
			return false;
	}
	return true;
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
		if (!can_fold(w, class))
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

/* what has been put into the channels that an op reads */
static const double *factor_of(const struct rewrite *w, size_t node, size_t *repeat)
{
	size_t value = input_of(w, node), class = channels_class(&w->c, value);

	*repeat = class == NO_CLASS ? 1 : w->c.lanes[value].repeat;
	return class == NO_CLASS ? NULL : w->factor[class];
}

/* extremes of each input of an op, as things are now */
static enum fettle_status input_extremes(struct rewrite *w, size_t node, float *min, float *max,
					 struct err *err)
{
	size_t n = op_inputs(w, node), repeat, i;
	const double *factor = factor_of(w, node, &repeat);
	enum fettle_status st;

	st = channel_extremes_get(w->seen, w->base->g.names[input_of(w, node)], -1, n, min, max, err);
	for (i = 0; i < n && factor && !st; i++) {
		min[i] = (float)(min[i] * factor[i / repeat]);
		max[i] = (float)(max[i] * factor[i / repeat]);
	}
	return st;
}

/* a matrix op's weight as [inputs][outputs] */
static enum fettle_status matrix_of(struct rewrite *w, size_t node, float **out, size_t *outputs,
				    struct err *err)
{
	const struct tensor *t;
	enum fettle_status st = rewrite_weight(w, node, &t, err);
	struct layout l;
	const float *x;
	size_t a, b;

	*out = NULL;
	if (st)
		return st;
	l = layout_of(w->m->nodes.v[node], t);
	x = t->data;
	*outputs = layout_outputs(&l);
	*out = xmalloc(tensor_bytes(t));
	for (a = 0; a < l.first; a++)
		for (b = 0; b < l.second; b++)
			(*out)[l.inputs_first ? a * l.second + b : b * l.first + a] = x[a * l.second + b];
	return st;
}

/* the largest |x| and |w| of each channel of a group */
static enum fettle_status group_extremes(struct rewrite *w, const struct group *g, double *x, double *y,
					 struct err *err)
{
	enum fettle_status st = FETTLE_OK;
	size_t r, i, o;

	for (r = 0; r < g->readers.n && !st; r++) {
		const size_t node = g->readers.v[r], inputs = op_inputs(w, node),
			     repeat = repeat_of(w, g, node);
		float *min = xcalloc(inputs, sizeof(*min)), *max = xcalloc(inputs, sizeof(*max)),
		      *matrix = NULL;
		size_t outputs = 0;

		st = input_extremes(w, node, min, max, err);
		if (!st)
			st = matrix_of(w, node, &matrix, &outputs, err);
		for (i = 0; i < inputs && !st; i++) {
			size_t k = i / repeat;

			x[k] = fmax(x[k], fmaxf(fabsf(min[i]), fabsf(max[i])));
			for (o = 0; o < outputs; o++)
				y[k] = fmax(y[k], fabsf(matrix[i * outputs + o]));
		}
		free(min);
		free(max);
		free(matrix);
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

/* ---- alpha auto ---- */

static float *fake_quant(const float *x, size_t n, struct qparams q, struct qlimits lim, size_t stride,
			 float *out)
{
	size_t i;

	for (i = 0; i < n; i++) {
		float r = rintf(x[i * stride] / q.scale) + (float)q.zero;

		r = fminf(fmaxf(r, (float)lim.lo), (float)lim.hi);
		out[i * stride] = (r - (float)q.zero) * q.scale;
	}
	return out;
}

/* How far an op's output, in int8, is from what it should be: squared, in units of the output. */
struct trial_op {
	const float *x, *matrix, *exact; /* [rows][inputs], [inputs][outputs], [rows][outputs] */
	const float *min, *max;          /* of each input */
	size_t rows, inputs, outputs, repeat;
	bool narrow;
};

static double op_error(const struct trial_op *t, const double *f)
{
	const struct qlimits u8 = quant_limits(DT_U8, SCHEME_ASYM, false),
			     s8 = quant_limits(DT_S8, SCHEME_SYM, t->narrow);
	float *x = xcalloc(t->rows * t->inputs, sizeof(*x)), *m = xcalloc(t->inputs * t->outputs, sizeof(*m));
	float *y = xcalloc(t->rows * t->outputs, sizeof(*y)), lo = 0, hi = 0;
	double noise = 0, signal = 0;
	size_t i, o, r;

	for (i = 0; i < t->inputs; i++) {
		const float k = (float)f[i / t->repeat];

		lo = fminf(lo, t->min[i] * k);
		hi = fmaxf(hi, t->max[i] * k);
		for (r = 0; r < t->rows; r++)
			x[r * t->inputs + i] = t->x[r * t->inputs + i] * k;
		for (o = 0; o < t->outputs; o++)
			m[i * t->outputs + o] = t->matrix[i * t->outputs + o] / k;
	}
	fake_quant(x, t->rows * t->inputs, quant_params(lo, hi, DT_U8, SCHEME_ASYM, false), u8, 1, x);
	for (o = 0; o < t->outputs; o++) {
		lo = hi = 0;
		for (i = 0; i < t->inputs; i++) {
			lo = fminf(lo, m[i * t->outputs + o]);
			hi = fmaxf(hi, m[i * t->outputs + o]);
		}
		fake_quant(m + o, t->inputs, quant_params(lo, hi, DT_S8, SCHEME_SYM, t->narrow), s8,
			   t->outputs, m + o);
	}
	cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, (int)t->rows, (int)t->outputs, (int)t->inputs,
		    1, x, (int)t->inputs, m, (int)t->outputs, 0, y, (int)t->outputs);
	for (i = 0; i < t->rows * t->outputs; i++) {
		double d = (double)y[i] - t->exact[i];

		noise += d * d;
		signal += (double)t->exact[i] * t->exact[i];
	}
	free(x);
	free(m);
	free(y);
	return signal > 0 ? noise / signal : 0;
}

/* adds, to error[k], what one op of a group loses with candidate k */
static enum fettle_status add_errors(struct rewrite *w, const struct group *g, size_t node,
				     const struct rows *seen, double *const *candidates, size_t n,
				     double *error, struct err *err)
{
	const size_t inputs = op_inputs(w, node);
	struct trial_op t = { .rows = seen->n,
			      .inputs = inputs,
			      .repeat = repeat_of(w, g, node),
			      .narrow = w->base->cpu.saturates };
	float *min = xcalloc(inputs, sizeof(*min)), *max = xcalloc(inputs, sizeof(*max)), *matrix = NULL,
	      *exact;
	float *x = xcalloc(seen->n * inputs, sizeof(*x));
	size_t repeat, i, r;
	const double *factor = factor_of(w, node, &repeat);
	enum fettle_status st;

	st = input_extremes(w, node, min, max, err);
	if (!st)
		st = matrix_of(w, node, &matrix, &t.outputs, err);
	exact = xcalloc(seen->n * t.outputs + 1, sizeof(*exact));
	if (st)
		goto out;
	for (r = 0; r < seen->n; r++)
		for (i = 0; i < inputs; i++)
			x[r * inputs + i] =
				(float)(seen->x[r * inputs + i] * (factor ? factor[i / repeat] : 1));
	cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, (int)t.rows, (int)t.outputs, (int)inputs, 1, x,
		    (int)inputs, matrix, (int)t.outputs, 0, exact, (int)t.outputs);
	t.x = x;
	t.matrix = matrix;
	t.exact = exact;
	t.min = min;
	t.max = max;
	for (i = 0; i < n; i++)
		error[i] += op_error(&t, candidates[i]);
out:
	free(min);
	free(max);
	free(matrix);
	free(exact);
	free(x);
	return st;
}

/* the candidate that loses least: the first is nothing at all, the others alpha = 0, 0.1, … 1 */
static enum fettle_status choose(struct rewrite *w, const struct group *g, const struct rows *seen,
				 const double *x, const double *y, double *best, bool *any, struct err *err)
{
	double *candidates[STEPS + 2], error[STEPS + 2] = { 0 };
	enum fettle_status st = FETTLE_OK;
	size_t k, i, at = 0;

	for (k = 0; k < STEPS + 2; k++) {
		candidates[k] = xcalloc(g->n, sizeof(double));
		for (i = 0; i < g->n && !k; i++)
			candidates[k][i] = 1;
		if (k)
			smoothing(x, y, g->n, (double)(k - 1) / STEPS, candidates[k]);
	}
	for (i = 0; i < g->readers.n && !st; i++)
		st = add_errors(w, g, g->readers.v[i], &seen[g->readers.v[i]], candidates, STEPS + 2, error,
				err);
	for (k = 1; k < STEPS + 2; k++)
		if (error[k] < error[at])
			at = k;
	*any = at > 0 && (g->class != NO_CLASS || error[at] < worth_a_mul * error[0]);
	memcpy(best, candidates[at], g->n * sizeof(*best));
	for (k = 0; k < STEPS + 2; k++)
		free(candidates[k]);
	return st;
}

/* rows spread evenly over what one batch gives each op */
static enum fettle_status see_rows(struct rewrite *w, struct rows *rows, const size_t *nodes, size_t n,
				   struct runtime *rt, struct feed *feed, const struct calibrate_options *o,
				   struct err *err)
{
	const char **names = xcalloc(n, sizeof(*names));
	struct observed s = OBSERVED_INIT;
	struct feed_batch b = FEED_BATCH_INIT;
	struct tensor *out = xcalloc(n, sizeof(*out));
	size_t *at = xcalloc(n, sizeof(*at)), i, k, count = 0;
	enum fettle_status st;

	for (i = 0; i < n; i++) {
		const char *name = w->base->g.names[input_of(w, nodes[i])];

		for (k = 0; k < count && strcmp(names[k], name) != 0; k++)
			;
		if (k == count)
			names[count++] = name;
		at[i] = k;
	}
	st = observed_open(&s, rt, w->base->m, names, count, o->threads, err);
	if (!st)
		st = feed_read(feed, 0, &b, err);
	if (!st)
		st = session_run(s.session, b.inputs, out, err);
	for (i = 0; i < n && !st; i++) {
		const struct tensor *t = &out[at[i]];
		const size_t inputs = op_inputs(w, nodes[i]), total = (size_t)tensor_count(t) / inputs;
		struct rows *r = &rows[nodes[i]];

		r->n = total < ROWS_MAX ? total : ROWS_MAX;
		r->x = xcalloc(r->n * inputs + 1, sizeof(*r->x));
		for (k = 0; k < r->n; k++)
			memcpy(r->x + k * inputs, (const float *)t->data + k * total / r->n * inputs,
			       inputs * sizeof(*r->x));
	}
	feed_batch_release(&b);
	observed_close(&s);
	free(names);
	free(out);
	free(at);
	return st;
}

static enum fettle_status see_all(struct rewrite *w, const struct group *groups, size_t n, struct rows *rows,
				  struct runtime *rt, struct feed *feed, const struct calibrate_options *o,
				  struct err *err)
{
	size_t *nodes = xcalloc(w->base->ops.n, sizeof(*nodes)), count = 0, i, k;
	enum fettle_status st = FETTLE_OK;

	for (i = 0; i < n; i++)
		for (k = 0; k < groups[i].readers.n; k++)
			nodes[count++] = groups[i].readers.v[k];
	if (count)
		st = see_rows(w, rows, nodes, count, rt, feed, o, err);
	free(nodes);
	return st;
}

static enum fettle_status smooth_group(struct rewrite *w, const struct group *g, double alpha,
				       const struct rows *rows, struct err *err)
{
	double *x = xcalloc(g->n, sizeof(*x)), *y = xcalloc(g->n, sizeof(*y)), *f = xcalloc(g->n, sizeof(*f));
	enum fettle_status st = group_extremes(w, g, x, y, err);
	bool any = true;

	if (!st && alpha == SMOOTH_AUTO)
		st = choose(w, g, rows, x, y, f, &any, err);
	else
		smoothing(x, y, g->n, alpha, f);
	if (!st && any)
		st = g->class == NO_CLASS ? rewrite_insert(w, g->value, f, g->n, err)
					  : rewrite_fold(w, g->class, f, err);
	free(x);
	free(y);
	free(f);
	return st;
}

enum fettle_status smooth(struct rewrite *w, double alpha, struct runtime *rt, struct feed *feed,
			  const struct calibrate_options *o, struct err *err)
{
	struct rows *rows = xcalloc(w->base->ops.n, sizeof(*rows));
	struct group *groups;
	size_t n = find_groups(w, &groups), i;
	enum fettle_status st = FETTLE_OK;

	if (alpha == SMOOTH_AUTO)
		st = see_all(w, groups, n, rows, rt, feed, o, err);
	for (i = 0; i < n && !st; i++)
		st = smooth_group(w, &groups[i], alpha, rows, err);
	for (i = 0; i < w->base->ops.n; i++)
		free(rows[i].x);
	free(rows);
	groups_release(groups, n);
	return st;
}
