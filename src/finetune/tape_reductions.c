/* Steps of a tape in which many numbers make one, or are measured by each other. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "finetune/tape_op.h"

/* ---- sums and means: map[0] says to which output each input belongs, p[0] is its share ---- */

/* the output's shape with the reduced dimensions left in */
static const char *reduced_shape(const struct tape_step *s, struct tensor *out)
{
	size_t n = 0, k;
	const int64_t *axes = node_ints(s->node, "axes", &n);
	int d;

	*out = s->in[0]->t;
	if (step_has(s, 1) && !s->in[1]->constant)
		return "has axes that are computed";
	if (strcmp(s->node->op, "GlobalAveragePool") == 0) {
		for (d = 2; d < out->rank; d++)
			out->dims[d] = 1;
		return NULL;
	}
	n = step_has(s, 1) ? cell_count(s->in[1]) : n;
	if (!n && node_int(s->node, "noop_with_empty_axes", 0))
		return NULL;
	for (d = 0; d < out->rank && !n; d++)
		out->dims[d] = 1;
	for (k = 0; k < n; k++) {
		d = step_has(s, 1) ? (int)cell_get(s->in[1], k) : (int)axes[k];
		out->dims[d < 0 ? d + out->rank : d] = 1;
	}
	return NULL;
}

static enum fettle_status mean_prepare(struct tape *t, struct tape_step *s, const char **why, struct err *err)
{
	struct tensor shape;

	(void)err;
	*why = reduced_shape(s, &shape);
	if (!*why && cell_count(s->in[0]) >= UINT32_MAX)
		*why = "has too many values";
	if (!*why)
		s->map[0] = tape_broadcast(t, &shape, &s->in[0]->t);
	s->p[0] = 1;
	if (strcmp(s->node->op, "ReduceSum") != 0)
		s->p[0] = (float)cell_count(s->out) / (float)cell_count(s->in[0]);
	return FETTLE_OK;
}

static enum fettle_status mean_forward(struct tape_step *s, struct err *err)
{
	const float *x = cell_data(s->in[0]);
	float *y = cell_data(s->out);
	size_t i, n = cell_count(s->in[0]), outputs = cell_count(s->out);

	(void)err;
	memset(y, 0, outputs * sizeof(float));
	for (i = 0; i < n; i++)
		y[s->map[0] ? s->map[0][i] : i] += x[i];
	for (i = 0; i < outputs; i++)
		y[i] *= s->p[0];
	return FETTLE_OK;
}

static enum fettle_status mean_backward(struct tape_step *s, struct err *err)
{
	size_t i, n = cell_count(s->in[0]);

	(void)err;
	for (i = 0; i < n; i++)
		s->in[0]->g[i] += s->out->g[s->map[0] ? s->map[0][i] : i] * s->p[0];
	return FETTLE_OK;
}

/* ---- pools over rows and columns ---- */

static enum fettle_status pool_prepare(struct tape *t, struct tape_step *s, const char **why, struct err *err)
{
	static const char *const names[] = { "kernel_shape", "strides", "pads", "dilations" };
	const char *automatic = node_str(s->node, "auto_pad");
	const int dims = s->in[0]->t.rank - 2;
	struct pool *p = s->pool = arena_alloc(&t->arena, sizeof(*p));
	size_t a, count;
	int k;

	(void)err;
	p->whole = node_int(s->node, "count_include_pad", 0);
	if (dims < 1 || dims > 2)
		*why = "is not in one or two dimensions";
	else if ((automatic && strcmp(automatic, "NOTSET") != 0) || node_int(s->node, "storage_order", 0) ||
		 (p->whole && node_int(s->node, "ceil_mode", 0)) || s->which)
		*why = "pads or counts in a way of its own";
	for (a = 0; a < ARRAY_LEN(names) && !*why; a++) {
		const int64_t *v = node_ints(s->node, names[a], &count);

		for (k = 0; k < 2; k++) {
			const bool there = k >= 2 - dims;
			const long otherwise = a == 2 ? 0 : 1;
			const long x = v && there ? (long)v[k - (2 - dims)] : otherwise;

			(a == 0 ? p->kernel : a == 1 ? p->stride : a == 2 ? p->pad : p->dilation)[k] = x;
		}
	}
	if (!*why)
		s->map[0] = arena_alloc(&t->arena, (cell_count(s->out) + 1) * sizeof(uint32_t));
	return FETTLE_OK;
}

