/* Steps of a tape that work element by element, with one operand or two. */
#include <math.h>
#include <string.h>

#include "finetune/method.h"
#include "finetune/tape_op.h"

/* ---- one operand: y = f(x), and how y rises with x ---- */

#define UNARY(name, value, slope)                                                                            \
	WIDE static void name##_values(const float *restrict in, float *restrict out, size_t n,              \
				       const float *restrict p)                                              \
	{                                                                                                    \
		size_t i;                                                                                    \
                                                                                                             \
		(void)p;                                                                                     \
		for (i = 0; i < n; i++) {                                                                    \
			const float x = in[i];                                                               \
                                                                                                             \
			out[i] = (value);                                                                    \
		}                                                                                            \
	}                                                                                                    \
	WIDE static void name##_slopes(const float *restrict in, const float *restrict out,                  \
				       const float *restrict g, float *restrict dx, size_t n,                \
				       const float *restrict p)                                              \
	{                                                                                                    \
		size_t i;                                                                                    \
                                                                                                             \
		(void)p;                                                                                     \
		for (i = 0; i < n; i++) {                                                                    \
			const float x = in[i], y = out[i];                                                   \
                                                                                                             \
			(void)x;                                                                             \
			(void)y;                                                                             \
			dx[i] += g[i] * (slope);                                                             \
		}                                                                                            \
	}                                                                                                    \
	static enum fettle_status name##_forward(struct tape_step *s, struct err *err)                       \
	{                                                                                                    \
		(void)err;                                                                                   \
		name##_values(cell_data(s->in[0]), cell_data(s->out), cell_count(s->out), s->p);             \
		return FETTLE_OK;                                                                            \
	}                                                                                                    \
	static enum fettle_status name##_backward(struct tape_step *s, struct err *err)                      \
	{                                                                                                    \
		(void)err;                                                                                   \
		name##_slopes(cell_data(s->in[0]), cell_data(s->out), s->out->g, s->in[0]->g,                \
			      cell_count(s->out), s->p);                                                     \
		return FETTLE_OK;                                                                            \
	}

#define ROOT_HALF 0.70710678f   /* 1 / sqrt(2) */
#define TWO_BY_ROOT 1.1283792f  /* 2 / sqrt(pi) */
#define BELL_HEIGHT 0.39894228f /* 1 / sqrt(2 pi) */

UNARY(relu, x > 0 ? x : 0, x > 0 ? 1.0f : 0.0f)
UNARY(leaky, x > 0 ? x : p[0] * x, x > 0 ? 1 : p[0])
UNARY(clip, clampf(x, p[0], p[1]), ((x > p[0]) & (x < p[1])) ? 1.0f : 0.0f)
UNARY(sigmoid, 1 / (1 + expf(-x)), y *(1 - y))
UNARY(hard_sigmoid, clampf(p[0] * x + p[1], 0, 1), ((y > 0) & (y < 1)) ? p[0] : 0)
UNARY(hard_swish, x *clampf(x / 6 + 0.5f, 0, 1), x <= -3 ? 0 : x >= 3 ? 1 : x / 3 + 0.5f)
UNARY(tanh, tanhf(x), 1 - y * y)
UNARY(erf, erff(x), TWO_BY_ROOT *expf(-x *x))
UNARY(gelu, 0.5f * x * (1 + erff(ROOT_HALF * x)),
      0.5f * (1 + erff(ROOT_HALF * x)) + x * BELL_HEIGHT * expf(-0.5f * x * x))
UNARY(square_root, sqrtf(x), 0.5f / y)
UNARY(exponential, expf(x), y)
UNARY(reciprocal, 1 / x, -y *y)
UNARY(negative, -x, -1.0f)
/* scale, zero point and limits; what is cut off has no slope */
UNARY(quantize, clampf(rintf(x / p[0]) + p[1], p[2], p[3]),
      ((rintf(x / p[0]) + p[1] >= p[2]) & (rintf(x / p[0]) + p[1] <= p[3])) ? 1 / p[0] : 0)
UNARY(dequantize, p[0] * (x - p[1]), p[0])

static enum fettle_status leaky_prepare(struct tape *t, struct tape_step *s, const char **why,
					struct err *err)
{
	(void)t, (void)why, (void)err;
	s->p[0] = node_float(s->node, "alpha", 0.01f);
	return FETTLE_OK;
}

