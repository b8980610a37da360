#include <math.h>
#include <stdlib.h>
#include <string.h>
#ifdef __SSE__
#include <immintrin.h>
#endif

#include "base/rng.h"
#include "finetune/method.h"

void adam_init(struct adam *a, size_t n)
{
	*a = (struct adam){ xcalloc(n, sizeof(float)), xcalloc(n, sizeof(float)), n, 0 };
}

void adam_release(struct adam *a)
{
	free(a->mean);
	free(a->square);
}

static const float b1 = 0.9f, b2 = 0.999f, tiny = 1e-8f;

WIDE static void adam_loop(float *restrict mean, float *restrict square, float *restrict x,
			   const float *restrict g, size_t n, float step, float root)
{
	size_t i;

	for (i = 0; i < n; i++) {
		mean[i] = b1 * mean[i] + (1 - b1) * g[i];
		square[i] = b2 * square[i] + (1 - b2) * g[i] * g[i];
		x[i] -= step * mean[i] / (sqrtf(square[i]) * root + tiny);
	}
}

void adam_step(struct adam *a, float *x, const float *g, double rate)
{
	a->t++;
	adam_loop(a->mean, a->square, x, g, a->n, (float)(rate / (1 - pow((double)b1, (double)a->t))),
		  (float)(1 / sqrt(1 - pow((double)b2, (double)a->t))));
}

/* A stretch of training on one window of batches. */
struct stretch {
	struct work *w;
	const struct learner *f;
	struct rng rng;
	size_t first, n;          /* the window */
	size_t done;              /* iterations in all */
	struct math_units *units; /* for each pass of an iteration */
};

/* a mixture of both inputs: each number is the quantized model's with probability drop_ratio */
static void mix(struct rng *r, const float *q, const float *f, size_t n, double ratio, float *out)
{
	size_t i;

	for (i = 0; i < n; i++)
		out[i] = rng_unit(r) < ratio ? q[i] : f[i];
}

/*
 * Samples of the window for one pass, at random; the rows of a matrix come in runs, as many as there are to a sample.
 * They are copied together only where need be.
 */
static struct math_units gather(struct stretch *s)
{
	struct work *w = s->w;
	const size_t xs = layer_x_size(w->l), ys = layer_y_size(w->l);
	size_t i, n;

	for (i = 0; i < w->m->n; i += n) {
		const struct units *u;
		size_t at;

		do
			u = &w->c->v[s->first + rng_below(&s->rng, s->n)];
		while (!u->n); /* pushed out by larger ones */
		n = w->run < u->n ? w->run : u->n;
		n = n < w->m->n - i ? n : w->m->n - i;
		at = rng_below(&s->rng, u->n - n + 1);
		if (n == w->m->n && !u->fp32)
			return (struct math_units){ u->x + at * xs, u->y + at * ys };
		if (u->fp32)
			mix(&s->rng, u->x + at * xs, u->fp32 + at * xs, n * xs, w->o->drop_ratio,
			    w->m->x + i * xs);
		else
			memcpy(w->m->x + i * xs, u->x + at * xs, n * xs * sizeof(float));
		memcpy(w->m->target + i * ys, u->y + at * ys, n * ys * sizeof(float));
	}
	return (struct math_units){ w->m->x, w->m->target };
}

static enum fettle_status iterate(struct stretch *s, struct err *err)
{
	struct work *w = s->w;
	struct layer_math *m = w->m;
	const size_t outputs = layer_outputs(w->l);
	const float scale = (float)(1 / ((double)(m->n * w->passes) * (double)layer_positions(w->l)));
	const bool bias = w->o->update_bias && w->l->takes_shift;
	enum fettle_status st;
	size_t i;

