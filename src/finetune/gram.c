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
 *
 * With few samples for many weights the minimum would fit those samples only. So H gets a multiple of the identity
 * added that pulls levels to the fp32 weights. How much, is found by doing step 1 on one half of the batches and
 * judging it by the other, and the other way round. Then all are used.
 */
#include <cblas.h>
#include <lapacke.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "finetune/gram_sums.h"
#include "tensor/blas.h"

enum { MAX_SWEEPS = 50, MAX_PAIR_SWEEPS = 8 };
/* pairs gain little, and their cost grows with the square of the patch */
enum { PAIRS_UP_TO = 256 };
/* halves need more damping than the whole; so much more, by what was measured on small networks (bench/rounding) */
static const double caution = 3;
/* what a choice is judged by: so many groups, and outputs of each */
enum { JUDGED_GROUPS = 8, JUDGED_OUTS = 32 };

/* One group's problem, in the order of rounding. The factor is only a way to a start, so floats suffice. */
struct problem {
	size_t k;
	double *h;     /* both triangles */
	double *rhs;   /* H u: k per output */
	float *r;      /* upper Cholesky factor */
	float *best;   /* u: k per output */
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

/* the quadratic function of group g: H in order, its factor, and the real minimum of each output. False: with
 * so little damping H is not positive, as far as floats can tell. */
static bool pose(const struct work *w, const struct gram_sums *s, size_t g, double damping, struct problem *p)
{
	const struct layer *l = w->l;
	const size_t k = p->k, m = l->outs;
	const bool centred = w->o->update_bias && l->takes_shift;
	const double *h = s->h + g * k * k, *c = s->c + g * k * m, *x = s->x + g * k, *y = s->y + g * m;
	double pull = 0;
	size_t i, j, o;

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
	for (i = 0; i < k * k; i++)
		p->r[i] = (float)p->h[i];
	if (LAPACKE_spotrf(LAPACK_ROW_MAJOR, 'U', (lapack_int)k, p->r, (lapack_int)k))
		return false;
	for (o = 0; o < m; o++)
		for (i = 0; i < k; i++) {
			const size_t a = p->order[i], out = g * m + o;
			double v = c[a * m + o] - (centred ? x[a] * y[o] / s->count : 0);

			v = (v + pull * (double)l->w[out * k + a]) / (double)l->scale[out];
			p->rhs[o * k + i] = v;
			p->best[o * k + i] = (float)v;
		}
	cblas_strsm(CblasRowMajor, CblasRight, CblasUpper, CblasNoTrans, CblasNonUnit, (int)m, (int)k, 1,
		    p->r, (int)k, p->best, (int)k);
	cblas_strsm(CblasRowMajor, CblasRight, CblasUpper, CblasTrans, CblasNonUnit, (int)m, (int)k, 1, p->r,
		    (int)k, p->best, (int)k);
	return true;
}

/* Levels q of one output on their way; f = H q - rhs. */
struct descent {
	const struct problem *p;
	const double *rhs;
	const float *best;
	double least, most;
	double *q, *f;
	float *e; /* only on the way to the start: q - u */
};

static double clamp(const struct descent *d, double x)
{
	return fmin(fmax(x, d->least), d->most);
}

static struct descent start(const struct problem *p, const struct layer *l, size_t out, double *buffer)
{
	const size_t k = p->k, o = out % l->outs;

