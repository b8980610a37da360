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

static float rectified(float sigmoid)
{
	return fminf(fmaxf(1.2f * sigmoid - 0.1f, 0), 1);
}

static enum fettle_status soft_weights(void *self, size_t iteration, float *w, struct err *err)
{
	struct rounder *r = self;
	const struct layer *l = r->w->l;
	enum fettle_status st;
	size_t o, i;

	(void)iteration;
	st = math_map(r->w->m, MAP_LOGISTIC, r->v, r->sigmoid, err);
	for (o = 0; o < layer_outputs(l) && !st; o++) {
		const float scale = l->scale[o], least = l->least[o], most = l->most[o];

		for (i = o * l->patch; i < (o + 1) * l->patch; i++)
			w[i] = scale * fminf(fmaxf(r->floor[i] + rectified(r->sigmoid[i]), least), most);
	}
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

/* power = |2 h - 1|^(beta - 1) */
static enum fettle_status raise(struct rounder *r, float beta, struct err *err)
{
	enum fettle_status st;
	size_t i;

	for (i = 0; i < r->n; i++)
		r->power[i] = fmaxf(fabsf(2 * rectified(r->sigmoid[i]) - 1), 1e-12f);
	st = math_map(r->w->m, MAP_LOG, r->power, r->power, err);
	for (i = 0; i < r->n && !st; i++)
		r->power[i] *= beta - 1;
	return st ? st : math_map(r->w->m, MAP_EXP, r->power, r->power, err);
}

static enum fettle_status round_step(void *self, size_t iteration, const float *gradient, struct err *err)
{
	struct rounder *r = self;
	const struct layer *l = r->w->l;
	const float beta = (float)annealed(r->w->o, iteration), force = 2 * beta * (float)r->w->o->reg_param;
	enum fettle_status st;
	size_t o, i;

	if (beta > 0) {
		st = raise(r, beta, err);
		if (st)
			return st;
	} else {
		memset(r->power, 0, r->n * sizeof(float));
	}
	for (o = 0; o < layer_outputs(l); o++) {
		const float scale = l->scale[o], least = l->least[o], most = l->most[o];

		for (i = o * l->patch; i < (o + 1) * l->patch; i++) {
			const float s = r->sigmoid[i], h = 1.2f * s - 0.1f, level = r->floor[i] + h;
			const float slope = h > 0 && h < 1 ? 1.2f * s * (1 - s) : 0;
			const float data = level > least && level < most ? scale * gradient[i] : 0;
			const float pull = h > 0.5f ? -force * r->power[i] : force * r->power[i];

			r->gradient[i] = (data + pull) * slope;
		}
	}
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

enum fettle_status adaround(struct work *w, struct err *err)
{
	struct rounder r = { .w = w, .n = layer_weights(w->l) };
	struct learner f = { &r, soft_weights, round_step, round_all };
	float **all[] = { &r.v, &r.floor, &r.sigmoid, &r.gradient, &r.power };
	enum fettle_status st;
	size_t i;

	for (i = 0; i < ARRAY_LEN(all); i++)
		*all[i] = xcalloc(r.n, sizeof(float));
	adam_init(&r.adam, r.n);
	for (i = 0; i < r.n; i++) {
		const float x = w->l->w[i] / w->l->scale[i / w->l->patch];
		const float h = x - floorf(x); /* where the soft weight is the fp32 one */

		r.floor[i] = floorf(x);
		r.v[i] = -logf(1.2f / (h + 0.1f) - 1);
	}
	st = train(w, &f, err);
	for (i = 0; i < ARRAY_LEN(all); i++)
		free(*all[i]);
	adam_release(&r.adam);
	return st;
}
