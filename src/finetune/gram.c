/*
 * Rounding without gradient descent. Over all samples, the squared error of one output is a quadratic function of
 * its levels q (scale s, patches x of the true input, targets t):
 *
 *	sum (s q.x - t)^2 = s^2 (q - u)' H (q - u) + constant,   H = sum x x',   H u = sum x t / s
 *
 * so H and sum x t, taken in one pass, are all there is to know; memory does not depend on the number of samples.
 * Where the bias may follow, x and t are taken from their means, which is what the best bias leaves. The targets
 * are the fp32 op's outputs for fp32 inputs, so u makes up for errors of earlier ops, too.
 *
 * To find integers near the minimum:
 *  1. one weight after the other is rounded, and those not yet rounded make up for the error: Babai's nearest plane
 *     on the Cholesky factor (what OBQ and GPTQ do, arXiv:2208.11580 and 2210.17323), largest diagonal first;
 *  2. from there, and from nearest rounding: coordinate descent, each level moving to its best value given the
 *     others, and pairs of levels moving by one each, until nothing helps. The better end wins.
 */
#include <cblas.h>
#include <lapacke.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "finetune/method.h"

/* the share of the mean diagonal that pulls levels to the fp32 weights: patches never seen must not be free */
static const double damping = 1e-3;
enum { MAX_SWEEPS = 50, MAX_PAIR_SWEEPS = 8, ROWS = 1024 };

/* Sums over all positions, group after group. */
struct sums {
	double *h;     /* patch x patch */
	double *c;     /* patch x outs */
	double *x, *y; /* patch; outs */
	double count;
};

/* Buffers for some positions at a time. */
struct rows {
	float *x, *h, *c;
};

