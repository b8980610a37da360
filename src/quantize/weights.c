#include "quantize/weights.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

struct weight_cache {
	struct model *m;
	struct arena arena;
	struct map index;
	VEC(struct qweight *) v;
};

struct weight_cache *weight_cache_new(struct model *m)
{
	struct weight_cache *c = xcalloc(1, sizeof(*c));

	c->m = m;
	return c;
}

void weight_cache_free(struct weight_cache *c)
{
	if (!c)
		return;
	VEC_RELEASE(&c->v);
	map_release(&c->index);
	arena_release(&c->arena);
	free(c);
}

/* A tensor seen as [outer][channels][inner]. */
struct view {
	size_t outer, channels, inner;
};

static struct view make_view(const struct tensor *t, int axis)
{
	struct view v = { 1, 1, 1 };
	int i;

	for (i = 0; i < t->rank; i++) {
		if (axis < 0 || i > axis)
			v.inner *= (size_t)t->dims[i];
		else if (i < axis)
			v.outer *= (size_t)t->dims[i];
		else
			v.channels = (size_t)t->dims[i];
	}
	return v;
}

/* min and max of n floats; a non-finite value makes *bad true */
static void extremes(const float *x, size_t n, float *min, float *max, bool *bad)
{
	float lo = *min, hi = *max;
	int off = 0;
	size_t i;

	for (i = 0; i < n; i++) {
		lo = x[i] < lo ? x[i] : lo;
		hi = x[i] > hi ? x[i] : hi;
		off |= !(fabsf(x[i]) <= FLT_MAX);
	}
	*min = lo;
	*max = hi;
	*bad |= off;
}

/* the same for each of n columns */
static void extremes_columns(const float *x, size_t n, float *min, float *max, bool *bad)
{
	int off = 0;
	size_t i;

	for (i = 0; i < n; i++) {
		min[i] = x[i] < min[i] ? x[i] : min[i];
		max[i] = x[i] > max[i] ? x[i] : max[i];
		off |= !(fabsf(x[i]) <= FLT_MAX);
	}
	*bad |= off;
}

static enum fettle_status channel_ranges(const char *name, const float *x, const struct view *v, float *min,
					 float *max, struct err *err)
{
	bool bad = false;
	size_t o, c;

	for (c = 0; c < v->channels; c++)
		min[c] = max[c] = 0; /* a range always holds zero */
	for (o = 0; o < v->outer; o++) {
		const float *row = x + o * v->channels * v->inner;

		if (v->inner == 1)
			extremes_columns(row, v->channels, min, max, &bad);
		else
			for (c = 0; c < v->channels; c++)
				extremes(row + c * v->inner, v->inner, &min[c], &max[c], &bad);
	}
	if (bad)
		return fail(err, FETTLE_INVALID,
			    "cannot quantize weight '%s': it has values that are not finite", name);
	return FETTLE_OK;
}

static struct qparams params_of(const struct qsetting *s, float min, float max)
{
	return qsetting_is_pow2(s) ? quant_params_pow2(min, max, s->dtype, s->scheme, s->narrow)
				   : quant_params(min, max, s->dtype, s->scheme, s->narrow);
}

/* squared error of quantizing one channel's values with the range shrunk by k */
static double channel_error(const float *x, const struct view *v, size_t c, float min, float max,
			    const struct qsetting *s, double k)
{
	struct qparams q = params_of(s, (float)(min * k), (float)(max * k));
	struct qlimits lim = quant_limits(s->dtype, s->scheme, s->narrow);
	double sum = 0;
	size_t o, i;

	for (o = 0; o < v->outer; o++) {
		const float *row = x + (o * v->channels + c) * v->inner;

		for (i = 0; i < v->inner; i++) {
			float r = rintf(row[i] / q.scale) + (float)q.zero, e;

			r = fminf(fmaxf(r, (float)lim.lo), (float)lim.hi);
			e = (r - (float)q.zero) * q.scale - row[i];
			sum += (double)e * e;
		}
	}
	return sum;
}

/* algorithm mse: the shrinkage of each channel's range that loses least; minmse: the same by powers of two */
static void shrink_ranges(const float *x, const struct view *v, float *min, float *max,
			  const struct qsetting *s)
{
	bool pow2 = qsetting_is_pow2(s);
	int steps = pow2 ? 7 : 24, k;
	size_t c;

	for (c = 0; c < v->channels; c++) {
		double best = channel_error(x, v, c, min[c], max[c], s, 1), best_k = 1;

		for (k = 1; k < steps; k++) {
			double ratio = pow2 ? ldexp(1, -k) : 1 - 0.02 * k;
			double e = channel_error(x, v, c, min[c], max[c], s, ratio);

			if (e < best) {
				best = e;
				best_k = ratio;
			}
		}
		min[c] *= (float)best_k;
		max[c] *= (float)best_k;
	}
}