/* rows and columns of a value */
static void sides(const struct tape_cell *c, long out[2])
{
	out[0] = c->t.rank == 4 ? (long)c->t.dims[2] : 1;
	out[1] = (long)c->t.dims[c->t.rank - 1];
}

/* what of a window of output i is inside: from, to and step, per side; returns where its plane begins */
static size_t window(const struct tape_step *s, size_t i, const long in[2], const long out[2], long from[2],
		     long to[2])
{
	const size_t plane = i / (size_t)(out[0] * out[1]), at = i % (size_t)(out[0] * out[1]);
	const struct pool *p = s->pool;
	int k;

	for (k = 0; k < 2; k++) {
		const long o = k ? (long)at % out[1] : (long)at / out[1];

		from[k] = o * p->stride[k] - p->pad[k];
		to[k] = from[k] + (p->kernel[k] - 1) * p->dilation[k] + 1;
		while (from[k] < 0)
			from[k] += p->dilation[k];
		to[k] = to[k] < in[k] ? to[k] : in[k];
	}
	return plane * (size_t)(in[0] * in[1]);
}

static enum fettle_status max_forward(struct tape_step *s, struct err *err)
{
	const float *x = cell_data(s->in[0]);
	long in[2], out[2], from[2], to[2], r, c;
	size_t i, n = cell_count(s->out);

	(void)err;
	sides(s->in[0], in);
	sides(s->out, out);
	for (i = 0; i < n; i++) {
		const size_t plane = window(s, i, in, out, from, to);
		size_t best = plane + (size_t)(from[0] * in[1] + from[1]);

		for (r = from[0]; r < to[0]; r += s->pool->dilation[0])
			for (c = from[1]; c < to[1]; c += s->pool->dilation[1]) {
				const size_t at = plane + (size_t)(r * in[1] + c);

				best = x[at] > x[best] ? at : best;
			}
		s->map[0][i] = (uint32_t)best;
		cell_data(s->out)[i] = x[best];
	}
	return FETTLE_OK;
}

static enum fettle_status max_backward(struct tape_step *s, struct err *err)
{
	size_t i, n = cell_count(s->out);

	(void)err;
	for (i = 0; i < n; i++)
		s->in[0]->g[s->map[0][i]] += s->out->g[i];
	return FETTLE_OK;
}

/* forward sums x up to y, backward hands y's gradient out */
static void average(struct tape_step *s, const float *x, float *y, const float *gy, float *gx)
{
	const struct pool *p = s->pool;
	long in[2], out[2], from[2], to[2], r, c;
	size_t i, n = cell_count(s->out);

	sides(s->in[0], in);
	sides(s->out, out);
	for (i = 0; i < n; i++) {
		const size_t plane = window(s, i, in, out, from, to);
		float sum = 0, share, inside = 0;

		for (r = from[0]; r < to[0]; r += p->dilation[0])
			for (c = from[1]; c < to[1]; c += p->dilation[1])
				inside++;
		share = 1 / (p->whole ? (float)(p->kernel[0] * p->kernel[1]) : inside);
		for (r = from[0]; r < to[0]; r += p->dilation[0])
			for (c = from[1]; c < to[1]; c += p->dilation[1]) {
				const size_t at = plane + (size_t)(r * in[1] + c);

				if (gx)
					gx[at] += gy[i] * share;
				else
					sum += x[at];
			}
		if (!gx)
			y[i] = sum * share;
	}
}

