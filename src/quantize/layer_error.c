#include "quantize/layer_error.h"

#include <cblas.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tensor/blas.h"
#include "quantize/internal.h"

struct layer_sample {
	struct spread x; /* of the channels */
	float *rows;     /* [n_rows][inputs] */
	size_t n_rows;
	size_t repeat, inputs, outputs;
	bool inputs_first; /* the weight is [inputs][outputs] */
	const struct tensor *weight;
	float *y;     /* [n_rows][outputs] in fp32 */
	double power; /* of y */
};

/* y = x w + beta y */
static void multiply(const struct layer_sample *s, const float *x, const float *w, float beta, float *y)
{
	const int rows = (int)s->n_rows, inputs = (int)s->inputs, outputs = (int)s->outputs;

	blas_single_begin();
	cblas_sgemm(CblasRowMajor, CblasNoTrans, s->inputs_first ? CblasNoTrans : CblasTrans, rows, outputs,
		    inputs, 1, x, inputs, w, s->inputs_first ? outputs : inputs, beta, y, outputs);
	blas_single_end();
}

static double power_of(const float *x, size_t n)
{
	double sum = 0;
	size_t i;

	for (i = 0; i < n; i++)
		sum += (double)x[i] * x[i];
	return sum;
}

enum fettle_status layer_error_add(struct layer_error *l, struct rewrite *w, size_t node, size_t repeat,
				   struct err *err)
{
	struct layer_sample s = { .repeat = repeat };
	enum fettle_status st = rewrite_weight(w, node, &s.weight, err);
	struct layout layout;

	if (!st)
		st = rewrite_rows(w, node, &s.rows, &s.n_rows, err);
	if (!st)
		st = rewrite_input_spread(w, node, repeat, &s.x, err);
	if (st) {
		free(s.rows);
		return st;
	}
	layout = layout_of(w->m->nodes.v[node], s.weight);
	s.inputs = layout_inputs(&layout);
	s.outputs = layout_outputs(&layout);
	s.inputs_first = layout.inputs_first;
	s.y = xcalloc(s.n_rows * s.outputs, sizeof(*s.y));
	multiply(&s, s.rows, s.weight->data, 0, s.y);
	s.power = power_of(s.y, s.n_rows * s.outputs);
	l->v = xrealloc(l->v, l->n + 1, sizeof(*l->v));
	l->v[l->n++] = s;
	return st;
}

void layer_error_release(struct layer_error *l)
{
	size_t i;

	for (i = 0; i < l->n; i++) {
		spread_release(&l->v[i].x);
		free(l->v[i].rows);
		free(l->v[i].y);
	}
	free(l->v);
}

/* n floats as integers, and as floats again */
static void there_and_back(enum dtype t, struct qparams p, struct qlimits lim, size_t n, float *x)
{
	struct qweight w = { .axis = -1, .q = { .dtype = t, .rank = 1, .dims = { (int64_t)n } } };
	int32_t zero;

	w.q.data = xmalloc(tensor_bytes(&w.q) + 1);
	w.scale.data = &p.scale;
	w.zero = (struct tensor){ .dtype = t, .data = &zero };
	tensor_set(&w.zero, 0, p.zero);
	quant_array(x, n, p, lim, t, w.q.data);
	qweight_floats(&w, x);
	free(w.q.data);
}

/* the rows, scaled, rounded and as floats again */
static void quantize_rows(const struct layer_sample *s, const struct qsetting *q, const double *f, float *out)
{
	double min = 0, max = 0;
	struct qparams p;
	size_t r, i;

	for (i = 0; i < s->inputs / s->repeat; i++) {
		min = fmin(min, s->x.min[i] * f[i]);
		max = fmax(max, s->x.max[i] * f[i]);
	}
	p = qsetting_is_pow2(q) ? quant_params_pow2((float)min, (float)max, q->dtype, q->scheme, false)
				: quant_params((float)min, (float)max, q->dtype, q->scheme, false);
	for (r = 0; r < s->n_rows; r++)
		for (i = 0; i < s->inputs; i++)
			out[r * s->inputs + i] = (float)(s->rows[r * s->inputs + i] * f[i / s->repeat]);
	there_and_back(q->dtype, p, quant_limits(q->dtype, q->scheme, false), s->n_rows * s->inputs, out);
}

static enum fettle_status quantize_weight(const struct layer_sample *s, const struct qsetting *q,
					  const double *f, float *out, struct err *err)
{
	const size_t rows = s->inputs_first ? s->inputs : s->outputs,
		     columns = s->inputs_first ? s->outputs : s->inputs;
	const float *w = s->weight->data;
	struct tensor t = *s->weight;
	float *to = out;
	size_t r, c;

	for (r = 0; r < rows; r++)
		for (c = 0; c < columns; c++)
			*to++ = (float)(*w++ * (1 / f[(s->inputs_first ? r : c) / s->repeat]));
	t.data = out;
	return quantized_floats(&t, q, s->inputs_first, out, err);
}

static enum fettle_status error_of(const struct layer_sample *s, const struct op_choice *q, const double *f,
				   double *out, struct err *err)
{
	const size_t n = s->n_rows * s->outputs;
	float *x = xcalloc(s->n_rows * s->inputs, sizeof(*x));
	float *w = xcalloc(s->inputs * s->outputs, sizeof(*w));
	float *y = xcalloc(n, sizeof(*y));
	enum fettle_status st;

	quantize_rows(s, &q->act, f, x);
	st = quantize_weight(s, &q->weight, f, w, err);
	if (st)
		goto out;
	memcpy(y, s->y, n * sizeof(*y));
	multiply(s, x, w, -1, y);
	*out = s->power > 0 ? power_of(y, n) / s->power : 0;
out:
	free(x);
	free(w);
	free(y);
	return st;
}

enum fettle_status layer_error_of(const struct layer_error *l, const double *s, double *out, struct err *err)
{
	enum fettle_status st = FETTLE_OK;
	size_t i;

	*out = 0;
	for (i = 0; i < l->n && !st; i++) {
		double error = 0;

		st = error_of(&l->v[i], l->q, s, &error, err);
		*out += error;
	}
	return st;
}
