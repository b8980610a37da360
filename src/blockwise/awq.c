/*
 * AWQ (Lin et al. 2023, arXiv:2306.00978). Inputs that are large count more: their weights are multiplied before
 * rounding, and the input divided, by (mean |x|)^a / (mean |w|)^b, where a and b give the least error of the outputs.
 * Then each block keeps that part of its range that makes the least error in the outputs by itself, with the scale that
 * suits its codes best. Weights go to the nearest code.
 */
#include "blockwise/babai.h"

#include <cblas.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "tensor/blas.h"

/* A block of PANEL outputs, in the search for what to keep of its range. */
struct clip {
	const float *gram; /* the block's part: [n, n] of rows k long */
	int64_t n, k;
	const struct block_format *format;
	float *w, *off, *by; /* [n, PANEL] */
};

static void clip_error(struct clip *c, struct grids *g)
{
	const float top = (float)grid_top(c->format) + 0.5f;
	int64_t i, r;

	for (i = 0; i < c->n; i++)
		for (r = 0; r < PANEL; r++) {
			const float w = c->w[i * PANEL + r];
			float code = w * g->inverse[r] + g->zero[r] + 0.5f;

			code = code > 0 ? code : 0;
			code = code < top ? code : top;
			c->off[i * PANEL + r] = ((float)(int32_t)code - g->zero[r]) * g->scale[r] - w;
		}
	cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, (int)c->n, PANEL, (int)c->n, 1, c->gram,
		    (int)c->k, c->off, PANEL, 0, c->by, PANEL);
	memset(g->error, 0, sizeof(g->error));
	for (i = 0; i < c->n; i++)
		for (r = 0; r < PANEL; r++)
			g->error[r] += c->off[i * PANEL + r] * c->by[i * PANEL + r];
}

/* the scale that suits the codes best, by least squares in the outputs */
static void fit_scale(struct clip *c, struct grids *g)
{
	float top[PANEL] = { 0 }, bottom[PANEL] = { 0 };
	int64_t i, r;

	clip_error(c, g);
	for (i = 0; i < c->n * PANEL; i++)
		c->off[i] += c->w[i];
	cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, (int)c->n, PANEL, (int)c->n, 1, c->gram,
		    (int)c->k, c->off, PANEL, 0, c->by, PANEL);
	for (i = 0; i < c->n; i++)
		for (r = 0; r < PANEL; r++) {
			top[r] += c->by[i * PANEL + r] * c->w[i * PANEL + r];
			bottom[r] += c->by[i * PANEL + r] * c->off[i * PANEL + r];
		}
	for (r = 0; r < PANEL; r++) {
		const float by = bottom[r] > 0 ? top[r] / bottom[r] : 1;

		if (by > 0.5f && by < 2)
			grids_set(g, r, (struct grid){ g->scale[r] * by, (int)g->zero[r] });
	}
}

static void choose(struct clip *c, struct grids *best)
{
	/* the whole range first; a symmetric grid may be wider, too */
	static const float parts[] = { 1,     0.96f, 0.92f, 0.88f, 0.84f, 0.8f, 0.76f,
				       0.72f, 0.68f, 0.64f, 0.6f,  1.07f, 1.14f };
	const size_t n_parts = ARRAY_LEN(parts) - (c->format->symmetric ? 0 : 2);
	struct grids g = { .scale = { 0 } };
	float least[PANEL] = { 0 }, most[PANEL] = { 0 };
	int64_t i, r;
	size_t part;

	for (i = 0; i < c->n; i++)
		for (r = 0; r < PANEL; r++) {
			const float x = c->w[i * PANEL + r];

			least[r] = x < least[r] ? x : least[r];
			most[r] = x > most[r] ? x : most[r];
		}
	for (r = 0; r < PANEL; r++)
		best->error[r] = INFINITY;
	for (part = 0; part < n_parts; part++) {
		for (r = 0; r < PANEL; r++)
			grids_set(&g, r,
				  grid_of_range(least[r] * parts[part], most[r] * parts[part], c->format));
		clip_error(c, &g);
		for (r = 0; r < PANEL; r++)
			if (g.error[r] < best->error[r])
				grids_take(best, &g, r);
	}
	g = *best;
	for (part = 0; part < 3; part++) {
		fit_scale(c, &g);
		clip_error(c, &g);
		for (r = 0; r < PANEL; r++)
			if (g.error[r] < best->error[r])
				grids_take(best, &g, r);
	}
}

