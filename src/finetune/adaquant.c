/*
 * AdaQuant: weights, scales and biases learned by gradient descent through rounding, which is taken for the
 * identity (straight-through). A weight is s * round(u); u is learned in integer steps, s as s0 * exp(t).
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "finetune/method.h"

/* a scale may move by no more than a hundredth of what a weight may, relative to 1 and to a step */
static const double scale_rate = 0.01;

struct learned {
	struct work *w;
	size_t n, n_scales;
	float *u, *gradient;
	float *t, *t_gradient, *scale0;
	struct adam adam_u, adam_t;
};

static float level_of(const struct layer *l, size_t o, float u)
{
	return clampf(rintf(u), l->least[o], l->most[o]);
}

static float scale_of(const struct learned *q, size_t o)
{
	return q->scale0[o] * expf(q->t[q->n_scales > 1 ? o : 0]);
}

static enum fettle_status hard_weights(void *self, size_t iteration, float *w, struct err *err)
{
	struct learned *q = self;
	const struct layer *l = q->w->l;
	size_t o, i;

	(void)iteration;
	(void)err;
	for (o = 0; o < layer_outputs(l); o++) {
		const float scale = scale_of(q, o);

		for (i = o * l->patch; i < (o + 1) * l->patch; i++)
			w[i] = scale * level_of(l, o, q->u[i]);
	}
	return FETTLE_OK;
}

static enum fettle_status learn_step(void *self, size_t iteration, const float *gradient, float factor,
				     struct err *err)
{
	struct learned *q = self;
	const struct layer *l = q->w->l;
	/* ends at nought: a weight between two levels would else be where the last step left it */
	const double rate = q->w->o->learning_rate * (1 - (double)iteration / (double)q->w->o->iterations);
	size_t o, i;

	(void)err;
	memset(q->t_gradient, 0, q->n_scales * sizeof(float));
	for (o = 0; o < layer_outputs(l); o++) {
		const float scale = scale_of(q, o), least = l->least[o] - 0.5f, most = l->most[o] + 0.5f;
		float along = 0;

		for (i = o * l->patch; i < (o + 1) * l->patch; i++) {
			const float g = factor * gradient[i] * scale;

			q->gradient[i] = q->u[i] > least && q->u[i] < most ? g : 0;
			along += g * level_of(l, o, q->u[i]);
		}
		q->t_gradient[q->n_scales > 1 ? o : 0] += along;
	}
	adam_step(&q->adam_u, q->u, q->gradient, rate);
	adam_step(&q->adam_t, q->t, q->t_gradient, rate * scale_rate);
	return FETTLE_OK;
}

static void store(void *self)
{
	struct learned *q = self;
	struct layer *l = q->w->l;
	size_t o, i;

	for (o = 0; o < layer_outputs(l); o++) {
		l->scale[o] = scale_of(q, o);
		for (i = o * l->patch; i < (o + 1) * l->patch; i++)
			l->level[i] = level_of(l, o, q->u[i]);
	}
}

static void learned_close(void *self)
{
	struct learned *q = self;

	free(q->u);
	free(q->gradient);
	free(q->t);
	free(q->t_gradient);
	free(q->scale0);
	adam_release(&q->adam_u);
	adam_release(&q->adam_t);
	free(q);
}

struct learner adaquant_open(struct work *w)
{
	const size_t outputs = layer_outputs(w->l);
	struct learned *q = xcalloc(1, sizeof(*q));
	size_t i;

	q->w = w;
	q->n = layer_weights(w->l);
	q->n_scales = w->l->one_scale ? 1 : outputs;
	q->u = xcalloc(q->n, sizeof(float));
	q->gradient = xcalloc(q->n, sizeof(float));
	q->t = xcalloc(q->n_scales, sizeof(float));
	q->t_gradient = xcalloc(q->n_scales, sizeof(float));
	q->scale0 = xcalloc(outputs, sizeof(float));
	memcpy(q->scale0, w->l->scale, outputs * sizeof(float));
	adam_init(&q->adam_u, q->n);
	adam_init(&q->adam_t, q->n_scales);
	for (i = 0; i < q->n; i++) {
		q->u[i] = w->l->w[i] / w->l->scale[i / w->l->patch];
		if (w->resume) /* half way to where it was rounded */
			q->u[i] = (q->u[i] + w->l->level[i]) / 2;
	}
	return (struct learner){ q, hard_weights, learn_step, store, learned_close };
}