static enum fettle_status hard_sigmoid_prepare(struct tape *t, struct tape_step *s, const char **why,
					       struct err *err)
{
	(void)t, (void)why, (void)err;
	s->p[0] = node_float(s->node, "alpha", 0.2f);
	s->p[1] = node_float(s->node, "beta", 0.5f);
	return FETTLE_OK;
}

static enum fettle_status clip_prepare(struct tape *t, struct tape_step *s, const char **why, struct err *err)
{
	static const char *const names[] = { "min", "max" };
	size_t k;

	(void)t, (void)err;
	for (k = 0; k < 2; k++) {
		s->p[k] = node_float(s->node, names[k], k ? INFINITY : -INFINITY);
		if (step_has_constant(s, k + 1))
			s->p[k] = cell_get(s->in[k + 1], 0);
		else if (step_has(s, k + 1))
			*why = "has limits that are computed";
	}
	return FETTLE_OK;
}

static enum fettle_status gelu_prepare(struct tape *t, struct tape_step *s, const char **why, struct err *err)
{
	const char *how = node_str(s->node, "approximate");

	(void)t, (void)err;
	if (how && strcmp(how, "none") != 0)
		*why = "is approximate";
	return FETTLE_OK;
}

/* one scale, maybe written down several times */
static enum fettle_status qdq_prepare(struct tape *t, struct tape_step *s, const char **why, struct err *err)
{
	size_t i;

	(void)t, (void)err;
	if (!step_has_constant(s, 1) || (step_has(s, 2) && !s->in[2]->constant)) {
		*why = "has a scale that is computed";
		return FETTLE_OK;
	}
	s->p[0] = cell_get(s->in[1], 0);
	s->p[1] = step_has(s, 2) ? cell_get(s->in[2], 0) : 0;
	for (i = 0; i < cell_count(s->in[1]); i++)
		if (cell_get(s->in[1], i) != s->p[0] || (step_has(s, 2) && cell_get(s->in[2], i) != s->p[1]))
			*why = "has several scales";
	return FETTLE_OK;
}

static enum fettle_status quantize_prepare(struct tape *t, struct tape_step *s, const char **why,
					   struct err *err)
{
	const struct init *zero = s->node->n_in > 2 ? model_init(t->m, s->node->in[2]) : NULL;
	const struct qlimits l = quant_limits(zero ? zero->t.dtype : DT_U8, SCHEME_ASYM, false);

	s->p[2] = (float)l.lo;
	s->p[3] = (float)l.hi;
	return qdq_prepare(t, s, why, err);
}

/* ---- two operands, one of them or both broadcast ---- */

uint32_t *tape_broadcast(struct tape *t, const struct tensor *from, const struct tensor *to)
{
	const size_t n = (size_t)tensor_count(to);
	size_t step[TENSOR_RANK_MAX] = { 0 }, i, rest, size = 1;
	uint32_t *map;
	int d;

	if (tensor_same_shape(from, to))
		return NULL;
	map = arena_alloc(&t->arena, (n + 1) * sizeof(*map));
	for (d = 1; d <= from->rank; d++) { /* from the last dimension on */
		step[to->rank - d] = from->dims[from->rank - d] > 1 ? size : 0;
		size *= (size_t)from->dims[from->rank - d];
	}
	for (i = 0; i < n; i++)
		for (rest = i, d = to->rank; d-- > 0; rest /= (size_t)to->dims[d])
			map[i] += (uint32_t)(rest % (size_t)to->dims[d] * step[d]);
	return map;
}

static enum fettle_status binary_prepare(struct tape *t, struct tape_step *s, const char **why,
					 struct err *err)
{
	size_t k;

	(void)err;
	if (cell_count(s->out) >= UINT32_MAX)
		*why = "has too many values";
	for (k = 0; k < 2 && !*why; k++)
		s->map[k] = tape_broadcast(t, &s->in[k]->t, &s->out->t);
	return FETTLE_OK;
}

static enum fettle_status power_prepare(struct tape *t, struct tape_step *s, const char **why,
					struct err *err)
{
	if (!step_has_constant(s, 1))
		*why = "has an exponent that is computed";
	return *why ? FETTLE_OK : binary_prepare(t, s, why, err);
}