	return (struct descent){ .p = p,
				 .rhs = p->rhs + o * k,
				 .best = p->best + o * k,
				 .least = (double)l->least[out],
				 .most = (double)l->most[out],
				 .q = buffer,
				 .f = buffer + k,
				 .e = (float *)(buffer + 2 * k) };
}

static void babai(struct descent *d)
{
	const size_t k = d->p->k;
	size_t i;

	for (i = k; i--;) {
		const float *row = d->p->r + i * k, *u = d->best;
		float carry = cblas_sdot((int)(k - i - 1), row + i + 1, 1, d->e + i + 1, 1) / row[i];

		d->q[i] = clamp(d, rint((double)(u[i] - carry)));
		d->e[i] = (float)d->q[i] - u[i];
	}
}

static void move(struct descent *d, size_t i, double by)
{
	d->q[i] += by;
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

/* to where nothing helps any more; returns the error, but for a constant */
static double minimise(struct descent *d)
{
	const size_t k = d->p->k;
	int sweep;

	memcpy(d->f, d->rhs, k * sizeof(double));
	cblas_dsymv(CblasRowMajor, CblasUpper, (int)k, 1, d->p->h, (int)k, d->q, 1, -1, d->f, 1);
	descend(d);
	for (sweep = 0; sweep < (k <= PAIRS_UP_TO ? MAX_PAIR_SWEEPS : 0) && descend_pairs(d); sweep++)
		descend(d);
	return cblas_ddot((int)k, d->q, 1, d->f, 1) - cblas_ddot((int)k, d->q, 1, d->rhs, 1);
}

static void solve_output(const struct problem *p, struct layer *l, size_t out, double *buffer)
{
	const size_t k = p->k;
	float *level = l->level + out * k;
	struct descent a = start(p, l, out, buffer), b = start(p, l, out, buffer + 3 * k), *better;
	size_t i;

	babai(&a);
	for (i = 0; i < k; i++)
		b.q[i] = (double)level[p->order[i]];
	better = minimise(&a) <= minimise(&b) ? &a : &b;
	for (i = 0; i < k; i++)
		level[p->order[i]] = (float)better->q[i];
}

/* sum over the levels of one output of level times x */
static double product(const struct problem *p, const double *q, const double *x)
{
	double sum = 0;
	size_t i;

	for (i = 0; i < p->k; i++)
		sum += q[i] * x[p->order[i]];
	return sum;
}

/* the squared error of levels q (in p's order) on other samples, but for a constant; the bias is by the first */
static double error_on(const struct work *w, const struct problem *p, const struct gram_sums *by,
		       const struct gram_sums *on, size_t out, const double *q)
{
	const struct layer *l = w->l;
	const size_t k = p->k, m = l->outs, g = out / m, o = out % m;
	const double *h = on->h + g * k * k, *c = on->c + g * k * m, *x = on->x + g * k,
		     s = (double)l->scale[out];
	/* two more: OpenBLAS's dsymv for SSE reads past the end */
	double *plain = xcalloc(k + 2, sizeof(*plain)), *hq = xcalloc(k + 2, sizeof(*hq)), shift = 0, sum;
	size_t i;

	for (i = 0; i < k; i++)
		plain[p->order[i]] = q[i];
	cblas_dsymv(CblasRowMajor, CblasUpper, (int)k, 1, h, (int)k, plain, 1, 0, hq, 1);
	sum = s * s * cblas_ddot((int)k, plain, 1, hq, 1);
	sum -= 2 * s * cblas_ddot((int)k, plain, 1, c + o, (int)m);
	if (w->o->update_bias && l->takes_shift)
		shift = (by->y[out] - s * product(p, q, by->x + g * k)) / by->count;
	sum += shift * (2 * (s * product(p, q, x) - on->y[out]) + on->count * shift);
	free(plain);
	free(hq);
	return sum;
}

/* how well levels do on one half that were made from the other with this damping */
static double judge(const struct work *w, const struct gram_sums sums[2], double damping, struct problem *p,
		    double *buffer)
{
	const struct layer *l = w->l;
	const size_t step = (l->groups + JUDGED_GROUPS - 1) / JUDGED_GROUPS,
		     stride = (l->outs + JUDGED_OUTS - 1) / JUDGED_OUTS;
	double error = 0;
	size_t g, o, half;

	for (g = 0; g < l->groups; g += step)
		for (half = 0; half < 2; half++) {
			if (!pose(w, &sums[half], g, damping, p))
				return INFINITY;
			for (o = 0; o < l->outs; o += stride) {
				const size_t out = g * l->outs + o;
				struct descent d = start(p, l, out, buffer);

				babai(&d);
				error += error_on(w, p, &sums[half], &sums[!half], out, d.q);
			}
		}
	return error;
}

/* the damping that does best: in tens from 1 as long as it gets better, then by threes around there */
static double choose_damping(const struct work *w, const struct gram_sums sums[2], struct problem *p,
			     double *buffer)
{
	static const double factors[] = { 10, 0.1, 3, 1 / 3.0 };
	double best = 1, least, e;
	bool went = false;
	size_t i;

	if (!(sums[1].count > 0))
		return best;
	least = judge(w, sums, best, p, buffer);
	for (i = 0; i < ARRAY_LEN(factors); i++) {
		if (i == 1 && went) /* it got better upwards */
			continue;
		while (best > 1e-3 && best < 1e3 &&
		       (e = judge(w, sums, best * factors[i], p, buffer)) < least) {
			least = e;
			best *= factors[i];
			went = true;
			if (i > 1)
				return best;
		}
	}
	return best;
}

/* the bias that takes the mean residual off */
static void set_shift(struct layer *l, const struct gram_sums *s, size_t out)
{
	const size_t g = out / l->outs;
	double mean = s->y[out], sum = 0;
	size_t i;

	for (i = 0; i < l->patch; i++)
		sum += (double)l->level[out * l->patch + i] * s->x[g * l->patch + i];
	l->shift[out] = (mean - sum * (double)l->scale[out]) / s->count;
}

size_t gram_bytes(const struct layer *l)
{
	const size_t k = l->patch, outputs = layer_outputs(l);

	return (2 * l->groups + 1) * k * k * sizeof(double) + 2 * k * k * sizeof(float) +
	       4 * outputs * k * sizeof(double) + GRAM_ROWS * k * sizeof(float);
}

enum fettle_status gram(struct work *w, struct err *err)
{
	struct layer *l = w->l;
	const size_t k = l->patch, m = l->outs, outputs = layer_outputs(l);
	struct arena a = ARENA_INIT;
	struct problem p = { .k = k };
	struct gram_sums s[2] = { { .count = 0 }, { .count = 0 } };
	struct gram_rows r;
	double *buffer, damping;
	enum fettle_status st;
	size_t g, o;

	blas_single_begin();
	gram_sums_init(&s[0], l, &a);
	gram_sums_init(&s[1], l, &a);
	r.x = arena_alloc(&a, GRAM_ROWS * k * sizeof(float));
	r.h = arena_alloc(&a, k * k * sizeof(float));
	r.c = arena_alloc(&a, k * m * sizeof(float));
	p.h = arena_alloc(&a, k * k * sizeof(double));
	p.rhs = arena_alloc(&a, k * m * sizeof(double));
	p.r = arena_alloc(&a, k * k * sizeof(float));
	p.best = arena_alloc(&a, k * m * sizeof(float));
	p.diagonal = arena_alloc(&a, k * sizeof(double));
	p.order = arena_alloc(&a, k * sizeof(size_t));
	buffer = arena_alloc(&a, 6 * k * sizeof(double));
	st = gram_sums_add(w, s, &r, err);
	if (st)
		goto out;
	damping = choose_damping(w, s, &p, buffer);
	damping /= caution;
	gram_sums_merge(s, l);
	for (g = 0; g < l->groups; g++) {
		double d = damping;

		while (!pose(w, &s[0], g, d, &p) && d < 1e6)
			d *= 10;
		for (o = 0; o < m; o++)
			solve_output(&p, l, g * m + o, buffer);
	}
	for (o = 0; o < outputs && w->o->update_bias && l->takes_shift; o++)
		set_shift(l, &s[0], o);
out:
	blas_single_end();
	arena_release(&a);
	return st;
}