static enum fettle_status average_forward(struct tape_step *s, struct err *err)
{
	(void)err;
	average(s, cell_data(s->in[0]), cell_data(s->out), NULL, NULL);
	return FETTLE_OK;
}

static enum fettle_status average_backward(struct tape_step *s, struct err *err)
{
	(void)err;
	average(s, NULL, NULL, s->out->g, s->in[0]->g);
	return FETTLE_OK;
}

/* ---- along an axis: size[0] times size[1] numbers, size[2] apart ---- */

static void along(const struct tensor *x, int64_t axis, bool to_end, size_t size[3])
{
	int d;

	axis += axis < 0 ? x->rank : 0;
	size[0] = size[1] = size[2] = 1;
	for (d = 0; d < x->rank; d++)
		size[d < axis ? 0 : d == axis || to_end ? 1 : 2] *= (size_t)x->dims[d];
}

static enum fettle_status softmax_prepare(struct tape *t, struct tape_step *s, const char **why,
					  struct err *err)
{
	const bool old = t->m->opset < 13;

	(void)why, (void)err;
	along(&s->in[0]->t, node_int(s->node, "axis", old ? 1 : -1), old, s->size);
	return FETTLE_OK;
}

/* the first number of row k */
static size_t row_start(const struct tape_step *s, size_t k)
{
	return k / s->size[2] * s->size[1] * s->size[2] + k % s->size[2];
}

static enum fettle_status softmax_forward(struct tape_step *s, struct err *err)
{
	const size_t step = s->size[2];
	size_t k, i;

	(void)err;
	for (k = 0; k < s->size[0] * step; k++) {
		const float *x = cell_data(s->in[0]) + row_start(s, k);
		float *y = cell_data(s->out) + row_start(s, k), most = x[0], sum = 0;

		for (i = 1; i < s->size[1]; i++)
			most = fmaxf(most, x[i * step]);
		for (i = 0; i < s->size[1]; i++)
			sum += y[i * step] = expf(x[i * step] - most);
		for (i = 0; i < s->size[1]; i++)
			y[i * step] /= sum;
	}
	return FETTLE_OK;
}

static enum fettle_status softmax_backward(struct tape_step *s, struct err *err)
{
	const size_t step = s->size[2];
	size_t k, i;

	(void)err;
	for (k = 0; k < s->size[0] * step; k++) {
		const size_t at = row_start(s, k);
		const float *y = cell_data(s->out) + at, *g = s->out->g + at;
		float dot = 0;

		for (i = 0; i < s->size[1]; i++)
			dot += y[i * step] * g[i * step];
		for (i = 0; i < s->size[1]; i++)
			s->in[0]->g[at + i * step] += y[i * step] * (g[i * step] - dot);
	}
	return FETTLE_OK;
}

static enum fettle_status norm_prepare(struct tape *t, struct tape_step *s, const char **why, struct err *err)
{
	(void)err;
	along(&s->in[0]->t, node_int(s->node, "axis", -1), true, s->size);
	s->p[0] = node_float(s->node, "epsilon", 1e-5f);
	if (!step_has_constant(s, 1) || (step_has(s, 2) && !s->in[2]->constant) ||
	    cell_count(s->in[1]) != s->size[1] || s->which)
		*why = "has a scale that is computed, or a second output";
	s->kept = arena_alloc(&t->arena, (s->size[0] + 1) * sizeof(float));
	return FETTLE_OK;
}

/* keeps 1 / deviation of each row */
static enum fettle_status norm_forward(struct tape_step *s, struct err *err)
{
	const size_t n = s->size[1];
	size_t k, i;