static enum fettle_status sum_prepare(struct tape *t, struct tape_step *s, const char **why, struct err *err)
{
	if (s->node->n_in != 2)
		*why = "is not of two values";
	return *why ? FETTLE_OK : binary_prepare(t, s, why, err);
}

#define AT(map, i) ((map) ? (map)[i] : (i))
#define BINARY(name, value, slope_a, slope_b)                                                                \
	static enum fettle_status name##_forward(struct tape_step *s, struct err *err)                       \
	{                                                                                                    \
		const float *x = cell_data(s->in[0]), *z = cell_data(s->in[1]);                              \
		const size_t n = cell_count(s->out);                                                         \
		float *out = cell_data(s->out);                                                              \
		size_t i;                                                                                    \
                                                                                                             \
		(void)err;                                                                                   \
		for (i = 0; i < n; i++) {                                                                    \
			const float a = x[AT(s->map[0], i)], b = z[AT(s->map[1], i)];                        \
                                                                                                             \
			out[i] = (value);                                                                    \
		}                                                                                            \
		return FETTLE_OK;                                                                            \
	}                                                                                                    \
	static enum fettle_status name##_backward(struct tape_step *s, struct err *err)                      \
	{                                                                                                    \
		const float *x = cell_data(s->in[0]), *z = cell_data(s->in[1]), *g = s->out->g;              \
		const size_t n = cell_count(s->out);                                                         \
		float *ga = s->in[0]->g, *gb = s->in[1]->g;                                                  \
		size_t i;                                                                                    \
                                                                                                             \
		(void)err;                                                                                   \
		for (i = 0; i < n && ga; i++) {                                                              \
			const float a = x[AT(s->map[0], i)], b = z[AT(s->map[1], i)];                        \
                                                                                                             \
			(void)a, (void)b;                                                                    \
			ga[AT(s->map[0], i)] += g[i] * (slope_a);                                            \
		}                                                                                            \
		for (i = 0; i < n && gb; i++) {                                                              \
			const float a = x[AT(s->map[0], i)], b = z[AT(s->map[1], i)];                        \
                                                                                                             \
			(void)a, (void)b;                                                                    \
			gb[AT(s->map[1], i)] += g[i] * (slope_b);                                            \
		}                                                                                            \
		return FETTLE_OK;                                                                            \
	}

BINARY(add, a + b, 1, 1)
BINARY(sub, a - b, 1, -1)
BINARY(mul, a *b, b, a)
BINARY(div, a / b, 1 / b, -a / (b * b))
BINARY(power, b == 2 ? a * a : powf(a, b), b == 2 ? 2 * a : b * powf(a, b - 1), 0)

const struct tape_kind tape_maps[] = {
	{ "Relu", NULL, relu_forward, relu_backward },
	{ "LeakyRelu", leaky_prepare, leaky_forward, leaky_backward },
	{ "Clip", clip_prepare, clip_forward, clip_backward },
	{ "Sigmoid", NULL, sigmoid_forward, sigmoid_backward },
	{ "HardSigmoid", hard_sigmoid_prepare, hard_sigmoid_forward, hard_sigmoid_backward },
	{ "HardSwish", NULL, hard_swish_forward, hard_swish_backward },
	{ "Tanh", NULL, tanh_forward, tanh_backward },
	{ "Erf", NULL, erf_forward, erf_backward },
	{ "Gelu", gelu_prepare, gelu_forward, gelu_backward },
	{ "Sqrt", NULL, square_root_forward, square_root_backward },
	{ "Exp", NULL, exponential_forward, exponential_backward },
	{ "Reciprocal", NULL, reciprocal_forward, reciprocal_backward },
	{ "Neg", NULL, negative_forward, negative_backward },
	{ "QuantizeLinear", quantize_prepare, quantize_forward, quantize_backward },
	{ "DequantizeLinear", qdq_prepare, dequantize_forward, dequantize_backward },
	{ "Add", binary_prepare, add_forward, add_backward },
	{ "Sum", sum_prepare, add_forward, add_backward },
	{ "Sub", binary_prepare, sub_forward, sub_backward },
	{ "Mul", binary_prepare, mul_forward, mul_backward },
	{ "Div", binary_prepare, div_forward, div_backward },
	{ "Pow", power_prepare, power_forward, power_backward },
	{ NULL, NULL, NULL, NULL },
};