static void quantize_columns(const float *x, size_t n, const float *scale, const float *zero,
			     struct qlimits lim, enum dtype t, void *out)
{
	float lo = (float)lim.lo, hi = (float)lim.hi;
	size_t i;

#define LOOP(type)                                                                                           \
	for (i = 0; i < n; i++) {                                                                            \
		float v = rintf(x[i] / scale[i]) + zero[i];                                                  \
		v = v < lo ? lo : v;                                                                         \
		v = v > hi ? hi : v;                                                                         \
		((type *)out)[i] = (type)(int32_t)v;                                                         \
	}
	if (t == DT_S8)
		LOOP(int8_t)
	else if (t == DT_U8)
		LOOP(uint8_t)
	else if (t == DT_S16)
		LOOP(int16_t)
	else
		LOOP(uint16_t)
#undef LOOP
}

static void quantize_all(const float *x, const struct view *v, struct qweight *w, const struct qparams *q,
			 struct qlimits lim)
{
	size_t size = dtype_size(w->q.dtype), o, c;
	float *zero = xcalloc(v->channels, sizeof(*zero));

	for (c = 0; c < v->channels; c++)
		zero[c] = (float)q[c].zero;
	for (o = 0; o < v->outer; o++) {
		size_t at = o * v->channels * v->inner;

		if (v->inner == 1)
			quantize_columns(x + at, v->channels, w->scale.data, zero, lim, w->q.dtype,
					 (char *)w->q.data + at * size);
		else
			for (c = 0; c < v->channels; c++, at += v->inner)
				quant_array(x + at, v->inner, q[c], lim, w->q.dtype,
					    (char *)w->q.data + at * size);
	}
	free(zero);
}

static const float *transposed(struct arena *a, const struct tensor *t, struct tensor *out)
{
	size_t rows = (size_t)t->dims[t->rank - 2], cols = (size_t)t->dims[t->rank - 1], batch = 1, b, i, j;
	const float *x = t->data;
	float *y;

	for (i = 0; (int)i < t->rank - 2; i++)
		batch *= (size_t)t->dims[i];
	*out = *t;
	out->dims[t->rank - 2] = (int64_t)cols;
	out->dims[t->rank - 1] = (int64_t)rows;
	y = arena_alloc(a, tensor_bytes(t));
	for (b = 0; b < batch; b++)
		for (i = 0; i < rows; i++)
			for (j = 0; j < cols; j++)
				y[b * rows * cols + j * rows + i] = x[b * rows * cols + i * cols + j];
	return y;
}

/* typed loops, so that the compiler vectorises each */
static void to_floats(const void *q, size_t n, enum dtype t, float *out)
{
	size_t i;

#define LOOP(type)                                                                                           \
	for (i = 0; i < n; i++)                                                                              \
		out[i] = (float)((const type *)q)[i];
	if (t == DT_S8)
		LOOP(int8_t)
	else if (t == DT_U8)
		LOOP(uint8_t)
	else if (t == DT_S16)
		LOOP(int16_t)
	else
		LOOP(uint16_t)
#undef LOOP
}

void qweight_floats(const struct qweight *w, float *out)
{
	const struct view v = make_view(&w->q, w->axis);
	const float *scale = w->scale.data;
	float *zero = xcalloc(v.channels, sizeof(*zero));
	size_t o, c, i;

	to_floats(w->q.data, v.outer * v.channels * v.inner, w->q.dtype, out);
	to_floats(w->zero.data, v.channels, w->q.dtype, zero);
	for (o = 0; o < v.outer && v.inner == 1; o++, out += v.channels)
		for (c = 0; c < v.channels; c++)
			out[c] = (out[c] - zero[c]) * scale[c];
	for (o = 0; o < v.outer && v.inner != 1; o++)
		for (c = 0; c < v.channels; c++, out += v.inner)
			for (i = 0; i < v.inner; i++)
				out[i] = (out[i] - zero[c]) * scale[c];
	free(zero);
}