/* the patches of group g at n positions from `at` on, counted over all units; zero where there is padding */
static void gather_patches(const struct layer *l, const float *x, size_t g, size_t at, size_t n, float *out)
{
	const size_t channels = l->groups * l->ins, row = l->in[1] * channels;
	size_t i, ky, kx;

	for (i = at; i < at + n; i++) {
		const float *unit = x + i / layer_positions(l) * layer_x_size(l) + g * l->ins;
		const size_t oy = i % layer_positions(l) / l->out[1], ox = i % l->out[1];

		for (ky = 0; ky < l->kernel[0]; ky++)
			for (kx = 0; kx < l->kernel[1]; kx++, out += l->ins) {
				const size_t iy = oy * l->stride[0] + ky * l->dilation[0] - l->pad[0],
					     ix = ox * l->stride[1] + kx * l->dilation[1] - l->pad[1];

				/* what would be negative is very large */
				if (iy < l->in[0] && ix < l->in[1])
					memcpy(out, unit + iy * row + ix * channels, l->ins * sizeof(float));
				else
					memset(out, 0, l->ins * sizeof(float));
			}
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
		     struct sums *s, struct rows *r)
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

static enum fettle_status add_all(struct work *w, struct sums *s, struct rows *r, struct err *err)
{
	const struct layer *l = w->l;
	const struct units *u;
	enum fettle_status st = FETTLE_OK;
	size_t b, g, at, n;

	for (b = 0; b < w->c->n_train && !st; b++) {
		st = capture_get(w->c, b, &u, err);
		if (st)
			break;
		n = u->n * layer_positions(l);
		for (g = 0; g < l->groups; g++)
			for (at = 0; at < n; at += ROWS)
				add_rows(l, u, g, at, n - at < ROWS ? n - at : ROWS, s, r);
		s->count += (double)n;
	}
	return st;
}

/* One group's problem, in the order of rounding. */
struct problem {
	size_t k;
	double *h;     /* both triangles */
	double *r;     /* upper Cholesky factor */
	double *best;  /* u: k per output */
	size_t *order; /* place in this order -> place in the patch */
	double *diagonal;
};

struct by_size {
	double size;
	size_t at;
};

static int smaller_first(const void *a, const void *b)
{
	const struct by_size *x = a, *y = b;

	if (x->size != y->size)
		return x->size < y->size ? -1 : 1;
	return x->at < y->at ? -1 : 1;
}

/* smallest diagonal first; rounding begins at the end */
static void find_order(const double *h, size_t k, size_t *order)
{
	struct by_size *v = xcalloc(k, sizeof(*v));
	size_t i;

	for (i = 0; i < k; i++)
		v[i] = (struct by_size){ h[i * k + i], i };
	qsort(v, k, sizeof(*v), smaller_first);
	for (i = 0; i < k; i++)
		order[i] = v[i].at;
	free(v);
}

/* the quadratic function of group g: H in order, its factor, and the real minimum of each output */
static enum fettle_status pose(const struct work *w, const struct sums *s, size_t g, struct problem *p,
			       struct err *err)
{
	const struct layer *l = w->l;
	const size_t k = p->k, m = l->outs;
	const bool centred = w->o->update_bias && l->takes_shift;
	const double *h = s->h + g * k * k, *c = s->c + g * k * m, *x = s->x + g * k, *y = s->y + g * m;
	double pull = 0;
	size_t i, j, o;
	lapack_int info;

	find_order(h, k, p->order);
	for (i = 0; i < k; i++)
		for (j = 0; j < k; j++) {
			size_t a = p->order[i], b = p->order[j];
			double v = a < b ? h[a * k + b] : h[b * k + a];

			p->h[i * k + j] = centred ? v - x[a] * x[b] / s->count : v;
		}
	for (i = 0; i < k; i++)
		pull += p->h[i * k + i] / (double)k;
	pull = pull > 0 ? pull * damping : 1;
	for (i = 0; i < k; i++) {
		p->h[i * k + i] += pull;
		p->diagonal[i] = p->h[i * k + i];
	}
	memcpy(p->r, p->h, k * k * sizeof(double));
	info = LAPACKE_dpotrf(LAPACK_ROW_MAJOR, 'U', (lapack_int)k, p->r, (lapack_int)k);
	for (o = 0; o < m && !info; o++) {
		double *u = p->best + o * k;
		const size_t out = g * m + o;
		const float *fp32 = l->w + out * k;

		for (i = 0; i < k; i++) {
			size_t a = p->order[i];
			double v = c[a * m + o];

			v -= centred ? x[a] * y[o] / s->count : 0;
			u[i] = (v + pull * (double)fp32[a]) / (double)l->scale[out];
		}
		cblas_dtrsv(CblasRowMajor, CblasUpper, CblasTrans, CblasNonUnit, (int)k, p->r, (int)k, u, 1);
		cblas_dtrsv(CblasRowMajor, CblasUpper, CblasNoTrans, CblasNonUnit, (int)k, p->r, (int)k, u,
			    1);
	}
	if (info)
		return fail(err, FETTLE_INVALID,
			    "cannot fine-tune op '%s': its inputs' Gram matrix is not positive", l->name);
	return FETTLE_OK;
}

/* Levels of one output on their way; e = q - u, f = H e. */
struct descent {
	const struct problem *p;
	double least, most;
	double *q, *e, *f;
};

static double clamp(const struct descent *d, double x)
{
	return fmin(fmax(x, d->least), d->most);
}

static void babai(struct descent *d, const double *u)
{
	const size_t k = d->p->k;
	size_t i;

	for (i = k; i--;) {
		const double *row = d->p->r + i * k;
		double carry = cblas_ddot((int)(k - i - 1), row + i + 1, 1, d->e + i + 1, 1) / row[i];

		d->q[i] = clamp(d, rint(u[i] - carry));
		d->e[i] = d->q[i] - u[i];
	}
}

static void move(struct descent *d, size_t i, double by)
{
	d->q[i] += by;
	d->e[i] += by;
	cblas_daxpy((int)d->p->k, by, d->p->h + i * d->p->k, 1, d->f, 1);
}

/* each level to its best value given the others, until none moves */
static void descend(struct descent *d)
{
	const size_t k = d->p->k;
	size_t i, moved = 1;
	int sweep;

	for (sweep = 0; sweep < MAX_SWEEPS && moved; sweep++)
		for (i = moved = 0; i < k; i++) {
			double by = clamp(d, d->q[i] - rint(d->f[i] / d->p->diagonal[i])) - d->q[i];

			/* what moves back and forth between equals would never end */
			if (by != 0 && by * (2 * d->f[i] + by * d->p->diagonal[i]) < 0) {
				move(d, i, by);
				moved++;
			}
		}
}

/* what it changes the error by if level i moves by one up or down: the cheaper way that is allowed */
static double cheaper(const struct descent *d, size_t i, double *by)
{
	*by = d->f[i] > 0 ? -1 : 1;
	if (d->q[i] + *by < d->least || d->q[i] + *by > d->most)
		*by = -*by;
	return *by * 2 * d->f[i] + d->p->diagonal[i];
}

/* two levels move by one each where that helps */
static bool descend_pairs(struct descent *d)
{
	const size_t k = d->p->k;
	bool helped = false;
	size_t i, j;

	for (i = 0; i < k; i++) {
		const double *row = d->p->h + i * k;
		double by, own = cheaper(d, i, &by), best = -1e-9 * d->p->diagonal[i], best_by = 0;
		size_t partner = k;

		for (j = 0; j < k; j++) {
			const double f = d->f[j] + by * row[j], sign = f > 0 ? -1 : 1;
			const double total = own + d->p->diagonal[j] - 2 * fabs(f);

			if (total < best && j != i && d->q[j] + sign >= d->least &&
			    d->q[j] + sign <= d->most) {
				best = total;
				best_by = sign;
				partner = j;
			}
		}
		if (partner < k && d->q[i] + by >= d->least && d->q[i] + by <= d->most) {
			move(d, i, by);
			move(d, partner, best_by);
			helped = true;
		}
	}
	return helped;
}

static double settle(struct descent *d)
{
	const size_t k = d->p->k;
	int sweep;

	cblas_dsymv(CblasRowMajor, CblasUpper, (int)k, 1, d->p->h, (int)k, d->e, 1, 0, d->f, 1);
	descend(d);
	for (sweep = 0; sweep < MAX_PAIR_SWEEPS && descend_pairs(d); sweep++)
		descend(d);
	return cblas_ddot((int)k, d->e, 1, d->f, 1);
}

static void solve_output(const struct problem *p, struct layer *l, size_t out, const double *u,
			 double *buffer)
{
	const size_t k = p->k;
	float *level = l->level + out * k;
	struct descent a = { p,          (double)l->least[out], (double)l->most[out], buffer,
			     buffer + k, buffer + 2 * k },
		       b = a, *better;
	size_t i;

	b.q += 3 * k;
	b.e += 3 * k;
	b.f += 3 * k;
	babai(&a, u);
	for (i = 0; i < k; i++) {
		b.q[i] = (double)level[p->order[i]];
		b.e[i] = b.q[i] - u[i];
	}
	better = settle(&a) <= settle(&b) ? &a : &b;
	for (i = 0; i < k; i++)
		level[p->order[i]] = (float)better->q[i];
}

/* the bias that takes the mean residual off */
static void set_shift(struct layer *l, const struct sums *s, size_t out)
{
	const size_t g = out / l->outs;
	double mean = s->y[out], sum = 0;
	size_t i;

	for (i = 0; i < l->patch; i++)
		sum += (double)l->level[out * l->patch + i] * s->x[g * l->patch + i];
	l->shift[out] = (mean - sum * (double)l->scale[out]) / s->count;
}

enum fettle_status gram(struct work *w, struct err *err)
{
	struct layer *l = w->l;
	const size_t k = l->patch, m = l->outs, outputs = layer_outputs(l);
	struct arena a = ARENA_INIT;
	struct problem p = { .k = k };
	struct sums s = { .count = 0 };
	struct rows r;
	double *buffer;
	enum fettle_status st;
	size_t g, o;

	openblas_set_num_threads(1);
	s.h = arena_alloc(&a, l->groups * k * k * sizeof(double));
	s.c = arena_alloc(&a, outputs * k * sizeof(double));
	s.x = arena_alloc(&a, l->groups * k * sizeof(double));
	s.y = arena_alloc(&a, outputs * sizeof(double));
	r.x = arena_alloc(&a, ROWS * k * sizeof(float));
	r.h = arena_alloc(&a, k * k * sizeof(float));
	r.c = arena_alloc(&a, k * m * sizeof(float));
	p.h = arena_alloc(&a, k * k * sizeof(double));
	p.r = arena_alloc(&a, k * k * sizeof(double));
	p.best = arena_alloc(&a, k * m * sizeof(double));
	p.diagonal = arena_alloc(&a, k * sizeof(double));
	p.order = arena_alloc(&a, k * sizeof(size_t));
	buffer = arena_alloc(&a, 6 * k * sizeof(double));
	st = add_all(w, &s, &r, err);
	for (g = 0; g < l->groups && !st; g++) {
		st = pose(w, &s, g, &p, err);
		for (o = 0; o < m && !st; o++)
			solve_output(&p, l, g * m + o, p.best + o * k, buffer);
	}
	for (o = 0; o < outputs && !st && w->o->update_bias && l->takes_shift; o++)
		set_shift(l, &s, o);
	arena_release(&a);
	return st;
}