	(void)err;
	for (k = 0; k < s->size[0]; k++) {
		const float *x = cell_data(s->in[0]) + k * n;
		float *y = cell_data(s->out) + k * n;
		double mean = 0, square = 0;

		for (i = 0; i < n; i++)
			mean += x[i] / (double)n;
		for (i = 0; i < n; i++)
			square += (x[i] - mean) * (x[i] - mean) / (double)n;
		s->kept[k] = (float)(1 / sqrt(square + (double)s->p[0]));
		for (i = 0; i < n; i++)
			y[i] = (x[i] - (float)mean) * s->kept[k] * cell_get(s->in[1], i) +
			       (step_has(s, 2) ? cell_get(s->in[2], i) : 0);
	}
	return FETTLE_OK;
}

static enum fettle_status norm_backward(struct tape_step *s, struct err *err)
{
	const size_t n = s->size[1];
	size_t k, i;

	(void)err;
	for (k = 0; k < s->size[0]; k++) {
		const float *x = cell_data(s->in[0]) + k * n, *g = s->out->g + k * n;
		double mean = 0, sum = 0, dot = 0;

		for (i = 0; i < n; i++)
			mean += x[i] / (double)n;
		for (i = 0; i < n; i++) {
			const double h = (double)g[i] * cell_get(s->in[1], i);

			sum += h / (double)n;
			dot += h * (x[i] - mean) * s->kept[k] / (double)n;
		}
		for (i = 0; i < n; i++)
			s->in[0]->g[k * n + i] +=
				s->kept[k] * (float)((double)g[i] * cell_get(s->in[1], i) - sum -
						     dot * (x[i] - mean) * s->kept[k]);
	}
	return FETTLE_OK;
}

/* as it is at inference: kept are a factor and an offset per channel */
static enum fettle_status batch_norm_prepare(struct tape *t, struct tape_step *s, const char **why,
					     struct err *err)
{
	const float epsilon = node_float(s->node, "epsilon", 1e-5f);
	size_t k, c;

	(void)err;
	along(&s->in[0]->t, 1, false, s->size);
	for (k = 1; k < 5; k++)
		if (!step_has_constant(s, k) || cell_count(s->in[k]) != s->size[1])
			*why = "has statistics that are computed";
	s->kept = arena_alloc(&t->arena, (2 * s->size[1] + 1) * sizeof(float));
	for (c = 0; c < s->size[1] && !*why; c++) {
		const float factor = cell_get(s->in[1], c) / sqrtf(cell_get(s->in[4], c) + epsilon);

		s->kept[c] = factor;
		s->kept[s->size[1] + c] = cell_get(s->in[2], c) - cell_get(s->in[3], c) * factor;
	}
	return FETTLE_OK;
}

static enum fettle_status batch_norm_forward(struct tape_step *s, struct err *err)
{
	const float *x = cell_data(s->in[0]);
	float *y = cell_data(s->out);
	size_t i, n = cell_count(s->out);

	(void)err;
	for (i = 0; i < n; i++) {
		const size_t c = i / s->size[2] % s->size[1];

		y[i] = x[i] * s->kept[c] + s->kept[s->size[1] + c];
	}
	return FETTLE_OK;
}

static enum fettle_status batch_norm_backward(struct tape_step *s, struct err *err)
{
	size_t i, n = cell_count(s->out);

	(void)err;
	for (i = 0; i < n; i++)
		s->in[0]->g[i] += s->out->g[i] * s->kept[i / s->size[2] % s->size[1]];
	return FETTLE_OK;
}

const struct tape_kind tape_reductions[] = {
	{ "ReduceMean", mean_prepare, mean_forward, mean_backward },
	{ "ReduceSum", mean_prepare, mean_forward, mean_backward },
	{ "GlobalAveragePool", mean_prepare, mean_forward, mean_backward },
	{ "MaxPool", pool_prepare, max_forward, max_backward },
	{ "AveragePool", pool_prepare, average_forward, average_backward },
	{ "Softmax", softmax_prepare, softmax_forward, softmax_backward },
	{ "LayerNormalization", norm_prepare, norm_forward, norm_backward },
	{ "BatchNormalization", batch_norm_prepare, batch_norm_forward, batch_norm_backward },
	{ NULL, NULL, NULL, NULL },
};