const struct qweight *qweight_transposed(struct arena *a, const struct qweight *w)
{
	const size_t rows = (size_t)w->q.dims[0], cols = (size_t)w->q.dims[1], size = dtype_size(w->q.dtype);
	struct qweight *t = arena_alloc(a, sizeof(*t));
	size_t i, j;

	*t = *w;
	t->axis = w->axis < 0 ? -1 : 1 - w->axis;
	t->q.dims[0] = (int64_t)cols;
	t->q.dims[1] = (int64_t)rows;
	t->q.data = arena_alloc(a, tensor_bytes(&w->q));
	for (i = 0; i < rows; i++)
		for (j = 0; j < cols; j++)
			memcpy((char *)t->q.data + (j * rows + i) * size,
			       (const char *)w->q.data + (i * cols + j) * size, size);
	return t;
}

/* the standard deviation of one channel's values */
static double deviation(const float *x, const struct view *v, size_t c)
{
	const double n = (double)v->outer * (double)v->inner;
	double sum = 0, squares = 0;
	size_t o, i;

	for (o = 0; o < v->outer; o++) {
		const float *row = x + (o * v->channels + c) * v->inner;

		for (i = 0; i < v->inner; i++) {
			sum += row[i];
			squares += (double)row[i] * row[i];
		}
	}
	return sqrt(fmax(squares / n - sum / n * (sum / n), 0));
}

/*
 * Rounding changes how far a channel's values spread; the scale undoes that, with the integers as they are.
 * A channel so coarse that it would change by more than half has no spread worth matching.
 */
static void match_variance(const float *x, const struct view *v, struct qweight *w, const float *min_scale)
{
	float *y = xmalloc(tensor_count(&w->q) ? (size_t)tensor_count(&w->q) * sizeof(*y) : 1);
	float *scale = w->scale.data;
	size_t c;

	qweight_floats(w, y);
	for (c = 0; c < v->channels; c++) {
		double want = deviation(x, v, c), have = deviation(y, v, c);

		if (want > 0.5 * have && want < 2 * have)
			scale[c] = (float)(scale[c] * (want / have));
		if (min_scale)
			scale[c] = fmaxf(scale[c], min_scale[c]);
	}
	free(y);
}

/* fills w, whose q has shape, type and room; scale and zero have room for the channels */
static enum fettle_status fill(struct qweight *w, const char *name, const float *x, const struct qsetting *s,
			       const struct weight_form *form, struct err *err)
{
	const float *min_scale = form->min_scale;
	struct view v = make_view(&w->q, w->axis);
	float *min = xcalloc(v.channels, sizeof(*min)), *max = xcalloc(v.channels, sizeof(*max));
	struct qparams *q = xcalloc(v.channels, sizeof(*q));
	enum fettle_status st;
	size_t c;

	st = channel_ranges(name, x, &v, min, max, err);
	if (st)
		goto out;
	if (s->algorithm == RANGE_MSE || s->algorithm == RANGE_MINMSE)
		shrink_ranges(x, &v, min, max, s);
	for (c = 0; c < v.channels; c++) {
		q[c] = params_of(s, min[c], max[c]);
		if (min_scale && q[c].scale < min_scale[c]) {
			float widen = min_scale[c] / q[c].scale;

			q[c] = params_of(s, min[c] * widen, max[c] * widen);
			if (q[c].scale < min_scale[c] && qsetting_is_pow2(s)) /* was rounded up before */
				q[c] = params_of(s, 2 * min[c] * widen, 2 * max[c] * widen);
			if (min[c] == 0 && max[c] == 0) /* all zero: any scale is right */
				q[c].scale = qsetting_is_pow2(s) ? exp2f(ceilf(log2f(min_scale[c])))
								 : min_scale[c];
		}
		((float *)w->scale.data)[c] = q[c].scale;
		tensor_set(&w->zero, c, q[c].zero);
	}
	quantize_all(x, &v, w, q, quant_limits(s->dtype, s->scheme, s->narrow));
	if (form->match_variance && !qsetting_is_pow2(s)) /* which its scales would no longer be */
		match_variance(x, &v, w, min_scale);
out:
	free(min);
	free(max);
	free(q);
	return st;
}

