#include "finetune/gram_sums.h"

#include <cblas.h>
#include <stdlib.h>
#include <string.h>

/* one row of a patch; zero where there is padding, or everywhere (NULL) */
static float *gather_row(const struct layer *l, const float *row, size_t column, float *out)
{
	const size_t channels = l->groups * l->ins, ins = l->ins;
	size_t k;

	for (k = 0; k < l->kernel[2]; k++, out += ins) {
		/* what would be negative is very large */
		const size_t i = column * l->stride[2] + k * l->dilation[2] - l->pad[2];

		if (!row || i >= l->in[2])
			memset(out, 0, ins * sizeof(float));
		else if (ins == 1)
			*out = row[i * channels];
		else
			memcpy(out, row + i * channels, ins * sizeof(float));
	}
	return out;
}

/* the patch of one position, from the group's first channel on */
static float *gather_patch(const struct layer *l, const float *x, const size_t at[LAYER_DIMS], float *out)
{
	const size_t row = l->in[2] * l->groups * l->ins;
	size_t kz, ky;

	for (kz = 0; kz < l->kernel[0]; kz++)
		for (ky = 0; ky < l->kernel[1]; ky++) {
			const size_t z = at[0] * l->stride[0] + kz * l->dilation[0] - l->pad[0],
				     y = at[1] * l->stride[1] + ky * l->dilation[1] - l->pad[1];
			const bool inside = z < l->in[0] && y < l->in[1];

			out = gather_row(l, inside ? x + (z * l->in[1] + y) * row : NULL, at[2], out);
		}
	return out;
}

/* the patches of group g at n positions from `at` on, counted over all units */
static void gather_patches(const struct layer *l, const float *x, size_t g, size_t at, size_t n, float *out)
{
	const size_t plane = l->out[1] * l->out[2];
	size_t o[LAYER_DIMS] = { at % layer_positions(l) / plane, at % plane / l->out[2], at % l->out[2] };

	for (x += at / layer_positions(l) * layer_x_size(l) + g * l->ins; n--;) {
		out = gather_patch(l, x, o, out);
		if (++o[2] < l->out[2])
			continue;
		o[2] = 0;
		if (++o[1] < l->out[1])
			continue;
		o[1] = 0;
		if (++o[0] < l->out[0])
			continue;
		o[0] = 0;
		x += layer_x_size(l);
	}
}

static void add(double *to, const float *from, size_t n)
{
	size_t i;

	for (i = 0; i < n; i++)
		to[i] += (double)from[i];
}

static void add_columns(double *to, const float *rows, size_t n, size_t columns, size_t step)
{
	size_t i, k;

	for (i = 0; i < n; i++)
		for (k = 0; k < columns; k++)
			to[k] += (double)rows[i * step + k];
}

static void add_rows(const struct layer *l, const struct units *u, size_t g, size_t at, size_t n,
		     struct gram_sums *s, struct gram_rows *r)
{
	const size_t k = l->patch, m = l->outs, outputs = layer_outputs(l);
	const float *y = u->y + at * outputs + g * m;

	gather_patches(l, u->x, g, at, n, r->x);
	cblas_ssyrk(CblasRowMajor, CblasUpper, CblasTrans, (int)k, (int)n, 1, r->x, (int)k, 0, r->h, (int)k);
	cblas_sgemm(CblasRowMajor, CblasTrans, CblasNoTrans, (int)k, (int)m, (int)n, 1, r->x, (int)k, y,
		    (int)outputs, 0, r->c, (int)m);
	add(s->h + g * k * k, r->h, k * k);
	add(s->c + g * k * m, r->c, k * m);
	add_columns(s->x + g * k, r->x, n, k, k);
	add_columns(s->y + g * m, y, n, m, outputs);
}

static void add_units(const struct layer *l, const struct units *u, struct gram_sums *s, struct gram_rows *r)
{
	const size_t n = u->n * layer_positions(l);
	size_t g, at;

	for (g = 0; g < l->groups; g++)
		for (at = 0; at < n; at += GRAM_ROWS)
			add_rows(l, u, g, at, n - at < GRAM_ROWS ? n - at : GRAM_ROWS, s, r);
	s->count += (double)n;
}

enum fettle_status gram_sums_add(struct work *w, struct gram_sums sums[2], struct gram_rows *r,
				 struct err *err)
{
	const struct units *u;
	enum fettle_status st = FETTLE_OK;
	size_t b;

	for (b = 0; b < w->c->split.n_train && !st; b++) {
		st = capture_get(w->c, b, &u, err);
		if (!st)
			add_units(w->l, u, &sums[b % 2], r);
	}
	return st;
}

void gram_sums_init(struct gram_sums *s, const struct layer *l, struct arena *a)
{
	const size_t k = l->patch, outputs = layer_outputs(l);

	s->h = arena_alloc(a, l->groups * k * k * sizeof(double));
	s->c = arena_alloc(a, outputs * k * sizeof(double));
	s->x = arena_alloc(a, l->groups * k * sizeof(double));
	s->y = arena_alloc(a, outputs * sizeof(double));
}

void gram_sums_merge(struct gram_sums s[2], const struct layer *l)
{
	const size_t k = l->patch, outputs = layer_outputs(l);

	cblas_daxpy((int)(l->groups * k * k), 1, s[1].h, 1, s[0].h, 1);
	cblas_daxpy((int)(outputs * k), 1, s[1].c, 1, s[0].c, 1);
	cblas_daxpy((int)(l->groups * k), 1, s[1].x, 1, s[0].x, 1);
	cblas_daxpy((int)outputs, 1, s[1].y, 1, s[0].y, 1);
	s[0].count += s[1].count;
}