static void clip_block(struct clip *c, const float *w, const struct block_seen *seen, int64_t row, int64_t b,
		       struct block_weight *out)
{
	const int64_t first = b * c->format->block, k = out->k, left = k - first,
		      blocks = block_count(c->format, k);
	const int64_t rows = out->n - row < PANEL ? out->n - row : PANEL;
	struct grids best = { .scale = { 0 } };
	int64_t i, r;

	c->n = left < c->format->block ? left : c->format->block;
	c->gram = seen->gram + first * (k + 1);
	memset(c->w, 0, (size_t)c->n * PANEL * sizeof(float));
	for (r = 0; r < rows; r++)
		for (i = 0; i < c->n; i++)
			c->w[i * PANEL + r] = w[(row + r) * k + first + i];
	choose(c, &best);
	for (r = 0; r < rows; r++) {
		const int64_t at = (row + r) * k + first;
		const struct grid g = { best.scale[r], (int)best.zero[r] };

		grid_codes(g, grid_top(c->format), w + at, c->n, out->codes + at);
		out->scales[(row + r) * blocks + b] = g.scale;
		out->zeros[(row + r) * blocks + b] = (uint8_t)g.zero;
	}
}

static enum fettle_status quantize(const float *w, const struct block_seen *seen, struct block_weight *out,
				   struct err *err)
{
	const size_t row = PANEL * sizeof(float);
	struct clip c = { .k = out->k,
			  .format = &out->format,
			  .w = xcalloc(MAX_BLOCK, row),
			  .off = xcalloc(MAX_BLOCK, row),
			  .by = xcalloc(MAX_BLOCK, row) };
	int64_t r, b;

	(void)err;
	blas_single_begin();
	for (r = 0; r < out->n; r += PANEL)
		for (b = 0; b < block_count(c.format, out->k); b++)
			clip_block(&c, w, seen, r, b, out);
	blas_single_end();
	free(c.w);
	free(c.off);
	free(c.by);
	return FETTLE_OK;
}

const struct block_method block_awq = {
	.name = "awq",
	.summary = "weights of large inputs scaled up where the input can be divided; clipping by the "
		   "outputs' error",
	.needs = BLOCK_NEEDS_GRAM | BLOCK_NEEDS_MEAN_ABS,
	.scales_inputs = true,
	.quantize = quantize,
};

/* Some rows of all weights, in the search for a. */
struct sample {
	int64_t n, k;
	float *w, *off, *by; /* [n, k] */
};

enum { SAMPLED = 128 }; /* rows of each weight */

static void sample_init(struct sample *s, const struct block_reader *readers, size_t n, int64_t k)
{
	int64_t i, row = 0;
	size_t j;

	*s = (struct sample){ .k = k };
	for (j = 0; j < n; j++)
		s->n += readers[j].n < SAMPLED ? readers[j].n : SAMPLED;
	s->w = xcalloc((size_t)(s->n * k), sizeof(float));
	s->off = xcalloc((size_t)(s->n * k), sizeof(float));
	s->by = xcalloc((size_t)(s->n * k), sizeof(float));
	for (j = 0; j < n; j++) {
		const int64_t some = readers[j].n < SAMPLED ? readers[j].n : SAMPLED;

		for (i = 0; i < some; i++)
			memcpy(s->w + row++ * k, readers[j].w + i * readers[j].n / some * k,
			       (size_t)k * sizeof(float));
	}
}