	st = s->f->weights(s->f->self, s->done, m->w, err);
	if (st)
		return st;
	for (i = 0; i < w->passes; i++)
		s->units[i] = gather(s);
	for (i = 0; i < outputs; i++)
		m->b[i] = (float)w->l->shift[i];
	st = math_learn(m, s->units, w->passes, err);
	if (st)
		return st;
	/* db is the sum of residuals: what the bias should take off, were these all samples */
	for (i = 0; i < outputs && bias; i++)
		w->l->shift[i] -= 0.1 * (double)(m->db[i] * scale);
	return s->f->step(s->f->self, s->done++, m->dw, 2 * scale, err);
}

/* EarlyStop: has the error on held-out samples risen twice in a row? Keeps the best levels. */
struct watch {
	double best;
	float *level, *scale;
	int worse;
};

static enum fettle_status look(struct work *w, const struct learner *f, struct watch *v, bool *stop,
			       struct err *err)
{
	struct layer *l = w->l;
	double e;
	enum fettle_status st;

	f->store(f->self);
	st = fit_shift(w, err);
	if (!st)
		st = work_error(w, w->c->split.held, w->c->split.n, &e, err);
	if (st)
		return st;
	if (!v->level || e < v->best) {
		if (!v->level) {
			v->level = xcalloc(layer_weights(l), sizeof(float));
			v->scale = xcalloc(layer_outputs(l), sizeof(float));
		}
		memcpy(v->level, l->level, layer_weights(l) * sizeof(float));
		memcpy(v->scale, l->scale, layer_outputs(l) * sizeof(float));
		v->best = e;
		v->worse = 0;
	} else {
		v->worse++;
	}
	*stop = v->worse >= 2;
	return FETTLE_OK;
}

size_t stretch_length(const struct finetune *o, size_t batches, size_t fit)
{
	const size_t all = o->iterations, windows = (batches + fit - 1) / fit;
	size_t rounds = all / (windows * 200);

	rounds = rounds > 8 ? 8 : rounds ? rounds : 1;
	return windows == 1 ? all : (all + windows * rounds - 1) / (windows * rounds);
}

unsigned flush_tiny(void)
{
#ifdef __SSE__
	unsigned before = _mm_getcsr();

	_mm_setcsr(before | _MM_FLUSH_ZERO_ON | 0x40 /* denormals are zero, as inputs too */);
	return before;
#else
	return 0;
#endif
}

void flush_as(unsigned before)
{
#ifdef __SSE__
	_mm_setcsr(before);
#else
	(void)before;
#endif
}

enum fettle_status train(struct work *w, const struct learner *f, struct err *err)
{
	const size_t all = w->o->iterations, check = all / 10 ? all / 10 : 1;
	struct stretch s = { .w = w, .f = f };
	struct watch v = { .worse = 0 };
	bool stop = false;
	unsigned before = flush_tiny();
	enum fettle_status st = FETTLE_OK;

	s.units = xcalloc(w->passes, sizeof(*s.units));
	rng_seed(&s.rng, w->seed);
	while (s.done < all && !st && !stop) {
		size_t i, length;

		st = capture_window(w->c, s.first, w->c->split.n_train, &s.n, err);
		length = st ? 0 : stretch_length(w->o, w->c->split.n_train, s.n);
		for (i = 0; i < length && s.done < all && !st && !stop; i++) {
			if (s.done % ITERATIONS_BETWEEN == 0)
				st = tell_progress(w->c->source, w->node, err);
			if (!st)
				st = iterate(&s, err);
			/* before the end of annealing the rounding still moves: there is no point in measuring it */
			if (!st && w->o->early_stop && s.done % check == 0 && s.done >= all / 2)
				st = look(w, f, &v, &stop, err);
			if (!st && !w->c->v[s.first].n)
				st = capture_window(w->c, s.first, w->c->split.n_train, &s.n, err);
		}
		s.first = s.first + s.n < w->c->split.n_train ? s.first + s.n : 0;
	}
	if (!st)
		f->store(f->self);
	if (!st && v.level) {
		memcpy(w->l->level, v.level, layer_weights(w->l) * sizeof(float));
		memcpy(w->l->scale, v.scale, layer_outputs(w->l) * sizeof(float));
	}
	free(s.units);
	free(v.level);
	free(v.scale);
	flush_as(before);
	return st;
}