/* the shapes of scale and zero, for a w whose q has its shape */
static size_t shape_channels(struct qweight *w, const struct qsetting *s, int axis)
{
	if (axis < 0)
		axis += w->q.rank;
	w->axis = s->per_channel && w->q.rank > 0 ? axis : -1;
	w->is_symmetric = s->scheme == SCHEME_SYM;
	w->q.dtype = s->dtype;
	w->scale = (struct tensor){ .dtype = DT_F32, .rank = w->axis >= 0 };
	w->scale.dims[0] = w->axis >= 0 ? w->q.dims[w->axis] : 1;
	w->zero = w->scale;
	w->zero.dtype = s->dtype;
	return (size_t)w->scale.dims[0];
}

enum fettle_status quantize_tensor(const struct tensor *t, const struct qsetting *s, int axis, void *out,
				   struct err *err)
{
	struct qweight w = { .q = *t };
	size_t channels = shape_channels(&w, s, axis);
	enum fettle_status st;

	w.q.data = out;
	w.scale.data = xcalloc(channels, sizeof(float));
	w.zero.data = xcalloc(channels, sizeof(int32_t));
	st = fill(&w, "tensor", t->data, s, &(struct weight_form){ .axis = axis }, err);
	free(w.scale.data);
	free(w.zero.data);
	return st;
}

enum fettle_status quantized_floats(const struct tensor *t, const struct qsetting *s, int axis, float *out,
				    struct err *err)
{
	struct qweight w = { .q = *t };
	size_t channels = shape_channels(&w, s, axis);
	enum fettle_status st;

	w.q.data = xmalloc(tensor_bytes(&w.q) + 1);
	w.scale.data = xcalloc(channels, sizeof(float));
	w.zero.data = xcalloc(channels, sizeof(int32_t));
	st = fill(&w, "tensor", t->data, s, &(struct weight_form){ .axis = axis }, err);
	if (!st)
		qweight_floats(&w, out);
	free(w.q.data);
	free(w.scale.data);
	free(w.zero.data);
	return st;
}

enum fettle_status quantization_error(const struct tensor *t, const struct qsetting *s, int axis, double *out,
				      struct err *err)
{
	const size_t n = (size_t)tensor_count(t);
	float *back = xcalloc(n, sizeof(*back));
	const float *x = t->data;
	enum fettle_status st = quantized_floats(t, s, axis, back, err);
	size_t i;

	*out = 0;
	for (i = 0; i < n && !st; i++)
		*out += ((double)back[i] - x[i]) * ((double)back[i] - x[i]);
	free(back);
	return st;
}

static enum fettle_status build(struct weight_cache *cache, const char *name, const struct qsetting *s,
				const struct weight_form *form, struct qweight *w, struct err *err)
{
	struct init *init = model_init(cache->m, name);
	struct arena scratch = ARENA_INIT;
	enum fettle_status st;
	const float *x;
	size_t channels;

	st = model_weight(cache->m, init, err);
	if (st)
		return st;
	w->q = init->t;
	x = init->t.data;
	if (form->transpose)
		x = transposed(&scratch, &init->t, &w->q);
	channels = shape_channels(w, s, form->axis);
	w->q.data = arena_try(&cache->arena, tensor_bytes(&w->q) + 1);
	w->scale.data = arena_alloc(&cache->arena, channels * sizeof(float));
	w->zero.data = arena_alloc(&cache->arena, channels * sizeof(int32_t));
	if (w->q.data)
		st = fill(w, name, x, s, form, err);
	else
		st = fail(err, FETTLE_SYSTEM, "cannot quantize weight '%s': not enough memory", name);
	arena_release(&scratch);
	return st;
}

enum fettle_status weight_get(struct weight_cache *c, const char *name, const struct qsetting *s,
			      const struct weight_form *form, const struct qweight **out, struct err *err)
{
	struct qweight *w;
	enum fettle_status st;
	char *key;
	size_t i;

	key = xstrfmt("%d %d %d %d %d %d %d %d %s", s->dtype, s->scheme, s->per_channel, s->narrow,
		      s->algorithm, s->per_channel ? form->axis : 0, form->transpose, form->match_variance,
		      name);
	/* one that was widened for its bias depends on the input's scale too: it is not found again */
	i = form->min_scale ? MAP_NONE : map_get(&c->index, key);
	if (i != MAP_NONE) {
		free(key);
		*out = c->v.v[i];
		return FETTLE_OK;
	}
	w = arena_alloc(&c->arena, sizeof(*w));
	st = build(c, name, s, form, w, err);
	if (!st && !form->min_scale) {
		map_set(&c->index, arena_strdup(&c->arena, key), c->v.n);
		VEC_PUSH(&c->v, w);
	}
	free(key);
	*out = w;
	return st;
}