static void sample_release(struct sample *s)
{
	free(s->w);
	free(s->off);
	free(s->by);
}

/* the error of the outputs if weights are rounded times `scales`, and the input is divided by them */
static enum fettle_status scaled_error(struct sample *s, const struct block_seen *was,
				       const struct block_format *f, const float *scales, double *out,
				       struct err *err)
{
	struct block_seen seen = *was;
	struct block_weight q = BLOCK_WEIGHT_INIT;
	enum fettle_status st;
	int64_t i;

	seen.input_scales = scales;
	st = block_quantize(BLOCK_AWQ, s->w, s->n, s->k, &seen, f, &q, err);
	if (st)
		return st;
	block_dequantize(&q, s->off);
	for (i = 0; i < s->n * s->k; i++)
		s->off[i] = s->off[i] / scales[i % s->k] - s->w[i];
	cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, (int)s->n, (int)s->k, (int)s->k, 1, s->off,
		    (int)s->k, was->gram, (int)s->k, 0, s->by, (int)s->k);
	*out = 0;
	for (i = 0; i < s->n * s->k; i++)
		*out += (double)s->off[i] * (double)s->by[i];
	block_weight_release(&q);
	return FETTLE_OK;
}

/* x[i]^a, with 1 in the middle between its extremes */
static double power_of(const float *x, int64_t k, int64_t i, double a)
{
	return pow((double)x[i] / (double)x[k], a);
}

/* of n sizes that may be 0: none is, and x[n] is the middle between their extremes */
static void make_sizes(float *x, int64_t n)
{
	double least = INFINITY, most = 0, mean = 0;
	int64_t i;

	for (i = 0; i < n; i++)
		mean += (double)x[i] / (double)n;
	for (i = 0; i < n; i++) {
		x[i] = mean > 0 ? fmaxf(x[i], (float)(1e-4 * mean)) : 1;
		least = fmin(least, (double)x[i]);
		most = fmax(most, (double)x[i]);
	}
	x[n] = (float)sqrt(least * most);
}

enum fettle_status block_input_scales(const struct block_reader *readers, size_t n, int64_t k,
				      const struct block_seen *seen, const struct block_format *f, float *out,
				      struct err *err)
{
	enum { A_STEPS = 10, B_STEPS = 4 };
	enum fettle_status st = seen_check(&block_awq, seen, k, err);
	float *inputs, *weights, *scales;
	double least = INFINITY;
	struct sample s;
	int64_t i;
	int a, b, best = 0, middle = 0;

	if (st)
		return st;
	blas_single_begin();
	sample_init(&s, readers, n, k);
	inputs = xcalloc((size_t)k + 1, sizeof(*inputs));
	weights = xcalloc((size_t)k + 1, sizeof(*weights));
	scales = xcalloc((size_t)k, sizeof(*scales));
	memcpy(inputs, seen->mean_abs, (size_t)k * sizeof(float));
	for (i = 0; i < s.n * k; i++)
		weights[i % k] += fabsf(s.w[i]) / (float)s.n;
	make_sizes(inputs, k);
	make_sizes(weights, k);
	for (b = 0; b < B_STEPS;
	     b++, middle = best) /* all powers of inputs; then those around the best, with weights */
		for (a = b ? middle - 1 : 0; a < (b ? middle + 2 : A_STEPS) && !st; a++) {
			double e = INFINITY;

			for (i = 0; i < k; i++)
				scales[i] = (float)(power_of(inputs, k, i, (double)a / A_STEPS) /
						    power_of(weights, k, i, (double)b / B_STEPS));
			st = scaled_error(&s, seen, f, scales, &e, err);
			if (e < least) {
				least = e;
				best = a;
				memcpy(out, scales, (size_t)k * sizeof(float));
			}
		}
	sample_release(&s);
	blas_single_end();
	free(inputs);
	free(weights);
	free(scales);
	return st;
}
