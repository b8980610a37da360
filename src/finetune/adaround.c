/*
 * AdaRound: each weight goes up or down from its floor, by a variable that a regulariser drives to 0 or 1.
 *
 *	w = s (floor(w / s) + h(v)),  h(v) = clip(1.2 sigmoid(v) - 0.1, 0, 1)
 *	loss = |output error|^2 + lambda * sum(1 - |2 h(v) - 1|^beta),  beta annealed
 *
 * The sigmoid and the power are oneDNN's, too: |x|^b = exp(b log |x|).
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "finetune/method.h"

struct rounder {
	struct work *w;
	size_t n;
	float *v, *floor, *sigmoid, *gradient, *power;
	struct adam adam;
};

static inline float rectified(float sigmoid)
{
	return clampf(1.2f * sigmoid - 0.1f, 0, 1);
}

WIDE static void soften(const struct layer *l, const float *restrict floor, const float *restrict sigmoid,
			float *restrict w)
{
	size_t o, i;

	for (o = 0; o < layer_outputs(l); o++) {
		const float scale = l->scale[o], least = l->least[o], most = l->most[o];

		for (i = o * l->patch; i < (o + 1) * l->patch; i++)
			w[i] = scale * clampf(floor[i] + rectified(sigmoid[i]), least, most);
	}
}

static enum fettle_status soft_weights(void *self, size_t iteration, float *w, struct err *err)
{
	struct rounder *r = self;
	enum fettle_status st;

	(void)iteration;
	st = math_map(r->w->m, MAP_LOGISTIC, r->v, r->sigmoid, err);
	if (!st)
		soften(r->w->l, r->floor, r->sigmoid, w);
	return st;
}

/* beta of an iteration; 0 during the warm start */
static double annealed(const struct finetune *o, size_t iteration)
{
	const double warm = o->warm_start * (double)o->iterations;
	double t = ((double)iteration - warm) / fmax((double)o->iterations - warm, 1);

	if (t < 0)
		return 0;
	return o->beta_range[1] + 0.5 * (o->beta_range[0] - o->beta_range[1]) * (1 + cos(t * acos(-1)));
}

WIDE static void distances(const float *restrict sigmoid, float *restrict out, size_t n)
{
	size_t i;

	for (i = 0; i < n; i++) {
		float d = 2 * rectified(sigmoid[i]) - 1;

		d = d < 0 ? -d : d;
		out[i] = d < 1e-12f ? 1e-12f : d;
	}
}

WIDE static void multiply(float *x, size_t n, float by)
{
	size_t i;

	for (i = 0; i < n; i++)
		x[i] *= by;
}

/* power = |2 h - 1|^(beta - 1) */
static enum fettle_status raise(struct rounder *r, float beta, struct err *err)
{
	enum fettle_status st;

	distances(r->sigmoid, r->power, r->n);
	st = math_map(r->w->m, MAP_LOG, r->power, r->power, err);
	if (st)
		return st;
	multiply(r->power, r->n, beta - 1);
	return math_map(r->w->m, MAP_EXP, r->power, r->power, err);
}

/* the loss's gradient with respect to v; `force` times the power is the regulariser's with respect to h */
WIDE static void chain(const struct layer *l, const float *restrict floor, const float *restrict sigmoid,
		       const float *restrict power, const float *restrict gradient, float factor, float force,
		       float *restrict out)
{
	size_t o, i;

	for (o = 0; o < layer_outputs(l); o++) {
		const float scale = l->scale[o] * factor, least = l->least[o], most = l->most[o];

		for (i = o * l->patch; i < (o + 1) * l->patch; i++) {
			const float s = sigmoid[i], h = 1.2f * s - 0.1f, level = floor[i] + h;
			const float slope = 1.2f * s * (1 - s);
			const float data = ((level > least) & (level < most)) ? scale * gradient[i] : 0;
			const float pull = h > 0.5f ? -force * power[i] : force * power[i];

			out[i] = ((h > 0) & (h < 1)) ? (data + pull) * slope : 0;
		}
	}
}

static enum fettle_status round_step(void *self, size_t iteration, const float *gradient, float factor,
				     struct err *err)
{
	struct rounder *r = self;
	const float beta = (float)annealed(r->w->o, iteration), force = 2 * beta * (float)r->w->o->reg_param;
	enum fettle_status st;

	if (beta > 0) { /* until then the power is zero */
		st = raise(r, beta, err);
		if (st)
			return st;
	}
	chain(r->w->l, r->floor, r->sigmoid, r->power, gradient, factor, force, r->gradient);
	adam_step(&r->adam, r->v, r->gradient, r->w->o->learning_rate);
	return FETTLE_OK;
}

static void round_all(void *self)
{
	struct rounder *r = self;
	struct layer *l = r->w->l;
	size_t i;

	for (i = 0; i < r->n; i++) {
		const size_t o = i / l->patch;
		const float up = r->v[i] >= 0; /* where h is a half */

		l->level[i] = fminf(fmaxf(r->floor[i] + up, l->least[o]), l->most[o]);
	}
}

static void rounder_close(void *self)
{
	struct rounder *r = self;

	free(r->v);
	free(r->floor);
	free(r->sigmoid);
	free(r->gradient);
	free(r->power);
	adam_release(&r->adam);
	free(r);
}

struct learner adaround_open(struct work *w)
{
	struct rounder *r = xcalloc(1, sizeof(*r));
	float **all[] = { &r->v, &r->floor, &r->sigmoid, &r->gradient, &r->power };
	size_t i;

	r->w = w;
	r->n = layer_weights(w->l);
	for (i = 0; i < ARRAY_LEN(all); i++)
		*all[i] = xcalloc(r->n, sizeof(float));
	adam_init(&r->adam, r->n);
	for (i = 0; i < r->n; i++) {
		const float x = w->l->w[i] / w->l->scale[i / w->l->patch];
		float h = x - floorf(x); /* where the soft weight is the fp32 one */

		if (w->resume) /* half way to where it was rounded */
			h = (h + (w->l->level[i] > floorf(x))) / 2;
		r->floor[i] = floorf(x);
		r->v[i] = -logf(1.2f / (h + 0.1f) - 1);
	}
	return (struct learner){ r, soft_weights, round_step, round_all, rounder_close };
}
